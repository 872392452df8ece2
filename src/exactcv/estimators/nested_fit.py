"""Nested cross-validation of what an ``SVCCV`` is set to: reads rows, outer and inner folds."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from ..crossval.nested import InnerSplits, Nest, check_classes, check_groups, nest
from ..crossval.nested_parts import Parts
from ..crossval.nested_result import NestedResult
from ..exceptions import UnsupportedError
from ..judge.certificate import warn_if_short
from ..problem import checks, inputs
from ..problem.folds import folds_among
from ..runtime.threads import Workers
from ..runtime.user_line import user_level

if TYPE_CHECKING:
    from .svc_cv import SVCCV

__all__ = ["nested_of"]


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
    check_groups(groups, outer=outer, cv=model.cv)
    cv: Any = model.cv
    if _pairs(cv):
        model.cv = list(cv)  # read once here and once an outer fold
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


def _pairs(cv: Any) -> bool:
    return not (cv is None or isinstance(cv, (str, numbers.Integral)) or hasattr(cv, "split"))
