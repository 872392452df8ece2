cimport cython


@cython.final
cdef class Base:
    cdef const double[:, ::1] K
    cdef const Py_ssize_t[::1] rows
    cdef const double[:, ::1] table
    cdef const double[:, ::1] border
    cdef const double[::1] tail
    cdef const double[::1] u
    cdef const double[::1] c
    cdef const signed char[::1] state
    cdef const double[:, ::1] knots
    cdef const double[:, ::1] levels
    cdef bint intercept
    cdef double tol
    cdef double scale
    cdef Py_ssize_t a, k, m
    # columns of rows on a segment, made when first needed; pinned ones stay
    cdef double[:, ::1] columns
    cdef Py_ssize_t[::1] slot
    cdef Py_ssize_t[::1] slot_owner
    cdef Py_ssize_t next_slot
    cdef signed char[::1] pinned
    cdef Py_ssize_t[::1] wanted
    cdef Py_ssize_t n_wanted

    cdef const double* column(self, Py_ssize_t i) noexcept nogil
    cdef void _make_column(self, Py_ssize_t i, double* column) noexcept nogil
    cdef void _start_column(self, Py_ssize_t i, double* column) noexcept nogil
    cdef void want(self, Py_ssize_t i) noexcept nogil
    cdef void make_wanted(self) noexcept nogil
    cdef double box_high(self, Py_ssize_t i, signed char state) noexcept nogil
    cdef double box_low(self, Py_ssize_t i, signed char state) noexcept nogil
    cdef void limits(self, Py_ssize_t i, signed char state, double* low,
                     double* high) noexcept nogil
