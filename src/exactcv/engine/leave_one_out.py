"""All leave-one-out folds at one C, from the full-data solution.

Rows without a coefficient change nothing.  For the others the label may follow from a bound
(``bounds.py``, ``shares.py``); if not, or if decision values are wanted, the row's coefficient is
driven to zero (``_core/_leave_out.pyx``) with only those rows in play that the bounds do not hold
in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from .. import tolerances
from .._core._leave_out import LeaveOut, Outcome
from ..judge import ledger as entries
from ..judge.certificate import implied_accuracy
from ..judge.ledger import Ledger
from ..problem.problem import Problem, Task
from ..runtime.threads import Cancelled
from ..types import FloatArray, IntArray
from .bounds import Reach, Span, labels_proved, reach
from .path import Point, StateArray, Tracker, at_knot
from .shares import Leaving, Shares, bordered_inverse, scale_of

__all__ = ["FullSolution", "LeaveOneOut"]

# Shares are tried if so many rows are open for each row at a knot: they cost an inverse first.
ENOUGH = 2
# Folds handed to the compiled loop at a time.
BLOCK = 256


@dataclass
class FullSolution:
    """The full-data solution at one grid point, in the form from which rows are left out."""

    problem: Problem
    state: StateArray
    coef: FloatArray
    u: FloatArray
    levels: FloatArray

    @cached_property
    def members(self) -> IntArray:
        """The rows at a knot."""
        return np.flatnonzero(at_knot(self.state))

    @cached_property
    def limits(self) -> tuple[FloatArray, FloatArray]:
        """Between which knots the u of each row on a segment lies."""
        knots, segment = self.problem.loss.knots, self.state // 2
        m, rows = knots.shape[1], np.arange(len(knots))
        low = np.where(segment > 0, knots[rows, np.maximum(segment - 1, 0)], -np.inf)
        high = np.where(segment < m, knots[rows, np.minimum(segment, m - 1)], np.inf)
        low[self.state < 0], high[self.state < 0] = -np.inf, np.inf
        return low, high

    def nearest(self, side: int) -> int:
        """The row that first reaches a knot when b falls (side 1) or rises (side -1)."""
        low, high = self.limits
        return int(np.argmin(self.u - low if side > 0 else high - self.u))

    def moved_to_knot(self, side: int) -> FullSolution:
        """The same coefficients, with the intercept at that end of its interval."""
        row, (low, high) = self.nearest(side), self.limits
        state = self.state.copy()
        state[row] -= side
        gap = (low if side > 0 else high)[row] - self.u[row]
        return FullSolution(self.problem, state, self.coef, self.u + gap, self.levels)


class LeaveOneOut:
    """Leaves rows out at one grid point after another."""

    def __init__(self, task: Task, ledger: Ledger, span: Span, cancel: NDArray[np.int32]):
        self.task, self.ledger, self.span, self.cancel = task, ledger, span, cancel
        self.events = 0

    @cached_property
    def tracker(self) -> Tracker:
        """For what has to be solved again, which is rare."""
        return Tracker(self.task.problem, self.cancel, self.task.tol)

    def at(self, l: int, point: Point) -> None:
        """Settle every fold at grid point l."""
        full = self._solution(l, point)
        row_of = self.task.folds.pair_rows
        has_weight = full.coef[row_of] != 0.0
        self._without_coefficient(l, full, np.flatnonzero(~has_weight))
        folds = np.flatnonzero(has_weight)
        if not len(folds):
            return
        bounds = reach(full.problem, self.span, full, row_of[folds], self._slack(l, full))
        left = np.ones(len(folds), dtype=bool)
        if not self.task.want_decision and self.ledger.sound(l):
            left = ~self._prove(l, bounds, folds)
            left[left] = ~self._prove_by_shares(l, full, folds[left])
        for mine, base in self._groups(full, left & bounds.up, left & ~bounds.up):
            engine = _Engine(base, in_play(full, base, bounds, mine))
            group = folds[mine]
            for start in range(0, len(group), BLOCK):
                self._solve(l, point, engine, group[start : start + BLOCK])
            self.events += engine.events

    def _solution(self, l: int, point: Point) -> FullSolution:
        """Canonical states: a row at a knot only if a coefficient is strictly inside its box."""
        problem, ledger = self.task.problem, self.ledger
        levels = problem.loss.coefficient_levels(point.C * problem.weight)
        u = ledger.h[l] + ledger.intercept[l]
        full = FullSolution(problem, point.state.copy(), ledger.coef[l].copy(), u, levels)
        members = full.members
        if not (problem.fit_intercept and len(members)):
            return full
        knot = full.state[members] // 2
        top, bottom = levels[members, knot], levels[members, knot + 1]
        slack = tolerances.AT_BOUND * (top - bottom)
        at_top = full.coef[members] >= top - slack
        at_bottom = full.coef[members] <= bottom + slack
        if (at_top | at_bottom).all():
            full.state[members] += np.where(at_top, -1, 1).astype(np.int8)
            full.coef[members] = np.where(at_top, top, bottom)
            del full.members  # it was worked out from the states before
        return full

    def _slack(self, l: int, full: FullSolution) -> float:
        """How far the full-data u may be from the exact ones, by their certificate.

        Twice the accuracy of f that the duality gap implies (f at a row, and f at the row that
        fixes the intercept), and the KKT violation.
        """
        ledger = self.ledger
        kkt, gap = ledger.kkt[l, -1], ledger.gap_abs[l, -1]
        scale = max(1.0, float(np.abs(full.u).max()))
        if self.task.problem.fit_intercept:
            # The gap bounds the suboptimality only if the coefficients sum to zero.
            gap += abs(float(ledger.coef[l].sum())) * scale
        accuracy = implied_accuracy(gap, 0.0, float(self.task.problem.diagonal.max()))
        return float(2.0 * accuracy + kkt * scale)

    # ---- folds that need no path ---------------------------------------------------------------

    def _without_coefficient(self, l: int, full: FullSolution, folds: IntArray) -> None:
        """Without the row the coefficients stay.

        The intercept too, unless it was an interval that this row limited.
        """
        if not len(folds):
            return
        row_of = self.task.folds.pair_rows
        limiting = np.zeros(full.problem.n, dtype=bool)
        if full.problem.fit_intercept and not len(full.members):
            limiting[[full.nearest(1), full.nearest(-1)]] = True
        # A coefficient that was zero but for rounding is put right by an entry of its own.
        moves = limiting[row_of[folds]] | (self.ledger.coef[l, row_of[folds]] != 0.0)
        self.ledger.unchanged(l, folds[~moves])
        if moves.any():
            coef = np.tile(full.coef, (int(moves.sum()), 1))
            self.ledger.solved(l, folds[moves], coef)

    def _prove(self, l: int, bounds: Reach, folds: IntArray) -> NDArray[np.bool_]:
        """Enter the labels that follow from a bound; returns which those are."""
        y = self.task.problem.y[self.task.folds.pair_rows[folds]]
        wrong, right = labels_proved(y, bounds)
        settled = wrong | right
        self.ledger.proved(l, folds[settled], wrong[settled])
        return settled

    def _prove_by_shares(self, l: int, full: FullSolution, folds: IntArray) -> NDArray[np.bool_]:
        """The same with the bounds that are sharp where the others are not, at some cost."""
        problem, members = full.problem, full.members
        if not len(members) or len(folds) < ENOUGH * len(members):
            return np.zeros(len(folds), dtype=bool)
        knot = full.state[members] // 2
        top, bottom = full.levels[members, knot], full.levels[members, knot + 1]
        missed = np.abs(full.u[members] - problem.loss.knots[members, knot])
        gap = float(self.ledger.gap_abs[l, -1] + (top - bottom) @ missed)
        gap += abs(float(full.coef.sum())) * float(np.abs(full.u).max())
        who = self.task.folds.pair_rows[folds]
        place = np.full(problem.n, -1, dtype=np.intp)
        place[members] = np.arange(len(members))
        K, coef, y = problem.K, full.coef[who], problem.y[who]
        rows = Leaving(
            coef, problem.diagonal[who], place[who], lambda some: K[np.ix_(who[some], members)]
        )
        room = bottom - full.coef[members], top - full.coef[members]
        shares = Shares(K[np.ix_(members, members)], *room, problem.fit_intercept, gap)
        # A coefficient of the other sign is one that may as well be zero.
        value = np.where(y * coef > 0, y * full.u[who] - self._slack(l, full), -np.inf)
        right = shares.prove(rows, value)
        self.ledger.proved(l, folds[right], np.zeros(int(right.sum()), dtype=bool))
        return right

    # ---- folds that are solved -----------------------------------------------------------------

    def _groups(
        self, full: FullSolution, up: NDArray[np.bool_], down: NDArray[np.bool_]
    ) -> Iterator[tuple[NDArray[np.bool_], FullSolution]]:
        """Folds that start from the same rows at a knot.

        If there are none and the intercept is free, it first moves, towards the side that the
        sign of the coefficient (``up``, ``down``) demands, until a row reaches a knot.
        """
        if not full.problem.fit_intercept or len(full.members):
            if (up | down).any():
                yield up | down, _independent(full)
            return
        if up.any():
            yield up, full.moved_to_knot(1)
        if down.any():
            yield down, full.moved_to_knot(-1)

    def _solve(self, l: int, point: Point, engine: _Engine, folds: IntArray) -> None:
        who = self.task.folds.pair_rows[folds]
        coef, failed = engine.leave_out(who, self.cancel)
        if self.cancel[0]:
            raise Cancelled
        good = slice(None) if not failed.any() else np.flatnonzero(~failed)
        within = tolerances.POLISH * self.task.tol
        failed[good] = ~self.ledger.solved(l, folds[good], coef[good], within=within)
        for f, j in zip(folds[failed], who[failed], strict=True):
            self._resolve(l, point, f, j)

    def _resolve(self, l: int, point: Point, fold: int, j: int) -> None:
        """One fold by the active set from the full-data solution."""
        state = point.state.copy()
        state[j] = -1
        start = Point(point.C, state, point.coef, point.h, point.b)
        solution = self.tracker.polish(self.tracker.move(start, point.C))
        good = self.ledger.solved(l, [fold], solution.coef[None], how=entries.FALLBACK)[0]
        if not good and self.ledger.sound(l):
            solution = self.tracker.slow_but_sure(solution)
            self.ledger.solved(l, [fold], solution.coef[None], how=entries.FALLBACK)


def in_play(
    full: FullSolution, base: FullSolution, bounds: Reach, mine: NDArray[np.bool_]
) -> IntArray:
    """The rows that may change their state when one of ``mine`` is left out."""
    fall, rise = bounds.farthest(mine)
    low, high = full.limits
    margin = 1e-9 * max(1.0, float(np.abs(full.u).max()))
    moving = (full.u - low <= fall + margin) | (high - full.u <= rise + margin)
    moving[base.members] = moving[full.members] = True
    return np.flatnonzero((full.state >= 0) & moving)


class _Engine:
    """The compiled loop for one solution, with the table that all its rows share.

    The table is the bordered system of the rows at a knot, inverted (P), and its border on the
    rows in play.
    """

    def __init__(self, base: FullSolution, rows: IntArray):
        problem, members = base.problem, base.members
        self.base, self.rows = base, rows
        self.position = np.full(problem.n, -1, dtype=np.intp)
        self.position[rows] = np.arange(len(rows))
        self.border = self._bordered(rows)
        self.P = bordered_inverse(problem.K[np.ix_(members, members)], problem.fit_intercept)
        scale = max(1.0, float(np.abs(base.u).max()))
        # Rounding may put a row a little behind its knot; the loop expects it on its own side.
        u = np.clip(base.u, *base.limits)
        u[members] = problem.loss.knots[members, base.state[members] // 2]
        self._loop = LeaveOut(
            problem.K, rows, self.border, self.P, self.border @ self.P, self.position[members],
            u[rows], base.coef[rows], base.state[rows],
            problem.loss.knots[rows], base.levels[rows],
            problem.fit_intercept, tolerances.CROSSING * scale,
        )  # fmt: skip

    @property
    def events(self) -> int:
        return int(self._loop.events)

    def leave_out(
        self, who: IntArray, cancel: NDArray[np.int32]
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Coefficients without each row of ``who``, and which drives came to nothing."""
        out = np.empty((len(who), self.base.problem.n))
        out[:] = self.base.coef
        outcome = np.empty(len(who), dtype=np.int8)
        coef, columns = self.base.coef[who], self._columns(who)
        self._loop.leave_out(who, self.position[who], coef, columns, out, outcome, cancel)
        return out, outcome != Outcome.DONE

    def _bordered(self, rows: IntArray) -> FloatArray:
        members = self.base.members
        border = np.ones((len(rows), len(members) + self.base.problem.fit_intercept))
        border[:, : len(members)] = self.base.problem.K[np.ix_(rows, members)]
        return border

    def _columns(self, who: IntArray) -> FloatArray:
        """The table's columns (as rows) of the rows to be left out."""
        members = self.base.members
        response = self._bordered(who) @ self.P
        columns = self.base.problem.K[np.ix_(who, self.rows)]
        columns -= response @ self.border.T
        columns[:, self.position[members]] = -response[:, : len(members)]
        return columns


def _independent(full: FullSolution) -> FullSolution:
    """An equal solution in which the rows at a knot are linearly independent.

    Duplicated rows share their weight in any proportion.  Shift it, changing no u, until all but
    one of each dependent set are at an end of their box.
    """
    while len(members := full.members):
        K_MM = full.problem.K[np.ix_(members, members)]
        if full.problem.fit_intercept:
            K_MM = K_MM + scale_of(K_MM)
        least = tolerances.DEPENDENT * scale_of(K_MM)
        _, pivots, rank, _ = lapack.dpstrf(K_MM, tol=least, lower=1)
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
    return FullSolution(full.problem, state, moved, full.u, full.levels)
