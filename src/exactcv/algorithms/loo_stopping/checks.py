"""Which left-out labels follow from the full-data solution (the paper's Table 1).

Let c, b be the full-data solution, u = K c + b, and c', u' the same without row r.

1. c_r = 0.  The solution without row r has the same coefficients.  It has the same intercept too,
   unless no coefficient is strictly inside its box and row r limits the interval from which the
   intercept is taken; then the coefficients are known and the intercept is not.
2. y_r u_r <= 0: a row that is wrong stays wrong, since c_r (u_r - u'_r) >= ||f' - f||^2 for every
   optimal intercept (monotonicity of the subgradients).
3. y_r u_r > |c_r| D_r^2 + w_r,  D_r = max_i ||phi_i - phi_r||: a row that is right by that much
   stays right.  w_r is how far the intercept walks until the other rows, those inside their boxes
   first and then those that it passes, have taken up c_r (``engine/bounds.py``, where the proof
   is).

The paper (2 alpha_r R^2 + xi_r < 1 with R^2 >= k(x, x) - k(x, x'), so D_r^2 <= 2 R^2) has w_r = 0
and asks only that one coefficient is strictly inside.  That is not enough: nine rows against eight
and a tiny C have the intercept at 1 and one unit of room among the nine; leave out one of them that
is at its bound and no coefficient is inside any more, the intercept jumps to 0, and the label may
turn.  Where the rows inside have room for c_r the walk is empty, and the two agree.

Without an intercept nothing needs to be taken up: |u'_r - u_r| <= |c_r| K_rr.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import tolerances
from ...engine.bounds import Span, labels_proved, reach
from ...engine.path import StateArray, place
from ...problem.problem import Problem
from ...types import FloatArray, IntArray

__all__ = ["Verdicts", "reaches", "sufficiency"]

# Rows of K looked at together.
PANEL_ROWS = 256


@dataclass(frozen=True)
class Verdicts:
    """What the checks say of each row; a row that none of them settles is in no mask."""

    unchanged: NDArray[np.bool_]  # check 1
    moves_intercept: NDArray[np.bool_]  # check 1, but only the coefficients stay
    wrong: NDArray[np.bool_]  # check 2
    right: NDArray[np.bool_]  # check 3

    def unsettled(self) -> NDArray[np.bool_]:
        return ~(self.unchanged | self.moves_intercept | self.wrong | self.right)


def reaches(problem: Problem) -> FloatArray:
    """How far leaving row r out can move u_r, for each unit of |c_r|: D_r^2, or K_rr."""
    square = np.maximum(problem.diagonal, 0.0)
    if not problem.fit_intercept:
        return square
    used = np.flatnonzero(problem.weight > 0)
    out = np.empty(problem.n)
    for start in range(0, problem.n, PANEL_ROWS):
        panel = problem.K[start : start + PANEL_ROWS][:, used]
        out[start : start + PANEL_ROWS] = (square[used] - 2.0 * panel).max(axis=1)
    return np.maximum(out + square, 0.0)


def sufficiency(
    problem: Problem,
    coef: FloatArray,
    u: FloatArray,
    box: tuple[FloatArray, FloatArray],
    distances: FloatArray,
    accuracy: float,
) -> Verdicts:
    """Apply the three checks to every row.

    Parameters
    ----------
    problem : Problem
    coef, u : ndarray of shape (n,)
        The full-data solution and its decision values.
    box : (lower, upper)
        Between which the coefficients lie.
    distances : ndarray of shape (n,)
        See `reaches`.
    accuracy : float
        How far u may be from the optimum's; labels are proved with that much to spare.

    Examples
    --------
    >>> import numpy as np
    >>> from exactcv.problem.losses import hinge
    >>> y = np.array([1.0, 1.0, -1.0, -1.0])
    >>> x = np.array([3.0, 1.0, -1.0, 1.5])
    >>> problem = Problem(np.outer(x, x), y, np.ones(4), hinge(y), fit_intercept=False)
    >>> coef = np.array([0.0, 0.1, -0.1, -0.1])  # at the bounds for C = 0.1
    >>> box = np.array([0, 0, -0.1, -0.1]), np.array([0.1, 0.1, 0, 0])
    >>> verdicts = sufficiency(problem, coef, 0.05 * x, box, reaches(problem), 1e-9)
    >>> verdicts.unchanged, verdicts.wrong
    (array([ True, False, False, False]), array([False, False, False,  True]))
    """
    lower, upper = box
    near = tolerances.AT_BOUND * (upper - lower)
    inside = (coef > lower + near) & (coef < upper - near)
    without = coef == 0.0
    limiting = np.zeros(problem.n, dtype=bool)
    if problem.fit_intercept and not inside.any():
        limiting[_limiting_rows(problem, coef, u, box)] = True
    value = problem.y * u
    return Verdicts(
        unchanged=without & ~limiting,
        moves_intercept=without & limiting,
        wrong=~without & (value <= -accuracy),
        right=~without & _stay_right(problem, coef, u, box, distances, accuracy),
    )


def _stay_right(
    problem: Problem,
    coef: FloatArray,
    u: FloatArray,
    box: tuple[FloatArray, FloatArray],
    distances: FloatArray,
    accuracy: float,
) -> NDArray[np.bool_]:
    """Check 3."""
    levels = np.column_stack([box[1], box[0]])
    full = _Placed(place(levels, problem, coef), coef, u, levels)
    who = np.flatnonzero((coef != 0.0) & (problem.y * u > 0.0))
    right = np.zeros(problem.n, dtype=bool)
    span = Span(distances, distances)
    right[who] = labels_proved(
        problem.y[who], reach(problem, span, full, who, coef[who], accuracy)
    )[1]
    return right


@dataclass(frozen=True)
class _Placed:
    """The full-data solution as the bounds want it."""

    state: StateArray
    coef: FloatArray
    u: FloatArray
    levels: FloatArray


def _limiting_rows(
    problem: Problem, coef: FloatArray, u: FloatArray, box: tuple[FloatArray, FloatArray]
) -> IntArray:
    """No coefficient is inside: the rows at the two ends of the interval for the intercept.

    A row that could grow (c < upper) lies right of its knot and meets it when b falls; one that
    could shrink meets it when b rises.
    """
    lower, upper = box
    used = upper > lower
    middle = 0.5 * (lower + upper)
    distance = u - problem.loss.knots[:, 0]
    falling = np.where(used & (coef < middle), distance, np.inf)
    rising = np.where(used & (coef > middle), -distance, np.inf)
    return np.array([np.argmin(falling), np.argmin(rising)])
