"""The judge of the squared loss in m dimensions, against derivatives and solutions from scratch."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pytest

from exactcv.judge.squared_features import (
    Extent,
    Moments,
    ResidualSums,
    Slope,
    residual_sums,
    slope,
    without,
)
from exactcv.lowrank.small.ridge import Ridge, TrainingPart
from exactcv.types import FloatArray


def problem(n: int = 40, m: int = 6, seed: int = 0) -> tuple[FloatArray, FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) + 0.5
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n), rng.uniform(0.1, 3.0, n)


def objective(
    theta: FloatArray, X: FloatArray, y: FloatArray, weight: FloatArray, C: float
) -> float:
    miss = y - X @ theta[:-1] - theta[-1]
    return float(0.5 * theta[:-1] @ theta[:-1] + 0.5 * C * weight @ miss**2)


def best(
    X: FloatArray, y: FloatArray, weight: FloatArray, C: float, fit_intercept: bool
) -> FloatArray:
    """The solution by the plain normal equations."""
    A = np.column_stack([X, np.ones(len(y))])
    H = C * (A.T * weight) @ A + np.diag([1.0] * X.shape[1] + [0.0])
    right = C * A.T @ (weight * y)
    if not fit_intercept:
        return np.append(np.linalg.solve(H[:-1, :-1], right[:-1]), 0.0)
    return np.asarray(np.linalg.solve(H, right))


def extent(X: FloatArray, y: FloatArray, weight: FloatArray) -> Extent:
    found = Moments.of(X, y, weight)
    return Extent(found.widest, found.lightest, float(np.abs(y).max()))


def judged(
    theta: FloatArray, X: FloatArray, y: FloatArray, weight: FloatArray, C: float, free: bool
) -> Slope:
    training = Moments.of(X, y, weight).training(free)
    sums = residual_sums(X, y, weight[:, None], theta[None])
    return slope(sums, 0, theta, C, training, extent(X, y, weight), free)


def test_chunks_add_up() -> None:
    X, y, weight = problem()
    weight[3] = 0.0
    theta = np.random.default_rng(1).normal(size=(3, 7))
    parts = [slice(0, 7), slice(7, 8), slice(8, 40)]
    whole = Moments.of(X, y, weight)
    added = reduce(add, [Moments.of(X[k], y[k], weight[k]) for k in parts])
    np.testing.assert_allclose(added.products, whole.products, rtol=1e-12, atol=1e-12)
    assert (added.widest, added.lightest) == (whole.widest, whole.lightest)
    assert whole.lightest == weight[weight > 0].min()
    sums = residual_sums(X, y, weight[:, None], theta)
    some = [residual_sums(X[k], y[k], weight[k, None], theta) for k in parts]
    total: ResidualSums = reduce(add, some)
    for name in ("pull", "total", "taken", "added", "loss"):
        np.testing.assert_allclose(getattr(total, name), getattr(sums, name), rtol=1e-12)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("free", [True, False])
def test_the_gap_bounds_the_objective_and_the_violation_the_values(C: float, free: bool) -> None:
    X, y, weight = problem()
    rng = np.random.default_rng(2)
    least = best(X, y, weight, C, free)
    assert judged(least, X, y, weight, C, free).figures.kkt < 1e-9
    for size in (1e-6, 1e-2, 1.0):
        theta = least + size * rng.normal(size=7)
        theta[-1] = theta[-1] if free else 0.0
        found = judged(theta, X, y, weight, C, free).figures
        np.testing.assert_allclose(found.primal, objective(theta, X, y, weight, C), rtol=1e-12)
        assert found.gap >= 0.999 * (found.primal - objective(least, X, y, weight, C))
        apart = np.abs(X @ (theta - least)[:-1] + (theta - least)[-1]).max() / np.abs(y).max()
        assert found.kkt >= 0.999 * apart


def test_a_wrong_solution_is_found_out() -> None:
    X, y, weight = problem()
    theta = best(X, y, weight, 1.0, True)
    theta[2] += 1e-5
    assert judged(theta, X, y, weight, 1.0, True).figures.kkt > 1e-7
    theta = np.append(best(X, y, weight, 1.0, False)[:-1], 1e-3)
    assert judged(theta, X, y, weight, 1.0, False).figures.kkt > 1e-4


@pytest.mark.parametrize("free", [True, False])
def test_rows_left_out_are_those_of_the_plain_solution_and_their_figures_bound_it(
    free: bool,
) -> None:
    X, y, weight = problem()
    Cs = np.array([1e-3, 1.0, 1e4])
    training = Moments.of(X, y, weight).training(free)
    ridge = Ridge.of(training, free)
    theta, size = ridge.solve(Cs), extent(X, y, weight)
    slopes = [judged(one, X, y, weight, C, free) for one, C in zip(theta, Cs, strict=True)]
    each = ridge.without_each(X, y, weight, theta, Cs)
    kkt, gap = without(slopes, Cs, training.mass, size, each.gone, free)
    assert kkt.shape == gap.shape == (40, 3)
    assert kkt.max() < 1e-9
    block = np.array([1, 5, 8, 20])
    together, gone = ridge.without(X[block], y[block], weight[block], theta, Cs)
    figures = without(slopes, Cs, training.mass, size, gone, free)
    assert max(one.max() for one in figures) < 1e-9
    for l, C in enumerate(Cs):
        for i in range(0, 40, 7):
            k = np.arange(40) != i
            one = best(X[k], y[k], weight[k], C, free)
            np.testing.assert_allclose(each.values[i, l], X[i] @ one[:-1] + one[-1], atol=1e-9)
            left = float(objective(one, X[k], y[k], weight[k], C))
            saved = slopes[l].figures.primal - C * each.gone.saved[i, l]
            np.testing.assert_allclose(saved, left, rtol=1e-8)
        k = ~np.isin(np.arange(40), block)
        one = best(X[k], y[k], weight[k], C, free)
        np.testing.assert_allclose(together[l], one, atol=1e-8)
        assert judged(together[l], X[k], y[k], weight[k], C, free).figures.kkt < 1e-8


def test_eigenvectors_that_are_off_are_charged_for() -> None:
    """The figures without rows hold for what was used, not for what should have been."""
    X, y, weight = problem()
    C = np.array([10.0])
    training = Moments.of(X, y, weight).training(True)
    ridge = Ridge.of(training, True)
    values = ridge.values * (1.0 + 1e-4)
    broken: Any = ridge.__class__(
        training, True, values, ridge.vectors,
        ridge.inverse.__class__.of(training.scatter, values, ridge.vectors),
    )  # fmt: skip
    theta, size = ridge.solve(C), extent(X, y, weight)
    slopes = [judged(theta[0], X, y, weight, 10.0, True)]
    left = broken.without_each(X, y, weight, theta, C)
    kkt, _ = without(slopes, C, training.mass, size, left.gone, True)
    exact = ridge.without_each(X, y, weight, theta, C).values
    off = np.abs(left.values - exact)[:, 0] / np.abs(y).max()
    assert off.max() > 1e-7
    assert (kkt[:, 0] >= 0.999 * off).all()


def test_a_newton_step_makes_up_for_lost_digits() -> None:
    X, y, weight = problem()
    training = Moments.of(X, y, weight).training(True)
    for solver in (Ridge.of(training, True), TrainingPart(training, True)):
        theta = solver.solve(np.array([100.0]))[0]
        theta += 1e-6
        found = judged(theta, X, y, weight, 100.0, True)
        better = judged(solver.corrected(theta, 100.0, found), X, y, weight, 100.0, True)
        assert better.figures.kkt < 1e-6 * found.figures.kkt + 1e-12
