"""Scores of many grid points under many weightings of the tests, all at once.

A bootstrap sample is a weighting: a test that was drawn twice counts twice.  So the scores of S
grid points in B samples are products of a (B, T) matrix of counts with (T, S) tables of what the
left-out labels are worth; the area under the ROC curve takes a sum along the sorted values instead.
Scorers that are not among these are called once for each sample and grid point.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..exceptions import InputError
from ..types import FloatArray, IntArray
from .scoring import LeftOut, Scorer, with_ties

__all__ = ["Measure", "Tests", "is_quick", "measure_of"]


@dataclass(frozen=True)
class Tests:
    """All left-out results: S grid points, T tests.

    Attributes
    ----------
    classes : (k,)
    unit : (T,) int
        The row of each test, 0 to n - 1: what is drawn together.
    codes : (T,) int
        True classes.
    labels : (S, T) int
        Predicted ones.
    decision : (S, T, P) or None
        Pair decisions, positive for the second class.
    weight : (T,)
    shown, arguments :
        What scorers see besides: the rows tested, and one entry a test.
    shape : {"ovr", "ovo"}
    """

    classes: NDArray[Any]
    unit: IntArray
    codes: NDArray[np.integer]
    labels: NDArray[Any]
    decision: FloatArray | None
    weight: FloatArray
    shown: Any
    arguments: dict[str, Any]
    shape: str = "ovr"

    @property
    def n_units(self) -> int:
        return int(self.unit.max()) + 1

    def at(self, s: int) -> LeftOut:
        """The left-out results of one grid point, as a classifier."""
        decision = None if self.decision is None else self.decision[s]
        labels = self.labels[s].astype(np.intp)
        return LeftOut(self.classes, self.codes, labels, decision, self.weight, self.shape)


# (grid points (s,), counts (B, T)) -> scores (B, s); NaN where there is none
Measure: TypeAlias = Callable[[IntArray, FloatArray], FloatArray]


def is_quick(scorer: Scorer, n_classes: int) -> bool:
    """Is the scorer one of those that need no loop?"""
    if scorer.call is None or _by_confusion(scorer) is not None:
        return n_classes == 2 or scorer.name not in _OF_TWO_CLASSES
    return bool(scorer.name == "roc_auc") and n_classes == 2


def measure_of(tests: Tests, scorer: Scorer) -> Measure:
    """The score as a function of grid points and counts."""
    weighted = scorer.call is None or "sample_weight" in tests.arguments
    weight = tests.weight if weighted else np.ones(len(tests.codes))
    if not is_quick(scorer, len(tests.classes)) or not _positive_is_second(scorer, tests.classes):
        return _Called(tests, scorer)
    if scorer.call is None:
        return _Accuracy(tests, weight)
    if scorer.name == "roc_auc":
        return _AreaUnderCurve(tests, weight)
    score = _by_confusion(scorer)
    assert score is not None
    return _Confusion(tests, weight, score)


def _share(part: FloatArray, whole: FloatArray) -> FloatArray:
    """part / whole, NaN where there is nothing."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), np.nan))


@dataclass(frozen=True)
class _Accuracy:
    tests: Tests
    weight: FloatArray

    def __call__(self, points: IntArray, counts: FloatArray) -> FloatArray:
        right = (self.tests.labels[points] == self.tests.codes) * self.weight
        return _share(counts @ right.T, (counts @ self.weight)[:, None])


@dataclass(frozen=True)
class _AreaUnderCurve:
    """sum over (positive, negative) of their weights where the positive has the larger value."""

    tests: Tests
    weight: FloatArray

    def __call__(self, points: IntArray, counts: FloatArray) -> FloatArray:
        assert self.tests.decision is not None
        positive = np.flatnonzero(self.tests.codes == 1)
        negative = np.flatnonzero(self.tests.codes == 0)
        counts = counts * self.weight
        mine, others = counts[:, positive], counts[:, negative]
        pairs = mine.sum(axis=1) * others.sum(axis=1)
        below = np.zeros((len(counts), len(negative) + 1))
        found = np.empty((len(counts), len(points)))
        for k, s in enumerate(points):
            values = with_ties(self.tests.decision[s, :, 0])
            order = np.argsort(values[negative], kind="stable")
            ranked = values[negative[order]]
            np.cumsum(others[:, order], axis=1, out=below[:, 1:])
            less = np.searchsorted(ranked, values[positive], side="left")
            no_more = np.searchsorted(ranked, values[positive], side="right")
            won = below[:, less]
            won += below[:, no_more]
            found[:, k] = 0.5 * np.einsum("bi,bi->b", mine, won)
        return _share(found, pairs[:, None])


