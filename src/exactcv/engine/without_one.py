"""What solutions without one row say of those without another row besides.

Let (f, b) be the solution without row i, u = f + b, and c its coefficients.

1. *Nothing changes.*  If y_j u_j > 1, row j has no coefficient, and without it f stays what it is;
   so does b if some coefficient is strictly inside its box.  The label of row j is right, and that
   of i is the one of plain leave-one-out.
2. *Wrong stays wrong.*  A row moves away from its own side when it is left out (``bounds.py``).
3. *Right stays right* if y_j u_j > |c_j| max_i ||phi_i - phi_j||^2, and the rows at a knot have
   room to take up c_j, so that the intercept need not walk (``bounds.py`` once more).

Each with a margin for what (f, b) may be off by its certificate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from ..judge.intercept import DOUBT
from ..judge.ledger import PROVED, UNCHANGED, Ledger
from ..types import BoolArray, FloatArray
from .bounds import Span

__all__ = ["WithoutOne"]


class WithoutOne:
    """All solutions without one row at one grid point.

    Parameters
    ----------
    ledger : Ledger
        Of leave-one-out of all rows, row j in fold j.
    l : int
    coef : (n, n)
        Row i: the coefficients without row i.

    Attributes
    ----------
    u : (n, n)
        Row i: the values without row i.
    slack : (n,)
        How far they may be from the exact ones; infinite where nothing is known.
    """

    def __init__(self, ledger: Ledger, l: int, coef: FloatArray):
        task = ledger.task
        problem, n = task.problem, task.problem.n
        self.y, self.coef, self.fit_intercept = problem.y, coef, problem.fit_intercept
        self.levels = problem.loss.coefficient_levels(float(task.grid.Cs[l]) * problem.weight)
        self.u = problem.times(coef)
        self.u += (ledger.decision[l] - np.diagonal(self.u))[:, None]
        scale = np.maximum(1.0, np.abs(self.u).max(axis=1))
        # The gap bounds the suboptimality only if the coefficients sum to zero.
        gap = ledger.gap_abs[l, :n] + np.abs(coef.sum(axis=1)) * scale * problem.fit_intercept
        accuracy = np.sqrt(2.0 * gap * float(problem.diagonal.max()))
        kkt = ledger.kkt[l, :n]
        self.slack = 2.0 * accuracy + kkt * scale + tolerances.TIE
        self.slack[~((kkt <= task.tol) & (ledger.gap[l, :n] <= task.tol))] = np.inf

    def beyond(self) -> BoolArray:
        """(i, j): without row i, row j has no coefficient for certain."""
        beyond = self.y * self.u - 1.0 > self.slack[:, None]
        np.fill_diagonal(beyond, False)
        return np.asarray(beyond)

    def settle(self, span: Span, wrong: BoolArray, how: NDArray[np.uint8]) -> None:
        """Enter labels that follow: those of row j without rows i and j, at (i, j)."""
        value, slack = self.y * self.u, self.slack[:, None]
        room, inside = self._room()
        same = self.beyond() & inside
        how[same] = UNCHANGED
        own = np.diagonal(self.u)
        i, j = np.nonzero(same & (np.abs(own) > self.slack)[:, None])
        wrong[j, i], how[j, i] = (self.y * own < 0)[i], UNCHANGED
        worse = (value < -slack) & (how == 0)
        wrong[worse], how[worse] = True, PROVED
        taken = np.abs(self.coef)
        margin = (slack + tolerances.AT_BOUND) * (self.levels[:, 0] - self.levels[:, -1]).sum()
        sure = (value - taken * span.own > slack) & (room > taken + margin) & (how == 0)
        wrong[sure], how[sure] = False, PROVED

    def _room(self) -> tuple[FloatArray, BoolArray]:
        """(i, j): how far other rows at a knot can take up c_j, and whether there are any.

        Counted are rows that are strictly inside their boxes, but for row j itself.
        """
        if not self.fit_intercept:
            return np.full(self.coef.shape, np.inf), np.ones(self.coef.shape, dtype=bool)
        high, low = self.levels[:, 0], self.levels[:, -1]
        margin = DOUBT * tolerances.AT_BOUND * (high - low)
        inside = (self.coef < high - margin) & (self.coef > low + margin)
        np.fill_diagonal(inside, False)
        up, down = np.where(inside, high - self.coef, 0.0), np.where(inside, self.coef - low, 0.0)
        up, down = up.sum(axis=1)[:, None] - up, down.sum(axis=1)[:, None] - down
        return np.where(self.y > 0, up, down), inside.sum(axis=1)[:, None] - inside > 0
