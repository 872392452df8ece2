"""Kernels of folds with their own gamma, and the small compiled loops around them."""

from __future__ import annotations

import numpy as np
import pytest

from exactcv._core._active_set import census
from exactcv._core._factor import Factor
from exactcv._core._gather import gather_rbf
from exactcv.engine.fold_kernels import RbfOfFolds
from exactcv.engine.path import at_knot


def squares(n: int, seed: int) -> np.ndarray:
    X = np.random.default_rng(seed).normal(size=(n, 4))
    return np.asarray(((X[:, None] - X) ** 2).sum(axis=-1))


@pytest.mark.parametrize("gamma", [1e-12, 0.1, 3.0, 40.0])
def test_gather_rbf_is_numpys(gamma: float) -> None:
    D, rng = squares(37, 0), np.random.default_rng(1)
    rows, columns = rng.permutation(37)[:13], rng.permutation(37)[:29]
    expected = np.exp(-gamma * D[np.ix_(rows, columns)])
    # Below the least normal number there are no digits to compare.
    np.testing.assert_allclose(
        gather_rbf(D, rows, columns, gamma), expected, rtol=1e-15, atol=1e-300
    )


def test_gather_rbf_at_the_ends() -> None:
    D = np.array([[0.0, 1e-320, 700.0, 750.0, 1e300]])
    first, every = np.zeros(1, dtype=np.intp), np.arange(5, dtype=np.intp)
    found = gather_rbf(D, first, every, 1.0)[0]
    assert found[0] == found[1] == 1.0
    assert found[2] == pytest.approx(np.exp(-700.0), rel=1e-15)
    assert found[3] == found[4] == 0.0
    assert gather_rbf(D, first, every[:0], 1.0).shape == (1, 0)


def test_matrices_of_folds_are_kept_until_dropped() -> None:
    D, rows = squares(20, 2), np.array([3, 5, 11])
    kernels = RbfOfFolds(D, rows, np.array([0.5, 2.0]))
    K = kernels.of(1)
    assert kernels.of(1) is K
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_allclose(K, np.exp(-2.0 * D[np.ix_(rows, rows)]), rtol=1e-15)
    kernels.drop([1])
    assert kernels.of(1) is not K


def test_census_counts_rows_at_a_knot_and_at_a_bound() -> None:
    rng = np.random.default_rng(3)
    state = rng.integers(-1, 5, size=200).astype(np.int8)
    coef = rng.normal(size=200) * (rng.random(200) < 0.7)
    free = (state > 0) & (state % 2 == 1)
    assert (at_knot(state) == free).all()
    assert census(state, coef) == (free.sum(), ((coef != 0) & ~free).sum())


def test_a_factor_counts_the_changes_since_it_was_made() -> None:
    K, state = np.exp(-squares(150, 4)), np.zeros(150, dtype=np.int8)
    factor = Factor(K, True)
    state[:120] = 1
    assert factor.census(state) == (120, -1)  # nothing is factorised yet
    factor.solve_with(np.arange(120), np.ones(120))
    assert factor.census(state) == (120, 0)
    state[:2], state[130:133] = 2, 1  # two leave and three come
    assert factor.census(state) == (121, 5)
    state[:100] = 0
    assert factor.census(state) == (23, -1)  # too many
