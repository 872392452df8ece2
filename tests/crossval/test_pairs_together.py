"""Pairs of classes share what they can: order of rows, parts of K, distances, entries of folds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.model_selection import StratifiedKFold

from exactcv._core._gather import gather
from exactcv.crossval.classes import ManyClasses, PairFit
from exactcv.crossval.one_vs_one import by_class, cross_validate_pairs
from exactcv.crossval.run import KernelRows
from exactcv.estimators.drop_in.solve import left_out_values, trained_values
from exactcv.problem.folds import Folds, leave_one_out_folds, make_folds
from exactcv.problem.grid import make_grid
from exactcv.problem.kernels import Distances, Kernel, kernel_matrix
from exactcv.runtime.threads import Workers

CS = np.array([0.3, 10.0])


def some_rows(name: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    X, y = {"iris": load_iris, "wine": load_wine, "digits": load_digits}[name](return_X_y=True)
    keep = np.random.default_rng(1).permutation(len(y))[:n]
    spread = X.std(axis=0)
    return X[keep] / np.where(spread > 0, spread, 1.0), np.unique(y[keep], return_inverse=True)[1]


def folds_of(X: np.ndarray, codes: np.ndarray, k: int = 4) -> Folds:
    return make_folds(StratifiedKFold(k, shuffle=True, random_state=0), X, codes)


def test_gather_is_numpys_own() -> None:
    rng = np.random.default_rng(0)
    K = rng.standard_normal((9, 7))
    rows, columns = rng.integers(0, 9, 5), rng.integers(0, 7, 11)
    assert np.array_equal(gather(K, rows, columns), K[np.ix_(rows, columns)])
    assert gather(K, rows[:0], columns).shape == (0, 11)


def test_distances_give_the_kernel_matrix_with_equal_rows_equal() -> None:
    X = some_rows("wine", 40)[0]
    X[7] = X[3]
    distances = Distances(X)
    for gamma in (0.01, 0.3):
        K = distances.rbf(gamma)
        assert np.array_equal(K, kernel_matrix(X, Kernel("rbf", gamma))[0])
        assert np.array_equal(K[7], K[3])


@pytest.mark.parametrize("loo", [False, True])
def test_folds_move_with_their_rows(loo: bool) -> None:
    X, codes = some_rows("iris", 30)
    folds = leave_one_out_folds(30) if loo else folds_of(X, codes)
    order, place = by_class(codes) or (None, None)
    assert order is not None
    assert place is not None
    moved = folds.moved(place)
    assert np.array_equal(order[moved.pair_rows], folds.pair_rows)  # the tests stay in order
    for there, here in zip(moved.left_out, folds.left_out, strict=True):
        assert np.array_equal(np.sort(order[there]), np.sort(here))
    assert moved.leave_one_out == loo


@pytest.mark.parametrize("cv", ["loo", "k-fold"])
def test_rows_by_class_give_the_same_pairs(cv: str) -> None:
    X, codes = some_rows("wine", 60)
    folds = leave_one_out_folds(60) if cv == "loo" else folds_of(X, codes)
    grid = make_grid(None, list(CS), 60)
    order = by_class(codes)
    assert order is not None
    kernel = Kernel("rbf", 0.05)
    with Workers(1) as workers:
        here = ManyClasses(KernelRows(kernel_matrix(X, kernel)[0]), codes, np.ones(60), folds, grid)
        there = ManyClasses(
            KernelRows(kernel_matrix(X[order[0]], kernel)[0]), codes, np.ones(60), folds, grid
        ).moved(*order)
        one, other = (cross_validate_pairs(task, workers) for task in (here, there))
    assert one.certificate.exact
    assert other.certificate.exact
    assert np.array_equal(one.votes, other.votes)
    assert one.decision is not None
    assert other.decision is not None
    assert np.abs(one.decision - other.decision).max() < 1e-6
    for a, b in zip(one.fits, (fit.of_rows(order[0]) for fit in other.fits), strict=True):
        assert isinstance(b, PairFit)
        assert np.array_equal(a.rows, b.rows)
        assert np.abs(a.coef - b.coef).max() < 1e-6 * CS.max()


@pytest.mark.parametrize(("name", "n"), [("iris", 90), ("wine", 80), ("digits", 200)])
@pytest.mark.parametrize("two_classes", [False, True])
def test_folds_with_gammas_of_their_own(name: str, n: int, two_classes: bool) -> None:
    """Guided by the full data's solution with yet another gamma; each as if solved alone."""
    X, codes = some_rows(name, n)
    if two_classes:
        codes = (codes > 0).astype(np.intp)
    X[5], codes[5] = X[2], codes[2]
    order = by_class(codes)
    if order is not None:
        X, codes = X[order[0]], codes[order[0]]
    folds, squares = folds_of(X, codes), Distances(X).squares
    gammas = np.array([0.8, 1.0, 1.3, 0.5, 0.9]) / X.shape[1]
    with Workers(1) as workers:
        found = left_out_values(
            squares, codes, np.ones(n), folds, CS, False, workers, gammas=gammas
        )
        assert found.values is not None
        assert found.misses == 0
        for f, test in enumerate(folds.test):
            weight = np.ones(n)
            weight[folds.left_out[f]] = 0.0
            K = Distances(X).rbf(gammas[f])
            alone = trained_values(K, codes, weight, CS, test, workers)
            assert alone.values is not None
            mine = slice(folds.offsets[f], folds.offsets[f + 1])
            assert np.abs(found.values[:, mine] - alone.values).max() < 1e-6
            assert np.array_equal(found.labels[:, mine], alone.labels)
