"""All leave-one-out folds at one C, from the full-data solution.

Rows without a coefficient change nothing.  For the others the label may follow from a bound
(``bounds.py``); if not, or if decision values are wanted, the row's coefficient is driven to zero
(``_core/_leave_out.pyx``) with only those rows in play that the bounds do not hold in place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from .. import ledger as entries
from .. import tolerances
from .._core._leave_out import LeaveOut, Outcome
from ..folds import IntArray
from ..ledger import Ledger
from ..losses import FloatArray
from ..problem import Problem, Task
from .bounds import Span, labels_proved, reach
from .path import Point, StateArray, Tracker

__all__ = ["FullSolution", "LeaveOneOut"]

# Folds handed to the compiled loop at a time.
BLOCK = 256


@dataclass
class FullSolution:
    """The full-data solution at one grid point, in the form from which rows are left out."""

    state: StateArray
    coef: FloatArray
    u: FloatArray
    levels: FloatArray

    @property
    def members(self) -> IntArray:
        """The rows at a knot."""
        return np.flatnonzero((self.state >= 0) & (self.state % 2 == 1))


class LeaveOneOut:
    """Leaves rows out at one grid point after another."""

    def __init__(self, task: Task, ledger: Ledger, tracker: Tracker, span: Span):
        self.task, self.ledger, self.tracker, self.span = task, ledger, tracker, span
        self.events = 0

    def at(self, l: int, point: Point) -> None:
        """Settle every fold at grid point l."""
        full = self._solution(l, point)
        row_of = self.task.folds.pair_rows
        has_weight = full.coef[row_of] != 0.0
        self._without_coefficient(l, full, np.flatnonzero(~has_weight))
        folds = np.flatnonzero(has_weight)
        if not len(folds):
            return
        if not self.task.want_decision:
            folds = self._prove(l, full, folds)
        for group, base in self._groups(full, folds):
            for start in range(0, len(group), BLOCK):
                self._solve(l, point, base, group[start : start + BLOCK])

    def _solution(self, l: int, point: Point) -> FullSolution:
        """Canonical states: a row at a knot only if a coefficient is strictly inside its box."""
        problem, ledger = self.task.problem, self.ledger
        levels = problem.loss.coefficient_levels(point.C * problem.weight)
        full = FullSolution(
            point.state.copy(), ledger.coef[l].copy(), ledger.h[l] + ledger.intercept[l], levels
        )
        members = full.members
        knot = full.state[members] // 2
        top, bottom = levels[members, knot], levels[members, knot + 1]
        slack = tolerances.AT_BOUND * (top - bottom)
        at_top = full.coef[members] >= top - slack
        at_bottom = full.coef[members] <= bottom + slack
        if problem.fit_intercept and (at_top | at_bottom).all():
            full.state[members] += np.where(at_top, -1, 1).astype(np.int8)
        return full

    # ---- folds that need no path ---------------------------------------------------------------

    def _without_coefficient(self, l: int, full: FullSolution, folds: IntArray) -> None:
        """Without the row the coefficients stay; the intercept too, unless it was an interval
        that this row limited."""
        row_of = self.task.folds.pair_rows
        limiting = np.zeros(self.task.problem.n, dtype=bool)
        if self.task.problem.fit_intercept and not len(full.members):
            limiting[[_nearest(self.task.problem, full, side) for side in (1, -1)]] = True
        moves = limiting[row_of[folds]]
        self.ledger.unchanged(l, folds[~moves])
        if moves.any():
            coef = np.tile(self.ledger.coef[l], (int(moves.sum()), 1))
            self.ledger.solved(l, folds[moves], coef)

    def _prove(self, l: int, full: FullSolution, folds: IntArray) -> IntArray:
        """Enter the labels that follow from a bound; returns the folds that are left."""
        problem = self.task.problem
        who = self.task.folds.pair_rows[folds]
        bounds = reach(problem, self.span, full.state, full.levels, full.coef, full.u, who)
        wrong, right = labels_proved(problem.y, bounds, who)
        settled = wrong | right
        self.ledger.proved(l, folds[settled], wrong[settled])
        return folds[~settled]

    # ---- folds that are solved -----------------------------------------------------------------

    def _groups(
        self, full: FullSolution, folds: IntArray
    ) -> list[tuple[IntArray, FullSolution]]:
        """Folds that start from the same rows at a knot.

        If there are none and the intercept is free, it first moves, towards the side that the
        sign of the coefficient demands, until a row reaches a knot.
        """
        if not self.task.problem.fit_intercept or len(full.members):
            return [(folds, _independent(self.task.problem, full))]
        coef = full.coef[self.task.folds.pair_rows[folds]]
        groups = []
        for side, group in ((1, folds[coef > 0]), (-1, folds[coef < 0])):
            if len(group):
                groups.append((group, _moved_to_knot(self.task.problem, full, side)))
        return groups

    def _solve(self, l: int, point: Point, base: FullSolution, folds: IntArray) -> None:
        who = self.task.folds.pair_rows[folds]
        coef, failed = self._drive(base, who)
        if not failed.all():
            good = ~failed
            failed[good] = ~self.ledger.solved(
                l, folds[good], coef[good], within=tolerances.POLISH * self.task.tol
            )
        for f, j in zip(folds[failed], who[failed], strict=True):
            self._resolve(l, point, f, j)

    def _drive(self, base: FullSolution, who: IntArray) -> tuple[FloatArray, np.ndarray]:
        """Coefficients without each row of ``who``, and which drives came to nothing."""
        problem = self.task.problem
        rows = self._in_play(base, who)
        table = _Table.of(problem, base, rows)
        position = np.full(problem.n, -1, dtype=np.intp)
        position[rows] = np.arange(len(rows))
        out = np.tile(base.coef, (len(who), 1))
        outcome = np.zeros(len(who), dtype=np.int8)
        engine = LeaveOut(
            problem.K, rows, table.border, table.P, position[base.members],
            base.u[rows], base.coef[rows], base.state[rows],
            np.ascontiguousarray(problem.loss.knots[rows]),
            np.ascontiguousarray(base.levels[rows]),
            problem.fit_intercept, tolerances.CROSSING * max(1.0, float(np.abs(base.u).max())),
        )  # fmt: skip
        columns = table.columns(problem, base, rows, who)
        engine.leave_out(who, position[who], base.coef[who], columns, out, outcome)
        self.events += engine.events
        return out, outcome != Outcome.DONE

    def _in_play(self, base: FullSolution, who: IntArray) -> IntArray:
        """The rows that may change their state when one of ``who`` is left out."""
        problem = self.task.problem
        bounds = reach(problem, self.span, base.state, base.levels, base.coef, base.u, who)
        low, high = _limits(problem, base)
        margin = 1e-9 * max(1.0, float(np.abs(base.u).max()))
        moving = (base.u - low <= bounds.fall + margin) | (high - base.u <= bounds.rise + margin)
        return np.flatnonzero((base.state >= 0) & (moving | (base.state % 2 == 1)))

    def _resolve(self, l: int, point: Point, fold: int, j: int) -> None:
        """One fold by the active set from the full-data solution."""
        state = point.state.copy()
        state[j] = -1
        start = Point(point.C, state, point.coef, point.h, point.b, 0, False)
        solution = self.tracker.polish(self.tracker.move(start, point.C))
        self.ledger.solved(l, np.array([fold]), solution.coef[None], how=entries.FALLBACK)


@dataclass
class _Table:
    """The bordered system of the rows at a knot, inverted, and its border on the rows in play."""

    border: FloatArray
    P: FloatArray

    @classmethod
    def of(cls, problem: Problem, base: FullSolution, rows: IntArray) -> _Table:
        members = base.members
        width = len(members) + problem.fit_intercept
        border = np.ones((len(rows), width))
        border[:, : len(members)] = problem.K[np.ix_(rows, members)]
        K_MM = problem.K[np.ix_(members, members)]
        return cls(border, bordered_inverse(K_MM, problem.fit_intercept))

    def columns(
        self, problem: Problem, base: FullSolution, rows: IntArray, who: IntArray
    ) -> FloatArray:
        """The table's columns (as rows) of the rows to be left out."""
        members = base.members
        mine = np.ones((len(who), self.P.shape[0]))
        mine[:, : len(members)] = problem.K[np.ix_(who, members)]
        response = mine @ self.P
        columns = problem.K[np.ix_(who, rows)] - response @ self.border.T
        columns[:, np.searchsorted(rows, members)] = -response[:, : len(members)]
        return np.ascontiguousarray(columns)


