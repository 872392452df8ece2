"""``GridSearchCV``: scikit-learn's, with the exact engine in place of its fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import nan
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, Self

from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection import GridSearchCV as _GridSearchCV
from sklearn.model_selection import ParameterGrid, check_cv
from sklearn.utils import indexable

from ...exceptions import InputError, Interrupted
from ...problem.inputs import noting_cells
from ...types import FloatArray, Matrix, ScorerLike, Splits, Vector
from .evaluate import Evaluation
from .models import Candidate, Foreign, read_candidates
from .plan import warn_of_reasons
from .scores import Scoring
from .splits import Data, copy_of_rows, read_data
from .table import Call, Table
from .takeover import why_not_call, writes

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline
    from sklearn.svm import SVC, SVR

__all__ = ["GridSearchCV"]

# Attributes that not every fit sets.
OF_A_FIT = (
    "best_index_",
    "best_score_",
    "best_params_",
    "best_estimator_",
    "refit_time_",
    "feature_names_in_",
)


class GridSearchCV(_GridSearchCV):
    """scikit-learn's ``GridSearchCV`` for an SVC or SVR, or a Pipeline that ends in one; faster.

    All C with the same kernel are computed together, over one kernel matrix, for all folds.  The
    constructor, the attributes and the methods are scikit-learn's; the answers are its own but for
    its solver's tolerance (1e-3; here 1e-8).

    Parameters
    ----------
    estimator : SVC, SVR or Pipeline
        Settings that change with the fold (``gamma="scale"``, a scaler in the pipeline,
        ``class_weight="balanced"``) are computed fold by fold, with a ``SlowFoldsWarning`` that
        names the faster alternative.  Anything else, subclasses too, goes to scikit-learn's own
        search, with the same warning.
    param_grid : dict or list of dicts
    scoring, refit, cv, error_score, return_train_score
        As in scikit-learn.
    n_jobs : int, optional
        Threads, not processes.
    verbose : int
        Above 0, show how far the search is, on standard error.
    pre_dispatch
        Taken for compatibility; there is nothing to dispatch.

    Attributes
    ----------
    cv_results_ : dict
        As in scikit-learn.  Candidates are fitted together: ``mean_fit_time`` is the time of
        their group, divided evenly among its candidates and splits.
    best_estimator_, best_params_, best_index_, best_score_, refit_time_, scorer_, n_splits_, \
