"""Boxes that move: every solution on the way is that of a problem solved from nothing."""

from __future__ import annotations

import numpy as np
import pytest
from _oracle import hinge_problem
from _problems import BUILDERS, FloatArray

from exactcv.engine.moves import Mover, Standing
from exactcv.engine.smo import solve_hinge
from exactcv.judge.certificate import judge_for
from exactcv.problem.losses import hinge
from exactcv.problem.problem import Problem

GO_ON = np.zeros(1, dtype=np.int32)
# What "exact" promises of values, relative to their scale (1, the margin, at least).
CLOSE = 1e-8


def from_nothing(problem: Problem, weight: FloatArray, C: float) -> FloatArray:
    """Values of all rows by the working-set solver, with the intercept that the rule picks."""
    other = problem.weighted(weight)
    found = solve_hinge(other, np.flatnonzero(weight > 0), C, 1e-12, GO_ON, 2_000_000)
    h = found.coef @ problem.K
    b = judge_for(other).intercepts(h[None], found.coef[None], np.array([C]))
    return np.asarray(h + b[0])


def assert_solved(problem: Problem, found: Standing, C: float) -> None:
    assert found.kkt <= 1e-8
    assert found.gap <= 1e-8
    assert (found.coef[found.weight == 0.0] == 0.0).all()
    truth = from_nothing(problem, found.weight, C)
    scale = max(1.0, float(np.abs(truth).max()))
    assert np.abs(problem.K @ found.coef + found.intercept - truth).max() <= CLOSE * scale
    assert np.abs(found.values - truth).max() <= CLOSE * scale


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_rows_go_and_come_back(name: str, fit_intercept: bool, C: float) -> None:
    problem = hinge_problem(BUILDERS[name](n=30), fit_intercept)
    mover = Mover(problem, C)
    every = at = mover.solved(GO_ON)
    assert_solved(problem, every, C)
    order = np.random.default_rng(3).permutation(problem.n)
    # Of each class some stay.
    going = [j for j in order if np.count_nonzero(problem.y == problem.y[j]) > 2][:8]
    gone: list[int] = []
    for j in going:
        rest = np.delete(np.arange(problem.n), [*gone, j])
        if len(np.unique(problem.y[rest])) < 2:
            continue
        at = mover.moved(at, np.array([j]), np.zeros(1), GO_ON)
        gone.append(int(j))
        assert_solved(problem, at, C)
    several = mover.moved(every, np.array(gone), np.zeros(len(gone)), GO_ON)
    assert_solved(problem, several, C)
    for j in gone:
        at = mover.moved(at, np.array([j]), problem.weight[[j]], GO_ON)
    assert_solved(problem, at, C)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_weights_change(C: float) -> None:
    problem = hinge_problem(BUILDERS["duplicates"](n=30))
    mover = Mover(problem, C)
    at = mover.solved(GO_ON)
    for row, weight in ((0, 0.3), (4, 5.0), (0, 2.0), (7, 1e-3)):
        at = mover.moved(at, np.array([row]), np.array([weight]), GO_ON)
        assert at.weight[row] == weight
        assert_solved(problem, at, C)


def test_a_solution_that_somebody_else_has_found() -> None:
    problem = hinge_problem(BUILDERS["mixture"](n=40))
    mover = Mover(problem, 1.0)
    weight = problem.weight.copy()
    weight[5] = 0.0
    rough = solve_hinge(problem.weighted(weight), np.flatnonzero(weight), 1.0, 1e-3, GO_ON, 10**6)
    assert_solved(problem, mover.found(weight, rough.coef, GO_ON), 1.0)


def test_solutions_are_not_changed_by_later_moves() -> None:
    problem = hinge_problem(BUILDERS["overlap"](n=40))
    mover = Mover(problem, 10.0)
    every = mover.solved(GO_ON)
    before = every.coef.copy(), every.point.state.copy(), every.values.copy()
    first = mover.moved(every, np.array([1]), np.zeros(1), GO_ON)
    mover.moved(every, np.array([2]), np.zeros(1), GO_ON)
    again = mover.moved(every, np.array([1]), np.zeros(1), GO_ON)
    for now, then in zip((every.coef, every.point.state, every.values), before, strict=True):
        assert np.array_equal(now, then)
    assert np.abs(first.values - again.values).max() <= CLOSE


@pytest.mark.parametrize("name", ["mixture", "duplicates", "low_rank"])
def test_a_row_is_taken_up(name: str) -> None:
    whole = hinge_problem(BUILDERS[name](n=30))
    part = Problem(
        np.ascontiguousarray(whole.K[:-1, :-1]), whole.y[:-1], whole.weight[:-1],
        hinge(whole.y[:-1]), True,
    )  # fmt: skip
    small = Mover(part, 1.0).solved(GO_ON)
    mover = Mover(whole, 1.0)
    start = mover.taking_up(small)
    assert start.values[-1] == pytest.approx(float(whole.K[-1] @ start.coef) + small.intercept)
    last = np.array([whole.n - 1])
    assert_solved(whole, mover.moved(start, last, whole.weight[last], GO_ON), 1.0)