def bordered_inverse(K_MM: FloatArray, intercept: bool) -> FloatArray:
    """The inverse of [K_MM 1; 1' 0], or of K_MM without an intercept.

    A constant is added to K_MM first, which only shifts the intercept: K_MM alone may be singular.
    """
    size = len(K_MM)
    if size == 0:
        return np.zeros((0, 0))
    constant = float(K_MM.diagonal().max()) if intercept else 0.0
    inverse = np.linalg.inv(K_MM + constant)
    inverse = 0.5 * (inverse + inverse.T)
    if not intercept:
        return inverse
    ones = inverse.sum(axis=1)
    total = ones.sum()
    P = np.empty((size + 1, size + 1))
    P[:size, :size] = inverse - np.outer(ones, ones) / total
    P[:size, size] = P[size, :size] = ones / total
    P[size, size] = constant - 1.0 / total
    if size == 1:
        P[0, 0] = 0.0  # exactly: one coefficient alone cannot move
    return P


def _independent(problem: Problem, full: FullSolution) -> FullSolution:
    """An equal solution in which the rows at a knot are linearly independent.

    Duplicated rows share their weight in any proportion.  Shift it, changing no u, until all but
    one of each dependent set are at an end of their box.
    """
    while len(members := full.members):
        K_MM = problem.K[np.ix_(members, members)]
        if problem.fit_intercept:
            K_MM = K_MM + K_MM.diagonal().max()
        factor, pivots, rank, _ = lapack.dpstrf(
            K_MM, tol=tolerances.DEPENDENT * K_MM.diagonal().max(), lower=1
        )
        if rank == len(members):
            break
        order = pivots - 1
        chosen, extra = order[:rank], order[rank]
        null = np.zeros(len(members))
        null[extra] = 1.0
        null[chosen] = -np.linalg.solve(K_MM[np.ix_(chosen, chosen)], K_MM[chosen, extra])
        full = _shift_along(full, members, null)
    return full


