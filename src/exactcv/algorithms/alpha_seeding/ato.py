"""Adjusting alpha towards optimum (ATO): ramp T up and R down, and let the free rows follow.

With a step eta the alphas change by (7)

    Delta alpha_T = eta (C - alpha_T),        Delta alpha_R = -eta alpha_R,

and the alphas of the free rows M so that these stay on the margin and the sum stays zero, (8) and
(9).  The steps are repeated until R is empty (Algorithm 1).

As printed: the directions (7), the indicators (11), and the end.  Ours, where the paper is silent
or cannot be taken literally:

- (10) stacks the conditions in a matrix that is not square.  We border it with the change of the
  intercept, as Karasuyama & Takeuchi (2009) do (``free_rows.py``).
- eta ends where another row reaches the margin, f_i + Delta f_i = b, as printed, and also where a
  free row meets its bound, beyond which the seed would not be feasible.
- A row of T that reaches the margin, or is right to have no alpha, joins the training set.
- With an intercept and no free row the sum cannot be kept: the intercept then moves alone until a
  row reaches the margin.

So each step follows the solution path, and a ramp that ends has reached the optimum: SMO then only
confirms it.  A step costs |M|^2 + n |M| operations, since the inverse of (10) is updated.
``max_steps`` ends the ramp early; what is then left of R is dropped, and the seed is repaired as
all seeds are.  (A guard of ``GUARD`` steps a row ends a ramp that would turn in circles, where
rows are alike.)
"""

from __future__ import annotations

import numpy as np

from ...types import BoolArray, FloatArray, IntArray
from .change import Change
from .feasible import repair
from .free_rows import FreeRows

__all__ = ["ato"]

# Steps for each row of the training set; a ramp takes far less than one.
GUARD = 20
# Kernel entries held at a time besides the columns of the free rows.
BLOCK = 1 << 22
ROUNDING = 1e-14


def ato(change: Change, max_steps: int | None = None) -> FloatArray:
    """The seed of the next fold; see the module's docstring."""
    seed = change.kept()
    if len(change.leaving) or len(change.entering):
        seed[:] = 0.0
        ramp = _Ramp(change)
        for _ in range(GUARD * len(ramp.rows) if max_steps is None else max_steps):
            if not ramp.step():
                break
        seed[ramp.rows] = ramp.c
    return repair(
        seed,
        change.lower,
        change.upper,
        lambda: change.added,
        lambda: change.inside(seed, change.shared),
        lambda: change.train,
        fit_intercept=change.fit_intercept,
    )


