"""Consolidated bounds: what holds at the next C for the full data and every fold at once.

Let f_0 be the solution of a problem at C_0 and f_1 at C_1 = r C_0, coefficients in units of C
theta_0 and theta_1: both are in the same set, so the two optimality conditions can be added, which
gives <f_0 - f_1, f_1 / C_1 - f_0 / C_0> >= 0, that is

    || f_1 - (r + 1)/2 f_0 || <= |r - 1|/2 ||f_0||.                                            (*)

*Without an intercept* (Theorem 2.2) leaving row j out moves f_1 by at most C_j sqrt(K_jj).

*With one* f_1 moves by a distance d with  d^2 <= C_j (|b - b'| + sqrt(K_jj) d), so the intercepts
must be bounded first.  Stage one: (*) for every fold's own solution at C_0 (Lemma 3.1) and the
bisection of Algorithm 2.  Stage two: (*) for the full data and d from stage one (Lemma 3.4), the
intersection of both (19), and the bisection again.

``bounds="printed"`` is Theorems 2.2 and 3.5 as they stand: one set of bounds for the full data and
all folds, with B = max K_ii wherever a K_ii could stand.  (Not as printed: the steps of psi are
sorted instead of found by bisection to 1e-7, and weights w_i take the place of counts.)

``bounds="tight"`` is ours: as safe, and narrower.

- One set for the full data, one for the folds that leave out a positive row and one for those that
  leave out a negative row: with strong regularisation the intercept goes down for the former and up
  for the latter, by up to 1, and bounds that must hold for both can fix hardly any row.
- K_ii itself instead of B.

Which share of the rows they fix on the papers' simulation: ``benchmarks/results/papers.md``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...problem.problem import Problem
from ...types import FloatArray, IntArray
from .batch import Mask

__all__ = ["BOUNDS", "Bounds", "Previous", "bounds_at", "intercept_bounds", "printed_bounds_at"]

BOUNDS = ("tight", "printed")
ANY = 2  # label of the row that a fold leaves out: any, or none

# Rounding, relative to the largest decision value.
SLACK = 1e-9


@dataclass(frozen=True)
class Previous:
    """Solutions at the C before: the full data's f (n,), and the f (m, n) of folds that differ.

    ``own`` is the row that each fold leaves out.
    """

    C: float
    full: FloatArray
    full_norm: float
    folds: FloatArray
    fold_norms: FloatArray
    own: IntArray


@dataclass(frozen=True)
class Bounds:
    """low_i <= y_i f(x_i) <= high_i in every problem of a kind that trains on row i.

    The intercepts of all of them lie between the last two.
    """

    low: FloatArray
    high: FloatArray
    b_low: float = 0.0
    b_high: float = 0.0

    def known(self, y: FloatArray) -> tuple[Mask, Mask]:
        """Rows that have c_i = y_i C_i (set L) and c_i = 0 (set R) wherever they take part."""
        least = np.where(y > 0, self.b_low, -self.b_high) + self.low
        most = np.where(y > 0, self.b_high, -self.b_low) + self.high
        slack = SLACK * max(1.0, float(np.abs([least, most]).max()))
        return most < 1.0 - slack, least > 1.0 + slack


def bounds_at(problem: Problem, C: float, previous: Previous) -> dict[int, Bounds]:
    """The bounds at C: for the full data (key 0), and for folds without a row of label +1, -1."""
    y, reach = problem.y, np.sqrt(np.maximum(problem.diagonal, 0.0))
    ratio = C / previous.C
    centre, radius = 0.5 * (ratio + 1.0), 0.5 * abs(ratio - 1.0)
    middle = centre * y * previous.full
    spread = radius * previous.full_norm * reach
    box = C * problem.weight
    if not problem.fit_intercept:
        wider = spread + reach * float((box * reach).max())
        folds = Bounds(middle - wider, middle + wider)
        return {0: Bounds(middle - spread, middle + spread), 1: folds, -1: folds}
    full = _with_intercepts(problem, Bounds(middle - spread, middle + spread), 0)
    out = {0: full}
    for label in (1, -1):
        first = _own_paths(problem, full, centre, radius, previous, label, reach)
        first = _with_intercepts(problem, first, label)
        apart = max(full.b_high, first.b_high) - min(full.b_low, first.b_low)
        removed, size = box[y == label].max(), reach[y == label].max()
        move = 0.5 * removed * size + np.sqrt((0.5 * removed * size) ** 2 + removed * apart)
        low = np.maximum(first.low, middle - spread - reach * move)
        high = np.minimum(first.high, middle + spread + reach * move)
        out[label] = _with_intercepts(problem, Bounds(low, high), label)
    return out


def printed_bounds_at(problem: Problem, C: float, previous: Previous) -> dict[int, Bounds]:
    """Theorems 2.2 and 3.5 as printed; the same bounds for the full data and all folds."""
    y, B = problem.y, float(problem.diagonal.max())
    ratio = C / previous.C
    centre, radius = 0.5 * (ratio + 1.0), 0.5 * abs(ratio - 1.0)
    middle = centre * y * previous.full
    spread = radius * np.sqrt(B) * previous.full_norm
    removed = C * float(problem.weight.max())  # 1 / (2 n lambda)
    if not problem.fit_intercept:
        wider = spread + B * removed
        found = Bounds(middle - wider, middle + wider)
        return dict.fromkeys((0, 1, -1), found)
    # Lemma 3.1, over the full data and all folds j != i.
    reach = np.full(problem.n, np.sqrt(B))
    first = Bounds(middle - spread, middle + spread)
    for label in (1, -1):
        first = _own_paths(problem, first, centre, radius, previous, label, reach)
    first = _with_intercepts(problem, first, ANY)
    # Lemma 3.4, and (19).
    half = 0.5 * B * removed
    move = np.sqrt(half**2 + B * removed * (first.b_high - first.b_low)) + half
    low = np.maximum(first.low, middle - spread - move)
    high = np.minimum(first.high, middle + spread + move)
    found = _with_intercepts(problem, Bounds(low, high), ANY)
    return dict.fromkeys((0, 1, -1), found)


def _with_intercepts(problem: Problem, bounds: Bounds, removed: int) -> Bounds:
    used = problem.weight > 0
    y, weight = problem.y[used], problem.weight[used]
    ends = intercept_bounds(y, weight, bounds.low[used], bounds.high[used], removed)
    return Bounds(bounds.low, bounds.high, *ends)


def _own_paths(
    problem: Problem,
    full: Bounds,
    centre: float,
    radius: float,
    previous: Previous,
    label: int,
    reach: FloatArray,
) -> Bounds:
    """Lemma 3.1: the extremes of (*) over the folds j != i that leave out a row of this label.

    Folds that do not differ from the full data at C_0 have its bounds.  ``reach`` holds sqrt(K_ii),
    or what stands for it.
    """
    mine = np.flatnonzero(problem.y[previous.own] == label)
    own = previous.own[mine]
    middle = centre * problem.y * previous.folds[mine]
    spread = radius * np.outer(previous.fold_norms[mine], reach)
    below, above = middle - spread, middle + spread
    rows = np.arange(len(mine))
    below[rows, own], above[rows, own] = np.inf, -np.inf
    low, high = below.min(axis=0, initial=np.inf), above.max(axis=0, initial=-np.inf)
    return Bounds(np.minimum(low, full.low), np.maximum(high, full.high))


def intercept_bounds(
    y: FloatArray, weight: FloatArray, low: FloatArray, high: FloatArray, removed: int
) -> tuple[float, float]:
    """Bounds on the intercept of every leave-one-out fold of one kind (Lemmas 3.2, 3.3).

    If some fold had b' >= b, then at b' the negative rows with -b + high_i < 1 would have c_i =
    -C_i and the positive rows with b + low_i > 1 would have c_i = 0, so that

        sum_i c_i / C <= psi+(b) = sum of w over the other positive rows
                                   - sum of w over those negative rows + the largest of those w,

    the last if the folds leave out negative rows.  If they leave out positive ones and none of
    those has c_i = 0 for sure, the smallest positive w goes.  psi+(b) < 0 contradicts sum c = 0.
    The other side is the mirror image.  psi+ falls from step to step, by w_i where row i changes
    sides: the steps are sorted, and the first below zero is the bound (Algorithm 2 bisects).

    Parameters
    ----------
    y, weight : ndarray of shape (n,)
        Weights are positive.
    low, high : ndarray of shape (n,)
        Bounds on y_i f(x_i).
    removed : {0, 1, -1, 2}
        The label of the row that the folds leave out; 0 for the full data, 2 for any or none, which
        is Lemma 3.2 as printed.

    Examples
    --------
    >>> import numpy as np
    >>> y, ones = np.array([1.0, 1.0, -1.0, -1.0]), np.ones(4)
    >>> low, high = intercept_bounds(y, ones, 0.1 * ones, 0.1 * ones, removed=0)
    >>> round(low, 6), round(high, 6)
    (-0.9, 0.9)
    """
    mirrored = removed if removed == ANY else -removed
    return -_upper(-y, weight, low, high, mirrored), _upper(y, weight, low, high, removed)


def _upper(
    y: FloatArray, weight: FloatArray, low: FloatArray, high: FloatArray, removed: int
) -> float:
    """The least b beyond which psi+ < 0; infinite if there is none."""
    plus = y > 0
    spare = 1e-12 * float(weight.sum())
    if removed == ANY:
        spare += float(weight.max())
    elif removed < 0:
        spare += float(weight[~plus].max(initial=0.0))
    lost = float(weight[plus].min(initial=np.inf)) if removed == 1 else 0.0
    # Beyond its step a negative row has c_i = -C_i, and a positive one c_i = 0.
    steps = np.where(plus, 1.0 - low, high - 1.0)
    order = np.argsort(steps)
    untouched = np.cumsum(plus[order]) == 0
    psi = weight[plus].sum() + spare - np.cumsum(weight[order]) - np.where(untouched, lost, 0.0)
    below = np.flatnonzero(psi < 0)
    return float(steps[order[below[0]]]) if len(below) else np.inf
