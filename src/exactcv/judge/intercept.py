"""The one rule that picks the intercept.

With f fixed, the optimal intercepts form an interval.  A row whose coefficient is strictly between
two levels must lie on the knot between them, h_i + b = t_k; a row at a level must lie on that
level's segment, t_k <= h_i + b <= t_{k+1}.  So

    b  in  [max_i (left end of i - h_i),  min_i (right end of i - h_i)].

The rule is the midpoint, as in LIBSVM.  If any coefficient is strictly inside, the interval is a
point up to rounding, and its midpoint is the b with the least violation.  If one side has no limit
(all training rows of one class), the rule is the end that exists.

A coefficient counts as being at a level if it is there but for `closeness` (a small share of its
box, and no more than would move any decision value by as little) and the rounding of the level.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from .._core.reference.residuals import Scale
from ..problem.losses import PiecewiseLinear
from ..types import FloatArray

__all__ = ["BLURRED", "DOUBT", "canonical_intercept", "closeness", "doubt", "intercept_limits"]

# What is called a bound is in doubt from this many roundings of sum |c| to so many times AT_BOUND.
BALANCE, DOUBT = 32.0, 100.0
# One that is inside by this share of the widest box has the last word on b: what contradicts it
# shows in the figures.
CLEAR = 1e-4
# The rounding of a level, relative to it: 64 times 1.1e-16.
BLURRED = 7.1e-15


def closeness(levels: FloatArray, diagonal: FloatArray, unit: float = 1.0) -> FloatArray:
    """How close to a level a coefficient is taken to be there, row by row (`Scale.closeness`).

    Examples
    --------
    >>> import numpy as np
    >>> closeness(np.array([[0.5, 0.0], [1e12, 0.0]]), np.ones(2))
    array([5.e-10, 1.e-09])
    """
    return Scale.of(diagonal, unit).closeness(levels)


def intercept_limits(
    h: FloatArray,
    coef: FloatArray,
    levels: FloatArray,
    loss: PiecewiseLinear,
    train: NDArray[np.bool_] | NDArray[np.intp],
    near: FloatArray | None = None,
) -> tuple[float, float]:
    """The ends (low, high) of the interval; low > high by rounding if it is a point.

    Parameters
    ----------
    h : ndarray of shape (n,)
        K coef, the decision values without intercept.
    coef : ndarray of shape (n,)
        Signed dual coefficients.
    levels : ndarray of shape (n, m + 1)
        ``loss.coefficient_levels(C)``.
    loss : PiecewiseLinear
    train : ndarray
        Mask or indices of the rows that take part (those with C_i > 0 and not left out).
    near : ndarray of shape (n,), optional
        See `closeness`; if not given, by the share of the box alone.
    """
    h, c, levels = h[train], coef[train], levels[train]
    near = tolerances.AT_BOUND * (levels[:, 0] - levels[:, -1]) if near is None else near[train]
    # Knot k limits b from below if c has left level k - 1 for good, from above if not yet level k.
    near_levels = near[:, None] + BLURRED * np.abs(levels)
    left_behind = c[:, None] < (levels - near_levels)[:, :-1]
    ahead = c[:, None] > (levels + near_levels)[:, 1:]
    room = loss.knots[train] - h[:, None]
    low = np.where(left_behind, room, -np.inf).max(initial=-np.inf)
    high = np.where(ahead, room, np.inf).min(initial=np.inf)
    return float(low), float(high)


def canonical_intercept(
    h: FloatArray,
    coef: FloatArray,
    levels: FloatArray,
    loss: PiecewiseLinear,
    train: NDArray[np.bool_] | NDArray[np.intp],
    near: FloatArray | None = None,
) -> float:
    """The midpoint of the optimal intercepts; parameters as in `intercept_limits`.

    Examples
    --------
    >>> import numpy as np
    >>> from exactcv.problem.losses import hinge
    >>> y = np.array([1.0, 1.0, -1.0])
    >>> levels = hinge(y).coefficient_levels(np.ones(3))
    >>> canonical_intercept(np.zeros(3), np.array([0.5, 0.5, -1.0]), levels, hinge(y), np.arange(3))
    1.0
    """
    return _middle(*intercept_limits(h, coef, levels, loss, train, near))


def _middle(low: float, high: float) -> float:
    if not np.isfinite(low):
        return high if np.isfinite(high) else 0.0
    return 0.5 * (low + high) if np.isfinite(high) else low


def doubt(
    h: FloatArray,
    coef: FloatArray,
    intercept: float,
    levels: FloatArray,
    loss: PiecewiseLinear,
    train: NDArray[np.bool_],
    near: FloatArray,
) -> float:
    """How far b may be from what the rule picks, though all conditions hold to a tolerance.

    A coefficient clearly inside its box leaves no choice.  One that is inside by no more than CLEAR
    may have been put there by others that are as far inside (the sum is 0) and say otherwise, at
    next to no cost: they must agree with b.  Where there is none, a coefficient that is not quite
    at a bound decides whether b is a point or an interval.  It is in doubt from what rounding does
    to sum c (that of the largest coefficients, which may be more than the whole box of a light row)
    to a multiple of its `closeness`: the rule must pick the same b either way, and where two of
    them would leave no b at all, none is certain.  And if the sum itself misses by more than
    rounding, or the whole of some row is no more than rounding, others have yet to take that up,
    light rows with their whole box perhaps, and b is anywhere in the interval.
    """
    blur = BALANCE * 0.5 * np.finfo(float).eps * float(np.abs(coef).sum())
    kept = np.clip(coef, levels[:, -1], levels[:, 0])
    off = abs(float(kept[train].sum()))
    inside = np.minimum(kept - levels[:, -1], levels[:, 0] - kept)[train].max(initial=0.0)
    widest = float((levels[:, 0] - levels[:, -1])[train].max(initial=0.0))
    if inside > DOUBT * tolerances.AT_BOUND * widest + blur + off:
        if inside > CLEAR * widest:
            return 0.0
        low, high = intercept_limits(h, coef, levels, loss, train, np.full(len(h), inside / len(h)))
        return max(low - intercept, intercept - high, 0.0)
    strict = intercept_limits(h, coef, levels, loss, train, np.full(len(h), blur))
    slack = off if off <= CLEAR * float(np.abs(coef).sum()) else 0.0  # else the figures show it
    lax = intercept_limits(h, coef, levels, loss, train, near * DOUBT + blur + slack)
    lightest = float((levels[:, 0] - levels[:, -1])[train].min(initial=np.inf))
    if off > blur or lightest <= blur:
        return max(abs(end - intercept) for end in lax)
    return max(_from_middle(*ends, intercept) for ends in (strict, lax))


def _from_middle(low: float, high: float, intercept: float) -> float:
    """How far b is from what the rule picks, or where no b will do, from the farther end."""
    if low > high:
        return max(abs(low - intercept), abs(high - intercept))
    return abs(_middle(low, high) - intercept)
