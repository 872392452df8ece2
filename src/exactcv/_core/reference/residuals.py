"""The compiled loops of ``_residuals.pyx`` and ``_smo.pyx`` once more, in plain NumPy.

They are what the tests compare the compiled code with, and ``tally`` is also what judges losses
with more than one knot.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...problem.losses import PiecewiseLinear
from ...types import FloatArray, IntArray

__all__ = ["Tally", "gradient", "nearby_values", "smo_steps", "tally", "touched_columns"]

LEAST_CURVATURE = 1e-12
EPSILON = float(np.finfo(float).eps)


class Tally(NamedTuple):
    """The three figures of one solution: violation, absolute gap, primal objective."""

    kkt: float
    gap: float
    primal: float


def tally(
    h: FloatArray,
    coef: FloatArray,
    intercept: float,
    C: FloatArray,
    loss: PiecewiseLinear,
    fit_intercept: bool,
) -> Tally:
    """Judge one solution; h = K coef, and C is zero for rows that take no part.

    The natural residual is |v| for v the nested clip  u - prox(u + s), with
    prox(z) = min(z - s_0, max(t_1, min(z - s_1, max(t_2, ... z - s_m)))).
    """
    train = C > 0
    knots, slopes, box = loss.knots[train], loss.slopes[train], C[train]
    u, c = h[train] + intercept, coef[train]
    s = -c / box
    last = loss.n_knots
    prox = u + s - slopes[:, last]
    for k in range(last - 1, -1, -1):
        prox = np.minimum(u + s - slopes[:, k], np.maximum(knots[:, k], prox))
    beyond = np.maximum(slopes[:, 0] - s, s - slopes[:, -1]).max(initial=0.0)
    values = PiecewiseLinear(knots, slopes).value(u)
    primal = float(0.5 * coef @ h + box @ values)
    gap = float((box * fenchel_young(u, s, knots, slopes)).sum())
    violations = [
        np.abs(u - prox).max(initial=0.0) / max(1.0, np.abs(u).max(initial=0.0)),
        beyond,
        np.abs(coef[~train]).max(initial=0.0) / box.max(),
        abs(coef.sum()) / (np.abs(coef).sum() + EPSILON * box.sum())
        if fit_intercept
        else abs(intercept),
    ]
    kkt = float(max(violations))
    finite = np.isfinite(h).all() and np.isfinite(coef).all() and np.isfinite(intercept)
    if not (finite and np.isfinite([kkt, gap, primal]).all()):
        return Tally(np.inf, np.inf, primal)
    return Tally(kkt, gap, primal)


def fenchel_young(
    u: FloatArray, s: FloatArray, knots: FloatArray, slopes: FloatArray
) -> FloatArray:
    """L(u) + L*(s) - s u as a sum of nonnegative terms, s first brought into its box.

    With t* a point where s is a slope of L, it is the integral of L' - s from t* to u: segment k
    adds |s_k - s| times the length of it that lies between t* and u.
    """
    s = np.clip(s, slopes[:, 0], slopes[:, -1])
    total = np.zeros_like(u)
    last = knots.shape[1]
    for k in range(last + 1):
        above = np.maximum(slopes[:, k] - s, 0.0)  # zero on the first segment
        below = np.maximum(s - slopes[:, k], 0.0)  # zero on the last segment
        if k > 0:
            end = u if k == last else np.minimum(u, knots[:, k])
            total += above * np.maximum(end - knots[:, k - 1], 0.0)
        if k < last:
            start = u if k == 0 else np.maximum(u, knots[:, k - 1])
            total += below * np.maximum(knots[:, k] - start, 0.0)
    return total


def touched_columns(coef: FloatArray, base: FloatArray, own: IntArray) -> IntArray:
    """Where any solution differs from ``base``, each one's own row aside."""
    differs = coef != base
    differs[np.arange(len(own)), own] = False
    return np.flatnonzero(differs.any(axis=0))


def nearby_values(K: FloatArray, coef: FloatArray) -> FloatArray:
    """K coef, for each row of coef."""
    return coef @ K


