"""Newton's method on the smoothed hinge, for ever less smoothing.

With the loss of the consolidated-CV paper (supplement C.3)

    L_tau(r) = 0 (r >= tau),   (tau - r)^2 / (4 tau) (|r| < tau),   -r (r <= -tau)

the objective is piecewise quadratic with Hessian

    diag(1, ..., 1, 0) + 1/(2 tau) sum over |r_i| < tau of B_i (z_i, 1)(z_i, 1)',

one (m + 1) x (m + 1) matrix.  The paper takes proximal steps on a fixed bound of it; with the
matrix itself a handful of steps suffices for each tau.  The rows with |r| < tau at the end are
the candidates for r = 0 (``pivot.py``).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ...types import FloatArray
from .reduced import Reduced, best_intercept

__all__ = ["smooth_solution"]

MOST_STEPS = 12  # for one tau
SHRINK = 0.25  # from one tau to the next
MOST_TAUS = 40


def smooth_solution(
    problem: Reduced, theta: FloatArray, few: int, tau: float | None = None
) -> tuple[FloatArray, float, int]:
    """theta near the solution, the last tau (at most ``few`` rows have |r| < tau), the steps."""
    r = problem.margins(theta)
    if tau is None:
        tau = float(np.quantile(np.abs(r), 0.5)) if len(r) else 1.0
    tau = max(tau, 1e-12)
    steps = 0
    for _ in range(MOST_TAUS):
        theta, r, taken = _minimise(problem, theta, r, tau)
        steps += taken
        if np.count_nonzero(np.abs(r) < tau) <= few:
            break
        tau *= SHRINK
    return theta, tau, steps


def _minimise(
    problem: Reduced, theta: FloatArray, r: FloatArray, tau: float
) -> tuple[FloatArray, FloatArray, int]:
    """The minimum for one tau: done when a full step leaves every row on its own piece."""
    steps = 0
    while steps < MOST_STEPS:
        steps += 1
        inside = np.abs(r) < tau
        if problem.fit_intercept and not inside.any():
            moved = theta.copy()
            moved[-1] = best_intercept(problem, theta[:-1])
            if abs(moved[-1] - theta[-1]) > 0.5 * tau:
                theta, r = moved, problem.margins(moved)
                inside = np.abs(r) < tau
        pull = problem.box * np.where(inside, (tau - r) / (2.0 * tau), r <= -tau)
        gradient = theta - problem.linear - pull @ problem.signed
        if problem.fit_intercept:
            gradient[-1] -= theta[-1]
        direction = -_solve(problem, inside, tau, gradient)
        change = problem.signed @ direction
        length = _line_search(
            problem, theta, direction, r, change, tau, float(gradient @ direction)
        )
        theta, r = theta + length * direction, r + length * change
        if length == 1.0 and np.array_equal(inside, np.abs(r) < tau):
            break
        if length == 0.0:
            break
    return theta, problem.margins(theta), steps


def _solve(problem: Reduced, inside: np.ndarray, tau: float, gradient: FloatArray) -> FloatArray:
    """The Hessian's inverse times the gradient."""
    rows = problem.signed[inside]
    rows *= np.sqrt(problem.box[inside] / (2.0 * tau))[:, None]
    H = rows.T @ rows
    last = H[-1, -1]
    H.flat[:: len(H) + 1] += 1.0
    # b has no curvature of its own; where no row gives it any, it stays.
    H[-1, -1] = last if last > 0 else 1.0
    H[-1, -1] += 1e-13 * np.trace(H)
    if last <= 0:
        gradient = np.append(gradient[:-1], 0.0)
    ridge = 1e-14 * np.trace(H)
    while True:
        try:
            factor = cho_factor(H, check_finite=False)
        except LinAlgError:  # rounding, where tau is tiny: a shorter step does as well
            ridge *= 10.0
            H.flat[:: len(H) + 1] += ridge
        else:
            return np.asarray(cho_solve(factor, gradient, check_finite=False))


def _value(problem: Reduced, r: FloatArray, tau: float) -> float:
    loss = np.where(np.abs(r) < tau, (tau - r) ** 2 / (4.0 * tau), np.maximum(-r, 0.0))
    return float(problem.box @ loss)


def _line_search(
    problem: Reduced,
    theta: FloatArray,
    direction: FloatArray,
    r: FloatArray,
    change: FloatArray,
    tau: float,
    slope: float,
) -> float:
    """A step length that lowers the objective; 0 when rounding has the last word."""
    w, d = theta[:-1], direction[:-1]
    square, cross, along = float(d @ d), float(w @ d), float(problem.linear @ direction)
    start = _value(problem, r, tau)
    length = 1.0
    for _ in range(30):
        gain = length * (cross - along) + 0.5 * length**2 * square
        gain += _value(problem, r + length * change, tau) - start
        if gain <= 1e-4 * length * slope:
            return length
        length *= 0.5
    return 0.0
