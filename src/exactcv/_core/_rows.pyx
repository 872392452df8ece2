# cython: language_level=3, boundscheck=False, wraparound=False
# cython: cdivision=True, initializedcheck=False
"""Kernel rows on demand, in a memory of fixed size.  Driver: ``engine/kernel_rows.py``.

A ``RowCache`` serves rows K[i, columns] as contiguous arrays, for a list of columns that can shrink
(``narrow``) and grow back (``widen``).  Entries come from a matrix or are computed from features,
dense or sparse.  When the memory is full, the row not used for longest makes room.

The memory is one block of slots as wide as the list of columns.  After ``narrow`` the rows kept
are packed to the front at the new width, so that the same memory holds more of them.
"""

from libc.math cimport exp, fabs, pow, tanh
from libc.stdlib cimport calloc, free, malloc
from scipy.linalg.cython_blas cimport ddot

cdef enum:
    MATRIX = 0
    DENSE = 1
    SPARSE = 2
    NOBODY = -1

cdef enum:
    LINEAR = 0
    RBF = 1
    POLY = 2
    SIGMOID = 3
    LAPLACIAN = 4

KERNEL_CODES = {
    "linear": LINEAR, "rbf": RBF, "poly": POLY, "sigmoid": SIGMOID, "laplacian": LAPLACIAN,
}


