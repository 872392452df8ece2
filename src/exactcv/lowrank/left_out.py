"""From full-data solutions to left-out labels: leave-one-out, and folds of any other kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..judge.ledger import HOW
from ..problem.folds import rises
from ..problem.losses import PiecewiseLinear
from ..runtime.space import Space
from ..types import BoolArray, FloatArray, IntArray
from .entries import Entries
from .lost import Lost
from .passes.sweep import Chunk
from .small.beyond import Crossings, Standing
from .small.leave_out import LeaveOut, Outcome
from .solver import Column, Round, Runner, Solved, Solver
from .verdict import Limits, Spread, limits_of, settled_near, verdict

__all__ = ["MOST_AT_ONCE", "Most", "Predict", "enter_tests", "leave_folds_out", "leave_one_out"]

# Training problems of folds whose test rows are predicted in one pass.
TOGETHER = 1000
# Rows beyond the small problem of a grid point that are left out in one piece of work.
MOST_AT_ONCE = 16384

# --- leave-one-out ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Judged:
    """What is told of some rows: a bit for each grid point, and more of the few that are open.

    wrong : (rows, L).  kept : how many slots have no coefficient.
    row, point : the slots that are open, by rising row number.
    rows, Z : numbers and features of the rows that are open somewhere; no columns of features if
        these are at hand.
    value : (rows, L), if values are wanted.
    """

    wrong: BoolArray
    kept: int
    row: IntArray
    point: NDArray[np.int32]
    rows: IntArray
    Z: FloatArray
    value: FloatArray | None


Left = TypeVar("Left", bound="_Leave")


@dataclass(frozen=True)
class _Judge:
    """``verdict`` for these limits, as what is told of it."""

    limits: Limits
    want_decision: bool

    def __call__(self, chunk: Chunk) -> Judged:
        found = verdict(chunk, self.limits, self.want_decision)
        row, point = np.nonzero(found.open)
        used = row[np.flatnonzero(np.diff(row, prepend=-1))]
        return Judged(
            found.wrong,
            int(np.count_nonzero(found.kept)),
            row + chunk.start,
            point.astype(np.int32),
            used + chunk.start,
            chunk.Z[used] if chunk.at_hand is None else np.zeros((len(used), 0)),
            found.value,
        )

    def join(self, results: list[Judged]) -> Judged:
        def together(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(one, name) for one in results])

        slots = together("row"), together("point"), together("rows"), together("Z")
        value = together("value") if self.want_decision else None
        return Judged(together("wrong"), sum(one.kept for one in results), *slots, value)


@dataclass(frozen=True)
class Most:
    """How many rows there may be: that wait with their features, and that are in play.

    Where features are at hand rows wait without them; and ``at_once`` so many are left out.
    """

    waiting: int
    in_play: int
    at_once: int


@dataclass(frozen=True)
class _Leave:
    """Leaves out rows at one grid point, as something that can be sent elsewhere.

    ``largest`` is the largest weight of a row.
    """

    spread: Spread
    largest: float
    tol: float
    want_decision: bool
    cancel: NDArray[np.int32]
    most_in_play: int
    space: Space

    def _at(self, found: Round) -> LeaveOut:
        assert found.solved is not None
        solved = found.solved.with_features()
        return LeaveOut(
            solved, self.spread, self.largest, self.tol, self.want_decision, self.cancel,
            self.most_in_play, self.space,
        )  # fmt: skip


@dataclass(frozen=True)
class _LeaveNear(_Leave):
    """Rows of the small problem: (wrong, open, kept) by the bounds, and those that are solved.

    With the features of these, unless they are at hand.
    """

    def __call__(
        self, limits: Limits, found: Round, l: int
    ) -> tuple[BoolArray, BoolArray, BoolArray, FloatArray, Outcome]:
        assert found.solved is not None
        leave = self._at(found)
        wrong, open_, kept = settled_near(leave.solved, limits, l, self.want_decision)
        outcome = leave.near_rows(np.flatnonzero(open_))
        return wrong, open_, kept, found.solved.problem.Z[open_], outcome


@dataclass(frozen=True)
class _LeaveFar(_Leave):
    """Rows beyond the small problem."""

    def __call__(
        self, found: Round, rows: IntArray, Z: FloatArray, loss: PiecewiseLinear, weight: FloatArray
    ) -> Outcome:
        leave = self._at(found)
        return leave.far_rows(leave.solved.features_of(rows, Z), loss, weight)


@dataclass(frozen=True)
class _Pending:
    """Solutions without a row each, at one grid point, that rows beyond may contradict."""

    l: int
    rows: IntArray
    Z: FloatArray
    outcome: Outcome
    standing: Standing


class _LeaveOneOut:
    def __init__(
        self,
        solver: Solver,
        solved: list[Solved],
        spread: Spread,
        entries: Entries,
        most: Most,
    ):
        self.most, self.n_waiting = most, 0
        self.solver, self.solved, self.spread, self.entries = solver, solved, spread, entries
        problem = entries.task.problem
        self.y, self.weight, self.loss = problem.y, problem.weight, problem.loss
        self.want_decision = entries.decision is not None
        self.waiting: list[list[tuple[IntArray, FloatArray]]] = [[] for _ in solved]
        self.pending: list[_Pending] = []
        self.lost = Lost(solver, solved, spread, entries)

    def run(self) -> int:
        weights = None if self.want_decision else self._class_weights()
        limits = limits_of(self.solved, weights, self.spread, self.loss, self.solver.seed)
        self.solver.runner.each(_Judge(limits, self.want_decision), self._enter)
        self._flush()
        self._near_rows(limits)
        self._look_beyond()
        self.lost.settle()
        return len(self.lost)

    def _class_weights(self) -> FloatArray:
        """The least positive and the largest weight of each class."""
        sides = [self.weight[(self.y == sign) & (self.weight > 0)] for sign in (-1.0, 1.0)]
        return np.array([[side.min(), side.max()] for side in sides])

    def _near_rows(self, limits: Limits) -> None:
        """Rows of the small problems: by the bounds, or solved."""
        entries = self.entries
        items = [(one.home, l) for l, one in enumerate(self.solved)]
        found = self.solver.runner.small(self._leaving(_LeaveNear), (limits,), items)
        for l, ((wrong, open_, kept, Z, outcome), _) in enumerate(found):
            solved, done = self.solved[l], ~open_
            entries.enter(l, solved.rows[done], wrong[done], solved.u[done])
            entries.settle("unchanged", int(kept.sum()))
            entries.settle("bound", int((done & ~kept).sum()))
            self._note(l, solved.rows[open_], Z, outcome)

    def _leaving(self, kind: type[Left]) -> Left:
        solver, largest = self.solver, float(self.weight.max())
        return kind(
            self.spread, largest, solver.tol, self.want_decision, solver.workers.cancel,
            self.most.in_play, solver.space,
        )  # fmt: skip

    def _enter(self, chunk: Chunk, found: Judged) -> None:
        rows = slice(chunk.start, chunk.start + len(chunk.y))
        values = None if found.value is None else found.value.T
        self.entries.enter(slice(None), rows, found.wrong.T, values)
        mine = sum(_within(one.rows, rows) for one in self.solved)
        self.entries.settle("unchanged", found.kept)
        self.entries.settle("bound", found.wrong.size - found.kept - len(found.row) - mine)
        for l in np.unique(found.point):
            which = found.row[found.point == l]
            features = found.Z[np.searchsorted(found.rows, which)]
            self.waiting[l].append((which, features))
            self.n_waiting += len(which) * (chunk.at_hand is None)
        if self.n_waiting > self.most.waiting:
            self._flush()

    def _flush(self) -> None:
        """Solve what waits."""
        sizes = [sum(len(rows) for rows, _ in some) for some in self.waiting]
        # The longest first, so that no thread is left with one when the others are done.
        ready = [int(l) for l in np.argsort(sizes)[::-1] if sizes[l]]
        self.n_waiting = 0
        together: list[tuple[int, IntArray, FloatArray]] = []
        count = 0
        for one in (one for l in ready for one in self._blocks(l)):
            count += len(one[1])
            if together and count > self.most.at_once:
                self._leave_out(together)
                together, count = [], len(one[1])
            together.append(one)
        self._leave_out(together)

    def _leave_out(self, some: list[tuple[int, IntArray, FloatArray]]) -> None:
        """Rows beyond the small problems, side by side."""
        items = [
            (self.solved[l].home, rows, Z, self.loss(self.y[rows]), self.weight[rows])
            for l, rows, Z in some
        ]
        found = self.solver.runner.small(self._leaving(_LeaveFar), (), items)
        for (l, rows, Z), (outcome, _) in zip(some, found, strict=True):
            self._note(l, rows, Z, outcome)

    def _blocks(self, l: int) -> Iterator[tuple[int, IntArray, FloatArray]]:
        """What waits at a grid point, in blocks that can be solved side by side."""
        rows, Z = (np.concatenate(column) for column in zip(*self.waiting[l], strict=True))
        self.waiting[l] = []
        size = min(MOST_AT_ONCE, self.most.waiting)
        for start in range(0, len(rows), size):
            mine = slice(start, start + size)
            yield l, rows[mine], Z[mine]

    def _note(self, l: int, rows: IntArray, Z: FloatArray, outcome: Outcome) -> None:
        """Enter what was solved; what escaped waits for the solver, what is unsure for a pass."""
        one, beyond = self.solved[l], outcome.beyond
        settled = ~outcome.escaped
        settled[beyond.places] = False
        self._settle(l, rows[settled], outcome.some(settled))
        if len(beyond.places):
            mine, part = rows[beyond.places], outcome.some(beyond.places)
            standing = Standing(one.theta, np.sort(one.rows), mine, beyond)
            self.pending.append(_Pending(l, mine, Z[beyond.places], part, standing))
        self._lose(l, rows, Z, outcome.escaped)
        if sum(len(some.rows) for some in self.pending) > self.most.waiting:
            self._look_beyond()

    def _look_beyond(self) -> None:
        """What is unsure, by one pass over all rows."""
        if not self.pending:
            return
        work = Crossings([some.standing for some in self.pending], self.loss)
        self.solver.passes += 1
        crossed = work.join(self.solver.runner.map(work))
        for some, mine in zip(self.pending, crossed.solutions, strict=True):
            self._settle(some.l, some.rows[~mine], some.outcome.some(~mine))
            self._lose(some.l, some.rows, some.Z, mine)
        self.pending = []

    def _lose(self, l: int, rows: IntArray, Z: FloatArray, which: BoolArray) -> None:
        rows, Z = rows[which], Z[which]
        self.lost.add(l, rows, self.solved[l].features_of(rows, Z))

    def _settle(self, l: int, rows: IntArray, outcome: Outcome) -> None:
        """Enter solutions that hold."""
        entries = self.entries
        entries.enter(l, rows, outcome.wrong, outcome.value)
        for name, count in zip(HOW, np.bincount(outcome.how, minlength=len(HOW)), strict=True):
            entries.settle(name, int(count))
        entries.note_some(np.full(len(rows), l), rows, outcome.kkt, outcome.gap)


def _without(solved: Solved, C: float, fold: int) -> Column:
    """A column that leaves out a fold, from the full-data solution."""
    return Column(C, fold, solved.theta, 0.0, int(np.count_nonzero(solved.free)))


def _within(rows: IntArray, part: slice) -> int:
    return int(np.count_nonzero((rows >= part.start) & (rows < part.stop)))


def leave_one_out(
    solver: Solver, solved: list[Solved], spread: Spread, entries: Entries, most: Most
) -> int:
    """Labels (and values, if they are wanted) of all rows, at every grid point.

    Returns how many rows had to be solved over all rows.

    Rows that bounds leave open wait until ``most.waiting`` have come together; all of them if their
    features are at hand.
    """
    return _LeaveOneOut(solver, solved, spread, entries, most).run()


# --- other folds --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Predict:
    """Decision values of each fold's test rows in a chunk, (rows, L)."""

    theta: dict[int, FloatArray]  # fold -> (L, m + 1)
    test: dict[int, IntArray]  # fold -> sorted rows

    def __call__(self, chunk: Chunk) -> dict[int, tuple[int, FloatArray]]:
        out = {}
        stop = chunk.start + len(chunk.y)
        for fold, rows in self.test.items():
            first, last = np.searchsorted(rows, [chunk.start, stop])
            mine, theta = rows[first:last] - chunk.start, self.theta[fold]
            out[fold] = (int(first), chunk.Z[mine] @ theta[:, :-1].T + theta[:, -1])
        return out

    def join(
        self, results: list[dict[int, tuple[int, FloatArray]]]
    ) -> dict[int, tuple[int, FloatArray]]:
        return {
            fold: (results[0][fold][0], np.concatenate([part[fold][1] for part in results]))
            for fold in self.test
        }


