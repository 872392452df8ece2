cdef class Factor:
    cdef const double[:, ::1] K
    cdef bint constant, borrowed, distrusted
    cdef Factor lender
    cdef readonly double top
    cdef readonly bint updated, firm
    cdef readonly Py_ssize_t n_factorised
    cdef Py_ssize_t n_base, n_columns, n_changed, room
    cdef Py_ssize_t[::1] base, place, column_of, column_rows, changed, listed
    cdef long long[::1] seen
    cdef long long stamp
    cdef double[::1] triangle, columns, inner, schur, work, z, y, ones, ones_inner
    cdef Py_ssize_t n_ones
    cdef double ones_size
    cdef int[::1] pivots

    cdef int prepare(self, const Py_ssize_t[::1] rows, Py_ssize_t size, bint few)
    cdef void forget(self) noexcept nogil
    cdef void solve(self, const Py_ssize_t[::1] rows, Py_ssize_t size, double* x,
                    double* other) noexcept nogil
    cdef double move(self, const Py_ssize_t[::1] rows, Py_ssize_t size, double* x,
                     const double* left, double total) noexcept nogil
    cdef void _know_ones(self) noexcept nogil
    cdef Py_ssize_t _find_changes(self, const Py_ssize_t[::1] rows, Py_ssize_t size,
                                  bint list_them) noexcept nogil
    cdef int _afresh(self, const Py_ssize_t[::1] rows, Py_ssize_t size)
    cdef double _borrowed_cost(self, const Py_ssize_t[::1] rows, Py_ssize_t size) noexcept nogil
    cdef int _update(self) noexcept nogil
    cdef void _halfway(self, Py_ssize_t first) noexcept nogil
    cdef double _entry(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil
    cdef void _panels(self, char trans, Py_ssize_t start, double* x, int count) noexcept nogil
    cdef void _clear(self) noexcept nogil