def _shift_along(full: FullSolution, members: IntArray, null: FloatArray) -> FullSolution:
    """Move the coefficients of the members along ``null`` until the first is at a level."""
    knot = full.state[members] // 2
    top, bottom = full.levels[members, knot], full.levels[members, knot + 1]
    coef = full.coef[members]
    null = np.where(np.abs(null) > 1e-12, null, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(null > 0, (top - coef) / null, (bottom - coef) / null)
    room[null == 0.0] = np.inf
    first = int(np.argmin(room))
    state, moved = full.state.copy(), full.coef.copy()
    moved[members] = np.clip(coef + room[first] * null, bottom, top)
    moved[members[first]] = top[first] if null[first] > 0 else bottom[first]
    state[members[first]] += -1 if null[first] > 0 else 1
    return FullSolution(state, moved, full.u, full.levels)


def _limits(problem: Problem, full: FullSolution) -> tuple[FloatArray, FloatArray]:
    """Between which knots the u of each row on a segment lies."""
    knots, segment = problem.loss.knots, full.state // 2
    padded = np.column_stack([np.full(problem.n, -np.inf), knots, np.full(problem.n, np.inf)])
    rows = np.arange(problem.n)
    low, high = padded[rows, segment], padded[rows, segment + 1]
    low[full.state < 0], high[full.state < 0] = -np.inf, np.inf
    return low, high


def _nearest(problem: Problem, full: FullSolution, side: int) -> int:
    """The row that first reaches a knot when b falls (side 1) or rises (side -1)."""
    low, high = _limits(problem, full)
    return int(np.argmin(full.u - low if side > 0 else high - full.u))


def _moved_to_knot(problem: Problem, full: FullSolution, side: int) -> FullSolution:
    """The same coefficients, with the intercept at the end of its interval."""
    row = _nearest(problem, full, side)
    low, high = _limits(problem, full)
    state = full.state.copy()
    state[row] -= side
    u = full.u + ((low[row] - full.u[row]) if side > 0 else (high[row] - full.u[row]))
    return FullSolution(state, full.coef, u, full.levels)
