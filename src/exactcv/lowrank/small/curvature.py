"""Outer and inner products of rows that come and go: what Newton steps on the smoothed hinge take.

From one step to the next most of the rows inside stay, and a smaller tau only scales the sum.  So
the sum is kept, and rows that have come or gone are added or taken away, as long as they are fewer
than those it has; what that leaves of digits is watched by the trace.  Inner products, where the
rows are fewer than the dimensions, are kept too.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dsyrk

from ...types import FloatArray, IntArray
from .hinges import Hinges

__all__ = ["Curvature", "Products"]

# Rows whose outer products are added up at a time.
BLOCK = 4096
# Of the largest trace that a sum has had, as much is left as loses no more than a digit.
LEFT = 0.1


class Curvature:
    """sum over some rows of B_i (z_i, 1)(z_i, 1)', the lower triangle.

    Examples
    --------
    >>> from exactcv.lowrank.small.hinges import hinges_of
    >>> from exactcv.problem.losses import hinge
    >>> Z, loss = np.array([[2.0], [-1.0]]), hinge(np.array([1.0, -1.0]))
    >>> curvature = Curvature(1)
    >>> problem = hinges_of(Z, loss, np.ones(2), (np.zeros(1), 0.0), True)
    >>> curvature.of(problem, np.array([0, 1]))
    array([[5., 0.],
           [1., 2.]])
    """

    def __init__(self, m: int):
        self._sum = np.zeros((m + 1, m + 1), order="F")
        self._rows: IntArray = np.zeros(0, dtype=np.intp)
        self._most = 0.0

    def of(self, problem: Hinges, rows: IntArray) -> FloatArray:
        """The sum of these rows (rising numbers), which the next one changes in place."""
        came = np.setdiff1d(rows, self._rows, assume_unique=True)
        gone = np.setdiff1d(self._rows, rows, assume_unique=True)
        if len(came) + len(gone) < len(rows):
            self._add(problem, came, 1.0)
            self._add(problem, gone, -1.0)
        if len(came) + len(gone) >= len(rows) or np.trace(self._sum) < LEFT * self._most:
            self._sum[:], self._most = 0.0, 0.0
            self._add(problem, rows, 1.0)
        self._rows = rows
        return self._sum

    def among(self, kept: IntArray) -> Curvature:
        """The same for a problem of these rows, all that are in the sum among them.

        It takes the sum over: this one has nothing left.
        """
        other = Curvature(0)
        other._sum, other._most = self._sum, self._most
        other._rows = np.searchsorted(kept, self._rows)
        return other

    def _add(self, problem: Hinges, rows: IntArray, sign: float) -> None:
        for start in range(0, len(rows), BLOCK):
            some = rows[start : start + BLOCK]
            scale = np.sqrt(problem.box[some])
            tall = np.empty((len(some), len(self._sum)))
            np.multiply(problem.features(some), scale[:, None], out=tall[:, :-1])
            tall[:, -1] = scale
            # The sum is Fortran's, so that it changes in place.
            self._sum = dsyrk(sign, tall.T, 1.0, self._sum, lower=1, overwrite_c=1)
        self._most = max(self._most, float(np.trace(self._sum)))


class Products:
    """Inner products z_i'z_j of rows; those that have gone are kept for a while.

    Examples
    --------
    >>> from exactcv.lowrank.small.hinges import hinges_of
    >>> from exactcv.problem.losses import hinge
    >>> Z, loss = np.array([[2.0], [-1.0]]), hinge(np.array([1.0, -1.0]))
    >>> products = Products(1)
    >>> problem = hinges_of(Z, loss, np.ones(2), (np.zeros(1), 0.0), True)
    >>> products.of(problem, np.array([0])), products.of(problem, np.array([0, 1]))
    (array([[4.]]), array([[ 4., -2.],
           [-2.,  1.]]))
    >>> products.along(np.ones(1)), products.pull(np.array([1.0, 3.0]))
    (array([ 2., -1.]), array([-1.]))
    """

    def __init__(self, m: int):
        self._rows: IntArray = np.zeros(0, dtype=np.intp)
        self._Z, self._K = np.zeros((0, m)), np.zeros((0, 0))
        self._place = self._rows

    def of(self, problem: Hinges, rows: IntArray) -> FloatArray:
        """The products of these rows (numbers), which `along` and `pull` are then about."""
        came = np.setdiff1d(rows, self._rows, assume_unique=True)
        k = len(self._rows)
        if 2 * len(came) > len(rows) or k + len(came) > 2 * len(rows):
            self._rows, self._Z = rows, problem.features(rows)
            self._K = self._Z @ self._Z.T
        elif len(came):
            self._rows = np.concatenate([self._rows, came])
            self._Z = np.concatenate([self._Z, problem.features(came)])
            grown = np.empty((len(self._rows), len(self._rows)))
            grown[:k, :k] = self._K
            grown[k:] = self._Z[k:] @ self._Z.T
            grown[:k, k:] = grown[k:, :k].T
            self._K = grown
        order = np.argsort(self._rows)
        self._place = order[np.searchsorted(self._rows, rows, sorter=order)]
        return np.asarray(self._K[np.ix_(self._place, self._place)])

    def along(self, g: FloatArray) -> FloatArray:
        """z_i'g of the rows."""
        return np.asarray((self._Z @ g)[self._place])

    def pull(self, coef: FloatArray) -> FloatArray:
        """sum c_i z_i."""
        whole = np.zeros(len(self._rows))
        whole[self._place] = coef
        return np.asarray(whole @ self._Z)
