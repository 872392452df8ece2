"""Method ``least_squares``: the squared loss, every fold in closed form.

    min over f in H_K, b   1/2 ||f||^2 + C/2 sum_i w_i (y_i - f(x_i) - b)^2

is kernel ridge classification, or the least-squares SVM.  One eigendecomposition serves the grid;
for each C the inverse of the bordered matrix gives the solution without any set of rows
(``least_squares_system.py``).  Asked for by ``method="least_squares", loss="squared"``; lambdas
convert by C = 1 / (2 n lambda), for the loss 1/2 (y - f)^2.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from ..judge.ledger import Ledger
from ..problem.kernels import Kernel
from ..problem.problem import Task
from ..runtime.threads import Workers
from ..types import FloatArray, IntArray
from .base import Support
from .least_squares_system import LeastSquares, SquaredLoss

__all__ = ["METHOD", "LeastSquaresFolds"]

BLOCK = 256


class LeastSquaresFolds:
    """Closed-form leave-one-out and block formula."""

    support = Support(
        summary="squared loss (kernel ridge classification, LS-SVM), folds in closed form",
        paper="Cawley & Talbot (2004), Fast exact leave-one-out cross-validation of sparse "
        "least-squares support vector machines, Neural Networks 17; Tseng & Lee (2012), (7)",
        losses=("squared",),
        folds=("loo", "k-fold", "any"),
    )

    def model(self, X: FloatArray, y: FloatArray, kernel: Kernel) -> SquaredLoss:
        return SquaredLoss()

    def run(self, task: Task, ledger: Ledger, workers: Workers) -> dict[str, Any]:
        problem = task.problem
        start = perf_counter()
        system = workers.run(
            lambda: LeastSquares(problem.K, problem.y, problem.weight, problem.fit_intercept)
        )
        seconds = perf_counter() - start
        place = np.full(problem.n, -1, dtype=np.intp)
        place[system.rows] = np.arange(len(system.rows))

        def work(l: int) -> None:
            _grid_point(task, ledger, system, place, l)

        workers.map(work, range(len(task.grid)))
        return {"timings": {"path": seconds}}


def _grid_point(task: Task, ledger: Ledger, system: LeastSquares, place: IntArray, l: int) -> None:
    C = float(task.grid.Cs[l])
    G = system.inverse(C)
    solution = system.full(G)
    ledger.full(l, *_spread(task, system, solution[None]))
    if task.folds.leave_one_out:
        _leave_one_out(task, ledger, system, place, l, G, solution)
        return
    for fold, out in enumerate(task.folds.left_out):
        own = float(task.fold_Cs(fold)[l])
        if own != C:  # lambdas: C depends on the size of the fold
            C, G = own, system.inverse(own)
            solution = system.full(G)
        places = place[out]
        left = system.without(G, solution, places[places >= 0])
        ledger.solved(l, [fold], *_spread(task, system, left[None]))


def _leave_one_out(
    task: Task,
    ledger: Ledger,
    system: LeastSquares,
    place: IntArray,
    l: int,
    G: FloatArray,
    solution: FloatArray,
) -> None:
    rows = task.folds.pair_rows
    ledger.unchanged(l, np.flatnonzero(place[rows] < 0))
    folds = np.flatnonzero(place[rows] >= 0)
    for first in range(0, len(folds), BLOCK):
        block = folds[first : first + BLOCK]
        left = system.without_each(G, solution, place[rows[block]])
        ledger.solved(l, block, *_spread(task, system, left))


def _spread(
    task: Task, system: LeastSquares, solution: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Coefficients on all n rows, and the intercepts."""
    m = len(system.rows)
    coef = np.zeros((len(solution), task.problem.n))
    coef[:, system.rows] = solution[:, :m]
    return coef, solution[:, m] if system.fit_intercept else np.zeros(len(solution))


METHOD = LeastSquaresFolds()
