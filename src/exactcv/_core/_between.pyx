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

# Rows off their knot by no more than this part of the value take a share of the tested row: all of
# them, or those nearest to it of the rows that are free at one end at least (OFF_KNOT).
cdef double* OFF = [0.03, 0.125, 0.5]
cdef double OFF_KNOT = 0.125

# How many of the nearest are tried, and how many for shares of either sign, each if the one before
# has missed its aim by no more than CLOSE times (more rows bring s down by less).
cdef Py_ssize_t* TRIED = [1, 3, 12]
cdef Py_ssize_t* PROJECTED = [24, NEAREST]
cdef double CLOSE = 3.0

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


def between(const double[:, ::1] K, const double[::1] y, const double[::1] weight,
            const double[::1] C0, const double[:, ::1] coef0, const double[:, ::1] u0,
            const double[::1] C1, const double[:, ::1] coef1, const double[:, ::1] u1,
            const Py_ssize_t[:, ::1] which, const double[::1] rest,
            const double[:, ::1] kernel, const double[::1] square, const double[::1] widest,
            const double[::1] value0, const double[::1] value1,
            double closeness, bint intercept, unsigned char[::1] proved, unsigned char[::1] same):
    """Which tests have the same label everywhere between C0 and C1, as at both ends.

    A row (f, g, t, i) of ``which`` for each test: its training set has row f of ``C0``, ``coef0``,
    ``u0`` and row g of ``C1``, ``coef1``, ``u1``, and of the ``weight`` of row i only what
    ``rest`` says (all, if i is -1).  It has the kernel values ``kernel[t]``, ``square[t]`` with
    itself, at most the squared distance ``widest[t]`` from any row, and the values ``value0``,
    ``value1`` at the ends, less its threshold.  ``same`` tells whether no row of the training set
    changes its state: the values then follow a line, unless no row is free (2).
    """
    cdef Py_ssize_t k, f, g, t, i
    cdef double[::1] off = np.empty(y.shape[0])
    cdef double[::1] mine = np.array(weight)
    with nogil:
        for k in range(which.shape[0]):
            f, g, t, i = which[k, 0], which[k, 1], which[k, 2], which[k, 3]
            proved[k], same[k] = 0, 0
            if i >= 0:
                mine[i] = rest[k]
            _one(K, y, &mine[0], C0[f], &coef0[f, 0], &u0[f, 0], C1[g], &coef1[g, 0], &u1[g, 0],
                 &kernel[t, 0], square[t], widest[t], value0[k], value1[k], closeness, intercept,
                 &off[0], &proved[k], &same[k])
            if i >= 0:
                mine[i] = weight[i]


cdef void _one(const double[:, ::1] K, const double[::1] y, const double* weight,
               double C0, const double* coef0, const double* u0,
               double C1, const double* coef1, const double* u1,
               const double* kernel, double square, double widest,
               double value0, double value1, double closeness, bint intercept,
               double* offs, unsigned char* proved, unsigned char* same) noexcept nogil:
    cdef Py_ssize_t i, k, n_near = 0
    cdef double gap, bend, reach = 0.0
    cdef double least = _smaller(fabs(value0), fabs(value1))
    cdef double side = 1.0 if value0 > 0 else -1.0
    cdef Near[NEAREST] near
    cdef double[LEVELS] room = [0.0, 0.0, 0.0]
    cdef exactcv_bend_t all_rows
    cdef double one
    exactcv_bend(&y[0], weight, y.shape[0], closeness, C0, coef0, u0, C1, coef1, u1, offs,
                 &all_rows)
    same[0] = 0 if all_rows.changed > 0 else 1 if all_rows.free > 0 else 2
    if value0 * value1 <= 0.0:
        return
    bend, gap = all_rows.bend, _larger(all_rows.gap0, all_rows.gap1)
    if not intercept:
        proved[0] = _enough(value0, value1, gap, square, bend, 0.0, INFINITY)
        return
    for i in range(y.shape[0]):
        if offs[i] <= OFF[LEVELS - 1] * least:
            # Where the value is positive, coefficients have to rise.
            one = _room(y[i] * coef0[i], C0 * weight[i], y[i] * coef1[i], C1 * weight[i],
                        side * y[i] > 0)
            for k in range(LEVELS):
                if offs[i] <= OFF[k] * least:
                    room[k] += one
    for k in range(LEVELS):
        if not proved[0]:
            proved[0] = _enough(value0, value1, gap, widest, bend, OFF[k] * least, room[k])
    if proved[0] or least * room[1] <= 2.0 * bend:
        return
    for i in range(y.shape[0]):
        if offs[i] <= OFF_KNOT * least and (
                _inside(y[i] * coef0[i], C0 * weight[i], closeness)
                or _inside(y[i] * coef1[i], C1 * weight[i], closeness)):
            _keep(near, &n_near, i, kernel[i])
    if n_near == 0:
        return
    for k in range(n_near):
        i = near[k].row
        near[k].off = offs[i]
        near[k].room = _room(y[i] * coef0[i], C0 * weight[i], y[i] * coef1[i], C1 * weight[i],
                             side * y[i] > 0)
        near[k].other = _room(y[i] * coef0[i], C0 * weight[i], y[i] * coef1[i], C1 * weight[i],
                              side * y[i] <= 0)
    for k in range(3):
        if not proved[0]:
            proved[0] = _by_nearest(K, near, min(n_near, TRIED[k]), square, value0, value1, gap,
                                    bend, &reach)
    for k in range(2):
        if proved[0] or reach * bend >= CLOSE * 4.0 * value0 * value1:
            return
        if k == 0 or n_near > PROJECTED[0]:
            proved[0] = _by_projection(K, near, min(n_near, PROJECTED[k]), square, value0, value1,
                                       gap, bend, &reach)


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


cdef void _keep(Near* near, Py_ssize_t* count, Py_ssize_t row, double kernel) noexcept nogil:
    """Among the nearest, in order of their kernel values, if it is one of them."""
    cdef Py_ssize_t at = count[0]
    if at == NEAREST:
        if kernel <= near[at - 1].kernel:
            return
        at -= 1
    else:
        count[0] += 1
    while at > 0 and near[at - 1].kernel < kernel:
        near[at].row, near[at].kernel = near[at - 1].row, near[at - 1].kernel
        at -= 1
    near[at].row, near[at].kernel = row, kernel
