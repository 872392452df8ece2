"""A sharper bound for weak regularisation: let the free rows take the left-out row's share.

Let c be the full-data coefficients and j a row at its bound that is left out.  Take any d_i for
the free rows (r_i = 0) that keeps every c_i + d_i in its box; with an intercept, sum d = c_j.
Then c + d without row j is feasible for the dual of the smaller problem, and at the full-data
solution (w, b) the duality gap of the smaller problem is 1/2 ||v||^2 with

    v = c_j z_j - sum_i d_i z_i,

because every other row still has the coefficient that goes with its margin.  The objective is
strongly convex in w (b minimised out), so the solution w' without row j has

    ||w' - w|| <= ||v||.

This replaces |c_j| (d_j + R) in the bounds of ``verdict.py``.  With nearly as many free rows as
dimensions z_j is nearly a combination of their features, and v is small: what is left of it comes
from shares cut off at the ends of their boxes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from ..engine.leave_one_out import bordered_inverse
from ..losses import FloatArray
from .reduced import FREE
from .solver import Solved
from .verdict import Spread, accuracy

__all__ = ["Shares"]

# Rounds of cutting shares off and sharing out what was cut.
ROUNDS = 4


class Shares:
    """Proofs for rows at their bound, from one full-data solution.

    ``walked`` is how far b walks at most.
    """

    def __init__(self, solved: Solved, spread: Spread, walked: float):
        problem = solved.problem
        free = np.flatnonzero(solved.state == FREE)
        self.solved, self.spread, self.walked = solved, spread, walked
        self.Z, coef = problem.Z[free], solved.coef[free]
        bound = problem.y[free] * problem.box[free]
        self.room_down = np.minimum(np.minimum(bound, 0.0) - coef, 0.0)
        self.room_up = np.maximum(np.maximum(bound, 0.0) - coef, 0.0)
        # What the solution at hand lacks in exactness.
        v = problem.a + solved.coef @ problem.Z
        self.off = float(np.linalg.norm(solved.theta[:-1] - v))
        self.brackets = float(problem.box[free] @ np.abs(solved.r[free]))
        self.slack = accuracy(solved, spread)

    def moves(self, Z: FloatArray, coef: FloatArray) -> FloatArray:
        """How far w can move when each of these rows, at its bound, is left out."""
        if not len(self.Z) or not len(coef):
            return np.full(len(coef), np.inf)
        size = self._sizes(Z, coef)
        return np.sqrt((size + self.off) ** 2 + 2.0 * self.brackets)

    def reach(self, moved: FloatArray) -> float:
        """How far any row's value can move, if w moves by at most that."""
        spans = 2.0 if self.spread.fit_intercept else 1.0
        return float(moved.max(initial=0.0)) * spans * self.spread.radius + self.walked

    def prove(self, Z: FloatArray, y: FloatArray, moved: FloatArray) -> NDArray[np.bool_]:
        """Which of these rows are certainly on the right side when left out."""
        span = self.spread.distance(Z)
        if self.spread.fit_intercept:
            span = span + self.spread.radius
        theta = self.solved.theta
        value = y * (Z @ theta[:-1] + theta[-1])
        return value - self.walked - moved * span > tolerances.TIE + self.slack

    def _sizes(self, Z: FloatArray, coef: FloatArray) -> FloatArray:
        """||v|| for each row, or infinity where no shares were found."""
        K, k = self.Z @ self.Z.T, len(self.Z)
        # Free rows may depend on each other.  Any shares will do, good ones are better.
        K.flat[:: k + 1] += 1e-9 * (float(np.trace(K)) or 1.0)
        inverse = bordered_inverse(K, self.spread.fit_intercept)
        target = coef[:, None] * Z
        share = np.zeros((len(Z), k))
        for _ in range(ROUNDS):
            # The shares that would make v zero as far as possible, then cut to the boxes.
            wanted = (target - share @ self.Z) @ self.Z.T @ inverse[:k, :k]
            if self.spread.fit_intercept:
                wanted += np.outer(coef - share.sum(axis=1), inverse[:k, k])
            share = np.clip(share + wanted, self.room_down, self.room_up)
        if self.spread.fit_intercept:
            share = self._balanced(share, coef)
        size = np.linalg.norm(target - share @ self.Z, axis=1)
        if self.spread.fit_intercept:
            short = np.abs(share.sum(axis=1) - coef) > 1e-9 * np.abs(coef)
            size[short] = np.inf
        return np.asarray(size)

    def _balanced(self, share: FloatArray, coef: FloatArray) -> FloatArray:
        """Shares that sum to the coefficient, the difference in proportion to the room left."""
        lack = coef - share.sum(axis=1)
        room = np.where(lack[:, None] > 0, self.room_up - share, self.room_down - share)
        total = room.sum(axis=1)
        part = np.divide(lack, total, out=np.zeros_like(lack), where=total != 0)
        return share + np.clip(part, 0.0, 1.0)[:, None] * room
