"""Leave-one-out at every C: many training sets at once, then one by one.

At a few values of C all rows are left out from the full-data solution (``leave_one_out.py``).
Between two of them most labels are proved (``between.py``), or follow lines.  Where many rows are
left, these are solved in the middle and both halves looked at in the same way; what is left of a
row when few are goes to ``every_c.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from ..judge.claims import Claims
from ..judge.ledger import Ledger
from ..problem.folds import folds_of_rows
from ..problem.grid import Grid
from ..problem.problem import Problem, Task
from ..runtime.threads import Cancelled
from ..types import FloatArray, IntArray
from .between import Asked, Ends, Tests, compare
from .bounds import Span
from .every_c import WAVE, Changes, Stretches, TrainingSets, on_lines
from .leave_one_out import LeaveOneOut
from .merged import Merged
from .path import Point, Tracker
from .table import Inverse

__all__ = ["EveryRow", "first_of_twins", "starting_points"]

# Values of C in a decade at which all rows are left out.
PER_DECADE = 2
# Rows that are worth a table of their own, as a part of all and at least; halving the interval at
# most so often.
PART, ENOUGH, MOST_HALVINGS = 0.02, 12, 8
# An interval is halved without a look if the full data's solutions differ in more rows, as a part.
FAR = 0.1


def starting_points(low: float, high: float) -> FloatArray:
    """Where all rows are left out.

    Examples
    --------
    >>> starting_points(0.1, 10.0).round(2)
    array([ 0.1 ,  0.32,  1.  ,  3.16, 10.  ])
    """
    count = max(int(np.ceil(PER_DECADE * np.log10(high / low))), 1) + 1
    Cs = np.geomspace(low, high, count)
    Cs[[0, -1]] = low, high
    return np.asarray(Cs)


def first_of_twins(merged: Merged, rows: IntArray) -> IntArray:
    """For each fold the first that leaves out a row like its own, of the same weight."""
    weight, seen = merged.original.weight, dict[tuple[int, float], int]()
    first = np.arange(len(rows), dtype=np.intp)
    for f in np.flatnonzero(merged.copies[rows] > 1):
        key = int(merged.first[rows[f]]), float(weight[rows[f]])
        first[f] = seen.setdefault(key, int(f))
    return first


@dataclass(frozen=True)
class _Here:
    """The full-data solution at a C, and those of some folds: rows ``at`` of ``ends``."""

    point: Point
    ends: Ends
    at: IntArray

    def part(self, which: IntArray) -> _Here:
        return _Here(self.point, self.ends, self.at[which])

    @property
    def alone(self) -> Ends:
        """Copies of these solutions."""
        return self.ends.part(self.at, self.at)

    @property
    def end(self) -> tuple[FloatArray, FloatArray]:
        """C and the value of each fold."""
        return self.ends.C[self.at], self.ends.values[self.at]


class EveryRow:
    """Leaves rows out at every C of a stretch; for one thread.

    Parameters
    ----------
    problem : Problem
        With the hinge loss.
    merged : Merged
    rows : ndarray of int
        The row that each fold leaves out and is tested on; no two of them twins.
    tests : Tests
        Of the folds, in this order.
    names : ndarray of int
        What the folds are called in `Changes`.
    span, cancel, tol
    covered : callable
        Told of stretches that are settled: log(C1 / C0) times the number of folds.
    """

    def __init__(
        self,
        problem: Problem,
        merged: Merged,
        rows: IntArray,
        tests: Tests,
        names: IntArray,
        span: Span,
        cancel: NDArray[np.int32],
        tol: float,
        covered: Callable[[float], None],
    ):
        self.problem, self.merged, self.rows = problem, merged, rows
        self.tests, self.names, self.span = tests, names, span
        self._cancel, self._tol, self._covered = cancel, tol, covered
        self._tracker = Tracker(merged.problem, cancel, tol)
        self._widest = tests.widest(problem)
        nobody = np.zeros(0, dtype=np.intp)
        self._claims = Claims(problem.K)
        self._inverse = Inverse(merged.problem, lasting=True)
        self._sets = TrainingSets(
            problem, merged, nobody, rows, tests, names, names, cancel, tol, covered
        )
        self._enough = max(ENOUGH, PART * problem.n)
        self._few: list[Stretches] = []
        self.changes = Changes()
        self.counts = {"folds_solved": 0, "points": 0}

    def along(self, points: list[Point]) -> NDArray[np.bool_]:
        """From the first of these solutions to the last; returns the labels at the first."""
        everyone = np.arange(len(self.rows))
        last = self._at(points[0], everyone)
        labels = np.asarray(last.ends.values > 0)
        for point in points[1:]:
            here = self._at(point, everyone)
            self._between(last, here, everyone, 0)
            last = here
        self._one_by_one()
        self.changes.extend(self._sets.changes)
        return labels

    # ---- between two values of C ---------------------------------------------------------------

    def _between(self, first: _Here, last: _Here, which: IntArray, depth: int) -> None:
        """All changes of some folds; ``first`` and ``last`` have a solution of each."""
        if self._cancel[0]:
            raise Cancelled
        halve = len(which) >= self._enough and depth < MOST_HALVINGS
        todo = np.arange(len(which))
        if not (halve and self._far(first.point, last.point)):
            todo = self._settle(first, last, which)
        if halve and len(todo) >= self._enough:
            C = float(np.sqrt(first.point.C * last.point.C))
            middle = self._at(self._tracker.move(first.point, C), which[todo])
            self._between(first.part(todo), middle, which[todo], depth + 1)
            self._between(middle, last.part(todo), which[todo], depth + 1)
        elif len(todo):
            rest, each = which[todo], np.arange(len(todo))
            a, b = (end.part(todo).alone for end in (first, last))
            self._few.append(Stretches(rest, a, b, each, rest))
            if sum(map(len, self._few)) >= WAVE:
                self._one_by_one()

    def _far(self, first: Point, last: Point) -> bool:
        """Do so many rows change their state that there is no point in looking for proofs?"""
        return int(np.count_nonzero(first.state != last.state)) > FAR * self.problem.n

    def _settle(self, first: _Here, last: _Here, which: IntArray) -> IntArray:
        """Note what two solutions of each fold tell of all between; for which they do not."""
        values = first.end[1], last.end[1]
        asked = Asked(first.at, last.at, which, self.rows[which], np.zeros(len(which)), values)
        ends, weight = (first.ends, last.ends), self.problem.weight
        proved, line = compare(self.problem, weight, *ends, asked, self.tests, self._widest)
        turned, Cs = on_lines(first.end, last.end, line)
        self.changes.add(self.names[which[turned]], Cs)
        todo = np.flatnonzero(~(proved | line))
        length = float(np.log(last.point.C / first.point.C))
        self._covered(length * (len(which) - len(todo)))
        return todo

    def _one_by_one(self) -> None:
        """Follow the rows that are left of stretches on which there are few."""
        if self._few:
            few = Stretches.joined(self._few)
            first, last = (self._sets.taken(end, few.sets) for end in (few.first, few.last))
            self._sets.follow(replace(few, first=first, last=last))
        self._few.clear()

    # ---- at one C ------------------------------------------------------------------------------

    def _at(self, point: Point, which: IntArray) -> _Here:
        """Leave out the rows of some folds, judged as ever."""
        C, n = point.C, self.problem.n
        grid = Grid(np.array([C]), np.array([0.5 / (n * C)]), scale_with_fold=False)
        own = self.rows[which]
        task = Task(self.problem, folds_of_rows(n, own), grid, True, self._tol)
        count = len(which)
        found, u, b = np.empty((count, n)), np.empty((count, n)), np.empty(count)
        inherits = np.ones(count, dtype=bool)

        def seen(
            ledger: Ledger,
            folds: IntArray,
            coef: FloatArray,
            values: FloatArray,
            intercept: FloatArray,
        ) -> None:
            found[folds], b[folds], inherits[folds] = coef, intercept, False
            u[folds] = values + intercept[:, None]

        ledger = Ledger(task, seen, self._claims)
        point = self._enter(ledger, point)
        LeaveOneOut(task, ledger, self.span, self._cancel, self.merged).at(
            np.zeros(1, int), [point], self._inverse
        )
        found[inherits], b[inherits] = ledger.coef[0], ledger.intercept[0]
        u[inherits] = ledger.h[0] + ledger.intercept[0]
        found[np.arange(count), own] = 0.0
        names = np.append(self.names[which], -1)
        figures = np.full(len(names), C), names, ledger.kkt[0], ledger.gap[0]
        self.changes.solved.append(np.column_stack(figures))
        self.counts["folds_solved"] += count
        self.counts["points"] += 1
        values = ledger.decision[0] - self.tests.threshold[which]
        return _Here(point, Ends(np.full(count, C), found, u, b, values), np.arange(count))

    def _enter(self, ledger: Ledger, point: Point) -> Point:
        """The full-data solution, solved again where it misses the mark."""
        within = tolerances.POLISH * self._tol
        if ledger.full(0, self.merged.apart(point.coef), within=within)[0]:
            return point
        best = point
        for again in (self._tracker.polish, self._tracker.slow_but_sure):
            point = again(point)
            found = self.merged.apart(point.coef)
            good = ledger.full(0, found)[0]
            if np.array_equal(ledger.coef[0], found):  # it was better than the last
                best = point
            if good or point.fallback:
                break
        return best
