"""One grid point: the full data and all folds as columns, into the ledger.

``Reduction`` says which rows are in play (S) and which coefficients are known beforehand: none in
magic LOO, those of Theorems 2.2 and 3.5 in consolidated CV.  The rest is the same for both.

A step of the smoothed problem moves no decision value by more than about 2 delta, and leaving rows
out moves them by up to sum |c_j| K_jj.  Where the full data need a delta that is tiny beside that
(nearly singular kernels with an intercept: rows that differ by 1e-9 of the range of f decide), no
number of steps that could be paid for gets a fold there.  Such folds skip the smoothing: they
start from the full solution's sets, where Lemma 3's projection would start too, and these are
corrected by the active set of ``engine/path.py``, which does not cycle; and so do all folds where
K is not positive semidefinite, whose smoothed problems have no minimum.  The papers have no such
case; ``stats["from_sets"]`` counts them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ... import tolerances
from ...engine.newton import solve_smooth
from ...engine.path import Point, Tracker, states_of
from ...engine.smo import solve
from ...judge import ledger as entries
from ...judge.ledger import Ledger
from ...problem.problem import Problem, Task
from ...runtime.threads import Workers
from ...types import FloatArray, IntArray
from .batch import Batch, Mask
from .levels import MAX_LEVELS, Effort, Inverses, Outcome, solve_hinge_columns
from .margin import AllOnMargin

__all__ = ["BLOCK", "GridPoint", "Reduction", "blocks", "first_values", "refit_from"]

# Folds that advance together.
BLOCK = 256
# The smoothing parameter of the first problem, and how much larger than the last one that led to
# a solution the next begins.
FIRST_DELTA = 1.0
HEADROOM = 8.0
# Nor does it begin with more than this share of the range of f: with strong regularisation f hardly
# varies, and a wider smoothing tells no rows apart.
SPREAD = 1.0 / 32.0
# Folds whose decision values have to move by more than this times delta skip the smoothing: all the
# steps at one delta (``levels.py``) would hardly do.
REACH = 256.0
# Smoothed problems that the full data may take from a delta carried over from the C before; then
# they start afresh.
CARRIED_LEVELS = 3


@dataclass(frozen=True)
class Reduction:
    """Rows in play, and the coefficients of the others.

    ``known`` holds these for C = 1: y_i w_i where a coefficient is at its bound, else 0 (also on
    the rows in play).
    """

    rows: IntArray
    known: FloatArray
    K: FloatArray

    @classmethod
    def none(cls, problem: Problem) -> Reduction:
        """All rows that have weight."""
        return cls.to(problem, *np.zeros((2, problem.n), dtype=bool))

    @classmethod
    def to(cls, problem: Problem, left: Mask, right: Mask) -> Reduction:
        """``left`` has coefficients at the bound, ``right`` none."""
        rows = np.flatnonzero((problem.weight > 0) & ~left & ~right)
        everyone = len(rows) == problem.n
        K = problem.K if everyone else np.ascontiguousarray(problem.K[np.ix_(rows, rows)])
        return cls(rows, np.where(left, problem.weight * problem.y, 0.0), K)

    def batch(self, problem: Problem, C: FloatArray, left_out: list[IntArray]) -> Batch:
        """A column for each set of rows left out."""
        rows, position = self.rows, np.full(problem.n, -1)
        position[rows] = np.arange(len(rows))
        gone = np.concatenate(left_out)
        column = np.repeat(np.arange(len(left_out)), [len(rows_out) for rows_out in left_out])
        here = position[gone]
        out = np.zeros((len(rows), len(left_out)), dtype=bool)
        out[here[here >= 0], column[here >= 0]] = True
        offset, slope = self._given(problem, C, left_out)
        return Batch(
            self.K,
            problem.y[rows],
            problem.weight[rows],
            C,
            out,
            offset,
            slope,
            problem.fit_intercept,
        )

    def _given(
        self, problem: Problem, C: FloatArray, left_out: list[IntArray]
    ) -> tuple[FloatArray, FloatArray]:
        """What the known coefficients give to f on the rows in play, and to their sum."""
        rows, fixed = self.rows, np.flatnonzero(self.known)
        offset = np.tile((problem.K[rows[:, None], fixed] @ self.known[fixed])[:, None], len(C))
        slope = np.full(len(C), self.known.sum())
        for f, gone in enumerate(left_out):
            lost = gone[self.known[gone] != 0.0]
            if len(lost):
                offset[:, f] -= problem.K[rows[:, None], lost] @ self.known[lost]
                slope[f] -= self.known[lost].sum()
        return offset * C, slope * C

    def expand(self, coef: FloatArray, C: FloatArray, left_out: list[IntArray]) -> FloatArray:
        """Coefficients of all n rows, a solution a row, from those in play (columns)."""
        full = np.outer(C, self.known)
        full[:, self.rows] = coef.T
        for f, gone in enumerate(left_out):
            full[f, gone] = 0.0
        return full


class GridPoint:
    """The hinge problem at grid point l: `full` first, then `folds`."""

    def __init__(
        self,
        task: Task,
        ledger: Ledger,
        workers: Workers,
        l: int,
        reduction: Reduction,
        shortcut: AllOnMargin | None,
    ):
        self.task, self.ledger, self.workers, self.l = task, ledger, workers, l
        self.reduction, self.shortcut = reduction, shortcut
        problem = task.problem
        self.C = float(task.grid.Cs[l])
        weight = problem.weight[reduction.rows]
        self.inverses = Inverses(reduction.K, weight, self.C, problem.fit_intercept)
        self.effort = Effort()

    @property
    def _within(self) -> float:
        return tolerances.POLISH * self.task.tol

    def full(self, h: FloatArray, delta: float) -> float:
        """Solve the full data from decision values h (n,) without intercept.

        Returns the smoothing parameter that led to the solution.
        """
        problem, l = self.task.problem, self.l
        nobody: list[IntArray] = [np.zeros(0, dtype=np.intp)]
        if self._on_margin(np.zeros(1, dtype=np.intp), np.array([self.C]))[0]:
            assert self.shortcut is not None
            if self.ledger.full(l, self.shortcut.coef[:, 0], within=self._within)[0]:
                return delta
        batch = self.reduction.batch(problem, np.array([self.C]), nobody)
        start = h[self.reduction.rows][:, None]
        wide = _narrowed(1.0, h)
        found = self._solve(batch, start, min(delta, wide), CARRIED_LEVELS)
        if not found.solved[0]:  # too narrow to begin with: a step is no longer than 2 delta
            found = self._solve(batch, start, wide)
        coef = self.reduction.expand(found.coef, np.array([self.C]), nobody)[0]
        if found.solved[0] and self.ledger.full(l, coef, within=self._within)[0]:
            return found.delta
        coef = refit_from(problem, np.arange(problem.n), self.C, coef, self.workers)[0]
        self.ledger.full(l, coef)
        return delta

    def folds(self, which: IntArray, delta: float) -> FloatArray:
        """Solve these folds from the full-data solution; returns their coefficients, a row each."""
        delta = _narrowed(delta, self.ledger.h[self.l])
        found = self.workers.map(lambda block: self._block(block, delta), blocks(which))
        for _, effort in found:
            self.effort.add(effort)
        self.effort.factorising = self.inverses.seconds
        empty = np.zeros((0, self.task.problem.n))
        return np.concatenate([coef for coef, _ in found]) if found else empty

    def _block(self, which: IntArray, delta: float) -> tuple[FloatArray, Effort]:
        task, problem, l = self.task, self.task.problem, self.l
        left_out = [task.folds.left_out[f] for f in which]
        C = np.array([task.fold_Cs(int(f))[l] for f in which])
        coef = np.zeros((len(which), problem.n))
        todo = np.ones(len(which), dtype=bool)
        simple = np.flatnonzero(self._on_margin(which + 1, C))
        if len(simple):
            assert self.shortcut is not None
            coef[simple] = self.shortcut.coef[:, which[simple] + 1].T
            good = self.ledger.solved(l, which[simple], coef[simple], within=self._within)
            todo[simple[good]] = False
        rest = np.flatnonzero(todo)
        if not len(rest):
            return coef, Effort()
        far = self._moved([left_out[k] for k in rest]) > REACH * delta
        if not problem.psd:  # its steps lead nowhere in particular
            far[:] = True
        levels = MAX_LEVELS
        if (
            problem.psd and not task.folds.leave_one_out
        ):  # few columns, and a bound that is far from sharp: one try
            levels, far = (1 if far.any() else MAX_LEVELS), np.zeros(len(rest), dtype=bool)
        near, from_sets = rest[~far], rest[far]
        effort = Effort(from_sets=len(from_sets))
        if len(near):
            gone = [left_out[k] for k in near]
            batch = self.reduction.batch(problem, C[near], gone)
            found = self._solve(batch, self._starts(gone), delta, levels)
            effort.add(found.effort)
            coef[near] = self.reduction.expand(found.coef, C[near], gone)
            ready, failed = near[found.solved], near[~found.solved]
            good = self.ledger.solved(l, which[ready], coef[ready], within=self._within)
            self._by_sets(which, C, coef, np.concatenate([failed, ready[~good]]), entries.FALLBACK)
        self._by_sets(which, C, coef, from_sets, entries.SOLVED)
        return coef, effort

    def _by_sets(
        self, which: IntArray, C: FloatArray, coef: FloatArray, places: IntArray, how: int
    ) -> None:
        """Folds at these places by the active set, from where the full solution has its rows.

        What misses the tolerance even then goes to the solver of ``refit``.
        """
        if not len(places):
            return
        problem, l, full = self.task.problem, self.l, self._full_point
        tracker = Tracker(problem, self.workers.cancel, self.task.tol)
        for k in places:
            gone, mine = self.task.folds.left_out[which[k]], which[k : k + 1]
            state = full.state.copy()
            state[gone] = -1
            coef[k] = tracker.move(full, float(C[k]), state).coef
            if not self.ledger.solved(l, mine, coef[k : k + 1], how=how, within=self._within)[0]:
                train = np.setdiff1d(np.arange(problem.n), gone)
                coef[k] = refit_from(problem, train, float(C[k]), coef[k], self.workers)[0]
                self.ledger.solved(l, mine, coef[k : k + 1], how=entries.FALLBACK)

    def _moved(self, left_out: list[IntArray]) -> FloatArray:
        """How far decision values move at most, for each fold, when its rows give up theirs."""
        give = np.abs(self.ledger.coef[self.l]) * self.task.problem.diagonal
        return np.array([give[gone].sum() for gone in left_out])

    @cached_property
    def _full_point(self) -> Point:
        ledger, l = self.ledger, self.l
        state = states_of(self.task.problem, self.C, ledger.coef[l])
        return Point(self.C, state, ledger.coef[l], ledger.h[l], float(ledger.intercept[l]))

    def _solve(
        self, batch: Batch, h: FloatArray, delta: float, levels: int = MAX_LEVELS
    ) -> Outcome:
        if not batch.n:  # everything is known
            return Outcome(np.zeros((0, batch.size)), np.ones(batch.size, dtype=bool), delta)
        return solve_hinge_columns(batch, h, self.inverses, delta, self.workers.cancel, levels)

    def _starts(self, left_out: list[IntArray]) -> FloatArray:
        """The full data's decision values on the rows in play, less what the left-out rows gave."""
        rows, K = self.reduction.rows, self.task.problem.K
        full, h = self.ledger.coef[self.l], self.ledger.h[self.l]
        start = np.tile(h[rows][:, None], (1, len(left_out)))
        if self.task.folds.leave_one_out:
            every = np.concatenate(left_out)
            return np.asarray(start - K[rows[:, None], every] * full[every])
        for f, gone in enumerate(left_out):
            start[:, f] -= K[rows[:, None], gone] @ full[gone]
        return start

    def _on_margin(self, columns: IntArray, C: FloatArray) -> Mask:
        if self.shortcut is None:
            return np.zeros(len(columns), dtype=bool)
        return self.shortcut.solves(columns, C)


