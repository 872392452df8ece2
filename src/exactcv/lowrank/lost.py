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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from .. import tolerances
from ..judge.certificate import attainable
from ..types import BoolArray, FloatArray, IntArray
from .entries import Entries
from .passes.sweep import Sums
from .small.around import Around
from .small.beyond import Beyond, Crossed, Standing
from .small.nearby import Nearby
from .small.press import Leaving, Press
from .small.reduced import Reply, spare
from .solver import EXCUSED, Column, Round, Rounds, Solved, Solver
from .verdict import Spread

__all__ = ["Lost"]

# Rows around the margin for each dimension, and at least; and in all that are looked at together.
AROUND, LEAST_AROUND, MOST_AROUND = 8, 2000, 60_000
# Rows of a grid point that are left out in one piece of work.
BLOCK = 256
# How often rows that cross are taken up, and how many at a time, of those around the margin.
ROUNDS, MORE = 8, 1.0
# Of how far rows are behind their knots: how far off the guess is with which they are taken up.
BEHIND = 0.05
# Solutions over all rows that are looked for in one pass.
TOGETHER = 64


@dataclass(frozen=True)
class _Trial:
    """Solutions without a row each, all of which hold if no row beyond crosses.

    places : which of the lost rows they are without.
    value, kkt, gap : left-out values, and the judge's figures.
    good : do these meet the tolerance?
    """

    places: IntArray
    value: FloatArray
    kkt: FloatArray
    gap: FloatArray
    good: BoolArray

    def some(self, which: BoolArray) -> _Trial:
        return _Trial(*(getattr(self, part.name)[which] for part in fields(self)))


@dataclass(frozen=True)
class _Found:
    """What has been found of some lost rows of a grid point.

    right : which labels are proved by pressing (places among the lost rows).
    settled : solutions that hold, or else are not good.
    open, standing : those that a pass has to be asked about.
    around, leaving : the problem that they solve, and all of the lost rows.
    """

    right: IntArray
    settled: _Trial
    open: _Trial
    standing: Standing
    around: Around | None
    leaving: Leaving | None


def _light(found: _Found) -> _Found:
    """What the entries and the next pass need of it."""
    return replace(found, around=None, leaving=None)


@dataclass(frozen=True)
class _Leave:
    """``spread`` says how far values move with theta."""

    rounds: Rounds
    spread: Spread

    def _tried(
        self,
        around: Around,
        rows: IntArray,
        leaving: Leaving,
        which: IntArray,
        guesses: Sequence[tuple[FloatArray, float] | tuple[FloatArray] | tuple[()]],
    ) -> tuple[_Trial, Standing]:
        """Solutions without some of the rows, from a guess each and how far it may be off."""
        nearby, theta = (
            Nearby(around, self.rounds.cancel),
            np.empty((len(which), len(around.theta))),
        )
        figures, good = np.empty((len(which), 3)), np.zeros(len(which), dtype=bool)
        free_b = np.zeros(len(which))
        for i, (k, guess) in enumerate(zip(which, guesses, strict=True)):
            reply = nearby.without(leaving, int(k), *guess)
            theta[i] = reply.theta
            figures[i], good[i] = self._judged(around, leaving, int(k), reply)
            free_b[i] = spare(around.without(leaving, int(k)), reply.coef, reply.theta)
        step = theta - around.theta
        moved = np.linalg.norm(step[:, :-1], axis=1) * self.spread.radius
        moved += np.abs(step[:, :-1] @ self.spread.centre + step[:, -1])
        # A little more, for rounding.
        beyond = Beyond(which, theta, (1.0 + 1e-6) * moved + free_b, free_b)
        standing = Standing(around.theta, np.sort(around.rows), rows[which], beyond)
        value, kkt, gap = figures.T
        return _Trial(which, value, kkt, gap, good), standing

    def _judged(
        self, around: Around, leaving: Leaving, k: int, reply: Reply
    ) -> tuple[tuple[float, float, float], bool]:
        """The left-out value and the figures of a solution, and whether these are good enough."""
        rounds = self.rounds
        kkt, gap, primal, floor = around.figures(leaving, k, reply, rounds.loss, rounds.extent)
        gap /= max(abs(primal), float(np.finfo(float).tiny))
        goal = float(attainable(rounds.tol, floor, tolerances.POLISH * rounds.tol))
        value = float(leaving.Z[k] @ reply.theta[:-1] + reply.theta[-1])
        return (value, kkt, gap), bool(kkt <= goal and gap <= min(goal, EXCUSED))


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
            r, added = around.problem.y * around.u - 1.0, around.rest.added
            press = Press(around.problem, around.theta, r, around.coef, self.largest, added)
            right, near = press.prove(leaving)
        open_ = np.flatnonzero(~right)
        guesses = [() if near is None else (near[k],) for k in open_]
        trial, standing = self._tried(around, rows, leaving, open_, guesses)
        nobody = trial.some(np.zeros(len(open_), dtype=bool))
        return _Found(np.flatnonzero(right), nobody, trial, standing, around, leaving)


@dataclass(frozen=True)
class _TakeUp(_Leave):
    """Takes up the rows that cross, and finds the solutions again in which they do."""

    def __call__(self, crossed: Crossed, p: int, found: _Found, rows: IntArray) -> _Found:
        around, leaving, again = found.around, found.leaving, crossed.solutions[p]
        assert around is not None and leaving is not None
        settled, which = found.open.some(~again), found.open.places[again]
        more, Z, y, weight = crossed.rows(p)
        wider = around.taking_up(more, Z, self.rounds.loss(y), weight)
        leaving = replace(leaving, place=_places(wider.rows, rows))
        theta = found.standing.without.theta[again]
        behind = BEHIND * wider.behind(len(around.rows), theta)
        guesses = [(one, float(far)) for one, far in zip(theta, behind, strict=True)]
        trial, standing = self._tried(wider, rows, leaving, which, guesses)
        return _Found(which[:0], settled, trial, standing, wider, leaving)


