"""The early check: are all rows on the margin?

If y_i u_i = 1 for every training row, then K c + b = y and sum c = 0, which does not depend on C:
the solution for every C_i >= y_i c_i if no y_i c_i is negative (magic LOO, section 3.2, with the
intercept as a border).  With P the inverse of the bordered matrix and q = P [y; 0] the solution
without the rows B is

    q - P_{:,B} (P_BB)^{-1} q_B,

so one inverse serves all folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...problem.problem import Task
from ...types import FloatArray, IntArray
from .batch import Mask

__all__ = ["AllOnMargin"]

# K is taken to be singular if the inverse reproduces the labels no better than this.
ACCURACY = 1e-9


@dataclass(frozen=True)
class AllOnMargin:
    """Coefficients with all rows on the margin, and the least C for which they are the solution.

    The first column is the full data, then one for each fold; ``least`` is infinite where some
    coefficient has the wrong sign.
    """

    coef: FloatArray
    least: FloatArray

    @classmethod
    def of(
        cls,
        K: FloatArray,
        y: FloatArray,
        weight: FloatArray,
        fit_intercept: bool,
        left_out: Sequence[IntArray],
    ) -> AllOnMargin | None:
        """None if K is singular."""
        n = len(y)
        A = np.ones((n + fit_intercept, n + fit_intercept))
        A[:n, :n] = K
        A[n:, n:] = 0.0
        right = np.r_[y, np.zeros(int(fit_intercept))]
        try:
            P = np.linalg.inv(A)
        except np.linalg.LinAlgError:
            return None
        q = P @ right
        if not np.abs(A @ q - right).max() <= ACCURACY:
            return None
        coef = np.tile(q[:n, None], (1, len(left_out) + 1))
        for f, rows in enumerate(left_out):
            if len(rows):
                change = np.linalg.solve(P[np.ix_(rows, rows)], q[rows])
                coef[:, f + 1] -= P[:n, rows] @ change
                coef[rows, f + 1] = 0.0
        wanted = y[:, None] * coef
        least = np.where(
            (wanted >= 0.0).all(axis=0), (wanted / weight[:, None]).max(axis=0), np.inf
        )
        return cls(coef, least)

    @classmethod
    def for_task(cls, task: Task) -> AllOnMargin | None:
        """The check for all rows with weight and all folds of a task."""
        problem = task.problem
        rows = np.flatnonzero(problem.weight > 0)
        place = np.full(problem.n, -1)
        place[rows] = np.arange(len(rows))
        gone = [place[out][place[out] >= 0] for out in task.folds.left_out]
        K = problem.K[np.ix_(rows, rows)]
        small = cls.of(K, problem.y[rows], problem.weight[rows], problem.fit_intercept, gone)
        if small is None or len(rows) == problem.n:
            return small
        coef = np.zeros((problem.n, small.coef.shape[1]))
        coef[rows] = small.coef
        return cls(coef, small.least)

    def solves(self, column: IntArray, C: FloatArray) -> Mask:
        """Which of these columns (0 is the full data) are settled at their C."""
        return np.asarray(self.least[column] <= C)
