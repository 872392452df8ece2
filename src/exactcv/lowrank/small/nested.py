"""Small problems with more rows than the engine should see.

The engine (``pivot.py``) works on the kernel matrix of its rows, and only those that end on the
margin or change sides matter to it: they are the ones nearest to the margin, if the guess is good.
So it gets the nearest rows alone.  The others join the linear term, each on the side where the
guess has it, and afterwards all of them are looked at: if none has changed sides, the solution is
that of the whole problem.  Rows that have are added at the next attempt.

If the guess is too far off for that, smoothing (``continuation.py``), whose cost is linear in the
number of rows, makes a better one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...types import FloatArray, IntArray
from .continuation import smooth_solution
from .reduced import FREE, HIGH, LOW, Reduced, Reply

__all__ = ["fewest_rows", "solve_nested"]

ATTEMPTS = 8
# Rows for the engine: so many for each dimension (there are rarely more free rows than
# dimensions), and no fewer than that.
PER_DIMENSION, FEWEST = 4, 800

Inner = Callable[[Reduced, FloatArray], Reply]


def fewest_rows(m: int) -> int:
    """Rows near the margin that the engine gets in m dimensions."""
    return max(PER_DIMENSION * m, FEWEST)


def solve_nested(problem: Reduced, theta: FloatArray, inner: Inner) -> Reply | None:
    """The solution from a guess at theta; None if rows keep changing sides.

    ``inner`` solves problems with few rows.
    """
    size = fewest_rows(problem.Z.shape[1])
    r = problem.margins(theta)
    crossed = np.zeros(0, dtype=np.intp)
    steps, smoothed = 0, False
    for _ in range(ATTEMPTS):
        kept = np.union1d(np.argpartition(np.abs(r), size)[:size], crossed)
        reply = inner(problem.only(kept, _at_bounds(problem, r)), theta)
        steps += reply.steps
        moved = problem.margins(reply.theta)
        aside = np.ones(len(r), dtype=bool)
        aside[kept] = False
        crossed = np.flatnonzero(aside & ((moved < 0) != (r < 0)))
        if reply.solved and not len(crossed):
            return _whole(problem, r, kept, reply, steps)
        if not smoothed and (len(crossed) > size // 2 or not reply.solved):
            theta, _, taken = smooth_solution(problem, theta, size // 2)
            r, crossed, smoothed = problem.margins(theta), crossed[:0], True
            steps += taken
        else:
            theta, r = reply.theta, moved
            crossed = np.union1d(crossed, kept[reply.state == FREE])
    return None


def _at_bounds(problem: Reduced, r: FloatArray) -> FloatArray:
    """The coefficients that go with margins r, none of them zero."""
    return np.where(r < 0, problem.box * problem.y, 0.0)


def _whole(problem: Reduced, r: FloatArray, kept: IntArray, reply: Reply, steps: int) -> Reply:
    """The reply for the kept rows as one for all."""
    state = np.where(r < 0, LOW, HIGH)
    coef = _at_bounds(problem, r)
    state[kept], coef[kept] = reply.state, reply.coef
    return Reply(reply.theta, coef, state, True, steps)
