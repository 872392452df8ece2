"""How much of the work of a run is done, for those who wait.

Entries in a ledger are no measure of it.  In leave-one-out by method "exact" a grid point whose
rows are all solved costs about (measured)

    s (m^2 + m n + 15 n),    s rows with a coefficient, m of them free,

for each round of a row costs a product with the free rows and one with the rows in play.  Labels by
proof cost less, but about in proportion.  Where no row is free, nor at the next larger C, solutions
are those there but for a factor, and only judged.  So the last few values of C may take nine tenths
of the time, and rows without a coefficient take none; nor does a grid point whose solution is that
of a smaller C, for then so are its folds.  The counts are known once the path is there.  Where
folds are solved one by one, each takes about as long as the path on all rows.
"""

from __future__ import annotations

import numpy as np

from ..judge.ledger import Ledger
from ..types import BoolArray, FloatArray

__all__ = ["Work"]

ROUND = 15  # passes over all rows that a row in play costs besides its steps
JUDGED = 3  # those that it costs where only the judge looks at it


class Work:
    """Follows a ledger that method "exact" fills; see `Progress`."""

    def __init__(self, ledger: Ledger):
        self._ledger = ledger
        self._plan: tuple[BoolArray, FloatArray] | None = None

    def fraction(self) -> float:
        """Which part of the work is done."""
        ledger, folds = self._ledger, self._ledger.task.folds
        if np.isnan(ledger.objective).any():  # the path is not complete
            return 0.0
        if not folds.leave_one_out:
            return (ledger.fraction() * len(folds) + 1.0) / (len(folds) + 1.0)
        if self._plan is None:
            self._plan = self._costs()
        in_play, cost = self._plan
        done = (ledger.how != 0) & in_play
        share = done.sum(axis=1) / np.maximum(in_play.sum(axis=1), 1)
        idle = ledger.fraction()
        total = float(cost.sum())
        return float(share @ cost) / total if total > 0 and idle < 1.0 else idle

    def _costs(self) -> tuple[BoolArray, FloatArray]:
        """Which folds have something to solve, and what a grid point costs."""
        ledger, task = self._ledger, self._ledger.task
        size = np.abs(ledger.coef)
        box = task.grid.Cs[:, None] * task.problem.weight
        in_play = size[:, task.folds.pair_rows] > 0.0
        free = ((size > 0.0) & (size < (1.0 - 1e-9) * box)).sum(axis=1)
        n = size.shape[1]
        cost = in_play.sum(axis=1) * (free**2 + free * n + ROUND * n).astype(float)
        order = np.argsort(task.grid.Cs, kind="stable")
        same = (ledger.coef[order[1:]] == ledger.coef[order[:-1]]).all(axis=1)
        cost[order[1:][same]] = 0.0
        all_bound = (free == 0)[order]
        alike = ((size > 0.0)[order[1:]] == (size > 0.0)[order[:-1]]).all(axis=1)
        alike &= all_bound[1:] & all_bound[:-1]
        cost[order[:-1][alike]] *= JUDGED / ROUND
        return in_play, cost
