"""The squared loss in m dimensions: all rows, and all but some of them, from sums over rows.

    min over w, b   1/2 ||w||^2 + C/2 sum_i w_i (y_i - w'z_i - b)^2

With x_i = z_i - zbar, S = sum w_i x_i x_i' and t = sum w_i the solution is

    w = P sum w_i x_i y_i,     b + w'zbar = ybar,        P = (S + I / C)^-1,

from one eigendecomposition of S for all C.  Without rows F, with X~ these rows and a one at the
end, P~ = diag(P, 1 / t), H = X~ P~ X~' and residuals e,

    theta - P~ X~' alpha,      alpha = (I - W H)^-1 W e,      y_F - u_F = alpha / w,

for one row alpha = w e / (1 - w h).  Where F is large the sums without it are taken instead, and
factored.  (As Cawley & Talbot 2004 do with the kernel, see ``algorithms/least_squares.py``.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from ...judge.squared_features import Gone, Inverse, Slope, Training, bracket
from ...types import FloatArray

__all__ = ["LeftRows", "Ridge", "TrainingPart"]


class LeftRows(NamedTuple):
    """What leaving rows out makes of them: left-out values (rows, L), and sums for the judge."""

    values: FloatArray
    gone: Gone


@dataclass(frozen=True)
class Ridge:
    """All rows, at any C.

    ``values`` and ``vectors`` are those of S; solutions are (w, value at a), where a is what the
    rows are shifted by.
    """

    training: Training
    fit_intercept: bool
    values: FloatArray
    vectors: FloatArray
    inverse: Inverse

    @classmethod
    def of(cls, training: Training, fit_intercept: bool) -> Ridge:
        values, vectors = eigh(training.scatter, check_finite=False)
        values = np.maximum(values, 0.0)  # as they are but for rounding
        inverse = Inverse.of(training.scatter, values, vectors)
        return cls(training, fit_intercept, values, vectors, inverse)

    def damping(self, Cs: FloatArray) -> FloatArray:
        """Eigenvalues of P, (L, m)."""
        return np.asarray(1.0 / (self.values + 1.0 / Cs[:, None]))

    def solve(self, Cs: FloatArray) -> FloatArray:
        """(L, m + 1)."""
        w = (self.damping(Cs) * (self.training.cross @ self.vectors)) @ self.vectors.T
        return np.column_stack([w, self.training.level - w @ self.training.mean])

    def corrected(self, theta: FloatArray, C: float, found: Slope) -> FloatArray:
        """One Newton step: the gradient comes from the rows, and has digits that S has lost."""
        damping = self.damping(np.array([C]))[0]
        step = self.vectors @ (damping * (self.vectors.T @ found.gradient)) / C
        return _moved(theta, step, found, self.training)

    # ---- rows left out --------------------------------------------------------------------------

    def without_each(
        self, X: FloatArray, y: FloatArray, weight: FloatArray, theta: FloatArray, Cs: FloatArray
    ) -> LeftRows:
        """Each of the rows (shifted by a) alone left out; theta (L, m + 1) are the solutions."""
        damping, length, Y = self._turned(X, Cs)
        w, miss = weight[:, None], y[:, None] - X @ theta[:, :-1].T - theta[:, -1]
        squares = Y**2
        h = squares @ damping.T
        if self.fit_intercept:
            h += 1.0 / self.training.mass
        alpha = w * miss / (1.0 - w * h)
        spread = bracket(alpha, h * alpha, w, miss)
        gone = Gone(
            mass=w,
            lever=(w * length[:, None]) * self.fit_intercept,
            bent=spread * length[:, None],
            off=spread * self.fit_intercept,
            missed=np.abs(alpha) * self.inverse.miss(squares, length[:, None], damping),
            saved=0.5 * alpha * miss,
        )
        return LeftRows(y[:, None] - miss - h * alpha, gone)

    def without(
        self, X: FloatArray, y: FloatArray, weight: FloatArray, theta: FloatArray, Cs: FloatArray
    ) -> tuple[FloatArray, Gone]:
        """All of the rows left out together: solutions (L, m + 1), and sums (L,)."""
        X, y, weight = (part[weight > 0] for part in (X, y, weight))
        damping, length, Y = self._turned(X, Cs)
        miss = y - theta[:, :-1] @ X.T - theta[:, -1:]  # (L, rows)
        alpha, moved = np.empty_like(miss), np.empty_like(miss)
        level = 1.0 / self.training.mass if self.fit_intercept else 0.0
        for l, one in enumerate(damping):
            H = (Y * one) @ Y.T + level
            alpha[l] = np.linalg.solve(np.eye(len(y)) - weight[:, None] * H, weight * miss[l])
            moved[l] = H @ alpha[l]
        spread = bracket(alpha, moved, weight, miss)
        together = alpha @ Y
        w = theta[:, :-1] - (damping * together) @ self.vectors.T
        centre = theta[:, -1] + theta[:, :-1] @ self.training.mean - level * alpha.sum(axis=1)
        value = centre - w @ self.training.mean if self.fit_intercept else np.zeros(len(Cs))
        reach, squares = np.linalg.norm(together, axis=1), together**2
        missed = [
            self.inverse.miss(one[None], far, each[None])[0, 0]
            for one, far, each in zip(squares, reach, damping, strict=True)
        ]
        gone = Gone(
            mass=np.full(1, weight.sum()),
            lever=np.full(1, weight @ length) * self.fit_intercept,
            bent=spread @ length,
            off=spread.sum(axis=1) * self.fit_intercept,
            missed=np.array(missed),
            saved=0.5 * (alpha * miss).sum(axis=1),
        )
        return np.column_stack([w, value]), gone

    def _turned(self, X: FloatArray, Cs: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        X = X - self.training.mean
        return self.damping(Cs), np.sqrt(np.einsum("ij,ij->i", X, X)), X @ self.vectors


class TrainingPart:
    """Some of the rows as a training set of their own: a factor for each C."""

    def __init__(self, training: Training, fit_intercept: bool):
        self.training, self.fit_intercept = training, fit_intercept

    def _solved(self, right: FloatArray, C: float) -> FloatArray:
        """P times the right-hand side."""
        A = self.training.scatter.copy()
        A[np.diag_indices_from(A)] += 1.0 / C
        try:
            factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:  # 1 / C is less than the rounding of S
            values, vectors = eigh(self.training.scatter, check_finite=False)
            damped = (vectors.T @ right) / (np.maximum(values, 0.0) + 1.0 / C)
            return np.asarray(vectors @ damped)
        return np.asarray(cho_solve(factor, right, check_finite=False))

    def solve(self, Cs: FloatArray) -> FloatArray:
        """(L, m + 1)."""
        w = np.array([self._solved(self.training.cross, float(C)) for C in Cs])
        return np.column_stack([w, self.training.level - w @ self.training.mean])

    def corrected(self, theta: FloatArray, C: float, found: Slope) -> FloatArray:
        """One Newton step, as `Ridge.corrected`."""
        step = self._solved(found.gradient, C) / C
        return _moved(theta, step, found, self.training)


def _moved(theta: FloatArray, step: FloatArray, found: Slope, training: Training) -> FloatArray:
    w = theta[:-1] - step
    value = theta[-1] + step @ training.mean + found.off / training.mass
    return np.append(w, value)
