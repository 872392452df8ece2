"""Equal rows with equal losses as one row, a *site*, with the sum of their boxes.

Real data repeat themselves, and of equal rows any number may be free at once; of sites there are
never more than dimensions, but by coincidence.  Features of equal rows may differ by rounding, so
rows count as equal when they do so to 1e-12; the judge looks at the rows themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...problem.losses import PiecewiseLinear
from ...types import FloatArray, IntArray

__all__ = ["Sites", "sites_of"]

EQUAL = 1e-12


@dataclass(frozen=True)
class Sites:
    """Which site each row belongs to, and the first row of each."""

    of: IntArray  # (rows,)
    first: IntArray  # (sites,)

    @property
    def any(self) -> bool:
        """Are there equal rows at all?"""
        return len(self.first) < len(self.of)

    def total(self, box: FloatArray) -> FloatArray:
        """Boxes of the sites."""
        total = np.bincount(self.of, weights=box, minlength=len(self.first))
        return np.asarray(total, dtype=np.float64)

    def spread(self, coef: FloatArray, box: FloatArray) -> FloatArray:
        """Coefficients of the rows: each has its share of the site's, by its box."""
        total = self.total(box)
        share = np.divide(coef, total, out=np.zeros_like(coef), where=total > 0)
        return share[self.of] * box


def sites_of(Z: FloatArray, loss: PiecewiseLinear) -> Sites:
    """Rows are sorted by a random projection, which brings equal ones together.

    Losses of one kind are equal if their first knots and first slopes are.

    Examples
    --------
    >>> from exactcv.problem.losses import hinge
    >>> found = sites_of(np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0]]), hinge(np.ones(3)))
    >>> found.first, found.of
    (array([0, 1]), array([0, 1, 0]))
    """
    n, m = Z.shape
    if n == 0:
        return Sites(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp))
    along = np.random.default_rng(0).normal(size=m)
    at = Z @ along
    widest = max(float(Z.max(initial=0.0)), -float(Z.min(initial=0.0)))
    slack = EQUAL * max(widest, np.finfo(float).tiny) * np.sqrt(m)
    knot, slope = loss.knots[:, 0], loss.slopes[:, 0]
    order = np.lexsort((at, slope, knot))
    close = np.diff(at[order]) <= 10.0 * slack
    close &= (np.diff(knot[order]) == 0) & (np.diff(slope[order]) == 0)
    same = np.zeros(n, dtype=bool)  # equal to the row before, in this order
    where = np.flatnonzero(close)
    for start in range(0, len(where), 1024):
        some = where[start : start + 1024]
        apart = np.abs(Z[order[some + 1]] - Z[order[some]]).max(axis=1)
        same[some + 1] = apart <= EQUAL * widest
    number = np.cumsum(~same) - 1
    # Sites in the order of their first rows.
    first = np.minimum.reduceat(order, np.flatnonzero(~same))
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    of = np.empty(n, dtype=np.intp)
    of[order] = rank[number]
    return Sites(of, np.sort(first))
