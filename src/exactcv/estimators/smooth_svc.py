"""``SmoothSVC``: the smooth SVM as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ..algorithms.rank_update.design import make_design
from ..algorithms.rank_update.newton_armijo import ROUGH, STRATEGIES, fit
from ..exceptions import InputError, NotExactWarning
from ..problem import checks, inputs
from ..problem.kernels import Kernel, kernel_between, kernel_matrix
from ..runtime.threads import SingleThreadedBlas
from ..runtime.user_line import user_level
from ..types import (
    ClassWeight,
    FloatArray,
    GammaRule,
    IntArray,
    KernelFunction,
    KernelName,
    Matrix,
    Strategy,
    Vector,
)
from .typed import TypedClassifier

__all__ = ["SmoothSVC"]


class SmoothSVC(TypedClassifier, ClassifierMixin, BaseEstimator):
    r"""Smooth support vector machine: squared hinge, everything penalised, solved exactly.

    With ``kernel="linear"``

    .. math:: \min_{w, b} \; \tfrac12 (\lVert w \rVert^2 + b^2)
        + \tfrac C2 \sum_i s_i (1 - y_i (w' x_i + b))_+^2,

    with any other kernel the kernel matrix is the data and the ridge is on u itself,

    .. math:: \min_{u, b} \; \tfrac12 \Big(\sum_j u_j^2 / s_j + b^2\Big)
        + \tfrac C2 \sum_i s_i (1 - y_i ((K u)_i + b))_+^2,

    where s are the sample weights: a row of weight s counts as s copies.  Newton's method with
    Armijo's rule ends after finitely many steps; between steps the inverse of the Hessian is
    updated (Tseng & Lee 2012).

    Parameters
    ----------
    C : float
        The paper's c: twice the C of ``cross_validate(method="rank_update")``.
    kernel : {"linear", "rbf", "laplacian", "poly", "sigmoid", "precomputed"} or callable
        Any kernel, as the paper says: it need be neither positive semidefinite nor symmetric.  A
        precomputed one may be rectangular, (n, m): the reduced SVM, whose u has m entries (with a
        plain ridge: its columns belong to no rows).
    gamma : float, "median", "scale" or "auto"
        As in ``exactcv.cross_validate``.
    degree, coef0 : int, float
        For "poly" and "sigmoid".
    strategy : {"auto", "I", "II", "none"}
        The matrix that is updated: the d x d Hessian (I), the matrix of the support vectors (II),
        the cheaper of the two, or none: every Newton step factorises afresh.  All give the same
        solution.
    class_weight : dict or "balanced", optional
        Multiplies the sample weights.  "balanced" is n / (2 n_class), where a row of weight w
        counts as w rows, as everywhere here.
    fit_intercept : bool

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        w; only with ``kernel="linear"``.
    dual_coef_ : ndarray of shape (1, n)
        u; only with other kernels.
    intercept_ : ndarray of shape (1,)
    support_ : ndarray of int
        Rows with y f < 1.
    classes_ : ndarray of shape (2,)
        Two classes; for more, wrap it in ``sklearn.multiclass.OneVsRestClassifier``.
    gamma_ : float or None
    gradient_norm_ : float
        ||g|| at the solution, recomputed from it.
    n_iter_ : int
        Newton steps.
    steps_ : list of (int, int)
        Support vectors and rows that changed sides, step by step.

    Examples
    --------
    >>> import exactcv
    >>> X, y = exactcv.datasets.make_mixture(60, 4, random_state=0)
    >>> model = exactcv.SmoothSVC(C=1.0, kernel="rbf").fit(X, y)
    >>> model.gradient_norm_ < 1e-10, model.decision_function(X[:2]).shape
    (True, (2,))
    """

    coef_: FloatArray
    dual_coef_: FloatArray
    intercept_: FloatArray
    support_: IntArray
    gamma_: float | None
    gradient_norm_: float
    n_iter_: int
    steps_: list[tuple[int, int]]

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: KernelName | KernelFunction = "linear",
        gamma: float | GammaRule = "median",
        degree: int = 3,
        coef0: float = 0.0,
        strategy: Strategy = "auto",
        class_weight: ClassWeight | None = None,
        fit_intercept: bool = True,
    ):
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.strategy = strategy
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept

    def fit(self, X: Matrix, y: Vector, sample_weight: float | Vector | None = None) -> Self:
        """Fit to the rows of X with labels y of two classes."""
        C = checks.check_positive("C", self.C)
        strategy = checks.check_choice("strategy", self.strategy, STRATEGIES)
        kernel = inputs.check_kernel(self.kernel, self.gamma, self.degree, self.coef0)
        intercept = checks.check_flag("fit_intercept", self.fit_intercept)
        inputs.refuse_missing_labels(y)
        with inputs.naming_text(X):
            rows, labels = validate_data(self, X, y, dtype=np.float64, order="C")
        check_classification_targets(labels)
        self.classes_, signs = _two_classes(column_or_1d(labels))
        if sample_weight is not None and np.isscalar(sample_weight):
            sample_weight = np.full(len(signs), sample_weight, dtype=float)
        weight = inputs.read_weights(sample_weight, self.class_weight, signs, self.classes_)
        linear, self.gamma_ = kernel.name == "linear", None
        square = linear or kernel.name != "precomputed" or rows.shape[0] == rows.shape[1]
        with SingleThreadedBlas():
            data = rows
            if not linear:
                # Rows without weight are not there: they must not sway gamma="median" either.
                data, self.gamma_ = _kernel_of(rows, weight, kernel)
            design = make_design(data, signs, weight, intercept, not linear and square)
            found = fit(design, C, strategy)
            g = design.gradient(found.theta, C, design.used)
        self.gradient_norm_ = float(np.linalg.norm(g))
        rough = self.gradient_norm_ > ROUGH * max(1.0, float(np.linalg.norm(found.theta)))
        if rough or not found.converged:
            warnings.warn(
                f"Newton's method ended with a gradient of norm {self.gradient_norm_:.1e}: C={C:g} "
                "is beyond the accuracy of float64 for these data; scale the features or lower C",
                NotExactWarning,
                stacklevel=user_level(),
            )
        coef, b = design.split(found.theta)
        for stale in ("coef_", "dual_coef_"):  # of an earlier fit with another kernel
            self.__dict__.pop(stale, None)
        setattr(self, "coef_" if linear else "dual_coef_", coef[None])
        self.intercept_ = np.atleast_1d(b)
        self.support_ = np.flatnonzero(found.active)
        self.n_iter_, self.steps_ = len(found.steps), found.steps
        self._X = rows if not linear and kernel.name != "precomputed" else None
        return self

    def decision_function(self, X: Matrix) -> FloatArray:
        """f(x) = w'x + b or sum_j u_j k(x, x_j) + b; positive for ``classes_[1]``."""
        check_is_fitted(self)
        with inputs.naming_text(X):
            rows = validate_data(self, X, dtype=np.float64, reset=False)
        if hasattr(self, "coef_"):
            values: FloatArray = rows @ self.coef_[0] + self.intercept_[0]
            return values
        if self._X is not None:
            kernel = Kernel(self.kernel, self.gamma_ or 1.0, self.degree, self.coef0)
            rows = kernel_between(rows, self._X, kernel)
        return np.asarray(rows @ self.dual_coef_[0] + self.intercept_[0])

    def predict(self, X: Matrix) -> NDArray[Any]:
        """The class of each row."""
        values = self.decision_function(X)
        return self.classes_[(values > 0).astype(int)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


def _two_classes(y: Any) -> tuple[Any, FloatArray]:
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) > 2:
        raise InputError(
            "Only binary classification is supported. The type of the target is multiclass "
            f"({len(classes)} classes); wrap SmoothSVC in sklearn.multiclass.OneVsRestClassifier "
            "or OneVsOneClassifier"
        )
    if len(classes) < 2:
        raise InputError(
            f"y has one class, {classes.tolist()[0]!r}; a classifier needs two classes"
        )
    return classes, np.where(codes == 1, 1.0, -1.0)


def _kernel_of(X: FloatArray, weight: FloatArray, kernel: Kernel) -> tuple[FloatArray, Any]:
    used = weight > 0
    if kernel.uses_gamma and isinstance(kernel.gamma, str) and not used.all():
        gamma = kernel_matrix(X[used], kernel, symmetric=False)[1]
        assert gamma is not None
        kernel = Kernel(kernel.name, gamma, kernel.degree, kernel.coef0)
    return kernel_matrix(X, kernel, symmetric=False)
