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

The paper has one set of bounds for all folds.  Here there is one for the full data, one for the
folds that leave out a positive row and one for those that leave out a negative row: with strong
regularisation the intercept goes down for the former and up for the latter, by up to 1, and bounds
that must hold for both can fix hardly any row.

At every place where the papers take B = max K_ii for row i, K_ii itself is used: it is as safe, and
tighter.  Row weights w_i take the place of counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...problem.problem import Problem
from ...types import FloatArray, IntArray
from .batch import Mask

__all__ = ["Bounds", "Previous", "bounds_at", "intercept_bounds"]

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
        first = _own_paths(problem, full, centre, radius, previous, label)
        first = _with_intercepts(problem, first, label)
        apart = max(full.b_high, first.b_high) - min(full.b_low, first.b_low)
        removed, size = box[y == label].max(), reach[y == label].max()
        move = 0.5 * removed * size + np.sqrt((0.5 * removed * size) ** 2 + removed * apart)
        low = np.maximum(first.low, middle - spread - reach * move)
        high = np.minimum(first.high, middle + spread + reach * move)
        out[label] = _with_intercepts(problem, Bounds(low, high), label)
    return out


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
) -> Bounds:
    """Lemma 3.1: the extremes of (*) over the folds j != i that leave out a row of this label.

    Folds that do not differ from the full data at C_0 have its bounds.
    """
    reach = np.sqrt(np.maximum(problem.diagonal, 0.0))
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
    The other side is the mirror image.  Both are found by bisection (Algorithm 2).

    Parameters
    ----------
    y, weight : ndarray of shape (n,)
        Weights are positive.
    low, high : ndarray of shape (n,)
        Bounds on y_i f(x_i).
    removed : {0, 1, -1}
        The label of the row that the folds leave out; 0 for the full data.

    Examples
    --------
    >>> import numpy as np
    >>> y, ones = np.array([1.0, 1.0, -1.0, -1.0]), np.ones(4)
    >>> low, high = intercept_bounds(y, ones, 0.1 * ones, 0.1 * ones, removed=0)
    >>> round(low, 6), round(high, 6)
    (-0.9, 0.9)
    """
    return -_upper(-y, weight, low, high, -removed), _upper(y, weight, low, high, removed)


def _upper(
    y: FloatArray, weight: FloatArray, low: FloatArray, high: FloatArray, removed: int
) -> float:
    """The least b found with psi+(b) < 0."""
    plus, minus = y > 0, y < 0
    spare = 1e-12 * float(weight.sum()) + (float(weight[minus].max()) if removed < 0 else 0.0)
    lost = float(weight[plus].min()) if removed > 0 else 0.0

    def impossible(b: float) -> bool:
        held = weight[minus & (high - b < 1.0)].sum()
        free = plus & (b + low <= 1.0)
        most = weight[free].sum() - (lost if free.sum() == plus.sum() else 0.0)
        return bool(most - held + spare < 0)

    ends = np.concatenate([(high - 1.0)[minus], (1.0 - low)[plus]])
    starts = np.concatenate([(low - 1.0)[minus], (1.0 - high)[plus]])
    scale = max(1.0, float(np.abs(ends).max()))
    return _bisect(impossible, float(starts.min()) - 1e-7, float(ends.max()) + 1e-7, 1e-11 * scale)


def _bisect(holds: Callable[[float], bool], low: float, high: float, width: float) -> float:
    """The end of the bracket at which the condition holds; infinite if it does not at ``high``."""
    if not holds(high):
        return np.inf
    while high - low > width:
        middle = 0.5 * (low + high)
        if holds(middle):
            high = middle
        else:
            low = middle
    return high
