"""Row sources: what they serve, what they count, and what they refuse."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from exactcv.engine import kernel_rows as rows_module
from exactcv.engine.kernel_rows import CachedRows, MatrixRows, as_rows
from exactcv.exceptions import InputError, NotPSDWarning, UnsupportedError
from exactcv.problem.kernels import Kernel, kernel_matrix

KERNELS = [
    Kernel("rbf", gamma=0.3),
    Kernel("linear"),
    Kernel("poly", gamma=0.5, degree=3, coef0=1.0),
    Kernel("sigmoid", gamma=0.1, coef0=0.2),
    Kernel("laplacian", gamma=0.3),
]


def features(n: int = 30, p: int = 6, seed: int = 0) -> Any:
    X = np.random.default_rng(seed).normal(size=(n, p))
    X[np.abs(X) < 0.7] = 0.0
    return X


def matrix(X: Any, kernel: Kernel) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPSDWarning)  # a sigmoid kernel need not be
        return kernel_matrix(X, kernel)[0]


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_rows_blocks_and_diagonal_equal_the_matrix(kernel: Kernel, form: str) -> None:
    X = features()
    K = matrix(X, kernel)
    if form == "sparse" and kernel.name == "laplacian":
        with pytest.raises(UnsupportedError, match="dense"):
            CachedRows(sparse.csr_matrix(X), kernel)
        return
    source = CachedRows(sparse.csr_matrix(X) if form == "sparse" else X, kernel, "1MB")
    rows, others = np.arange(1, 30, 2), np.array([0, 4, 29])
    cache = source.open(rows)
    for i in (0, 7, 29, 7):
        assert cache.get(i) == pytest.approx(K[i, rows], rel=1e-12, abs=1e-14)
    assert source.block(rows, others) == pytest.approx(K[np.ix_(rows, others)], rel=1e-12)
    assert source.diagonal == pytest.approx(np.diagonal(K), rel=1e-12)
    assert source.n == 30


def test_each_row_is_computed_once_while_it_is_held() -> None:
    cache = CachedRows(features(), Kernel("rbf", gamma=1.0), 3 * 8 * 30).open(np.arange(30))
    assert cache.capacity == 3
    for i in (0, 1, 2, 1, 0):
        cache.get(i)
    assert cache.evaluations == 3 * 30
    cache.get(3)  # takes the place of 2, not used for longest
    assert cache.evaluations == 4 * 30
    cache.get(0), cache.get(1)
    assert cache.evaluations == 4 * 30
    cache.get(2)
    assert cache.evaluations == 5 * 30


@settings(max_examples=40)
@given(st.data())
def test_any_sequence_of_calls_serves_the_right_entries(data: st.DataObject) -> None:
    """Against the matrix, with room for two to six rows, narrowing and widening on the way."""
    X = features(12, 3)
    kernel = Kernel("rbf", gamma=0.5)
    K, columns = matrix(X, kernel), np.arange(12)
    room = data.draw(st.integers(2, 6))
    cache = CachedRows(X, kernel, room * 8 * 12).open(columns)
    for _ in range(data.draw(st.integers(1, 40))):
        what = data.draw(st.sampled_from(["row", "row", "row", "narrow", "widen"]))
        if what == "row":
            i = data.draw(st.integers(0, 11))
            assert cache.get(i) == pytest.approx(K[i, columns], rel=1e-12)
        elif what == "narrow" and len(columns) > 2:
            kept = data.draw(st.sets(st.integers(0, len(columns) - 1), min_size=2))
            positions = np.array(sorted(kept), dtype=np.intp)
            cache.keep(positions)
            columns = columns[positions]
        elif what == "widen":
            cache.restore()
            columns = np.arange(12)
        assert cache.width == len(columns)
        assert cache.rows_held <= cache.capacity <= room * 12 // cache.width


def test_a_narrow_cache_holds_more_rows_and_keeps_those_it_had() -> None:
    cache = CachedRows(features(), Kernel("linear"), 2 * 8 * 30).open(np.arange(30))
    cache.get(4), cache.get(9)
    cache.keep(np.arange(10, dtype=np.intp))
    before = cache.evaluations
    cache.get(4), cache.get(9)
    assert cache.evaluations == before and cache.capacity == 6


def test_matrix_rows_are_read_in_place_or_copied() -> None:
    K = matrix(features(), Kernel("rbf", gamma=0.2))
    source = MatrixRows(K)
    assert as_rows(K).block(np.array([1]), np.array([2]))[0, 0] == K[1, 2]
    assert as_rows(source) is source
    for rows in (np.arange(30), np.arange(0, 30, 3)):
        cache = source.open(rows)
        assert cache.get(5) == K[5, rows].tolist() == cache.get(5)
        assert cache.evaluations == len(rows)


def test_sums_of_rows() -> None:
    K = matrix(features(), Kernel("rbf", gamma=0.2))
    rows, coef = np.arange(3, 20), np.linspace(-1, 1, 17)
    cache = MatrixRows(K).open(rows)
    out, products = np.ones(17), np.empty(2)
    cache.subtract(np.array([1, 25]), np.array([2.0, -3.0]), out)
    assert out == pytest.approx(1 - 2 * K[1, rows] + 3 * K[25, rows])
    cache.products(np.array([0, 29]), coef, products)
    assert products == pytest.approx(K[np.ix_([0, 29], rows)] @ coef)


def test_what_cannot_be_served_is_refused() -> None:
    X = features()
    with pytest.raises(InputError, match=r"cannot hold two kernel rows of 30 columns.*480 bytes"):
        CachedRows(X, Kernel("rbf", gamma=1.0), 479).open(np.arange(30))
    CachedRows(X, Kernel("rbf", gamma=1.0), 480).open(np.arange(30))
    with pytest.raises(InputError, match="gamma as a number"):
        CachedRows(X, Kernel("rbf", gamma="median"))
    for name in ("precomputed", np.dot):
        with pytest.raises(UnsupportedError, match="row by row"):
            CachedRows(X, Kernel(name))


def test_blocks_of_wide_sparse_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """With many features a block is made from sparse products."""
    monkeypatch.setattr(rows_module, "DENSE_COLUMNS", 0)
    X, some = features(), np.arange(0, 30, 4)
    for kernel in KERNELS[:4]:
        source = CachedRows(sparse.csr_matrix(X), kernel)
        assert source.block(some, some + 1) == pytest.approx(
            matrix(X, kernel)[np.ix_(some, some + 1)], rel=1e-12
        )
