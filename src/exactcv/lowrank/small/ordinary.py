"""A problem with a linear term as an ordinary one, for the engine (``engine/``)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...engine.path import Point, Tracker
from ...problem.losses import PiecewiseLinear
from ...problem.problem import Problem
from ...types import FloatArray
from .reduced import HIGH, LOW, Reduced, Reply, StateArray, best_intercept

__all__ = ["by_engine", "engine_states", "expanded"]


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


def by_engine(problem: Reduced, theta: FloatArray, cancel: NDArray[np.int32]) -> Reply:
    """By the active sets of ``engine/path.py``, from the sides on which theta has the rows."""
    for factor in (10.0, 1e4):
        ordinary, Z = expanded(problem, theta, factor)
        state = engine_states(ordinary, np.where(problem.margins(theta) < 0, LOW, HIGH))
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