multimetric_
        As in scikit-learn; ``best_estimator_`` is scikit-learn's SVC (or Pipeline), fitted to all
        rows.

    Notes
    -----
    Ctrl-C during ``fit`` raises ``exactcv.Interrupted`` (a KeyboardInterrupt).  If some candidates
    are done by then, with all folds, ``cv_results_`` holds these and the search is fitted to the
    best of them; it is also the ``partial`` of the exception.  All C with one kernel are done at
    the same time.

    Examples
    --------
    >>> import exactcv
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"C": [0.1, 1, 10, 100], "gamma": [0.01, 0.1, 1]}
    >>> search = exactcv.GridSearchCV(SVC(), grid, cv=10).fit(X, y)
    >>> search.best_params_, round(float(search.best_score_), 3)
    ({'C': 10, 'gamma': 0.01}, 0.98)
    """

    if TYPE_CHECKING:  # scikit-learn's own, which has no types
        cv_results_: dict[str, Any]
        best_estimator_: SVC | SVR | Pipeline
        best_params_: dict[str, Any]
        best_index_: int
        best_score_: float
        refit_time_: float
        scorer_: Any
        n_splits_: int
        multimetric_: bool

        def __init__(
            self,
            estimator: SVC | SVR | Pipeline,
            param_grid: Mapping[str, Any] | Sequence[Mapping[str, Any]],
            *,
            scoring: ScorerLike | Iterable[str] | Mapping[str, ScorerLike] | None = None,
            n_jobs: int | None = None,
            refit: bool | str | Callable[[dict[str, Any]], int] = True,
            cv: Splits | None = None,
            verbose: int = 0,
            pre_dispatch: int | str | None = "2*n_jobs",
            error_score: float | Literal["raise"] = nan,
            return_train_score: bool = False,
        ) -> None: ...
        def predict(self, X: Matrix) -> NDArray[Any]: ...
        def decision_function(self, X: Matrix) -> FloatArray: ...
        def predict_proba(self, X: Matrix) -> FloatArray: ...
        def predict_log_proba(self, X: Matrix) -> FloatArray: ...
        def score(self, X: Matrix, y: Vector | None = None, **params: Any) -> float: ...

    def fit(self, X: Matrix, y: Vector | None = None, **params: Any) -> Self:
        """Evaluate all candidates, then fit the best to all rows.

        Parameters
        ----------
        X, y
        **params
            For ``fit`` (for example ``sample_weight``), ``groups`` for the splitter.
        """
        self._validate_params()
        with noting_cells(X, y):
            return self._search(X, y, params)

    def _search(self, X: Any, y: Any, params: Mapping[str, Any]) -> Self:
        candidates = self._candidates(X, y)
        if candidates is None:
            return super().fit(copy_of_rows(X) if self._overwrites() else X, y, **params)
        scorer, refit_metric = self._get_scorers()
        X, y = indexable(X, y)
        routed = self._get_routed_params_for_fit(params)
        data = self._read(X, y, routed.splitter.split)
        if self.verbose > 0:
            print(
                f"Fitting {data.n_splits} folds for each of {len(candidates)} candidates, "
                f"totalling {data.n_splits * len(candidates)} fits"
            )
        named = getattr(scorer, "_scorers", None)
        numeric = is_regressor(self.estimator)
        scoring = Scoring.of(self.scoring, scorer, named, self.error_score, numeric)
        fit_params = routed.estimator.fit
        call = Call(self.estimator, fit_params, routed.scorer.score, self.verbose, search=True)
        table = Table(data, scoring, call, len(candidates))
        stop = None
        try:
            Evaluation(data, fit_params, table).run(candidates, self.n_jobs, self.verbose > 0)
        except KeyboardInterrupt as interrupt:
            stop = interrupt
        done = table.finished()
        if stop is not None and not done:
            raise Interrupted("interrupted before the first candidate was done") from stop
        table.keep(done)
        self._keep_results([candidates[k].params for k in done], table, scorer, refit_metric)
        try:
            if self.refit:
                self._refit(X, y, fit_params)
        except KeyboardInterrupt as interrupt:
            stop = interrupt
        if stop is not None:
            raise Interrupted(self._how_far(len(done), len(candidates)), self) from stop
        return self

    def _candidates(self, X: Any, y: Any) -> list[Candidate | Foreign] | None:
        """All settings of the parameters, or None if scikit-learn must do the whole search."""
        if type(self) is not GridSearchCV:  # a subclass may change any part of it
            return None
        reason = why_not_call(X, y, {"self": self}, self.estimator)
        grid = list(ParameterGrid(self.param_grid)) if reason is None else []
        candidates = read_candidates(self.estimator, grid, X)
        if any(isinstance(candidate, Candidate) for candidate in candidates):
            return candidates
        reasons = [candidate.reason for candidate in candidates if isinstance(candidate, Foreign)]
        warn_of_reasons([reason or "", *reasons])
        return None

    def _overwrites(self) -> bool:
        """Could the last fit, which scikit-learn hands X itself, change it?"""
        return bool(self.refit) and writes([self.estimator, self.param_grid])

    def _read(self, X: Any, y: Any, split_params: Mapping[str, Any]) -> Data:
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        expected = cv.get_n_splits(X, y, **split_params)
        splits = list(cv.split(X, y, **split_params))
        if len(splits) != expected:
            raise InputError(
                "cv.split and cv.get_n_splits return inconsistent results. Expected "
                f"{expected} splits, got {len(splits)}"
            )
        return read_data(X, y, splits, self.return_train_score)

    def _keep_results(self, grid: list[Any], table: Table, scorer: Any, refit_metric: Any) -> None:
        """Everything but the model, for the candidates in the table."""
        for name in OF_A_FIT:  # an earlier one
            self.__dict__.pop(name, None)
        table.check_failures()
        scores, named = table.cells[0]["test_scores"], table.scoring.named
        results = self._format_results(grid, table.data.n_splits, table.cells)
        self.n_splits_ = table.data.n_splits
        self.multimetric_ = isinstance(scores, dict)
        if callable(self.scoring) and self.multimetric_:
            self._check_refit_for_multimetric(scores)
            refit_metric = self.refit
        self.cv_results_ = results
        self.scorer_ = scorer if named is None else named
        if self.refit or not self.multimetric_:
            self.best_index_ = self._select_best_index(self.refit, refit_metric, results)
            if not callable(self.refit):
                self.best_score_ = results[f"mean_test_{refit_metric}"][self.best_index_]
            self.best_params_ = results["params"][self.best_index_]

    def _how_far(self, n_done: int, n_candidates: int) -> str:
        fitted = hasattr(self, "best_estimator_")
        model = "is fitted to the best of them" if fitted else "has their results, but no model"
        return (
            f"interrupted with {n_done} of {n_candidates} candidates done; the search {model}, and "
            "is the `partial` of this exception"
        )

    def _refit(self, X: Any, y: Any, fit_params: Mapping[str, Any]) -> None:
        model = clone(self.estimator).set_params(**clone(self.best_params_, safe=False))
        start = perf_counter()
        self.best_estimator_ = model.fit(copy_of_rows(X) if writes(model) else X, y, **fit_params)
        self.refit_time_ = perf_counter() - start
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
