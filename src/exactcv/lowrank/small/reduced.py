"""Problems in m dimensions with rows in memory: all that the solver ever solves outright.

    min over w, b   1/2 ||w||^2 - a'w - beta b + sum_i B_i max(0, -r_i),   r_i = y_i (z_i'w + b) - 1

The linear term stands for rows that are not there: those known to be at their bound add B_i y_i z_i
to a and B_i y_i to beta (``lowrank/solver.py``).  The optimality conditions: there are c_i with

    w = a + sum c_i z_i,   beta + sum c_i = 0,
    y_i c_i = B_i where r_i < 0,   0 where r_i > 0,   in between where r_i = 0.

Rows are *low* (r < 0, coefficient at its bound), *free* (r = 0) or *high* (r > 0).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...types import FloatArray

__all__ = ["FREE", "HIGH", "LOW", "Reduced", "Reply", "StateArray", "best_intercept"]

StateArray = NDArray[np.int8]
LOW, FREE, HIGH = np.int8(0), np.int8(1), np.int8(2)


@dataclass(frozen=True)
class Reduced:
    """The rows and the linear term; ``box`` is B."""

    Z: FloatArray
    y: FloatArray
    box: FloatArray
    a: FloatArray
    beta: float
    fit_intercept: bool

    def only(self, kept: NDArray[Any], coef: FloatArray) -> Reduced:
        """The problem of some rows (numbers or a mask); the others keep these coefficients."""
        gone = coef != 0.0
        gone[kept] = False
        return Reduced(
            self.Z[kept],
            self.y[kept],
            self.box[kept],
            self.a + coef[gone] @ self.Z[gone],
            self.beta + float(coef[gone].sum()),
            self.fit_intercept,
        )

    def change(self, step: FloatArray) -> FloatArray:
        """How r changes with theta = (w, b)."""
        out = self.Z @ step[:-1]
        out += step[-1]
        out *= self.y
        return np.asarray(out)

    def margins(self, theta: FloatArray) -> FloatArray:
        """r at theta."""
        r = self.change(theta)
        r -= 1.0
        return r


@dataclass(frozen=True)
class Reply:
    """A solution: theta = (w, b), signed coefficients, and the place of each row."""

    theta: FloatArray
    coef: FloatArray
    state: StateArray
    solved: bool
    steps: int


def best_intercept(problem: Reduced, w: FloatArray) -> float:
    """The intercept that minimises the objective for this w; the midpoint of an interval.

    The slope in b is -beta - sum of B_i y_i over the low rows.  It starts low far to the left,
    where the positive rows are low, and rises by B_i at the b where row i has r_i = 0.
    """
    where = problem.y - problem.Z @ w
    order = np.argsort(where, kind="stable")
    at, rise = where[order], problem.box[order]
    slope = -problem.beta - float(problem.box[problem.y > 0].sum()) + np.cumsum(rise)
    if not len(at):
        return 0.0
    slack = 1e-12 * (abs(problem.beta) + float(problem.box.sum()))
    k = int(np.searchsorted(slope, -slack))  # the first knot after which it no longer falls
    if k >= len(at):
        return float(at[-1])
    if slope[k] <= slack and k + 1 < len(at):
        return float(0.5 * (at[k] + at[k + 1]))
    return float(at[k])
