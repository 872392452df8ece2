"""``cross_val_predict`` and ``cross_val_score``."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.metrics import check_scoring
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from ...exceptions import InputError, Interrupted
from ...problem.checks import check_choice
from ...types import Matrix, PredictMethod, ScorerLike, Splits, Vector
from .evaluate import Evaluation, fit_on
from .models import Candidate, read_candidates
from .scores import Answer, Scoring
from .splits import Data, read_data
from .table import Table

__all__ = ["cross_val_predict", "cross_val_score"]

METHODS = get_args(PredictMethod)


def cross_val_score(
    estimator: SVC | Pipeline,
    X: Matrix,
    y: Vector | None = None,
    *,
    groups: Vector | None = None,
    scoring: ScorerLike | None = None,
    cv: Splits | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    params: Mapping[str, Any] | None = None,
    pre_dispatch: int | str | None = "2*n_jobs",
    error_score: float | Literal["raise"] = np.nan,
) -> NDArray[np.float64]:
    """scikit-learn's ``cross_val_score`` for an SVC, or a Pipeline that ends in one; faster.

    Parameters
    ----------
    estimator : SVC or Pipeline
        A setting that changes with the fold (``gamma="scale"``, a scaler in the pipeline,
        ``class_weight="balanced"``) is computed fold by fold, with a ``SlowFoldsWarning``.
    X, y, groups, scoring, cv, params, error_score
        As in scikit-learn.  Test sets may overlap (repeated k-fold) or leave rows out.
    n_jobs : int, optional
        Threads, not processes.
    verbose : int
        Above 0, show how far the work is, on standard error.
    pre_dispatch
        Taken for compatibility; there is nothing to dispatch.

    Returns
    -------
    ndarray of shape (n_splits,)

    Notes
    -----
    Ctrl-C raises ``exactcv.Interrupted`` (a KeyboardInterrupt); its ``partial`` is a masked array
    in which the splits that are not done are masked, or None if none is done.  Splits that share a
    kernel matrix are all done at the same time.

    What pays is leave-one-out, or several C with one kernel (`GridSearchCV`).  One C and k folds
    take about scikit-learn's time with two classes, and more with many small ones: each pair of
    classes is solved to 1e-8, and certified.

    Examples
    --------
    >>> import exactcv
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import LeaveOneOut
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> scores = exactcv.cross_val_score(SVC(C=10, gamma=0.1), X, y, cv=LeaveOneOut())
    >>> scores.shape, round(scores.mean(), 4)
    ((150,), np.float64(0.9667))
    """
    candidates = read_candidates(estimator, [None])
    if scoring is not None and not isinstance(scoring, str) and not callable(scoring):
        raise InputError("scoring must be one scorer here: None, a name or a callable")
    scorer = check_scoring(estimator, scoring)
    routed = _route("cross_val_score", estimator, cv, scorer, groups, params)
    data = read_data(X, y, cv, routed["split"])
    table = Table(
        data, Scoring.of(scoring, scorer, None, error_score), routed["fit"], routed["score"], 1
    )
    try:
        Evaluation(data, routed["fit"], table).run(candidates, n_jobs, show_progress=verbose > 0)
    except KeyboardInterrupt as stop:
        scores = [cell["test_scores"] if cell else np.nan for cell in table.cells]
        missing = [not cell for cell in table.cells]
        raise _interrupted(np.ma.masked_array(scores, missing), data, sum(missing)) from stop
    table.check_failures()
    return np.array([cell["test_scores"] for cell in table.cells], dtype=float)


def cross_val_predict(
    estimator: SVC | Pipeline,
    X: Matrix,
    y: Vector | None = None,
    *,
    groups: Vector | None = None,
    cv: Splits | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    params: Mapping[str, Any] | None = None,
    pre_dispatch: int | str | None = "2*n_jobs",
    method: PredictMethod = "predict",
) -> NDArray[Any]:
    """scikit-learn's ``cross_val_predict`` for an SVC, or a Pipeline that ends in one; faster.

    Parameters
    ----------
    estimator, X, y, groups, cv, n_jobs, params
        As in `cross_val_score`; every row must be in exactly one test set.
    verbose, pre_dispatch
        As in `cross_val_score`.
    method : {"predict", "decision_function", "predict_proba", "predict_log_proba"}
        Probabilities are scikit-learn's own, at its own speed: they come from random folds inside
        each fit.  ``exactcv.SVCCV(probability=True)`` calibrates on exact left-out values.

    Returns
    -------
    ndarray of shape (n,), (n, n_classes) or (n, n_pairs)

    Notes
    -----
    Ctrl-C raises ``exactcv.Interrupted``; in its ``partial`` the rows of splits that are not done
    are masked, as in `cross_val_score`.

    Examples
    --------
    >>> import exactcv
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> predicted = exactcv.cross_val_predict(SVC(C=10, gamma=0.1), X, y, cv=10)
    >>> int((predicted != y).sum())
    3
    """
    candidates = read_candidates(estimator, [None])
    check_choice("method", method, METHODS)
    routed = _route("cross_val_predict", estimator, cv, None, groups, params)
    data = read_data(X, y, cv, routed["split"])
    tested = np.bincount(np.concatenate(data.test), minlength=data.n)
    if not (tested == 1).all():
        raise InputError(
            "cross_val_predict needs splits in which every row is tested exactly once; "
            f"row {int(np.argmax(tested != 1))} is tested {int(tested[np.argmax(tested != 1)])} "
            "times (cross_val_score takes any splits)"
        )
    receiver = _Predictions(data, routed["fit"], method)
    probability = method.startswith("predict_")
    try:
        Evaluation(data, routed["fit"], receiver).run(candidates, n_jobs, probability, verbose > 0)
    except KeyboardInterrupt as stop:
        missing = sum(part is None for part in receiver.parts)
        raise _interrupted(receiver.so_far(), data, missing) from stop
    return receiver.in_order()


class _Predictions:
    """Receives one candidate's answers and puts them in the order of the rows."""

    def __init__(self, data: Data, fit_params: Mapping[str, Any], method: str):
        self.data, self.fit_params, self.method = data, fit_params, method
        self.labels_suffice = method == "predict"
        self.parts: list[Any] = [None] * data.n_splits

    def answers(self, splits: Sequence[int], answer: Answer, seconds: float) -> None:
        start = 0
        for split in splits:
            stop = start + len(self.data.test[split])
            self._take(split, answer.part(slice(start, stop)))
            start = stop

    def _take(self, split: int, answer: Answer) -> None:
        if self.method == "predict":
            self.parts[split] = self.data.classes[answer.codes()]
        else:
            self.parts[split] = self._all_classes(answer.decision(), answer.present)

    def fit_by_scikit_learn(self, candidate: Candidate, split: int) -> None:
        model = fit_on(self.data, self.fit_params, candidate, split)
        X, _ = self.data.part(split, "test", candidate.pairwise)
        found = getattr(model, self.method)(X)
        if self.method != "predict":
            present = np.searchsorted(self.data.classes, model.classes_)
            found = self._all_classes(found, present)
        self.parts[split] = found

    def _all_classes(self, found: NDArray[Any], present: NDArray[np.intp]) -> NDArray[Any]:
        """One column a class, also for classes that the training rows lack, as in scikit-learn."""
        n_classes = len(self.data.classes)
        if len(present) == n_classes:
            return found
        warnings.warn(
            f"a training set has {len(present)} of {n_classes} classes; the others get the least "
            "number there is: use stratified folds",
            RuntimeWarning,
            stacklevel=2,
        )
        if found.ndim != 2 or found.shape[1] != len(present):
            raise InputError(
                f"a training set has only {len(present)} of {n_classes} classes, so its decision "
                "values do not fit those of other folds: use stratified folds"
            )
        least = 0.0 if self.method == "predict_proba" else np.finfo(found.dtype).min
        wide = np.full((len(found), n_classes), least, dtype=found.dtype)
        wide[:, present] = found
        return wide

    def in_order(self) -> NDArray[Any]:
        """All rows; every split has been answered."""
        return np.asarray(self.so_far())

    def so_far(self) -> Any:
        """A masked array: rows whose split has no answer yet are masked."""
        done = [f for f, part in enumerate(self.parts) if part is not None]
        if not done:
            return np.ma.masked_all(self.data.n)
        found = np.concatenate([self.parts[f] for f in done])
        ordered = np.ma.masked_all((self.data.n, *found.shape[1:]), dtype=found.dtype)
        ordered[np.concatenate([self.data.test[f] for f in done])] = found
        return ordered


