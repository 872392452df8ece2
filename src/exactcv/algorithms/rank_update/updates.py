"""Newton targets from a matrix that was factorised for another set of support vectors.

A *target* is the minimiser of the quadratic that holds on a set S of support vectors, without the
columns J:  f = A theta,  H theta = c A_S' t,  theta_J = 0.  Let H_0 = I + c A_0' A_0 belong to the
set S_0, with target theta_0, f_0.  The sets differ by D (left S_0) and I (joined it): with
U = [sqrt(c) A_D', sqrt(c) A_I', E_J] and signs s = -1 on D, +1 on I,

    H = H_0 + sum_i s_i U_i U_i'.

Writing theta = theta_0 - H_0^-1 U q, the optimality conditions become a system of size
r = |D| + |I| + |J|, which is formula (4) with signed terms for rows and (7) for columns:

    (diag(s, 0) + U' H_0^-1 U) q = [sqrt(c) (f_0 - t)_D,I ;  theta_0,J],
    f = f_0 - (A H_0^-1 U) q.

The two strategies differ in how they get the columns A H_0^-1 U, and by that in price.

**Strategy I** holds the d x d inverse H_0^-1.

**Strategy II** holds the inverse P of the l_sv x l_sv matrix I + c A_0 A_0' (the paper's
S^-1 + c A A'), and uses  H_0^-1 = I - c A_0' P A_0.  For rows of S_0 that gives
A H_0^-1 A_D' = A A_0' P_.D, and the block  -1 + c A_D H_0^-1 A_D'  of the system is -P_DD:
bordering downdates P by (7), for rows that join it grows P by (6).

Both start from a Cholesky factor.  For folds they form the inverse from it, once, because its
columns are what the folds ask for; between the Newton steps of one fit the factor alone serves.
Nothing updated is ever updated again - each fold goes back to the held matrix - so errors do not
pile up; what remains is found by the residual check (``newton_armijo.py``,
``judge/smooth_svm.py``), and then the fold's own matrix is factorised afresh (`Fresh`).
"""

from __future__ import annotations

from math import sqrt
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, blas, cho_factor, cho_solve, lapack

from ...types import BoolArray, FloatArray, IntArray
from .design import Design, plus_identity

__all__ = [
    "Fresh",
    "Held",
    "Leaving",
    "StrategyOne",
    "StrategyTwo",
    "inverse",
    "prefers_two",
    "price_afresh",
    "price_of_updating",
]

NONE = np.zeros(0, dtype=np.intp)


def inverse(M: FloatArray) -> FloatArray:
    """The inverse of a symmetric positive definite matrix, by Cholesky; M is overwritten."""
    return from_factor(cholesky(M), overwrite=True)


def cholesky(M: FloatArray) -> FloatArray:
    """U, upper triangular in Fortran order, with M = U'U (rubbish below); M is overwritten."""
    # A symmetric C-ordered array is its own Fortran-ordered transpose: nothing is copied.
    factor, info = lapack.dpotrf(M.T, lower=0, clean=0, overwrite_a=1)
    if info != 0:
        raise LinAlgError("the matrix is not positive definite to working precision")
    return np.asarray(factor)


def from_factor(factor: FloatArray, overwrite: bool = False) -> FloatArray:
    """(U'U)^-1."""
    upper, info = lapack.dpotri(factor, lower=0, overwrite_c=overwrite)
    if info != 0:
        raise LinAlgError("the matrix is not positive definite to working precision")
    lower = np.tril(upper.T, -1)
    lower += lower.T
    lower.flat[:: len(lower) + 1] = np.diagonal(upper)
    return lower


def triangular(U: FloatArray, M: FloatArray, transposed: int) -> FloatArray:
    """U^-1 M, or U^-T M, for U as `cholesky` gives it."""
    if not M.size:
        return M
    solved = blas.dtrsm(1.0, U, M if M.ndim == 2 else M[:, None], lower=0, trans_a=transposed)
    return np.asarray(solved if M.ndim == 2 else solved[:, 0])


def price_of_updating(design: Design, size: int, new: int, rank: int) -> float:
    """Operations for ``new`` columns of A H_0^-1 U and a system of this rank."""
    return new * 2.0 * size * (size + design.n) + 2.0 / 3.0 * rank**3


