# cython: language_level=3, boundscheck=False, wraparound=False
# cython: cdivision=True, initializedcheck=False
"""Sequential minimal optimisation, the compiled loop.  Driver: ``engine/smo.py``.

Twin: ``reference/residuals.py``.

    min over c   1/2 c' K c - t' c    subject to   lower <= c <= upper   (and sum c = 0)

over the rows ``rows`` of a kernel whose rows come from a ``RowCache``.  All other arrays are as
long as ``rows``.  With e = t - K c, a coefficient below its upper end wants to grow if e_i > b, one
above its lower end wants to shrink if e_i < b (b = 0 without an intercept).

*Shrinking* (Joachims 1999; Chang & Lin 2011): now and then, coefficients at a bound that no pair
could move are set aside.  The loop goes on with the others, packed to the front of arrays of their
own, and their e alone is kept up to date.  When it is done with them (and once before, near the
end), e of the others is brought up to date from what has changed since, and all take part again.
"""

from libc.math cimport fabs

import numpy as np

from ._rows cimport RowCache
from ._working_set cimport (
    LEAST_CURVATURE,
    LEAST_DIAGONAL,
    Choice,
    first_of_pair,
    second_of_pair,
    shift,
    single,
)

# All coefficients take part again when the violation first comes this close to the tolerance.
cdef double NEAR_END = 10.0
# Bytes of contiguous copies of matrix rows; all that small problems need.
cdef Py_ssize_t COPIES = 1 << 25
cdef enum:
    CONVERGED = 0
    STOPPED = 1
    CANCELLED = 2
    LOOK_EVERY = 1000  # iterations between looks at the cancel flag
    SHRINK_EVERY = 1000  # iterations between attempts to set coefficients aside


cdef struct State:
    # The active coefficients, packed: entry k of these arrays belongs to coefficient where[k].
    Py_ssize_t active
    Py_ssize_t *where
    double *coef
    double *e
    double *lower
    double *upper
    double *diagonal


cdef struct Whole:
    # All m coefficients; ``synced`` is what coef was when e was last right for all of them.
    Py_ssize_t m
    const double *lower
    const double *upper
    const double *diagonal
    double *coef
    double *e
    double *synced


cdef inline const double *kernel_row(RowCache cache, Py_ssize_t k) noexcept nogil:
    """The row of active coefficient k, over the active coefficients."""
    return cache.row(cache.columns[k])


cdef Choice choose_pair(State *p, RowCache cache) noexcept nogil:
    """A pair to move, by second-order selection; row i is asked for only if there is one."""
    cdef Choice best = first_of_pair(p.coef, p.e, p.lower, p.upper, p.active)
    if best.i >= 0 and best.top > best.bottom:
        best.j = second_of_pair(
            p.coef, p.e, p.lower, p.diagonal, kernel_row(cache, best.i), p.diagonal[best.i],
            best.top, p.active,
        )
    return best


