"""Many free rows, several C: conjugate gradients for all of them at once.

Given its states, a problem is a linear system over its free rows M,

    K_MM dc + b = t_M - h_M,    sum dc = -sum c,    h = K c,

which a Cholesky factor solves in |M|^3 / 3 operations.  Where most rows are free, K_MM is well
conditioned, and conjugate gradients take a few dozen products with K.  The problems of one training
set at several C share these products: they are columns of one matrix, and a column among ten costs
a third of what it costs alone.

Products inside the iteration are in single precision, on the part of K that the columns need.  What
they leave is worked out from c in double precision, once a round (iterative refinement), and the
rows that then violate their state move, all at once, as in block steps.  The states must be nearly
right to begin with: see ``rough.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ..problem.problem import Problem
from ..runtime.threads import Cancelled
from ..types import FloatArray, IntArray

__all__ = ["Columns", "solve_columns"]

SingleArray = NDArray[np.float32]
BoolArray = NDArray[np.bool_]

MAX_ROUNDS = 15
# How much a round is to gain: single precision is good for that.  The first is to show who violates
# its state, and need not gain as much.
GAIN = 1e-4
FIRST_GAIN = 3e-3
# Iterations that a round may take.
MAX_ITERATIONS = 100
# Rows this near to a knot may become free: their part of K is at hand from the start.
NEARBY = 0.05
# The part of K that is needed is copied if it has less than this share of the rows.
WORTH_COPYING = 0.85
COPIED_ROWS = 256
# No free row is asked to be nearer to its knot than this: rounding.
LEAST_GOAL = 1e-13
# A column with more violators than this share of its free rows is too far away.
CROWD = 0.2


@dataclass
class Columns:
    """Points of one training set: C and b (q,), state, c and h = K c (q, n).

    ``reach`` is the largest C at which each solution is to be used.
    """

    C: FloatArray
    reach: FloatArray
    state: NDArray[np.int8]
    coef: FloatArray
    h: FloatArray
    b: FloatArray

    def part(self, which: IntArray) -> Columns:
        return Columns(*(getattr(self, field.name)[which] for field in fields(self)))

    def put(self, which: IntArray, part: Columns) -> None:
        for field in fields(self):
            getattr(self, field.name)[which] = getattr(part, field.name)


def solve_columns(
    problem: Problem,
    levels: FloatArray,
    columns: Columns,
    tol: float,
    cancel: NDArray[np.int32],
) -> BoolArray:
    """Solve all columns in place.

    Free rows miss their knots by at most tol in the end, and the duality gap that comes of it is at
    most tol times the objective.  ``levels`` are those of C = 1.  Returns which columns are solved;
    the others are left where they were when it was given up.
    """
    solved = np.zeros(len(columns.C), dtype=bool)
    active = np.arange(len(columns.C))
    products = _Products(problem)
    for round_ in range(MAX_ROUNDS):
        if cancel[0]:
            raise Cancelled
        part = columns.part(active)
        if round_:
            part.h = problem.times(part.coef)
        system = _System(problem, levels, part)
        # The first time the rows at a knot are off by more than the others are by mistake.
        moved = system.move_violators() if round_ else np.zeros(len(active), dtype=np.intp)
        goal = system.goal(tol)
        done = (moved == 0) & (system.worst <= goal)
        lost = (moved > CROWD * system.free.sum(axis=1)) | ~np.isfinite(system.worst)
        going = np.flatnonzero(~done & ~lost)
        if len(going):
            least = system.worst[going] * (GAIN if round_ else FIRST_GAIN)
            system.improve(products, going, np.maximum(least, 0.3 * goal[going]))
        system.into_boxes(np.flatnonzero(done))
        columns.put(active, part)
        solved[active[done]] = True
        active = active[going]
        if not len(active):
            break
    return solved


class _System:
    """The linear systems of some columns at their present states."""

    def __init__(self, problem: Problem, levels: FloatArray, columns: Columns):
        self.problem, self.levels, self.columns = problem, levels, columns
        n, knots = problem.n, problem.loss.knots
        self.rows = np.arange(n)
        self.ends = np.column_stack([np.full(n, -np.inf), knots, np.full(n, np.inf)])
        self.refresh()

    def refresh(self) -> None:
        """Free rows, how far they are from their knots, and the intercept."""
        columns = self.columns
        self.free = (columns.state > 0) & (columns.state % 2 == 1)
        knot = self.ends[self.rows, np.maximum(columns.state, 0) // 2 + 1]
        self.gap = np.where(self.free, knot - columns.h, 0.0)
        if self.problem.fit_intercept:
            columns.b[:] = self.gap.sum(axis=1) / np.maximum(self.free.sum(axis=1), 1)
            self.gap -= np.where(self.free, columns.b[:, None], 0.0)
        self.worst = np.abs(self.gap).max(axis=1)

    def goal(self, tol: float) -> FloatArray:
        """How far free rows may be from their knots.

        A free row that misses its knot by v adds at most C_i |v| to the duality gap.
        """
        columns, problem = self.columns, self.problem
        objective = 0.5 * np.einsum("ij,ij->i", columns.coef, columns.h)
        for k, u in enumerate(columns.h + columns.b[:, None]):
            part = columns.state[k] >= 0
            objective[k] += columns.C[k] * (problem.weight * problem.loss.value(u))[part].sum()
        boxes = self.levels[:, 0] - self.levels[:, -1]
        size = columns.reach * np.where(self.free, boxes, 0.0).sum(axis=1)
        goal = tol * np.minimum(1.0, objective / np.maximum(size, np.finfo(float).tiny))
        return np.maximum(goal, LEAST_GOAL)

    def boxes(self) -> tuple[FloatArray, FloatArray]:
        """Between which levels c may lie; for rows at a level, where it is."""
        state, C = np.maximum(self.columns.state, 0), self.columns.C[:, None]
        high = C * self.levels[self.rows, state // 2]
        return C * self.levels[self.rows, (state + 1) // 2], high

    def move_violators(self) -> IntArray:
        """Each row that violates its state goes to the next place; returns how many of each column.

        What is within the present accuracy of a column is no violation.
        """
        columns, worst = self.columns, self.worst[:, None]
        low, high = self.boxes()
        slack = np.maximum(worst / self.problem.diagonal, 1e-12 * (high - low))
        down = self.free & (columns.coef < low - slack)
        up = self.free & (columns.coef > high + slack)
        u, tol = columns.h + columns.b[:, None], np.maximum(worst, 1e-11)
        place = np.maximum(columns.state, 0) // 2
        fixed = (columns.state >= 0) & ~self.free
        up |= fixed & (u < self.ends[self.rows, place] - tol)
        down |= fixed & (u > self.ends[self.rows, place + 1] + tol)
        moved: IntArray = up.sum(axis=1) + down.sum(axis=1)
        columns.state[up] -= 1
        columns.state[down] += 1
        for k in np.flatnonzero(moved):
            self._settle(int(k), np.flatnonzero((up[k] | down[k]) & self.free[k]))
        if moved.any():
            worst_before = self.worst
            self.refresh()
            self.worst = np.maximum(self.worst, worst_before)
        return moved

    def _settle(self, k: int, left: IntArray) -> None:
        """Put rows that are no longer free on their levels, and restore the sum of c."""
        columns, K = self.columns, self.problem.K
        level = columns.C[k] * self.levels[left, columns.state[k, left] // 2]
        if len(left):
            columns.h[k] += (level - columns.coef[k, left]) @ K[left]
            columns.coef[k, left] = level
        lack = -float(columns.coef[k].sum())
        free = np.flatnonzero((columns.state[k] > 0) & (columns.state[k] % 2 == 1))
        if self.problem.fit_intercept and len(free) and lack:
            # Any free row will do: the step that follows is free to take it back.
            columns.coef[k, free[0]] += lack
            columns.h[k] += lack * K[free[0]]

    def improve(self, products: _Products, which: IntArray, goal: FloatArray) -> None:
        """A step by conjugate gradients to where free rows miss their knots by at most ``goal``."""
        free, gap = self.free[which], self.gap[which]
        used = products.cover(free.any(axis=0), self._nearby(which))
        K, scale = products.K, products.scale
        step = _conjugate_gradients(
            K,
            gap[:, used].astype(np.float32),
            free[:, used],
            self.problem.fit_intercept,
            goal,
        )
        inside = np.zeros((len(which), self.problem.n))
        inside[:, used] = step.astype(float) / scale
        if self.problem.fit_intercept:
            # Single precision is not enough for the sum.
            lack = (self.columns.coef[which] + inside).sum(axis=1, keepdims=True)
            inside -= np.where(free, lack / np.maximum(free.sum(axis=1, keepdims=True), 1), 0.0)
        self.columns.coef[which] += inside

    def _nearby(self, which: IntArray) -> BoolArray:
        """Rows that may become free in some column."""
        columns = self.columns
        state = columns.state[which]
        u = columns.h[which] + columns.b[which, None]
        off = np.minimum(
            np.abs(u - self.ends[self.rows, np.maximum(state, 0) // 2]),
            np.abs(u - self.ends[self.rows, np.maximum(state, 0) // 2 + 1]),
        )
        return np.asarray(((state >= 0) & (off < NEARBY)).any(axis=0))

    def into_boxes(self, which: IntArray) -> None:
        """Rounding may have left coefficients a little outside."""
        low, high = self.boxes()
        inside = np.clip(self.columns.coef[which], low[which], high[which])
        self.columns.coef[which] = np.where(self.free[which], inside, self.columns.coef[which])


class _Products:
    """The part of K that the columns need, in single precision."""

    def __init__(self, problem: Problem):
        self.whole, self.scale = problem.K_single
        self.K = self.whole
        self.rows = np.empty(0, dtype=np.intp)

    def cover(self, free: BoolArray, nearby: BoolArray) -> IntArray:
        """Make sure that all free rows are at hand; returns the rows that are."""
        have = np.zeros(len(free), dtype=bool)
        have[self.rows] = True
        if not len(self.rows) or (free & ~have).any():
            have |= free | nearby
            if have.sum() > WORTH_COPYING * len(have):
                self.rows, self.K = np.arange(len(have)), self.whole
            else:
                self.rows = np.flatnonzero(have)
                self.K = np.empty((len(self.rows), len(self.rows)), dtype=np.float32)
                for start in range(0, len(self.rows), COPIED_ROWS):
                    some = slice(start, start + COPIED_ROWS)
                    whole = self.whole[self.rows[some]]
                    np.take(whole, self.rows, axis=1, out=self.K[some], mode="clip")
        return self.rows


def _conjugate_gradients(
    K: SingleArray, right: SingleArray, free: BoolArray, intercept: bool, goal: FloatArray
) -> SingleArray:
    """x_k with K x_k = right_k + constant on the free rows of column k, and sum x_k = 0.

    Projected conjugate gradients: with an intercept, everything is kept free of its mean over the
    free rows.  A column rests once its residual is at most goal_k; all stop after MAX_ITERATIONS.
    """
    mask = free.astype(np.float32)
    count = np.maximum(mask.sum(axis=1, keepdims=True), 1)

    def project(v: SingleArray) -> SingleArray:
        v *= mask
        if intercept:
            v -= mask * (v.sum(axis=1, keepdims=True) / count)
        return v

    x = np.zeros_like(right)
    residual = project(right.copy())
    direction = residual.copy()
    # A multiple of four columns is quicker to multiply than fewer.
    padded = np.zeros((-(-len(right) // 4) * 4, right.shape[1]), dtype=np.float32)
    image = np.empty_like(padded)
    square = np.einsum("ij,ij->i", residual, residual, dtype=float)
    for _ in range(MAX_ITERATIONS):
        going = np.abs(residual).max(axis=1) > goal
        if not going.any():
            break
        if len(right) == 1:
            np.dot(K, direction[0], out=image[0])
        else:
            padded[: len(right)] = direction
            np.dot(padded, K, out=image)
        product = project(image[: len(right)])
        curvature = np.einsum("ij,ij->i", direction, product, dtype=float)
        going &= curvature > 0
        length = np.where(going, square / np.where(going, curvature, 1.0), 0.0)
        length = length.astype(np.float32)[:, None]
        x += length * direction
        residual -= length * product
        new = np.einsum("ij,ij->i", residual, residual, dtype=float)
        ratio = np.where(going & (square > 0), new / np.where(square > 0, square, 1.0), 0.0)
        direction *= ratio.astype(np.float32)[:, None]
        direction += residual
        square = new
    return x
