"""``SVCCV(approx=...)``: the tuned model in m dimensions.

The same without a map, ``approx=None``, where the columns of X are the features: the kernel is
linear, and its matrix does not fit.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..crossval.corrected import Corrected, Correction, Points, correct, now_or_later
from ..crossval.overviews import DRAWING, QUICK, SORTING, shown_correction
from ..crossval.scoring import (
    Scorer,
    chance_score,
    fit_sigmoids,
    probabilities,
    shaped,
    warn_if_flat,
)
from ..crossval.weighted_scores import Tests, is_quick
from ..exceptions import InputError, Interrupted, UnsupportedError
from ..judge.certificate import Certificate
from ..lowrank.features import OwnColumns
from ..lowrank.options import Options
from ..lowrank.rows.kept import KeptRows
from ..lowrank.rows.parquet import ParquetRows
from ..lowrank.rows.sources import RowSource
from ..problem import checks, inputs
from ..report.overview import LeftOutRows, Overview, beside
from ..runtime.progress import Progress, job
from ..runtime.threads import SingleThreadedBlas
from ..types import FloatArray
from .cv_table import cv_table, values_by_row
from .lowrank_curve import ApproxCurve, left_out_values, unpacked
from .lowrank_rows import Rows
from .lowrank_search import Search

if TYPE_CHECKING:
    from .svc_cv import SVCCV, Keep

__all__ = ["decision_values", "fit_approximately", "values_of_file"]


CHUNK_ROWS = Options().chunk_rows


@dataclass(frozen=True)
class Fitted:
    """What a fit leaves.

    attributes : of the estimator; ``weights_`` and ``feature_map_`` instead of support vectors.
    values : left-out values at the chosen point, (T, pairs), if they were wanted.
    stopped : how much was done when the user stopped it, in words; None if all was.
    """

    attributes: dict[str, Any]
    values: FloatArray | None
    stopped: str | None = None


def fit_approximately(
    model: SVCCV,
    X: Any,
    y: Any,
    sample_weight: Any,
    groups: Any,
    scorer: Scorer,
    keep: Keep,
) -> Fitted:
    """Cross-validate every gamma with an approximate kernel; the model at the best point."""
    start = perf_counter()
    _check(model)
    kernels = model._kernels()
    rows = Rows.of(model, X, y, sample_weight, groups, scorer)
    wants_values, verbose = model.probability or keep.values, bool(model.verbose)
    search, stopped = Search(model, rows, kernels, keep.store), None
    with SingleThreadedBlas():
        try:
            search.run(verbose)
        except KeyboardInterrupt as stop:
            if not search.curves:
                raise Interrupted("interrupted before the first gamma was done") from stop
            stopped = search.progress_text()
            wants_values, verbose = model.probability, False
        with job(verbose and wants_values, 1) as progress:
            attributes, values = _best(model, rows, search, wants_values, progress)
    attributes |= _names(X, rows.source)
    shown = attributes["_shown"]
    attributes["_shown"] = replace(shown, timings={"total": perf_counter() - start})
    return Fitted(attributes, values, stopped)


def _check(model: SVCCV) -> None:
    """What an approximate kernel does not go with is refused, with what to do instead."""
    if model.approx is None:
        return  # the columns of X are the features, where nothing speaks against it
    checks.check_choice("approx", model.approx, ("rff", "nystroem"), "or None")
    refused = {
        f"method={model.method!r}": model.method != "exact",
        f"loss={model.loss!r}": model.loss not in inputs.APPROX_LOSSES,
    }
    for what, given in refused.items():
        if given:
            raise UnsupportedError(
                f"SVCCV(approx={model.approx!r}) does not go with {what}; leave it out, or use "
                "approx=None"
            )


def _best(
    model: SVCCV,
    rows: Rows,
    search: Search,
    wants_values: bool,
    progress: bool | Progress,
) -> tuple[dict[str, Any], FloatArray | None]:
    """The attributes of the model at the best point, and its left-out values."""
    (g, _), curves, scorer, score = search.best(), search.curves, rows.scorer, search.score
    chosen = curves[g] = search.chosen(g)
    shown, several = beside([one.overview for one in curves], g), len(rows.classes) > 2
    words = [text for text in (shown.grown, search.grown_text()) if text]
    shown = replace(shown, grown="; ".join(words), level_edge=search.level_edge())
    if scorer.call is not None:
        arguments = scorer, rows.shown, rows.score_arguments
        chance = chance_score(rows.classes, rows.truth, rows.test_weight, *arguments)
        shown = replace(shown, score=score, chance=chance)
    attributes: dict[str, Any] = {
        "classes_": shown.classes,
        "gamma_": chosen.gamma,
        "n_features_in_": chosen.feature_map.n_features,
        "weights_": -chosen.weights if several else chosen.weights[0],
        "feature_map_": chosen.feature_map,
        "intercept_": -chosen.intercept if several else chosen.intercept,
    }
    values = None
    if wants_values:
        values = left_out_values(model, rows, chosen, progress)
        attributes |= _sigmoids(model, rows, values)
        shown = replace(shown, left_out=_with_values(rows, shown, values, attributes))
    correction = _correction(model, rows, curves, shown)
    if correction is not None:
        attributes["_correction"] = correction
    if isinstance(correction, Corrected):
        by_error = scorer.call is None
        corrected = shown_correction(correction, by_error, shown.error.size)
        shown = replace(shown, corrected=corrected)
    attributes["_shown"] = shown
    return attributes | _results(model, rows, curves, shown, score), values


def _sigmoids(model: SVCCV, rows: Rows, values: FloatArray) -> dict[str, Any]:
    """What makes probabilities of decision values, if they are wanted."""
    if not model.probability:
        return {}
    found = fit_sigmoids(values, rows.truth, len(rows.classes), rows.test_weight)
    warn_if_flat(found, rows.classes)
    return {"_sigmoids": found}


def _with_values(
    rows: Rows, shown: Overview, values: FloatArray, attributes: dict[str, Any]
) -> LeftOutRows:
    k, sigmoids = len(rows.classes), attributes.get("_sigmoids")
    stated = None if sigmoids is None else probabilities(values, sigmoids, k)
    return replace(shown.left_out, decision=shaped(values, k, "ovr"), probability=stated)


def _correction(
    model: SVCCV, rows: Rows, curves: list[ApproxCurve], shown: Overview
) -> Correction | None:
    """The score after tuning, or how to work it out if a scorer takes its time.

    None of so many tests that the bootstrap would take long.
    """
    k, n_tests, scorer = len(rows.classes), len(rows.truth), rows.scorer
    size = (DRAWING + shown.error.size * (1 if scorer.labels_only else SORTING)) * n_tests
    known = scorer.labels_only or all(one.decision is not None for one in curves)
    if size > QUICK or not known:
        return None
    decision = None
    if not scorer.labels_only:
        decision = np.concatenate([one.decision for one in curves if one.decision is not None])
    drawn = rows.folds.pair_rows
    if rows.groups is not None and len(np.unique(rows.groups[drawn])) > 1:
        drawn = rows.groups[drawn]
    tests = Tests(
        classes=rows.classes,
        unit=np.unique(drawn, return_inverse=True)[1].ravel(),
        codes=rows.truth,
        labels=np.concatenate([unpacked(one.labels, k, n_tests) for one in curves]),
        decision=decision,
        weight=rows.test_weight,
        shown=rows.shown,
        arguments=rows.score_arguments,
        shape=model.decision_function_shape,
    )
    short = np.concatenate([one.certificate.short for one in curves])
    se = np.array([one.score_se for one in curves])
    allowance = float(se[shown.best]) if model.select == "1se" else None
    points = Points(shown.Cs, shown.gammas, short, allowance)
    apparent = float(curves[shown.chosen[0]].score[shown.chosen[1]])
    later = partial(correct, tests, points, scorer, apparent=apparent, random_state=0)
    return now_or_later(later, is_quick(scorer, k))


def _names(X: Any, source: RowSource) -> dict[str, Any]:
    """Names of the columns of a file, as scikit-learn keeps those of a frame."""
    if isinstance(X, np.ndarray) or sparse.issparse(X):
        return {}  # scikit-learn has seen to it
    if isinstance(source, (ParquetRows, KeptRows)) and source.names is not None:
        return {"feature_names_in_": np.array(source.names, dtype=object)}
    return {}


def _results(
    model: SVCCV, rows: Rows, curves: list[ApproxCurve], shown: Overview, score: FloatArray
) -> dict[str, Any]:
    """``cv_results_``, the certificate and the chosen point."""
    columns = ("error", "se", "n_errors", "at_bound", "kkt", "gap")
    results = cv_table(
        shown.Cs,
        shown.lambdas,
        shown.gammas,
        score,
        np.array([one.score_se for one in curves]),
        **{name: getattr(shown, name).ravel() for name in columns},
    )
    if model.store_cv_results:
        values = [one.decision for one in curves if one.decision is not None]
        by_row = [values_by_row(decision, rows.tested, rows.n) for decision in values]
        results["decision"] = np.concatenate(by_row)
    g, l = shown.chosen
    return {
        "cv_results_": results,
        "certificate_": Certificate.joined([one.certificate for one in curves]),
        "best_index_": g * len(shown.Cs) + l,
        "best_score_": float(score[g, l]),
        "C_": float(shown.Cs[l]),
        "lambda_": float(shown.lambdas[l]),
    }


def decision_values(model: SVCCV, X: Any) -> FloatArray:
    """(rows, pairs), positive for the second class of each pair.

    Chunk by chunk: features of all rows at once may be many.
    """
    several = model.weights_.ndim == 2
    weights = -model.weights_.T if several else model.weights_[:, None]
    intercept = -model.intercept_ if several else model.intercept_
    if sparse.issparse(X) and isinstance(model.feature_map_, OwnColumns):
        return np.asarray(X @ weights + intercept)  # there may be more columns than in a chunk
    step = max(1, (1 << 24) // len(weights))
    parts = [
        model.feature_map_.transform(X[start : start + step]) @ weights
        for start in range(0, X.shape[0], step)
    ]
    return np.asarray(np.concatenate(parts) + intercept)


def values_of_file(model: SVCCV, path: str | os.PathLike[str]) -> FloatArray:
    """(rows, pairs), of a Parquet file or a folder of them.

    Columns are found by name if the model knows names, and then there may be others.
    """
    names = getattr(model, "feature_names_in_", None)
    known = None if names is None else [str(name) for name in names]
    source = ParquetRows(os.fspath(path), [], CHUNK_ROWS, features=known, least=1)
    if source.p != model.n_features_in_:
        raise InputError(
            f"{source.path} has {source.p} columns, but the model was fitted to "
            f"{model.n_features_in_} features without names"
        )
    chunks = range(len(source.bounds) - 1)
    return np.concatenate([decision_values(model, source.read(k)) for k in chunks])
