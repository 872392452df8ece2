"""The solution of a problem with sparse rows, from any guess: proximal steps, each by Newton's.

The dual problem in signed coefficients (``engine/smo.py``) is

    max over c   D(c) = t'c - 1/2 ||X'c||^2   subject to   low_i <= c_i <= high_i,   sum c = 0.

A *proximal step* from a solves it with tau / 2 ||c - a||^2 taken away, which has one solution
whatever X is (equal rows, more of them on the margin than columns).  With w and b for its unknowns
that is a smooth problem without constraints,

    min over w, b   1/2 ||w||^2 + sum_i psi_i(t_i - x_i'w - b),
    psi_i'(r) = c_i(r) = a_i + r / tau, brought into the box,

which Newton's method solves in a few steps with a line search (the augmented Lagrangian method of
Li, Sun & Toh, SIAM J. Optim. 28, 2018, for the SVM).  A step d of w is X_F' delta plus what w lacks
of X'c, for the rows F strictly inside their boxes, and with K_FF = X_F X_F'

    (K_FF + tau I) delta + 1 db = X_F (w - X'c),   1' delta = 0,

by conjugate gradients: a product with X_F and one with its transpose for each, whatever the number
of columns.  Rows of text overlap so little that K_FF is well conditioned, and some dozen will do.
Where they do not, and F is small, a factor of K_FF + tau I takes their place.

The next step starts from a = c with a smaller tau.  As soon as F is right, what is left of the
error is multiplied by about tau over the least eigenvalue of K_FF, so a few steps end at rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from ...judge.certificate import attainable
from ...runtime.threads import Cancelled
from ...types import FloatArray, IntArray
from .problem import WideProblem, WideSolution, gram

__all__ = ["solve"]

# tau at first and at least, in units of the mean square of a row, how it falls by the number of
# Newton steps that the last proximal step took, and how it rises where these were too many.
FIRST_TAU, LEAST_TAU, FALL, RISE = 0.3, 1e-9, ([4, 16], [0.1, 1.0]), 10.0
MOST_TAU = 100.0
# KKT violation from which the rows inside their boxes may be the right ones (the gap is in units of
# the boxes, and may still be large).
NEAR = 1e-3
# Proximal steps, Newton steps of each, halvings of a step, and steps of a search for b.
MOST_STEPS, MOST_NEWTON, HALVINGS, SEARCHES = 100, 40, 40, 100
# Proximal steps in a row that do not halve the figures before it is given up.
PATIENCE = 20
# A proximal step may be off by this share of what its square root of tau allows for.
INEXACT = 0.1
# Share of the first error that conjugate gradients leave, at most; as coefficients are in units of
# tau, it is also to be less than this times tau over the largest eigenvalue that they have met.
LEAVE = 0.1
# Their number before a factor of at most so many rows takes their place; fewer rows are not tried.
FEW_GRADIENTS, MOST_GRADIENTS, FACTORED, AT_ONCE = 400, 4000, 4000, 400
# What Newton's steps leave of w - X'c, relative to the lengths of what is added up in it.
ROUNDING = 1e-14
# What is asked of the figures, of what the caller asks: they are to be met with room.
SHARE = 0.1


def solve(
    problem: WideProblem,
    C: float,
    tol: float,
    cancel: NDArray[np.int32],
    coef: FloatArray,
    intercept: float = 0.0,
) -> WideSolution:
    """From coefficients near those of the solution (zeros will do) to the solution.

    If ``tol`` is not met the solution is the best there is, and its figures say so.
    """
    walk, best, waited = _Walk.begin(problem, coef, intercept), None, 0
    unit = float(np.mean(problem.length**2)) or 1.0
    tau = FIRST_TAU * unit
    for _ in range(MOST_STEPS):
        before = replace(walk)
        steps = walk.proximal(tau, cancel)
        if steps >= MOST_NEWTON and tau < MOST_TAU * unit:  # too far for so small a tau
            walk, tau = replace(before, steps=walk.steps), tau * RISE
            continue
        found = _solution(problem, C, walk.balanced(), walk.steps)
        goal = float(attainable(tol, found.floor, SHARE * tol))
        if goal < _worst(found) and found.kkt <= NEAR:
            found = _polished(problem, found, tau, goal)
        better = best is None or _worst(found) < 0.5 * _worst(best)
        if best is None or _worst(found) < _worst(best):
            best = found
        waited = 0 if better else waited + 1
        if _worst(best) <= goal or waited >= PATIENCE:
            break
        tau = max(tau * float(np.interp(steps, *FALL)), LEAST_TAU * unit)
    if best is None:
        best = _solution(problem, C, walk.balanced(), walk.steps)
    return replace(best, steps=walk.steps)


def _worst(solution: WideSolution) -> float:
    return max(solution.kkt, solution.relative_gap)


def _solution(problem: WideProblem, C: float, coef: FloatArray, steps: int) -> WideSolution:
    """What the coefficients amount to, judged."""
    w = problem.columns @ coef
    h = problem.X @ w
    b = problem.intercept(h, coef)
    theta = np.append(w, b)
    kkt, gap, primal, floor = problem.judged(theta, coef)
    bound = np.count_nonzero((coef != 0.0) & ~problem.strictly_inside(coef))
    return WideSolution(C, theta, coef, h + b, primal, gap, kkt, floor, int(bound), steps)


def _polished(problem: WideProblem, found: WideSolution, tau: float, goal: float) -> WideSolution:
    """Newton's steps of the coefficients themselves, as long as they stay inside their boxes.

    In a proximal step rounding of u is multiplied by 1 / tau; here it is not.
    """
    low, high = problem.levels[:, 1], problem.levels[:, 0]
    free = np.flatnonzero((found.coef > low) & (found.coef < high))
    rows = problem.X[free]
    while _worst(found) > goal and len(free):
        coef = found.coef.copy()
        missing = problem.target[free] - found.u[free]
        coef[free] += _shares(rows, missing, tau, problem.fit_intercept)[0]
        if ((coef[free] <= low[free]) | (coef[free] >= high[free])).any():
            break
        coef = _balanced(problem, coef)
        other = _solution(problem, found.C, coef, found.steps)
        if not _worst(other) < 0.5 * _worst(found):
            break
        found = other
    return found


@dataclass
class _Walk:
    """Where the search stands: w with h = Xw, b, the coefficients that go with them, and a."""

    problem: WideProblem
    w: FloatArray
    h: FloatArray
    b: float
    coef: FloatArray
    anchor: FloatArray
    steps: int = 0

    @classmethod
    def begin(cls, problem: WideProblem, coef: FloatArray, b: float) -> _Walk:
        coef = np.clip(coef, problem.levels[:, 1], problem.levels[:, 0])
        w = problem.columns @ coef
        return cls(problem, w, problem.X @ w, b, coef, coef)

    def proximal(self, tau: float, cancel: NDArray[np.int32]) -> int:
        """One proximal step from the coefficients at hand; how many of Newton's it took."""
        problem = self.problem
        low, high = problem.levels[:, 1], problem.levels[:, 0]
        self.anchor = self.coef
        floor = ROUNDING * (1.0 + float(problem.length @ np.abs(self.anchor)))
        for step in range(MOST_NEWTON):
            if cancel[0]:
                raise Cancelled
            if problem.fit_intercept:
                self.b = self._best_intercept(tau)
            wanted = self.anchor + (problem.target - self.h - self.b) / tau
            self.coef = np.clip(wanted, low, high)
            lack = problem.columns @ self.coef - self.w  # of w
            moved = float(np.linalg.norm(self.coef - self.anchor))
            if np.linalg.norm(lack) <= max(floor, INEXACT * np.sqrt(tau) * moved):
                return step
            free = np.flatnonzero((wanted > low) & (wanted < high))
            dw, db = self._direction(free, lack, tau)
            if not self._step(dw, db, lack, tau):
                return step
            self.steps += 1
        return MOST_NEWTON

    def _direction(self, free: IntArray, lack: FloatArray, tau: float) -> tuple[FloatArray, float]:
        """Newton's step of w and b."""
        rows = self.problem.X[free]
        delta, db = _shares(rows, -(rows @ lack), tau, self.problem.fit_intercept)
        return lack + rows.T @ delta, db

    def _step(self, dw: FloatArray, db: float, lack: FloatArray, tau: float) -> bool:
        """As far along a direction as the objective falls; False if rounding is all there is."""
        problem = self.problem
        dh, square = problem.X @ dw, float(dw @ dw)
        along, slope = float(self.w @ dw), -float(lack @ dw) - db * float(self.coef.sum())
        before, length = self._psi(self.h + self.b, tau), 1.0
        size = abs(before) + 0.5 * float(self.w @ self.w)
        if not slope < 0.0:
            return False
        for _ in range(HALVINGS):
            u = self.h + length * dh + (self.b + length * db)
            change = length * along + 0.5 * length**2 * square + self._psi(u, tau) - before
            if change <= 1e-4 * length * slope + 1e-15 * size:
                break
            length *= 0.5
        else:
            return False
        self.w = self.w + length * dw
        self.h = self.h + length * dh
        self.b += length * db
        return True

    def _psi(self, u: FloatArray, tau: float) -> float:
        problem = self.problem
        r = problem.target - u
        c = np.clip(self.anchor + r / tau, problem.levels[:, 1], problem.levels[:, 0])
        return float(c @ r - 0.5 * tau * ((c - self.anchor) @ (c - self.anchor)))

    def _best_intercept(self, tau: float) -> float:
        """The b at which the coefficients add up to nothing: Newton's steps between two ends."""
        problem = self.problem
        low, high = problem.levels[:, 1], problem.levels[:, 0]
        wanted = self.anchor + (problem.target - self.h) / tau
        part = problem.box > 0
        left = tau * float((wanted - high)[part].min())
        right = tau * float((wanted - low)[part].max())
        b, room = min(max(self.b, left), right), 1e-15 * float(problem.box.sum())
        for _ in range(SEARCHES):
            at = wanted - b / tau
            total = float(np.clip(at, low, high).sum())
            if abs(total) <= room:
                return b
            left, right = (b, right) if total > 0 else (left, b)
            inside = int(np.count_nonzero((at > low) & (at < high)))
            after = b + tau * total / inside if inside else 0.5 * (left + right)
            if not left < after < right:
                after = 0.5 * (left + right)
            if after in (b, left, right):
                return after
            b = after
        return b

    def balanced(self) -> FloatArray:
        return _balanced(self.problem, self.coef)


