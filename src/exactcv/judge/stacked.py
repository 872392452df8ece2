"""The judge of many small problems at once: one compiled pass over the solutions of all of them.

The figures are those of ``piecewise_linear.py``, for the hinge loss.  Each solution has labels,
weights and a diagonal of K of its own; the rows of smaller problems are filled up with such as take
no part (weight, coefficient and K c zero), which changes no figure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._core.reference.residuals import Scale
from ..tolerances import AT_BOUND
from ..types import FloatArray, IntArray
from .certificate import relative_gap
from .piecewise_linear import HingeTables

__all__ = ["Stacked", "Verdicts"]


@dataclass(frozen=True)
class Verdicts:
    """What solutions are worth, one number for each; ``gap`` is relative to the objective."""

    intercept: FloatArray
    kkt: FloatArray
    gap: FloatArray
    floor: FloatArray

    def part(self, which: slice) -> Verdicts:
        """Those of some solutions."""
        figures = self.intercept, self.kkt, self.gap, self.floor
        return Verdicts(*(one[which] for one in figures))


@dataclass
class Stacked:
    """Solutions of many training sets, a row each, with h = K c and the diagonal of K.

    Examples
    --------
    >>> sets = Stacked.empty(1, 3)
    >>> sets.y[0, :2], sets.weight[0, :2], sets.diagonal[0, :2] = [1.0, -1.0], 1.0, 1.0
    >>> sets.coef[0, :2] = sets.h[0, :2] = [1.0, -1.0]  # K = I
    >>> found = sets.judge(np.array([5.0]), True)
    >>> found.intercept[0], found.kkt[0] < 1e-14, found.gap[0] < 1e-14
    (np.float64(0.0), np.True_, np.True_)
    """

    h: FloatArray
    coef: FloatArray
    y: FloatArray
    weight: FloatArray
    diagonal: FloatArray

    @classmethod
    def empty(cls, count: int, width: int) -> Stacked:
        """Room for so many, with so many rows; all of them take no part."""
        h, coef, weight, diagonal = np.zeros((4, count, width))
        return cls(h, coef, np.ones((count, width)), weight, diagonal)

    def judge(self, C: FloatArray, fit_intercept: bool) -> Verdicts:
        """The intercepts that the rule picks, and the figures."""
        root = np.sqrt(np.maximum(self.diagonal, 0.0))
        widest = root.max(axis=1, initial=0.0)
        b, out = np.empty(len(C)), np.empty((len(C), 4))
        for width in np.unique(widest):
            at = widest == width
            scale = Scale(root[at], float(width), 1.0)
            tables = HingeTables.of(self.y[at], self.weight[at], fit_intercept, scale)
            solutions, which = (self.h[at], self.coef[at]), np.arange(np.count_nonzero(at))
            b[at] = tables.intercepts(*solutions, C[at], which)
            out[at] = tables.figures(*solutions, b[at], C[at], which)
        return Verdicts(b, out[:, 0], relative_gap(out[:, 1], out[:, 2]), out[:, 3])

    def at_bound(self, which: IntArray, C: FloatArray) -> FloatArray:
        """The share of the rows with some weight that are at their bound, in some solutions."""
        used = self.weight[which] > 0
        box = C[:, None] * self.weight[which] * (1.0 - AT_BOUND)
        full = used & ((self.y * self.coef)[which] >= box)
        return np.asarray(full.sum(axis=1) / used.sum(axis=1))
