"""Solutions without a single row, from rows around the margin of the full-data solution.

What is found here solves the problem as long as no row beyond them changes sides; that is for the
pass over all rows to say (``lowrank/solver.py``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...types import FloatArray
from .press import Leaving, breadth
from .reduced import Reduced, Reply
from .solve import Prepared

__all__ = ["Nearby"]

# Smoothing at first, of how near the m nearest rows are: the full-data solution is not far, and a
# guess for the solution without the row is nearer.
NEARBY, NEARER = 0.025, 0.006


class Nearby:
    """The rows around the margin of the full-data solution theta, where they have values u."""

    def __init__(
        self, problem: Reduced, theta: FloatArray, u: FloatArray, cancel: NDArray[np.int32]
    ):
        self.problem, self.theta, self.cancel = problem, theta, cancel
        self.prepared = Prepared(problem)
        self.breadth = breadth(problem.loss.distance(u), problem.Z.shape[1])

    def without(self, leaving: Leaving, k: int, guess: FloatArray | None = None) -> Reply:
        """The solution without the k-th of these rows."""
        problem = self.problem
        box, place = float(leaving.box[k]), int(leaving.place[k])
        if place >= 0:
            boxes = problem.box.copy()
            boxes[place] = max(boxes[place] - box, 0.0)
            problem = replace(problem, box=boxes)
        else:
            coef = float(leaving.coef[k])
            problem = replace(problem, a=problem.a - coef * leaving.Z[k], beta=problem.beta - coef)
        theta, share = (self.theta, NEARBY) if guess is None else (guess, NEARER)
        return self.prepared.solve(problem, theta, self.cancel, share * self.breadth)
