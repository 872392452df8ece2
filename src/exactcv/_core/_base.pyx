"""A solution from which rows are left out, with the table of its derivatives.

As one coefficient c_j changes the solution moves on straight lines; only the rows M at a knot
change their coefficients, only the others their u.  All derivatives stand in one table T, the
system swept on M (with an intercept it also carries the border 1'c = 0):

    i not in M:  du_i = sum_j T_ij dc_j           m in M:  dc_m = sum_j T_mj dc_j       (j not in M)

and the columns of rows in M say what happens when their u is moved.  With the border B of the
other rows and P the inverse of the bordered K_MM

    T_MM = P_MM,    T_oM = B P_.M,    T_Mo = -T_oM',    T_oo = K_oo - B P B'.

The first two are kept; columns of the other kind are made when they are first needed.  Only rows
that can change their state take part, those in M first; all indices are positions in that list.
"""

from libc.math cimport INFINITY, fabs

from scipy.linalg.cython_blas cimport dgemm, dgemv

cimport cython

import numpy as np

cdef enum:
    COLUMN_BYTES = 128_000_000
    LEAST_COLUMNS = 512


@cython.final
cdef class Base:
    """The solution at one C on the rows in play.

    Parameters
    ----------
    K : (n, n)
    rows : (a,) intp
        The rows that may change their state; first the k rows at a knot.
    table : (k, a)
        The columns of T that belong to those, as rows.
    border : (a - k, k)
        Kernel values of the other rows with the k.
    tail : (a - k,)
        With an intercept, what du_i for the other rows owes to the border; else zeros.
    u, c, state, knots, levels
        The solution and the loss on ``rows``; levels at the C in force.
    intercept : bool
    tol : float
        A row has passed its knot when it is so far behind it.
    held : int
        So many columns of other rows are kept at most, or as many as fit if 0; more than the rows
        that may change their place at a time (``_leave_out.MOST_CHANGED``).
    whole : (a - k, a), optional
        The columns of all other rows, as rows.
    """

    def __init__(self, K, rows, table, border, tail, u, c, state, knots, levels, bint intercept,
                 double tol, Py_ssize_t held=0, whole=None):
        self.K, self.rows = K, rows
        self.table, self.border, self.tail = table, border, tail
        self.u, self.c, self.state = u, c, state
        self.knots, self.levels = knots, levels
        self.intercept, self.tol = intercept, tol
        self.k, self.a, self.m = table.shape[0], rows.shape[0], knots.shape[1]
        others = self.a - self.k
        if held == 0:
            held = max(COLUMN_BYTES // (8 * max(self.a, 1)), LEAST_COLUMNS)
        if whole is None:
            self.columns = np.empty((min(others, held), self.a))
            self.slot = np.full(others, -1, dtype=np.intp)
            self.slot_owner = np.full(self.columns.shape[0], -1, dtype=np.intp)
        else:
            self.columns = whole
            self.slot = np.arange(others, dtype=np.intp)
            self.slot_owner = np.arange(others, dtype=np.intp)
        self.pinned = np.zeros(self.a, dtype=np.int8)
        self.wanted = np.empty(self.columns.shape[0], dtype=np.intp)
        cdef Py_ssize_t i
        for i in range(self.a):
            self.scale = max(self.scale, fabs(self.K[self.rows[i], self.rows[i]]))

    cdef const double* column(self, Py_ssize_t i) noexcept nogil:
        """Column i of T; it stays where it is while i is pinned."""
        cdef Py_ssize_t s
        if i < self.k:
            return &self.table[i, 0]
        s = self.slot[i - self.k]
        if s >= 0:
            return &self.columns[s, 0]
        s = self.next_slot
        while self.slot_owner[s] >= 0 and self.pinned[self.slot_owner[s]]:
            s = (s + 1) % self.columns.shape[0]
        if self.slot_owner[s] >= 0:
            self.slot[self.slot_owner[s] - self.k] = -1
        self.slot_owner[s], self.slot[i - self.k] = i, s
        self.next_slot = (s + 1) % self.columns.shape[0]
        self._make_column(i, &self.columns[s, 0])
        return &self.columns[s, 0]

    cdef void _make_column(self, Py_ssize_t i, double* column) noexcept nogil:
        cdef int k = <int>self.k, count = <int>(self.a - self.k), one = 1
        cdef double plus = 1.0
        self._start_column(i, column)
        if k > 0:
            dgemv(b'T', &k, &count, &plus, <double*>&self.border[0, 0], &k, column, &one, &plus,
                  column + self.k, &one)

    cdef void _start_column(self, Py_ssize_t i, double* column) noexcept nogil:
        """All of a column but for the product of the border with its part in M."""
        cdef Py_ssize_t r
        cdef const double* row = &self.K[self.rows[i], 0]
        for r in range(self.k, self.a):
            column[r] = row[self.rows[r]] - self.tail[i - self.k]
        for r in range(self.k):
            column[r] = -self.table[r, i]

    cdef bint has_column(self, Py_ssize_t i) noexcept nogil:
        return i < self.k or self.slot[i - self.k] >= 0

    cdef void want(self, Py_ssize_t i) noexcept nogil:
        """Ask for a column that is not there."""
        if not self.pinned[i] and self.n_wanted < self.wanted.shape[0]:
            self.pinned[i] = 1
            self.wanted[self.n_wanted] = i
            self.n_wanted += 1

    cdef void make_wanted(self) noexcept nogil:
        """Make them all in one product."""
        cdef Py_ssize_t r, s, i, others = self.a - self.k
        cdef int k = <int>self.k, count = <int>others, width = <int>self.a, many
        cdef double one = 1.0
        cdef double* first
        # Slots from ``next_slot`` on, in one piece.
        if self.next_slot + self.n_wanted > self.columns.shape[0]:
            self.next_slot = 0
        for r in range(self.n_wanted):
            i, s = self.wanted[r], self.next_slot + r
            self.pinned[i] = 0
            if self.slot_owner[s] >= 0:
                self.slot[self.slot_owner[s] - self.k] = -1
            self.slot_owner[s], self.slot[i - self.k] = i, s
            self._start_column(i, &self.columns[s, 0])
        if self.n_wanted > 0 and k > 0:
            first, many = &self.columns[self.next_slot, 0], <int>self.n_wanted
            # The members' part holds -x: others += border (-x), BLAS counting columns first.
            dgemm(b'T', b'N', &count, &many, &k, &one, <double*>&self.border[0, 0], &k,
                  first, &width, &one, first + self.k, &width)
        self.next_slot += self.n_wanted
        if self.next_slot >= self.columns.shape[0]:
            self.next_slot = 0
        self.n_wanted = 0

    cdef double box_high(self, Py_ssize_t i, signed char state) noexcept nogil:
        """The largest coefficient of a row at that knot."""
        return self.levels[i, state // 2]

    cdef double box_low(self, Py_ssize_t i, signed char state) noexcept nogil:
        return self.levels[i, state // 2 + 1]

    cdef void limits(self, Py_ssize_t i, signed char state, double* low,
                     double* high) noexcept nogil:
        """Between which knots u may move; rows at a knot do not move and have no limits."""
        cdef Py_ssize_t s = state // 2
        low[0], high[0] = -INFINITY, INFINITY
        if state % 2 == 0:
            if s > 0:
                low[0] = self.knots[i, s - 1]
            if s < self.m:
                high[0] = self.knots[i, s]
