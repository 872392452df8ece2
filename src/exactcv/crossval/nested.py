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
from ..problem.intervals import effective_count, resampled_count, wilson
from ..runtime.progress import job
from ..runtime.threads import Workers
from ..tolerances import TIE
from ..types import FloatArray, IntArray
from .nested_loop import InnerSplits, Matrices, added, fold_by_fold, outside, settled, worst
from .nested_parts import Outer, Parts
from .nested_result import NestedResult
from .one_vs_one import most_votes, votes_of
from .scoring import LeftOut, Scorer, check_defined, fit_sigmoids, jackknife_se, shaped
from .tuning import Searched, Tuned, Tuning, count_by_weight, error_and_se
from .two_rows import TwoRows, suits

__all__ = ["Nest", "check_classes", "check_groups", "nest", "tuned_without"]


@dataclass(frozen=True)
class Nest:
    """What is to be done: a tuning of all rows (its own folds are not used), and both splits."""

    tuning: Tuning
    outer: Folds
    inner: InnerSplits
    store: Parts | None = None  # where finished parts are kept, to go on from there


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
    _check_tests(task)
    matrices = Matrices(task.tuning)
    pairs = _pairs(task, matrices)
    if pairs is None:
        found: NestedResult = fold_by_fold(
            task.outer,
            lambda fold: _one(task, fold, matrices, None, workers),
            lambda done: _gather(task, done, perf_counter() - start),
            task.store,
            tuning.show_progress,
            workers,
        )
        return found
    task = _through_pairs(task, pairs, workers)
    # An outer fold is but a look at the pairs now.  Workers that were told to stop do no more.
    with Workers(workers.n_threads) as fresh:
        done = [_one(task, fold, matrices, pairs, fresh) for fold in range(len(task.outer))]
    result = _gather(task, done, perf_counter() - start)
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


def _check_tests(task: Nest) -> None:
    """Refuse outer folds that lack a class where the scorer needs all of them."""
    tuning, outer = task.tuning, task.outer
    if not _each_fold_scored(tuning.scorer) or not hasattr(tuning.scorer.call, "_response_method"):
        return
    for fold, test in enumerate(outer.test):
        absent = np.setdiff1d(np.arange(len(tuning.classes)), tuning.codes[test])
        if len(absent):
            label = tuning.classes.tolist()[int(absent[0])]
            raise InputError(
                f"scoring={tuning.scorer.name!r} compares values within an outer fold, for models "
                f"of different folds have different scales, but outer fold {fold} tests no row of "
                f"class {label!r}: use stratified outer folds (outer=5), a scorer of labels "
                "(scoring='balanced_accuracy'), or for the AUC exactcv.leave_pair_out"
            )


def _each_fold_scored(scorer: Scorer) -> bool:
    """Is the scorer asked once an outer fold?  Labels of all folds can be put together."""
    return not scorer.labels_only


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
    labels = _labels(decision, tuning.codes[test], len(tuning.classes))
    score = np.nan
    if _each_fold_scored(tuning.scorer):
        score = _score(task, searched.tuning, tuned, test, labels, decision)
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


def _labels(decision: FloatArray, codes: IntArray, n_classes: int) -> IntArray:
    """Predicted classes; a value of zero votes against the row's own class, as in every fold."""
    first, second = np.triu_indices(n_classes, 1)
    tie = np.abs(decision) <= TIE
    against = np.where(first == codes[:, None], 1.0, np.where(second == codes[:, None], -1.0, 0.0))
    return most_votes(votes_of(np.where(tie, against, decision), n_classes))


def _score(
    task: Nest, inner: Tuning, tuned: Tuned, test: IntArray, labels: IntArray, decision: FloatArray
) -> float:
    """The score of one outer fold; probabilities are those of the inner left-out values."""
    tuning = task.tuning
    values, rows = tuned.chosen.decision, inner.folds.pair_rows
    assert values is not None
    known = values[tuned.point], inner.codes[rows], len(tuning.classes), inner.sample_weight[rows]
    fitted = LeftOut(
        tuning.classes, tuning.codes[test], labels, decision, tuning.sample_weight[test],
        tuning.shape, fit_sigmoids(*known),
    )  # fmt: skip
    arguments = {name: value[test] for name, value in tuning.score_arguments.items()}
    return fitted.score_with(tuning.scorer, tuning.shown[test], arguments)


# ---- all of them -------------------------------------------------------------------------------


def _gather(task: Nest, done: list[Outer], seconds: float) -> NestedResult:
    tuning, outer = task.tuning, task.outer.part(np.arange(len(done)))
    rows, weight = outer.pair_rows, tuning.sample_weight[outer.pair_rows]
    labels = np.concatenate([one.labels for one in done])
    decision = np.concatenate([one.decision for one in done])
    wrong = labels != tuning.codes[rows]
    error, se = (float(figure[0]) for figure in error_and_se(wrong[None], outer.offsets, weight))
    tested = tuning.sample_weight[np.unique(rows)]
    trained = np.mean([outer.n - len(out) for out in outer.left_out])
    low, high = wilson(error, resampled_count(effective_count(tested), float(trained)))
    inner_scores = np.array([one.inner_score for one in done])
    score, score_se = 1.0 - error, se
    if tuning.scorer.call is not None:
        score, score_se = _scores(tuning, outer, labels, decision, done)
    return NestedResult(
        error=error,
        se=se,
        interval=(float(low), float(high)),
        score=score,
        score_se=score_se,
        scoring=_name(tuning.scorer),
        chosen=np.array([[one.C, one.gamma] for one in done]),
        inner=inner_scores,
        optimism=float(inner_scores.mean()) - score,
        decision=shaped(decision, len(tuning.classes), tuning.shape),
        predicted=tuning.classes[labels],
        wrong=wrong,
        test_row=task.inner.keep[rows],
        test_fold=outer.pair_folds,
        n_folds=len(outer),
        n_rows=task.inner.n,
        classes=tuning.classes,
        select=tuning.select,
        method=tuning.plan.method,
        n_points=max(len(one.grid[0]) * len(one.grid[1]) for one in done),
        certificate=worst(done),
        stats=added(done),
        timings={"total": seconds},
    )


def _name(scorer: Scorer) -> str:
    return str(getattr(scorer.name, "__name__", scorer.name))


def _scores(
    tuning: Tuning, outer: Folds, labels: IntArray, decision: FloatArray, done: list[Outer]
) -> tuple[float, float]:
    """The score and its standard error: the mean over outer folds, or of all labels together."""
    if _each_fold_scored(tuning.scorer):
        found = np.array([one.score for one in done])
        se = float(found.std(ddof=1) / np.sqrt(len(found))) if len(found) > 1 else np.nan
        return float(found.mean()), se
    rows = outer.pair_rows
    everyone = LeftOut(
        tuning.classes, tuning.codes[rows], labels, decision, tuning.sample_weight[rows]
    )
    arguments = {name: value[rows] for name, value in tuning.score_arguments.items()}
    score = everyone.score_with(tuning.scorer, tuning.shown[rows], arguments)
    folds = outer.pair_folds
    return score, jackknife_se(everyone, tuning.scorer, tuning.shown[rows], arguments, folds)
