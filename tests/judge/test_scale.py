"""Certificates that cannot lie: large C, hard margins, weights of all sizes.

The answers come from an interior point in double-double arithmetic that shares no line with the
library (``tests/campaign``).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from _problems import FloatArray, Small, mixture, rbf
from campaign import interior_point

import exactcv
from exactcv.engine.smo import solve
from exactcv.judge.certificate import PiecewiseLinearJudge, residuals
from exactcv.judge.intercept import doubt
from exactcv.problem.differentiable import DIFFERENTIABLE_LOSSES
from exactcv.problem.losses import hinge

TOL = 1e-8


def optimum(K: FloatArray, y: FloatArray, box: FloatArray) -> tuple[FloatArray, float]:
    """c and b, rounded from twice as many digits; for problems with a coefficient inside."""
    low, high = np.minimum(0, y * box), np.maximum(0, y * box)
    found = interior_point.solve(K[None], y[None], low[None], high[None], np.ones((1, len(y))))
    assert found.error[0] < 1e-20
    return found.coef.float()[0], float(found.intercept.float()[0])


def separable(n: int = 10, seed: int = 0) -> Small:
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return Small(rbf(rng.normal(size=(n, 5))), y, np.ones(n))


# ---- 1. coefficients far below C ---------------------------------------------------------------


@pytest.mark.parametrize("method", ["exact", "refit"])
def test_hard_margin_at_a_huge_C(method: str) -> None:
    """Once certified with the wrong label: every coefficient is 1e-11 C."""
    rng = np.random.default_rng(6)
    rng.integers(6, 12), rng.random(8)
    X = np.round(rng.normal(size=(8, 16))) * 2.0**17
    y = np.array([1, 1, -1, -1, -1, -1, 1, -1.0])
    train, test, C = np.arange(2, 8), np.array([0, 1]), 1e12 / 2.0**38
    result = exactcv.cross_validate(
        X, y, kernel="linear", Cs=[C], cv=[(train, test)], output="decision", method=method
    )
    K = X @ X.T
    coef, b = optimum(K[np.ix_(train, train)], y[train], np.full(6, C))
    assert result.certificate.exact
    assert result.decision[0, test] == pytest.approx(K[np.ix_(test, train)] @ coef + b, abs=1e-11)


@pytest.mark.parametrize("C", [1e2, 1e6, 1e9, 1e13])
@pytest.mark.parametrize("wrong", [1e-3, 1e-6])
def test_a_wrong_coefficient_is_seen_whatever_C(C: float, wrong: float) -> None:
    """On the scale of what it changes, not of C: outside the box, or off the bound."""
    small = separable()
    coef, b = optimum(small.K, small.y, np.full(10, 1e13))
    assert max(residuals(small.K, hinge(small.y), np.full(10, C), coef, b)) <= 1e-12
    for i, size in ((0, -wrong * small.y[0]), (1, wrong)):
        worse = coef.copy()
        worse[i] += size - (worse[i] if i == 0 else 0.0)
        worse[2] -= worse.sum()  # keep the sum
        assert residuals(small.K, hinge(small.y), np.full(10, C), worse, b)[0] >= 0.01 * wrong
    idle = np.zeros(10)
    idle[3] = wrong  # a row that takes no part
    kkt, _ = residuals(small.K, hinge(small.y), np.full(10, C), coef + idle, b, np.array([3]))
    assert kkt >= 0.5 * wrong


def test_what_is_clipped_is_charged() -> None:
    """Coefficients outside their box, or with a sum, move f~ away from f: the gap says how far."""
    small = separable()
    box = np.full(10, 1e12)
    coef, b = optimum(small.K, small.y, box)
    rng = np.random.default_rng(1)
    for size in (1e-2, 1e-5, 1e-7, 1e-9):
        worse = coef + size * rng.normal(size=10)
        worse[np.argmin(np.abs(coef))] = -size * small.y[np.argmin(np.abs(coef))]
        h = np.ascontiguousarray((worse @ small.K)[None])
        judge = PiecewiseLinearJudge.of(hinge(small.y), box, True, small.K.diagonal())
        gap = judge.figures(h, worse[None], np.array([b]), np.ones(1))[0, 1]
        true = (worse - coef) @ small.K @ (worse - coef)
        assert np.sqrt(2 * gap) >= np.sqrt(true) * (1 - 1e-9)
        if size < 1e-6:  # near enough to be scaled up
            assert np.sqrt(2 * gap) <= 10 * np.sqrt(size * np.abs(coef).sum())


# ---- 2. weights --------------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [1e4, 1e8, 1e10, 1e12])
@pytest.mark.parametrize("method", ["exact", "refit"])
def test_light_rows_count(ratio: float, method: str) -> None:
    rng = np.random.default_rng(3)
    n = 16
    X, y = rng.normal(size=(n, 3)), np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    weight = np.where(rng.random(n) < 0.5, 1.0, 1 / ratio)
    K = rbf(X)
    Cs = np.array([1.0, 100.0, ratio])
    result = exactcv.cross_validate(
        K, y, kernel="precomputed", Cs=Cs, cv="loo", output="decision", sample_weight=weight,
        method=method,
    )  # fmt: skip
    assert result.certificate.exact
    for l, C in enumerate(Cs):
        for j in (0, 5, 11):
            train = np.setdiff1d(np.arange(n), [j])
            coef, b = optimum(K[np.ix_(train, train)], y[train], C * weight[train])
            assert result.decision[l, j] == pytest.approx(K[j, train] @ coef + b, abs=1e-8)


@pytest.mark.parametrize("ratio", [1e2, 1e6, 1e10])
def test_a_light_row_is_judged_by_its_own_box(ratio: float) -> None:
    small = mixture(20, 5, seed=1)
    box = np.where(np.arange(20) < 10, 1.0, 1 / ratio)
    coef, b = optimum(small.K, small.y, box)
    loss = hinge(small.y)
    assert max(residuals(small.K, loss, box, coef, b)) <= 1e-12
    light = np.flatnonzero((box < 1) & (np.abs(coef) > 0.99 * box))[0]
    heavy = np.flatnonzero((np.abs(coef) > 0.1) & (np.abs(coef) < 0.9))[0]
    worse = coef.copy()
    worse[light] *= 0.5
    worse[heavy] += coef[light] - worse[light]
    assert residuals(small.K, loss, box, worse, b)[0] > 0.1


def test_an_intercept_that_hangs_on_a_light_row() -> None:
    """Two heavy rows balance each other; a light one decides where b is."""
    K, y = np.eye(3) * 1e-3, np.array([1.0, -1.0, 1.0])
    for light, certain in ((1e-3, True), (1e-5, True), (1e-13, False), (1e-18, False)):
        box = np.array([1.0, 1.0, light])
        # The light row needs a partner: row 1 is at its bound, so row 0 gives way a little.
        coef = np.array([1.0 - light, -1.0, light])
        b = 1.0 - K[0, 0] * coef[0]
        kkt, _ = residuals(K, hinge(y), box, coef, b)
        assert (kkt <= TOL) == certain  # what is called a bound must not matter
        # Called a tie, with b in the middle, it is wrong, and found out.
        level = np.array([1.0, -1.0, light])
        assert residuals(K, hinge(y), box, level, 0.0)[0] > 0.1


def test_doubt_is_zero_where_a_coefficient_is_inside() -> None:
    y, h = np.array([1.0, -1.0]), np.array([0.9, -0.8])
    loss, near, train = hinge(y), np.full(2, 1e-9), np.ones(2, dtype=bool)

    def at(size: float, b: float, box: float = 1.0, sum_off: float = 0.0) -> float:
        levels = loss.coefficient_levels(np.array([1.0, box]))
        return doubt(h, np.array([size, -size + sum_off]), b, levels, loss, train, near)

    assert at(0.5, 3.0) == 0.0  # that b is wrong is for the residuals to say
    assert at(1.0, -0.05) == pytest.approx(0.0)  # the middle
    assert at(1.0, 0.1) == pytest.approx(0.15)  # an end
    inside = 1 - 1e-8
    assert at(inside, 0.1, box=inside) == pytest.approx(0.15)  # inside or not?  both are wrong
    assert at(inside, -0.05, box=inside) == pytest.approx(0.15)
    assert at(1.0, -0.05, sum_off=1e-12) == pytest.approx(0.15)  # someone has to take it up


# ---- 3. no false alarms ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("method", ["exact", "refit"])
def test_where_C_no_longer_matters_nothing_changes(seed: int, method: str) -> None:
    small, expected = separable(seed=seed), hard_margin_values(seed)
    Cs = np.array([1e4, 1e6, 1e9, 1e12, 1e15])
    for grid in (Cs, *Cs[:, None]):  # along a path, and each alone
        result = exactcv.cross_validate(
            small.K, small.y, kernel="precomputed", Cs=grid, cv="loo", output="decision",
            method=method,
        )  # fmt: skip
        assert result.certificate.exact
        np.testing.assert_allclose(result.decision, np.tile(expected, (len(grid), 1)), 0, 1e-10)


@cache
def hard_margin_values(seed: int) -> np.ndarray:
    """The left-out values, which are the same for every grid and every method."""
    small = separable(seed=seed)
    values = np.empty(10)
    for j in range(10):
        train = np.setdiff1d(np.arange(10), [j])
        coef, b = optimum(small.K[np.ix_(train, train)], small.y[train], np.full(9, 1e15))
        values[j] = small.K[j, train] @ coef + b
    return values


def test_the_verdict_on_a_hard_margin_does_not_know_C() -> None:
    small = separable()
    coef, b = optimum(small.K, small.y, np.full(10, 1e15))
    figures = [
        residuals(small.K, hinge(small.y), np.full(10, C), coef, b)
        for C in 10.0 ** np.arange(2, 16)
    ]
    assert np.ptp([kkt for kkt, _ in figures]) <= 1e-15
    assert np.ptp([gap for _, gap in figures]) <= 1e-14


@pytest.mark.parametrize("name", DIFFERENTIABLE_LOSSES)
def test_differentiable_losses_at_a_large_C(name: str) -> None:
    small = mixture(20, 5, seed=1)
    for C in (1e-3, 1e3, 1e6):
        result = exactcv.cross_validate(
            small.K, small.y, kernel="precomputed", Cs=[C], cv=3, loss=name, method="refit"
        )
        assert result.certificate.exact, (C, str(result.certificate))


# ---- rounding ----------------------------------------------------------------------------------


def test_rounding_is_known_and_charged() -> None:
    """Coefficients of 1e9 with decision values of 1: u is good to 1e-7 at best."""
    rng = np.random.default_rng(0)
    X, y = np.round(4 * rng.normal(size=(30, 2))), np.where(rng.random(30) < 0.5, 1.0, -1.0)
    K, box = X @ X.T, np.full(30, 1e9)
    found = solve(K, hinge(y), box, tol=1e-10)
    judge = PiecewiseLinearJudge.of(hinge(y), box, True, K.diagonal())
    h = np.ascontiguousarray((found.coef @ K)[None])
    kkt, _, _, floor = judge.figures(h, found.coef[None], np.array([found.intercept]),
                                            np.ones(1))[0]  # fmt: skip
    exact = (K.astype(np.longdouble) @ found.coef.astype(np.longdouble)).astype(float)
    assert np.abs(h[0] - exact).max() <= kkt
    assert kkt > TOL and floor > TOL
    assert found.converged  # it does not try to do better than rounding allows
    assert found.iterations < 1_000_000
