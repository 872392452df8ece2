"""Solutions without a single row, from rows around the margin of the full-data solution.

What is found here solves the problem as long as no row beyond them changes sides; that is for a
pass over all rows to say (``lowrank/lost.py``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...types import FloatArray
from .around import Around
from .press import Leaving, breadth
from .reduced import Reply
from .solve import Prepared

__all__ = ["Nearby"]

# Smoothing at first, of how near the m nearest rows are: the full-data solution is not far, and a
# guess for the solution without the row is nearer.
NEARBY, NEARER = 0.025, 0.006


class Nearby:
    """Solves the problems of some rows around the margin."""

    def __init__(self, around: Around, cancel: NDArray[np.int32]):
        problem = around.problem
        self.around, self.cancel, self.prepared = around, cancel, Prepared(problem)
        self.breadth = breadth(problem.loss.distance(around.u), problem.Z.shape[1])

    def without(
        self, leaving: Leaving, k: int, guess: FloatArray | None = None, tau: float | None = None
    ) -> Reply:
        """The solution without the k-th of these rows; a guess may be off by about ``tau``."""
        problem = self.around.without(leaving, k)
        theta = self.around.theta if guess is None else guess
        if tau is None:
            tau = (NEARBY if guess is None else NEARER) * self.breadth
        return self.prepared.solve(problem, theta, self.cancel, tau)
