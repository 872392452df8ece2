"""NumPy twin of ``_core/_between.pyx``, one test at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...types import FloatArray

__all__ = ["between"]

NEAREST, TRIED, RIDGE = 64, (1, 3, 12), 1e-9
PROJECTED, CLOSE = (24, NEAREST), 3.0
OFF, OFF_KNOT = (0.03, 0.125, 0.5), 0.125
ALIKE = 1e-13


def between(
    K: FloatArray,
    y: FloatArray,
    weight: FloatArray,
    ends: tuple[tuple[float, FloatArray, FloatArray, float], ...],
    kernel: FloatArray,
    square: float,
    widest: float,
    closeness: float,
    intercept: bool,
) -> tuple[bool, bool]:
    """Whether the label of a test is proved between two ends, and whether values follow a line.

    Each end is C, the coefficients, u and the value of the test less its threshold.
    """
    used = weight > 0
    boxes = [C * weight[used] for C, *_ in ends]
    a = [np.maximum(y[used] * coef[used], 0.0) for _, coef, _, _ in ends]
    p = [np.maximum(box - one, 0.0) for box, one in zip(boxes, a, strict=True)]
    x = [y[used] * u[used] - 1.0 for _, _, u, _ in ends]
    value = [end[3] for end in ends]
    slack = [closeness * box for box in boxes]
    inside = [(a[k] > slack[k]) & (p[k] > slack[k]) for k in (0, 1)]
    changed = (inside[0] != inside[1]) | ((a[0] > slack[0]) != (a[1] > slack[1]))
    line = not changed.any()
    if intercept and line and not inside[0].any():
        line = _same_limits(y[used], a[0] > p[0], x, [end[2] for end in ends])
    # Complementary slackness: of the one end's coefficients with the other's values, and its own.
    cost = [[float(np.where(x[j] < 0, p[k], a[k]) @ np.abs(x[j])) for j in (0, 1)] for k in (0, 1)]
    bend, gap = cost[0][1] + cost[1][0], max(cost[0][0], cost[1][1])
    if value[0] * value[1] <= 0.0:
        return False, line
    if not intercept:
        return _enough(value, gap, square, bend, 0.0, np.inf), line
    least, side = min(abs(value[0]), abs(value[1])), np.sign(value[0])
    off = np.maximum(np.abs(x[0]), np.abs(x[1]))
    rising = side * y[used] > 0
    roots = [[np.sqrt(np.where(way, p[k], a[k])) for k in (0, 1)] for way in (rising, ~rising)]
    room, other = ((first + second) ** 2 for first, second in roots)
    for level in OFF:
        everyone = float(room[off <= level * least].sum())
        if _enough(value, gap, widest, bend, level * least, everyone):
            return True, line
    able = (inside[0] | inside[1]) & (off <= OFF_KNOT * least)
    rows = np.flatnonzero(used)[able]
    order = np.argsort(-kernel[rows], kind="stable")[:NEAREST]
    rows, room, other = rows[order], room[able][order], other[able][order]
    off = off[able][order]
    if not len(rows):
        return False, line

    def reach(w: FloatArray) -> float:
        some = rows[: len(w)]
        apart = float(square - 2.0 * w @ kernel[some] + w @ K[np.ix_(some, some)] @ w)
        return max(apart, 1e-9 * abs(square))

    def proved(w: FloatArray, most: float) -> bool:
        return _enough(value, gap, reach(w), bend, float(off[: len(w)].max()), most)

    missed = 0.0  # the squared distance of the last try
    for count in TRIED:
        total = float(room[:count].sum())
        if total > 0.0 and least * total > 2.0 * bend:
            w = room[:count] / total
            if proved(w, total):
                return True, line
            missed = reach(w)
    for count in PROJECTED:
        far = missed * bend >= CLOSE * 4.0 * value[0] * value[1]
        if far or (count > PROJECTED[0] >= len(rows)):
            break
        w = _projection(K[np.ix_(rows[:count], rows[:count])], kernel[rows[:count]])
        most = float((np.where(w > 0, room[:count], other[:count]) / np.abs(w)).min())
        if proved(w, most):
            return True, line
        missed = reach(w) if least * most > 2.0 * bend else np.inf
    return False, line


def _same_limits(
    y: FloatArray, top: NDArray[np.bool_], x: list[FloatArray], u: list[FloatArray]
) -> bool:
    """Do the same rows limit b at both ends, if none is free?"""
    from_above, slack = (y > 0) == top, ALIKE * max(1.0, float(np.abs(u[1]).max()))
    for which, side in ((from_above, 1.0), (~from_above, -1.0)):
        if which.any():
            first, last = (-side * (y * one)[which] for one in x)  # y - u
            if last[np.argmin(first)] > last.min() + slack:
                return False
    return True


def _projection(K_MM: FloatArray, kernel: FloatArray) -> FloatArray:
    """Shares of either sign, with sum 1, of the point nearest to the tested row."""
    top, n = K_MM.diagonal().max(), len(K_MM)
    G = K_MM + top + RIDGE * top * np.eye(n)
    x, ones = np.linalg.solve(G, np.column_stack([kernel + top, np.ones(n)])).T
    return np.asarray(x + (1.0 - x.sum()) / ones.sum() * ones)


def _enough(
    value: list[float], gap: float, reach: float, bend: float, off: float, room: float
) -> bool:
    least, lost = min(abs(value[0]), abs(value[1])), np.sqrt(reach * gap)
    part = 1.0 - off / least
    first, second = (part * abs(v) - lost for v in value)
    if part * least * room <= 2.0 * bend:
        return False
    return bool(first > 0.0 and second > 0.0 and 4.0 * first * second > reach * bend)
