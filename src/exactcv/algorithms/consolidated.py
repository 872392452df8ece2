"""Method ``consolidated``: rows fixed for all folds at once, then all folds together (Wang & Yang).

From the solutions at the lambda before, bounds hold for the full data and every fold together
(``algorithms/finite_smoothing/consolidated_bounds.py``): rows in L have c_i = y_i C_i in all of
them, rows in R have c_i = 0, and only the rows S are left to solve for (Theorem 2.2 without an
intercept, Algorithm 1; Theorem 3.5 in two stages with one, Algorithm 3).  A row without a
coefficient changes nothing when it is left out. All other folds are solved as in ``magic`` on
inverses of the size of S.

``method_options``: ``bounds="tight"`` (the default; ours) or ``"printed"`` (Theorems 2.2 and 3.5 as
they stand), for leave-one-out.  Both are safe.

As printed: the theorems' sets, the order of work, one inverse for all folds.  Ours:

- The papers' reduced problem (8) still has the losses of all n rows.  Those of L and R are linear
  around every solution, so here they are replaced by those linear pieces
  (``algorithms/finite_smoothing/batch.py``): a convex function that is nowhere larger and has the
  same minimiser, with n_S rows instead of n.
- Folds that leave out a block (k-fold), which the paper names as future work: bounds of our own
  (``algorithms/finite_smoothing/block_bounds.py``), from the full data at the same lambda and the
  fold's own solution at the one before.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from .. import tolerances
from ..engine.path import rising
from ..judge.ledger import Ledger
from ..problem.problem import Task
from ..runtime.threads import Workers
from ..types import FloatArray, IntArray
from .base import Support
from .finite_smoothing.block_bounds import FoldBefore, FullNow, block_bounds, known_for_all
from .finite_smoothing.consolidated_bounds import BOUNDS, Previous, bounds_at, printed_bounds_at
from .finite_smoothing.count import Count
from .finite_smoothing.grid_point import FIRST_DELTA, HEADROOM, GridPoint, Reduction, first_values
from .finite_smoothing.margin import AllOnMargin
from .options import Option, choice, read_options

__all__ = ["METHOD", "Consolidated"]


class Consolidated:
    """Safe reduction, then smoothing on the shared inverse of what is left."""

    support = Support(
        summary="rows that safe bounds fix for all folds; the others solved for all folds together",
        paper="Wang & Yang (2022), A consolidated cross-validation algorithm for support vector "
        "machines via data reduction, NeurIPS",
        losses=("hinge",),
        folds=("loo", "k-fold", "any"),
        options=(
            Option(
                "bounds",
                "tight",
                "leave-one-out: ours, or those of Theorems 2.2 and 3.5 as printed",
                choice(*BOUNDS),
            ),
        ),
    )

    def run(self, task: Task, ledger: Ledger, workers: Workers) -> dict[str, Any]:
        """One C after the other, from strong to weak regularisation."""
        options = read_options("consolidated", self.support.options, task.options)
        kind = _Singly if task.folds.leave_one_out else _InBlocks
        shortcut, bounds = AllOnMargin.for_task(task), kind(task, ledger, options["bounds"])
        count = _SetCount(len(task.grid))
        h, delta = first_values(task.problem, float(task.grid.Cs.min())), FIRST_DELTA
        for l in map(int, rising(task.grid.Cs)):
            start = perf_counter()
            point = GridPoint(task, ledger, workers, l, bounds.for_full(l), shortcut)
            delta = workers.run(partial(point.full, h, min(1.0, HEADROOM * delta)))
            count.path += perf_counter() - start
            moving = _skip(task, ledger, l)
            count.skipped[l] = 1.0 - len(moving) / len(task.folds)
            coef = np.zeros((len(moving), task.problem.n))
            for place, (mine, reduction) in enumerate(bounds.for_folds(l, moving)):
                count.sizes[l, place:] = _sizes(task, reduction)
                group = GridPoint(task, ledger, workers, l, reduction, shortcut)
                coef[mine] = group.folds(moving[mine], min(1.0, HEADROOM * delta))
                count.enter(l, group.effort, delta)
            h = ledger.h[l]
            bounds.remember(l, moving, coef)
        return count.stats()


class _SetCount(Count):
    """The sizes of the sets besides, at each C.

    In leave-one-out for folds without a positive and without a negative row; else twice the same.
    """

    def __init__(self, n_grid: int):
        super().__init__(n_grid)
        self.sizes = np.zeros((n_grid, 2, 3), dtype=np.intp)
        self.skipped = np.zeros(n_grid)

    def stats(self) -> dict[str, Any]:
        sizes = {f"size_{name}": self.sizes[:, :, k] for k, name in enumerate("LRS")}
        return super().stats() | sizes | {"share_skipped": self.skipped}


def _sizes(task: Task, reduction: Reduction) -> tuple[int, int, int]:
    """|L|, |R| and |S|."""
    left, rows = int(np.count_nonzero(reduction.known)), len(reduction.rows)
    return left, task.problem.n - left - rows, rows


Group = tuple[IntArray, Reduction]  # positions among the folds to solve, and their reduction


class _Singly:
    """Leave-one-out: the sets of Theorems 2.2 and 3.5, for folds without a row of either label."""

    def __init__(self, task: Task, ledger: Ledger, bounds: str):
        self.task, self.ledger = task, ledger
        self.bounds_at = bounds_at if bounds == "tight" else printed_bounds_at
        self.previous: Previous | None = None
        self.reductions: dict[int, Reduction] = {}

    def for_full(self, l: int) -> Reduction:
        problem, C = self.task.problem, float(self.task.grid.Cs[l])
        if self.previous is None:
            self.reductions = dict.fromkeys((0, 1, -1), Reduction.none(problem))
        else:
            found = self.bounds_at(problem, C, self.previous)
            self.reductions = {
                kind: Reduction.to(problem, *bounds.known(problem.y))
                for kind, bounds in found.items()
            }
        return self.reductions[0]

    def for_folds(self, l: int, moving: IntArray) -> list[Group]:
        label = self.task.problem.y[self.task.folds.pair_rows[moving]]
        return [(np.flatnonzero(label == sign), self.reductions[sign]) for sign in (1, -1)]

    def remember(self, l: int, moving: IntArray, coef: FloatArray) -> None:
        self.previous = _remember(self.task, self.ledger, l, moving, coef)


class _InBlocks:
    """Blocks: what the bounds of every fold have in common (``bounds`` is for leave-one-out)."""

    def __init__(self, task: Task, ledger: Ledger, bounds: str):
        self.task, self.ledger = task, ledger
        self.full_before: Previous | None = None
        self.before: list[FoldBefore | None] = [None] * len(task.folds)

    def for_full(self, l: int) -> Reduction:
        problem, C = self.task.problem, float(self.task.grid.Cs[l])
        if self.full_before is None:
            return Reduction.none(problem)
        return Reduction.to(problem, *bounds_at(problem, C, self.full_before)[0].known(problem.y))

    def for_folds(self, l: int, moving: IntArray) -> list[Group]:
        task, ledger, problem = self.task, self.ledger, self.task.problem
        full = FullNow(
            float(task.grid.Cs[l]), ledger.h[l], ledger.coef[l], float(ledger.intercept[l])
        )
        found = []
        for fold in map(int, moving):
            out, C = task.folds.left_out[fold], float(task.fold_Cs(fold)[l])
            found.append((out, block_bounds(problem, full, out, C, self.before[fold])))
        reduction = Reduction.to(problem, *known_for_all(problem, found))
        return [(np.arange(len(moving)), reduction)]

    def remember(self, l: int, moving: IntArray, coef: FloatArray) -> None:
        task, ledger = self.task, self.ledger
        self.full_before = _remember(task, ledger, l, moving[:0], coef[:0])
        h = coef @ task.problem.K
        for place, fold in enumerate(map(int, moving)):
            norm = float(np.sqrt(max(coef[place] @ h[place], 0.0)))
            self.before[fold] = FoldBefore(float(task.fold_Cs(fold)[l]), h[place], norm)
        for fold in set(range(len(self.before))) - set(map(int, moving)):
            self.before[fold] = FoldBefore(
                float(task.fold_Cs(fold)[l]), ledger.h[l], self.full_before.full_norm
            )


def _skip(task: Task, ledger: Ledger, l: int) -> IntArray:
    """Enter the folds that leave out rows without a coefficient; returns the others.

    If no coefficient is strictly inside its box, the intercept has an interval that such a row may
    limit: the ledger then picks it anew.
    """
    coef, C, folds = ledger.coef[l], float(task.grid.Cs[l]), task.folds
    box = C * task.problem.weight
    idle = folds.removed(coef != 0.0) == 0
    if not folds.leave_one_out:  # lambda may make C another
        idle &= np.array([task.fold_Cs(f)[l] for f in range(len(folds))]) == C
    near = tolerances.AT_BOUND * box
    inside = (np.abs(coef) > near) & (np.abs(coef) < box - near)
    same = np.flatnonzero(idle)
    if inside.any() or not task.problem.fit_intercept:
        ledger.unchanged(l, same)
    elif len(same):
        ledger.solved(l, same, np.tile(coef, (len(same), 1)))
    return np.flatnonzero(~idle)


def _remember(task: Task, ledger: Ledger, l: int, moving: IntArray, coef: FloatArray) -> Previous:
    """What the bounds at the next C need; the folds' own solutions only with an intercept."""
    problem, full = task.problem, ledger.coef[l]
    norm = float(np.sqrt(max(full @ ledger.h[l], 0.0)))
    C = float(task.grid.Cs[l])
    if not problem.fit_intercept or not len(moving):
        nothing, nobody = np.zeros((0, problem.n)), np.zeros(0, dtype=np.intp)
        return Previous(C, ledger.h[l], norm, nothing, np.zeros(0), nobody)
    own = task.folds.pair_rows[moving]
    # K c from the full data's: most folds differ from it in few rows besides their own.
    change = coef - full
    rows = np.arange(len(own))
    change[rows, own] = 0.0
    columns = np.flatnonzero(change.any(axis=0))
    h = change[:, columns] @ problem.K[columns]
    h += ledger.h[l]
    h -= full[own][:, None] * problem.K[own]
    norms = np.sqrt(np.maximum(np.einsum("ij,ij->i", coef, h), 0.0))
    return Previous(C, ledger.h[l], norm, h, norms, own)


METHOD = Consolidated()
