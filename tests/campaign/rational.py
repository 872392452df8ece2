"""The conditions of optimality in whole numbers: what meets them here is the answer, to the last bit.

    K c + b - y  <= 0 where c is at its far bound, >= 0 where it is 0, = 0 between   (turned by y)

Every float64 is a whole number times a power of two, so that for a guess of who is at which bound
the rest is a system of linear equations in whole numbers (fraction-free elimination, Bareiss).
Rows that turn out to be on the wrong side change sides, and it is solved again.  What comes out is
checked, not believed: a guess that never meets the conditions gives no answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from _problems import FloatArray

MOST_ROUNDS = 25
# Of the sum of coefficients: what float64 cannot tell from a bound, and some room.
BLUR = 1e-14
# Of the largest diagonal entry: K may be singular.
TINY = Fraction(1, 2**75)
INSIDE, NONE, FULL = 0, -1, 1  # where a coefficient is: between its bounds, at 0, at C_i


@dataclass(frozen=True)
class Answer:
    """c of each site (turned by y, so that 0 <= c <= box) and the values K_test c + b.

    ``hangs`` is by how much b is another if coefficients count as being at a bound that are there
    but for rounding of all that are added up; ``blurred`` by how much values may be off because K
    had to be made definite.
    """

    coef: list[Fraction]
    values: list[Fraction]
    hangs: float
    blurred: float


def solve(
    K: FloatArray,
    y: FloatArray,
    box: FloatArray,
    K_test: FloatArray,
    start: FloatArray,
    fit_intercept: bool,
) -> Answer | None:
    """The optimum, looked for from ``start`` (c turned by y, roughly right); None if not found."""
    sites, boxes, first = _sites(K, y, box)
    turned = [int(value) for value in y[first]]
    part = K[np.ix_(first, first)] * np.outer(turned, turned)
    Q = [[Fraction(float(a)) for a in row] for row in part]
    raised = _raise(Q)
    begin = np.array([float(start[list(site)].sum()) for site in sites])
    wide = np.array([float(one) for one in boxes])
    where = np.where(begin > 0.999 * wide, FULL, np.where(begin < 1e-3 * wide, NONE, INSIDE))
    found = _search(Q, turned, boxes, where, fit_intercept)
    if found is None:
        return None
    c, lack = found
    b = other = Fraction(0)
    if fit_intercept:
        blur = Fraction(BLUR) * sum(c, Fraction(0))
        b, other = (_middle(*_ends(c, lack, boxes, turned, slack)) for slack in (0, blur))
    values = []
    for row in K_test[:, first]:
        terms = zip(row, turned, c, strict=True)
        values.append(sum((Fraction(float(k)) * t * one for k, t, one in terms), b))
    return Answer(c, values, float(abs(other - b)), float(raised * sum(c, Fraction(0))))


def _sites(K: FloatArray, y: FloatArray, box: FloatArray) -> tuple[list, list[Fraction], list[int]]:
    """Equal rows of one class are one, with the sum of their boxes."""
    alike: dict[Any, list[int]] = {}
    for i, row in enumerate(K):
        alike.setdefault((y[i], row.tobytes()), []).append(i)
    sites = list(alike.values())
    boxes = [sum((Fraction(float(box[i])) for i in site), Fraction(0)) for site in sites]
    return sites, boxes, [site[0] for site in sites]


def _raise(Q: list[list[Fraction]]) -> Fraction:
    """Raise the diagonal until Q is definite, by far less than rounding if that will do."""
    top = max(max(Q[i][i] for i in range(len(Q))), Fraction(1, 2**1000))
    least = float(np.linalg.eigvalsh(np.array(Q, dtype=float))[0])
    so_far = Fraction(0)
    for by in (TINY * top, Fraction(2.0 * max(-least, 0.0)), top / 2**40):
        for i, row in enumerate(Q):
            row[i] += by - so_far
        so_far = by
        if _definite(Q):
            break
    return so_far


def _definite(Q: list[list[Fraction]]) -> bool:
    """Are all leading minors positive?"""
    unit = max(a.denominator for row in Q for a in row)
    A, before = [[int(a * unit) for a in row] for row in Q], 1
    for k, head in enumerate(A):
        lead = head[k]
        if lead <= 0:
            return False
        for i in range(k + 1, len(A)):
            row, mine = A[i], A[i][k]
            A[i] = [(lead * a - mine * h) // before for a, h in zip(row, head, strict=True)]
        before = lead
    return True


def _search(
    Q: list[list[Fraction]], y: list[int], box: list[Fraction], where: Any, fit_intercept: bool
) -> tuple[list[Fraction], list[Fraction]] | None:
    """c and 1 - Q c, once all conditions hold."""
    n, seen = len(y), set()
    for _ in range(MOST_ROUNDS):
        free = [i for i in range(n) if where[i] == INSIDE]
        c = [box[i] if where[i] == FULL else Fraction(0) for i in range(n)]
        lack = [1 - _dot(row, c) for row in Q]
        total = _dot(y, c)
        if fit_intercept and not free and total != 0:
            where = where.copy()
            where[_crossing(y, lack, box)] = INSIDE
            continue
        b = Fraction(0)
        if free:
            solved = _equations(Q, y, free, lack, -total, fit_intercept)
            if solved is None:
                return None
            for i, value in zip(free, solved, strict=False):
                c[i] = value
            lack = [1 - _dot(row, c) for row in Q]
            b = solved[-1] if fit_intercept else b
        elif fit_intercept:  # where no intercept will do, rows change sides at the middle
            b = _middle(*_ends(c, lack, box, y))
        changed = _next(c, lack, box, y, b, where)
        if (changed == where).all():
            return c, lack
        where = changed
        if (key := where.tobytes()) in seen:
            return None
        seen.add(key)
    return None


def _next(
    c: list[Fraction],
    lack: list[Fraction],
    box: list[Fraction],
    y: list[int],
    b: Fraction,
    where: Any,
) -> Any:
    """Who is where, after those that are wrong have changed sides."""
    out = where.copy()
    for i, (one, wide) in enumerate(zip(c, box, strict=True)):
        if where[i] == INSIDE:
            out[i] = NONE if one < 0 else FULL if one > wide else INSIDE
            continue
        short = lack[i] - y[i] * b
        if (short > 0 and where[i] == NONE) or (short < 0 and where[i] == FULL):
            out[i] = INSIDE
    return out


def _ends(
    c: list[Fraction],
    lack: list[Fraction],
    box: list[Fraction],
    y: list[int],
    slack: Fraction | int = 0,
) -> tuple[Fraction | None, Fraction | None]:
    """The interval of intercepts: y b >= lack where c may grow, <= where it may fall."""
    low: Fraction | None = None
    high: Fraction | None = None
    for one, missing, wide, t in zip(c, lack, box, y, strict=True):
        end = t * missing
        if (one < wide - slack) if t > 0 else (one > slack):
            low = end if low is None else max(low, end)
        if (one > slack) if t > 0 else (one < wide - slack):
            high = end if high is None else min(high, end)
    return low, high


def _middle(low: Fraction | None, high: Fraction | None) -> Fraction:
    ends = [end for end in (low, high) if end is not None]
    return sum(ends, Fraction(0)) / max(len(ends), 1)


def _crossing(y: list[int], lack: list[Fraction], box: list[Fraction]) -> int:
    """The row at whose knot sum_i C_i max(0, lack_i - y_i b) is least."""
    def loss(b: Fraction) -> Fraction:
        terms = zip(y, lack, box, strict=True)
        return sum((wide * max(Fraction(0), one - t * b) for t, one, wide in terms), Fraction(0))

    return min(range(len(y)), key=lambda i: loss(y[i] * lack[i]))


def _dot(x: list, z: list) -> Any:
    return sum((a * b for a, b in zip(x, z, strict=True) if b), Fraction(0))


def _equations(
    Q: list[list[Fraction]],
    y: list[int],
    free: list[int],
    lack: list[Fraction],
    total: Fraction,
    fit_intercept: bool,
) -> list[Fraction] | None:
    """Q_FF x + y_F b = lack_F and y_F' x = total; None if that has not one solution."""
    rows = [[Q[i][j] for j in free] + ([Fraction(y[i])] if fit_intercept else []) for i in free]
    right = [lack[i] for i in free]
    if fit_intercept:
        rows.append([Fraction(y[i]) for i in free] + [Fraction(0)])
        right.append(total)
    unit = max(a.denominator for row in rows for a in row)  # powers of two: the largest will do
    other = max(a.denominator for a in right)
    system = [
        [int(a * unit) for a in row] + [int(r * other)] for row, r in zip(rows, right, strict=True)
    ]
    return _bareiss(system, Fraction(unit, other))


def _bareiss(A: list[list[int]], unit: Fraction) -> list[Fraction] | None:
    """A x = its last column, without a fraction on the way, times ``unit``."""
    size, before = len(A), 1
    for k in range(size):
        pivot = next((i for i in range(k, size) if A[i][k]), None)
        if pivot is None:
            return None
        A[k], A[pivot] = A[pivot], A[k]
        head, lead = A[k], A[k][k]
        for i in range(size):
            if i != k:
                row, mine = A[i], A[i][k]
                A[i] = [(lead * a - mine * h) // before for a, h in zip(row, head, strict=True)]
        before = lead
    return [Fraction(row[-1], row[k]) * unit for k, row in enumerate(A)]
