"""Training problems whose rows stay sparse, and what they are worth by the common judge.

    min over w, b   1/2 ||w||^2 + sum_i B_i L_i(x_i'w + b)

with losses of one knot and slopes.  X is never made dense, and there is no matrix of all rows or
of all columns: products with X cost as much as it has entries.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...judge.features import Extent, Figures, figures, lengths, tally
from ...judge.intercept import canonical_intercept, closeness
from ...problem.losses import PiecewiseLinear
from ...types import BoolArray, FloatArray, IntArray

__all__ = ["WideProblem", "WideSolution", "gram"]

# Rows that are looked at together.
BLOCK = 8192
# Rows whose products with others are made at a time.
GRAM_BLOCK = 256


@dataclass(frozen=True)
class WideProblem:
    """Rows (CSR), losses and boxes; rows whose box is 0 take no part."""

    X: Any
    loss: PiecewiseLinear
    box: FloatArray
    fit_intercept: bool

    @property
    def n(self) -> int:
        return len(self.box)

    @cached_property
    def length(self) -> FloatArray:
        """||x_i||."""
        return lengths(self.X)

    @cached_property
    def columns(self) -> Any:
        """X', which shares its numbers with X."""
        return self.X.T

    @cached_property
    def extent(self) -> Extent:
        return Extent(float(self.length.max(initial=0.0)), self.loss.largest_knot)

    @cached_property
    def levels(self) -> FloatArray:
        return self.loss.coefficient_levels(self.box)

    @cached_property
    def near(self) -> FloatArray:
        """How close to a level a coefficient is taken to be there."""
        return closeness(self.levels, self.length**2)

    @property
    def target(self) -> FloatArray:
        return self.loss.knots[:, 0]

    def with_box(self, box: FloatArray) -> WideProblem:
        """The same rows with other boxes; what is known of the rows stays known."""
        other = replace(self, box=box)
        for name in ("length", "columns", "extent"):
            other.__dict__[name] = getattr(self, name)
        return other

    def intercept(self, h: FloatArray, coef: FloatArray) -> float:
        """By the one rule that picks it."""
        if not self.fit_intercept:
            return 0.0
        return canonical_intercept(h, coef, self.levels, self.loss, self.box > 0, self.near)

    def strictly_inside(self, coef: FloatArray, rows: IntArray | slice = slice(None)) -> BoolArray:
        """Which coefficients of these rows, (..., rows), are at no level, but between two."""
        apart = np.abs(coef[..., None] - self.levels[rows]).min(axis=-1)
        return np.asarray((self.box[rows] > 0) & (apart > self.near[rows]))

    def judged(self, theta: FloatArray, coef: FloatArray) -> Figures:
        """What theta with these coefficients is worth."""
        parts = []
        for start in range(0, self.n, BLOCK):
            rows = start + np.flatnonzero(self.box[start : start + BLOCK] > 0)
            some = self.X[rows], self.loss.at(rows), self.box[rows], coef[rows]
            parts.append(tally(*some, theta, self.extent))
        return figures(parts, theta, self.extent, self.fit_intercept)


@dataclass(frozen=True)
class WideSolution:
    """A solution, and what the judge says of it.

    theta : (p + 1,), w and b.  u : values of all rows, also of those that take no part.
    primal, gap, kkt, floor : the figures.
    """

    C: float
    theta: FloatArray
    coef: FloatArray
    u: FloatArray
    primal: float
    gap: float
    kkt: float
    floor: float
    at_bound: int
    steps: int

    @property
    def intercept(self) -> float:
        return float(self.theta[-1])

    def outside(self, unit: float) -> WideSolution:
        """As of rows that are not in such units; their coefficients are left as they are."""
        w, square = self.theta[:-1] / unit, unit**2
        theta = np.append(w, self.intercept)
        return replace(self, theta=theta, primal=self.primal / square, gap=self.gap / square)

    @property
    def relative_gap(self) -> float:
        return self.gap / max(abs(self.primal), float(np.finfo(float).tiny))


def gram(rows: Any, columns: Any) -> FloatArray:
    """Inner products of some rows with others, whose transpose is ``columns``, both CSR."""
    out = np.empty((rows.shape[0], columns.shape[1]))
    for start in range(0, len(out), GRAM_BLOCK):
        part = slice(start, start + GRAM_BLOCK)
        out[part] = (rows[part] @ columns).toarray()
    return out
