"""Inverses of kernel matrices, plain and bordered by ones."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from ..types import FloatArray

__all__ = ["bordered", "bordered_inverse", "positive_inverse", "scale_of"]

# Rows mirrored at a time.
STRIP = 256


def scale_of(K_MM: FloatArray) -> float:
    """The size of the entries; 1 where every row is the origin of a linear kernel."""
    return float(K_MM.diagonal().max()) or 1.0


def positive_inverse(K: FloatArray, least: float = 0.0) -> FloatArray | None:
    """The inverse by a Cholesky factor; None if one of its pivots is not larger than ``least``.

    Examples
    --------
    >>> positive_inverse(np.array([[2.0, 0.0], [0.0, 4.0]]))
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    >>> positive_inverse(np.ones((2, 2)), least=1e-9) is None
    True
    """
    factor, info = lapack.dpotrf(K.T, lower=1, clean=False)
    if info != 0 or not (factor.diagonal() ** 2 > least).all():
        return None
    inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=True)
    # Its lower triangle is there, column by column: the upper one of the transpose, row by row.
    inverse = inverse.T
    for start in range(0, len(K), STRIP):
        rows = slice(start, start + STRIP)
        square = inverse[rows, rows]
        square[:] = np.triu(square) + np.triu(square, 1).T
        inverse[start + STRIP :, rows] = inverse[rows, start + STRIP :].T
    return np.asarray(inverse)


def bordered_inverse(K_MM: FloatArray, intercept: bool) -> FloatArray:
    """The inverse of [K_MM 1; 1' 0], or of K_MM without an intercept.

    A constant is added to K_MM first, which only shifts the intercept: K_MM alone may be singular.
    """
    if len(K_MM) == 0:
        return np.zeros((0, 0))
    constant = scale_of(K_MM) if intercept else 0.0
    G = K_MM + constant
    inverse = positive_inverse(G)
    if inverse is None:
        inverse = np.linalg.inv(G)
        inverse = 0.5 * (inverse + inverse.T)
    return bordered(inverse, constant) if intercept else inverse


def bordered(inverse: FloatArray, constant: float) -> FloatArray:
    """From the inverse of K_MM + constant to that of [K_MM 1; 1' 0]."""
    size = len(inverse)
    ones = inverse.sum(axis=1)
    total = ones.sum()
    P = np.empty((size + 1, size + 1))
    np.multiply(ones[:, None], -ones / total, out=P[:size, :size])
    P[:size, :size] += inverse
    P[:size, size] = P[size, :size] = ones / total
    P[size, size] = constant - 1.0 / total
    if size == 1:
        P[0, 0] = 0.0  # exactly: one coefficient alone cannot move
    return P
