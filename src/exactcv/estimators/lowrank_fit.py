"""``SVCCV(approx=...)``: the tuned model in m dimensions."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..crossval.corrected import Corrected, Points, correct
from ..crossval.overviews import QUICK, shown_correction
from ..crossval.scoring import fit_sigmoids, read_scoring, warn_if_flat
from ..crossval.weighted_scores import Tests
from ..exceptions import InputError, Interrupted, UnsupportedError
from ..judge.certificate import Certificate
from ..lowrank.options import Options
from ..lowrank.rows.kept import KeptRows
from ..lowrank.rows.parquet import ParquetRows
from ..lowrank.rows.sources import RowSource
from ..report.overview import Overview, beside
from ..runtime.progress import Progress, job
from ..runtime.threads import SingleThreadedBlas
from ..types import FloatArray
from .cv_table import cv_table
from .lowrank_curve import ApproxCurve, Rows, left_out_values
from .lowrank_search import Search

if TYPE_CHECKING:
    from .svc_cv import SVCCV, Keep

__all__ = ["decision_values", "fit_approximately", "values_of_file"]


CHUNK_ROWS = Options().chunk_rows


@dataclass(frozen=True)
class Fitted:
    """What a fit leaves.

    attributes : of the estimator; ``weights_`` and ``feature_map_`` instead of support vectors.
    values : left-out values at the chosen point, (T, 1), if they were wanted.
    stopped : how much was done when the user stopped it, in words; None if all was.
    """

    attributes: dict[str, Any]
    values: FloatArray | None
    stopped: str | None = None


def fit_approximately(
    model: SVCCV, X: Any, y: Any, sample_weight: Any, groups: Any, keep: Keep
) -> Fitted:
    """Cross-validate every gamma with an approximate kernel; the model at the best point."""
    start = perf_counter()
    kernels = model._kernels()
    rows = Rows.of(model, X, y, sample_weight, groups)
    _check(model, rows)
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


def _check(model: SVCCV, rows: Rows) -> None:
    """What an approximate kernel does not go with is refused, with what to do instead."""
    refused = {
        f"scoring={model.scoring!r}": model.scoring not in (None, "accuracy"),
        f"method={model.method!r}": model.method != "exact",
        f"loss={model.loss!r}": model.loss != "hinge",
    }
    for what, given in refused.items():
        if given:
            raise UnsupportedError(
                f"SVCCV(approx={model.approx!r}) does not go with {what}; leave it out, or use "
                "approx=None"
            )
    classes = np.unique(rows.y)
    if len(classes) > 2:
        raise UnsupportedError(
            "Only binary classification is supported. "  # scikit-learn's words
            f"SVCCV(approx={model.approx!r}) separates two classes, y has {len(classes)}; wrap it "
            "in sklearn.multiclass.OneVsOneClassifier"
        )
    if len(classes) == 1:
        among = "" if rows.keep is None else ", among the rows with positive weight"
        raise InputError(
            f"y has one class only, {classes[0]!r}{among}; a classifier needs rows of two classes"
        )


def _best(
    model: SVCCV,
    rows: Rows,
    search: Search,
    wants_values: bool,
    progress: bool | Progress,
) -> tuple[dict[str, Any], FloatArray | None]:
    """The attributes of the model at the best point, and its left-out values."""
    (g, _), curves = search.best(), search.curves
    chosen = curves[g] = search.chosen(g)
    shown = replace(beside([one.overview for one in curves], g), grown=search.grown_text())
    attributes: dict[str, Any] = {
        "classes_": shown.classes,
        "gamma_": chosen.gamma,
        "n_features_in_": chosen.feature_map.n_features,
        "weights_": chosen.weights,
        "feature_map_": chosen.feature_map,
        "intercept_": np.array([chosen.intercept]),
    }
    values = None
    if wants_values:
        flat, weight = left_out_values(model, rows, chosen, progress)
        values = flat[:, None]
        shown = replace(shown, left_out=replace(shown.left_out, decision=flat))
        if model.probability:
            truth = shown.left_out.truth
            attributes["_sigmoids"] = fit_sigmoids(values, truth, 2, weight)
            warn_if_flat(attributes["_sigmoids"], shown.classes)
    corrected = _corrected(model, rows, curves, shown)
    if corrected is not None:
        attributes["_correction"] = corrected
        shown = replace(shown, corrected=shown_correction(corrected, True, shown.error.size))
    attributes["_shown"] = shown
    return attributes | _results(model, curves, shown), values


def _corrected(
    model: SVCCV, rows: Rows, curves: list[ApproxCurve], shown: Overview
) -> Corrected | None:
    """The score after tuning; None of so many tests that the bootstrap would take long."""
    left_out, n_tests = shown.left_out, shown.n_tested
    if shown.error.size * n_tests > QUICK:
        return None
    wrong = np.unpackbits(np.concatenate([one.wrong for one in curves]), axis=1, count=n_tests)
    truth, weight = left_out.truth, np.ones(n_tests)
    if rows.weight is not None:
        kept = np.arange(rows.n) if rows.keep is None else rows.keep
        weight = rows.weight[np.searchsorted(kept, left_out.row)]
    tests = Tests(
        classes=shown.classes,
        unit=np.unique(left_out.row, return_inverse=True)[1],
        codes=truth,
        labels=np.where(wrong, 1 - truth, truth).astype(np.int8),
        decision=None,
        weight=weight,
        shown=left_out.row[:, None],
        arguments={},
    )
    short = np.concatenate([one.certificate.short for one in curves])
    allowance = float(shown.se[shown.best]) if model.select == "1se" else None
    points = Points(shown.Cs, shown.gammas, short, allowance)
    apparent = 1.0 - float(shown.error[shown.chosen])
    return correct(tests, points, read_scoring(None), apparent=apparent, random_state=0)


def _names(X: Any, source: RowSource) -> dict[str, Any]:
    """Names of the columns of a file, as scikit-learn keeps those of a frame."""
    if isinstance(X, np.ndarray) or sparse.issparse(X):
        return {}  # scikit-learn has seen to it
    if isinstance(source, (ParquetRows, KeptRows)) and source.names is not None:
        return {"feature_names_in_": np.array(source.names, dtype=object)}
    return {}


def _results(model: SVCCV, curves: list[ApproxCurve], shown: Overview) -> dict[str, Any]:
    """``cv_results_``, the certificate and the chosen point."""
    L = len(shown.Cs)
    columns = ("error", "se", "n_errors", "at_bound", "kkt", "gap")
    results = cv_table(
        shown.Cs,
        shown.lambdas,
        shown.gammas,
        1.0 - shown.error,
        shown.se,
        **{name: getattr(shown, name).ravel() for name in columns},
    )
    if model.store_cv_results:
        results["decision"] = np.concatenate([one.decision for one in curves])
    g, l = shown.chosen
    return {
        "cv_results_": results,
        "certificate_": Certificate.joined([one.certificate for one in curves]),
        "best_index_": g * L + l,
        "best_score_": float(1.0 - shown.error[g, l]),
        "C_": float(shown.Cs[l]),
        "lambda_": float(shown.lambdas[l]),
    }


def decision_values(model: SVCCV, X: Any) -> FloatArray:
    """(rows, 1), chunk by chunk: features of all rows at once may be many."""
    step = max(1, (1 << 24) // len(model.weights_))
    parts = [
        model.feature_map_.transform(X[start : start + step]) @ model.weights_
        for start in range(0, X.shape[0], step)
    ]
    return np.asarray(np.concatenate(parts) + model.intercept_[0])[:, None]


def values_of_file(model: SVCCV, path: str | os.PathLike[str]) -> FloatArray:
    """(rows, 1), of a Parquet file or a folder of them.

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
