"""The one interface of all methods; the registry is in ``__init__.py``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ..judge.ledger import Ledger
from ..problem.problem import Penalty, Task
from ..runtime.threads import Workers
from ..types import LossName
from .options import Option

__all__ = ["FoldKind", "Method", "Support"]

FoldKind = Literal["loo", "k-fold", "any"]


@dataclass(frozen=True)
class Support:
    """What a method can do, and where it comes from; shown by ``exactcv.methods()``."""

    summary: str
    paper: str
    losses: tuple[LossName, ...]
    folds: tuple[FoldKind, ...]
    intercept: bool = True
    no_intercept: bool = True
    decision: bool = True  # left-out decision values, or labels only
    penalty: Penalty = "norm"  # of the problem that it solves
    any_kernel: bool = False  # convex whether or not the kernel matrix is positive semidefinite
    row_cache: bool = False  # needs only rows of the kernel matrix, as many as memory holds
    options: tuple[Option, ...] = ()  # what ``method_options`` may set


class Method(Protocol):
    """One algorithm.  ``run`` fills the ledger and returns what it counted."""

    support: Support

    def run(self, task: Task, ledger: Ledger, workers: Workers) -> dict[str, Any]: ...