def _interrupted(so_far: Any, data: Data, missing: int) -> Interrupted:
    """Ctrl-C, with the splits that were done by then."""
    if missing == data.n_splits:
        return Interrupted("interrupted before the first split was done")
    return Interrupted(
        f"interrupted with {data.n_splits - missing} of {data.n_splits} splits done; the `partial` "
        "of this exception is a masked array with their results",
        so_far,
    )


def _route(
    owner: str, estimator: Any, cv: Any, scorer: Any, groups: Any, params: Mapping[str, Any] | None
) -> dict[str, dict[str, Any]]:
    """Which parameters go to the splitter, to fit and to the scorer."""
    params = dict(params or {})
    if not get_config().get("enable_metadata_routing"):
        return {"split": {"groups": groups}, "fit": params, "score": {}}
    if groups is not None:
        raise InputError("with metadata routing enabled, pass groups in params")
    router = MetadataRouter(owner=owner)
    router.add(splitter=cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
    router.add(estimator=estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
    if scorer is not None:
        router.add(scorer=scorer, method_mapping=MethodMapping().add(caller="fit", callee="score"))
    routed = process_routing(router, "fit", **params)
    score = routed.scorer.score if scorer is not None else {}
    return {"split": routed.splitter.split, "fit": routed.estimator.fit, "score": score}
