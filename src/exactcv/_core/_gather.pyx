"""Part of a matrix: the entries of some rows in some columns, or on one side of the diagonal.

NumPy's ``K[np.ix_(rows, columns)]``, which is the twin of ``gather``, takes several times as long.
"""

import numpy as np

cdef extern from "vector.h" nogil:
    void exactcv_rbf(double *d, Py_ssize_t n, double gamma)


def gather(const double[:, ::1] K, const Py_ssize_t[::1] rows, const Py_ssize_t[::1] columns):
    """K[rows, columns] as a matrix of its own."""
    cdef Py_ssize_t i, j, height = rows.shape[0], width = columns.shape[0]
    cdef const double* row
    out = np.empty((height, width))
    cdef double[:, ::1] part = out
    with nogil:
        for i in range(height):
            row = &K[rows[i], 0]
            for j in range(width):
                part[i, j] = row[columns[j]]
    return out


def gather_rbf(const double[:, ::1] D, const Py_ssize_t[::1] rows, const Py_ssize_t[::1] columns,
               double gamma):
    """exp(-gamma D[rows, columns]), of squared distances D; the twin is NumPy's."""
    cdef Py_ssize_t i, j, height = rows.shape[0], width = columns.shape[0]
    cdef const double* row
    out = np.empty((height, width))
    cdef double[:, ::1] part = out
    with nogil:
        for i in range(height):
            row = &D[rows[i], 0]
            for j in range(width):
                part[i, j] = row[columns[j]]
            exactcv_rbf(&part[i, 0], width, gamma)
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
