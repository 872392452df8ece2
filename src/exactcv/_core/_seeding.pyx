# cython: language_level=3, boundscheck=False, wraparound=False
# cython: cdivision=True, initializedcheck=False
"""Hot loops of the seeds.

Drivers: ``algorithms/alpha_seeding/``.  Twins: ``reference/seeding.py``.

A seed is a vector over all n rows that must end within its bounds and, with an intercept, add up to
zero.  SIR is compiled as a whole: its folds can be so small, and their solves so short, that a few
calls of NumPy would take a tenth of the time.
"""

from libc.math cimport fabs
from libc.stdlib cimport free, malloc

import numpy as np

from ._rows cimport RowCache

# A sum is zero up to this, relative to the sum of absolute values: rounding.
cdef double NO_SUM = 1e-14
ROUNDING = NO_SUM


cdef struct Seed:
    # The seed, its bounds, and how many rows there are in all.
    Py_ssize_t n
    double *c
    const double *lower
    const double *upper


cdef double spread(
    Seed *s, const Py_ssize_t *rows, Py_ssize_t count, double lack
) noexcept nogil:
    """Raise c on the rows alike (lower it if lack < 0) by ``lack`` in all; returns what is left.

    Each round shares what is left evenly among those that have room.  A round that does not
    finish the work fills somebody up, so there are at most as many as rows.
    """
    cdef Py_ssize_t k, i, able, _round
    cdef double share, room, left = lack
    for _round in range(count + 1):
        able = 0
        for k in range(count):
            i = rows[k]
            if (s.c[i] < s.upper[i]) if lack > 0.0 else (s.c[i] > s.lower[i]):
                able += 1
        if able == 0 or left == 0.0:
            break
        share = left / able
        left = 0.0
        for k in range(count):
            i = rows[k]
            room = s.upper[i] - s.c[i] if lack > 0.0 else s.lower[i] - s.c[i]
            if (room > share) if lack > 0.0 else (room < share):
                s.c[i] += share
            elif room != 0.0:
                s.c[i] = s.upper[i] if lack > 0.0 else s.lower[i]
                left += share - room
        if (left <= 0.0) if lack > 0.0 else (left >= 0.0):
            break
    return left


cdef double lacking(Seed *s, double *size) noexcept nogil:
    """What the sum lacks to be zero; ``size`` gets the sum of absolute values."""
    cdef Py_ssize_t i
    cdef double total = 0.0
    size[0] = 0.0
    for i in range(s.n):
        total += s.c[i]
        size[0] += fabs(s.c[i])
    return -total


cdef void finish(Seed *s, double lack) noexcept nogil:
    """What rounding has left goes to the coefficient with the most room on both sides."""
    cdef Py_ssize_t i, best = -1
    cdef double room, most = 0.0
    for i in range(s.n):
        room = min(s.c[i] - s.lower[i], s.upper[i] - s.c[i])
        if room > most:
            most = room
            best = i
    if best >= 0 and fabs(lack) < most:
        s.c[best] += lack


cdef Py_ssize_t take_best(
    RowCache kernel, Py_ssize_t giver, Py_ssize_t *takers, Py_ssize_t count, double *similarity
) noexcept nogil:
    """The taker most similar to the giver, struck off the list; the first of equals."""
    cdef Py_ssize_t k, best = 0, taker
    kernel.nearness(giver, takers, count, similarity)
    kernel.evaluations += count
    for k in range(1, count):
        if similarity[k] > similarity[best]:
            best = k
    taker = takers[best]
    for k in range(best + 1, count):
        takers[k - 1] = takers[k]
    return taker


cdef void hand_over(
    Seed *s, RowCache kernel, const double[::1] coef, const Py_ssize_t[::1] removed,
    const Py_ssize_t[::1] added, Py_ssize_t *room, double *similarity,
) noexcept nogil:
    """Each row that leaves gives its coefficient to the most similar of its sign not yet taken.

    ``room`` holds the takers: those that can be positive from the front, the others from behind.
    """
    cdef Py_ssize_t k, i, size = added.shape[0], positive = 0, negative = 0
    for k in range(size):
        i = added[k]
        if s.upper[i] > 0.0:
            room[positive] = i
            positive += 1
    for k in range(size):
        i = added[k]
        if s.lower[i] < 0.0:
            room[size + negative] = i
            negative += 1
    for k in range(removed.shape[0]):
        i = removed[k]
        if coef[i] > 0.0 and positive:
            s.c[take_best(kernel, i, room, positive, similarity)] = coef[i]
            positive -= 1
        elif coef[i] < 0.0 and negative:
            s.c[take_best(kernel, i, room + size, negative, similarity)] = coef[i]
            negative -= 1


