"""The linear model's weights w as w = X' coef, so that  f = X X' coef + b = K coef + b.

The multipliers would do, but they are of size c, and where there are more support vectors than
features X' coef is a small difference of large numbers: K coef then loses as many digits.  The
shortest coefficients with X_R' coef = w have no such part,

    coef = X_R (X_R' X_R)^+ w.

R are the full fit's support vectors without those that are left out, D: with G = X_S' X_S

    (G - X_D' X_D)^-1 w = y + Z (I - X_D Z)^-1 X_D y,    y = G^+ w,   Z = G^+ X_D',

which is formula (4) again.  Where the rows R do not span w, all training rows do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.linalg import pinvh

from ...types import BoolArray, FloatArray, IntArray
from .design import Design

__all__ = ["Representer"]

ROUNDS = 3
CLOSE = 1e-13  # what may be missing of w, relative to its length
SINGULAR = 1e-8  # of I - X_D Z, whose eigenvalues are between 0 and 1


Solve = Callable[[FloatArray], FloatArray]


class Representer:
    """Shortest coefficients over the rows ``active`` of a linear design."""

    def __init__(self, design: Design, active: BoolArray):
        self.active = active
        self.X = design.A[:, :-1] if design.intercept else design.A
        self.inverse = pinvh(self.X[active].T @ self.X[active])

    def __call__(self, w: FloatArray, left_out: Sequence[IntArray]) -> tuple[FloatArray, BoolArray]:
        """Coefficients for each row of ``w``, and which of them are good."""
        coef = np.zeros((len(w), len(self.X)))
        rows = np.tile(self.active, (len(w), 1))
        for mine, out in zip(rows, left_out, strict=True):
            mine[out] = False
        length = np.linalg.norm(w, axis=1)
        single = all(len(out) == 1 for out in left_out)
        solve = self._one_each(left_out) if single else self._several(left_out)
        missing = w
        for _ in range(ROUNDS):
            coef += np.where(rows, solve(missing) @ self.X.T, 0.0)
            missing = w - coef @ self.X
        return coef, np.asarray(np.linalg.norm(missing, axis=1) <= CLOSE * length)

    def from_all(self, w: FloatArray, rows: BoolArray) -> FloatArray:
        """Coefficients of one w over these rows, which span it."""
        X, coef = self.X[rows], np.zeros(len(self.X))
        inner = pinvh(X.T @ X)
        for _ in range(ROUNDS):
            coef[rows] += X @ (inner @ (w - coef[rows] @ X))
        return coef

    def _one_each(self, left_out: Sequence[IntArray]) -> Solve:
        """For sets D of one row: I - X_D Z is a number."""
        out = np.concatenate(left_out)
        X = np.where(self.active[out, None], self.X[out], 0.0)
        Z = X @ self.inverse
        small = 1.0 - np.einsum("ij,ij->i", X, Z)
        share = np.where(small < SINGULAR, 0.0, 1.0 / np.maximum(small, SINGULAR))

        def solve(missing: FloatArray) -> FloatArray:
            y = missing @ self.inverse
            y += (share * np.einsum("ij,ij->i", X, y))[:, None] * Z
            y[small < SINGULAR] = 0.0  # the other rows do not span w: found out by the caller
            return np.asarray(y)

        return solve

    def _several(self, left_out: Sequence[IntArray]) -> Solve:
        inverses = [self._without(out[self.active[out]]) for out in left_out]

        def solve(missing: FloatArray) -> FloatArray:
            return np.array([x @ inner for x, inner in zip(missing, inverses, strict=True)])

        return solve

    def _without(self, D: IntArray) -> FloatArray:
        """(G - X_D' X_D)^+, zero where that is singular."""
        if not len(D):
            return self.inverse
        X = self.X[D]
        if len(D) > self.X.shape[1]:
            rows = self.active.copy()
            rows[D] = False
            return np.asarray(pinvh(self.X[rows].T @ self.X[rows]))
        Z = self.inverse @ X.T
        small = np.eye(len(D)) - X @ Z
        if np.linalg.eigvalsh(small)[0] < SINGULAR:
            return np.zeros_like(self.inverse)
        return np.asarray(self.inverse + Z @ np.linalg.solve(small, Z.T))
