"""From a nearby point to the solution itself: which rows are low, free and high?

The active sets of the exact path find out (``engine/path.py``), on the kernel matrix of these rows,
or, where they are many, of those nearest to the margin (``nested.py``).  Where that fails,
smoothing (``continuation.py``) comes near the solution, and pivoting in m dimensions does the rest.
Given the places of all rows, the free ones solve a linear system: with
v = a + sum over the low rows of B_i y_i z_i,

    Z_F (v + Z_F' c) + b = y_F,        sum c = -beta - sum over the low rows of B_i y_i.

Rows that contradict their place move (a free row whose coefficient leaves its box becomes low or
high, a low or high row on the wrong side becomes free), all at once, until none does: block
principal pivoting.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ... import tolerances
from ...engine.path import Point, Tracker
from ...judge.features import rounding_floor
from ...problem.losses import PiecewiseLinear
from ...problem.problem import Problem
from ...types import FloatArray
from .continuation import smooth_solution
from .nested import fewest_rows, solve_nested
from .reduced import FREE, HIGH, LOW, Reduced, Reply, StateArray, best_intercept

__all__ = ["expanded", "places", "solve"]

# The engine needs the kernel matrix of the rows: 290 MB for so many.
MOST_ROWS = 6000
PATIENCE = 6
MOST_STEPS = 100
# Margins this small, relative to the largest, are rounding.
ROUNDING = 1e-11
# A solution that violates its conditions by more than this is not one; nor is one that does so by
# rounding alone, but by more than the second figure.
POOR, HOPELESS = 1e-8, 1e-3


def solve(problem: Reduced, theta: FloatArray, cancel: NDArray[np.int32]) -> Reply:
    """The solution, from a guess at theta."""
    reply = None
    if len(problem.y) > 1.5 * fewest_rows(problem.Z.shape[1]):
        reply = solve_nested(problem, theta, partial(_by_engine, cancel=cancel))
    elif len(problem.y) <= MOST_ROWS:
        reply = _by_engine(problem, theta, cancel)
    if reply is None or _is_poor(problem, reply):
        reply = _by_smoothing(problem, theta)
        if _is_poor(problem, reply):
            reply = _by_engine(problem, reply.theta, cancel)
    return _canonical(problem, reply)


def _by_smoothing(problem: Reduced, theta: FloatArray) -> Reply:
    m = problem.Z.shape[1]
    theta, tau, steps = smooth_solution(problem, theta, max(m // 2, 8))
    return _pivot(problem, theta, places(problem.margins(theta), tau, m), steps)


def _is_poor(problem: Reduced, reply: Reply) -> bool:
    """Does it violate the conditions in ``reduced.py``, relative to the size of the margins?"""
    if not reply.solved:
        return True
    r = problem.margins(reply.theta)
    taken = problem.y * reply.coef
    share = np.divide(taken, problem.box, out=np.zeros_like(taken), where=problem.box > 0)
    inner = r - share
    natural = np.abs(r - (inner - np.clip(inner, -1.0, 0.0)))
    length = np.sqrt(np.einsum("ij,ij->i", problem.Z, problem.Z))
    floor = rounding_floor(float(length @ np.abs(taken)), float(length.max(initial=0.0)))
    allowed = max(POOR * max(1.0, float(np.abs(r).max(initial=0.0))), min(floor, HOPELESS))
    return float(natural.max(initial=0.0)) > allowed


def _canonical(problem: Reduced, reply: Reply) -> Reply:
    """With no coefficient strictly inside its box b has an interval: its midpoint."""
    size, slack = problem.y * reply.coef, tolerances.AT_BOUND * problem.box
    inside = (size > slack) & (size < problem.box - slack)
    if not problem.fit_intercept or inside.any():
        return reply
    theta = reply.theta.copy()
    theta[-1] = best_intercept(problem, theta[:-1])
    return replace(reply, theta=theta)


def places(r: FloatArray, tau: float, most: int) -> StateArray:
    """Free are the rows with |r| < tau, but no more than ``most``: the nearest."""
    state = np.where(r < 0, LOW, HIGH)
    free = np.flatnonzero(np.abs(r) < tau)
    if len(free) > most:
        free = free[np.argsort(np.abs(r[free]), kind="stable")[:most]]
    state[free] = FREE
    return state


def _pivot(problem: Reduced, theta: FloatArray, state: StateArray, steps: int) -> Reply:
    """Block principal pivoting from these places; not solved if it goes round in circles."""
    start = theta
    least, patience = len(state) + 1, PATIENCE
    most = problem.Z.shape[1] + problem.fit_intercept
    for _ in range(MOST_STEPS):
        steps += 1
        found = _at(problem, state)
        if found is None:
            break
        theta, coef = found
        wanted = _wanted(problem, state, theta, coef)
        moving = np.flatnonzero(wanted != state)
        if not len(moving) and not _balanced(problem, coef):
            # No row is free, and b sits at a knot: the row there has to make up the balance.
            wanted[np.argmin(np.abs(problem.margins(theta)))] = FREE
            moving = np.flatnonzero(wanted != state)
        if not len(moving):
            return Reply(theta, coef, state, True, steps)
        patience = PATIENCE if len(moving) < least else patience - 1
        least = min(least, len(moving))
        if patience == 0:
            break
        state = _moved(problem, state, wanted, theta, most)
    return Reply(start, np.zeros(len(state)), state, False, steps)


def _balanced(problem: Reduced, coef: FloatArray) -> bool:
    """Do all coefficients, with those of the rows that are not here, sum to zero?"""
    total, size = float(coef.sum()), float(np.abs(coef).sum())
    return not problem.fit_intercept or abs(total + problem.beta) <= 1e-12 * (
        size + abs(problem.beta)
    )


def _at(problem: Reduced, state: StateArray) -> tuple[FloatArray, FloatArray] | None:
    """theta and coefficients that go with these places; None if the system is singular."""
    coef = np.where(state == LOW, problem.box * problem.y, 0.0)
    free = np.flatnonzero(state == FREE)
    v = problem.a + coef @ problem.Z
    if not len(free):
        b = best_intercept(problem, v) if problem.fit_intercept else 0.0
        return np.append(v, b), coef
    Z = problem.Z[free]
    target = problem.y[free] - Z @ v
    K = Z @ Z.T
    scale = float(np.trace(K)) / len(free) or 1.0
    if problem.fit_intercept:
        K += scale  # only shifts b, and makes K definite along the ones
    K.flat[:: len(free) + 1] += 1e-13 * scale
    try:
        factor = cho_factor(K, check_finite=False)
    except LinAlgError:
        return None
    total = -problem.beta - float(coef.sum())
    c, b = _bordered(problem, factor, target, total, scale)
    # One correction takes out the small ridge and most of the rounding.
    miss = target - (Z @ (Z.T @ c) + b)
    dc, db = _bordered(problem, factor, miss, total - float(c.sum()), scale)
    coef[free] = c + dc
    theta = np.append(v + Z.T @ coef[free], b + db)
    return (theta, coef) if np.isfinite(theta).all() else None


def _bordered(
    problem: Reduced,
    factor: tuple[FloatArray, bool],
    target: FloatArray,
    total: float,
    scale: float,
) -> tuple[FloatArray, float]:
    """c and b with K c + b = target and sum c = total (K without the constant in its factor)."""
    p = cho_solve(factor, target, check_finite=False)
    if not problem.fit_intercept:
        return p, 0.0
    q = cho_solve(factor, np.ones(len(target)), check_finite=False)
    shifted = (float(p.sum()) - total) / float(q.sum())
    return p - shifted * q, shifted + scale * total


def _wanted(problem: Reduced, state: StateArray, theta: FloatArray, coef: FloatArray) -> StateArray:
    """Where each row would rather be."""
    r = problem.margins(theta)
    near = ROUNDING * max(1.0, float(np.abs(r).max(initial=0.0)))
    size, slack = problem.y * coef, tolerances.AT_BOUND * problem.box * 1e-3
    wanted = state.copy()
    free = state == FREE
    wanted[free & (size > problem.box + slack)] = LOW
    wanted[free & (size < -slack)] = HIGH
    wanted[(state == LOW) & (r > near)] = FREE
    wanted[(state == HIGH) & (r < -near)] = FREE
    return wanted


def _moved(
    problem: Reduced, state: StateArray, wanted: StateArray, theta: FloatArray, most: int
) -> StateArray:
    """The next places; the rows nearest to their knot come in first when there are too many.

    Rows far on the wrong side pass straight through.
    """
    out = wanted.copy()
    entering = np.flatnonzero((wanted == FREE) & (state != FREE))
    staying = int(np.count_nonzero((wanted == FREE) & (state == FREE)))
    room = max(most - staying, 0)
    if len(entering) > room:
        r = np.abs(problem.margins(theta)[entering])
        through = entering[np.argsort(r, kind="stable")[room:]]
        out[through] = HIGH + LOW - state[through]
    return out


# --- the engine of the exact path ----------------------------------------------------------------


def expanded(
    problem: Reduced, theta: FloatArray, factor: float = 10.0, known: FloatArray | None = None
) -> tuple[Problem, FloatArray]:
    """The same problem as an ordinary one, and its feature rows.

    The linear term becomes two rows whose coefficients stay put: their knots are out of reach, by
    ``factor`` times the values at theta.  ``known`` is the kernel matrix of the first rows, if it
    is there already.
    """
    m, total = problem.Z.shape[1], 2.0 * (float(problem.box.sum()) + abs(problem.beta)) + 1e-300
    size = max(total, float(np.linalg.norm(problem.a)))
    rows = [problem.Z, problem.a[None] / size]
    box, y = np.append(problem.box, size), np.append(problem.y, 1.0)
    if problem.fit_intercept:
        rows.append(np.zeros((1, m)))
        box, y = np.append(box, size - problem.beta), np.append(y, -1.0)
    Z = np.concatenate(rows)
    reach = factor * (1.0 + float(np.abs(Z @ theta[:-1] + theta[-1]).max()))
    knots = y.copy()
    knots[len(problem.y) :] *= reach
    slopes = np.column_stack([np.where(y > 0, -1.0, 0.0), np.where(y > 0, 0.0, 1.0)])
    loss = PiecewiseLinear(np.ascontiguousarray(knots[:, None]), slopes)
    return Problem(_kernel_matrix(Z, known), y, box, loss, problem.fit_intercept), Z


def _kernel_matrix(Z: FloatArray, known: FloatArray | None) -> FloatArray:
    if known is None:
        return np.asarray(Z @ Z.T)
    k = len(known)
    K = np.empty((len(Z), len(Z)))
    K[:k, :k] = known
    K[k:] = Z[k:] @ Z.T
    K[:k, k:] = K[k:, :k].T
    return K


def engine_states(problem: Problem, state: StateArray) -> StateArray:
    """Low, free and high in the engine's order, from left to right in u."""
    full = np.full(problem.n, LOW)
    full[: len(state)] = state
    out = np.where(problem.y > 0, full, HIGH - full).astype(np.int8)
    out[problem.weight == 0] = -1
    return out


def _by_engine(problem: Reduced, theta: FloatArray, cancel: NDArray[np.int32]) -> Reply:
    """By the active sets of ``engine/path.py``, from the sides on which theta has the rows."""
    for factor in (10.0, 1e4):
        ordinary, Z = expanded(problem, theta, factor)
        state = engine_states(ordinary, places(problem.margins(theta), 0.0, 0))
        coef = ordinary.weight * np.where(state == np.where(ordinary.y > 0, 0, 2), ordinary.y, 0.0)
        start = Point(1.0, state, coef, ordinary.K @ coef, float(theta[-1]))
        tracker = Tracker(ordinary, cancel)
        point = tracker.polish(tracker.move(start, 1.0))
        n = len(problem.y)
        stayed = bool((np.abs(point.coef[n:]) >= ordinary.weight[n:] * (1 - 1e-9)).all())
        if stayed:
            break
    w = point.coef @ Z
    b = best_intercept(problem, w) if problem.fit_intercept else 0.0
    places_ = np.where(problem.y > 0, point.state[:n], HIGH - point.state[:n]).astype(np.int8)
    solved = bool(stayed and np.isfinite(w).all())
    return Reply(np.append(w, b), point.coef[:n], places_, solved, tracker.solves)
