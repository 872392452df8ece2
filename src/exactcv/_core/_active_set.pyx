"""One problem at one C, by primal-dual active sets.

    min over c   1/2 c'Kc + sum_i C_i L*_i(-c_i / C_i)      (sum c = 0 with an intercept)

in the notation of ``problem/losses.py``: a row lies either on a segment of its loss (c_i known, u_i
free between two knots) or at a knot (u_i known, c_i free between two levels).  The state of a row
is one integer that counts places from left to right in u:

    0: segment 0,  1: knot 0,  2: segment 1,  3: knot 1, ...;   -1: the row takes no part.

Given all states, the rows M at a knot solve  K_MM dc + b = t_M - h_M,  sum c = 0,  with h = K c.
Two ways to find the right states:

- *Block*: every row that violates its state moves to the next place, all at once, until none does
  (block principal pivoting, also called the primal-dual active set method).  A handful of small
  linear solves from a good start, but it can cycle.
- *Monotone*, when the number of violators stops falling: c stays feasible and the objective falls.
  Go to the solution for the present M or to the first bound on the way; when it is reached, let
  the worst violators in.
"""

from libc.math cimport INFINITY, fabs
from libc.stdlib cimport qsort
from libc.string cimport memcpy

import numpy as np

from scipy.linalg.cython_blas cimport dsymv

from exactcv._core._factor cimport Factor
from exactcv._core._gather cimport RbfRows

cdef extern from "vector.h" nogil:
    void exactcv_add_rows(const double *K, Py_ssize_t n, const Py_ssize_t *rows, const double *a,
                          Py_ssize_t count, double *h)

# Block steps allowed without a new low in the number of violators.
cdef int PATIENCE = 4
cdef int MOST_BLOCK_STEPS = 500
# An updated factor is given up when rows at a knot miss it by more than this (relative to b).
cdef double DRIFT = 1e-7
# If more than this share of the coefficients change, K times that is taken from one triangle of K.
cdef double MOSTLY = 0.7
# Coefficients this many boxes out of their box are not used to judge the other rows.
cdef double WILD = 1e3
# Rows let into M at a time by the monotone method.
cdef int MOST_ADDED = 32
# Rows that miss their knot by so little (relative to b) are on it; see ``onto_knots``, which tries
# again so often when rows leave their box.
cdef double ON_KNOT = 1e-11
cdef int MOST_TRIES = 8
# A block step that would let in more rows than this (and twice M) lets in the worst only.
cdef int MOST_ENTERING = 100

cpdef enum Status:
    CONVERGED = 0
    STALLED = 1
    SINGULAR = 2


cdef struct Crossing:
    double b
    Py_ssize_t row


cdef int _by_intercept(const void* left, const void* right) noexcept nogil:
    cdef double a = (<Crossing*>left).b
    cdef double b = (<Crossing*>right).b
    if a == b:
        return 1 if (<Crossing*>left).row > (<Crossing*>right).row else -1
    return 1 if a > b else -1


