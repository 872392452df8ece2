"""From full-data solutions to left-out labels: leave-one-out, and folds of any other kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from ..judge import ledger as entries
from ..problem.folds import Folds
from ..problem.problem import Grid
from ..types import FloatArray, IntArray
from .passes.sweep import Chunk
from .small.leave_out import LeaveOut, Outcome
from .small.reduced import FREE
from .solver import Column, Solved, Solver
from .verdict import Limits, Spread, Verdict, limits_of, settled_near, verdict

__all__ = ["Curves", "fold_curves", "leave_one_out_curves"]

# Training problems of folds whose test rows are predicted in one pass.
TOGETHER = 1000


@dataclass
class Curves:
    """Left-out results, (L, T) along the pairs, and what was found out on the way."""

    wrong: NDArray[np.bool_]
    decision: FloatArray | None
    kkt: FloatArray  # (L,), the worst
    gap: FloatArray
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(entries.HOW, 0))
    unresolved: list[tuple[int, int]] = field(default_factory=list)
    escaped: int = 0

    def judge(self, l: int, fold: int, kkt: float, gap: float, tol: float) -> None:
        self.kkt[l], self.gap[l] = max(self.kkt[l], kkt), max(self.gap[l], gap)
        if not (kkt <= tol and gap <= tol):
            self.unresolved.append((l, fold))

    def decide(self, l: Any, pairs: Any, values: FloatArray, y: FloatArray) -> None:
        self.wrong[l, pairs] = ~(y * values > tolerances.TIE)
        if self.decision is not None:
            self.decision[l, pairs] = values


def new_curves(solved: list[Solved], wrong: Any, decision: Any, tol: float) -> Curves:
    """Empty curves that know how good the full-data solutions are."""
    curves = Curves(wrong, decision, np.zeros(len(solved)), np.zeros(len(solved)))
    for l, one in enumerate(solved):
        curves.judge(l, -1, one.kkt, one.relative_gap, tol)
    return curves


# --- leave-one-out ------------------------------------------------------------------------------


class _Singles(Mapping[int, IntArray]):
    """Fold j leaves out row j."""

    def __getitem__(self, fold: int) -> IntArray:
        return np.array([fold], dtype=np.intp)

    def __iter__(self) -> Iterator[int]:
        return iter(())

    def __len__(self) -> int:
        return 0


Judged = tuple[Verdict, IntArray, FloatArray]


@dataclass(frozen=True)
class _Judge:
    """``verdict`` for these limits, and numbers and features of the rows it leaves open."""

    limits: Limits
    want_decision: bool

    def __call__(self, chunk: Chunk) -> Judged:
        found = verdict(chunk, self.limits, self.want_decision)
        used = np.flatnonzero(found.open.any(axis=1))
        return found, used + chunk.start, chunk.Z[used]

    def join(self, results: list[Judged]) -> Judged:
        names = ("wrong", "open", "kept", "value")
        columns = [[getattr(found, name) for found, _, _ in results] for name in names]
        if not self.want_decision:
            columns.pop()
        joined = Verdict(*(np.concatenate(column) for column in columns))
        rows, Z = (np.concatenate([part[k] for part in results]) for k in (1, 2))
        return joined, rows, Z


class _LeaveOneOut:
    def __init__(
        self,
        solver: Solver,
        solved: list[Solved],
        spread: Spread,
        y: FloatArray,
        weight: FloatArray,
        curves: Curves,
        most_waiting: int,
    ):
        self.most_waiting, self.n_waiting = most_waiting, 0
        self.solver, self.solved, self.spread = solver, solved, spread
        self.y, self.weight, self.curves = y, weight, curves
        self.want_decision = curves.decision is not None
        self.waiting: list[list[tuple[IntArray, FloatArray]]] = [[] for _ in solved]
        self.lock = Lock()
        self.lost: list[tuple[int, int, FloatArray]] = []

    def run(self) -> None:
        sides = [self.weight[(self.y == sign) & (self.weight > 0)] for sign in (-1.0, 1.0)]
        weights = np.array([[side.min(), side.max()] for side in sides])
        limits = limits_of(self.solved, weights, self.spread, self.solver.seed)
        self.solver.runner.each(_Judge(limits, self.want_decision), self._enter)
        self._flush()
        near = self.solver.workers.map(
            lambda l: self._near_rows(limits, l), range(len(self.solved))
        )
        for l, (which, outcome) in enumerate(near):
            self._note(l, self.solved[l].rows[which], self.solved[l].problem.Z[which], outcome)
        self._solve_lost()

    def _near_rows(self, limits: Limits, l: int) -> tuple[IntArray, Outcome]:
        """Rows of the small problem: by the bounds, or solved."""
        solved, curves = self.solved[l], self.curves
        wrong, open_, kept = settled_near(solved, limits, l, self.want_decision)
        done = ~open_
        curves.wrong[l, solved.rows[done]] = wrong[done]
        if curves.decision is not None:
            curves.decision[l, solved.rows] = solved.problem.y * (solved.r + 1.0)
        with self.lock:
            curves.counts["unchanged"] += int(kept.sum())
            curves.counts["bound"] += int((done & ~kept).sum())
        which = np.flatnonzero(open_)
        return which, self._leaving(l).near_rows(which)

    def _leaving(self, l: int) -> LeaveOut:
        solver, largest = self.solver, float(self.weight.max())
        return LeaveOut(
            self.solved[l], self.spread, largest, solver.tol, self.want_decision,
            solver.workers.cancel,
        )  # fmt: skip

    def _enter(self, chunk: Chunk, result: Judged) -> None:
        found, used, Z = result
        rows = slice(chunk.start, chunk.start + len(chunk.y))
        self.curves.wrong[:, rows] = found.wrong.T
        if self.curves.decision is not None and found.value is not None:
            self.curves.decision[:, rows] = found.value.T
        kept, open_ = int(found.kept.sum()), int(found.open.sum())
        mine = sum(_within(one.rows, rows) for one in self.solved)
        self.curves.counts["unchanged"] += kept
        self.curves.counts["bound"] += found.open.size - kept - open_ - mine
        position = np.full(len(chunk.y), -1, dtype=np.intp)
        position[used - chunk.start] = np.arange(len(used))
        for l in np.flatnonzero(found.open.any(axis=0)):
            which = np.flatnonzero(found.open[:, l])
            features = Z[position[which]]
            self.waiting[l].append((which + chunk.start, features))
            self.n_waiting += len(which)
        if self.n_waiting > self.most_waiting:
            self._flush()

    def _flush(self) -> None:
        """Solve what waits."""
        sizes = [sum(len(rows) for rows, _ in some) for some in self.waiting]
        # The longest first, so that no thread is left with one when the others are done.
        ready = [int(l) for l in np.argsort(sizes)[::-1] if sizes[l]]
        self.n_waiting = 0
        found = self.solver.workers.map(self._solve_waiting, ready)
        for l, (rows, Z, outcome) in zip(ready, found, strict=True):
            self._note(l, rows, Z, outcome)
            self.waiting[l] = []

    def _solve_waiting(self, l: int) -> tuple[IntArray, FloatArray, Outcome]:
        rows = np.concatenate([rows for rows, _ in self.waiting[l]])
        Z = np.concatenate([Z for _, Z in self.waiting[l]])
        return rows, Z, self._leaving(l).far_rows(Z, self.y[rows], self.weight[rows])

    def _note(self, l: int, rows: IntArray, Z: FloatArray, outcome: Outcome) -> None:
        """Enter what was solved; what escaped waits for the solver."""
        good = ~outcome.escaped
        curves, mine = self.curves, rows[good]
        curves.wrong[l, mine] = outcome.wrong[good]
        if curves.decision is not None:
            curves.decision[l, mine] = outcome.value[good]
        for how, count in enumerate(np.bincount(outcome.how[good], minlength=len(entries.HOW))):
            curves.counts[entries.HOW[how]] += int(count)
        if good.any():
            curves.kkt[l] = max(curves.kkt[l], float(outcome.kkt[good].max()))
            curves.gap[l] = max(curves.gap[l], float(outcome.gap[good].max()))
        self.lost += [(l, int(rows[k]), Z[k]) for k in np.flatnonzero(outcome.escaped)]

    def _solve_lost(self) -> None:
        """Rows that moved too much: over all rows, as a training problem of their own."""
        self.curves.escaped = len(self.lost)
        columns = (_without(self.solved[l], self.solved[l].C, j) for l, j, _ in self.lost)
        for (l, j, z), one in zip(self.lost, self.solver.solve(columns), strict=True):
            value = np.array([float(z @ one.theta[:-1]) + one.theta[-1]])
            self.curves.decide(l, [j], value, self.y[[j]])
            self.curves.judge(l, j, one.kkt, one.relative_gap, self.solver.tol)
            self.curves.counts["fallback"] += 1


def _without(solved: Solved, C: float, fold: int) -> Column:
    """A column that leaves out a fold, from the full-data solution."""
    return Column(C, fold, solved.theta, 0.0, int(np.count_nonzero(solved.state == FREE)))


def _within(rows: IntArray, part: slice) -> int:
    return int(np.count_nonzero((rows >= part.start) & (rows < part.stop)))


def leave_one_out_curves(
    solver: Solver,
    solved: list[Solved],
    spread: Spread,
    y: FloatArray,
    weight: FloatArray,
    wrong: Any,
    decision: Any,
    most_waiting: int,
) -> Curves:
    """Labels (and values, if ``decision`` is an array) of all rows, at every grid point.

    Rows that bounds leave open wait until ``most_waiting`` have come together, with their features.
    """
    curves = new_curves(solved, wrong, decision, solver.tol)
    solver.left_out = _Singles()
    _LeaveOneOut(solver, solved, spread, y, weight, curves, most_waiting).run()
    return curves


# --- other folds --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Predict:
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


def fold_curves(
    solver: Solver,
    solved: list[Solved],
    folds: Folds,
    grid: Grid,
    y: FloatArray,
    wrong: Any,
    decision: Any,
) -> Curves:
    """Every fold from the full-data solutions; predictions for many folds in one pass."""
    curves = new_curves(solved, wrong, decision, solver.tol)
    solver.left_out = {f: np.sort(rows) for f, rows in enumerate(folds.left_out)}
    some = max(1, TOGETHER // len(grid))
    for start in range(0, len(folds), some):
        _some_folds(
            solver, solved, folds, grid, y, curves, range(start, min(start + some, len(folds)))
        )
    return curves


def _some_folds(
    solver: Solver,
    solved: list[Solved],
    folds: Folds,
    grid: Grid,
    y: FloatArray,
    curves: Curves,
    which: range,
) -> None:
    L, columns = len(grid), []
    for f in which:
        Cs = grid.for_fold(folds, f)
        columns += [_without(solved[l], float(Cs[l]), f) for l in range(L)]
    theta = {f: np.empty((L, len(solved[0].theta))) for f in which}
    test = {f: np.sort(folds.test[f]) for f in which}
    for (f, l), one in zip(product(which, range(L)), solver.solve(columns), strict=True):
        theta[f][l] = one.theta
        curves.judge(l, f, one.kkt, one.relative_gap, solver.tol)
    curves.counts["solved"] += len(columns)
    order = {f: np.argsort(folds.test[f], kind="stable") for f in which}

    def use(chunk: Chunk, result: dict[int, tuple[int, FloatArray]]) -> None:
        for f, (first, values) in result.items():
            place = order[f][first : first + len(values)]
            pairs = folds.offsets[f] + place
            labels = y[folds.test[f][place]]
            curves.decide(slice(None), pairs, values.T, labels)

    solver.runner.each(_Predict(theta, test), use)
