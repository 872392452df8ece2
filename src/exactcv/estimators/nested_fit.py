"""Nested cross-validation of what an estimator is set to: reads rows, outer and inner folds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sklearn.base import clone

from ..crossval.nested import Nest, check_classes, check_groups, nest
from ..crossval.nested_loop import InnerSplits
from ..crossval.nested_numbers import NumberNest, nest_numbers
from ..crossval.nested_parts import Parts
from ..crossval.nested_result import NestedRegressionResult, NestedResult
from ..crossval.nested_tests import ClassTests, NumberTests
from ..exceptions import InputError, UnsupportedError
from ..judge.certificate import warn_if_short
from ..problem import checks, inputs
from ..problem.folds import Folds, folds_among, holds_pairs
from ..runtime.threads import Workers
from ..runtime.user_line import user_level
from .every_c_fit import wants_every_c

if TYPE_CHECKING:
    from .quantile_svr_cv import QuantileSVRCV
    from .svc_cv import SVCCV
    from .svr_cv import SVRCV

__all__ = ["nested_of", "nested_of_numbers", "nested_of_quantiles"]

AnyResult = TypeVar("AnyResult", NestedResult, NestedRegressionResult)


def nested_of(
    model: SVCCV,
    X: Any,
    y: Any,
    outer: Any,
    sample_weight: Any,
    groups: Any,
    store: Parts | None = None,
) -> NestedResult:
    """Nested cross-validation of an estimator's settings; the estimator is used up.

    ``store`` keeps finished parts, so that a run that was cut short can go on.
    """
    if wants_every_c(model.Cs):
        raise UnsupportedError(
            "nested cross-validation tunes on a grid: set Cs=None, which is the default grid, or "
            "some values; or take sklearn.model_selection.cross_val_score(SVCCV(Cs='all'), X, y, "
            "cv=...)"
        )
    _check_splits(model, outer, groups)
    scorer, plan = model._check_settings()
    if scorer.pairs:
        raise UnsupportedError(
            f"scoring={scorer.name!r} compares two rows that are left out together, which an outer "
            "fold does not; use scoring='roc_auc' with stratified outer folds (outer=5)"
        )
    if model.approx is not None or model._takes_columns(X, plan):
        from .nested_afresh import nested_of_features

        result = nested_of_features(model, X, y, outer, sample_weight, groups, scorer, store)
        return _told(result, None)
    X, y = model._read_rows(X, y)
    n = X.shape[0]
    weight = inputs.read_sample_weight(sample_weight, n)
    keep = np.flatnonzero(weight > 0)
    groups = inputs.read_groups(groups, n)
    labels, classes, codes = inputs.encode_labels(y[keep], len(keep))
    among = None if groups is None else groups[keep]
    seed = model.random_state
    shown = X[keep][:, keep] if model.kernel == "precomputed" else X[keep]
    folds = folds_among(keep, n, outer, shown, labels, among, seed)
    check_classes(folds, codes, classes)
    split_with, score_with = model._route(sample_weight, groups, {}, scorer)
    tuning = model._prepare(X, y, weight, keep, scorer, plan, split_with, score_with, None)
    inner = InnerSplits(model.cv, labels, among, seed, keep, n)
    rows = folds.pair_rows
    tests = ClassTests(
        outer=folds,
        keep=keep,
        n_rows=n,
        classes=tuning.classes,
        codes=tuning.codes,
        sample_weight=tuning.sample_weight,
        scorer=scorer,
        shape=tuning.shape,
        shown=scorer.tests_of(tuning.shown, rows),
        arguments={name: value[rows] for name, value in tuning.score_arguments.items()},
        select=tuning.select,
        method=plan.method,
    )
    with Workers(checks.check_n_threads(model.n_jobs)) as workers:
        result = nest(Nest(tuning, tests, inner, store), workers)
    return _told(result, tuning.n_solutions * len(folds))


def nested_of_numbers(
    model: SVRCV | QuantileSVRCV,
    X: Any,
    y: Any,
    outer: Any,
    sample_weight: Any,
    groups: Any,
    store: Parts | None = None,
) -> NestedRegressionResult:
    """The same of an estimator of numbers; of quantiles it has one."""
    _check_splits(model, outer, groups)
    plans = model._plans()
    X, numbers = model._read_rows(X, y)
    tuning, keep = model._prepare(X, numbers, sample_weight, groups, {}, plans, model.scoring)
    n = X.shape[0]
    shown = X[keep][:, keep] if model.kernel == "precomputed" else X[keep]
    read = inputs.read_groups(groups, n)
    among = None if read is None else read[keep]
    seed = model.random_state
    folds = folds_among(keep, n, outer, shown, tuning.y, among, seed, stratify=False)
    folds = _some_training(folds, len(keep))
    inner = InnerSplits(model.cv, tuning.y, among, seed, keep, n, stratify=False)
    scorer = tuning.scorer
    tests = NumberTests(
        outer=folds,
        keep=keep,
        n_rows=n,
        y=tuning.y,
        weight=tuning.weight,
        scoring=model.scoring,
        shown=shown,
        score_weight=tuning.weight if scorer is not None and scorer.weighted else None,
        select=tuning.select,
        method=plans[0].method,
        quantile=plans[0].parameters.get("quantile"),
        n_epsilons=len(plans),
    )
    if tuning.features is not None:
        from .nested_afresh import nested_of_number_features

        weighted = sample_weight is not None
        result = nested_of_number_features(model, tuning, tests, inner, weighted, store)
        return _told(result, None)
    with Workers(checks.check_n_threads(model.n_jobs)) as workers:
        result = nest_numbers(NumberNest(tuning, tests, inner, store), workers)
    solutions = len(tuning.kernels) * len(plans) * len(tuning.grid) * (len(tuning.folds) + 1)
    return _told(result, solutions * len(folds))


def nested_of_quantiles(
    model: QuantileSVRCV,
    X: Any,
    y: Any,
    outer: Any,
    sample_weight: Any,
    groups: Any,
    store: Parts | None = None,
) -> list[NestedRegressionResult]:
    """The same of each quantile by itself, as each is tuned."""
    if holds_pairs(outer):
        outer = list(outer)  # read once a quantile
    return [
        nested_of_numbers(
            clone(model).set_params(quantiles=float(tau)),
            X, y, outer, sample_weight, groups,
            None if store is None else _OfQuantile(store, q),
        )
        for q, tau in enumerate(model._check_quantiles())
    ]  # fmt: skip


@dataclass(frozen=True)
class _OfQuantile:
    """Where the parts of one quantile are kept beside those of others."""

    store: Parts
    q: int

    def load(self, name: str) -> dict[str, Any] | None:
        return self.store.load(self._own(name))

    def save(self, name: str, tree: dict[str, Any]) -> None:
        self.store.save(self._own(name), tree)

    def _own(self, name: str) -> str:
        return f"{name}-quantile-{self.q + 1}"


def _told(result: AnyResult, n_solutions: int | None) -> AnyResult:
    """The result, after a warning if some of its solutions miss the tolerance."""
    Cs = result.chosen[:, 0]
    warn_if_short(result.certificate, Cs, n_solutions, stacklevel=user_level() + 1)
    return result


def _some_training(folds: Folds, n: int) -> Folds:
    """Refuse outer folds that leave too little to tune on."""
    left = n - np.array([len(out) for out in folds.left_out])
    if (left < 2).any():
        fold = int(np.argmax(left < 2))
        raise InputError(
            f"outer fold {fold} leaves {int(left[fold])} row(s), and tuning needs at least two; "
            "use more outer folds (outer=5)"
        )
    return folds


def _check_splits(model: SVCCV | SVRCV | QuantileSVRCV, outer: Any, groups: Any) -> None:
    check_groups(groups, outer=outer, cv=model.cv)
    cv: Any = model.cv
    if holds_pairs(cv):
        model.cv = list(cv)  # read once here and once an outer fold
