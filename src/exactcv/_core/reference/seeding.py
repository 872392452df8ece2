"""The compiled loops of ``_seeding.pyx`` once more, in plain NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...types import FloatArray, IntArray

__all__ = ["match", "shift", "sir"]


def match(
    similarity: FloatArray, giver_sign: FloatArray, taker_sign: FloatArray
) -> NDArray[np.intp]:
    """For each row of ``similarity`` the best column not yet taken and of its sign, or -1."""
    left = taker_sign != 0
    partner = np.full(len(giver_sign), -1, dtype=np.intp)
    for g, sign in enumerate(giver_sign):
        able = np.flatnonzero(left & (taker_sign * sign > 0))
        if len(able):
            partner[g] = able[np.argmax(similarity[g, able])]
            left[partner[g]] = False
    return partner


def shift(c: FloatArray, lower: FloatArray, upper: FloatArray, total: float) -> FloatArray:
    """clip(c + s, lower, upper) for the s that makes the sum ``total``, or as near as it can be.

    The sum grows with s, by pieces: its slope rises by one where a coefficient leaves its lower end
    (s = lower - c) and falls by one where it meets its upper end (s = upper - c).
    """
    if total <= lower.sum():
        return lower.copy()
    if total >= upper.sum():
        return upper.copy()
    breaks = np.concatenate([lower - c, upper - c])
    turns = np.repeat([1.0, -1.0], len(c))
    order = np.argsort(breaks, kind="stable")
    breaks, slopes = breaks[order], np.cumsum(turns[order])
    sums = lower.sum() + np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(breaks))])
    piece = int(np.searchsorted(sums, total, side="right")) - 1
    piece = min(max(piece, 0), len(breaks) - 1)
    slope = slopes[piece]
    s = breaks[piece] + ((total - sums[piece]) / slope if slope > 0 else 0.0)
    return np.clip(c + s, lower, upper)


def sir(
    K: FloatArray,
    coef: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    train: IntArray,
    removed: IntArray,
    added: IntArray,
    fit_intercept: bool = True,
) -> FloatArray:
    """The seed of single instance replacement, but for rounding."""
    seed = coef.copy()
    seed[removed] = 0.0
    givers = removed[coef[removed] != 0]
    partner = match(K[np.ix_(givers, added)], coef[givers], (lower + upper)[added])
    found = partner >= 0
    seed[added[partner[found]]] = coef[givers[found]]
    seed = np.clip(seed, lower, upper)
    shared = np.setdiff1d(train, added)
    inside = shared[(coef[shared] > lower[shared]) & (coef[shared] < upper[shared])]
    for rows in (added, inside, train) if fit_intercept else ():
        total = float(seed[rows].sum() - seed.sum())
        if len(rows):
            seed[rows] = shift(seed[rows], lower[rows], upper[rows], total)
    return seed
