"""Many problems over one kernel matrix: what differs between folds is a column.

Column f stands for

    min over g, b   1/2 ||g||^2 + sum_i C_if L(y_i (o_if + g(x_i) + b)) - s_f b

with C_if = C_f w_i, and C_if = 0 for the rows that fold f leaves out.  This is the leave-one-out
lemma (magic LOO, Lemmas 1 and 2): a row whose label is set to 0 adds a constant to the objective,
so that all folds share the rows, the kernel matrix and its inverse.

The offset o and the slope s come from rows whose coefficients c_i = y_i C_i are known beforehand
(consolidated CV, (7) and (8)).  For those let f_L = sum_L c_i K(., x_i); then with f = f_L + g

    1/2 ||f||^2 - sum_L c_i (f(x_i) + b) = 1/2 ||g||^2 - 1/2 ||f_L||^2 - b sum_L c_i,

so o = f_L(x) and s = sum_L c_i, and neither the known rows nor those known to have c_i = 0 remain.
The optimal g is sum_i c_i K(., x_i) over the rows that do, with sum_i c_i = -s.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from ...types import FloatArray, IntArray

__all__ = ["Batch", "SharedInverse", "best_intercepts"]

Mask = NDArray[np.bool_]

# Negative eigenvalues up to this share of the largest are rounding.
LIFTED = 1e-8


@dataclass(frozen=True)
class Batch:
    """Problems as columns: n rows, m columns.

    Attributes
    ----------
    K : (n, n)
    y, weight : (n,), weights positive
    C : (m,)
        Of each column.
    out : (n, m)
        Rows that take no part.
    offset : (n, m)
    slope : (m,)
    fit_intercept : bool
    """

    K: FloatArray
    y: FloatArray
    weight: FloatArray
    C: FloatArray
    out: Mask
    offset: FloatArray
    slope: FloatArray
    fit_intercept: bool

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def size(self) -> int:
        return len(self.C)

    def boxes(self) -> FloatArray:
        """C_if, zero for rows that take no part."""
        return np.where(self.out, 0.0, self.weight[:, None] * self.C)

    def take(self, columns: IntArray | slice) -> Batch:
        return replace(
            self,
            C=self.C[columns],
            out=self.out[:, columns],
            offset=self.offset[:, columns],
            slope=self.slope[columns],
        )


def best_intercepts(batch: Batch, h: FloatArray) -> FloatArray:
    """For each column a b that minimises the sum of hinge losses, f = h (without intercept) given.

    The slope of the sum in b is  sum_{t_i < b} C_i - sum_{y_i > 0} C_i - s,  t_i = y_i - h_i:
    b is a weighted quantile of the t_i.
    """
    if not batch.fit_intercept:
        return np.zeros(batch.size)
    box = batch.boxes()
    knots = batch.y[:, None] - h
    order = np.argsort(knots, axis=0, kind="stable")
    mass = np.cumsum(np.take_along_axis(box, order, axis=0), axis=0)
    wanted = box[batch.y > 0].sum(axis=0) + batch.slope
    # A little less than wanted: rounding must not push the quantile to the next row.
    place = (mass < wanted - 1e-12 * mass[-1]).sum(axis=0).clip(max=batch.n - 1)
    columns = np.arange(batch.size)
    return np.asarray(knots[order[place, columns], columns])


@dataclass(frozen=True)
class SharedInverse:
    """One proximal step for every column, from one factorisation.

    The step minimises  1/2 ||g||^2 - s b + 1/(2 rho) sum_i w_i (o_i + g(x_i) + b - v_i)^2.  Its
    solution is  c = A (v - o - b),  A = (K + rho W^{-1})^{-1},  with b such that sum c = -s, and
    the new decision values are  v - rho W^{-1} c.  Unlike the papers' 2 lambda K + K K / (n kappa),
    the matrix K + rho W^{-1} is positive definite for singular K too.
    """

    pull: FloatArray  # rho W^{-1} (A - a a' / (1' a)), a = A 1
    drift: FloatArray  # rho W^{-1} a / (1' a)
    rho: float
    apt: bool = True  # False where negative eigenvalues, more than rounding, had to be lifted

    @classmethod
    def of(
        cls, K: FloatArray, weight: FloatArray, rho: float, fit_intercept: bool
    ) -> SharedInverse:
        A, apt = _inverse(K, rho / weight)
        drift = np.zeros(len(weight))
        if fit_intercept:
            a = A.sum(axis=1)
            total = float(a.sum())
            A -= np.outer(a, a / total)
            drift = a / total
        scale = rho / weight
        A *= scale[:, None]
        return cls(A, scale * drift, rho, apt)

    def step(self, batch: Batch, v: FloatArray) -> FloatArray:
        """New decision values."""
        new = v - self.pull @ (v - batch.offset)
        if batch.fit_intercept and batch.slope.any():
            new += self.drift[:, None] * batch.slope
        return np.asarray(new)

    def coefficients(self, batch: Batch, v: FloatArray, new: FloatArray) -> FloatArray:
        """The c that belongs to ``new = step(v)``."""
        return np.asarray((v - new) * (batch.weight / self.rho)[:, None])


def _inverse(K: FloatArray, ridge: FloatArray) -> tuple[FloatArray, bool]:
    """(K + diag(ridge))^{-1} by Cholesky; negative eigenvalues are lifted to zero.

    The second is False if these are more than rounding.
    """
    A = K + np.diag(ridge)
    factor, info = lapack.dpotrf(A.T, lower=1, overwrite_a=1)
    if info == 0:
        inverse, info = lapack.dpotri(factor, lower=1, overwrite_c=1)
    if info == 0:
        lower = np.tril(inverse, -1)
        return np.ascontiguousarray(lower + lower.T + np.diag(np.diag(inverse))), True
    root = np.sqrt(ridge)
    values, vectors = np.linalg.eigh(K / np.outer(root, root))
    scaled = vectors / root[:, None]
    apt = bool(values[0] >= -LIFTED * np.abs(values).max())
    return np.asarray((scaled / (1.0 + np.maximum(values, 0.0))) @ scaled.T), apt
