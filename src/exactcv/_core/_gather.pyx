"""Parts of a matrix: entries of some rows in some columns, what they add up to, one side of it.

NumPy's ``K[np.ix_(rows, columns)]``, which is the twin of ``gather``, takes several times as long.
"""

from libc.string cimport memcmp, memcpy

import numpy as np

cdef extern from "vector.h" nogil:
    void exactcv_rbf(double *d, Py_ssize_t n, double gamma)
    void exactcv_axpy(double a, const double *x, Py_ssize_t n, double *y)

# Columns are copied a run of neighbours at a time if runs are at least so long on average.
cdef Py_ssize_t LONG = 8


def gather(const double[:, ::1] K, const Py_ssize_t[::1] rows, const Py_ssize_t[::1] columns):
    """K[rows, columns] as a matrix of its own."""
    cdef Py_ssize_t i, height = rows.shape[0], width = columns.shape[0], n_runs
    out = np.empty((height, width))
    cdef double[:, ::1] part = out
    cdef Py_ssize_t[::1] ends = np.empty(width // LONG + 1, dtype=np.intp)
    with nogil:
        n_runs = runs(columns, ends)
        for i in range(height):
            pick(&K[rows[i], 0], columns, ends, n_runs, &part[i, 0])
    return out


def rbf(const double[:, :] D, double gamma, double[:, :] out):
    """out = exp(-gamma D), of squared distances D; ``out`` may be D.  Rows are contiguous."""
    cdef Py_ssize_t i, width = D.shape[1]
    if width == 0:
        return
    with nogil:
        for i in range(D.shape[0]):
            if &out[i, 0] != &D[i, 0]:
                memcpy(&out[i, 0], &D[i, 0], width * sizeof(double))
            exactcv_rbf(&out[i, 0], width, gamma)


def combine(const double[:, ::1] K, const Py_ssize_t[::1] rows, const Py_ssize_t[::1] columns,
            const double[:, ::1] coef, const double[::1] constant, double gamma=-1.0):
    """coef K[columns, rows] + constant, for symmetric K: solutions evaluated on some rows.

    With ``gamma`` >= 0 K are squared distances, and exp(-gamma K) takes their place.  Most columns
    of ``coef`` are zero, and neighbouring rows of it may be equal.
    """
    cdef Py_ssize_t i, j, k, n = rows.shape[0], m = coef.shape[1], n_runs
    cdef Py_ssize_t count = coef.shape[0], last = 0
    cdef bint wanted
    out = np.zeros((count, n))
    if n == 0 or count == 0:
        return out
    cdef double[:, ::1] values = out
    cdef Py_ssize_t[::1] same_as = np.empty(count, dtype=np.intp)
    cdef Py_ssize_t[::1] ends = np.empty(n // LONG + 1, dtype=np.intp)
    cdef double[::1] entries = np.empty(n)
    with nogil:
        for k in range(count):
            if k > 0 and memcmp(&coef[k, 0], &coef[last, 0], m * sizeof(double)):
                last = k
            same_as[k] = last
        n_runs = runs(rows, ends)
        # Row by row of K, of which those with a coefficient are needed alone.
        for j in range(m):
            wanted = False
            for k in range(count):
                wanted = wanted or coef[k, j] != 0.0
            if not wanted:
                continue
            pick(&K[columns[j], 0], rows, ends, n_runs, &entries[0])
            if gamma >= 0.0:
                exactcv_rbf(&entries[0], n, gamma)
            for k in range(count):
                if same_as[k] == k and coef[k, j] != 0.0:
                    exactcv_axpy(coef[k, j], &entries[0], n, &values[k, 0])
        for k in range(count - 1, -1, -1):
            if same_as[k] < k:
                memcpy(&values[k, 0], &values[same_as[k], 0], n * sizeof(double))
        for k in range(count):
            for i in range(n):
                values[k, i] += constant[k]
    return out


def combine_parts(const double[:, ::1] K, const Py_ssize_t[::1] rows,
                  const Py_ssize_t[::1] offsets, const Py_ssize_t[::1] columns,
                  const double[:, ::1] coef, const double[::1] constant, gammas=None):
    """Solution k on rows[offsets[k] : offsets[k + 1]], as by `combine`, one part after the other.

    With ``gammas`` solution k has the kernel exp(-gammas[k] K).
    """
    cdef Py_ssize_t i, j, k, n, n_runs, start, most = 0
    cdef double[::1] own = np.full(coef.shape[0], -1.0) if gammas is None else np.array(gammas)
    out = np.zeros(rows.shape[0])
    cdef double[::1] values = out
    for k in range(coef.shape[0]):
        most = max(most, offsets[k + 1] - offsets[k])
    if most == 0:
        return out
    cdef Py_ssize_t[::1] ends = np.empty(most // LONG + 1, dtype=np.intp)
    cdef double[::1] entries = np.empty(most)
    with nogil:
        for k in range(coef.shape[0]):
            start, n = offsets[k], offsets[k + 1] - offsets[k]
            if n == 0:
                continue
            n_runs = runs(rows[start:start + n], ends)
            for j in range(coef.shape[1]):
                if coef[k, j] == 0.0:
                    continue
                pick(&K[columns[j], 0], rows[start:start + n], ends, n_runs, &entries[0])
                if own[k] >= 0.0:
                    exactcv_rbf(&entries[0], n, own[k])
                exactcv_axpy(coef[k, j], &entries[0], n, &values[start])
            for i in range(start, start + n):
                values[i] += constant[k]
    return out


def copy_columns(const double[:, ::1] values, const Py_ssize_t[::1] source,
                 const Py_ssize_t[::1] to, const double[::1] share, double[:, ::1] out):
    """out[:, to] = values[:, source] * share; in place if no column is both source and target."""
    cdef Py_ssize_t i, j
    with nogil:
        for i in range(values.shape[0]):
            for j in range(to.shape[0]):
                out[i, to[j]] = values[i, source[j]] * share[j]


def mirror(const double[:, :] upper, double[:, :] out):
    """The symmetric matrix whose upper triangle is given; may be done in place.

    The twin is ``np.triu(upper) + np.triu(upper, 1).T``.
    """
    cdef Py_ssize_t n = upper.shape[0], i, j, top, left
    with nogil:
        for top in range(0, n, 32):  # tiles that stay in the cache both ways
            for left in range(top, n, 32):
                for i in range(top, min(top + 32, n)):
                    for j in range(max(left, i), min(left + 32, n)):
                        out[i, j] = upper[i, j]
                        out[j, i] = upper[i, j]


cdef class RbfRows:
    """exp(-gamma D) of squared distances D, each row when it is first needed.

    Attributes
    ----------
    K : (n, n)
        Of which the rows are there that were needed so far.
    """

    def __init__(self, D):
        self.squares, self.K = D, np.empty(D.shape)
        self.matrix, self.ready = self.K, np.zeros(len(D), dtype=np.uint8)

    def start_over(self, double gamma):
        """With that gamma, and no row yet."""
        self.gamma = gamma
        self.ready[:] = 0

    def complete(self):
        """K with all its rows."""
        cdef Py_ssize_t i
        with nogil:
            for i in range(self.ready.shape[0]):
                self.need(&i, 1)
        return self.K

    def times(self, const double[::1] coef):
        """K c, by the rows with a coefficient."""
        cdef Py_ssize_t i, n = coef.shape[0]
        out = np.zeros(n)
        cdef double[::1] h = out
        with nogil:
            for i in range(n):
                if coef[i] != 0.0:
                    self.need(&i, 1)
                    exactcv_axpy(coef[i], &self.matrix[i, 0], n, &h[0])
        return out

    cdef void need(self, const Py_ssize_t *rows, Py_ssize_t count) noexcept nogil:
        cdef Py_ssize_t k, n = self.ready.shape[0]
        for k in range(count):
            if not self.ready[rows[k]]:
                memcpy(&self.matrix[rows[k], 0], &self.squares[rows[k], 0], n * sizeof(double))
                exactcv_rbf(&self.matrix[rows[k], 0], n, self.gamma)
                self.ready[rows[k]] = 1


cdef Py_ssize_t runs(const Py_ssize_t[::1] columns, Py_ssize_t[::1] ends) noexcept nogil:
    """Where runs of neighbouring columns end, and how many there are; 0 if they are short."""
    cdef Py_ssize_t j, count = 0, width = columns.shape[0]
    for j in range(1, width + 1):
        if j == width or columns[j] != columns[j - 1] + 1:
            if count == width // LONG:
                return 0
            ends[count] = j
            count += 1
    return count


cdef inline void pick(const double *row, const Py_ssize_t[::1] columns, const Py_ssize_t[::1] ends,
                      Py_ssize_t n_runs, double *out) noexcept nogil:
    """The entries of a row in those columns."""
    cdef Py_ssize_t j, first = 0
    if n_runs == 0:
        for j in range(columns.shape[0]):
            out[j] = row[columns[j]]
        return
    for j in range(n_runs):
        memcpy(out + first, row + columns[first], (ends[j] - first) * sizeof(double))
        first = ends[j]
