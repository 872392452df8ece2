"""The judge of solutions in m dimensions: chunks merge, and what is wrong is noticed."""

from __future__ import annotations

import numpy as np
import pytest

from exactcv.crossval.run import KernelRows, Plan, run
from exactcv.judge.features import Extent, figures, side_sums, tally
from exactcv.judge.piecewise_linear import PiecewiseLinearJudge
from exactcv.problem.folds import Folds
from exactcv.problem.grid import make_grid
from exactcv.problem.losses import hinge
from exactcv.runtime.threads import Workers

EPSILON = float(np.finfo(float).eps)


def solved(C: float, fit_intercept: bool = True) -> tuple[np.ndarray, ...]:
    """Rows, labels, coefficients and theta of an SVM on its own features."""
    rng = np.random.default_rng(3)
    y = np.tile([-1.0, 1.0], 30)
    Z = rng.normal(size=(60, 4)) + 0.4 * y[:, None]
    task = Plan(fit_intercept=fit_intercept).task(
        KernelRows(Z @ Z.T), y, np.ones(60), Folds(60, (), ()), make_grid([C], None, 60)
    )
    with Workers(1) as workers:
        ledger = run(task, "exact", workers).ledger
    coef = ledger.coef[0]
    return Z, y, coef, np.append(coef @ Z, ledger.intercept[0])


def extent_of(Z: np.ndarray) -> Extent:
    return Extent(float(np.linalg.norm(Z, axis=1).max()), 1.0)


def judged(Z, y, coef, theta, C, chunks=1, fit_intercept=True) -> np.ndarray:
    extent = extent_of(Z)
    rows = np.array_split(np.arange(len(y)), chunks)
    parts = [tally(Z[k], hinge(y[k]), np.full(len(k), C), coef[k], theta, extent) for k in rows]
    return np.array(figures(parts, theta, extent, fit_intercept))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
def test_a_solution_passes_in_chunks_of_any_size(C: float, fit_intercept: bool) -> None:
    Z, y, coef, theta = solved(C, fit_intercept)
    # Sums of n products of the size of the coefficients.
    limit = 1e3 * EPSILON * (1.0 + 60 * C * (Z**2).sum(axis=1).max())
    whole = judged(Z, y, coef, theta, C, 1, fit_intercept)
    assert whole[0] <= limit and whole[1] <= limit * whole[2]
    for chunks in (2, 7, 60):
        part = judged(Z, y, coef, theta, C, chunks, fit_intercept)
        assert np.abs(part - whole).max() <= limit * max(1.0, whole[2])


def test_rows_at_the_bound_of_their_side_add_sums_only() -> None:
    Z, y, coef, theta = solved(1.0)
    u = Z @ theta[:-1] + theta[-1]
    far, extent = np.abs(y * u - 1.0) > 0.1, extent_of(Z)
    near = tally(Z[~far], hinge(y[~far]), np.ones((~far).sum()), coef[~far], theta, extent)
    rest = side_sums(Z, hinge(y), u[:, None], np.ones((60, 1)), far[:, None]).tally(0, 1.0)
    split = np.array(figures([near, rest], theta, extent))
    assert split == pytest.approx(judged(Z, y, coef, theta, 1.0), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("part", ["weight", "intercept", "coefficient", "sign", "sum"])
def test_what_is_wrong_is_noticed(part: str) -> None:
    Z, y, coef, theta = solved(1.0)
    free = np.flatnonzero((np.abs(coef) > 1e-3) & (np.abs(coef) < 1.0 - 1e-3))
    coef, theta = coef.copy(), theta.copy()
    if part == "weight":
        theta[0] += 1e-4
    elif part == "intercept":
        theta[-1] += 1e-4
    elif part == "coefficient":
        coef[free[0]] += 1e-4
        coef[free[1]] -= 1e-4
    elif part == "sign":
        coef[np.flatnonzero(coef == 0)[0]] = 1e-4 * -y[np.flatnonzero(coef == 0)[0]]
    else:
        coef[free[0]] += 1e-4
    kkt, _, _, _ = judged(Z, y, coef, theta, 1.0)
    assert kkt > 1e-6


def test_the_gap_bounds_the_distance_from_the_solution() -> None:
    Z, y, coef, theta = solved(1.0)
    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-3, 1e-5):
        moved = theta + size * rng.normal(size=len(theta))
        _, gap, _, _ = judged(Z, y, coef, moved, 1.0)
        assert np.linalg.norm(moved[:-1] - theta[:-1]) <= np.sqrt(2.0 * gap) * (1.0 + 1e-9)


def test_what_is_not_finite_never_passes() -> None:
    Z, y, coef, theta = solved(1.0)
    coef = coef.copy()
    coef[0] = np.nan
    assert np.isinf(judged(Z, y, coef, theta, 1.0)[:2]).all()


def test_the_figures_are_those_of_the_judge_of_kernels() -> None:
    """The same rows as a kernel matrix: no figure of one judge is far below the other's."""
    Z, y, coef, theta = solved(1.0)
    rng = np.random.default_rng(1)
    coef = coef + 1e-5 * rng.normal(size=len(coef))
    theta = np.append(coef @ Z, theta[-1])
    kkt, gap, primal, floor = judged(Z, y, coef, theta, 1.0)
    other = PiecewiseLinearJudge.of(hinge(y), np.ones(60), True, (Z**2).sum(axis=1)).figures(
        (Z @ theta[:-1])[None], coef[None], theta[-1:], np.ones(1)
    )[0]
    assert kkt >= 0.5 * other[0]
    assert primal == pytest.approx(other[2], rel=1e-3)
    assert 0.3 * other[3] < floor < other[3]
    assert 0.1 * other[1] < gap < 10.0 * other[1]


def test_rounding_in_the_sum_of_the_rows_is_charged() -> None:
    """Coefficients of 1e10 that cancel: w is known to 1e-6 at best, whatever the sums say."""
    Z, y = np.array([[1.0], [1.0], [2.0], [0.0]]), np.array([1.0, -1.0, 1.0, -1.0])
    coef, theta = np.array([1e10, -1e10, 0.5, -0.5]), np.array([1.0, -1.0])
    kkt, _, _, floor = judged(Z, y, coef, theta, 1e10)
    assert kkt >= 4e10 * 0.5 * EPSILON and floor >= kkt
