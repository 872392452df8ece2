"""Nested cross-validation where features take the place of a kernel matrix.

There is no matrix that outer folds could share.  So without each outer fold the estimator itself is
fitted, and the model that it chose predicts the fold: landmarks, how many features there are, gamma
by a rule, the default grid and balanced weights of classes all come from the rows outside, as in
every fit.  A fold takes the memory of a fit.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ..crossval.nested import check_classes
from ..crossval.nested_loop import InnerSplits, fold_by_fold, outside
from ..crossval.nested_parts import Outer, Parts
from ..crossval.nested_result import NestedRegressionResult, NestedResult
from ..crossval.nested_tests import ClassTests, NumberTests
from ..crossval.number_tuning import NumberTuning
from ..crossval.scoring import Scorer
from ..exceptions import InputError, NotExactWarning
from ..lowrank.rows.kept import keep_rows
from ..problem.folds import Folds
from ..runtime.threads import Workers
from ..types import FloatArray, IntArray
from .lowrank_fit import CHUNK_ROWS, decision_values
from .lowrank_rows import Rows

if TYPE_CHECKING:
    from .svc_cv import SVCCV

__all__ = ["nested_of_features", "nested_of_number_features"]


@dataclass(frozen=True)
class Afresh:
    """What is to be done.

    Attributes
    ----------
    model : SVCCV, SVRCV or QuantileSVRCV
        Its settings; of quantiles a single one.
    part : callable
        (rows of some numbers) for a fit, among the rows that count.
    y, weight, groups : (rows,) or None
        Labels or numbers, and what else a fit is given; weights are None if the user gave none.
    totals : (rows,)
        How many rows each counts for.
    inner : InnerSplits
    store : Parts or None
        Where finished folds are kept, to go on from there.
    """

    model: Any
    part: Callable[[IntArray], Any]
    y: NDArray[Any]
    weight: FloatArray | None
    groups: NDArray[Any] | None
    totals: FloatArray
    inner: InnerSplits
    store: Parts | None = None

    def nest(
        self, tests: ClassTests | NumberTests, predict: Callable[[Any, int, Outer], Outer]
    ) -> Any:
        """One outer fold after the other; ``predict`` adds what the fitted model says of it."""
        start, shows = perf_counter(), bool(self.model.verbose)
        with Workers(1) as workers:  # each fit has its own; these say which fold is at work
            return fold_by_fold(
                tests.outer,
                lambda fold: self._one(tests.outer, fold, predict),
                lambda done: tests.result(done, perf_counter() - start),
                self.store,
                shows,
                workers,
            )

    def _one(self, outer: Folds, fold: int, predict: Callable[[Any, int, Outer], Outer]) -> Outer:
        train = outside(outer, fold)
        model = self._fitted(train, fold)
        shown, C = model._overview(), float(np.ravel(model.C_)[0])
        if shown.scale_with_fold:  # lambda is what was chosen; C is that of all rows
            C *= float(self.totals[train].sum() / self.totals.sum())
        gamma = np.ravel(model.gamma_)[0]
        found = Outer(
            C=C,
            gamma=np.nan if gamma is None else float(gamma),
            inner_score=float(np.ravel(model.best_score_)[0]),
            labels=np.zeros(0, dtype=np.intp),
            decision=np.zeros((0, 1)),
            score=np.nan,
            certificate=model.certificate_,
            stats=dict(shown.settled),
            grid=(shown.Cs, np.unique(shown.gammas)),
            parameter=float(getattr(model, "epsilon_", np.nan)),
        )
        return predict(model, fold, found)

    def _fitted(self, train: IntArray, fold: int) -> Any:
        """The estimator, fitted to the rows outside an outer fold."""
        cv = self.inner.for_estimator(train, fold)
        model = clone(self.model).set_params(cv=cv, verbose=0)
        more = [None if one is None else one[train] for one in (self.weight, self.groups)]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", NotExactWarning)  # said of all folds in the end
                # Of sigmoids, which nobody sees here.
                warnings.filterwarnings("ignore", "the left-out decision values")
                return model.fit(self.part(train), self.y[train], *more)
        except InputError as error:
            raise InputError(f"among the rows outside outer fold {fold}: {error}") from error


def nested_of_features(
    model: SVCCV,
    X: Any,
    y: Any,
    outer: Any,
    sample_weight: Any,
    groups: Any,
    scorer: Scorer,
    store: Parts | None,
) -> NestedResult:
    """Of classes; X may be whatever ``SVCCV.fit`` takes."""
    rows = Rows.of(
        clone(model).set_params(cv=outer), X, y, sample_weight, groups, scorer, check=_check_outer
    )
    keep = np.arange(rows.n) if rows.keep is None else rows.keep
    tests = ClassTests(
        outer=rows.folds,
        keep=keep,
        n_rows=rows.n,
        classes=rows.classes,
        codes=rows.codes,
        sample_weight=rows.sample_weight,
        scorer=scorer,
        shape=model.decision_function_shape,
        shown=rows.shown,
        arguments=rows.score_arguments,
        select=model.select,
        method=model.method,
    )
    tests.check()
    labels = rows.classes[rows.codes]
    task = Afresh(
        model=clone(model).set_params(probability=scorer.needs_probability),
        part=lambda train: keep_rows(rows.source, train),
        y=labels,
        weight=None if sample_weight is None else rows.sample_weight,
        groups=rows.groups,
        totals=rows.sample_weight,
        inner=InnerSplits(model.cv, labels, rows.groups, model.random_state, keep, rows.n),
        store=store,
    )

    def predict(fitted: SVCCV, fold: int, found: Outer) -> Outer:
        decision = _values(fitted, rows, rows.folds.test[fold])
        labels, score = tests.labels(fold, decision), np.nan
        if not scorer.labels_only:
            sigmoids = fitted._sigmoids if fitted.probability else None
            score = tests.score(fold, labels, decision, sigmoids)
        return replace(found, decision=decision, labels=labels, score=score)

    result: NestedResult = task.nest(tests, predict)
    return result


def _check_outer(
    folds: Folds, codes: IntArray, classes: NDArray[Any], *_: FloatArray | IntArray
) -> Folds:
    check_classes(folds, codes, classes)
    return folds


def _values(model: SVCCV, rows: Rows, tests: IntArray) -> FloatArray:
    """(tests, pairs): decision values of rows of the source, some at a time."""
    order, back = np.unique(tests, return_inverse=True)
    parts = [
        decision_values(model, rows.source.take(order[start : start + CHUNK_ROWS]))
        for start in range(0, len(order), CHUNK_ROWS)
    ]
    return np.asarray(np.concatenate(parts)[back])


def nested_of_number_features(
    model: Any,
    tuning: NumberTuning,
    tests: NumberTests,
    inner: InnerSplits,
    weighted: bool,
    store: Parts | None,
) -> NestedRegressionResult:
    """Of numbers; ``tuning`` is that of all rows, whose own folds and grid are not used."""
    task = Afresh(
        model=model,
        part=lambda train: tests.shown[train],
        y=tuning.y,
        weight=tuning.weight if weighted else None,
        groups=inner.groups,
        totals=tuning.weight,
        inner=inner,
        store=store,
    )

    def predict(fitted: Any, fold: int, found: Outer) -> Outer:
        values = fitted.predict(tests.shown[tests.outer.test[fold]])
        return replace(found, decision=values[:, None])

    result: NestedRegressionResult = task.nest(tests, predict)
    return result
