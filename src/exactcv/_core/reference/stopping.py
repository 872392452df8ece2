"""The compiled loop of ``_stopping.pyx`` once more, in plain NumPy, for the tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...types import FloatArray

__all__ = ["lower_quantile", "pair_steps"]

LEAST_CURVATURE, LEAST_DIAGONAL = 1e-12, 1e-300
CHECK_EVERY = 4


def lower_quantile(values: FloatArray, weights: FloatArray, target: float) -> float:
    """The smallest value whose weight, with that of all smaller ones, is at least target."""
    order = np.argsort(values, kind="stable")
    at = int(np.searchsorted(np.cumsum(weights[order]), target))
    return float(values[order[min(at, len(order) - 1)]])


def pair_steps(
    K: FloatArray,
    r: int,
    fixed: FloatArray,
    moving: FloatArray,
    tie: float,
    rounding: float,
    fit_intercept: bool,
    second: bool,
    eps: float,
    max_iter: int,
    cancel: NDArray[np.int32] | None = None,
) -> tuple[int, int, int, float, float]:
    """See ``_stopping.pair_steps``; the first four rows of ``moving`` move in place."""
    target, lower, upper, _, scale, curvature = fixed[:6]
    c, e, d, g = moving[:4]
    best_F, best_value, done_second = np.inf, 0.0, 0
    violation = 0.0

    def proves() -> bool:
        nonlocal best_F, best_value
        b = _best_intercept(e, lower, upper) if fit_intercept else 0.0
        lost = np.maximum(upper * (e - b), lower * (e - b))
        F = float(0.5 * c @ (target - e) + lost.sum())
        if best_F > F:
            best_F, best_value = F, float(target[r] - e[r] + b)
        slack = tie + rounding * float((np.abs(c) + 4 * np.abs(d)) @ scale)
        return bool(best_F + slack < 0.5 * d @ (target + g))

    for done in range(max_iter + 1):
        ahead = d @ (target + g) > c @ (target + e)
        if second and done % CHECK_EVERY == 0 and ahead and proves():
            return 3, done, done_second, violation, best_value
        i, j, violation = _choose(K, fixed, c, e, fit_intercept)
        if not violation > eps:
            return (3 if second and proves() else 0), done, done_second, violation, best_value
        if done == max_iter:
            break
        _first_step(K, fixed, c, e, i, j)
        if second:
            for used in (i, j) if j >= 0 else (i,):
                _second_step(K, r, fixed, d, g, used)
            i = _largest_gain(d, g, lower, upper, curvature)
            if i >= 0:
                _second_step(K, r, fixed, d, g, i)
                done_second += 1
    return 1, max_iter, done_second, violation, best_value


def _second_step(
    K: FloatArray, r: int, fixed: FloatArray, d: FloatArray, g: FloatArray, i: int
) -> None:
    """The best step of d_i in the second problem."""
    _, lower, upper, _, _, curvature, share, offset = fixed
    new = d[i] + g[i] / max(curvature[i], LEAST_DIAGONAL)
    move = float(np.clip(new, lower[i], upper[i]) - d[i])
    d[i] += move
    g -= move * (K[i] - share[i] * K[r] - offset[i])


def _best_intercept(e: FloatArray, lower: FloatArray, upper: FloatArray) -> float:
    used = upper > lower
    return lower_quantile(e[used], (upper - lower)[used], float(upper[used].sum()))


def _choose(
    K: FloatArray, fixed: FloatArray, c: FloatArray, e: FloatArray, fit_intercept: bool
) -> tuple[int, int, float]:
    """The working set {i, j} of the first problem (j = -1: i alone) and the violation."""
    _, lower, upper, diagonal = fixed[:4]
    if not fit_intercept:
        movable = ((e > 0) & (c < upper)) | ((e < 0) & (c > lower))
        violation = float(np.abs(e[movable]).max(initial=0.0))
        return _largest_gain(c, e, lower, upper, diagonal), -1, violation
    grows = np.where(c < upper, e, -np.inf)
    shrinks = np.where(c > lower, e, np.inf)
    i = int(np.argmax(grows))
    both = diagonal[i] + diagonal
    bend = np.maximum(both - 2.0 * K[i], LEAST_CURVATURE * np.abs(both) + LEAST_DIAGONAL)
    rise = np.maximum(grows[i] - shrinks, 0.0)
    return i, int(np.argmax(rise**2 / bend)), float(grows[i] - shrinks.min())


def _first_step(
    K: FloatArray, fixed: FloatArray, c: FloatArray, e: FloatArray, i: int, j: int
) -> None:
    """Raise c_i and lower c_j by the same best step, or move c_i alone."""
    _, lower, upper, diagonal = fixed[:4]
    if j < 0:
        new = c[i] + e[i] / max(diagonal[i], LEAST_DIAGONAL)
        step = float(np.clip(new, lower[i], upper[i]) - c[i])
        c[i] += step
        e -= step * K[i]
        return
    room_i, room_j = upper[i] - c[i], c[j] - lower[j]
    both = diagonal[i] + diagonal[j]
    bend = max(both - 2.0 * K[i, j], LEAST_CURVATURE * np.abs(both) + LEAST_DIAGONAL)
    step = min((e[i] - e[j]) / bend, room_i, room_j)
    # A coefficient that meets its bound is put there exactly.
    c[i] = upper[i] if step >= room_i else c[i] + step
    c[j] = lower[j] if step >= room_j else c[j] - step
    e -= step * (K[i] - K[j])


def _largest_gain(
    x: FloatArray, slope: FloatArray, lower: FloatArray, upper: FloatArray, curvature: FloatArray
) -> int:
    """The coordinate with the largest slope^2 / curvature; -1 if none can move."""
    movable = ((slope > 0) & (x < upper)) | ((slope < 0) & (x > lower))
    if not movable.any():
        return -1
    gain = slope**2 / np.maximum(curvature, LEAST_DIAGONAL)
    return int(np.argmax(np.where(movable, gain, -1.0)))