def price_afresh(design: Design, n_active: int) -> float:
    """Operations for forming and factorising the smaller matrix."""
    small, large = sorted((n_active, design.d))
    return float(small) ** 2 * (large + small / 3.0)


def prefers_two(design: Design, n_active: int) -> bool:
    """Does the matrix of strategy II take fewer operations to set up?

    The paper's rule, the smaller matrix, but counted: I forms and inverts H; II forms A A_S' for
    all n rows, unless it is at hand, inverts B, and applies the inverse to the rows outside S.
    """
    n, d, s = float(design.n), float(design.d), float(n_active)
    one = d * d * (s + d)
    two = s * s * (s + 2.0 * n) + (0.0 if design.wide else n * s * d)
    return two < one


class Held(Protocol):
    """A factorised matrix and what is solved with it."""

    design: Design
    c: float
    active: BoolArray
    f: FloatArray
    size: int

    def coefficients(self, columns: IntArray) -> FloatArray:
        """theta_0 on these columns."""
        ...

    def row_columns(self, rows: IntArray) -> FloatArray:
        """sqrt(c) A H^-1 A_rows', shape (n, r)."""
        ...

    def unit_columns(self, columns: IntArray) -> tuple[FloatArray, FloatArray]:
        """A H^-1 E_J, shape (n, r), and E_J' H^-1 E_J."""
        ...

    def leaving_block(self, rows: IntArray, F: FloatArray) -> FloatArray:
        """-1 + c A_D H^-1 A_D' for rows of S_0 whose `row_columns` are F."""
        ...

    def leaving_entries(self, one: IntArray, other: IntArray, found: FloatArray) -> FloatArray:
        """The same for single pairs of rows of S_0, from c A H^-1 A' for them."""
        ...

    def solve(self, G: FloatArray) -> FloatArray:
        """H^-1 g for each row g of G."""
        ...

    def apply(self, R: FloatArray) -> FloatArray:
        """A H^-1 A_S' rho_S for each row rho of R, with S = S_0."""
        ...


class StrategyOne:
    """The d x d matrix H = I + c A_S' A_S: its inverse, or its factor if not ``whole``."""

    def __init__(self, design: Design, c: float, active: BoolArray, whole: bool = True):
        self.design, self.c, self.active = design, c, active
        self.size = design.d
        self.factor = cholesky(design.hessian(c, active))
        self.inverse = from_factor(self.factor, overwrite=True) if whole else None
        self.theta = self._times(c * (design.A[active].T @ design.t[active]))
        self.f = design.A @ self.theta

    def _times(self, M: FloatArray) -> FloatArray:
        """H^-1 M."""
        if self.inverse is not None:
            return np.asarray(self.inverse @ M)
        return triangular(self.factor, triangular(self.factor, M, 1), 0)

    def coefficients(self, columns: IntArray) -> FloatArray:
        return self.theta[columns]

    def row_columns(self, rows: IntArray) -> FloatArray:
        A = self.design.A
        columns: FloatArray = A @ (sqrt(self.c) * self._times(A[rows].T))
        return columns

    def unit_columns(self, columns: IntArray) -> tuple[FloatArray, FloatArray]:
        if self.inverse is None:
            taken = self._times(np.eye(self.size)[:, columns])
        else:
            taken = self.inverse[:, columns]
        return self.design.A @ taken, taken[columns]

    def leaving_block(self, rows: IntArray, F: FloatArray) -> FloatArray:
        block: FloatArray = sqrt(self.c) * F[rows]
        block.flat[:: len(rows) + 1] -= 1.0
        return block

    def leaving_entries(self, one: IntArray, other: IntArray, found: FloatArray) -> FloatArray:
        return np.asarray(found - (one == other))

    def solve(self, G: FloatArray) -> FloatArray:
        return np.asarray(self._times(G.T).T)

    def apply(self, R: FloatArray) -> FloatArray:
        A, S = self.design.A, self.active
        return np.asarray(self.solve(R[:, S] @ A[S]) @ A.T)


