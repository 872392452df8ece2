"""The solution along C, for the full data or for one training set.

Piecewise-linear losses have piecewise-linear solution paths: from one C to the next most rows stay
where they are (on a segment of their loss, or at a knot).  So each problem starts from the one
before.  How it goes on depends on what is met:

1. *Block steps* (``_core/_active_set.pyx``) from the states of the last problem, if few rows
   violate them: a few small linear solves.
2. Else *working-set steps* (``rough.py``) until the states are nearly right, and then
3. block steps again, with a Cholesky factor of the free rows; or, where they are many and their
   kernel is well conditioned, *conjugate gradients* (``columns.py``), put off until there are
   several C to be solved at once.
4. If these fail: the monotone active set, and in the end the solver that ``refit`` uses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from .._core._active_set import ActiveSet, Status, census
from .._core._factor import Factor
from .._core.reference.residuals import Scale
from ..judge.intercept import BLURRED, closeness
from ..problem.problem import Problem
from ..runtime.threads import Cancelled
from ..types import FloatArray, IntArray
from .columns import Columns, solve_columns
from .rough import WorkingSets
from .smo import solve_hinge

__all__ = [
    "Point",
    "StateArray",
    "Tracker",
    "at_knot",
    "follow",
    "full_path",
    "hinge_states",
    "initial_states",
    "states_of",
]

StateArray = NDArray[np.int8]

# Block steps from afar are not tried if their factor is dearer than so many working-set steps, and
# are given up at once if more rows violate their states than CROWD, or than this share of the free
# ones.
DEAR = 5000
CROWD = 100
CROWD_SHARE = 0.05
# Those that cost less are tried at every C, whatever came of it before.
EASY = 100
# CROWD is for block steps that are cheaper than so many working-set steps.
CHEAP = 500
# The same after working-set steps.
NEAR = 10
NEAR_SHARE = 0.5
# Violations at which working-set steps stop for a try at block steps; so many steps a row each.
ROUGH = (0.1, 1e-2, 1e-3, 1e-4)
ROUGH_STEPS = 20
# When to try, in units of what block steps cost; see `_Pace`.  SHORT of that are taken at a time at
# least: every call looks at all rows.
EARLY, LATE, AGAIN = 0.25, 3.0, 2.0
SHORT = 0.1
# So many multiplications of a factorisation take as long as one of working-set steps.
QUICK = 12.5
# Rows at a bound are carried along with C if they are more than this share of the free ones.
BOUND_SHARE = 0.5
# Where working-set steps have the last word and miss the mark, they go on to this share of it.
CLOSER = 0.1
# Conjugate gradients start from working-set steps with this violation.
CLOSE = 1e-3
# They are for so many rows, if all are free, and for more if not, or if they converge slowly.
MANY = 7000
QUICK_RATE = 0.55

# The last resort may take so many steps, or so many a row: for what is out of reach of float64, or
# nearly, no number of them would do.
LAST_STEPS = 500_000
LAST_STEPS_A_ROW = 5_000

# A path to a C at which coefficients can move decision values by more than START begins lower, and
# goes up in steps of STRIDE.
START = 1e3
STRIDE = 30.0


@dataclass
class Point:
    """One solved problem: states (see ``_active_set.pyx``), c, h = K c, and how it was found.

    ``rough``: it is not solved yet, but the states are nearly right.  ``rate``: how many
    working-set steps a free row takes to gain a digit, where known; see `_well_conditioned`.
    """

    C: float
    state: StateArray
    coef: FloatArray
    h: FloatArray
    b: float
    fallback: bool = False
    rough: bool = False
    rate: float = np.inf

    def at(self, C: float) -> Point:
        """The same at another C."""
        return Point(C, self.state, self.coef, self.h, self.b, self.fallback, self.rough, self.rate)


class Tracker:
    """Solves the problems of one training set, each from the one before.

    Attributes
    ----------
    solves : int
        Linear systems solved so far.
    roughly : bool
        May working-set steps have the last word?  They then go on to a share of the tolerance, and
        linear systems are solved only where that is cheaper.
    """

    def __init__(
        self,
        problem: Problem,
        cancel: NDArray[np.int32],
        tol: float = 1e-8,
        roughly: bool = False,
    ):
        self._levels = levels = problem.loss.coefficient_levels(problem.weight)
        self.problem = problem
        self.solves = 0
        self.roughly = roughly
        self._cancel, self._tol = cancel, min(tolerances.REFIT, tolerances.POLISH * tol)
        self._asked = tol
        # Block steps from afar stalled: at so many C they are not tried, and at more the next time.
        self._pause = self._last_pause = 0
        kernel, knots = problem.kernel_rows, problem.loss.knots
        self._solver = ActiveSet(kernel, knots, levels, problem.fit_intercept)

    @property
    def factor(self) -> Factor:
        """What solves for rows at a knot; that of the last solution is at hand."""
        return self._solver.factor

    def move(self, point: Point, C: float, guess: StateArray | None = None) -> Point:
        """The solution at another C, or for fewer rows (state -1), from a nearby solution.

        ``guess`` holds the states to try first; by default those of ``point``.
        """
        return self.finish([self.approach(point, C, guess)])[0]

    def approach(self, point: Point, C: float, guess: StateArray | None = None) -> Point:
        """The same, but perhaps only roughly: see `finish`."""
        if C > point.C and self._settled(point, guess):
            return point.at(C)
        return self.onward(point, C, guess)

    def onward(self, point: Point, C: float, guess: StateArray | None = None) -> Point:
        """The same of a point that is known not to hold at every larger C."""
        state = point.state if guess is None else guess
        new, status = point, int(Status.STALLED)
        free, cost, prepared = _block_cost(state, self.factor)
        self._pause = max(self._pause - 1, 0)
        if not point.rough and prepared <= DEAR and (cost <= EASY or not self._pause):
            crowd = max(CROWD if cost <= CHEAP else 0, CROWD_SHARE * free)
            new, status = self._solve(point, C, state, crowd=crowd)
            self._last_pause = 2 * self._last_pause + 1 if status == Status.STALLED else 0
            self._pause = self._last_pause + 1
        if status == Status.STALLED:
            new, status = self._from_working_sets(point, C, state < 0)
        return new if new.rough else self._in_any_case(new, status)

    def resume(self, weight: FloatArray, cancel: NDArray[np.int32]) -> None:
        """Other boxes of the rows from here on; the factor of the free rows is kept."""
        self._levels[:] = self.problem.loss.coefficient_levels(weight)  # the solvers' own
        self.problem = self.problem.weighted(weight)
        if cancel is not self._cancel or not isinstance(self.problem.kernel_rows, np.ndarray):
            self.__dict__.pop("_working_sets", None)  # the kernel may be another by now
        self._cancel = cancel

    def start_over(self, weight: FloatArray) -> None:
        """Other boxes of the rows, and nothing is known yet: as a new tracker, but made at once."""
        self.resume(weight, self._cancel)
        self.factor.start_over()
        self._pause = self._last_pause = 0

    def several(
        self, point: Point, Cs: FloatArray, boxes: FloatArray, gammas: FloatArray | None = None
    ) -> list[Point | None]:
        """Solutions of training sets at one C each, from that of all rows; None where steps fail.

        ``boxes`` has a row for each set, and ``gammas`` its kernel, if they differ.  All are tried
        in one compiled call, which is worth it where problems are small.
        """
        if self._cancel[0]:
            raise Cancelled
        free, cost, prepared = _block_cost(point.state, self.factor)
        if point.rough or prepared > DEAR:
            return [None] * len(Cs)
        crowd = max(CROWD if cost <= CHEAP else 0, CROWD_SHARE * free)
        nobody, ratio = boxes == 0, (Cs / point.C)[:, None]
        state, coef = np.where(nobody, np.int8(-1), point.state), ratio * point.coef
        if gammas is not None:
            coef[nobody] = 0.0
        h, b = ratio * point.h, np.full(len(Cs), point.b)
        solved, levels = np.empty(len(Cs), np.uint8), self.problem.loss.coefficient_levels(boxes)
        sets = Cs, levels, state, coef, h, b
        self.solves += self._solver.solve_sets(*sets, crowd, cost <= EASY, solved, gammas)
        found = zip(Cs.tolist(), state, coef, h, b.tolist(), solved, strict=True)
        return [Point(*what) if met else None for *what, met in found]

    def nearby(self, point: Point) -> Point:
        """The solution from one with nearly the same states, whatever a factor costs: it is there.

        The states of ``point`` are those to try first; rows that take no part have state -1.
        """
        new, status = self._solve(point, point.C, crowd=CROWD)
        return new if status == Status.CONVERGED else self.move(point, point.C)

    def onto_knots(self, point: Point) -> Point | None:
        """Put rows on their levels and knots, for the coefficients alone; None if that fails.

        h stays what it was: K times the coefficients that came in.
        """
        if self._cancel[0]:
            raise Cancelled
        state, coef = point.state.copy(), point.coef.copy()
        b, status = self._solver.onto_knots(point.C, state, coef, point.h, point.b)
        self.solves += 1
        if status != Status.CONVERGED:
            return None
        return Point(point.C, state, coef, point.h, b)

    def misplaced(self, point: Point) -> tuple[int, float]:
        """How many rows of what `onto_knots` gave violate their states, now that h is known.

        They are sent to the next place, in ``point.state``.  The other figure is by how much rows
        at a knot miss it.
        """
        return self._solver.misplaced(point.C, point.state, point.coef, point.h, point.b)

    def adopt(self, point: Point, C: float) -> Point:
        """The solution of a larger training set, to start from.

        Rows that take no part keep their coefficient until the first steps take it from them.
        """
        state = np.where(self.problem.weight == 0, np.int8(-1), point.state)
        ratio = C / point.C
        return Point(C, state, ratio * point.coef, ratio * point.h, point.b, rate=point.rate)

    def finish(self, points: Sequence[Point], reach: float = 0.0) -> list[Point]:
        """Solve what is rough among the points of one training set, all at once.

        A solution that holds for every larger C is to be good enough for ``reach``.
        """
        out = list(points)
        which = [k for k, point in enumerate(points) if point.rough]
        if not which:
            return out
        C, state, coef, h, b = (
            np.array([getattr(points[k], name) for k in which])
            for name in ("C", "state", "coef", "h", "b")
        )
        settled = [self.holds_on(points[k]) for k in which]
        columns = Columns(C, np.where(settled, np.maximum(C, reach), C), state, coef, h, b)
        tol = 0.3 * tolerances.POLISH * self._asked
        solved = solve_columns(self.problem, self._levels, columns, tol, self._cancel)
        for j, k in enumerate(which):
            out[k] = Point(float(C[j]), state[j], coef[j], h[j], float(b[j]))
            if not solved[j]:
                near = replace(points[k], rough=False)
                out[k] = self._in_any_case(*self._solve(near, near.C))
        return out

    def _in_any_case(self, point: Point, status: int) -> Point:
        """What block steps have not solved."""
        if status == Status.STALLED:
            point, status = self._solve(point, point.C, monotone=True)
        return point if status == Status.CONVERGED else self.slow_but_sure(point)

    def _settled(self, point: Point, guess: StateArray | None) -> bool:
        """Is this the solution for every larger C too, and of no fewer rows?"""
        if point.rough or not self.holds_on(point):
            return False
        return guess is None or not ((guess < 0) & (point.state >= 0)).any()

    def holds_on(self, point: Point) -> bool:
        """Does what solves the problem here solve it at every larger C?

        It does if no row is at a bound that grows with C: rows at a knot then have more room, and
        those on a segment have the coefficient 0, so that all conditions stay as they are.  Nor may
        a row be at a knot whose box has no 0 in it and moves away with C.
        """
        return not (census(point.state, point.coef)[1] or self._moving_boxes(point.state))

    def _moving_boxes(self, state: StateArray) -> bool:
        if self.problem.loss.n_knots < 2:
            return False  # a loss with a minimum has it at its only knot
        rows = np.flatnonzero(at_knot(state))
        knot = state[rows] // 2
        return bool(((self._levels[rows, knot] < 0) | (self._levels[rows, knot + 1] > 0)).any())

    @property
    def attempts(self) -> tuple[Callable[[Point], Point], ...]:
        """What to try, one after the other, on a solution that misses the mark."""
        exact = (self.polish, self.slow_but_sure)
        return (self._closer, *exact) if self.roughly else exact

    def _closer(self, point: Point) -> Point:
        """More working-set steps, from h computed afresh."""
        new = replace(point, state=point.state.copy(), coef=point.coef.copy())
        new.h = self.problem.K @ new.coef
        eps = CLOSER * tolerances.ROUGH_SHARE * self._asked
        limits = eps, ROUGH_STEPS * self.problem.n
        self._working_sets.run(new.C, new.state, new.coef, new.h, *limits)
        self._working_sets.settle(new.coef, new.h)
        return new

    def polish(self, point: Point) -> Point:
        """Solve again from h computed afresh: updates lose digits when C is large."""
        fresh = replace(point, h=self.problem.K @ point.coef)
        new, status = self._solve(fresh, point.C, monotone=True, residual=0.0)
        return new if status == Status.CONVERGED else self.slow_but_sure(new)

    def _from_working_sets(
        self, point: Point, C: float, left_out: NDArray[np.bool_]
    ) -> tuple[Point, int]:
        """Working-set steps, which cost no linear solves, until block steps are worth a try.

        The point that comes back is rough if conjugate gradients are to finish it.
        """
        new = self._feasible(point, C, left_out)
        pace, status = _Pace(new, self.factor), int(Status.STALLED)
        if self.roughly:
            pace.stop_at(tolerances.ROUGH_SHARE * self._asked)
        while pace.going:
            done, violation = self._working_sets.run(
                C, new.state, new.coef, new.h, pace.eps, pace.steps()
            )
            pace.note(done, violation)
            enough = self.roughly and violation <= pace.last
            rough = pace.close and pace.well_conditioned and not self.roughly
            if enough or rough or pace.due:
                self._working_sets.settle(new.coef, new.h)
            if enough:
                return new, int(Status.CONVERGED)
            if rough:
                return replace(new, rough=True), status
            if pace.due:
                solved, status = self._solve(new, C, crowd=max(NEAR, NEAR_SHARE * pace.free))
                if status != Status.STALLED:
                    return solved, status
                pace.wait()
        return new, status

    def _feasible(self, point: Point, C: float, left_out: NDArray[np.bool_]) -> Point:
        """A feasible point near the given one, which is near the solution at C too.

        Where most rows are at a bound, all coefficients grow with C; where most are free, they
        hardly change.
        """
        free, bound = census(point.state, point.coef)
        many = bound > BOUND_SHARE * free
        ratio = C / point.C if many or C < point.C else 1.0
        state = np.where(left_out, np.int8(-1), point.state)
        new = Point(C, state, point.coef * ratio, point.h * ratio, point.b, rate=point.rate)
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
        steps = max(LAST_STEPS, LAST_STEPS_A_ROW * problem.n)
        solution = solve_hinge(problem, train, point.C, self._tol, self._cancel, steps)
        state = states_of(problem, point.C, solution.coef)
        state[point.state < 0] = -1
        h = problem.K @ solution.coef
        return Point(point.C, state, solution.coef, h, solution.intercept, fallback=True)


class _Pace:
    """How many working-set steps to take before block steps are tried.

    Where block steps are dear they are tried once the steps have cost a part of what they do
    (EARLY), if the violation is down to the first of ROUGH by then, else several times as much
    (LATE); after a try that came to nothing, when AGAIN times as many steps are done.  Where they
    are cheap (CHEAP), the steps are to cost as much, and to reach one of ROUGH.
    """

    def __init__(self, point: Point, factor: Factor):
        self.n, self.point, self._factor = len(point.state), point, factor
        self.levels: tuple[float, ...] = ROUGH
        self._enough = False
        self.level, self.spent, self._since, self._least = 0, 0, 0, 0.0
        self._last, self._reached, self._asked = np.inf, False, 0
        self._look()

    def _look(self) -> None:
        self.free, self._cost, _ = _block_cost(self.point.state, self._factor)

    @property
    def going(self) -> bool:
        return self.level < len(self.levels)

    @property
    def last(self) -> float:
        """The violation at which there is nothing left to do."""
        return self.levels[-1]

    def stop_at(self, violation: float) -> None:
        """That is enough: block steps are tried on the way only where they are cheaper."""
        self.levels = (*(level for level in ROUGH if level > 3.0 * violation), violation)
        self._enough = True

    @property
    def eps(self) -> float:
        """The violation at which the next steps stop."""
        return self.levels[self.level]

    @property
    def well_conditioned(self) -> bool:
        """Are the rows such that conjugate gradients will finish the work?"""
        return _well_conditioned(self.free, self.n, self.point.rate)

    @property
    def close(self) -> bool:
        """Have the last steps reached a violation at which they can?"""
        return self._reached and self.levels[self.level - 1] <= CLOSE

    @property
    def due(self) -> bool:
        """Are block steps worth a try?"""
        ready = self._reached or not self._to_the_end
        ready &= not self._walks
        return not self.going or (ready and self._missing <= 0)

    @property
    def _to_the_end(self) -> bool:
        """Are the next steps to reach their violation in any case?"""
        return self._cost <= CHEAP or self.well_conditioned or self._walks

    @property
    def _walks(self) -> bool:
        """Are the steps to what is enough cheaper than block steps, by the rate so far?"""
        if not self._enough:
            return False
        digits = np.log10(max(min(self._last, 1.0) / self.last, 1.0))
        return self.well_conditioned or self.point.rate * self.free * digits <= self._cost

    @property
    def _missing(self) -> float:
        """How many steps are to be taken before block steps are tried."""
        part = 1.0 if self._cost <= CHEAP else LATE if self.level == 0 else EARLY
        return max(self._least, part * self._cost) - self.spent

    def steps(self) -> int:
        """How many to take at most."""
        self._asked = ROUGH_STEPS * self.n - self._since
        if not self._to_the_end:
            self._asked = int(min(max(self._missing, SHORT * self._cost), self._asked))
        return self._asked

    def note(self, done: int, violation: float) -> None:
        """So many steps were taken, to that violation."""
        self._look()
        self.spent += done
        self._since += done
        # Or it is not to be reached: there were no more steps to take.
        self._reached = violation <= self.eps or done < self._asked
        self._reached |= self._since >= ROUGH_STEPS * self.n
        if self._reached:
            now = max(violation, 0.1 * self.eps)
            if self.free and 3 * now < self._last < np.inf:
                digits = float(np.log10(self._last / now))
                self.point.rate = self._since / (self.free * digits)
            self._last, self._since = violation, 0
            self.level += 1

    def wait(self) -> None:
        """Block steps were tried in vain."""
        self._least = AGAIN * self.spent


def _well_conditioned(free: int, n: int, rate: float) -> bool:
    """Are conjugate gradients quicker than a factor of the free rows?

    A factor takes free^3 operations, an iteration a pass over n^2 numbers.  ``rate`` tells how well
    conditioned the kernel is: where a free row takes half a working-set step for a digit, conjugate
    gradients solve the problem in about 75 iterations, and else in a number that grows with the
    square of the rate.
    """
    return free * (free / n) ** 2 >= MANY * (max(rate, QUICK_RATE) / QUICK_RATE) ** 2


def _block_cost(state: StateArray, factor: Factor) -> tuple[int, float, float]:
    """How many rows are free, and what a handful of block steps costs, in working-set steps.

    The last figure is the part of it that goes into the factor: rows that were free when it was
    made cost next to nothing.
    """
    n = len(state)
    free, made = factor.census(state)
    prepared = made / (QUICK * n)
    return free, prepared + 4.0 * free * (free + 0.25 * n) / n, prepared


def at_knot(state: StateArray) -> NDArray[np.bool_]:
    """Which rows lie at a knot."""
    return (state > 0) & (state & 1).view(bool)


def initial_states(problem: Problem) -> StateArray:
    """Rows with a positive coefficient on their first segment, the others on their last."""
    left, right = problem.loss.slopes[:, 0], problem.loss.slopes[:, -1]
    state = np.where(-left > right, 0, 2 * problem.loss.n_knots).astype(np.int8)
    state[problem.weight == 0] = -1
    return state


def states_of(problem: Problem, C: float, coef: FloatArray) -> StateArray:
    """The place of each row, from its coefficient."""
    return place(problem.loss.coefficient_levels(C * problem.weight), problem, coef)


def place(levels: FloatArray, problem: Problem, coef: FloatArray) -> StateArray:
    """The same for levels that are at hand."""
    slack = closeness(levels, problem.diagonal)
    state = np.zeros(problem.n, dtype=np.int8)
    for level in levels.T[:-1]:
        state += coef < level - slack - BLURRED * np.abs(level)
    for level in levels.T[1:]:
        state += coef <= level + slack + BLURRED * np.abs(level)
    state[problem.weight == 0] = -1
    return state


def hinge_states(problem: Problem, boxes: FloatArray, coef: FloatArray) -> StateArray:
    """The same for solutions of the hinge loss, one in each row, with their own boxes.

    Examples
    --------
    >>> from exactcv.problem.losses import hinge
    >>> y = np.array([1.0, -1.0, 1.0])
    >>> problem = Problem(np.eye(3), y, np.ones(3), hinge(y))
    >>> hinge_states(problem, np.full((1, 3), 2.0), np.array([[2.0, -0.5, 0.0]]))
    array([[0, 1, 2]], dtype=int8)
    """
    near = tolerances.AT_BOUND / Scale.of(problem.diagonal).stiffness(boxes)
    size = problem.y * coef
    top = size >= boxes - near - BLURRED * boxes
    bottom = ~top & (size <= near)
    state = 1.0 - problem.y * (top.astype(float) - bottom)
    return np.where(boxes > 0, state, -1.0).astype(np.int8)


def full_path(problem: Problem, Cs: FloatArray, tracker: Tracker) -> list[Point]:
    """Solutions along rising C for all rows."""
    start = _constant(problem, float(Cs[0]))
    if start is not None:
        return follow(tracker, start, Cs, lambda step, point: point.state)
    state = initial_states(problem)
    below = _approach(problem, float(Cs[0]))
    levels = problem.loss.coefficient_levels(below[0] * problem.weight)
    coef = np.where(state == 0, levels[:, 0], levels[:, -1])
    start = Point(float(below[0]), state, coef, problem.K @ coef, 0.0)
    for C in below[:-1]:
        start = tracker.move(start, float(C))
    return follow(tracker, start, Cs, lambda step, point: point.state)


def _constant(problem: Problem, C: float) -> Point | None:
    """The solution if some constant is the best prediction of every row, whatever C; else None.

    Equal numbers, or numbers that one tube holds, have it.  Along a path the objective would vanish
    in what rounding leaves of it.
    """
    loss, used = problem.loss, problem.weight > 0
    if ((loss.slopes[:, 0] >= 0) | (loss.slopes[:, -1] <= 0))[used].any():
        return None  # the hinge has no end of its best predictions
    falling = np.count_nonzero(loss.slopes < 0, axis=1)  # segments on which a loss falls
    rising_from = loss.slopes.shape[1] - np.count_nonzero(loss.slopes > 0, axis=1)
    each = np.arange(problem.n)
    low = float(loss.knots[each, falling - 1][used].max())
    high = float(loss.knots[each, rising_from - 1][used].min())
    if low > high or not (problem.fit_intercept or low <= 0.0 <= high):
        return None
    state = np.where(falling == rising_from, 2 * falling - 1, 2 * falling).astype(np.int8)
    state[~used] = -1
    b = 0.5 * (low + high) if problem.fit_intercept else 0.0
    return Point(C, state, np.zeros(problem.n), np.zeros(problem.n), b)


def follow(
    tracker: Tracker, start: Point, Cs: FloatArray, guess: Callable[[int, Point], StateArray]
) -> list[Point]:
    """Solutions of one training set along rising C.

    ``guess`` gives the states to try at a step, from the point before it; rows with state -1 take
    no part.
    """
    points: list[Point] = []
    point = start
    for step, C in enumerate(Cs):
        if points and not point.rough and tracker.holds_on(point):
            return tracker.finish([*points, *(point.at(float(C)) for C in Cs[step:])])
        go_on = tracker.onward if points else tracker.approach
        point = go_on(point, float(C), guess(step, point))
        points.append(point)
        if point.rough and not census(point.state, point.coef)[1]:
            # Solved, this may hold for every larger C.
            points = tracker.finish(points, reach=float(Cs[-1]))
            point = points[-1]
    return tracker.finish(points)


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
