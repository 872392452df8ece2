"""The tests of the outer folds of a nested cross-validation, and what they say in the end.

How the models of the outer folds came about does not matter here: tuned on a kernel matrix that all
folds share (``nested.py``, ``nested_numbers.py``), or with features of their own
(``estimators/nested_afresh.py``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import InputError
from ..problem.folds import Folds
from ..problem.intervals import effective_count, mean_interval, resampled_count, wilson
from ..tolerances import TIE
from ..types import FloatArray, IntArray
from .calibration import Sigmoid
from .nested_loop import added, worst
from .nested_parts import Outer
from .nested_result import PINBALL, NestedRegressionResult, NestedResult
from .numbers_scoring import NumbersScorer
from .one_vs_one import most_votes, votes_of
from .regression_result import pair_losses, r2_of
from .result import standard_error
from .scoring import LeftOut, Scorer, jackknife_se, shaped
from .tuning import error_and_se

__all__ = ["ClassTests", "NumberTests"]


@dataclass(frozen=True)
class ClassTests:
    """Tests of classes.

    Attributes
    ----------
    outer : Folds
        Of the rows that count.
    keep, n_rows : IntArray, int
        Their places among all rows of the user, and how many these are.
    classes, codes, sample_weight :
        The codes and weights row by row.
    scorer, shape :
        The shape is that of ``decision_function``.
    shown, arguments :
        The rows as the scorer sees them, and what else it gets: one entry a test.
    select, method : str
        How a point is chosen, and the algorithm.
    """

    outer: Folds
    keep: IntArray
    n_rows: int
    classes: NDArray[Any]
    codes: NDArray[np.integer]
    sample_weight: FloatArray
    scorer: Scorer
    shape: str
    shown: Any
    arguments: dict[str, Any]
    select: str
    method: str

    def check(self) -> None:
        """Refuse outer folds that lack a class where the scorer needs all of them."""
        if self.scorer.labels_only or not hasattr(self.scorer.call, "_response_method"):
            return
        for fold, test in enumerate(self.outer.test):
            absent = np.setdiff1d(np.arange(len(self.classes)), self.codes[test])
            if len(absent):
                label = self.classes.tolist()[int(absent[0])]
                raise InputError(
                    f"scoring={self.scorer.name!r} compares values within an outer fold, for "
                    f"models of different folds have different scales, but outer fold {fold} tests "
                    f"no row of class {label!r}: use stratified outer folds (outer=5), a scorer of "
                    "labels (scoring='balanced_accuracy'), or for the AUC exactcv.leave_pair_out"
                )

    def labels(self, fold: int, decision: FloatArray) -> IntArray:
        """Predicted classes; a value of zero votes against the row's own class, as in any fold."""
        codes, k = self.codes[self.outer.test[fold]], len(self.classes)
        first, second = np.triu_indices(k, 1)
        own = codes[:, None]
        against = np.where(first == own, 1.0, np.where(second == own, -1.0, 0.0))
        tie = np.abs(decision) <= TIE
        return most_votes(votes_of(np.where(tie, against, decision), k))

    def score(
        self, fold: int, labels: IntArray, decision: FloatArray, sigmoids: list[Sigmoid] | None
    ) -> float:
        """The score of one outer fold, by a scorer that looks at more than labels."""
        test, offsets = self.outer.test[fold], self.outer.offsets
        mine = slice(int(offsets[fold]), int(offsets[fold + 1]))
        weight = self.sample_weight[test]
        found = LeftOut(
            self.classes, self.codes[test], labels, decision, weight, self.shape, sigmoids
        )
        arguments = {name: value[mine] for name, value in self.arguments.items()}
        return found.score_with(self.scorer, self.shown[mine], arguments)

    def result(self, done: list[Outer], seconds: float) -> NestedResult:
        """What the outer folds that are complete say."""
        outer = self.outer.part(np.arange(len(done)))
        rows = outer.pair_rows
        labels = np.concatenate([one.labels for one in done])
        decision = np.concatenate([one.decision for one in done])
        wrong = labels != self.codes[rows]
        error, se = (
            float(figure[0])
            for figure in error_and_se(wrong[None], outer.offsets, self.sample_weight[rows])
        )
        tested = self.sample_weight[np.unique(rows)]
        trained = np.mean([outer.n - len(out) for out in outer.left_out])
        low, high = wilson(error, resampled_count(effective_count(tested), float(trained)))
        score, score_se = 1.0 - error, se
        if self.scorer.call is not None:
            score, score_se = self._scores(outer, labels, decision, done)
        return NestedResult(
            error=error,
            se=se,
            interval=(float(low), float(high)),
            score=score,
            score_se=score_se,
            scoring=self.scorer.shown_name or "accuracy",
            decision=shaped(decision, len(self.classes), self.shape),
            predicted=self.classes[labels],
            wrong=wrong,
            classes=self.classes,
            n_points=max(len(one.grid[0]) * len(one.grid[1]) for one in done),
            **_shared(self, outer, done, score, seconds),
        )

    def _scores(
        self, outer: Folds, labels: IntArray, decision: FloatArray, done: list[Outer]
    ) -> tuple[float, float]:
        """The score and its standard error: the mean over folds, or of all labels together."""
        if not self.scorer.labels_only:
            found = np.array([one.score for one in done])
            se = float(found.std(ddof=1) / np.sqrt(len(found))) if len(found) > 1 else np.nan
            return float(found.mean()), se
        rows, n = outer.pair_rows, len(labels)
        everyone = LeftOut(
            self.classes, self.codes[rows], labels, decision, self.sample_weight[rows]
        )
        arguments = {name: value[:n] for name, value in self.arguments.items()}
        given = self.scorer, self.shown[:n], arguments
        return everyone.score_with(*given), jackknife_se(everyone, *given, outer.pair_folds)


