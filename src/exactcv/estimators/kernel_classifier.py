"""How ``SVCCV`` predicts, from support vectors or from features."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from ..crossval.calibration import Sigmoid
from ..crossval.one_vs_one import most_votes, votes_of
from ..crossval.scoring import probabilities, shaped
from ..lowrank.features import FeatureMap, OwnColumns
from ..report.presentation import Presented
from ..types import FilePath, FloatArray, Matrix
from .rows import read_new_rows
from .settings import dense, kernel_with
from .sv_layout import pair_decisions
from .typed import TypedClassifier, offered_if

__all__ = ["KernelClassifier"]

# Kernel values between new rows and support vectors held at a time.
PREDICT_ENTRIES = 1 << 23


class KernelClassifier(Presented, TypedClassifier, ClassifierMixin, BaseEstimator):
    """Predicts; the subclass says what was fitted, and how."""

    kernel: Any
    probability: Any
    decision_function_shape: Any
    gamma_: float | None
    support_: NDArray[np.int32]
    n_support_: NDArray[np.int32]
    dual_coef_: FloatArray
    intercept_: FloatArray
    weights_: FloatArray
    feature_map_: FeatureMap
    _sigmoids: list[Sigmoid]

    def _pair_decisions(self, X: Any) -> FloatArray:
        """(m, P), positive for the second class of each pair."""
        check_is_fitted(self)
        if isinstance(X, (str, os.PathLike)) and hasattr(self, "weights_"):
            from .lowrank_fit import values_of_file

            return values_of_file(self, X)
        X = read_new_rows(self, X)
        if hasattr(self, "weights_"):
            from .lowrank_fit import decision_values

            return decision_values(self, X)
        model = (self.dual_coef_, self.n_support_, self.intercept_)
        chunk = max(1, PREDICT_ENTRIES // max(1, len(self.support_)))
        found = [
            pair_decisions(self._kernel_with_support(X[start : start + chunk]), *model)
            for start in range(0, X.shape[0], chunk)
        ]
        return np.vstack(found)

    def _kernel_with_support(self, X: Any) -> FloatArray:
        if self.kernel == "precomputed":
            columns = X[:, self.support_]
            return np.asarray(columns.toarray() if sparse.issparse(columns) else columns)
        return kernel_with(self, self.gamma_, X, self.support_vectors_)

    @cached_property
    def support_vectors_(self) -> Any:
        """The rows with a coefficient; sparse if the rows were."""
        known = getattr(self, "_trained_on", None)  # a model that forgets leaves them there
        if known is None or not hasattr(self, "support_"):
            raise AttributeError("there are no support vectors")
        return known.vectors(self.support_)

    @property
    def coef_(self) -> FloatArray:
        """Weights of the features, one row a pair of classes; only with ``kernel="linear"``.

        Signs are those of ``SVC``: ``X @ coef_.T + intercept_`` is the decision function, with
        several classes that of ``decision_function_shape="ovo"``.
        """
        if self.kernel != "linear":
            raise AttributeError(
                f"coef_ exists only with kernel='linear', not with {self.kernel!r}: other kernels "
                "have no weight for each feature"
            )
        check_is_fitted(self)
        if hasattr(self, "weights_") and isinstance(self.feature_map_, OwnColumns):
            return np.atleast_2d(self.weights_)
        if hasattr(self, "weights_"):
            raise AttributeError("with approx there is no coef_: weights_ belong to feature_map_")
        along = dense(self.support_vectors_).T
        pairs = pair_decisions(along, self.dual_coef_, self.n_support_, np.zeros(1)).T
        return pairs if len(self.classes_) == 2 else -pairs

    def decision_function(self, X: Matrix | FilePath) -> FloatArray:
        """Two classes: f(x), positive for ``classes_[1]``.  More: see ``decision_function_shape``.

        "ovr": a column for each class, its votes and below them the sum of confidences; "ovo": a
        column for each pair, positive for the first class; both as in ``SVC``.
        """
        values = self._pair_decisions(X)
        return shaped(values, len(self.classes_), self.decision_function_shape)

    def predict(self, X: Matrix | FilePath) -> NDArray[Any]:
        """The class of each row: the one with most votes, the first of those that draw."""
        votes = votes_of(self._pair_decisions(X), len(self.classes_))
        return self.classes_[most_votes(votes)]

    @offered_if(lambda self: _check_probability(self))
    def predict_proba(self, X: Matrix | FilePath) -> FloatArray:
        """Probabilities of the classes, from sigmoids fitted to left-out decision values."""
        values = self._pair_decisions(X)
        return probabilities(values, self._sigmoids, len(self.classes_))

    @offered_if(lambda self: _check_probability(self))
    def predict_log_proba(self, X: Matrix | FilePath) -> FloatArray:
        """Logarithms of ``predict_proba``."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))


def _check_probability(model: KernelClassifier) -> None:
    if not model.probability:
        raise AttributeError(
            "this SVCCV has no predict_proba, since it was made with probability=False: use "
            "SVCCV(probability=True) or set_params(probability=True), and fit (command line: "
            "exactcv tune --probability)"
        )
    if hasattr(model, "classes_") and not hasattr(model, "_sigmoids"):
        raise AttributeError(
            "this SVCCV has no predict_proba yet, since probability=True was set after it was "
            "fitted: fit it again"
        )
