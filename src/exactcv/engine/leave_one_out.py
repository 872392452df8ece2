"""All leave-one-out folds at one C, from the full-data solution.

Leaving out a row makes the box of its site (``merged.py``) smaller by the box of the row.  Where
the site's coefficient still fits, nothing changes.  For the others the label may follow from a
bound (``bounds.py``, ``shares.py``); if not, or if decision values are wanted, what is too much is
taken away from the coefficient (``_core/_leave_out.pyx``), with only those rows in play that the
bounds do not hold in place.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from ..judge.intercept import DOUBT
from ..judge.ledger import Ledger
from ..problem.problem import Task
from ..types import FloatArray, IntArray
from .bounds import Reach, Span, labels_proved, reach
from .fold_solver import FoldSolver, Leaves, Place, at_a_time, blocks
from .full_solution import FullSolution, Proportional
from .merged import Merged
from .path import Point, at_knot
from .shares import Leaving, Shares
from .table import Inverse, Table

__all__ = ["LeaveOneOut", "groups", "in_play", "places", "runs"]

# Shares are tried if so many rows are open for each row at a knot: they cost an inverse first.
ENOUGH = 2
# Up to this share of rows at a knot, K c of every fold costs less than all u by the table.
MOST_FREE = 0.25


class LeaveOneOut:
    """Leaves rows out at one grid point after another.

    Parameters
    ----------
    task, ledger, span, cancel
    merged : Merged, optional
        Rows that are one; none if not given.
    judge_all : bool
        Have every solution judged, also those whose label is certain without.
    """

    def __init__(
        self,
        task: Task,
        ledger: Ledger,
        span: Span,
        cancel: NDArray[np.int32],
        merged: Merged | None = None,
        judge_all: bool = False,
    ):
        self.task, self.ledger, self.span, self.cancel = task, ledger, span, cancel
        self.merged = Merged.nothing(task.problem) if merged is None else merged
        self.problem = self.merged.problem
        self.solver = FoldSolver(task, ledger, span, cancel, self.merged, judge_all)
        self._twins = self._find_twins()

    def at(self, ls: IntArray, points: list[Point], inverse: Inverse | None = None) -> int:
        """Settle every fold at these grid points; returns how many rows changed their place.

        What rows at a knot need is worked out again only where they differ from the last point's;
        ``inverse`` is one that has seen other points.
        """
        # Where no row is at a knot, there are two groups of folds, each with a row of its own.
        inverses, events = (inverse or Inverse(self.problem), Inverse(self.problem)), 0
        self.ledger.how[ls] = 0
        seen: set[int] = set()
        for place in places(ls, points):
            if place.proportional and not self.task.want_decision and place.l not in seen:
                seen.update(place.ls.tolist())
                self._prove_along(place)
            if (self.ledger.how[place.l, self._all.folds] == 0).any():
                events += self._settle(place, inverses)
            self.ledger.alike(place.l, *self._twins)
        return events

    def _settle(self, place: Place, inverses: tuple[Inverse, Inverse]) -> int:
        full = self._solution(place.l, place.point)
        leaves = self._all
        # What was found at another C may hold here too; what is found here may hold at others.
        todo = self.ledger.how[place.l, leaves.folds] == 0
        if place.proportional:
            todo |= (self.ledger.how[np.ix_(place.later, leaves.folds)] == 0).any(axis=0)
        leaves = leaves.part(todo).of(full)
        here = self.ledger.how[place.l, leaves.folds] == 0
        nothing, fits = full.coef[leaves.sites] == 0.0, leaves.taken == 0.0
        if nothing.any():
            self._without_coefficient(place, full, leaves.part(nothing & here))
        if (fits & ~nothing).any():
            self._with_room(place, full, leaves.part(fits & ~nothing & here))
        if fits.all():
            return 0
        return self._with_coefficient(place, full, leaves.part(~fits), inverses)

    def ranges(self, l: int, point: Point) -> tuple[FloatArray, FloatArray]:
        """Between which numbers each left-out value lies for sure, before any fold is solved.

        The whole line where nothing is known.
        """
        count = len(self.task.folds.pair_rows)
        low, high = np.full(count, -np.inf), np.full(count, np.inf)
        if not self.ledger.sound(l):
            return low, high
        full = self._solution(l, point)
        leaves, slack = self._leaves(full), self._slack(l, full)
        nothing, fits = full.coef[leaves.sites] == 0.0, leaves.taken == 0.0
        stays = fits & np.where(nothing, ~self._moves(l, full, leaves), self._inside(full, leaves))
        low[leaves.folds[stays]] = full.u[leaves.sites[stays]] - slack
        high[leaves.folds[stays]] = full.u[leaves.sites[stays]] + slack
        rest = leaves.part(~fits)
        if len(rest):
            bounds = reach(full.problem, self.span, full, rest.sites, rest.taken, slack)
            low[rest.folds], high[rest.folds] = bounds.low, bounds.high
        twins, others = self._twins
        low[twins], high[twins] = low[others], high[others]
        return low, high

    def _with_coefficient(
        self, place: Place, full: FullSolution, leaves: Leaves, inverses: tuple[Inverse, Inverse]
    ) -> int:
        l = place.l
        slack = self._slack(l, full)
        bounds = reach(full.problem, self.span, full, leaves.sites, leaves.taken, slack)
        left = np.ones(len(leaves), dtype=bool)
        if not self.task.want_decision and self.ledger.sound(l) and not place.proportional:
            left = ~self._prove(l, bounds, leaves)
            left[left] = ~self._prove_by_shares(l, full, leaves.part(left), slack)
        events = 0
        some = groups(full, left & bounds.up, left & ~bounds.up)
        for (mine, start), inverse in zip(some, inverses, strict=False):
            base = inverse.of(start)
            group = leaves.part(mine).of(base)
            moving = in_play(full, bounds, mine)
            if self.task.want_decision and _all_by_table(base, moving, len(group)):
                moving = base.state >= 0  # then the table knows all u
            moving[group.sites], moving[base.members] = True, False
            leaving = int(np.count_nonzero(moving[group.sites]))
            table = Table(base, inverse.columns(np.flatnonzero(moving), leaving))
            self.solver.settle(place, table, group)
            events += table.events
        return events

    def _solution(self, l: int, point: Point) -> FullSolution:
        ledger = self.ledger
        levels = self.problem.loss.coefficient_levels(point.C * self.problem.weight)
        u = ledger.h[l] + ledger.intercept[l]
        return FullSolution(self.problem, point.state, point.coef, u, levels).canonical()

    def _find_twins(self) -> tuple[IntArray, IntArray]:
        """Folds that leave out a row like another fold's, and those folds."""
        rows = self.task.folds.pair_rows
        seen: dict[tuple[int, float], int] = {}
        site, weight = self.merged.first[rows], self.task.problem.weight[rows]
        copies = np.flatnonzero(self.merged.copies[rows] > 1)
        of = np.arange(len(rows))
        for f in copies:
            of[f] = seen.setdefault((int(site[f]), float(weight[f])), int(f))
        twins = np.flatnonzero(of != np.arange(len(rows)))
        return twins, of[twins]

    def _leaves(self, full: FullSolution) -> Leaves:
        """All folds but twins; what each takes away so that the site fits into what is left."""
        return self._all.of(full)

    @cached_property
    def _all(self) -> Leaves:
        """The same before anything is taken."""
        folds = np.delete(np.arange(len(self.task.folds.pair_rows)), self._twins[0])
        rows = self.task.folds.pair_rows[folds]
        sites = self.merged.first[rows]
        gone = np.ones(len(rows))
        weight = self.problem.weight[sites]
        np.divide(self.task.problem.weight[rows], weight, out=gone, where=weight > 0)
        keep = np.where(self.merged.copies[rows] > 1, 1.0 - gone, 0.0)
        return Leaves(folds, rows, sites, keep, np.zeros(len(rows)))

    def _slack(self, l: int | IntArray, full: FullSolution | Proportional) -> FloatArray:
        """How far the full-data u may be from the exact ones, by their certificate.

        Twice the accuracy of f that the duality gap implies (f at a row, and f at the row that
        fixes the intercept), and the KKT violation.
        """
        ledger = self.ledger
        kkt, gap = ledger.kkt[l, -1], ledger.gap_abs[l, -1]
        scale = np.maximum(1.0, np.abs(full.u).max(axis=-1))
        if self.problem.fit_intercept:
            # The gap bounds the suboptimality only if the coefficients sum to zero.
            gap = gap + np.abs(full.coef.sum(axis=-1)) * scale
        accuracy = np.sqrt(2.0 * gap * max(float(self.problem.diagonal.max()), 0.0))
        return np.asarray(2.0 * accuracy + kkt * scale)

    # ---- folds that need no path ---------------------------------------------------------------

    def _without_coefficient(self, place: Place, full: FullSolution, leaves: Leaves) -> None:
        """Without the row the coefficients stay.

        The intercept too, unless it was an interval that this row limited.
        """
        if not len(leaves):
            return
        moves = self._moves(place.l, full, leaves)
        self.ledger.unchanged(place.l, leaves.folds[~moves])
        if moves.any():
            self._enter_full(place, full, leaves.part(moves))

    def _moves(self, l: int, full: FullSolution, leaves: Leaves) -> NDArray[np.bool_]:
        """Which rows without a coefficient may have held the intercept where it is."""
        limiting = np.zeros(full.problem.n, dtype=bool)
        if full.problem.fit_intercept and not len(full.members):
            limiting[[full.nearest(1), full.nearest(-1)]] = True
        if full.problem.fit_intercept:
            # At a knot with 0 strictly inside its box: it may be the one that held the intercept.
            bottom, top = full.box
            limiting[full.members[(bottom < 0.0) & (top > 0.0)]] = True
        limiting &= self.merged.copies == 1
        # A coefficient that was zero but for rounding is put right by an entry of its own.
        return np.asarray(limiting[leaves.sites] | (self.ledger.coef[l, leaves.rows] != 0.0))

    def _with_room(self, place: Place, full: FullSolution, leaves: Leaves) -> None:
        """What the other rows of the site can take up: the solution stays what it was."""
        l = place.l
        if not self.task.want_decision and self.ledger.sound(l):
            sure = self._inside(full, leaves)
            value = self.problem.y[leaves.rows] * full.u[leaves.sites]
            sure &= np.abs(value) > self._slack(l, full) + tolerances.TIE
            self.ledger.proved(l, leaves.folds[sure], value[sure] < 0)
            leaves = leaves.part(~sure)
        self._enter_full(place, full, leaves)

    def _inside(self, full: FullSolution, leaves: Leaves) -> NDArray[np.bool_]:
        """Is the site still strictly inside its box, and with it the intercept a point?"""
        coef, width = full.coef[leaves.sites], full.levels[leaves.sites] * leaves.keep[:, None]
        inside = np.minimum(width[:, 0] - coef, coef - width[:, -1])
        return np.asarray(inside > DOUBT * tolerances.AT_BOUND * (width[:, 0] - width[:, -1]))

    def _enter_full(self, place: Place, full: FullSolution, leaves: Leaves) -> None:
        """Have the full data's coefficients judged for each fold; what is worse is solved."""
        for which in blocks(len(leaves), at_a_time(self.problem.n)):
            mine = leaves.part(which)
            coef = np.tile(full.coef, (len(mine), 1))
            good = self.ledger.solved(place.l, mine.folds, self.solver.apart(coef, mine))
            for r in np.flatnonzero(~good):
                if self.ledger.behind(place.l, int(mine.folds[r])):
                    self.solver.resolve(place, mine.part(slice(r, r + 1)), full.coef)

    def _prove(self, l: int, bounds: Reach, leaves: Leaves) -> NDArray[np.bool_]:
        """Enter the labels that follow from a bound; returns which those are."""
        wrong, right = labels_proved(self.problem.y[leaves.rows], bounds)
        settled = wrong | right
        self.ledger.proved(l, leaves.folds[settled], wrong[settled])
        return settled

    def _prove_along(self, place: Place) -> None:
        """Enter labels that follow at all C of a place whose solutions are proportional to C."""
        ls = place.ls[[self.ledger.sound(int(l)) for l in place.ls]]
        if not len(ls):
            return
        problem, point = self.problem, place.point
        top = self._solution(place.l, point)
        leaves = self._leaves(top)
        leaves = leaves.part(leaves.taken != 0.0)
        rise = self.task.grid.Cs[ls] / point.C
        u = self.ledger.h[ls] + self.ledger.intercept[ls][:, None]
        levels = rise[:, None, None] * top.levels
        full = Proportional(top.state, rise[:, None] * top.coef, u, levels)
        taken, slack = rise[:, None] * leaves.taken, self._slack(ls, full)
        bounds = reach(problem, self.span, full, leaves.sites, taken, slack)
        wrong, right = labels_proved(problem.y[leaves.rows], bounds)
        where, which = np.nonzero(wrong | right)
        self.ledger.proved(ls[where], leaves.folds[which], wrong[where, which])

    def _prove_by_shares(
        self, l: int, full: FullSolution, leaves: Leaves, slack: FloatArray
    ) -> NDArray[np.bool_]:
        """The same with the bounds that are sharp where the others are not, at some cost."""
        problem, members = full.problem, full.members
        if not len(members) or len(leaves) < ENOUGH * len(members):
            return np.zeros(len(leaves), dtype=bool)
        bottom, top = full.box
        missed = np.abs(full.u[members] - problem.loss.knots[members, full.state[members] // 2])
        gap = float(self.ledger.gap_abs[l, -1] + (top - bottom) @ missed)
        if problem.fit_intercept:
            gap += abs(float(full.coef.sum())) * float(np.abs(full.u).max())
        who, y = leaves.sites, problem.y[leaves.sites]
        place = np.full(problem.n, -1, dtype=np.intp)
        place[members] = np.arange(len(members))
        K = problem.K
        rows = Leaving(
            leaves.taken,
            problem.diagonal[who],
            place[who],
            lambda some, free: K[np.ix_(who[some], members[free])],
        )
        room = bottom - full.coef[members], top - full.coef[members]
        shares = Shares(K[np.ix_(members, members)], *room, problem.fit_intercept, gap)
        # A coefficient of the other sign is one that may as well be zero.
        value = np.where(y * leaves.taken > 0, y * full.u[who] - slack, -np.inf)
        right = shares.prove(rows, value)
        self.ledger.proved(l, leaves.folds[right], np.zeros(int(right.sum()), dtype=bool))
        return right


def _all_by_table(base: FullSolution, moving: NDArray[np.bool_], count: int) -> bool:
    """Does it cost less to have all rows in a table than K c of so many folds?"""
    k, n = len(base.members), base.problem.n
    more = int(np.count_nonzero((base.state >= 0) & ~moving))
    return k > MOST_FREE * n and more * k <= count * n


def in_play(full: FullSolution, bounds: Reach, mine: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which rows may change their state when one of ``mine`` is left out."""
    fall, rise = bounds.farthest(mine)
    low, high = full.limits
    margin = 1e-9 * max(1.0, float(np.abs(full.u).max()))
    moving = (full.u - low <= fall + margin) | (high - full.u <= rise + margin)
    moving[full.members] = True
    return np.asarray((full.state >= 0) & moving)


def groups(
    full: FullSolution, up: NDArray[np.bool_], down: NDArray[np.bool_]
) -> Iterator[tuple[NDArray[np.bool_], FullSolution]]:
    """Folds that start from the same rows at a knot, and the solution from which they do.

    If there are none and the intercept is free, it first moves, towards the side that the sign of
    what is taken (``up``, ``down``) demands, until a row reaches a knot.
    """
    if not full.problem.fit_intercept or len(full.members):
        if (up | down).any():
            yield up | down, full
        return
    if up.any():
        yield up, full.moved_to_knot(1)
    if down.any():
        yield down, full.moved_to_knot(-1)


def places(ls: IntArray, points: list[Point]) -> Iterator[Place]:
    """Grid points along rising C, each with the later ones that have the same solution.

    ``points`` have the same rows at a knot.  Where there are none, solutions are proportional to C
    while the states stay, those without a row often too, and what holds at some C holds at every
    smaller one (``proportional.py``): so these come in falling order.
    """
    if not at_knot(points[0].state).any():
        return _falling(ls, points)
    later = np.empty(0, dtype=np.intp)
    found = []
    for step in reversed(range(len(points))):
        here = points[step]
        if step + 1 < len(points) and np.array_equal(here.coef, points[step + 1].coef):
            later = np.append(ls[step + 1], later)
        else:
            later = np.empty(0, dtype=np.intp)
        found.append(Place(int(ls[step]), here, later))
    return reversed(found)


def _falling(ls: IntArray, points: list[Point]) -> Iterator[Place]:
    """Each with the smaller C at which all rows are in the same states."""
    first, found = 0, []
    for step, here in enumerate(points):
        if not np.array_equal(here.state, points[first].state):
            first = step
        found.append(Place(int(ls[step]), here, ls[first:step], proportional=step > first))
    return reversed(found)


def runs(points: list[Point]) -> list[list[int]]:
    """Neighbours on the grid that have the same rows at a knot."""
    free = at_knot(np.array([point.state for point in points]))
    starts = np.flatnonzero((free[1:] != free[:-1]).any(axis=1)) + 1
    return [part.tolist() for part in np.split(np.arange(len(points)), starts)]