def _places(among: IntArray, rows: IntArray) -> IntArray:
    """Where these rows are among others; -1 if they are not."""
    order = np.argsort(among)
    place = order[np.minimum(np.searchsorted(among, rows, sorter=order), len(order) - 1)]
    return np.where(among[place] == rows, place, -1)


@dataclass(frozen=True)
class _Block:
    """Some of the lost rows of a grid point: numbers and features."""

    l: int
    rows: IntArray
    Z: FloatArray


class Lost:
    """Collects such rows, and settles them at the end.

    Parameters are those of ``leave_one_out``.
    """

    def __init__(self, solver: Solver, solved: list[Solved], spread: Spread, entries: Entries):
        self.solver, self.solved, self.spread, self.entries = solver, solved, spread, entries
        problem = entries.task.problem
        self.y, self.weight, self.loss = problem.y, problem.weight, problem.loss
        self.want_decision = entries.decision is not None
        self._waiting: list[_Block] = []

    def __len__(self) -> int:
        return sum(len(block.rows) for block in self._waiting)

    def add(self, l: int, rows: IntArray, Z: FloatArray) -> None:
        """Rows that are lost at a grid point, with their features."""
        if len(rows):
            self._waiting.append(_Block(l, rows, Z))

    def settle(self) -> None:
        """Labels (and values, if they are wanted) of all of them."""
        blocks = list(self._blocks())
        count = max(LEAST_AROUND, AROUND * self.spread.centre.size)
        some = max(1, min(self.solver.room.together, MOST_AROUND) // count)
        for start in range(0, len(blocks), some):
            self._together(blocks[start : start + some], count)

    def _blocks(self) -> Iterator[_Block]:
        """What waits, put together by grid point."""
        for l in sorted({block.l for block in self._waiting}):
            mine = [block for block in self._waiting if block.l == l]
            rows = np.concatenate([block.rows for block in mine])
            Z = np.concatenate([block.Z for block in mine])
            for start in range(0, len(rows), BLOCK):
                part = slice(start, start + BLOCK)
                yield _Block(l, rows[part], Z[part])

    def _together(self, blocks: list[_Block], count: int) -> None:
        """Some blocks, with so many rows around each margin."""
        solver, spread = self.solver, self.spread
        some = [self.solved[block.l] for block in blocks]
        items = [
            (p, one.home, block.rows, self._leaving(block))
            for p, (one, block) in enumerate(zip(some, blocks, strict=True))
        ]
        leave = _LeaveAround(solver.rounds, spread, spread.largest, self.want_decision)
        take_up = _TakeUp(solver.rounds, spread)
        found = solver.runner.small(leave, (solver.around(some, count),), items, _light)
        for _ in range(ROUNDS):
            for block, (one, _) in zip(blocks, found, strict=True):
                self._enter(block, one)
            open_ = [i for i, (one, _) in enumerate(found) if len(one.open.places)]
            blocks, found = [blocks[i] for i in open_], [found[i] for i in open_]
            if not blocks:
                return
            standings = [one.standing for one, _ in found]
            crossed = solver.crossed(standings, MORE * count)
            homes = [
                (p, home, block.rows)
                for p, (block, (_, home)) in enumerate(zip(blocks, found, strict=True))
            ]
            found = solver.runner.small(take_up, (crossed,), homes, _light)
        for block, (one, _) in zip(blocks, found, strict=True):
            self._enter(block, one)
            self._over_all_rows(block, one.open.places, one.standing.without.theta)

    def _leaving(self, block: _Block) -> Leaving:
        one, y, Z = self.solved[block.l], self.y[block.rows].astype(np.float64), block.Z
        box, u = one.C * self.weight[block.rows], Z @ one.theta[:-1] + one.theta[-1]
        nowhere = np.full(len(y), -1)
        return Leaving(Z, y, box, -box * self.loss(y).slope(u), u, nowhere)

    def _enter(self, block: _Block, found: _Found) -> None:
        """What is settled; what is not good enough is solved over all rows."""
        entries, l, right = self.entries, block.l, found.right
        entries.enter(l, block.rows[right], np.zeros(len(right), dtype=bool), None)
        entries.settle("bound", len(right))
        good = found.settled.some(found.settled.good)
        entries.decide(l, block.rows[good.places], good.value)
        at = np.full(len(good.places), l)
        entries.note_some(at, block.rows[good.places], good.kkt, good.gap)
        entries.settle("solved", len(good.places))
        missed = found.settled.places[~found.settled.good]
        self._over_all_rows(block, missed, np.tile(self.solved[l].theta, (len(missed), 1)))

    def _over_all_rows(self, block: _Block, places: IntArray, guesses: FloatArray) -> None:
        """Solutions without a row, by rounds over all rows."""
        one, entries = self.solved[block.l], self.entries
        free = int(np.count_nonzero(one.free))
        columns = [
            Column(one.C, int(row), guess, 0.0, free)
            for row, guess in zip(block.rows[places], guesses, strict=True)
        ]
        for start in range(0, len(columns), TOGETHER):
            some = slice(start, start + TOGETHER)
            found = self.solver.solve(columns[some])
            for z, column, without in zip(block.Z[places[some]], columns[some], found, strict=True):
                value = float(z @ without.theta[:-1]) + without.theta[-1]
                entries.decide(block.l, [column.fold], np.array([value]))
                entries.note(block.l, column.fold, without.kkt, without.relative_gap)
                entries.settle("fallback", 1)
