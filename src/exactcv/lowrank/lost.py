"""Rows left out that move others further than the small problems of the full solutions reach.

1. One pass collects more rows around the margin of each full-data solution; ``small/press.py``
   proves most of the labels.
2. The others are solved in m dimensions with the rows at hand (``small/nearby.py``).
3. A pass asks all other rows (``small/beyond.py``).  A solution in which none of them has left its
   segment is one of all rows, and is judged as such (``small/around.py``).  The rows that have left
   it are taken up, the solutions they did so in are found again from where they were, and so on:
   each time fewer rows cross.
4. What is not settled after some rounds is solved over all rows (``solver.py``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import tolerances
from ..judge.certificate import attainable
from ..types import BoolArray, FloatArray, IntArray
from .entries import Entries
from .passes.sweep import Sums
from .small.around import Around
from .small.beyond import Crossed, Crossings, Standing
from .small.nearby import Nearby
from .small.press import Leaving, Press
from .small.reduced import Reply, strictly_inside
from .solver import EXCUSED, Column, Round, Rounds, Solved, Solver
from .verdict import Spread

__all__ = ["Lost"]

# Rows around the margin for each dimension, and at least; and in all, of all grid points that are
# looked at together.
AROUND, LEAST_AROUND, MOST_AROUND = 8, 2000, 60_000
# How often rows that cross are taken up; each time at most so many times as many as were there
# at first.
ROUNDS, MORE = 8, 1
# Solutions over all rows that are looked for in one pass.
TOGETHER = 64


@dataclass(frozen=True)
class _Settled:
    """Solutions that hold: places of their rows among the lost ones, left-out values, figures."""

    places: IntArray
    value: FloatArray
    kkt: FloatArray
    gap: FloatArray


@dataclass(frozen=True)
class _Found:
    """What has been found of the lost rows of a grid point.

    right : which labels are proved by pressing (places among the lost rows).
    settled, given_up : the same of solutions that hold, and that are not looked for any more.
    open : of those that a pass has to be asked about; they are in ``standing`` and ``replies``.
    around, rows, leaving : the problem, and all of the lost rows.
    """

    right: IntArray
    settled: _Settled
    given_up: IntArray
    open: IntArray
    standing: Standing
    around: Around | None
    rows: IntArray
    leaving: Leaving | None
    replies: list[Reply]


def _light(found: _Found) -> _Found:
    """What the entries and the next pass need of it."""
    return replace(found, around=None, leaving=None, replies=[])


@dataclass(frozen=True)
class _Leave:
    """``spread`` says how far values move with theta."""

    rounds: Rounds
    spread: Spread

    def _standing(self, around: Around, rows: IntArray, replies: list[Reply]) -> Standing:
        theta = np.array([one.theta for one in replies]).reshape(len(rows), len(around.theta))
        step = theta - around.theta
        moved = np.linalg.norm(step[:, :-1], axis=1) * self.spread.radius
        moved += np.abs(step[:, :-1] @ self.spread.centre + step[:, -1])
        return Standing(around.theta, np.sort(around.rows), rows, theta, 1.000001 * moved)


@dataclass(frozen=True)
class _LeaveAround(_Leave):
    """First solutions with the rows around the margin, of rows that pressing does not prove."""

    largest: float
    want_decision: bool

    def __call__(
        self, sums: Sums, p: int, found: Round, rows: IntArray, leaving: Leaving
    ) -> _Found:
        assert found.solved is not None
        right, near = np.zeros(len(rows), dtype=bool), None
        around = self.rounds.around(sums, found.solved, p)
        leaving = replace(leaving, place=_places(around.rows, rows))
        if not self.want_decision:
            r = around.problem.y * around.u - 1.0
            press = Press(
                around.problem, around.theta, r, around.coef, self.largest, around.rest.added
            )
            right, near = press.prove(leaving)
        nearby, open_ = Nearby(around, self.rounds.cancel), np.flatnonzero(~right)
        guesses = [None if near is None else near[k] for k in open_]
        replies = [
            nearby.without(leaving, int(k), guess)
            for k, guess in zip(open_, guesses, strict=True)
        ]
        nothing = np.zeros(0)
        settled = _Settled(open_[:0], nothing, nothing, nothing)
        standing = self._standing(around, rows[open_], replies)
        return _Found(
            np.flatnonzero(right), settled, open_[:0], open_, standing, around, rows, leaving,
            replies,
        )  # fmt: skip


@dataclass(frozen=True)
class _TakeUp(_Leave):
    """Judges solutions in which no row beyond has crossed, and finds the others again."""

    def __call__(self, crossed: Crossed, p: int, found: _Found) -> _Found:
        around, leaving = found.around, found.leaving
        assert around is not None and leaving is not None
        again = crossed.solutions[p]
        settled, missed = self._judged(found, np.flatnonzero(~again))
        rows, Z, y, weight = crossed.rows(p)
        wider = around.taking_up(rows, Z, self.rounds.loss(y), weight)
        leaving = replace(leaving, place=_places(wider.rows, found.rows))
        nearby, replies = Nearby(wider, self.rounds.cancel), []
        open_, guesses = found.open[again], found.standing.without[again]
        # How far they are behind their knots says how good the guess is.
        behind = wider.behind(len(around.rows), guesses)
        for k, guess, far in zip(open_, guesses, behind, strict=True):
            replies.append(nearby.without(leaving, int(k), guess, float(far)))
        return _Found(
            open_[:0], settled, missed, open_,
            self._standing(wider, found.rows[open_], replies), wider, found.rows, leaving, replies,
        )  # fmt: skip

    def _judged(self, found: _Found, which: IntArray) -> tuple[_Settled, IntArray]:
        """Solutions that meet the tolerance, and places of rows whose solutions do not."""
        around, leaving, rounds = found.around, found.leaving, self.rounds
        assert around is not None and leaving is not None
        value, kkt, gap = np.zeros(len(which)), np.zeros(len(which)), np.zeros(len(which))
        good = np.zeros(len(which), dtype=bool)
        for i, of in enumerate(which):
            k, reply = int(found.open[of]), found.replies[of]
            problem = around.without(leaving, k)
            value[i] = leaving.Z[k] @ reply.theta[:-1] + reply.theta[-1]
            kkt[i], absolute, primal, floor = around.figures(
                leaving, k, reply, rounds.loss, rounds.extent
            )
            gap[i] = absolute / max(abs(primal), float(np.finfo(float).tiny))
            goal = float(attainable(rounds.tol, floor, tolerances.POLISH * rounds.tol))
            # Without a coefficient inside its box b has an interval, whose ends may be elsewhere.
            sure = not problem.fit_intercept or strictly_inside(problem, reply.coef).any()
            good[i] = sure and kkt[i] <= goal and gap[i] <= min(goal, EXCUSED)
        places = found.open[which]
        return _Settled(places[good], value[good], kkt[good], gap[good]), places[~good]


def _places(among: IntArray, rows: IntArray) -> IntArray:
    """Where these rows are among others; -1 if they are not."""
    order = np.argsort(among)
    place = order[np.minimum(np.searchsorted(among, rows, sorter=order), len(order) - 1)]
    return np.where(among[place] == rows, place, -1)


class Lost:
    """Collects such rows, and settles them at the end.

    Parameters are those of ``leave_one_out``.
    """

    def __init__(self, solver: Solver, solved: list[Solved], spread: Spread, entries: Entries):
        self.solver, self.solved, self.spread, self.entries = solver, solved, spread, entries
        problem = entries.task.problem
        self.y, self.weight, self.loss = problem.y, problem.weight, problem.loss
        self.want_decision = entries.decision is not None
        self._rows: list[list[IntArray]] = [[] for _ in solved]
        self._Z: list[list[FloatArray]] = [[] for _ in solved]

    def __len__(self) -> int:
        return sum(len(some) for rows in self._rows for some in rows)

    def add(self, l: int, rows: IntArray, Z: FloatArray) -> None:
        """Rows that are lost at a grid point, with their features."""
        if len(rows):
            self._rows[l].append(rows)
            self._Z[l].append(Z)

    def settle(self) -> None:
        """Labels (and values, if they are wanted) of all of them."""
        points = [l for l, rows in enumerate(self._rows) if rows]
        count = max(LEAST_AROUND, AROUND * self.spread.centre.size)
        some = max(1, min(self.solver.room.capacity, MOST_AROUND) // count)
        for start in range(0, len(points), some):
            self._together(points[start : start + some], count)

    def _together(self, points: list[int], count: int) -> None:
        """Those of some grid points, with so many rows around each margin."""
        solver = self.solver
        some = [self.solved[l] for l in points]
        leave = _LeaveAround(solver.rounds, self.spread, self.spread.largest, self.want_decision)
        take_up = _TakeUp(solver.rounds, self.spread)
        leavings = [self._leaving(l) for l in points]
        items = [
            (p, one.home, *leaving) for p, (one, leaving) in enumerate(zip(some, leavings, strict=True))
        ]
        sums = solver.around(some, count)
        found = solver.runner.small(leave, (sums,), items, _light)
        del sums
        share, left = MORE * count / solver.runner.n, list(points)
        for _ in range(ROUNDS):
            for l, (one, _) in zip(left, found, strict=True):
                self._enter(l, one)
            open_ = [i for i, (one, _) in enumerate(found) if len(one.open)]
            left, found = [left[i] for i in open_], [found[i] for i in open_]
            if not found:
                return
            work = Crossings([one.standing for one, _ in found], self.loss, share)
            solver.passes += 1
            crossed = solver.runner.joined(work)
            homes = [(p, home) for p, (_, home) in enumerate(found)]
            found = solver.runner.small(take_up, (crossed,), homes, _light)
        for l, (one, _) in zip(left, found, strict=True):
            self._enter(l, one)
            theta = one.standing.without
            self._certify(l, [self._column(l, k, at) for k, at in zip(one.open, theta, strict=True)])

    def _leaving(self, l: int) -> tuple[IntArray, Leaving]:
        """Numbers of the lost rows of a grid point, and what is to be left out."""
        one, rows, Z = self.solved[l], np.concatenate(self._rows[l]), np.concatenate(self._Z[l])
        self._rows[l], self._Z[l] = [rows], [Z]
        y, box = self.y[rows].astype(np.float64), one.C * self.weight[rows]
        u = Z @ one.theta[:-1] + one.theta[-1]
        nowhere = np.full(len(rows), -1)
        return rows, Leaving(Z, y, box, -box * self.loss(y).slope(u), u, nowhere)

    def _enter(self, l: int, found: _Found) -> None:
        """What is settled; what is given up is solved over all rows."""
        entries, (rows,) = self.entries, self._rows[l]
        right, settled = found.right, found.settled
        entries.enter(l, rows[right], np.zeros(len(right), dtype=bool), None)
        entries.settle("bound", len(right))
        entries.decide(l, rows[settled.places], settled.value)
        if len(settled.places):
            entries.note(l, -1, float(settled.kkt.max()), float(settled.gap.max()))
        entries.settle("solved", len(settled.places))
        theta = self.solved[l].theta
        self._certify(l, [self._column(l, int(k), theta) for k in found.given_up])

    def _column(self, l: int, k: int, theta: FloatArray) -> tuple[FloatArray, Column]:
        """Features of one of the rows, and the problem without it."""
        free = int(np.count_nonzero(self.solved[l].free))
        (rows,), (Z,) = self._rows[l], self._Z[l]
        return Z[k], Column(self.solved[l].C, int(rows[k]), theta, 0.0, free)

    def _certify(self, l: int, columns: list[tuple[FloatArray, Column]]) -> None:
        """Solutions without a row, over all rows."""
        entries = self.entries
        for start in range(0, len(columns), TOGETHER):
            some = columns[start : start + TOGETHER]
            found = self.solver.solve(column for _, column in some)
            for (z, column), one in zip(some, found, strict=True):
                value = float(z @ one.theta[:-1]) + one.theta[-1]
                entries.decide(l, [column.fold], np.array([value]))
                entries.note(l, column.fold, one.kkt, one.relative_gap)
                entries.settle("fallback", 1)