@dataclass(frozen=True)
class _Confusion:
    """A score that depends on the counts of (true, predicted) classes alone."""

    tests: Tests
    weight: FloatArray
    score: Callable[[FloatArray], FloatArray]

    def __call__(self, points: IntArray, counts: FloatArray) -> FloatArray:
        k, labels = len(self.tests.classes), self.tests.labels[points]
        table = np.empty((len(counts), len(points), k, k))
        for true in range(k):
            rows = np.flatnonzero(self.tests.codes == true)
            part = counts[:, rows] * self.weight[rows]
            for predicted in range(k):
                table[:, :, true, predicted] = part @ (labels[:, rows] == predicted).T
        return self.score(table)


def _recalls(table: FloatArray) -> FloatArray:
    return _share(np.diagonal(table, axis1=-2, axis2=-1), table.sum(axis=-1))


def _balanced(table: FloatArray) -> FloatArray:
    """The mean recall of the classes that are there."""
    recalls = _recalls(table)
    here = ~np.isnan(recalls)
    return _share(np.where(here, recalls, 0.0).sum(axis=-1), here.sum(axis=-1).astype(float))


def _f1_of_each(table: FloatArray) -> FloatArray:
    """2 tp / (true + predicted); zero where there is neither."""
    both = table.sum(axis=-1) + table.sum(axis=-2)
    return np.nan_to_num(_share(2.0 * np.diagonal(table, axis1=-2, axis2=-1), both))


def _f1_macro(table: FloatArray) -> FloatArray:
    """The mean over the classes that are there, as truth or as prediction."""
    here = table.sum(axis=-1) + table.sum(axis=-2) > 0
    return _share((_f1_of_each(table) * here).sum(axis=-1), here.sum(axis=-1).astype(float))


def _correlation(table: FloatArray) -> FloatArray:
    """Matthews; zero where truth or prediction does not vary."""
    true, predicted = table.sum(axis=-1), table.sum(axis=-2)
    n = true.sum(axis=-1)
    right = np.trace(table, axis1=-2, axis2=-1)
    both = right * n - (true * predicted).sum(axis=-1)
    spread = (n**2 - (true**2).sum(axis=-1)) * (n**2 - (predicted**2).sum(axis=-1))
    found = np.nan_to_num(_share(both, np.sqrt(np.maximum(spread, 0.0))))
    return np.where(n > 0, found, np.nan)


_CONFUSION: dict[str, Callable[[FloatArray], FloatArray]] = {
    "balanced_accuracy": _balanced,
    "f1": lambda table: _f1_of_each(table)[..., 1],
    "f1_macro": _f1_macro,
    "matthews_corrcoef": _correlation,
    "precision": lambda table: np.nan_to_num(_share(table[..., 1, 1], table[..., 1].sum(axis=-1))),
    "recall": lambda table: np.nan_to_num(_recalls(table)[..., 1]),
}
_OF_TWO_CLASSES = ("f1", "precision", "recall")


def _by_confusion(scorer: Scorer) -> Callable[[FloatArray], FloatArray] | None:
    return _CONFUSION.get(scorer.name) if isinstance(scorer.name, str) else None


def _positive_is_second(scorer: Scorer, classes: NDArray[Any]) -> bool:
    """Scores of one class speak of the label 1; where it is not the second, scikit-learn judges."""
    return scorer.name not in _OF_TWO_CLASSES or bool(classes[1] == 1)


@dataclass(frozen=True)
class _Called:
    """Any scorer, one call for each sample and grid point; counts are whole numbers."""

    tests: Tests
    scorer: Scorer

    def __call__(self, points: IntArray, counts: FloatArray) -> FloatArray:
        found = np.full((len(counts), len(points)), np.nan)
        classifiers = [self.tests.at(int(s)) for s in points]
        for b, row in enumerate(counts):
            drawn = np.repeat(np.arange(len(row)), row.astype(np.intp))
            if len(drawn) == 0:
                continue
            arguments = {name: value[drawn] for name, value in self.tests.arguments.items()}
            shown = self.tests.shown[drawn]
            for k, classifier in enumerate(classifiers):
                found[b, k] = _score(classifier.part(drawn), self.scorer, shown, arguments)
        return found


def _score(part: LeftOut, scorer: Scorer, shown: Any, arguments: dict[str, Any]) -> float:
    """NaN where the tests drawn have no score, as an AUC of one class."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return part.score_with(scorer, shown, arguments)
        except InputError:
            if len(np.unique(part.codes)) < len(part.classes_):
                return float("nan")
            raise
