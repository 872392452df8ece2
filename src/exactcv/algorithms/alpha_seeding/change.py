"""What a seed is given: one solution, and the training set it is to be carried over to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..._core._rows import RowCache
from ...engine.kernel_rows import RowSource
from ...types import FloatArray, IntArray

__all__ = ["Change"]


@dataclass
class Change:
    """The step from a solved training set X to the next one, X' = X less R plus T.

    All arrays but the three sets run over the n rows of the data.  In the paper's symbols
    coef_i = y_i alpha_i, errors_i = -f_i and intercept = -b.

    Attributes
    ----------
    source : RowSource
    kernel : RowCache
        Of the same kernel, for single values.
    coef : ndarray
        The signed solution on X, within the bounds of X'; zero elsewhere.
    errors : ndarray
        e = t - K coef, right on X.
    intercept : float
        The solution's.
    target : ndarray
        t, the knots of the loss (y for the hinge).
    lower, upper : ndarray
        Bounds of the coefficients on X'.
    train, removed, added : ndarray of int
        X', R and T.
    fit_intercept : bool
        Whether the coefficients must add up to zero.
    evaluations : int
        How many kernel values the seed has taken so far; all else stays as it is.
    """

    source: RowSource
    kernel: RowCache
    coef: FloatArray
    errors: FloatArray
    intercept: float
    target: FloatArray
    lower: FloatArray
    upper: FloatArray
    train: IntArray
    removed: IntArray
    added: IntArray
    fit_intercept: bool = True
    evaluations: int = 0

    @cached_property
    def leaving(self) -> IntArray:
        """The rows of R that matter: those with a coefficient."""
        return self.removed[self.coef[self.removed] != 0]

    @cached_property
    def entering(self) -> IntArray:
        """The rows of T that can have a coefficient."""
        return self.added[self.upper[self.added] > self.lower[self.added]]

    @cached_property
    def shared(self) -> IntArray:
        """S: the rows in both training sets."""
        both = np.zeros(len(self.coef), dtype=bool)
        both[self.train] = True
        both[self.added] = False
        return np.flatnonzero(both)

    def block(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """K[rows, columns], counted."""
        self.evaluations += len(rows) * len(columns)
        return self.source.block(rows, columns)

    def kept(self) -> FloatArray:
        """A copy of the solution with zeros on R (and on T, where it had none)."""
        seed = self.coef.copy()
        seed[self.removed] = 0.0
        return seed

    def inside(self, coef: FloatArray, rows: IntArray) -> IntArray:
        """Those of the rows whose coefficient is strictly between its bounds (the paper's I_m)."""
        c = coef[rows]
        return rows[(c > self.lower[rows]) & (c < self.upper[rows])]
