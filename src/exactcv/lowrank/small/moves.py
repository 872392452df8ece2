"""How far solutions without single rows have moved from the full one (``leave_out.py``).

They hold if no row that stayed where it was has changed sides: those of the small problem that are
not in play are looked at one by one, those beyond it by how far any row can have moved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import tolerances
from ...judge.intercept import intercept_limits
from ...judge.ledger import Ledger
from ...problem.problem import Task
from ...types import FloatArray, IntArray
from ..verdict import Spread
from .beyond import passing
from .reduced import Reduced

__all__ = ["Aside", "Moves"]

# Rows that are looked at together whether they have changed sides.
STRIP = 4096


@dataclass(frozen=True)
class Aside:
    """Rows of the small problem that are not in play: ``rows`` of the whole, with their values."""

    whole: Reduced
    u: FloatArray
    rows: IntArray

    def crossed(self, dtheta: FloatArray, spare: FloatArray) -> NDArray[np.bool_]:
        """Does any of the rows pass a knot when theta moves by each row of ``dtheta``?

        Or when b goes as far to either side as it may (``spare``).
        """
        out = np.zeros(len(dtheta), dtype=bool)
        shift = dtheta[:, -1] * self.whole.fit_intercept
        for start in range(0, self.whole.n, STRIP):
            strip = slice(start, start + STRIP)
            first, last = np.searchsorted(self.rows, [start, start + STRIP])
            rows = self.rows[first:last]
            if 2 * len(rows) >= STRIP:  # a copy of their features would cost more
                moved = (self.whole.Z[strip] @ dtheta[:, :-1].T)[rows - start]
            else:
                moved = self.whole.Z[rows] @ dtheta[:, :-1].T
            u, loss = self.u[rows], self.whole.loss.at(rows)
            moved += shift + u[:, None]
            out |= passing(loss, u, moved, spare).any(axis=0)
        return out


class Moves:
    """How far each left-out solution is from the full one.

    ``moved`` is at least as far as any row's value moves; infinite if a row that is not in play
    changes sides.  ``dtheta`` is how far w and b move, ``spare`` how far b may go besides, which is
    in ``moved``.
    """

    def __init__(self, n_folds: int, Z: FloatArray, n_real: int, spread: Spread, aside: Aside):
        self._Z, self._n_real, self._spread, self._aside = Z, n_real, spread, aside
        self.moved, self.dtheta = np.zeros(n_folds), np.zeros((n_folds, Z.shape[1] + 1))
        self.spare = np.zeros(n_folds)

    def __call__(
        self, ledger: Ledger, folds: IntArray, coef: FloatArray, h: FloatArray, b: FloatArray
    ) -> None:
        full = ledger.coef[0]
        dw, db = (coef - full) @ self._Z, b - ledger.intercept[0]
        # At row i: dw'(z_i - centre) + dw'centre + db
        shift = np.abs(dw @ self._spread.centre + db)
        spare = self._spare(ledger.task, folds, coef, h, b)
        moved = np.linalg.norm(dw, axis=1) * self._spread.radius + shift + spare
        frame = np.abs(coef[:, self._n_real :] - full[self._n_real :])
        moved[(frame > 1e-9 * np.abs(full[self._n_real :])).any(axis=1)] = np.inf
        self.dtheta[folds] = np.column_stack([dw, db])
        self.spare[folds] = spare
        moved[self._aside.crossed(self.dtheta[folds], spare)] = np.inf
        self.moved[folds] = np.maximum(self.moved[folds], moved)

    def _spare(
        self, task: Task, folds: IntArray, coef: FloatArray, h: FloatArray, b: FloatArray
    ) -> FloatArray:
        """``reduced.spare`` of each solution, among the rows in play."""
        problem, out = task.problem, np.zeros(len(folds))
        if not problem.fit_intercept:
            return out
        mine = np.tile(np.arange(problem.n) < self._n_real, (len(folds), 1))
        mine &= problem.weight > 0
        mine[np.arange(len(folds)), [task.folds.left_out[fold][0] for fold in folds]] = False
        levels = problem.loss.coefficient_levels(problem.weight)
        inside, slack = mine.copy(), tolerances.AT_BOUND * problem.weight
        for level in levels.T:
            inside &= np.abs(coef - level) > slack
        for i in np.flatnonzero(~inside.any(axis=1)):
            low, high = intercept_limits(h[i], coef[i], levels, problem.loss, mine[i])
            out[i] = max(high - b[i], b[i] - low, 0.0)
        return out

    def alike(self, folds: IntArray, others: IntArray) -> None:
        """Solutions that are those of others but for equal rows."""
        for part in (self.moved, self.dtheta, self.spare):
            part[folds] = part[others]
