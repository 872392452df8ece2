"""The compiled loops of ``_residuals.pyx``, ``_lines.pyx`` and ``_smo.pyx`` once more, in NumPy.

They are what the tests compare the compiled code with.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ... import tolerances
from ...types import FloatArray, IntArray

__all__ = [
    "Scale",
    "Tally",
    "fenchel_young",
    "gradient",
    "is_hinge",
    "margins",
    "natural_residual",
    "nearby_values",
    "reported_gap",
    "smo_steps",
    "tally",
    "tested_values",
    "touched_columns",
]

LEAST_CURVATURE, LEAST_DIAGONAL = 1e-12, 1e-300
ROUNDOFF = 0.5 * float(np.finfo(float).eps)
# The floor of the figures in units of the rounding of u: the gap has four times as much.
ROUNDING = 8.0
# The same of the gap, in units of what rounding is charged with there.
BLUR, TINY = 4.0, float(np.finfo(float).tiny)
# What sum c may be off by though it seems to be 0, in roundings of sum |c|.
UNSEEN = 4.0
# Rows this close to a knot, in units of the largest, may be on either side of it.
NEAR = 1e-6


class Loss(Protocol):
    """A piecewise-linear loss of each row (``problem/losses.py``)."""

    @property
    def knots(self) -> FloatArray: ...
    @property
    def slopes(self) -> FloatArray: ...
    @property
    def n_knots(self) -> int: ...

    def coefficient_levels(self, C: FloatArray, /) -> FloatArray: ...
    def value(self, u: FloatArray, /) -> FloatArray: ...


class Tally(NamedTuple):
    """The figures of one solution: violation, absolute gap, primal objective and floor.

    The floor is what rounding alone may make of the violation and of the relative gap.
    """

    kkt: float
    gap: float
    primal: float
    floor: float


class Scale(NamedTuple):
    """What violations are measured by.

    sqrt(K_ii) of each row, the largest of them, and the unit of decision values (for
    piecewise-linear losses the largest knot).
    """

    root: FloatArray
    widest: float
    unit: float

    @classmethod
    def of(cls, diagonal: FloatArray, unit: float = 1.0) -> Scale:
        root = np.sqrt(np.maximum(diagonal, 0.0))
        return cls(root, float(root.max(initial=0.0)), unit or 1.0)

    def stiffness(self, C: FloatArray) -> FloatArray:
        """tau_i of ``piecewise_linear.py``; rows that take no part count as the heaviest."""
        heaviest = C.max(axis=-1, initial=0.0, keepdims=True)
        own = np.where(C > 0, C, np.where(heaviest > 0, heaviest, 1.0))
        return np.asarray(np.maximum(self.root * self.widest, self.unit / own))

    def closeness(self, levels: FloatArray) -> FloatArray:
        """How close to a level a coefficient is taken to be there: AT_BOUND / tau_i.

        tau_i that of the whole box, from the first level to the last.
        """
        width = levels[:, 0] - levels[:, -1]
        return np.asarray(tolerances.AT_BOUND * self.unit / self.stiffness(width))

    def charges(
        self, coef: FloatArray, inside: FloatArray, fit_intercept: bool
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """stray, |sum c~| (0 without an intercept) and the rounding of u_i in units of root_i."""
        off = np.abs(inside.sum(axis=-1)) if fit_intercept else np.zeros(coef.shape[:-1])
        stray = (np.abs(coef - inside) * self.root).sum(axis=-1) + off * self.widest
        return stray, off, ROUNDOFF * (self.root * np.abs(coef)).sum(axis=-1)

    def unseen(self, coef: FloatArray, fit_intercept: bool) -> FloatArray:
        """How far f may move for what rounding hides of sum c."""
        size = np.abs(coef).sum(axis=-1) if fit_intercept else np.zeros(coef.shape[:-1])
        return np.asarray(UNSEEN * ROUNDOFF * self.widest * size)


def reported_gap(gap: Any, stray: Any, moved: Any) -> FloatArray:
    """1/2 (stray + sqrt(2 g))^2, ``moved`` what balancing the sum adds to g."""
    return np.asarray(0.5 * (stray + np.sqrt(2.0 * np.maximum(gap + moved, 0.0))) ** 2)


def tally(
    h: FloatArray,
    coef: FloatArray,
    intercept: float,
    C: FloatArray,
    loss: Loss,
    fit_intercept: bool,
    scale: Scale,
) -> Tally:
    """Judge one solution; h = K coef, and C is zero for rows that take no part.

    ``judge/piecewise_linear.py`` derives all of it.  ``inside`` is c~ but for its sum.
    """
    levels, tau, unit = loss.coefficient_levels(C), scale.stiffness(C), scale.unit
    inside = np.clip(coef, levels[:, -1], levels[:, 0])
    u = h + intercept
    stray, off, rounding = map(float, scale.charges(coef, inside, fit_intercept))
    with np.errstate(over="ignore", invalid="ignore"):
        norm = float(np.sqrt(max(float(coef @ h), 0.0)))
        away = np.abs(u[:, None] - loss.knots).min(axis=1)
        kkt = max(
            float(np.abs(natural_residual(u, coef, levels, loss, tau)).max(initial=0.0)) / unit,
            rounding * float(np.where(away <= unit, scale.root, 0.0).max(initial=0.0)) / unit,
            off / float(np.abs(coef).sum()) if off > 0 else 0.0,
            0.0 if fit_intercept else abs(intercept),
        )
        point = _scaled_up if is_hinge(loss) else _as_reported
        noise = rounding * scale.widest
        gap, primal, charged = point(u, inside, C, levels, tau, loss, noise, norm, stray)
        moved = off * (2.0 * unit + abs(intercept) + norm * scale.widest)
        gap = float(reported_gap(gap, stray + scale.unseen(coef, fit_intercept), moved))
    finite = np.isfinite(h).all() and np.isfinite(coef).all() and np.isfinite(intercept)
    if not (finite and np.isfinite([kkt, gap, primal]).all()):
        return Tally(np.inf, np.inf, primal, 0.0)
    floor = max(ROUNDING * noise / unit, BLUR * charged / max(primal, TINY))
    return Tally(float(kkt), float(gap), primal, floor)


def is_hinge(loss: Loss) -> bool:
    """Is it max(0, 1 - y u)?"""
    if loss.n_knots != 1:
        return False
    y = loss.knots[:, 0]
    slopes = np.column_stack([np.where(y > 0, -1.0, 0.0), np.where(y > 0, 0.0, 1.0)])
    return bool((np.abs(y) == 1.0).all() and np.array_equal(loss.slopes, slopes))


def natural_residual(
    u: FloatArray, coef: FloatArray, levels: FloatArray, loss: Loss, tau: FloatArray
) -> FloatArray:
    """u - prox(u - tau c), prox that of tau C L.

    prox(z) = min(z + tau l_0, max(t_1, min(z + tau l_1, ... z + tau l_m))) with the levels l_k; for
    rows that take no part all of these are 0, and tau c remains.
    """
    prox = tau * (levels[:, -1] - coef)
    for k in range(loss.n_knots - 1, -1, -1):
        prox = np.minimum(tau * (levels[:, k] - coef), np.maximum(loss.knots[:, k] - u, prox))
    return -prox


def _as_reported(
    u: FloatArray,
    inside: FloatArray,
    C: FloatArray,
    levels: FloatArray,
    tau: FloatArray,
    loss: Loss,
    noise: float,
    norm: float,
    stray: float,
) -> tuple[float, float, float]:
    """Gap and primal objective of the reported f and b, and what of the gap is for rounding."""
    unit = float(np.abs(loss.knots).max(initial=0.0)) or 1.0
    near = (np.abs(u[:, None] - loss.knots) <= NEAR * unit).any(axis=1)
    here = np.take_along_axis(levels, (u[:, None] > loss.knots).sum(axis=1)[:, None], axis=1)[:, 0]
    wide = np.where(near, levels[:, 0] - levels[:, -1], np.abs(here - inside))
    bracket = fenchel_young(u, inside, loss.knots, levels)
    charged = float(noise * wide.sum())
    gap = float(bracket.sum() + charged + 0.5 * stray**2)
    return gap, float(0.5 * norm**2 + C @ loss.value(u)), charged


def _scaled_up(
    u: FloatArray,
    inside: FloatArray,
    C: FloatArray,
    levels: FloatArray,
    tau: FloatArray,
    loss: Loss,
    noise: float,
    norm: float,
    stray: float,
) -> tuple[float, float, float]:
    """The same of (1 + theta) (f, b), with theta so that no row with room falls a little short."""
    y = loss.knots[:, 0]
    u, c = y * u, y * inside
    over, under = np.maximum(u - 1.0, 0.0), np.maximum(1.0 - u, 0.0)
    flat = u - 1.0 >= -NEAR
    open_ = flat & (tau * (C - c) > tolerances.AT_BOUND)
    lack = float(np.where(open_, under, 0.0).max(initial=0.0)) + noise
    hard = np.where(open_, 0.0, under)
    primal = float(0.5 * norm**2 + C @ hard)
    if not lack < 0.5:
        return np.inf, primal, 0.0
    theta = lack / (1.0 - lack)
    kept = float(c @ over + (C - c) @ hard)
    lean = float(np.where(flat, c, 0.0).sum())
    tilt = float(np.where(open_, 0.0, (C - c) * (1.0 + np.abs(u))).sum())
    gap = (1.0 + theta) * kept + theta * (2.0 * lean + tilt) + 0.5 * (theta * norm + stray) ** 2
    return gap, primal, 0.0


def fenchel_young(
    u: FloatArray, c: FloatArray, knots: FloatArray, levels: FloatArray
) -> FloatArray:
    """C [L(u) + L*(s) - s u] for s = -c / C, as a sum of nonnegative terms; c is in its box.

    With t* a point where s is a slope of L, it is the integral of C (L' - s) from t* to u: segment
    k adds |c - l_k| times the length of it that lies between t* and u.
    """
    total = np.zeros_like(u)
    last = knots.shape[1]
    for k in range(last + 1):
        above = np.maximum(c - levels[:, k], 0.0)  # zero on the first segment
        below = np.maximum(levels[:, k] - c, 0.0)  # zero on the last segment
        if k > 0:
            end = u if k == last else np.minimum(u, knots[:, k])
            total += above * np.maximum(end - knots[:, k - 1], 0.0)
        if k < last:
            start = u if k == 0 else np.maximum(u, knots[:, k - 1])
            total += below * np.maximum(knots[:, k] - start, 0.0)
    return total


def margins(
    change: FloatArray, margin: FloatArray, sign: FloatArray, before: FloatArray, tie: float
) -> tuple[FloatArray, FloatArray]:
    """How many values are on the wrong side, and how much more the hinge losses are than before."""
    now = margin + sign * change
    wrong = np.count_nonzero(now <= tie, axis=1).astype(float)
    return wrong, (np.maximum(0.0, 1.0 - now) - before).sum(axis=1)


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
            both = diagonal[i] + diagonal[j]
            least = LEAST_CURVATURE * np.abs(both) + LEAST_DIAGONAL
            curvature = max(both - 2.0 * K[rows[i], rows[j]], least)
            room_i, room_j = upper[i] - coef[i], coef[j] - lower[j]
            step = min((e[i] - e[j]) / curvature, room_i, room_j)
            coef[i] = upper[i] if step >= room_i else coef[i] + step
            coef[j] = lower[j] if step >= room_j else coef[j] - step
            e -= step * (K[rows[i], rows] - K[rows[j], rows])
        else:
            old = coef[i]
            coef[i] = np.clip(old + e[i] / max(diagonal[i], LEAST_DIAGONAL), lower[i], upper[i])
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
    both = diagonal[i] + diagonal
    least = LEAST_CURVATURE * np.abs(both) + LEAST_DIAGONAL
    curvature = np.maximum(both - 2.0 * K[rows[i], rows], least)
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
    gain = size**2 / np.maximum(diagonal, LEAST_DIAGONAL)
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
    m = knots.shape[1]
    at_knot, segment = state % 2 == 1, state // 2
    for sign, mine in ((1, taken > 0), (-1, taken < 0)):
        first = np.where(at_knot | (sign < 0), segment, segment - 1)
        distance, room = [], []
        for i in np.flatnonzero(state >= 0):
            has = coef[i]
            for knot in range(first[i], -1, -1) if sign > 0 else range(first[i], m):
                here = state[i] == 2 * knot + 1
                distance.append(0.0 if here else max(sign * (u[i] - knots[i, knot]), 0.0))
                room.append(sign * (levels[i, knot + (sign < 0)] - has))
                has = levels[i, knot + (sign < 0)]
        order = np.argsort(distance, kind="stable")
        so_far = np.cumsum(np.array(room)[order])
        stops = np.append(np.array(distance)[order], np.inf)
        own, size = who[mine], np.abs(taken[mine])
        total = sign * (levels[own, 0 if sign > 0 else m] - coef[own])
        ahead = sign * (levels[own, np.minimum(segment[own] + (sign < 0), m)] - coef[own])
        target = size + np.where(at_knot[own], ahead, 0.0)
        least[mine] = stops[np.searchsorted(so_far, target - margin, side="left")]
        most[mine] = stops[np.searchsorted(so_far, size + total + margin, side="right")]


def tested_values(
    h: FloatArray,
    intercept: FloatArray,
    blur: FloatArray,
    where: IntArray,
    which: IntArray,
    offsets: IntArray,
    rows: IntArray,
    y: FloatArray,
    tie: float,
    decision: FloatArray,
    wrong: NDArray[np.uint8],
    blurred: NDArray[np.uint8],
) -> None:
    for k, (l, fold) in enumerate(zip(where, which, strict=True)):
        at = slice(offsets[fold], offsets[fold + 1])
        values, signs = h[k, rows[at]] + intercept[k], y[rows[at]]
        decision[l, at], wrong[l, at] = values, ~(signs * values > tie)
        low, high = signs * (values - blur[k]) > tie, signs * (values + blur[k]) > tie
        blurred[k] = (low != high).any()
