"""Leaving several rows out at once, in plain NumPy: see ``_core/_leave_several.pyx``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...types import FloatArray, IntArray

__all__ = ["leave_several"]

MOST_ROUNDS = 30
SLACK = 1e-12


def leave_several(
    table: FloatArray,
    k: int,
    u: FloatArray,
    c: FloatArray,
    state: NDArray[np.int8],
    knots: FloatArray,
    levels: FloatArray,
    tol: float,
    own: IntArray,
) -> tuple[FloatArray, FloatArray] | None:
    """Coefficients and values without the rows ``own``; None if rounds do not end.

    The first k rows are those at a knot; row i of ``table`` says what moves (c of those, u of the
    others) when u of row i (or c, for the others) rises by one.

    Examples
    --------
    >>> K, y = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, -1.0])
    >>> c = np.linalg.solve(K, y)  # both rows at their knots, without an intercept
    >>> levels, state = np.array([[9.0, 0.0], [0.0, -9.0]]), np.array([1, 1], dtype=np.int8)
    >>> gone = np.array([0])
    >>> leave_several(np.linalg.inv(K), 2, y, c, state, y[:, None], levels, 1e-12, gone)
    (array([ 0., -1.]), array([-0.5, -1. ]))
    """
    a, free = len(table), np.arange(len(table)) < k
    now = state.copy()
    others = ~np.isin(np.arange(a), own)
    for _ in range(MOST_ROUNDS):
        # What is known of each row: c if it is on a segment or left out, u if it is at a knot.
        at_knot = (now % 2 == 1) & others
        segment = now // 2
        rows = np.arange(a)
        level = np.where(others, levels[rows, segment], 0.0)
        knot = knots[rows, np.minimum(segment, knots.shape[1] - 1)]
        # In the table's terms the cause is u for the first k rows and c for the others.
        cause = np.where(free, knot - u, level - c)
        effect = np.where(free, level - c, knot - u)
        unknown = np.flatnonzero(at_knot != free)
        cause[unknown] = 0.0
        right = effect[unknown] - (cause @ table)[unknown]
        try:
            cause[unknown] = np.linalg.solve(table[np.ix_(unknown, unknown)].T, right)
        except np.linalg.LinAlgError:
            return None
        moved = cause @ table
        new_c, new_u = c + np.where(free, moved, cause), u + np.where(free, cause, moved)
        lower = np.minimum(segment + 1, levels.shape[1] - 1)
        high, low = levels[rows, segment], levels[rows, lower]
        slack = SLACK * (high - low)
        left = np.where(segment > 0, knots[rows, np.maximum(segment - 1, 0)], -np.inf)
        right_end = np.where(segment < knots.shape[1], knot, np.inf)
        up = np.where(at_knot, new_c < low - slack, new_u > right_end + tol)
        down = np.where(at_knot, new_c > high + slack, new_u < left - tol)
        step = (up.astype(np.int8) - down.astype(np.int8)) * others
        if not step.any():
            new_c = np.where(at_knot, np.clip(new_c, low, high), level)
            return new_c, new_u
        now = (now + step).astype(np.int8)
    return None
