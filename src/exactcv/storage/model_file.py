"""Fitted models as files that hold numbers and text only (see ``arrays.py``).

What a file says is checked before it becomes a model: names against what is known, shapes against
each other.  Whatever is wrong raises ``FileError``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..exceptions import FileError, InputError, InputTypeError
from ..problem.inputs import check_kernel
from ..problem.kernels import KERNELS
from ..types import FilePath
from . import arrays
from .number_model import NUMBERS, regressor_in, regressor_tree, storable
from .preparation import Column, Preparation
from .quantile_model import QUANTILES, quantiles_in, quantiles_tree
from .records import (
    array_in,
    certificate_in,
    fields_tree,
    labels_in,
    labels_tree,
    need,
    need_numbers,
    need_rows,
    overview_in,
    overview_tree,
    rows_in,
    rows_tree,
)
from .table_model import TableModel

if TYPE_CHECKING:
    from ..estimators.quantile_svr_cv import QuantileSVRCV
    from ..estimators.svc_cv import SVCCV
    from ..estimators.svr_cv import SVRCV

__all__ = ["load_for_predictions", "load_model", "save_model"]

KIND = "model"
# What is told of the rows; it grows with them.
TOLD = "overview"
# Of the format: with support vectors, and with features that stand in for the kernel.
SUPPORT_VECTORS, FEATURES = 1, 2
VERSIONS = (SUPPORT_VECTORS, FEATURES, NUMBERS, QUANTILES)
ARRAYS = ("support_", "n_support_", "dual_coef_", "intercept_")
SCALARS = ("C_", "lambda_", "gamma_", "best_score_", "best_index_", "n_features_in_")


def save_model(model: SVCCV | SVRCV | QuantileSVRCV | TableModel, path: FilePath) -> Path:
    """Write a fitted ``SVCCV``, ``SVRCV`` or ``QuantileSVRCV`` to a file, whole or not at all.

    Parameters
    ----------
    model : fitted SVCCV, SVRCV or QuantileSVRCV, or what ``load_model`` gave
    path : path of the file; it is replaced if it exists

    Notes
    -----
    Kernels that are functions cannot be saved.  Parameters that are objects (splitters, scorers, a
    dict of class weights) are left out: the loaded model has their defaults, and predicts the same.
    Models of numbers take their left-out models along, for ``predict_interval``: those without each
    row, or above 2,000 rows (with q quantiles 2,000 over the root of q) those of ten folds.

    Examples
    --------
    >>> import exactcv, tempfile, pathlib
    >>> X, y = exactcv.datasets.make_mixture(40, 4, random_state=0)
    >>> model = exactcv.SVCCV(Cs=[0.1, 1.0]).fit(X, y)
    >>> path = exactcv.save_model(model, pathlib.Path(tempfile.mkdtemp()) / "model.exactcv")
    >>> again = exactcv.load_model(path)
    >>> bool((again.decision_function(X) == model.decision_function(X)).all()), again.C_ == model.C_
    (True, True)
    """
    from ..estimators.quantile_svr_cv import QuantileSVRCV
    from ..estimators.svc_cv import SVCCV
    from ..estimators.svr_cv import SVRCV

    preparation = None
    if isinstance(model, TableModel):
        model, preparation = model.estimator, model.preparation
    if not isinstance(model, (SVCCV, SVRCV, QuantileSVRCV)):
        raise InputTypeError(
            f"only SVCCV, SVRCV and QuantileSVRCV models can be saved, not a {type(model).__name__}"
        )
    if not (hasattr(model, "support_") or hasattr(model, "weights_")):
        raise InputError("the model is not fitted; call fit before save_model")
    if callable(model.kernel):
        raise InputError("the kernel is a function, which a file of numbers cannot hold")
    target = Path(path)
    if isinstance(model, QuantileSVRCV):
        tree = quantiles_tree(model)
    else:
        tree = regressor_tree(model) if isinstance(model, SVRCV) else _estimator_tree(model)
    tree["preparation"] = None if preparation is None else _preparation_tree(preparation)
    arrays.write(target, KIND, tree)
    return target


def load_model(path: FilePath) -> SVCCV | SVRCV | QuantileSVRCV | TableModel:
    """Read a model file.

    Parameters
    ----------
    path : path of the file, or of the folder that ``exactcv tune --out`` wrote

    Returns
    -------
    SVCCV, SVRCV, QuantileSVRCV or TableModel
        What was saved: a ``TableModel``, which predicts for tables and files, if it came from
        ``exactcv tune``.

    Raises
    ------
    FileError
        If the file is damaged, incomplete, or no model file.  Nothing in a file is ever executed.
    """
    return _loaded(path, ())


def load_for_predictions(path: FilePath) -> SVCCV | SVRCV | QuantileSVRCV | TableModel:
    """The same without what is only told of the rows that it was trained on."""
    return _loaded(path, (TOLD,))


def _loaded(path: FilePath, without: tuple[str, ...]) -> Any:
    source = Path(path)
    if source.is_dir():
        source = source / "model.exactcv"
    tree = arrays.read(source, KIND, without)
    try:
        if tree["version"] not in VERSIONS:
            raise FileError(f"version {tree['version']!r} of the format is not known")
        readers: dict[int, Any] = {NUMBERS: regressor_in, QUANTILES: quantiles_in}
        model: Any = readers.get(tree["version"], _estimator)(tree)
        if TOLD not in without:
            model._shown = overview_in(tree[TOLD])
        found = tree["preparation"]
        if found is None:
            return model
        return TableModel(model, _preparation(found, model.n_features_in_))
    except FileError as error:
        raise FileError(f"{str(source)!r}: {error}") from error
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        what = f"{type(error).__name__}: {error}"
        raise FileError(f"{str(source)!r} holds no usable model ({what})") from error


# ---- the estimator -------------------------------------------------------------------------------


def _estimator_tree(model: SVCCV) -> dict[str, Any]:
    params = {name: value for name, value in model.get_params().items() if storable(name, value)}
    results = {k: v for k, v in model.cv_results_.items() if k != "params"}
    names = getattr(model, "feature_names_in_", None)
    sigmoids = getattr(model, "_sigmoids", None)
    own = _features_tree(model) if hasattr(model, "weights_") else _support_tree(model)
    return own | {
        "params": params,
        "classes": labels_tree(model.classes_),
        "scalars": {name: getattr(model, name) for name in SCALARS},
        "feature_names": None if names is None else [str(name) for name in names],
        "sigmoids": None if sigmoids is None else np.array([[s.slope, s.offset] for s in sigmoids]),
        "cv_results": results,
        "certificate": fields_tree(model.certificate_),
        "overview": overview_tree(model._overview()),
    }


def _support_tree(model: SVCCV) -> dict[str, Any]:
    return {
        "version": SUPPORT_VECTORS,
        "support_vectors": rows_tree(model.support_vectors_),
        "arrays": {name: getattr(model, name) for name in ARRAYS},
    }


def _features_tree(model: SVCCV) -> dict[str, Any]:
    from .feature_maps import feature_map_tree

    return {
        "version": FEATURES,
        "feature_map": feature_map_tree(model.feature_map_),
        "weights": model.weights_,
        "intercept": model.intercept_,
    }


def _estimator(tree: dict[str, Any]) -> SVCCV:
    from ..crossval.calibration import Sigmoid
    from ..estimators.svc_cv import SVCCV

    model = SVCCV(**tree["params"])
    model.classes_ = labels_in(tree["classes"])
    for name in SCALARS:
        setattr(model, name, tree["scalars"][name])
    if tree["feature_names"] is not None:
        model.feature_names_in_ = np.array([str(s) for s in tree["feature_names"]], dtype=object)
    if tree["sigmoids"] is not None:
        model._sigmoids = [Sigmoid(float(a), float(b)) for a, b in tree["sigmoids"]]
    _check_model(model)
    (_read_features if tree["version"] == FEATURES else _read_support)(model, tree)
    model.certificate_ = certificate_in(tree["certificate"])
    model.cv_results_ = _cv_results(tree["cv_results"])
    return model


def _check_model(model: SVCCV) -> None:
    """Does what all models have fit together?"""
    n_classes = len(model.classes_)
    need(model.kernel in KERNELS, f"kernel {model.kernel!r} is not known")
    check_kernel(model.kernel, model.gamma_ or 1.0, model.degree, model.coef0)
    need(n_classes >= 2, "there are fewer than two classes")
    width = model.n_features_in_
    need(type(width) is int and width > 0, "the number of features is odd")
    gamma = model.gamma_
    need(gamma is None or (type(gamma) is float and 0 < gamma < np.inf), "gamma is odd")
    names = getattr(model, "feature_names_in_", None)
    need(names is None or len(names) == width, "there are more or fewer names than features")
    sigmoids, n_pairs = getattr(model, "_sigmoids", None), n_classes * (n_classes - 1) // 2
    need(sigmoids is None or len(sigmoids) == n_pairs, "the probabilities do not fit the classes")


def _read_support(model: SVCCV, tree: dict[str, Any]) -> None:
    """Support vectors and coefficients.  A prediction must not read what is not there."""
    for name in ARRAYS:
        setattr(model, name, array_in(tree["arrays"], name))
    vectors = model.support_vectors_ = rows_in(tree["support_vectors"], "support vectors")
    n_classes, n_support = len(model.classes_), model.n_support_
    need(n_support.dtype.kind == "i" and n_support.shape == (n_classes,), "n_support_ is odd")
    need(bool((n_support >= 0).all()), "n_support_ is negative")
    n = int(n_support.sum())
    need(model.support_.dtype.kind == "i" and model.support_.shape == (n,), "support_ is odd")
    need(not n or int(model.support_.min()) >= 0, "support_ is negative")
    need_numbers(model.dual_coef_, (n_classes - 1, n), "dual_coef_")
    need_numbers(model.intercept_, (n_classes * (n_classes - 1) // 2,), "intercept_")
    width = model.n_features_in_
    if model.kernel == "precomputed":
        need(not n or int(model.support_.max()) < width, "support_ is outside the matrix")
    else:
        need_rows(vectors, (n, width), "support vectors")


def _read_features(model: SVCCV, tree: dict[str, Any]) -> None:
    """Features and weights: of two classes a vector, of more a row for each pair."""
    from .feature_maps import check_kind, feature_map_in

    model.feature_map_ = feature_map_in(tree["feature_map"], model.n_features_in_)
    check_kind(model.feature_map_, model.kernel, model.gamma_)
    model.weights_, model.intercept_ = array_in(tree, "weights"), array_in(tree, "intercept")
    n_classes, m = len(model.classes_), model.feature_map_.n_components
    n_pairs = n_classes * (n_classes - 1) // 2
    need_numbers(model.weights_, (m,) if n_pairs == 1 else (n_pairs, m), "weights_")
    need_numbers(model.intercept_, (n_pairs,), "intercept_")


def _cv_results(tree: dict[str, Any]) -> dict[str, Any]:
    found = {name: array_in(tree, name) for name in tree}
    sizes = {len(value) for value in found.values()}
    need(len(sizes) == 1 and "param_C" in found, "the results differ in length")
    Cs, gammas = found["param_C"].tolist(), found["param_gamma"].tolist()
    params = [
        {"C": C} if np.isnan(gamma) else {"C": C, "gamma": gamma}
        for C, gamma in zip(Cs, gammas, strict=True)
    ]
    return {"params": params} | found


# ---- the preparation of tables -------------------------------------------------------------------


def _preparation_tree(made: Preparation) -> dict[str, Any]:
    columns = [fields_tree(column) for column in made.columns]
    return fields_tree(made) | {"columns": columns}


def _preparation(tree: dict[str, Any], n_features: int) -> Preparation:
    columns = []
    for one in tree["columns"]:
        levels = one["levels"]
        text = levels is not None
        need(isinstance(one["name"], str), "a column has no name")
        need(isinstance(one["fill"], str if text else float), "a column has no fill value")
        if text:
            need(all(isinstance(level, str) for level in levels), "a level is not text")
        columns.append(Column(one["name"], tuple(levels) if text else None, one["fill"]))
    made = Preparation(**(tree | {"columns": tuple(columns), "others": tuple(tree["others"])}))
    width = made.width
    need(width is None or (type(width) is int and width > 0), "the width is odd")
    keep = made.keep
    need(isinstance(keep, np.ndarray) and keep.dtype == bool, "keep is odd")
    assert keep is not None
    n_raw = width if width is not None else sum(len(column.features) for column in columns)
    need(keep.shape == (n_raw,) and int(keep.sum()) == n_features, "keep has a wrong shape")
    for name in ("shift", "scale"):
        array = getattr(made, name)
        fits = array is None or (array.dtype == np.float64 and array.shape == (n_features,))
        need(fits and (array is None or bool(np.isfinite(array).all())), f"{name} is odd")
    need(made.scale is None or bool((made.scale > 0).all()), "a scale is not positive")
    need((made.shift is None) == (made.scale is None), "shift and scale differ")
    return made
