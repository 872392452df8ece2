"""The piece of a solution path around a solution: a line in C, and how far it goes.

While no row changes its state, the coefficients of rows at a bound are C times their weights, those
of free rows follow by

    K_MM c_M' + b' = -K_MS c_S',      sum c' = 0,

and all u are linear in C too.  The piece ends where a free row comes to a bound, or another row to
its knot.  Where no row is free, the coefficients are C times a constant, and b is in the middle of
an interval (``judge/intercept.py``) whose ends are set by two rows: the piece also ends where
another row takes their place, or where the interval is empty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._core._factor import Factor
from .._core._gather import gather
from ..judge.intercept import BLURRED, closeness
from ..problem.problem import Problem
from ..types import FloatArray

__all__ = ["Course", "Piece", "course_of", "piece_of"]


@dataclass(frozen=True)
class Piece:
    """A line through the solution at C, from ``low`` to ``high``.

    ``coef``, ``h`` = K coef and ``b`` are those at C; the others their slopes.
    """

    C: float
    low: float
    high: float
    coef: FloatArray
    h: FloatArray
    b: float
    coef_slope: FloatArray
    h_slope: FloatArray
    b_slope: float

    def at(self, C: float) -> tuple[FloatArray, FloatArray, float]:
        """Coefficients, h and b at another C of the piece."""
        by = C - self.C
        return (
            self.coef + by * self.coef_slope,
            self.h + by * self.h_slope,
            self.b + by * self.b_slope,
        )


@dataclass(frozen=True)
class Course:
    """How the coefficients of a solution go on with C while no row changes its state.

    ``y`` and ``weight`` are those of the problem, the masks tell where the rows are (none of them:
    without weight), ``known`` is False where float64 cannot tell: free rows that depend on each
    other.
    """

    y: FloatArray
    weight: FloatArray
    intercept: bool
    top: NDArray[np.bool_]
    bottom: NDArray[np.bool_]
    free: NDArray[np.bool_]
    slope: FloatArray
    known: bool


def course_of(problem: Problem, factor: Factor, C: float, coef: FloatArray) -> Course:
    """The course of a solution, for the hinge loss.

    ``factor`` is of K, with a constant if there is an intercept.

    Examples
    --------
    >>> from exactcv.problem.losses import hinge
    >>> y = np.array([1.0, -1.0])
    >>> problem = Problem(np.eye(2), y, np.ones(2), hinge(y))
    >>> c, h = np.array([0.5, -0.5]), np.array([0.5, -0.5])
    >>> course = course_of(problem, Factor(problem.K, True), 0.5, c)
    >>> course.slope
    array([ 1., -1.])
    >>> piece_of(course, 0.5, c, h, 0.0, problem.K @ course.slope).high
    1.0
    """
    y, weight = problem.y, problem.weight
    levels = problem.loss.coefficient_levels(C * weight)
    near = closeness(levels, problem.diagonal) + BLURRED * C * weight
    size, used = y * coef, weight > 0
    top = used & (size >= C * weight - near)
    bottom = used & ~top & (size <= near)
    free = used & ~top & ~bottom
    slope, known = np.where(top, y * weight, 0.0), True
    if free.any():
        known = _follow(problem, factor, np.flatnonzero(free), C, coef, slope)
    return Course(y, weight, problem.fit_intercept, top, bottom, free, slope, known)


def piece_of(
    course: Course, C: float, coef: FloatArray, h: FloatArray, b: float, h_slope: FloatArray
) -> Piece:
    """The piece of the path on which a solution lies; ``h_slope`` is K times its course's slope.

    The piece has no length where the course is not known.
    """
    y, weight, top, bottom, free = course.y, course.weight, course.top, course.bottom, course.free
    nowhere = Piece(C, C, C, coef, h, b, course.slope, np.zeros_like(h), 0.0)
    if not course.known:
        return nowhere
    b_slope, size, beyond = 0.0, y * coef, y * (h + b) - 1.0
    if course.intercept and not free.any():
        limits = _of_intercept(y, top, bottom, h, h_slope)
        if limits is None:
            return nowhere
        room, growth, b_slope = limits
    else:
        if course.intercept:
            b_slope = -float(h_slope[free].mean())
        by = y * (h_slope + b_slope)
        moves = (y * course.slope)[free]
        room = np.concatenate([-beyond[top], beyond[bottom], size[free], (C * weight - size)[free]])
        growth = np.concatenate([-by[top], by[bottom], moves, weight[free] - moves])
    back, ahead = _reach(np.maximum(room, 0.0), growth)
    low = max(C - back, 0.0)
    return Piece(C, low, C + ahead, coef, h, b, course.slope, h_slope, b_slope)


def _follow(
    problem: Problem,
    factor: Factor,
    members: NDArray[np.intp],
    C: float,
    coef: FloatArray,
    slope: FloatArray,
) -> bool:
    """Fill in the slopes of free rows; False if they depend on each other.

    As K_MM c_M + b = t - C K_MS c_S' (t the knots), the equations of c_M' are those of c_M / C + z
    with  K_MM z + beta = -t / C,  and the sum of z is what makes that of c' zero.

    The factor is of K_MM + top, with an intercept, and a small ridge: that shifts beta only, and
    what the ridge does is put right by a second solve.
    """
    goal, z = -problem.loss.knots[members, 0] / C, np.zeros(len(members))
    ones, by = factor.solve_with(members, np.array([np.ones(len(members)), _off(problem, goal)]))
    if not factor.firm:
        return False
    sum_now = float(slope.sum() + coef[members].sum() / C)
    for again in (False, True):
        if again:
            off = _off(problem, goal - gather(problem.K, members, members) @ z)
            by = factor.solve_with(members, off)
        if problem.fit_intercept:
            by -= (by.sum() + z.sum() + sum_now) / ones.sum() * ones
        z += by
    slope[members] = coef[members] / C + z
    return True


def _off(problem: Problem, off: FloatArray) -> FloatArray:
    """What beta, if there is an intercept, does not take up."""
    return off - off.mean() if problem.fit_intercept else off


def _of_intercept(
    y: FloatArray,
    top: NDArray[np.bool_],
    bottom: NDArray[np.bool_],
    h: FloatArray,
    h_slope: FloatArray,
) -> tuple[FloatArray, FloatArray, float] | None:
    """What must stay positive while the same rows limit b; how it grows; the slope of b."""
    positive = y > 0
    from_below = np.flatnonzero((positive & bottom) | (~positive & top))
    from_above = np.flatnonzero((positive & top) | (~positive & bottom))
    if not (len(from_below) and len(from_above)):
        return None
    room = y - h
    low = from_below[np.argmax(room[from_below])]
    high = from_above[np.argmin(room[from_above])]
    rooms = [
        room[low] - room[from_below],
        room[from_above] - room[high],
        room[[high]] - room[low],
    ]
    growths = [
        h_slope[from_below] - h_slope[low],
        h_slope[high] - h_slope[from_above],
        h_slope[low] - h_slope[[high]],
    ]
    b_slope = -0.5 * float(h_slope[low] + h_slope[high])
    return np.concatenate(rooms), np.concatenate(growths), b_slope


def _reach(room: FloatArray, growth: FloatArray) -> tuple[float, float]:
    """How far back and ahead every room stays positive."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        turn = room / np.abs(growth)
    back = np.min(turn, where=growth > 0, initial=np.inf)
    ahead = np.min(turn, where=growth < 0, initial=np.inf)
    return float(back), float(ahead)
