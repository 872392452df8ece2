"""Any scikit-learn scorer on left-out values, pooled over all folds.

Leave-one-out tests one row a fold, where an AUC or a correlation has no meaning; so all left-out
values are put together first and scored once.  A stand-in classifier hands the stored values to the
scorer, which needs to know nothing of this: ``predict`` gives the left-out labels,
``decision_function`` the left-out decision values, and ``predict_proba`` sigmoid probabilities.

The probabilities come from sigmoids (``calibration.py``) fitted to the same left-out values that
are then scored.  The values are honest, but the two parameters of each sigmoid have seen them, so
log-loss and Brier score are too good by about two parameters' worth: a matter of 1/n.
"""

from __future__ import annotations

import inspect
import numbers
import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring, get_scorer

from ..exceptions import InputError, InputTypeError
from ..runtime.user_line import user_level
from ..tolerances import TIE
from ..types import FloatArray, IntArray
from .calibration import Sigmoid, couple, fit_sigmoid, raise_winners
from .one_vs_one import ovo_columns, ovr_columns, votes_of

__all__ = [
    "PAIRS",
    "LeftOut",
    "Scorer",
    "chance_score",
    "check_defined",
    "fit_sigmoids",
    "jackknife_se",
    "read_scoring",
    "shaped",
    "stand_in",
    "warn_if_flat",
    "with_ties",
]

# Parts of the data that are set aside in turn to see how much a score varies.
JACKKNIFE_PARTS = 20

PAIRS = "leave_pair_out_auc"

Score = Callable[..., float]


class Scorer:
    """What ``scoring`` stands for.

    Attributes
    ----------
    call : callable or None
        None for plain accuracy, which needs no scorer.
    labels_only : bool
        Is the left-out label all that it asks for?
    pairs : bool
        Is it the leave-pair-out AUC?  ``call`` is then the AUC, for new rows.
    """

    def __init__(self, scoring: Any, call: Score | None):
        self.name = scoring
        self.call = call
        self.pairs = isinstance(scoring, str) and scoring == PAIRS
        wanted = getattr(call, "_response_method", None)
        self.labels_only = call is None or wanted in ("predict", ("predict",))

    @property
    def needs_rows(self) -> bool:
        """May it look at more than predictions?  Scorers that scikit-learn has made do not."""
        return self.call is not None and not hasattr(self.call, "_score_func")

    def tests_of(self, X: Any, rows: IntArray) -> Any:
        """The rows of X that are tested; as many of nothing if it does not look at them."""
        return X[rows] if self.needs_rows else stand_in(len(rows))

    @property
    def needs_probability(self) -> bool:
        """May it ask for probabilities?  Of those that name several answers it takes the first."""
        if self.labels_only:
            return False
        wanted = getattr(self.call, "_response_method", None)
        first = wanted if isinstance(wanted, str) or not wanted else wanted[0]
        return first != "decision_function"

    @property
    def shown_name(self) -> str | None:
        """For reports; None for accuracy."""
        return None if self.call is None else str(getattr(self.name, "__name__", self.name))

    def takes_weights(self) -> bool:
        """Can the scorer use sample weights?"""
        target: Any = getattr(self.call, "_score_func", self.call)
        try:
            names = inspect.signature(target).parameters
        except (TypeError, ValueError):
            return False
        return "sample_weight" in names


def read_scoring(scoring: Any) -> Scorer:
    """The scorer of a name, a callable (estimator, X, y), or None for accuracy."""
    if scoring is None or (isinstance(scoring, str) and scoring == "accuracy"):
        return Scorer("accuracy", None)
    if isinstance(scoring, str):
        try:
            return Scorer(scoring, get_scorer("roc_auc" if scoring == PAIRS else scoring))
        except (ValueError, KeyError) as error:
            raise InputError(
                f"scoring={scoring!r} is not known; see sklearn.metrics.get_scorer_names(), or use "
                f"{PAIRS!r}"
            ) from error
    if callable(scoring):
        try:
            return Scorer(scoring, check_scoring(_Anything(), scoring))
        except ValueError as error:
            raise InputError(f"scoring cannot be used: {error}") from error
    raise InputTypeError(
        f"scoring must be a name, a callable scorer(estimator, X, y) or None, got {scoring!r}; "
        "several scores at once are not offered"
    )


class _Anything(BaseEstimator):
    """What ``check_scoring`` wants to see."""

    def fit(self, X: Any, y: Any) -> _Anything:
        return self


