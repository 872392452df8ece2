"""Method ``consolidated``: leave-one-out with rows fixed for all folds at once (Wang & Yang 2022).

From the solutions at the lambda before, bounds hold for the full data and every fold together
(``algorithms/finite_smoothing/consolidated_bounds.py``): rows in L have c_i = y_i C_i in all of
them, rows in R have c_i = 0, and only the rows S are left to solve for (Theorem 2.2 without an
intercept, Algorithm 1; Theorem 3.5 in two stages with one, Algorithm 3).  A row without a
coefficient changes nothing when it is left out. All other folds are solved as in ``magic`` on
inverses of the size of S.

The papers' reduced problem (8) still has the losses of all n rows.  Those of L and R are linear
around every solution, so here they are replaced by those linear pieces
(``algorithms/finite_smoothing/batch.py``): a convex function that is nowhere larger and has the
same minimiser, with n_S rows instead of n.
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
from .finite_smoothing.consolidated_bounds import Previous, bounds_at
from .finite_smoothing.count import Count
from .finite_smoothing.grid_point import FIRST_DELTA, HEADROOM, GridPoint, Reduction, first_values
from .finite_smoothing.margin import AllOnMargin

__all__ = ["METHOD", "Consolidated"]


class Consolidated:
    """Safe reduction, then smoothing on the shared inverse of what is left."""

    support = Support(
        summary="leave-one-out on the rows that safe bounds leave open, all folds together",
        paper="Wang & Yang (2022), A consolidated cross-validation algorithm for support vector "
        "machines via data reduction, NeurIPS",
        losses=("hinge",),
        folds=("loo",),
    )

    def run(self, task: Task, ledger: Ledger, workers: Workers) -> dict[str, Any]:
        """One C after the other, from strong to weak regularisation."""
        problem = task.problem
        shortcut = AllOnMargin.for_task(task)
        count = _SetCount(len(task.grid))
        h, delta = first_values(problem, float(task.grid.Cs.min())), FIRST_DELTA
        previous: Previous | None = None
        for l in rising(task.grid.Cs):
            start = perf_counter()
            reductions = _reduce(task, int(l), previous, count)
            point = GridPoint(task, ledger, workers, int(l), reductions[0], shortcut)
            delta = workers.run(partial(point.full, h, min(1.0, HEADROOM * delta)))
            count.path += perf_counter() - start
            moving = _skip(task, ledger, int(l))
            count.skipped[l] = 1.0 - len(moving) / len(task.folds)
            coef = np.zeros((len(moving), problem.n))
            label = problem.y[task.folds.pair_rows[moving]]
            for sign in (1, -1):
                group = GridPoint(task, ledger, workers, int(l), reductions[sign], shortcut)
                coef[label == sign] = group.folds(moving[label == sign], min(1.0, HEADROOM * delta))
                count.enter(int(l), group.effort, delta)
            h = ledger.h[l]
            previous = _remember(task, ledger, int(l), moving, coef)
        return count.stats()


class _SetCount(Count):
    """The sizes of the sets besides: at each C, for folds without a positive, negative row."""

    def __init__(self, n_grid: int):
        super().__init__(n_grid)
        self.sizes = np.zeros((n_grid, 2, 3), dtype=np.intp)
        self.skipped = np.zeros(n_grid)

    def stats(self) -> dict[str, Any]:
        sizes = {f"size_{name}": self.sizes[:, :, k] for k, name in enumerate("LRS")}
        return super().stats() | sizes | {"share_skipped": self.skipped}


def _reduce(
    task: Task, l: int, previous: Previous | None, count: _SetCount
) -> dict[int, Reduction]:
    """The rows that the bounds leave open at grid point l, for the full data and both labels."""
    problem, C = task.problem, float(task.grid.Cs[l])
    idle = problem.weight == 0
    if previous is None:
        everyone = Reduction.none(problem)
        count.sizes[l] = 0, idle.sum(), len(everyone.rows)
        return dict.fromkeys((0, 1, -1), everyone)
    out = {}
    for kind, bounds in bounds_at(problem, C, previous).items():
        left, right = bounds.known(problem.y)
        right |= idle
        left &= ~right
        known = np.where(left, C * problem.weight * problem.y, 0.0)
        rows = np.flatnonzero(~(left | right))
        out[kind] = Reduction.to(problem, rows, known)
        if kind:
            count.sizes[l, 0 if kind > 0 else 1] = left.sum(), right.sum(), len(rows)
    return out


def _skip(task: Task, ledger: Ledger, l: int) -> IntArray:
    """Enter the folds that leave out a row without a coefficient; returns the others.

    If no coefficient is strictly inside its box, the intercept has an interval that such a row may
    limit: the ledger then picks it anew.
    """
    coef, box = ledger.coef[l], task.grid.Cs[l] * task.problem.weight
    idle = coef[task.folds.pair_rows] == 0.0
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
    own = task.folds.pair_rows[moving]
    C = float(task.grid.Cs[l])
    if not problem.fit_intercept or not len(moving):
        nothing = np.zeros((0, problem.n))
        return Previous(C, ledger.h[l], norm, nothing, np.zeros(0), own[:0])
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
