"""Regression scorers on left-out numbers, pooled over all folds (as ``scoring.py`` for classes)."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import get_scorer_names

from ..exceptions import InputError, InputTypeError
from ..types import FloatArray, IntArray
from .scoring import JACKKNIFE_PARTS, PAIRS, Scorer, read_scoring

__all__ = ["NumbersScorer", "read_number_scoring"]


def read_number_scoring(scoring: Any) -> Scorer:
    """The scorer of a name or a callable (estimator, X, y); None is R2."""
    if isinstance(scoring, str) and scoring not in (*get_scorer_names(), PAIRS):
        raise InputError(
            f"scoring={scoring!r} is not known; see sklearn.metrics.get_scorer_names()"
        )
    scorer = read_scoring("r2" if scoring is None else scoring)
    if scorer.call is None or scorer.pairs:
        raise InputError(
            f"scoring={scorer.name!r} is of classes; for numbers use 'r2', for example"
        )
    return scorer


class _KnownNumbers(RegressorMixin, BaseEstimator):
    """A fitted regressor that knows its left-out values by heart, whatever X it is shown."""

    def __init__(self, values: FloatArray):
        self.values = values

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> _KnownNumbers:
        """Nothing to learn."""
        return self

    def predict(self, X: Any) -> FloatArray:
        """The left-out values."""
        if np.shape(X)[0] != len(self.values):
            raise InputError(
                f"the scorer asks for {np.shape(X)[0]} rows, but left-out values exist for the "
                f"{len(self.values)} tested rows as a whole; a scorer must use X as it is given"
            )
        return self.values


@dataclass(frozen=True)
class NumbersScorer:
    """What ``scoring`` stands for; None is R2.

    ``shown`` are the tested rows as scorers see them, their numbers if not given.

    Examples
    --------
    >>> y = np.array([1.0, 2.0, 3.0])
    >>> NumbersScorer.of(None).score(y, y), NumbersScorer.of("neg_max_error").score(y, y + 1)
    (1.0, -1.0)
    """

    scorer: Scorer
    shown: Any = None
    weighted: dict[str, FloatArray] = field(default_factory=dict)

    @classmethod
    def of(
        cls, scoring: Any, shown: Any = None, sample_weight: FloatArray | None = None
    ) -> NumbersScorer:
        scorer = read_number_scoring(scoring)
        weighted = {}
        if sample_weight is not None and scorer.takes_weights():
            weighted = {"sample_weight": sample_weight}
        return cls(scorer, shown, weighted)

    @property
    def name(self) -> str:
        given = self.scorer.name
        return str(getattr(given, "__name__", given))

    def score(
        self, y: FloatArray, values: FloatArray, chosen: IntArray | slice = slice(None)
    ) -> float:
        """The pooled score of some of the tests; NaN where it is not defined."""
        own = {name: weight[chosen] for name, weight in self.weighted.items()}
        shown = np.arange(len(y))[:, None] if self.shown is None else self.shown
        assert self.scorer.call is not None
        try:
            value: Any = self.scorer.call(
                _KnownNumbers(values[chosen]), shown[chosen], y[chosen], **own
            )
        except InputError:
            raise
        except (TypeError, ValueError, AttributeError) as error:
            why = f"failed on left-out numbers: {error}"
            if "decision_function" in str(error) or "predict_proba" in str(error):
                why = "is of classes; for numbers use 'r2', for example"
            raise InputError(f"scoring={self.name!r} {why}") from error
        if not isinstance(value, numbers.Real):
            raise InputTypeError(f"scoring={self.name!r} gave {value!r}; it must give a number")
        return float(value)

    def jackknife_se(self, y: FloatArray, values: FloatArray, folds_of: IntArray) -> float:
        """As ``scoring.jackknife_se``."""
        n_parts = min(JACKKNIFE_PARTS, int(folds_of.max()) + 1)
        if n_parts < 2:
            return float("nan")
        parts: Sequence[IntArray] = [
            np.flatnonzero(folds_of % n_parts != part) for part in range(n_parts)
        ]
        with warnings.catch_warnings():
            # Of three rows or fewer a part may have no R2: then there is no standard error.
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            scores = np.array([self.score(y, values, chosen) for chosen in parts])
        spread = scores - scores.mean()
        return float(np.sqrt((n_parts - 1) / n_parts * (spread @ spread)))