@dataclass(frozen=True)
class NumberTests:
    """Tests of numbers, whose predictions are all in units of y: one scorer judges them together.

    Attributes
    ----------
    outer, keep, n_rows, select, method :
        As in `ClassTests`.
    y, weight : (n,)
        Row by row.
    scoring : str, callable or None
    shown : Any
        All rows, as splitters and scorers see them.
    score_weight : (n,) or None
        What the scorer is given besides, a number a row.
    quantile : float or None
        Where values are those of a quantile, whose loss is then the error; else that is the mean
        absolute error.
    n_epsilons : int
        How many there are in the grid.
    """

    outer: Folds
    keep: IntArray
    n_rows: int
    y: FloatArray
    weight: FloatArray
    scoring: Any
    shown: Any
    score_weight: FloatArray | None
    select: str
    method: str
    quantile: float | None = None
    n_epsilons: int = 1

    def scorer(self, tests: IntArray) -> NumbersScorer | None:
        """The scorer, for these tests of rows; None: the loss of a quantile."""
        if self.quantile is not None and self.scoring is None:
            return None
        given = None if self.score_weight is None else self.score_weight[tests]
        return NumbersScorer.of(self.scoring, self.shown[tests], given)

    def result(self, done: list[Outer], seconds: float) -> NestedRegressionResult:
        """What the outer folds that are complete say."""
        outer = self.outer.part(np.arange(len(done)))
        rows = outer.pair_rows
        y, weight = self.y[rows], self.weight[rows]
        values = np.concatenate([one.decision[:, 0] for one in done])
        losses = np.abs(values - y)
        if self.quantile is not None:
            losses = pair_losses("pinball", {"quantile": self.quantile}, y, values)
        share = weight / weight.sum()
        error = float(losses @ share)
        se = float(standard_error(losses[None], outer.offsets)[0])
        trained = float(np.mean([outer.n - len(out) for out in outer.left_out]))
        tests = resampled_count(effective_count(self.weight[np.unique(rows)]), trained)
        scorer = self.scorer(rows)
        score, score_se, name = -error, se, PINBALL
        if scorer is not None:
            score, name = scorer.score(y, values), scorer.name
            score_se = scorer.jackknife_se(y, values, outer.pair_folds)
        return NestedRegressionResult(
            error=error,
            se=se,
            interval=mean_interval(error, float(share @ (losses - error) ** 2), tests),
            score=score,
            score_se=score_se,
            scoring=name,
            epsilon=np.array([one.parameter if self.quantile is None else np.nan for one in done]),
            decision=values,
            rmse=float(np.sqrt(share @ (values - y) ** 2)),
            r2=float(r2_of(y, values - y, weight)),
            y=y,
            n_points=max(len(one.grid[0]) * len(one.grid[1]) for one in done) * self.n_epsilons,
            **_shared(self, outer, done, score, seconds),
            quantile=self.quantile,
        )


def _shared(
    tests: ClassTests | NumberTests, outer: Folds, done: list[Outer], score: float, seconds: float
) -> dict[str, Any]:
    """What a result has of either kind: which folds, what they chose, how it was worked out."""
    inner = np.array([one.inner_score for one in done])
    return {
        "chosen": np.array([[one.C, one.gamma] for one in done]),
        "inner": inner,
        "optimism": float(inner.mean()) - score,
        "test_row": tests.keep[outer.pair_rows],
        "test_fold": outer.pair_folds,
        "n_folds": len(outer),
        "n_rows": tests.n_rows,
        "select": tests.select,
        "method": tests.method,
        "certificate": worst(done),
        "stats": added(done),
        "timings": {"total": seconds},
    }
