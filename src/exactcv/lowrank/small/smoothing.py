"""Newton's method on the smoothed hinge, for ever less smoothing.

With the loss of the consolidated-CV paper (supplement C.3)

    L_tau(r) = 0 (r >= tau),   (tau - r)^2 / (4 tau) (|r| < tau),   -r (r <= -tau)

the objective is piecewise quadratic with Hessian

    diag(1, ..., 1, 0) + 1/(2 tau) sum over |r_i| < tau of B_i (z_i, 1)(z_i, 1)',

one (m + 1) x (m + 1) matrix.  The coefficient of a hinge is B_i, with its
sign, times (tau - r_i) / (2 tau) brought into [0, 1], so the rows *inside*, |r| < tau, are the
candidates for r = 0: below some tau they are the free rows themselves (``exchange.py`` does the
rest).

From one tau to the next the coefficients hardly change, hence the margins r of the rows inside
shrink like tau.  So the first step for a smaller tau keeps all rows that were inside on the
quadratic piece of the loss, wherever they are: it moves them to their new places at once.  With it
two or three steps do for each tau; without it the rows would have to be found again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ...types import FloatArray, IntArray
from .curvature import Curvature, Products
from .hinges import Hinges
from .reduced import best_intercept

__all__ = ["LEAST_TAU", "Smoothed", "sharpen", "sharpened", "smoothed"]

MOST_STEPS = 15  # for one tau
# From one tau to the next, at most and at least; the first step may move so many other rows.
SHRINK, LEAST_SHRINK, MANY = 0.2, 0.8, 0.2
LEAST_TAU = 1e-10
# A tau is done when no more than this share of the rows inside still changes.
SETTLED = 0.01


@dataclass
class Smoothed:
    """The minimum for one tau: the margins there, the rows inside, and the steps so far.

    ``shrink`` is what the next tau will be, of this one.  ``curvature`` and ``products`` are
    those of the last steps.  Is it ``settled``, or were there not enough steps to find it?
    """

    theta: FloatArray
    r: FloatArray
    tau: float
    inside: IntArray
    curvature: Curvature
    products: Products
    steps: int = 0
    shrink: float = SHRINK
    settled: bool = False

    def only(self, problem: Hinges, kept: IntArray) -> Smoothed:
        """The same for the problem of these rows (`Hinges.only`), all those inside among them."""
        inside, m = np.searchsorted(kept, self.inside), problem.Z.shape[1]
        curvature = Curvature(m)
        if len(inside) >= m:
            self.curvature.of(problem, self.inside)
            curvature = self.curvature.among(kept)
        return replace(
            self, r=self.r[kept], inside=inside, curvature=curvature, products=Products(m)
        )


def smoothed(problem: Hinges, theta: FloatArray, tau: float, few: int) -> Smoothed:
    """Minimise for this tau and smaller ones, until no more than ``few`` rows are inside."""
    nobody = np.zeros(0, dtype=np.intp)
    m = problem.Z.shape[1]
    at = Smoothed(theta, problem.margins(theta), tau, nobody, Curvature(m), Products(m))
    settle(problem, at)
    return sharpened(problem, at, few)


def sharpened(problem: Hinges, at: Smoothed, few: int) -> Smoothed:
    """The minimum for smaller tau, until no more than ``few`` rows are inside."""
    settle(problem, at)
    while len(at.inside) > few and at.tau > LEAST_TAU:
        sharpen(problem, at)
    return at


def sharpen(problem: Hinges, at: Smoothed) -> None:
    """Minimise for the next smaller tau, which is the less smaller the more other rows it moves.

    The first step to it keeps the rows inside, so that it leads astray if they are not settled.
    """
    settle(problem, at)
    held, theta, r, tau = at.inside, at.theta, at.r.copy(), at.tau
    while True:
        at.tau = tau * at.shrink
        changed = _step(problem, at, held, held=True)
        at.steps += 1
        others = (np.sign(at.r) != np.sign(r)) | (np.abs(at.r) < at.tau)
        others[held] = False
        if np.count_nonzero(others) <= MANY * len(held) + 5 or at.shrink > LEAST_SHRINK:
            break
        at.shrink = float(np.sqrt(at.shrink))
        at.theta, at.r = theta, r.copy()
    at.shrink = max(at.shrink**2, SHRINK)
    at.settled = not changed
    settle(problem, at)


def settle(problem: Hinges, at: Smoothed) -> None:
    """Newton steps for one tau, until no row comes or goes; none if that is so already."""
    for _ in range(0 if at.settled else MOST_STEPS):
        at.steps += 1
        inside = _inside(problem, at)
        if problem.fit_intercept and not len(inside):
            theta = np.append(at.theta[:-1], best_intercept(problem, at.theta[:-1]))
            at.theta, at.r = theta, problem.margins(theta)
            inside = _inside(problem, at)
        changed = _step(problem, at, inside, held=False)
        at.settled = changed <= SETTLED * len(inside)
        if at.settled:
            break


def _step(problem: Hinges, at: Smoothed, inside: IntArray, held: bool) -> float:
    """One step; returns how many rows came or went (more than all, if it was not a full one).

    A row that goes from one side to the other has come and gone.
    """
    direction = -_solve(problem, at, inside, _gradient(problem, at, inside))
    change = problem.change(direction)
    length = 1.0 if held else _length(problem, at, direction, change)
    at.theta = at.theta + length * direction
    was_low = at.r < 0
    at.r += length * change
    at.inside = _inside(problem, at)
    if length == 0.0:
        return 0.0
    if length < 1.0:
        return np.inf
    crossed = (was_low != (at.r < 0)) & (problem.box > 0)
    crossed[inside] = crossed[at.inside] = False
    changed = len(np.setxor1d(at.inside, inside, assume_unique=True))
    return float(changed + np.count_nonzero(crossed))


def _inside(problem: Hinges, at: Smoothed) -> IntArray:
    """Rows of weight zero, which a fold leaves out, are never inside."""
    return np.flatnonzero((np.abs(at.r) < at.tau) & (problem.box > 0))


def _gradient(problem: Hinges, at: Smoothed, inside: IntArray) -> FloatArray:
    share = np.clip((at.tau - at.r) * (0.5 / at.tau), 0.0, 1.0)
    share[inside] = (at.tau - at.r[inside]) * (0.5 / at.tau)
    share *= problem.box
    share *= problem.sign
    out = np.empty(len(at.theta))
    out[:-1] = at.theta[:-1] - problem.a - problem.pull(share)
    out[-1] = -problem.beta - float(share.sum()) if problem.fit_intercept else 0.0
    return out


def _solve(problem: Hinges, at: Smoothed, inside: IntArray, gradient: FloatArray) -> FloatArray:
    """The Hessian's inverse times the gradient; in as many dimensions as rows, if they are few.

    With D_i = B_i / (2 tau) and l = D (Z d + d_b), d = g - Z'l: so (Z Z' + D^-1) l = Z g + d_b and
    sum l = g_b.
    """
    if len(inside) >= problem.Z.shape[1]:
        return _solve_whole(problem, at, inside, gradient)
    K, g = at.products.of(problem, inside), gradient[:-1]
    K.flat[:: len(inside) + 1] += 2.0 * at.tau / problem.box[inside]
    factor = _factor(K)
    p = cho_solve(factor, at.products.along(g), check_finite=False)
    if not problem.fit_intercept or not len(inside):
        return np.append(g - at.products.pull(p), 0.0)
    q = cho_solve(factor, np.ones(len(inside)), check_finite=False)
    shift = (float(gradient[-1]) - float(p.sum())) / float(q.sum())
    return np.append(g - at.products.pull(p + shift * q), shift)


def _solve_whole(
    problem: Hinges, at: Smoothed, inside: IntArray, gradient: FloatArray
) -> FloatArray:
    H = at.curvature.of(problem, inside) * (0.5 / at.tau)
    last = H[-1, -1]
    H.flat[:: len(H) + 1] += 1.0
    if not problem.fit_intercept or last <= 0:
        # b has no curvature of its own: where no row gives it any, it stays.
        H[-1] = 0.0
        H[-1, -1] = 1.0
        gradient = np.append(gradient[:-1], 0.0)
    else:
        H[-1, -1] = last * (1.0 + 1e-13)
    return np.asarray(cho_solve(_factor(H), gradient, check_finite=False))


def _factor(H: FloatArray) -> tuple[FloatArray, bool]:
    ridge = 1e-14 * float(np.trace(H))
    while True:
        try:
            return cho_factor(H, lower=True, check_finite=False)
        except LinAlgError:  # rounding, where tau is tiny: a shorter step does as well
            ridge *= 10.0
            H.flat[:: len(H) + 1] += ridge


def _length(problem: Hinges, at: Smoothed, direction: FloatArray, change: FloatArray) -> float:
    """How far to go: to where the slope along the direction is small; 0 if it does not fall."""
    w, d = at.theta[:-1], direction[:-1]
    constant = float(w @ d) - float(problem.a @ d) - problem.beta * float(direction[-1])
    square, weight = float(d @ d), problem.box * change
    ahead = 0.5 - at.r * (0.5 / at.tau)
    fall = change * (0.5 / at.tau)

    def slope(t: float) -> float:
        return constant + t * square - float(weight @ np.clip(ahead - t * fall, 0.0, 1.0))

    first, last = slope(0.0), slope(1.0)
    if first >= 0.0:
        return 0.0
    low, high, at_low, at_high = 0.0, 1.0, first, last
    t = 1.0
    for _ in range(30):
        if abs(at_high if t == high else at_low) <= 0.1 * abs(first) or at_high <= 0.0:
            break
        t = low + (high - low) * min(max(-at_low / (at_high - at_low), 0.1), 0.9)
        here = slope(t)
        if here < 0.0:
            low, at_low = t, here
        else:
            high, at_high = t, here
    return t
