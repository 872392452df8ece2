"""Leave several rows out at once, from one full-data solution and its whole table.

As in ``_leave_out.pyx`` rows that have changed their place since the full-data solution have an
unknown each, the rest follows by columns of the table T (``_base.pyx``), and all violators move at
once until there are none.  Here all rows are in play and all of T is at hand, so that a set of rows
is left out in a microsecond or two; and the rounds start from what is known to change when the rows
of the set are left out one by one.  Sets for which rounds do not end are left to others.

The twin in NumPy is ``reference.leave_several``.
"""

from libc.math cimport INFINITY, NAN, fabs
from libc.string cimport memset

from scipy.linalg.cython_blas cimport daxpy
from scipy.linalg.cython_lapack cimport dgesv

cimport cython

import numpy as np

cdef enum:
    MOST_CHANGED = 96
    MOST_ROUNDS = 30
    # Rounds allowed without a new low in the number of violators.
    PATIENCE = 3
    # More violators than this mean that the set is too far from the full data.
    MOST_VIOLATORS = 48
    N_FACTS = 7
    # How often ``cancel`` is looked at.
    SETS = 64

# A row depends on M if the pivot with which it would enter is smaller, relative to K's diagonal.
cdef double SMALL_PIVOT = 1e-9
# By this much of its box a coefficient may be outside.
cdef double SLACK = 1e-12

# As in ``_leave_out.FACTS``: the sizes of the moves, in u of rows that were in M and in c of
# others; how far coefficients in M can rise and fall in all, or 0 if none is strictly inside its
# box; what was cut off.  Where none is: between which shifts b is free, and how far coefficients
# are from their levels (else NaN).
FACTS = ("moves_free", "moves_other", "room", "clipped", "low", "high", "stray")


