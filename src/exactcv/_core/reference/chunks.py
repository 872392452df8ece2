"""The compiled loops of ``_chunks.pyx`` once more, in plain NumPy, for the tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...types import FloatArray, IntArray

__all__ = ["held_sums", "near_rows", "settled"]

Flags = NDArray[np.uint8]


def _slope(u: FloatArray, knots: FloatArray, slopes: FloatArray) -> FloatArray:
    passed = (u[:, :, None] > knots[:, None]).sum(axis=2)
    return np.take_along_axis(slopes, passed, axis=1)


def near_rows(
    u: FloatArray,
    knots: FloatArray,
    up: Flags,
    weight: FloatArray,
    width: FloatArray,
    key: FloatArray,
    rate: FloatArray,
    near: Flags,
    mass: FloatArray,
) -> None:
    """See ``_chunks.near_rows``."""
    distance = np.abs(u[:, :, None] - knots[:, None]).min(axis=2)
    found = (distance <= width.T[up.astype(int)]) & (weight > 0)
    weights = np.where(found, weight, 0.0)
    mass += np.column_stack([weights[up == side].sum(axis=0) for side in (0, 1)])
    near[:] = found & (key[:, None] < rate)


def held_sums(
    u: FloatArray,
    knots: FloatArray,
    slopes: FloatArray,
    weight: FloatArray,
    aside: Flags,
    length: FloatArray,
    held: FloatArray,
    sums: FloatArray,
    bound: IntArray,
) -> None:
    """See ``_chunks.held_sums``."""
    box = np.where(aside, 0.0, weight)
    held[:] = -box * _slope(u, knots, slopes)

    def value(at: FloatArray) -> FloatArray:
        """Up to a constant: the leftmost line, plus a bend at each knot passed."""
        bends = np.diff(slopes, axis=1)[:, None] * np.maximum(at[:, :, None] - knots[:, None], 0.0)
        return np.asarray(slopes[:, :1] * (at - knots[:, :1]) + bends.sum(axis=2))

    loss = value(u) - value(knots).min(axis=1, keepdims=True)
    size = np.abs(held)
    sums += [held.sum(axis=0), size.sum(axis=0), length @ size, (box * loss).sum(axis=0)]
    bound += np.count_nonzero(held, axis=0)


def settled(
    u: FloatArray,
    y: FloatArray,
    knots: FloatArray,
    slopes: FloatArray,
    weight: FloatArray,
    own: FloatArray,
    C: FloatArray,
    least: FloatArray,
    most: FloatArray,
    slack: FloatArray,
    tie: float,
    wrong: Flags,
    still_open: Flags,
    kept: Flags,
) -> None:
    """See ``_chunks.settled``."""
    same = (_slope(u, knots, slopes) == 0.0) | (weight <= 0)[:, None]
    value, side, moves = u * y[:, None], (y > 0).astype(np.intp), own[:, None] * C
    bad = value <= tie - slack
    bad |= value - least.T[side] <= tie - slack - moves
    good = value - most.T[side] > tie + slack + moves
    kept[:] = same
    wrong[:] = np.where(same, ~(value > tie), bad)
    still_open[:] = ~(same | bad | good)
