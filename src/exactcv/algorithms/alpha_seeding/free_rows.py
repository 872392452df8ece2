"""The free rows of a ramp (ATO), which come and go one at a time, and the system they solve.

    [ 0   1'   ] [ beta ]     [ -total ]
    [ 1   K_MM ] [ x    ]  =  [ -q_M   ]

Held are the kernel columns of M and the inverse of G_MM = K_MM + t, t the size of K's diagonal with
an intercept (a constant only moves beta, and makes G_MM definite where K_MM need not be) and 0
without.  A row that comes borders the inverse, one that goes is eliminated from it: |M|^2
operations instead of |M|^3 / 3.  Each solution is refined once, and where that shows that updates
have worn the inverse out it is made anew.

A row that depends on those of M (a copy of one of them) is not taken in: while they stay on the
margin so does it, whether its alpha moves or not.  It waits, and known is of which rows of M it is
made, column_w = sum_k x_k column_k.  When row k goes, one that has the largest |x_k| may take its
place; the others that are made of k are then made of that one instead, without a look at the
matrix (data with many copies of a row would have no end of looking).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from ...types import FloatArray, IntArray

__all__ = ["FreeRows"]

# A row whose pivot is smaller than this, relative to the diagonal, depends on the others.
DEPENDENT = 1e-9
# An inverse that leaves more of the right side than this is made anew.
WORN = 1e-6
# Rows of the inverse updated at a time: what fits the cache.
STRIP = 64


class FreeRows:
    """Rows in slots 0 .. m - 1.

    Parameters
    ----------
    which : ndarray of int
        The rows, as positions among the n rows of the ramp; those that depend on others of them
        are left out.
    columns : ndarray of shape (n, m)
        Their kernel columns.
    diagonal : float
        The largest entry of the kernel's diagonal.
    fit_intercept : bool
    """

    def __init__(self, which: IntArray, columns: FloatArray, diagonal: float, fit_intercept: bool):
        self.fit_intercept = fit_intercept
        self._top = diagonal if diagonal > 0 else 1.0
        self._constant = self._top if fit_intercept else 0.0
        G = columns[which] + self._constant
        kept = _independent(G, DEPENDENT * self._top)
        m = self.size = len(kept)
        self._rows = np.zeros(max(16, 2 * m), dtype=np.intp)
        self._columns = np.zeros((len(self._rows), columns.shape[0]))
        self._system = np.zeros((len(self._rows), len(self._rows)))
        self._inverse = np.zeros_like(self._system)
        self._rows[:m] = which[kept]
        self._columns[:m] = columns[:, kept].T
        self._system[:m, :m] = G[np.ix_(kept, kept)]
        self._invert()
        # Rows not taken in: which free rows each is made of, and how much of each.
        self.waiting: dict[int, dict[int, float]] = {}
        others = np.setdiff1d(np.arange(len(which)), kept)
        made_of = self._inverse[:m, :m] @ G[np.ix_(kept, others)]
        for row, x in zip(which[others], made_of.T, strict=True):
            self._wait(int(row), x)

    @property
    def rows(self) -> IntArray:
        return self._rows[: self.size]

    def times(self, x: FloatArray) -> FloatArray:
        """K x for x on the free rows, at all rows of the ramp."""
        return np.asarray(x @ self._columns[: self.size])

    def follow(self, q: FloatArray, total: float) -> tuple[FloatArray, float]:
        """x and beta with  K_MM x + beta = -q_M  and  sum x = -total  (without intercept beta = 0).

        q is given at all rows of the ramp; with an intercept there must be a free row.
        """
        right = np.stack([q[self.rows], np.ones(self.size)])
        P, G = self._inverse[: self.size, : self.size], self._system[: self.size, : self.size]
        found = right @ P
        rest = right - found @ G
        if np.abs(rest).max(initial=0.0) > WORN * np.abs(right).max(initial=1.0):
            self._invert()
            found = right @ P
            rest = right - found @ G
        found += rest @ P
        if not self.fit_intercept:
            return -found[0], 0.0
        shifted = (total - found[0].sum()) / found[1].sum()
        return -found[0] - shifted * found[1], float(shifted - self._constant * total)

    def add(self, row: int, column: FloatArray) -> bool:
        """A row comes: its kernel column, at all rows of the ramp; False if it depends on M."""
        m = self.size
        if m == len(self._rows):
            self._grow()
        g = column[self.rows] + self._constant
        P = self._inverse[:m, :m]
        x = P @ g
        own = float(column[row]) + self._constant
        pivot = own - float(g @ x)
        if not pivot > DEPENDENT * self._top:
            self._wait(row, x)
            return False
        self.waiting.pop(row, None)
        _add_outer(P, x, 1.0 / pivot)
        self._inverse[m, :m] = self._inverse[:m, m] = -x / pivot
        self._inverse[m, m] = 1.0 / pivot
        self._system[m, :m] = self._system[:m, m] = g
        self._system[m, m] = own
        self._rows[m], self._columns[m] = row, column
        self.size += 1
        return True

    def remove(self, row: int) -> None:
        """A row goes; the last one takes its slot."""
        last = self.size - 1
        k = int(np.flatnonzero(self.rows == row)[0])
        P = self._inverse[: self.size, : self.size]
        x = P[k].copy()
        _add_outer(P, x, -1.0 / x[k])
        for matrix in (P, self._system[: self.size, : self.size]):
            matrix[k] = matrix[last]
            matrix[:, k] = matrix[:, last]
        self._rows[k], self._columns[k] = self._rows[last], self._columns[last]
        self.size = last

    def heirs(self, gone: int) -> list[int]:
        """The rows that wait and are made of this one, those that have the most of it first."""
        share = {row: abs(parts[gone]) for row, parts in self.waiting.items() if gone in parts}
        return sorted(share, key=lambda row: (-share[row], row))

    def inherit(self, gone: int, heir: int, parts: dict[int, float]) -> None:
        """``heir``, which was made of ``parts``, has taken the place of ``gone`` in all others."""
        rest = {row: -x / parts[gone] for row, x in parts.items() if row != gone}
        for made_of in self.waiting.values():
            if gone in made_of:
                share = made_of.pop(gone)
                made_of[heir] = share / parts[gone]
                for row, x in rest.items():
                    made_of[row] = made_of.get(row, 0.0) + share * x

    def _wait(self, row: int, x: FloatArray) -> None:
        some = np.abs(x) > DEPENDENT
        self.waiting[row] = dict(zip(self.rows[some].tolist(), x[some].tolist(), strict=True))

    def _invert(self) -> None:
        if not self.size:
            return
        G = self._system[: self.size, : self.size]
        factor, info = lapack.dpotrf(G, lower=1)
        if info == 0:
            lower, info = lapack.dpotri(factor, lower=1)
        if info == 0:
            inverse = np.tril(lower) + np.tril(lower, -1).T
        else:
            inverse = np.linalg.pinv(G, hermitian=True)
        self._inverse[: self.size, : self.size] = inverse

    def _grow(self) -> None:
        more = len(self._rows)
        self._rows = np.pad(self._rows, (0, more))
        self._columns = np.pad(self._columns, ((0, more), (0, 0)))
        self._system = np.pad(self._system, (0, more))
        self._inverse = np.pad(self._inverse, (0, more))


def _independent(G: FloatArray, least: float) -> IntArray:
    """Rows of a positive semidefinite G, by pivoted Cholesky, until no pivot exceeds ``least``."""
    if not len(G):
        return np.zeros(0, dtype=np.intp)
    _, order, rank, _ = lapack.dpstrf(G, tol=least, lower=1)
    return np.sort(order[:rank].astype(np.intp) - 1)


def _add_outer(P: FloatArray, x: FloatArray, factor: float) -> None:
    """P += factor x x', in place."""
    for first in range(0, len(x), STRIP):
        P[first : first + STRIP] += (factor * x[first : first + STRIP, None]) * x
