"""All pairs of classes at every C: where their votes change, and what follows for the errors.

Each pair of classes (one pair, if there are two) has its folds cut down to its rows
(``one_vs_one.py``).  In leave-one-out all its rows are left out together
(``engine/every_c_loo.py``), else every training set is followed on its own
(``engine/every_c.py``).  Rows of other classes are tested by the model of the fold or, where the
pair has no fold of its own, by that of the full data, which is then a training set like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock

import numpy as np

from ..engine.between import Tests
from ..engine.bounds import Span
from ..engine.every_c import Changes, TrainingSets
from ..engine.every_c_loo import EveryRow, first_of_twins, starting_points
from ..engine.merged import Merged
from ..engine.path import Point, Tracker, full_path
from ..problem.problem import Problem
from ..runtime.threads import Workers
from ..tolerances import TIE
from ..types import BoolArray, FloatArray, IntArray
from .classes import ManyClasses, cut_down
from .one_vs_one import most_votes

__all__ = ["Errors", "errors_at_every_c"]

# Leave-one-out: so many stretches between two starting points go together.
STRETCHES = 3
# Changes closer than this, relative to C, are one.
ONE = 1e-12


@dataclass(frozen=True)
class Errors:
    """Which tests are wrong from ``low`` on, and where that changes.

    wrong : (T,), at ``low``.
    Cs, tests : sorted by C; at each of them ``wrong`` of a test changes.
    solved : (S, 4), and unresolved : see ``engine.every_c.Changes``.
    stats : what was counted.
    """

    low: float
    high: float
    wrong: BoolArray
    Cs: FloatArray
    tests: IntArray
    solved: FloatArray
    unresolved: list[tuple[float, float, int]]
    stats: dict[str, int]


class _Covered:
    """Which part of the range of C is settled, all training sets together (`Progress`)."""

    def __init__(self) -> None:
        self.total, self.done, self._lock = 0.0, 0.0, Lock()

    def add(self, length: float) -> None:
        with self._lock:
            self.done += length

    def fraction(self) -> float:
        return min(self.done / self.total, 1.0) if self.total > 0.0 else 0.0


@dataclass
class _Votes:
    """One pair of classes: which tests it gives to its second class at ``low``, and changes."""

    start: BoolArray
    changes: Changes


def errors_at_every_c(task: ManyClasses, low: float, high: float, workers: Workers) -> Errors:
    """Follow all pairs of classes from ``low`` to ``high``, and count their votes.

    Of the grid of ``task`` nothing is used.
    """
    covered = _Covered()
    workers.watch.follow(covered)
    stats = {"points": 0, "folds_solved": 0}
    pairs = [
        _Pair(task, first, second, low, high, workers, covered, stats)
        for first, second in task.pairs
    ]
    jobs = [job for pair in pairs for job in pair.jobs]
    workers.map(lambda job: job(), jobs)
    votes = [pair.votes() for pair in pairs]
    return _counted(task, low, high, votes, stats)


class _Pair:
    """What is to be done for one pair of classes; ``jobs`` may run side by side."""

    def __init__(
        self,
        task: ManyClasses,
        first: int,
        second: int,
        low: float,
        high: float,
        workers: Workers,
        covered: _Covered,
        stats: dict[str, int],
    ):
        inside = (task.codes == first) | (task.codes == second)
        self.task, self.low, self.high, self.cancel = task, low, high, workers.cancel
        self.covered, self.stats = covered, stats
        self.rows = np.flatnonzero(inside)
        signs = np.where(task.codes[self.rows] == second, 1.0, -1.0)
        own = task.rows if inside.all() else task.rows.part(self.rows)
        self.part = cut_down(task, inside)
        # Of each row, among those of the pair or among the others.
        self.place = np.where(inside, np.cumsum(inside), np.cumsum(~inside)) - 1
        given = task.plan.task(own, signs, task.weight[self.rows], self.part.folds, task.grid)
        self.problem: Problem = given.problem
        self.others = task.rows.K[np.ix_(np.flatnonzero(~inside), self.rows)]
        self.diagonal = np.ascontiguousarray(np.diagonal(task.rows.K))
        self.start = np.zeros(len(inside[task.folds.pair_rows]), dtype=bool)
        lost = task.codes[task.folds.pair_rows[self.part.alone]]
        self.start[self.part.alone] = lost == first
        self.found: list[Changes] = []
        self.merged: Merged = workers.run(lambda: Merged.of(self.problem))
        self.twins: IntArray | None = None
        self.jobs = self._jobs(workers)

    def _jobs(self, workers: Workers) -> list[Callable[[], None]]:
        part, folds = self.part, self.part.folds
        own_at, length = np.flatnonzero(part.own), float(np.log(self.high / self.low))
        jobs: list[Callable[[], None]] = []
        elsewhere = ~(part.own | part.alone)
        if folds.leave_one_out:
            jobs += self._rows_left_out(own_at, length, workers)
        else:
            for f in range(len(part.kept)):
                own = own_at[folds.offsets[f] : folds.offsets[f + 1]]
                elsewhere[part.guest_at[f]] = False
                jobs.append(self._one_set(f, own, part.guest_at[f]))
                self.covered.total += length
        full = np.flatnonzero(elsewhere)
        if len(full):
            jobs.append(self._one_set(-1, full[:0], full))
            self.covered.total += length
        return jobs

    def _one_set(self, fold: int, own: IntArray, guests: IntArray) -> Callable[[], None]:
        """Follow the training set of one fold, or all rows (-1)."""
        left_out = self.part.folds.left_out[fold] if fold >= 0 else np.zeros(0, dtype=np.intp)
        number = int(self.part.kept[fold]) if fold >= 0 else -1
        names = np.concatenate([own, guests])

        def job() -> None:
            one = TrainingSets(
                self.problem, self.merged, left_out, np.array([-1]), self._tests(own, guests),
                names, np.array([number]), self.cancel, self.task.plan.tol, self.covered.add,
            )  # fmt: skip
            if len(names):
                self.start[names] = one.everywhere(self.low, self.high)
            self.found.append(one.changes)

        return job

    def _rows_left_out(
        self, own_at: IntArray, length: float, workers: Workers
    ) -> list[Callable[[], None]]:
        """Leave-one-out, a few stretches of C at a time."""
        rows = self.part.folds.pair_rows
        self.twins = first_of_twins(self.merged, rows)
        alone = np.flatnonzero(self.twins == np.arange(len(rows)))
        span, tests = Span.of(self.problem), self._tests(own_at[alone], own_at[:0])
        Cs = starting_points(self.low, self.high)
        tracker = Tracker(self.merged.problem, self.cancel, self.task.plan.tol)
        points = workers.run(lambda: full_path(self.merged.problem, Cs, tracker))
        self.covered.total += length * len(alone)
        jobs: list[Callable[[], None]] = []
        for begin in range(0, len(Cs) - 1, STRETCHES):
            mine = points[begin : begin + STRETCHES + 1]

            def job(mine: list[Point] = mine, begin: int = begin) -> None:
                every = EveryRow(
                    self.problem, self.merged, rows[alone], tests, own_at[alone], span,
                    self.cancel, self.task.plan.tol, self.covered.add,
                )  # fmt: skip
                labels = every.along(mine)
                if begin == 0:
                    self.start[own_at[alone]] = labels
                self.found.append(every.changes)
                for name, count in every.counts.items():
                    self.stats[name] += count

            jobs.append(job)
        return jobs

    def _tests(self, own: IntArray, guests: IntArray) -> Tests:
        """Ties are wrong; between two other classes they are for the second."""
        pair_rows, place = self.task.folds.pair_rows, self.place
        mine = place[pair_rows[own]]
        kernel = np.concatenate([self.problem.K[mine], self.others[place[pair_rows[guests]]]])
        threshold = np.concatenate([TIE * self.problem.y[mine], np.full(len(guests), -TIE)])
        square = self.diagonal[pair_rows[np.concatenate([own, guests])]]
        return Tests(np.ascontiguousarray(kernel), square, threshold)

    def votes(self) -> _Votes:
        """What the jobs have found, with twins as those they are like."""
        changes = Changes()
        for one in self.found:
            changes.extend(one)
        if self.twins is not None:
            own_at = np.flatnonzero(self.part.own)
            self._copy_to_twins(changes, own_at)
        return _Votes(self.start, changes)

    def _copy_to_twins(self, changes: Changes, own_at: IntArray) -> None:
        assert self.twins is not None
        tests, Cs = np.array(changes.tests, dtype=np.intp), np.array(changes.Cs)
        for f in np.flatnonzero(self.twins != np.arange(len(self.twins))):
            like = own_at[self.twins[f]]
            here = Cs[tests == like]
            changes.add(np.full(len(here), own_at[f]), here)
            self.start[own_at[f]] = self.start[like]


def _counted(
    task: ManyClasses, low: float, high: float, votes: list[_Votes], stats: dict[str, int]
) -> Errors:
    """Let the pairs vote at ``low``, and again at every change."""
    truth = task.codes[task.folds.pair_rows]
    tally = np.zeros((len(truth), task.n_classes), dtype=np.intp)
    for one, (first, second) in zip(votes, task.pairs, strict=True):
        tally[:, first] += ~one.start
        tally[:, second] += one.start
    wrong = most_votes(tally) != truth
    Cs = np.concatenate([np.array(one.changes.Cs) for one in votes])
    tests = np.concatenate([np.array(one.changes.tests, dtype=np.intp) for one in votes])
    of = np.repeat(np.arange(len(votes)), [len(one.changes.Cs) for one in votes])
    order = np.lexsort((tests, Cs))
    side = [one.start.copy() for one in votes]
    now, kept_Cs, kept_tests = wrong.copy(), list[float](), list[int]()
    for group in _together(Cs[order]):
        touched = set()
        for k in order[group]:
            p, t = int(of[k]), int(tests[k])
            first, second = task.pairs[p]
            up = 1 if not side[p][t] else -1
            side[p][t] = not side[p][t]
            tally[t, second] += up
            tally[t, first] -= up
            touched.add(t)
        C = float(Cs[order[(group.start + group.stop - 1) // 2]])
        for t in sorted(touched):
            new = bool(most_votes(tally[t]) != truth[t])
            if new != now[t]:
                now[t] = new
                kept_Cs.append(C)
                kept_tests.append(t)
    return Errors(
        low, high, wrong, np.array(kept_Cs), np.array(kept_tests, dtype=np.intp),
        np.concatenate([one for pair in votes for one in pair.changes.solved]),
        [one for pair in votes for one in pair.changes.unresolved],
        stats,
    )  # fmt: skip


def _together(Cs: FloatArray) -> list[slice]:
    """Runs of changes that are one, in sorted ``Cs``."""
    if not len(Cs):
        return []
    cuts = np.flatnonzero(np.diff(Cs) > ONE * Cs[1:]) + 1
    edges = [0, *cuts.tolist(), len(Cs)]
    return [slice(a, b) for a, b in pairwise(edges)]
