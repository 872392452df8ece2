"""Labels that cannot change between two values of C (see ``engine/between.py``).

The twin in NumPy is ``reference.between``.
"""

from libc.math cimport INFINITY, fabs, sqrt

import numpy as np

from scipy.linalg.cython_lapack cimport dposv

cdef extern from "between.h" nogil:
    ctypedef struct exactcv_bend_t:
        double bend
        double gap0
        double gap1
        double changed
        double free
    void exactcv_bend(const double* y, const double* weight, Py_ssize_t n, double closeness,
                      double C0, const double* coef0, const double* u0, double C1,
                      const double* coef1, const double* u1, double* off, exactcv_bend_t* out)

cdef enum:
    # Free rows, the nearest to the tested one, among which its share is divided.
    NEAREST = 64

cdef enum:
    LEVELS = 3
    # Tries with the nearest rows, the first of them with shares of one sign.
    TRIES = 5
    NEARBY = 3

# Rows off their knot by no more than this part of the value take a share of the tested row: all of
# them, or those nearest to it of the rows that are free at one end at least (OFF_KNOT).
cdef double* OFF = [0.03, 0.125, 0.5]
cdef double OFF_KNOT = 0.125

# How many of the nearest are tried; from NEARBY on for shares of either sign, each if the one
# before has missed its aim by no more than CLOSE times (more rows bring s down by less).  SOUGHT
# are found for that: few are found in less time than many.
cdef Py_ssize_t* TRIED = [1, 3, 12, 24, NEAREST]
cdef Py_ssize_t* SOUGHT = [12, 12, 12, 24, NEAREST]
cdef double CLOSE = 3.0

# Rows limit the intercept alike if their limits differ by no more, relative to the values.
cdef double ALIKE = 1e-13

# Added to the diagonal of their kernel matrix, relative to its largest entry.
cdef double RIDGE = 1e-9


cdef inline double _larger(double a, double b) noexcept nogil:
    return a if a > b else b  # unlike fmax no call: of numbers only


cdef inline double _smaller(double a, double b) noexcept nogil:
    return a if a < b else b


cdef struct Near:
    Py_ssize_t row
    double kernel
    double room
    double other
    double off


cdef struct Both:
    Py_ssize_t n
    const double* y
    const double* weight
    double closeness
    double C0
    const double* coef0
    const double* u0
    double C1
    const double* coef1
    const double* u1
    const double* off   # from its knot, each row at the worse end
    double side         # of the tested values


def between(const double[:, ::1] K, const double[::1] y, const double[::1] weight,
            const double[::1] C0, const double[:, ::1] coef0, const double[:, ::1] u0,
            const double[::1] C1, const double[:, ::1] coef1, const double[:, ::1] u1,
            const Py_ssize_t[:, ::1] which, const double[::1] rest,
            const double[:, ::1] kernel, const double[::1] square, const double[::1] widest,
            const double[::1] value0, const double[::1] value1,
            double closeness, bint intercept, unsigned char[::1] proved, unsigned char[::1] line):
    """Which tests have the same label everywhere between C0 and C1, as at both ends.

    A row (f, g, t, i) of ``which`` for each test: its training set has row f of ``C0``, ``coef0``,
    ``u0`` and row g of ``C1``, ``coef1``, ``u1``, and of the ``weight`` of row i only what
    ``rest`` says (all, if i is -1).  It has the kernel values ``kernel[t]``, ``square[t]`` with
    itself, at most the squared distance ``widest[t]`` from any row, and the values ``value0``,
    ``value1`` at the ends, less its threshold.  ``line`` tells whether the values follow a line: no
    row of the training set changes its state, and if none is free, the same rows limit b.
    """
    cdef Py_ssize_t k, f, g, t, i
    cdef double[::1] off = np.empty(y.shape[0])
    cdef double[::1] mine = np.array(weight)
    with nogil:
        for k in range(which.shape[0]):
            f, g, t, i = which[k, 0], which[k, 1], which[k, 2], which[k, 3]
            proved[k], line[k] = 0, 0
            if i >= 0:
                mine[i] = rest[k]
            _one(K, y, &mine[0], C0[f], &coef0[f, 0], &u0[f, 0], C1[g], &coef1[g, 0], &u1[g, 0],
                 &kernel[t, 0], square[t], widest[t], value0[k], value1[k], closeness, intercept,
                 &off[0], &proved[k], &line[k])
            if i >= 0:
                mine[i] = weight[i]


