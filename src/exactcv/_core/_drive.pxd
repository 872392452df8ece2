cimport cython

from exactcv._core._base cimport Base

cpdef enum Outcome:
    DONE = 0
    TOO_LONG = 1
    NO_ROW_LEFT = 2
    SINGULAR = 3


@cython.final
cdef class Drive:
    cdef Base base
    cdef Py_ssize_t a
    cdef double[::1] u
    cdef double[::1] c
    cdef double[::1] low
    cdef double[::1] high
    cdef double[::1] base_low
    cdef double[::1] base_high
    cdef signed char[::1] state
    cdef Py_ssize_t[::1] members
    cdef Py_ssize_t size
    cdef Py_ssize_t[::1] crossing
    # pivots made since the full-data solution: T := T - D (T[index, :] - E)
    cdef double[:, ::1] D
    cdef Py_ssize_t[::1] index
    cdef signed char[::1] paired
    cdef Py_ssize_t n_pivots
    cdef double[:, ::1] scratch
    cdef double[::1] direction
    cdef readonly Py_ssize_t events

    cdef signed char run(self, Py_ssize_t j, double taken, const double* column) noexcept nogil
    cdef void _reset(self) noexcept nogil
    cdef double _first_event(self, double sign, double left, Py_ssize_t j, Py_ssize_t* who,
                             int* side) noexcept nogil
    cdef void _advance(self, double t) noexcept nogil
    cdef double _box_high(self, Py_ssize_t i) noexcept nogil
    cdef double _box_low(self, Py_ssize_t i) noexcept nogil
    cdef void _set_state(self, Py_ssize_t i, signed char state) noexcept nogil
    cdef signed char _release(self, Py_ssize_t j, double sign) noexcept nogil
    cdef signed char _member_leaves(self, Py_ssize_t i, double sign, Py_ssize_t j) noexcept nogil
    cdef signed char _swap_last(self, Py_ssize_t i, signed char state, double sign,
                                Py_ssize_t j) noexcept nogil
    cdef signed char _row_enters(self, Py_ssize_t k, int side) noexcept nogil
    cdef signed char _exchange(self, Py_ssize_t k, int side, double* column) noexcept nogil
    cdef void _column(self, Py_ssize_t k, double* column) noexcept nogil
    cdef void _apply(self, Py_ssize_t p, Py_ssize_t k, double* column) noexcept nogil
    cdef void _pivot(self, Py_ssize_t k, double* column) noexcept nogil
    cdef signed char _pivot_pair(self, Py_ssize_t k, double* ck, Py_ssize_t i,
                                 double* ci) noexcept nogil
