"""What ``SVRCV`` and ``QuantileSVRCV`` have in common: rows, settings, models of folds."""

from __future__ import annotations

import numbers
from collections.abc import Container
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object
from sklearn.utils.validation import check_is_fitted, validate_data

from ..crossval.components import FIRST
from ..crossval.corrected import Corrected, Correction, correction_of_numbers, now_or_later
from ..crossval.feature_rows import FeatureRows
from ..crossval.fold_models import FoldModels
from ..crossval.number_tuning import NumbersTuned, NumberTuning
from ..crossval.numbers_scoring import NumbersScorer, read_number_scoring
from ..crossval.overviews import QUICK
from ..crossval.prediction_intervals import METHODS
from ..crossval.requests import SCALE_ROWS
from ..crossval.run import Plan
from ..crossval.scoring import check_defined
from ..crossval.tuning import count_by_weight
from ..crossval.weighted_number_scores import is_quick_of_numbers
from ..exceptions import InputError, InputTypeError, UnsupportedError
from ..lowrank.features import FeatureMap
from ..lowrank.options import Options
from ..lowrank.rows.sampling import smallest_keys
from ..lowrank.rows.sources import ArrayRows
from ..problem import checks, inputs
from ..problem.folds import Folds, folds_among, leave_one_out_folds
from ..problem.grid import Grid
from ..problem.kernels import Kernel
from ..report.presentation import Presented
from ..runtime.memory import check_memory
from ..runtime.threads import Workers
from ..types import FloatArray, IntArray
from .settings import dense, grid_of, kernel_with, kernels_of, routed, rows_of
from .typed import TypedRegressor

__all__ = [
    "OF_FEATURES",
    "OF_VECTORS",
    "Fitted",
    "KernelRegressor",
    "check_interval",
    "kept_rows",
    "only_held",
]

# What a model has: support vectors, or weights of features.
OF_VECTORS = ("support_", "support_vectors_", "n_support_", "dual_coef_")
OF_FEATURES = ("weights_", "feature_map_")
# Kernel values held at a time when predicting.
PREDICT_ENTRIES = 1 << 22
INTERVAL_FOLDS = 10  # of CV+ where the estimator was tuned by other folds
_NO_REQUESTS = get_routing_for_object(None)


@dataclass(frozen=True)
class Fitted:
    """One tuned model: f(x) = k(x, vectors) @ coef + intercept.

    ``support`` counts all rows that were given; ``tuned`` has what it was chosen from.  With a
    ``feature_map`` its features stand in the place of k(x, vectors), and there is no support.
    """

    support: IntArray
    coef: FloatArray
    intercept: float
    gamma: float | None
    tuned: NumbersTuned
    feature_map: FeatureMap | None = None

    @property
    def C(self) -> float:
        return float(self.tuned.tuning.grid.Cs[self.tuned.point])


