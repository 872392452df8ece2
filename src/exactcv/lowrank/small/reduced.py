"""Problems in m dimensions with rows in memory: all that the solver ever solves outright.

    min over w, b   1/2 ||w||^2 - a'w - beta b + sum_i B_i L_i(u_i),        u_i = z_i'w + b

with losses of knots and slopes (``problem/losses.py``).  The linear term stands for rows that are
not there: one with the coefficient c adds c z to a and c to beta (``lowrank/solver.py``).  The
optimality conditions: there are c_i with

    w = a + sum c_i z_i,   beta + sum c_i = 0,   -c_i / B_i a slope of L_i at u_i.

`Hinges` are what the steps in m dimensions work on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import tolerances
from ...judge.intercept import intercept_limits
from ...problem.losses import PiecewiseLinear
from ...types import BoolArray, FloatArray
from .hinges import Hinges, hinges_of

__all__ = [
    "Reduced",
    "Reply",
    "StateArray",
    "at_bound",
    "at_knot",
    "best_intercept",
    "spare",
    "strictly_inside",
    "without_rounding",
]

StateArray = NDArray[np.int8]

# Of a coefficient, in units of its box, that is the difference of others.
ROUNDING = 64 * float(np.finfo(float).eps)


@dataclass(frozen=True)
class Reduced:
    """The rows with their losses and the linear term; ``box`` is B."""

    Z: FloatArray
    loss: PiecewiseLinear
    box: FloatArray
    a: FloatArray
    beta: float
    fit_intercept: bool

    @property
    def n(self) -> int:
        return len(self.box)

    @property
    def y(self) -> FloatArray:
        """The labels, where the loss is the hinge: its knots."""
        return self.loss.knots[:, 0]

    @cached_property
    def hinges(self) -> Hinges:
        """The same problem, knot by knot."""
        return hinges_of(
            self.Z, self.loss, self.box, (self.a, self.beta), fit_intercept=self.fit_intercept
        )

    def only(self, kept: NDArray[Any], coef: FloatArray) -> Reduced:
        """The problem of some rows (numbers or a mask); the others keep these coefficients."""
        gone = coef != 0.0
        gone[kept] = False
        return Reduced(
            self.Z[kept],
            self.loss.at(kept),
            self.box[kept],
            self.a + coef[gone] @ self.Z[gone],
            self.beta + float(coef[gone].sum()),
            self.fit_intercept,
        )

    def values(self, theta: FloatArray) -> FloatArray:
        """u at theta = (w, b)."""
        return np.asarray(self.Z @ theta[:-1] + theta[-1])

    def held(self, u: FloatArray) -> FloatArray:
        """The coefficients that go with u where it is at no knot."""
        return -self.box * self.loss.slope(u) + 0.0

    def joined(self, coef: FloatArray, state: StateArray) -> tuple[FloatArray, StateArray]:
        """Coefficients and states of the rows, from those of all their hinges."""
        return self.hinges.lean + self.hinges.by_row(coef), self.hinges.places(state)


@dataclass(frozen=True)
class Reply:
    """A solution: theta = (w, b), and coefficient and state of each row (or hinge).

    The states of rows are the engine's: places from left to right in u, 0 left of the first knot, 1
    at it, 2 between it and the next, and so on.  Those of hinges are in ``hinges.py``.
    """

    theta: FloatArray
    coef: FloatArray
    state: StateArray
    solved: bool
    steps: int


def at_knot(state: StateArray) -> BoolArray:
    """Which rows are free; the engine calls -1 what takes no part."""
    return np.asarray((state > 0) & (state % 2 == 1))


def at_bound(problem: Reduced, coef: FloatArray) -> BoolArray:
    """Which coefficients go with the first or the last slope of their loss, and are not zero."""
    ends = np.abs(problem.loss.slopes[:, [0, -1]])
    box = problem.box * np.where(coef > 0, ends[:, 0], ends[:, 1])
    return np.asarray((np.abs(coef) >= box * (1.0 - tolerances.AT_BOUND)) & (box > 0))


def strictly_inside(problem: Reduced, coef: FloatArray) -> BoolArray:
    """Which coefficients are at no bound, but between two."""
    slack = tolerances.AT_BOUND * problem.box
    inside = problem.box > 0
    for level in problem.loss.coefficient_levels(problem.box).T:
        inside &= np.abs(coef - level) > slack
    return inside


def spare(problem: Reduced, coef: FloatArray, theta: FloatArray) -> float:
    """How far b may go to either side: with no coefficient strictly inside it has an interval.

    It is infinite where no row of the problem ends it.  Rows that are not in the problem may end it
    sooner, and then its midpoint is another.
    """
    if not problem.fit_intercept or strictly_inside(problem, coef).any():
        return 0.0
    b, levels = float(theta[-1]), problem.loss.coefficient_levels(problem.box)
    low, high = intercept_limits(
        problem.values(theta) - b, coef, levels, problem.loss, problem.box > 0
    )
    return max(high - b, b - low, 0.0)


def without_rounding(problem: Reduced, coef: FloatArray) -> FloatArray:
    """Coefficients that differ from those of a bound by rounding alone, made equal to them."""
    slack, out = ROUNDING * problem.box, coef
    for level in problem.loss.coefficient_levels(problem.box).T:
        if ((coef != level) & (np.abs(coef - level) <= slack)).any():
            out = np.where(np.abs(coef - level) <= slack, level, out)
    return out


def best_intercept(problem: Hinges, w: FloatArray) -> float:
    """The intercept that minimises the objective for this w; the midpoint of an interval.

    The slope in b is -beta - sum of B_i s_i over the low hinges.  It starts low far to the left,
    where the hinges with s = 1 are low, and rises by B_i at the b where hinge i has r_i = 0.
    Hinges without a box end no interval.
    """
    where = problem.knot - problem.along(w)
    order = np.argsort(where, kind="stable")
    order = order[problem.box[order] > 0]
    at, rise = where[order], problem.box[order]
    slope = -problem.beta - float(problem.box[problem.sign > 0].sum()) + np.cumsum(rise)
    if not len(at):
        return 0.0
    slack = 1e-12 * (abs(problem.beta) + float(problem.box.sum()))
    k = int(np.searchsorted(slope, -slack))  # the first knot after which it no longer falls
    if k >= len(at):
        return float(at[-1])
    if slope[k] <= slack and k + 1 < len(at):
        return float(0.5 * (at[k] + at[k + 1]))
    return float(at[k])
