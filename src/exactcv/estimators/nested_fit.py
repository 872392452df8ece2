"""Nested cross-validation of what an estimator is set to: reads rows, outer and inner folds."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from ..crossval.nested import Nest, check_classes, check_groups, nest
from ..crossval.nested_loop import InnerSplits
from ..crossval.nested_numbers import NumberNest, nest_numbers
from ..crossval.nested_parts import Parts
from ..crossval.nested_result import NestedRegressionResult, NestedResult
from ..exceptions import InputError, UnsupportedError
from ..judge.certificate import warn_if_short
from ..problem import checks, inputs
from ..problem.folds import Folds, folds_among
from ..runtime.threads import Workers
from ..runtime.user_line import user_level
from .every_c_fit import wants_every_c

if TYPE_CHECKING:
    from .svc_cv import SVCCV
    from .svr_cv import SVRCV

__all__ = ["nested_of", "nested_of_numbers"]


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
    if model.approx is not None:
        raise UnsupportedError(
            "nested cross-validation needs the kernel matrix: use approx=None, or "
            "sklearn.model_selection.cross_val_score(SVCCV(approx=...), X, y, cv=...)"
        )
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
    with Workers(checks.check_n_threads(model.n_jobs)) as workers:
        result = nest(Nest(tuning, folds, inner, store), workers)
    Cs = result.chosen[:, 0]
    warn_if_short(
        result.certificate, Cs, tuning.n_solutions * len(folds), stacklevel=user_level() + 1
    )
    return result


def nested_of_numbers(
    model: SVRCV,
    X: Any,
    y: Any,
    outer: Any,
    sample_weight: Any,
    groups: Any,
    store: Parts | None = None,
) -> NestedRegressionResult:
    """The same of an estimator of numbers."""
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
    assert tuning.scorer is not None
    weight = tuning.weight if tuning.scorer.weighted else None
    task = NumberNest(tuning, folds, inner, model.scoring, shown, weight, store)
    with Workers(checks.check_n_threads(model.n_jobs)) as workers:
        result = nest_numbers(task, workers)
    solutions = len(tuning.kernels) * len(plans) * len(tuning.grid) * (len(tuning.folds) + 1)
    warn_if_short(
        result.certificate,
        result.chosen[:, 0],
        solutions * len(folds),
        stacklevel=user_level() + 1,
    )
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


def _check_splits(model: SVCCV | SVRCV, outer: Any, groups: Any) -> None:
    check_groups(groups, outer=outer, cv=model.cv)
    cv: Any = model.cv
    if _pairs(cv):
        model.cv = list(cv)  # read once here and once an outer fold


def _pairs(cv: Any) -> bool:
    return not (cv is None or isinstance(cv, (str, numbers.Integral)) or hasattr(cv, "split"))
