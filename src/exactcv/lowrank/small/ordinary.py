"""A problem with a linear term as an ordinary one, for the engine (``engine/``)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...engine.path import Point, Tracker
from ...problem.losses import PiecewiseLinear
from ...problem.problem import Problem
from ...types import FloatArray
from .reduced import Reduced, Reply, StateArray, best_intercept

__all__ = ["by_engine", "engine_states", "expanded", "frame"]


def expanded(
    problem: Reduced, theta: FloatArray, factor: float = 10.0, known: FloatArray | None = None
) -> tuple[Problem, FloatArray]:
    """The same problem as an ordinary one, and its feature rows.

    The linear term becomes two rows whose coefficients stay put: their knots are out of reach, by
    ``factor`` times the values at theta and the other knots.  ``known`` is the kernel matrix of the
    first rows, if it is there already.
    """
    m, total = problem.Z.shape[1], 2.0 * (float(problem.box.sum()) + abs(problem.beta)) + 1e-300
    size = max(total, float(np.linalg.norm(problem.a)))
    rows, more, signs = [problem.Z, problem.a[None] / size], [size], [1.0]
    if problem.fit_intercept:
        rows.append(np.zeros((1, m)))
        more, signs = [size, size - problem.beta], [1.0, -1.0]
    Z, box = np.concatenate(rows), np.append(problem.box, more)
    widest = max(1.0 + float(np.abs(Z @ theta[:-1] + theta[-1]).max()), problem.loss.largest_knot)
    reach = factor * widest
    loss = problem.loss.beside(frame(np.array(signs), reach, problem.loss.n_knots))
    y = np.append(problem.y, signs)
    return Problem(_kernel_matrix(Z, known), y, box, loss, problem.fit_intercept), Z


def frame(sign: FloatArray, reach: float, n_knots: int) -> PiecewiseLinear:
    """Rows with all their knots far to one side, and the slope -sign on this side of them."""
    knots: FloatArray = np.where(sign[:, None] > 0, reach, -reach - n_knots + 1.0) + np.arange(
        n_knots
    )
    slopes = np.linspace(0.0, 1.0, n_knots + 1)
    return PiecewiseLinear(knots, slopes - (sign[:, None] > 0))


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
    """States of the rows, with those of the frame, and of rows that take no part."""
    fixed = np.where(problem.y[len(state) :] > 0, 0, 2 * problem.loss.n_knots)
    out = np.concatenate([state, fixed]).astype(np.int8)
    out[problem.weight == 0] = -1
    return out


def by_engine(problem: Reduced, theta: FloatArray, cancel: NDArray[np.int32]) -> Reply:
    """By the active sets of ``engine/path.py``, from the segments on which theta has the rows."""
    n, u = problem.n, problem.values(theta)
    for factor in (10.0, 1e4):
        ordinary, Z = expanded(problem, theta, factor)
        state = engine_states(ordinary, (2 * problem.loss.passed(u)).astype(np.int8))
        coef = np.append(problem.held(u), (ordinary.weight * ordinary.y)[n:])
        start = Point(1.0, state, coef, ordinary.K @ coef, float(theta[-1]))
        tracker = Tracker(ordinary, cancel)
        point = tracker.polish(tracker.move(start, 1.0))
        stayed = bool((np.abs(point.coef[n:]) >= ordinary.weight[n:] * (1 - 1e-9)).all())
        if stayed:
            break
    w = point.coef @ Z
    b = best_intercept(problem.hinges, w) if problem.fit_intercept else 0.0
    solved = bool(stayed and np.isfinite(w).all())
    return Reply(np.append(w, b), point.coef[:n], point.state[:n], solved, tracker.solves)
