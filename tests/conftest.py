"""What the tests share."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from exactcv.algorithms import REGISTRY, Support
from exactcv.judge.ledger import SOLVED, Ledger
from exactcv.problem.problem import Task
from exactcv.runtime.threads import Workers
from exactcv.tolerances import TIE

# The same examples in every run, and as much time for them as they take.
settings.register_profile(
    "fixed",
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("fixed")


def pytest_configure() -> None:
    """A shell has its background jobs ignore SIGINT, and their children would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class Stub:
    """A method that enters given decision values along the pairs, with residuals of zero."""

    support = Support(
        summary="stub", paper="none", losses=("hinge",), folds=("any",), intercept=True
    )

    def __init__(self, decide: Callable[[Task], np.ndarray], kkt: float = 0.0):
        self.decide = decide
        self.kkt = kkt
        self.task: Task | None = None

    def run(self, task: Task, ledger: Ledger, workers: Workers) -> dict[str, Any]:
        self.task = task
        ledger.decision[:] = self.decide(task)
        ledger.wrong[:] = task.problem.y[task.folds.pair_rows] * ledger.decision <= TIE
        ledger.objective[:] = 1.0
        ledger.how[:] = SOLVED
        ledger.kkt[:] = self.kkt
        ledger.gap[:] = 0.0
        return {"iterations": 7, "timings": {"path": 0.5, "folds": 0.25}}


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Stub]:
    """Register a stub as method "stub"; by default all decisions are right."""

    def register(decide: Callable[[Task], np.ndarray] | None = None, **kwargs: Any) -> Stub:
        def all_right(task: Task) -> np.ndarray:
            return np.tile(task.problem.y[task.folds.pair_rows], (len(task.grid), 1))

        method = Stub(decide or all_right, **kwargs)
        monkeypatch.setitem(REGISTRY, "stub", lambda: method)
        return method

    return register


@pytest.fixture
def small() -> tuple[np.ndarray, np.ndarray]:
    """Twelve rows, two features, six of each class, alternating."""
    rng = np.random.default_rng(0)
    y = np.tile([-1, 1], 6)
    return rng.normal(size=(12, 2)) + y[:, None], y
