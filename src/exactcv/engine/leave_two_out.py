"""All labels without two rows at one C, from the full-data solution and those without one row.

1. Every row is left out alone, as in plain leave-one-out with decision values, and judged.  What
   follows from these solutions for pairs (``without_one.py``) is entered.
2. Pairs that are open are left out of the full-data solution together (``pair_table.py``), once for
   both labels.  Labels that are not certain then are those of the solution that was found, if a
   ledger confirms it.
3. The same from the solution without a row that has many open pairs: where few rows are at a knot,
   leaving out one of them changes everything.
4. What is open still goes the long way: the solution without a row is taken for that of the full
   data, and rows are left out of it one by one (``leave_one_out.py``), by a ledger of its own.

Where C is so small that every solution is proportional to it (``proportional.py``), the order of
two values is that of the largest such C, which is therefore gone through first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from threading import local

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from ..judge.ledger import HOW, PROVED, SOLVED, UNCHANGED, Ledger
from ..problem.folds import Folds
from ..problem.problem import Task
from ..types import BoolArray, FloatArray, IntArray
from .blocks import solve_folds, together
from .bounds import Span
from .fold_solver import blocks
from .full_solution import FullSolution
from .leave_one_out import LeaveOneOut
from .merged import Merged
from .pair_table import Pairs, PairTable
from .path import Point, Tracker, states_of
from .proportional import MOST_VALUE, proportional_below
from .without_one import WithoutOne

__all__ = ["LeaveTwoOut", "Ordered", "TwoOut"]

# Pairs handed to the compiled loop at a time.
BLOCK = 1 << 14
# Rows with so many open pairs are worth a table of their own.
MANY = 4


@dataclass(frozen=True)
class Judged:
    """Worst figures of the models that were judged, row by row, and how entries were settled.

    Attributes
    ----------
    kkt, gap : (n,)
        Of models without row i, and without row i and another; proved entries have none.
    counts : (n, 4)
        Entries of row i that were settled in each of the ways in ``ledger.HOW`` but the first.
    events : int
        Changes of place, all pairs together.
    """

    kkt: FloatArray
    gap: FloatArray
    counts: IntArray
    events: int


@dataclass(frozen=True)
class TwoOut(Judged):
    """All labels at one grid point.

    Attributes
    ----------
    wrong : (n, n)
        Entry (i, j): is the label of row j wrong without rows i and j?  On the diagonal: without
        row i alone.
    """

    wrong: BoolArray


@dataclass(frozen=True)
class Ordered(Judged):
    """Which of two left-out rows has the larger value, at one grid point.

    Attributes
    ----------
    sign : (n, n) int8
        Entry (i, j): the sign of u_i - u_j without rows i and j, 0 for a tie and for pairs that
        were not asked for.
    """

    sign: NDArray[np.int8]


class LeaveTwoOut:
    """Leaves pairs of rows out, at one grid point after another.

    Parameters
    ----------
    task : Task
        Leave-one-out of all rows, row j in fold j, with decision values.
    cancel
    merged : Merged
        Rows that are one.
    """

    def __init__(self, task: Task, cancel: NDArray[np.int32], merged: Merged):
        self.task, self.cancel, self.merged = task, cancel, merged
        self.span = Span.of(task.problem)
        self._kept = local()
        self.ledger = Ledger(task, self._see)
        self.single = LeaveOneOut(task, self.ledger, self.span, cancel, merged)
        self._known: tuple[float, FloatArray] | None = None

    @cached_property
    def first(self) -> int | None:
        """The grid point that others follow from, if there is any: the largest C of (2)."""
        Cs = self.task.grid.Cs
        below = np.flatnonzero(Cs <= proportional_below(self.task.problem, self.span, 2))
        return int(below[np.argmax(Cs[below])]) if len(below) else None

    def known(self, C: float) -> FloatArray | None:
        """(n, n): differences of values that are certain at a smaller C, from below in size."""
        if self._known is None or self._known[0] <= C:
            return None
        return self._known[1] * (C / self._known[0])

    def keep(self, C: float, apart: FloatArray) -> None:
        """Keep what is certain at the first grid point."""
        self._known = C, apart

    def labels(self, l: int, point: Point) -> TwoOut:
        """Every row's label without it and another, at one grid point."""
        work = _Labels(self, l, point)
        work.settle()
        return TwoOut(*work.judged(), work.wrong)

    def order(self, l: int, point: Point, pairs: BoolArray) -> Ordered:
        """Which row of each pair has the larger value without both; ``pairs`` (n, n) is asked."""
        work = _Order(self, l, point, pairs)
        work.settle()
        return Ordered(*work.judged(), work.sign)

    def without_one(self, l: int, point: Point) -> FloatArray:
        """Leave every row out alone, by the ledger; the coefficients, one solution a row."""
        coef = np.tile(self.ledger.coef[l], (self.task.problem.n, 1))
        np.fill_diagonal(coef, 0.0)
        self._kept.coef = coef
        self.single.at(np.array([l]), [point])
        self._kept.coef = None
        # Of a row that is like another, the ledger was told no more than that.
        for twin, other in zip(*self.single._twins, strict=True):
            coef[twin] = coef[other]
            coef[twin, [twin, other]] = coef[other, [other, twin]]
        return coef

    def _see(
        self, ledger: Ledger, folds: IntArray, coef: FloatArray, h: FloatArray, b: FloatArray
    ) -> None:
        """Keep the solutions without one row."""
        if getattr(self._kept, "coef", None) is not None:
            self._kept.coef[folds] = coef

    def tables(
        self, full: FullSolution, pairs: IntArray, single: FloatArray, gone: int = -1
    ) -> Iterator[tuple[PairTable, IntArray]]:
        """The tables from which pairs start, and the pairs that start there."""
        if not full.problem.fit_intercept or len(full.members):
            yield PairTable(full, self.span, single, gone), pairs
            return
        # The intercept first moves until a row reaches a knot, as in ``leave_one_out.groups``.
        up = full.coef[pairs].sum(axis=1) >= 0.0
        for side, mine in ((1, up), (-1, ~up)):
            if mine.any():
                start = full.moved_to_knot(side)
                yield PairTable(start, self.span, single, gone), pairs[mine]

    def ledger_of(self, l: int, pairs: IntArray) -> Ledger:
        """For models without the rows of each pair."""
        both = tuple(pairs)
        grid = self.task.grid.part(np.array([l]))
        task = replace(self.task, folds=Folds(self.task.problem.n, both, both), grid=grid)
        return Ledger(task)

    def from_one(self, l: int, point: Point, i: int, rows: IntArray, coef: FloatArray) -> Ledger:
        """Leave-one-out of some rows, without row i."""
        weight = self.task.problem.weight.copy()
        weight[i] = 0.0
        problem = self.task.problem.weighted(weight)
        merged = Merged.of(problem) if self.merged.any else Merged.nothing(problem)
        single, grid = tuple(rows[:, None]), self.task.grid.part(np.array([l]))
        folds = Folds(problem.n, single, single)
        task = replace(self.task, problem=problem, folds=folds, grid=grid, want_decision=False)
        ledger = Ledger(task)
        own = self._entered(ledger, merged, point, coef)
        LeaveOneOut(task, ledger, self.span, self.cancel, merged).at(np.zeros(1, np.intp), [own])
        return ledger

    def _entered(self, ledger: Ledger, merged: Merged, point: Point, coef: FloatArray) -> Point:
        """The solution without a row as the full data's of that ledger."""
        problem, tol = merged.problem, ledger.task.tol
        coef = merged.together(coef)
        state = states_of(problem, point.C, coef)
        own = Point(point.C, state, coef, problem.K @ coef, point.b)
        if ledger.full(0, merged.apart(coef), within=tolerances.POLISH * tol)[0]:
            return own
        tracker = Tracker(problem, self.cancel, tol)
        for solve_again in (tracker.polish, tracker.slow_but_sure):
            better = solve_again(own)
            found = merged.apart(better.coef)
            good = ledger.full(0, found)[0]
            if np.array_equal(ledger.coef[0], found):
                own = better
            if good or better.fallback:
                break
        return own