cdef void move_pair(State *p, RowCache cache, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    """Raise c_i and lower c_j by the same best step, and update e."""
    cdef const double *row_i = kernel_row(cache, i)
    cdef const double *row_j = kernel_row(cache, j)
    cdef double both = p.diagonal[i] + p.diagonal[j], curvature = both - 2.0 * row_i[j]
    cdef double room_i = p.upper[i] - p.coef[i], room_j = p.coef[j] - p.lower[j]
    cdef double least = LEAST_CURVATURE * fabs(both) + LEAST_DIAGONAL
    cdef double step = min((p.e[i] - p.e[j]) / max(curvature, least), min(room_i, room_j))
    # A coefficient that meets its bound is put there exactly.
    p.coef[i] = p.upper[i] if step >= room_i else p.coef[i] + step
    p.coef[j] = p.lower[j] if step >= room_j else p.coef[j] - step
    shift(p.e, step, row_i, row_j, p.active)


cdef void move_one(State *p, RowCache cache, Py_ssize_t i) noexcept nogil:
    """Move c_i alone by its best step, and update e."""
    cdef const double *row = kernel_row(cache, i)
    cdef double old = p.coef[i], new, step
    cdef double *e = p.e
    cdef Py_ssize_t k
    new = old + p.e[i] / max(p.diagonal[i], LEAST_DIAGONAL)
    new = max(p.lower[i], min(p.upper[i], new))
    p.coef[i] = new
    step = new - old
    for k in range(p.active):
        e[k] -= step * row[k]


cdef void set_aside(
    State *p, Whole *all, RowCache cache, double top, double bottom, Py_ssize_t *kept
) noexcept nogil:
    """Keep the coefficients that a pair could still move.

    One at its upper end with e_k > top would only be asked to grow further, one at its lower end
    with e_k < bottom only to shrink further.
    """
    cdef Py_ssize_t k, count = 0
    for k in range(p.active):
        if p.coef[k] >= p.upper[k] and p.e[k] > top:
            continue
        if p.coef[k] <= p.lower[k] and p.e[k] < bottom:
            continue
        kept[count] = k
        count += 1
    if count == p.active or count < 2:
        return
    for k in range(p.active):
        all.coef[p.where[k]] = p.coef[k]
    for k in range(count):
        p.where[k] = p.where[kept[k]]
        p.coef[k] = p.coef[kept[k]]
        p.e[k] = p.e[kept[k]]
        p.lower[k] = p.lower[kept[k]]
        p.upper[k] = p.upper[kept[k]]
        p.diagonal[k] = p.diagonal[kept[k]]
    p.active = count
    cache.narrow(kept, count)


cdef void take_all(State *p, Whole *all) noexcept nogil:
    """Every coefficient is active again."""
    cdef Py_ssize_t k
    p.active = all.m
    for k in range(all.m):
        p.where[k] = k
        p.coef[k] = all.coef[k]
        p.e[k] = all.e[k]
        p.lower[k] = all.lower[k]
        p.upper[k] = all.upper[k]
        p.diagonal[k] = all.diagonal[k]
        all.synced[k] = all.coef[k]


cdef void hand_back(
    State *p, Whole *all, RowCache cache, Py_ssize_t *aside, double *row, double *sums
) noexcept nogil:
    """Write the active part to the whole, and bring e of the others up to date.

    e_k falls by the sum of K_kj (c_j - what c_j was when e_k was last right).
    """
    cdef Py_ssize_t k, j, count = 0, next = 0
    for k in range(all.m):
        # ``where`` rises: what it skips was set aside.
        if next < p.active and p.where[next] == k:
            next += 1
        else:
            aside[count] = cache.everyone[k]
            sums[count] = 0.0
            count += 1
    for k in range(p.active):
        all.coef[p.where[k]] = p.coef[k]
        all.e[p.where[k]] = p.e[k]
    if not count:
        return
    for j in range(all.m):
        if all.coef[j] == all.synced[j]:
            continue
        cache.entries(cache.everyone[j], aside, count, row)
        cache.evaluations += count
        for k in range(count):
            sums[k] += (all.coef[j] - all.synced[j]) * row[k]
    next = count = 0
    for k in range(all.m):
        if next < p.active and p.where[next] == k:
            next += 1
        else:
            all.e[k] -= sums[count]
            count += 1
    cache.widen()


cdef RowCache opened(source, const Py_ssize_t[::1] rows):
    if isinstance(source, RowCache):
        return source
    return RowCache.of_matrix(source, rows, max(COPIES, 16 * rows.shape[0]))


def smo_steps(
    source,
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
    bint shrinking=True,
):
    """Take steps until the violation is at most eps; ``coef`` and ``e`` move in place.

    ``source`` is a kernel matrix or a ``RowCache`` opened for ``rows``.
    Returns (iterations, violation, status): status 0 converged, 1 stopped, 2 cancelled.
    """
    cdef RowCache cache = opened(source, rows)
    cdef Py_ssize_t m = rows.shape[0], done = 0
    cdef double[:, ::1] work = np.empty((8, max(m, 1)))
    cdef Py_ssize_t[:, ::1] places = np.empty((2, max(m, 1)), dtype=np.intp)
    cdef Py_ssize_t period = min(m, SHRINK_EVERY), countdown = period
    cdef bint looked_at_all = False
    cdef int status = STOPPED
    cdef State p = State(
        m, &places[0, 0], &work[0, 0], &work[1, 0], &work[2, 0], &work[3, 0], &work[4, 0]
    )
    cdef Whole all
    cdef Choice choice = Choice(-1, -1, 0.0, 0.0, 0.0)
    if m == 0:
        return 0, 0.0, CONVERGED
    all = Whole(m, &lower[0], &upper[0], &diagonal[0], &coef[0], &e[0], &work[5, 0])
    with nogil:
        take_all(&p, &all)
        while True:
            if fit_intercept:
                choice = choose_pair(&p, cache)
            else:
                choice = single(p.coef, p.e, p.lower, p.upper, p.diagonal, p.active)
            if not choice.violation > eps:
                if p.active < m:
                    hand_back(&p, &all, cache, &places[1, 0], &work[6, 0], &work[7, 0])
                    take_all(&p, &all)
                    countdown = 1
                    continue
                status = CONVERGED
                break
            if done >= max_iter:
                break
            if done % LOOK_EVERY == 0 and cancel[0]:
                status = CANCELLED
                break
            if shrinking and countdown <= 0:
                countdown = period
                if p.active < m and not looked_at_all and choice.violation <= NEAR_END * eps:
                    looked_at_all = True
                    hand_back(&p, &all, cache, &places[1, 0], &work[6, 0], &work[7, 0])
                    take_all(&p, &all)
                    countdown = 1
                else:
                    set_aside(&p, &all, cache, choice.top, choice.bottom, &places[1, 0])
                continue
            if fit_intercept:
                move_pair(&p, cache, choice.i, choice.j)
            else:
                move_one(&p, cache, choice.i)
            done += 1
            countdown -= 1
        hand_back(&p, &all, cache, &places[1, 0], &work[6, 0], &work[7, 0])
    return done, choice.violation, status


def gradient(
    source,
    const Py_ssize_t[::1] rows,
    const double[::1] target,
    const double[::1] coef,
    double[::1] e,
):
    """e := target - K coef, from scratch; ``source`` as in ``smo_steps``."""
    cdef RowCache cache = opened(source, rows)
    e[:] = target
    cache.subtract(rows, coef, e)
