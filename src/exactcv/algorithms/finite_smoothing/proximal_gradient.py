"""Accelerated proximal gradient on all columns of a batch.

Let phi be a smooth loss whose slope changes at most by |u - u'| / kappa.  Around u-bar each loss
lies below its slope plus (u - u-bar)^2 / (2 kappa), so the next iterate of column f minimises

    1/2 ||g||^2 - s b + (C / (2 kappa)) sum_i w_i (u_i - v_i)^2,   v = u-bar - kappa phi'(u-bar):

the step of `SharedInverse` with rho = kappa / C.  Rows left out have slope zero, v = u-bar.
Nesterov's extrapolation u-bar = u + ((r - 1) / r') (u - u_old), r' = (1 + sqrt(1 + 4 r^2)) / 2
(magic LOO, Algorithm 1) starts afresh in a column whose step points against its last move
(O'Donoghue & Candes 2015), which needs no knowledge of the curvature.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...types import FloatArray, IntArray
from .batch import Batch, SharedInverse

__all__ = ["Descent"]

# Decision values (n, m) of a batch to -kappa phi'(u), zero where a row takes no part.
Pull = Callable[[FloatArray, Batch], FloatArray]


class Descent:
    """The moving state: decision values U of the columns that still run."""

    def __init__(self, batch: Batch, inverse: SharedInverse, pull: Pull, U: FloatArray):
        self.batch, self.inverse, self.pull = batch, inverse, pull
        self.U = U
        self.old = U
        self.v = U
        self.r = np.ones(batch.size)
        self.change = np.full(batch.size, np.inf)

    def run(self, iterations: int) -> None:
        """So many steps of every column; ``change`` then tells how far the last one went."""
        for _ in range(iterations):
            following = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * self.r * self.r))
            ahead = self.U + ((self.r - 1.0) / following) * (self.U - self.old)
            self.v = ahead + self.pull(ahead, self.batch)
            new = self.inverse.step(self.batch, self.v)
            self.old, self.U = self.U, new
            back = ahead - new
            turned = np.einsum("i,ij,ij->j", self.batch.weight, back, new - self.old) > 0
            self.r = np.where(turned, 1.0, following)
            self.change = np.abs(back).max(axis=0)

    def coefficients(self) -> FloatArray:
        """The coefficients of the last step."""
        return self.inverse.coefficients(self.batch, self.v, self.U)

    def keep(self, columns: IntArray) -> None:
        """Drop the other columns: they have converged."""
        self.batch = self.batch.take(columns)
        self.U, self.old, self.v = self.U[:, columns], self.old[:, columns], self.v[:, columns]
        self.r, self.change = self.r[columns], self.change[columns]