class LeftOut(ClassifierMixin, BaseEstimator):
    """A fitted classifier that knows its left-out values by heart, whatever X it is shown.

    Parameters
    ----------
    classes : (k,)
    codes, labels : (T,)
        True and predicted class numbers.
    decision : (T, P) or None
        Pair decisions, positive for the second class.
    weight : (T,)
    shape : {"ovr", "ovo"}
    sigmoids : list of Sigmoid or None
        What makes probabilities of decisions; None: fitted to these very values.
    """

    def __init__(
        self,
        classes: Any = None,
        codes: Any = None,
        labels: Any = None,
        decision: Any = None,
        weight: Any = None,
        shape: str = "ovr",
        sigmoids: Any = None,
    ):
        self.classes = classes
        self.codes = codes
        self.labels = labels
        self.decision = decision
        self.weight = weight
        self.shape = shape
        self.sigmoids = sigmoids

    @property
    def classes_(self) -> NDArray[Any]:
        return np.asarray(self.classes)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> LeftOut:
        """Nothing to learn."""
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        self._check(X)
        return self.classes_[self.labels]

    def decision_function(self, X: Any) -> FloatArray:
        self._check(X)
        return with_ties(shaped(self.decision, len(self.classes_), self.shape))

    def predict_proba(self, X: Any) -> FloatArray:
        self._check(X)
        return self._probabilities

    @cached_property
    def _probabilities(self) -> FloatArray:
        sigmoids = self.sigmoids
        if sigmoids is None:
            sigmoids = fit_sigmoids(self.decision, self.codes, len(self.classes_), self.weight)
        return probabilities(self.decision, sigmoids, len(self.classes_))

    def _check(self, X: Any) -> None:
        if np.shape(X)[0] != len(self.codes):
            raise InputError(
                f"the scorer asks for {np.shape(X)[0]} rows, but left-out values exist for the "
                f"{len(self.codes)} tested rows as a whole; a scorer must use X as it is given"
            )

    def part(self, chosen: Any) -> LeftOut:
        """The same for some of the tests."""
        decision = None if self.decision is None else self.decision[chosen]
        parts = (self.codes[chosen], self.labels[chosen], decision, self.weight[chosen])
        return LeftOut(self.classes, *parts, self.shape, self.sigmoids)

    def score_with(self, scorer: Scorer, X: Any, arguments: dict[str, Any]) -> float:
        """The pooled score; NaN where it is not defined."""
        if scorer.call is None:
            return float(np.average(self.labels == self.codes, weights=self.weight))
        try:
            value: Any = scorer.call(self, X, self.classes_[self.codes], **arguments)
        except InputError:
            raise
        except (TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"scoring={scorer.name!r} failed on left-out values: {error}"
                + _advice(scorer.name, str(error), self.classes_)
            ) from error
        if not isinstance(value, numbers.Real):
            raise InputTypeError(f"scoring={scorer.name!r} gave {value!r}; it must give a number")
        return float(value)


def stand_in(n: int) -> FloatArray:
    """As many rows of nothing, for what counts rows and does not look at them."""
    return np.broadcast_to(np.zeros(1), (n, 1))


def shaped(decision: FloatArray, n_classes: int, shape: str) -> FloatArray:
    """Pair decisions as ``decision_function`` shows them: one column if there are two classes."""
    if n_classes == 2:
        return np.asarray(decision[..., 0])
    return ovr_columns(decision, n_classes) if shape == "ovr" else ovo_columns(decision)


def _advice(name: Any, error: str, classes: NDArray[Any]) -> str:
    """What to do where a score has no use for classes, or does not know which class it is about."""
    if "could not convert string to float" in error:
        return "; it seems to be a score of numbers, not of classes"
    base = name.partition("_")[0] if isinstance(name, str) else ""
    if base not in ("f1", "precision", "recall", "jaccard"):
        return ""
    average = f"scoring='{base}_macro' (the mean over the classes)"
    if "pos_label" not in error:
        return f"; use {average}" if "average=" in error else ""
    label = classes.tolist()[-1]
    return (
        f"; say which class it is about, scoring=sklearn.metrics.make_scorer({base}_score, "
        f"pos_label={label!r}), or use {average}"
    )


def check_defined(score: FloatArray, scoring: Any, where: str = "") -> None:
    """Refuse a score that no grid point has."""
    if np.isnan(score).all():
        name = getattr(scoring, "__name__", None) or repr(scoring)
        raise InputError(
            f"scoring={name} is NaN at every grid point{where}: it is not defined for the rows "
            "that are tested (an AUC needs both classes among them, R2 two rows); use another "
            "scorer, other folds or more rows"
        )


def fit_sigmoids(
    decision: FloatArray, codes: NDArray[np.integer], n_classes: int, weight: FloatArray
) -> list[Sigmoid]:
    """One sigmoid a pair, from the left-out values of the rows of its two classes."""
    sigmoids = []
    first, second = np.triu_indices(n_classes, 1)
    prior = 1.0 / (n_classes - 1)
    for p, (a, b) in enumerate(zip(first, second, strict=True)):
        mine = (codes == a) | (codes == b)
        sigmoids.append(fit_sigmoid(decision[mine, p], codes[mine] == b, weight[mine], prior))
    return sigmoids


