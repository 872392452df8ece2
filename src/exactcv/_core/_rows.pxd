cdef class RowCache:
    cdef readonly Py_ssize_t evaluations
    cdef readonly Py_ssize_t width
    cdef readonly Py_ssize_t capacity
    cdef readonly Py_ssize_t m
    # Where entries come from: one of a matrix, dense features, compressed sparse rows.
    cdef int kind
    cdef int kernel
    cdef double gamma, coef0, degree
    cdef Py_ssize_t p
    cdef const double *data
    cdef const int *pointers
    cdef const int *indices
    cdef const double *squares
    cdef double *scatter
    cdef object held
    # The columns of now (numbers of rows of the source), all columns, and the rows in memory.
    cdef Py_ssize_t *everyone
    cdef Py_ssize_t *columns
    cdef double *memory
    cdef Py_ssize_t size, used, newest, oldest
    cdef Py_ssize_t *slot_of
    cdef Py_ssize_t *owner
    cdef Py_ssize_t *newer
    cdef Py_ssize_t *older
    cdef char *seen
    cdef bint in_place

    cdef const double *row(self, Py_ssize_t i) noexcept nogil
    cdef void entries(
        self, Py_ssize_t i, const Py_ssize_t *which, Py_ssize_t count, double *out
    ) noexcept nogil
    cdef void nearness(
        self, Py_ssize_t i, const Py_ssize_t *which, Py_ssize_t count, double *out
    ) noexcept nogil
    cdef void narrow(self, const Py_ssize_t *kept, Py_ssize_t count) noexcept nogil
    cdef void widen(self) noexcept nogil
    cdef void _dots(
        self, Py_ssize_t i, const Py_ssize_t *which, Py_ssize_t count, double *out
    ) noexcept nogil
    cdef void _transform(
        self, Py_ssize_t i, const Py_ssize_t *which, Py_ssize_t count, double *out
    ) noexcept nogil
    cdef void _use(self, Py_ssize_t slot) noexcept nogil
    cdef void _unlink(self, Py_ssize_t slot) noexcept nogil
    cdef void _resize(self, Py_ssize_t width) noexcept nogil
