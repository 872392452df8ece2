"""How far the intercept must walk when a row is left out (see ``engine/bounds.py``).

The twin in NumPy is ``reference.walk``.
"""

from libc.math cimport INFINITY
from libc.stdlib cimport free, malloc

cdef struct Stop:
    double distance
    double room


cdef inline void _sift(Stop* heap, Py_ssize_t i, Py_ssize_t count) noexcept nogil:
    """Let entry i of a heap, nearest first, sink to its place."""
    cdef Stop moved = heap[i]
    cdef Py_ssize_t child = 2 * i + 1
    while child < count:
        if child + 1 < count and heap[child + 1].distance < heap[child].distance:
            child += 1
        if not heap[child].distance < moved.distance:
            break
        heap[i], i = heap[child], child
        child = 2 * i + 1
    heap[i] = moved


def walk(const double[:, ::1] knots, const double[:, ::1] levels, const signed char[::1] state,
         const double[::1] coef, const double[::1] u, const Py_ssize_t[::1] who,
         const double[::1] taken, double margin, double[::1] least, double[::1] most):
    """Fill in how far b moves, at least and at most, until others take up what each row gives up.

    Where ``taken`` is positive the others must rise, and b falls; where it is negative the other
    way.  What is taken up is known to within ``margin``.
    """
    cdef Py_ssize_t most_stops = state.shape[0] * knots.shape[1]
    # As they come, and sorted, as far as anybody walks.
    cdef Stop* stops = <Stop*>malloc((2 * most_stops + 1) * sizeof(Stop))
    cdef int sign
    if stops == NULL:
        raise MemoryError
    with nogil:
        for sign in range(-1, 2, 2):
            _walk_one_way(knots, levels, state, coef, u, who, taken, sign, margin, stops,
                          stops + most_stops, least, most)
        free(stops)


cdef void _walk_one_way(const double[:, ::1] knots, const double[:, ::1] levels,
                        const signed char[::1] state, const double[::1] coef,
                        const double[::1] u, const Py_ssize_t[::1] who,
                        const double[::1] taken, int sign, double margin, Stop* heap,
                        Stop* stops, double[::1] least, double[::1] most) noexcept nogil:
    cdef Py_ssize_t i, r
    cdef Py_ssize_t ahead = 0, count = 0
    cdef Py_ssize_t m = knots.shape[1]
    cdef double so_far = 0.0, farthest = -INFINITY
    cdef double target, has
    for i in range(state.shape[0]):
        r = _knot_ahead(state[i], sign)
        has = coef[i]
        while state[i] >= 0 and 0 <= r < m:
            heap[ahead].distance = 0.0
            if state[i] != 2 * r + 1:
                heap[ahead].distance = max(sign * (u[i] - knots[i, r]), 0.0)
            heap[ahead].room = sign * (levels[i, r + (sign < 0)] - has)
            has = levels[i, r + (sign < 0)]
            ahead += 1
            r -= sign
    for r in range(who.shape[0]):
        if (taken[r] > 0) == (sign > 0):
            i = who[r]
            has = sign * (levels[i, 0 if sign > 0 else m] - coef[i])
            farthest = max(farthest, taken[r] * sign + has + margin)
    for i in range(ahead // 2 - 1, -1, -1):
        _sift(heap, i, ahead)
    while ahead > 0 and not so_far > farthest:
        so_far += heap[0].room
        stops[count].distance, stops[count].room = heap[0].distance, so_far
        count += 1
        ahead -= 1
        heap[0] = heap[ahead]
        _sift(heap, 0, ahead)
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