class StrategyTwo:
    """The l_sv x l_sv matrix B = I + c A_S A_S' = U'U: its factor and, if ``whole``, inverse P.

    With V = U^-T A_S A_N' and T = P A_S A_N' for the rows N outside S, most of what is asked for
    is there already or a difference of the right kind:

        A_S H^-1 A_S' = (I - P) / c       A_S H^-1 A_N' = T      A_N H^-1 A_N' = A_N A_N' - c V'V
        A_S H^-1      = P A_S                                    A_N H^-1      = A_N - c V' U^-T A_S

    P itself serves for its entries only.  A product A_N A_S' P A_S A_N' with an explicit inverse
    loses eps ||B||^2, by triangular solves eps ||B||: at c = 1e3 and 700 rows that decides.
    """

    def __init__(self, design: Design, c: float, active: BoolArray, whole: bool = True):
        self.design, self.c, self.active, self.whole = design, c, active, whole
        self.rows, self.rest = np.flatnonzero(active), np.flatnonzero(~active)
        self.size = len(self.rows)
        self.place = np.empty(design.n, dtype=np.intp)  # among the rows, or among the rest
        self.place[self.rows] = np.arange(self.size)
        self.place[self.rest] = np.arange(len(self.rest))
        self.across = design.gram(self.rows)  # A A_S'
        B = plus_identity(c * self.across[self.rows])
        self.factor = cholesky(B) if self.size else B
        if whole:
            self.inverse = from_factor(self.factor) if self.size else B
            self.V = self._half(self.across[self.rest].T)
            self.T = self._other_half(self.V)
        self.alpha = c * self._other_half(self._half(design.t[self.rows]))
        self.f = self._spread(design.t[self.rows] - self.alpha / c, self._rest(self.alpha))

    def coefficients(self, columns: IntArray) -> FloatArray:
        found: FloatArray = self.alpha @ self.design.A[np.ix_(self.rows, columns)]
        return found

    def row_columns(self, rows: IntArray) -> FloatArray:
        inside, root = self.active[rows], sqrt(self.c)
        columns = np.empty((self.design.n, len(rows)))
        columns[:, inside] = self._leaving(self.place[rows[inside]])
        if not inside.all():
            columns[:, ~inside] = self._joining(self.place[rows[~inside]])
        columns *= root
        return columns

    def _leaving(self, places: IntArray) -> FloatArray:
        """A H^-1 A_D'."""
        entries = (places, np.arange(len(places)))
        if self.whole:
            inner, others = self.inverse[:, places], self.T[places].T
        else:
            unit = np.zeros((self.size, len(places)))
            unit[entries] = 1.0
            inner = self._other_half(self._half(unit))
            others = self._rest(inner)
        among = inner / -self.c
        among[entries] += 1.0 / self.c
        return self._spread(among, others)

    def _joining(self, places: IntArray) -> FloatArray:
        """A H^-1 A_I'."""
        A = self.design.gram(self.rest[places])[self.rest]
        if self.whole:
            return self._spread(self.T[:, places], A - self.c * (self.V.T @ self.V[:, places]))
        inner = self._other_half(self._half(self.across[self.rest[places]].T))
        return self._spread(inner, A - self.c * self._rest(inner))

    def unit_columns(self, columns: IntArray) -> tuple[FloatArray, FloatArray]:
        A = self.design.A[:, columns]
        half = self._half(A[self.rows])
        corner = -self.c * (half.T @ half)
        corner.flat[:: len(columns) + 1] += 1.0
        inner = self._other_half(half)
        others = self.V.T @ half if self.whole else self._rest(inner)
        return self._spread(inner, A[self.rest] - self.c * others), corner

    def leaving_block(self, rows: IntArray, F: FloatArray) -> FloatArray:
        where = self.place[rows]
        if self.whole:
            return -self.inverse[np.ix_(where, where)]
        block: FloatArray = sqrt(self.c) * F[rows]
        block.flat[:: len(rows) + 1] -= 1.0
        return block

    def leaving_entries(self, one: IntArray, other: IntArray, found: FloatArray) -> FloatArray:
        # What is read at the places of rows outside S is not used.
        one, other = (np.where(self.active[x], self.place[x], 0) for x in (one, other))
        return np.asarray(-self.inverse[one, other])

    def solve(self, G: FloatArray) -> FloatArray:
        A = self.design.A[self.rows]
        inner = self._other_half(self._half((G @ A.T).T))
        return np.asarray(G - self.c * (inner.T @ A))

    def apply(self, R: FloatArray) -> FloatArray:
        # (I - c A_S' P A_S) A_S' = A_S' P: no difference of large numbers.
        inner = self._other_half(self._half(R[:, self.rows].T))
        return np.asarray(inner.T @ self.across.T)

    def _half(self, M: FloatArray) -> FloatArray:
        """U^-T M."""
        return triangular(self.factor, M, 1)

    def _other_half(self, M: FloatArray) -> FloatArray:
        """U^-1 M."""
        return triangular(self.factor, M, 0)

    def _rest(self, inner: FloatArray) -> FloatArray:
        """A_N A_S' times ``inner``."""
        found: FloatArray = self.across[self.rest] @ inner
        return found

    def _spread(self, inside: FloatArray, others: FloatArray) -> FloatArray:
        """Values for the rows S, and for the others, in their places."""
        found = np.empty((self.design.n, *inside.shape[1:]))
        found[self.rows], found[self.rest] = inside, others
        return found


