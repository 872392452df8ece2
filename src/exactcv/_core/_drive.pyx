"""Leave one row out event by event: its coefficient is driven to its end, others as they come.

A row that enters or leaves M is one pivot of the table T (``_base.pyx``).  T itself is never
formed: the columns that are needed come from the table of the full-data solution (shared by all
rows that are left out) and the few pivots made since.

Slower than the rounds of ``_leave_out.pyx``, but it cannot go round in circles, and it knows what
to do when the last row leaves M, or when a row that depends on M is to enter it.
"""

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy

from scipy.linalg.cython_blas cimport daxpy

cimport cython

import numpy as np

from exactcv._core._base cimport Base

cdef extern from "vector.h" nogil:
    Py_ssize_t exactcv_outside(
        const double *value, const double *moved, double step, const double *low,
        const double *high, double tol, Py_ssize_t n, Py_ssize_t *found)

cdef enum:
    MOST_PIVOTS = 96

# Smaller pivots, relative to the diagonal of K, mean that a row depends on those in M.
cdef double SMALL_PIVOT = 1e-9

# A member that moves less than this, for a unit of the row that depends on it, has no part in it.
cdef double LEAST_SHARE = 1e-7


@cython.final
cdef class Drive:
    """The moving solution of one drive after the other, all from the same base."""

    def __init__(self, Base base):
        self.base = base
        self.a = base.a
        moving = np.zeros((7, self.a))
        self.u, self.c, self.low, self.high = moving[0], moving[1], moving[2], moving[3]
        self.base_low, self.base_high, self.direction = moving[4], moving[5], moving[6]
        self.state = np.empty(self.a, dtype=np.int8)
        self.members = np.empty(self.a, dtype=np.intp)
        self.crossing = np.empty(self.a, dtype=np.intp)
        self.D = np.empty((MOST_PIVOTS, self.a))
        self.index = np.empty(MOST_PIVOTS, dtype=np.intp)
        self.paired = np.empty(MOST_PIVOTS, dtype=np.int8)
        self.scratch = np.empty((2, self.a))
        cdef Py_ssize_t i
        for i in range(self.a):
            base.limits(i, base.state[i], &self.base_low[i], &self.base_high[i])

    cdef signed char run(self, Py_ssize_t j, double taken, const double* column) noexcept nogil:
        """Take ``taken`` away from the coefficient of row j; c, state and u_j are left here.

        ``column`` is its column of T if it is not in M; j = -1 if it is not among the rows.
        """
        cdef double left = fabs(taken)
        cdef double sign = -1.0 if taken > 0 else 1.0
        cdef Py_ssize_t who
        cdef int side
        cdef double step
        cdef signed char outcome
        self._reset()
        if j >= 0:
            self.low[j], self.high[j] = -INFINITY, INFINITY
        if j >= 0 and j < self.base.k:
            outcome = self._release(j, sign)
            if outcome != DONE:
                return outcome
        else:
            memcpy(&self.direction[0], column, self.a * sizeof(double))
        while True:
            step = self._first_event(sign, left, j, &who, &side)
            self._advance(sign * step)
            left -= step
            if who < 0:
                return DONE
            self.events += 1
            if self.n_pivots > MOST_PIVOTS - 3:
                return TOO_LONG
            if side == 0:
                outcome = self._member_leaves(who, sign, j)
            else:
                outcome = self._row_enters(who, side)
            if outcome != DONE:
                return outcome

    cdef void _reset(self) noexcept nogil:
        cdef size_t bytes = self.a * sizeof(double)
        cdef Py_ssize_t i
        memcpy(&self.u[0], &self.base.u[0], bytes)
        memcpy(&self.c[0], &self.base.c[0], bytes)
        memcpy(&self.low[0], &self.base_low[0], bytes)
        memcpy(&self.high[0], &self.base_high[0], bytes)
        memcpy(&self.state[0], &self.base.state[0], self.a)
        self.size = self.base.k
        for i in range(self.size):
            self.members[i] = i
        self.n_pivots = 0

    cdef double _first_event(self, double sign, double left, Py_ssize_t j, Py_ssize_t* who,
                             int* side) noexcept nogil:
        """How far c_j can go before a row reaches a knot (side +-1) or a member a level (0)."""
        cdef Py_ssize_t i, r, count
        cdef double x, t
        cdef double reach = sign * left
        cdef double best = left
        who[0] = -1
        side[0] = 0
        count = exactcv_outside(&self.u[0], &self.direction[0], reach, &self.low[0], &self.high[0],
                                self.base.tol, self.a, &self.crossing[0])
        for r in range(count):
            i = self.crossing[r]
            x = sign * self.direction[i]
            # Rounding may have left a row behind its knot: it stays there if it moves back.
            if x > 0 and self.u[i] + left * x > self.high[i]:
                t = max((self.high[i] - self.u[i]) / x, 0.0)
            elif x < 0 and self.u[i] + left * x < self.low[i]:
                t = max((self.low[i] - self.u[i]) / x, 0.0)
            else:
                continue
            if t < best:
                best, who[0], side[0] = t, i, 1 if x > 0 else -1
        for r in range(self.size):
            i = self.members[r]
            x = self.c[i] + reach * self.direction[i]
            if x > self._box_high(i):
                t = (self._box_high(i) - self.c[i]) / (sign * self.direction[i])
            elif x < self._box_low(i):
                t = (self._box_low(i) - self.c[i]) / (sign * self.direction[i])
            else:
                continue
            # A member that arrives just as the drive ends has arrived: no event.
            if t < best * (1.0 - 1e-12):
                best, who[0], side[0] = max(t, 0.0), i, 0
        return best

    cdef void _advance(self, double t) noexcept nogil:
        cdef int a = <int>self.a
        cdef int one = 1
        cdef Py_ssize_t r, i
        daxpy(&a, &t, &self.direction[0], &one, &self.u[0], &one)
        for r in range(self.size):
            i = self.members[r]
            self.c[i] += t * self.direction[i]
            self.c[i] = min(max(self.c[i], self._box_low(i)), self._box_high(i))
            self.u[i] = self.base.knots[i, self.state[i] // 2]

    cdef double _box_high(self, Py_ssize_t i) noexcept nogil:
        return self.base.box_high(i, self.state[i])

    cdef double _box_low(self, Py_ssize_t i) noexcept nogil:
        return self.base.box_low(i, self.state[i])

    cdef void _set_state(self, Py_ssize_t i, signed char state) noexcept nogil:
        """Change a row's place and the list of members."""
        cdef Py_ssize_t r
        if self.state[i] % 2 == 1:
            for r in range(self.size):
                if self.members[r] == i:
                    self.size -= 1
                    self.members[r] = self.members[self.size]
                    break
        if state % 2 == 1:
            self.members[self.size] = i
            self.size += 1
            self.u[i] = self.base.knots[i, state // 2]
        self.state[i] = state
        self.base.limits(i, state, &self.low[i], &self.high[i])

    # -- events ---------------------------------------------------------------------------------

    cdef signed char _release(self, Py_ssize_t j, double sign) noexcept nogil:
        """Row j itself is a member: it leaves M before it is driven."""
        cdef signed char outcome = DONE
        cdef double c = self.c[j]
        if self.base.intercept and self.size == 1:
            outcome = self._swap_last(j, self.state[j] + 1, sign, j)
        else:
            self._column(j, &self.scratch[0, 0])
            if not self.scratch[0, j] > 0:
                return SINGULAR
            self._set_state(j, self.state[j] + 1)
            self._pivot(j, &self.scratch[0, 0])
        self.c[j] = c
        self.low[j], self.high[j] = -INFINITY, INFINITY
        self._column(j, &self.direction[0])
        return outcome

    cdef signed char _member_leaves(self, Py_ssize_t i, double sign,
                                    Py_ssize_t j) noexcept nogil:
        cdef double* column = &self.scratch[0, 0]
        cdef signed char state = self.state[i]
        if sign * self.direction[i] > 0:
            self.c[i] = self._box_high(i)
            state -= 1
        else:
            self.c[i] = self._box_low(i)
            state += 1
        if self.base.intercept and self.size == 1:
            return self._swap_last(i, state, sign, j)
        self._column(i, column)
        if not column[i] > 0:
            return SINGULAR
        self._set_state(i, state)
        self._pivot(i, column)
        return DONE

    cdef signed char _swap_last(self, Py_ssize_t i, signed char state, double sign,
                                Py_ssize_t j) noexcept nogil:
        """The last member leaves: the intercept moves until another row reaches a knot.

        c_j falls (sign -1): the others must take up weight, so u falls, and conversely.
        """
        cdef Py_ssize_t r
        cdef Py_ssize_t k = -1
        cdef double gap
        cdef double best = INFINITY
        for r in range(self.a):
            if r == i or r == j:
                continue
            gap = self.u[r] - self.low[r] if sign < 0 else self.high[r] - self.u[r]
            if gap < best and self.state[r] % 2 == 0:
                best, k = gap, r
        if k < 0 or best == INFINITY:
            return NO_ROW_LEFT
        best = max(best, 0.0)
        for r in range(self.a):
            self.u[r] += sign * best
        self._set_state(i, state)
        self._column(k, &self.scratch[0, 0])
        self._column(i, &self.scratch[1, 0])
        self._set_state(k, self.state[k] + (1 if sign > 0 else -1))
        return self._pivot_pair(k, &self.scratch[0, 0], i, &self.scratch[1, 0])

    cdef signed char _row_enters(self, Py_ssize_t k, int side) noexcept nogil:
        cdef double* column = &self.scratch[0, 0]
        self._column(k, column)
        if column[k] > SMALL_PIVOT * self.base.scale:
            self._set_state(k, self.state[k] + side)
            self._pivot(k, column)
            return DONE
        if fabs(self.direction[k]) <= SMALL_PIVOT * self.base.scale:
            # It depends on members, whose u do not move: what moved it is rounding.
            self.u[k] = self.high[k] if side > 0 else self.low[k]
            self.direction[k] = 0.0
            return DONE
        return self._exchange(k, side, column)

    cdef signed char _exchange(self, Py_ssize_t k, int side, double* column) noexcept nogil:
        """Row k depends on the members: c_k moves with theirs, no u changes, until one leaves."""
        cdef Py_ssize_t r, i
        cdef Py_ssize_t who = -1
        cdef signed char after = 0
        cdef double sign = -side  # u at its upper knot: the coefficient falls, and conversely
        cdef Py_ssize_t s = self.state[k] // 2
        cdef double width = fabs(self.base.levels[k, s] - self.base.levels[k, s + side])
        cdef double best = width
        cdef double x, t
        for r in range(self.size):
            i = self.members[r]
            x = sign * column[i]
            t = best
            if x > LEAST_SHARE:
                t = (self._box_high(i) - self.c[i]) / x
            elif x < -LEAST_SHARE:
                t = (self._box_low(i) - self.c[i]) / x
            if t < best:
                best, who = max(t, 0.0), i
                after = self.state[i] + (-1 if x > 0 else 1)
        for r in range(self.size):
            i = self.members[r]
            self.c[i] += sign * best * column[i]
        if who < 0:
            self.c[k] = self.base.levels[k, s + side]
            self._set_state(k, self.state[k] + 2 * side)
            return DONE
        self.c[k] += sign * best
        self.c[who] = self._box_high(who) if after < self.state[who] else self._box_low(who)
        self._column(who, &self.scratch[1, 0])
        self._set_state(who, after)
        self._set_state(k, self.state[k] + side)
        return self._pivot_pair(k, column, who, &self.scratch[1, 0])

    # -- the table ------------------------------------------------------------------------------

    cdef void _column(self, Py_ssize_t k, double* column) noexcept nogil:
        """Column k of the present table: the full-data one, then every pivot since."""
        cdef Py_ssize_t p
        memcpy(column, self.base.column(k), self.a * sizeof(double))
        p = 0
        while p < self.n_pivots:
            self._apply(p, k, column)
            p += 2 if self.paired[p] else 1

    cdef void _apply(self, Py_ssize_t p, Py_ssize_t k, double* column) noexcept nogil:
        cdef int a = <int>self.a
        cdef int one = 1
        cdef double first = -(column[self.index[p]] - (1.0 if self.index[p] == k else 0.0))
        cdef double second
        if self.paired[p]:
            second = -(column[self.index[p + 1]] - (1.0 if self.index[p + 1] == k else 0.0))
            daxpy(&a, &second, &self.D[p + 1, 0], &one, column, &one)
        daxpy(&a, &first, &self.D[p, 0], &one, column, &one)

    cdef void _pivot(self, Py_ssize_t k, double* column) noexcept nogil:
        """Row k changes between entering and leaving; column is its column of the table."""
        cdef Py_ssize_t i
        cdef Py_ssize_t p = self.n_pivots
        cdef double inverse = 1.0 / column[k]
        for i in range(self.a):
            self.D[p, i] = column[i] * inverse
        self.D[p, k] += inverse
        self.index[p], self.paired[p] = k, 0
        self.n_pivots += 1
        self._apply(p, -1, &self.direction[0])

    cdef signed char _pivot_pair(self, Py_ssize_t k, double* ck, Py_ssize_t i,
                                 double* ci) noexcept nogil:
        """Row k enters and row i leaves, in one pivot on the 2 x 2 block."""
        cdef Py_ssize_t r
        cdef Py_ssize_t p = self.n_pivots
        cdef double kk = ck[k]
        cdef double ki = ci[k]
        cdef double ik = ck[i]
        cdef double ii = ci[i]
        cdef double det = kk * ii - ki * ik
        if fabs(det) < 1e-12:
            return SINGULAR
        ck[k] += 1.0
        ci[i] += 1.0
        for r in range(self.a):
            self.D[p, r] = (ck[r] * ii - ci[r] * ik) / det
            self.D[p + 1, r] = (ci[r] * kk - ck[r] * ki) / det
        self.index[p], self.paired[p] = k, 1
        self.index[p + 1], self.paired[p + 1] = i, 0
        self.n_pivots += 2
        self._apply(p, -1, &self.direction[0])
        return DONE
