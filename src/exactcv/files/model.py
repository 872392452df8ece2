"""Fitted models as files that hold numbers and text only (see ``arrays.py``).

What a file says is checked before it becomes a model: names against what is known, shapes against
each other.  Whatever is wrong raises ``FileError``.
"""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..certificate import Certificate
from ..exceptions import FileError, InputError, InputTypeError
from ..inputs import check_kernel
from ..kernels import KERNELS
from ..overview import LeftOutRows, Overview
from . import arrays
from .preparation import Column, Preparation
from .table_model import TableModel

if TYPE_CHECKING:
    from ..svc_cv import SVCCV

__all__ = ["load_model", "save_model"]

KIND = "model"
VERSION = 1
ARRAYS = ("support_", "n_support_", "dual_coef_", "intercept_")
SCALARS = ("C_", "lambda_", "gamma_", "best_score_", "best_index_", "n_features_in_")


def save_model(model: SVCCV | TableModel, path: str | os.PathLike[str]) -> Path:
    """Write a fitted ``SVCCV`` to a file, whole or not at all.

    Parameters
    ----------
    model : fitted SVCCV, or what ``load_model`` gave
    path : path of the file; it is replaced if it exists

    Notes
    -----
    Kernels that are functions cannot be saved.  Parameters that are objects (splitters, scorers, a
    dict of class weights) are left out: the loaded model has their defaults, and predicts the same.

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
    from ..svc_cv import SVCCV

    preparation = None
    if isinstance(model, TableModel):
        model, preparation = model.estimator, model.preparation
    if not isinstance(model, SVCCV):
        raise InputTypeError(f"only SVCCV models can be saved, not a {type(model).__name__}")
    if not hasattr(model, "support_"):
        raise InputError("the model is not fitted; call fit before save_model")
    if callable(model.kernel):
        raise InputError("the kernel is a function, which a file of numbers cannot hold")
    target = Path(path)
    tree = {"version": VERSION} | _estimator_tree(model)
    tree["preparation"] = None if preparation is None else _preparation_tree(preparation)
    arrays.write(target, KIND, tree)
    return target


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a model file.

    Parameters
    ----------
    path : path of the file, or of the folder that ``exactcv tune --out`` wrote

    Returns
    -------
    SVCCV or TableModel
        What was saved: a ``TableModel``, which predicts for tables and files, if it came from
        ``exactcv tune``.

    Raises
    ------
    FileError
        If the file is damaged, incomplete, or no model file.  Nothing in a file is ever executed.
    """
    source = Path(path)
    if source.is_dir():
        source = source / "model.exactcv"
    tree = arrays.read(source, KIND)
    try:
        if tree["version"] != VERSION:
            raise FileError(f"version {tree['version']!r} of the format is not known")
        model = _estimator(tree)
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
    params = {name: value for name, value in model.get_params().items() if _storable(name, value)}
    vectors: Any = model.support_vectors_
    if sparse.issparse(vectors):
        vectors = sparse.csr_matrix(vectors)
        parts = {name: getattr(vectors, name) for name in ("data", "indices", "indptr")}
        vectors = parts | {"shape": list(vectors.shape)}
    results = {k: v for k, v in model.cv_results_.items() if k != "params"}
    names = getattr(model, "feature_names_in_", None)
    sigmoids = getattr(model, "_sigmoids", None)
    return {
        "params": params,
        "classes": _labels_tree(model.classes_),
        "support_vectors": vectors,
        "arrays": {name: getattr(model, name) for name in ARRAYS},
        "scalars": {name: getattr(model, name) for name in SCALARS},
        "feature_names": None if names is None else [str(name) for name in names],
        "sigmoids": None if sigmoids is None else np.array([[s.slope, s.offset] for s in sigmoids]),
        "cv_results": results,
        "certificate": _fields_tree(model.certificate_),
        "overview": _overview_tree(model._overview()),
    }


