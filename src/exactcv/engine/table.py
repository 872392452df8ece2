"""The table from which rows are left out (``_core/_base.pyx``), shared by all rows of a solution."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from .._core._base import Base
from .._core._drive import Outcome
from .._core._leave_out import LeaveOut
from ..problem.problem import Problem
from ..types import FloatArray, IntArray
from .full_solution import FullSolution, independent
from .inverse import Bordered, scale_of

__all__ = ["Inverse", "Table"]

# Added to a matrix that rounding keeps from being positive definite, relative to its diagonal.
RIDGE = 1e-14


class Inverse:
    """The bordered kernel matrix of the rows at a knot, kept while they stay the same.

    Attributes
    ----------
    members : the rows.
    system : what solves with it.
    P : its inverse, without the border.
    """

    def __init__(self, problem: Problem):
        self.problem = problem
        self._had: IntArray | None = None

    def of(self, full: FullSolution) -> FullSolution:
        """Make it that of the members; returns a solution whose members are independent."""
        if self._had is not None and np.array_equal(full.members, self._had):
            return full
        self._had, self.members = None, full.members
        self.system = self._system()
        if self.system.least > tolerances.DEPENDENT:
            self._had = full.members
        elif len(full.members) > 1:
            full = independent(full)
            self.members = full.members
            self.system = self._system()
        self.P = self.system.inverse()
        return full

    def _system(self) -> Bordered:
        K_MM = self.problem.K[np.ix_(self.members, self.members)]
        system = Bordered(K_MM, self.problem.fit_intercept)
        ridge = RIDGE * scale_of(K_MM)
        while system.least == 0.0:  # not positive definite, by rounding
            K_MM.flat[:: len(K_MM) + 1] += ridge
            system, ridge = Bordered(K_MM, self.problem.fit_intercept), 10.0 * ridge
        return system


class Table:
    """The compiled loop for one solution on the rows in play.

    Parameters
    ----------
    base : FullSolution
        With independent members.
    inverse : Inverse
        Of those members.
    others : (o,) intp
        The rows that may change their state, members aside.
    """

    def __init__(self, base: FullSolution, inverse: Inverse, others: IntArray):
        problem, members, k = base.problem, inverse.members, len(inverse.members)
        self.base, self.inverse, self.others, self.members = base, inverse, others, members
        rows = np.concatenate([members, others])
        self.position = np.full(problem.n, -1, dtype=np.intp)
        self.position[rows] = np.arange(len(rows))
        self.border = problem.K[np.ix_(others, members)]
        columns = np.empty((k, len(rows)))
        columns[:, :k] = inverse.P
        response, tail = inverse.system.solve(self.border)
        columns[:, k:] = response.T
        # Rounding may put a row a little behind its knot; the loop expects it on its own side.
        u = np.clip(base.u, *base.limits)
        u[members] = problem.loss.knots[members, base.state[members] // 2]
        scale = max(1.0, float(np.abs(base.u).max()))
        start = Base(
            problem.K, rows, columns, self.border, tail,
            u[rows], base.coef[rows], base.state[rows],
            problem.loss.knots[rows], base.levels[rows],
            problem.fit_intercept, tolerances.CROSSING * scale,
        )  # fmt: skip
        self._loop = LeaveOut(start)

    @property
    def events(self) -> int:
        """Changes of place so far, all rows together."""
        return int(self._loop.events)

    def leave_out(
        self, who: IntArray, taken: FloatArray, cancel: NDArray[np.int32]
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Coefficients when each row of ``who`` loses what is taken; which came to nothing."""
        coef = np.empty((len(who), self.base.problem.n))
        coef[:] = self.base.coef
        outcome, changes = np.empty(len(who), dtype=np.int8), np.empty(len(who), dtype=np.intp)
        value, rest = np.empty(len(who)), self.base.coef[who] - taken
        self._loop.leave_out(
            who, self.position[who], taken, rest, self._columns(who), coef, value, outcome,
            changes, cancel,
        )  # fmt: skip
        return coef, outcome != Outcome.DONE

    def _columns(self, who: IntArray) -> FloatArray:
        """The table's columns (as rows) of rows on a segment that are to be left out."""
        problem, k = self.base.problem, len(self.members)
        columns = np.zeros((len(who), k + len(self.others)))
        on_segment = np.flatnonzero((self.position[who] < 0) | (self.position[who] >= k))
        if not len(on_segment):
            return columns
        out = who[on_segment]
        response, tail = self.inverse.system.solve(problem.K[np.ix_(out, self.members)])
        column = problem.K[np.ix_(out, self.others)] - tail[:, None]
        column -= response @ self.border.T
        columns[on_segment, :k], columns[on_segment, k:] = -response, column
        return columns
