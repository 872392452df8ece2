"""Nested cross-validation: the tuning is repeated without each outer fold, and judged by it.

For every outer fold the whole grid is cross-validated on the rows outside it (the inner folds), a
point is chosen there, and the model of that point, trained on all rows outside, predicts the rows
of the outer fold.  They have had no say in the choice, so the error is honest: it is that of the
recipe "tune, then train" on as many rows as an outer fold leaves.

Kernels, with gamma as a number, the grid and the weights of the classes are settled once, from all
rows, as everywhere here: one kernel matrix serves all folds, inner and outer.  Lambdas keep their
value in an outer fold as they do in any fold (``Grid.for_fold``).

`tuned_without` is all that an outer fold costs.  Leave-one-out inside leave-one-out of two classes
goes through all pairs of rows instead, once for all outer folds (``two_rows.py``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import LeaveOneOut

from ..exceptions import InputError, Interrupted
from ..problem import inputs
from ..problem.folds import Folds
from ..runtime.progress import job
from ..runtime.threads import Workers
from ..types import IntArray
from .calibration import Sigmoid
from .nested_loop import InnerSplits, Matrices, fold_by_fold, outside, settled
from .nested_parts import Outer, Parts
from .nested_result import NestedResult
from .nested_tests import ClassTests
from .scoring import check_defined, fit_sigmoids
from .tuning import Searched, Tuned, Tuning, count_by_weight
from .two_rows import TwoRows, suits

__all__ = ["Nest", "check_classes", "check_groups", "nest", "tuned_without"]


@dataclass(frozen=True)
class Nest:
    """What is to be done: a tuning of all rows (its own folds are not used), and both splits."""

    tuning: Tuning
    tests: ClassTests
    inner: InnerSplits
    store: Parts | None = None  # where finished parts are kept, to go on from there

    @property
    def outer(self) -> Folds:
        return self.tests.outer


def nest(task: Nest, workers: Workers) -> NestedResult:
    """Tune without every outer fold, and predict it.

    Ctrl-C becomes ``Interrupted``; its ``partial`` is the result over the outer folds that are
    complete (leave-one-out inside leave-one-out: over all of them, with the gammas that are
    complete), None if there are none.
    """
    start = perf_counter()
    tuning = task.tuning
    kernels = settled(tuning.kernels, tuning.X, tuning.sample_weight)
    task = replace(task, tuning=replace(tuning, kernels=kernels, store=None))
    n_kernels = len(task.tuning.kernels)
    task.tests.check()
    matrices = Matrices(task.tuning)
    pairs = _pairs(task, matrices)
    if pairs is None:
        found: NestedResult = fold_by_fold(
            task.outer,
            lambda fold: _one(task, fold, matrices, None, workers),
            lambda done: task.tests.result(done, perf_counter() - start),
            task.store,
            tuning.show_progress,
            workers,
        )
        return found
    task = _through_pairs(task, pairs, workers)
    # An outer fold is but a look at the pairs now.  Workers that were told to stop do no more.
    with Workers(workers.n_threads) as fresh:
        done = [_one(task, fold, matrices, pairs, fresh) for fold in range(len(task.outer))]
    result = task.tests.result(done, perf_counter() - start)
    if len(task.tuning.kernels) < n_kernels:
        raise Interrupted(
            f"interrupted with {len(task.tuning.kernels)} of {n_kernels} gammas complete; the "
            "result over these is the `partial` of this exception",
            result,
        )
    return result


def _through_pairs(task: Nest, pairs: TwoRows, workers: Workers) -> Nest:
    """Go through all pairs of rows with every kernel; Ctrl-C leaves those that are complete."""
    tuning, done = task.tuning, 0
    try:
        with job(tuning.show_progress, len(tuning.kernels)) as progress:
            for kernel in tuning.kernels:
                with workers.followed(progress):
                    pairs.get(kernel, tuning.grid, workers)
                done += 1
    except KeyboardInterrupt as stop:
        if not done:
            raise Interrupted("interrupted before the first gamma was complete") from stop
        grid = replace(tuning.grid, grown=None)  # what is there has to do
        return replace(task, tuning=replace(tuning, kernels=tuning.kernels[:done], grid=grid))
    return task


# ---- checks ------------------------------------------------------------------------------------


def check_groups(groups: Any, **splits: Any) -> None:
    """Refuse leave-one-out of grouped rows: a row's own group would train the model that it tests.

    Examples
    --------
    >>> check_groups(None, outer="loo", cv="loo")
    """
    if groups is None:
        return
    for name, given in splits.items():
        if isinstance(given, str) or given is None or isinstance(given, (int, np.integer)):
            raise InputError(
                f"{name}={given!r} would put rows of one group on both sides of a split; with "
                "groups use sklearn.model_selection.LeaveOneGroupOut() or GroupKFold(...) for "
                "outer and for cv"
            )


def check_classes(outer: Folds, codes: IntArray, classes: NDArray[Any]) -> None:
    """Refuse outer folds that leave no row of some class to train on."""
    for code, label in enumerate(classes.tolist()):
        mine = codes == code
        lacking = outer.removed(mine) == np.count_nonzero(mine)
        if lacking.any():
            raise InputError(
                f"outer fold {int(np.argmax(lacking))} leaves no row of class {label!r} to train "
                f"on; tuning needs {'both classes' if len(classes) == 2 else 'every class'}: use "
                "fewer or stratified outer folds (outer=5), or more rows of that class"
            )


# ---- one outer fold ----------------------------------------------------------------------------


def _inner_folds(task: Nest, train: IntArray, fold: int) -> Folds:
    """The inner folds of the rows outside an outer fold."""
    tuning = task.tuning
    parts = tuning.codes[train], tuning.classes, tuning.weight[train], task.inner.keep[train]

    def check(folds: Folds) -> Folds:
        return inputs.check_training_parts(folds, *parts)

    folds = task.inner.among(tuning.shown, train, fold, check)
    tuning.plan.check_folds(folds)
    return folds


def _pairs(task: Nest, matrices: Matrices) -> TwoRows | None:
    """What goes through pairs of rows, if that can be done here."""
    if not (task.inner.cv is None or isinstance(task.inner.cv, (str, LeaveOneOut))):
        return None  # other splitters may do as they like
    if not task.outer.every_row_alone:
        return None
    inner = _inner_folds(task, outside(task.outer, 0), 0)
    if not suits(task.tuning, task.outer, inner):
        return None
    return TwoRows(task.tuning, matrices.whole, task.store)


def tuned_without(
    task: Nest, fold: int, matrices: Matrices, pairs: TwoRows | None, workers: Workers
) -> tuple[Searched, Tuned]:
    """The grid cross-validated on the rows outside an outer fold, and the point chosen there."""
    tuning, outer = task.tuning, task.outer
    train = outside(outer, fold)
    score_arguments = {name: value[train] for name, value in tuning.score_arguments.items()}
    precomputed = tuning.kernels[0].name == "precomputed"
    grid = replace(tuning.grid, Cs=tuning.grid.for_fold(outer, fold))
    inner = replace(
        tuning,
        X=np.ascontiguousarray(tuning.X[np.ix_(train, train)] if precomputed else tuning.X[train]),
        shown=tuning.shown[train],
        codes=tuning.codes[train],
        sample_weight=tuning.sample_weight[train],
        weight=tuning.weight[train],
        folds=count_by_weight(_inner_folds(task, train, fold), grid, tuning.sample_weight[train]),
        grid=grid,
        score_arguments=score_arguments,
        keep_decision=False,
        show_progress=False,
        rows_of=matrices.among(train),
        curve_of=None if pairs is None else partial(pairs.curve, fold),
    )
    searched = inner.search(workers)
    return searched, searched.tuning.choose(searched.curves, workers)


def _one(
    task: Nest, fold: int, matrices: Matrices, pairs: TwoRows | None, workers: Workers
) -> Outer:
    """Tune without the fold, and predict it."""
    tuning, test = task.tuning, task.outer.test[fold]
    searched, tuned = tuned_without(task, fold, matrices, pairs, workers)
    check_defined(tuned.score, tuning.scorer.name, f" outside outer fold {fold}")
    chosen, l = tuned.chosen, tuned.point
    if pairs is not None and not chosen.fits:
        C = float(searched.tuning.grid.Cs[l])
        decision = np.array([[pairs.value(fold, chosen.kernel, C)]])
    else:
        K = matrices.whole(chosen.kernel, workers).K[np.ix_(test, outside(task.outer, fold))]
        decision = np.column_stack(
            [K[:, fit.rows] @ fit.coef[l] + fit.intercept[l] for fit in chosen.fits]
        )
    labels = task.tests.labels(fold, decision)
    score = np.nan
    if not tuning.scorer.labels_only:
        sigmoids = _sigmoids(searched.tuning, tuned)
        score = task.tests.score(fold, labels, decision, sigmoids)
    grid = searched.tuning.grid
    return Outer(
        C=float(tuning.grid.Cs[l]) if tuning.grid.scale_with_fold else float(grid.Cs[l]),
        gamma=np.nan if chosen.gamma is None else chosen.gamma,
        inner_score=float(tuned.score[tuned.kernel, l]),
        labels=labels,
        decision=decision,
        score=score,
        certificate=tuned.certificate,
        stats={
            name: sum(curve.stats.get(name, 0) for curve in tuned.curves)
            for name in tuned.curves[0].stats
        },
        grid=(grid.Cs, tuned.gammas),
    )


def _sigmoids(inner: Tuning, tuned: Tuned) -> list[Sigmoid]:
    """What makes probabilities of decision values, from those of the inner folds."""
    values, rows = tuned.chosen.decision, inner.folds.pair_rows
    assert values is not None
    k, weight = len(inner.classes), inner.sample_weight[rows]
    return fit_sigmoids(values[tuned.point], inner.codes[rows], k, weight)
