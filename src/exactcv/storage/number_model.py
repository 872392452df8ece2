"""Fitted ``SVRCV`` models as trees of numbers and text, for ``model_file.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..problem.inputs import check_kernel
from ..problem.kernels import KERNELS
from . import arrays
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
    from ..estimators.svr_cv import SVRCV

__all__ = ["MODELS", "MOST_ROWS", "NUMBERS", "check_models", "regressor_in", "regressor_tree",
           "storable"]  # fmt: skip

NUMBERS = 3  # version of the format
MOST_ROWS = 2000  # with a model without each of them
SCALARS = ("C_", "lambda_", "gamma_", "epsilon_", "best_score_", "best_index_", "n_features_in_")
ARRAYS = ("intercept_", "left_out_")
VECTORS = ("support_", "n_support_", "dual_coef_")
MODELS = ("coef", "intercept", "row", "fold", "left_out")


def regressor_tree(model: SVRCV) -> dict[str, Any]:
    """All that predictions, intervals and reports need."""
    names = getattr(model, "feature_names_in_", None)
    features = hasattr(model, "weights_")
    kind = "rows" if len(model._kept_rows) <= MOST_ROWS and not features else "folds"
    if kind not in model._fold_models and hasattr(model, "_tuned"):
        model._left_out_models("cv+" if kind == "folds" else "jackknife+")
    kind = kind if kind in model._fold_models else next(iter(model._fold_models))
    models = model._fold_models[kind]
    own = _features_tree(model) if features else _support_tree(model)
    return own | {
        "version": NUMBERS,
        "params": {k: v for k, v in model.get_params().items() if storable(k, v)},
        "scalars": {name: getattr(model, name) for name in SCALARS},
        "arrays": {name: getattr(model, name) for name in ARRAYS},
        "feature_names": None if names is None else [str(name) for name in names],
        "cv_results": {k: v for k, v in model.cv_results_.items() if k != "params"},
        "certificate": fields_tree(model.certificate_),
        "overview": overview_tree(model._overview()),
        "kind": kind,
        "models": {name: getattr(models, name) for name in MODELS},
        "model_certificate": fields_tree(models.certificate),
        "rows": None if model._rows is None else rows_tree(model._rows),
        "kept_rows": model._kept_rows,
        "targets": model._targets,
    }


def _support_tree(model: SVRCV) -> dict[str, Any]:
    vectors = {name: getattr(model, name) for name in VECTORS}
    return {"support_vectors": rows_tree(model.support_vectors_), "support": vectors}


def _features_tree(model: SVRCV) -> dict[str, Any]:
    from .feature_maps import feature_map_tree

    return {"feature_map": feature_map_tree(model.feature_map_), "weights": model.weights_}


def regressor_in(tree: dict[str, Any]) -> SVRCV:
    """The estimator that ``regressor_tree`` wrote, checked."""
    from ..crossval.fold_models import FoldModels
    from ..estimators.svr_cv import SVRCV

    model = SVRCV(**tree["params"])
    for name in SCALARS:
        setattr(model, name, tree["scalars"][name])
    for name in ARRAYS:
        setattr(model, name, array_in(tree["arrays"], name))
    if tree["feature_names"] is not None:
        model.feature_names_in_ = np.array([str(s) for s in tree["feature_names"]], dtype=object)
    _keep_model(model, tree)
    model._rows = None if tree["rows"] is None else rows_in(tree["rows"], "rows")
    model._kept_rows, model._targets = array_in(tree, "kept_rows"), array_in(tree, "targets")
    models = {name: array_in(tree["models"], name) for name in MODELS}
    _check(model, models)
    need(tree["kind"] in ("rows", "folds"), "the kind of folds is odd")
    certificate = certificate_in(tree["model_certificate"])
    model._fold_models = {tree["kind"]: FoldModels(**models, certificate=certificate)}
    model.certificate_ = certificate_in(tree["certificate"])
    found = {name: array_in(tree["cv_results"], name) for name in tree["cv_results"]}
    sizes = {len(value) for value in found.values()}
    need(len(sizes) == 1 and "param_C" in found, "the results differ in length")
    columns = {"C": "param_C", "gamma": "param_gamma", "epsilon": "param_epsilon"}
    points = zip(*(found[key].tolist() for key in columns.values()), strict=True)
    params = [dict(zip(columns, point, strict=True)) for point in points]
    model.cv_results_ = {"params": params} | found
    return model


def _keep_model(model: SVRCV, tree: dict[str, Any]) -> None:
    """Support vectors, or features and their weights."""
    from .feature_maps import check_kind, feature_map_in

    if "feature_map" in tree:
        model.feature_map_ = feature_map_in(tree["feature_map"], model.n_features_in_)
        check_kind(model.feature_map_, model.kernel, model.gamma_)
        model.weights_ = array_in(tree, "weights")
        return
    model.support_vectors_ = rows_in(tree["support_vectors"], "support vectors")
    held = tree.get("support", tree["arrays"])  # where files of earlier versions have them
    for name in VECTORS:
        setattr(model, name, array_in(held, name))


def _check(model: SVRCV, models: dict[str, Any]) -> None:
    """Does it all fit together?  A prediction must not read what is not there."""
    need(model.kernel in KERNELS, f"kernel {model.kernel!r} is not known")
    check_kernel(model.kernel, model.gamma_ or 1.0, model.degree, model.coef0)
    width, n = model.n_features_in_, len(model._kept_rows)
    need(type(width) is int and width > 0, "the number of features is odd")
    names = getattr(model, "feature_names_in_", None)
    need(names is None or len(names) == width, "there are more or fewer names than features")
    need_numbers(model.intercept_, (1,), "intercept_")
    need_numbers(model._targets, (n,), "targets")
    need(model._kept_rows.dtype.kind == "i", "rows are odd")
    if hasattr(model, "weights_"):
        m = model.feature_map_.n_components
        need_numbers(model.weights_, (m,), "weights_")
        check_models(models, n, m)
        return
    m = len(model.support_)
    need_numbers(model.dual_coef_, (1, m), "dual_coef_")
    need(model.support_.dtype.kind == "i", "rows are odd")
    check_models(models, n, n)
    if model.kernel == "precomputed":
        both = np.concatenate([model.support_, model._kept_rows])
        need(bool((both >= 0).all() and (both < width).all()), "rows are outside the matrix")
        return
    need_rows(model.support_vectors_, (m, width), "support vectors")
    need(model._rows is not None, "the rows are missing")
    need_rows(model._rows, (n, width), "rows")


def check_models(models: dict[str, Any], n: int, m: int) -> None:
    """Do the left-out models, of m coefficients each, fit n rows?"""
    folds = len(models["intercept"])
    need_numbers(models["coef"], (folds, m), "the models of folds")
    need_numbers(models["intercept"], (folds,), "the models of folds")
    need_numbers(models["left_out"], models["row"].shape, "the left-out values")
    for name, most in (("row", n), ("fold", folds)):
        index = models[name]
        inside = index.dtype.kind == "i" and len(index) and 0 <= index.min() <= index.max() < most
        need(bool(inside) and len(index) == len(models["left_out"]), f"{name} is odd")


def storable(name: str, value: Any) -> bool:
    """Can a parameter be written as it is?"""
    if isinstance(value, np.ndarray):
        return value.dtype.str in arrays.DTYPES
    if isinstance(value, (list, tuple)):
        return name != "cv" and all(storable(name, item) for item in value)
    return value is None or isinstance(value, (bool, int, float, str, np.number))
