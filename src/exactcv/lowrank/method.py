"""The low-rank mode as a method: features, path, folds.

1. ``solver.py`` finds the full-data solutions, a few passes over the rows for the whole grid.
2. Leave-one-out (``left_out.py``): ``verdict.py`` settles most labels by proof in one pass.  The
   rest ``small/leave_out.py`` solves from the small problem of the full-data solution; where rows
   beyond it may matter, one pass for many solutions at once asks them (``small/beyond.py``).  What
   does not stand that (``lost.py``) is taken with more rows around the margin: ``small/press.py``
   proves most of these labels, ``small/nearby.py`` solves the others in m dimensions, and rows
   that cross are taken up until a pass finds none; that is their certificate.
3. The folds of any other scheme are solved over all rows, from the full-data solution.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isqrt
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

from ..exceptions import InputError, UnsupportedError
from ..judge.features import Extent
from ..problem.folds import rises
from ..problem.grid import Grid
from ..problem.kernels import Kernel, gamma_value
from ..runtime.memory import readable
from ..runtime.space import Space
from ..runtime.threads import Workers
from ..types import FloatArray, IntArray
from .budget import GAMMA_ROWS, least_memory, least_sample
from .entries import Entries
from .features import FeatureMap, features_of, make_feature_map
from .landmarks import landmarks_among, most_rows
from .left_out import MOST_AT_ONCE, Most, leave_folds_out, leave_one_out
from .passes.distributed import DaskRows, DaskRunner, active_client
from .passes.local import LocalRunner
from .rows.sampling import smallest_keys
from .rows.sources import ArrayRows
from .small.guesses import Column, Guesses, Sample
from .small.leave_out import MATRICES, MOST
from .solver import LARGEST, Room, Runner, Solved, Solver
from .task import FeatureProblem, FeatureTask
from .verdict import Farthest, Spread

__all__ = ["METHOD", "LowRank", "check_room", "fit_map", "runner_of"]

# Rows whose features stay in memory, for first guesses and for counting; and so many, if that is
# all of them.
SAMPLE_ROWS, ALL_ROWS = 20_000, 65_536
# What a pass collects of a row near a margin, features aside.
ROW_BYTES = 64
# So many rows may be in play in any case.
LEAST_IN_PLAY = 1000
# Of the memory, what the threads may have in large arrays at a time.
AT_WORK = 0.5
# Rows that are looked at together where all are asked for a few figures.
BLOCK = 1 << 18


class LowRank:
    """Exact cross-validation of a linear SVM on features, in few passes over the rows."""

    def run(self, task: FeatureTask, entries: Entries, workers: Workers) -> dict[str, Any]:
        """Fill the entries; returns what was counted, ``timings`` among it."""
        start = perf_counter()
        workers.watch.say(f"features, {task.problem.n} rows")
        drawn = _draw(task)
        fmap = drawn.feature_map
        entries.features(fmap)
        store = task.options.store_for(task.problem.n, fmap.n_components, task.budget)
        runner = runner_of(task, fmap, workers, store)
        # On a cluster the workers make features in the meantime.
        sample = drawn.sample(task, runner)
        mass, largest_knot = _sides(task.problem)
        guesses = Guesses(sample, mass, task.problem.fit_intercept, workers)
        first = guesses.first(np.sort(task.grid.Cs))
        guesses.let_go()
        spread = _spread(runner, sample, task.problem.fit_intercept)
        timings = {"kernel": perf_counter() - start}
        extent = Extent(spread.largest, largest_knot)
        solver = _solver(task, runner, guesses, extent, workers)
        workers.watch.say(f"path, {len(task.grid)} grid points")
        before = perf_counter()
        solved = _path(solver, task.grid, first)
        entries.full(solved)
        timings["path"] = perf_counter() - before
        workers.watch.say("folds")
        before = perf_counter()
        if task.folds.every_row_alone:
            # Rows that wait may take a sixteenth of the memory.
            waiting = max(1, task.budget // (16 * 8 * fmap.n_components))
            at_once = max(waiting, workers.n_threads * min(waiting, MOST_AT_ONCE))
            most = Most(waiting, _most_in_play(task), at_once)
            escaped = leave_one_out(solver, solved, spread, entries, most)
        else:
            escaped = 0
            leave_folds_out(solver, solved, entries)
        timings["folds"] = perf_counter() - before
        stats = _stats(solver, solved, store)
        return stats | {"escaped": escaped, "timings": timings}


def _stats(solver: Solver, solved: list[Solved], store: str) -> dict[str, Any]:
    """What it took; ``free`` counts the rows on the margin."""
    runner = solver.runner
    stats = {
        "passes": solver.passes,
        "steps": solver.steps + solver.guesses.steps,
        "free": [int(one.free.sum()) for one in solved],
        "features": store,
    }
    if isinstance(runner, DaskRunner):
        stats |= {"bytes_sent": runner.bytes_sent, "bytes_received": runner.bytes_received}
    return stats


# --- features and rows ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Drawn:
    """The fitted map, and the rows of the sample, X; None if these are all rows."""

    feature_map: FeatureMap
    rows: IntArray
    X: Any

    def sample(self, task: FeatureTask, runner: Runner) -> Sample:
        """The rows with their features: those of the runner, if it has all of them here."""
        problem, rows, X = task.problem, self.rows, self.X
        if X is None and isinstance(runner, LocalRunner):
            Z = runner.all_features()
        else:
            X = problem.source.take(rows) if X is None else X
            made = features_of(self.feature_map, X, task.options.dtype)
            Z = made.astype(np.float64, copy=False)
        loss = problem.loss(problem.y[rows])
        return Sample(rows, Z, loss, problem.weight[rows], self.X is None)


def _draw(task: FeatureTask) -> _Drawn:
    """The map, and the rows of the sample.

    Rows of weight zero are in neither: keys go by the place among the others, so that these are
    drawn as if they were alone.
    """
    problem, fmap = task.problem, task.problem.feature_map
    size = check_room(task)
    n_used, whole = int(np.count_nonzero(problem.weight > 0)), size == problem.n
    rows = smallest_keys(n_used, size, problem.seed)
    if n_used < problem.n:
        rows = np.flatnonzero(problem.weight > 0)[rows]
    X = None
    if fmap is None:
        # Of all rows no copy is wanted.
        few = most_rows(problem.n_components, problem.landmarks) if whole else size
        fmap, X = fit_map(problem, rows[:few])
    elif not whole:
        X = problem.source.take(rows)
    return _Drawn(fmap, np.arange(size), None) if whole else _Drawn(fmap, rows, X)


def fit_map(problem: FeatureProblem, rows: IntArray) -> tuple[FeatureMap, Any]:
    """The map that ``problem`` asks for, and some rows; the first of these are the landmarks."""
    kernel, approx, m = problem.kernel, problem.approx, problem.n_components
    # All rows count for gamma, and in the order of the data: so few rows give the value of the
    # exact kernel.
    few = np.sort(smallest_keys(problem.n, min(GAMMA_ROWS, problem.n), problem.seed))
    # All at once, for it may be a pass over a file.
    taken = problem.source.take(np.concatenate([rows, few]))
    X = taken[: len(rows)]
    if kernel.uses_gamma:
        kernel = replace(kernel, gamma=_gamma(taken[len(rows) :], kernel))
    landmarks = landmarks_among(X, m, problem.landmarks) if approx == "nystroem" else None
    return make_feature_map(approx, kernel, m, landmarks, problem.source.p, problem.seed), X


def check_room(task: FeatureTask) -> int:
    """How many rows the sample has; refuses more components than rows or memory allow."""
    problem, m = task.problem, task.problem.n_components
    n = int(np.count_nonzero(problem.weight > 0))
    if problem.feature_map is None and problem.approx == "nystroem" and m > n:
        which = "" if n == problem.n else " with positive weight"
        raise InputError(
            f"n_components={m} is more than the {n} rows{which}: Nystroem takes its "
            "landmarks from them; use at most that many, or approx=None"
        )
    return _sample_size(task, n)


def _sample_size(task: FeatureTask, n: int) -> int:
    """How many of n rows the sample has: what a quarter of the memory holds, at most.

    Refuses n_components if not even the least fits.
    """
    m = task.problem.n_components
    need = least_memory(task.problem.source, task.options, m, n)
    least = least_sample(m, n)
    if need > task.budget:
        what = "columns" if task.problem.approx is None else "components"
        raise InputError(
            f"{m} {what} need at least {readable(need)} of memory, but the limit is "
            f"{readable(task.budget)}; use fewer {what}, or set or raise memory_limit"
        )
    if task.options.target_rows is not None:
        return min(n, max(m, 2 * task.options.target(m)))
    # The features that are kept here are those of the sample, if it has all rows.
    options, here = task.options, not isinstance(task.problem.source, DaskRows)
    shared = here and options.features == "memory" and np.dtype(options.dtype) == np.float64
    copies = 3 if shared else 4
    if n <= ALL_ROWS and copies * 8 * m * n <= task.budget:
        return n
    wanted = max(SAMPLE_ROWS, 2 * task.options.target(m))
    return min(n, wanted, max(least, task.budget // (4 * 2 * 8 * m)))


def _gamma(X: Any, kernel: Kernel) -> float:
    gamma = gamma_value(X.toarray() if sparse.issparse(X) else X, kernel)
    assert gamma is not None
    return gamma


def runner_of(task: FeatureTask, fmap: FeatureMap, workers: Workers, store: str) -> Runner:
    """Passes run where the rows are, or where the user has opened a cluster."""
    problem, options = task.problem, task.options
    rows = problem.source, problem.y, problem.weight
    client = active_client() if options.cluster else None
    if isinstance(rows[0], DaskRows) or (client and isinstance(rows[0], ArrayRows)):
        if store == "spill":
            raise UnsupportedError(
                "method_options['features']='spill' keeps features on the disk of this process; "
                "with Dask use 'memory' (workers spill by themselves) or 'recompute'"
            )
        return DaskRunner(*rows, fmap, store, options.dtype, options.chunk_rows, client)
    return LocalRunner(*rows, fmap, workers, store, options.dtype, options.folder)


def _spread(runner: Runner, sample: Sample, fit_intercept: bool) -> Spread:
    centre = sample.Z.mean(axis=0) if fit_intercept else np.zeros(sample.Z.shape[1])
    spread = Spread(centre, 0.0, fit_intercept)
    return Spread(centre, max(runner.map(Farthest(spread))), fit_intercept)


# --- the path -----------------------------------------------------------------------------------


def _path(solver: Solver, grid: Grid, first: dict[int, Column]) -> list[Solved]:
    """Full-data solutions in grid order."""
    order = np.argsort(grid.Cs, kind="stable")
    found = solver.path(grid.Cs[order], first)
    return [found[rank] for rank in np.argsort(order)]


def _solver(
    task: FeatureTask, runner: Runner, guesses: Guesses, extent: Extent, workers: Workers
) -> Solver:
    left_out = task.folds.left_out
    if not task.folds.leave_one_out:
        left_out = [rows if rises(rows) else np.sort(rows) for rows in left_out]
    return Solver(
        runner,
        guesses,
        left_out,
        task.problem.fit_intercept,
        task.tol,
        workers,
        task.problem.loss,
        extent,
        _room(task, guesses.sample.Z.shape[1], _at_hand(runner)),
        task.problem.seed,
        Space(int(AT_WORK * task.budget)),
    )


def _sides(problem: FeatureProblem) -> tuple[FloatArray, float]:
    """Weights of the rows whose loss pushes down, and up; the largest knot of all.

    Block by block: the losses of all rows take several times the room of y.
    """
    masses, largest = [], 0.0
    for start in range(0, problem.n, BLOCK):
        part = slice(start, start + BLOCK)
        loss, weight = problem.loss(problem.y[part]), problem.weight[part]
        masses.append([weight[side].sum() for side in (~loss.upward, loss.upward)])
        largest = max(largest, loss.largest_knot)
    return np.sum(masses, axis=0), largest


def _at_hand(runner: Runner) -> bool:
    """Are all features in the memory of this process, so that solutions need no copies?"""
    return isinstance(runner, LocalRunner) and runner.at_hand is not None


def _room(task: FeatureTask, m: int, at_hand: bool) -> Room:
    """How many rows small problems may have.

    Rows near margins may take an eighth of the memory while columns are solved, and a quarter with
    the solutions of the grid, which hold them twice; or where features are at hand, an eighth in
    each small problem.
    """
    target = task.options.target(m)
    together = task.budget // (8 * 8 * m)
    held = together if at_hand else task.budget // (4 * 2 * 8 * m * len(task.grid))
    least = target if task.options.target_rows is not None else min(1000, target)
    if task.options.target_rows is None and _all_in_play(task, m, at_hand):
        least = max(least, (task.problem.n + 1) // 2)  # twice as many are all
    return Room(
        target=target,
        least=least,
        largest=min(LARGEST, max(target, held)),
        most=max(target, min(100 * target, together)),
        capacity=task.budget // (8 * ROW_BYTES) if at_hand else together,
        together=together,
    )


def _all_in_play(task: FeatureTask, m: int, at_hand: bool) -> bool:
    """Are small problems to have all rows?

    Where single rows are left out and their values are wanted, each must be solved: with all rows
    at hand by a drive along the path, which takes a fraction of a search in m dimensions.
    """
    n, folds = task.problem.n, task.folds
    if not (task.want_decision and folds.every_row_alone and n <= _most_in_play(task)):
        return False
    held = 1 if at_hand else len(task.grid)
    return 4 * 8 * n * n + 4 * 2 * 8 * n * m * held <= task.budget


def _most_in_play(task: FeatureTask) -> int:
    """How many rows may be in play where single rows are left out: their matrices have to fit."""
    fitting = isqrt(int(AT_WORK * task.budget) // (8 * MATRICES))
    return min(max(fitting, LEAST_IN_PLAY), MOST)


METHOD = LowRank()
