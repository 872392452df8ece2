# cython: language_level=3, boundscheck=False, wraparound=False
# cython: cdivision=True, initializedcheck=False
"""Hot loops of the seeds.  Drivers: ``seeding/``.  Twins: ``reference_seeding.py``."""

from libc.math cimport INFINITY


cdef void match_rows(
    const double *similarity, const double *giver_sign, const double *taker_sign, char *taken,
    Py_ssize_t n_givers, Py_ssize_t n_takers, Py_ssize_t *partner,
) noexcept nogil:
    """partner_g := the taker most similar to giver g of those left with its sign, or -1."""
    cdef Py_ssize_t g, t
    cdef double best
    for g in range(n_givers):
        partner[g] = -1
        best = -INFINITY
        for t in range(n_takers):
            if (
                not taken[t]
                and giver_sign[g] * taker_sign[t] > 0.0
                and similarity[g * n_takers + t] > best
            ):
                best = similarity[g * n_takers + t]
                partner[g] = t
        if partner[g] >= 0:
            taken[partner[g]] = 1


def match(
    const double[:, ::1] similarity,
    const double[::1] giver_sign,
    const double[::1] taker_sign,
    char[::1] taken,
    Py_ssize_t[::1] partner,
):
    """Match givers with takers in turn; ``taken`` (zeros) and ``partner`` are filled."""
    with nogil:
        match_rows(
            &similarity[0, 0], &giver_sign[0], &taker_sign[0], &taken[0],
            similarity.shape[0], similarity.shape[1], &partner[0],
        )


cdef double spread(
    double *c, const double *lower, const double *upper, Py_ssize_t m, double lack
) noexcept nogil:
    """Raise all c_i alike (lower them if lack < 0) by ``lack`` in all; returns what is left over.

    Each round shares what is left evenly among those that have room.  A round that does not
    finish the work fills somebody up, so there are at most m.
    """
    cdef Py_ssize_t i, able, _round
    cdef double share, room, left = lack
    for _round in range(m + 1):
        able = 0
        for i in range(m):
            if (c[i] < upper[i]) if lack > 0.0 else (c[i] > lower[i]):
                able += 1
        if able == 0 or left == 0.0:
            break
        share = left / able
        left = 0.0
        for i in range(m):
            room = upper[i] - c[i] if lack > 0.0 else lower[i] - c[i]
            if (room > share) if lack > 0.0 else (room < share):
                c[i] += share
            elif room != 0.0:
                c[i] = upper[i] if lack > 0.0 else lower[i]
                left += share - room
        if (left <= 0.0) if lack > 0.0 else (left >= 0.0):
            break
    return left


def shift(double[::1] c, const double[::1] lower, const double[::1] upper, double lack):
    """c := clip(c + s), for the s that adds ``lack`` to the sum; returns what does not fit."""
    if c.shape[0] == 0:
        return lack
    with nogil:
        lack = spread(&c[0], &lower[0], &upper[0], c.shape[0], lack)
    return lack
