"""``cross_validate(..., approx=...)``: cross-validation with an approximate kernel.

The kernel is replaced by m features z(x) (``lowrank/features.py``); what is left is a linear SVM,

    min over w, b   1/2 ||w||^2 + sum_i C_i max(0, 1 - y_i (w'z_i + b)),

problems (40) and (41) of the consolidated-CV paper.  Everything from here on is exact for that
problem, and certified:

1. ``lowrank/solver.py`` finds the full-data solutions, a few passes over the rows for the whole
   grid.
2. Leave-one-out (``lowrank/curves.py``): ``lowrank/verdict.py`` settles most labels by proof in one
   pass, ``lowrank/small/leave_out.py`` solves the rest near the full-data solution.  What even that
   cannot settle is solved over all rows, as are the folds of any other scheme, from the full-data
   solution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..exceptions import InputError, Interrupted, UnsupportedError
from ..judge.certificate import Certificate, warn_if_short
from ..lowrank.curves import Curves, fold_curves, leave_one_out_curves
from ..lowrank.features import FeatureMap, features_of, make_feature_map
from ..lowrank.open_source import open_source
from ..lowrank.options import Options
from ..lowrank.passes.distributed import DaskRows, DaskRunner, active_client, as_local
from ..lowrank.passes.local import LocalRunner, scratch_array
from ..lowrank.rows.sampling import smallest_keys
from ..lowrank.rows.sources import ArrayRows, RowSource
from ..lowrank.small.reduced import FREE
from ..lowrank.solver import LARGEST, Runner, Sample, Solved, Solver
from ..lowrank.verdict import Farthest, Spread
from ..problem import inputs
from ..problem.folds import Folds
from ..problem.kernels import Kernel, gamma_value
from ..problem.problem import Grid
from ..runtime.memory import available_memory, parse_bytes, readable
from ..runtime.progress import Run, following
from ..runtime.threads import Workers
from ..types import FloatArray, IntArray
from .result import CVResult, by_row, choose, standard_error

__all__ = ["approximate_cross_validate"]

# gamma="median" and "scale" are worked out on at most so many rows.
GAMMA_ROWS = 2000
# Rows whose features stay in memory, for first guesses and for counting.
SAMPLE_ROWS = 20_000
FOR_MORE_CLASSES = (
    "approx takes two classes: for more, wrap exactcv.SVCCV(approx=...) in "
    "sklearn.multiclass.OneVsOneClassifier or OneVsRestClassifier"
)


@dataclass(frozen=True)
class Data:
    """The rows, checked labels and weights."""

    source: RowSource
    labels: NDArray[Any]
    classes: NDArray[Any]
    y: FloatArray
    weight: FloatArray

    @property
    def n(self) -> int:
        return self.source.n


@dataclass(frozen=True)
class Job:
    """All that was asked for, checked; ``folds`` is None for leave-one-out."""

    data: Data
    kernel: Kernel
    approx: str
    n_components: int
    grid: Grid
    folds: Folds | None
    fit_intercept: bool
    want_decision: bool
    tol: float
    seed: int
    budget: int
    options: Options


def approximate_cross_validate(
    X: Any,
    y: Any,
    *,
    approx: str,
    n_components: int,
    kernel: Kernel,
    grid: Callable[[int], Grid],
    cv: Any,
    groups: Any,
    sample_weight: Any,
    class_weight: Any,
    fit_intercept: bool,
    want_decision: bool,
    n_threads: int,
    tol: float,
    random_state: Any,
    memory_limit: Any,
    options: Mapping[str, Any],
    progress: Any,
) -> CVResult:
    """The result of ``cross_validate`` with ``approx``; its arguments, checked."""
    start = perf_counter()
    chosen = Options.read(options)
    seed = _seed(random_state)
    data = _read(X, y, sample_weight, class_weight, groups, chosen)
    groups = data.source.column(groups) if isinstance(groups, str) else as_local(groups)
    folds = _folds(cv, data, groups, random_state)
    job = Job(
        data=data,
        kernel=kernel,
        approx=approx,
        n_components=n_components,
        grid=grid(data.n),
        folds=folds,
        fit_intercept=fit_intercept,
        want_decision=want_decision,
        tol=tol,
        seed=seed,
        budget=_budget(memory_limit),
        options=chosen,
    )
    try:
        with following(progress) as run, Workers(n_threads) as workers:
            return _run(job, run, workers, start)
    except KeyboardInterrupt as stop:
        raise Interrupted("interrupted; nothing is complete before all passes are") from stop


def _run(job: Job, run: Run, workers: Workers, start: float) -> CVResult:
    """Features, path, folds, result."""
    run.say(f"features, {job.data.n} rows")
    fmap, sample = _features(job)
    store = job.options.store_for(job.data.n, fmap.n_components, job.budget)
    runner = _runner(job.data, fmap, workers, store, job.options)
    spread = _spread(runner, sample, job.fit_intercept)
    timings = {"kernel": perf_counter() - start}
    solver = _solver(job, runner, sample, workers)
    run.say(f"path, {len(job.grid)} grid points")
    before = perf_counter()
    solved = _path(solver, job.grid)
    timings["path"] = perf_counter() - before
    run.say("folds")
    before = perf_counter()
    curves = _curves(job, solver, solved, spread)
    timings |= {"folds": perf_counter() - before, "certificate": 0.0}
    timings["total"] = perf_counter() - start
    certificate = Certificate(
        curves.kkt, curves.gap, not curves.unresolved, curves.unresolved, job.tol
    )
    n_solutions = len(job.grid) + sum(curves.counts.values())
    warn_if_short(certificate, job.grid.Cs, n_solutions, stacklevel=5)
    return CVResult(
        **_result_of(job, solved, curves, certificate),
        stats=_stats(solver, solved, curves, store),
        timings=timings,
        gamma=fmap.gamma,
        feature_map=fmap,
    )


def _stats(solver: Solver, solved: list[Solved], curves: Curves, store: str) -> dict[str, Any]:
    """How rows were settled, and what it took.

    ``escaped`` counts rows that had to be solved over all rows; ``free`` the rows on the margin.
    """
    runner = solver.runner
    stats = curves.counts | {
        "passes": solver.passes,
        "steps": solver.steps,
        "escaped": curves.escaped,
        "free": [int((one.state == FREE).sum()) for one in solved],
        "features": store,
    }
    if isinstance(runner, DaskRunner):
        stats |= {"bytes_sent": runner.bytes_sent, "bytes_received": runner.bytes_received}
    return stats


# --- what goes in ---------------------------------------------------------------------------------


def _read(
    X: Any, y: Any, sample_weight: Any, class_weight: Any, groups: Any, options: Options
) -> Data:
    others = [given for given in (y, sample_weight, groups) if isinstance(given, str)]
    source = open_source(X, others, options.chunk_rows)
    y, sample_weight = (
        source.column(given) if isinstance(given, str) else as_local(given)
        for given in (y, sample_weight)
    )
    labels, classes, signs = inputs.read_labels(y, source.n, FOR_MORE_CLASSES)
    weight = inputs.read_weights(sample_weight, class_weight, signs, classes)
    return Data(source, labels, classes, signs, weight)


def _seed(random_state: Any) -> int:
    from sklearn.utils import check_random_state

    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise InputError(f"random_state cannot be used: {error}") from error


def _folds(cv: Any, data: Data, groups: Any, random_state: Any) -> Folds | None:
    """None for leave-one-out: one object a row would be too many."""
    from sklearn.model_selection import LeaveOneOut

    if isinstance(cv, LeaveOneOut) or (isinstance(cv, str) and cv == "loo"):
        for sign, label in zip((-1.0, 1.0), data.classes.tolist(), strict=True):
            if np.count_nonzero((data.y == sign) & (data.weight > 0)) < 2:
                raise InputError(
                    f"class {label!r} has only one row with positive weight, and none without "
                    "it; leave-one-out needs two: use more rows of that class"
                )
        return None
    stand_in = np.broadcast_to(np.zeros(1), (data.n, 1))  # splitters need only its length
    rows = inputs.Data(stand_in, data.y, data.classes, data.labels, data.weight)
    return inputs.check_folds(cv, rows, groups, random_state)


def _budget(memory_limit: Any) -> int:
    if memory_limit is not None:
        return parse_bytes(memory_limit)
    return (available_memory() or 4 * 10**9) // 2


def _features(job: Job) -> tuple[FeatureMap, Sample]:
    """The fitted map, and a sample of rows with their features.

    Rows of weight zero are in neither: keys go by the place among the others, so that these are
    drawn as if they were alone.
    """
    data, kernel, approx, m = job.data, job.kernel, job.approx, job.n_components
    used = np.flatnonzero(data.weight > 0)
    if approx == "nystroem" and m > len(used):
        which = "" if len(used) == data.n else " with positive weight"
        raise InputError(
            f"n_components={m} is more than the {len(used)} rows{which}: Nystroem takes its "
            "landmarks from them; use at most that many, or approx=None"
        )
    rows = used[smallest_keys(len(used), _sample_size(job, len(used)), job.seed)]
    # All rows count for gamma, and in the order of the data: so few rows give the value of the
    # exact kernel.
    few = np.sort(smallest_keys(data.n, min(GAMMA_ROWS, data.n), job.seed))
    taken = data.source.take(np.concatenate([rows, few]))  # once, for it may be a pass over a file
    X = taken[: len(rows)]
    if kernel.uses_gamma:
        kernel = replace(kernel, gamma=_gamma(taken[len(rows) :], kernel))
    landmarks = X[:m] if approx == "nystroem" else None
    fmap = make_feature_map(approx, kernel, m, landmarks, data.source.p, job.seed)
    Z = features_of(fmap, X, job.options.dtype).astype(np.float64, copy=False)
    return fmap, Sample(rows, Z, data.y[rows], data.weight[rows])


def _sample_size(job: Job, n: int) -> int:
    """How many of n rows the sample has: what a quarter of the memory holds, at most.

    Refuses n_components if not even the least fits: two rows of the sample a dimension, a chunk
    (features take twice their size while they are made) and a few matrices of m x m.
    """
    source, m = job.data.source, job.n_components
    least = min(n, max(GAMMA_ROWS, 2 * m))
    chunk = min(int(np.diff(source.bounds).max()), job.options.chunk_rows)
    need = 8 * m * (2 * least + 2 * chunk + 4 * m + source.p)
    if need > job.budget:
        raise InputError(
            f"n_components={m} needs at least {readable(need)} of memory, but the limit is "
            f"{readable(job.budget)} (memory_limit, or half of what is free); use fewer components"
        )
    wanted = max(SAMPLE_ROWS, 2 * job.options.target(m))
    return min(n, wanted, max(least, job.budget // (4 * 2 * 8 * m)))


def _gamma(X: Any, kernel: Kernel) -> float:
    gamma = gamma_value(X.toarray() if sparse.issparse(X) else X, kernel)
    assert gamma is not None
    return gamma


def _runner(data: Data, fmap: FeatureMap, workers: Workers, store: str, options: Options) -> Runner:
    """Passes run where the rows are, or where the user has opened a cluster."""
    client = active_client() if options.cluster else None
    if isinstance(data.source, DaskRows) or (client and isinstance(data.source, ArrayRows)):
        if store == "spill":
            raise UnsupportedError(
                "method_options['features']='spill' keeps features on the disk of this process; "
                "with Dask use 'memory' (workers spill by themselves) or 'recompute'"
            )
        return DaskRunner(
            data.source, data.y, data.weight, fmap, store, options.dtype, options.chunk_rows, client
        )
    return LocalRunner(
        data.source, data.y, data.weight, fmap, workers, store, options.dtype, options.folder
    )


def _spread(runner: Runner, sample: Sample, fit_intercept: bool) -> Spread:
    centre = sample.Z.mean(axis=0) if fit_intercept else np.zeros(sample.Z.shape[1])
    spread = Spread(centre, 0.0, fit_intercept)
    return Spread(centre, max(runner.map(Farthest(spread))), fit_intercept)


# --- the work -------------------------------------------------------------------------------------


def _path(solver: Solver, grid: Grid) -> list[Solved]:
    """Full-data solutions in grid order."""
    order = np.argsort(grid.Cs, kind="stable")
    found = solver.path(grid.Cs[order])
    return [found[rank] for rank in np.argsort(order)]


def _solver(job: Job, runner: Runner, sample: Sample, workers: Workers) -> Solver:
    data, m = job.data, sample.Z.shape[1]
    mass = np.array([data.weight[data.y < 0].sum(), data.weight[data.y > 0].sum()])
    target = job.options.target(m)
    solver = Solver(runner, sample, {}, job.fit_intercept, job.tol, workers, mass, target, job.seed)
    # Rows near margins may take an eighth of the memory while columns are solved, and a quarter
    # with the solutions of the grid, which hold them twice.
    solver.capacity = job.budget // (8 * 8 * m)
    solver.largest = min(LARGEST, max(target, job.budget // (4 * 2 * 8 * m * len(job.grid))))
    if job.options.target_rows is None:
        solver.least_rows = min(1000, target)
    solver.most_rows = max(target, min(solver.most_rows, solver.capacity))
    return solver


def _curves(job: Job, solver: Solver, solved: list[Solved], spread: Spread) -> Curves:
    data, folds, grid, folder = job.data, job.folds, job.grid, job.options.folder
    pairs = data.n if folds is None else len(folds.pair_rows)
    shape = (len(grid), pairs)
    size = pairs * len(grid) * (9 if job.want_decision else 1)
    on_disk = size > job.budget // 4
    wrong = scratch_array(shape, bool, on_disk, folder)
    decision = scratch_array(shape, float, on_disk, folder) if job.want_decision else None
    if folds is None:
        # They may take a sixteenth of the memory.
        most = max(1, job.budget // (16 * 8 * solver.sample.Z.shape[1]))
        return leave_one_out_curves(
            solver, solved, spread, data.y, data.weight, wrong, decision, most
        )
    return fold_curves(solver, solved, folds, grid, data.y, wrong, decision)


# --- what comes out -------------------------------------------------------------------------------


def _result_of(
    job: Job, solved: list[Solved], curves: Curves, certificate: Certificate
) -> dict[str, Any]:
    data, grid, folds = job.data, job.grid, job.folds
    wrong, decision = curves.wrong, curves.decision
    n_errors = wrong.sum(axis=1)
    error = n_errors / wrong.shape[1]
    by_fold, rows, fold_of = _by_fold(data.n, wrong, folds)
    # Folds of one row each: the standard deviation of zeros and ones.
    se = np.sqrt(error * (1 - error) / (data.n - 1)) if folds is None else standard_error(by_fold)
    best, one_se = choose(grid.Cs, n_errors, error, se, certificate)
    row_decision, row_wrong = decision, wrong
    if folds is not None:
        row_decision, row_wrong = by_row(folds, data.y, decision, wrong)
    used = np.count_nonzero(data.weight > 0)
    return {
        "Cs": grid.Cs,
        "lambdas": grid.lambdas,
        "error": error,
        "se": se,
        "n_errors": n_errors,
        "decision": row_decision,
        "wrong": row_wrong,
        "best": best,
        "one_se": one_se,
        "objective": np.array([one.primal for one in solved]) / (data.n * grid.Cs),
        "coef": None,
        "weights": np.array([one.theta[:-1] for one in solved]),
        "intercept": np.array([one.theta[-1] for one in solved]),
        "at_bound": np.array([one.at_bound for one in solved]) / used,
        "certificate": certificate,
        "test_row": rows,
        "test_fold": fold_of,
        "pair_decision": decision,
        "pair_wrong": wrong,
        "fold_error": by_fold,
        "classes": data.classes,
        "y": data.y,
        "method": "exact",
        "loss": "hinge",
        "kernel": job.kernel.name if isinstance(job.kernel.name, str) else "callable",
        "approx": job.approx,
        "fit_intercept": job.fit_intercept,
        "scale_with_fold": grid.scale_with_fold,
        "leave_one_out": folds is None or folds.leave_one_out,
    }


def _by_fold(
    n: int, wrong: NDArray[np.bool_], folds: Folds | None
) -> tuple[Any, IntArray, IntArray]:
    """Errors of each fold, and row and fold of each pair."""
    if folds is None:
        rows = np.arange(n)
        return wrong, rows, rows  # a fold of one row is wrong or right
    sizes = np.diff(folds.offsets)
    errors = np.add.reduceat(wrong, folds.offsets[:-1], axis=1, dtype=float) / sizes
    return errors, folds.pair_rows, folds.pair_folds