def _balanced(problem: WideProblem, coef: FloatArray) -> FloatArray:
    """With what rounding has left of the sum of the coefficients given to those inside."""
    if not problem.fit_intercept:
        return coef
    low, high = problem.levels[:, 1], problem.levels[:, 0]
    lack = -float(coef.sum())
    room = high - coef if lack > 0 else coef - low
    room[(coef == low) | (coef == high)] = 0.0
    total = float(room.sum())
    return coef + lack / total * room if total > abs(lack) else coef


def _shares(rows: Any, right: FloatArray, tau: float, centred: bool) -> tuple[FloatArray, float]:
    """delta and db with (K + tau I) delta + 1 db = right, and sum delta = 0 if ``centred``."""
    if not len(right):
        return right, 0.0
    if len(right) <= AT_ONCE:
        return _by_factor(rows, right, tau, centred)
    delta, left, met = _conjugate_gradients(rows, right, tau, centred)
    if not met and len(right) <= FACTORED:
        return _by_factor(rows, right, tau, centred)
    return delta, float(left.mean()) if centred else 0.0


def _conjugate_gradients(
    rows: Any, right: FloatArray, tau: float, centred: bool
) -> tuple[FloatArray, FloatArray, bool]:
    """delta, what it leaves of the right side, and whether that is little but for a constant."""

    def project(v: FloatArray) -> FloatArray:
        return v - v.mean() if centred else v

    columns = rows.T
    delta, left = np.zeros(len(right)), right.copy()
    residual = project(left)
    direction, square = residual, float(residual @ residual)
    first, largest = square, tau
    most = FEW_GRADIENTS if len(right) <= FACTORED else MOST_GRADIENTS
    for _ in range(most):
        if square <= first * (LEAVE * tau / largest) ** 2:
            return delta, left, True
        image = rows @ (columns @ direction) + tau * direction
        curvature = float(direction @ image)
        largest = max(largest, curvature / float(direction @ direction))
        step = square / curvature
        delta = delta + step * direction
        left = left - step * image
        residual = project(left)
        before, square = square, float(residual @ residual)
        direction = residual + square / before * direction
    return delta, left, False


def _by_factor(rows: Any, right: FloatArray, tau: float, centred: bool) -> tuple[FloatArray, float]:
    K = gram(rows, rows.T.tocsr())
    K.flat[:: len(right) + 1] += tau
    factor = cho_factor(K, overwrite_a=True, check_finite=False)
    delta = cho_solve(factor, right)
    if not centred:
        return delta, 0.0
    ones = cho_solve(factor, np.ones(len(right)))
    db = float(delta.sum() / ones.sum())
    return delta - db * ones, db
