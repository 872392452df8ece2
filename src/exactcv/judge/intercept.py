"""The one rule that picks the intercept.

With f fixed, the optimal intercepts form an interval.  A row whose coefficient is strictly between
two levels must lie on the knot between them, h_i + b = t_k; a row at a level must lie on that
level's segment, t_k <= h_i + b <= t_{k+1}.  So

    b  in  [max_i (left end of i - h_i),  min_i (right end of i - h_i)].

The rule is the midpoint, as in LIBSVM.  If any coefficient is strictly inside, the interval is a
point up to rounding, and its midpoint is the b with the least violation.  If one side has no limit
(all training rows of one class), the rule is the end that exists.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from ..problem.losses import PiecewiseLinear
from ..types import FloatArray

__all__ = ["canonical_intercept", "intercept_limits"]


def intercept_limits(
    h: FloatArray,
    coef: FloatArray,
    levels: FloatArray,
    loss: PiecewiseLinear,
    train: NDArray[np.bool_] | NDArray[np.intp],
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
    """
    h, c, levels = h[train], coef[train], levels[train]
    near = tolerances.AT_BOUND * (levels[:, 0] - levels[:, -1])
    # Knot k limits b from below if c has left level k - 1 for good, from above if not yet level k.
    left_behind = c[:, None] < (levels[:, :-1] - near[:, None])
    ahead = c[:, None] > (levels[:, 1:] + near[:, None])
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
    low, high = intercept_limits(h, coef, levels, loss, train)
    if not np.isfinite(low):
        return high if np.isfinite(high) else 0.0
    return 0.5 * (low + high) if np.isfinite(high) else low
