"""Independent rows that are held on the margin, and where the others then want to be.

Given the places of all hinges, with v = a + sum over the low ones of B_i s_i z_i and those of F
free,

    w = v + Z_F' c,     Z_F w + b = t_F,     sum c = -total,

where total = beta + sum over the low ones of B_i s_i.  That is K c + b = t_F - Z_F v with
K = Z_F Z_F'.  With an intercept K may be singular along the ones (there may be m + 1 free rows in m
dimensions); K + s in place of K only shifts b, and is definite if the rows (z_i, 1) are
independent.  Its inverse is kept, and changed when a row comes or goes; what rounding does to it is
taken out again by correcting the solution with the rows themselves.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor
from scipy.linalg.lapack import dpotri, dpstrf

from ...types import FloatArray, IntArray
from .hinges import Hinges

__all__ = ["Face"]

# A row is dependent on others if less than this share of it is its own.
DEPENDENT = 1e-10
CORRECTIONS = 3
# Free rows that are no further off the margin are on it: w = v + Z_F' c is then as good as c.
OFF_MARGIN = 1e-10
# An inverse that leaves them further off than this is of no use.
LOST = 1e-6


class Face:
    """The free rows (numbers of hinges in the problem), in no particular order.

    ``fresh``: the inverse was made from these rows, not by changes to another.
    """

    def __init__(self, problem: Hinges, rows: IntArray):
        """As many of the rows as are independent."""
        self.problem = problem
        self.shift = _shift(problem.features(rows)) if problem.fit_intercept else 0.0
        self._take(rows)

    def _take(self, rows: IntArray) -> None:
        Z = self.problem.features(rows)
        K = Z @ Z.T + self.shift
        if len(rows):
            # The larger first, so that what is left out is what the others make up.
            _, order, rank, _ = dpstrf(K, tol=DEPENDENT * float(K.diagonal().max()))
            if rank < len(rows):
                kept = np.sort(order[:rank] - 1)
                rows, Z, K = rows[kept], Z[kept], K[np.ix_(kept, kept)]
        self.rows, self.Z = rows, np.ascontiguousarray(Z)
        self.inverse, self.fresh = _inverse(K), True

    def __len__(self) -> int:
        return len(self.rows)

    def refresh(self) -> IntArray:
        """The inverse anew; returns the rows that were passed over.

        What rounding does to an inverse that changes row by row also hides that a row is dependent.
        """
        rows = self.rows
        self._take(rows)
        return np.setdiff1d(rows, self.rows, assume_unique=True)

    def add(self, row: int) -> bool:
        """False if the row depends on those that are there."""
        z = self.problem.features(row)
        products = self.Z @ z + self.shift
        own = float(z @ z) + self.shift
        combined = self.inverse @ products
        miss = products - (self.Z @ (self.Z.T @ combined) + self.shift * float(combined.sum()))
        combined += self.inverse @ miss
        left = own - float(products @ combined)
        if left <= DEPENDENT * own:
            return False
        k = len(self.rows)
        grown = np.empty((k + 1, k + 1))
        np.multiply(combined[:, None], combined / left, out=grown[:k, :k])
        grown[:k, :k] += self.inverse
        grown[:k, k] = grown[k, :k] = combined / -left
        grown[k, k] = 1.0 / left
        self.inverse, self.fresh = grown, False
        self.rows = np.append(self.rows, row)
        self.Z = np.concatenate([self.Z, z[None]])
        return True

    def drop(self, place: int) -> None:
        """Without the row that stands at this place."""
        kept = np.arange(len(self.rows)) != place
        column, own = self.inverse[kept, place], float(self.inverse[place, place])
        self.inverse = self.inverse[np.ix_(kept, kept)]
        self.inverse -= column[:, None] * (column / own)
        self.fresh = False
        self.rows, self.Z = self.rows[kept], self.Z[kept]

    def target(self, v: FloatArray, total: float) -> tuple[FloatArray, FloatArray]:
        """theta and the coefficients of the free rows, of which there is at least one."""
        wanted = self.problem.knot[self.rows] - self.Z @ v
        c, b = self._bordered(wanted, -total)
        for _ in range(CORRECTIONS):
            miss = wanted - (self.Z @ (self.Z.T @ c) + b)
            dc, db = self._bordered(miss, -total - float(c.sum()))
            c, b = c + dc, b + db
        return self.onto(np.append(v + self.Z.T @ c, b)), c

    def step(self, theta: FloatArray, total: float) -> tuple[FloatArray, float, float]:
        """How the coefficients and b are to change where sums say theta, and how far it is off."""
        miss = self.problem.knot[self.rows] - (self.Z @ theta[:-1] + theta[-1])
        return *self._bordered(miss, -total), float(np.abs(miss).max(initial=0.0))

    def holds(self, theta: FloatArray) -> bool:
        """Has what `target` gave the free rows on the margin?"""
        miss = self.problem.knot[self.rows] - (self.Z @ theta[:-1] + theta[-1])
        return bool(np.abs(miss).max(initial=0.0) <= LOST)

    def onto(self, theta: FloatArray, harmless: float = 0.0) -> FloatArray:
        """The nearest point that has the free rows on the margin, if they are off it.

        Where boxes are large v and Z_F' c nearly cancel, and rounding leaves no digit of w; but on
        the margin w is as good as the rows are.  What rows lose that are nearly on it is in units
        of their boxes, so they are put there as well if that moves w by less than ``harmless``.
        """
        wanted = self.problem.knot[self.rows]
        for _ in range(CORRECTIONS):
            miss = wanted - (self.Z @ theta[:-1] + theta[-1])
            near = np.abs(miss).max(initial=0.0) <= OFF_MARGIN
            if near and not harmless:
                break
            q = self.inverse @ miss
            step = self.Z.T @ q
            if near and not np.linalg.norm(step) <= harmless:
                break
            theta = theta + np.append(step, self.shift * float(q.sum()))
        return theta

    def _bordered(self, wanted: FloatArray, total: float) -> tuple[FloatArray, float]:
        """c and b with K c + b = wanted and sum c = total."""
        p = self.inverse @ wanted
        if not self.problem.fit_intercept:
            return p, 0.0
        q = self.inverse.sum(axis=1)
        turned = float(q.sum())  # 0 if rounding has left nothing of the inverse
        shifted = (float(p.sum()) - total) / turned if turned else np.nan
        return p - shifted * q, shifted + self.shift * total


def _shift(Z: FloatArray) -> float:
    """What is added to Z Z': about as much as is in it."""
    square = float(np.einsum("ij,ij->i", Z, Z).mean()) if len(Z) else 0.0
    return square if square > 0.0 else 1.0


def _inverse(K: FloatArray) -> FloatArray:
    """Of a definite matrix; with a little more on its diagonal if rounding wants it."""
    if not len(K):
        return np.zeros((0, 0))
    ridge = 0.0
    while True:
        try:
            factor = cho_factor(K + ridge * np.eye(len(K)), lower=True, check_finite=False)
        except LinAlgError:
            ridge = max(10.0 * ridge, 1e-14 * float(np.trace(K)))
        else:
            return _symmetric(dpotri(factor[0], lower=1)[0])


def _symmetric(lower: FloatArray) -> FloatArray:
    """The whole of a matrix of which the lower triangle is there."""
    out = np.tril(lower)
    out += np.tril(out, -1).T
    return np.ascontiguousarray(out)