cdef void _one(const double[:, ::1] K, const double[::1] y, const double* weight,
               double C0, const double* coef0, const double* u0,
               double C1, const double* coef1, const double* u1,
               const double* kernel, double square, double widest,
               double value0, double value1, double closeness, bint intercept,
               double* offs, unsigned char* proved, unsigned char* line) noexcept nogil:
    cdef Py_ssize_t k, n_near = 0, known = 0
    cdef double gap, bend, reach = 0.0
    cdef double least = _smaller(fabs(value0), fabs(value1))
    cdef Near[NEAREST] near
    cdef exactcv_bend_t all_rows
    cdef Both both
    both.n, both.y, both.weight, both.closeness = y.shape[0], &y[0], weight, closeness
    both.C0, both.coef0, both.u0, both.C1, both.coef1, both.u1 = C0, coef0, u0, C1, coef1, u1
    both.off, both.side = offs, 1.0 if value0 > 0 else -1.0
    exactcv_bend(&y[0], weight, y.shape[0], closeness, C0, coef0, u0, C1, coef1, u1, offs,
                 &all_rows)
    if all_rows.changed == 0.0:
        line[0] = all_rows.free > 0 or not intercept or _same_limits(&both)
    if value0 * value1 <= 0.0:
        return
    bend, gap = all_rows.bend, _larger(all_rows.gap0, all_rows.gap1)
    if not intercept:
        proved[0] = _enough(value0, value1, gap, square, bend, 0.0, INFINITY)
        return
    for k in range(LEVELS):
        # The room, which takes a pass, comes last.
        if not proved[0] and _enough(value0, value1, gap, widest, bend, OFF[k] * least, INFINITY):
            proved[0] = _has_room(&both, OFF[k] * least, 2.0 * bend / ((1.0 - OFF[k]) * least))
    if proved[0] or not _has_room(&both, OFF_KNOT * least, 2.0 * bend / least):
        return
    for k in range(TRIES):
        if proved[0] or (k >= NEARBY and reach * bend >= CLOSE * 4.0 * value0 * value1):
            return
        if k == 0 or known == TRIED[k - 1]:  # else there are no more
            if TRIED[k] > n_near:
                n_near = _nearest(&both, kernel, OFF_KNOT * least, SOUGHT[k], near)
            known = min(n_near, TRIED[k])
        elif k > NEARBY:
            return
        if known == 0:
            return
        if k < NEARBY:
            proved[0] = _by_nearest(K, near, known, square, value0, value1, gap, bend, &reach)
        else:
            proved[0] = _by_projection(K, near, known, square, value0, value1, gap, bend, &reach)


cdef inline double _room(double a0, double box0, double a1, double box1, bint rises) noexcept nogil:
    """(sqrt(r0) + sqrt(r1))^2 of the rooms r of a coefficient at both ends, on one side of it."""
    cdef double r0 = _larger(a0, 0.0), r1 = _larger(a1, 0.0)
    if rises:
        r0, r1 = _larger(box0 - r0, 0.0), _larger(box1 - r1, 0.0)
    return r0 + r1 + 2.0 * sqrt(r0 * r1)


cdef inline bint _inside(double a, double box, double closeness) noexcept nogil:
    """Is a coefficient strictly inside its box?"""
    return a > closeness * box and box - a > closeness * box


cdef bint _enough(double value0, double value1, double gap, double reach, double bend,
                  double off, double room) noexcept nogil:
    """4 u0 u1 > s k and min(u0, u1) room > 2 k.

    The u are less than the values by what the rows with a share are off their knots; and in the
    first condition by what the ends may be wrong.
    """
    cdef double lost = sqrt(reach * gap)
    cdef double part = 1.0 - off / _smaller(fabs(value0), fabs(value1))
    cdef double least0 = part * fabs(value0) - lost
    cdef double least1 = part * fabs(value1) - lost
    if part * _smaller(fabs(value0), fabs(value1)) * room <= 2.0 * bend:
        return False
    return least0 > 0.0 and least1 > 0.0 and 4.0 * least0 * least1 > reach * bend


cdef bint _by_nearest(const double[:, ::1] K, const Near* near, Py_ssize_t count, double square,
                      double value0, double value1, double gap, double bend,
                      double* reach) noexcept nogil:
    """The same with the share divided among some of the nearest rows.

    ``reach`` is set to the squared distance, if it comes to that.
    """
    cdef Py_ssize_t a, b
    cdef double room = 0.0, off = 0.0, part
    for a in range(count):
        room += near[a].room
        off = _larger(off, near[a].off)
    if _smaller(fabs(value0), fabs(value1)) * room <= 2.0 * bend or room <= 0.0:
        return False
    reach[0] = square
    for a in range(count):
        part = near[a].room / room
        reach[0] += part * (part * K[near[a].row, near[a].row] - 2.0 * near[a].kernel)
        for b in range(a):
            reach[0] += 2.0 * part * near[b].room / room * K[near[a].row, near[b].row]
    reach[0] = _larger(reach[0], 1e-9 * fabs(square))
    return _enough(value0, value1, gap, reach[0], bend, off, room)


