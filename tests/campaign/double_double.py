"""Arithmetic with about 32 digits: a number is the unevaluated sum of two float64 (Dekker, Knuth).

Plain NumPy, on any processor with IEEE arithmetic; only what the interior point needs.  Everything
works on stacks: the price of a NumPy call is shared by all problems of a stack.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

SPLITTER = 134217729.0  # 2**27 + 1


def _two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _quick_two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """For |a| >= |b|."""
    s = a + b
    return s, b - (s - a)


def _split(a: FloatArray) -> tuple[FloatArray, FloatArray]:
    t = SPLITTER * a
    high = t - (t - a)
    return high, a - high


def _two_product(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    p = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


class DD:
    """An array of double-double numbers; mixes with float64 arrays and scalars."""

    __array_ufunc__ = None  # float64 + DD comes here, not to NumPy
    __slots__ = ("high", "low")

    def __init__(self, high: Any, low: Any = None):
        self.high = np.asarray(high, dtype=float)
        self.low = np.zeros_like(self.high) if low is None else low

    @staticmethod
    def of(x: Any) -> DD:
        return x if isinstance(x, DD) else DD(x)

    def __len__(self) -> int:
        return len(self.high)

    def __getitem__(self, key: Any) -> DD:
        return DD(self.high[key], self.low[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        value = DD.of(value)
        self.high[key], self.low[key] = value.high, value.low

    def copy(self) -> DD:
        return DD(self.high.copy(), self.low.copy())

    def __neg__(self) -> DD:
        return DD(-self.high, -self.low)

    def __add__(self, other: Any) -> DD:
        if not isinstance(other, DD):
            s, e = _two_sum(self.high, np.asarray(other, dtype=float))
            return DD(*_quick_two_sum(s, e + self.low))
        s, e = _two_sum(self.high, other.high)
        t, f = _two_sum(self.low, other.low)
        s, e = _quick_two_sum(s, e + t)
        return DD(*_quick_two_sum(s, e + f))

    def __sub__(self, other: Any) -> DD:
        return self + -other

    def __rsub__(self, other: Any) -> DD:
        return -self + other

    def __mul__(self, other: Any) -> DD:
        if not isinstance(other, DD):
            other = np.asarray(other, dtype=float)
            p, e = _two_product(self.high, other)
            return DD(*_quick_two_sum(p, e + self.low * other))
        p, e = _two_product(self.high, other.high)
        return DD(*_quick_two_sum(p, e + (self.high * other.low + self.low * other.high)))

    def __truediv__(self, other: Any) -> DD:
        other = DD.of(other)
        first = self.high / other.high
        rest = self - other * first
        second = rest.high / other.high
        rest = rest - other * second
        s, e = _quick_two_sum(first, second)
        return DD(s, e) + rest.high / other.high

    def __rtruediv__(self, other: Any) -> DD:
        return DD.of(other) / self

    __radd__, __rmul__ = __add__, __mul__

    def sum(self, axis: int = -1) -> DD:
        """Pairwise along one axis."""
        part = DD(np.moveaxis(self.high, axis, 0), np.moveaxis(self.low, axis, 0))
        while (size := len(part)) > 1:
            half = size // 2
            summed = part[:half] + part[half : 2 * half]
            if size % 2:
                summed[0] = summed[0] + part[-1]
            part = summed
        return part[0]

    def float(self) -> FloatArray:
        return np.asarray(self.high + self.low)


def where(condition: Any, x: DD, y: DD) -> DD:
    return DD(np.where(condition, x.high, y.high), np.where(condition, x.low, y.low))


def times(A: FloatArray, x: DD) -> DD:
    """A x for matrices A of shape (B, n, n) and vectors x of shape (B, n)."""
    return (x[:, None, :] * A).sum(axis=2)


def factor(A: DD) -> tuple[DD, DD]:
    """L (below the diagonal) and D of A = L D L', for a stack of shape (B, n, n), in place."""
    n = A.high.shape[1]
    for k in range(n - 1):
        column = A[:, k + 1 :, k].copy()
        unit = column / A[:, k, k][:, None]
        A[:, k + 1 :, k + 1 :] = A[:, k + 1 :, k + 1 :] - unit[:, :, None] * column[:, None, :]
        A[:, k + 1 :, k] = unit
    diagonal = np.arange(n)
    return A, A[:, diagonal, diagonal].copy()


def substitute(L: DD, D: DD, right: DD) -> DD:
    """A^-1 r for a stack of factors and right sides of shape (B, n)."""
    x, n = right.copy(), right.high.shape[1]
    for k in range(n - 1):
        x[:, k + 1 :] = x[:, k + 1 :] - L[:, k + 1 :, k] * x[:, k][:, None]
    x = x / D
    for k in range(n - 1, 0, -1):
        x[:, :k] = x[:, :k] - L[:, k, :k] * x[:, k][:, None]
    return x
