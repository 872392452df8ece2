"""Which point of a grid is chosen."""

from __future__ import annotations

import numpy as np

from ..types import BoolArray, FloatArray

__all__ = ["EQUAL", "best_point", "smallest_within"]

# Scores that differ by less are equal: weights that are no integers add up with some rounding.
EQUAL = 12  # decimals


def best_point(
    loss: FloatArray, short: BoolArray, Cs: FloatArray, gammas: FloatArray
) -> tuple[int, int]:
    """(kernel, grid point) of the least loss, which is (kernels, L).

    Among equals the smallest C, then the smallest gamma.  Grid points with unresolved solutions
    (``short``) are passed over while there are others, and so is what is NaN.

    Examples
    --------
    >>> loss = np.array([[0.5, 0.1, 0.1], [0.5, 0.1, 0.2]])
    >>> best_point(loss, loss < 0, np.array([0.1, 1.0, 10.0]), np.array([2.0, 1.0]))
    (1, 1)
    """
    C = np.broadcast_to(Cs, loss.shape).ravel()
    gamma = np.repeat(gammas, loss.shape[1])
    ranked = np.where(np.isnan(loss), np.inf, np.round(loss, EQUAL))
    best = int(np.lexsort((gamma, C, ranked.ravel(), short.ravel()))[0])
    return divmod(best, loss.shape[1])


def smallest_within(
    error: FloatArray, short: BoolArray, Cs: FloatArray, best: int, se: float
) -> int:
    """The 1-SE rule: the smallest C whose error is within one standard error of the best."""
    within = (error <= error[best] + np.nan_to_num(se)) & (short == short[best])
    within[best] = True
    return int(np.argmin(np.where(within, Cs, np.inf)))
