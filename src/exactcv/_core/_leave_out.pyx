"""Leave rows out, one at a time, from one full-data solution.

The solution without row j is looked for in rounds.  Some rows have changed their place since the
full-data solution (at first none, or row j itself); those that entered or left M have an unknown
each, and the table T (``_base.pyx``) gives one small linear system for them:

    i has left M for a level:   its u_i is unknown, its c_i is known;
    i has come to a knot:       its c_i is unknown, its u_i is known.

All else follows by columns of T.  Every row that then violates its place moves to the next one, all
at once, until none does: block principal pivoting with as many unknowns as rows have changed.
Without any change this is the closed form  u_j' = y_j - c_j / P_jj.

Where rounds do not end, c_j goes only part of its way, as far as a few rows take to leave their
place, and from there on.  Where that does not help either, the row is driven out event by event
(``_drive.pyx``).
"""

from libc.math cimport INFINITY, NAN, exp2, fabs, log2, round
from libc.string cimport memcpy

from scipy.linalg.cython_blas cimport daxpy
from scipy.linalg.cython_lapack cimport dgesv

cimport cython

import numpy as np

from exactcv._core._base cimport Base
from exactcv._core._drive cimport DONE, Drive

cdef extern from "vector.h" nogil:
    Py_ssize_t exactcv_outside(
        const double *value, const double *moved, double step, const double *low,
        const double *high, double tol, Py_ssize_t n, Py_ssize_t *found)

cdef enum:
    MOST_CHANGED = 256
    N_FACTS = 5
    MOST_ROUNDS = 40
    # Rounds allowed without a new low in the number of violators.
    PATIENCE = 3
    # More violators than this and than a third of the rows in M mean that the step was too long.
    MANY_VIOLATORS = 64
    VIOLATORS_SHARE = 3
    # How often rows wait for columns before each makes its own; with so few in M they do not wait.
    ATTEMPTS = 8
    FEW_FREE = 24
    # Where so many rows on end have come to nothing, or so many have had more than FAR events each
    # and more than a quarter of the rows in M, the others do not try: another start is better.
    GIVE_UP = 6
    FAR = 48
    FAR_SHARE = 4
    # Systems so small take less time than a call of LAPACK.
    FEW_UNKNOWN = 8
    # So many rows may leave their place at once on a part of the way.
    LEAVING = 1
    # Outcomes besides those of a drive
    STALLED = 9
    WAITING = 10

cpdef enum Driven:
    """Which rows that rounds do not settle are driven out."""
    NOBODY = 0
    SHORT = 1  # with few in M those that do not take many events, before they go part of the way
    ALL = 2

# A row depends on M if the pivot with which it enters is smaller, relative to K's diagonal.
cdef double SMALL_PIVOT = 1e-9
# By this much of its box a coefficient may be outside.
cdef double SLACK = 1e-12
# The least part of the way that is tried in rounds.
cdef double SHORTEST = 1.0 / 64

# The left-out value (NaN for a row that is not in play); the sizes of the moves that made the
# solution, in u of rows that were in M and in c of others; how far the coefficients of rows in M
# can rise and fall in all, whichever is less, or 0 if none is strictly inside its box; what was cut
# off to keep them in their boxes, with what is left of the equations for rows that have changed.
FACTS = ("value", "moves_free", "moves_other", "room", "clipped")


cdef inline void _insert(double* first, double way, double rate) noexcept nogil:
    """A crossing after way / rate, among the first ones, which are sorted."""
    cdef double t = max(way / rate, 0.0)
    cdef int r = LEAVING
    if t >= first[r]:
        return
    while r > 0 and first[r - 1] > t:
        first[r] = first[r - 1]
        r -= 1
    first[r] = t


cdef inline void _eliminate(double* A, double* b, Py_ssize_t n) noexcept nogil:
    """b := A^-1 b as LAPACK does it, with A by columns; the pivots stay on A's diagonal."""
    cdef Py_ssize_t k, i, j, largest
    cdef double factor
    for k in range(n):
        largest = k
        for i in range(k + 1, n):
            if fabs(A[k * n + i]) > fabs(A[k * n + largest]):
                largest = i
        if A[k * n + largest] == 0.0:
            A[k * n + k] = 0.0
            return
        if largest != k:
            b[k], b[largest] = b[largest], b[k]
            for j in range(k, n):
                A[j * n + k], A[j * n + largest] = A[j * n + largest], A[j * n + k]
        for i in range(k + 1, n):
            factor = A[k * n + i] / A[k * n + k]
            b[i] -= factor * b[k]
            for j in range(k + 1, n):
                A[j * n + i] -= factor * A[j * n + k]
    for k in range(n - 1, -1, -1):
        b[k] /= A[k * n + k]
        for i in range(k):
            b[i] -= b[k] * A[k * n + i]