@cython.final
cdef class LeaveSeveral:
    """Workspace for leaving sets of rows out of one solution.

    Parameters
    ----------
    table : (a, a)
        Column i of T as row i; the first k rows are those in M.
    k : int
    u, c, state, knots, levels : (a,), (a,), (a,), (a, m), (a, m + 1)
    tol : float
        A row has passed its knot when it is so far behind it.
    near : float
        A coefficient nearer to an end of its box, relative to it, is not strictly inside.
    scale : float
        The largest entry on K's diagonal.
    """

    cdef const double[:, ::1] table
    cdef const double[::1] u
    cdef const double[::1] c
    cdef const signed char[::1] state
    cdef const double[:, ::1] knots
    cdef const double[:, ::1] levels
    cdef double tol, near, scale
    cdef Py_ssize_t a, k, m
    # what moves for each row (c in M, else u), and between which limits it stays in its place
    cdef double[::1] value
    cdef double[::1] low
    cdef double[::1] high
    cdef double[::1] moved
    # the rows that have changed; first those that are left out
    cdef Py_ssize_t[::1] changed
    cdef Py_ssize_t n_changed
    cdef Py_ssize_t[::1] place
    cdef signed char[::1] now
    cdef signed char[::1] open
    cdef double[::1] target
    cdef double[::1] answer
    cdef Py_ssize_t[::1] unknown
    cdef double[::1] matrix
    cdef double[::1] right
    cdef int[::1] pivots
    cdef Py_ssize_t[::1] violators
    cdef signed char[::1] wanted
    cdef readonly Py_ssize_t events

    def __init__(self, const double[:, ::1] table, Py_ssize_t k, const double[::1] u,
                 const double[::1] c, const signed char[::1] state, const double[:, ::1] knots,
                 const double[:, ::1] levels, double tol, double near, double scale):
        cdef Py_ssize_t i
        self.table, self.k, self.u, self.c, self.state = table, k, u, c, state
        self.knots, self.levels, self.tol, self.near, self.scale = knots, levels, tol, near, scale
        self.a, self.m = table.shape[0], knots.shape[1]
        moving = np.zeros((4, self.a))
        self.value, self.low, self.high, self.moved = moving[0], moving[1], moving[2], moving[3]
        self.changed = np.empty(MOST_CHANGED, dtype=np.intp)
        self.unknown = np.empty(MOST_CHANGED, dtype=np.intp)
        self.now = np.empty(MOST_CHANGED, dtype=np.int8)
        self.open = np.empty(MOST_CHANGED, dtype=np.int8)
        self.target, self.answer = np.empty(MOST_CHANGED), np.empty(MOST_CHANGED)
        self.place = np.full(self.a, -1, dtype=np.intp)
        self.matrix = np.empty(MOST_CHANGED * MOST_CHANGED)
        self.right = np.empty(MOST_CHANGED)
        self.pivots = np.empty(MOST_CHANGED, dtype=np.intc)
        self.violators = np.empty(self.a + MOST_CHANGED, dtype=np.intp)
        self.wanted = np.empty(self.a + MOST_CHANGED, dtype=np.int8)
        for i in range(self.a):
            self._limits(i)

    def leave_out(self, const Py_ssize_t[:, ::1] sets, const Py_ssize_t[::1] offsets,
                  const Py_ssize_t[::1] rows, const signed char[::1] states,
                  double[:, ::1] values, double[:, ::1] facts, signed char[::1] done,
                  double[:, ::1] out, const int[::1] cancel):
        """Leave out the rows of each set together.

        rows[offsets[i] : offsets[i + 1]] are expected to change if row i is left out, to
        ``states``.  ``values[r]`` gets the u of the set's own rows, ``facts[r]`` what `FACTS`
        lists, and ``done[r]`` whether a solution was found.  ``out`` is empty, or gets the
        coefficients that were found.
        """
        cdef Py_ssize_t r, q = sets.shape[1]
        with nogil:
            for r in range(sets.shape[0]):
                if r % SETS == 0 and cancel[0]:
                    break
                self._begin(&sets[r, 0], q)
                self._expect(&sets[r, 0], q, offsets, rows, states)
                done[r] = self._rounds(q)
                if not done[r]:  # once more, expecting nothing
                    self._forget()
                    self._begin(&sets[r, 0], q)
                    done[r] = self._rounds(q)
                if done[r]:
                    self._note(q, &values[r, 0], &facts[r, 0])
                    self.events += self.n_changed - q
                    if out.shape[0] > 0:
                        self._write(q, &out[r, 0])
                self._forget()

    cdef void _begin(self, const Py_ssize_t* own, Py_ssize_t q) noexcept nogil:
        """The set's own rows: their c goes to zero, whatever becomes of u."""
        cdef Py_ssize_t s
        for s in range(q):
            self._add(own[s])
            self.now[s], self.open[s] = self.state[own[s]], own[s] < self.k
            self.target[s] = -self.c[own[s]]

    cdef void _expect(self, const Py_ssize_t* own, Py_ssize_t q, const Py_ssize_t[::1] offsets,
                      const Py_ssize_t[::1] rows, const signed char[::1] states) noexcept nogil:
        cdef Py_ssize_t o, r, s
        for o in range(q):
            for r in range(offsets[own[o]], offsets[own[o] + 1]):
                if self.place[rows[r]] >= 0 or self.n_changed >= MOST_CHANGED // 2:
                    continue
                if not self._can_enter(rows[r], states[r]):
                    continue
                s = self._add(rows[r])
                self.now[s] = states[r]
                self._aim(s)

    cdef bint _can_enter(self, Py_ssize_t i, signed char state) noexcept nogil:
        return i < self.k or state % 2 == 0 or self.table[i, i] > SMALL_PIVOT * self.scale

    cdef bint _rounds(self, Py_ssize_t q) noexcept nogil:
        cdef Py_ssize_t count, least = self.a + 1
        cdef int _round, patience = PATIENCE
        for _round in range(MOST_ROUNDS):
            if not self._respond():
                return False
            count = self._find_violators(q)
            if count == 0:
                return True
            if count < least:
                least, patience = count, PATIENCE
            elif patience > 0:
                patience -= 1
            else:
                return False
            if count > MOST_VIOLATORS or not self._move(count):
                return False
        return False

    cdef bint _respond(self) noexcept nogil:
        """Solve for the unknowns; ``moved`` is then how far every row has moved."""
        cdef Py_ssize_t r, s, size = 0
        cdef int a = <int>self.a, one = 1, n, info
        cdef double x
        cdef const double* column
        for r in range(self.n_changed):
            self.answer[r] = self.target[r]
            if self.open[r]:
                self.unknown[size] = r
                self.right[size] = self.target[r]
                size += 1
        for s in range(self.n_changed):
            if not self.open[s] and self.target[s] != 0.0:
                column = &self.table[self.changed[s], 0]
                for r in range(size):
                    self.right[r] -= self.target[s] * column[self.changed[self.unknown[r]]]
        for s in range(size):
            column = &self.table[self.changed[self.unknown[s]], 0]
            for r in range(size):
                self.matrix[s * size + r] = column[self.changed[self.unknown[r]]]
        if size > 0:
            n = <int>size
            dgesv(&n, &one, &self.matrix[0], &n, &self.pivots[0], &self.right[0], &n, &info)
            if info != 0:
                return False
        for s in range(size):
            self.answer[self.unknown[s]] = self.right[s]
        memset(&self.moved[0], 0, self.a * sizeof(double))
        for s in range(self.n_changed):
            x = self.answer[s]
            if x != 0.0:
                daxpy(&a, &x, <double*>&self.table[self.changed[s], 0], &one, &self.moved[0], &one)
        return True

    cdef Py_ssize_t _find_violators(self, Py_ssize_t q) noexcept nogil:
        """List the rows that violate their place, with the place each wants."""
        cdef Py_ssize_t i, r, count = 0
        cdef double x
        for i in range(self.a):
            x = self.value[i] + self.moved[i]
            self.violators[count] = i
            count += (x > self.high[i]) | (x < self.low[i])
        for r in range(count):
            i = self.violators[r]
            # A coefficient above its box wants u to fall, a u above its limit to rise.
            x = self.value[i] + self.moved[i] - self.high[i]
            self.wanted[r] = self.state[i] + (1 if (x > 0) == (i >= self.k) else -1)
        for r in range(q, self.n_changed):
            self.wanted[count] = self._place_of(r)
            self.violators[count] = self.changed[r]
            count += self.wanted[count] != self.now[r]
        return count

    cdef signed char _place_of(self, Py_ssize_t r) noexcept nogil:
        """Where a row that has changed wants to be: where it is, or one place further."""
        cdef Py_ssize_t i = self.changed[r]
        cdef signed char state = self.now[r]
        cdef double low, high, slack, x
        if state % 2 == 1:
            high, low = self.levels[i, state // 2], self.levels[i, state // 2 + 1]
            slack = SLACK * (high - low)
            x = self.c[i] + (self.moved[i] if i < self.k else self.answer[r])
            return state - 1 if x > high + slack else state + 1 if x < low - slack else state
        self._segment(i, state, &low, &high)
        x = self._value_of(r)
        if x > high + self.tol:
            return state + 1
        return state - 1 if x < low - self.tol else state

    cdef double _value_of(self, Py_ssize_t r) noexcept nogil:
        """The u of a row that has changed."""
        cdef Py_ssize_t i = self.changed[r]
        return self.u[i] + (self.answer[r] if i < self.k else self.moved[i])

    cdef bint _move(self, Py_ssize_t count) noexcept nogil:
        """All violators to the place they want; False if they are too many or depend on M."""
        cdef Py_ssize_t r, i, s
        for r in range(count):
            i, s = self.violators[r], self.place[self.violators[r]]
            if self.wanted[r] == self.state[i]:
                self._remove(s)
                continue
            if not self._can_enter(i, self.wanted[r]):
                return False
            if s < 0:
                if self.n_changed == MOST_CHANGED:
                    return False
                s = self._add(i)
            self.now[s] = self.wanted[r]
            self._aim(s)
        return True

    cdef void _aim(self, Py_ssize_t s) noexcept nogil:
        """What is known of a row in its new place."""
        cdef Py_ssize_t i = self.changed[s], segment = self.now[s] // 2
        cdef bint at_knot = self.now[s] % 2 == 1
        if at_knot:
            self.target[s] = self.knots[i, segment] - self.u[i]
        else:
            self.target[s] = self.levels[i, segment] - self.c[i]
        self.open[s] = at_knot != (i < self.k)

    cdef Py_ssize_t _add(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t s = self.n_changed
        self.changed[s], self.place[i] = i, s
        self.low[i], self.high[i] = -INFINITY, INFINITY
        self.n_changed += 1
        return s

    cdef void _remove(self, Py_ssize_t s) noexcept nogil:
        """The row is back where it was."""
        cdef Py_ssize_t i = self.changed[s], last = self.n_changed - 1
        self.place[i] = -1
        self._limits(i)
        self.n_changed = last
        if s < last:
            self.changed[s], self.place[self.changed[last]] = self.changed[last], s
            self.now[s], self.open[s] = self.now[last], self.open[last]
            self.target[s] = self.target[last]

    cdef void _forget(self) noexcept nogil:
        """Back to the full-data solution."""
        cdef Py_ssize_t s, i
        for s in range(self.n_changed):
            i = self.changed[s]
            self.place[i] = -1
            self._limits(i)
        self.n_changed = 0

    cdef void _limits(self, Py_ssize_t i) noexcept nogil:
        """Where c (in M) or u may be while the row stays where it was."""
        cdef signed char state = self.state[i]
        cdef double low, high, slack
        if i < self.k:
            high, low = self.levels[i, state // 2], self.levels[i, state // 2 + 1]
            slack, self.value[i] = SLACK * (high - low), self.c[i]
        else:
            self._segment(i, state, &low, &high)
            slack, self.value[i] = self.tol, self.u[i]
        self.low[i], self.high[i] = low - slack, high + slack

    cdef void _segment(self, Py_ssize_t i, signed char state, double* low,
                       double* high) noexcept nogil:
        """Between which knots the u of a row on a segment lies."""
        cdef Py_ssize_t s = state // 2
        low[0] = self.knots[i, s - 1] if s > 0 else -INFINITY
        high[0] = self.knots[i, s] if s < self.m else INFINITY

    cdef void _write(self, Py_ssize_t q, double* out) noexcept nogil:
        cdef Py_ssize_t i, s
        cdef signed char state
        cdef double x
        for i in range(self.a):
            s = self.place[i]
            state = self.state[i] if s < 0 else self.now[s]
            if 0 <= s < q or state < 0:
                out[i] = 0.0
            elif state % 2 == 0:
                out[i] = self.levels[i, state // 2]
            else:
                x = self.c[i] + (self.moved[i] if i < self.k else self.answer[s])
                out[i] = max(min(x, self.levels[i, state // 2]), self.levels[i, state // 2 + 1])

    cdef void _note(self, Py_ssize_t q, double* values, double* facts) noexcept nogil:
        cdef Py_ssize_t s, i
        cdef signed char state
        cdef double c, high, low, clipped = 0.0, stray = 0.0
        cdef double rises = 0.0, falls = 0.0
        cdef Py_ssize_t inside = 0
        for s in range(q):
            values[s] = self._value_of(s)
        facts[0], facts[1] = 0.0, 0.0
        for s in range(self.n_changed):
            facts[self.changed[s] >= self.k] += fabs(self.answer[s])
        for i in range(self.k):
            if self.place[i] < 0:
                self._tally(i, self.state[i], self.c[i] + self.moved[i], &rises, &falls, &clipped,
                            &stray, &inside)
        for s in range(q, self.n_changed):
            i, state = self.changed[s], self.now[s]
            if state % 2 == 1:
                c = self.c[i] + (self.moved[i] if i < self.k else self.answer[s])
                self._tally(i, state, c, &rises, &falls, &clipped, &stray, &inside)
        facts[2], facts[3] = min(rises, falls) if inside > 0 else 0.0, clipped
        facts[4], facts[5], facts[6] = NAN, NAN, NAN
        if inside == 0:
            self._shifts(q, &low, &high)
            facts[4], facts[5], facts[6] = low, high, stray

    cdef void _tally(self, Py_ssize_t i, signed char state, double c, double* rises,
                     double* falls, double* clipped, double* stray,
                     Py_ssize_t* inside) noexcept nogil:
        """One row at a knot."""
        cdef double high = self.levels[i, state // 2], low = self.levels[i, state // 2 + 1]
        rises[0] += high - c
        falls[0] += c - low
        clipped[0] += max(c - high, 0.0) + max(low - c, 0.0)
        stray[0] = max(stray[0], min(fabs(high - c), fabs(c - low)))
        inside[0] += min(high - c, c - low) > self.near * (high - low)

    cdef void _shifts(self, Py_ssize_t q, double* low, double* high) noexcept nogil:
        """How far all u may fall and rise together while every row stays on its segment."""
        cdef Py_ssize_t i, s
        cdef signed char state
        cdef double u, c, down, up
        low[0], high[0] = -INFINITY, INFINITY
        for i in range(self.a):
            s = self.place[i]
            if 0 <= s < q:
                continue
            state = self.state[i] if s < 0 else self.now[s]
            if s < 0:
                u = self.u[i] + (0.0 if i < self.k else self.moved[i])
            else:
                u = self._value_of(s)
            if state % 2 == 1:  # at an end of its box: to the segment that goes with it
                c = self.c[i] + (self.moved[i] if i < self.k else self.answer[s])
                up, down = self.levels[i, state // 2] - c, c - self.levels[i, state // 2 + 1]
                u = self.knots[i, state // 2]
                state += -1 if up < down else 1
            self._segment(i, state, &down, &up)
            low[0], high[0] = max(low[0], down - u), min(high[0], up - u)
