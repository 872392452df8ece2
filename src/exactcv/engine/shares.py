"""Labels proved for weak regularisation: let the free rows take the left-out row's share.

Let (f, b) be the full-data solution, u = f + b, with coefficients c, and j a row that is left out.
Take a number p >= 0, give row j the coefficient -p c_j instead of c_j, and change those of the
other free rows (the ones at a knot of their loss) by any d_i that keep them in their boxes; with an
intercept, sum d = (1 + p) c_j.  All other rows still have a coefficient that goes with their u.
With

    v = (1 + p) c_j phi_j - sum_i d_i phi_i

these coefficients belong to f - v.  For p = 0 they are feasible for the dual of the problem without
row j, and at (f, b) the duality gap of that problem is 1/2 ||v||^2.  It is strongly convex in f, so
its solution (f', b') has

    ||f' - f|| <= ||v||.                                                                         (1)

*Labels.*  Let y_j c_j > 0, and suppose row j ends up on the wrong side, y_j u'_j <= 0.  Then
(f', b') also solves the problem with this as a constraint; p |c_j| is a multiplier for it, and the
coefficients are feasible for that dual.  The gap between its value and the objective (of the
problem without row j) at (f, b) is 1/2 ||v||^2 - p |c_j| y_j u_j.  By strong convexity on either
side it is also at least

    1/2 ||f' - f||^2 + 1/2 ||f' - (f - v)||^2 >= 1/4 ||v||^2.

So the label is right, whatever b' does, if for any p and d

    1/4 ||v||^2 < p |c_j| y_j u_j.                                                               (2)

Without boxes the least ||v||^2 is (1 + p)^2 c_j^2 s, where s is the squared distance of phi_j from
what the free rows span, and (2) with p = 1 says y_j u_j > |c_j| s.  That is the label itself as
long as no row comes to or leaves a knot: to first order the bound is sharp.

The d_i come from a few rounds of the alternating direction method of multipliers, for many rows at
a time: any d_i in their boxes will do, good ones prove more.  Most rows have so much to spare that
shares of a few dozen free rows prove them, for a fraction of the cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from ..types import FloatArray, IntArray
from .inverse import Bordered

__all__ = ["Leaving", "Shares"]

# Rounds for the shares: first few, then more for the rows that are still open.
FEW_ROUNDS, MANY_ROUNDS = 2, 10
# Rows that miss the bound by more than this after few rounds are left to be solved.
HOPE = 2.0
# So many free rows with the most room share first, in a single round each, and then all.
SOME = (64, 256)
# Weight of the boxes in the rounds, in units of the kernel's mean diagonal.
PENALTY = 0.1
# p of the proof: at 1/2 the bound is nearly as good as at 1, and less has to be shared out.
PRESSED = 0.5
# Numbers in the tables of the rows that are looked at together.
TABLE = 500_000
# Of the terms that ||v||^2 is the difference of, what rounding may leave.
ROUNDING = 1e-13


@dataclass(frozen=True)
class Leaving:
    """Rows to be left out, one after the other.

    coef : what is taken away of their coefficients (all of it, unless rows are merged).
    own : K_jj.
    place : where they are among the free rows, or -1.
    cross : kernel values of some of them with some of the free rows.
    """

    coef: FloatArray
    own: FloatArray
    place: IntArray
    cross: Callable[[IntArray, IntArray | slice], FloatArray]

    def beside(self, some: IntArray, count: int) -> Leaving:
        """The same where only some of ``count`` free rows take shares."""
        place = np.full(count + 1, -1, dtype=np.intp)  # the last for rows that are not free
        place[some] = np.arange(len(some))
        return replace(self, place=place[self.place], cross=lambda mine, _: self.cross(mine, some))


class Shares:
    """Proofs from one full-data solution.

    Parameters
    ----------
    K : (k, k)
        Kernel matrix of the free rows.
    down, up : (k,)
        How far their coefficients may fall (at most 0) and rise.
    fit_intercept : bool
    gap : float
        By how much the duality gap may be larger than stated above, for (f, b) is not exact.
    off : float
        How far the f at hand is from that of the coefficients.
    """

    def __init__(
        self,
        K: FloatArray,
        down: FloatArray,
        up: FloatArray,
        fit_intercept: bool,
        gap: float,
        off: float = 0.0,
    ):
        self.K, self.down, self.up = K, np.minimum(down, 0.0), np.maximum(up, 0.0)
        self.fit_intercept, self.gap, self.off = fit_intercept, gap, off

    def moves(self, rows: Leaving) -> FloatArray:
        """How far f can move when each of the rows is left out: (1)."""
        size = self._sizes(rows, np.arange(len(rows.coef)), 1.0, MANY_ROUNDS)
        return np.sqrt((size + self.off) ** 2 + 2.0 * self.gap)

    def prove(self, rows: Leaving, value: FloatArray) -> NDArray[np.bool_]:
        """Which of the rows are on the right side when left out: (2).

        ``value`` is y u, less what it may be off.
        """
        right = np.zeros(len(value), dtype=bool)
        room = PRESSED * np.abs(rows.coef) * (value - tolerances.TIE)
        todo = np.flatnonzero(room > self.gap)
        for count in SOME:
            if len(todo) and 2 * count <= len(self.K):
                some, part = self._some(count)
                least = part._needed(rows.beside(some, len(self.K)), todo, 1)
                right[todo] = least < room[todo]
                todo = todo[~right[todo]]
        for rounds in (FEW_ROUNDS, MANY_ROUNDS):
            if not len(todo):
                break
            least = self._needed(rows, todo, rounds)
            right[todo] = least < room[todo]
            todo = todo[(least >= room[todo]) & (least < HOPE * room[todo])]
        return right

    def _needed(self, rows: Leaving, which: IntArray, rounds: int) -> FloatArray:
        """The left-hand side of (2) for some of the rows, and a little more, for rounding."""
        size = self._sizes(rows, which, 1.0 + PRESSED, rounds)
        return np.asarray((1.0 + 1e-6) * (0.25 * (size + self.off) ** 2 + self.gap))

    def _some(self, count: int) -> tuple[IntArray, Shares]:
        """The free rows with the most room, as if there were no others to take shares."""
        some = np.argsort(np.minimum(self.up, -self.down), kind="stable")[-count:]
        box = self.down[some], self.up[some]
        return some, Shares(
            self.K[np.ix_(some, some)], *box, self.fit_intercept, self.gap, self.off
        )

    def _sizes(self, rows: Leaving, which: IntArray, factor: float, rounds: int) -> FloatArray:
        """||v|| for some of the rows, 1 + p = ``factor``; infinite where there are no shares."""
        if not len(self.K):
            return np.full(len(which), np.inf)
        block = max(1, TABLE // len(self.K))
        out = np.empty(len(which))
        for start in range(0, len(which), block):
            mine = which[start : start + block]
            out[start : start + block] = self._block(
                rows.cross(mine, slice(None)),
                rows.own[mine],
                factor * rows.coef[mine],
                rows.place[mine],
                rounds,
            )
        return out

    @cached_property
    def _penalised(self) -> tuple[float, FloatArray, FloatArray]:
        """The penalty, and the bordered inverse of the free rows' kernel matrix with it."""
        K = self.K.copy()
        penalty = PENALTY * float(np.trace(K)) / len(K) or 1.0
        K.flat[:: len(K) + 1] += penalty
        system = Bordered(K, self.fit_intercept)
        return penalty, system.inverse, system.ones if self.fit_intercept else np.zeros(len(K))

    def _block(
        self, cross: FloatArray, own: FloatArray, coef: FloatArray, place: IntArray, rounds: int
    ) -> FloatArray:
        """||v|| where the rows share out ``coef``."""
        penalty, inverse, ones = self._penalised
        itself = np.flatnonzero(place >= 0), place[place >= 0]  # a row takes no share of its own
        target = coef[:, None] * cross
        wanted = target @ inverse + np.outer(coef, ones)
        share, excess = np.empty_like(wanted), wanted.copy()
        for step in range(rounds):
            # The best shares near the last ones in the boxes, then into the boxes.
            if step:
                excess += wanted + penalty * ((share - excess) @ inverse)
            np.minimum(np.maximum(excess, self.down, out=share), self.up, out=share)
            share[itself] = 0.0
            excess -= share
        lack = self._balance(share, coef, itself) if self.fit_intercept else np.zeros(len(coef))
        first, last = coef**2 * own, np.einsum("ij,ij->i", share @ self.K, share)
        square = first - 2.0 * np.einsum("ij,ij->i", target, share) + last
        size = np.sqrt(np.maximum(square, 0.0) + ROUNDING * (np.abs(first) + np.abs(last)))
        # What rounding leaves unshared could go to any free row.
        size += lack * np.sqrt(np.abs(self.K.diagonal()).max())
        size[lack > 1e-9 * np.abs(coef)] = np.inf
        return np.asarray(size)

    def _balance(
        self, share: FloatArray, coef: FloatArray, itself: tuple[IntArray, IntArray]
    ) -> FloatArray:
        """Make shares sum to the coefficient, in proportion to the room left; what they lack."""
        lack = coef - share.sum(axis=1)
        room = np.where(lack[:, None] > 0, self.up - share, self.down - share)
        room[itself] = 0.0
        total = room.sum(axis=1)
        part = np.divide(lack, total, out=np.zeros_like(lack), where=total != 0)
        share += np.clip(part, 0.0, 1.0)[:, None] * room
        return np.abs(coef - share.sum(axis=1))
