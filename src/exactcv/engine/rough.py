"""Seeded working sets: a rough solution from one nearby, whose states are nearly right.

Block steps (``_core/_active_set.pyx``) need a start that is close.  Steps of a working set are
cheap and never diverge, but crawl in the end.  So these go first (``_core/_rough.pyx``), from the
solution at the last C or of the full data, and stop early.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .._core._rough import RoughSteps
from ..problem.problem import Problem
from ..runtime.threads import Cancelled
from ..types import FloatArray

__all__ = ["WorkingSets"]

# Most rows that are packed together: free rows are to have room.
BLOCK = 2048


class WorkingSets:
    """Working-set steps over the rows of one problem.

    Violations are in units of half the distance between the outermost knots, 1 for the hinge.
    """

    def __init__(self, problem: Problem, levels: FloatArray, cancel: NDArray[np.int32]):
        K_single, scale = problem.K_single
        knots = problem.loss.knots
        self._cancel = cancel
        self._unit = 0.5 * float(np.ptp(knots)) or 1.0
        self._steps = RoughSteps(
            problem.K, K_single, scale, knots, levels, problem.fit_intercept, BLOCK
        )

    def run(
        self,
        C: float,
        state: NDArray[np.int8],
        coef: FloatArray,
        h: FloatArray,
        eps: float,
        max_iter: int,
    ) -> tuple[int, float]:
        """Steps until the violation is at most eps; state and coef move in place.

        ``h`` follows with `settle`, and the next run goes on from here until then.  ``coef`` must
        be feasible.  Returns how many steps, and the violation.
        """
        done, violation = self._steps.run(
            C, state, coef, h, eps * self._unit, max_iter, self._cancel
        )
        if self._cancel[0]:
            raise Cancelled
        return done, violation / self._unit

    def settle(self, coef: FloatArray, h: FloatArray) -> None:
        """Bring h = K c up to date after runs."""
        self._steps.settle(coef, h)
