"""Which method solves a task with features: the loss decides, and the number of columns."""

from __future__ import annotations

from typing import Any, Protocol

from ..runtime.threads import Workers
from .entries import Entries
from .method import METHOD as KNOTS
from .squared import METHOD as SQUARED
from .task import FeatureTask
from .wide.method import METHOD as WIDE

__all__ = ["FeatureMethod", "method_of"]


class FeatureMethod(Protocol):
    """Fills the entries; returns what was counted."""

    def run(self, task: FeatureTask, entries: Entries, workers: Workers) -> dict[str, Any]: ...


def method_of(task: FeatureTask) -> FeatureMethod:
    """For losses of knots and slopes, for the squared loss, or for sparse rows of many columns."""
    if task.wide:
        return WIDE
    return SQUARED if task.problem.loss.squared else KNOTS
