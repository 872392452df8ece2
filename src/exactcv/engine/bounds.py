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

*The intercept.*  b' minimises sum_{i != j} C_i L_i(h'_i + b), so it is a weighted quantile of the
values t_i - h'_i at which a row i meets a knot t_i.  With h instead of h' the quantile is found by
walking: b falls (for c_j > 0) until the rows whose knots it passes have taken up c_j.  For any row
k, h'_k + b' is the same quantile of  h'_k + t_i - h'_i, and each of these differs from what it is
with h by  <f' - f, phi_k - phi_i>.  A quantile moves no more than its entries, so u'_k lies within
|c_j| max_i ||phi_i - phi_j|| max_i ||phi_k - phi_i|| of where the walk puts it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from .._core._bounds import walk
from ..problem.problem import Problem
from ..types import FloatArray, IntArray
from .path import StateArray

__all__ = ["Reach", "Span", "labels_proved", "reach"]


@dataclass(frozen=True)
class Span:
    """How far feature vectors are apart: all that the bounds need of K.

    Per unit of |c_j|: ``own`` bounds what the move of f and b, the walk aside, does to row j
    itself, ``others`` what it does to any row.
    """

    own: FloatArray
    others: FloatArray

    @classmethod
    def of(cls, problem: Problem) -> Span:
        square = np.maximum(problem.diagonal, 0.0)
        if problem.fit_intercept:  # distances to the farthest row, from above
            square = np.maximum(square + square.max() - 2.0 * problem.K.min(axis=1), 0.0)
        return cls(square, np.sqrt(square * square.max()))


class Rows(Protocol):
    """What the bounds need of a problem, besides a `Span`."""

    @property
    def loss(self) -> Any: ...
    @property
    def fit_intercept(self) -> bool: ...


class Solution(Protocol):
    """What the bounds need of a full-data solution."""

    @property
    def state(self) -> StateArray: ...
    @property
    def coef(self) -> FloatArray: ...
    @property
    def u(self) -> FloatArray: ...
    @property
    def levels(self) -> FloatArray: ...


@dataclass(frozen=True)
class Reach:
    """For rows j that are left out, entry by entry: where u'_j lies, and what others experience.

    low, high : u'_j lies between them.
    up : c_j > 0, so that u'_j <= u_j and b falls; else the other way.
    drift, walked : no other row's u moves by more than drift + walked in the direction of b, and
        by more than drift against it.
    """

    low: FloatArray
    high: FloatArray
    up: NDArray[np.bool_]
    drift: FloatArray
    walked: FloatArray

    def farthest(self, mine: NDArray[np.bool_]) -> tuple[float, float]:
        """How far any other row's u can fall and rise when one of ``mine`` is left out."""
        drift, walked, up = self.drift[mine], self.walked[mine], self.up[mine]
        fall = np.max(drift + np.where(up, walked, 0.0))
        rise = np.max(drift + np.where(up, 0.0, walked))
        return float(fall), float(rise)


def reach(
    problem: Rows,
    span: Span,
    full: Solution,
    who: IntArray,
    taken: FloatArray,
    slack: float | FloatArray = 0.0,
) -> Reach:
    """Bounds for taking ``taken`` away from the coefficients of each of the rows ``who``.

    ``slack`` is how far the u at hand may be from those of the exact solution.  Several solutions
    with the same states may be asked of at once, one in each row of ``full.coef`` and so on.
    """
    size, up = np.abs(taken), taken > 0
    own, others = size * span.own[who], size * span.others[who]
    least, most = np.zeros(taken.shape), np.zeros(taken.shape)
    if problem.fit_intercept:
        # Rounding in the coefficients, so that the walk does not stop a row too early or too late.
        width = (full.levels[..., 0] - full.levels[..., -1]).sum(axis=-1)
        margin = (slack + tolerances.AT_BOUND) * width
        _walk(problem, full, who, taken, margin, least, most)
    # In terms of a row with c_j > 0, whose u falls:
    side = np.where(up, 1.0, -1.0)
    value = side * full.u[..., who]
    slack = (slack + 1e-12 * np.maximum(1.0, np.abs(full.u).max(axis=-1)))[..., None]
    upper = np.minimum(value, value - least + own) + slack
    lower = value - most - own - slack
    low, high = np.where(up, lower, -upper), np.where(up, upper, -lower)
    # The sign of a coefficient that may as well be zero says nothing, and b may go either way.
    width = full.levels[..., who, 0] - full.levels[..., who, -1]
    unsure = size <= tolerances.AT_BOUND * width
    low[unsure], high[unsure], others[unsure] = -np.inf, np.inf, np.inf
    return Reach(low, high, up, others, most)


def _walk(
    problem: Rows,
    full: Solution,
    who: IntArray,
    taken: FloatArray,
    margin: FloatArray,
    least: FloatArray,
    most: FloatArray,
) -> None:
    """``_bounds.walk`` for one solution, or for each of several."""
    knots, each = problem.loss.knots, (full.levels, full.coef, full.u, taken, margin, least, most)
    for levels, coef, u, out, by, first, last in (
        zip(*each, strict=True) if taken.ndim > 1 else [each]
    ):
        walk(knots, levels, full.state, coef, u, who, out, by, first, last)


def labels_proved(y: FloatArray, bounds: Reach) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which left-out labels follow from the bounds: (certainly wrong, certainly right)."""
    worst = np.where(y > 0, bounds.low, -bounds.high)
    best = np.where(y > 0, bounds.high, -bounds.low)
    return best <= tolerances.TIE, worst > tolerances.TIE
