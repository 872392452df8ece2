"""``SmoothSVR``: smooth support vector regression (epsilon-SSVR) as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ..algorithms.rank_update.newton_armijo import ROUGH, STRATEGIES, fit
from ..algorithms.rank_update.regression import left_out_values, tube_design
from ..exceptions import NotExactWarning
from ..problem import checks, inputs
from ..problem.folds import make_folds
from ..problem.kernels import Kernel, kernel_between, kernel_matrix
from ..runtime.threads import SingleThreadedBlas
from ..runtime.user_line import user_level
from ..types import (
    FloatArray,
    GammaRule,
    IntArray,
    KernelFunction,
    KernelName,
    Matrix,
    Splits,
    Strategy,
    Vector,
)
from .typed import TypedRegressor

__all__ = ["SmoothSVR"]


class SmoothSVR(TypedRegressor, RegressorMixin, BaseEstimator):
    r"""Smooth support vector regression: squared epsilon-insensitive loss, everything penalised.

    With ``kernel="linear"``

    .. math:: \min_{w, b} \; \tfrac12 (\lVert w \rVert^2 + b^2)
        + \tfrac C2 \sum_i s_i (|y_i - w' x_i - b| - \varepsilon)_+^2,

    with any other kernel the kernel matrix is the data and the ridge is on u itself, as in
    `SmoothSVC`.  Solved by the same Newton's method and the same rank-r updates of its Hessian's
    inverse (Lee, Hsieh & Huang 2005; Tseng & Lee 2012).

    Parameters
    ----------
    C, kernel, gamma, degree, coef0, strategy, fit_intercept :
        As in `SmoothSVC`; a precomputed kernel may be rectangular.
    epsilon : float
        Half the width of the tube in which nothing is lost; 0 is ridge regression.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        w; only with ``kernel="linear"``.
    dual_coef_ : ndarray of shape (n,)
        u; only with other kernels.
    intercept_ : float
    support_ : ndarray of int
        Rows outside the tube.
    gamma_ : float or None
    gradient_norm_ : float
        ||g|| at the solution, recomputed from it.
    n_iter_ : int
        Newton steps.

    Examples
    --------
    >>> import numpy as np
    >>> import exactcv
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = exactcv.SmoothSVR(C=10.0, kernel="rbf", gamma=1.0).fit(X, np.sin(X[:, 0]))
    >>> bool(np.abs(model.predict(X) - np.sin(X[:, 0])).max() < 0.25), model.gradient_norm_ < 1e-9
    (True, True)
    >>> model.left_out_predict(X, np.sin(X[:, 0])).shape
    (40,)
    """

    coef_: FloatArray
    dual_coef_: FloatArray
    intercept_: float
    support_: IntArray
    gamma_: float | None
    gradient_norm_: float
    n_iter_: int

    def __init__(
        self,
        *,
        C: float = 1.0,
        epsilon: float = 0.1,
        kernel: KernelName | KernelFunction = "linear",
        gamma: float | GammaRule = "median",
        degree: int = 3,
        coef0: float = 0.0,
        strategy: Strategy = "auto",
        fit_intercept: bool = True,
    ):
        self.C = C
        self.epsilon = epsilon
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.strategy = strategy
        self.fit_intercept = fit_intercept

    def fit(self, X: Matrix, y: Vector, sample_weight: Vector | None = None) -> Self:
        """Fit to the rows of X with values y."""
        solved = self._solve(X, y, sample_weight)
        linear, (coef, b) = solved.linear, solved.split(solved.found.theta)
        for stale in ("coef_", "dual_coef_"):  # of an earlier fit with another kernel
            self.__dict__.pop(stale, None)
        setattr(self, "coef_" if linear else "dual_coef_", coef)
        self.intercept_ = b
        n = len(solved.y)
        self.support_ = np.flatnonzero(solved.found.active[:n] | solved.found.active[n:])
        self.n_iter_ = len(solved.found.steps)
        self._X = None if linear or self.kernel == "precomputed" else solved.rows
        return self

    def predict(self, X: Matrix) -> FloatArray:
        """f(x) = w'x + b or sum_j u_j k(x, x_j) + b."""
        check_is_fitted(self)
        with inputs.naming_text(X):
            rows = validate_data(self, X, dtype=np.float64, reset=False)
        if hasattr(self, "coef_"):
            return np.asarray(rows @ self.coef_ + self.intercept_)
        if self._X is not None:
            kernel = Kernel(self.kernel, self.gamma_ or 1.0, self.degree, self.coef0)
            rows = kernel_between(rows, self._X, kernel)
        return np.asarray(rows @ self.dual_coef_ + self.intercept_)

    def left_out_predict(
        self,
        X: Matrix,
        y: Vector,
        cv: Literal["loo"] | Splits = "loo",
        sample_weight: Vector | None = None,
    ) -> FloatArray:
        """Exact left-out predictions, each fold a rank-r update away from the full solution.

        A row that is left out takes its kernel column along; columns of a rectangular kernel stay.
        Rows that no fold tests are NaN; a fold is solved afresh where updates are too rough.
        """
        solved = self._solve(X, y, sample_weight)
        folds = make_folds(cv, solved.rows, np.zeros(len(solved.y)))
        pairs = list(zip(folds.left_out, folds.test, strict=True))
        values = np.full(len(solved.y), np.nan)
        with SingleThreadedBlas():
            thetas = left_out_values(
                solved.design, solved.C, solved.found, pairs, solved.own_columns, self.strategy
            )
        for (_, test), theta in zip(pairs, thetas, strict=True):
            coef, b = solved.split(theta)
            values[test] = solved.data[test] @ coef + b
        return values

    def _solve(self, X: Matrix, y: Vector, sample_weight: Any) -> _Solved:
        C = checks.check_positive("C", self.C)
        epsilon = checks.real("epsilon", self.epsilon, lambda x: x >= 0, "zero or positive")
        checks.check_choice("strategy", self.strategy, STRATEGIES)
        kernel = inputs.check_kernel(self.kernel, self.gamma, self.degree, self.coef0)
        intercept = checks.check_flag("fit_intercept", self.fit_intercept)
        with inputs.naming_text(X):
            rows, values = validate_data(
                self, X, y, dtype=np.float64, order="C", y_numeric=True, multi_output=False
            )
        values = np.asarray(values, dtype=float)
        weight = _check_sample_weight(
            sample_weight, rows, dtype=np.float64, ensure_non_negative=True
        )
        solved = _Solved(self, rows, values, weight, kernel, C, epsilon, intercept)
        self.gamma_, self.gradient_norm_ = solved.gamma, solved.gradient_norm
        if solved.rough:
            warnings.warn(
                f"Newton's method ended with a gradient of norm {self.gradient_norm_:.1e}: C={C:g} "
                "is beyond the accuracy of float64 for these data; scale the features or lower C",
                NotExactWarning,
                stacklevel=user_level(),
            )
        return solved


class _Solved:
    """The problem on all rows, solved."""

    def __init__(
        self,
        model: SmoothSVR,
        rows: FloatArray,
        y: FloatArray,
        weight: FloatArray,
        kernel: Kernel,
        C: float,
        epsilon: float,
        intercept: bool,
    ):
        self.rows, self.y, self.C, self.intercept = rows, y, C, intercept
        self.linear = kernel.name == "linear"
        self.data, self.gamma = rows, None
        with SingleThreadedBlas():
            if not self.linear:
                self.data, self.gamma = kernel_matrix(rows, kernel, symmetric=False)
            self.own_columns = not self.linear and self.data.shape[0] == self.data.shape[1]
            # A row of weight s stands for s copies, which would have s columns (``design.py``).
            self.scale = np.sqrt(weight) if self.own_columns else np.ones(self.data.shape[1])
            self.design = tube_design(self.data * self.scale, y, epsilon, weight, intercept)
            self.found = fit(self.design, C, model.strategy)
            g = self.design.gradient(self.found.theta, C, self.design.used)
        self.gradient_norm = float(np.linalg.norm(g))
        size = max(1.0, float(np.linalg.norm(self.found.theta)))
        self.rough = self.gradient_norm > ROUGH * size or not self.found.converged

    def split(self, theta: FloatArray) -> tuple[FloatArray, float]:
        """Coefficients of the features or of K's columns, and the intercept."""
        if self.intercept:
            return theta[:-1] * self.scale, float(theta[-1])
        return theta * self.scale, 0.0
