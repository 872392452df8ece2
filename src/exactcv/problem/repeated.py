"""Rows that stand in the data more than once: made equal to the last bit in the kernel matrix.

A matrix product rounds differently from place to place, so that equal rows of X get kernel rows
that differ by a few units in the last place.  Solvers should not have to tell such rows apart.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..types import FloatArray, IntArray

__all__ = ["copy_repeated", "first_equal", "first_similar"]

# Kernel rows that differ by no more than this, relative to the diagonal, differ by rounding.
ROUNDING = 1e-13
# Products with a random vector that differ by more belong to rows that are not equal.
CANDIDATES = 1e-11
# Rows whose keys are computed at a time.
AT_A_TIME = 1024


def first_equal(X: FloatArray) -> IntArray:
    """For each row the first row that equals it, itself if there is none before.

    Examples
    --------
    >>> first_equal(np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0], [-0.0, 1.0]]))
    array([0, 1, 0, 1])
    """
    first = np.arange(len(X), dtype=np.intp)
    keys = _keys(X)
    _, group, count = np.unique(keys, return_inverse=True, return_counts=True)
    seen: dict[int, list[int]] = {}
    for i in np.flatnonzero(count[group] > 1):
        with_that_key = seen.setdefault(int(keys[i]), [])
        for k in with_that_key:
            if np.array_equal(X[k], X[i]):
                first[i] = k
                break
        else:
            with_that_key.append(int(i))
    return first


def _keys(X: FloatArray) -> NDArray[np.uint64]:
    """A number for each row, equal for equal rows: sums of their bits times random numbers."""
    weights = np.random.default_rng(0).integers(2**64, size=X.shape[1], dtype=np.uint64)
    keys = np.empty(len(X), dtype=np.uint64)
    for start in range(0, len(X), AT_A_TIME):
        rows = np.array(X[start : start + AT_A_TIME], dtype=float, order="C")
        bits = (rows + 0.0).view(np.uint64)  # there is one zero only
        # Small whole numbers differ in their first bits alone, which products would push out.
        bits ^= bits >> np.uint64(32)
        keys[start : start + AT_A_TIME] = (bits * weights).sum(axis=1)
    return keys


def first_similar(K: FloatArray, tol: float = 0.0) -> IntArray:
    """For each row of a symmetric matrix the first that is equal to it, or equal to within tol.

    Entry (i, k) is measured in units of sqrt(|K_ii K_kk|).  Rows that agree have the same product
    with a random vector, but for rounding: only those are compared.

    Examples
    --------
    >>> first_similar(np.array([[1.0, 0.5, 1.0], [0.5, 1.0, 0.5], [1.0, 0.5, 1.0]]))
    array([0, 1, 0])
    """
    first = np.arange(len(K), dtype=np.intp)
    size = np.sqrt(np.abs(np.diagonal(K)))
    size[size == 0.0] = 1.0
    product = (K @ (np.random.default_rng(0).uniform(0.5, 1.0, len(K)) / size)) / size
    order = np.argsort(product, kind="stable")
    near = (CANDIDATES + tol * len(K)) * max(1.0, float(np.abs(product).max(initial=0.0)))
    together = np.flatnonzero(np.diff(product[order]) <= near)
    kept: list[int] = []
    last = -2
    for r in together:
        if r != last + 1:  # a new run of rows whose products agree
            kept = [int(order[r])]
        i, last = int(order[r + 1]), int(r)
        for k in kept:
            if (np.abs(K[i] - K[k]) <= (tol * size[i]) * size).all():
                first[i] = k
                break
        else:
            kept.append(i)
    return _earliest(first)


def _earliest(first: IntArray) -> IntArray:
    """The same groups, each under the name of its first row."""
    earliest = np.full(len(first), len(first), dtype=np.intp)
    np.minimum.at(earliest, first, np.arange(len(first)))
    return earliest[first]


def copy_repeated(K: FloatArray, first: IntArray) -> None:
    """Give every row (and column) of K the values of the first that equals it, in place."""
    repeated = np.flatnonzero(first != np.arange(len(K)))
    for i in repeated:
        K[i] = K[first[i]]
    for start in range(0, len(K), 256) if len(repeated) else ():
        strip = K[start : start + 256]
        strip[:, repeated] = strip[:, first[repeated]]
