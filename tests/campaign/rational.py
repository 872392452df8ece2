"""The conditions of optimality in whole numbers: what meets them here is the answer itself.

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

# Rounds of changing sides.
MOST_ROUNDS = 60
# Of the sum of coefficients: what float64 cannot tell from a bound, and some room.
BLUR = 1e-14
# Of the largest diagonal entry, as powers of two: K may be singular; and what does not matter.
TINY, FINE = 75, 140
INSIDE, NONE, FULL = 0, -1, 1  # where a coefficient is: between its bounds, at 0, at C_i


@dataclass(frozen=True)
class Answer:
    """c of each site (turned by y, so that 0 <= c <= box) and the values K_test c + b.

    ``hangs`` is by how much b is another if coefficients count as being at a bound that are there
    but for rounding of all that are added up; ``blurred`` by how much values may be off because K
    had to be made definite.
    """

    coef: list[Fraction]
    values: list[float]
    hangs: float
    blurred: float


@dataclass(frozen=True)
class _Whole:
    """The problem in whole numbers: Q = y K y in units of 2^-q, boxes in units of 2^-s."""

    Q: list[list[int]]
    y: list[int]
    box: list[int]
    q: int
    s: int
    fit_intercept: bool

    @property
    def size(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class _Point:
    """c in units of 2^-s / unit, and lack = 1 - Q c and b in units of 2^-(q + s) / unit."""

    c: list[int]
    lack: list[int]
    b: int
    unit: int


def solve(
    K: FloatArray,
    y: FloatArray,
    box: FloatArray,
    K_test: FloatArray,
    start: FloatArray,
    fit_intercept: bool,
) -> Answer | None:
    """The optimum, looked for from ``start`` (c turned by y, roughly right); None if not found."""
    sites, first = _sites(K, y)
    turned = [int(value) for value in y[first]]
    Q, q = _whole((K[np.ix_(first, first)] * np.outer(turned, turned)).tolist())
    (boxes,), s = _whole([box.tolist()])
    wide = [sum(boxes[i] for i in site) for site in sites]
    Q, q, raised = _raise(Q, q)
    problem = _Whole(Q, turned, wide, q, s, fit_intercept)
    share = np.array([start[site].sum() / box[site].sum() for site in sites])
    where = np.where(share > 0.999, FULL, np.where(share < 1e-3, NONE, INSIDE))
    point = _search(problem, where)
    if point is None:
        return None
    coef = [Fraction(one, point.unit << s) for one in point.c]
    (b, other), unit = _intercepts(problem, point), point.unit << (problem.q + s)
    tests, power = _whole((K_test[:, first] * turned).tolist())
    values = [
        ((_dot(row, point.c) << problem.q + 1) + (b << power)) / (unit << power + 1)
        for row in tests
    ]  # of whole numbers, and so rounded once
    hangs = abs(other - b) / (2 * unit)
    return Answer(coef, values, hangs, raised * (sum(point.c) / (point.unit << s)))


def _sites(K: FloatArray, y: FloatArray) -> tuple[list[list[int]], list[int]]:
    """Equal rows of one class are one."""
    alike: dict[Any, list[int]] = {}
    for i, row in enumerate(K):
        alike.setdefault((y[i], row.tobytes()), []).append(i)
    sites = list(alike.values())
    return sites, [site[0] for site in sites]


def _whole(rows: list[list[float]]) -> tuple[list[list[int]], int]:
    """Whole numbers and the power of two that they are to be divided by.

    What is less than 2^-FINE of the largest is cut off: entries of K may be 1e-300.
    """
    parts = [[a.as_integer_ratio() for a in row] for row in rows]
    power = max(below.bit_length() - 1 for row in parts for _, below in row)
    largest = max(max(map(abs, row)) for row in rows)
    power = min(power, FINE - int(np.floor(np.log2(largest))) if largest > 0 else 0)
    if power < 0:
        return [[above // below for above, below in row] for row in parts], 0
    return [[(above << power) // below for above, below in row] for row in parts], power


def _raise(Q: list[list[int]], q: int) -> tuple[list[list[int]], int, float]:
    """Raise the diagonal until Q is definite, by far less than rounding if that will do."""
    top = max(1, *(Q[i][i] for i in range(len(Q))))
    matrix = np.array([[Fraction(a, 1 << q) for a in row] for row in Q], dtype=float)
    least = Fraction(max(-2.0 * float(np.linalg.eigvalsh(matrix)[0]), 0.0))
    finer, by = [[a << TINY for a in row] for row in Q], 0
    for more in (top, int(least * (1 << q + TINY)), top << TINY - 40):
        for i, row in enumerate(finer):
            row[i] += more - by
        by = more
        if _definite(finer):
            break
    return finer, q + TINY, float(Fraction(by, 1 << q + TINY))


def _definite(Q: list[list[int]]) -> bool:
    """Are all leading minors positive?"""
    A, before = list(Q), 1
    for k in range(len(A)):
        head, lead = A[k], A[k][k]
        if lead <= 0:
            return False
        for i in range(k + 1, len(A)):
            row, mine = A[i], A[i][k]
            A[i] = [(lead * a - mine * h) // before for a, h in zip(row, head, strict=True)]
        before = lead
    return True


def _search(problem: _Whole, where: Any) -> _Point | None:
    """Where all conditions hold."""
    seen, one_by_one = set(), False
    for _ in range(MOST_ROUNDS):
        point = _at(problem, where)
        if point is None:
            return None
        changed = _changed(problem, point, where)
        wrong = np.flatnonzero(changed != where)
        if not len(wrong):
            return point
        # All at once is quick, and may go in circles.
        one_by_one = one_by_one or changed.tobytes() in seen
        seen.add(changed.tobytes())
        if one_by_one:
            where = where.copy()
            where[wrong[0]] = changed[wrong[0]]
        else:
            where = changed
    return None


def _at(problem: _Whole, where: Any) -> _Point | None:
    """What follows from who is where; None if the equations have not one solution."""
    n, y, one = problem.size, problem.y, 1 << (problem.q + problem.s)
    c = [problem.box[i] if where[i] == FULL else 0 for i in range(n)]
    lack = [one - _dot(row, c) for row in problem.Q]
    total = _dot(y, c)
    free = [i for i in range(n) if where[i] == INSIDE]
    if problem.fit_intercept and not free:
        if not total:
            low, high = _ends(problem, c, lack, 1)
            ends = [end for end in (low, high) if end is not None]
            return _Point([2 * a for a in c], [2 * a for a in lack], 2 * sum(ends) // len(ends), 2)
        where[_crossing(problem, lack)] = INSIDE  # somebody must take up the rest
        return _at(problem, where)
    if not free:
        return _Point(c, lack, 0, 1)
    solved = _equations(problem, free, [lack[i] for i in free], -total)
    if solved is None:
        return None
    found, unit = solved
    c, lack = [a * unit for a in c], [a * unit for a in lack]
    for i, value in zip(free, found, strict=False):
        c[i] = value
    for k, row in enumerate(problem.Q):
        lack[k] -= sum(row[i] * value for i, value in zip(free, found, strict=False))
    return _Point(c, lack, found[-1] if problem.fit_intercept else 0, unit)


def _changed(problem: _Whole, point: _Point, where: Any) -> Any:
    """Who is where, after those that are wrong have changed sides."""
    out = where.copy()
    for i, (one, wide) in enumerate(zip(point.c, problem.box, strict=True)):
        if where[i] == INSIDE:
            out[i] = NONE if one < 0 else FULL if one > wide * point.unit else INSIDE
            continue
        short = point.lack[i] - problem.y[i] * point.b
        if (short > 0 and where[i] == NONE) or (short < 0 and where[i] == FULL):
            out[i] = INSIDE
    return out


def _ends(
    problem: _Whole, c: list[int], lack: list[int], unit: int, slack: int = 0
) -> tuple[int | None, int | None]:
    """The interval of intercepts: y b >= lack where c may grow, <= where it may fall."""
    low: int | None = None
    high: int | None = None
    for one, missing, wide, t in zip(c, lack, problem.box, problem.y, strict=True):
        end, grows, falls = t * missing, one < wide * unit - slack, one > slack
        if grows if t > 0 else falls:
            low = end if low is None else max(low, end)
        if falls if t > 0 else grows:
            high = end if high is None else min(high, end)
    return low, high


def _intercepts(problem: _Whole, point: _Point) -> list[int]:
    """Twice the middle of its interval, and the same if what is near a bound is at it."""
    found = []
    for slack in (0, int(Fraction(BLUR) * sum(point.c))):
        ends = _ends(problem, point.c, point.lack, point.unit, slack)
        known = [end for end in ends if end is not None]
        found.append(2 * sum(known) // len(known) if known and problem.fit_intercept else 0)
    return found


def _crossing(problem: _Whole, lack: list[int]) -> int:
    """The row at whose knot sum_i C_i max(0, lack_i - y_i b) is least."""
    y, box = problem.y, problem.box

    def loss(b: int) -> int:
        return sum(w * max(0, a - t * b) for t, a, w in zip(y, lack, box, strict=True))

    return min(range(len(y)), key=lambda i: loss(y[i] * lack[i]))


def _dot(x: list[int], z: list[int]) -> int:
    return sum(a * b for a, b in zip(x, z, strict=True) if b)


def _equations(
    problem: _Whole, free: list[int], right: list[int], total: int
) -> tuple[list[int], int] | None:
    """Q_FF x + y_F b = right and y_F' x = total: x and b over one positive denominator."""
    Q, y, border = problem.Q, problem.y, problem.fit_intercept
    A = [[*(Q[i][j] for j in free), *([y[i]] if border else []), r]
         for i, r in zip(free, right, strict=True)]  # fmt: skip
    if border:
        A.append([*(y[i] for i in free), 0, total])
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
    sign = 1 if before > 0 else -1
    return [sign * row[-1] for row in A], abs(before)