cdef Py_ssize_t free_rows(
    Seed *s, const double[::1] coef, const Py_ssize_t[::1] train, const Py_ssize_t[::1] added,
    char *mark, Py_ssize_t *out,
) noexcept nogil:
    """The shared rows whose coefficient was strictly inside its box."""
    cdef Py_ssize_t k, i, count = 0
    for k in range(train.shape[0]):
        mark[train[k]] = 0
    for k in range(added.shape[0]):
        mark[added[k]] = 1
    for k in range(train.shape[0]):
        i = train[k]
        if not mark[i] and s.lower[i] < coef[i] < s.upper[i]:
            out[count] = i
            count += 1
    return count


cdef void make_sum(
    Seed *s, const double[::1] coef, const Py_ssize_t[::1] train, const Py_ssize_t[::1] added,
    char *mark, Py_ssize_t *rows,
) noexcept nogil:
    """Spread what the sum lacks over T, then the free rows of S, then the whole training set."""
    cdef double size = 0.0, lack = lacking(s, &size)
    cdef double rounding = NO_SUM * size
    if lack == 0.0:
        return
    if fabs(lack) > rounding and added.shape[0]:
        spread(s, &added[0], added.shape[0], lack)
        lack = lacking(s, &size)
    if fabs(lack) > rounding:
        spread(s, rows, free_rows(s, coef, train, added, mark, rows), lack)
        lack = lacking(s, &size)
    if fabs(lack) > rounding and train.shape[0]:
        spread(s, &train[0], train.shape[0], lack)
        lack = lacking(s, &size)
    finish(s, lack)


def sir(
    RowCache kernel,
    const double[::1] coef,
    const double[::1] lower,
    const double[::1] upper,
    const Py_ssize_t[::1] train,
    const Py_ssize_t[::1] removed,
    const Py_ssize_t[::1] added,
    bint fit_intercept,
    double[::1] seed,
):
    """Fill ``seed``: see ``algorithms/alpha_seeding/sir.py``.  ``coef`` lies within the bounds.

    Returns the number of kernel values it took.
    """
    cdef Py_ssize_t n = coef.shape[0], k, before = kernel.evaluations
    cdef Seed s = Seed(n, &seed[0], &lower[0], &upper[0])
    cdef Py_ssize_t spare = max(n, 2 * added.shape[0])
    cdef Py_ssize_t *rows = <Py_ssize_t *>malloc(spare * sizeof(Py_ssize_t))
    cdef double *similarity = <double *>malloc(n * sizeof(double))
    cdef char *mark = <char *>malloc(n)
    try:
        if not (rows and similarity and mark):
            raise MemoryError("no memory for a seed")
        with nogil:
            for k in range(n):
                seed[k] = coef[k]
            for k in range(removed.shape[0]):
                seed[removed[k]] = 0.0
            hand_over(&s, kernel, coef, removed, added, rows, similarity)
            for k in range(n):
                seed[k] = min(max(seed[k], lower[k]), upper[k])
            if fit_intercept:
                make_sum(&s, coef, train, added, mark, rows)
    finally:
        free(rows)
        free(similarity)
        free(mark)
    return kernel.evaluations - before


def shift(
    double[::1] c,
    const double[::1] lower,
    const double[::1] upper,
    const Py_ssize_t[::1] rows,
    double lack,
):
    """c := clip(c + s) on the rows, for the s that adds ``lack`` to the sum; what does not fit."""
    if rows.shape[0] == 0:
        return lack
    cdef Seed s = Seed(c.shape[0], &c[0], &lower[0], &upper[0])
    with nogil:
        lack = spread(&s, &rows[0], rows.shape[0], lack)
    return lack


def changed(const Py_ssize_t[::1] old, const Py_ssize_t[::1] new):
    """(rows of old that are not in new, rows of new that are not in old); both lists rise."""
    cdef Py_ssize_t m = old.shape[0], k = new.shape[0], i = 0, j = 0, gone = 0, come = 0
    removed, added = np.empty(m, dtype=np.intp), np.empty(k, dtype=np.intp)
    cdef Py_ssize_t[::1] r = removed, a = added
    while i < m or j < k:
        if j == k or (i < m and old[i] < new[j]):
            r[gone] = old[i]
            gone += 1
            i += 1
        elif i == m or new[j] < old[i]:
            a[come] = new[j]
            come += 1
            j += 1
        else:
            i += 1
            j += 1
    return removed[:gone], added[:come]
