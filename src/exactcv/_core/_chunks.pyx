"""What a pass finds in a chunk of rows, for many solutions at once (``lowrank/passes``).

u is (rows, P): values of the rows at P solutions.  Each function goes over it once; as array
operations they would write it out dozens of times.  The twins in NumPy are in
``reference/chunks.py``.
"""

from libc.math cimport INFINITY, fabs
from libc.stdlib cimport free, malloc


def near_rows(const double[:, ::1] u, const double[:, ::1] knots, const unsigned char[::1] up,
              const double[:, ::1] weight, const double[:, ::1] width, const double[::1] key,
              const double[::1] rate, unsigned char[:, ::1] near, double[:, ::1] mass):
    """Which rows have a knot within ``width`` (P, 2) of u, by side; of these, those that are kept.

    Kept are rows with a key below ``rate`` (P,).  ``mass`` (P, 2) gains the weights of all of them.
    ``weight`` is (rows, 1) or (rows, P).
    """
    cdef Py_ssize_t i, k, p, n = u.shape[0], P = u.shape[1], n_knots = knots.shape[1]
    cdef bint one = weight.shape[1] == 1
    cdef int side
    cdef double w, away, distance
    with nogil:
        for i in range(n):
            side = up[i]
            for p in range(P):
                w = weight[i, 0 if one else p]
                distance = INFINITY
                for k in range(n_knots):
                    away = fabs(u[i, p] - knots[i, k])
                    distance = away if away < distance else distance
                near[i, p] = 0
                if w > 0.0 and distance <= width[p, side]:
                    mass[p, side] += w
                    near[i, p] = key[i] < rate[p]


def held_sums(const double[:, ::1] u, const double[:, ::1] knots, const double[:, ::1] slopes,
              const double[:, ::1] weight, const unsigned char[:, ::1] aside,
              const double[::1] length, double[:, ::1] held, double[:, ::1] sums,
              Py_ssize_t[::1] bound):
    """Coefficients that go with u, and sums over the rows that are not ``aside``.

    ``held`` is -w s for a row of weight w whose loss has the slope s, and 0 for rows aside.
    ``sums`` (4, P) gains the sums of held, |held|, |held| times ``length`` and w times the loss
    above its least; ``bound`` (P,) the number of rows with a coefficient.
    """
    cdef Py_ssize_t i, k, p, n = u.shape[0], P = u.shape[1], n_knots = knots.shape[1]
    cdef bint one = weight.shape[1] == 1
    cdef double t, bend, above, least, first, box, c, size
    cdef double* value = <double*>malloc((P + 1) * sizeof(double))
    if value == NULL:
        raise MemoryError
    with nogil:
        for i in range(n):
            first, t, least = slopes[i, 0], knots[i, 0], _least(knots[i], slopes[i])
            for p in range(P):
                held[i, p] = first
                value[p] = first * (u[i, p] - t)
            for k in range(n_knots):
                t, bend = knots[i, k], slopes[i, k + 1] - slopes[i, k]
                for p in range(P):
                    above = u[i, p] - t
                    held[i, p] += bend if above > 0.0 else 0.0
                    value[p] += bend * (above if above > 0.0 else 0.0)
            for p in range(P):
                box = 0.0 if aside[i, p] else weight[i, 0 if one else p]
                c = -box * held[i, p]
                size = fabs(c)
                held[i, p] = c
                sums[0, p] += c
                sums[1, p] += size
                sums[2, p] += length[i] * size
                sums[3, p] += box * (value[p] - least)
                bound[p] += c != 0.0
        free(value)


cdef double _least(const double[::1] knots, const double[::1] slopes) noexcept nogil:
    """The least value of a loss whose leftmost line is 0 at the first knot."""
    cdef Py_ssize_t k
    cdef double value = 0.0, least = 0.0
    for k in range(1, knots.shape[0]):
        value += slopes[k] * (knots[k] - knots[k - 1])
        least = value if value < least else least
    return least


def settled(const double[:, ::1] u, const double[::1] y, const double[:, ::1] knots,
            const double[:, ::1] slopes, const double[::1] weight, const double[::1] own,
            const double[::1] C, const double[:, ::1] least, const double[:, ::1] most,
            const double[::1] slack, double tie, unsigned char[:, ::1] wrong,
            unsigned char[:, ::1] still_open, unsigned char[:, ::1] kept):
    """Left-out labels by the bounds of ``lowrank/verdict.py``: (rows, P) flags each.

    ``own`` times C is how far f moves at a row at most when it is left out, ``least`` and ``most``
    (P, 2) how far b does, by class.
    """
    cdef Py_ssize_t i, k, p, n = u.shape[0], P = u.shape[1], n_knots = knots.shape[1]
    cdef int side
    cdef double value, slope, moves
    cdef bint bad, good, same
    with nogil:
        for i in range(n):
            side = y[i] > 0.0
            for p in range(P):
                slope = slopes[i, 0]
                for k in range(n_knots):
                    if u[i, p] > knots[i, k]:
                        slope += slopes[i, k + 1] - slopes[i, k]
                same = slope == 0.0 or weight[i] <= 0.0
                value, moves = u[i, p] * y[i], own[i] * C[p]
                bad = (value <= tie - slack[p]
                       or value - least[p, side] <= tie - slack[p] - moves)
                good = value - most[p, side] > tie + slack[p] + moves
                kept[i, p] = same
                wrong[i, p] = (not value > tie) if same else bad
                still_open[i, p] = not (same or bad or good)
