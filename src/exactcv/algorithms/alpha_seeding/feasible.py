"""Every seed meets the constraints exactly:  lower <= c <= upper  and  sum c = 0  to rounding.

The paper "uniformly" moves all y_t alpha_t of a set until the sum is right, each as far as its
bound: in signed coefficients, c_t becomes clip(c_t + s) for one number s.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._core import _seeding
from ...types import FloatArray, IntArray

__all__ = ["repair", "shift"]


def shift(c: FloatArray, lower: FloatArray, upper: FloatArray, total: float) -> FloatArray:
    """clip(c + s, lower, upper) for the s that makes the sum ``total``, or as near as it can be.

    c lies between its bounds.

    Examples
    --------
    >>> import numpy as np
    >>> shift(np.array([0.0, 0.5, 0.9]), np.zeros(3), np.ones(3), 2.0)
    array([0.25, 0.75, 1.  ])
    """
    moved = c.copy()
    _seeding.shift(moved, lower, upper, np.arange(len(c)), total - float(c.sum()))
    return moved


def repair(
    c: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    *groups: Callable[[], IntArray],
    fit_intercept: bool = True,
) -> FloatArray:
    """A feasible point near ``c``: clipped, then shifted, group after group.

    Parameters
    ----------
    c : ndarray of shape (n,)
    lower, upper : ndarray of shape (n,)
        lower <= 0 <= upper.
    *groups : callable
        Each gives the rows that are to make up for what the sum lacks, the preferred ones first;
        asked for only if it still lacks something.  The last must be the training set, which
        always can; without any it is all rows.
    fit_intercept : bool
        Without an intercept there is no sum to meet.

    Returns
    -------
    ndarray
        Within the bounds exactly; its sum is zero to rounding.

    Examples
    --------
    >>> import numpy as np
    >>> c = repair(np.array([2.0, 0.2, -0.5]), np.array([0, 0, -1.0]), np.array([1.0, 1, 0]))
    >>> c.round(6), bool(abs(c.sum()) < 1e-15)
    (array([ 0.75,  0.  , -0.75]), True)
    """
    seed = np.minimum(np.maximum(c, lower), upper)
    if not fit_intercept:
        return seed
    lack = -float(seed.sum())
    if lack == 0.0:
        return seed
    rounding = _seeding.ROUNDING * float(np.abs(seed).sum())
    for rows in groups or (lambda: np.arange(len(c)),):
        if abs(lack) <= rounding:
            break
        _seeding.shift(seed, lower, upper, rows(), lack)
        lack = -float(seed.sum())
    # What rounding has left goes to the coefficient with the most room on both sides.
    room = np.minimum(seed - lower, upper - seed)
    i = int(room.argmax())
    if abs(lack) < room[i]:
        seed[i] += lack
    return seed
