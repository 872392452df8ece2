"""How far the intercept must walk when a row is left out (see ``engine/bounds.py``).

The twin in NumPy is ``reference.walk``.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc, qsort

cdef struct Stop:
    double distance
    double room


cdef int _nearer(const void* left, const void* right) noexcept nogil:
    cdef double a = (<Stop*>left).distance
    cdef double b = (<Stop*>right).distance
    return (a > b) - (a < b)


def walk(const double[:, ::1] knots, const double[:, ::1] levels, const signed char[::1] state,
         const double[::1] coef, const double[::1] u, const Py_ssize_t[::1] who,
         const double[::1] taken, double margin, double[::1] least, double[::1] most):
    """Fill in how far b moves, at least and at most, until others take up what each row gives up.

    Where ``taken`` is positive the others must rise, and b falls; where it is negative the other
    way.  What is taken up is known to within ``margin``.
    """
    cdef Py_ssize_t n = state.shape[0]
    cdef Stop* stops = <Stop*>malloc((n * knots.shape[1] + 1) * sizeof(Stop))
    cdef int sign
    if stops == NULL:
        raise MemoryError
    with nogil:
        for sign in range(-1, 2, 2):
            _walk_one_way(knots, levels, state, coef, u, who, taken, sign, margin, stops, least,
                          most)
        free(stops)


cdef void _walk_one_way(const double[:, ::1] knots, const double[:, ::1] levels,
                        const signed char[::1] state, const double[::1] coef,
                        const double[::1] u, const Py_ssize_t[::1] who,
                        const double[::1] taken, int sign, double margin, Stop* stops,
                        double[::1] least, double[::1] most) noexcept nogil:
    cdef Py_ssize_t i, r
    cdef Py_ssize_t count = 0
    cdef Py_ssize_t m = knots.shape[1]
    cdef double so_far = 0.0
    cdef double target, has
    for i in range(state.shape[0]):
        r = _knot_ahead(state[i], sign)
        has = coef[i]
        while state[i] >= 0 and 0 <= r < m:
            stops[count].distance = 0.0
            if state[i] != 2 * r + 1:
                stops[count].distance = max(sign * (u[i] - knots[i, r]), 0.0)
            stops[count].room = sign * (levels[i, r + (sign < 0)] - has)
            has = levels[i, r + (sign < 0)]
            count += 1
            r -= sign
    qsort(stops, count, sizeof(Stop), &_nearer)
    for i in range(count):  # from here on: the room up to and including this stop
        so_far += stops[i].room
        stops[i].room = so_far
    stops[count].distance = INFINITY
    for r in range(who.shape[0]):
        i = who[r]
        if (taken[r] > 0) != (sign > 0):
            continue
        # It has room itself, at its knot and perhaps at others, but cannot take up its own weight.
        target = taken[r] * sign
        has = sign * (levels[i, 0 if sign > 0 else m] - coef[i])
        most[r] = stops[_first(stops, count, target + has + margin, True)].distance
        if state[i] % 2 == 1:
            target += sign * (levels[i, state[i] // 2 + (sign < 0)] - coef[i])
        least[r] = stops[_first(stops, count, target - margin, False)].distance


cdef inline Py_ssize_t _knot_ahead(signed char state, int sign) noexcept nogil:
    """Rising coefficients (sign 1) go with a falling u: the knot on the left of a segment."""
    if state % 2 == 0 and sign > 0:
        return state // 2 - 1
    return state // 2


cdef Py_ssize_t _first(Stop* stops, Py_ssize_t count, double target, bint strictly) noexcept nogil:
    """The first stop by which at least (or strictly more than) the target is taken up."""
    cdef Py_ssize_t low = 0
    cdef Py_ssize_t high = count
    cdef Py_ssize_t middle
    while low < high:
        middle = (low + high) // 2
        if stops[middle].room > target or (not strictly and stops[middle].room == target):
            high = middle
        else:
            low = middle + 1
    return low
