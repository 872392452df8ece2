"""What a run did at each grid point, for ``stats``."""

from __future__ import annotations

from typing import Any

import numpy as np

from .levels import Effort

__all__ = ["Count"]


class Count:
    """What was done at each grid point."""

    def __init__(self, n_grid: int):
        self.iterations = np.zeros(n_grid, dtype=np.int64)
        self.factorising = np.zeros(n_grid)
        self.iterating = np.zeros(n_grid)
        self.delta = np.full(n_grid, np.nan)
        self.from_sets = np.zeros(n_grid, dtype=np.int64)
        self.path = 0.0

    def enter(self, l: int, effort: Effort, delta: float = np.nan) -> None:
        self.iterations[l] += effort.iterations
        self.factorising[l] += effort.factorising
        self.iterating[l] += effort.iterating
        self.delta[l] = delta
        self.from_sets[l] += effort.from_sets

    def stats(self) -> dict[str, Any]:
        return {
            "iterations": self.iterations,
            "seconds_factorising": self.factorising,
            "seconds_iterating": self.iterating,
            "delta": self.delta,
            "from_sets": self.from_sets,
            "timings": {"path": self.path},
        }
