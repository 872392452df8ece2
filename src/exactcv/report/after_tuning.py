"""The error after tuning by nested cross-validation, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["NADEAU", "AfterTuning", "loss_name", "middle_of"]

NADEAU = (
    "C. Nadeau and Y. Bengio (2003). Inference for the generalization error. Machine Learning 52, "
    "239-281."
)


@dataclass(frozen=True)
class AfterTuning:
    """What a nested cross-validation found, for summaries, reports and papers.

    Attributes
    ----------
    n_folds : int
        Outer folds.
    leave_one_out : bool
        Is each of them one row?
    error, low, high : float
        The share of wrong tests (of numbers: the mean absolute error), and its 95 percent interval.
    score, scoring, optimism : float, str, float
        The score after tuning, what it is, and by how much the inner score is better.
    numeric : bool
        Of numbers?
    quantile : float or None
        Of numbers: the quantile whose mean pinball loss the error is, if it is that of one.
    """

    n_folds: int
    leave_one_out: bool
    error: float
    low: float
    high: float
    score: float
    scoring: str
    optimism: float
    numeric: bool = False
    quantile: float | None = None

    def record(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> AfterTuning:
        known = [name for name in cls.__dataclass_fields__ if name in record]  # some are newer
        return cls(**{name: record[name] for name in known})

    @property
    def what(self) -> str:
        return loss_name(self.quantile) if self.numeric else "error"

    @property
    def figure(self) -> str:
        """The error as it is printed."""
        return self._number(self.error)

    @property
    def interval(self) -> str:
        return f"95% interval {self._number(self.low)} to {self._number(self.high)}"

    def _number(self, value: float) -> str:
        return f"{value:{'.4g' if self.numeric else '.4f'}}"

    @property
    def folds(self) -> str:
        return "leave-one-out" if self.leave_one_out else f"{self.n_folds} outer folds"

    def short(self) -> str:
        """For a summary: the figure, and what it was gained from."""
        return (
            f"{self.what} after tuning {self.figure} ({self.interval}): tuned afresh without each "
            f"of {self.n_folds} outer folds, which then judged; the inner {self.scoring} is too "
            f"good by {self.optimism:.4f}"
        )

    def sentence(self) -> str:
        """For a paper."""
        score = f" and {self.scoring} {self.score:.4f}" if self.scoring != "accuracy" else ""
        return (
            f"In nested cross-validation ({self.folds}; the whole grid tuned afresh "
            f"each time) the {self.what} after tuning is {self.figure} "
            f"({self.interval}, with fewer effective tests after Nadeau and Bengio 2003){score}; "
            f"the inner estimate of the {self.scoring} was optimistic by {self.optimism:.4f}."
        )


def middle_of(quantiles: Sequence[AfterTuning]) -> AfterTuning:
    """Of several quantiles the one nearest to one half, of which reports speak."""
    return min(quantiles, key=lambda one: abs((one.quantile or 0.5) - 0.5))


def loss_name(quantile: float | None) -> str:
    """What the error of numbers is the mean of.

    Examples
    --------
    >>> loss_name(None), loss_name(0.1)
    ('mean absolute error', 'mean pinball loss of the quantile 0.1')
    """
    if quantile is None:
        return "mean absolute error"
    return f"mean pinball loss of the quantile {quantile:.6g}"
