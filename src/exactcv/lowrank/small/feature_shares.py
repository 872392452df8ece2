"""``engine/shares.py`` for rows with features, from the small problem of a full-data solution.

All free rows are in the small problem; the rows that are left out need not be.  Equal rows share as
one, a *site*: whichever of them is left out, the others have the room of all but the largest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...engine import shares as engine
from ...types import FloatArray, IntArray
from ..solver import Solved
from ..verdict import Spread, accuracy
from .sites import Sites, sites_of

__all__ = ["Shares"]


class Shares:
    """Proofs for rows with a coefficient, from one full-data solution.

    ``walked`` is how far b walks at most.
    """

    def __init__(self, solved: Solved, spread: Spread, walked: float):
        problem = solved.problem
        free = np.flatnonzero(solved.free)
        sites = sites_of(problem.Z[free], problem.loss.at(free))
        alone = np.bincount(sites.of, minlength=len(sites.first)) == 1
        self.spread, self.walked = spread, walked
        self.place = np.full(len(solved.state), -1, dtype=np.intp)
        self.place[free] = np.where(alone[sites.of], sites.of, -1)
        self.Z, coef = problem.Z[free[sites.first]], solved.coef[free]
        levels = problem.loss.at(free).coefficient_levels(problem.box[free])
        knot = solved.state[free] // 2  # between this level and the next
        high, low = (levels[np.arange(len(free)), knot + side] for side in (0, 1))
        # What the solution at hand lacks in exactness.
        v = problem.a + solved.coef @ problem.Z
        gap = float(problem.box[free] @ solved.distance[free])
        if spread.fit_intercept:
            total = problem.beta + float(solved.coef.sum())
            gap += abs(total * float(solved.theta[-1]))
        self.slack = accuracy(solved, spread)
        self._engine = engine.Shares(
            self.Z @ self.Z.T,
            -_room(sites, np.maximum(coef - low, 0.0), alone),
            _room(sites, np.maximum(high - coef, 0.0), alone),
            spread.fit_intercept,
            gap,
            float(np.linalg.norm(solved.theta[:-1] - v)),
        )

    def _rows(self, Z: FloatArray, coef: FloatArray, place: IntArray) -> engine.Leaving:
        own = np.einsum("ij,ij->i", Z, Z)
        return engine.Leaving(coef, own, place, lambda some, free: Z[some] @ self.Z[free].T)

    def reach(self, Z: FloatArray, coef: FloatArray) -> float:
        """How far any row's value can move when one of these, none of them free, is left out."""
        moved = self._engine.moves(self._rows(Z, coef, np.full(len(coef), -1)))
        spans = 2.0 if self.spread.fit_intercept else 1.0
        return float(moved.max(initial=0.0)) * spans * self.spread.radius + self.walked

    def prove(
        self, Z: FloatArray, coef: FloatArray, value: FloatArray, place: IntArray
    ) -> NDArray[np.bool_]:
        """Which of these rows, with y u = ``value``, are on the right side when left out.

        ``place`` is where they are among the sites of the free rows if they are alone there, or -1
        (``self.place`` has it for the rows of the small problem).
        """
        return self._engine.prove(self._rows(Z, coef, place), value - self.slack)


def _room(sites: Sites, room: FloatArray, alone: NDArray[np.bool_]) -> FloatArray:
    """The room of sites: of several rows that of all but one, whichever it is."""
    largest = np.zeros(len(sites.first))
    np.maximum.at(largest, sites.of, room)
    return sites.total(room) - np.where(alone, 0.0, largest)
