cdef class RbfRows:
    cdef const double[:, ::1] squares
    cdef double[:, ::1] matrix
    cdef readonly object K
    cdef unsigned char[::1] ready
    cdef double gamma

    cdef void need(self, const Py_ssize_t *rows, Py_ssize_t count) noexcept nogil