def first_values(problem: Problem, C: float) -> FloatArray:
    """f with every coefficient at its bound: where strong regularisation begins."""
    return np.asarray(problem.K @ (C * problem.weight * problem.y))


def _narrowed(delta: float, h: FloatArray) -> float:
    spread = float(np.ptp(h))
    return min(delta, SPREAD * spread) if spread > 0 else delta


def blocks(which: IntArray) -> list[IntArray]:
    """Folds in lots of equal size, whatever the number of threads."""
    return [which[start : start + BLOCK] for start in range(0, len(which), BLOCK)]


def refit_from(
    problem: Problem, train: IntArray, C: float, coef: FloatArray, workers: Workers
) -> tuple[FloatArray, float]:
    """The ordinary solver, from coefficients that are nearly right."""
    box = C * problem.weight
    common: dict[str, Any] = {"fit_intercept": problem.fit_intercept, "cancel": workers.cancel}
    solver: Callable[..., Any] = solve_smooth
    if not hasattr(problem.loss, "shape"):
        solver = solve
        coef = _balanced(np.clip(problem.y * coef, 0.0, box) * problem.y, problem.fit_intercept)
    solution = solver(
        problem.K, problem.loss, box, train, tol=tolerances.REFIT, start=coef, **common
    )
    return solution.coef, solution.intercept


def _balanced(coef: FloatArray, fit_intercept: bool) -> FloatArray:
    """Scale down the side with the larger sum, so that the coefficients sum to zero."""
    plus, minus = coef[coef > 0].sum(), -coef[coef < 0].sum()
    if not fit_intercept or plus == minus:
        return coef
    # Only the larger side shrinks; the smaller has a share of at least 1.
    share_plus = min(1.0, minus / plus) if plus else 0.0
    share_minus = min(1.0, plus / minus) if minus else 0.0
    return np.where(coef > 0, share_plus, share_minus) * coef