class _Ramp:
    """The moving state: arrays over ``rows``, the next training set.

    ``left`` is what is left of the ramp, 1 at the start and 0 at its end: alpha_R is ``left`` times
    what it was, and alpha_T is (1 - left) C on the rows ``pending``.  ``push`` is K times the
    direction on R and on the pending rows for left = 1, and ``push_sum`` that direction's sum.
    """

    def __init__(self, change: Change):
        self.change = change
        shared, new = change.shared, change.entering
        rows = self.rows = np.concatenate([shared, new])
        self.c = np.where(np.arange(len(rows)) < len(shared), change.coef[rows], 0.0)
        self.lower, self.upper = change.lower[rows], change.upper[rows]
        self.far = np.where(self.upper > 0, self.upper, self.lower)
        # v = u - t: what (5) looks at.  It is known on S and has to be worked out on T.
        self.v = change.intercept - change.errors[rows]
        had = np.flatnonzero(change.coef)
        h = self._product(new, had, change.coef[had])
        self.v[len(shared) :] = h + change.intercept - change.target[new]
        self.left = 1.0
        self.pending: BoolArray = np.arange(len(rows)) >= len(shared)
        self.pending &= ~self._right()
        growing = np.flatnonzero(self.pending)
        out = change.coef[change.leaving]
        self.push = self._product(rows, rows[growing], self.far[growing])
        self.push -= self._product(rows, change.leaving, out)
        self.push_sum = float(self.far[growing].sum() - out.sum())
        self.scale = float(np.abs(self.far[growing]).sum() + np.abs(out).sum())
        free = np.flatnonzero((self.c > self.lower) & (self.c < self.upper) & ~self.pending)
        self.free = FreeRows(
            free,
            change.block(rows, rows[free]),
            float(change.source.diagonal.max(initial=0.0)),
            change.fit_intercept,
        )
        self.is_free: BoolArray = np.zeros(len(rows), dtype=bool)
        self.is_free[self.free.rows] = True

    def step(self) -> bool:
        """One step; False when R is empty or nothing can follow."""
        if self.scale == 0.0:
            return False
        q, total = self.left * self.push, self.left * self.push_sum
        stuck = self.change.fit_intercept and not self.free.size
        if stuck and abs(total) > ROUNDING * self.scale:
            return self._slide(total)
        follow, rise = np.zeros(0), 0.0
        if self.free.size:
            follow, rise = self.free.follow(q, total)
        slope = q + self.free.times(follow) + rise
        eta, meets, leaves = self._step_size(follow, slope)
        mine = self.free.rows
        self.c[mine] = np.clip(self.c[mine] + eta * follow, self.lower[mine], self.upper[mine])
        self.v += eta * slope
        self.left *= 1.0 - eta
        self.c[self.pending] = (1.0 - self.left) * self.far[self.pending]
        self.c[leaves] = np.where(follow > 0, self.upper[mine], self.lower[mine])[
            np.isin(mine, leaves)
        ]
        self._rearrange(meets, leaves)
        return eta < 1.0

    def _step_size(self, follow: FloatArray, slope: FloatArray) -> tuple[float, IntArray, IntArray]:
        """The largest step to an event, who meets the margin there, and who meets a bound."""
        mine = self.free.rows
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = np.where(follow > 0, self.upper[mine], self.lower[mine])
            room = np.where(follow != 0, (bound - self.c[mine]) / follow, np.inf)
            margin = -self.v / slope
        # A row that moves towards the margin reaches it; one on it already stays for now.
        margin = np.where(~self.is_free & (margin > 0) & np.isfinite(margin), margin, np.inf)
        margin[list(self.free.waiting)] = np.inf
        eta = float(min(1.0, room.min(initial=np.inf), margin.min(initial=np.inf)))
        near = eta * (1 + 1e-12)
        return eta, np.flatnonzero(margin <= near), mine[room <= near]

    def _slide(self, total: float) -> bool:
        """Move the intercept to where a row can make up for ``total``; False if there is none."""
        to_go = -self.v * np.sign(total)
        to_go[list(self.free.waiting)] = 0.0
        if not (to_go > 0).any():
            return False
        rise = float(to_go[to_go > 0].min())
        meets = np.flatnonzero((to_go > 0) & (to_go <= rise * (1 + 1e-12)))
        self.v += np.sign(total) * rise
        self._rearrange(meets, np.zeros(0, dtype=np.intp))
        return True

    def _rearrange(self, meets: IntArray, leaves: IntArray) -> None:
        """The sets I_m, I_u, I_l after a step."""
        for row in map(int, leaves):
            self.free.remove(row)
            self.is_free[row] = False
            for heir in self.free.heirs(row):
                parts = self.free.waiting[heir]
                if self._join(heir):
                    self.free.inherit(row, heir, parts)
                    break
        self.v[meets] = 0.0
        for row in map(int, meets):
            self._join(row)
        if self.left == 1.0:  # a row of T that has no alpha yet may have become right
            for row in map(int, np.flatnonzero(self.pending & self._right())):
                column = self.change.block(self.rows, self.rows[row : row + 1])[:, 0]
                self._stop_pushing(row, column)

    def _join(self, row: int) -> bool:
        """A row on the margin becomes free, if it does not depend on those that are."""
        column = self.change.block(self.rows, self.rows[row : row + 1])[:, 0]
        self._stop_pushing(row, column)
        self.is_free[row] = self.free.add(row, column)
        return bool(self.is_free[row])

    def _stop_pushing(self, row: int, column: FloatArray) -> None:
        if self.pending[row]:
            self.pending[row] = False
            self.push -= self.far[row] * column
            self.push_sum -= float(self.far[row])

    def _right(self) -> BoolArray:
        """Rows that are right to have no alpha: behind the margin."""
        return np.where(self.upper > 0, self.v >= 0, self.v <= 0) & (self.c == 0)

    def _product(self, rows: IntArray, columns: IntArray, x: FloatArray) -> FloatArray:
        """K[rows, columns] x, by blocks of columns."""
        out = np.zeros(len(rows))
        step = max(1, BLOCK // max(1, len(rows)))
        for first in range(0, len(columns), step):
            part = slice(first, first + step)
            out += self.change.block(rows, columns[part]) @ x[part]
        return out
