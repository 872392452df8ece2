"""Nested cross-validation of numbers: as ``nested.py`` for classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from ..problem import inputs
from ..problem.folds import Folds
from ..runtime.threads import Workers
from .nested_loop import InnerSplits, Matrices, fold_by_fold, outside, settled
from .nested_parts import Outer, Parts
from .nested_result import NestedRegressionResult
from .nested_tests import NumberTests
from .number_tuning import NumbersTuned, NumberTuning
from .scoring import check_defined
from .tuning import count_by_weight

__all__ = ["NumberNest", "nest_numbers"]


@dataclass(frozen=True)
class NumberNest:
    """What is to be done: a tuning of all rows (its own folds are not used), and both splits."""

    tuning: NumberTuning
    tests: NumberTests
    inner: InnerSplits
    store: Parts | None = None

    @property
    def outer(self) -> Folds:
        return self.tests.outer


def nest_numbers(task: NumberNest, workers: Workers) -> NestedRegressionResult:
    """Tune without every outer fold, and predict it; Ctrl-C as in ``nested.nest``."""
    start, tuning = perf_counter(), task.tuning
    kernels = settled(tuning.kernels, tuning.X, tuning.weight)
    task = replace(task, tuning=replace(tuning, kernels=kernels))
    matrices = Matrices(task.tuning)
    found: NestedRegressionResult = fold_by_fold(
        task.outer,
        lambda fold: _one(task, fold, matrices, workers),
        lambda done: task.tests.result(done, perf_counter() - start),
        task.store,
        tuning.show_progress,
        workers,
    )
    return found


def _tuned_without(
    task: NumberNest, fold: int, matrices: Matrices, workers: Workers
) -> NumbersTuned:
    """The grid cross-validated on the rows outside an outer fold, and the point chosen there."""
    tuning, train = task.tuning, outside(task.outer, fold)
    ones = np.ones(len(train))

    def check(folds: Folds) -> Folds:
        return inputs.check_some_training(folds, ones)

    folds = task.inner.among(task.tests.shown, train, fold, check)
    for plan in tuning.plans:
        plan.check_folds(folds)
    grid = replace(tuning.grid, Cs=tuning.grid.for_fold(task.outer, fold))
    precomputed = tuning.kernels[0].name == "precomputed"
    inner = replace(
        tuning,
        X=np.ascontiguousarray(tuning.X[np.ix_(train, train)] if precomputed else tuning.X[train]),
        y=tuning.y[train],
        weight=tuning.weight[train],
        folds=count_by_weight(folds, grid, tuning.weight[train]),
        grid=grid,
        scorer=task.tests.scorer(train[folds.pair_rows]),
        show_progress=False,
        rows_of=matrices.among(train),
    )
    return inner.search(workers)


def _one(task: NumberNest, fold: int, matrices: Matrices, workers: Workers) -> Outer:
    """Tune without the fold, and predict it."""
    tuned = _tuned_without(task, fold, matrices, workers)
    check_defined(tuned.score, task.tests.scoring, f" outside outer fold {fold}")
    curve, l, grid = tuned.curve, tuned.point, tuned.tuning.grid
    K = matrices.whole(curve.kernel, workers).K
    part = K[np.ix_(task.outer.test[fold], outside(task.outer, fold))]
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
