"""Method ``magic``: all folds on one inverse (Wang & Zou 2021).

A row that is left out keeps its place with label 0 (Lemma 1; several rows, Lemma 2): every fold is
then a problem over the same rows and the same kernel matrix, and one factorisation for each
(lambda, delta) serves the full data and all folds.  They advance together as columns of a matrix.

- Hinge: exact finite smoothing (``algorithms/finite_smoothing/levels.py``): accelerated proximal
  gradient for delta, delta / 8, ..., projection and KKT check (Algorithm 1, Lemmas 3 and 4), after
  the early check that all rows lie on the margin (``algorithms/finite_smoothing/margin.py``).
- Squared hinge and logistic (Algorithm 2): the loss is smooth already
  (``algorithms/finite_smoothing/differentiable_columns.py``).

The paper leaves the intercept out; here it is part of the shared inverse.  What does not converge
is counted as fallback: folds of the hinge go to an active set that starts from the full solution's
sets (``algorithms/finite_smoothing/grid_point.py``), the rest to the solver of ``refit``, from
where it stands.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from .. import tolerances
from ..engine.path import rising
from ..judge import ledger as entries
from ..judge.ledger import Ledger
from ..problem.differentiable import DifferentiableLoss
from ..problem.problem import Task
from ..runtime.threads import Workers
from ..types import FloatArray, IntArray
from .base import Support
from .finite_smoothing.batch import Mask, SharedInverse
from .finite_smoothing.count import Count
from .finite_smoothing.differentiable_columns import solve_smooth_columns
from .finite_smoothing.grid_point import (
    FIRST_DELTA,
    HEADROOM,
    GridPoint,
    Reduction,
    blocks,
    first_values,
    refit_from,
)
from .finite_smoothing.levels import Effort
from .finite_smoothing.margin import AllOnMargin

__all__ = ["METHOD", "Magic", "one_path"]

# No loss slope is known better than this.
FINEST = 1e-13


class Magic:
    """Every fold by smoothing, on inverses that all folds share."""

    support = Support(
        summary="all folds together on one inverse: smoothing and accelerated proximal gradient",
        paper="Wang & Zou (2021), Fast and exact leave-one-out analysis of large-margin "
        "classifiers, Technometrics",
        losses=("hinge", "squared_hinge", "logistic"),
        folds=("loo", "k-fold", "any"),
    )

    def run(self, task: Task, ledger: Ledger, workers: Workers) -> dict[str, Any]:
        """Solve all folds at one C after the other, from strong to weak regularisation."""
        if isinstance(task.problem.loss, DifferentiableLoss):
            return _Smooth(task, ledger, workers).run()
        return self._hinge(task, ledger, workers)

    def _hinge(self, task: Task, ledger: Ledger, workers: Workers) -> dict[str, Any]:
        problem, every = task.problem, np.arange(len(task.folds))
        reduction = Reduction.none(problem)
        shortcut = AllOnMargin.for_task(task)
        h, delta = first_values(problem, float(task.grid.Cs.min())), FIRST_DELTA
        count = Count(len(task.grid))
        for l in rising(task.grid.Cs):
            point = GridPoint(task, ledger, workers, int(l), reduction, shortcut)
            start = perf_counter()
            delta = workers.run(partial(point.full, h, min(1.0, HEADROOM * delta)))
            count.path += perf_counter() - start
            point.folds(every, min(1.0, HEADROOM * delta))
            h = ledger.h[l]
            count.enter(int(l), point.effort, delta)
        return count.stats()


class _Smooth:
    """Algorithm 2: one inverse for each C, no smoothing."""

    def __init__(self, task: Task, ledger: Ledger, workers: Workers):
        assert isinstance(task.problem.loss, DifferentiableLoss)
        self.task, self.ledger, self.workers = task, ledger, workers
        self.reduction = Reduction.none(task.problem)
        rows = self.reduction.rows
        self.loss = DifferentiableLoss(task.problem.loss.shape, task.problem.loss.y[rows])
        self.nobody = np.zeros(0, dtype=np.intp)

    def run(self, folds: bool = True) -> dict[str, Any]:
        task, problem = self.task, self.task.problem
        count = Count(len(task.grid))
        rows = self.reduction.rows
        u = np.zeros(len(rows))
        for l in rising(task.grid.Cs):
            start = perf_counter()
            fold_C = np.array([task.fold_Cs(f)[l] for f in range(len(task.folds))])
            # A step must suit the smallest C among the columns (they differ in V folds).
            rho = self.loss.kappa / min(float(task.grid.Cs[l]), float(fold_C.min()))
            weight = problem.weight[rows]
            inverse = SharedInverse.of(self.reduction.K, weight, rho, problem.fit_intercept)
            effort = Effort(factorising=perf_counter() - start)
            self.workers.run(partial(self._full, int(l), u, inverse, effort))
            count.path += perf_counter() - start
            u = self.ledger.h[l][rows] + self.ledger.intercept[l]
            work = partial(self._folds, int(l), fold_C, u, inverse)
            done = self.workers.map(work, blocks(np.arange(len(task.folds)))) if folds else []
            for other in done:
                effort.add(other)
            count.enter(int(l), effort)
        return count.stats()

    def _full(self, l: int, u: FloatArray, inverse: SharedInverse, effort: Effort) -> None:
        C = np.array([self.task.grid.Cs[l]])
        coef, b, good = self._solve([self.nobody], C, u, inverse, effort)
        if not (good[0] and self.ledger.full(l, coef[0], b[0], within=self._within)[0]):
            everyone = np.arange(self.task.problem.n)
            c, b0 = refit_from(self.task.problem, everyone, float(C[0]), coef[0], self.workers)
            self.ledger.full(l, c, b0)

    def _folds(
        self, l: int, fold_C: FloatArray, u: FloatArray, inverse: SharedInverse, which: IntArray
    ) -> Effort:
        """One block of folds; those that miss the tolerance go to Newton's method."""
        problem, effort = self.task.problem, Effort()
        gone = [self.task.folds.left_out[f] for f in which]
        coef, b, good = self._solve(gone, fold_C[which], u, inverse, effort)
        good &= self.ledger.solved(l, which, coef, b, within=self._within)
        for k in np.flatnonzero(~good):
            train = np.setdiff1d(np.arange(problem.n), gone[k])
            C = float(fold_C[which[k]])
            c, b0 = refit_from(problem, train, C, coef[k], self.workers)
            self.ledger.solved(l, which[k : k + 1], c[None], np.array([b0]), how=entries.FALLBACK)
        return effort

    def _solve(
        self,
        gone: list[IntArray],
        C: FloatArray,
        u: FloatArray,
        inverse: SharedInverse,
        effort: Effort,
    ) -> tuple[FloatArray, FloatArray, Mask]:
        """Coefficients (a row each), intercepts, and which have converged."""
        start = perf_counter()
        problem = self.task.problem
        batch = self.reduction.batch(problem, C, gone)
        U = np.tile(u[:, None], (1, len(gone)))
        # What the slopes miss moves f by up to C times as much: keep that within tol as well.
        scale = max(1.0, float(C.max()) * float((problem.weight * problem.diagonal).max()))
        tol = max(self._within / scale, FINEST)
        found = solve_smooth_columns(batch, self.loss, U, inverse, tol, self.workers.cancel)
        coef = self.reduction.expand(found.coef, C, gone)
        effort.add(found.effort)
        effort.iterating += perf_counter() - start
        return coef, found.intercept, found.solved

    @property
    def _within(self) -> float:
        return tolerances.POLISH * self.task.tol


def one_path(task: Task, ledger: Ledger, workers: Workers) -> None:
    """The full data alone along the grid: the solver of ``magic`` without its folds."""
    problem = task.problem
    if isinstance(problem.loss, DifferentiableLoss):
        _Smooth(task, ledger, workers).run(folds=False)
        return
    reduction, delta = Reduction.none(problem), FIRST_DELTA
    h = first_values(problem, float(task.grid.Cs.min()))
    for l in rising(task.grid.Cs):
        point = GridPoint(task, ledger, workers, int(l), reduction, None)
        delta = workers.run(partial(point.full, h, min(1.0, HEADROOM * delta)))
        h = ledger.h[l]


METHOD = Magic()
