"""Kernel matrices of some rows, bordered by ones: solved with, and inverted."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from ..types import FloatArray

__all__ = ["Bordered", "scale_of"]

# Rows mirrored at a time.
STRIP = 256


def scale_of(K_MM: FloatArray) -> float:
    """The size of the entries; 1 where every row is the origin of a linear kernel."""
    return float(K_MM.diagonal().max(initial=0.0)) or 1.0


class Bordered:
    """[K_MM 1; 1' 0], or K_MM itself without an intercept, for K_MM positive definite.

    A constant is added to K_MM first, which only shifts the intercept: K_MM alone may be singular.

    Attributes
    ----------
    least : float
        The smallest pivot of the Cholesky factor, relative to the scale of K_MM; 0 if there is
        no factor, and then nothing else here works.
    ones : (k,)
        The solution with right sides 0 and 1 (the border's own column of the inverse).

    Examples
    --------
    >>> Bordered(np.array([[2.0, 0.0], [0.0, 4.0]]), intercept=False).inverse()
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    >>> Bordered(np.ones((2, 2)), intercept=True).least < 1e-15
    True
    """

    def __init__(self, K_MM: FloatArray, intercept: bool):
        scale = scale_of(K_MM)
        self.constant = scale if intercept else 0.0
        self.size, self.intercept = len(K_MM), intercept
        if self.size == 0:
            self.least = 1.0
            return
        factor, info = lapack.dpotrf((K_MM + self.constant).T, lower=1, clean=False, overwrite_a=1)
        self._factor = factor
        self.least = float((factor.diagonal() ** 2).min()) / scale if info == 0 else 0.0
        if intercept and info == 0:
            self._ones = self._solve(np.ones((1, self.size)))[0]
            self.ones = self._ones / self._ones.sum()

    def _solve(self, right: FloatArray) -> FloatArray:
        """Solutions with K_MM + constant, one for each row of ``right``."""
        found, _ = lapack.dpotrs(self._factor, right.T, lower=1)
        return np.asarray(found.T)

    def solve(self, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        """x and beta with K_MM x + beta = r and sum x = 1 for each row r of ``right``.

        Without an intercept K_MM x = r, and beta = 0.  What is left of r is of the size of rounding
        times x, which it is not when r is multiplied by an inverse.
        """
        if self.size == 0 or not len(right):
            return np.zeros((len(right), self.size)), np.zeros(len(right))
        x = self._solve(right + self.constant)
        beta = np.zeros(len(right))
        if self.intercept:
            beta = (x.sum(axis=1) - 1.0) / self._ones.sum()
            x -= beta[:, None] * self._ones
        return x, beta

    def inverse(self) -> FloatArray:
        """The inverse without the border's own row and column."""
        if self.size == 0:
            return np.zeros((0, 0))
        found, _ = lapack.dpotri(self._factor, lower=1)
        # Its lower triangle is there, column by column: the upper one of the transpose by rows.
        inverse = np.asarray(found.T)
        for start in range(0, self.size, STRIP):
            rows = slice(start, start + STRIP)
            square = inverse[rows, rows]
            square[:] = np.triu(square) + np.triu(square, 1).T
            inverse[start + STRIP :, rows] = inverse[rows, start + STRIP :].T
        if self.intercept:
            for start in range(0, self.size, STRIP):
                rows = slice(start, start + STRIP)
                inverse[rows] -= np.outer(self.ones[rows], self._ones)
        if self.intercept and self.size == 1:
            inverse[:] = 0.0  # exactly: one coefficient alone cannot move
        return inverse
