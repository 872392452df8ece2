"""Scores of left-out numbers under many weightings of the tests (classes: ``weighted_scores.py``).

Mean losses are products of the (B, T) matrix of counts with a (S, T) table of losses.  R2 is one
too, the mean square over the variance of all tests: by the variance of the few rows outside a
sample it would be far too low.  Other scorers are called once for each sample and grid point.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..types import FloatArray, IntArray
from .numbers_scoring import NumbersScorer
from .weighted_scores import Measure

__all__ = ["MeanLoss", "is_quick_of_numbers", "number_measure"]

# residuals (S, T) -> what they cost, and the mean cost -> the score
_Cost: TypeAlias = tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]]


def _negative_root(mean: FloatArray) -> FloatArray:
    return -np.sqrt(mean)


_MEANS: dict[str, _Cost] = {
    "neg_mean_absolute_error": (np.abs, np.negative),
    "neg_mean_squared_error": (np.square, np.negative),
    "neg_root_mean_squared_error": (np.square, _negative_root),
}


def is_quick_of_numbers(scorer: NumbersScorer | None) -> bool:
    """Is the score one of those that need no loop?  None is the loss itself."""
    return scorer is None or scorer.name == "r2" or scorer.name in _MEANS


def number_measure(scorer: NumbersScorer, y: FloatArray, values: FloatArray) -> Measure:
    """The score of T numbers y and left-out values (S, T), by grid points and counts."""
    weight = scorer.weighted.get("sample_weight", np.ones(len(y)))
    if scorer.name == "r2":
        return _r2(y, values, weight)
    if scorer.name in _MEANS:
        cost, score = _MEANS[scorer.name]
        return MeanLoss(cost(y - values), weight, score)
    return _Called(scorer, y, values)


@dataclass(frozen=True)
class MeanLoss:
    """The score of the weighted mean loss; its negative unless told otherwise."""

    losses: FloatArray  # (S, T)
    weight: FloatArray  # (T,)
    score: Callable[[FloatArray], FloatArray] = np.negative

    def __call__(self, points: IntArray, counts: FloatArray) -> FloatArray:
        total = (counts @ self.weight)[:, None]
        with np.errstate(invalid="ignore"):  # NaN where nothing is left to judge by
            return self.score(counts @ (self.losses[points] * self.weight).T / total)


def _r2(y: FloatArray, values: FloatArray, weight: FloatArray) -> MeanLoss:
    """As scikit-learn 1 or 0 where y does not vary, up to rounding."""
    share = weight / weight.sum()
    centred = y - share @ y
    spread = float(share @ centred**2)
    rounding = (len(y) * float(np.finfo(float).eps) * float(np.abs(y).max())) ** 2
    if spread > rounding:
        return MeanLoss((y - values) ** 2 / spread, weight, _less_than_one)
    return MeanLoss(((y - values) ** 2 > rounding).astype(float), weight, _none_off)


def _less_than_one(mean: FloatArray) -> FloatArray:
    return 1.0 - mean


def _none_off(mean: FloatArray) -> FloatArray:
    return np.where(np.isnan(mean), np.nan, (mean == 0.0).astype(float))


@dataclass(frozen=True)
class _Called:
    """Any scorer, one call for each sample and grid point; counts are whole numbers."""

    scorer: NumbersScorer
    y: FloatArray
    values: FloatArray

    def __call__(self, points: IntArray, counts: FloatArray) -> FloatArray:
        found = np.full((len(counts), len(points)), np.nan)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of scores that few tests do not define
            for b, row in enumerate(counts):
                drawn = np.repeat(np.arange(len(row)), row.astype(np.intp))
                if len(drawn) == 0:
                    continue
                for k, s in enumerate(points):
                    found[b, k] = self.scorer.score(self.y, self.values[s], drawn)
        return found
