"""The squared loss with features: kernel ridge regression and classification in m dimensions.

    min over w, b   1/2 ||w||^2 + C/2 sum_i w_i (y_i - w'z_i - b)^2

1. One pass adds up the rows (``judge/squared_features.py``, `Moments`), and those of each large
   fold; one eigendecomposition of m x m solves for all C (``small/ridge.py``).
2. One pass over the rows is the proof: it gives the gradient.  Where sums have lost digits that the
   tolerance asks for, a Newton step with this gradient makes up for them.
3. Single rows and small folds are left out by formula, in a pass; large folds have their sums taken
   off and are proved by the rows, as in 2.  Which of both costs less is known beforehand.  What
   rounding keeps from the tolerance after the formula (large C, as many features as rows) is done
   the other way as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from .. import tolerances
from ..judge.certificate import attainable, relative_gap
from ..judge.squared_features import Extent, Moments, Slope, Training, slope, without
from ..problem.folds import complement, rises
from ..runtime.threads import Workers
from ..types import FloatArray, IntArray
from .entries import Entries
from .features import FeatureMap, features_of
from .left_out import enter_tests
from .method import check_room, fit_map, runner_of
from .passes.distributed import DaskRunner
from .passes.moments import (
    FoldMoments,
    LeaveEach,
    Residuals,
    Taken,
    TakeRows,
    View,
)
from .passes.sweep import Chunk
from .rows.sampling import smallest_keys
from .small.ridge import LeftRows, Ridge, TrainingPart
from .solver import Runner
from .task import FeatureTask

__all__ = ["METHOD", "Squared"]

# Rows whose mean is what all rows are shifted by.
CENTRE_ROWS = 1000
# Newton steps that make up for rounding, at most.
STEPS = 3
# Rows whose leaving out is done again, at most, if their figures miss the tolerance.
MOST_AGAIN = 256
# Of the memory: what sums of folds, columns of a pass, and rows of folds may take each.
SHARE = 8


class Squared:
    """Exact cross-validation of ridge regression on features."""

    def run(self, task: FeatureTask, entries: Entries, workers: Workers) -> dict[str, Any]:
        """Fill the entries; returns what was counted, ``timings`` among it."""
        start = perf_counter()
        workers.watch.say(f"features, {task.problem.n} rows")
        fmap, centre = _map_and_centre(task)
        entries.features(fmap)
        store = task.options.store_for(task.problem.n, fmap.n_components, task.budget)
        runner = runner_of(task, fmap, workers, store)
        timings = {"kernel": perf_counter() - start}
        work = _Work(task, runner, entries, workers, View(centre, task.problem.loss.units))
        workers.watch.say(f"path, {len(task.grid)} grid points")
        before = perf_counter()
        work.all_rows()
        timings["path"] = perf_counter() - before
        workers.watch.say("folds")
        before = perf_counter()
        work.folds()
        timings["folds"] = perf_counter() - before
        stats = {"passes": work.passes, "steps": work.steps, "features": store}
        if isinstance(runner, DaskRunner):
            stats |= {"bytes_sent": runner.bytes_sent, "bytes_received": runner.bytes_received}
        return stats | {"timings": timings}


def _map_and_centre(task: FeatureTask) -> tuple[FeatureMap, FloatArray]:
    """The fitted map, and the mean of the features of some rows."""
    problem, fmap = task.problem, task.problem.feature_map
    check_room(task)
    there = np.flatnonzero(problem.weight > 0)
    wanted = max(CENTRE_ROWS, problem.n_components if problem.approx == "nystroem" else 0)
    rows = there[smallest_keys(len(there), min(len(there), wanted), problem.seed)]
    if fmap is None:
        fmap, X = fit_map(problem, rows)
    else:
        X = problem.source.take(rows)
    if not problem.fit_intercept:
        return fmap, np.zeros(fmap.n_components)
    some = features_of(fmap, X[:CENTRE_ROWS], np.dtype(np.float64))
    return fmap, np.asarray(some.mean(axis=0))


class _Full(NamedTuple):
    """A solution on all rows (`entries.Full`)."""

    theta: FloatArray
    primal: float
    kkt: float
    relative_gap: float
    at_bound: float = np.nan


class _Small(NamedTuple):
    """Solutions without a small fold, (L, m + 1), and their figures."""

    theta: FloatArray
    kkt: FloatArray
    gap: FloatArray


@dataclass
class _Columns:
    """Training problems that are solved together: theta is (P, m + 1), of the shifted rows."""

    theta: FloatArray
    C: FloatArray
    fold: IntArray
    slopes: list[Slope]


Step = Callable[[FloatArray, float, Slope], FloatArray]


class _Work:
    """One task at work."""

    def __init__(
        self, task: FeatureTask, runner: Runner, entries: Entries, workers: Workers, view: View
    ):
        self.task, self.runner, self.entries = task, runner, entries
        self.workers, self.view = workers, view
        self.m, self.fit_intercept = len(view.centre), task.problem.fit_intercept
        self.passes = self.steps = 0

    # ---- all rows -------------------------------------------------------------------------------

    def all_rows(self) -> None:
        """Sums, the eigendecomposition, and the solutions of the grid."""
        first = self._large_ones[: self._sums_at_once]
        whole, *parts = self._moments(first, True)
        self._known = dict(zip(first, parts, strict=True))
        self.moments: Moments = whole
        self.ridge: Ridge = self.workers.run(
            lambda: Ridge.of(whole.training(self.fit_intercept), self.fit_intercept)
        )
        self.Cs, which = np.unique(np.concatenate(self._all_Cs()), return_inverse=True)
        self.theta = self.ridge.solve(self.Cs)
        columns = self._proved(
            self.theta, self.Cs, np.full(len(self.Cs), -1), [self.ridge] * len(self.Cs)
        )
        self.theta, self.slopes = columns.theta, columns.slopes
        self.entries.full([self._full(int(k)) for k in which[: len(self.task.grid)]])

    def _all_Cs(self) -> list[FloatArray]:
        """C along the grid, and of the folds that begin from the solution of all rows."""
        grid, folds = self.task.grid, self.task.folds
        if folds.leave_one_out or not grid.scale_with_fold:
            return [grid.Cs]
        return [grid.Cs, *(grid.for_fold(folds, f) for f in self._small)]

    def _full(self, k: int) -> _Full:
        figures = self.slopes[k].figures
        gap = float(relative_gap(np.array(figures.gap), np.array(figures.primal)))
        theta = self.view.outside(self.theta[k])
        return _Full(theta, figures.primal, figures.kkt, gap)

    @cached_property
    def extent(self) -> Extent:
        y, weight = self.task.problem.y, self.task.problem.weight
        unit = float(np.abs(self.view.numbers(y[weight > 0])).max(initial=0.0)) or 1.0
        return Extent(self.moments.widest, self.moments.lightest, unit)

    def _moments(self, folds: Sequence[int], whole: bool) -> list[Moments]:
        """Of all rows, if ``whole``, and of what each fold adds up (`_summed`)."""
        self.passes += 1
        work = FoldMoments(self.view, {f: self._summed(f)[0] for f in folds}, whole)
        return list(self.runner.added(work))

    def _proved(
        self, theta: FloatArray, C: FloatArray, fold: IntArray,
        solvers: Sequence[Ridge | TrainingPart],
    ) -> _Columns:  # fmt: skip
        """Solutions, corrected until their gradients from the rows meet the tolerance."""
        slopes = self._slopes(theta, C, fold, solvers)
        found = _Columns(theta, C, fold, slopes)
        open_ = [p for p, one in enumerate(slopes) if not self._good(one)]
        for _ in range(STEPS):
            if not open_:
                break
            self.steps += len(open_)
            some = np.array(open_)
            steps = [solvers[p].corrected(found.theta[p], float(C[p]), slopes[p]) for p in open_]
            new = np.array(steps)
            better = self._slopes(new, C[some], fold[some], [solvers[p] for p in open_])
            gained = []
            for p, one, its in zip(open_, new, better, strict=True):
                if its.figures.kkt < slopes[p].figures.kkt:
                    found.theta[p], slopes[p] = one, its
                    gained.append(p)
            open_ = [p for p in gained if not self._good(slopes[p])]
        return found

    def _good(self, one: Slope) -> bool:
        kkt, gap, primal, floor = one.figures
        goal = float(attainable(self.task.tol, floor, tolerances.POLISH * self.task.tol))
        return bool(kkt <= goal and gap <= goal * primal)

    def _slopes(
        self, theta: FloatArray, C: FloatArray, fold: IntArray,
        solvers: Sequence[Ridge | TrainingPart],
    ) -> list[Slope]:  # fmt: skip
        """Some columns a pass, as many as memory has room for."""
        out: list[Slope] = []
        for part in _slices(len(theta), self._columns_at_once):
            rows = {int(f): self._left_out(int(f)) for f in np.unique(fold[part]) if f >= 0}
            self.passes += 1
            sums = self.runner.added(Residuals(self.view, theta[part], fold[part], rows))
            for p in range(len(theta[part])):
                k = part.start + p
                mean = solvers[k].training
                extent, free = self.extent, self.fit_intercept
                out.append(slope(sums, p, theta[k], float(C[k]), mean, extent, free))
        return out

    @property
    def _columns_at_once(self) -> int:
        rows = self.task.options.chunk_rows
        each = 8 * (4 * rows + 4 * self.m) * max(1, self.workers.n_threads)
        return max(1, self.task.budget // (SHARE * each))

    # ---- folds ----------------------------------------------------------------------------------

    def folds(self) -> None:
        """Every left-out value."""
        if self._alone is not None:
            self._each_row(self._alone)
            return
        again: list[int] = []
        for some in self._batches_of_rows():
            found = self._small_folds(some)
            judged = {f: one for f, one in found.items() if self._noted(f, one.kkt, one.gap)}
            again += [f for f in found if f not in judged]
            self._enter({f: one.theta for f, one in judged.items()})
        self._large(again)

    def _large(self, again: list[int]) -> None:
        """Folds that are not small, and those that rounding has kept from their tolerance."""
        for some in _batches(self._large_ones + again, self._sums_at_once):
            self._enter(self._large_folds(some))

    def _noted(self, fold: int, kkt: FloatArray, gap: FloatArray) -> bool:
        """Enter the figures (L,) of a fold, if they meet the tolerance."""
        good = bool((np.maximum(kkt, gap) <= self.task.tol).all())
        if good:
            self.entries.note_some(np.arange(len(kkt)), np.full(len(kkt), fold), kkt, gap)
        return good

    def _enter(self, theta: dict[int, FloatArray]) -> None:
        """Solutions (L, m + 1) of folds, their models, and what they say of their tests."""
        if not theta:
            return
        outside = {f: self.view.outside(one) for f, one in theta.items()}
        for f, one in outside.items():
            for l, each in enumerate(one):
                self.entries.model(l, f, each)
        self.entries.settle("solved", len(theta) * len(self.task.grid))
        self.passes += 1
        enter_tests(self.runner, self.entries, outside)

    def _left_out(self, fold: int) -> IntArray:
        rows = self.task.folds.left_out[fold]
        return rows if rises(rows) else np.sort(rows)

    def _each_row(self, place: IntArray) -> None:
        """Leave-one-out, in one pass; ``place`` has the fold of each row, -1 for none."""
        Cs, entries = self.task.grid.Cs, self.entries
        at = np.searchsorted(self.Cs, Cs)
        slopes, mass = [self.slopes[k] for k in at], self.ridge.training.mass
        points = np.arange(len(Cs))
        again: list[int] = []

        def use(chunk: Chunk, left: LeftRows) -> None:
            folds = place[chunk.start : chunk.start + len(left.values)]
            kkt, gap = without(slopes, Cs, mass, self.extent, left.gone, self.fit_intercept)
            good = (np.maximum(kkt, gap) <= self.task.tol).all(axis=1)
            tested = folds >= 0
            if np.count_nonzero(tested & ~good) + len(again) > MOST_AGAIN:
                good = tested
            again.extend(folds[tested & ~good].tolist())
            kept = np.flatnonzero(tested & good)
            entries.note_some(
                np.tile(points, len(kept)),
                np.repeat(folds[kept], len(Cs)),
                kkt[kept].ravel(),
                gap[kept].ravel(),
            )
            entries.decide(slice(None), folds[tested], left.values[tested].T)
            idle = int(np.count_nonzero(chunk.weight[kept] == 0))
            entries.settle("unchanged", idle * len(Cs))
            entries.settle("solved", (len(kept) - idle) * len(Cs))

        self.passes += 1
        self.runner.each(LeaveEach(self.view, self.ridge, self.theta[at], Cs), use)
        self._large(again)

    def _small_folds(self, some: list[int]) -> dict[int, _Small]:
        """By formula, from the solutions of all rows."""
        rows = np.unique(np.concatenate([self.task.folds.left_out[f] for f in some]))
        work = TakeRows(self.view, rows)
        self.passes += 1
        parts = self.runner.map(work)
        taken = parts[0] if len(parts) == 1 else work.join(parts)
        found = self.workers.map(lambda f: self._small_fold(f, rows, taken), some)
        return dict(zip(some, found, strict=True))

    def _small_fold(self, f: int, rows: IntArray, taken: Taken) -> _Small:
        task = self.task
        Cs = task.grid.for_fold(task.folds, f)
        at = np.searchsorted(self.Cs, Cs)
        mine = taken.part(np.searchsorted(rows, self._left_out(f)))
        theta, gone = self.ridge.without(mine.X, mine.y, mine.weight, self.theta[at], Cs)
        slopes = [self.slopes[k] for k in at]
        mass = self.ridge.training.mass
        kkt, gap = without(slopes, Cs, mass, self.extent, gone, self.fit_intercept)
        return _Small(theta, kkt, gap)

    def _large_folds(self, some: list[int]) -> dict[int, FloatArray]:
        """From the sums over their training rows."""
        known, self._known = self._known, {}
        new = [f for f in some if f not in known]
        if new:
            known |= zip(new, self._moments(new, False), strict=True)
        grid, folds = self.task.grid, self.task.folds

        def solved(f: int) -> tuple[TrainingPart, FloatArray]:
            left = known[f] if self._summed(f)[1] else self.moments.without(known[f])
            training: Training = left.training(self.fit_intercept)
            part = TrainingPart(training, self.fit_intercept)
            return part, part.solve(grid.for_fold(folds, f))

        found = self.workers.map(solved, some)
        L = len(grid)
        columns = self._proved(
            np.concatenate([theta for _, theta in found]),
            np.concatenate([grid.for_fold(folds, f) for f in some]),
            np.repeat(some, L),
            [part for part, _ in found for _ in range(L)],
        )
        figures = np.array([one.figures for one in columns.slopes])
        gap = relative_gap(figures[:, 1], figures[:, 2])
        self.entries.note_some(np.tile(np.arange(L), len(some)), columns.fold, figures[:, 0], gap)
        return {f: columns.theta[k * L : (k + 1) * L] for k, f in enumerate(some)}

    # ---- which folds, and how many at a time ----------------------------------------------------

    @cached_property
    def _alone(self) -> IntArray | None:
        """The fold of each row (-1 for none), if all leave out one row, and none does twice."""
        folds = self.task.folds
        if not folds.leave_one_out:
            return None
        place = np.full(folds.n, -1, dtype=np.intp)
        place[folds.pair_rows] = np.arange(len(folds))
        return place if np.count_nonzero(place >= 0) == len(folds) else None

    @cached_property
    def _small(self) -> list[int]:
        """Folds whose rows are fewer than it takes to make sums and a pass worth their while.

        Of f rows the formula takes about f^2 (m + f) steps for each C; a factor takes m^3, and the
        rows 4 n m.
        """
        if self._alone is not None:
            return []
        f = np.diff(self.task.folds.out_offsets).astype(float)
        m, n = float(self.m), float(self.task.problem.n)
        return [int(k) for k in np.flatnonzero(f**2 * (m + f) <= m**3 + 4.0 * n * m)]

    @cached_property
    def _large_ones(self) -> list[int]:
        if self._alone is not None:
            return []
        small = set(self._small)
        return [f for f in range(len(self.task.folds)) if f not in small]

    def _summed(self, fold: int) -> tuple[IntArray, bool]:
        """Rows whose sums tell of a fold: the fewer of those left out and those of training."""
        rows = self._left_out(fold)
        if 2 * len(rows) <= self.task.problem.n:
            return rows, False
        return complement(rows, self.task.problem.n), True

    @property
    def _sums_at_once(self) -> int:
        each = 8 * (self.m + 2) ** 2 * (2 + max(1, self.workers.n_threads))
        return max(1, self.task.budget // (SHARE * each))

    def _batches_of_rows(self) -> Iterator[list[int]]:
        sizes = np.diff(self.task.folds.out_offsets)
        each = 8 * (self.m + 1) * (3 * int(sizes.max(initial=1)) + 2 * len(self.task.grid))
        return _batches(self._small, max(1, self.task.budget // (SHARE * each)))


def _batches(folds: list[int], size: int) -> Iterator[list[int]]:
    return (folds[k : k + size] for k in range(0, len(folds), size))


def _slices(n: int, size: int) -> Iterable[slice]:
    return (slice(k, min(k + size, n)) for k in range(0, n, size))


METHOD = Squared()