def warn_if_flat(sigmoids: list[Sigmoid], classes: NDArray[Any]) -> None:
    """Say that probabilities do not depend on the row, or hardly."""
    flat = [p for p, sigmoid in enumerate(sigmoids) if sigmoid.slope == 0.0]
    if not flat:
        return
    where = ""
    if len(sigmoids) > 1:
        first, second = np.triu_indices(len(classes), 1)
        names = [f"{classes[first[p]]} and {classes[second[p]]}" for p in flat[:3]]
        more = f" and {len(flat) - 3} more pairs" if len(flat) > 3 else ""
        where = f" between {', '.join(names)}{more}"
    warnings.warn(
        f"the left-out decision values{where} carry no information on the class: they are no "
        "better than chance, so predict_proba gives every row the same probability there",
        UserWarning,
        stacklevel=6,
    )


def probabilities(decision: FloatArray, sigmoids: list[Sigmoid], n_classes: int) -> FloatArray:
    """Class probabilities (n, k) from pair decisions (n, P)."""
    pairwise = np.column_stack([s(decision[:, p]) for p, s in enumerate(sigmoids)])
    if n_classes == 2:
        return np.column_stack([1.0 - pairwise[:, 0], pairwise[:, 0]])
    return raise_winners(couple(pairwise, n_classes), votes_of(decision, n_classes))


def chance_score(
    classes: NDArray[Any],
    codes: NDArray[np.integer],
    weight: FloatArray,
    scorer: Scorer,
    X: Any,
    arguments: dict[str, Any],
) -> float | None:
    """The best score of predictions that tell nothing: one class, and one value, for every row.

    None if the scorer cannot judge such predictions.

    Examples
    --------
    >>> codes = np.array([0, 0, 0, 1])
    >>> rows = np.zeros((4, 1))
    >>> chance_score(np.array([0, 1]), codes, np.ones(4), read_scoring("roc_auc"), rows, {})
    0.5
    """
    k = len(classes)
    same = np.zeros((len(codes), k * (k - 1) // 2))
    found = []
    for label in range(k):
        stand_in = LeftOut(classes, codes, np.full(len(codes), label), same, weight)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of classes that are never predicted
            try:
                found.append(stand_in.score_with(scorer, X, arguments))
            except InputError:
                return None
    finite = [score for score in found if np.isfinite(score)]
    return max(finite, default=None)


def jackknife_se(
    left_out: LeftOut, scorer: Scorer, X: Any, arguments: dict[str, Any], folds_of: IntArray
) -> float:
    """How much a pooled score would vary: the delete-a-part jackknife over groups of folds.

    With s_j the score without part j of g, sqrt((g - 1) / g sum_j (s_j - mean s)^2).
    """
    n_parts = min(JACKKNIFE_PARTS, int(folds_of.max()) + 1)
    if n_parts < 2:
        return float("nan")
    scores = []
    for part in range(n_parts):
        chosen = np.flatnonzero(folds_of % n_parts != part)
        own = {name: value[chosen] for name, value in arguments.items()}
        scores.append(left_out.part(chosen).score_with(scorer, X[chosen], own))
    spread = np.asarray(scores) - np.mean(scores)
    return float(np.sqrt((n_parts - 1) / n_parts * (spread @ spread)))


def warn_of_weights(scorer: Scorer) -> None:
    warnings.warn(
        f"scoring={scorer.name!r} takes no sample_weight: its scores are unweighted",
        UserWarning,
        stacklevel=user_level(),
    )


def with_ties(values: FloatArray) -> FloatArray:
    """Values that differ by rounding alone made equal, column by column.

    Equal rows have equal decision values but for the last digits; a scorer that ranks them (AUC,
    average precision) must see a tie.  Neighbours in order that are at most ``TIE`` apart, relative
    to values above 1, are one value.

    Examples
    --------
    >>> bool(np.ptp(with_ties(np.array([0.3, 0.3 + 1e-15, 0.3 - 1e-15]))) == 0.0)
    True
    """
    columns = values.reshape(len(values), -1)
    merged = np.empty_like(columns)
    for k, column in enumerate(columns.T):
        order = np.argsort(column, kind="stable")
        ranked = column[order]
        apart = np.diff(ranked) > TIE * np.maximum(1.0, np.abs(ranked[1:]))
        first = np.flatnonzero(np.r_[True, apart])
        merged[order, k] = np.repeat(ranked[first], np.diff(np.r_[first, len(ranked)]))
    return merged.reshape(values.shape)
