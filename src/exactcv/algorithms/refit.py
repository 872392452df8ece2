"""Method ``refit``: every fold from scratch, the ordinary way.

For each C of the grid, for the full data and for each fold, a cold-started working-set solver
(``engine/smo.py``; Fan, Chen & Lin 2005) over the shared kernel matrix; for smooth losses damped
Newton (``engine/newton.py``).  No fold is skipped and nothing is carried over from one problem to
the next: this is the brute-force oracle of the other methods.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..engine.newton import solve_smooth
from ..engine.smo import solve_hinge
from ..judge.ledger import Ledger
from ..problem.differentiable import DifferentiableLoss, SquaredLoss
from ..problem.problem import Problem, Task
from ..runtime.threads import Workers
from ..types import FloatArray, IntArray
from .base import Support

__all__ = ["METHOD", "Refit"]

FULL = -1


class Refit:
    """Solve every problem on its own."""

    support = Support(
        summary="every fold from scratch by SMO (smooth losses: Newton, squared: a linear system); "
        "slow, the oracle",
        paper="Fan, Chen & Lin (2005), Working set selection using second order information "
        "for training support vector machines, JMLR 6",
        losses=(
            "hinge",
            "squared_hinge",
            "logistic",
            "squared",
            "epsilon_insensitive",
            "pinball",
            "least_squares",
        ),
        folds=("loo", "k-fold", "any"),
    )

    def run(self, task: Task, ledger: Ledger, workers: Workers) -> dict[str, Any]:
        """Solve the full data and every fold along the grid, and enter them."""
        problem, folds = task.problem, task.folds
        everyone = np.arange(problem.n, dtype=np.intp)

        def one(fold: int) -> tuple[IntArray, int]:
            if fold == FULL:
                coef, b, counts = _along_grid(task, everyone, task.grid.Cs, workers)
                ledger.full(np.arange(len(b)), coef, b)
                return counts
            train = np.setdiff1d(everyone, folds.left_out[fold])
            coef, b, counts = _along_grid(task, train, task.fold_Cs(fold), workers)
            ledger.solved(np.arange(len(b)), np.full(len(b), fold), coef, b)
            return counts

        counted = workers.map(one, range(FULL, len(folds)))
        return {
            "iterations": np.sum([iterations for iterations, _ in counted], axis=0),
            "not_converged": sum(failed for _, failed in counted),
        }


def _along_grid(
    task: Task, train: IntArray, Cs: FloatArray, workers: Workers
) -> tuple[FloatArray, FloatArray, tuple[IntArray, int]]:
    """Cold-started solutions of one training set for every C."""
    problem = task.problem
    coef, b = np.zeros((len(Cs), problem.n)), np.zeros(len(Cs))
    iterations = np.zeros(len(Cs), dtype=np.intp)
    # The judge's measures differ a little from the solver's: leave some room.
    tol, failed = 0.1 * min(task.tol, 1e-8), 0
    for l, C in enumerate(Cs):
        solution: Any
        if isinstance(problem.loss, DifferentiableLoss):
            solution = solve_smooth(
                problem.K, problem.loss, C * problem.weight, train, tol=min(tol, 1e-10),
                fit_intercept=problem.fit_intercept, cancel=workers.cancel,
            )  # fmt: skip
        elif isinstance(problem.loss, SquaredLoss):
            coef[l], b[l] = _linear_system(problem, train, float(C))
            continue
        else:
            solution = solve_hinge(problem, train, float(C), tol, workers.cancel)
        coef[l], b[l], iterations[l] = solution.coef, solution.intercept, solution.iterations
        failed += not solution.converged
    return coef, b, (iterations, failed)


def _linear_system(problem: Problem, train: IntArray, C: float) -> tuple[FloatArray, float]:
    """(K + 1 / C_i) c + b = y, sum c = 0 on the training rows, once refined."""
    rows = train[problem.weight[train] > 0]
    m, border = len(rows), int(problem.fit_intercept)
    A = np.zeros((m + border, m + border))
    A[:m, :m] = problem.K[np.ix_(rows, rows)]
    A[np.arange(m), np.arange(m)] += 1.0 / (C * problem.weight[rows])
    A[m:, :m] = A[:m, m:] = 1.0
    right = np.append(problem.y[rows], np.zeros(border))
    answer = np.linalg.solve(A, right)
    answer += np.linalg.solve(A, right - A @ answer)
    coef: FloatArray = np.zeros(problem.n)
    coef[rows] = answer[:m]
    return coef, float(answer[m]) if border else 0.0


METHOD = Refit()
