"""What was once written for the one knot of the hinge, on losses with other knots."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from _numbers import LOSSES, wave
from _problems import rbf

import exactcv
from exactcv._core import _bounds
from exactcv._core._active_set import Status
from exactcv._core.reference import residuals as reference
from exactcv.engine.path import Point, Tracker, full_path, initial_states
from exactcv.engine.smo import solve
from exactcv.judge.certificate import residuals
from exactcv.problem.losses import PiecewiseLinear, epsilon_insensitive, pinball
from exactcv.problem.problem import Problem
from exactcv.types import FloatArray

intercepts = pytest.mark.parametrize("fit_intercept", [True, False], ids=["b", "no b"])


def steep(y: FloatArray) -> PiecewiseLinear:
    """Three knots; of the outer ones no coefficient may be 0."""
    return PiecewiseLinear(
        np.column_stack([y - 0.5, y, y + 0.5]), np.tile([-2.0, -1.0, 1.0, 2.0], (len(y), 1))
    )


# ---- the path ------------------------------------------------------------------------------------


@intercepts
def test_a_knot_whose_box_moves_with_C_settles_nothing(fit_intercept: bool) -> None:
    """Every row is at a knot, and yet the solution is another one at the next C."""
    y = np.array([10.0, -10.0, 7.0, -7.0])
    problem = Problem(np.eye(4), y, np.ones(4), steep(y), fit_intercept)
    Cs = np.array([6.0, 9.0, 12.0, 24.0])
    for point in full_path(problem, Cs, Tracker(problem, np.zeros(1, dtype=np.int32))):
        figures = residuals(
            problem.K, problem.loss, np.full(4, point.C), point.coef, point.b,
            fit_intercept=fit_intercept,
        )  # fmt: skip
        assert max(figures) <= 1e-10, point.C
        expected = solve(problem.K, problem.loss, np.full(4, point.C), fit_intercept=fit_intercept)
        np.testing.assert_allclose(point.coef, expected.coef, atol=1e-8)


@pytest.mark.parametrize("name", ["tube", "median"])
def test_symmetric_losses_start_somewhere(name: str) -> None:
    """Neither side of such a loss is the steeper; the first C is solved all the same."""
    X, y = wave(60)
    loss = epsilon_insensitive(y, 0.2) if name == "tube" else pinball(y, 0.5)
    problem = Problem(rbf(X), y, np.ones(60), loss, True)
    assert len(np.unique(initial_states(problem))) == 1
    for C in (1e-6, 1e-2, 1.0, 1e3):
        tracker = Tracker(problem, np.zeros(1, dtype=np.int32))
        point = full_path(problem, np.array([C]), tracker)[0]
        assert not point.fallback
        assert max(residuals(problem.K, loss, np.full(60, C), point.coef, point.b)) <= 1e-9


# ---- the last resort -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "ridge"])
@pytest.mark.parametrize("cv", ["loo", 3])
def test_the_last_resort_solves_every_loss(
    name: str, cv: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the active set always gives up, the working-set solver has to do."""
    X, y = wave(18)
    settings = {"Cs": [0.05, 1.0, 50.0], "cv": cv, "gamma": 0.5} | LOSSES[name]
    expected = exactcv.cross_validate(X, y, **settings)

    def give_up(self: Tracker, point: Point, C: float, *_: Any, **__: Any) -> tuple[Point, int]:
        return replace(point, C=C), int(Status.SINGULAR)

    monkeypatch.setattr(Tracker, "_solve", give_up)
    result = exactcv.cross_validate(X, y, **settings)
    assert result.certificate.exact
    np.testing.assert_allclose(result.decision, expected.decision, atol=1e-6)


# ---- the walk of the intercept -------------------------------------------------------------------


def somewhere(m: int, seed: int) -> dict[str, FloatArray]:
    """Rows on segments and at knots of losses with m knots, 0 among their slopes."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    knots = np.sort(rng.normal(size=(n, m)), axis=1)
    levels = -np.sort(rng.normal(size=(n, m + 1)), axis=1)
    levels -= levels[np.arange(n), rng.integers(0, m + 1, n)][:, None]
    state = rng.integers(-1, 2 * m + 1, n).astype(np.int8)
    segment, rows, share = state // 2, np.arange(n), rng.random(n)
    after = levels[rows, np.minimum(segment + 1, m)]
    at_knot = state % 2 == 1
    coef = np.where(at_knot, share * levels[rows, segment] + (1 - share) * after, 0.0)
    coef = np.where(at_knot, coef, levels[rows, segment])
    coef[state < 0] = 0.0
    left = knots[rows, np.maximum(segment - 1, 0)] - (segment == 0)
    right = np.where(segment == m, left + 1.0, knots[rows, np.minimum(segment, m - 1)])
    u = np.where(at_knot, knots[rows, np.minimum(segment, m - 1)], left + share * (right - left))
    return {"knots": knots, "levels": levels, "state": state, "coef": coef, "u": u}


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_the_walk_passes_every_knot(m: int, seed: int) -> None:
    """The compiled walk and its twin agree; between the ends, others take up what is given up."""
    given = somewhere(m, seed)
    coef = given["coef"]
    who = np.flatnonzero(coef).astype(np.intp)
    found = []
    for walk in (_bounds.walk, reference.walk):
        least, most = np.zeros(len(who)), np.zeros(len(who))
        walk(*given.values(), who, coef[who], 1e-9, least, most)
        found.append((least, most))
    np.testing.assert_array_equal(*found)
    for j, low, high in zip(who, *found[0], strict=True):
        sign = np.sign(coef[j])
        others = np.setdiff1d(np.flatnonzero(given["state"] >= 0), [j])
        for way, enough in ((high + 1e-9, True), (low - 1e-9, False)):
            if np.isfinite(way) and way > 0:
                assert (taken_up(given, others, sign, way) >= abs(coef[j])) == enough


def taken_up(given: dict[str, FloatArray], rows: Any, sign: float, way: float) -> float:
    """By how much coefficients can rise (fall) while b falls (rises) that far."""
    total = 0.0
    for i in rows:
        knots, levels = given["knots"][i], given["levels"][i]
        u = given["u"][i] - sign * way
        segment = int((knots < u).sum() if sign > 0 else (knots <= u).sum())
        best = levels[segment]
        total += max(sign * (best - given["coef"][i]), 0.0)
    return total
