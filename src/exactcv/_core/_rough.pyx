"""A rough solution by working-set steps, in single precision.

    min over c   1/2 c'Kc + sum_i C_i L*_i(-c_i / C_i)      (sum c = 0 with an intercept)

in the notation of ``problem/losses.py`` and with the states of ``_active_set.pyx``.  A step moves
the pair of coefficients that gains most (Fan, Chen & Lin 2005), or one of them without an
intercept, to the best point or to the next level.  A row at a level grows towards the knot on its
left and shrinks towards the knot on its right; between two levels both are the knot it is at.

A step costs two passes over the rows (``rough_steps.h``): these, and the rows of K that they read,
are in single precision, which takes half the time.  K is divided by its largest diagonal entry and
c multiplied by it.  c is kept in double precision, and K c is brought up to date in double
precision after each round: what is rough is where the steps stop, not what is returned.

Once the violation is small, rows far from their knots are *set aside*: a round then goes on with
the others alone, whose part of K is packed into a matrix of its own.  The next round looks at all
rows again.
"""

from libc.math cimport INFINITY

import numpy as np

cdef extern from "rough_steps.h" nogil:
    ctypedef struct Extremes "exactcv_extremes_t":
        Py_ssize_t i
        float top
        float bottom

    Extremes advance "exactcv_advance"(
        float *h, float step, const float *row, const float *other, const float *up,
        const float *down, Py_ssize_t n)
    Py_ssize_t partner "exactcv_partner"(
        const float *h, const float *down, const float *diagonal, const float *row, float own,
        float top, Py_ssize_t n)
    Extremes advance_one "exactcv_advance_one"(
        float *h, float step, const float *row, const float *up, const float *down,
        const float *diagonal, Py_ssize_t n)

cdef extern from "vector.h" nogil:
    void exactcv_add_rows(const double *K, Py_ssize_t n, const Py_ssize_t *rows, const double *a,
                          Py_ssize_t count, double *h)

# The curvature of a pair, relative to the largest diagonal entry, is taken to be this at least.
cdef double LEAST_CURVATURE = 1e-12
# Packing pays if less than this share of the rows is left.
cdef double WORTH_PACKING = 0.6
cdef int MOST_ROUNDS = 50
cdef enum:
    LOOK_EVERY = 1000  # steps between looks at the cancel flag


