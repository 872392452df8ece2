"""Support vectors and coefficients in the layout of scikit-learn's ``SVC``.

Support vectors are sorted by class.  With two classes ``dual_coef_`` has one row, positive for the
second class.  With k classes it has k - 1 rows, and the signs are LIBSVM's: positive for the first
class of a pair.  A support vector of class i has its coefficient against class j in row j if j < i,
else in row j - 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..crossval.classes import PairFit
from ..types import FloatArray, IntArray

__all__ = ["Layout", "layout", "pair_coefficients", "pair_decisions"]


@dataclass(frozen=True)
class Layout:
    """``support`` counts rows as the pairs do; ``n_support`` is the number for each class."""

    support: IntArray
    n_support: NDArray[np.int32]
    dual_coef: FloatArray
    intercept: FloatArray


def layout(fits: tuple[PairFit, ...], l: int, codes: IntArray) -> Layout:
    """The full-data models of all pairs at grid point l."""
    n_classes, n = int(codes.max()) + 1, len(codes)
    used = np.zeros(n, dtype=bool)
    dual = np.zeros((n_classes - 1, n))
    for fit in fits:
        coef, of_first = fit.coef[l], codes[fit.rows] == fit.first
        used[fit.rows] |= coef != 0.0
        for row, mine in ((fit.second - 1, of_first), (fit.first, ~of_first)):
            dual[row, fit.rows[mine]] = coef[mine]
    of_class = [np.flatnonzero(used & (codes == k)) for k in range(n_classes)]
    support, n_support = np.concatenate(of_class), np.array([len(rows) for rows in of_class])
    intercept = np.array([fit.intercept[l] for fit in fits])
    sign = 1.0 if n_classes == 2 else -1.0
    return Layout(support, n_support.astype(np.int32), sign * dual[:, support], sign * intercept)


def pair_coefficients(
    dual_coef: FloatArray, n_support: NDArray[np.integer[Any]], support: IntArray, n: int
) -> list[FloatArray]:
    """The coefficients of each pair, one for each of n rows, positive for its second class.

    Examples
    --------
    >>> pair_coefficients(np.array([[-1.0, 1.0]]), np.array([1, 1]), np.array([2, 0]), 3)
    [array([ 1.,  0., -1.])]
    """
    n_classes = len(n_support)
    sign = 1.0 if n_classes == 2 else -1.0
    ends = np.concatenate([[0], np.cumsum(n_support)])
    found = []
    for a, b in combinations(range(n_classes), 2):
        coef = np.zeros(n)
        first, second = slice(ends[a], ends[a + 1]), slice(ends[b], ends[b + 1])
        coef[support[first]] = sign * dual_coef[b - 1, first]
        coef[support[second]] = sign * dual_coef[a, second]
        found.append(coef)
    return found


def pair_decisions(
    K: FloatArray, dual_coef: FloatArray, n_support: NDArray[np.integer[Any]], intercept: FloatArray
) -> FloatArray:
    """Decision values of all pairs, (m, P), positive for the second class; K is (m, n_SV).

    Examples
    --------
    >>> pair_decisions(np.eye(2), np.array([[-1.0, 1.0]]), np.array([1, 1]), np.array([0.5]))
    array([[-0.5],
           [ 1.5]])
    """
    n_classes = len(n_support)
    if n_classes == 2:
        return np.asarray(K @ dual_coef.T + intercept)
    ends = np.concatenate([[0], np.cumsum(n_support)])
    columns = []
    for a, b in combinations(range(n_classes), 2):
        first, second = slice(ends[a], ends[a + 1]), slice(ends[b], ends[b + 1])
        columns.append(K[:, first] @ dual_coef[b - 1, first] + K[:, second] @ dual_coef[a, second])
    return -(np.column_stack(columns) + intercept)