def leave_folds_out(solver: Solver, solved: list[Solved], entries: Entries) -> None:
    """Every fold from the full-data solutions; predictions for many folds in one pass."""
    n_folds = len(entries.task.folds)
    some = max(1, TOGETHER // len(solved))
    for start in range(0, n_folds, some):
        _some_folds(solver, solved, entries, range(start, min(start + some, n_folds)))


def _some_folds(solver: Solver, solved: list[Solved], entries: Entries, which: range) -> None:
    grid = entries.task.grid
    theta = {f: np.empty((len(grid), len(solved[0].theta))) for f in which}
    columns = solver.without(list(_columns(solved, entries, which)))
    for (f, l), one in zip(product(which, range(len(grid))), solver.solve(columns), strict=True):
        theta[f][l] = one.theta
        entries.model(l, f, one.theta)
        entries.note(l, f, one.kkt, one.relative_gap)
    entries.settle("solved", len(which) * len(grid))
    enter_tests(solver.runner, entries, theta)


def enter_tests(runner: Runner, entries: Entries, theta: dict[int, FloatArray]) -> None:
    """One pass: what the models of folds, (L, m + 1) each, say of their tests."""
    folds = entries.task.folds
    entries.show(theta)
    order = {
        f: None if rises(folds.test[f]) else np.argsort(folds.test[f], kind="stable") for f in theta
    }
    test = {f: folds.test[f] if order[f] is None else np.sort(folds.test[f]) for f in theta}

    def use(chunk: Chunk, result: dict[int, tuple[int, FloatArray]]) -> None:
        for f, (first, values) in result.items():
            at, by_row = slice(first, first + len(values)), order[f]
            places = np.arange(at.start, at.stop) if by_row is None else by_row[at]
            entries.decide(slice(None), folds.offsets[f] + places, values.T)

    runner.each(Predict(theta, test), use)


def _columns(solved: list[Solved], entries: Entries, which: range) -> Iterator[Column]:
    """One training problem for each fold and grid point."""
    for f in which:
        Cs = entries.task.grid.for_fold(entries.task.folds, f)
        for one, C in zip(solved, Cs, strict=True):
            yield _without(one, float(C), f)
