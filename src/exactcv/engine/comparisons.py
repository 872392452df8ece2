"""Which left-out values are at most a given number: most of them by proof, the others solved.

For a rank the values themselves do not matter.  From the solution with all rows, bounds tell where
the value of each left-out row lies (``bounds.py``); only rows for which the given number lies in
between are left out one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..judge.ledger import Ledger
from ..problem.folds import Folds
from ..problem.grid import Grid
from ..problem.problem import Problem, Task
from ..tolerances import TIE
from ..types import BoolArray, FloatArray, IntArray
from .bounds import Span
from .leave_one_out import LeaveOneOut
from .merged import Merged
from .moves import Mover, Standing

__all__ = ["Compared", "LeftOut", "compare", "left_out_values", "tie"]


# Without the only row of a class the model says the other class, on its margin.
ALONE = -1.0


class Compared(NamedTuple):
    """``at_most``, for each row asked for; how many were solved; the worst figures of all."""

    at_most: BoolArray
    solved: int
    kkt: float
    gap: float


def tie(bar: float) -> float:
    """Values that differ by less than this are equal."""
    return TIE * max(1.0, abs(bar))


@dataclass(frozen=True)
class LeftOut:
    """Leaves rows out of one solution; ``span`` is that of the problem."""

    problem: Problem
    merged: Merged
    standing: Standing
    span: Span
    tol: float
    cancel: NDArray[np.int32]

    @classmethod
    def of(cls, mover: Mover, standing: Standing, cancel: NDArray[np.int32]) -> LeftOut:
        """From a solution in which every row takes part."""
        span = Span.of(mover.problem)
        return cls(mover.problem, mover.merged, standing, span, mover.tol, cancel)

    def engine(self, rows: IntArray) -> LeaveOneOut:
        """What leaves out these rows, with a ledger that knows the solution."""
        singles = tuple(rows[:, None])
        C = np.array([self.standing.point.C])
        grid = Grid(C, 0.5 / (self.problem.n * C), scale_with_fold=False)
        folds = Folds(self.problem.n, singles, singles)
        task = Task(self.problem, folds, grid, want_decision=True, tol=self.tol)
        ledger = Ledger(task)
        ledger.full(0, self.standing.coef)
        return LeaveOneOut(task, ledger, self.span, self.cancel, self.merged)

    def values(self, rows: IntArray) -> tuple[FloatArray, float, float]:
        """y_i u_i of these rows, each by the model without it; the worst figures."""
        values, alone = np.full(len(rows), ALONE), self._alone(rows)
        rows = rows[~alone]
        if not len(rows):
            return values, self.standing.kkt, self.standing.gap
        engine = self.engine(rows)
        # The ledger may have given the coefficients back in another form.
        point = replace(self.standing.point, coef=self.merged.together(engine.ledger.coef[0]))
        engine.at(np.zeros(1, dtype=np.intp), [point])
        found = engine.ledger.certificate()
        values[~alone] = self.problem.y[rows] * engine.ledger.decision[0]
        return values, float(found.kkt[0]), float(found.gap[0])

    def signed_ranges(self, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Between which numbers y_i u_i lies, row by row."""
        low, high = self.engine(rows).ranges(0, self.standing.point)
        up, alone = self.problem.y[rows] > 0, self._alone(rows)
        low, high = np.where(up, low, -high), np.where(up, high, -low)
        return np.where(alone, ALONE, low), np.where(alone, ALONE, high)

    def _alone(self, rows: IntArray) -> BoolArray:
        """Which rows are the only ones of their class."""
        y = self.problem.y
        return np.array([np.count_nonzero(y == sign) == 1 for sign in (1.0, -1.0)])[
            (y[rows] < 0).astype(np.intp)
        ]


def compare(left_out: LeftOut, rows: IntArray, bar: float, proofs: bool = True) -> Compared:
    """For which rows is the left-out y_i u_i at most ``bar``, or equal to it (`tie`)?

    Without ``proofs`` every row is left out.
    """
    standing, slack = left_out.standing, tie(bar)
    at_most, open_ = np.zeros(len(rows), dtype=bool), np.ones(len(rows), dtype=bool)
    if proofs and len(rows):
        low, high = left_out.signed_ranges(rows)
        at_most, above = high <= bar, low > bar + 2.0 * slack
        open_ = ~(at_most | above)
    kkt, gap = standing.kkt, standing.gap
    if open_.any():
        values, *worst = left_out.values(rows[open_])
        at_most[open_] = values <= bar + slack
        kkt, gap = max(kkt, worst[0]), max(gap, worst[1])
    return Compared(at_most, int(np.count_nonzero(open_)), kkt, gap)


def left_out_values(mover: Mover, standing: Standing, cancel: NDArray[np.int32]) -> FloatArray:
    """y_i u_i of every row by the model without it."""
    return LeftOut.of(mover, standing, cancel).values(np.arange(mover.problem.n))[0]
