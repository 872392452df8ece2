"""Method ``least_squares``: the squared loss, every fold in closed form.

    min over f in H_K, b   1/2 ||f||^2 + C/2 sum_{i in train} w_i (y_i - f(x_i) - b)^2

is kernel ridge regression, or for labels kernel ridge classification (the least-squares SVM).  It
has one linear system for all rows,

    M [c; b] = [y; 0],    M = [ K + diag(1/(C w_i))   1 ]
                              [ 1'                    0 ]        (without the border: no intercept),

and leaving out rows T deletes their rows and columns from it.  With G = M^-1, formula (7) of the
rank-r paper says what that does to the solution:

    c^(-T) = c - G_.T G_TT^-1 c_T,        b^(-T) likewise,
    y_T - f^(-T)(x_T) = G_TT^-1 c_T       (for one row: c_i / G_ii).

One eigendecomposition serves the grid.  Rows of weight zero are left out from the start.  Asked for
by ``loss="least_squares"`` (numbers) or ``loss="squared"`` (classes); lambdas convert by
C = 1 / (2 n lambda), for the loss 1/2 (y - f)^2.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
from scipy.linalg import eigh

from ..judge.ledger import Ledger
from ..problem.problem import Task
from ..runtime.threads import Workers
from ..types import FloatArray, IntArray
from .base import Support

__all__ = ["METHOD", "LeastSquares", "LeastSquaresFolds"]

BLOCK = 256


class LeastSquares:
    """Full-data solution and G at any C, from one eigendecomposition of W^1/2 K W^1/2."""

    def __init__(self, K: FloatArray, y: FloatArray, weight: FloatArray, fit_intercept: bool):
        self.y, self.fit_intercept = y, fit_intercept
        self.rows = np.flatnonzero(weight > 0)
        self.root = np.sqrt(weight[self.rows])
        scaled = K[np.ix_(self.rows, self.rows)] * np.outer(self.root, self.root)
        self.values, self.vectors = eigh(scaled, overwrite_a=True, check_finite=False)

    def inverse(self, C: float) -> FloatArray:
        """G over the rows with weight, bordered by the intercept if there is one."""
        inner = (self.vectors / (self.values + 1.0 / C)) @ self.vectors.T
        inner *= np.outer(self.root, self.root)
        if not self.fit_intercept:
            return inner
        m = len(inner)
        sums = inner.sum(axis=1)
        total = float(sums.sum())
        G = np.empty((m + 1, m + 1))
        G[:m, :m] = inner - np.outer(sums, sums / total)
        G[m, :m] = G[:m, m] = sums / total
        G[m, m] = -1.0 / total
        return G

    def full(self, G: FloatArray) -> FloatArray:
        """[c; b] on all rows with weight."""
        solution: FloatArray = G[:, : len(self.rows)] @ self.y[self.rows]
        return solution

    def without(self, G: FloatArray, solution: FloatArray, places: IntArray) -> FloatArray:
        """[c; b] without the rows at these places of ``self.rows``."""
        if not len(places):
            return solution
        q = np.linalg.solve(G[np.ix_(places, places)], solution[places])
        left: FloatArray = solution - G[:, places] @ q
        left[places] = 0.0
        return left

    def without_each(self, G: FloatArray, solution: FloatArray, places: IntArray) -> FloatArray:
        """The same for single rows, one solution a row."""
        share = solution[places] / np.diagonal(G)[places]
        left: FloatArray = solution - share[:, None] * G[places]
        left[np.arange(len(places)), places] = 0.0
        return left


class LeastSquaresFolds:
    """Closed-form leave-one-out and block formula."""

    support = Support(
        summary="squared loss (kernel ridge regression and classification, LS-SVM), closed form",
        paper="Cawley & Talbot (2004), Fast exact leave-one-out cross-validation of sparse "
        "least-squares support vector machines, Neural Networks 17; Tseng & Lee (2012), (7)",
        losses=("squared", "least_squares"),
        folds=("loo", "k-fold", "any"),
    )

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
