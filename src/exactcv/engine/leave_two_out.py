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
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from threading import local

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from ..judge.ledger import HOW, PROVED, SOLVED, UNCHANGED, Ledger
from ..problem.folds import Folds
from ..problem.problem import Task
from ..types import BoolArray, FloatArray, IntArray
from .bounds import Span
from .full_solution import FullSolution
from .leave_one_out import LeaveOneOut
from .merged import Merged
from .pair_table import Pairs, PairTable
from .path import Point, Tracker, states_of
from .without_one import WithoutOne

__all__ = ["LeaveTwoOut", "TwoOut"]

# Pairs handed to the compiled loop at a time.
BLOCK = 1 << 14
# Rows with so many open pairs are worth a table of their own.
MANY = 4


@dataclass(frozen=True)
class TwoOut:
    """What came out at one grid point.

    Attributes
    ----------
    wrong : (n, n)
        Entry (i, j): is the label of row j wrong without rows i and j?  On the diagonal: without
        row i alone.
    kkt, gap : (n,)
        The worst figures of the models without row i, and without i and another row, that were
        judged; labels that were proved have none.
    counts : dict
        How many entries off the diagonal were settled how.
    events : int
    """

    wrong: BoolArray
    kkt: FloatArray
    gap: FloatArray
    counts: dict[str, int]
    events: int


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

    def at(self, l: int, point: Point) -> TwoOut:
        """Settle every pair at one grid point."""
        work = _GridPoint(self, l, point)
        work.settle()
        totals = np.bincount(work.how.ravel(), minlength=len(HOW))
        totals[UNCHANGED] -= len(work.how)  # the diagonal
        counts = {name: int(count) for name, count in zip(HOW[1:], totals[1:], strict=True)}
        return TwoOut(work.wrong, work.kkt, work.gap, counts, work.events)

    def without_one(self, l: int, point: Point) -> FloatArray:
        """Leave every row out alone, by the ledger; the coefficients, one solution a row."""
        coef = np.tile(self.ledger.coef[l], (self.task.problem.n, 1))
        np.fill_diagonal(coef, 0.0)
        self._kept.coef = coef
        self.single.at(np.array([l]), [point])
        self._kept.coef = None
        return coef

    def _see(self, _: Ledger, folds: IntArray, coef: FloatArray) -> None:
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
    """The work at one grid point; attributes as in `TwoOut`, and ``how`` each entry was settled."""

    def __init__(self, two: LeaveTwoOut, l: int, point: Point):
        self.two, self.l, self.point = two, l, point
        self.single = two.without_one(l, point)
        n, ledger = two.task.problem.n, two.ledger
        self.wrong, self.how = np.zeros((n, n), dtype=bool), np.zeros((n, n), dtype=np.uint8)
        np.fill_diagonal(self.wrong, ledger.wrong[l])
        self.kkt, self.gap = ledger.kkt[l, :n].copy(), ledger.gap[l, :n].copy()
        self.events = 0

    def settle(self) -> None:
        two, full = self.two, self.two.single._solution(self.l, self.point)
        np.fill_diagonal(self.how, UNCHANGED)
        if two.ledger.sound(self.l):
            known = WithoutOne(two.ledger, self.l, self.single)
            known.settle(two.span, self.wrong, self.how)
            np.fill_diagonal(self.how, UNCHANGED)
            self._from(full, self._open())
            self._from_neighbours(full, known)
        self._one_by_one()

    def _open(self) -> IntArray:
        """Pairs with a label that is open; repeated rows are left to the long way."""
        open_ = self.how == 0
        alone = self.two.merged.copies == 1
        return np.argwhere(np.triu((open_ | open_.T) & alone & alone[:, None], 1))

    def _from(self, full: FullSolution, pairs: IntArray, gone: int = -1) -> None:
        """Leave pairs out of one solution."""
        if not len(pairs):
            return
        for table, mine in self.two.tables(full, pairs, self.single, gone):
            for first in range(0, len(mine), BLOCK):
                some = mine[first : first + BLOCK]
                found = table.leave_out(some, self.two.cancel)
                self._enter(found, found.labels, PROVED)
                unsure = some[found.done & ~found.labels.all(axis=1)]
                if len(unsure):
                    self._confirm(table.leave_out(unsure, self.two.cancel, coef=True))
            self.events += table.events

    def _enter(self, found: Pairs, sure: BoolArray, how: int) -> None:
        y = self.two.task.problem.y
        for place in range(2):
            outer, inner = found.rows[:, 1 - place], found.rows[:, place]
            new = sure[:, place] & (self.how[outer, inner] == 0)
            outer, inner = outer[new], inner[new]
            self.wrong[outer, inner] = ~(y[inner] * found.values[new, place] > 0)
            self.how[outer, inner] = how

    def _confirm(self, found: Pairs) -> None:
        """Have solutions judged; their labels are those of the ledger, if it is content."""
        ledger = self.two.ledger_of(self.l, found.rows)
        ledger.solved(0, np.arange(len(found.rows)), found.coef)
        kkt, gap = ledger.kkt[0, :-1], ledger.gap[0, :-1]
        good = (kkt <= self.two.task.tol) & (gap <= self.two.task.tol)
        values = ledger.decision[0].reshape(-1, 2)
        wrong = ledger.wrong[0].reshape(-1, 2)
        for place in range(2):
            outer, inner = found.rows[:, 1 - place], found.rows[:, place]
            new = good & (self.how[outer, inner] == 0) & np.isfinite(values[:, place])
            self.wrong[outer[new], inner[new]] = wrong[new, place]
            self.how[outer[new], inner[new]] = SOLVED
            np.maximum.at(self.kkt, outer[new], kkt[new])
            np.maximum.at(self.gap, outer[new], gap[new])

    def _from_neighbours(self, full: FullSolution, known: WithoutOne) -> None:
        """From solutions without one row, for rows with many open pairs."""
        tried = np.zeros(len(self.how), dtype=bool)
        while True:
            pairs = self._open()
            count = np.bincount(pairs.ravel(), minlength=len(tried)) if len(pairs) else tried * 0
            count[tried | ~np.isfinite(known.slack)] = 0
            row = int(np.argmax(count))
            if count[row] < MANY:
                return
            tried[row] = True
            coef = self.single[row]
            problem = full.problem
            weight = problem.weight.copy()
            weight[row] = 0.0
            state = states_of(problem.weighted(weight), self.point.C, coef)
            start = FullSolution(problem, state, coef, known.u[row], full.levels).canonical()
            self._from(start, pairs[(pairs == row).any(axis=1)], row)

    def _one_by_one(self) -> None:
        for i in np.flatnonzero((self.how == 0).any(axis=1)):
            rows = np.flatnonzero(self.how[i] == 0)
            own = self.two.from_one(self.l, self.point, int(i), rows, self.single[i])
            self.wrong[i, rows], self.how[i, rows] = own.wrong[0], own.how[0]
            figures = own.certificate()
            self.kkt[i] = max(self.kkt[i], figures.kkt[0])
            self.gap[i] = max(self.gap[i], figures.gap[0])
