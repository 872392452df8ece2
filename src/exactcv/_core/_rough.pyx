"""A rough solution by working-set steps, in single precision.

    min over c   1/2 c'Kc + sum_i C_i L*_i(-c_i / C_i)      (sum c = 0 with an intercept)

in the notation of ``problem/losses.py`` and with the states of ``_active_set.pyx``.  A step moves
the pair of coefficients that gains most (Fan, Chen & Lin 2005), or one of them without an
intercept, to the best point or to the next level.  A row at a level grows towards the knot on its
left and shrinks towards the knot on its right; between two levels both are the knot it is at.

A step costs two passes over the rows (``rough_steps.h``): these, and the rows of K that they read,
are in single precision, which takes half the time.  K is divided by its largest diagonal entry and
c multiplied by it.  c is kept in double precision, and K c is brought up to date in double
precision in the end: what is rough is where the steps stop, not what is returned.

Where rows are many, most steps are not worth two passes over all of them.  A round takes the rows
that want to move most (the *block*, among them all free rows if there is room), whose part of K is
packed into a matrix that stays in the cache, and goes on with them alone until their violation is a
part of what it was.  Then all rows are looked at again.  Rows keep their place in the pack from one
round to the next, as long as they are of use.
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

    void add_single "exactcv_add_single"(
        const float *K, Py_ssize_t n, const Py_ssize_t *rows, const float *a, Py_ssize_t count,
        float *h)

cdef extern from "vector.h" nogil:
    void exactcv_add_rows(const double *K, Py_ssize_t n, const Py_ssize_t *rows, const double *a,
                          Py_ssize_t count, double *h)

# The curvature of a pair, relative to the largest diagonal entry, is taken to be this at least.
cdef double LEAST_CURVATURE = 1e-12
# A block has at most this share of the rows: with more of them it does not pay.
cdef double WORTH_PACKING = 0.6
# A round goes on until the violation within the block is this share of that of all rows.
cdef double GAIN = 0.1
# Rounds allowed without a new low of the violation: rounding, or none of the steps moves anything.
cdef int PATIENCE = 30
# Places in the pack beyond this share of the block are given up.
cdef double CLUTTER = 1.5
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
    cdef bint unsettled
    cdef double scale
    cdef Py_ssize_t n, m
    # All rows: K c, and the knots that c grows and shrinks towards.
    cdef float[::1] all_h
    cdef float[::1] all_up
    cdef float[::1] all_down
    # The rows that take part in a round: entry k of these arrays belongs to row where[k].
    cdef Py_ssize_t active
    cdef Py_ssize_t[::1] where
    cdef Py_ssize_t[::1] slot
    cdef char[::1] listed
    cdef float[::1] h
    cdef float[::1] up
    cdef float[::1] down
    cdef float[::1] diagonal
    # Their part of K, unless all rows take part: of row k the first filled[k] entries are there.
    cdef Py_ssize_t block
    cdef Py_ssize_t packed
    cdef float[:, ::1] pack
    cdef Py_ssize_t[::1] filled
    # What c was when h, and all_h, were last right, and what has changed since.
    cdef double[::1] before
    cdef double[::1] then
    cdef double[::1] steps
    cdef float[::1] single_steps
    cdef Py_ssize_t[::1] moved

    def __init__(self, K, K_single, double scale, knots, levels, bint intercept,
                 Py_ssize_t block=2048):
        self.K, self.K_single, self.scale = K, K_single, scale
        self.knots, self.levels = knots, levels
        self.intercept = intercept
        self.n, self.m = knots.shape[0], knots.shape[1]
        self.h, self.up, self.down, self.diagonal = np.empty((4, self.n), dtype=np.float32)
        self.all_h, self.all_up, self.all_down = np.empty((3, self.n), dtype=np.float32)
        self.where, self.moved, self.filled = np.empty((3, self.n), dtype=np.intp)
        self.slot = np.full(self.n, -1, dtype=np.intp)
        self.listed = np.zeros(self.n, dtype=np.int8)
        self.before, self.then, self.steps = np.empty((3, self.n))
        self.single_steps = np.empty(self.n, dtype=np.float32)
        self.block = max(2, min(block, <Py_ssize_t>(WORTH_PACKING * self.n)))
        self.packed = 0
        # One line of the cache more than a round number: rows of the pack do not collide there.
        self.pack = np.empty((self.block, self.block + 16), dtype=np.float32)

    def run(self, double C, signed char[::1] state, double[::1] c, double[::1] h, double eps,
            Py_ssize_t max_iter, const int[::1] cancel):
        """Take steps until no pair violates its conditions by more than eps.

        ``state`` and ``c`` move in place, and ``h`` (= K c) with the next `settle`; until then the
        next run goes on from there.  c must come in feasible, with the states that belong to it;
        rows with state -1 take no part and keep their coefficient.

        Returns
        -------
        iterations : int
        violation : float
            As the steps see it, in single precision.
        """
        cdef Py_ssize_t done = 0
        cdef int patience = PATIENCE
        cdef float least = INFINITY
        cdef Extremes now
        if not self.unsettled:
            self._take_all(state, c, h)
        self.unsettled = True
        while True:
            with nogil:
                now = self._look()
            if not now.top - now.bottom > eps or done >= max_iter or cancel[0] or not patience:
                break
            patience = PATIENCE if now.top - now.bottom < least else patience - 1
            least = min(least, now.top - now.bottom)
            self._choose(now)
            with nogil:
                now = self._walk(C, state, c, max(eps, GAIN * (now.top - now.bottom)), max_iter,
                                 cancel, &done)
                self._carry_over(c)
        return done, now.top - now.bottom

    def settle(self, double[::1] c, double[::1] h):
        """Bring h = K c up to date, in double precision."""
        if self.unsettled:
            with nogil:
                self._catch_up(c, h)
        self.unsettled = False

    cdef void _take_all(self, signed char[::1] state, double[::1] c, double[::1] h) noexcept nogil:
        """Start from c and h as they come."""
        cdef Py_ssize_t i
        for i in range(self.n):
            self.all_h[i] = <float>h[i]
            self.before[i] = self.then[i] = c[i]
            self._limits(i, state, &self.all_up[i], &self.all_down[i])

    cdef Extremes _look(self) noexcept nogil:
        """The violation of all rows."""
        cdef const float *row = &self.K_single[0, 0]
        if self.intercept:
            return advance(&self.all_h[0], 0.0, row, row, &self.all_up[0], &self.all_down[0],
                           self.n)
        return advance_one(&self.all_h[0], 0.0, row, &self.all_up[0], &self.all_down[0], row,
                           self.n)

    cdef _choose(self, Extremes now):
        """Which rows take part: those that want to move most."""
        cdef float low = now.bottom if self.intercept else 0.0
        cdef float high = now.top if self.intercept else 0.0
        cdef Py_ssize_t k, count = self._candidates(low, high)
        if count > self.block:
            k = self.block // 2
            wish = np.negative(np.subtract(self.all_up, self.all_h))
            low = max(low, -np.partition(wish, k)[k])
            wish = np.subtract(self.all_down, self.all_h)
            high = min(high, np.partition(wish, k)[k])
            count = self._most_eager(low, high, k)
        self._take(count)

    cdef Py_ssize_t _candidates(self, float low, float high) noexcept nogil:
        """List the rows that want to grow to low at least, or to shrink to high."""
        cdef Py_ssize_t i, count = 0
        for i in range(self.n):
            self.moved[count] = i
            count += (self.all_up[i] - self.all_h[i] >= low) | (
                self.all_down[i] - self.all_h[i] <= high)
        return count

    cdef Py_ssize_t _most_eager(self, float low, float high, Py_ssize_t most) noexcept nogil:
        """The same, but of those that grow and those that shrink this many at most.

        Those beyond go first: where many are alike, none that wants more is left out.
        """
        cdef Py_ssize_t i, grow = 0, count = 0
        cdef bint alike
        for alike in range(2):
            for i in range(self.n):
                if grow < most and self._reaches(self.all_up[i] - self.all_h[i] - low, alike):
                    self.moved[count] = i
                    self.listed[i] = True
                    grow += 1
                    count += 1
        most += count
        for alike in range(2):
            for i in range(self.n):
                if (count < most and not self.listed[i]
                        and self._reaches(high - (self.all_down[i] - self.all_h[i]), alike)):
                    self.moved[count] = i
                    count += 1
        for i in range(grow):
            self.listed[self.moved[i]] = False
        return count

    cdef inline bint _reaches(self, float beyond, bint alike) noexcept nogil:
        return beyond == 0.0 if alike else beyond > 0.0

    cdef void _take(self, Py_ssize_t count) noexcept nogil:
        """Give the first ``count`` rows in ``moved`` their places; those that have one keep it."""
        cdef Py_ssize_t i, k, new = 0
        for k in range(count):
            new += self.slot[self.moved[k]] < 0
        if self.packed + new > min(CLUTTER * count, <double>max(self.block, count)):
            for k in range(self.packed):
                self.slot[self.where[k]] = -1
            self.packed = 0
        for k in range(count):
            i = self.moved[k]
            if self.slot[i] < 0:
                self.slot[i] = self.packed
                self.where[self.packed] = i
                self.filled[self.packed] = 0
                self.diagonal[self.packed] = self.K_single[i, i]
                self.packed += 1
        self.active = self.packed
        for k in range(self.active):
            i = self.where[k]
            self.h[k], self.up[k], self.down[k] = self.all_h[i], self.all_up[i], self.all_down[i]

    cdef void _carry_over(self, double[::1] c) noexcept nogil:
        """Bring all_h up to date, and the limits of the rows that took part."""
        cdef Py_ssize_t i, k, count = 0
        for k in range(self.active):
            i = self.where[k]
            # A step of zero changes them too.
            self.all_up[i], self.all_down[i] = self.up[k], self.down[k]
            if c[i] != self.then[i]:
                self.moved[count] = i
                self.single_steps[count] = <float>(self.scale * (c[i] - self.then[i]))
                self.then[i] = c[i]
                count += 1
        add_single(&self.K_single[0, 0], self.n, &self.moved[0], &self.single_steps[0], count,
                   &self.all_h[0])

    cdef void _catch_up(self, double[::1] c, double[::1] h) noexcept nogil:
        """Bring h = K c up to date."""
        cdef Py_ssize_t i, count = 0
        for i in range(self.n):
            if c[i] != self.before[i]:
                self.moved[count] = i
                self.steps[count] = c[i] - self.before[i]
                count += 1
        exactcv_add_rows(&self.K[0, 0], self.n, &self.moved[0], &self.steps[0], count, &h[0])

    cdef const float *_row(self, Py_ssize_t k) noexcept nogil:
        """Row k of the rows that take part, over the rows that take part."""
        cdef const float *source = &self.K_single[self.where[k], 0]
        cdef float *row
        cdef Py_ssize_t t
        row = &self.pack[k, 0]
        for t in range(self.filled[k], self.active):
            row[t] = source[self.where[t]]
        self.filled[k] = self.active
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
        self._limits(i, state, &self.up[k], &self.down[k])

    cdef inline void _limits(self, Py_ssize_t i, signed char[::1] state, float* up,
                             float* down) noexcept nogil:
        """The knots that a coefficient grows and shrinks towards."""
        cdef Py_ssize_t s = state[i] // 2
        up[0], down[0] = -INFINITY, INFINITY
        if state[i] < 0:
            return
        if state[i] % 2:
            up[0] = down[0] = <float>self.knots[i, s]
            return
        if s > 0:
            up[0] = <float>self.knots[i, s - 1]
        if s < self.m:
            down[0] = <float>self.knots[i, s]
