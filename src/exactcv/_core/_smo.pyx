# cython: language_level=3, boundscheck=False, wraparound=False
# cython: cdivision=True, initializedcheck=False
"""Sequential minimal optimisation, the compiled loop.  Driver: ``smo.py``.  Twin: ``reference.py``.

    min over c   1/2 c' K c - t' c    subject to   lower <= c <= upper   (and sum c = 0)

over the rows ``rows`` of a kernel matrix that is never copied.  All other arrays are as long as
``rows``.  With e = t - K c, a coefficient below its upper end wants to grow if e_i > b, one above
its lower end wants to shrink if e_i < b (b = 0 without an intercept).
"""

from libc.math cimport INFINITY

# Curvature taken for a pair whose true curvature is zero or negative (K singular or indefinite).
cdef double LEAST_CURVATURE = 1e-12
cdef enum:
    CONVERGED = 0
    STOPPED = 1
    CANCELLED = 2
    LOOK_EVERY = 1000  # iterations between looks at the cancel flag


cdef struct RowSource:
    # Where rows of K come from.  One place to change when a cache stands behind it.
    const double *data
    Py_ssize_t stride


cdef inline const double *kernel_row(RowSource *source, Py_ssize_t i) noexcept nogil:
    return source.data + i * source.stride


cdef struct State:
    # The moving part (coef, e) and the fixed part of one problem; arrays of length m.
    RowSource source
    const Py_ssize_t *rows
    const double *diagonal
    const double *lower
    const double *upper
    double *coef
    double *e
    Py_ssize_t m


cdef struct Choice:
    # A working set {i, j} (j = -1: i alone) and the violation of the KKT conditions.
    Py_ssize_t i
    Py_ssize_t j
    double violation


cdef Choice choose_pair(State *p) noexcept nogil:
    """Second-order selection (Fan, Chen & Lin 2005, WSS 2).

    i = argmax of e over coefficients that can grow; j = argmax of (e_i - e_j)^2 / a_ij, the
    decrease without bounds, over those that can shrink and have e_j < e_i.
    """
    cdef Choice best = Choice(-1, -1, 0.0)
    cdef double top = -INFINITY, bottom = INFINITY, gain = -1.0, rise, curvature
    cdef const double *row
    cdef Py_ssize_t k
    for k in range(p.m):
        if p.coef[k] < p.upper[k] and p.e[k] > top:
            top = p.e[k]
            best.i = k
        if p.coef[k] > p.lower[k] and p.e[k] < bottom:
            bottom = p.e[k]
    best.violation = top - bottom
    if best.i < 0 or not top > bottom:
        return best
    row = kernel_row(&p.source, p.rows[best.i])
    for k in range(p.m):
        rise = top - p.e[k]
        if rise > 0.0 and p.coef[k] > p.lower[k]:
            curvature = p.diagonal[best.i] + p.diagonal[k] - 2.0 * row[p.rows[k]]
            if curvature < LEAST_CURVATURE:
                curvature = LEAST_CURVATURE
            if rise * rise > gain * curvature:
                gain = rise * rise / curvature
                best.j = k
    return best


cdef Choice choose_one(State *p) noexcept nogil:
    """Without an intercept: the largest e_i^2 / K_ii among the coordinates that can move."""
    cdef Choice best = Choice(-1, -1, 0.0)
    cdef double gain = -1.0, curvature, size
    cdef Py_ssize_t k
    for k in range(p.m):
        if not (
            (p.e[k] > 0.0 and p.coef[k] < p.upper[k]) or (p.e[k] < 0.0 and p.coef[k] > p.lower[k])
        ):
            continue
        size = p.e[k] if p.e[k] > 0.0 else -p.e[k]
        curvature = p.diagonal[k] if p.diagonal[k] > LEAST_CURVATURE else LEAST_CURVATURE
        if size > best.violation:
            best.violation = size
        if size * size > gain * curvature:
            gain = size * size / curvature
            best.i = k
    return best


