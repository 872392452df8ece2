"""The table of all pairs of rows at all grid points is never held."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import exactcv

N, FEW, MANY = 240, 2, 10


def peak(work: Callable[[], Any]) -> int:
    tracemalloc.start()
    work()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


@pytest.mark.parametrize("what", ["nested", "leave_pair_out"])
def test_a_grid_point_more_takes_less_than_a_byte_a_pair(what: str) -> None:
    X, y = exactcv.datasets.make_mixture(N, 4, random_state=0)

    def work(n_points: int) -> Any:
        Cs = 0.3 * (1.0 + 1e-4 * np.arange(n_points))  # all alike in what they need for a while
        if what == "nested":
            return exactcv.nested_cross_validate(X, y, Cs=Cs, gammas=0.2, n_jobs=1)
        return exactcv.leave_pair_out(X, y, Cs=Cs, gamma=0.2, n_jobs=1)

    work(2)  # what is loaded when first needed
    growth = (peak(lambda: work(MANY)) - peak(lambda: work(FEW))) / (MANY - FEW)
    # A byte for each pair is the least that a table of labels would take.
    assert growth < N * N
