"""May we take this over?

The answer is scikit-learn's, or it comes from scikit-learn's own code.  So only what is known is
taken over: every part of an estimator must be of exactly one of scikit-learn's public classes (a
subclass may do anything), give the same for the same training rows, and leave its input alone.
Whatever else there is, a sampler, a class of the user's own, a class that is not written yet,
is scikit-learn's.

A reason is a clause for a warning.  It is empty where scikit-learn itself will say what is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from inspect import signature
from types import FunctionType
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import get_config
from sklearn.base import is_regressor
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, SVR
from sklearn.utils import get_tags
from sklearn.utils.multiclass import type_of_target

from ...problem.labels import beyond_range

__all__ = ["active_steps", "row_wise", "why_not_call", "why_not_estimator", "writes"]

# Transformers that map each row on its own, whatever rows they were fitted to.
ROW_WISE = (Normalizer, Binarizer, PolynomialFeatures, AdditiveChi2Sampler, HashingVectorizer)
# Transformers that keep the number of columns.
SAME_WIDTH = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, Normalizer)
# From this size on PCA draws random numbers, if it may choose.
PCA_DRAWS_ABOVE = 500
OURS = (SVC, SVR)
WRITING = {"copy", "copy_X", "copy_x"}


def why_not_call(X: Any, y: Any, parts: Mapping[str, Any], estimator: Any = None) -> str | None:
    """Why scikit-learn must do the whole call; None if we may.

    ``parts`` are the objects that take part in the call, by name; any of them may have callbacks.
    """
    if any(hasattr(part, "_skl_callbacks") for _, part in _leaves("", dict(parts))):
        return "callbacks follow scikit-learn's own fits"
    if get_config().get("array_api_dispatch"):
        return "array_api_dispatch computes with other arrays than NumPy's"
    if X is None or y is None or getattr(y, "ndim", 1) != 1:
        return ""
    try:
        if is_regressor(estimator):
            numbers = np.asarray(y)
            known = numbers.dtype.kind in "iuf" and bool(np.isfinite(numbers).all())
            known = known and not beyond_range(numbers)
        else:
            known = type_of_target(y) in ("binary", "multiclass")
    except Exception:
        return ""
    return None if known else ""


def why_not_estimator(estimator: Any, X: Any, checked: bool = False) -> str | None:
    """Why scikit-learn must fit this unfitted estimator to rows of X; None if we may.

    ``checked``: each parameter of this SVC or SVR is known to have a value that it may have.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> X = np.eye(3)
    >>> why_not_estimator(make_pipeline(StandardScaler(), SVC()), X) is None
    True
    >>> class Mine(SVC): ...
    >>> why_not_estimator(Mine(), X)
    'Mine is not sklearn.svm.SVC'
    >>> why_not_estimator(make_pipeline(Binarizer(copy=False), SVC()), X)
    "the step 'binarizer' writes into its input (copy=False)"
    """
    if type(estimator) in OURS:
        return _why_not_svc(estimator, X, checked)
    if type(estimator) is not Pipeline:
        return f"{_name(estimator)} is not {_ours_for(estimator)}"
    if not estimator.steps:
        return ""
    svc = estimator.steps[-1][1]
    if type(svc) not in OURS:
        return f"the pipeline's last step, {_name(svc)}, is not {_ours_for(svc)}"
    if getattr(estimator, "transform_input", None) is not None:
        return "transform_input sends metadata through the steps"
    steps = active_steps(estimator)
    if steps and (svc.kernel == "precomputed" or get_tags(estimator).input_tags.pairwise):
        return "the pipeline's steps work on a kernel matrix"
    for k, (name, step) in enumerate(steps):
        reason = _why_not_step(name, step) or _draws(steps, k, X)
        if reason is not None:
            return reason
    return _why_not_svc(svc, X)


def active_steps(pipeline: Pipeline) -> list[tuple[str, Any]]:
    """The steps before the last that do something."""
    return [(name, step) for name, step in pipeline.steps[:-1] if not _idle(step)]


def row_wise(step: Any) -> bool:
    """Does the step certainly map each row on its own, the same way in every fold?

    Examples
    --------
    >>> row_wise(Normalizer()), row_wise(FunctionTransformer(np.log1p)), row_wise(StandardScaler())
    (True, True, False)
    """
    if type(step) is FunctionTransformer:
        return step.func is None or (isinstance(step.func, np.ufunc) and not step.kw_args)
    return type(step) in ROW_WISE


def writes(estimator: Any) -> bool:
    """Does a part of the estimator overwrite what it is given?"""
    return any(name in WRITING and value is False for name, value in _leaves("", estimator))


# ---- one step -----------------------------------------------------------------------------------


def _why_not_step(name: str, step: Any) -> str | None:
    for key, part in _leaves("", step):
        if hasattr(part, "get_params") and not _public(part):
            return (
                f"{_name(part)}, in the step {name!r}, is none of scikit-learn's own transformers"
            )
        if key in WRITING and part is False:
            return f"the step {name!r} writes into its input ({key}=False)"
        if callable(part) and not (isinstance(part, np.ufunc) or _public(part)):
            return f"what {key}={_name(part)} of the step {name!r} does is unknown"
    return None


def _draws(steps: list[tuple[str, Any]], k: int, X: Any) -> str | None:
    """Does step k draw from NumPy's global generator?  Then no two fits are alike."""
    name, step = steps[k]
    if not any(_unseeded(key, value) for key, value in _leaves("", step)):
        return None
    if type(step) is PCA and _settled(step, [before for _, before in steps[:k]], X):
        return None
    return f"the step {name!r} may draw random numbers; random_state=0 makes its fits repeatable"


