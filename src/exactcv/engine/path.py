"""The solution along C, for the full data or for one training set.

Piecewise-linear losses have piecewise-linear solution paths: from one C to the next most rows stay
where they are (on a segment of their loss, or at a knot).  So each problem starts from the states
of the last one and needs a few small linear solves (``_core/_active_set.pyx``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from .._core._active_set import ActiveSet, Status
from ..problem.problem import Problem
from ..runtime.threads import Cancelled
from ..types import FloatArray, IntArray
from .rough import WorkingSets
from .smo import solve_hinge

__all__ = ["Point", "StateArray", "Tracker", "full_path", "initial_states"]

StateArray = NDArray[np.int8]

# Block steps are given up at once if more rows violate their state than this share of the free
# rows: at first, and after working-set steps.
QUICK = 0.25
CLOSE = 0.5
FEW = 10
# Violations at which working-set steps stop for a try at block steps; so many steps a row each.
ROUGH = (0.1, 1e-2, 1e-3, 1e-4)
ROUGH_STEPS = 20


@dataclass
class Point:
    """One solved problem: states (see ``_active_set.pyx``), c, h = K c, and how it was found."""

    C: float
    state: StateArray
    coef: FloatArray
    h: FloatArray
    b: float
    fallback: bool = False


class Tracker:
    """Solves the problems of one training set, each from the one before.

    Attributes
    ----------
    solves : int
        Linear systems solved so far.
    """

    def __init__(self, problem: Problem, cancel: NDArray[np.int32], tol: float = 1e-8):
        self._levels = levels = problem.loss.coefficient_levels(problem.weight)
        self.problem = problem
        self.solves = 0
        self._cancel, self._tol = cancel, min(tolerances.REFIT, tolerances.POLISH * tol)
        self._solver = ActiveSet(problem.K, problem.loss.knots, levels, problem.fit_intercept)

    def move(self, point: Point, C: float, guess: StateArray | None = None) -> Point:
        """The solution at another C, or for fewer rows (state -1), from a nearby solution.

        ``guess`` holds the states to try first; by default those of ``point``.
        """
        if C > point.C and self._settled(point, guess):
            return replace(point, C=C)
        free = np.count_nonzero(at_knot(point.state if guess is None else guess))
        new, status = self._solve(point, C, guess, crowd=QUICK * free + FEW)
        if status == Status.STALLED:
            new, status = self._from_working_sets(point, C, new.state < 0)
        if status == Status.STALLED:
            new, status = self._solve(new, C, monotone=True)
        return new if status == Status.CONVERGED else self.slow_but_sure(new)

    def _settled(self, point: Point, guess: StateArray | None) -> bool:
        """Is this the solution for every larger C too?

        It is if no row is at a bound that grows with C: rows at a knot then have more room, and
        those on a segment have the coefficient 0, so that all conditions stay as they are.
        """
        if guess is not None and ((guess < 0) & (point.state >= 0)).any():
            return False
        return not point.coef[~at_knot(point.state)].any()

    def polish(self, point: Point) -> Point:
        """Solve again from h computed afresh: updates lose digits when C is large."""
        fresh = replace(point, h=self.problem.K @ point.coef)
        new, status = self._solve(fresh, point.C, monotone=True, residual=0.0)
        return new if status == Status.CONVERGED else self.slow_but_sure(new)

    def _from_working_sets(
        self, point: Point, C: float, left_out: NDArray[np.bool_]
    ) -> tuple[Point, int]:
        """A rough solution by working-set steps, which cost no linear solves; then block steps."""
        new = self._feasible(point, C, left_out)
        n, spent, status = self.problem.n, 0.0, int(Status.STALLED)
        for eps in ROUGH:
            done, _ = self._working_sets.run(C, new.state, new.coef, new.h, eps, ROUGH_STEPS * n)
            spent += done * n
            free = int(np.count_nonzero(at_knot(new.state)))
            if eps > ROUGH[-1] and spent < _block_cost(free, n):
                continue
            solved, status = self._solve(new, C, crowd=CLOSE * free + FEW)
            if status != Status.STALLED:
                return solved, status
        return new, status

    def _feasible(self, point: Point, C: float, left_out: NDArray[np.bool_]) -> Point:
        """A feasible point near the given one, scaled to C."""
        ratio = C / point.C
        new = Point(C, np.where(left_out, np.int8(-1), point.state), point.coef * ratio,
                    point.h * ratio, point.b)
        self._solver.make_feasible(C, new.state, new.coef, new.h, new.b)
        return new

    @cached_property
    def _working_sets(self) -> WorkingSets:
        return WorkingSets(self.problem, self._levels, self._cancel)

    def _solve(
        self,
        point: Point,
        C: float,
        guess: StateArray | None = None,
        monotone: bool = False,
        residual: float = 1e-11,
        crowd: float = np.inf,
    ) -> tuple[Point, int]:
        if self._cancel[0]:
            raise Cancelled
        ratio = C / point.C
        state = (point.state if guess is None else guess).copy()
        coef, h = point.coef * ratio, point.h * ratio
        b, status, solves = self._solver.solve(
            C, state, coef, h, point.b, monotone, residual, crowd
        )
        self.solves += solves
        return Point(C, state, coef, h, b), status

    def slow_but_sure(self, point: Point) -> Point:
        """The working-set solver, for kernels on which the active set gives up."""
        problem = self.problem
        train = np.flatnonzero(point.state >= 0)
        solution = solve_hinge(problem, train, point.C, self._tol, self._cancel)
        state = states_of(problem, point.C, solution.coef)
        state[point.state < 0] = -1
        h = problem.K @ solution.coef
        return Point(point.C, state, solution.coef, h, solution.intercept, fallback=True)


def _block_cost(free: int, n: int) -> float:
    """What a handful of block steps costs, in units of one row in one working-set step."""
    return free**3 / 75 + 4.0 * free * (free + 0.25 * n)


def at_knot(state: StateArray) -> NDArray[np.bool_]:
    """Which rows lie at a knot."""
    return (state > 0) & (state % 2 == 1)


def initial_states(problem: Problem) -> StateArray:
    """Rows with a positive coefficient on their first segment, the others on their last."""
    left, right = problem.loss.slopes[:, 0], problem.loss.slopes[:, -1]
    state = np.where(-left > right, 0, 2 * problem.loss.n_knots).astype(np.int8)
    state[problem.weight == 0] = -1
    return state


def states_of(problem: Problem, C: float, coef: FloatArray) -> StateArray:
    """The place of each row, from its coefficient."""
    levels = problem.loss.coefficient_levels(C * problem.weight)
    slack = tolerances.AT_BOUND * (levels[:, 0] - levels[:, -1])
    state = np.zeros(problem.n, dtype=np.int8)
    for level in levels.T[:-1]:
        state += coef < level - slack
    for level in levels.T[1:]:
        state += coef <= level + slack
    state[problem.weight == 0] = -1
    return state


def full_path(problem: Problem, Cs: FloatArray, tracker: Tracker) -> Iterator[Point]:
    """Solutions along rising C for all rows."""
    state = initial_states(problem)
    levels = problem.loss.coefficient_levels(Cs[0] * problem.weight)
    coef = np.where(state == 0, levels[:, 0], levels[:, -1])
    point = Point(float(Cs[0]), state, coef, problem.K @ coef, 0.0)
    for C in Cs:
        point = tracker.move(point, float(C))
        yield point


def rising(Cs: FloatArray) -> IntArray:
    """The order in which a path visits the grid."""
    return np.argsort(Cs, kind="stable")
