"""The solution along C, for the full data or for one training set.

Piecewise-linear losses have piecewise-linear solution paths: from one C to the next most rows stay
where they are (on a segment of their loss, or at a knot).  So each problem starts from the states
of the last one and needs a few small linear solves (``_core/_active_set.pyx``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from .._core._active_set import ActiveSet, Status
from ..judge.intercept import closeness
from ..problem.problem import Problem
from ..runtime.threads import Cancelled
from ..types import FloatArray, IntArray
from .smo import solve, solve_hinge

__all__ = ["Point", "StateArray", "Tracker", "full_path", "initial_states"]

StateArray = NDArray[np.int8]

# Where block steps fail, SMO stops at this violation or after this many steps a row.
ROUGH = 1e-4
ROUGH_STEPS = 20

# A path to a C at which coefficients can move decision values by more than START begins lower, and
# goes up in steps of STRIDE.
START = 1e3
STRIDE = 30.0


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
        levels = problem.loss.coefficient_levels(problem.weight)
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
        new, status = self._solve(point, C, guess)
        left_out = new.state < 0
        for another_way in (self._in_smaller_steps, self._from_working_sets, self._monotone):
            if status == Status.STALLED:
                new, status = another_way(point, C, left_out)
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

    # Block steps that go round in circles start again from nearer by, or go down step by step.

    def _in_smaller_steps(
        self, point: Point, C: float, left_out: NDArray[np.bool_]
    ) -> tuple[Point, int]:
        new, status = _without(point, left_out), int(Status.STALLED)
        for n_steps in (2, 4) if C != point.C else ():
            new, status = _without(point, left_out), int(Status.CONVERGED)
            for step in np.geomspace(point.C, C, n_steps + 1)[1:]:
                new, status = self._solve(new, float(step))
                if status != Status.CONVERGED:
                    break
            else:
                break
        return new, status

    def _from_working_sets(
        self, point: Point, C: float, left_out: NDArray[np.bool_]
    ) -> tuple[Point, int]:
        """A rough solution by SMO, which costs no linear solves, has nearly the right states."""
        problem = self.problem
        if problem.loss.n_knots != 1:
            return _without(point, left_out), int(Status.STALLED)
        rough = solve(
            problem.K,
            problem.loss,
            C * problem.weight,
            np.flatnonzero(~left_out),
            fit_intercept=problem.fit_intercept,
            tol=ROUGH,
            max_iter=ROUGH_STEPS * problem.n,
            cancel=self._cancel,
            polish=False,
        )
        state = states_of(problem, C, rough.coef)
        near = Point(C, state, rough.coef, problem.K @ rough.coef, rough.intercept)
        return self._solve(_without(near, left_out), C)

    def _monotone(self, point: Point, C: float, left_out: NDArray[np.bool_]) -> tuple[Point, int]:
        return self._solve(_without(point, left_out), C, monotone=True)

    def _solve(
        self,
        point: Point,
        C: float,
        guess: StateArray | None = None,
        monotone: bool = False,
        residual: float = 1e-11,
    ) -> tuple[Point, int]:
        if self._cancel[0]:
            raise Cancelled
        ratio = C / point.C
        state = (point.state if guess is None else guess).copy()
        coef, h = point.coef * ratio, point.h * ratio
        b, status, solves = self._solver.solve(C, state, coef, h, point.b, monotone, residual)
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


def _without(point: Point, left_out: NDArray[np.bool_]) -> Point:
    """The same point for fewer rows."""
    return replace(point, state=np.where(left_out, np.int8(-1), point.state))


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
    slack = closeness(levels, problem.diagonal)
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
    below = _approach(problem, float(Cs[0]))
    levels = problem.loss.coefficient_levels(below[0] * problem.weight)
    coef = np.where(state == 0, levels[:, 0], levels[:, -1])
    point = Point(float(below[0]), state, coef, problem.K @ coef, 0.0)
    for C in below[:-1]:
        point = tracker.move(point, float(C))
    for C in Cs:
        point = tracker.move(point, float(C))
        yield point


def _approach(problem: Problem, C: float) -> FloatArray:
    """Where to start on the way to C, and over which steps.

    The first point has every coefficient at its bound.  From far above the C at which bounds cease
    to matter, most of its digits would be lost on the way.
    """
    most = C * float(problem.weight.max()) * float(np.abs(problem.diagonal).max())
    steps = max(0, int(np.ceil(np.log(most / START) / np.log(STRIDE)))) if most > 0.0 else 0
    return np.asarray(C * STRIDE ** -np.arange(steps, -1.0, -1.0))


def rising(Cs: FloatArray) -> IntArray:
    """The order in which a path visits the grid."""
    return np.argsort(Cs, kind="stable")
