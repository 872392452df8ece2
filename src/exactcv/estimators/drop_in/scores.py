"""Scores from left-out values: scikit-learn's scorers on a stand-in for each fold's model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, r2_score
from sklearn.metrics._scorer import _MultimetricScorer
from sklearn.model_selection._validation import _score

from ...crossval.one_vs_one import ovo_columns, ovr_columns
from ...crossval.scoring import with_ties
from ...types import FloatArray, IntArray
from .models import Candidate

__all__ = ["Answer", "NumbersStandIn", "Scoring", "StandIn"]

# Scorers that need nothing but the share of correct labels; None is SVC's own score.
ACCURACY = (None, "accuracy")


@dataclass(frozen=True)
class Answer:
    """One candidate's answers on some rows, by a model trained on the classes ``present``.

    ``labels`` are indices into ``present``, ``values`` has one column a pair of those classes (see
    ``crossval/one_vs_one.py``), or is None where labels are all that was asked for.
    """

    candidate: Candidate
    values: FloatArray | None
    labels: IntArray
    present: IntArray

    def predicted(self, classes: NDArray[Any]) -> NDArray[Any]:
        """What the model's ``predict`` gives: labels out of all classes, or numbers."""
        if self.candidate.numeric:
            assert self.values is not None
            return self.values[:, 0]
        return classes[self.codes()]

    def codes(self) -> IntArray:
        """Predicted labels as indices into all classes."""
        if self.candidate.svc.break_ties and len(self.present) > 2:
            return self.present[self.decision().argmax(axis=1)]
        return self.present[self.labels]

    def decision(self) -> FloatArray:
        """As SVC's ``decision_function``."""
        assert self.values is not None
        if len(self.present) == 2:
            return self.values[:, 0]
        if self.candidate.svc.decision_function_shape == "ovo":
            return ovo_columns(self.values)
        return ovr_columns(self.values, len(self.present))

    def part(self, rows: slice) -> Answer:
        values = None if self.values is None else self.values[rows]
        return Answer(self.candidate, values, self.labels[rows], self.present)


class StandIn:
    """Answers for one fold's fitted model on the rows whose answers are known.

    Whatever else a scorer asks of it (other rows, probabilities, fitted attributes) comes from
    scikit-learn's own fit, made when first needed.
    """

    _estimator_type = "classifier"

    if not TYPE_CHECKING:  # mypy takes __class__ for an attribute that can be set

        @property
        def __class__(self) -> type:
            """What a scorer may ask with ``isinstance``."""
            return type(self._candidate.estimator)

    def __init__(
        self,
        answers: list[tuple[Any, Answer]],
        classes: NDArray[Any],
        fit: Callable[[], Any],
    ):
        self._answers, self._classes, self._fit = answers, classes, fit
        self._candidate = answers[0][1].candidate
        self._model: Any = None

    @property
    def classes_(self) -> NDArray[Any]:
        return self._classes[self._answers[0][1].present]

    def predict(self, X: Any) -> NDArray[Any]:
        answer = self._known(X)
        return self._fitted().predict(X) if answer is None else answer.predicted(self._classes)

    def decision_function(self, X: Any) -> FloatArray:
        answer = self._known(X)
        return (
            self._fitted().decision_function(X) if answer is None else with_ties(answer.decision())
        )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return dict(self._candidate.estimator.get_params(deep))

    def __sklearn_tags__(self) -> Any:
        return self._candidate.estimator.__sklearn_tags__()

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_answers", "_candidate", "_model"):
            raise AttributeError(name)
        if not name.endswith("_"):
            getattr(self._candidate.estimator, name)  # what it has not, this has not either
        return getattr(self._fitted(), name)

    def _known(self, X: Any) -> Answer | None:
        return next((answer for known, answer in self._answers if known is X), None)

    def _fitted(self) -> Any:
        if self._model is None:
            self._model = self._fit()
        return self._model


class NumbersStandIn(StandIn):
    """The same for a model of numbers, which has no classes and no decision function."""

    _estimator_type = "regressor"

    @property
    def classes_(self) -> NDArray[Any]:
        raise AttributeError("classes_")

    @property
    def decision_function(self) -> Any:
        raise AttributeError("decision_function")

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        return float(r2_score(y, self.predict(X), sample_weight=sample_weight))


@dataclass(frozen=True)
class Scoring:
    """One scorer, or several by name, and what a failure counts.

    ``plain`` names the scorers that are plain accuracy ("score" for a single one).
    """

    scorer: Any
    named: Mapping[str, Any] | None
    plain: frozenset[str]
    error_score: Any

    @classmethod
    def of(
        cls, scoring: Any, scorer: Any, named: Any, error_score: Any, numeric: bool = False
    ) -> Scoring:
        if numeric:
            return cls(scorer, named, frozenset(), error_score)
        wanted = {"score": scoring}
        if named is not None:
            pairs = scoring.items() if isinstance(scoring, Mapping) else ((s, s) for s in scoring)
            wanted = dict(pairs)
        plain = {
            k for k, v in wanted.items() if v is None or (isinstance(v, str) and v in ACCURACY)
        }
        return cls(scorer, named, frozenset(plain), error_score)

    @property
    def labels_suffice(self) -> bool:
        """Is everything asked for an accuracy?"""
        return set(self.named or ["score"]) == self.plain

    def of_model(
        self, model: Any, X: Any, y: Any, params: Mapping[str, Any], skip: Any = ()
    ) -> Any:
        """Scores of a fitted model's stand-in; ``skip`` names those known already."""
        scorer = self.scorer
        if self.named is not None and skip:
            wanted = {name: one for name, one in self.named.items() if name not in skip}
            scorer = _MultimetricScorer(scorers=wanted, raise_exc=self.error_score == "raise")
        return _score(model, X, y, scorer, dict(params), self.error_score)


def accuracies(
    correct: NDArray[np.bool_], bounds: IntArray, weight: FloatArray | None
) -> FloatArray:
    """The share of correct rows in each stretch bounds[s, 0] : bounds[s, 1]."""
    if weight is None:
        so_far = np.concatenate([[0], np.cumsum(correct)])
        counts = so_far[bounds[:, 1]] - so_far[bounds[:, 0]]
        return np.asarray(counts / (bounds[:, 1] - bounds[:, 0]))
    shares = [np.average(correct[start:stop], weights=weight[start:stop]) for start, stop in bounds]
    return np.array(shares)
