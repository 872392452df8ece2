"""Adjusting alpha towards optimum (ATO): ramp T up and R down, and let the free rows follow.

With a step eta the alphas change by (7)

    Delta alpha_T = eta (C - alpha_T),        Delta alpha_R = -eta alpha_R,

and the alphas of the free rows M so that these stay on the margin and the sum stays zero.  The
paper's (10) stacks those conditions in a matrix that is not square.  We border it with the change
of the intercept, as Karasuyama & Takeuchi (2009) do: in signed coefficients, d the direction on T
and R,

    [ 0   1'   ] [ Delta b   ]        [ sum d                ]
    [ 1   K_MM ] [ Delta c_M ] = -eta [ K_MT d_T + K_MR d_R  ].

eta ends where a free row meets its bound, where another row reaches the margin, f_i + Delta f_i = b
(11), or at 1, where R is empty.  A row of T that reaches the margin, or is right to have no alpha,
joins the training set.  The paper's loop has no bound on its steps, and takes half of all time on
its Adult data; ours has.  What is then left of R is dropped, and the seed is repaired as all seeds
are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ...types import FloatArray, IntArray
from .change import Change
from .feasible import repair

__all__ = ["ato"]

# Steps of one seed, and what they may cost: each factorises K_MM, in |M|^3 / 3 operations.
MAX_STEPS = 25
MAX_WORK = 5e10
# Keeps K_MM definite where rows are alike, relative to its largest diagonal entry.
RIDGE = 1e-10

Mask = NDArray[np.bool_]


def ato(change: Change, max_steps: int = MAX_STEPS, max_work: float = MAX_WORK) -> FloatArray:
    """The seed of the next fold; see the module's docstring."""
    seed = change.kept()
    if len(change.leaving) or len(change.entering):
        seed[:] = 0.0
        ramp, work = _Ramp(change), 0.0
        for _ in range(max_steps):
            work += np.count_nonzero(ramp.free) ** 3 / 3
            if work > max_work or not ramp.step():
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
    """The moving state: arrays over ``rows``, the next training set, and what is left of R."""

    def __init__(self, change: Change):
        self.change = change
        rows = self.rows = np.concatenate([change.shared, change.entering])
        self.c = np.where(np.arange(len(rows)) < len(change.shared), change.coef[rows], 0.0)
        self.lower, self.upper = change.lower[rows], change.upper[rows]
        self.out = change.coef[change.leaving].copy()
        # v = u - t: what (5) looks at.  It is known on S and has to be worked out on T.
        self.v = change.intercept - change.errors[rows]
        new = change.entering
        had = np.flatnonzero(change.coef)
        h = change.block(new, had) @ change.coef[had]
        self.v[len(change.shared) :] = h + change.intercept - change.target[new]
        self.pending: Mask = np.arange(len(rows)) >= len(change.shared)
        self.far = np.where(self.upper > 0, self.upper, self.lower)
        self.free: Mask = (self.c > self.lower) & (self.c < self.upper)
        self._settle_pending()
        self._K_out = change.block(rows, change.leaving)
        self._columns = np.flatnonzero(self.free | self.pending)
        self._K = change.block(rows, rows[self._columns])

    def step(self) -> bool:
        """One step; False when R is empty or nothing can follow."""
        direction = np.where(self.pending, self.far - self.c, 0.0)
        out = -self.out
        if not (out.any() or direction.any()):
            return False
        q = self._times(direction) + self._K_out @ out
        total = float(direction.sum() + out.sum())
        free = np.flatnonzero(self.free)
        if len(free):
            follow, rise = self._follow(free, q, total)
            direction[free] = follow
        elif self.change.fit_intercept:
            return False
        else:
            rise = 0.0
        slope = self._times(direction) + self._K_out @ out + rise
        eta, meets, leaves = self._step_size(direction, slope)
        self.c = np.clip(self.c + eta * direction, self.lower, self.upper)
        self.v += eta * slope
        self.out = (1.0 - eta) * self.out
        self._rearrange(meets, leaves, direction)
        return eta < 1.0

    def _follow(self, free: IntArray, q: FloatArray, total: float) -> tuple[FloatArray, float]:
        """The direction of the free rows, and of the intercept: the bordered system."""
        where = np.searchsorted(self._columns, free)
        A = self._K[np.ix_(free, where)]
        A[np.diag_indices(len(free))] += RIDGE * max(float(np.abs(A.diagonal()).max()), 1e-300)
        right = np.column_stack([q[free], np.ones(len(free))])
        try:
            answer: FloatArray = cho_solve(cho_factor(A), right)
        except LinAlgError:
            answer = np.linalg.lstsq(A, right, rcond=None)[0].astype(float)
        rise = 0.0
        if self.change.fit_intercept:
            rise = float((total - answer[:, 0].sum()) / answer[:, 1].sum())
        return -answer[:, 0] - rise * answer[:, 1], rise

    def _step_size(self, direction: FloatArray, slope: FloatArray) -> tuple[float, Mask, Mask]:
        """The largest step to an event, who meets the margin there, and who meets a bound."""
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(direction > 0, self.upper - self.c, self.lower - self.c) / direction
            margin = -self.v / slope
        room = np.where(self.free & (direction != 0), room, np.inf)
        # A row that moves towards the margin reaches it; one on it already stays for now.
        margin = np.where(~self.free & (margin > 0) & np.isfinite(margin), margin, np.inf)
        eta = float(min(1.0, room.min(initial=np.inf), margin.min(initial=np.inf)))
        near = eta * (1 + 1e-12)
        return eta, margin <= near, room <= near

    def _rearrange(self, meets: Mask, leaves: Mask, direction: FloatArray) -> None:
        """The sets I_m, I_u, I_l after a step."""
        self.c[leaves] = np.where(direction > 0, self.upper, self.lower)[leaves]
        self.v[meets] = 0.0
        self.pending &= ~meets
        self.free = (self.free & ~leaves) | meets
        self._settle_pending()
        added = np.setdiff1d(np.flatnonzero(self.free), self._columns)
        if len(added):
            place = np.searchsorted(self._columns, added)
            block = self.change.block(self.rows, self.rows[added])
            self._K = np.insert(self._K, place, block, axis=1)
            self._columns = np.insert(self._columns, place, added)

    def _settle_pending(self) -> None:
        """Rows of T that are right as they are need not grow: no alpha, and behind the margin."""
        right = np.where(self.upper > 0, self.v >= 0, self.v <= 0) & (self.c == 0)
        self.pending &= ~right

    def _times(self, direction: FloatArray) -> FloatArray:
        """K direction; only rows with a column of their own move."""
        return np.asarray(self._K @ direction[self._columns])
