"""What removing one row can change at most, from the full-data solution alone.

Let c be the full-data solution, c' the one without row j, and f, f' their functions.

*The function.*  Choose w between 0 and c' - c, coordinate by coordinate (row j aside), with
sum w = c_j: it takes up the weight that row j gives up.  Then c + w without row j is feasible for
the smaller problem and c' - w with row j for the larger one.  Adding the two optimality conditions
gives ||f' - f||^2 <= <f' - f, v> with v = sum_i w_i phi_i - c_j phi_j, that is

    ||f' - f|| <= ||v|| <= |c_j| max_i ||phi_i - phi_j||.

Without an intercept nothing needs to be taken up: ||f' - f|| <= |c_j| ||phi_j||.

*The left-out value.*  Monotonicity of the subgradients gives  c_j (u_j - u'_j) >= ||f' - f||^2:
a row moves away from its own side, never towards it.  This holds for every optimal intercept.

*The intercept.*  b' minimises sum_{i != j} C_i L_i(h'_i + b), where no h'_i is further than
delta = max_i |h'_i - h_i| from h_i.  With h' = h the minimisers are found by walking: b falls (for
c_j > 0) until the rows whose knots it passes have taken up c_j.  With h' instead of h they are
within delta of that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .. import tolerances
from ..folds import IntArray
from ..losses import FloatArray
from ..problem import Problem
from .path import StateArray

__all__ = ["Reach", "Span", "walk"]


@dataclass(frozen=True)
class Span:
    """How far feature vectors are apart: all that the bounds need of K."""

    norm: FloatArray  # ||phi_j||
    farthest: FloatArray  # at least max_i ||phi_i - phi_j||; with no intercept ||phi_j||

    @classmethod
    def of(cls, problem: Problem) -> Span:
        diagonal = np.maximum(problem.diagonal, 0.0)
        norm = np.sqrt(diagonal)
        if not problem.fit_intercept:
            return cls(norm, norm)
        squared = diagonal + diagonal.max() - 2.0 * problem.K.min(axis=1)
        return cls(norm, np.sqrt(np.maximum(squared, 0.0)))


@dataclass(frozen=True)
class Reach:
    """For rows j that are left out: where u'_j lies, and what other rows may experience."""

    low: FloatArray  # u'_j >= low
    high: FloatArray  # u'_j <= high
    fall: float  # no other row's u falls by more than this
    rise: float  # or rises by more


def walk(
    problem: Problem,
    state: StateArray,
    levels: FloatArray,
    coef: FloatArray,
    u: FloatArray,
    target: FloatArray,
    sign: float,
) -> tuple[FloatArray, FloatArray]:
    """How far b must move, at least and at most, for others to take up each target weight.

    ``sign`` is +1 when coefficients must rise (b falls), -1 when they must fall (b rises).
    """
    knots, m = problem.loss.knots, problem.loss.n_knots
    rows = np.arange(problem.n)
    at_knot = (state >= 0) & (state % 2 == 1)
    segment = state // 2
    if sign > 0:  # u falls to the knot on the left, c rises to the level left of it
        knot = np.where(at_knot, segment, segment - 1)
        usable = (state >= 0) & (knot >= 0)
        after = knot
    else:
        knot = segment
        usable = (state >= 0) & (knot < m)
        after = knot + 1
    rows, knot, after = rows[usable], knot[usable], after[usable]
    distance = np.where(at_knot[rows], 0.0, sign * (u[rows] - knots[rows, knot]))
    room = sign * (levels[rows, after] - coef[rows])
    order = np.argsort(distance, kind="stable")
    distance = np.append(np.maximum(distance[order], 0.0), np.inf)
    taken = np.cumsum(room[order])
    slack = 1e-9 * target
    least = distance[np.searchsorted(taken, target - slack, side="left")]
    most = distance[np.searchsorted(taken, target + slack, side="right")]
    return least, most


def reach(
    problem: Problem,
    span: Span,
    state: StateArray,
    levels: FloatArray,
    coef: FloatArray,
    u: FloatArray,
    who: IntArray,
) -> Reach:
    """Bounds for leaving out each of the rows ``who`` (all with a coefficient)."""
    size = np.abs(coef[who])
    shift = size * span.farthest[who]
    own, others = shift * span.norm[who], shift * span.norm.max()
    up = coef[who] > 0
    least, most = np.zeros(len(who)), np.zeros(len(who))
    if problem.fit_intercept:
        for sign, mine in ((1.0, up), (-1.0, ~up)):
            if mine.any():
                # A row at a knot is among those that could take weight up: not from itself.
                rows = who[mine]
                top = np.where(sign > 0, levels[rows, state[rows] // 2], 0.0)
                bottom = levels[rows, np.minimum(state[rows] // 2 + 1, problem.loss.n_knots)]
                room = np.where(sign > 0, top - coef[rows], coef[rows] - bottom)
                room = np.where(state[rows] % 2 == 1, room, 0.0)
                least[mine], most[mine] = walk(
                    problem, state, levels, coef, u, size[mine] + room, sign
                )
    else:
        others = own
    wander = others if problem.fit_intercept else np.zeros(len(who))
    # In terms of a row with c_j > 0, whose u falls:
    side = np.where(up, 1.0, -1.0)
    value = side * u[who]
    upper = np.minimum(value, value + own - least + wander)
    lower = value - own - most - wander
    low, high = np.where(up, lower, -upper), np.where(up, upper, -lower)
    margin = 1e-12 * np.maximum(1.0, np.abs(u[who]))
    fall = float(np.max(others + wander + np.where(up, most, 0.0)))
    rise = float(np.max(others + wander + np.where(up, 0.0, most)))
    return Reach(low - margin, high + margin, fall, rise)


def labels_proved(
    y: FloatArray, bounds: Reach, who: IntArray
) -> tuple[np.ndarray, np.ndarray]:
    """Which left-out labels follow from the bounds: (certainly wrong, certainly right)."""
    worst = np.where(y[who] > 0, bounds.low, -bounds.high)
    best = np.where(y[who] > 0, bounds.high, -bounds.low)
    return best <= tolerances.TIE, worst > tolerances.TIE
