"""``QuantileSVRCV``: kernel quantile regression that tunes itself, as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ..crossval.corrected import Corrected
from ..crossval.fold_models import FoldModels
from ..crossval.nested_result import NestedRegressionResult
from ..crossval.number_overviews import of_numbers_tuned
from ..crossval.number_tuning import NumbersTuned
from ..crossval.prediction_intervals import guarantee, interval_of
from ..crossval.regression_result import pair_losses
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
    Crossing,
    FloatArray,
    GammaRule,
    GridValues,
    HasShape,
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
from .nested_fit import nested_of_quantiles

__all__ = ["QuantileSVRCV"]

CROSSINGS = ("forbid-by-sorting", "allow")


class QuantileSVRCV(KernelRegressor):
    r"""Kernel quantile regression, each quantile tuned by exact cross-validation.

    For each quantile :math:`\tau` minimises

    .. math:: \tfrac12 \lVert f \rVert^2 + C \sum_i w_i \rho_\tau(y_i - f(x_i) - b),
        \qquad \rho_\tau(r) = \max(\tau r, (\tau - 1) r),

    for every C and gamma of the grid, on all rows and without every fold, and keeps the
    point with the least left-out loss.  Every quantile has its own.

    Parameters
    ----------
    quantiles : sequence of floats, or a float
        Rising, between 0 and 1.  Of a single float ``predict`` gives one number a row.
    crossing : {"forbid-by-sorting", "allow"}
        Quantiles are fitted one by one, so that a higher one may be below a lower one in places;
        sorting each row's predictions forbids that and makes none of them worse (Chernozhukov,
        Fernandez-Val & Galichon 2010).
    Cs, lambdas, kernel, gamma, degree, coef0, cv, select, fit_intercept, method :
        As in ``SVRCV``.
    n_jobs, tol, random_state, verbose, memory_limit, approx, n_components :
        As in ``SVRCV``.
    scoring : str, callable or None
        None: the pinball loss of the quantile, as small as possible.  Else a scikit-learn
        regression scorer, by which every quantile is chosen.

    Attributes
    ----------
    quantiles_, C_, gamma_, lambda_, best_score_, best_index_ : (q,)
        One entry a quantile; the score is the negative left-out loss unless ``scoring`` is given.
    corrected_score_ : list of Corrected
        One a quantile: the score after tuning, without what the choice of its point has gained.
    cv_results_ : list of dict
        One a quantile.
    support_, dual_coef_ : list of arrays
        Rows that a quantile's model uses, and their coefficients.
    support_vectors_ : list of arrays
    weights_, feature_map_ : lists
        With ``approx``, instead of support vectors, as in ``SVRCV``: one a quantile.
    intercept_ : (q,)
    middle_ : float
        The quantile nearest to one half, of which ``summary``, ``plot`` and ``report`` speak.
    crossings_ : float
        Share of the training rows in whose left-out predictions some quantiles cross.
    left_out_ : (n, q)
        Left-out predictions (not sorted).
    certificate_ : Certificate
        Of all solutions of all grids.
    n_features_in_, feature_names_in_ :

    Examples
    --------
    >>> import numpy as np
    >>> from exactcv import QuantileSVRCV
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(X[:, 0]) + np.random.default_rng(0).normal(0, 0.2, 60)
    >>> model = QuantileSVRCV(quantiles=(0.1, 0.9), gamma=1.0, Cs=[0.1, 1.0]).fit(X, y)
    >>> low, high = model.predict(X).T
    >>> bool((low <= high).all()), model.certificate_.exact
    (True, True)
    """

    _sparse = False
    quantiles_: FloatArray
    C_: FloatArray
    gamma_: FloatArray
    lambda_: FloatArray
    best_score_: FloatArray
    best_index_: Any
    cv_results_: list[dict[str, Any]]
    certificate_: Certificate
    support_: list[Any]
    support_vectors_: list[Any]
    dual_coef_: list[FloatArray]
    weights_: list[FloatArray]
    feature_map_: list[FeatureMap]
    intercept_: FloatArray
    crossings_: float
    left_out_: FloatArray

    def __init__(
        self,
        *,
        quantiles: float | Sequence[float] | HasShape = (0.1, 0.5, 0.9),
        crossing: Crossing = "forbid-by-sorting",
        Cs: GridValues | None = None,
        lambdas: GridValues | None = None,
        kernel: KernelName | KernelFunction = "rbf",
        gamma: float | GammaRule | Sequence[float | GammaRule] | HasShape | None = None,
        degree: int = 3,
        coef0: float = 0.0,
        cv: Literal["loo"] | Splits | None = "loo",
        scoring: ScorerLike | None = None,
        select: Select = "min",
        fit_intercept: bool = True,
        method: str = "exact",
        n_jobs: int | None = None,
        tol: float = 1e-8,
        random_state: Seed | None = None,
        verbose: int = 0,
        memory_limit: MemoryLimit | None = None,
        approx: Approx | None = None,
        n_components: int | Literal["auto"] = 200,
    ):
        self.quantiles = quantiles
        self.crossing = crossing
        self.Cs = Cs
        self.lambdas = lambdas
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.cv = cv
        self.scoring = scoring
        self.select = select
        self.fit_intercept = fit_intercept
        self.method = method
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
        """Cross-validate the grid for every quantile, and fit the points chosen.

        Parameters
        ----------
        X, y, sample_weight, groups, **params :
            As in ``SVRCV.fit``.
        """
        start = perf_counter()
        checks.check_choice("crossing", self.crossing, CROSSINGS)
        quantiles = self._check_quantiles()
        plans = self._plans()
        rows, numbers = self._read_rows(X, y)
        found: list[Fitted] = []
        with Workers(checks.check_n_threads(self.n_jobs)) as workers:
            for plan in plans:
                one = rows, numbers, sample_weight, groups, params, [plan], self.scoring
                tuning, keep = self._prepare(*one)
                found.append(self._fitted(tuning, keep, workers))
        self._single = not isinstance(self.quantiles, (list, tuple, np.ndarray))
        self.quantiles_ = quantiles
        self._keep(found, rows, keep)
        seconds = perf_counter() - start
        n, middle = rows.shape[0], int(np.argmin(np.abs(quantiles - 0.5)))
        self._corrections = [self._correction_of(f.tuned, groups, keep, n) for f in found]
        known = self._corrections[middle]
        self._shown = of_numbers_tuned(
            found[middle].tuned, keep, known if isinstance(known, Corrected) else None, n, seconds
        )
        grid_points = sum(fitted.tuned.score.size for fitted in found)
        warn_if_short(
            self.certificate_,
            np.concatenate([table["param_C"] for table in self.cv_results_]),
            grid_points * (len(tuning.folds) + 1),
            stacklevel=user_level() + 1,
        )
        return self

    def _check_quantiles(self) -> FloatArray:
        given: Any = self.quantiles
        values = given if isinstance(given, (list, tuple, np.ndarray)) else [given]
        if len(values) == 0:
            raise InputError("quantiles is empty; give at least one number between 0 and 1")
        found = np.array(
            [
                checks.check_quantile(
                    "quantiles", getattr(tau, "item", lambda tau=tau: tau)(), "numbers"
                )
                for tau in values
            ]
        )
        if (np.diff(found) <= 0).any():
            raise InputError(f"quantiles must rise, got {list(values)}")
        return found

    def _keep(self, found: list[Fitted], X: Any, keep: Any) -> None:
        tuned, n = [fitted.tuned for fitted in found], X.shape[0]
        self._tuned, self._kept_rows, self._targets = tuned, keep, tuned[0].tuning.y
        self._fold_models: dict[str, dict[int, FoldModels]] = {}
        self.certificate_ = Certificate.joined([one.certificate for one in tuned])
        self.cv_results_ = [_table(one) for one in tuned]
        chosen = [one.chosen for one in tuned]
        self.best_index_ = np.array(
            [c * one.score.shape[1] + l for (c, l), one in zip(chosen, tuned, strict=True)]
        )
        self.best_score_ = np.array([one.score[one.chosen] for one in tuned])
        self.C_ = np.array([fitted.C for fitted in found])
        self.gamma_ = np.array([np.nan if f.gamma is None else f.gamma for f in found])
        self.lambda_ = np.array([one.tuning.grid.lambdas[one.point] for one in tuned])
        self.intercept_ = np.array([fitted.intercept for fitted in found])
        self._keep_models(found, X)
        tested = keep[tuned[0].tuning.folds.pair_rows]
        with np.errstate(invalid="ignore"):
            self.left_out_ = np.column_stack(
                [
                    np.bincount(tested, weights=one.curve.decision[one.point], minlength=n)
                    / np.bincount(tested, minlength=n)
                    for one in tuned
                ]
            )
        known = self.left_out_[np.isfinite(self.left_out_).all(axis=1)]
        self.crossings_ = float((np.diff(known, axis=1) < 0).any(axis=1).mean())

    def _keep_models(self, found: list[Fitted], X: Any) -> None:
        """Support vectors, or weights of features; nothing of what this was before."""
        for name in OF_FEATURES if self.approx is None else OF_VECTORS:
            self.__dict__.pop(name, None)
        if self.approx is not None:
            self._rows = None  # features do without
            self.weights_ = [fitted.coef.copy() for fitted in found]
            self.feature_map_ = [f.feature_map for f in found if f.feature_map is not None]
            return
        precomputed = self.kernel == "precomputed"
        self._rows = kept_rows(X, self._kept_rows, precomputed)
        self.support_ = [fitted.support.astype(np.int32) for fitted in found]
        self.dual_coef_ = [fitted.coef[None] for fitted in found]
        self.support_vectors_ = [
            np.empty((0, 0)) if precomputed else X[rows] for rows in self.support_
        ]

    # ---- prediction ---------------------------------------------------------------------------

    def predict(self, X: Matrix) -> FloatArray:
        """(m, q): the quantiles of each row; (m,) if ``quantiles`` is a single number."""
        rows = self._checked_rows(X)
        found = [self._of_quantile(rows, q) for q in range(len(self.quantiles_))]
        values = np.column_stack(found) + self.intercept_
        if self._single:
            return np.asarray(values[:, 0])
        return np.sort(values, axis=1) if self.crossing == "forbid-by-sorting" else values

    def _of_quantile(self, rows: Any, q: int) -> FloatArray:
        """f of one quantile."""
        if hasattr(self, "weights_"):
            return self._feature_values(rows, self.feature_map_[q], self.weights_[q])
        model = self.support_vectors_[q], self.support_[q], self.dual_coef_[q][0]
        return self._values(rows, *model, _number(self.gamma_[q]))

    def score(self, X: Matrix, y: Vector, sample_weight: Vector | None = None) -> float:
        """The negative pinball loss, the mean over rows and quantiles; larger is better."""
        predicted = self.predict(X)
        predicted = predicted.reshape(len(predicted), -1)
        numbers = np.asarray(y, dtype=float)
        losses = [
            pair_losses("pinball", {"quantile": float(tau)}, numbers, values)
            for tau, values in zip(self.quantiles_, predicted.T, strict=True)
        ]
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        return -float(np.average(np.mean(losses, axis=0), weights=weight))

    def predict_interval(
        self, X: Matrix, coverage: float = 0.9, method: IntervalMethod = "jackknife+"
    ) -> FloatArray:
        """Conformalised quantiles: intervals that hold, whatever the quantile models are worth.

        Of ``quantiles`` those nearest to (1 - coverage) / 2 and (1 + coverage) / 2 are taken, and
        moved by how far left-out rows are outside (or inside) of them.

        Parameters
        ----------
        X, coverage, method :
            As in ``SVRCV.predict_interval``.

        Returns
        -------
        ndarray of shape (m, 2)
        """
        coverage, method_ = check_interval(coverage, method)
        rows = self._checked_rows(X)
        pair = self._pair(coverage)
        models = [self._left_out_models(method_, q) for q in pair]
        maps = getattr(self, "feature_map_", [None] * len(self.quantiles_))
        low, high = (
            self._model_values(rows, one, _number(self.gamma_[q]), maps[q])
            for q, one in zip(pair, models, strict=True)
        )
        y = self._targets[models[0].row]
        score = np.maximum(models[0].left_out - y, y - models[1].left_out)
        ends = interval_of(low, high, score, models[0].fold, coverage, method_)
        return np.sort(ends, axis=1)

    def nested_score(
        self,
        X: Matrix,
        y: Vector,
        outer: Literal["loo"] | Splits = "loo",
        sample_weight: Vector | None = None,
        groups: Vector | None = None,
    ) -> list[NestedRegressionResult]:
        """The pinball loss after tuning: each quantile tuned afresh without every outer fold.

        The estimator itself stays as it is, fitted or not.  See ``exactcv.nested_cross_validate``.

        Parameters
        ----------
        X, y, sample_weight, groups :
            As in ``fit``.
        outer : "loo", int, splitter or iterable
            The folds that judge; ``cv`` chooses among the rows outside each.

        Returns
        -------
        list of NestedRegressionResult
            One a quantile, whose ``error`` is its mean pinball loss.  Values are not sorted.

        Examples
        --------
        >>> import numpy as np
        >>> from exactcv import QuantileSVRCV
        >>> X = np.linspace(0, 6, 40)[:, None]
        >>> y = np.sin(X[:, 0]) + np.random.default_rng(0).normal(0, 0.1, 40)
        >>> model = QuantileSVRCV(quantiles=(0.1, 0.9), Cs=[1.0, 10.0], gamma=1.0, cv=5)
        >>> low, high = model.nested_score(X, y, outer=4)
        >>> low.quantile, low.chosen.shape, low.certificate.exact
        (0.1, (4, 2), True)
        """
        return nested_of_quantiles(clone(self), X, y, outer, sample_weight, groups)

    def _plans(self) -> list[Plan]:
        """One for each quantile."""
        levels = self._check_quantiles()
        return [self._plan("pinball", quantile=float(tau)) for tau in levels]

    def coverage_text(self, coverage: float = 0.9, method: IntervalMethod = "jackknife+") -> str:
        """What ``predict_interval`` promises, in words."""
        coverage, method_ = check_interval(coverage, method)
        check_is_fitted(self)
        models = self._left_out_models(method_, 0)
        words = guarantee(method_, coverage, len(models.row), len(models.intercept))
        low, high = (self.quantiles_[q] for q in self._pair(coverage))
        return f"conformalised quantiles {low:.4g} and {high:.4g}, {words}"

    def _pair(self, coverage: float) -> tuple[int, int]:
        """The quantiles that are nearest to the ends of the interval."""
        if len(self.quantiles_) < 2:
            raise InputError("predict_interval needs two quantiles or more")
        low = int(np.argmin(np.abs(self.quantiles_ - 0.5 * (1.0 - coverage))))
        high = int(np.argmin(np.abs(self.quantiles_ - 0.5 * (1.0 + coverage))))
        return (low, high) if low < high else (0, len(self.quantiles_) - 1)

    @property
    def middle_(self) -> float:
        """The quantile nearest to one half: the one that reports and plots are of."""
        return float(self.quantiles_[int(np.argmin(np.abs(self.quantiles_ - 0.5)))])

    def _left_out_models(self, method: str, q: int) -> FoldModels:
        """Made when first asked for, and then kept."""
        kind = self._kind_of_models(method)
        if q not in self._fold_models.get(kind, {}):
            if not hasattr(self, "_tuned"):
                raise only_held(self._fold_models, method)
            tuned: NumbersTuned = self._tuned[q]
            folds = self._interval_folds(method, tuned.tuning)
            self._fold_models.setdefault(kind, {})[q] = self._models(method, tuned, folds)
        return self._fold_models[kind][q]

    @property
    def corrected_score_(self) -> list[Corrected]:
        """Each quantile's score after tuning, corrected for the choice of its grid point."""
        check_is_fitted(self)
        return [self._corrected(q) for q in range(len(self.quantiles_))]

    def _overview(self) -> Overview:
        check_is_fitted(self)
        return self._shown


def _number(gamma: float) -> float | None:
    return None if np.isnan(gamma) else float(gamma)


def _table(tuned: NumbersTuned) -> dict[str, Any]:
    """``cv_results_`` of one quantile."""
    grid, certificate = tuned.tuning.grid, tuned.certificate
    se = np.array([curve.se for curve in tuned.curves])
    columns = {name: tuned.stacked(name) for name in ("error", "at_bound")}
    columns |= {"kkt": certificate.kkt, "gap": certificate.gap}
    return cv_table(grid.Cs, grid.lambdas, tuned.gammas, tuned.score, se, **columns)