class Leaving:
    """Targets of one problem that differs from the held one by few rows and columns.

    Columns of A H_0^-1 U are fetched when a row first crosses over, and kept.

    Parameters
    ----------
    held : Held
    dropped : ndarray of int
        The columns J.
    rows : ndarray of int
        Rows whose columns are given in ``F``; others are fetched.
    F, unit, corner : ndarray
        ``held.row_columns(rows)`` and ``held.unit_columns(dropped)``, if they are known.
    """

    def __init__(
        self,
        held: Held,
        dropped: IntArray = NONE,
        rows: IntArray = NONE,
        F: FloatArray | None = None,
        unit: FloatArray | None = None,
        corner: FloatArray | None = None,
    ):
        self.held, self.dropped = held, dropped
        self.F = held.row_columns(rows) if F is None else F
        self.place = {int(row): k for k, row in enumerate(rows)}
        if unit is None or corner is None:
            unit, corner = held.unit_columns(dropped)
        self.unit, self.corner = unit, corner
        self.lost = held.coefficients(dropped)

    def rank(self, active: BoolArray) -> int:
        """r: the size of the system for these support vectors."""
        return int(np.count_nonzero(active != self.held.active)) + len(self.dropped)

    def price(self, active: BoolArray) -> float:
        """Operations that `target` would take."""
        changed = np.flatnonzero(active != self.held.active).tolist()
        new = sum(row not in self.place for row in changed)
        rank = len(changed) + len(self.dropped)
        return price_of_updating(self.held.design, self.held.size, new, rank)

    def target(self, active: BoolArray) -> FloatArray:
        """f at the minimiser of the quadratic on ``active``."""
        held = self.held
        changed = np.flatnonzero(active != held.active)
        if len(changed) + len(self.dropped) == 0:
            return held.f
        F = self._columns(changed)
        right = sqrt(held.c) * (held.f - held.design.t)[changed]
        q = self._solve_small(changed, F, right, self.lost)
        f: FloatArray = held.f - F @ q[: len(changed)]
        if len(self.dropped):
            f -= self.unit @ q[len(changed) :]
        return f

    def taken(self, active: BoolArray, solved: FloatArray) -> FloatArray:
        """U z, where H^-1 g = H_0^-1 (g - U z), from ``solved`` = H_0^-1 g."""
        held, root = self.held, sqrt(self.held.c)
        changed = np.flatnonzero(active != held.active)
        F, rows = self._columns(changed), held.design.A[changed]
        q = self._solve_small(changed, F, root * (rows @ solved), solved[self.dropped])
        taken: FloatArray = root * (q[: len(changed)] @ rows)
        taken[self.dropped] += q[len(changed) :]
        return taken

    def correct(self, active: BoolArray, rho: FloatArray, applied: FloatArray) -> FloatArray:
        """(I + c A_S A_S')^-1 rho = rho - c A_S H^-1 A_S' rho, from ``held.apply(rho)``.

        What was applied lacks the rows that have joined S_0.
        """
        held, root = self.held, sqrt(self.held.c)
        changed = np.flatnonzero(active != held.active)
        F = self._columns(changed)
        joined = np.flatnonzero(active[changed])
        values = applied + F[:, joined] @ (rho[changed[joined]] / root)
        if len(changed) + len(self.dropped):
            q = self._solve_small(changed, F, root * values[changed], self.unit.T @ rho)
            values -= F @ q[: len(changed)] + self.unit @ q[len(changed) :]
        return np.where(active, rho - held.c * values, 0.0)

    def _solve_small(
        self, changed: IntArray, F: FloatArray, right: FloatArray, right_units: FloatArray
    ) -> FloatArray:
        """The system of size r."""
        held, r, root = self.held, len(changed), sqrt(self.held.c)
        system = np.empty((r + len(self.dropped),) * 2)
        system[:r, :r] = root * F[changed]
        system.flat[: r * len(system) : len(system) + 1] += 1.0
        gone = np.flatnonzero(held.active[changed])
        if len(gone):
            system[np.ix_(gone, gone)] = held.leaving_block(changed[gone], F[:, gone])
        system[:r, r:] = root * self.unit[changed]
        system[r:, :r] = system[:r, r:].T
        system[r:, r:] = self.corner
        return np.asarray(np.linalg.solve(system, np.concatenate([right, right_units])))

    def _columns(self, rows: IntArray) -> FloatArray:
        new = np.array([row for row in rows.tolist() if row not in self.place], dtype=np.intp)
        if len(new):
            first = self.F.shape[1]
            self.place |= {int(row): first + k for k, row in enumerate(new)}
            self.F = np.hstack([self.F, self.held.row_columns(new)])
        where = [self.place[row] for row in rows.tolist()]
        return self.F[:, where]