class _GridPoint:
    """The work at one grid point: ``how`` each entry (i, j) was settled, and the worst figures."""

    def __init__(self, two: LeaveTwoOut, l: int, point: Point):
        self.two, self.l, self.point = two, l, point
        self.single = two.without_one(l, point)
        n, ledger = two.task.problem.n, two.ledger
        self.how = np.zeros((n, n), dtype=np.uint8)
        self.kkt, self.gap = ledger.kkt[l, :n].copy(), ledger.gap[l, :n].copy()
        self.events = 0

    def settle(self) -> None:
        two = self.two
        if two.ledger.sound(self.l):
            if self._from_above() and not len(self._open()):
                self._one_by_one()
                return
            full = two.single._solution(self.l, self.point)
            known = WithoutOne(two.ledger, self.l, self.single)
            self._follows(known)
            self._from(full, self._open())
            self._from_neighbours(full, known)
        self._one_by_one()

    def judged(self) -> tuple[FloatArray, FloatArray, IntArray, int]:
        counts = np.stack([(self.how == way).sum(axis=1) for way in range(1, len(HOW))], axis=1)
        return self.kkt, self.gap, counts, self.events

    def _from_above(self) -> bool:
        """Enter what is known from a larger C; is there any such thing?"""
        return False

    def _follows(self, known: WithoutOne) -> None:
        """Enter what follows from the solutions without one row."""
        raise NotImplementedError

    def _proved(self, found: Pairs) -> BoolArray:
        """Enter what is certain of some pairs; returns of which pairs something is open."""
        raise NotImplementedError

    def _confirmed(self, rows: IntArray, values: FloatArray) -> None:
        """Enter what the ledger says of pairs."""
        raise NotImplementedError

    def _one_by_one(self) -> None:
        """What is open goes the long way."""
        raise NotImplementedError

    def _open(self) -> IntArray:
        """Pairs of which something is open; repeated rows are left to the long way."""
        open_ = self.how == 0
        np.fill_diagonal(open_, False)
        alone = self.two.merged.copies == 1
        return np.argwhere(np.triu((open_ | open_.T) & alone & alone[:, None], 1))

    def _from(self, full: FullSolution, pairs: IntArray, gone: int = -1) -> None:
        """Leave pairs out of one solution."""
        if not len(pairs):
            return
        for table, mine in self.two.tables(full, pairs, self.single, gone):
            for which in blocks(len(mine), BLOCK):
                some = mine[which]
                found = table.leave_out(some, self.two.cancel)
                unsure = some[self._proved(found) & found.done]
                if len(unsure):
                    again = table.leave_out(unsure, self.two.cancel, coef=True)
                    self._confirm(again.rows, again.coef)
            self.events += table.events

    def _confirm(self, rows: IntArray, coef: FloatArray) -> None:
        """Have solutions judged; what the ledger is content with is entered."""
        ledger = self.two.ledger_of(self.l, rows)
        ledger.solved(0, np.arange(len(rows)), coef)
        kkt, gap = ledger.kkt[0, :-1], ledger.gap[0, :-1]
        good = (kkt <= self.two.task.tol) & (gap <= self.two.task.tol)
        self._confirmed(rows[good], ledger.decision[0].reshape(-1, 2)[good])
        for place in range(2):
            np.maximum.at(self.kkt, rows[good, place], kkt[good])
            np.maximum.at(self.gap, rows[good, place], gap[good])

    def _from_neighbours(self, full: FullSolution, known: WithoutOne) -> None:
        """From solutions without one row, for rows with many open pairs."""
        usable = np.isfinite(known.slack)
        while True:
            pairs = self._open()
            count = np.bincount(pairs.ravel(), minlength=len(usable))
            count[~usable] = 0
            row = int(np.argmax(count))
            if count[row] < MANY:
                return
            usable[row] = False
            weight = full.problem.weight.copy()
            weight[row] = 0.0
            coef = self.two.merged.together(self.single[row])
            state = states_of(full.problem.weighted(weight), self.point.C, coef)
            start = FullSolution(full.problem, state, coef, known.u[row], full.levels).canonical()
            self._from(start, pairs[(pairs == row).any(axis=1)], row)


