"""``GridSearchCV``: scikit-learn's, with the exact engine in place of its fits."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import nan
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, Self

from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV as _GridSearchCV
from sklearn.model_selection import ParameterGrid

from ...exceptions import InputError, InputIndexError, InputTypeError, Interrupted
from ...types import FloatArray, Matrix, ScorerLike, Splits, Vector
from .evaluate import Evaluation
from .models import read_candidates
from .scores import Scoring
from .splits import read_data
from .table import Table

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline
    from sklearn.svm import SVC

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
    """scikit-learn's ``GridSearchCV`` for an SVC, or a Pipeline that ends in one; faster.

    All C with the same kernel are computed together, over one kernel matrix, for all folds.  The
    constructor, the attributes and the methods are scikit-learn's; the answers are its own but for
    its solver's tolerance (1e-3; here 1e-8).

    Parameters
    ----------
    estimator : SVC or Pipeline
        Settings that change with the fold (``gamma="scale"``, a scaler in the pipeline,
        ``class_weight="balanced"``) are computed fold by fold, with a ``SlowFoldsWarning`` that
        names the faster alternative.
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
    >>> search.best_params_, round(search.best_score_, 3)
    ({'C': 10, 'gamma': 0.01}, np.float64(0.98))
    """

    if TYPE_CHECKING:  # scikit-learn's own, which has no types
        cv_results_: dict[str, Any]
        best_estimator_: SVC | Pipeline
        best_params_: dict[str, Any]
        best_index_: int
        best_score_: float
        refit_time_: float
        scorer_: Any
        n_splits_: int
        multimetric_: bool

        def __init__(
            self,
            estimator: SVC | Pipeline,
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
        grid = list(ParameterGrid(self.param_grid))
        candidates = read_candidates(self.estimator, grid)
        scorer, refit_metric = self._get_scorers()
        named = getattr(scorer, "_scorers", None)
        routed = self._get_routed_params_for_fit(params)
        data = read_data(X, y, self.cv, routed.splitter.split, self.return_train_score)
        if self.verbose > 0:
            print(
                f"Fitting {data.n_splits} folds for each of {len(grid)} candidates, totalling "
                f"{data.n_splits * len(grid)} fits"
            )
        scoring = Scoring.of(self.scoring, scorer, named, self.error_score)
        fit_params = routed.estimator.fit
        table = Table(data, scoring, fit_params, routed.scorer.score, len(grid))
        evaluation = Evaluation(data, fit_params, table)
        stop = None
        try:
            evaluation.run(candidates, self.n_jobs, show_progress=self.verbose > 0)
        except KeyboardInterrupt as interrupt:
            stop = interrupt
        done = table.finished()
        if stop is not None and not done:
            raise Interrupted("interrupted before the first candidate was done") from stop
        table.keep(done)
        self._keep_results([grid[k] for k in done], table, scorer, refit_metric)
        try:
            if self.refit:
                self._refit(X, y, fit_params)
        except KeyboardInterrupt as interrupt:
            stop = interrupt
        if stop is not None:
            raise Interrupted(self._how_far(len(done), len(grid)), self) from stop
        return self

    def _keep_results(self, grid: list[Any], table: Table, scorer: Any, refit_metric: Any) -> None:
        """Everything but the model, for the candidates in the table."""
        for name in OF_A_FIT:  # an earlier one
            self.__dict__.pop(name, None)
        table.check_failures(stacklevel=4)
        scores, named = table.cells[0]["test_scores"], table.scoring.named
        results = self._format_results(grid, table.data.n_splits, table.cells)
        self.n_splits_ = table.data.n_splits
        self.multimetric_ = isinstance(scores, dict)
        if callable(self.scoring) and self.multimetric_:
            refit_metric = self._metric_among(scores)
        self.cv_results_ = results
        self.scorer_ = scorer if named is None else named
        if self.refit or not self.multimetric_:
            self._choose(results, refit_metric)

    def _how_far(self, n_done: int, n_candidates: int) -> str:
        fitted = hasattr(self, "best_estimator_")
        model = "is fitted to the best of them" if fitted else "has their results, but no model"
        return (
            f"interrupted with {n_done} of {n_candidates} candidates done; the search {model}, and "
            "is the `partial` of this exception"
        )

    def _metric_among(self, names: Any) -> Any:
        known = self.refit is False or callable(self.refit)
        if not known and not (isinstance(self.refit, str) and self.refit in names):
            raise InputError(
                f"scoring returns several figures ({', '.join(names)}): set refit to one of them, "
                f"to a callable or to False; got refit={self.refit!r}"
            )
        return self.refit

    def _choose(self, results: dict[str, Any], metric: Any) -> None:
        if callable(self.refit):
            best = self.refit(results)
            if not isinstance(best, numbers.Integral):
                raise InputTypeError(f"refit must return the index of a candidate, got {best!r}")
            if not 0 <= int(best) < len(results["params"]):
                raise InputIndexError(
                    f"refit returned {best}; candidates are 0 to {len(results['params']) - 1}"
                )
        else:
            best = results[f"rank_test_{metric}"].argmin()
            self.best_score_ = results[f"mean_test_{metric}"][best]
        self.best_index_ = best
        self.best_params_ = results["params"][best]

    def _refit(self, X: Any, y: Any, fit_params: dict[str, Any]) -> None:
        model = clone(self.estimator).set_params(**clone(self.best_params_, safe=False))
        start = perf_counter()
        self.best_estimator_ = model.fit(X, y, **fit_params)
        self.refit_time_ = perf_counter() - start
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