class Fresh:
    """One problem by factorising its own matrix, the smaller of the two, for each set."""

    def __init__(self, design: Design, c: float, dropped: IntArray = NONE):
        self.design, self.c, self.dropped = design, c, dropped
        self.active: BoolArray | None = None

    def target(self, active: BoolArray) -> FloatArray:
        """f at the minimiser of the quadratic on ``active``."""
        self._factorise(active)
        rows, c, t = self.rows, self.c, self.design.t[active]
        if self.dual:
            x = c * (rows.T @ cho_solve(self.factor, t, check_finite=False))
        else:
            x = cho_solve(self.factor, c * (rows.T @ t), check_finite=False)
        if not len(self.dropped):
            return np.asarray(self.design.A @ x)
        return np.asarray(self.design.A[:, self.kept] @ x)

    def solve(self, active: BoolArray, g: FloatArray) -> FloatArray:
        """H^-1 g within the columns that are kept."""
        self._factorise(active)
        x, inside = np.zeros_like(g), g[self.kept]
        if self.dual:
            inner = cho_solve(self.factor, self.rows @ inside, check_finite=False)
            x[self.kept] = inside - self.c * (self.rows.T @ inner)
        else:
            x[self.kept] = cho_solve(self.factor, inside, check_finite=False)
        return x

    def correct(self, active: BoolArray, rho: FloatArray) -> FloatArray:
        """(I + c A_S A_S')^-1 rho."""
        self._factorise(active)
        delta, inside = np.zeros_like(rho), rho[active]
        if self.dual:
            delta[active] = cho_solve(self.factor, inside, check_finite=False)
        else:
            x = cho_solve(self.factor, self.rows.T @ inside, check_finite=False)
            delta[active] = inside - self.c * (self.rows @ x)
        return delta

    def _factorise(self, active: BoolArray) -> None:
        if self.active is not None and np.array_equal(active, self.active):
            return
        A, self.active = self.design.A, active
        self.kept = np.ones(self.design.d, dtype=bool)
        self.kept[self.dropped] = False
        self.rows = A[np.ix_(active, self.kept)] if len(self.dropped) else A[active]
        s, d = self.rows.shape
        self.dual = s < d
        M = self.rows @ self.rows.T if self.dual else self.rows.T @ self.rows
        M = plus_identity(self.c * M)
        self.factor = cho_factor(M, lower=True, overwrite_a=True, check_finite=False)
