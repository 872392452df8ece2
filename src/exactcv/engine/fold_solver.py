"""Leave-one-out folds that have to be solved: in blocks from one table, judged, put right.

What a block of rows gives up is taken from their coefficients by the compiled loop.  If only labels
are wanted, most of them are certain then (``labels.py``); all else goes to the ledger.  Folds that
the loop does not settle, or the ledger refuses, are few; they are solved one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from ..judge import ledger as entries
from ..judge.claims import PROBES
from ..judge.intercept import closeness
from ..judge.ledger import Ledger
from ..problem.problem import Task
from ..types import FloatArray, IntArray
from .bounds import Span
from .full_solution import FullSolution
from .labels import certain, gaps, slips
from .merged import Merged
from .path import Point, Tracker, states_of
from .table import Driven, Inverse, Table

__all__ = ["FoldSolver", "Leaves", "Place", "at_a_time", "blocks"]

# So many folds are handed to the compiled loop at a time, or as many as have so many values.
BLOCK, VALUES = 256, 1 << 18
# With so few rows at a knot, K c takes less than the check of what is claimed of it.
FEW_TO_CLAIM = 2 * PROBES
# What the proof of labels without a judge costs, in multiplications: once, and for each probe and
# row in play; and what the judge costs for each row of a solution, besides the products.
PROOF, PROOF_A_ROW, JUDGE_A_ROW = 1_500_000, 50, 30
# So many folds that are far from the solution at hand are worth another one, so often; unless so
# few rows are at a knot that events cost next to nothing, and few folds are far.
MANY, OTHER_STARTS = 8, 2
FEW_FREE = 24

# Rounding of a sum of some terms near 1, and the share of a box that is given up to it at most.
ROUNDING = 16 * float(np.finfo(float).eps)
SMALL_SHARE = 1e-6


@dataclass(frozen=True)
class Leaves:
    """Folds of leave-one-out, and what they take.

    The row that each leaves out, its site, how much of its box that keeps (as a share) and what its
    coefficient must give up.
    """

    folds: IntArray
    rows: IntArray
    sites: IntArray
    keep: FloatArray
    taken: FloatArray

    def of(self, full: FullSolution) -> Leaves:
        """The same for the coefficients of that solution."""
        high, low = full.levels[self.sites, 0], full.levels[self.sites, -1]
        rest = np.clip(full.coef[self.sites], self.keep * low, self.keep * high)
        return replace(self, taken=full.coef[self.sites] - rest)

    def part(self, which: IntArray | NDArray[np.bool_] | slice) -> Leaves:
        return Leaves(
            self.folds[which],
            self.rows[which],
            self.sites[which],
            self.keep[which],
            self.taken[which],
        )

    def __len__(self) -> int:
        return len(self.folds)


@dataclass(frozen=True)
class Place:
    """A grid point and its full-data solution.

    ``later`` are those with larger C that share it; or, if ``proportional``, those with smaller C
    where it is the same but for the factor C.
    """

    l: int
    point: Point
    later: IntArray
    proportional: bool = False

    @property
    def ls(self) -> IntArray:
        """The grid point and the others."""
        return np.append(self.l, self.later)


def at_a_time(n: int) -> int:
    """How many solutions of n rows are handy."""
    return max(BLOCK, VALUES // n)


def blocks(count: int, size: int) -> Iterator[IntArray]:
    """Indices, so many at a time."""
    for first in range(0, count, size):
        yield np.arange(first, min(first + size, count))


def pick(rows: FloatArray, which: NDArray[np.bool_]) -> FloatArray:
    """Some of the rows; no copy if it is all of them."""
    return rows if which.all() else rows[which]


class FoldSolver:
    """Solves folds from tables; parameters as in `LeaveOneOut`."""

    def __init__(
        self,
        task: Task,
        ledger: Ledger,
        span: Span,
        cancel: NDArray[np.int32],
        merged: Merged,
        judge_all: bool,
    ):
        self.task, self.ledger, self.span, self.cancel = task, ledger, span, cancel
        self.merged, self.problem, self.judge_all = merged, merged.problem, judge_all

    def settle(self, place: Place, table: Table, leaves: Leaves) -> None:
        """From one table, and where too many rows would change, from another.

        Where a great many coefficients are just about to reach their bounds, leaving out any row
        changes them all, but leaving out one row of a class is much like leaving out another.
        """
        far = self._in_blocks(place, table, leaves)
        if not len(far):
            return
        few = len(table.base.members) <= FEW_FREE and 2 * len(far) < len(leaves)
        starts = 0 if few else OTHER_STARTS
        for up in (True, False):
            mine = far.part((far.taken > 0) == up)
            for _ in range(starts):
                if len(mine) >= MANY:
                    mine = self._from_neighbour(place, table.base, mine)
            for which in blocks(len(mine), at_a_time(self.problem.n)):
                some = mine.part(which).of(table.base)
                coef, found = table.solutions(some.sites, some.taken, self.cancel, Driven.ALL)
                self._judge(place, some, coef, found.failed)

    def _in_blocks(self, place: Place, table: Table, leaves: Leaves) -> Leaves:
        """Settle what can be settled in rounds; returns what can not."""
        far = []
        claiming = self.task.want_decision and len(table.base.members) > FEW_TO_CLAIM
        claiming &= self.ledger.takes_claims and table.covers(self.merged.first)
        for which in blocks(len(leaves), at_a_time(self.problem.n)):
            mine = leaves.part(which)
            if claiming:
                failed, met = self._by_claims(place, table, mine)
                # Where most have to be worked out after all, there is no point in claims.
                claiming = met >= len(mine) // 2
            else:
                failed = self._by_products(place, table, mine)
            far.append(failed)
        return leaves.part(np.concatenate(far) if far else slice(0))

    def _by_products(self, place: Place, table: Table, leaves: Leaves) -> NDArray[np.bool_]:
        """Settle some folds, K c by products with K; returns which are left."""
        far, todo = np.zeros(len(leaves), dtype=bool), np.arange(len(leaves))
        labels = not (self.task.want_decision or self.judge_all) and self.ledger.sound(place.l)
        first = labels and not place.proportional and self._worth_proving(table, len(leaves))
        if first:
            sure, far = self._prove(place.l, table, leaves)
            todo = todo[~sure & ~far]
        mine = leaves if len(todo) == len(leaves) else leaves.part(todo)
        coef, found = table.solutions(mine.sites, mine.taken, self.cancel, Driven.SHORT)
        far[todo] = found.failed
        if found.failed.any():
            mine, coef = mine.part(~found.failed), coef[~found.failed]
        if labels and not first:
            # What misses the mark may leave no doubt of its label.
            missed = ~self._enter(place, mine, coef, self.apart(coef, mine))
            mine, coef = mine.part(missed), coef[missed]
            if len(mine):
                sure, _ = self._prove(place.l, table, mine)
                mine, coef = mine.part(~sure), coef[~sure]
        self._judge(place, mine, coef)
        return far

    def _worth_proving(self, table: Table, count: int) -> bool:
        """Does it cost less to prove labels of so many folds than to have all of them judged?"""
        free, n = len(table.base.members), self.problem.n
        play = free + len(table.columns.others)
        proof = PROOF + PROBES * play * (4 * free + PROOF_A_ROW)
        return count * n * (free + JUDGE_A_ROW) > proof

    def _by_claims(
        self, place: Place, table: Table, leaves: Leaves
    ) -> tuple[NDArray[np.bool_], int]:
        """The same with the u that the table gives; also how many those were good enough for."""
        coef, u, found = table.solutions_and_values(leaves.sites, leaves.taken, self.cancel)
        good = ~found.failed
        mine, coef, u = leaves.part(good), pick(coef, good), pick(u, good)
        apart, h = self.apart(coef, mine), self.merged.spread(u)
        h += (apart @ self.task.problem.K[0] - h[:, 0])[:, None]  # without the intercept
        met = self._enter(place, mine, coef, apart, h)
        # What misses the mark with the allowance may meet it without.
        self._judge(place, mine.part(~met), coef[~met])
        return found.failed, int(met.sum())

    def _prove(
        self, l: int, table: Table, leaves: Leaves
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Enter labels that solutions leave no doubt of, without having them judged.

        Returns which those are, and which are not settled in rounds.
        """
        found = table.facts(leaves.sites, leaves.taken, self.cancel)
        room = found.room if self.problem.fit_intercept else np.full(len(leaves), np.inf)
        # On its own figures a row at a knot is there; in fact it may miss it by a little.
        known = np.abs(found.value) - np.abs(table.u - table.base.u)[leaves.sites]
        known -= slips(table, found)
        sure = certain(known, gaps(table, found), self.span.own[leaves.sites], room)
        sure &= ~found.failed
        wrong = ~(self.problem.y[leaves.rows] * found.value > 0)
        self.ledger.proved(l, leaves.folds[sure], wrong[sure])
        return sure, found.failed

    def _judge(
        self,
        place: Place,
        leaves: Leaves,
        coef: FloatArray,
        failed: NDArray[np.bool_] | None = None,
    ) -> None:
        """Enter solutions; those that failed or miss the mark are solved again."""
        if not len(leaves):
            return
        todo = np.zeros(len(leaves), dtype=bool) if failed is None else failed.copy()
        good = ~todo
        mine, solved = leaves.part(good), pick(coef, good)
        todo[good] = ~self._enter(place, mine, solved, self.apart(solved, mine))
        missed = todo & good
        if missed.any():
            mine = leaves.part(missed)
            solved = self._on_levels(place, mine, coef[missed])
            todo[missed] = ~self._enter(place, mine, solved, self.apart(solved, mine))
        for r in np.flatnonzero(todo):
            self.resolve(place, leaves.part(slice(r, r + 1)), coef[r])

    def _on_levels(self, place: Place, leaves: Leaves, coef: FloatArray) -> FloatArray:
        """Coefficients that are at a level but for the rounding of u, put there.

        Where C is tiny, that is 1e-10 of a box or more; a row that is not quite at its bound is
        held to its knot, and misses it.
        """
        problem = self.problem
        levels = problem.loss.coefficient_levels(place.point.C * problem.weight)
        rounding = np.full(problem.n, ROUNDING * (1.0 + abs(place.point.b)))
        rounding /= np.where(problem.diagonal > 0, problem.diagonal, np.inf)
        most = SMALL_SHARE * (levels[:, 0] - levels[:, -1])
        slack = np.maximum(closeness(levels, problem.diagonal), np.minimum(rounding, most))
        out = coef.copy()
        for level in levels.T:
            np.copyto(out, level, where=np.abs(coef - level) <= slack)
        each = np.arange(len(leaves))
        out[each, leaves.sites] = coef[each, leaves.sites]  # its box is another
        return out

    def _enter(
        self,
        place: Place,
        leaves: Leaves,
        coef: FloatArray,
        apart: FloatArray,
        claimed: FloatArray | None = None,
    ) -> NDArray[np.bool_]:
        """Have solutions judged, those that hold at other C too at all of them."""
        within = tolerances.POLISH * self.task.tol
        if place.proportional:
            return self.ledger.proportional(place.ls, leaves.folds, apart, within=within)
        met, lasts = np.zeros(len(leaves), dtype=bool), np.zeros(len(leaves), dtype=bool)
        if len(place.later):
            lasts = self._last(coef, place.point.C)
        for which, ls in ((lasts, place.ls), (~lasts, place.ls[:1])):
            if which.any():
                met[which] = self.ledger.solved_at(
                    ls,
                    leaves.folds[which],
                    pick(apart, which),
                    within=within,
                    claimed=None if claimed is None else pick(claimed, which),
                )
        return met

    def _last(self, coef: FloatArray, C: float) -> NDArray[np.bool_]:
        """Which solutions are those of every larger C: no coefficient is at a bound that grows."""
        levels = self.problem.loss.coefficient_levels(C * self.problem.weight)
        high = np.where(levels > 0, levels, np.inf).min(axis=1)
        low = np.where(levels < 0, levels, -np.inf).max(axis=1)
        inside = 1.0 - tolerances.AT_BOUND
        return np.asarray(((coef < inside * high) & (coef > inside * low)).all(axis=1))

    def apart(self, coef: FloatArray, leaves: Leaves) -> FloatArray:
        """Coefficients of sites as those of all rows: none for the row that is left out."""
        each = np.arange(len(leaves))
        rest = coef[each, leaves.sites]
        out = self.merged.apart(coef)
        shared = np.flatnonzero(self.merged.copies[leaves.rows] > 1)
        if len(shared):
            which, rows = self.merged.rows_of(leaves.sites[shared])
            fold = shared[which]
            weight = np.where(rows == leaves.rows[fold], 0.0, self.task.problem.weight[rows])
            total = np.bincount(which, weights=weight)[which]
            out[fold, rows] = rest[fold] * weight / total
        out[each, leaves.rows] = 0.0
        return out

    # ---- one by one ----------------------------------------------------------------------------

    def resolve(self, place: Place, leaves: Leaves, coef: FloatArray) -> Point:
        """One fold by the active set, from coefficients nearby."""
        l, point = place.l, place.point
        site, weight = leaves.sites[0], self.problem.weight.copy()
        weight[site] *= leaves.keep[0]
        problem = replace(self.problem, weight=weight)
        tracker = Tracker(problem, self.cancel, self.task.tol)
        state = states_of(problem, point.C, coef)
        start = Point(point.C, state, coef, problem.K @ coef, point.b)
        solution = tracker.polish(start)
        found = self.apart(solution.coef[None].copy(), leaves)
        good = self.ledger.solved(l, leaves.folds, found, how=entries.FALLBACK)[0]
        again = not (good or solution.fallback) and self.ledger.behind(l, int(leaves.folds[0]))
        if again:
            solution = tracker.slow_but_sure(solution)
            found = self.apart(solution.coef[None].copy(), leaves)
            self.ledger.solved(l, leaves.folds, found, how=entries.FALLBACK)
        return solution

    def _from_neighbour(self, place: Place, base: FullSolution, leaves: Leaves) -> Leaves:
        """Solve the first of some folds, and the others from there; returns what is left.

        The row of the first fold gets its whole coefficient back in all the others.
        """
        first, rest = leaves.part(slice(0, 1)), leaves.part(slice(1, None))
        site, up = int(first.sites[0]), first.taken[0] > 0
        coef = base.coef.copy()
        coef[site] -= first.of(base).taken[0]
        solution = self.resolve(place, first, coef)
        state = solution.state.copy()
        state[site] = 0 if up else 2 * self.problem.loss.n_knots
        u = self.problem.K @ solution.coef + solution.b
        inverse = Inverse(self.problem)
        start = FullSolution(self.problem, state, solution.coef, u, base.levels)
        if not len(start.members):
            return rest
        start = inverse.of(start)
        others = start.state >= 0
        others[start.members] = False
        level = float(base.levels[site, 0 if up else -1])
        given = (site, level - float(solution.coef[site]))
        table = Table(start, inverse.columns(np.flatnonzero(others)), given)
        return self._in_blocks(place, table, rest.of(start))
