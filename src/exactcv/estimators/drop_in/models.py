"""What an estimator asks for: the SVC, the steps before it, and what changes with the fold.

What may be read at all is said in ``takeover.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, SVR
from sklearn.utils.class_weight import compute_class_weight

from ...problem.kernels import Kernel
from ...types import FloatArray
from .takeover import OURS, active_steps, row_wise, why_not_estimator

__all__ = ["Candidate", "Foreign", "KernelSpec", "Setting", "read_candidates"]

SIMPLE = (str, bool, int, float, type(None))


@dataclass(frozen=True)
class KernelSpec:
    """A kernel and those of its parameters that it uses; equal if the matrices are equal."""

    name: Any
    gamma: Any = None
    degree: int = 3
    coef0: float = 0.0

    @classmethod
    def of(cls, svc: SVC | SVR) -> KernelSpec:
        name = svc.kernel
        if name == "rbf":
            return cls(name, svc.gamma)
        if name == "sigmoid":
            return cls(name, svc.gamma, coef0=float(svc.coef0))
        if name == "poly":
            return cls(name, svc.gamma, int(svc.degree), float(svc.coef0))
        return cls(name)  # linear, precomputed, callable

    @property
    def by_fold(self) -> bool:
        return bool(self.gamma == "scale")

    def on(self, X: Any) -> Kernel:
        """The kernel for the rows X, with gamma as a number."""
        gamma = 1.0 if self.gamma is None else self.gamma
        if gamma == "auto":
            gamma = 1.0 / X.shape[1]
        elif gamma == "scale":
            variance = float(X.var())
            gamma = 1.0 / (X.shape[1] * variance) if variance != 0 else 1.0
        return Kernel(self.name, float(gamma), self.degree, self.coef0)


@dataclass(frozen=True)
class Setting:
    """One setting of the parameters, and its place among them."""

    position: int
    params: Mapping[str, Any] | None


@dataclass(frozen=True)
class Foreign(Setting):
    """One that scikit-learn must fit; the reason may be left to it as well (see `takeover`)."""

    reason: str


@dataclass(frozen=True)
class Candidate(Setting):
    """One that we may take over: an unfitted SVC or SVR, or a pipeline that ends in one.

    ``key`` says which steps stand before the SVC: candidates with equal keys share them.
    """

    estimator: Any
    svc: SVC | SVR
    prefix: str  # of the SVC's own fit parameters
    key: tuple[Any, ...]

    @cached_property
    def before(self) -> list[tuple[str, Any]]:
        """The steps before the SVC that do something."""
        return active_steps(self.estimator) if self.prefix else []

    @cached_property
    def kernel(self) -> KernelSpec:
        return KernelSpec.of(self.svc)

    @property
    def pairwise(self) -> bool:
        """Is X the kernel matrix?"""
        return self.svc.kernel == "precomputed"

    @property
    def numeric(self) -> bool:
        """Is it of numbers?"""
        return type(self.svc) is SVR

    def weighs_as(self) -> Any:
        """Equal for candidates whose classes have the same weights, or with the same epsilon."""
        if self.numeric:
            return "epsilon", float(self.svc.epsilon)
        weight = self.svc.class_weight
        return tuple(sorted(map(repr, weight.items()))) if isinstance(weight, dict) else weight

    def changing(self, steps_get_params: bool) -> list[tuple[str, str]]:
        """The settings that make the problem differ from fold to fold, and what to do instead."""
        found = []
        learning = [name for name, step in self.before if not row_wise(step)]
        if learning or steps_get_params:
            found.append((_steps_in_words(learning), _ADVICE["steps"]))
        if self.kernel.by_fold:
            found.append(("gamma='scale'", _ADVICE["gamma"]))
        if not self.numeric and self.svc.class_weight == "balanced":
            found.append(("class_weight='balanced'", _ADVICE["class_weight"]))
        return found

    def class_weights(self, y: NDArray[Any]) -> dict[Any, float]:
        """The weight of each class, as SVC works it out from the training labels."""
        classes = np.unique(y)
        weights = compute_class_weight(self.svc.class_weight, classes=classes, y=y)
        return dict(zip(classes.tolist(), weights.tolist(), strict=True))


_ADVICE = {
    "steps": "transform X once before the search to share one kernel matrix; the steps then learn "
    "from the left-out rows too, so the estimate is less honest (much less if they use y)",
    "gamma": "a number shares one kernel matrix, for example gamma=1 / (X.shape[1] * X.var())",
    "class_weight": "a dict of fixed weights shares one problem between the folds",
}


def read_candidates(
    estimator: Any, grid: Iterable[Mapping[str, Any] | None], X: Any
) -> list[Candidate | Foreign]:
    """An unfitted copy of the estimator for each setting of the parameters that is ours.

    Examples
    --------
    >>> [c.svc.C for c in read_candidates(SVC(gamma=0.5), [{"C": 1.0}, {"C": 2.0}], np.eye(3))]
    [1.0, 2.0]
    """
    reader = _Reader(estimator, X)
    return [reader.read(k, params) for k, params in enumerate(grid)]


class _Reader:
    """Reads settings of one estimator.

    scikit-learn copies and checks an SVC in 0.15 ms, which is 2 percent of a search of small data:
    where all parameters are numbers or names, a copy is made of these, and each value is checked
    once.
    """

    def __init__(self, estimator: Any, X: Any):
        self.estimator, self.X = estimator, X
        self.own: dict[str, Any] | None = None
        self.checked: set[Any] = set()
        if type(estimator) in OURS:
            own = estimator.get_params(deep=False)
            # It may carry more, such as requests for metadata, which a copy must share.
            if _all_simple(own) and vars(estimator).keys() == vars(type(estimator)(**own)).keys():
                self.own = own

    def read(self, position: int, params: Mapping[str, Any] | None) -> Candidate | Foreign:
        given = dict(params or {})
        if self.own is None or not (given.keys() <= self.own.keys() and _all_simple(given)):
            copy = clone(self.estimator)
            if given:
                copy.set_params(**clone(given, safe=False))
            reason = why_not_estimator(copy, self.X)
        else:
            values = self.own | given
            copy = type(self.estimator)(**values)
            pairs = {(name, type(value), value) for name, value in values.items()}
            reason = why_not_estimator(copy, self.X, checked=pairs <= self.checked)
            if reason != "":  # or some value may be one that it may not have
                self.checked |= pairs
        if reason is not None:
            return Foreign(position, params, reason)
        return _candidate(position, copy, params)


def _all_simple(params: Mapping[str, Any]) -> bool:
    return all(isinstance(value, SIMPLE) for value in params.values())


def _candidate(position: int, copy: Any, params: Mapping[str, Any] | None) -> Candidate:
    svc, prefix = copy, ""
    if isinstance(copy, Pipeline):
        name, svc = copy.steps[-1]
        prefix = f"{name}__"
    others = {k: v for k, v in (params or {}).items() if not (k.startswith(prefix) and prefix)}
    key = tuple(sorted((k, _identity(v)) for k, v in others.items())) if prefix else ()
    return Candidate(position, params, copy, svc, prefix, key)


def _identity(value: Any) -> Any:
    """Something that is equal for the same value; objects of a grid are the same objects."""
    simple = isinstance(value, SIMPLE)
    return (type(value).__name__, str(value) if simple else str(id(value)))


def _steps_in_words(names: list[str]) -> str:
    if not names:
        return "fit parameters of the pipeline's steps"
    shown = ", ".join(repr(name) for name in names)
    return f"the pipeline's step{'s' if len(names) > 1 else ''} {shown}, fitted in each fold"


def row_weights(
    class_weights: Mapping[Any, float], y: NDArray[Any], sample_weight: FloatArray | None
) -> FloatArray:
    """C_i / C of each row; LIBSVM leaves out rows whose weight is not positive."""
    weight: FloatArray = np.array([class_weights.get(label, 0.0) for label in y.tolist()])
    return weight if sample_weight is None else weight * np.maximum(sample_weight, 0.0)
