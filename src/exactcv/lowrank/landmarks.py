"""Which points are the landmarks of Nystroem features.

*Random*: rows of the data.  *k-means*: the centres of m clusters of some rows (Zhang, Tsang & Kwok,
"Improved Nystroem low-rank approximation and error analysis", ICML 2008).  What the features leave
of a row, k(x, x) - ||z(x)||^2, grows with its distance from the nearest landmarks, and centres are
as near to all rows as m points can be.  A few rounds from random rows are enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..types import FloatArray, IntArray

__all__ = ["LANDMARKS", "landmarks_among", "most_rows"]

LANDMARKS = ("random", "kmeans")
# Rows that clusters are made of, for each landmark, and at least.
PER_LANDMARK, LEAST_ROWS = 20, 4000
ROUNDS = 5
# Numbers in a table of distances.
TABLE = 4_000_000


def landmarks_among(X: Any, m: int, how: str) -> Any:
    """m landmarks from rows that come in an order drawn by lot.

    Examples
    --------
    >>> X = np.array([[0.0], [9.0], [0.2], [9.2]])
    >>> landmarks_among(X, 2, "random").ravel(), landmarks_among(X, 2, "kmeans").ravel()
    (array([0., 9.]), array([0.1, 9.1]))
    """
    X = X[: most_rows(m, how)]
    return X if how == "random" else centres(X, m)


def most_rows(m: int, how: str) -> int:
    """How many rows m landmarks are found among, at most."""
    return m if how == "random" else max(PER_LANDMARK * m, LEAST_ROWS)


def centres(X: Any, m: int) -> FloatArray:
    """Of m clusters of the rows, by Lloyd's algorithm from the first m of them."""
    found = _dense(X[:m])
    for _ in range(ROUNDS):
        nearest, distance = _nearest(X, found)
        counts = np.bincount(nearest, minlength=m)
        rows = np.arange(X.shape[0])
        member = sparse.csr_array((np.ones(len(rows)), (nearest, rows)), (m, len(rows)))
        full, empty = np.flatnonzero(counts), np.flatnonzero(counts == 0)
        found[full] = _dense(member @ X)[full] / counts[full, None]
        # A cluster without rows begins anew, where there is most to gain.
        if len(empty):
            found[empty] = _dense(X[np.argsort(-distance, kind="stable")[: len(empty)]])
    return found


def _nearest(X: Any, found: FloatArray) -> tuple[IntArray, FloatArray]:
    """The nearest centre of each row, and how far it is (squared)."""
    squares = np.einsum("ij,ij->i", found, found)
    step = max(1, TABLE // len(found))
    nearest, distance = np.empty(X.shape[0], dtype=np.intp), np.empty(X.shape[0])
    for start in range(0, X.shape[0], step):
        part = X[start : start + step]
        table = squares - 2.0 * np.asarray(part @ found.T)
        best = table.argmin(axis=1)
        own = part.multiply(part).sum(axis=1) if sparse.issparse(part) else (part**2).sum(axis=1)
        nearest[start : start + step] = best
        distance[start : start + step] = np.asarray(own).ravel() + table[np.arange(len(best)), best]
    return nearest, distance


def _dense(X: Any) -> FloatArray:
    return np.array(X.toarray() if sparse.issparse(X) else X, dtype=float)
