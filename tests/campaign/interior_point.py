"""A judge that is not ours: a primal-dual interior point in double-double arithmetic.

    min over c   1/2 c' K c - t' c     subject to   lo <= c <= hi,   a' c = 0

(Mehrotra's predictor and corrector; the multiplier of the last condition is the intercept b).  It
shares no line with the library.  The path it follows ends in the middle of the set of solutions, so
that a coefficient which is inside its box in some solution is inside it here.

The problems of a stack have the same number of rows; a row with box [-1, 1], t = 0, a = 0 and the
kernel of an identity matrix fills up a smaller one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from campaign.double_double import DD, FloatArray, factor, substitute, times, where

MOST_STEPS = 250
# Complementarity, relative to |t| |c|, at which a problem is done: float64 squared, and some room.
DONE = 1e-27
# A problem that has not come closer for so many steps stays where it is.
PATIENCE = 30
# Above this it is tried again from the other starting point.
POOR = 1e-18
# Of the way to the boundary.
SAFE = 0.995


@dataclass(frozen=True)
class Optimum:
    """Of each problem of a stack: c, b, u - t = K c + b - t, and how far from complementary."""

    coef: DD
    intercept: DD
    short: DD
    error: FloatArray


@dataclass
class _Point:
    c: DD
    b: DD
    below: DD  # c - lo
    above: DD  # hi - c
    z_below: DD
    z_above: DD

    def moved(self, step: _Point, primal: FloatArray, dual: FloatArray) -> _Point:
        p, d = primal[:, None], dual[:, None]
        return _Point(
            self.c + step.c * p,
            self.b + step.b * dual,
            self.below + step.below * p,
            self.above + step.above * p,
            self.z_below + step.z_below * d,
            self.z_above + step.z_above * d,
        )

    def complementarity(self) -> DD:
        return (self.below * self.z_below + self.above * self.z_above).sum(axis=1)

    def chosen(self, mine: np.ndarray, other: _Point) -> _Point:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return _Point(*(where(mine[:, None] if x.high.ndim == 2 else mine, x, y) for x, y in pairs))


def solve(
    K: FloatArray, t: FloatArray, lo: FloatArray, hi: FloatArray, a: FloatArray, free: bool = True
) -> Optimum:
    """K: (B, n, n); t, lo, hi, a: (B, n); without an intercept (``free`` False) b = 0."""
    unit = np.abs(np.diagonal(K, axis1=1, axis2=2)).max(axis=1)
    unit = 2.0 ** np.round(np.log2(np.where(unit > 0, unit, 1.0)))  # a power of two: exact
    K, lo, hi = K / unit[:, None, None], lo * unit[:, None], hi * unit[:, None]
    best, least = _follow(K, t, lo, hi, a, free, central=True)
    if (again := least > POOR).any():
        part = [x[again] for x in (K, t, lo, hi, a)]
        other, error = _follow(*part, free, central=False)
        better = error < least[again]
        for name, mine in vars(best).items():
            kept = where(better[:, None] if mine.high.ndim == 2 else better,
                         getattr(other, name), mine[again])  # fmt: skip
            mine[again] = kept
        least[again] = np.minimum(error, least[again])
    c, b = best.c, best.b
    return Optimum(c * (1.0 / unit)[:, None], b, times(K, c) + b[:, None] - t, least)


def _follow(
    K: FloatArray,
    t: FloatArray,
    lo: FloatArray,
    hi: FloatArray,
    a: FloatArray,
    free: bool,
    central: bool,
) -> tuple[_Point, FloatArray]:
    """The best points on the way, and their errors."""
    point = _start(K, t, lo, hi, central)
    best, least = point, np.full(len(K), np.inf)
    waited = np.zeros(len(K), dtype=int)
    for _ in range(MOST_STEPS):
        error = _error(K, t, a, point, free)
        better = error < 0.9 * least
        best, least = point.chosen(better, best), np.where(better, error, least)
        waited = np.where(better, 0, waited + 1)
        if ((least <= DONE) | (waited > PATIENCE)).all():
            break
        point = _step(K, t, lo, hi, a, point, free)
    return best, least


def _start(K: FloatArray, t: FloatArray, lo: FloatArray, hi: FloatArray, central: bool) -> _Point:
    """Inside the boxes, with the same complementarity for every row, or the same multipliers."""
    reach = np.minimum(0.5 * (hi - lo), 1.0)
    c = np.where(-lo < hi, lo + reach, hi - reach)
    c = np.where((lo < 0) & (hi > 0), 0.0, c)
    below, above, flat = c - lo, hi - c, DD(np.zeros(len(K)))
    h = np.abs(np.einsum("bij,bj->bi", K, c) - t) + 1.0
    target = (np.minimum(below, above) * h).max(axis=1)[:, None]
    z = (DD(target / below), DD(target / above)) if central else (DD(h), DD(h.copy()))
    return _Point(DD(c), flat, DD(c) - lo, hi - DD(c), *z)


def _error(K: FloatArray, t: FloatArray, a: FloatArray, p: _Point, free: bool) -> FloatArray:
    """The largest violation of the conditions, each relative to its scale."""
    size = (np.abs(p.c.float()) * np.abs(t)).sum(axis=1) + 1e-300
    gap = p.complementarity().float() / size
    stationary = np.abs(_stationarity(K, t, a, p).float()).max(axis=1)
    balance = np.abs((p.c * a).sum().float()) / size if free else 0.0
    error = np.maximum(np.maximum(gap, stationary), balance)
    return np.where(np.isfinite(error), error, np.inf)


def _stationarity(K: FloatArray, t: FloatArray, a: FloatArray, p: _Point) -> DD:
    return times(K, p.c) - t + p.b[:, None] * a - p.z_below + p.z_above


def _step(
    K: FloatArray,
    t: FloatArray,
    lo: FloatArray,
    hi: FloatArray,
    a: FloatArray,
    p: _Point,
    free: bool,
) -> _Point:
    n = K.shape[1]
    ratio = p.z_below / p.below + p.z_above / p.above
    A = DD(K.copy())
    diagonal = np.arange(n)
    A[:, diagonal, diagonal] = A[:, diagonal, diagonal] + ratio
    L, D = factor(A)
    ones = substitute(L, D, DD(a.copy())) if free else None
    system = L, D, ones, a, _stationarity(K, t, a, p)

    mu = p.complementarity() * (0.5 / n)
    towards = _direction(system, p, p.below * p.z_below, p.above * p.z_above)
    primal, dual = _lengths(p, towards, 1.0)
    guess = (p.moved(towards, primal, dual).complementarity() * (0.5 / n)).float()
    shrink = np.clip(guess / np.maximum(mu.float(), 1e-300), 0.0, 1.0) ** 3
    target = mu * shrink
    below = p.below * p.z_below + towards.below * towards.z_below - target[:, None]
    above = p.above * p.z_above + towards.above * towards.z_above - target[:, None]
    step = _direction(system, p, below, above)
    return p.moved(step, *_lengths(p, step, SAFE))


def _direction(system: tuple, p: _Point, below: DD, above: DD) -> _Point:
    """The Newton step that brings below * z_below and above * z_above down by what is given."""
    L, D, ones, a, stationary = system
    right = above / p.above - below / p.below - stationary
    dc = substitute(L, D, right)
    db = DD(np.zeros(len(a)))
    if ones is not None:
        missing = ((dc + p.c) * a).sum()
        db = missing / (ones * a).sum()
        dc = dc - ones * db[:, None]
    dz_below = -(below + p.z_below * dc) / p.below
    dz_above = -(above - p.z_above * dc) / p.above
    return _Point(dc, db, dc, -dc, dz_below, dz_above)


def _lengths(p: _Point, step: _Point, share: float) -> tuple[FloatArray, FloatArray]:
    def room(x: DD, dx: DD) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(dx.high < 0, -x.high / dx.high, np.inf)
        return np.asarray(part.min(axis=1))

    primal = np.minimum(room(p.below, step.below), room(p.above, step.above))
    dual = np.minimum(room(p.z_below, step.z_below), room(p.z_above, step.z_above))
    both = np.minimum(1.0, share * np.minimum(primal, dual))
    return both, both
