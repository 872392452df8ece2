"""``cross_val_predict`` and ``cross_val_score``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.model_selection import cross_val_predict as _cross_val_predict
from sklearn.model_selection import cross_val_score as _cross_val_score
from sklearn.model_selection._validation import (
    _check_is_permutation,
    _enforce_prediction_order,
    _fit_and_predict,
)
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, SVR
from sklearn.utils import indexable
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from ...exceptions import InputError, Interrupted
from ...problem.inputs import noting_cells
from ...types import Matrix, PredictMethod, ScorerLike, Splits, Vector
from .evaluate import Evaluation
from .models import Candidate, Foreign, Setting, read_candidates
from .plan import warn_of_reasons
from .scores import Answer, Scoring
from .splits import Data, read_data
from .table import Call, Table
from .takeover import why_not_call

__all__ = ["cross_val_predict", "cross_val_score"]

PROBABILITIES = (
    "probabilities come from scikit-learn's own fits, which draw random folds inside; "
    "exactcv.SVCCV(probability=True) calibrates on exact left-out values instead"
)


def cross_val_score(
    estimator: SVC | SVR | Pipeline,
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
    """scikit-learn's ``cross_val_score`` for an SVC, SVR or Pipeline that ends in one; faster.

    Parameters
    ----------
    estimator : SVC, SVR or Pipeline
        A setting that changes with the fold (``gamma="scale"``, a scaler in the pipeline,
        ``class_weight="balanced"``) is computed fold by fold, with a ``SlowFoldsWarning``.
        Anything else, subclasses too, goes to scikit-learn's own function, with the same warning.
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
    take half of scikit-learn's time with two classes, and about as long with many small ones: each
    pair of classes is solved to 1e-8, and certified.

    Examples
    --------
    >>> import exactcv
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import LeaveOneOut
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> scores = exactcv.cross_val_score(SVC(C=10, gamma=0.1), X, y, cv=LeaveOneOut())
    >>> scores.shape, round(float(scores.mean()), 4)
    ((150,), 0.9667)
    """
    arguments = dict(locals())
    with noting_cells(X, y):
        return _scores(arguments)


def cross_val_predict(
    estimator: SVC | SVR | Pipeline,
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
    """scikit-learn's ``cross_val_predict`` for an SVC, SVR or Pipeline that ends in one; faster.

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
    arguments = dict(locals())
    with noting_cells(X, y):
        return _predictions(arguments)


def _scores(arguments: dict[str, Any]) -> NDArray[np.float64]:
    ours = _ours(_cross_val_score, arguments)
    if ours is None:
        return _cross_val_score(**arguments)
    estimator, scoring = arguments["estimator"], arguments["scoring"]
    n_jobs, verbose, error_score = (arguments[k] for k in ("n_jobs", "verbose", "error_score"))
    scorer = check_scoring(estimator, scoring)
    several = check_scoring(estimator, {"score": scorer}, raise_exc=error_score == "raise")
    data, routed = _read(arguments, several)
    numeric = is_regressor(estimator)
    kind = Scoring.of({"score": scoring}, several, several._scorers, error_score, numeric)
    call = Call(estimator, routed["fit"], routed["score"], verbose)
    table = Table(data, kind, call, 1)
    try:
        Evaluation(data, routed["fit"], table).run(ours, n_jobs, verbose > 0)
    except KeyboardInterrupt as stop:
        scores = [cell["test_scores"]["score"] if cell else np.nan for cell in table.cells]
        missing = [not cell for cell in table.cells]
        raise _interrupted(np.ma.masked_array(scores, missing), data, sum(missing)) from stop
    table.check_failures()
    return np.array([cell["test_scores"]["score"] for cell in table.cells], dtype=float)