def gradient(K: FloatArray, rows: IntArray, target: FloatArray, coef: FloatArray) -> FloatArray:
    """target - K coef over the rows given."""
    return target - K[np.ix_(rows, rows)] @ coef


def smo_steps(
    K: FloatArray,
    rows: IntArray,
    diagonal: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    coef: FloatArray,
    e: FloatArray,
    fit_intercept: bool,
    eps: float,
    max_iter: int,
) -> tuple[int, float, int]:
    """See ``_smo.smo_steps``; ``coef`` and ``e`` move in place."""
    for done in range(max_iter + 1):
        i, j, violation = (_choose_pair if fit_intercept else _choose_one)(
            K, rows, diagonal, lower, upper, coef, e
        )
        if not violation > eps:
            return done, violation, 0
        if done == max_iter:
            break
        if j >= 0:
            curvature = diagonal[i] + diagonal[j] - 2.0 * K[rows[i], rows[j]]
            room_i, room_j = upper[i] - coef[i], coef[j] - lower[j]
            step = min((e[i] - e[j]) / max(curvature, LEAST_CURVATURE), room_i, room_j)
            coef[i] = upper[i] if step >= room_i else coef[i] + step
            coef[j] = lower[j] if step >= room_j else coef[j] - step
            e -= step * (K[rows[i], rows] - K[rows[j], rows])
        else:
            old = coef[i]
            coef[i] = np.clip(old + e[i] / max(diagonal[i], LEAST_CURVATURE), lower[i], upper[i])
            e -= (coef[i] - old) * K[rows[i], rows]
    return max_iter, violation, 1


def _choose_pair(
    K: FloatArray,
    rows: IntArray,
    diagonal: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    coef: FloatArray,
    e: FloatArray,
) -> tuple[int, int, float]:
    grows = np.where(coef < upper, e, -np.inf)
    shrinks = np.where(coef > lower, e, np.inf)
    i = int(np.argmax(grows))
    violation = float(grows[i] - shrinks.min())
    rise = grows[i] - shrinks
    curvature = np.maximum(diagonal[i] + diagonal - 2.0 * K[rows[i], rows], LEAST_CURVATURE)
    gain = np.where(rise > 0, rise, 0.0) ** 2 / curvature
    return i, int(np.argmax(gain)), violation


def _choose_one(
    K: FloatArray,
    rows: IntArray,
    diagonal: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    coef: FloatArray,
    e: FloatArray,
) -> tuple[int, int, float]:
    movable = ((e > 0) & (coef < upper)) | ((e < 0) & (coef > lower))
    size = np.where(movable, np.abs(e), 0.0)
    gain = size**2 / np.maximum(diagonal, LEAST_CURVATURE)
    return int(np.argmax(gain)), -1, float(size.max())


def walk(
    knots: FloatArray,
    levels: FloatArray,
    state: NDArray[np.int8],
    coef: FloatArray,
    u: FloatArray,
    who: NDArray[np.intp],
    taken: FloatArray,
    margin: float,
    least: FloatArray,
    most: FloatArray,
) -> None:
    """Twin of ``_bounds.walk``."""
    for sign, mine in ((1, taken > 0), (-1, taken < 0)):
        at_knot, segment = state % 2 == 1, state // 2
        knot = np.where(at_knot | (sign < 0), segment, segment - 1)
        rows = np.flatnonzero((state >= 0) & (knot >= 0) & (knot < knots.shape[1]))
        distance = np.maximum(sign * (u[rows] - knots[rows, knot[rows]]), 0.0)
        distance = np.where(at_knot[rows], 0.0, distance)
        room = np.zeros(len(coef))
        room[rows] = sign * (levels[rows, knot[rows] + (sign < 0)] - coef[rows])
        target = np.abs(taken[mine]) + np.where(at_knot[who[mine]], room[who[mine]], 0.0)
        order = np.argsort(distance, kind="stable")
        so_far = np.cumsum(room[rows[order]])
        distance = np.append(distance[order], np.inf)
        least[mine] = distance[np.searchsorted(so_far, target - margin, side="left")]
        most[mine] = distance[np.searchsorted(so_far, target + margin, side="right")]
