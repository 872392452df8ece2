"""The judge of solutions in m dimensions: rows come in chunks, the figures are sums and maxima.

    min over w, b   P = 1/2 ||w||^2 + sum_i B_i L_i(u_i),        u_i = w'z_i + b

with losses of knots and slopes.  A solution is theta = (w, b) and a coefficient c_i for every row.
Let c~ be the coefficients brought into their boxes, -c~_i / B_i between the first and the last
slope of L_i, and v = sum_i c~_i z_i.  If sum c~ = 0, the objective of the dual problem at c~ is

    D = P - 1/2 ||w - v||^2 - sum_i [B_i L_i(u_i) + B_i L_i*(-c~_i / B_i) + c~_i u_i],

where every bracket is nonnegative.  So P - D is a duality **gap** of theta, computed without
cancellation, and ||w - w*|| <= sqrt(2 gap) since P is strongly convex.  Where the sum is not zero,
coefficients of that much in all must still be moved, which changes D by no more than
|sum c~| (1 + max |t| + |b| + ||w|| max ||z||), t the knots, and v by no more than
|sum c~| max ||z||.

**kkt** is the largest violation of the conditions, in units of the largest knot:

- the natural residual of each row, as in ``piecewise_linear.py``;
- w = v: ||w - v|| max ||z||;
- sum c~ = 0, relative to sum |c~|.

v is known but for rounding, e = 1.1e-16 sum_i |c_i| ||z_i||: ||w - v|| has it on top, and what it
may make of the figures is their floor.

A row whose coefficient is the one that goes with its segment of the loss violates nothing, and its
bracket is zero: all that it adds is in `side_sums`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._core._chunks import held_sums
from .._core.reference.residuals import (
    ROUNDOFF,
    Scale,
    fenchel_young,
    natural_residual,
)
from ..problem.losses import PiecewiseLinear
from ..types import BoolArray, FloatArray

__all__ = [
    "Extent",
    "Figures",
    "SideSums",
    "Tally",
    "figures",
    "lengths",
    "rounding_floor",
    "side_sums",
    "tally",
]

# The floor of the figures in units of what rounding in v is charged with.
FLOOR = 3.0


class Extent(NamedTuple):
    """The largest ||z|| of all rows, or a little more, and their largest knot."""

    widest: float
    knot: float


def lengths(Z: Any) -> FloatArray:
    """||z_i|| of rows that are dense or sparse.

    Examples
    --------
    >>> lengths(np.array([[3.0, 4.0]])), lengths(sparse.csr_array([[3.0, 4.0]]))
    (array([5.]), array([5.]))
    """
    if sparse.issparse(Z):
        return np.sqrt(np.asarray(Z.multiply(Z).sum(axis=1)).ravel())
    return np.sqrt(np.einsum("ij,ij->i", Z, Z))


@dataclass(frozen=True)
class Tally:
    """Sums and maxima over some rows at one theta; those of disjoint rows add up.

    pull, total, taken : sum c~_i z_i, sum c~_i and sum |c~_i|.
    added : sum |c_i| ||z_i||, the size of what is added up in ``pull``.
    loss, bracket : sums over the rows (see above).
    residual : the largest violation of a row.
    """

    pull: FloatArray
    total: float
    taken: float
    added: float
    loss: float
    bracket: float = 0.0
    residual: float = 0.0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.pull + other.pull,
            self.total + other.total,
            self.taken + other.taken,
            self.added + other.added,
            self.loss + other.loss,
            self.bracket + other.bracket,
            max(self.residual, other.residual),
        )


def tally(
    Z: Any,
    loss: PiecewiseLinear,
    box: FloatArray,
    coef: FloatArray,
    theta: FloatArray,
    extent: Extent,
) -> Tally:
    """Rows, dense or sparse, with whatever coefficients.

    Examples
    --------
    >>> from exactcv.problem.losses import hinge
    >>> Z, loss, extent = np.array([[2.0], [-1.0]]), hinge(np.array([1.0, -1.0])), Extent(2.0, 1.0)
    >>> theta, coef = np.array([2 / 3, -1 / 3]), np.array([2 / 9, -2 / 9])
    >>> found = tally(Z, loss, np.ones(2), coef, theta, extent)
    >>> [round(figure, 12) for figure in figures([found], theta, extent)]
    [0.0, 0.0, 0.222222222222, 0.0]
    """
    length = lengths(Z)
    levels = loss.coefficient_levels(box)
    tau = Scale(length, extent.widest, extent.knot or 1.0).stiffness(box)
    inside = np.clip(coef, levels[:, -1], levels[:, 0])
    u = Z @ theta[:-1] + theta[-1]
    return Tally(
        pull=inside @ Z,
        total=float(inside.sum()),
        taken=float(np.abs(inside).sum()),
        added=float(length @ np.abs(coef)),
        loss=float(box @ loss.value(u)),
        bracket=float(fenchel_young(u, inside, loss.knots, levels).sum()),
        residual=float(np.abs(natural_residual(u, coef, levels, loss, tau)).max(initial=0.0)),
    )


class SideSums(NamedTuple):
    """Rows with the coefficients that go with their segments, for P solutions.

    Weights stand for B_i: the figures of C_i = C w_i are C times these.
    """

    pull: FloatArray  # (P, m)
    total: FloatArray  # (P,)
    taken: FloatArray
    added: FloatArray
    loss: FloatArray
    bound: FloatArray  # how many have a coefficient

    def tally(self, p: int, C: float) -> Tally:
        """Those of solution p, whose boxes are C times the weights."""
        sums = (C * float(part[p]) for part in (self.total, self.taken, self.added, self.loss))
        return Tally(C * self.pull[p], *sums)

    def __add__(self, other: SideSums) -> SideSums:  # type: ignore[override]
        return SideSums(*(a + b for a, b in zip(self, other, strict=True)))


def side_sums(
    Z: FloatArray, loss: PiecewiseLinear, u: FloatArray, weight: FloatArray, which: BoolArray
) -> SideSums:
    """Sums over the rows ``which`` (rows, P); u is (rows, P) too, weight at least (rows, 1)."""
    held, sums = np.empty(u.shape), np.zeros((4, u.shape[1]))
    bound = np.zeros(u.shape[1], dtype=np.intp)
    length = lengths(Z)
    aside = (~which).view(np.uint8)
    held_sums(u, loss.knots, loss.slopes, weight, aside, length, held, sums, bound)
    total, taken, added, lost = sums
    return SideSums(held.T @ Z, total, taken, added, lost, bound.astype(np.float64))


class Figures(NamedTuple):
    """KKT violation, absolute duality gap, primal objective and floor (``certificate.Judge``)."""

    kkt: float
    gap: float
    primal: float
    floor: float


def figures(
    parts: list[Tally], theta: FloatArray, extent: Extent, fit_intercept: bool = True
) -> Figures:
    """What theta is worth, from tallies of all rows."""
    widest, unit = extent.widest, extent.knot or 1.0
    whole = reduce(lambda one, other: one + other, parts)
    w, b = theta[:-1], float(theta[-1])
    rounding = ROUNDOFF * whole.added
    norm, apart = float(np.linalg.norm(w)), float(np.linalg.norm(w - whole.pull)) + rounding
    off = abs(whole.total) if fit_intercept else 0.0
    moved = off * (1.0 + extent.knot + abs(b) + norm * widest)
    gap = 0.5 * (apart + off * widest) ** 2 + whole.bracket + moved
    kkt = max(
        whole.residual / unit,
        apart * widest / unit,
        off / whole.taken if off > 0 else 0.0,
        0.0 if fit_intercept else abs(b) / unit,
    )
    primal = 0.5 * norm**2 + whole.loss
    if not np.isfinite([kkt, gap, primal]).all():
        return Figures(np.inf, np.inf, primal, 0.0)
    return Figures(kkt, gap, primal, rounding_floor(whole.added, widest) / unit)


def rounding_floor(added: float, widest: float) -> float:
    """What rounding in v alone may make of the violation and of the relative gap."""
    return FLOOR * ROUNDOFF * added * widest
