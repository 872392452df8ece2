"""Kernels of folds with their own gamma, and the small compiled loops around them."""

from __future__ import annotations

import numpy as np
import pytest

from exactcv._core._active_set import ActiveSet, Status, census
from exactcv._core._factor import Factor
from exactcv._core._gather import RbfRows, combine, combine_parts, rbf
from exactcv.engine.fold_kernels import RbfOfFolds, rbf_matrix
from exactcv.engine.path import at_knot
from exactcv.problem.losses import hinge
from exactcv.problem.problem import Problem


def squares(n: int, seed: int) -> np.ndarray:
    X = np.random.default_rng(seed).normal(size=(n, 4))
    return np.asarray(((X[:, None] - X) ** 2).sum(axis=-1))


@pytest.mark.parametrize("gamma", [1e-12, 0.1, 3.0, 40.0])
def test_rbf_is_numpys(gamma: float) -> None:
    D = squares(37, 0)
    expected, found = np.exp(-gamma * D[:, 3:29]), np.empty((37, 26))
    rbf(D[:, 3:29], gamma, found)
    # Below the least normal number there are no digits to compare.
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-300)
    rbf(D, gamma, D)
    np.testing.assert_array_equal(D[:, 3:29], found)


def test_rbf_at_the_ends() -> None:
    D = np.array([[0.0, 1e-320, 700.0, 750.0, 1e300]])
    rbf(D, 1.0, D)
    found = D[0]
    assert found[0] == found[1] == 1.0
    assert found[2] == pytest.approx(np.exp(-700.0), rel=1e-15)
    assert found[3] == found[4] == 0.0
    rbf(D[:, :0], 1.0, D[:, :0])


@pytest.mark.parametrize("gamma", [None, 0.3])
@pytest.mark.parametrize("neighbours", [False, True])
def test_combine_is_a_product(gamma: float | None, neighbours: bool) -> None:
    D, rng = squares(60, 4), np.random.default_rng(5)
    rows, columns = rng.permutation(60)[:13], np.sort(rng.permutation(60)[:40])
    if neighbours:
        columns = np.r_[4:24, 30:50]
    coef = rng.normal(size=(4, 40)) * (rng.random(40) < 0.6)
    coef[2], constant = coef[1], rng.normal(size=4)
    K = D if gamma is None else np.exp(-gamma * D)
    expected = coef @ K[np.ix_(columns, rows)] + constant[:, None]
    found = combine(D, rows, columns, coef, constant, -1.0 if gamma is None else gamma)
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-12)
    nothing = combine(D, rows[:0], columns, np.zeros((2, 40)), constant[:2])
    assert nothing.shape == (2, 0)
    still = combine(D, rows, columns, np.zeros((2, 40)), constant[:2])
    np.testing.assert_array_equal(still, np.broadcast_to(constant[:2, None], (2, 13)))


def test_kernels_of_folds_are_computed_as_they_are_needed() -> None:
    D, rows = squares(20, 2), np.array([3, 5, 11, 12])
    kernels = RbfOfFolds(D, rows, D[np.ix_(rows, rows)], np.array([0.5, 2.0]))
    y = np.array([1.0, -1.0, 1.0, -1.0])
    problem = kernels.problem(Problem(np.eye(4), y, np.ones(4), hinge(y)))
    for fold, gamma in ((1, 2.0), (0, 0.5)):
        kernels.turn(problem, fold)
        K = np.exp(-gamma * D[np.ix_(rows, rows)])
        coef = np.array([0.0, 1.0, 0.0, -0.5])
        np.testing.assert_allclose(problem.kernel_rows.times(coef), K @ coef, rtol=1e-14)
        np.testing.assert_allclose(kernels.times(fold, coef[None])[0], K @ coef, rtol=1e-14)
        other = problem.weighted(np.array([1.0, 0.0, 1.0, 1.0]))
        np.testing.assert_allclose(other.K, K, rtol=1e-15)
        np.testing.assert_allclose(other.K_single[0], K, rtol=1e-6)
        np.testing.assert_array_equal(rbf_matrix(D, gamma)[np.ix_(rows, rows)], problem.K)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_block_steps_need_only_rows_with_a_coefficient(fit_intercept: bool) -> None:
    D, y = squares(80, 6), np.where(np.arange(80) % 2, 1.0, -1.0)
    loss, source = hinge(y), RbfRows(D)
    source.start_over(0.3)
    K, levels = np.exp(-0.3 * D), loss.coefficient_levels(np.ones(80))
    found = []
    for kernel in (source, np.ascontiguousarray(K)):
        source.K[:] = np.nan
        solver = ActiveSet(kernel, loss.knots, levels, fit_intercept)
        state, coef = np.where(y > 0, 0, 2).astype(np.int8), 2.0 * y
        b, status, _ = solver.solve(2.0, state, coef, h := K @ coef, 0.0, True)
        assert status == Status.CONVERGED
        found.append((state, coef, h, b))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    for one, other in zip(found[0][1:], found[1][1:], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_census_counts_rows_at_a_knot_and_at_a_bound() -> None:
    rng = np.random.default_rng(3)
    state = rng.integers(-1, 5, size=200).astype(np.int8)
    coef = rng.normal(size=200) * (rng.random(200) < 0.7)
    free = (state > 0) & (state % 2 == 1)
    assert (at_knot(state) == free).all()
    assert census(state, coef) == (free.sum(), ((coef != 0) & ~free).sum())


def test_a_factor_counts_the_multiplications_of_the_changes_since_it_was_made() -> None:
    K, state = np.exp(-squares(150, 4)), np.zeros(150, dtype=np.int8)
    factor = Factor(K, True)
    state[:120] = 1
    assert factor.census(state) == (120, pytest.approx(120**3 / 6))  # nothing is factorised yet
    factor.solve_with(np.arange(120), np.ones(120))
    assert factor.census(state) == (120, 0.0)
    state[0], state[130] = 2, 1  # one leaves and one comes
    size, two = factor.census(state)
    state[1], state[131:133] = 2, 1  # two have left and three come
    assert size == 120 and factor.census(state) == (
        121,
        pytest.approx(2.5 * two * (121 / 120) ** 2),
    )
    state[:100] = 0
    assert factor.census(state) == (23, pytest.approx(23**3 / 6))  # too many


@pytest.mark.parametrize("own", [False, True])
def test_parts_are_combined_one_by_one(own: bool) -> None:
    rng, D = np.random.default_rng(7), squares(40, 7)
    rows, offsets = rng.integers(0, 40, 25), np.array([0, 10, 10, 25])
    columns, constant = np.arange(5, 35), rng.normal(size=3)
    coef = rng.normal(size=(3, 30)) * (rng.uniform(size=(3, 30)) < 0.4)
    gammas = np.array([0.1, 0.2, 0.3]) if own else None
    found = combine_parts(D, rows, offsets, columns, coef, constant, gammas)
    for k in range(3):
        part = slice(offsets[k], offsets[k + 1])
        gamma = -1.0 if gammas is None else gammas[k]
        one = combine(D, rows[part], columns, coef[k : k + 1], constant[k : k + 1], gamma)
        np.testing.assert_array_equal(found[part], one[0])
    assert len(combine_parts(D, rows[:0], np.zeros(4, np.intp), columns, coef, constant)) == 0
