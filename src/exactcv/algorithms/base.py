"""The one interface of all methods, and their registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from ..judge.ledger import Ledger
from ..problem.problem import Penalty, Task
from ..runtime.threads import Workers

__all__ = ["Method", "Support"]


@dataclass(frozen=True)
class Support:
    """What a method can do, and where it comes from; shown by ``exactcv.methods()``."""

    summary: str
    paper: str
    losses: tuple[str, ...]
    folds: tuple[str, ...]  # of "loo", "k-fold", "any"
    intercept: bool = True
    no_intercept: bool = True
    decision: bool = True  # left-out decision values, or labels only
    penalty: Penalty = "norm"  # of the problem that it solves
    any_kernel: bool = False  # convex whether or not the kernel matrix is positive semidefinite


class Method(Protocol):
    """One algorithm.  ``run`` fills the ledger and returns what it counted."""

    support: Support

    def run(self, task: Task, ledger: Ledger, workers: Workers) -> dict[str, Any]: ...
