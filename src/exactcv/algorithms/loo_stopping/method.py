"""Exact leave-one-out labels with a stopping condition (Franc, Laskov & Mueller, ICML 2008).

Algorithm 1, at every C of the grid:

1. Solve the full-data problem.
2. Settle what the sufficiency checks settle (``checks.py``).
3. For every other row r solve the problem without it by SMO from a seed, and beside it maximise
   H(beta), a lower bound on what an f with f(x_r) + b = 0 can reach.  As soon as F < H the label
   is proved (``dual_pair.py``, Algorithm 3).
4. If fewer than half of the first ten such rows end that way, the second problem costs more than
   it saves: solve the rest without it (Algorithm 2).

A row whose label is not proved is solved to the tolerance and certified like any other method's.

The paper's errors: k' ends in + k(x_r, x_r); F does not count the loss of row r; Corollary 1 is
about A(r), not A_0(r); and its third check leaves out how far the intercept may walk.

``method_options``: ``epsilon`` is that of the eps-KKT conditions (8).  None, the default, solves
what is not proved to the tolerance of ``cross_validate``.  With a number all problems are solved by
plain SMO to that eps and taken at their word, checks included, as in the paper (it has 1e-3, and
its Figure 1 shows what larger ones do); labels that F < H proves are right all the same, the others
need not be, and the certificate says so.  ``stopping=False`` is the paper's standard approach,
Algorithm 2 for every row.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from ... import tolerances
from ...engine.smo import solve, solve_hinge
from ...judge.certificate import implied_accuracy
from ...judge.ledger import FALLBACK, Ledger
from ...problem.problem import Task
from ...runtime.threads import Workers
from ...types import FloatArray, IntArray
from ..base import Support
from ..options import Option, flag, positive, read_options
from ..refit import METHOD as REFIT
from .checks import Verdicts, reaches, sufficiency
from .dual_pair import Counts, DualPair, Outcome

__all__ = ["METHOD", "LooStopping"]

# The paper's M, and the share of proofs among the first M rows below which it gives them up.
TRIAL_ROWS = 10
WORTHWHILE = 0.5
# Solutions handed to the ledger together.
BLOCK = 64


@dataclass
class _Tally:
    """What happened at one grid point."""

    check_1: int = 0
    check_2: int = 0
    check_3: int = 0
    proved: int = 0
    solved: int = 0
    switched_off: bool = False
    full_iterations: int = 0
    full_evaluations: int = 0
    counts: Counts = field(default_factory=Counts)


def _epsilon(name: str, value: Any) -> float | None:
    return None if value is None else positive(name, value)


@dataclass(frozen=True)
class LooStopping:
    """The method.

    ``stopping=False`` is the paper's standard approach (Algorithm 2 throughout).  ``limit`` is how
    many SMO steps, for each training row, are taken before the free coefficients are solved for at
    once; with None as many as it takes, as in the paper.
    """

    stopping: bool = True
    limit: int | None = 10
    epsilon: float | None = None

    support = Support(
        summary="sufficiency checks, then SMO stopped once the label is proved; labels only",
        paper="Franc, Laskov & Mueller (2008), Stopping Conditions for Exact Computation of "
        "Leave-One-Out Error in Support Vector Machines, ICML",
        losses=("hinge",),
        folds=("loo",),
        decision=False,
        options=(
            Option("epsilon", None, "of the eps-KKT conditions; None: until certified", _epsilon),
            Option("stopping", True, "False: without the stopping condition", flag),
        ),
    )

    def run(self, task: Task, ledger: Ledger, workers: Workers) -> dict[str, Any]:
        """Settle every left-out label along the grid."""
        if not task.problem.psd:
            # Checks and proofs all rest on convexity.
            return REFIT.run(task, ledger, workers)
        if task.options:
            chosen = read_options("loo_stopping", self.support.options, task.options)
            plain = chosen["epsilon"] is not None
            method = replace(self, **chosen, limit=None if plain else self.limit)
            return method.run(replace(task, options={}), ledger, workers)
        start = perf_counter()
        reach = reaches(task.problem)

        def work(l: int) -> _Tally:
            return self._grid_point(task, ledger, workers, reach, l)

        # Large C takes longest: start there.
        order = np.argsort(-task.grid.Cs, kind="stable")
        tallies = workers.map(work, [int(l) for l in order])
        in_order = [tallies[k] for k in np.argsort(order)]
        seconds = perf_counter() - start - ledger.seconds / workers.n_threads
        return _stats(in_order) | {"timings": {"folds": max(seconds, 0.0)}}

    def _grid_point(
        self, task: Task, ledger: Ledger, workers: Workers, reach: FloatArray, l: int
    ) -> _Tally:
        problem, C = task.problem, float(task.grid.Cs[l])
        tol = tolerances.POLISH * min(task.tol, 1e-8)
        everyone = np.arange(problem.n, dtype=np.intp)
        box = C * problem.weight
        full = solve(
            problem.K,
            problem.loss,
            box,
            everyone,
            fit_intercept=problem.fit_intercept,
            tol=self.epsilon or tol,
            cancel=workers.cancel,
            polish=self.epsilon is None,
        )
        ledger.full(l, full.coef, full.intercept)
        tally = _Tally(full_iterations=full.iterations, full_evaluations=full.kernel_evaluations)
        verdicts = _verdicts(task, ledger, l, reach, at_its_word=self.epsilon is not None)
        left = _apply_checks(task, ledger, l, verdicts, tally)
        limit = self.limit * problem.n if self.limit else np.iinfo(np.intp).max
        pair = DualPair(
            problem, box, full.coef, ledger.h[l], tol, limit, workers.cancel, self.epsilon
        )
        self._leave_out(task, ledger, l, pair, left, tally)
        return tally

    def _leave_out(
        self, task: Task, ledger: Ledger, l: int, pair: DualPair, folds: IntArray, tally: _Tally
    ) -> None:
        """Algorithm 3 for the folds given, or Algorithm 2 once it does not pay."""
        rows = task.folds.pair_rows
        solved: list[tuple[int, Outcome]] = []
        for k, fold in enumerate(folds):
            if self.stopping and k == TRIAL_ROWS:
                tally.switched_off = tally.proved < WORTHWHILE * TRIAL_ROWS
            stopping = self.stopping and not tally.switched_off
            outcome = pair.leave_out(int(rows[fold]), stopping)
            tally.counts.add(outcome.counts)
            if outcome.coef is None:
                ledger.proved(l, np.array([fold]), np.array([outcome.wrong]))
                tally.proved += 1
            else:
                solved.append((int(fold), outcome))
                tally.solved += 1
            if len(solved) == BLOCK:
                _enter(task, ledger, l, pair, solved)
                solved.clear()
        if solved:
            _enter(task, ledger, l, pair, solved)


def _verdicts(task: Task, ledger: Ledger, l: int, reach: FloatArray, at_its_word: bool) -> Verdicts:
    """The checks at grid point l, with room for the accuracy of the full-data solution.

    Or without, as in the paper: a solution ``at_its_word`` is the optimum.
    """
    problem = task.problem
    levels = problem.loss.coefficient_levels(task.grid.Cs[l] * problem.weight)
    u = ledger.h[l] + ledger.intercept[l]
    # f is this close to the optimum's at every row, and b is a quantile of values of f.
    gap, largest = float(ledger.gap_abs[l, -1]), float(problem.diagonal.max())
    accuracy = 2.0 * implied_accuracy(gap, 0.0, largest) + 1e-12 * float(np.abs(u).max())
    if at_its_word:
        accuracy = 0.0
    box = levels[:, 1], levels[:, 0]
    return sufficiency(problem, ledger.coef[l], u, box, reach, accuracy)


def _apply_checks(
    task: Task, ledger: Ledger, l: int, verdicts: Verdicts, tally: _Tally
) -> IntArray:
    """Enter what the checks settle; returns the folds that are left."""
    rows = task.folds.pair_rows
    unchanged = np.flatnonzero(verdicts.unchanged[rows])
    ledger.unchanged(l, unchanged)
    same = np.flatnonzero(verdicts.moves_intercept[rows])
    if len(same):
        ledger.solved(l, same, np.tile(ledger.coef[l], (len(same), 1)))
    wrong, right = (np.flatnonzero(mask[rows]) for mask in (verdicts.wrong, verdicts.right))
    ledger.proved(l, wrong, np.ones(len(wrong), dtype=bool))
    ledger.proved(l, right, np.zeros(len(right), dtype=bool))
    tally.check_1 = len(unchanged) + len(same)
    tally.check_2, tally.check_3 = len(wrong), len(right)
    return np.flatnonzero(verdicts.unsettled()[rows])


def _enter(
    task: Task, ledger: Ledger, l: int, pair: DualPair, solved: list[tuple[int, Outcome]]
) -> None:
    """Enter solutions; one that misses the tolerance is solved again from a cold start."""
    folds = np.array([fold for fold, _ in solved])
    coef = np.array([outcome.coef for _, outcome in solved])
    if pair.epsilon is not None:  # the ledger finds the intercept
        ledger.solved(l, folds, coef)
        return
    b = np.array([outcome.intercept for _, outcome in solved])
    missed = ~ledger.solved(l, folds, coef, b)
    for fold in folds[missed]:
        train = np.setdiff1d(np.arange(task.problem.n), task.folds.left_out[fold])
        again = solve_hinge(
            task.problem, train, float(task.grid.Cs[l]), tolerances.REFIT, pair.cancel
        )
        ledger.solved(l, [int(fold)], again.coef[None], np.array([again.intercept]), how=FALLBACK)


def _stats(tallies: list[_Tally]) -> dict[str, Any]:
    """Arrays along the grid; ``Prec`` is the share of proofs among rows that no check settled."""

    def along(name: str) -> IntArray:
        return np.array([getattr(tally, name) for tally in tallies])

    def counted(name: str) -> IntArray:
        return np.array([getattr(tally.counts, name) for tally in tallies])

    proved, tried = along("proved"), along("proved") + along("solved")
    return {
        "check_1": along("check_1"),
        "check_2": along("check_2"),
        "check_3": along("check_3"),
        "stopped": proved,
        "converged": along("solved"),
        "Prec": proved / np.maximum(tried, 1),
        "switched_off": along("switched_off"),
        "iterations": counted("first"),
        "second_iterations": counted("second"),
        "kernel_evaluations": counted("evaluations"),
        "finish_evaluations": counted("finish"),
        "full_iterations": along("full_iterations"),
        "full_evaluations": along("full_evaluations"),
    }


METHOD = LooStopping()