def _predictions(arguments: dict[str, Any]) -> NDArray[Any]:
    ours = _ours(_cross_val_predict, arguments)
    if ours is None:
        return _cross_val_predict(**arguments)
    estimator, method = arguments["estimator"], arguments["method"]
    n_jobs, verbose = arguments["n_jobs"], arguments["verbose"]
    if method != "predict":  # scikit-learn's models are then fitted to numbers
        codes = np.unique(np.asarray(arguments["y"]), return_inverse=True)[1]
        arguments = {**arguments, "y": codes}
    data, routed = _read(arguments, None)
    if not _check_is_permutation(np.concatenate(data.test), data.n):
        tested = np.bincount(np.concatenate(data.test), minlength=data.n)
        row = int(np.argmax(tested != 1))
        raise InputError(
            f"cross_val_predict only works for partitions: row {row} is tested {tested[row]} times "
            "(cross_val_score takes any splits)"
        )
    receiver = _Predictions(data, estimator, routed["fit"], method)
    try:
        Evaluation(data, routed["fit"], receiver).run(ours, n_jobs, verbose > 0)
    except KeyboardInterrupt as stop:
        missing = sum(part is None for part in receiver.parts)
        raise _interrupted(receiver.so_far(), data, missing) from stop
    return receiver.in_order()


class _Predictions:
    """Receives one candidate's answers and puts them in the order of the rows."""

    def __init__(self, data: Data, estimator: Any, fit_params: Mapping[str, Any], method: str):
        self.data, self.estimator = data, estimator
        self.fit_params, self.method = fit_params, method
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
            self.parts[split] = answer.predicted(self.data.classes)
            return
        self.parts[split] = _enforce_prediction_order(
            answer.present, answer.decision(), len(self.data.classes), self.method
        )

    def fit_by_scikit_learn(self, setting: Setting, split: int) -> bool:
        data, estimator = self.data, clone(self.estimator)
        rows = data.train[split], data.test[split]
        self.parts[split] = _fit_and_predict(
            estimator, data.X, data.y, *rows, self.fit_params, self.method
        )
        return True

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


def _ours(theirs: Any, arguments: Mapping[str, Any]) -> list[Candidate | Foreign] | None:
    """The candidate, or None if scikit-learn's function must do it; cv is not touched."""
    constraints = theirs._skl_parameter_constraints
    validate_parameter_constraints(constraints, dict(arguments), theirs.__name__)
    estimator, X = arguments["estimator"], arguments["X"]
    if str(arguments.get("method")).startswith("predict_"):
        reason: str | None = PROBABILITIES
    elif arguments["groups"] is not None and get_config().get("enable_metadata_routing"):
        reason = ""
    else:
        reason = why_not_call(X, arguments["y"], arguments, estimator)
        if is_regressor(estimator) and arguments.get("method", "predict") != "predict":
            reason = ""
    candidates = read_candidates(estimator, [None], X) if reason is None else []
    reasons = [c.reason for c in candidates if isinstance(c, Foreign)]
    if reason is None and not reasons:
        return candidates
    warn_of_reasons([reason or "", *reasons])
    return None


def _read(arguments: Mapping[str, Any], scorer: Any) -> tuple[Data, dict[str, dict[str, Any]]]:
    """The data and their splits, and who gets which parameter."""
    X, y = indexable(arguments["X"], arguments["y"])
    cv = check_cv(arguments["cv"], y, classifier=is_classifier(arguments["estimator"]))
    routed = _route({**arguments, "cv": cv}, scorer)
    return read_data(X, y, list(cv.split(X, y, **routed["split"]))), routed


def _route(arguments: Mapping[str, Any], scorer: Any) -> dict[str, dict[str, Any]]:
    """Which parameters go to the splitter, to fit and to the scorer."""
    params = dict(arguments["params"] or {})
    if not get_config().get("enable_metadata_routing"):
        return {"split": {"groups": arguments["groups"]}, "fit": params, "score": {}}
    parts = {"splitter": ("cv", "split"), "estimator": ("estimator", "fit")}
    router = MetadataRouter(owner="cross_val_predict" if scorer is None else "cross_validate")
    for part, (name, method) in parts.items():
        mapping = MethodMapping().add(caller="fit", callee=method)
        router.add(method_mapping=mapping, **{part: arguments[name]})
    if scorer is not None:
        router.add(scorer=scorer, method_mapping=MethodMapping().add(caller="fit", callee="score"))
    routed = process_routing(router, "fit", **params)
    score = routed.scorer.score if scorer is not None else {}
    return {"split": routed.splitter.split, "fit": routed.estimator.fit, "score": score}
