"""Sharper bounds for weak regularisation: let the free rows take the left-out row's share.

Let (w, b) be the full-data solution with coefficients c, and j a row that is left out.  Take a
number p >= 0, give row j the coefficient -p c_j instead of c_j, and change those of the other free
rows (r_i = 0) by any d_i that keep them in their boxes; with an intercept, sum d = (1 + p) c_j.
All other rows still have the coefficient that goes with their margin.  With

    v = (1 + p) c_j z_j - sum_i d_i z_i

these coefficients belong to w - v.  For p = 0 they are feasible for the dual of the problem without
row j, and at (w, b) the duality gap of that problem is 1/2 ||v||^2.  It is strongly convex in w, so
its solution (w', b') has

    ||w' - w|| <= ||v||.                                                                         (1)

*Labels.*  Suppose row j ends up on the wrong side, y_j u'_j <= 0.  Then (w', b') also solves the
problem with this as a constraint; p |c_j| is a multiplier for it, and the coefficients are feasible
for that dual.  The gap between its value and the objective (of the problem without row j) at (w, b)
is 1/2 ||v||^2 - p |c_j| y_j u_j.  By strong convexity on either side it is also at least

    1/2 ||w' - w||^2 + 1/2 ||w' - (w - v)||^2 >= 1/4 ||v||^2.

So the label is right, whatever b' does, if for any p and d

    1/4 ||v||^2 < p |c_j| y_j u_j.                                                               (2)

Without boxes the least ||v||^2 is (1 + p)^2 c_j^2 s, where s is the squared distance of z_j from
what the free rows span, and (2) with p = 1 says y_j u_j > |c_j| s.  That is the label itself as
long as no row comes to or leaves the margin: to first order the bound is sharp.

The d_i come from a few rounds of the alternating direction method of multipliers, for many rows
at a time: any d_i in their boxes will do, good ones prove more.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from ..engine.leave_one_out import bordered_inverse
from ..folds import IntArray
from ..losses import FloatArray
from .reduced import FREE
from .solver import Solved
from .verdict import Spread, accuracy

__all__ = ["Shares"]

# Rounds for the shares: first few, then more for the rows that are still open.
FEW_ROUNDS, MANY_ROUNDS = 2, 10
# Weight of the boxes in the rounds, in units of the kernel's mean diagonal.
PENALTY = 0.1
# p of the proof: at 1/2 the bound is nearly as good as at 1, and less has to be shared out.
PRESSED = 0.5
# Rows at a time.
BLOCK = 2048


class Shares:
    """Proofs for rows with a coefficient, from one full-data solution.

    ``walked`` is how far b walks at most.
    """

    def __init__(self, solved: Solved, spread: Spread, walked: float):
        problem = solved.problem
        free = np.flatnonzero(solved.state == FREE)
        self.solved, self.spread, self.walked = solved, spread, walked
        # Where each row of the small problem is among the free ones, or -1.
        self.place = np.full(len(solved.state), -1, dtype=np.intp)
        self.place[free] = np.arange(len(free))
        self.Z, coef = problem.Z[free], solved.coef[free]
        bound = problem.y[free] * problem.box[free]
        self.room_down = np.minimum(np.minimum(bound, 0.0) - coef, 0.0)
        self.room_up = np.maximum(np.maximum(bound, 0.0) - coef, 0.0)
        # What the solution at hand lacks in exactness.
        v = problem.a + solved.coef @ problem.Z
        self.off = float(np.linalg.norm(solved.theta[:-1] - v))
        self.brackets = float(problem.box[free] @ np.abs(solved.r[free]))
        if spread.fit_intercept:
            total = problem.beta + float(solved.coef.sum())
            self.brackets += abs(total * float(solved.theta[-1]))
        self.slack = accuracy(solved, spread)

    def moves(self, Z: FloatArray, coef: FloatArray) -> FloatArray:
        """How far w can move when each of these rows, none of them free, is left out: (1)."""
        if not len(self.Z) or not len(coef):
            return np.full(len(coef), np.inf)
        size = self._sizes(Z, coef, np.full(len(coef), -1), MANY_ROUNDS)
        return np.sqrt((size + self.off) ** 2 + 2.0 * self.brackets)

    def reach(self, moved: FloatArray) -> float:
        """How far any row's value can move, if w moves by at most that."""
        spans = 2.0 if self.spread.fit_intercept else 1.0
        return float(moved.max(initial=0.0)) * spans * self.spread.radius + self.walked

    def prove(
        self, Z: FloatArray, coef: FloatArray, value: FloatArray, place: IntArray
    ) -> NDArray[np.bool_]:
        """Which of these rows, with y u = ``value``, are on the right side when left out: (2).

        ``place`` is where they are among the free rows, or -1.
        """
        right = np.zeros(len(coef), dtype=bool)
        room = value - tolerances.TIE - self.slack
        for rounds in (FEW_ROUNDS, MANY_ROUNDS):
            todo = np.flatnonzero(~right & (room > 0))
            if not len(self.Z) or not len(todo):
                break
            size = self._sizes(Z[todo], (1.0 + PRESSED) * coef[todo], place[todo], rounds)
            least = 0.25 * (size + self.off) ** 2 + self.brackets
            # A little more than nothing, for rounding.
            right[todo] = (1.0 + 1e-6) * least < PRESSED * np.abs(coef[todo]) * room[todo]
        return right

    @cached_property
    def _penalised(self) -> tuple[float, FloatArray]:
        """The penalty, and the bordered inverse of the free rows' kernel matrix with it."""
        K = self.Z @ self.Z.T
        penalty = PENALTY * float(np.trace(K)) / len(K) or 1.0
        K.flat[:: len(K) + 1] += penalty
        return penalty, bordered_inverse(K, self.spread.fit_intercept)

    def _sizes(self, Z: FloatArray, coef: FloatArray, place: IntArray, rounds: int) -> FloatArray:
        """||v|| for each row, or infinity where no shares were found."""
        parts = [slice(start, start + BLOCK) for start in range(0, len(coef), BLOCK)]
        return np.concatenate([self._block(Z[p], coef[p], place[p], rounds) for p in parts])

    def _block(self, Z: FloatArray, coef: FloatArray, place: IntArray, rounds: int) -> FloatArray:
        (penalty, inverse), k = self._penalised, len(self.Z)
        intercept = self.spread.fit_intercept
        itself = np.flatnonzero(place >= 0), place[place >= 0]  # a row takes no share of its own
        wanted = (coef[:, None] * (Z @ self.Z.T)) @ inverse[:k, :k]
        if intercept:
            wanted += np.outer(coef, inverse[:k, k])
        share, excess = np.zeros_like(wanted), np.zeros_like(wanted)
        for _ in range(rounds):
            # The best shares near the last ones in the boxes, then into the boxes.
            excess += wanted + penalty * ((share - excess) @ inverse[:k, :k])
            share = np.clip(excess, self.room_down, self.room_up)
            share[itself] = 0.0
            excess -= share
        if intercept:
            self._balance(share, coef, itself)
        size = np.linalg.norm(coef[:, None] * Z - share @ self.Z, axis=1)
        if intercept:
            # What rounding leaves unshared could go to any row.
            lack = np.abs(share.sum(axis=1) - coef)
            size += lack * self.spread.largest
            size[lack > 1e-9 * np.abs(coef)] = np.inf
        return np.asarray(size)

    def _balance(
        self, share: FloatArray, coef: FloatArray, itself: tuple[IntArray, IntArray]
    ) -> None:
        """Make shares sum to the coefficient, by what they lack in proportion to the room left."""
        lack = coef - share.sum(axis=1)
        room = np.where(lack[:, None] > 0, self.room_up - share, self.room_down - share)
        room[itself] = 0.0
        total = room.sum(axis=1)
        part = np.divide(lack, total, out=np.zeros_like(lack), where=total != 0)
        share += np.clip(part, 0.0, 1.0)[:, None] * room