def _unseeded(key: str, value: Any) -> bool:
    if isinstance(value, FunctionType):  # a score of feature selection, say
        return "random_state" in signature(value).parameters
    return key == "random_state" and value is None


def _settled(pca: PCA, before: list[Any], X: Any) -> bool:
    """Will PCA compute all components, without random numbers?"""
    if pca.svd_solver != "auto" or not isinstance(pca.n_components, (int, np.integer)):
        return pca.svd_solver not in ("randomized", "arpack")
    shape = getattr(X, "shape", None)
    narrow = all(type(step) in SAME_WIDTH for step in before)
    return narrow and shape is not None and max(shape) <= PCA_DRAWS_ABOVE


# ---- the SVC or SVR -----------------------------------------------------------------------------


def _ours_for(thing: Any) -> str:
    """The class that would be ours."""
    regressor = hasattr(thing, "get_params") and not isinstance(thing, type) and is_regressor(thing)
    return "sklearn.svm.SVR" if regressor else "sklearn.svm.SVC"


def _why_not_svc(svc: SVC | SVR, X: Any, checked: bool = False) -> str | None:
    if not ((checked or _valid(svc)) and _goes_together(svc)):
        return ""
    if svc.max_iter != -1:
        return f"max_iter={svc.max_iter} stops scikit-learn's solver early; leave it at -1"
    if svc.kernel == "poly" and svc.degree < 1:
        return f"degree={svc.degree} makes a constant kernel"
    if callable(svc.kernel) and sparse.issparse(X):
        return "a callable kernel is handed sparse rows"
    if svc.kernel == "precomputed":
        shape: Any = getattr(X, "shape", ())
        square = len(shape) == 2 and shape[0] == shape[1]
        return None if square and not sparse.issparse(X) else ""
    return None


def _valid(svc: SVC | SVR) -> bool:
    """Will scikit-learn accept the parameters, each for itself?"""
    try:
        svc._validate_params()
    except ValueError:
        return False
    return True


def _goes_together(svc: SVC | SVR) -> bool:
    """Will it accept them together, and are they finite?"""
    numbers = [svc.C, svc.coef0, 0.0 if isinstance(svc.gamma, str) else svc.gamma]
    ties = type(svc) is SVC and svc.break_ties and svc.decision_function_shape == "ovo"
    return bool(np.isfinite(np.array(numbers, dtype=float)).all()) and not ties


# ---- what a thing is made of --------------------------------------------------------------------


def _leaves(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The value and whatever it consists of, each with the name of its parameter."""
    if isinstance(value, (list, tuple, set)):
        for part in value:
            yield from _leaves(key, part)
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield from _leaves(str(name), part)
    else:
        yield key, value
        if hasattr(value, "get_params") and not isinstance(value, type):
            yield from _leaves(key, value.get_params(deep=False))


def _public(thing: Any) -> bool:
    """Is it a class or function that scikit-learn exports under its own name, or a type of number?

    Examples
    --------
    >>> _public(StandardScaler), _public(type("StandardScaler", (StandardScaler,), {}))
    (True, False)
    """
    if not hasattr(thing, "__name__"):  # an object
        return _public(type(thing))
    home = str(getattr(thing, "__module__", ""))
    if isinstance(thing, type) and home in ("builtins", "numpy"):
        return True
    if home.split(".")[0] != "sklearn":
        return False
    modules = [sys.modules.get(".".join(home.split(".")[:depth])) for depth in (2, 3)]
    return any(getattr(module, thing.__name__, None) is thing for module in modules)


def _idle(step: Any) -> bool:
    return step is None or (isinstance(step, str) and step == "passthrough")


def _name(thing: Any) -> str:
    if isinstance(thing, type) or hasattr(thing, "__name__"):
        return str(thing.__name__)
    return type(thing).__name__