cdef class ActiveSet:
    """Workspace for solving problems that share K, knots and levels (for C = 1).

    Parameters
    ----------
    K : (n, n) or RbfRows
        In place of the matrix what computes its rows: those with a coefficient are needed alone.
    knots : (n, m), levels : (n, m + 1)
        ``levels`` are the coefficients on the segments at C = 1, falling along each row.
    intercept : bool
    """

    cdef const double[:, ::1] K
    cdef const double[:, ::1] knots
    cdef const double[:, ::1] levels
    cdef const double[:, ::1] ends
    cdef bint intercept
    cdef Py_ssize_t n, m, capacity
    cdef readonly Factor factor
    cdef double[:, ::1] rhs
    cdef Py_ssize_t[::1] at_knot
    cdef Py_ssize_t[::1] violators
    cdef signed char[::1] wanted
    cdef Py_ssize_t[::1] pending_rows
    cdef double[::1] pending_steps, step
    cdef Py_ssize_t n_pending
    cdef double[::1] crossings
    cdef double[:, ::1] spare
    cdef signed char[::1] spare_state
    cdef double largest
    cdef RbfRows source
    cdef bint on_demand

    def __init__(self, K, knots, levels, bint intercept):
        self.on_demand = isinstance(K, RbfRows)
        if self.on_demand:
            self.source, K = K, K.K
        self.K, self.knots, self.levels = K, knots, levels
        ends = np.full((knots.shape[0], knots.shape[1] + 2), np.inf)
        ends[:, 0], ends[:, 1:-1] = -np.inf, knots
        self.ends = ends
        self.intercept = intercept
        self.n, self.m = knots.shape[0], knots.shape[1]
        self.at_knot = np.empty(self.n, dtype=np.intp)
        self.violators = np.empty(self.n, dtype=np.intp)
        self.wanted = np.empty(self.n, dtype=np.int8)
        self.pending_rows = np.empty(64, dtype=np.intp)
        self.pending_steps = np.empty(64)
        self.step = np.empty(self.n)
        self.crossings = np.empty(2 * self.n * self.m)  # a Crossing is as large as two doubles
        self.spare = np.empty((2, self.n))
        self.spare_state = np.empty(self.n, dtype=np.int8)
        self.factor = Factor(K, intercept)
        self._reserve(16)

    cdef _reserve(self, Py_ssize_t size):
        self.capacity = size
        self.rhs = np.empty((2, size))

    def solve(self, double C, signed char[::1] state, double[::1] c, double[::1] h, double b,
              bint monotone, double residual=1e-11, double crowd=INFINITY, double tol=1e-11,
              int max_iter=100000):
        """Solve at C from the given states; state, c and h (= K c) are updated in place.

        Rows at a knot are corrected a few times, until they miss it by at most ``residual``.
        If block steps stall, monotone ones finish the work if ``monotone`` is set, from the c that
        came in, made feasible.  Block steps are given up at once if more than ``crowd`` rows
        violate their state.

        Returns
        -------
        b : float
        status : int
            CONVERGED, STALLED (nothing is changed then, unless ``monotone``) or SINGULAR (K_MM
            is not positive semidefinite).
        iterations : int
        """
        cdef int done = 0
        cdef int status
        cdef double b_block = b
        cdef double[::1] c_block = self.spare[0]
        cdef double[::1] h_block = self.spare[1]
        self._copy(state, c, h, self.spare_state, c_block, h_block)
        status = self._block(C, self.spare_state, c_block, h_block, &b_block, tol, residual, crowd,
                             min(max_iter, MOST_BLOCK_STEPS), &done)
        if status == CONVERGED:
            self._copy(self.spare_state, c_block, h_block, state, c, h)
            return b_block, status, done
        if status == STALLED and monotone:
            with nogil:
                self._make_feasible(C, state, c, h, b)
            status = self._monotone(C, state, c, h, &b, tol, residual, max_iter, &done)
        return b, status, done

    def onto_knots(self, double C, signed char[::1] state, double[::1] c, const double[::1] h,
                   double b):
        """Put rows on their levels and knots, for c alone; state and c are updated in place.

        h is K times the c that comes in, and stays.  Rows that would leave their box go to the end
        of it instead.  From a solution to one without some of its free rows the factor is gone
        through once: see ``Factor.move``.

        Returns
        -------
        b : float
        status : int
            CONVERGED, or STALLED if nothing came of it; then state and c are of no use.
        """
        cdef Py_ssize_t i, size
        cdef Py_ssize_t leaving = 0
        cdef double by
        for _ in range(MOST_TRIES):
            size = self._collect(state)
            if size == 0 or self._prepare(size, True) != 0:
                break
            with nogil:
                by = self._find_move(C, size, state, c, h, b)
                leaving = self._send_out(C, size, state, c)
            if leaving < 0:
                break
            if leaving == 0:
                for i in range(self.n):
                    c[i] += self.step[i]
                return b + by, int(CONVERGED)
        return b, int(STALLED)

    cdef double _find_move(self, double C, Py_ssize_t size, signed char[::1] state,
                           double[::1] c, const double[::1] h, double b) noexcept nogil:
        """``step``, by which c is to change for these states; returns by how much b is."""
        cdef Py_ssize_t i, row
        cdef double off, beta, level
        cdef double total = 0.0
        cdef double[::1] now = self.spare[1]
        memcpy(&now[0], &h[0], self.n * sizeof(double))
        for i in range(self.n):
            total += c[i]
            self.step[i] = 0.0
            if state[i] >= 0 and state[i] % 2 == 1:
                continue
            level = C * self.levels[i, state[i] // 2] if state[i] >= 0 else 0.0
            if fabs(level - c[i]) > 1e-14 * fabs(level):
                self.step[i] = level - c[i]
            else:  # rounding, not worth a row of K
                c[i] = level
            if self.step[i] != 0.0 and self.factor.place[i] < 0:
                # What a row does that was not free when the factor was made, all rows have to see.
                total += self.step[i]
                self._note(i, self.step[i], now)
        self._flush(now)
        for i in range(size):
            row = self.at_knot[i]
            off = self.knots[row, state[row] // 2] - now[row] - b
            self.rhs[0, i] = off if fabs(off) > ON_KNOT * max(1.0, fabs(b)) else 0.0
        beta = self.factor.move(self.at_knot, size, &self.rhs[0, 0], &self.step[0], total)
        for i in range(size):
            self.step[self.at_knot[i]] = self.rhs[0, i]
        return beta - self.factor.top * total if self.intercept else 0.0

    cdef Py_ssize_t _send_out(self, double C, Py_ssize_t size, signed char[::1] state,
                              double[::1] c) noexcept nogil:
        """Rows at a knot that leave their box by ``step`` go to its end; returns how many they are,
        or -1 if one goes so far that K_MM must be nearly singular."""
        cdef Py_ssize_t i, row
        cdef Py_ssize_t count = 0
        cdef double low, high, slack, new
        self._measure(c)
        for i in range(size):
            row = self.at_knot[i]
            self._box(C, row, state, &low, &high)
            slack, new = 1e-12 * min(high - low, self.largest), c[row] + self.step[row]
            if not low - WILD * (high - low) <= new <= high + WILD * (high - low):
                return -1
            if new > high + slack:
                state[row] -= 1
                count += 1
            elif new < low - slack:
                state[row] += 1
                count += 1
        return count

    def misplaced(self, double C, signed char[::1] state, double[::1] c, double[::1] h, double b,
                  double tol=1e-11):
        """Send rows that violate their state to the next place, in ``state`` alone.

        Returns how many they are, and by how much the rows at a knot that were found by
        `onto_knots` miss it.
        """
        cdef Py_ssize_t i, count
        cdef double residual = self._residual(self._collect(state), state, h, b)
        count = self._find_violators(C, state, c, h, b, False, tol)
        for i in range(count):
            state[self.violators[i]] = self.wanted[self.violators[i]]
        return count, residual

    def solve_sets(self, const double[::1] Cs, const double[:, :, ::1] levels,
                   signed char[:, ::1] state, double[:, ::1] c, double[:, ::1] h, double[::1] b,
                   double crowd, bint monotone, unsigned char[::1] solved, gammas=None):
        """`solve` several training sets, each with its C and levels.

        The factor knows nothing when a set begins.  With ``gammas`` each has its own kernel, and h
        is computed here.  Where ``solved`` is 0 the steps have failed, and nothing is changed
        (unless ``monotone``).  Returns the number of iterations.
        """
        cdef Py_ssize_t i, k
        cdef int status, done, total = 0
        cdef const double[:, ::1] own = self.levels
        for k in range(Cs.shape[0]):
            self.levels = levels[k]
            self.factor.start_over()
            if gammas is not None:
                self.source.start_over(gammas[k])
                h[k, :] = 0.0
                for i in range(self.n):
                    if c[k, i] != 0.0:
                        self.pending_rows[self.n_pending] = i
                        self.pending_steps[self.n_pending] = c[k, i]
                        self.n_pending += 1
                        if self.n_pending == self.pending_rows.shape[0]:
                            self._flush(h[k])
                self._flush(h[k])
            b[k], status, done = self.solve(Cs[k], state[k], c[k], h[k], b[k], monotone,
                                            crowd=crowd)
            solved[k] = status == CONVERGED
            total += done
        self.levels = own
        return total

    cdef void _copy(self, signed char[::1] state, double[::1] c, double[::1] h,
                    signed char[::1] state_to, double[::1] c_to, double[::1] h_to) noexcept nogil:
        memcpy(&state_to[0], &state[0], self.n)
        memcpy(&c_to[0], &c[0], self.n * sizeof(double))
        memcpy(&h_to[0], &h[0], self.n * sizeof(double))

    cdef int _block(self, double C, signed char[::1] state, double[::1] c, double[::1] h,
                    double* b, double tol, double residual, double crowd, int max_iter,
                    int* done):
        """Block principal pivoting; STALLED when the violators no longer become fewer."""
        cdef int patience = PATIENCE
        cdef int corrections = 0
        cdef Py_ssize_t size, count
        cdef Py_ssize_t least = self.n + 1
        cdef bint wild
        cdef bint same = False
        with nogil:
            self._place(C, state, c, h)
        while done[0] < max_iter:
            done[0] += 1
            size = self._collect(state)
            if self._prepare(size, False) != 0:
                return SINGULAR
            with nogil:
                wild = False
                if size > 0:
                    self._direction(size, state, c, h, b, same)
                    same = False
                    wild = self._full_step(C, size, state, c, h)
                    if self._drifted(size, state, h, b[0]):
                        continue
                elif self.intercept and self._move_intercept(C, state, c, h, b):
                    continue
                count = self._find_violators(C, state, c, h, b[0], wild, tol)
                if count == 0:
                    # The ridge leaves a small residual: one more correction at the same sets.
                    if corrections < 5 and self._residual(size, state, h, b[0]) > residual:
                        corrections += 1
                        same = True
                        continue
                    return CONVERGED
                corrections = 0
                if count > crowd:
                    return STALLED
                if count < least:
                    least = count
                    patience = PATIENCE
                elif patience > 0:
                    patience -= 1
                else:
                    return STALLED
                if count > MOST_ENTERING + 2 * size:
                    # So many would make M far larger than it ends up, at the price of its cube.
                    count = self._keep_worst(count, state, h, b[0], count)
                self._move(C, count, state, c, h)
        return STALLED

    cdef int _monotone(self, double C, signed char[::1] state, double[::1] c, double[::1] h,
                       double* b, double tol, double residual, int max_iter, int* done):
        """The active set method that keeps c feasible and lets the objective fall."""
        cdef Py_ssize_t size, count
        cdef int corrections = 0
        cdef bint blocked
        cdef double moved = 1.0
        while done[0] < max_iter:
            done[0] += 1
            size = self._collect(state)
            if self._prepare(size, True) != 0:
                return SINGULAR
            with nogil:
                blocked = False
                if size > 0:
                    self._direction(size, state, c, h, b, False)
                    blocked = self._step_to_bound(C, size, state, c, h, &moved)
                    if not blocked and self._drifted(size, state, h, b[0]):
                        continue
                elif self.intercept and self._move_intercept(C, state, c, h, b):
                    continue
                if blocked:
                    continue
                count = self._find_violators(C, state, c, h, b[0], False, tol)
                if count == 0 or corrections < 3:
                    if corrections < 5 and self._residual(size, state, h, b[0]) > residual:
                        corrections += 1
                        continue
                    if count == 0:
                        return CONVERGED
                corrections = 0
                if moved > 0.0:
                    count = self._keep_worst(count, state, h, b[0], MOST_ADDED)
                    self._move(C, count, state, c, h)
                else:
                    # Every row let in was blocked at once: take a step that cannot be.
                    self._pair_step(C, state, c, h)
                moved = 0.0
        return STALLED

    cdef void _shift(self, Py_ssize_t row, double dc, double[::1] c, double[::1] h) noexcept nogil:
        """c[row] += dc; h follows at the next flush."""
        if dc != 0.0:
            c[row] += dc
            self._note(row, dc, h)

    cdef void _note(self, Py_ssize_t row, double dc, double[::1] h) noexcept nogil:
        """h += dc K[row] at the next flush."""
        self.pending_rows[self.n_pending] = row
        self.pending_steps[self.n_pending] = dc
        self.n_pending += 1
        if self.n_pending == self.pending_rows.shape[0]:
            self._flush(h)

    cdef void _flush(self, double[::1] h) noexcept nogil:
        """Bring h = K c up to date."""
        if self.on_demand:
            self.source.need(&self.pending_rows[0], self.n_pending)
        exactcv_add_rows(&self.K[0, 0], self.n, &self.pending_rows[0], &self.pending_steps[0],
                         self.n_pending, &h[0])
        self.n_pending = 0

    cdef void _place(self, double C, signed char[::1] state, double[::1] c,
                     double[::1] h) noexcept nogil:
        """Put every row on a segment at its level."""
        cdef Py_ssize_t i
        cdef double level
        for i in range(self.n):
            if state[i] < 0:
                level = 0.0
            elif state[i] % 2 == 0:
                level = C * self.levels[i, state[i] // 2]
            else:
                continue
            # Scaling from another C leaves rounding, which is not worth a row of K.
            if fabs(level - c[i]) > 1e-14 * fabs(level):
                self._shift(i, level - c[i], c, h)
            c[i] = level
        self._flush(h)

    cdef int _prepare(self, Py_ssize_t size, bint few):
        """Make room for M and its factor; not 0 if K_MM is not positive semidefinite."""
        if size > self.capacity:
            self._reserve(size + size // 2)
        if self.on_demand:
            self.source.need(&self.at_knot[0], size)
        return self.factor.prepare(self.at_knot, size, few) if size > 0 else 0

    cdef bint _drifted(self, Py_ssize_t size, signed char[::1] state, double[::1] h,
                       double b) noexcept nogil:
        """Was the factor an updated one, and has it lost too many digits?  Then it is dropped."""
        if not self.factor.updated or self._residual(size, state, h, b) <= DRIFT * (1 + fabs(b)):
            return False
        self.factor.forget()
        return True

    cdef Py_ssize_t _collect(self, signed char[::1] state) noexcept nogil:
        cdef Py_ssize_t i
        cdef Py_ssize_t size = 0
        for i in range(self.n):
            if state[i] > 0 and state[i] % 2 == 1:
                self.at_knot[size] = i
                size += 1
        return size

    cdef void _direction(self, Py_ssize_t size, signed char[::1] state, double[::1] c,
                         double[::1] h, double* b, bint same) noexcept nogil:
        """Solve K_MM dc + b = t_M - h_M with sum c = 0; dc in rhs[0].

        ``same``: M is that of the last time, and what a constant gives (rhs[1]) is at hand.

        With an intercept, adding a constant to K only shifts b.  It is done (by ``Factor``)
        because K_MM itself is singular when a linear kernel in p dimensions has p + 1 rows at
        their knots.
        """
        cdef Py_ssize_t i, row
        cdef double total, a_r, a_1
        for i in range(size):
            row = self.at_knot[i]
            self.rhs[0, i] = self.knots[row, state[row] // 2] - h[row]
            self.rhs[1, i] = self.rhs[1, i] if same else 1.0
        self.factor.solve(self.at_knot, size, &self.rhs[0, 0],
                          &self.rhs[1, 0] if self.intercept and not same else NULL)
        b[0] = 0.0
        if self.intercept:
            total = a_r = a_1 = 0.0
            for i in range(self.n):
                total += c[i]
            for i in range(size):
                a_r += self.rhs[0, i]
                a_1 += self.rhs[1, i]
            b[0] = (a_r + total) / a_1
            for i in range(size):
                self.rhs[0, i] -= b[0] * self.rhs[1, i]
            b[0] -= self.factor.top * total

    cdef bint _full_step(self, double C, Py_ssize_t size, signed char[::1] state, double[::1] c,
                         double[::1] h) noexcept nogil:
        """c_M += dc, out of the box if need be; True if some row is so far out (a nearly singular
        K_MM) that the step was cut and says nothing about the other rows."""
        cdef Py_ssize_t i, row
        cdef double high, low, reach
        cdef bint wild = False
        cdef bint mostly = size > MOSTLY * self.n and not self.on_demand
        for i in range(size):
            row = self.at_knot[i]
            self._box(C, row, state, &low, &high)
            reach = WILD * (high - low)
            wild = wild or c[row] + self.rhs[0, i] > high + reach
            wild = wild or c[row] + self.rhs[0, i] < low - reach
        for i in range(size):
            row = self.at_knot[i]
            if wild:
                self._box(C, row, state, &low, &high)
                reach = high - low
                self.rhs[0, i] = min(self.rhs[0, i], high + reach - c[row])
                self.rhs[0, i] = max(self.rhs[0, i], low - reach - c[row])
            if not mostly:
                self._shift(row, self.rhs[0, i], c, h)
        if mostly:
            self._shift_all(size, c, h)
        self._flush(h)
        return wild

    cdef void _shift_all(self, Py_ssize_t size, double[::1] c, double[::1] h) noexcept nogil:
        """c_M += rhs[0], h += K_M rhs[0]."""
        cdef Py_ssize_t i
        cdef int n = <int>self.n
        cdef int one = 1
        cdef double plus = 1.0
        cdef char upper = b'U'
        for i in range(self.n):
            self.step[i] = 0.0
        for i in range(size):
            c[self.at_knot[i]] += self.rhs[0, i]
            self.step[self.at_knot[i]] = self.rhs[0, i]
        dsymv(&upper, &n, &plus, &self.K[0, 0], &n, &self.step[0], &one, &plus, &h[0], &one)

    cdef bint _step_to_bound(self, double C, Py_ssize_t size, signed char[::1] state,
                             double[::1] c, double[::1] h, double* moved) noexcept nogil:
        """c_M += s dc with the largest s <= 1 that stays in the box; True if a bound was met."""
        cdef Py_ssize_t i, row
        cdef double low, high, dc, slack
        cdef double s = 1.0
        self._measure(c)
        for i in range(size):
            row = self.at_knot[i]
            dc = self.rhs[0, i]
            self._box(C, row, state, &low, &high)
            if c[row] + dc > high:
                s = min(s, max(high - c[row], 0.0) / dc)
            elif c[row] + dc < low:
                s = min(s, max(c[row] - low, 0.0) / -dc)
        for i in range(size):
            row = self.at_knot[i]
            dc = s * self.rhs[0, i]
            self._box(C, row, state, &low, &high)
            slack = 1e-14 * min(high - low, self.largest + fabs(dc))
            if s < 1.0 and self.rhs[0, i] > 0 and c[row] + dc >= high - slack:
                dc = high - c[row]
                state[row] -= 1
            elif s < 1.0 and self.rhs[0, i] < 0 and c[row] + dc <= low + slack:
                dc = low - c[row]
                state[row] += 1
            if fabs(dc) > slack:
                moved[0] += 1.0
            self._shift(row, dc, c, h)
        self._flush(h)
        return s < 1.0

    cdef void _pair_step(self, double C, signed char[::1] state, double[::1] c,
                         double[::1] h) noexcept nogil:
        """Move the most violating pair (without an intercept: row) as far as it helps."""
        cdef Py_ssize_t i, s
        cdef Py_ssize_t up = -1
        cdef Py_ssize_t down = -1
        cdef double b_up = -INFINITY
        cdef double b_down = INFINITY
        cdef double step, curvature
        cdef double both = 0.0
        cdef double low = 0.0
        cdef double high = 0.0
        for i in range(self.n):
            if state[i] < 0:
                continue
            s = state[i] // 2
            if state[i] > 0:  # c can rise to the level on the left
                if state[i] % 2 == 0:
                    s -= 1
                if self.knots[i, s] - h[i] > b_up:
                    b_up, up, high = self.knots[i, s] - h[i], i, C * self.levels[i, s] - c[i]
            s = state[i] // 2
            if state[i] < 2 * self.m and self.knots[i, s] - h[i] < b_down:
                b_down, down, low = self.knots[i, s] - h[i], i, c[i] - C * self.levels[i, s + 1]
        if not self.intercept:
            if b_up > -b_down:
                b_down, low, down = 0.0, INFINITY, -1
            else:
                b_up, high, up = 0.0, INFINITY, -1
        if up >= 0:
            self._need(up)
            both += self.K[up, up]
        if down >= 0:
            self._need(down)
            both += self.K[down, down]
        curvature = both
        if up >= 0 and down >= 0:
            curvature -= 2 * self.K[up, down]
        curvature = max(curvature, 1e-12 * fabs(both) + 1e-300)
        step = min(max(b_up - b_down, 0.0) / curvature, min(low, high))
        self._measure(c)
        if up >= 0:
            self._shift(up, step, c, h)
            state[up] = self._state_of(C, up, c[up])
        if down >= 0:
            self._shift(down, -step, c, h)
            state[down] = self._state_of(C, down, c[down])
        self._flush(h)

    cdef inline void _need(self, Py_ssize_t row) noexcept nogil:
        """See that a row of K is there."""
        if self.on_demand:
            self.source.need(&row, 1)

    cdef inline void _box(self, double C, Py_ssize_t row, signed char[::1] state, double* low,
                          double* high) noexcept nogil:
        """Between which levels c may lie while the row stays at its knot."""
        cdef Py_ssize_t k = state[row] // 2
        high[0] = C * self.levels[row, k]
        low[0] = C * self.levels[row, k + 1]

    cdef inline void _limits(self, Py_ssize_t i, signed char[::1] state, double* low,
                             double* high) noexcept nogil:
        """Where u_i may lie while row i stays on its segment."""
        cdef Py_ssize_t s = state[i] // 2
        low[0] = self.ends[i, s]
        high[0] = self.ends[i, s + 1]

    cdef bint _move_intercept(self, double C, signed char[::1] state, double[::1] c,
                              double[::1] h, double* b) noexcept nogil:
        """No row at a knot: move b until the coefficients can sum to zero.

        True if rows changed their state for it.
        """
        cdef Py_ssize_t i, s
        cdef Py_ssize_t count = 0
        cdef double total = 0.0
        cdef double size = 0.0
        cdef double low, high, room, sign
        cdef double b_low = -INFINITY
        cdef double b_high = INFINITY
        cdef Crossing* crossing
        for i in range(self.n):
            total += c[i]
            size += fabs(c[i])
            if state[i] >= 0:
                self._limits(i, state, &low, &high)
                b_low = max(b_low, low - h[i])
                b_high = min(b_high, high - h[i])
        if fabs(total) <= 1e-13 * size:
            b[0] = 0.5 * (b_low + b_high)
            return False
        # Too much weight: b rises and rows pass the knots on their right, the nearest first.
        sign = 1.0 if total > 0 else -1.0
        crossing = <Crossing*>&self.crossings[0]
        for i in range(self.n):
            s = state[i] // 2 if sign > 0 else state[i] // 2 - 1
            while state[i] >= 0 and 0 <= s < self.m:
                crossing[count].b = sign * (self.knots[i, s] - h[i])
                crossing[count].row = i
                count += 1
                s += 1 if sign > 0 else -1
        qsort(crossing, count, sizeof(Crossing), &_by_intercept)
        for i in range(count):
            s = state[crossing[i].row] // 2
            if sign > 0:
                room = C * (self.levels[crossing[i].row, s]
                            - self.levels[crossing[i].row, s + 1])
            else:
                room = C * (self.levels[crossing[i].row, s - 1]
                            - self.levels[crossing[i].row, s])
            b[0] = sign * crossing[i].b
            if room > fabs(total) * (1 + 1e-12):
                state[crossing[i].row] += <signed char>sign
                self._shift(crossing[i].row, -total, c, h)
                break
            state[crossing[i].row] += <signed char>(2 * sign)
            self._shift(crossing[i].row, -sign * room, c, h)
            total -= sign * room
            if fabs(total) <= 1e-13 * size:
                break
        self._flush(h)
        return True

    cdef Py_ssize_t _find_violators(self, double C, signed char[::1] state, double[::1] c,
                                    double[::1] h, double b, bint wild,
                                    double tol) noexcept nogil:
        """List the rows that violate their state, with the state each wants."""
        cdef Py_ssize_t i
        cdef Py_ssize_t count = 0
        cdef double low, high, slack
        tol *= max(1.0, fabs(b))
        self._measure(c)
        for i in range(self.n):
            if state[i] < 0:
                continue
            if state[i] % 2 == 1:
                self._box(C, i, state, &low, &high)
                slack = 1e-12 * min(high - low, self.largest)
                if c[i] > high + slack:
                    self.wanted[i] = state[i] - 1
                elif c[i] < low - slack:
                    self.wanted[i] = state[i] + 1
                else:
                    continue
            else:
                if wild:
                    continue
                self._limits(i, state, &low, &high)
                if h[i] + b > high + tol:
                    self.wanted[i] = state[i] + 1
                elif h[i] + b < low - tol:
                    self.wanted[i] = state[i] - 1
                else:
                    continue
            self.violators[count] = i
            count += 1
        return count

    cdef Py_ssize_t _keep_worst(self, Py_ssize_t count, signed char[::1] state, double[::1] h,
                                double b, Py_ssize_t most) noexcept nogil:
        """Of the rows that want to enter M keep those at least half as bad as the worst."""
        cdef Py_ssize_t i, row
        cdef Py_ssize_t kept = 0
        cdef double low, high
        cdef double worst = 0.0
        for i in range(count):
            row = self.violators[i]
            if state[row] % 2 == 0:
                self._limits(row, state, &low, &high)
                worst = max(worst, max(h[row] + b - high, low - h[row] - b))
        for i in range(count):
            row = self.violators[i]
            if state[row] % 2 == 0:
                self._limits(row, state, &low, &high)
                if max(h[row] + b - high, low - h[row] - b) < 0.5 * worst or kept >= most:
                    continue
            self.violators[kept] = row
            kept += 1
        return kept

    def make_feasible(self, double C, signed char[::1] state, double[::1] c, double[::1] h,
                      double b):
        """The nearest feasible c, more or less, with its states; state, c and h move in place."""
        with nogil:
            self._make_feasible(C, state, c, h, b)

    cdef void _make_feasible(self, double C, signed char[::1] state, double[::1] c,
                             double[::1] h, double b) noexcept nogil:
        """Bring c back into the box and to sum zero, moving the rows nearest their knots first."""
        cdef Py_ssize_t i, row, k
        cdef Py_ssize_t count = 0
        cdef double total = 0.0
        cdef double size = 0.0
        cdef double low, high, dc
        cdef Crossing* order
        for i in range(self.n):
            low, high = C * self.levels[i, self.m], C * self.levels[i, 0]
            if state[i] < 0:
                low = high = 0.0
            dc = min(max(c[i], low), high) - c[i]
            if fabs(dc) > 1e-14 * (high - low):  # else rounding, not worth a row of K
                self._shift(i, dc, c, h)
            c[i] = min(max(c[i], low), high)
            total += c[i]
            size += fabs(c[i])
        self._flush(h)
        if self.intercept and fabs(total) > 1e-14 * size:
            order = <Crossing*>&self.crossings[0]
            for i in range(self.n):
                if state[i] >= 0:
                    order[count].row = i
                    order[count].b = INFINITY
                    for k in range(self.m):
                        order[count].b = min(order[count].b, fabs(h[i] + b - self.knots[i, k]))
                    count += 1
            qsort(order, count, sizeof(Crossing), &_by_intercept)
            for i in range(count):
                row = order[i].row
                dc = max(C * self.levels[row, self.m] - c[row], -total)
                dc = min(C * self.levels[row, 0] - c[row], dc)
                self._shift(row, dc, c, h)
                total += dc
                if total == 0.0:
                    break
            self._flush(h)
        self._measure(c)
        for i in range(self.n):
            if state[i] >= 0:
                state[i] = self._state_of(C, i, c[i])

    cdef signed char _state_of(self, double C, Py_ssize_t row, double c) noexcept nogil:
        """The place that goes with a coefficient."""
        cdef Py_ssize_t k
        cdef double high, low, slack
        for k in range(self.m):
            high, low = C * self.levels[row, k], C * self.levels[row, k + 1]
            slack = 1e-13 * min(high - low, self.largest)
            if c >= high - slack:
                return <signed char>(2 * k)
            if c > low + slack:
                return <signed char>(2 * k + 1)
        return <signed char>(2 * self.m)

    cdef void _measure(self, double[::1] c) noexcept nogil:
        """The largest coefficient: rounding is relative to it where boxes are far larger."""
        cdef Py_ssize_t i
        self.largest = 0.0
        for i in range(self.n):
            self.largest = max(self.largest, fabs(c[i]))

    cdef double _residual(self, Py_ssize_t size, signed char[::1] state, double[::1] h,
                          double b) noexcept nogil:
        cdef Py_ssize_t i, row
        cdef double worst = 0.0
        for i in range(size):
            row = self.at_knot[i]
            worst = max(worst, fabs(h[row] + b - self.knots[row, state[row] // 2]))
        return worst

    cdef void _move(self, double C, Py_ssize_t count, signed char[::1] state, double[::1] c,
                    double[::1] h) noexcept nogil:
        cdef Py_ssize_t i, row
        for i in range(count):
            row = self.violators[i]
            state[row] = self.wanted[row]
            if state[row] % 2 == 0:
                self._shift(row, C * self.levels[row, state[row] // 2] - c[row], c, h)
                c[row] = C * self.levels[row, state[row] // 2]
        self._flush(h)


def add_rows(const double[:, ::1] K, const Py_ssize_t[::1] rows, const double[::1] steps,
             double[::1] h):
    """h += sum over k of steps[k] K[rows[k]]: K c, when those coefficients rise by that much."""
    if rows.shape[0] > 0:
        with nogil:
            exactcv_add_rows(&K[0, 0], K.shape[0], &rows[0], &steps[0], rows.shape[0], &h[0])


def census(const signed char[::1] state, const double[::1] c):
    """How many rows are at a knot, and how many have a coefficient though they are at none."""
    cdef Py_ssize_t i
    cdef Py_ssize_t free = 0
    cdef Py_ssize_t bound = 0
    for i in range(state.shape[0]):
        if state[i] > 0 and state[i] % 2 == 1:
            free += 1
        elif c[i] != 0.0:
            bound += 1
    return free, bound
