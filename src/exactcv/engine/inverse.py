"""Kernel matrices of some rows, bordered by ones: solved with, and inverted."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.linalg import blas, lapack

from .._core._gather import mirror
from ..types import FloatArray

__all__ = ["Bordered", "scale_of"]

# Rows of an inverse that are changed at a time.
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
    >>> Bordered(np.array([[2.0, 0.0], [0.0, 4.0]]), intercept=False).inverse + 0.0
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
        return x, self._balance(x)

    def tail(self, right: FloatArray) -> FloatArray:
        """Only the betas of `solve`."""
        if self.size == 0 or not self.intercept:
            return np.zeros(len(right))
        return np.asarray(right @ self.ones + (self.constant - 1.0 / self._ones.sum()))

    def eliminate(self, right: FloatArray, rest: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The rows  [-x, rest - beta - x right'],  x and beta as in `solve`; and the betas.

        ``rest`` is the kernel matrix of the rows whose border ``right`` is, and is overwritten.
        With the factor L and w = L^-1 (r + constant) the square on the right is

            rest + constant - w w' + S beta beta',      S the sum of (K_MM + constant)^-1 1,

        which is symmetric, and takes half the operations of the product with x.
        """
        count, k = right.shape
        if count == 0 or k == 0:
            return np.hstack([np.zeros((count, k)), rest]), np.zeros(count)
        right = right + self.constant
        halfway = blas.dtrsm(1.0, self._factor, right.T, lower=1, overwrite_b=1)
        # By rows its upper triangle is the lower one by columns, which is how BLAS sees it.
        swept = blas.dsyrk(-1.0, halfway, 1.0, rest.T, trans=1, lower=1, overwrite_c=1)
        x = blas.dtrsm(1.0, self._factor, halfway, lower=1, trans_a=1, overwrite_b=1).T
        beta = self._balance(x)
        if self.intercept:
            shift = np.sqrt([self.constant, self._ones.sum()])[:, None] * [np.ones(count), beta]
            swept = blas.dsyrk(1.0, shift, 1.0, swept, trans=1, lower=1, overwrite_c=1)
        rows = np.empty((count, k + count))
        np.negative(x, out=rows[:, :k])
        mirror(swept.T, rows[:, k:])
        return rows, beta

    def _balance(self, x: FloatArray) -> FloatArray:
        """Make solutions without the border those with it, in place; returns beta."""
        beta = np.zeros(len(x))
        if self.intercept:
            beta = (x.sum(axis=1) - 1.0) / self._ones.sum()
            x -= beta[:, None] * self._ones
        return beta

    @cached_property
    def inverse(self) -> FloatArray:
        """The inverse without the border's own row and column."""
        if self.size == 0:
            return np.zeros((0, 0))
        found, _ = lapack.dpotri(self._factor, lower=1)
        # Its lower triangle is there, column by column: the upper one of the transpose by rows.
        inverse = np.asarray(found.T)
        mirror(inverse, inverse)
        if self.intercept:
            for start in range(0, self.size, STRIP):
                rows = slice(start, start + STRIP)
                inverse[rows] -= np.outer(self.ones[rows], self._ones)
        if self.intercept and self.size == 1:
            inverse[:] = 0.0  # exactly: one coefficient alone cannot move
        return inverse
