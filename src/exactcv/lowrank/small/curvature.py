"""Sums of outer products of rows that come and go: what Newton steps on the smoothed hinge take.

From one step to the next most of the rows inside stay, and a smaller tau only scales the sum.  So
the sum is kept, and rows that have come or gone are added or taken away, as long as they are fewer
than those it has; what that leaves of digits is watched by the trace.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dsyrk

from ...types import FloatArray, IntArray
from .hinges import Hinges

__all__ = ["Curvature"]

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