cdef void move_pair(State *p, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    """Raise c_i and lower c_j by the same best step, and update e."""
    cdef const double *row_i = kernel_row(&p.source, p.rows[i])
    cdef const double *row_j = kernel_row(&p.source, p.rows[j])
    cdef double curvature = p.diagonal[i] + p.diagonal[j] - 2.0 * row_i[p.rows[j]]
    cdef double room_i = p.upper[i] - p.coef[i], room_j = p.coef[j] - p.lower[j]
    cdef double step = (p.e[i] - p.e[j]) / max(curvature, LEAST_CURVATURE)
    cdef Py_ssize_t k
    step = min(step, min(room_i, room_j))
    # A coefficient that meets its bound is put there exactly.
    p.coef[i] = p.upper[i] if step >= room_i else p.coef[i] + step
    p.coef[j] = p.lower[j] if step >= room_j else p.coef[j] - step
    for k in range(p.m):
        p.e[k] -= step * (row_i[p.rows[k]] - row_j[p.rows[k]])


cdef void move_one(State *p, Py_ssize_t i) noexcept nogil:
    """Move c_i alone by its best step, and update e."""
    cdef const double *row = kernel_row(&p.source, p.rows[i])
    cdef double old = p.coef[i], new, step
    cdef Py_ssize_t k
    new = old + p.e[i] / max(p.diagonal[i], LEAST_CURVATURE)
    new = max(p.lower[i], min(p.upper[i], new))
    p.coef[i] = new
    step = new - old
    for k in range(p.m):
        p.e[k] -= step * row[p.rows[k]]


cdef State pack(
    const double[:, ::1] K, const Py_ssize_t[::1] rows, const double[::1] diagonal,
    const double[::1] lower, const double[::1] upper, double[::1] coef, double[::1] e,
) noexcept:
    cdef State p
    p.source = RowSource(&K[0, 0], K.shape[1])
    p.rows = &rows[0]
    p.diagonal = &diagonal[0]
    p.lower = &lower[0]
    p.upper = &upper[0]
    p.coef = &coef[0]
    p.e = &e[0]
    p.m = rows.shape[0]
    return p


def smo_steps(
    const double[:, ::1] K,
    const Py_ssize_t[::1] rows,
    const double[::1] diagonal,
    const double[::1] lower,
    const double[::1] upper,
    double[::1] coef,
    double[::1] e,
    bint fit_intercept,
    double eps,
    Py_ssize_t max_iter,
    const int[::1] cancel,
):
    """Take steps until the violation is at most eps; ``coef`` and ``e`` move in place.

    Returns (iterations, violation, status): status 0 converged, 1 stopped, 2 cancelled.
    """
    cdef State p = pack(K, rows, diagonal, lower, upper, coef, e)
    cdef Choice choice
    cdef Py_ssize_t done = 0
    cdef int status = STOPPED
    with nogil:
        while True:
            choice = choose_pair(&p) if fit_intercept else choose_one(&p)
            if not choice.violation > eps:
                status = CONVERGED
                break
            if done >= max_iter:
                break
            if done % LOOK_EVERY == 0 and cancel[0]:
                status = CANCELLED
                break
            if fit_intercept:
                move_pair(&p, choice.i, choice.j)
            else:
                move_one(&p, choice.i)
            done += 1
    return done, choice.violation, status


def gradient(
    const double[:, ::1] K,
    const Py_ssize_t[::1] rows,
    const double[::1] target,
    const double[::1] coef,
    double[::1] e,
):
    """e := target - K coef, from scratch."""
    cdef RowSource source = RowSource(&K[0, 0], K.shape[1])
    cdef Py_ssize_t m = rows.shape[0], i, k
    cdef const double *row
    with nogil:
        for k in range(m):
            e[k] = target[k]
        for i in range(m):
            if coef[i] != 0.0:
                row = kernel_row(&source, rows[i])
                for k in range(m):
                    e[k] -= coef[i] * row[rows[k]]
