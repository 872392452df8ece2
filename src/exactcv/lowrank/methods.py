"""Which method solves a task with features: the loss decides."""

from __future__ import annotations

from .method import METHOD as KNOTS
from .method import LowRank
from .squared import METHOD as SQUARED
from .squared import Squared
from .task import FeatureTask

__all__ = ["method_of"]


def method_of(task: FeatureTask) -> LowRank | Squared:
    """For losses of knots and slopes, or for the squared loss."""
    return SQUARED if task.problem.loss.squared else KNOTS
