"""Folds one after the other, each started from a seed: the driver of all five seeds.

ATO, MIR and SIR start fold h + 1 from fold h, and the first fold from zero.  AVG and TOP start
every fold from the solution on all rows.  Where C differs from one problem to the next,
coefficients are scaled by the ratio first, which keeps them feasible; that is also how a fold is
started from its own solution at another C (``along``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from time import thread_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core import _seeding
from ..._core._rows import RowCache
from ...engine.kernel_rows import RowSource
from ...engine.smo import Known, Solution, solve
from ...problem.folds import Folds
from ...problem.losses import PiecewiseLinear
from ...types import FloatArray, IntArray
from .ato import ato
from .avg_top import avg, top
from .change import Change
from .mir import mir
from .sir import sir

__all__ = ["FROM_FULL", "SEEDS", "Chain", "Counts", "Placed"]

Seed = Callable[..., FloatArray]  # of a Change, and of what the scheme lets choose

SEEDS: dict[str, Seed] = {"ato": ato, "mir": mir, "sir": sir, "avg": avg, "top": top}
FROM_FULL = ("avg", "top")


@dataclass(frozen=True)
class Placed:
    """A solution, and the problem it solves: its training rows (rising) and its C."""

    solution: Solution
    train: IntArray
    C: float


@dataclass
class Counts:
    """What solving has cost so far.

    Iterations are the solver's; kernel evaluations are the solver's and the seeds'; seeding is
    counted in seconds of processor time of the thread that does it.
    """

    iterations: int = 0
    kernel_evaluations: int = 0
    not_converged: int = 0
    seeding_seconds: float = 0.0

    def add(self, solution: Solution) -> None:
        self.iterations += solution.iterations
        self.kernel_evaluations += solution.kernel_evaluations
        self.not_converged += not solution.converged


@dataclass
class Chain:
    """Solves the problems of one cross-validation, one from another.

    Parameters
    ----------
    source : RowSource
    loss : PiecewiseLinear
    weight : ndarray of shape (n,)
    scheme : str or None
        A key of ``SEEDS``; None starts every fold from zero.
    tol, polish, max_iter, cancel :
        See ``smo.solve``.
    choices : dict
        Keyword arguments of the scheme's seed.
    """

    source: RowSource
    loss: PiecewiseLinear
    weight: FloatArray
    scheme: str | None
    tol: float
    polish: bool = True
    fit_intercept: bool = True
    max_iter: int = 10_000_000
    cancel: NDArray[np.int32] | None = None
    choices: Mapping[str, Any] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    _at: tuple[float, FloatArray, FloatArray] | None = field(default=None, repr=False)

    @cached_property
    def kernel(self) -> RowCache:
        """Single kernel values: a cache that keeps none."""
        return self.source.open(np.empty(0, dtype=np.intp))

    def cold(self, train: IntArray, C: float) -> Placed:
        """From zero."""
        return self._solve(train, C, None, None)

    def along(self, placed: Placed, C: float) -> Placed:
        """The same training set at another C."""
        scaled = self._scaled(placed, C)
        return self._solve(placed.train, C, scaled.coef, scaled)

    def carry(self, placed: Placed, train: IntArray, C: float) -> Placed:
        """Another training set, started from the scheme's seed."""
        assert self.scheme is not None
        scaled = self._scaled(placed, C)  # with any seed, the solver starts from these errors
        start = thread_time()
        lower, upper = self._bounds(C)
        ratio, b = C / placed.C, placed.solution.intercept
        removed, added = _seeding.changed(placed.train, train)
        change = Change(
            source=self.source,
            kernel=self.kernel,
            coef=scaled.coef,
            errors=scaled.errors,
            # Scaling moves the margin; where it was is the best guess there is.
            intercept=b if ratio == 1.0 else ratio * b,
            target=self.loss.knots[:, 0],
            lower=lower,
            upper=upper,
            train=train,
            removed=removed,
            added=added,
            fit_intercept=self.fit_intercept,
        )
        seed = SEEDS[self.scheme](change, **self.choices)
        self.counts.seeding_seconds += thread_time() - start
        self.counts.kernel_evaluations += change.evaluations
        return self._solve(train, C, seed, scaled)

    def run(
        self, folds: Folds, Cs: FloatArray, full: Placed | None = None
    ) -> Iterator[tuple[int, Placed]]:
        """The folds in order, each with its C; AVG and TOP need the solution on all rows."""
        everyone = np.arange(folds.n, dtype=np.intp)
        last = full if self.scheme in FROM_FULL else None
        for fold, left_out in enumerate(folds.left_out):
            train = np.delete(everyone, left_out)
            C = float(Cs[fold])
            if last is None or self.scheme is None:
                placed = self.cold(train, C)
            else:
                placed = self.carry(last, train, C)
            if self.scheme not in FROM_FULL:
                last = placed
            yield fold, placed

    def _solve(
        self, train: IntArray, C: float, start: FloatArray | None, known: Known | None
    ) -> Placed:
        solution = solve(
            self.source,
            self.loss,
            C * self.weight,
            train,
            fit_intercept=self.fit_intercept,
            tol=self.tol,
            start=start,
            known=known,
            max_iter=self.max_iter,
            cancel=self.cancel,
            polish=self.polish,
        )
        self.counts.add(solution)
        return Placed(solution, train, C)

    def _scaled(self, placed: Placed, C: float) -> Known:
        """The solution in units of another C, with its errors t - K c."""
        ratio, old = C / placed.C, placed.solution
        if ratio == 1.0:
            return Known(old.coef, old.errors, placed.train)
        target = self.loss.knots[:, 0]
        coef = np.clip(ratio * old.coef, *self._bounds(C))
        return Known(coef, target - ratio * (target - old.errors), placed.train)

    def _bounds(self, C: float) -> tuple[FloatArray, FloatArray]:
        """lower and upper at this C; kept, for folds in a row often share it."""
        if self._at is None or self._at[0] != C:
            levels = self.loss.coefficient_levels(C * self.weight)
            self._at = C, levels[:, 1].copy(), levels[:, 0].copy()
        return self._at[1], self._at[2]