cdef class RoughSteps:
    """Workspace for problems that share K, knots and levels (for C = 1).

    Parameters
    ----------
    K : (n, n) float64
    K_single : (n, n) float32
        K divided by ``scale``.
    scale : float
    knots : (n, m), levels : (n, m + 1)
        As in ``ActiveSet``.
    intercept : bool
    """

    cdef const double[:, ::1] K
    cdef const float[:, ::1] K_single
    cdef const double[:, ::1] knots
    cdef const double[:, ::1] levels
    cdef bint intercept
    cdef double scale
    cdef Py_ssize_t n, m
    # The rows that take part in a round, packed: entry k of these arrays belongs to row where[k].
    cdef Py_ssize_t active
    cdef Py_ssize_t[::1] where
    cdef float[::1] h
    cdef float[::1] up
    cdef float[::1] down
    cdef float[::1] diagonal
    # Their part of K, filled row by row when first asked for; unless all rows take part.
    cdef float[::1] pack
    cdef char[::1] filled
    # What c was when h was last right, and what has changed since.
    cdef double[::1] before
    cdef double[::1] steps
    cdef Py_ssize_t[::1] moved

    def __init__(self, K, K_single, double scale, knots, levels, bint intercept):
        self.K, self.K_single, self.scale = K, K_single, scale
        self.knots, self.levels = knots, levels
        self.intercept = intercept
        self.n, self.m = knots.shape[0], knots.shape[1]
        self.h, self.up, self.down, self.diagonal = np.empty((4, self.n), dtype=np.float32)
        self.where, self.moved = np.empty((2, self.n), dtype=np.intp)
        self.pack = np.empty(1, dtype=np.float32)
        self.filled = np.empty(self.n, dtype=np.int8)
        self.before, self.steps = np.empty((2, self.n))

    def run(self, double C, signed char[::1] state, double[::1] c, double[::1] h, double eps,
            double calm, Py_ssize_t max_iter, const int[::1] cancel):
        """Take steps until no pair violates its conditions by more than eps.

        ``state``, ``c`` and ``h`` (= K c) move in place.  c must come in feasible, with the states
        that belong to it; rows with state -1 take no part and keep their coefficient.  Once the
        violation is at most ``calm``, rows twice as far from their knots are set aside.

        Returns
        -------
        iterations : int
        violation : float
            As the steps see it, in single precision.
        """
        cdef Py_ssize_t done = 0
        cdef double goal = max(eps, calm)
        cdef Extremes now
        for _ in range(MOST_ROUNDS):
            self._take_all(state, c, h)
            self._set_aside(Extremes(0, 0.0, 0.0), INFINITY)
            with nogil:
                now = self._walk(C, state, c, goal, max_iter, cancel, &done)
            if now.top - now.bottom <= eps or done >= max_iter or cancel[0]:
                break
            self._set_aside(now, 2.0 * calm)
            with nogil:
                self._walk(C, state, c, eps, max_iter, cancel, &done)
                self._catch_up(c, h)
            goal = calm if goal > eps else eps
        with nogil:
            self._catch_up(c, h)
        return done, now.top - now.bottom

    cdef void _take_all(self, signed char[::1] state, double[::1] c, double[::1] h) noexcept nogil:
        """Every row takes part."""
        cdef Py_ssize_t i
        self.active = self.n
        for i in range(self.n):
            self.where[i] = i
            self.h[i] = <float>h[i]
            self.diagonal[i] = self.K_single[i, i]
            self.before[i] = c[i]
            self._limits(i, state)

    cdef _set_aside(self, Extremes now, double far):
        """Go on without the rows that are far from the knots they can move to, if they are many.

        Rows that take no part are farther than any distance.
        """
        cdef double low = (now.bottom if self.intercept else 0.0) - far
        cdef double high = (now.top if self.intercept else 0.0) + far
        cdef Py_ssize_t k, t, count = 0
        for k in range(self.active):
            if self.up[k] - self.h[k] > low or self.down[k] - self.h[k] < high:
                self.moved[count] = k
                count += 1
        if count > WORTH_PACKING * self.active or count == 0:
            return
        if self.pack.shape[0] < count * count:
            self.pack = np.empty(count * count, dtype=np.float32)
        self.active = count
        for k in range(count):
            t = self.moved[k]
            self.filled[k] = False
            self.where[k] = self.where[t]
            self.h[k], self.diagonal[k] = self.h[t], self.diagonal[t]
            self.up[k], self.down[k] = self.up[t], self.down[t]

    cdef void _catch_up(self, double[::1] c, double[::1] h) noexcept nogil:
        """Bring h = K c up to date."""
        cdef Py_ssize_t i, count = 0
        for i in range(self.n):
            if c[i] != self.before[i]:
                self.moved[count] = i
                self.steps[count] = c[i] - self.before[i]
                self.before[i] = c[i]
                count += 1
        exactcv_add_rows(&self.K[0, 0], self.n, &self.moved[0], &self.steps[0], count, &h[0])

    cdef const float *_row(self, Py_ssize_t k) noexcept nogil:
        """Row k of the rows that take part, over the rows that take part."""
        cdef const float *source = &self.K_single[self.where[k], 0]
        cdef float *row
        cdef Py_ssize_t t
        if self.active == self.n:
            return source
        row = &self.pack[k * self.active]
        if not self.filled[k]:
            self.filled[k] = True
            for t in range(self.active):
                row[t] = source[self.where[t]]
        return row

    cdef Extremes _walk(self, double C, signed char[::1] state, double[::1] c, double eps,
                        Py_ssize_t max_iter, const int[::1] cancel,
                        Py_ssize_t* done) noexcept nogil:
        """Steps until the violation is at most eps."""
        cdef const float *row = self._row(0)
        cdef const float *other = row
        cdef Py_ssize_t j
        cdef float step = 0.0
        cdef Extremes now
        while True:
            if self.intercept:
                now = advance(&self.h[0], step, row, other, &self.up[0], &self.down[0],
                              self.active)
            else:
                now = advance_one(&self.h[0], step, row, &self.up[0], &self.down[0],
                                  &self.diagonal[0], self.active)
            if now.i == self.active or not now.top - now.bottom > eps or done[0] >= max_iter:
                break
            if done[0] % LOOK_EVERY == 0 and cancel[0]:
                break
            done[0] += 1
            row = self._row(now.i)
            if not self.intercept:
                step = <float>(self.scale * self._move_one(C, now.i, state, c))
                continue
            j = partner(&self.h[0], &self.down[0], &self.diagonal[0], row, self.diagonal[now.i],
                        now.top, self.active)
            if j == self.active:  # not a number somewhere
                break
            other = self._row(j)
            step = <float>(self.scale * self._move_pair(C, now.i, j, state, c))
        return now

    cdef double _move_pair(self, double C, Py_ssize_t k, Py_ssize_t l, signed char[::1] state,
                           double[::1] c) noexcept nogil:
        """Raise the first coefficient and lower the second by the same best step."""
        cdef Py_ssize_t i = self.where[k], j = self.where[l]
        cdef double bend = self.K[i, i] + self.K[j, j] - 2.0 * self.K[i, j]
        cdef double rise = (<double>self.up[k] - self.h[k]) - (<double>self.down[l] - self.h[l])
        cdef double step = rise / max(bend, LEAST_CURVATURE * self.scale)
        cdef double room_i = self._room(C, i, state, c, True)
        cdef double room_j = self._room(C, j, state, c, False)
        step = min(step, min(room_i, room_j))
        self._shift(C, k, step, True, step >= room_i, state, c)
        self._shift(C, l, -step, False, step >= room_j, state, c)
        return step

    cdef double _move_one(self, double C, Py_ssize_t k, signed char[::1] state,
                          double[::1] c) noexcept nogil:
        """Move one coefficient by its best step; negative if it shrinks."""
        cdef Py_ssize_t i = self.where[k]
        cdef bint grows = self.up[k] - self.h[k] > self.h[k] - self.down[k]
        cdef double size = self.up[k] - self.h[k] if grows else self.h[k] - self.down[k]
        cdef double step = size / max(self.K[i, i], LEAST_CURVATURE * self.scale)
        cdef double room = self._room(C, i, state, c, grows)
        cdef bint all_of_it = step >= room
        step = min(step, room)
        if not grows:
            step = -step
        self._shift(C, k, step, grows, all_of_it, state, c)
        return step

    cdef inline double _room(self, double C, Py_ssize_t i, signed char[::1] state, double[::1] c,
                             bint grows) noexcept nogil:
        """How far c_i can go before it meets a level."""
        cdef Py_ssize_t s = state[i] // 2
        if grows:
            return C * self.levels[i, s if state[i] % 2 else s - 1] - c[i]
        return c[i] - C * self.levels[i, s + 1]

    cdef inline void _shift(self, double C, Py_ssize_t k, double step, bint grows, bint to_level,
                            signed char[::1] state, double[::1] c) noexcept nogil:
        """Change a coefficient, exactly onto the next level if that is reached.

        A step of zero, where rounding has left a coefficient on its level, has a direction too.
        """
        cdef Py_ssize_t i = self.where[k]
        cdef Py_ssize_t s = state[i] // 2
        cdef bint inside = state[i] % 2
        if to_level:
            if grows:
                s -= 0 if inside else 1
            else:
                s += 1
            state[i] = <signed char>(2 * s)
            c[i] = C * self.levels[i, s]
        else:
            if not inside:
                state[i] += <signed char>(-1 if grows else 1)
            c[i] += step
        self._limits(k, state)

    cdef inline void _limits(self, Py_ssize_t k, signed char[::1] state) noexcept nogil:
        """The knots that a coefficient grows and shrinks towards."""
        cdef Py_ssize_t i = self.where[k]
        cdef Py_ssize_t s = state[i] // 2
        self.up[k], self.down[k] = -INFINITY, INFINITY
        if state[i] < 0:
            return
        if state[i] % 2:
            self.up[k] = self.down[k] = <float>self.knots[i, s]
            return
        if s > 0:
            self.up[k] = <float>self.knots[i, s - 1]
        if s < self.m:
            self.down[k] = <float>self.knots[i, s]
