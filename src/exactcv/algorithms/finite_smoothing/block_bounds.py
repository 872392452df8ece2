"""Consolidated bounds for folds that leave out a block of rows (k-fold): the paper's future work.

Let f be the full data's solution at C, known by the time the folds are solved, with coefficients c,
and f' that of a fold without the block B at C' = r C.  Coefficients are subgradients, so for every
row i outside B  (c_i - c'_i / r) (u_i - u'_i) <= 0.  Their sum, with g = sum_B c_j K(., x_j), the
block's part of f, and s = sum_B c_j, is

    <f - g - f' / r, f - f'> <= (b - b') s,

that is: f' lies in a ball,

    || f' - (r (f - g) + f) / 2 ||^2  <=  || r (f - g) - f ||^2 / 4 + r |b - b'| |s|.

For r = 1 and no intercept its radius is ||g|| / 2.  With an intercept |b - b'| has to be bounded
first, as in Theorem 3.5: by the fold's own solution at the C before (Lemma 3.1) and the steps of
psi.  Both stages hold for one fold and its training rows; a row is fixed for all folds at once, so
that these share an inverse, if every fold that trains on it fixes it at the same side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...problem.problem import Problem
from ...types import FloatArray, IntArray
from .batch import Mask
from .consolidated_bounds import Bounds, intercept_bounds

__all__ = ["FoldBefore", "FullNow", "block_bounds", "known_for_all"]


@dataclass(frozen=True)
class FullNow:
    """The full data's solution at C: f (n,), its coefficients and its intercept."""

    C: float
    h: FloatArray
    coef: FloatArray
    intercept: float


@dataclass(frozen=True)
class FoldBefore:
    """A fold's own solution at the C before (its own C): f (n,) and ||f||."""

    C: float
    h: FloatArray
    norm: float


def block_bounds(
    problem: Problem, full: FullNow, out: IntArray, C: float, before: FoldBefore | None
) -> Bounds | None:
    """Bounds on y_i f'(x_i) and b' for the fold without the rows ``out`` at its C.

    None where nothing is known: with an intercept and no solution of this fold before.
    """
    reach = np.sqrt(np.maximum(problem.diagonal, 0.0))
    first = None if before is None else _own_path(problem, before, C, reach)
    apart = 0.0
    if problem.fit_intercept:
        if first is None:
            return None
        first = _with_intercept(problem, first, out)
        apart = max(abs(first.b_low - full.intercept), abs(first.b_high - full.intercept))
    if not np.isfinite(apart):
        return first
    ratio = C / full.C
    given = full.coef[out]
    g = problem.K[:, out] @ given
    rest = ratio * (full.h - g)
    # ||r (f - g) - f||^2 from inner products of f and g.
    ff, fg, gg = float(full.coef @ full.h), float(given @ full.h[out]), float(given @ g[out])
    apart_squared = (ratio - 1.0) ** 2 * ff - 2.0 * (ratio - 1.0) * ratio * fg + ratio**2 * gg
    squared = 0.25 * max(apart_squared, 0.0) + ratio * apart * abs(float(given.sum()))
    middle = 0.5 * problem.y * (rest + full.h)
    low, high = middle - np.sqrt(squared) * reach, middle + np.sqrt(squared) * reach
    if first is not None:
        low, high = np.maximum(low, first.low), np.minimum(high, first.high)
    bounds = Bounds(low, high)
    return _with_intercept(problem, bounds, out) if problem.fit_intercept else bounds


def known_for_all(
    problem: Problem, folds: list[tuple[IntArray, Bounds | None]]
) -> tuple[Mask, Mask]:
    """Rows at their bound (L) and without a coefficient (R) in every fold that trains on them."""
    left, right = np.ones((2, problem.n), dtype=bool)
    for out, bounds in folds:
        if bounds is None:
            return np.zeros(problem.n, dtype=bool), np.zeros(problem.n, dtype=bool)
        mine_left, mine_right = bounds.known(problem.y)
        mine_left[out] = mine_right[out] = True
        left &= mine_left
        right &= mine_right
    return left & ~right, right & ~left


def _own_path(problem: Problem, before: FoldBefore, C: float, reach: FloatArray) -> Bounds:
    """Lemma 3.1 for one fold."""
    ratio = C / before.C
    middle = 0.5 * (ratio + 1.0) * problem.y * before.h
    spread = 0.5 * abs(ratio - 1.0) * before.norm * reach
    return Bounds(middle - spread, middle + spread)


def _with_intercept(problem: Problem, bounds: Bounds, out: IntArray) -> Bounds:
    """The fold's training rows are known: psi is that of a data set of its own."""
    used = problem.weight > 0
    used[out] = False
    y, weight = problem.y[used], problem.weight[used]
    ends = intercept_bounds(y, weight, bounds.low[used], bounds.high[used], removed=0)
    return Bounds(bounds.low, bounds.high, *ends)
