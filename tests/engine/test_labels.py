"""Labels that follow from nearly optimal solutions: what is not quite right is charged for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from exactcv._core.reference.residuals import fenchel_young
from exactcv.engine.full_solution import FullSolution
from exactcv.engine.labels import gaps, slips
from exactcv.engine.path import Tracker, full_path
from exactcv.engine.table import Found, Inverse, Table
from exactcv.problem.losses import hinge
from exactcv.problem.problem import Problem


def full_solution(C: float) -> FullSolution:
    rng = np.random.default_rng(4)
    y = np.tile([-1.0, 1.0], 30)
    X = rng.normal(size=(60, 3)) + 0.5 * y[:, None]
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    problem = Problem(K, y, np.ones(60), hinge(y), True)
    tracker = Tracker(problem, np.zeros(1, dtype=np.int32))
    point = full_path(problem, np.array([C]), tracker)[0]
    levels = problem.loss.coefficient_levels(C * problem.weight)
    return FullSolution(problem, point.state, point.coef, K @ point.coef + point.b, levels)


def left_out(base: FullSolution, who: np.ndarray) -> tuple[Table, np.ndarray, Found]:
    inverse = Inverse(base.problem)
    base = inverse.of(base)
    others = base.state >= 0
    others[base.members] = False
    table = Table(base, inverse.columns(np.flatnonzero(others)))
    coef, found = table.solutions(who, base.coef[who], np.zeros(1, dtype=np.int32))
    return table, coef, found


def true_gap(problem: Problem, levels: np.ndarray, coef: np.ndarray, j: int) -> float:
    """Of what was found without row j, at the best intercept."""
    h, rest = problem.K @ coef, np.arange(problem.n) != j
    knots = problem.loss.knots[rest]
    u = h[rest] + (knots[:, 0] - h[rest])[:, None]  # b such that one row or another is at its knot
    parts = [fenchel_young(one, coef[rest], knots, levels[rest]).sum() for one in u]
    return float(min(parts))


@pytest.mark.parametrize("part", ["nothing", "level", "sum"])
@pytest.mark.parametrize("C", [0.3, 3.0])
def test_the_gap_is_no_less_than_it_is(C: float, part: str) -> None:
    """Rows that are a little off their level, coefficients that do not quite sum to zero."""
    base = full_solution(C)
    who = np.flatnonzero(base.coef != 0)[:12]
    off, coef = 1e-7 * C, base.coef.copy()
    if part == "level":
        some = np.setdiff1d(np.flatnonzero(base.state == 2), who)
        far = some[np.argsort(-np.abs(base.u[some] - base.problem.y[some]))[:2]]
        coef[far] += off * np.array([1.0, -1.0]) if len(far) == 2 else off
    elif part == "sum":
        coef[base.members[0]] += off
    u = base.u + base.problem.K @ (coef - base.coef)
    table, found_coef, found = left_out(replace(base, coef=coef, u=u), who)
    assert not found.failed.all()
    bound = gaps(table, found)
    for r in np.flatnonzero(~found.failed):
        found_coef[r, who[r]] = 0.0
        assert true_gap(base.problem, base.levels, found_coef[r], who[r]) <= bound[r]
    if part != "nothing":
        assert (bound >= off * 1e-3).all()
    assert (slips(table, found) >= 0).all()