class KernelRegressor(Presented, TypedRegressor, BaseEstimator):
    """Reads rows, tunes plans, and predicts; subclasses say which plans, and what of."""

    _sparse: Any = "csr"  # what of it is taken
    Cs: Any
    lambdas: Any
    kernel: Any
    gamma: Any
    degree: Any
    coef0: Any
    cv: Any
    scoring: Any
    select: Any
    fit_intercept: Any
    method: Any
    n_jobs: Any
    tol: Any
    random_state: Any
    verbose: Any
    memory_limit: Any
    approx: Any = None
    n_components: Any = 200
    intercept_: FloatArray
    _corrections: list[Correction]  # one for each choice of a point
    _rows: Any  # those that count, where models of folds need them
    _kept_rows: IntArray  # their numbers

    # ---- fitting ------------------------------------------------------------------------------

    def _plan(self, loss: str, **parameters: Any) -> Plan:
        checks.check_choice("select", self.select, ("min", "1se"))
        checks.check_seed(self.random_state)
        return Plan.of(
            method=self.method,
            loss=loss,
            fit_intercept=self.fit_intercept,
            want_decision=True,
            tol=self.tol,
            **parameters,
        )

    def _read_rows(self, X: Any, y: Any) -> tuple[Any, FloatArray]:
        """X (sparse stays sparse) and the numbers, in scikit-learn's way but with our errors."""
        inputs.refuse_path(X)
        if y is None:
            raise InputError(
                f"this {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None"
            )
        inputs.refuse_missing_labels(y)
        try:
            with inputs.naming_text(X):
                X, y = validate_data(
                    self,
                    X,
                    y,
                    accept_sparse=self._sparse,
                    dtype=np.float64,
                    order="C",
                    y_numeric=True,
                    ensure_min_samples=2,
                )
        except TypeError as error:
            raise InputTypeError(str(error)) from error
        except ValueError as error:
            raise InputError(str(error)) from error
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise InputError(
                "with kernel='precomputed' X is the kernel matrix and must be square, "
                f"got {X.shape}"
            )
        return X, inputs.read_numbers(y, X.shape[0])

    def _prepare(
        self,
        X: Any,
        y: FloatArray,
        sample_weight: Any,
        groups: Any,
        params: dict[str, Any],
        plans: list[Plan],
        scoring: Any,
    ) -> tuple[NumberTuning, IntArray]:
        """Everything checked; the rows that count, and their numbers."""
        n = X.shape[0]
        weight = inputs.read_number_weights(sample_weight, None, n)
        keep = np.flatnonzero(weight > 0).astype(np.intp)
        if len(keep) < 2:
            raise InputError("fewer than two rows have positive weight (1 sample); nothing to tune")
        if self.approx is None:
            extra = 8 * n * X.shape[1] if sparse.issparse(X) else 0
            check_memory(len(keep), self.memory_limit, extra_bytes=extra)
        scorer = read_number_scoring(scoring)
        groups = inputs.read_groups(groups, n)
        split_with, score_with = routed(self, sample_weight, groups, params, scorer)
        rows = X[keep][:, keep] if self.kernel == "precomputed" else X[keep]
        used, stand_ins = weight[keep], self._feature_rows(rows, plans[0])
        units = plans[0].units(y[keep], used)
        if stand_ins is None:
            features = np.ascontiguousarray(dense(rows))
            grid, kernels, new_gammas = grid_of(self, features, used, units.C_scale)
        else:
            features = np.empty((0, 0))
            grid, kernels, new_gammas = self._grid_by_few(rows, used, units.C_scale, stand_ins)
        folds = self._folds(rows, y[keep], keep, n, split_with)
        for plan in plans:
            plan.check_folds(folds)
        tests = folds.pair_rows
        own = score_with.get("sample_weight")
        given = None if own is None else np.asarray(rows_of(own, keep, n))[tests]
        tuning = NumberTuning(
            X=features,
            y=y[keep],
            weight=used,
            folds=count_by_weight(folds, grid, used),
            grid=grid,
            kernels=kernels,
            plans=plans,
            scorer=None if plans[0].loss == "pinball" and scoring is None
            else NumbersScorer.of(scoring, rows[tests], given),
            select=self.select,
            new_gammas=new_gammas,
            show_progress=bool(self.verbose),
            features=stand_ins,
            grow_features=self._grows_features,
        )  # fmt: skip
        return tuning, keep

    @property
    def _grows_features(self) -> bool:
        return isinstance(self.n_components, str) and self.n_components == "auto"

    def _feature_rows(self, X: Any, plan: Plan) -> FeatureRows | None:
        """The rows with features in place of a kernel, if these are asked for."""
        if self.approx is None:
            return None
        # How many there are in the end is found out, if that is left open.
        given = FIRST if self._grows_features else self.n_components
        m = inputs.check_approx(self.approx, given, self.method, plan.loss)
        kernel = kernels_of(self)[0]
        if kernel.name == "precomputed":
            raise UnsupportedError(
                f"approx={self.approx!r} needs the rows themselves, but kernel='precomputed' gives "
                "only their inner products; pass the features and name the kernel"
            )
        state = self.random_state
        seed = int(state) if isinstance(state, numbers.Integral) else checks.seed_from(state)
        source = ArrayRows(X, Options().chunk_rows)
        return FeatureRows(source, kernel, self.approx, m, seed, self.memory_limit)

    def _grid_by_few(
        self, X: Any, weight: FloatArray, C_scale: float, stand_ins: FeatureRows
    ) -> tuple[Grid, list[Kernel], tuple[int, int] | None]:
        """`grid_of`, by rows enough to tell the scale of the kernel and gamma."""
        n = X.shape[0]
        few = np.sort(smallest_keys(n, min(SCALE_ROWS, n), stand_ins.seed))
        share = weight[few] * (float(weight.sum()) / float(weight[few].sum()))
        return grid_of(self, np.ascontiguousarray(dense(X[few])), share, C_scale)

    def _folds(
        self, X: Any, y: FloatArray, keep: IntArray, n: int, split_with: dict[str, Any]
    ) -> Folds:
        """Folds of the rows that count; row numbers that the user gave are renumbered."""
        given = {name: rows_of(value, keep, n) for name, value in split_with.items()}
        groups = given.pop("groups", None)
        folds = folds_among(
            keep, n, self.cv, X, y, groups, self.random_state, stratify=False, **given
        )
        return inputs.check_some_training(folds, np.ones(len(keep)))

    def _fitted(self, tuning: NumberTuning, keep: IntArray, workers: Workers) -> Fitted:
        tuned = tuning.search(workers)
        check_defined(tuned.score, tuned.tuning.scorer and tuned.tuning.scorer.name)
        coef, fmap = tuned.curve.coef[tuned.point], tuned.curve.feature_map
        there = np.flatnonzero(coef) if fmap is None else np.zeros(0, dtype=np.intp)
        return Fitted(
            support=keep[there],
            coef=coef[there] if fmap is None else coef,
            intercept=float(tuned.curve.intercept[tuned.point]),
            gamma=tuned.curve.gamma,
            tuned=tuned,
            feature_map=fmap,
        )

    def _correction_of(
        self, tuned: NumbersTuned, groups: Any, keep: IntArray, n: int
    ) -> Correction:
        """At once where that is quick."""
        given = inputs.read_groups(groups, n)
        later = correction_of_numbers(tuned, None if given is None else given[keep])
        size = tuned.score.size * len(tuned.tuning.folds.pair_rows)
        return now_or_later(later, size <= QUICK and is_quick_of_numbers(tuned.tuning.scorer))

    def _corrected(self, number: int) -> Corrected:
        """One of ``_corrections``, made when first asked for, and then kept."""
        check_is_fitted(self)
        if not hasattr(self, "_corrections"):
            raise AttributeError(
                f"this {type(self).__name__} has no corrected_score_: it was read from a file "
                "(then summary() has it)"
            )
        found = self._corrections[number]
        if not isinstance(found, Corrected):
            found = self._corrections[number] = found()
        return found

    # ---- prediction ---------------------------------------------------------------------------

    def _checked_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        inputs.refuse_path(X)
        try:
            with inputs.naming_text(X):
                return validate_data(
                    self, X, accept_sparse=self._sparse, dtype=np.float64, reset=False
                )
        except TypeError as error:
            raise InputTypeError(str(error)) from error
        except ValueError as error:
            raise InputError(str(error)) from error

    def _kernel_values(
        self, X: Any, gamma: float | None, vectors: Any, columns: NDArray[Any]
    ) -> FloatArray:
        """k(x, .) with the rows kept, or those columns of a precomputed matrix."""
        if self.kernel == "precomputed":
            return dense(X[:, columns])
        return kernel_with(self, gamma, X, vectors)

    def _values(
        self, X: Any, vectors: Any, columns: NDArray[Any], coef: FloatArray, gamma: float | None
    ) -> FloatArray:
        """K(X, vectors) @ coef, some rows at a time."""
        chunk = max(1, PREDICT_ENTRIES // max(1, len(columns)))
        parts = [
            self._kernel_values(X[start : start + chunk], gamma, vectors, columns) @ coef
            for start in range(0, X.shape[0], chunk)
        ]
        return np.concatenate(parts)

    def _feature_values(self, X: Any, fmap: FeatureMap, weights: FloatArray) -> FloatArray:
        """z(X) @ weights, some rows at a time."""
        chunk = max(1, PREDICT_ENTRIES // fmap.n_components)
        parts = [
            fmap.transform(X[start : start + chunk]) @ weights
            for start in range(0, X.shape[0], chunk)
        ]
        return np.concatenate(parts)

    # ---- intervals ----------------------------------------------------------------------------

    def _kind_of_models(self, method: str) -> str:
        """Of folds or of rows; with features there are no models without each row."""
        if method != "cv+" and self.approx is not None:
            raise UnsupportedError(
                f"with approx, intervals come from the models of folds: use method='cv+', not "
                f"{method!r}"
            )
        return "folds" if method == "cv+" else "rows"

    def _interval_folds(self, method: str, tuning: NumberTuning) -> Folds:
        """All rows once: one at a time for the jackknife, else the folds of ``cv`` or ten."""
        n = len(tuning.y)
        if method != "cv+":
            return leave_one_out_folds(n)
        folds, tests = tuning.folds, tuning.folds.pair_rows
        once = len(tests) == n and len(np.unique(tests)) == n
        if once and not folds.leave_one_out:
            return folds
        blank, seed = np.zeros((n, 1)), self.random_state
        return folds_among(
            np.arange(n), n, min(INTERVAL_FOLDS, n), blank, tuning.y, None, seed, stratify=False
        )

    def _models(self, method: str, tuned: NumbersTuned, folds: Folds) -> FoldModels:
        with Workers(checks.check_n_threads(self.n_jobs)) as workers:
            return tuned.tuning.models(tuned.curve, tuned.point, folds, workers)

    def _model_values(
        self, X: Any, models: FoldModels, gamma: float | None, fmap: FeatureMap | None
    ) -> FloatArray:
        """(m, F): every fold's model at new rows."""
        coef = np.ascontiguousarray(models.coef.T)
        if fmap is not None:
            values = self._feature_values(X, fmap, coef)
        else:
            values = self._values(X, self._rows, self._kept_rows, coef, gamma)
        return np.asarray(values + models.intercept)

    # ---- scikit-learn's conventions -----------------------------------------------------------

    def get_metadata_routing(self) -> MetadataRouter:
        """Groups and the like go to the splitter, sample weights to the scorer, if asked for."""
        router = MetadataRouter(owner=self).add_self_request(self)
        splits = MethodMapping().add(caller="fit", callee="split")
        splitter = self.cv if hasattr(self.cv, "get_metadata_routing") else _NO_REQUESTS
        router = router.add(splitter=splitter, method_mapping=splits)
        scorer: Any = read_number_scoring(self.scoring).call
        scores = MethodMapping().add(caller="fit", callee="score")
        scorer = scorer if hasattr(scorer, "get_metadata_routing") else _NO_REQUESTS
        return router.add(scorer=scorer, method_mapping=scores)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = bool(self._sparse)
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.target_tags.required = True
        return tags


def check_interval(coverage: Any, method: Any) -> tuple[float, str]:
    """What ``predict_interval`` is told."""
    value = checks.real("coverage", coverage, lambda x: 0 < x < 1, "a number between 0 and 1")
    return value, checks.check_choice("method", method, METHODS)


def kept_rows(X: Any, keep: NDArray[Any], precomputed: bool) -> Any:
    """The rows that models of folds need; none of a precomputed matrix."""
    return None if precomputed else X[keep]


def only_held(held: Container[str], method: str) -> InputError:
    """For a model from a file that is asked for other left-out models than the file has."""
    own = "'cv+'" if "folds" in held else "'jackknife+'"
    return InputError(
        f"this model was read from a file, which has the left-out models of {own} only, not of "
        f"{method!r}"
    )
