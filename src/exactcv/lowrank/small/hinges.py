"""Losses taken apart at their knots: what the steps in m dimensions work on.

A convex loss with knots t_k, at which its slope rises by h_k, is a straight line and a hinge for
each knot,

    L(u) = -l u + sum_k h_k max(0, -r_k) + constant,    r_k = s_k (u - t_k),

with s_k = 1 left of the segment where L is flattest and -1 right of it, and -l the slope there.  So
the hinge loss is one *hinge* (t = s = y), the epsilon-insensitive loss two, the pinball loss one
and a *lean* l, which joins the linear term of the problem:

    min over w, b   1/2 ||w||^2 - a'w - beta b + sum_i B_i max(0, -r_i).

Hinges are *low* (r < 0, coefficient s_i B_i), *free* (r = 0, in between) or *high* (r > 0, none).
Those of one row share its features: they are held once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...problem.losses import PiecewiseLinear
from ...types import FloatArray, IntArray

__all__ = ["FREE", "HIGH", "LOW", "Hinges", "hinges_of"]

LOW, FREE, HIGH = np.int8(0), np.int8(1), np.int8(2)


@dataclass(frozen=True)
class Hinges:
    """Hinges, the features of their rows, and the linear term.

    row : the row of each hinge in Z; None if each row has one hinge.
    lean : (rows,), the coefficients that are in the linear term already.
    bare : the linear term without them (w, then b): what is left where large ones nearly cancel.
    """

    Z: FloatArray
    row: IntArray | None
    sign: FloatArray
    knot: FloatArray
    box: FloatArray
    lean: FloatArray
    a: FloatArray
    beta: float
    fit_intercept: bool
    bare: tuple[FloatArray, float]

    def __len__(self) -> int:
        return len(self.box)

    def features(self, which: NDArray[Any] | int) -> FloatArray:
        """z of some hinges, or of one (numbers)."""
        return self.Z[which if self.row is None else self.row[which]]

    def by_row(self, coef: FloatArray) -> FloatArray:
        """Sums over the hinges of each row."""
        if self.row is None:
            return coef
        return np.asarray(np.bincount(self.row, weights=coef, minlength=len(self.Z)))

    def pull(self, coef: FloatArray) -> FloatArray:
        """sum c_i z_i."""
        return np.asarray(self.by_row(coef) @ self.Z)

    def added_up(self, coef: FloatArray) -> tuple[FloatArray, float]:
        """The linear term and sum c_i (z_i, 1), row by row: large leans are not added up first."""
        a, beta = self.bare
        whole = self.lean + self.by_row(coef)
        return a + whole @ self.Z, beta + float(whole.sum())

    def spread(self, values: FloatArray) -> FloatArray:
        """Of each hinge what its row has."""
        return values if self.row is None else values[self.row]

    def along(self, w: FloatArray) -> FloatArray:
        """z_i'w."""
        return self.spread(self.Z @ w)

    def change(self, step: FloatArray) -> FloatArray:
        """How r changes with theta = (w, b)."""
        out = self.Z @ step[:-1]
        out += step[-1]
        return np.asarray(self.spread(out) * self.sign)

    def margins(self, theta: FloatArray) -> FloatArray:
        """r at theta."""
        u = self.Z @ theta[:-1]
        u += theta[-1]
        return np.asarray((self.spread(u) - self.knot) * self.sign)

    def only(self, kept: IntArray, coef: FloatArray) -> Hinges:
        """The problem of some hinges; the others keep these coefficients."""
        gone = coef.copy()
        gone[kept] = 0.0
        rows, row = kept, None
        if self.row is not None:
            rows, row = np.unique(self.row[kept], return_inverse=True)
        aside = self.lean + self.by_row(gone)
        aside[rows] -= self.lean[rows]
        return Hinges(
            self.Z[rows],
            row,
            self.sign[kept],
            self.knot[kept],
            self.box[kept],
            self.lean[rows],
            self.a + self.pull(gone),
            self.beta + float(gone.sum()),
            self.fit_intercept,
            (self.bare[0] + aside @ self.Z, self.bare[1] + float(aside.sum())),
        )

    def places(self, state: NDArray[np.int8]) -> NDArray[np.int8]:
        """Places of the rows from left to right in u (`reduced.Reply`), of all their hinges."""
        place = np.where(self.sign > 0, state, HIGH - state)
        return self.by_row(place).astype(np.int8)


def hinges_of(
    Z: FloatArray,
    loss: PiecewiseLinear,
    box: FloatArray,
    linear: tuple[FloatArray, float],
    fit_intercept: bool,
) -> Hinges:
    """The hinges of some rows; those of the first knots first.

    Examples
    --------
    >>> from exactcv.problem.losses import pinball
    >>> loss = pinball(np.array([5.0]), 0.25)
    >>> found = hinges_of(np.ones((1, 2)), loss, np.array([4.0]), (np.zeros(2), 0.0), True)
    >>> found.sign, found.box, found.lean, found.a
    (array([-1.]), array([4.]), array([1.]), array([1., 1.]))
    """
    n, flattest = len(box), np.argmin(np.abs(loss.slopes), axis=1)
    lean = -box * loss.slopes[np.arange(n), flattest] + 0.0
    a, beta = linear
    if lean.any():
        a, beta = a + lean @ Z, beta + float(lean.sum())
    sign = np.where(np.arange(loss.n_knots)[:, None] < flattest, 1.0, -1.0)
    size = np.diff(loss.slopes, axis=1).T * box
    row = None if loss.n_knots == 1 else np.tile(np.arange(n), loss.n_knots)
    return Hinges(
        Z, row, sign.ravel(), loss.knots.T.ravel(), size.ravel(), lean, a, beta, fit_intercept,
        linear,
    )  # fmt: skip
