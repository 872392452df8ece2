"""The linear model's weights w as w = X' coef, so that  f = X X' coef + b = K coef + b.

The multipliers would do, but they are of size c, and where there are more support vectors than
features X' coef is a small difference of large numbers: K coef then loses as many digits.  The
shortest coefficients with X_R' coef = w have no such part,

    coef = X_R (X_R' X_R)^+ w.

R are the full fit's support vectors without those that are left out, D: with G = X_S' X_S

    (G - X_D' X_D)^-1 w = y + Z (I - X_D Z)^-1 X_D y,    y = G^+ w,   Z = G^+ X_D',

which is formula (4) again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import pinvh

from ..folds import IntArray
from ..losses import FloatArray
from .model import BoolArray, Design

__all__ = ["Representer"]

ROUNDS = 3
CLOSE = 1e-13  # what may be missing of w, relative to its length
SINGULAR = 1e-8  # of I - X_D Z, whose eigenvalues are between 0 and 1


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
        missing = w
        for _ in range(ROUNDS):
            y = missing @ self.inverse
            for k, out in enumerate(left_out):
                y[k] = self._downdated(y[k], out[self.active[out]])
            coef += np.where(rows, y @ self.X.T, 0.0)
            missing = w - coef @ self.X
        length = np.linalg.norm(w, axis=1)
        return coef, np.asarray(np.linalg.norm(missing, axis=1) <= CLOSE * length)

    def _downdated(self, y: FloatArray, D: IntArray) -> FloatArray:
        if not len(D):
            return y
        X = self.X[D]
        Z = self.inverse @ X.T
        small = np.eye(len(D)) - X @ Z
        if np.linalg.eigvalsh(small)[0] < SINGULAR:
            return np.zeros_like(y)  # the other rows do not span w: found out by the caller
        return np.asarray(y + Z @ np.linalg.solve(small, X @ y))
