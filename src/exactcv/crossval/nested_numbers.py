"""Nested cross-validation of numbers: as ``nested.py`` for classes.

Left-out predictions of different outer folds are all in units of y, so that any scorer judges them
together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from ..lowrank.rows.kept import keep_rows
from ..problem import inputs
from ..problem.folds import Folds
from ..problem.intervals import effective_count, mean_interval, resampled_count
from ..runtime.threads import Workers
from ..types import FloatArray, IntArray
from .nested_loop import InnerSplits, Matrices, added, fold_by_fold, outside, settled, worst
from .nested_parts import Outer, Parts
from .nested_result import NestedRegressionResult
from .number_tuning import NumbersTuned, NumberTuning
from .numbers_scoring import NumbersScorer
from .regression_result import r2_of
from .result import standard_error
from .scoring import check_defined
from .tuning import count_by_weight

__all__ = ["NumberNest", "nest_numbers"]


@dataclass(frozen=True)
class NumberNest:
    """What is to be done: a tuning of all rows (its own folds are not used), and both splits.

    ``shown`` are all rows as splitters and scorers see them, ``score_weight`` what the scorer is
    given besides, a number a row, or None.
    """

    tuning: NumberTuning
    outer: Folds
    inner: InnerSplits
    scoring: Any
    shown: Any
    score_weight: FloatArray | None
    store: Parts | None = None


def nest_numbers(task: NumberNest, workers: Workers) -> NestedRegressionResult:
    """Tune without every outer fold, and predict it; Ctrl-C as in ``nested.nest``."""
    start, tuning = perf_counter(), task.tuning
    if tuning.features is None:  # which work out gamma with the features, without the fold
        kernels = settled(tuning.kernels, tuning.X, tuning.weight)
        task = replace(task, tuning=replace(tuning, kernels=kernels))
    matrices = Matrices(task.tuning)
    found: NestedRegressionResult = fold_by_fold(
        task.outer,
        lambda fold: _one(task, fold, matrices, workers),
        lambda done: _gather(task, done, perf_counter() - start),
        task.store,
        tuning.show_progress,
        workers,
    )
    return found


def _scorer(task: NumberNest, tests: IntArray) -> NumbersScorer:
    """The scorer, for these tests of rows."""
    given = None if task.score_weight is None else task.score_weight[tests]
    return NumbersScorer.of(task.scoring, task.shown[tests], given)


def _tuned_without(
    task: NumberNest, fold: int, matrices: Matrices, workers: Workers
) -> NumbersTuned:
    """The grid cross-validated on the rows outside an outer fold, and the point chosen there."""
    tuning, train = task.tuning, outside(task.outer, fold)
    ones = np.ones(len(train))

    def check(folds: Folds) -> Folds:
        return inputs.check_some_training(folds, ones)

    folds = task.inner.among(task.shown, train, fold, check)
    for plan in tuning.plans:
        plan.check_folds(folds)
    grid = replace(tuning.grid, Cs=tuning.grid.for_fold(task.outer, fold))
    inner = replace(
        tuning,
        **_rows_of(tuning, train, matrices),
        y=tuning.y[train],
        weight=tuning.weight[train],
        folds=count_by_weight(folds, grid, tuning.weight[train]),
        grid=grid,
        scorer=_scorer(task, train[folds.pair_rows]),
        show_progress=False,
    )
    return inner.search(workers)


def _rows_of(tuning: NumberTuning, train: IntArray, matrices: Matrices) -> dict[str, Any]:
    """Some of the rows: of a kernel matrix, or read in chunks for features of their own."""
    if tuning.features is not None:
        source = keep_rows(tuning.features.source, train)
        return {"features": replace(tuning.features, source=source)}
    precomputed = tuning.kernels[0].name == "precomputed"
    X = tuning.X[np.ix_(train, train)] if precomputed else tuning.X[train]
    return {"X": np.ascontiguousarray(X), "rows_of": matrices.among(train)}


def _one(task: NumberNest, fold: int, matrices: Matrices, workers: Workers) -> Outer:
    """Tune without the fold, and predict it."""
    tuned = _tuned_without(task, fold, matrices, workers)
    check_defined(tuned.score, task.scoring, f" outside outer fold {fold}")
    curve, l, grid = tuned.curve, tuned.point, tuned.tuning.grid
    tests, fmap = task.outer.test[fold], curve.feature_map
    if fmap is None:
        K = matrices.whole(curve.kernel, workers).K
        part = K[np.ix_(tests, outside(task.outer, fold))]
    else:
        part = fmap.transform(task.shown[tests])
    known = task.tuning.grid.Cs if grid.scale_with_fold else grid.Cs
    return Outer(
        C=float(known[l]),
        gamma=np.nan if curve.gamma is None else curve.gamma,
        inner_score=float(tuned.score[tuned.chosen]),
        labels=np.zeros(0, dtype=np.intp),
        decision=(part @ curve.coef[l] + curve.intercept[l])[:, None],
        score=np.nan,
        certificate=tuned.certificate,
        stats={
            name: sum(one.settled.get(name, 0) for one in tuned.curves) for name in curve.settled
        },
        grid=(grid.Cs, np.unique(tuned.gammas)),
        parameter=curve.parameter,
    )


def _gather(task: NumberNest, done: list[Outer], seconds: float) -> NestedRegressionResult:
    tuning, outer = task.tuning, task.outer.part(np.arange(len(done)))
    rows = outer.pair_rows
    y, weight = tuning.y[rows], tuning.weight[rows]
    values = np.concatenate([one.decision[:, 0] for one in done])
    losses = np.abs(values - y)
    share = weight / weight.sum()
    error = float(losses @ share)
    trained = float(np.mean([outer.n - len(out) for out in outer.left_out]))
    tests = resampled_count(effective_count(tuning.weight[np.unique(rows)]), trained)
    inner = np.array([one.inner_score for one in done])
    scorer = _scorer(task, rows)
    score = scorer.score(y, values)
    return NestedRegressionResult(
        error=error,
        se=float(standard_error(losses[None], outer.offsets)[0]),
        interval=mean_interval(error, float(share @ (losses - error) ** 2), tests),
        score=score,
        score_se=scorer.jackknife_se(y, values, outer.pair_folds),
        scoring=scorer.name,
        chosen=np.array([[one.C, one.gamma] for one in done]),
        epsilon=np.array([one.parameter for one in done]),
        inner=inner,
        optimism=float(inner.mean()) - score,
        decision=values,
        rmse=float(np.sqrt(share @ (values - y) ** 2)),
        r2=float(r2_of(y, values - y, weight)),
        y=y,
        test_row=task.inner.keep[rows],
        test_fold=outer.pair_folds,
        n_folds=len(outer),
        n_rows=task.inner.n,
        select=tuning.select,
        method=tuning.plans[0].method,
        n_points=max(len(one.grid[0]) * len(one.grid[1]) for one in done) * len(tuning.plans),
        certificate=worst(done),
        stats=added(done),
        timings={"total": seconds},
    )
