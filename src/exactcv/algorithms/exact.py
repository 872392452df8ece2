"""The engine of this project: exact cross-validation at about the price of one path.

1. *Path.*  The full-data solution at every C of the grid, each from the one before.
2. *Leave one out.*  From each of those solutions, drive one coefficient to zero at a time; when
   only labels are wanted, prove most of them from bounds instead.
3. *Blocks.*  Folds that leave out several rows follow their own path, guided by the full one.

Whatever comes out is judged by the ledger from the coefficients alone; a solution that misses the
tolerance is solved again, in the end by the working-set solver that ``refit`` uses.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np

from .. import tolerances
from .._core._factor import Factor
from ..engine.blocks import solve_folds, to_lend, together
from ..engine.bounds import Span
from ..engine.leave_one_out import LeaveOneOut, runs
from ..engine.merged import Merged
from ..engine.path import Point, Tracker, at_knot, full_path, rising
from ..judge.ledger import Ledger
from ..problem.differentiable import SquaredLoss
from ..problem.problem import Task
from ..runtime.threads import Workers
from .base import Support
from .least_squares import METHOD as CLOSED_FORM
from .refit import METHOD as REFIT

__all__ = ["METHOD", "Exact"]


class Exact:
    """Path, leave-one-out by decremental steps, labels by proof, blocks for other folds."""

    support = Support(
        summary="path following and decremental steps over piecewise-linear losses (squared loss: "
        "closed form)",
        paper="this project",
        losses=("hinge", "squared", "epsilon_insensitive", "pinball", "least_squares"),
        folds=("any",),
    )

    def run(self, task: Task, ledger: Ledger, workers: Workers) -> dict[str, Any]:
        if isinstance(task.problem.loss, SquaredLoss):
            return CLOSED_FORM.run(task, ledger, workers)
        if not task.problem.psd:
            # Paths, drives and bounds all rest on convexity.  Without it each fold is solved from
            # scratch, so that at least labels and values are those of one and the same solution.
            return REFIT.run(task, ledger, workers)
        start = perf_counter()
        merged = workers.run(lambda: Merged.of(task.problem))
        rough = task.tol >= tolerances.ROUGH and not task.folds.leave_one_out
        tracker = Tracker(merged.problem, workers.cancel, task.tol, rough)
        points = workers.run(lambda: self.path(task, ledger, tracker, merged))
        middle = perf_counter()
        judged = ledger.seconds
        if task.folds.leave_one_out:
            counts = self._leave_one_out(task, ledger, workers, points, merged)
        else:
            counts = self._blocks(task, ledger, workers, points, merged, tracker.factor)
        counts["path_solves"] = tracker.solves
        states = np.array([point.state for point in points])[np.argsort(rising(task.grid.Cs))]
        counts["at_knot"] = at_knot(states).sum(axis=1).tolist()
        folds = perf_counter() - middle - (ledger.seconds - judged) / workers.n_threads
        seconds = {"path": middle - start - judged, "folds": max(folds, 0.0)}
        return counts | {"timings": seconds}

    def path(self, task: Task, ledger: Ledger, tracker: Tracker, merged: Merged) -> list[Point]:
        """Full-data solutions along rising C, entered in the ledger."""
        order = rising(task.grid.Cs)
        points = full_path(tracker.problem, task.grid.Cs[order], tracker)
        coef = merged.apart(np.array([point.coef for point in points]))
        within = tolerances.aim(task.tol) if tracker.roughly else tolerances.POLISH * task.tol
        good = ledger.full(order, coef, within=within)
        if task.want_decision and task.folds.leave_one_out:
            # Every fold inherits what this misses by; those that rounding excuses only just would
            # all be solved again, one by one.
            missed = np.maximum(ledger.kkt[order, -1], ledger.gap[order, -1])
            good &= missed <= 0.5 * tolerances.POLISH * task.tol
        for step in np.flatnonzero(~good):
            point, l = points[step], int(order[step])
            for solve_again in tracker.attempts:
                point = solve_again(point)
                found = merged.apart(point.coef)
                good = ledger.full(l, found)[0]
                if np.array_equal(ledger.coef[l], found):  # it was better than the last
                    points[step] = point
                if good or point.fallback:
                    break
        return points

    def _leave_one_out(
        self, task: Task, ledger: Ledger, workers: Workers, points: list[Point], merged: Merged
    ) -> dict[str, Any]:
        span = Span.of(task.problem)
        order = rising(task.grid.Cs)

        engine = LeaveOneOut(task, ledger, span, workers.cancel, merged)

        def work(steps: list[int]) -> int:
            return engine.at(order[steps], [points[step] for step in steps])

        # The last grid points have the most rows in play: start with them.
        return {"events": sum(workers.map(work, reversed(runs(points))))}

    def _blocks(
        self,
        task: Task,
        ledger: Ledger,
        workers: Workers,
        points: list[Point],
        merged: Merged,
        factor: Factor,
    ) -> dict[str, Any]:
        lent = to_lend(task, merged, factor)

        def work(folds: range) -> int:
            return solve_folds(task, ledger, folds, points, merged, workers.cancel, lent)

        return {"fold_solves": sum(workers.map(work, together(task)))}


METHOD = Exact()
