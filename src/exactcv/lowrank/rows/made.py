"""Features that are there already, as a source of rows: for several problems on some of them."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from ...exceptions import InputTypeError
from ...types import FloatArray, IntArray

__all__ = ["MadeRows"]


class MadeRows:
    """Some rows of an array of features, as a source; chunks are views of it.

    Parameters
    ----------
    Z : ndarray of shape (all rows, m)
    rows : ndarray of int
        Row numbers, which rise; those that follow each other are read together.
    chunk_rows : int

    Examples
    --------
    >>> made = MadeRows(np.arange(8.0).reshape(8, 1), np.array([1, 2, 3, 6]), chunk_rows=2)
    >>> made.bounds, made.read(2).ravel(), made.take(np.array([3, 0])).ravel()
    (array([0, 2, 3, 4]), array([6.]), array([6., 1.]))
    """

    def __init__(self, Z: FloatArray, rows: IntArray, chunk_rows: int):
        self._Z, self._rows = Z, rows
        self.in_memory = not isinstance(Z, np.memmap)
        self.n, self.p = len(rows), Z.shape[1]
        blocks = np.flatnonzero(np.diff(rows, prepend=-2) != 1)
        ends = np.append(blocks[1:], self.n)
        starts = [np.arange(a, b, chunk_rows) for a, b in zip(blocks, ends, strict=True)]
        self.bounds = np.concatenate([*starts, [self.n]]).astype(np.intp)

    def read(self, k: int) -> FloatArray:
        first, last = self._rows[self.bounds[k]], self._rows[self.bounds[k + 1] - 1]
        return self._Z[first : last + 1]

    def take(self, rows: IntArray) -> FloatArray:
        return np.asarray(self._Z[self._rows[rows]], dtype=np.float64)

    def column(self, name: str) -> NoReturn:
        raise InputTypeError(f"features have no column {name!r}")
