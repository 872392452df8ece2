"""``GridSearchCV``: scikit-learn's, with the exact engine in place of its fits."""

from __future__ import annotations

import numbers
from time import perf_counter
from typing import Any, Self

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV as _GridSearchCV
from sklearn.model_selection import ParameterGrid

from ..exceptions import InputError, InputTypeError
from .evaluate import Evaluation
from .models import read_candidates
from .scores import Scoring
from .splits import read_data
from .table import Table

__all__ = ["GridSearchCV"]


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

    Examples
    --------
    >>> import exactcv
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"C": [0.1, 1, 10, 100], "gamma": [0.01, 0.1, 1]}
    >>> search = exactcv.GridSearchCV(SVC(), grid, cv=10).fit(X, y)
    >>> search.best_params_, round(search.best_score_, 3)
    ({'C': 1, 'gamma': 0.1}, np.float64(0.98))
    """

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
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
        self.n_splits_ = data.n_splits
        if self.verbose > 0:
            print(
                f"Fitting {data.n_splits} folds for each of {len(grid)} candidates, totalling "
                f"{data.n_splits * len(grid)} fits"
            )
        scoring = Scoring.of(self.scoring, scorer, named, self.error_score)
        fit_params = routed.estimator.fit
        table = Table(data, scoring, fit_params, routed.scorer.score, len(grid))
        Evaluation(data, fit_params, table).run(candidates, self.n_jobs)
        table.check_failures()
        results = self._format_results(grid, data.n_splits, table.cells)
        self.multimetric_ = isinstance(table.cells[0]["test_scores"], dict)
        if callable(self.scoring) and self.multimetric_:
            refit_metric = self._metric_among(table.cells[0]["test_scores"])
        self.cv_results_ = results
        self.scorer_ = scorer if named is None else named
        if self.refit or not self.multimetric_:
            self._choose(results, refit_metric)
        if self.refit:
            self._refit(X, y, fit_params)
        return self

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
                raise IndexError(
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