def _storable(name: str, value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.str in arrays.DTYPES
    if isinstance(value, (list, tuple)):
        return name != "cv" and all(_storable(name, item) for item in value)
    return value is None or isinstance(value, (bool, int, float, str, np.number))


def _estimator(tree: dict[str, Any]) -> SVCCV:
    from ..calibration import Sigmoid
    from ..svc_cv import SVCCV

    model = SVCCV(**tree["params"])
    model.classes_ = _labels(tree["classes"])
    for name in ARRAYS:
        setattr(model, name, _array(tree["arrays"], name))
    for name in SCALARS:
        setattr(model, name, tree["scalars"][name])
    vectors = tree["support_vectors"]
    model.support_vectors_ = _sparse(vectors) if isinstance(vectors, dict) else vectors
    if tree["feature_names"] is not None:
        model.feature_names_in_ = np.array([str(s) for s in tree["feature_names"]], dtype=object)
    if tree["sigmoids"] is not None:
        model._sigmoids = [Sigmoid(float(a), float(b)) for a, b in tree["sigmoids"]]
    _check_model(model)
    model.certificate_ = _certificate(tree["certificate"])
    model.cv_results_ = _cv_results(tree["cv_results"])
    model._shown = _overview(tree["overview"])
    return model


def _array(tree: dict[str, Any], name: str) -> NDArray[Any]:
    found = tree[name]
    _need(isinstance(found, np.ndarray), f"{name} is not an array")
    return np.asarray(found)


def _sparse(parts: dict[str, Any]) -> Any:
    rows, columns = parts["shape"]
    _need(0 <= rows < 2**31 and 0 <= columns < 2**31, "the support vectors have a strange shape")
    data = _array(parts, "data"), _array(parts, "indices"), _array(parts, "indptr")
    matrix = sparse.csr_matrix(data, shape=(rows, columns))
    matrix.check_format(full_check=True)
    return matrix


def _check_model(model: SVCCV) -> None:
    """Do the parts fit together?  A prediction must not read what is not there."""
    n_classes, n_support = len(model.classes_), model.n_support_
    n_pairs = n_classes * (n_classes - 1) // 2
    _need(model.kernel in KERNELS, f"kernel {model.kernel!r} is not known")
    check_kernel(model.kernel, model.gamma_ or 1.0, model.degree, model.coef0)
    _need(n_classes >= 2, "there are fewer than two classes")
    _need(n_support.dtype.kind == "i" and n_support.shape == (n_classes,), "n_support_ is odd")
    _need(bool((n_support >= 0).all()), "n_support_ is negative")
    n = int(n_support.sum())
    _need(model.support_.dtype.kind == "i" and model.support_.shape == (n,), "support_ is odd")
    _need(not n or int(model.support_.min()) >= 0, "support_ is negative")
    for name, shape in (("dual_coef_", (n_classes - 1, n)), ("intercept_", (n_pairs,))):
        array = getattr(model, name)
        _need(array.dtype == np.float64 and array.shape == shape, f"{name} has a wrong shape")
        _need(bool(np.isfinite(array).all()), f"{name} is not finite")
    width = model.n_features_in_
    _need(type(width) is int and width > 0, "the number of features is odd")
    vectors = model.support_vectors_
    if model.kernel == "precomputed":
        _need(not n or int(model.support_.max()) < width, "support_ is outside the matrix")
    else:
        _need(vectors.dtype == np.float64 and vectors.shape == (n, width), "support vectors")
        values = vectors.data if sparse.issparse(vectors) else vectors
        _need(bool(np.isfinite(values).all()), "the support vectors are not finite")
    gamma = model.gamma_
    _need(gamma is None or (type(gamma) is float and 0 < gamma < np.inf), "gamma is odd")
    names = getattr(model, "feature_names_in_", None)
    _need(names is None or len(names) == width, "there are more or fewer names than features")
    sigmoids = getattr(model, "_sigmoids", None)
    _need(sigmoids is None or len(sigmoids) == n_pairs, "the probabilities do not fit the classes")


def _need(condition: bool, otherwise: str) -> None:
    if not condition:
        raise FileError(f"the model makes no sense: {otherwise}")


def _cv_results(tree: dict[str, Any]) -> dict[str, Any]:
    found = {name: _array(tree, name) for name in tree}
    sizes = {len(value) for value in found.values()}
    _need(len(sizes) == 1 and "param_C" in found, "the results differ in length")
    Cs, gammas = found["param_C"].tolist(), found["param_gamma"].tolist()
    params = [
        {"C": C} if np.isnan(gamma) else {"C": C, "gamma": gamma}
        for C, gamma in zip(Cs, gammas, strict=True)
    ]
    return {"params": params} | found


def _labels_tree(labels: NDArray[Any]) -> dict[str, Any]:
    """Class labels: numbers, flags or text."""
    values = labels.tolist()
    plain = labels.dtype.kind in "iufbU" or all(isinstance(value, str) for value in values)
    if not plain:
        raise InputError(
            f"class labels of type {labels.dtype} cannot be saved; use numbers or text"
        )
    return {"dtype": labels.dtype.str, "values": values}


def _labels(tree: dict[str, Any]) -> NDArray[Any]:
    kind, values = tree["dtype"], tree["values"]
    _need(isinstance(kind, str) and isinstance(values, list), "the class labels are odd")
    dtype = np.dtype(kind)
    _need(dtype.kind in "iufbUO" and dtype.itemsize <= 4 * 2**20, "the class labels are odd")
    wanted = {"i": int, "u": int, "f": float, "b": bool}.get(dtype.kind, str)
    _need(all(type(value) is wanted for value in values), "the class labels are odd")
    if wanted is str:
        longest = max((len(value) for value in values), default=1)
        _need(dtype.kind == "O" or dtype.itemsize <= 4 * 64 * (longest + 1), "labels too wide")
    labels = np.array(values, dtype=dtype)
    _need(labels.tolist() == sorted(set(values)), "the class labels are not sorted")
    return labels


# ---- plain records -------------------------------------------------------------------------------


def _fields_tree(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in fields(record)}


def _certificate(tree: dict[str, Any]) -> Certificate:
    unresolved = [(int(l), int(fold)) for l, fold in tree.pop("unresolved")]
    return Certificate(unresolved=unresolved, **tree)


def _overview_tree(it: Overview) -> dict[str, Any]:
    """Without the timings, so that the same model gives the same file."""
    tree = _fields_tree(it) | {"classes": _labels_tree(it.classes), "timings": {}}
    return tree | {"left_out": _fields_tree(it.left_out)}


def _overview(tree: dict[str, Any]) -> Overview:
    tree = dict(tree)
    tree["left_out"] = LeftOutRows(**tree["left_out"])
    tree["classes"] = _labels(tree["classes"])
    for name in ("best", "one_se", "chosen"):
        point = tree[name]
        tree[name] = None if point is None else (int(point[0]), int(point[1]))
    return Overview(**tree)


def _preparation_tree(made: Preparation) -> dict[str, Any]:
    columns = [_fields_tree(column) for column in made.columns]
    return _fields_tree(made) | {"columns": columns}


def _preparation(tree: dict[str, Any], n_features: int) -> Preparation:
    columns = []
    for one in tree["columns"]:
        levels = one["levels"]
        text = levels is not None
        _need(isinstance(one["name"], str), "a column has no name")
        _need(isinstance(one["fill"], str if text else float), "a column has no fill value")
        if text:
            _need(all(isinstance(level, str) for level in levels), "a level is not text")
        columns.append(Column(one["name"], tuple(levels) if text else None, one["fill"]))
    made = Preparation(**(tree | {"columns": tuple(columns), "others": tuple(tree["others"])}))
    width = made.width
    _need(width is None or (type(width) is int and width > 0), "the width is odd")
    keep = made.keep
    _need(isinstance(keep, np.ndarray) and keep.dtype == bool, "keep is odd")
    assert keep is not None
    n_raw = width if width is not None else sum(len(column.features) for column in columns)
    _need(keep.shape == (n_raw,) and int(keep.sum()) == n_features, "keep has a wrong shape")
    for name in ("shift", "scale"):
        array = getattr(made, name)
        fits = array is None or (array.dtype == np.float64 and array.shape == (n_features,))
        _need(fits and (array is None or bool(np.isfinite(array).all())), f"{name} is odd")
    _need(made.scale is None or bool((made.scale > 0).all()), "a scale is not positive")
    _need((made.shift is None) == (made.scale is None), "shift and scale differ")
    return made