@cython.final
cdef class LeaveOut:
    """Workspace for leaving rows out of one solution.

    Parameters
    ----------
    base : Base
    near : float
        A coefficient nearer to an end of its box, relative to it, is not strictly inside.
    offset : (a,)
        What happens besides to every row, c in M and u elsewhere, whichever row is left out: the
        base is then the solution of a problem that differs from the full one.
    given : float
        The size of the moves that make up ``offset``.
    """

    cdef Base base
    cdef Drive drive
    cdef Py_ssize_t a
    # what moves for each row (c in M, else u), between which limits it stays in its place
    cdef double[::1] value
    cdef double[::1] low
    cdef double[::1] high
    cdef double[::1] moved
    cdef double[::1] start
    # the boxes of rows in M, and how far their coefficients can rise and fall in all
    cdef double[::1] top
    cdef double[::1] bottom
    cdef double[::1] inner_top
    cdef double[::1] inner_bottom
    cdef double near
    cdef double rises
    cdef double falls
    # the rows that have changed: where they are now, what is known of each, what was found
    cdef Py_ssize_t[::1] changed
    cdef Py_ssize_t n_changed
    cdef Py_ssize_t[::1] saved
    cdef Py_ssize_t n_saved
    cdef signed char[::1] saved_state
    cdef signed char[::1] state
    cdef signed char[::1] open
    cdef double[::1] target
    cdef double[::1] answer
    cdef double[::1] start_answer
    cdef Py_ssize_t[::1] place
    cdef Py_ssize_t[::1] unknown
    cdef double[::1] matrix
    cdef double[::1] right
    cdef int[::1] pivots
    cdef Py_ssize_t[::1] violators
    cdef signed char[::1] wanted
    cdef const double[::1] offset
    cdef double given
    cdef double unit
    cdef bint waits
    cdef bint hasty
    cdef Py_ssize_t most_violators
    cdef Py_ssize_t far
    cdef readonly Py_ssize_t events

    def __init__(self, Base base, double near, const double[::1] offset, double given):
        cdef Py_ssize_t i
        self.base, self.drive, self.a, self.near = base, Drive(base), base.a, near
        self.most_violators = min(
            MOST_CHANGED, max(MANY_VIOLATORS, base.k // VIOLATORS_SHARE))
        self.far = max(FAR, base.k // FAR_SHARE)
        self.offset, self.given = offset, given
        # The root of K's diagonal, as a power of two: dividing by it loses nothing.
        self.unit = exp2(round(0.5 * log2(base.scale))) if base.scale > 0 else 1.0
        moving = np.zeros((5, self.a))
        self.value, self.low, self.high, self.moved = moving[0], moving[1], moving[2], moving[3]
        self.start, self.start_answer = moving[4], np.empty(MOST_CHANGED)
        self.changed = np.empty(MOST_CHANGED, dtype=np.intp)
        self.unknown = np.empty(MOST_CHANGED, dtype=np.intp)
        self.state = np.empty(MOST_CHANGED, dtype=np.int8)
        self.saved = np.empty(MOST_CHANGED, dtype=np.intp)
        self.saved_state = np.empty(MOST_CHANGED, dtype=np.int8)
        self.open = np.empty(MOST_CHANGED, dtype=np.int8)
        self.target, self.answer = np.empty(MOST_CHANGED), np.empty(MOST_CHANGED)
        self.place = np.full(self.a, -1, dtype=np.intp)
        self.matrix = np.empty(MOST_CHANGED * MOST_CHANGED)
        self.right = np.empty(MOST_CHANGED)
        self.pivots = np.empty(MOST_CHANGED, dtype=np.intc)
        self.violators = np.empty(self.a, dtype=np.intp)
        self.wanted = np.empty(self.a, dtype=np.int8)
        self.top, self.bottom = np.empty(base.k), np.empty(base.k)
        self.inner_top, self.inner_bottom = np.empty(base.k), np.empty(base.k)
        for i in range(self.a):
            self._limits(i)
        for i in range(base.k):
            self.top[i] = base.box_high(i, base.state[i])
            self.bottom[i] = base.box_low(i, base.state[i])
            self.inner_top[i] = self.top[i] - near * (self.top[i] - self.bottom[i])
            self.inner_bottom[i] = self.bottom[i] + near * (self.top[i] - self.bottom[i])
            self.rises += self.top[i] - base.c[i]
            self.falls += base.c[i] - self.bottom[i]

    def leave_out(self, const Py_ssize_t[::1] who, const Py_ssize_t[::1] position,
                  const double[::1] taken, const double[:, ::1] column,
                  const Py_ssize_t[::1] column_of, double[:, ::1] facts,
                  signed char[::1] outcome, double[:, ::1] out, double[:, ::1] values,
                  int drive, const int[::1] cancel):
        """Take away what each of the rows ``who`` gives up, one row at a time.

        ``position[r]`` is where who[r] stands among the rows in play (-1: nowhere) and ``taken[r]``
        how much of its coefficient goes; ``column[column_of[r]]`` is its column of T if it is not
        in M.  ``facts[r]`` is told of solutions found in rounds, as `FACTS` lists; else NaN.
        ``out`` is empty, or holds full-data coefficients on entry and those without the row on
        exit, row who[r] itself aside.  ``values`` is empty, or the u of rows in play are added to
        it where rounds have found a solution.  ``drive`` says which of the rows that rounds do not
        settle are driven out (nobody with an offset, nor without ``out``).  Where several on end
        come to nothing, or take very many events each, the rest that give up coefficients of the
        same sign do not try.  The loop ends early when another thread sets ``cancel``.
        """
        cdef Py_ssize_t r, i
        cdef int attempt, way
        # By the sign of what is taken: rows that were tried, their events, and those on end that
        # have stalled, or taken many events.
        cdef Py_ssize_t before
        cdef Py_ssize_t[2] tried = [0, 0]
        cdef Py_ssize_t[2] spent = [0, 0]
        cdef Py_ssize_t[2] in_vain = [0, 0]
        cdef Py_ssize_t[2] too_long = [0, 0]
        if drive == SHORT and self.base.k > FEW_FREE:
            drive = NOBODY
        self.hasty = drive == SHORT
        with nogil:
            for r in range(who.shape[0]):
                outcome[r] = WAITING
            for attempt in range(ATTEMPTS):
                # Columns that are asked for are made together, which is many times quicker.
                self.waits = attempt < ATTEMPTS - 1 and self.base.k > FEW_FREE
                for r in range(who.shape[0]):
                    if cancel[0]:
                        break
                    way = taken[r] > 0
                    if outcome[r] != WAITING:
                        continue
                    if not self.hasty and in_vain[way] >= GIVE_UP or drive == NOBODY and (
                            tried[way] >= GIVE_UP and spent[way] > self.far * tried[way]):
                        outcome[r] = STALLED
                        continue
                    before = self.events
                    outcome[r] = self._one(
                        position[r], taken[r],
                        &column[column_of[r], 0] if column_of[r] >= 0 else NULL,
                        &out[r, 0] if out.shape[0] > 0 else NULL,
                        &values[r, 0] if values.shape[0] > 0 else NULL, &facts[r, 0])
                    if outcome[r] != WAITING:
                        tried[way] += 1
                        spent[way] += self.events - before
                        in_vain[way] = in_vain[way] + 1 if outcome[r] == STALLED else 0
                self.base.make_wanted()
            for r in range(who.shape[0]):
                if outcome[r] != DONE:
                    for i in range(N_FACTS):
                        facts[r, i] = NAN
                way = taken[r] > 0
                if outcome[r] == STALLED and drive and not cancel[0] and (
                        drive == ALL or too_long[way] < GIVE_UP):
                    before = self.events
                    outcome[r] = self._drive_out(
                        position[r], taken[r],
                        &column[column_of[r], 0] if column_of[r] >= 0 else NULL, &out[r, 0])
                    if outcome[r] != DONE or self.events - before > self.far:
                        too_long[way] += 1
                    else:
                        too_long[way] = 0

    cdef signed char _one(self, Py_ssize_t j, double taken, const double* column, double* out,
                          double* values, double* facts) noexcept nogil:
        cdef signed char outcome = self._in_parts(j, taken, column)
        if outcome == DONE:
            self._note(j, taken, facts)
            if out != NULL:
                self._write(out)
            if values != NULL:
                self._write_values(values)
        self._forget(j)
        return outcome

    cdef signed char _drive_out(self, Py_ssize_t j, double taken, const double* column,
                                double* out) noexcept nogil:
        cdef Py_ssize_t i
        cdef signed char outcome = self.drive.run(j, taken, column)
        for i in range(self.a):
            out[self.base.rows[i]] = self.drive.c[i]
        self.events += self.drive.events
        self.drive.events = 0
        return outcome

    cdef signed char _in_parts(self, Py_ssize_t j, double taken,
                               const double* column) noexcept nogil:
        """The whole way at once, or as much of it at a time as rounds can do."""
        cdef double done = 0.0, step = 1.0
        cdef bint stalled = False
        cdef signed char outcome
        self._begin(j, taken)
        while True:
            self._save()
            outcome = self._rounds(j, min(done + step, 1.0) * taken, column)
            if outcome == WAITING:
                return WAITING
            if outcome == DONE:
                done += step
                if done >= 1.0:
                    return DONE
                step = self._stride(j, done, taken, column)
            elif self.hasty:
                return STALLED
            else:
                self._restore(j)
                step *= 0.5
                if step < SHORTEST:
                    return STALLED
                if not stalled:
                    stalled, step = True, min(step, self._stride(j, done, taken, column))

    cdef double _stride(self, Py_ssize_t j, double done, double taken,
                        const double* column) noexcept nogil:
        """How far c_j can go on before more than a few rows leave their place.

        As they are placed, everything moves on a line from here to the end.
        """
        cdef Py_ssize_t i, r
        cdef double[LEAVING + 1] first
        for r in range(LEAVING + 1):
            first[r] = 1.0
        self._aim_at(j, done * taken)
        if not self._respond(done * taken, column):
            return 1.0 - done
        memcpy(&self.start[0], &self.moved[0], self.a * sizeof(double))
        memcpy(&self.start_answer[0], &self.answer[0], self.n_changed * sizeof(double))
        self._aim_at(j, taken)
        self._respond(taken, column)  # the same matrix: what was solved before is solved again
        for i in range(self.a):
            if self.moved[i] > self.high[i] - self.value[i]:
                _insert(first, self.high[i] - self.value[i] - self.start[i],
                        self.moved[i] - self.start[i])
            elif self.moved[i] < self.low[i] - self.value[i]:
                _insert(first, self.low[i] - self.value[i] - self.start[i],
                        self.moved[i] - self.start[i])
        for r in range(self.n_changed):
            i = self.changed[r]
            if i == j:
                continue
            if self.open[r]:
                self._first_of_changed(first, r, self.start_answer[r], self.answer[r])
            else:
                self._first_of_changed(first, r, self.start[i], self.moved[i])
        return max(0.5 * (first[LEAVING - 1] + first[LEAVING]) * (1.0 - done), SHORTEST)

    cdef void _first_of_changed(self, double* first, Py_ssize_t r, double here,
                                double there) noexcept nogil:
        """The same for a row that has changed its place, by how far it is from where it was."""
        cdef Py_ssize_t i = self.changed[r]
        cdef signed char state = self.state[r]
        cdef double low, high
        if state % 2 == 1:
            high = self.base.box_high(i, state) - self.base.c[i]
            low = self.base.box_low(i, state) - self.base.c[i]
        else:
            self.base.limits(i, state, &low, &high)
            high -= self.base.u[i]
            low -= self.base.u[i]
        if there > high:
            _insert(first, high - here, there - here)
        elif there < low:
            _insert(first, low - here, there - here)

    cdef void _aim_at(self, Py_ssize_t j, double taken) noexcept nogil:
        if 0 <= j < self.base.k:
            self.target[0] = -taken

    cdef void _begin(self, Py_ssize_t j, double taken) noexcept nogil:
        if j >= 0:
            self.low[j], self.high[j] = -INFINITY, INFINITY
        if 0 <= j < self.base.k:
            self._add(j)
            self.state[0], self.open[0] = self.base.state[j] + 1, 1
            self._aim_at(j, taken)

    cdef void _save(self) noexcept nogil:
        cdef Py_ssize_t s
        self.n_saved = self.n_changed
        for s in range(self.n_changed):
            self.saved[s], self.saved_state[s] = self.changed[s], self.state[s]

    cdef void _restore(self, Py_ssize_t j) noexcept nogil:
        cdef Py_ssize_t s, i
        self._forget(-1)
        for s in range(self.n_saved):
            i = self.saved[s]
            self._add(i)
            self.state[s] = self.saved_state[s]
            self._aim(s)
            if i == j:
                self.open[s] = 1

    cdef signed char _rounds(self, Py_ssize_t j, double taken,
                             const double* column) noexcept nogil:
        cdef Py_ssize_t count, least = self.a + 1
        cdef int _round, patience = PATIENCE
        cdef signed char outcome
        self._aim_at(j, taken)
        for _round in range(MOST_ROUNDS):
            if not self._respond(taken, column):
                return STALLED
            count = self._find_violators(j)
            if count == 0:
                return DONE
            if count < least:
                least, patience = count, PATIENCE
            elif patience > 0:
                patience -= 1
            else:
                return STALLED
            if count > (FEW_UNKNOWN if self.hasty else self.most_violators):
                return STALLED
            outcome = self._move(count)
            if outcome != DONE:
                return outcome
        return STALLED

    cdef bint _respond(self, double taken, const double* column) noexcept nogil:
        """Solve for the unknowns; ``moved`` is then how far every row has moved.

        A row that comes to a knot may depend on M as it was, if what it depends on has left: of two
        rows with equal features, each takes the other's place.  So the pivots of the system tell,
        in units in which K's diagonal is about 1.
        """
        cdef Py_ssize_t r, s, i, size = 0
        cdef int a = <int>self.a, one = 1
        cdef double minus = -taken, x
        cdef const double* other
        for r in range(self.n_changed):
            self.answer[r] = self.target[r]
            if self.open[r]:
                self.unknown[size] = r
                size += 1
        for r in range(size):
            i = self.changed[self.unknown[r]]
            self.right[r] = self.target[self.unknown[r]] - self.offset[i]
            if column != NULL:
                self.right[r] += taken * column[i]
        for s in range(self.n_changed):
            if not self.open[s]:
                other = self.base.column(self.changed[s])
                for r in range(size):
                    self.right[r] -= self.target[s] * other[self.changed[self.unknown[r]]]
        if size > 0 and not self._solve(size):
            return False
        memcpy(&self.moved[0], &self.offset[0], self.a * sizeof(double))
        if column != NULL:
            daxpy(&a, &minus, <double*>column, &one, &self.moved[0], &one)
        for s in range(size):
            self.answer[self.unknown[s]] = self.right[s]
        for s in range(self.n_changed):
            x = self.answer[s]
            if x != 0.0:
                daxpy(&a, &x, <double*>self.base.column(self.changed[s]), &one,
                      &self.moved[0], &one)
        return True

    cdef bint _solve(self, Py_ssize_t size) noexcept nogil:
        """The small system, in place in ``right``; False if it is (nearly) singular."""
        cdef Py_ssize_t r, s, i
        cdef int n = <int>size, one = 1, info = 0
        cdef double in_units
        cdef const double* other
        for s in range(size):
            i = self.changed[self.unknown[s]]
            in_units = self._units(i)
            other = self.base.column(i)
            self.right[s] *= in_units
            for r in range(size):
                i = self.changed[self.unknown[r]]
                self.matrix[s * size + r] = in_units * other[i] * self._units(i)
        if size <= FEW_UNKNOWN:
            _eliminate(&self.matrix[0], &self.right[0], size)
        else:
            dgesv(&n, &one, &self.matrix[0], &n, &self.pivots[0], &self.right[0], &n, &info)
        for s in range(size):
            if not fabs(self.matrix[s * size + s]) > SMALL_PIVOT:
                return False
            self.right[s] *= self._units(self.changed[self.unknown[s]])
        return info == 0

    cdef inline double _units(self, Py_ssize_t i) noexcept nogil:
        """For rows of M the table holds c per u, for others u per c."""
        return self.unit if i < self.base.k else 1.0 / self.unit

    cdef Py_ssize_t _find_violators(self, Py_ssize_t j) noexcept nogil:
        """List the rows that violate their place, with the place each wants."""
        cdef Py_ssize_t i, r, count
        cdef double x
        count = exactcv_outside(&self.value[0], &self.moved[0], 1.0, &self.low[0], &self.high[0],
                                0.0, self.a, &self.violators[0])
        for r in range(count):
            i = self.violators[r]
            # A coefficient above its box wants u to fall, a u above its limit to rise.
            x = self.value[i] + self.moved[i] - self.high[i]
            self.wanted[r] = self.base.state[i] + (1 if (x > 0) == (i >= self.base.k) else -1)
        for r in range(self.n_changed):
            i = self.changed[r]
            if i != j:
                self.wanted[count] = self._place_of(r)
                self.violators[count] = i
                count += self.wanted[count] != self.state[r]
        return count

    cdef signed char _place_of(self, Py_ssize_t r) noexcept nogil:
        """Where a row that has changed wants to be: where it is, or one place further."""
        cdef Py_ssize_t i = self.changed[r]
        cdef signed char state = self.state[r]
        cdef bint was_free = i < self.base.k
        cdef double low, high, x, slack
        if state % 2 == 1:
            high, low = self.base.box_high(i, state), self.base.box_low(i, state)
            slack = SLACK * (high - low)
            x = self.base.c[i] + (self.moved[i] if was_free else self.answer[r])
            return state - 1 if x > high + slack else state + 1 if x < low - slack else state
        self.base.limits(i, state, &low, &high)
        x = self.base.u[i] + (self.answer[r] if was_free else self.moved[i])
        if x > high + self.base.tol:
            return state + 1
        return state - 1 if x < low - self.base.tol else state

    cdef signed char _move(self, Py_ssize_t count) noexcept nogil:
        """All violators to the place they want; STALLED if they are too many."""
        cdef Py_ssize_t r, i, s
        cdef bint all_there = True
        for r in range(count if self.waits else 0):
            i = self.violators[r]
            if not self.base.has_column(i):
                self.base.want(i)
                all_there = False
        if not all_there:
            return WAITING
        for r in range(count):
            i = self.violators[r]
            s = self.place[i]
            if self.wanted[r] == self.base.state[i]:
                self._remove(s)
                continue
            if s < 0:
                if self.n_changed == MOST_CHANGED:
                    return STALLED
                s = self._add(i)
            self.state[s] = self.wanted[r]
            self._aim(s)
        return DONE

    cdef void _aim(self, Py_ssize_t s) noexcept nogil:
        """What is known of a row in its new place."""
        cdef Py_ssize_t i = self.changed[s]
        cdef Py_ssize_t segment = self.state[s] // 2
        cdef bint at_knot = self.state[s] % 2 == 1
        if at_knot:
            self.target[s] = self.base.knots[i, segment] - self.base.u[i]
        else:
            self.target[s] = self.base.levels[i, segment] - self.base.c[i]
        self.open[s] = at_knot != (i < self.base.k)

    cdef Py_ssize_t _add(self, Py_ssize_t i) noexcept nogil:
        cdef Py_ssize_t s = self.n_changed
        self.changed[s], self.place[i] = i, s
        self.base.pinned[i] = 1
        self.low[i], self.high[i] = -INFINITY, INFINITY
        self.n_changed += 1
        return s

    cdef void _remove(self, Py_ssize_t s) noexcept nogil:
        """The row is back where it was."""
        cdef Py_ssize_t i = self.changed[s], last = self.n_changed - 1
        self.place[i], self.base.pinned[i] = -1, 0
        self._limits(i)
        self.n_changed = last
        if s < last:
            self.changed[s], self.place[self.changed[last]] = self.changed[last], s
            self.state[s], self.open[s] = self.state[last], self.open[last]
            self.target[s] = self.target[last]

    cdef void _forget(self, Py_ssize_t j) noexcept nogil:
        """Back to the full-data solution."""
        cdef Py_ssize_t s, i
        for s in range(self.n_changed):
            i = self.changed[s]
            self.place[i], self.base.pinned[i] = -1, 0
            self._limits(i)
        self.n_changed = 0
        if j >= 0:
            self._limits(j)

    cdef void _limits(self, Py_ssize_t i) noexcept nogil:
        """Where c (in M) or u may be while the row stays where it was."""
        cdef signed char state = self.base.state[i]
        cdef double low, high, slack
        if i < self.base.k:
            high, low = self.base.box_high(i, state), self.base.box_low(i, state)
            slack, self.value[i] = SLACK * (high - low), self.base.c[i]
        else:
            self.base.limits(i, state, &low, &high)
            slack, self.value[i] = self.base.tol, self.base.u[i]
        self.low[i], self.high[i] = low - slack, high + slack

    cdef void _write(self, double* out) noexcept nogil:
        """The coefficients that were found; for row j itself the caller knows better."""
        cdef Py_ssize_t i, s
        for i in range(self.base.k):  # those that have changed are put right below
            out[self.base.rows[i]] = max(
                min(self.base.c[i] + self.moved[i], self.top[i]), self.bottom[i])
        for s in range(self.n_changed):
            out[self.base.rows[self.changed[s]]] = self._coefficient(self.changed[s])

    cdef void _write_values(self, double* values) noexcept nogil:
        """Add the u of rows in play to what is there."""
        cdef Py_ssize_t i, s
        for i in range(self.base.k):
            values[self.base.rows[i]] += self.base.u[i]
        for i in range(self.base.k, self.a):
            values[self.base.rows[i]] += self.base.u[i] + self.moved[i]
        for s in range(self.n_changed):
            i = self.changed[s]
            if i < self.base.k:
                values[self.base.rows[i]] += self.answer[s]

    cdef double _coefficient(self, Py_ssize_t i) noexcept nogil:
        """c_i where the row is now."""
        cdef Py_ssize_t s = self.place[i]
        cdef signed char state = self.base.state[i] if s < 0 else self.state[s]
        if state % 2 == 0:
            return self.base.levels[i, state // 2]
        return max(min(self._found(i), self.base.box_high(i, state)), self.base.box_low(i, state))

    cdef double _found(self, Py_ssize_t i) noexcept nogil:
        """The same as it was found, perhaps a little outside its box."""
        return self.base.c[i] + (self.moved[i] if i < self.base.k else self.answer[self.place[i]])

    cdef void _note(self, Py_ssize_t j, double taken, double* facts) noexcept nogil:
        cdef Py_ssize_t i, s
        cdef bint was_free = 0 <= j < self.base.k
        cdef double c, high, low, rises = self.rises, falls = self.falls, clipped = 0.0
        cdef Py_ssize_t inside = 0
        facts[0] = NAN
        if was_free:
            facts[0] = self.base.u[j] + self.answer[self.place[j]]
        elif j >= 0:
            facts[0] = self.base.u[j] + self.moved[j]
        facts[1], facts[2] = 0.0, self.given + (0.0 if was_free else fabs(taken))
        for i in range(self.base.k):
            c = self.moved[i]
            rises -= c
            falls += c
            c += self.base.c[i]
            clipped += max(c - self.top[i], 0.0) + max(self.bottom[i] - c, 0.0)
            inside += (c < self.inner_top[i]) & (c > self.inner_bottom[i])
        for s in range(self.n_changed):
            i = self.changed[s]
            facts[1 if i < self.base.k else 2] += fabs(self.answer[s])
            if i < self.base.k:  # it was counted above
                c = self.base.c[i] + self.moved[i]
                rises -= self.top[i] - c
                falls -= c - self.bottom[i]
                clipped -= max(c - self.top[i], 0.0) + max(self.bottom[i] - c, 0.0)
                inside -= (c < self.inner_top[i]) & (c > self.inner_bottom[i])
            if self.open[s]:
                # Of c for a row that was free; else of u, which costs the width of the box.
                clipped += fabs(self.moved[i] - self.target[s]) * (
                    1.0 if i < self.base.k else self.base.levels[i, 0]
                    - self.base.levels[i, self.base.knots.shape[1]])
            if self.state[s] % 2 == 1:
                c = self._found(i)
                high = self.base.box_high(i, self.state[s])
                low = self.base.box_low(i, self.state[s])
                rises += high - c
                falls += c - low
                clipped += max(c - high, 0.0) + max(low - c, 0.0)
                inside += min(high - c, c - low) > self.near * (high - low)
        facts[3], facts[4] = min(rises, falls) if inside > 0 else 0.0, clipped
        self.events += self.n_changed - was_free