class _Labels(_GridPoint):
    """Entry (i, j): the label of row j without rows i and j."""

    def __init__(self, two: LeaveTwoOut, l: int, point: Point):
        super().__init__(two, l, point)
        self.wrong = np.diag(two.ledger.wrong[l])

    def _follows(self, known: WithoutOne) -> None:
        known.settle(self.two.span, self.wrong, self.how)

    def _proved(self, found: Pairs) -> BoolArray:
        y, sure = self.two.task.problem.y, found.labels
        for place in range(2):
            outer, inner = found.rows[:, 1 - place], found.rows[:, place]
            new = sure[:, place] & (self.how[outer, inner] == 0)
            outer, inner = outer[new], inner[new]
            self.wrong[outer, inner] = ~(y[inner] * found.values[new, place] > 0)
            self.how[outer, inner] = PROVED
        first, second = found.rows.T
        return (self.how[first, second] == 0) | (self.how[second, first] == 0)

    def _confirmed(self, rows: IntArray, values: FloatArray) -> None:
        problem = self.two.task.problem
        for place in range(2):
            outer, inner = rows[:, 1 - place], rows[:, place]
            new = self.how[outer, inner] == 0
            outer, inner = outer[new], inner[new]
            wrong = problem.target.wrong(problem.y[inner], values[new, place])
            self.wrong[outer, inner], self.how[outer, inner] = wrong, SOLVED

    def _one_by_one(self) -> None:
        np.fill_diagonal(self.how, UNCHANGED)
        for i in np.flatnonzero((self.how == 0).any(axis=1)):
            rows = np.flatnonzero(self.how[i] == 0)
            own = self.two.from_one(self.l, self.point, int(i), rows, self.single[i])
            self.wrong[i, rows], self.how[i, rows] = own.wrong[0], own.how[0]
            figures = own.certificate()
            self.kkt[i] = max(self.kkt[i], figures.kkt[0])
            self.gap[i] = max(self.gap[i], figures.gap[0])
        np.fill_diagonal(self.how, 0)


