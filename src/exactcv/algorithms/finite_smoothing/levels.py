"""Exact solutions of the hinge problem by a finite sequence of smoothed ones.

    L_delta(m) = 0                              for m >= 1 + delta,
                 (1 + delta - m)^2 / (4 delta)  in between,
                 1 - m                          for m <= 1 - delta

has a slope that changes at most by |m - m'| / (2 delta).  For delta = d, d / 8, d / 64, ... the
smoothed problems are solved by accelerated proximal gradient, each from the one before, and after
each the projection of Lemma 3 is tried; a column whose KKT conditions hold (Lemma 4) is done and
dropped (magic LOO, Algorithm 1; consolidated CV, section 2.3).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from ...runtime.threads import Cancelled
from ...types import FloatArray, IntArray
from .batch import Batch, Mask, SharedInverse, best_intercepts
from .projection import project
from .proximal_gradient import Descent

__all__ = ["MAX_LEVELS", "Effort", "Inverses", "Outcome", "hinge_pull", "solve_hinge_columns"]

SHRINK = 8.0
# Smoothed problems at most; the last has delta 8^-MAX_LEVELS of the first.
MAX_LEVELS = 10
# Steps before the first attempt to project, doubled for each that follows, and attempts for one
# delta.  Going on with a smaller delta before the problem is solved leads nowhere: a step moves no
# decision value by more than about 2 delta.
BURST = 10
ATTEMPTS = 6
# A smoothed problem is solved when a step moves no decision value by more than this times delta.
CONVERGED = 1e-3
EPSILON = float(np.finfo(float).eps)


@dataclass
class Effort:
    """What was done, and how long it took."""

    iterations: int = 0  # steps of one column
    levels: int = 0  # smoothed problems of a batch
    from_sets: int = 0  # folds that skipped the smoothing
    factorising: float = 0.0
    iterating: float = 0.0

    def add(self, other: Effort) -> None:
        self.iterations += other.iterations
        self.levels += other.levels
        self.from_sets += other.from_sets
        self.factorising += other.factorising
        self.iterating += other.iterating


@dataclass
class Outcome:
    """Coefficients (n, m), which columns are solved, and the delta of the last level used."""

    coef: FloatArray
    solved: Mask
    delta: float
    effort: Effort = field(default_factory=Effort)


class Inverses:
    """The shared inverses of one kernel matrix at one C, by delta; each is computed once."""

    def __init__(self, K: FloatArray, weight: FloatArray, C: float, fit_intercept: bool):
        self.K, self.weight, self.C, self.fit_intercept = K, weight, C, fit_intercept
        self.seconds = 0.0
        self._held: dict[float, SharedInverse] = {}
        self._lock = Lock()

    def at(self, delta: float) -> SharedInverse:
        with self._lock:
            if delta not in self._held:
                start = perf_counter()
                rho = 2.0 * delta / self.C
                made = SharedInverse.of(self.K, self.weight, rho, self.fit_intercept)
                self._held[delta] = made
                self.seconds += perf_counter() - start
            return self._held[delta]


def solve_hinge_columns(
    batch: Batch,
    h: FloatArray,
    inverses: Inverses,
    delta: float,
    cancel: NDArray[np.int32],
    levels: int = MAX_LEVELS,
) -> Outcome:
    """Solve every column, from decision values ``h`` without intercept (offset included).

    ``delta`` is the first smoothing parameter, for columns with the C of ``inverses``; others use
    delta C_f / C, so that rho = 2 delta / C and with it the inverse are the same for all.
    """
    out = Outcome(np.zeros((batch.n, batch.size)), np.zeros(batch.size, dtype=bool), delta)
    todo, U = np.arange(batch.size), h
    for level in range(levels):
        out.delta = delta / SHRINK**level
        inverse = inverses.at(out.delta)
        if not inverse.apt:  # nor would any smaller delta be: these steps are for convex problems
            break
        start = perf_counter()
        part = batch.take(todo)
        # Steps move b by 2 delta at most, so each problem starts from the best one.
        U = U + best_intercepts(part, U)
        descent = Descent(part, inverse, partial(hinge_pull, inverse.rho), U)
        todo = _one_level(descent, todo, out, cancel)
        # What rounding hides no smaller delta will show.
        seen = EPSILON * np.abs(descent.U).max(axis=0, initial=0.0) < out.delta
        todo, U = todo[seen], descent.U[:, seen]
        out.effort.levels += 1
        out.effort.iterating += perf_counter() - start
        if not len(todo):
            break
    return out


def _one_level(
    descent: Descent, todo: IntArray, out: Outcome, cancel: NDArray[np.int32]
) -> IntArray:
    """Smooth and project at one delta; returns the columns that are not solved."""
    for attempt in range(ATTEMPTS):
        if cancel[0]:
            raise Cancelled
        steps = BURST * 2 ** max(0, attempt - 1)
        descent.run(steps)
        out.effort.iterations += steps * len(todo)
        widths = 0.5 * descent.inverse.rho * descent.batch.C
        found = project(descent.batch, descent.U, widths)
        out.solved[todo[found.solved]] = True
        out.coef[:, todo[found.solved]] = found.coef[:, found.solved]
        left = np.flatnonzero(~found.solved)
        todo = todo[left]
        descent.keep(left)
        if not len(left) or (descent.change <= CONVERGED * widths[left]).all():
            break
    return todo


def hinge_pull(rho: float, u: FloatArray, batch: Batch) -> FloatArray:
    """-kappa L_delta'(y u) y  with  kappa = 2 delta = rho C.

    That is  y min(max(1 + delta - y u, 0), 2 delta).

    A row far on the wrong side is pulled by kappa, one far on the right side not at all.
    """
    width = 0.5 * rho * batch.C
    y = batch.y[:, None]
    pulled = y * np.clip(1.0 + width - y * u, 0.0, 2.0 * width)
    pulled[batch.out] = 0.0
    return np.asarray(pulled)
