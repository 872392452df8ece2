"""Fitted ``QuantileSVRCV`` models as trees of numbers and text, for ``model_file.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..problem.inputs import check_kernel
from ..problem.kernels import KERNELS
from .number_model import MODELS, MOST_ROWS, check_models, storable
from .records import (
    array_in,
    certificate_in,
    fields_tree,
    need,
    need_numbers,
    need_rows,
    overview_tree,
    rows_in,
    rows_tree,
)

if TYPE_CHECKING:
    from ..estimators.quantile_svr_cv import QuantileSVRCV

__all__ = ["QUANTILES", "quantiles_in", "quantiles_tree"]

QUANTILES = 4  # version of the format
# One entry a quantile.
ARRAYS = ("quantiles_", "C_", "gamma_", "lambda_", "best_score_", "intercept_")
FIGURES = ("best_index_", "left_out_")


def quantiles_tree(model: QuantileSVRCV) -> dict[str, Any]:
    """All that predictions, intervals and reports need."""
    names = getattr(model, "feature_names_in_", None)
    count = len(model.quantiles_)
    features = hasattr(model, "weights_")
    few = count * len(model._kept_rows) ** 2 <= MOST_ROWS**2
    kind = "rows" if few and not features else "folds"
    if not hasattr(model, "_tuned"):
        kind = next(iter(model._fold_models))
    models = [model._left_out_models("cv+" if kind == "folds" else "jackknife+", q)
              for q in range(count)]  # fmt: skip
    own = _features_tree(model) if features else _support_tree(model)
    return own | {
        "version": QUANTILES,
        "params": {k: v for k, v in model.get_params().items() if storable(k, v)},
        "single": model._single,
        "crossings": model.crossings_,
        "n_features": model.n_features_in_,
        "arrays": {name: getattr(model, name) for name in (*ARRAYS, *FIGURES)},
        "feature_names": None if names is None else [str(name) for name in names],
        "cv_results": [
            {k: v for k, v in one.items() if k != "params"} for one in model.cv_results_
        ],
        "certificate": fields_tree(model.certificate_),
        "overview": overview_tree(model._overview()),
        "kind": kind,
        "models": [{name: getattr(one, name) for name in MODELS} for one in models],
        "model_certificates": [fields_tree(one.certificate) for one in models],
        "rows": None if model._rows is None else rows_tree(model._rows),
        "kept_rows": model._kept_rows,
        "targets": model._targets,
    }


def _support_tree(model: QuantileSVRCV) -> dict[str, Any]:
    return {"support": list(model.support_), "dual_coef": list(model.dual_coef_)}


def _features_tree(model: QuantileSVRCV) -> dict[str, Any]:
    from .feature_maps import feature_map_tree

    maps = [feature_map_tree(fmap) for fmap in model.feature_map_]
    return {"feature_maps": maps, "weights": list(model.weights_)}


def quantiles_in(tree: dict[str, Any]) -> QuantileSVRCV:
    """The estimator that ``quantiles_tree`` wrote, checked."""
    from ..crossval.fold_models import FoldModels
    from ..estimators.quantile_svr_cv import QuantileSVRCV

    model = QuantileSVRCV(**tree["params"])
    for name in (*ARRAYS, *FIGURES):
        setattr(model, name, array_in(tree["arrays"], name))
    model.n_features_in_, model._single = tree["n_features"], bool(tree["single"])
    model.crossings_ = float(tree["crossings"])
    if tree["feature_names"] is not None:
        model.feature_names_in_ = np.array([str(s) for s in tree["feature_names"]], dtype=object)
    model._rows = None if tree["rows"] is None else rows_in(tree["rows"], "rows")
    model._kept_rows, model._targets = array_in(tree, "kept_rows"), array_in(tree, "targets")
    models = [{name: array_in(one, name) for name in MODELS} for one in tree["models"]]
    _check(model, len(models))
    if "feature_maps" in tree:
        _keep_features(model, tree, models)
    else:
        _keep_support(model, tree, models)
    need(tree["kind"] in ("rows", "folds"), "the kind of folds is odd")
    certificates = [certificate_in(one) for one in tree["model_certificates"]]
    pairs = zip(models, certificates, strict=True)
    held = {q: FoldModels(**one, certificate=own) for q, (one, own) in enumerate(pairs)}
    model._fold_models = {tree["kind"]: held}
    model.certificate_ = certificate_in(tree["certificate"])
    model.cv_results_ = [_table(one) for one in tree["cv_results"]]
    need(len(model.cv_results_) == len(model.quantiles_), "there are more or fewer tables")
    return model


def _keep_features(
    model: QuantileSVRCV, tree: dict[str, Any], models: list[dict[str, Any]]
) -> None:
    from .feature_maps import check_kind, feature_map_in

    model.feature_map_ = [feature_map_in(one, model.n_features_in_) for one in tree["feature_maps"]]
    model.weights_ = list(tree["weights"])
    found = len(model.feature_map_), len(model.weights_)
    need(found == (len(models), len(models)), "quantiles are missing")
    for fmap, gamma, weights, one in zip(
        model.feature_map_, model.gamma_, model.weights_, models, strict=True
    ):
        check_kind(fmap, model.kernel, None if np.isnan(gamma) else float(gamma))
        need_numbers(weights, (fmap.n_components,), "weights_")
        check_models(one, len(model._kept_rows), fmap.n_components)


def _keep_support(model: QuantileSVRCV, tree: dict[str, Any], models: list[dict[str, Any]]) -> None:
    model.support_, model.dual_coef_ = list(tree["support"]), list(tree["dual_coef"])
    found, n, width = len(model.support_), len(model._kept_rows), model.n_features_in_
    need(found == len(model.dual_coef_) == len(models), "quantiles are missing")
    for support, coef in zip(model.support_, model.dual_coef_, strict=True):
        need(isinstance(support, np.ndarray) and support.dtype.kind == "i", "support_ is odd")
        need(bool(np.isin(support, model._kept_rows).all()), "support_ is outside the rows")
        need_numbers(coef, (1, len(support)), "dual_coef_")
    for one in models:
        check_models(one, n, n)
    if model.kernel == "precomputed":
        kept = model._kept_rows
        need(bool((kept >= 0).all() and (kept < width).all()), "rows are outside the matrix")
    else:
        need(model._rows is not None, "the rows are missing")
        need_rows(model._rows, (n, width), "rows")
    model.support_vectors_ = _vectors(model)


def _vectors(model: QuantileSVRCV) -> list[Any]:
    """The rows that each quantile's model uses are among those kept."""
    if model._rows is None:
        return [np.empty((0, 0)) for _ in model.support_]
    where = np.searchsorted(model._kept_rows, np.concatenate([[0], *model.support_])[1:])
    ends = np.cumsum([len(one) for one in model.support_])[:-1]
    return [model._rows[places.astype(np.intp)] for places in np.split(where, ends)]


