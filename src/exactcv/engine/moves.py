"""Moves of one solution: some boxes get another size, and the solution follows.

A solution is a function of the boxes C_i = C w_i.  To forget a row is to move its box to 0, to add
one is to move its box from 0; a weight that changes is the same kind of thing.  From a solution at
hand most rows stay where they are, so that a few linear solves find the new one, with the factor of
the rows at a knot, which is kept from move to move.  Where many rows are free all of it waits for
memory: a step is one pass over the factor, for the coefficients alone, and K c of what it gives is
what the judge needs anyway; it also says which rows leave their place.  Moves that take more than a
few steps go on with block steps (``path.py``).

Every solution is judged from its coefficients.  K c is that of the solution before, as it was
judged, and K times what differs, where few coefficients do; from nothing every 16th time, so that
rounding does not add up, and whenever another attempt is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from .._core._active_set import add_rows
from ..judge.certificate import PiecewiseLinearJudge, attainable, relative_gap
from ..problem.problem import Problem
from ..types import FloatArray, IntArray
from .merged import Merged
from .path import Point, StateArray, Tracker, full_path, states_of

__all__ = ["Mover", "Standing"]

# K c is computed from nothing after so many moves, and where more than this share of the
# coefficients differs.
MOST_MOVES = 16
FEW = 1 / 2
# A move is given up as one of few steps after so many of them, where so many rows violate their
# states, or where rows at a knot miss it by more than LOST.  They are on it at ON_KNOT.
MOST_STEPS = 8
MOST_ASTRAY = 100
LOST = 1e-7
ON_KNOT = 1e-11


class Values(NamedTuple):
    """h = K c of a solution, and how often it was found from another since it was made afresh."""

    h: FloatArray
    moves: int


@dataclass(frozen=True)
class Standing:
    """A solution that was judged, and the boxes it belongs to.

    weight : (n,), of each row; 0 if it takes no part.
    coef, intercept : f = K coef + intercept.
    kkt, gap : the judge's figures.
    point : the same in terms of sites (``merged.py``), to start from; its h = K c was judged.
    moves : how often h was found from another since it was computed from nothing.
    """

    weight: FloatArray
    coef: FloatArray
    intercept: float
    kkt: float
    gap: float
    point: Point
    moves: int = 0

    @property
    def values(self) -> FloatArray:
        """u = K c + b of all rows, whether they take part or not."""
        return np.asarray(self.point.h + self.intercept)


class Mover:
    """Moves the boxes of one problem at one C.

    Parameters
    ----------
    problem : Problem
        Of all rows that will ever take part, each with a positive weight.
    C, tol : float

    Attributes
    ----------
    merged : Merged
        Rows that are one.

    Examples
    --------
    >>> from exactcv.problem.losses import hinge
    >>> y = np.array([1.0, 1.0, -1.0])
    >>> K = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    >>> mover = Mover(Problem(K, y, np.ones(3), hinge(y)), C=10.0)
    >>> go_on = np.zeros(1, dtype=np.int32)
    >>> every = mover.solved(go_on)
    >>> without = mover.moved(every, np.array([0]), np.zeros(1), go_on)
    >>> without.coef.round(6)
    array([ 0.      ,  0.666667, -0.666667])
    """

    def __init__(self, problem: Problem, C: float, tol: float = 1e-8):
        self.problem, self.C, self.tol = problem, float(C), tol
        self.merged = Merged.of(problem)
        self._judge = PiecewiseLinearJudge.of(
            problem.loss, problem.weight, problem.fit_intercept, problem.diagonal
        )
        self._tracker = Tracker(self.merged.problem, np.zeros(1, dtype=np.int32), tol)

    def solved(self, cancel: NDArray[np.int32]) -> Standing:
        """The solution with every box as it is in the problem, from nothing."""
        sites = self.merged.problem
        self._tracker.resume(sites.weight, cancel)
        return self._judged(full_path(sites, np.array([self.C]), self._tracker)[0])

    def found(self, weight: FloatArray, coef: FloatArray, cancel: NDArray[np.int32]) -> Standing:
        """A solution that somebody else has found, made ready; ``coef`` are those of rows."""
        self._tracker.resume(self.merged.together(weight), cancel)
        sites = self.merged.together(coef)
        state = states_of(self._tracker.problem, self.C, sites)
        start = Point(self.C, state, sites, self.problem.K @ sites, 0.0)
        return self._judged(self._tracker.nearby(start), weight)

    def taking_up(self, at: Standing) -> Standing:
        """A solution of the problem without its last row, of another mover, as one of this one."""
        row, coef = self.problem.K[-1, :-1], at.point.coef
        point = replace(
            at.point,
            state=np.append(at.point.state, np.int8(-1)),
            coef=np.append(coef, 0.0),
            h=np.append(at.point.h, row @ coef),
        )
        weight = np.append(at.weight, 0.0)
        return replace(at, weight=weight, coef=np.append(at.coef, 0.0), point=point)

    def moved(
        self, at: Standing, rows: IntArray, to: FloatArray, cancel: NDArray[np.int32]
    ) -> Standing:
        """The solution when these rows have those weights."""
        weight = at.weight.copy()
        weight[rows] = to
        before, after = self.merged.together(at.weight), self.merged.together(weight)
        self._tracker.resume(after, cancel)
        point = replace(
            at.point, state=self._guess(at, before, after), fallback=False, b=at.intercept
        )
        if self._stays(at, before, after):
            return self._judged(point, weight, self._values(point.coef, at))
        found = self._in_few_steps(point, at)
        if found is None:
            point = self._tracker.nearby(point)
            found = point, self._values(point.coef, at)
        return self._judged(found[0], weight, found[1])

    def _in_few_steps(self, point: Point, at: Standing) -> tuple[Point, Values] | None:
        """The solution by a few linear solves, and its K c; None if it takes more than that.

        Each step is one pass over the factor, and one over K for what the judge will need anyway:
        where many rows are free, both wait for memory.
        """
        for _ in range(MOST_STEPS):
            new = self._tracker.onto_knots(point)
            if new is None:
                return None
            known = self._values(new.coef, at)
            point = replace(new, h=known.h)
            astray, residual = self._tracker.misplaced(point)
            if not astray and residual <= ON_KNOT:
                return point, known
            if astray > MOST_ASTRAY or residual > LOST:
                return None
        return None

    def _guess(self, at: Standing, before: FloatArray, after: FloatArray) -> StateArray:
        """Where rows are: sites that come are at a knot, or where they need no coefficient."""
        state = at.point.state.copy()
        state[after == 0.0] = -1
        loss = self.problem.loss
        for i in np.flatnonzero((before == 0.0) & (after > 0.0)):
            value = at.point.h[i] + at.intercept
            segment = int(np.count_nonzero(value > loss.knots[i]))
            idle = loss.slopes[i, segment] == 0.0
            # Beyond its knot with a slope: it goes to the knot that bounds the flat part.
            step = 0 if idle else (1 if loss.slopes[i, segment] < 0.0 else -1)
            state[i] = 2 * segment + step
        return state

    def _stays(self, at: Standing, before: FloatArray, after: FloatArray) -> bool:
        """Do the coefficients fit into the new boxes, and none of them was held by its old one?"""
        changed = np.flatnonzero(before != after)
        return bool((at.point.coef[changed] == 0.0).all()) and bool((after[changed] == 0.0).all())

    def _judged(
        self, point: Point, weight: FloatArray | None = None, known: Values | None = None
    ) -> Standing:
        """Have a solution judged; what misses the mark is solved again.

        ``known`` is its K c, if not to be computed from nothing.
        """
        weight = self.problem.weight if weight is None else weight
        best = self._figures(point, weight, known)
        for solve_again in (self._tracker.polish, self._tracker.slow_but_sure):
            if best[1] or point.fallback:
                break
            point = solve_again(best[0].point)
            other = self._figures(point, weight)
            if max(other[0].kkt, other[0].gap) < max(best[0].kkt, best[0].gap):
                best = other
        return best[0]

    def _figures(
        self, point: Point, weight: FloatArray, known: Values | None = None
    ) -> tuple[Standing, bool]:
        """What the judge says, and whether another attempt would be no use."""
        judge, C = self._judge.weighted(weight), np.array([self.C])
        coef = self.merged.apart(point.coef, weight)
        h, moves = self._values(point.coef, None) if known is None else known
        b = judge.intercepts(h[None], coef[None], C)
        kkt, gap_abs, primal, floor = judge.figures(h[None], coef[None], b, C)[0]
        gap = float(relative_gap(gap_abs, primal))
        limit = attainable(self.tol, floor, tolerances.POLISH * self.tol)
        there = replace(point, h=h, b=float(b[0]))
        standing = Standing(weight, coef, float(b[0]), float(kkt), gap, there, moves)
        return standing, bool(max(kkt, gap) <= limit)

    def _values(self, coef: FloatArray, near: Standing | None) -> Values:
        """K c, from that of another solution where that is quicker."""
        if near is not None and near.moves + 1 < MOST_MOVES:
            by = coef - near.point.coef
            rows = np.flatnonzero(by)
            if len(rows) <= FEW * len(coef):
                h = near.point.h.copy()
                add_rows(self.problem.K, rows, by[rows], h)
                return Values(h, near.moves + 1)
        return Values(self.problem.times(coef[None])[0], 0)
