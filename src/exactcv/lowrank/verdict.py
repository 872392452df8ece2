"""Left-out labels of all rows in one pass, as far as bounds settle them.

Values are not settled by bounds: of these only rows without a coefficient are.

What leaving out row j can do is bounded from the full-data solution alone; the proofs are in
``engine/bounds.py``.  All that they need of the kernel is how far the features of two rows are
apart.  With d_i = ||z_i - centre|| for a fixed centre and R the largest d_i, that is at most
d_i + R, so (c_j the coefficient of row j)

- f moves at row j by at most |c_j| (d_j + R)^2, and anywhere by |c_j| (d_j + R) 2 R;
- b moves besides, by a walk over the rows nearest to the margin until they have taken up c_j.

Without an intercept: |c_j| ||z_j||^2 and |c_j| ||z_j|| R, with the centre at 0.

A row where its loss is flat has no coefficient and changes nothing; the value of a row with a
coefficient only moves away from its label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from .._core._bounds import walk
from .._core._chunks import settled
from ..judge.certificate import implied_accuracy
from ..judge.features import lengths
from ..problem.loss_rules import LossRule
from ..types import FloatArray, IntArray
from .passes.sweep import Chunk, Columns
from .small.reduced import strictly_inside
from .solver import Solved

__all__ = ["Farthest", "Limits", "Spread", "Verdict", "limits_of", "settled_near", "verdict"]


@dataclass(frozen=True)
class Spread:
    """How far features are from a fixed centre: at most ``radius``."""

    centre: FloatArray
    radius: float
    fit_intercept: bool

    def distance(self, Z: Any) -> FloatArray:
        square = lengths(Z) ** 2
        square -= 2.0 * (Z @ self.centre)
        square += float(self.centre @ self.centre)
        # A little more than nothing, for rounding.
        return np.sqrt(np.maximum(square, 0.0) + 1e-13)

    def own(self, Z: Any) -> FloatArray:
        """Per unit of coefficient, how far f (b's walk aside) can move at the row itself."""
        distance = self.distance(Z)
        return (distance + self.radius) ** 2 if self.fit_intercept else distance**2

    @property
    def largest(self) -> float:
        """||z|| of any row, at most."""
        return self.radius + float(np.linalg.norm(self.centre))

    @property
    def most(self) -> float:
        """The same at any row, for any row that is left out."""
        return (2.0 * self.radius) ** 2 if self.fit_intercept else self.radius**2


@dataclass(frozen=True)
class Farthest:
    """The largest distance from the centre in a chunk."""

    spread: Spread

    def __call__(self, chunk: Chunk) -> float:
        return float(self.spread.distance(chunk.Z).max())

    def join(self, results: list[float]) -> float:
        return max(results)


@dataclass(frozen=True)
class Limits:
    """What the pass must know of P full-data solutions.

    least, most : (P, 2), how far b walks when a row of that class is left out; for labels alone.
    slack : (P,), how far the values at hand may be off.
    rows : the rows of each small problem, which are not judged here.
    """

    columns: Columns
    C: FloatArray
    least: FloatArray
    most: FloatArray
    slack: FloatArray
    rows: list[IntArray]
    spread: Spread


@dataclass(frozen=True)
class Verdict:
    """Of one chunk, (rows, P) each.

    wrong : labels, where they are settled; False of values, which say it themselves.
    open : rows that are not: they have to be solved (small problems' own rows are never open).
    kept : rows that have no coefficient, so that nothing changes without them.
    value : decision values; those of ``kept`` are left-out values as well.
    """

    wrong: NDArray[np.bool_]
    open: NDArray[np.bool_]
    kept: NDArray[np.bool_]
    value: FloatArray | None = None


def limits_of(
    solved: list[Solved],
    weights: FloatArray | None,
    spread: Spread,
    loss: LossRule,
    seed: int,
) -> Limits:
    """``weights`` (2, 2): the least positive and the largest weight of each class, for labels."""
    theta = np.array([one.theta for one in solved])
    least, most = np.zeros((len(solved), 2)), np.zeros((len(solved), 2))
    slack = np.empty(len(solved))
    for p, one in enumerate(solved):
        slack[p] = accuracy(one, spread)
        if spread.fit_intercept and weights is not None:
            least[p], most[p] = walks(one, one.C * weights, slack[p])
    fold = np.full(len(solved), -1)
    plan = Columns(theta, fold, np.zeros((len(solved), 2)), np.ones(len(solved)), seed, loss)
    C = np.array([one.C for one in solved])
    return Limits(plan, C, least, most, slack, [np.sort(one.rows) for one in solved], spread)


def accuracy(solved: Solved, spread: Spread) -> float:
    """How far decision values may be from the exact ones, by the certificate."""
    scale = max(1.0, float(np.abs(solved.u).max(initial=0.0)))
    gap = implied_accuracy(solved.gap, 0.0, spread.largest**2)
    return 2.0 * gap + solved.kkt * scale + 1e-12 * scale


def walks(solved: Solved, sizes: FloatArray, slack: float) -> tuple[FloatArray, FloatArray]:
    """How far b walks at least and at most when a row at its bound is left out.

    sizes : (2, 2), the smallest and the largest coefficient, of negative ones and of positive ones.
    """
    problem, n = solved.problem, len(solved.u)
    gone = np.array([-1.0, -1.0, 1.0, 1.0]) * sizes.ravel()
    coef, u = np.concatenate([solved.coef, gone]), np.concatenate([solved.u, np.zeros(4)])
    state = np.concatenate([solved.state, np.full(4, -1)]).astype(np.int8)
    levels = problem.loss.coefficient_levels(problem.box)
    levels = np.concatenate([levels, np.tile(gone[:, None], levels.shape[1])])
    knots = np.concatenate([problem.loss.knots, np.zeros((4, problem.loss.n_knots))])
    least, most = np.zeros(4), np.zeros(4)
    margin = (slack + tolerances.AT_BOUND) * float(problem.box.sum())
    walk(knots, levels, state, coef, u, np.arange(n, n + 4), gone, margin, least, most)
    # Rows beyond the width, which are not here, may stop b sooner, but not before the width.
    return np.minimum(least[::2], solved.width.min()), most[1::2]


def settled_near(
    solved: Solved, limits: Limits, p: int, want_decision: bool
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """(wrong, open, kept) of the rows of a small problem, as `Verdict` has them.

    A free row cannot take up its own coefficient, so that b walks as far as for one at its bound.
    Where no coefficient is strictly inside its box b has an interval, and even a row without a
    coefficient may limit it: all rows that the bounds do not settle are open then.
    """
    problem = solved.problem
    size = np.abs(solved.coef)
    kept = ~solved.free & (size == 0.0)
    if problem.fit_intercept and not strictly_inside(problem, solved.coef).any():
        kept[:] = False
    if want_decision:
        return np.zeros(len(kept), dtype=bool), ~kept, kept
    value = problem.y * solved.u
    wrong = ~(value > tolerances.TIE)
    side = (problem.y > 0).astype(np.intp)
    own = problem.box * limits.spread.own(problem.Z)
    slack = limits.slack[p]
    sure = (size > tolerances.AT_BOUND * problem.box) & (value < 1.5)
    settled_wrong = sure & (
        (value <= tolerances.TIE - slack)
        | (value - limits.least[p, side] + own <= tolerances.TIE - slack)
    )
    right = sure & (value - limits.most[p, side] - own > tolerances.TIE + slack)
    wrong = np.where(kept, wrong, settled_wrong)
    return wrong, ~(kept | settled_wrong | right), kept


def verdict(chunk: Chunk, limits: Limits, want_decision: bool) -> Verdict:
    """See the top of this file."""
    u, loss = limits.columns.values(chunk), limits.columns.loss(chunk.y)
    wrong, open_, kept = (np.zeros(u.shape, dtype=bool) for _ in range(3))
    if want_decision:
        kept = (loss.slope(u) == 0.0) | (chunk.weight <= 0)[:, None]
        open_ = ~kept
    else:
        own = chunk.weight * limits.spread.own(chunk.Z)
        bounds = own, limits.C, limits.least, limits.most, limits.slack, tolerances.TIE
        flags = (part.view(np.uint8) for part in (wrong, open_, kept))
        settled(u, chunk.y, loss.knots, loss.slopes, chunk.weight, *bounds, *flags)
    for p, rows in enumerate(limits.rows):
        stop = chunk.start + len(chunk.y)
        mine = rows[np.searchsorted(rows, chunk.start) : np.searchsorted(rows, stop)] - chunk.start
        open_[mine, p] = kept[mine, p] = False
    return Verdict(wrong, open_, kept, u if want_decision else None)
