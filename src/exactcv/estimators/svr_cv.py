"""``SVRCV``: support vector regression that tunes itself, as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from ..crossval.corrected import Corrected
from ..crossval.fold_models import FoldModels
from ..crossval.nested_result import NestedRegressionResult
from ..crossval.number_overviews import of_numbers_tuned
from ..crossval.prediction_intervals import guarantee, interval_of
from ..crossval.run import Plan
from ..exceptions import InputError
from ..judge.certificate import Certificate, warn_if_short
from ..lowrank.features import FeatureMap
from ..problem import checks
from ..report.overview import Overview
from ..runtime.threads import Workers
from ..runtime.user_line import user_level
from ..types import (
    Approx,
    FloatArray,
    GammaRule,
    GridValues,
    HasShape,
    IntArray,
    IntervalMethod,
    KernelFunction,
    KernelName,
    Matrix,
    MemoryLimit,
    ScorerLike,
    Seed,
    Select,
    Splits,
    Vector,
)
from .cv_table import cv_table
from .kernel_regressor import (
    OF_FEATURES,
    OF_VECTORS,
    Fitted,
    KernelRegressor,
    check_interval,
    kept_rows,
    only_held,
)
from .nested_fit import nested_of_numbers

__all__ = ["SVRCV"]


class SVRCV(RegressorMixin, KernelRegressor):
    r"""Support vector regression, tuned by exact cross-validation.

    Minimises

    .. math:: \tfrac12 \lVert f \rVert^2 + C \sum_i w_i \max(0, |y_i - f(x_i) - b| - \varepsilon),

    as scikit-learn's ``SVR``, for every C, epsilon and gamma of the grid, on all rows and without
    every fold, and keeps the best.

    Parameters
    ----------
    Cs, lambdas : array-like or float, optional
        As in ``cross_validate``.  The default is C from 1e-3 to 1e3 over the scale of the kernel
        and times the spread of y; it grows where the best point is at an edge.
    epsilon : float or list of floats
        Half the width of the tube within which errors cost nothing, in units of y.  A list is a
        grid.
    kernel, degree, coef0 :
        As in ``cross_validate``.
    gamma : float, "median", "scale", "auto", a list of these, or None
        A list is a grid.  None is five around the median rule while ``Cs`` and ``lambdas`` are the
        default, else that rule alone.
    cv : "loo", int, splitter or iterable
        An int is a plain k-fold, shuffled only if ``random_state`` is given.
    scoring : str, callable or None
        Any scikit-learn regression scorer, of all left-out predictions together; None is R2.
    select : {"min", "1se"}
        The best score, or the smallest C (same gamma and epsilon) within one standard error of it.
    fit_intercept : bool
    method : {"exact", "refit"}
    store_cv_results : bool
        Keep all left-out predictions, as ``cv_results_["decision"]``.
    n_jobs, tol, random_state, verbose, memory_limit :
        As in ``cross_validate``; ``verbose=1`` shows progress.
    approx : {"rff", "nystroem"}, optional
        Features in place of the kernel, as in ``cross_validate``: for rows whose kernel matrix
        would not fit.
    n_components : int or "auto"
        How many of them.  "auto" as in ``cross_validate``, for each gamma and epsilon by itself.

    Attributes
    ----------
    C_, epsilon_, gamma_, lambda_ : float
        The point chosen.
    best_score_, best_index_ : float, int
        Its score, and where it is in ``cv_results_``.
    corrected_score_ : Corrected
        The score after tuning, without what the choice of the point has gained: as that of
        ``SVCCV``, with ``best_score_`` as ``apparent``.
    cv_results_ : dict
        One entry a grid point; ``error`` is the mean left-out loss.
    support_, support_vectors_, n_support_, dual_coef_, intercept_ :
        The model, in the layout of ``SVR``.
    weights_, feature_map_ :
        With ``approx``, instead of support vectors:
        ``f(x) = feature_map_.transform(x) @ weights_ + intercept_``.
    certificate_ : Certificate
        Of all solutions of the grid.
    left_out_ : (n,)
        Left-out predictions at the chosen point: the mean if several folds test a row, NaN if none
        does.
    n_features_in_, feature_names_in_ :

    Examples
    --------
    >>> import numpy as np
    >>> from exactcv import SVRCV
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> model = SVRCV(epsilon=[0.05, 0.1]).fit(X, np.sin(X[:, 0]))
    >>> model.best_score_ > 0.9, model.certificate_.exact
    (True, True)
    >>> model.predict_interval([[1.0]], coverage=0.9).shape
    (1, 2)
    """

    C_: float
    epsilon_: float
    gamma_: float | None
    lambda_: float
    best_score_: float
    best_index_: int
    cv_results_: dict[str, Any]
    certificate_: Certificate
    support_: NDArray[np.int32]
    support_vectors_: Any
    n_support_: NDArray[np.int32]
    dual_coef_: FloatArray
    weights_: FloatArray
    feature_map_: FeatureMap
    intercept_: FloatArray
    left_out_: FloatArray

    def __init__(
        self,
        *,
        Cs: GridValues | None = None,
        lambdas: GridValues | None = None,
        epsilon: float | Sequence[float] | HasShape = 0.1,
        kernel: KernelName | KernelFunction = "rbf",
        gamma: float | GammaRule | Sequence[float | GammaRule] | HasShape | None = None,
        degree: int = 3,
        coef0: float = 0.0,
        cv: Literal["loo"] | Splits | None = "loo",
        scoring: ScorerLike | None = None,
        select: Select = "min",
        fit_intercept: bool = True,
        method: str = "exact",
        store_cv_results: bool = False,
        n_jobs: int | None = None,
        tol: float = 1e-8,
        random_state: Seed | None = None,
        verbose: int = 0,
        memory_limit: MemoryLimit | None = None,
        approx: Approx | None = None,
        n_components: int | Literal["auto"] = 200,
    ):
        self.Cs = Cs
        self.lambdas = lambdas
        self.epsilon = epsilon
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.cv = cv
        self.scoring = scoring
        self.select = select
        self.fit_intercept = fit_intercept
        self.method = method
        self.store_cv_results = store_cv_results
        self.n_jobs = n_jobs
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.memory_limit = memory_limit
        self.approx = approx
        self.n_components = n_components

    def fit(
        self,
        X: Matrix,
        y: Vector,
        sample_weight: Vector | None = None,
        groups: Vector | None = None,
        **params: Any,
    ) -> Self:
        """Cross-validate the grid and fit the chosen point.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n, p)
            With ``kernel="precomputed"`` the (n, n) kernel matrix.
        y : array-like of shape (n,)
            Numbers.
        sample_weight, groups : array-like of shape (n,), optional
            As in ``SVCCV.fit``.
        **params :
            More for the splitter or the scorer; needs scikit-learn's metadata routing.
        """
        start = perf_counter()
        checks.check_flag("store_cv_results", self.store_cv_results)
        plans = self._plans()
        rows, numbers = self._read_rows(X, y)
        tuning, keep = self._prepare(
            rows, numbers, sample_weight, groups, params, plans, self.scoring
        )
        with Workers(checks.check_n_threads(self.n_jobs)) as workers:
            fitted = self._fitted(tuning, keep, workers)
        self._keep(fitted, rows, keep)
        correction = self._correction_of(fitted.tuned, groups, keep, rows.shape[0])
        self._corrections = [correction]
        self._shown = of_numbers_tuned(
            fitted.tuned,
            keep,
            correction if isinstance(correction, Corrected) else None,
            rows.shape[0],
            perf_counter() - start,
        )
        warn_if_short(
            self.certificate_,
            self.cv_results_["param_C"],
            fitted.tuned.score.size * (len(tuning.folds) + 1),
            stacklevel=user_level() + 1,
        )
        return self

    def nested_score(
        self,
        X: Matrix,
        y: Vector,
        outer: Literal["loo"] | Splits = "loo",
        sample_weight: Vector | None = None,
        groups: Vector | None = None,
    ) -> NestedRegressionResult:
        """The error after tuning: this estimator tuned afresh without every outer fold.

        The estimator itself stays as it is, fitted or not.  See ``exactcv.nested_cross_validate``.

        Parameters
        ----------
        X, y, sample_weight, groups :
            As in ``fit``.
        outer : "loo", int, splitter or iterable
            The folds that judge; ``cv`` chooses among the rows outside each.

        Examples
        --------
        >>> import numpy as np
        >>> from exactcv import SVRCV
        >>> X = np.linspace(0, 6, 40)[:, None]
        >>> y = np.sin(X[:, 0]) + np.random.default_rng(0).normal(0, 0.1, 40)
        >>> nested = SVRCV(Cs=[1.0, 10.0], gamma=[0.1, 1.0], cv=5).nested_score(X, y, outer=4)
        >>> nested.chosen.shape, nested.certificate.exact
        ((4, 2), True)
        """
        return nested_of_numbers(clone(self), X, y, outer, sample_weight, groups)

    def _plans(self) -> list[Plan]:
        """One for each epsilon."""
        given: Any = self.epsilon
        if not isinstance(given, (list, tuple, np.ndarray)):
            given = [given]
        if len(given) == 0:
            raise InputError("epsilon is an empty list; give a number or a list of numbers")
        values = [e.item() if isinstance(e, np.generic) else e for e in given]
        return [self._plan("epsilon_insensitive", epsilon=value) for value in values]

    def _keep(self, fitted: Fitted, X: Any, keep: IntArray) -> None:
        """The attributes of a fitted model."""
        tuned, n = fitted.tuned, X.shape[0]
        grid, shape = tuned.tuning.grid, tuned.score.shape
        self._fold_models: dict[str, FoldModels] = {}
        self._tuned, self._kept_rows, self._targets = tuned, keep, tuned.tuning.y
        self._rows = kept_rows(X, keep, self.kernel == "precomputed")
        self.certificate_ = tuned.certificate
        se = np.full(shape, np.nan)
        se[tuned.best] = tuned.se
        columns = {name: tuned.stacked(name) for name in ("error", "at_bound")}
        columns |= {"loss_se": tuned.stacked("se")}
        columns |= {"kkt": self.certificate_.kkt, "gap": self.certificate_.gap}
        epsilon = np.repeat([curve.parameter for curve in tuned.curves], shape[1])
        results = cv_table(grid.Cs, grid.lambdas, tuned.gammas, tuned.score, se, **columns)
        results["param_epsilon"] = epsilon
        for point, value in zip(results["params"], epsilon.tolist(), strict=True):
            point["epsilon"] = value
        if self.store_cv_results:
            decision = tuned.stacked("decision")
            results["decision"] = np.array([self._by_row(one, n) for one in decision])
        self.cv_results_ = results
        curve, l = tuned.chosen
        self.best_index_ = curve * shape[1] + l
        self.best_score_ = float(tuned.score[curve, l])
        self.C_, self.epsilon_ = fitted.C, tuned.curve.parameter
        self.lambda_, self.gamma_ = float(grid.lambdas[l]), fitted.gamma
        self.left_out_ = self._by_row(tuned.curve.decision[l], n)
        self.intercept_ = np.array([fitted.intercept])
        self._keep_model(fitted, X)

    def _keep_model(self, fitted: Fitted, X: Any) -> None:
        """Support vectors, or weights of features; nothing of what this was before."""
        for name in OF_FEATURES if fitted.feature_map is None else OF_VECTORS:
            self.__dict__.pop(name, None)
        if fitted.feature_map is not None:
            self._rows = None  # features do without
            self.weights_, self.feature_map_ = fitted.coef.copy(), fitted.feature_map
            return
        self.support_ = fitted.support.astype(np.int32)
        self.n_support_ = np.array([len(fitted.support)], dtype=np.int32)
        self.dual_coef_ = fitted.coef[None]
        precomputed = self.kernel == "precomputed"
        self.support_vectors_ = np.empty((0, 0)) if precomputed else X[self.support_]

    def _by_row(self, decision: FloatArray, n: int) -> FloatArray:
        """Left-out predictions by row instead of by test."""
        tested = self._kept_rows[self._tuned.tuning.folds.pair_rows]
        with np.errstate(invalid="ignore"):
            return np.asarray(
                np.bincount(tested, weights=decision, minlength=n)
                / np.bincount(tested, minlength=n)
            )

    # ---- prediction ---------------------------------------------------------------------------

    def predict(self, X: Matrix) -> FloatArray:
        """The value of each row."""
        rows = self._checked_rows(X)
        if hasattr(self, "weights_"):
            values = self._feature_values(rows, self.feature_map_, self.weights_)
            return values + self.intercept_[0]
        values = self._values(
            rows, self.support_vectors_, self.support_, self.dual_coef_[0], self.gamma_
        )
        return values + self.intercept_[0]

    @property
    def coef_(self) -> FloatArray:
        """(1, p): weights of the features; only with ``kernel="linear"``."""
        if hasattr(self, "weights_"):
            raise AttributeError("with approx there is no coef_: weights_ belong to feature_map_")
        if self.kernel != "linear":
            raise AttributeError(f"coef_ exists only with kernel='linear', not {self.kernel!r}")
        return np.asarray(self.dual_coef_ @ self.support_vectors_)

    def predict_interval(
        self, X: Matrix, coverage: float = 0.9, method: IntervalMethod = "jackknife+"
    ) -> FloatArray:
        """Intervals in which new values lie, from the exact models without each row.

        Nothing is assumed of f or of the noise but that new rows are like the old ones
        (exchangeable).  What each method promises is said by ``coverage_text``.

        Parameters
        ----------
        X : array-like of shape (m, p)
        coverage : float
            What part of new values is to lie inside.
        method : {"jackknife+", "cv+", "jackknife-minmax"}
            Jackknife+ and jackknife-minmax leave out every row once, whatever ``cv`` was; CV+ uses
            the folds of ``cv``, or ten if those do not test every row once.  With ``approx`` only
            CV+.

        Returns
        -------
        ndarray of shape (m, 2)
            Lower and upper ends; infinite where there are too few rows for the coverage.

        Examples
        --------
        >>> import numpy as np
        >>> from exactcv import SVRCV
        >>> X = np.linspace(0, 6, 60)[:, None]
        >>> y = np.sin(X[:, 0]) + np.random.default_rng(0).normal(0, 0.1, 60)
        >>> low, high = SVRCV(gamma=1.0).fit(X, y).predict_interval(X, 0.8).T
        >>> bool(np.mean((low <= y) & (y <= high)) >= 0.8)
        True
        """
        coverage, method_ = check_interval(coverage, method)
        rows = self._checked_rows(X)
        models = self._left_out_models(method_)
        fmap = getattr(self, "feature_map_", None)
        values = self._model_values(rows, models, self.gamma_, fmap)
        score = np.abs(self._targets[models.row] - models.left_out)
        return interval_of(values, values, score, models.fold, coverage, method_)

    def coverage_text(self, coverage: float = 0.9, method: IntervalMethod = "jackknife+") -> str:
        """What ``predict_interval`` promises, in words.

        Examples
        --------
        >>> from exactcv import SVRCV
        >>> print(SVRCV(Cs=[1.0]).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]).coverage_text(0.7))
        jackknife+: a new row like these lies inside with probability about 70%, and at least 40%
        whatever the data.
        """
        coverage, method_ = check_interval(coverage, method)
        check_is_fitted(self)
        models = self._left_out_models(method_)
        return guarantee(method_, coverage, len(models.row), len(models.intercept))

    def _left_out_models(self, method: str) -> FoldModels:
        """Made when first asked for, and then kept."""
        kind = self._kind_of_models(method)
        if kind not in self._fold_models:
            if not hasattr(self, "_tuned"):
                raise only_held(self._fold_models, method)
            folds = self._interval_folds(method, self._tuned.tuning)
            self._fold_models[kind] = self._models(method, self._tuned, folds)
        return self._fold_models[kind]

    @property
    def corrected_score_(self) -> Corrected:
        """The score after tuning, corrected for the choice of the grid point."""
        return self._corrected(0)

    def _overview(self) -> Overview:
        check_is_fitted(self)
        return self._shown
