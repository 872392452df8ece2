"""Any number of classes with features in place of a kernel matrix.

The pairs of ``one_vs_one.py``, and their votes; the features are made once for all of them
(``lowrank/shared.py``), and each pair is solved on the rows of its two classes.  Rows of other
classes are evaluated with the models of the folds that test them, as these are solved.  There may
be millions of rows, so votes are counted as they come.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from ..judge.certificate import Certificate
from ..lowrank.budget import least_memory
from ..lowrank.entries import Entries, SeenFolds
from ..lowrank.features import FeatureMap
from ..lowrank.left_out import Predict
from ..lowrank.passes.local import scratch_array
from ..lowrank.passes.sweep import Chunk
from ..lowrank.shared import SharedFeatures, share
from ..lowrank.task import FeatureTask
from ..problem.folds import Folds, leave_one_out_folds
from ..problem.grid import Grid
from ..runtime.threads import Workers
from ..tolerances import TIE
from ..types import BoolArray, FloatArray, IntArray
from .classes import Part, cut_down
from .one_vs_one import added_counts, largest_first, worst_certificate
from .run import Ran, run

__all__ = ["FeatureClasses", "FeatureResults", "cross_validate_features"]

# Tests whose votes are counted at a time.
BLOCK = 1 << 16


@dataclass(frozen=True)
class FeatureClasses:
    """What is to be cross-validated, checked before: ``one_vs_one.ManyClasses`` for features.

    ``task`` has all rows; where there are more than two classes (``codes`` from 0 on), each pair of
    them makes its own labels +-1 of the codes, and y is not used.
    """

    task: FeatureTask
    codes: NDArray[np.integer]

    @property
    def weight(self) -> FloatArray:
        return self.task.problem.weight

    @property
    def folds(self) -> Folds:
        return self.task.folds

    @property
    def grid(self) -> Grid:
        return self.task.grid

    @property
    def n_classes(self) -> int:
        return int(self.codes.max()) + 1

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(self.n_classes), 2))

    @property
    def every_fold(self) -> bool:
        return self.grid.scale_with_fold and not self.folds.leave_one_out

    def in_order(self, order: IntArray | None) -> tuple[FeatureClasses, IntArray]:
        """The same with the rows in another order, and where its tests are among those of this."""
        tests = np.arange(len(self.folds.pair_rows))
        if order is None:
            return self, tests
        if self.folds.every_row_alone:  # stays so, in the new order
            folds, tests = leave_one_out_folds(len(order)), order
        else:
            place = np.empty_like(order)
            place[order] = np.arange(len(order))
            folds = self.folds.moved(place)
        problem = replace(self.task.problem, weight=self.weight[order])
        task = replace(self.task, problem=problem, folds=folds)
        return FeatureClasses(task, self.codes[order]), tests


@dataclass(frozen=True)
class FeatureResults:
    """Left-out results along the grid (L) and the tested (row, fold) pairs (T), of P pairs.

    Attributes
    ----------
    truth : (T,)
        The class of each test.
    voted : (L, T) or None
        The classes with most votes; None of two classes, where ``wrong`` tells them.
    wrong : (L, T) bool
    decision : (L, T, P) or None
        Positive for the second class of the pair; None unless wanted.
    weights, intercept : (P, L, m), (P, L)
        The full-data models.
    feature_map, certificate, at_bound, stats :
        As in ``one_vs_one.PairResults``.
    """

    truth: NDArray[np.integer]
    voted: NDArray[np.unsignedinteger] | None
    wrong: BoolArray
    decision: FloatArray | None
    weights: FloatArray
    intercept: FloatArray
    feature_map: FeatureMap
    certificate: Certificate
    at_bound: FloatArray
    stats: dict[str, int]

    def labels_at(self, l: int) -> NDArray[np.integer]:
        """(T,): left-out predictions at one grid point, as class numbers."""
        if self.voted is None:
            return self.truth ^ self.wrong[l]
        return self.voted[l].astype(self.truth.dtype)


def cross_validate_features(task: FeatureClasses, workers: Workers) -> FeatureResults:
    """Cross-validate two classes, or every pair of more and let them vote."""
    if task.n_classes == 2:
        return _two_classes(task, workers)
    workers.watch.expect(len(task.pairs))
    workers.watch.say(f"features, {task.task.problem.n} rows")
    shared = share(task.task, task.codes, workers)
    moved, tests = task.in_order(shared.order)
    ballot = _Ballot(task, tests)
    together = _together(task, shared, workers.n_threads)
    budget = max((task.task.budget - shared.kept) // together, 1)

    def solve(pair: tuple[int, int], own_workers: Workers) -> _Solved:
        solved = _Pair(moved, shared, ballot, *pair).solve(budget, own_workers)
        workers.watch.part_done()
        return solved

    order = largest_first(task)
    if together > 1:
        done = workers.map(lambda pair: solve(pair, workers.alone()), order)
    else:
        done = [solve(pair, workers) for pair in order]
    done = [one for _, one in sorted(zip(order, done, strict=True), key=lambda both: both[0])]
    sizes = [float(one.ran.task.problem.n) for one in done]
    voted, wrong = ballot.count()
    return FeatureResults(
        truth=ballot.truth,
        voted=voted,
        wrong=wrong,
        decision=ballot.decision,
        weights=np.stack([one.ran.ledger.weights for one in done]),
        intercept=np.stack([one.ran.ledger.intercept for one in done]),
        feature_map=shared.feature_map,
        certificate=_numbered(worst_certificate(done, task.task.tol, True), task, tests),
        at_bound=np.average([one.ran.ledger.at_bound() for one in done], axis=0, weights=sizes),
        stats=added_counts(done, len(task.grid), len(task.folds)),
    )


def _numbered(certificate: Certificate, task: FeatureClasses, tests: IntArray) -> Certificate:
    """With folds numbered as the caller does: where they leave out single rows, these moved."""
    if not task.folds.every_row_alone:
        return certificate
    named = ((l, f if f < 0 else int(tests[f])) for l, f in certificate.unresolved)
    return replace(certificate, unresolved=sorted(named))


def _two_classes(task: FeatureClasses, workers: Workers) -> FeatureResults:
    """One problem on all rows, which needs nothing shared."""
    ran = run(task.task, "exact", workers)
    entries = ran.ledger
    return FeatureResults(
        truth=task.codes[task.folds.pair_rows],
        voted=None,
        wrong=entries.wrong,
        decision=None if entries.decision is None else entries.decision[..., None],
        weights=entries.weights[None],
        intercept=entries.intercept[None],
        feature_map=entries.feature_map,
        certificate=ran.certificate,
        at_bound=entries.at_bound(),
        stats={name: n for name, n in ran.stats.items() if isinstance(n, int)} | entries.counts(),
    )


def _together(task: FeatureClasses, shared: SharedFeatures, n_threads: int) -> int:
    """How many pairs are solved at a time: one, with all threads, unless each thread has room.

    A pair wants its features once more in memory, and about as much again for its work; in any
    case what no problem of so many components does without.
    """
    largest, m = int(np.sort(np.bincount(task.codes))[-2:].sum()), task.task.problem.n_components
    source, options = task.task.problem.source, task.task.options
    least = least_memory(source, options, m, largest) + 8 * m**2  # features for columns
    need = max(4 * 8 * largest * m, least)
    room = task.task.budget - shared.kept
    fits = shared.order is not None and need * n_threads <= room
    return n_threads if fits else 1


# --- votes ----------------------------------------------------------------------------------------


class _Ballot:
    """Votes as they come in, and decision values if they are wanted, in the order of the caller.

    ``tests`` says where the tests of the pairs are among those of the caller.
    """

    def __init__(self, task: FeatureClasses, tests: IntArray):
        self._tests, self._lock = tests, Lock()
        self.truth = task.codes[task.folds.pair_rows]
        k, options = task.n_classes, task.task.options
        shape, self._dtype = (len(task.grid), len(tests)), np.min_scalar_type(k)
        n_pairs = len(task.pairs) if task.task.want_decision else 0
        size = shape[0] * shape[1] * ((k + 1) * self._dtype.itemsize + 1 + 8 * n_pairs)
        where = size > task.task.budget // 4, options.folder  # in a file, if they are too many
        self._votes = scratch_array((*shape, k), self._dtype, *where)
        self._voted = scratch_array(shape, self._dtype, *where)
        self._wrong = scratch_array(shape, bool, *where)
        self._number = {pair: p for p, pair in enumerate(task.pairs)}
        self.decision: FloatArray | None = None
        if n_pairs:
            self.decision = scratch_array((*shape, n_pairs), float, *where)

    def cast(
        self, pair: tuple[int, int], at: IntArray, for_second: BoolArray, values: FloatArray | None
    ) -> None:
        """Votes of a pair, (L, len(at)), at these of its tests."""
        at = self._tests[at]
        with self._lock:
            self._votes[:, at, pair[0]] += ~for_second
            self._votes[:, at, pair[1]] += for_second
            if self.decision is not None and values is not None:
                self.decision[:, at, self._number[pair]] = values

    def count(self) -> tuple[NDArray[np.unsignedinteger], BoolArray]:
        """The classes with most votes, the first of those that draw, and whether they are wrong."""
        for start in range(0, len(self.truth), BLOCK):
            part = slice(start, start + BLOCK)
            self._voted[:, part] = self._votes[:, part].argmax(axis=-1)
            self._wrong[:, part] = self._voted[:, part] != self.truth[part]
        return self._voted, self._wrong


# --- one pair -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Solved:
    ran: Ran[Entries]
    part: Part

    @property
    def certificate(self) -> Certificate:
        return self.ran.certificate

    @property
    def counts(self) -> dict[str, int]:
        counted = {name: n for name, n in self.ran.stats.items() if isinstance(n, int)}
        return counted | self.ran.ledger.counts()


class _Pair:
    """One pair of classes: its problem, and its votes on all rows."""

    def __init__(
        self, task: FeatureClasses, shared: SharedFeatures, ballot: _Ballot, first: int, second: int
    ):
        self.task, self.shared, self.ballot = task, shared, ballot
        self.pair = first, second
        self.inside = (task.codes == first) | (task.codes == second)
        self.part = cut_down(task, self.inside)

    def solve(self, budget: int, workers: Workers) -> _Solved:
        """Cross-validate the pair, and cast its votes."""
        ran = run(self._own_task(budget), "exact", workers, self._guests_of(workers))
        entries, part, rows = ran.ledger, self.part, self.task.folds.pair_rows
        own, alone = np.flatnonzero(part.own), np.flatnonzero(part.alone)
        truth = self.task.codes[rows[own]] == self.pair[1]
        values = None if entries.decision is None else entries.decision[:, : len(own)]
        # A tie is wrong, and so votes for the other class.
        self.ballot.cast(self.pair, own, truth ^ entries.wrong[:, : len(own)], values)
        lost = np.tile(self.task.codes[rows[alone]] == self.pair[0], (len(self.task.grid), 1))
        self.ballot.cast(self.pair, alone, lost, np.where(lost, 1.0, -1.0))
        others = ~(part.own | part.alone)
        for at in part.guest_at:
            others[at] = False
        # Where the pair has no fold of its own, the model is that of the full data.
        theta = np.column_stack([entries.weights, entries.intercept])
        self._predict({0: theta}, {0: np.flatnonzero(others)}, workers)
        return _Solved(ran, part)

    def _own_task(self, budget: int) -> FeatureTask:
        task, rows = self.task.task, np.flatnonzero(self.inside)
        problem = self.shared.part(task.problem, rows)
        signs = np.where(self.task.codes[rows] == self.pair[1], 1.0, -1.0)
        return replace(
            task,
            problem=replace(problem, y=signs, weight=problem.weight[rows]),
            folds=self.part.folds,
            options=replace(task.options, features="recompute"),  # they are there
            budget=budget,
        )

    def _guests_of(self, workers: Workers) -> SeenFolds | None:
        """Evaluates folds on rows of other classes, as they are solved; single rows have none."""
        guest_at = self.part.guest_at
        if not guest_at:
            return None
        return lambda theta: self._predict(theta, {f: guest_at[f] for f in theta}, workers)

    def _predict(
        self, theta: Mapping[int, FloatArray], at: Mapping[int, IntArray], workers: Workers
    ) -> None:
        """Votes at these tests, by the models (L, m + 1) of their folds."""
        rows = self.task.folds.pair_rows
        by_row = {f: some[np.argsort(rows[some], kind="stable")] for f, some in at.items()}
        tested = {f: rows[some] for f, some in by_row.items()}

        def use(chunk: Chunk, found: dict[int, tuple[int, FloatArray]]) -> None:
            for f, (start, values) in found.items():
                mine = by_row[f][start : start + len(values)]
                self.ballot.cast(self.pair, mine, values.T > -TIE, values.T)

        if any(map(len, tested.values())):
            self.shared.runner(workers).each(Predict(dict(theta), tested), use)
