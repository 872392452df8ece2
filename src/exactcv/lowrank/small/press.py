"""Left-out labels proved right, for many rows of the hinge at once: press each to the wrong side.

Let theta = (w, b) be the full-data solution and j a row with a coefficient that is left out.
Suppose that it ends up on the wrong side, y_j u'_j <= t.  Then the solution without it also solves
the problem without it under that constraint.  With alpha_i = y_i c_i in [0, B_i] for the rows near
the margin and a multiplier p >= 0 such that (with an intercept) sum c_i + beta = p y_j, weak
duality puts the value of that problem at no less than the objective (without row j) at theta, minus

    G = 1/2 ||w - v||^2 + sum_i [B_i max(0, -r_i) + alpha_i r_i] - p (y_j u_j - t),
    v = a + sum_i c_i z_i - p y_j z_j.

So G < 0 proves the label: theta itself does better than anything on the wrong side.  Rows that are
not near the margin are in a and beta, at the bound that goes with their side of theta, which is
allowed for any theta: nothing has to be checked of them.  ``engine/shares.py`` has the same proof
with the free rows alone; where a coefficient is so large that others must take their part, this one
goes on.

Good alpha and p come from the alternating direction method of multipliers, with u_i = z_i'w + b as
its split: the matrix of a step is the same for all rows that are left out, but for their own
constraint (a rank-one change), so a step is two products with the rows near the margin.  Some more
steps without the constraint come near the solution without the row: a guess for those not proved.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from ... import tolerances
from ..._core.reference.residuals import ROUNDOFF
from ...types import FloatArray, IntArray
from .reduced import Reduced

__all__ = ["Leaving", "Press", "breadth"]

# Steps before the proofs are looked at, how often they are, and steps when nothing is pressed.
STEPS, ATTEMPTS, RELEASED = 10, 6, 30
# Penalty of a row: this share of its box over its distance from the margin, which counts as NEAR
# at least, in units of the distance within which there are as many rows as dimensions.
PENALTY, NEAR = 0.03, 0.2
RELAXED = 1.6
# Numbers in the tables of the rows that are looked at together.
TABLE = 2_000_000
# Rows that near to the margin are on it.
ON_MARGIN = 1e-6


def breadth(r: FloatArray, m: int) -> float:
    """How near to the margin the m nearest rows are, besides those that are on it."""
    off = np.abs(r[np.abs(r) > ON_MARGIN])
    if not len(off):
        return 1.0
    k = min(m, len(off) - 1)
    return float(np.partition(off, k)[k])


@dataclass(frozen=True)
class Leaving:
    """Rows to be left out: features, targets, what is taken from their boxes, coefficients and u.

    ``place`` is where they are in the problem, or -1 if they are at the bound and part of its
    linear term, which has their ``coef`` then.
    """

    Z: FloatArray
    y: FloatArray
    box: FloatArray
    coef: FloatArray
    u: FloatArray
    place: IntArray

    @property
    def value(self) -> FloatArray:
        """y u."""
        return self.y * self.u

    def some(self, which: IntArray) -> Leaving:
        return Leaving(*(getattr(self, part.name)[which] for part in fields(self)))


class Press:
    """Proofs from one full-data solution.

    Parameters
    ----------
    problem : Reduced
        The rows near the margin.
    theta : (m + 1,)
    r, coef : margins and coefficients of its rows.
    widest : float
        The largest ||z|| of any row.
    added : float
        The size of what is added up in the problem's linear term.
    """

    def __init__(
        self,
        problem: Reduced,
        theta: FloatArray,
        r: FloatArray,
        coef: FloatArray,
        widest: float,
        added: float,
    ):
        self.problem, self.theta, self.r = problem, theta, r
        self.widest, self.added = widest, added
        self.alpha = problem.y * coef
        one = np.full(len(problem.y), float(problem.fit_intercept))
        self.T = np.column_stack([problem.Z, one]) * problem.y[:, None]
        self.linear = np.append(problem.a, problem.beta if problem.fit_intercept else 0.0)
        m = problem.Z.shape[1]
        distance = np.abs(r)
        unit = breadth(r, m)
        self.rho = PENALTY * np.maximum(problem.box, 1e-300) / (distance + NEAR * unit)
        self.own_rho = PENALTY / (NEAR * unit)  # per unit of the box of the row that is left out
        H = (self.T.T * self.rho) @ self.T
        H.flat[: -1 : m + 2] += 1.0
        if not problem.fit_intercept or H[-1, -1] <= 0.0:
            H[-1, -1] = 1.0
        self.factor = cho_factor(H + 1e-14 * np.trace(H) / (m + 1) * np.eye(m + 1))

    def prove(self, leaving: Leaving) -> tuple[NDArray[np.bool_], FloatArray]:
        """Which of the rows are on the right side when left out; about theta without the others."""
        right = np.zeros(len(leaving.y), dtype=bool)
        near = np.tile(self.theta, (len(leaving.y), 1))
        hopeful = np.flatnonzero(leaving.value > tolerances.TIE)
        block = max(1, TABLE // max(len(self.r), 1))
        for start in range(0, len(hopeful), block):
            mine = hopeful[start : start + block]
            right[mine], near[mine] = self._block(leaving.some(mine))
        return right, near

    def _block(self, leaving: Leaving) -> tuple[NDArray[np.bool_], FloatArray]:
        state = _State(self, leaving)
        right = np.zeros(len(leaving.y), dtype=bool)
        near = np.zeros((len(leaving.y), len(self.theta)))
        open_ = np.arange(len(leaving.y))
        for _ in range(ATTEMPTS):
            state.advance(STEPS)
            proved = state.gap() < 0.0
            right[open_[proved]] = True
            open_ = open_[~proved]
            if not len(open_):
                return right, near
            state.keep(~proved)
        state.release()
        near[open_] = state.advance(RELEASED)
        return right, near


class _State:
    """Where the steps stand, one row of each array for each row that is left out."""

    def __init__(self, press: Press, leaving: Leaving):
        self.press = press
        problem, count = press.problem, len(leaving.y)
        one = np.full(count, float(problem.fit_intercept))
        # Signed towards the wrong side.
        self.S = np.column_stack([leaving.Z, one]) * -leaving.y[:, None]
        self.linear = np.tile(press.linear, (count, 1))
        beyond = leaving.place < 0
        self.linear[beyond] += leaving.box[beyond, None] * self.S[beyond]
        self.box = np.tile(problem.box, (count, 1))
        inside = np.flatnonzero(~beyond)
        self.box[inside, leaving.place[inside]] -= leaving.box[inside]
        np.maximum(self.box, 0.0, out=self.box)
        self.alpha = np.minimum(press.alpha, self.box)
        self.value = leaving.value
        self.rho = press.own_rho * leaving.box
        self.h = cho_solve(press.factor, self.S.T).T
        self.length = np.einsum("ij,ij->i", self.S, self.h)
        self.p, self.u = np.zeros(count), -leaving.value
        self.yu = np.tile(press.r + 1.0, (count, 1))

    def keep(self, which: NDArray[np.bool_]) -> None:
        """Go on with some of them."""
        for name in (
            "S", "linear", "box", "alpha", "value", "rho", "h", "length", "p", "u", "yu",
        ):  # fmt: skip
            setattr(self, name, getattr(self, name)[which])

    def release(self) -> None:
        """Press no more."""
        for part in (self.S, self.h, self.length, self.p, self.u):
            part.fill(0.0)

    def advance(self, steps: int) -> FloatArray:
        """So many steps; theta after them."""
        T, rho = self.press.T, self.press.rho
        for _ in range(steps):
            wanted = self.yu * rho
            wanted += self.alpha
            right = self.linear + wanted @ T
            right += (self.p + self.rho * self.u)[:, None] * self.S
            theta = cho_solve(self.press.factor, right.T, check_finite=False).T
            along = np.einsum("ij,ij->i", self.S, theta)
            theta -= self.h * (self.rho * along / (1.0 + self.rho * self.length))[:, None]
            along = np.einsum("ij,ij->i", self.S, theta)
            pressed = np.maximum(0.0, self.p - self.rho * along)
            self.u, self.p = along + (pressed - self.p) / self.rho, pressed
            q = theta @ T.T
            q *= RELAXED
            q += (1.0 - RELAXED) * self.yu
            alpha = self.alpha + rho * (1.0 - q)
            np.clip(alpha, 0.0, self.box, out=alpha)
            self.yu = q + (alpha - self.alpha) / rho
            self.alpha = alpha
        return np.asarray(theta)

    def gap(self) -> FloatArray:
        """G, from above; what rounding leaves of the sum is charged as the judge does."""
        press = self.press
        problem, w, b = press.problem, press.theta[:-1], float(press.theta[-1])
        alpha = self._balanced() if problem.fit_intercept else self.alpha
        v = self.linear + alpha @ press.T + self.p[:, None] * self.S
        off = np.abs(v[:, -1]) if problem.fit_intercept else np.zeros(len(v))
        added = (alpha.sum(axis=1) + self.p) * press.widest + press.added
        apart = np.linalg.norm(w - v[:, :-1], axis=1) + off * press.widest + ROUNDOFF * added
        brackets = self.box @ np.maximum(-press.r, 0.0) + alpha @ press.r
        size = self.box @ np.abs(press.r)
        slack = off * (2.0 + abs(b) + float(np.linalg.norm(w)) * press.widest)
        slack += ROUNDOFF * len(press.r) * size
        right = self.p * (self.value - tolerances.TIE)
        return np.asarray(0.5 * apart**2 + brackets + slack - (1.0 - 1e-9) * right)

    def _balanced(self) -> FloatArray:
        """alpha with the sum that it must have: what it lacks goes to the rows on the margin."""
        y, near = self.press.problem.y, self.press.rho >= np.median(self.press.rho)
        lack = -(self.linear[:, -1] + self.alpha @ y + self.p * self.S[:, -1])
        room = np.where(lack[:, None] * y > 0, self.box - self.alpha, -self.alpha) * near
        total = room @ y
        share = np.divide(lack, total, out=np.zeros_like(lack), where=total != 0.0)
        return self.alpha + np.clip(share, 0.0, 1.0)[:, None] * room