cdef class RowCache:
    """Rows of a kernel over ``columns``; at most ``budget`` bytes of them at a time.

    Attributes
    ----------
    evaluations : int
        Kernel values computed; for a matrix, values of rows that were looked at, each row once.
    width, capacity : int
        Columns at present, and how many rows of that width fit.
    m : int
        Columns in all.
    """

    def __cinit__(self, const Py_ssize_t[::1] columns, Py_ssize_t n, Py_ssize_t budget):
        cdef Py_ssize_t k
        self.m = columns.shape[0]
        self.size = min(budget // 8, self.m * self.m)
        self.everyone = <Py_ssize_t *>malloc(max(self.m, 1) * sizeof(Py_ssize_t))
        self.columns = <Py_ssize_t *>malloc(max(self.m, 1) * sizeof(Py_ssize_t))
        self.memory = <double *>malloc(max(self.size, 1) * sizeof(double))
        self.slot_of = <Py_ssize_t *>malloc(max(n, 1) * sizeof(Py_ssize_t))
        self.owner = <Py_ssize_t *>malloc((self.m + 1) * sizeof(Py_ssize_t))
        self.newer = <Py_ssize_t *>malloc((self.m + 1) * sizeof(Py_ssize_t))
        self.older = <Py_ssize_t *>malloc((self.m + 1) * sizeof(Py_ssize_t))
        self.seen = <char *>calloc(max(n, 1), 1)
        if not (
            self.everyone and self.columns and self.memory and self.slot_of and self.owner
            and self.newer and self.older and self.seen
        ):
            raise MemoryError("no memory for the cache of kernel rows")
        self.in_place = self.m == n
        for k in range(self.m):
            self.everyone[k] = columns[k]
            self.columns[k] = columns[k]
            if columns[k] != k:
                self.in_place = False
        for k in range(n):
            self.slot_of[k] = NOBODY
        self.used = 0
        self.newest = self.oldest = NOBODY
        self._resize(self.m)

    def __dealloc__(self):
        free(self.everyone)
        free(self.columns)
        free(self.memory)
        free(self.slot_of)
        free(self.owner)
        free(self.newer)
        free(self.older)
        free(self.seen)
        free(self.scatter)

    @staticmethod
    def of_matrix(const double[:, ::1] K, const Py_ssize_t[::1] columns, Py_ssize_t budget):
        """Rows of a matrix; with all columns in order they are read where they are."""
        cdef RowCache cache = RowCache(columns, K.shape[0], budget)
        cache.kind = MATRIX
        cache.held = K
        cache.data = &K[0, 0]
        cache.p = K.shape[1]
        return cache

    @staticmethod
    def of_dense(
        const double[:, ::1] X, const double[::1] squares, kernel,
        const Py_ssize_t[::1] columns, Py_ssize_t budget,
    ):
        """Rows computed from dense features; ``kernel`` is (code, gamma, degree, coef0)."""
        cdef RowCache cache = RowCache(columns, X.shape[0], budget)
        cache.kind = DENSE
        cache.held = (X, squares)
        cache.data = &X[0, 0]
        cache.squares = &squares[0]
        cache.p = X.shape[1]
        cache.in_place = False
        cache.kernel, cache.gamma, cache.degree, cache.coef0 = kernel
        return cache

    @staticmethod
    def of_sparse(
        const double[::1] values, const int[::1] indices, const int[::1] pointers, Py_ssize_t p,
        const double[::1] squares, kernel, const Py_ssize_t[::1] columns, Py_ssize_t budget,
    ):
        """Rows computed from compressed sparse rows; ``kernel`` as in ``of_dense``."""
        cdef RowCache cache = RowCache(columns, squares.shape[0], budget)
        cache.kind = SPARSE
        cache.held = (values, indices, pointers, squares)
        if values.shape[0]:
            cache.data = &values[0]
            cache.indices = &indices[0]
        cache.pointers = &pointers[0]
        cache.squares = &squares[0]
        cache.p = p
        cache.scatter = <double *>calloc(max(p, 1), sizeof(double))
        if not cache.scatter:
            raise MemoryError("no memory for the cache of kernel rows")
        cache.in_place = False
        cache.kernel, cache.gamma, cache.degree, cache.coef0 = kernel
        return cache

    def subtract(
        self, const Py_ssize_t[::1] which, const double[::1] weights, double[::1] out
    ):
        """out -= sum over j of weights_j K[which_j, columns]; which_j is a row of the source."""
        cdef const double *values
        cdef Py_ssize_t j, k
        with nogil:
            for j in range(which.shape[0]):
                if weights[j] != 0.0:
                    values = self.row(which[j])
                    for k in range(self.width):
                        out[k] -= weights[j] * values[k]

    def products(
        self, const Py_ssize_t[::1] which, const double[::1] coef, double[::1] out
    ):
        """out_j := K[which_j, columns]' coef."""
        cdef const double *values
        cdef double total
        cdef Py_ssize_t j, k
        with nogil:
            for j in range(which.shape[0]):
                values = self.row(which[j])
                total = 0.0
                for k in range(self.width):
                    total += values[k] * coef[k]
                out[j] = total

    def get(self, Py_ssize_t i):
        """A copy of K[i, columns], for tests."""
        cdef const double *values = self.row(i)
        return [values[k] for k in range(self.width)]

    def keep(self, const Py_ssize_t[::1] kept):
        """Narrow to the columns at these positions (rising); ``restore`` undoes it."""
        self.narrow(&kept[0], kept.shape[0])

    def restore(self):
        """All columns again."""
        self.widen()

    @property
    def rows_held(self):
        """How many rows are in memory."""
        return self.used

    # ---- for compiled callers ------------------------------------------------------------------

    cdef const double *row(self, Py_ssize_t i) noexcept nogil:
        """K[i, columns].  Valid until the next but one call: there is room for two rows."""
        cdef Py_ssize_t slot = self.slot_of[i]
        if self.kind == MATRIX and not self.seen[i]:
            self.seen[i] = 1
            self.evaluations += self.width
        if self.in_place:
            return self.data + i * self.p
        if slot == NOBODY:
            if self.used < self.capacity:
                slot = self.used
                self.used += 1
            else:
                slot = self.oldest
                self.slot_of[self.owner[slot]] = NOBODY
                self._unlink(slot)
            self.owner[slot] = i
            self.slot_of[i] = slot
            self.entries(i, self.columns, self.width, self.memory + slot * self.width)
            if self.kind != MATRIX:
                self.evaluations += self.width
            self._use(slot)
        elif slot != self.newest:
            self._unlink(slot)
            self._use(slot)
        return self.memory + slot * self.width

    cdef void entries(
        self, Py_ssize_t i, const Py_ssize_t *which, Py_ssize_t count, double *out
    ) noexcept nogil:
        """out := K[i, which], not kept and not counted."""
        cdef const double *source
        cdef Py_ssize_t k
        if self.kind == MATRIX:
            source = self.data + i * self.p
            for k in range(count):
                out[k] = source[which[k]]
            return
        self._dots(i, which, count, out)
        self._transform(i, which, count, out)

    cdef void nearness(
        self, Py_ssize_t i, const Py_ssize_t *which, Py_ssize_t count, double *out
    ) noexcept nogil:
        """Values in the same order as K[i, which]: what falls with distance needs no exponential.

        They also tell rows apart that are so far away that their kernel values are all 0.
        """
        cdef Py_ssize_t k
        if self.kind == MATRIX or self.kernel not in (RBF, LAPLACIAN):
            self.entries(i, which, count, out)
            return
        self._dots(i, which, count, out)
        for k in range(count):
            out[k] = 2.0 * out[k] - self.squares[which[k]] if self.kernel == RBF else -out[k]

    cdef void narrow(self, const Py_ssize_t *kept, Py_ssize_t count) noexcept nogil:
        """Keep only the columns at these positions, and of every row in memory what is left."""
        cdef Py_ssize_t slot, k
        cdef const double *old
        cdef double *new
        for slot in range(self.used):
            # Packed forward: a row's new place never lies behind its old one.
            old = self.memory + slot * self.width
            new = self.memory + slot * count
            for k in range(count):
                new[k] = old[kept[k]]
        for k in range(count):
            self.columns[k] = self.columns[kept[k]]
        self.in_place = False
        self._resize(count)

    cdef void widen(self) noexcept nogil:
        """All columns again; rows in memory, being too short, are dropped."""
        cdef Py_ssize_t k
        if self.width == self.m:
            return
        for k in range(self.used):
            self.slot_of[self.owner[k]] = NOBODY
        self.used = 0
        self.newest = self.oldest = NOBODY
        for k in range(self.m):
            self.columns[k] = self.everyone[k]
        self._resize(self.m)

    # ---- the work ------------------------------------------------------------------------------

    cdef void _dots(
        self, Py_ssize_t i, const Py_ssize_t *which, Py_ssize_t count, double *out
    ) noexcept nogil:
        """x_i' x_k, or the sum of |x_i - x_k| for the laplacian, over the columns."""
        cdef Py_ssize_t k, t
        cdef int p = <int>self.p, one = 1
        cdef double *x
        cdef double *z
        cdef double total
        if self.kind == DENSE:
            x = <double *>(self.data + i * self.p)
            for k in range(count):
                z = <double *>(self.data + which[k] * self.p)
                if self.kernel != LAPLACIAN:
                    out[k] = ddot(&p, x, &one, z, &one)
                    continue
                total = 0.0
                for t in range(self.p):
                    total += fabs(x[t] - z[t])
                out[k] = total
            return
        for t in range(self.pointers[i], self.pointers[i + 1]):
            self.scatter[self.indices[t]] = self.data[t]
        for k in range(count):
            total = 0.0
            for t in range(self.pointers[which[k]], self.pointers[which[k] + 1]):
                total += self.data[t] * self.scatter[self.indices[t]]
            out[k] = total
        for t in range(self.pointers[i], self.pointers[i + 1]):
            self.scatter[self.indices[t]] = 0.0

    cdef void _transform(
        self, Py_ssize_t i, const Py_ssize_t *which, Py_ssize_t count, double *out
    ) noexcept nogil:
        """Inner products (or distances) into kernel values."""
        cdef Py_ssize_t k
        cdef double square
        if self.kernel == RBF:
            for k in range(count):
                square = self.squares[i] + self.squares[which[k]] - 2.0 * out[k]
                if which[k] == i or square < 0.0:
                    square = 0.0
                out[k] = exp(-self.gamma * square)
        elif self.kernel == POLY:
            for k in range(count):
                out[k] = pow(self.gamma * out[k] + self.coef0, self.degree)
        elif self.kernel == SIGMOID:
            for k in range(count):
                out[k] = tanh(self.gamma * out[k] + self.coef0)
        elif self.kernel == LAPLACIAN:
            for k in range(count):
                out[k] = exp(-self.gamma * out[k])

    cdef void _use(self, Py_ssize_t slot) noexcept nogil:
        """Put an unlinked slot at the newest end."""
        self.newer[slot] = NOBODY
        self.older[slot] = self.newest
        if self.newest != NOBODY:
            self.newer[self.newest] = slot
        else:
            self.oldest = slot
        self.newest = slot

    cdef void _unlink(self, Py_ssize_t slot) noexcept nogil:
        if self.newer[slot] != NOBODY:
            self.older[self.newer[slot]] = self.older[slot]
        else:
            self.newest = self.older[slot]
        if self.older[slot] != NOBODY:
            self.newer[self.older[slot]] = self.newer[slot]
        else:
            self.oldest = self.newer[slot]

    cdef void _resize(self, Py_ssize_t width) noexcept nogil:
        self.width = width
        self.capacity = min(self.size // width, self.m) if width else 0
