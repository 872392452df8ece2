"""Losses, as what the solvers need of them: knots and slopes, row by row.

Every loss here is convex and piecewise linear in the decision value u,

    L_i(u)  has slope  s_i0  left of knot t_i1,  s_i1  between t_i1 and t_i2,  ...

with slopes that grow from left to right.  The problem

    min over f, b   1/2 ||f||^2 + sum_i C_i L_i(u_i),      u_i = f(x_i) + b,

has a solution f = sum_i c_i K(., x_i) with  -c_i / C_i  in the subdifferential of L_i at u_i:

- between two knots c_i is fixed at -C_i times the slope there;
- at a knot c_i is free between the values of the two neighbouring segments.

The hinge has one knot per row, the pinball loss one, the epsilon-insensitive loss two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..types import BoolArray, FloatArray, IntArray

__all__ = ["PiecewiseLinear", "epsilon_insensitive", "hinge", "pinball"]


@dataclass(frozen=True)
class PiecewiseLinear:
    """A piecewise-linear loss for each of n rows, with m knots a row.

    Parameters
    ----------
    knots : ndarray of shape (n, m)
        Increasing along each row.
    slopes : ndarray of shape (n, m + 1)
        Increasing along each row; ``slopes[i, k]`` holds left of ``knots[i, k]``.

    Examples
    --------
    >>> import numpy as np
    >>> loss = hinge(np.array([1.0, -1.0]))
    >>> loss.value(np.array([0.25, 0.25]))
    array([0.75, 1.25])
    """

    knots: FloatArray
    slopes: FloatArray
    bounded = True  # the slopes are, and so are the coefficients

    @property
    def n_knots(self) -> int:
        return int(self.knots.shape[1])

    @property
    def largest_knot(self) -> float:
        return float(np.abs(self.knots).max(initial=0.0))

    def at(self, rows: IntArray) -> PiecewiseLinear:
        """The losses of some rows, which may be repeated."""
        return PiecewiseLinear(self.knots[rows], self.slopes[rows])

    def beside(self, other: PiecewiseLinear) -> PiecewiseLinear:
        """These rows, then those of another, with as many knots."""
        knots = np.concatenate([self.knots, other.knots])
        return PiecewiseLinear(knots, np.concatenate([self.slopes, other.slopes]))

    @property
    def upward(self) -> BoolArray:
        """Rows whose loss pushes u up rather than down: the positive class of the hinge."""
        return np.asarray(self.slopes[:, 0] + self.slopes[:, -1] < 0)

    def passed(self, u: FloatArray) -> IntArray:
        """How many knots lie to the left of u: (n,), or (n, P) for P values a row."""
        count = np.zeros(u.shape, dtype=np.intp)
        for knot in self._knots_along(u):
            count += u > knot
        return count

    def slope(self, u: FloatArray) -> FloatArray:
        """The slope at u, (n,) or (n, P); at a knot that of its left."""
        bend = np.diff(self.slopes, axis=1).T.reshape(self.n_knots, *_along(u))
        slope = np.broadcast_to(self.slopes[:, 0].reshape(_along(u)), u.shape).copy()
        for knot, more in zip(self._knots_along(u), bend, strict=True):
            slope += more * (u > knot)
        return slope

    def distance(self, u: FloatArray) -> FloatArray:
        """How far u, (n,) or (n, P), is from the nearest knot."""
        away = [np.abs(u - knot) for knot in self._knots_along(u)]
        return away[0] if len(away) == 1 else np.minimum.reduce(away)

    def _knots_along(self, u: FloatArray) -> FloatArray:
        return self.knots.T.reshape(self.n_knots, *_along(u))

    def coefficient_levels(self, C: FloatArray) -> FloatArray:
        """What c_i equals on each segment, from the leftmost (highest) to the rightmost.

        ``C`` has one entry a row, (n,), or several sets of them, (F, n).
        """
        levels = -C[..., None] * self.slopes
        return levels + 0.0  # no negative zeros

    def value(self, u: FloatArray) -> FloatArray:
        """L_i(u_i), (n,) or (n, P), with the least value of each row's loss set to zero."""
        bend = np.diff(self.slopes, axis=1)
        return self._from_left(u, bend) - self._least(bend).reshape(_along(u))

    def conjugate(self, s: FloatArray) -> FloatArray:
        """L*_i(s_i) = sup over u of s_i u - L_i(u); +inf where s_i is no slope of L_i.

        The supremum of a concave piecewise-linear function lies at a knot.
        """
        bend = np.diff(self.slopes, axis=1)
        best = np.full(s.shape, -np.inf)
        for k in range(self.n_knots):
            t = self.knots[:, k]
            best = np.maximum(best, s * t - (self._from_left(t, bend) - self._least(bend)))
        outside = (s < self.slopes[:, 0]) | (s > self.slopes[:, -1])
        return np.where(outside, np.inf, best)

    def _from_left(self, u: FloatArray, bend: FloatArray) -> FloatArray:
        """The loss up to a constant: the leftmost line, plus a bend at each knot passed."""
        knots = self._knots_along(u)
        total = self.slopes[:, 0].reshape(_along(u)) * (u - knots[0])
        for knot, more in zip(knots, bend.T.reshape(knots.shape), strict=True):
            total += more * np.maximum(u - knot, 0.0)
        return np.asarray(total)

    def _least(self, bend: FloatArray) -> FloatArray:
        at_knots = [self._from_left(self.knots[:, k], bend) for k in range(self.n_knots)]
        return np.minimum.reduce(at_knots)


def _along(u: FloatArray) -> tuple[int, ...]:
    """The shape of a number a row beside u, which may have several columns."""
    return (len(u), *(1,) * (u.ndim - 1))


def hinge(y: FloatArray) -> PiecewiseLinear:
    """max(0, 1 - y u): one knot at u = y."""
    slopes = np.column_stack([np.where(y > 0, -1.0, 0.0), np.where(y > 0, 0.0, 1.0)])
    return PiecewiseLinear(knots=np.ascontiguousarray(y[:, None], dtype=float), slopes=slopes)


def epsilon_insensitive(y: FloatArray, epsilon: float) -> PiecewiseLinear:
    """max(0, |y - u| - epsilon): knots at y - epsilon and y + epsilon, one if they are the same.

    Examples
    --------
    >>> import numpy as np
    >>> epsilon_insensitive(np.array([2.0, 2.0]), 0.5).value(np.array([0.5, 2.25]))
    array([1., 0.])
    """
    knots = np.column_stack([y - epsilon, y + epsilon])
    if (knots[:, 0] < knots[:, 1]).all():
        return PiecewiseLinear(knots, np.tile([-1.0, 0.0, 1.0], (len(y), 1)))
    return PiecewiseLinear(
        np.ascontiguousarray(y[:, None], dtype=float), np.tile([-1.0, 1.0], (len(y), 1))
    )


def pinball(y: FloatArray, quantile: float) -> PiecewiseLinear:
    """max(tau (y - u), (1 - tau) (u - y)) with tau the quantile: one knot at u = y.

    Examples
    --------
    >>> import numpy as np
    >>> pinball(np.array([2.0, 2.0]), 0.75).value(np.array([0.0, 4.0]))
    array([1.5, 0.5])
    """
    slopes = np.tile([-quantile, 1.0 - quantile], (len(y), 1))
    return PiecewiseLinear(np.ascontiguousarray(y[:, None], dtype=float), slopes)