def _table(found: dict[str, Any]) -> dict[str, Any]:
    arrays = {name: array_in(found, name) for name in found}
    need(len({len(value) for value in arrays.values()}) == 1, "the results differ in length")
    Cs, gammas = arrays["param_C"].tolist(), arrays["param_gamma"].tolist()
    params = [
        {"C": C} if np.isnan(gamma) else {"C": C, "gamma": gamma}
        for C, gamma in zip(Cs, gammas, strict=True)
    ]
    return {"params": params} | arrays


def _check(model: QuantileSVRCV, n_models: int) -> None:
    """Does it all fit together?  A prediction must not read what is not there."""
    q, n, width = len(model.quantiles_), len(model._kept_rows), model.n_features_in_
    need(type(width) is int and width > 0, "the number of features is odd")
    need(model.kernel in KERNELS, f"kernel {model.kernel!r} is not known")
    names = getattr(model, "feature_names_in_", None)
    need(names is None or len(names) == width, "there are more or fewer names than features")
    for name in ("quantiles_", "C_", "lambda_", "best_score_", "intercept_"):
        need_numbers(getattr(model, name), (q,), name)
    taus = model.quantiles_
    need(q > 0 and bool((np.diff(taus) > 0).all() and taus[0] > 0 and taus[-1] < 1), "quantiles_")
    need(model.gamma_.shape == (q,) and model.gamma_.dtype == np.float64, "gamma_ is odd")
    for gamma in model.gamma_:
        check_kernel(model.kernel, 1.0 if np.isnan(gamma) else float(gamma), model.degree,
                     model.coef0)  # fmt: skip
    need(model.left_out_.ndim == 2 and model.left_out_.shape[1] == q, "left_out_ is odd")
    need(model._kept_rows.dtype.kind == "i" and bool((np.diff(model._kept_rows) > 0).all()), "rows")
    need_numbers(model._targets, (n,), "targets")
    need(n_models == q, "quantiles are missing")