class _Order(_GridPoint):
    """Entries (i, j) and (j, i): which of the two rows has the larger value without both."""

    def __init__(self, two: LeaveTwoOut, l: int, point: Point, pairs: BoolArray):
        super().__init__(two, l, point)
        self.sign = np.zeros(self.how.shape, dtype=np.int8)
        self.asked = pairs | pairs.T
        self.how[~self.asked] = UNCHANGED
        # How far two values are certainly apart, at the grid point that others follow from.
        self.apart = np.zeros(self.how.shape) if l == two.first else None

    def judged(self) -> tuple[FloatArray, FloatArray, IntArray, int]:
        self.how[~self.asked] = 0
        if self.apart is not None:
            self.two.keep(self.point.C, self.apart)
        return super().judged()

    def _from_above(self) -> bool:
        known = self.two.known(self.point.C)
        if known is None:
            return False
        clear = np.triu((np.abs(known) > tolerances.TIE * MOST_VALUE) & (self.how == 0))
        first, second = np.nonzero(clear)
        self._enter(first, second, np.sign(known[first, second]), PROVED)
        return True

    def _follows(self, known: WithoutOne) -> None:
        """Where row j has no coefficient without row i, the model without both is that one."""
        own = np.diagonal(known.u)[:, None]
        most = np.maximum(1.0, np.maximum(np.abs(own), np.abs(known.u)))
        by = own - known.u
        clear = np.abs(by) > known.slack[:, None] + tolerances.TIE * most
        first, second = np.nonzero(known.beyond() & clear & (self.how == 0))
        by = by[first, second]
        self._enter(first, second, np.sign(by), UNCHANGED)
        self._note(first, second, by, known.slack[first])

    def _enter(self, first: IntArray, second: IntArray, sign: FloatArray, how: int) -> None:
        self.sign[first, second], self.sign[second, first] = sign, -sign
        self.how[first, second] = self.how[second, first] = how

    def _note(self, first: IntArray, second: IntArray, by: FloatArray, off: FloatArray) -> None:
        """Differences of values, and how far they may be from the exact ones."""
        if self.apart is not None:
            sure = np.sign(by) * np.maximum(np.abs(by) - off, 0.0)
            self.apart[first, second], self.apart[second, first] = sure, -sure

    def _proved(self, found: Pairs) -> BoolArray:
        sure, off = found.apart(self.two.task.problem.K)
        first, second = found.rows[sure].T
        by = found.values[sure, 0] - found.values[sure, 1]
        self._enter(first, second, np.sign(by), PROVED)
        self._note(first, second, by, off[sure])
        return ~sure

    def _confirmed(self, rows: IntArray, values: FloatArray) -> None:
        most = np.maximum(1.0, np.abs(values).max(axis=1))
        by = values[:, 0] - values[:, 1]
        sign = np.where(np.abs(by) > tolerances.TIE * most, np.sign(by), 0.0)
        self._enter(rows[:, 0], rows[:, 1], sign, SOLVED)

    def _one_by_one(self) -> None:
        """Pair by pair, as a fold of its own."""
        two = self.two
        rows = np.argwhere(np.triu(self.how == 0, 1))
        if not len(rows):
            return
        ledger = two.ledger_of(self.l, rows)
        for folds in together(ledger.task):
            solve_folds(ledger.task, ledger, folds, [self.point], two.merged, two.cancel)
        self._confirmed(rows, ledger.decision[0].reshape(-1, 2))
        for place in range(2):
            np.maximum.at(self.kkt, rows[:, place], ledger.kkt[0, :-1])
            np.maximum.at(self.gap, rows[:, place], ledger.gap[0, :-1])
