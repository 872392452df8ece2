"""``SVCCV(approx=...)``: the tuned model in m dimensions."""

from __future__ import annotations

import os
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..crossval.scoring import fit_sigmoids
from ..crossval.tuning import Store, choose
from ..exceptions import InputError, Interrupted, UnsupportedError
from ..judge.certificate import Certificate
from ..lowrank.options import Options
from ..lowrank.rows.kept import KeptRows
from ..lowrank.rows.parquet import ParquetRows
from ..lowrank.rows.sources import RowSource
from ..report.overview import Overview, beside
from ..runtime.progress import Progress, job
from ..types import FloatArray
from .lowrank_curve import ApproxCurve, Rows, curve, left_out_values

if TYPE_CHECKING:
    from .svc_cv import SVCCV, Keep

__all__ = ["decision_values", "fit_approximately", "values_of_file"]


CHUNK_ROWS = Options().chunk_rows


def fit_approximately(
    model: SVCCV, X: Any, y: Any, sample_weight: Any, groups: Any, keep: Keep
) -> FloatArray | None:
    """Cross-validate every gamma with an approximate kernel and keep the best point.

    Returns the left-out values at that point, if ``keep`` asks for them.
    """
    start = perf_counter()
    gammas = _gammas(model)
    rows = Rows.of(model, X, y, sample_weight, groups)
    _check(model, rows)
    _keep_names(model, X, rows.source)
    wants_values = model.probability or keep.values
    curves: list[ApproxCurve] = []
    with job(bool(model.verbose), len(gammas) + wants_values) as progress:
        try:
            for number, gamma in enumerate(gammas):
                curves.append(_kept_curve(model, rows, gamma, number, progress, keep.store))
        except KeyboardInterrupt as stop:
            if not curves:
                raise Interrupted("interrupted before the first gamma was done") from stop
            _keep(model, rows, curves, model.probability, False, start)
            raise Interrupted(
                f"interrupted with {len(curves)} of {len(gammas)} gammas done; the estimator is "
                "fitted to the best of them, and is the `partial` of this exception",
                model,
            ) from stop
        return _keep(model, rows, curves, wants_values, progress, start)


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
            f"SVCCV(approx={model.approx!r}) separates two classes, y has {len(classes)}; wrap it "
            "in sklearn.multiclass.OneVsOneClassifier"
        )
    if len(classes) == 1:
        among = "" if rows.keep is None else ", among the rows with positive weight"
        raise InputError(
            f"y has one class only, {classes[0]!r}{among}; a classifier needs rows of two classes"
        )


def _gammas(model: SVCCV) -> list[Any]:
    gammas = model.gamma if isinstance(model.gamma, (list, tuple, np.ndarray)) else [model.gamma]
    if len(gammas) == 0:
        raise InputError("gamma is an empty list; give a number, a rule or a list of these")
    if len(gammas) > 1 and model.kernel in ("linear", "precomputed"):
        raise InputError(f"kernel={model.kernel!r} has no gamma, but gamma is a list")
    return list(gammas)


def _kept_curve(
    model: SVCCV,
    rows: Rows,
    gamma: Any,
    number: int,
    progress: bool | Progress,
    store: Store | None,
) -> ApproxCurve:
    """The curve from the store if it is there; else it is computed and put there."""
    found: ApproxCurve | None = None if store is None else store.load(number)
    if found is None:
        found = curve(model, rows, gamma, progress)
        if store is not None:
            store.save(number, found)
    return found


def _keep(
    model: SVCCV,
    rows: Rows,
    curves: list[ApproxCurve],
    wants_values: bool,
    progress: bool | Progress,
    start: float,
) -> FloatArray | None:
    """The fitted attributes; ``weights_`` and ``feature_map_`` instead of support vectors."""
    parts = [one.overview for one in curves]
    score = 1.0 - np.concatenate([part.error for part in parts])
    gammas = np.concatenate([part.gammas for part in parts])
    g, _ = choose(score, np.array([one.short for one in curves]), parts[0].Cs, gammas)
    chosen, shown = curves[g], beside(parts, g)
    model.classes_ = shown.classes
    model.gamma_, model.n_features_in_ = chosen.gamma, chosen.feature_map.n_features
    model.weights_, model.feature_map_ = chosen.weights, chosen.feature_map
    model.intercept_ = np.array([chosen.intercept])
    for name in ("_sigmoids", "support_", "support_vectors_", "n_support_", "dual_coef_"):
        model.__dict__.pop(name, None)  # of an earlier fit
    values = None
    if wants_values:
        shown, values = _with_values(model, rows, chosen, shown, progress)
    _keep_results(model, curves, shown)
    model._shown = replace(shown, timings={"total": perf_counter() - start})
    return values


def _keep_names(model: SVCCV, X: Any, source: RowSource) -> None:
    """Names of the columns of a file, as scikit-learn keeps those of a frame."""
    if isinstance(X, np.ndarray) or sparse.issparse(X):
        return  # scikit-learn has seen to it
    model.__dict__.pop("feature_names_in_", None)
    if isinstance(source, (ParquetRows, KeptRows)) and source.names is not None:
        model.feature_names_in_ = np.array(source.names, dtype=object)


def _with_values(
    model: SVCCV, rows: Rows, chosen: ApproxCurve, shown: Overview, progress: bool | Progress
) -> tuple[Overview, FloatArray]:
    """Left-out values at the chosen point, and the sigmoid that makes probabilities of them."""
    values, weight = left_out_values(model, rows, chosen, progress)
    if model.probability:
        model._sigmoids = fit_sigmoids(values[:, None], shown.left_out.truth, 2, weight)
    return replace(shown, left_out=replace(shown.left_out, decision=values)), values[:, None]


def _keep_results(model: SVCCV, curves: list[ApproxCurve], shown: Overview) -> None:
    G, L = shown.error.shape
    Cs, gammas = np.tile(shown.Cs, G), np.repeat(shown.gammas, L)
    error, se = shown.error.ravel(), shown.se.ravel()
    has_gamma = model.gamma_ is not None
    pairs = zip(Cs.tolist(), gammas.tolist(), strict=True)
    ranked = np.round(error, 12)
    model.cv_results_ = {
        "params": [{"C": C, "gamma": g} if has_gamma else {"C": C} for C, g in pairs],
        "param_C": Cs,
        "param_gamma": gammas,
        "lambda": np.tile(shown.lambdas, G),
        "mean_test_score": 1.0 - error,
        "se_test_score": se,
        "rank_test_score": 1 + (ranked[:, None] > ranked).sum(axis=1).astype(np.int32),
        "error": error,
        "se": se,
        "n_errors": shown.n_errors.ravel(),
        "at_bound": shown.at_bound.ravel(),
        "kkt": shown.kkt.ravel(),
        "gap": shown.gap.ravel(),
    }
    if model.store_cv_results:
        model.cv_results_["decision"] = np.concatenate([one.decision for one in curves])
    unresolved = [(g * L + l, f) for g, c in enumerate(curves) for l, f in c.certificate.unresolved]
    model.certificate_ = Certificate(
        shown.kkt.ravel(), shown.gap.ravel(), shown.exact, unresolved, model.tol
    )
    g, l = shown.chosen
    model.best_index_ = g * L + l
    model.best_score_ = float(1.0 - shown.error[g, l])
    model.C_, model.lambda_ = float(shown.Cs[l]), float(shown.lambdas[l])


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