cdef bint _by_projection(const double[:, ::1] K, const Near* near, Py_ssize_t count,
                         double square, double value0, double value1, double gap,
                         double bend, double* reach) noexcept nogil:
    """The same with those shares, of either sign, that come nearest to the tested row.

    ``reach`` is infinite if they do not fit into their boxes.
    """
    cdef Py_ssize_t a, b
    cdef int n = <int>count, two = 2, info
    cdef char lower = b'L'
    cdef double top = 0.0, total = 0.0, ones = 0.0, shift, room = INFINITY
    cdef double off = 0.0, one
    cdef double[NEAREST * NEAREST] matrix  # 32 kB: no more, for the stacks of threads
    cdef double[2 * NEAREST] right
    for a in range(count):
        top = _larger(top, K[near[a].row, near[a].row])
        off = _larger(off, near[a].off)
    for a in range(count):
        for b in range(a + 1):
            one = K[near[a].row, near[b].row]
            matrix[a * count + b], matrix[b * count + a] = one, one + top
        matrix[a * count + a] += RIDGE * top
        right[a], right[count + a] = near[a].kernel + top, 1.0
    dposv(&lower, &n, &two, matrix, &n, right, &n, &info)
    reach[0] = INFINITY
    if info != 0:
        return False
    for a in range(count):
        total += right[a]
        ones += right[count + a]
    shift = (1.0 - total) / ones
    for a in range(count):
        right[a] += shift * right[count + a]
        if right[a] != 0.0:
            one = near[a].room if right[a] > 0 else near[a].other
            room = _smaller(room, one / fabs(right[a]))
    if _smaller(fabs(value0), fabs(value1)) * room <= 2.0 * bend:
        return False
    reach[0] = square
    for a in range(count):
        reach[0] += right[a] * (right[a] * K[near[a].row, near[a].row] - 2.0 * near[a].kernel)
        for b in range(a):  # here the factor has left K alone
            reach[0] += 2.0 * right[a] * right[b] * matrix[a * count + b]
    reach[0] = _larger(reach[0], 1e-9 * fabs(square))
    return _enough(value0, value1, gap, reach[0], bend, off, room)


cdef bint _has_room(const Both* rows, double off, double wanted) noexcept nogil:
    """Is the room of all rows within ``off`` of their knots more than that?"""
    cdef Py_ssize_t i
    cdef double room = 0.0
    for i in range(rows.n):
        if rows.off[i] <= off:
            room += _room_of(rows, i, rows.side)
            if room > wanted:
                return True
    return False


cdef inline double _room_of(const Both* rows, Py_ssize_t i, double side) noexcept nogil:
    """Where the value is positive, coefficients have to rise."""
    cdef double y = rows.y[i]
    return _room(y * rows.coef0[i], rows.C0 * rows.weight[i], y * rows.coef1[i],
                 rows.C1 * rows.weight[i], side * y > 0)


cdef Py_ssize_t _nearest(const Both* rows, const double* kernel, double off, Py_ssize_t most,
                         Near* near) noexcept nogil:
    """The nearest of the rows that are free at one end at least, and how many those are."""
    cdef Py_ssize_t i, k, count = 0
    cdef double y
    for i in range(rows.n):
        # Most are too far: that is seen first.
        if rows.off[i] > off or (count == most and kernel[i] <= near[most - 1].kernel):
            continue
        y = rows.y[i]
        if (_inside(y * rows.coef0[i], rows.C0 * rows.weight[i], rows.closeness)
                or _inside(y * rows.coef1[i], rows.C1 * rows.weight[i], rows.closeness)):
            k = count if count < most else most - 1
            count = k + 1
            while k > 0 and near[k - 1].kernel < kernel[i]:
                near[k].row, near[k].kernel = near[k - 1].row, near[k - 1].kernel
                k -= 1
            near[k].row, near[k].kernel = i, kernel[i]
    for k in range(count):
        i = near[k].row
        near[k].off = rows.off[i]
        near[k].room = _room_of(rows, i, rows.side)
        near[k].other = _room_of(rows, i, -rows.side)
    return count


cdef bint _same_limits(const Both* rows) noexcept nogil:
    """If no row is free: do the same rows limit b at both ends?"""
    cdef Py_ssize_t i, way
    cdef Py_ssize_t[2] first = [-1, -1]
    cdef double[2] least0 = [INFINITY, INFINITY]
    cdef double[2] least1 = [INFINITY, INFINITY]
    cdef double room, largest = 1.0
    cdef bint top
    for i in range(rows.n):
        largest = _larger(largest, fabs(rows.u1[i]))
        if rows.weight[i] <= 0.0:
            continue
        top = 2.0 * rows.y[i] * rows.coef0[i] > rows.C0 * rows.weight[i]
        way = 1 if (rows.y[i] > 0) == top else 0  # from above, or from below
        room = (2 * way - 1) * (rows.y[i] - rows.u0[i])
        if room < least0[way]:
            least0[way], first[way] = room, i
        least1[way] = _smaller(least1[way], (2 * way - 1) * (rows.y[i] - rows.u1[i]))
    for way in range(2):
        i = first[way]
        if i >= 0 and (2 * way - 1) * (rows.y[i] - rows.u1[i]) > least1[way] + ALIKE * largest:
            return False
    return True
