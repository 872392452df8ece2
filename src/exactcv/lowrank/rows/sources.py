"""Where rows come from: anything that can be read in chunks, in a fixed order.

NumPy arrays and memmaps, SciPy sparse matrices and pandas frames (here), Parquet files
(``parquet.py``) and Dask collections (``lowrank/passes/distributed.py``).
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...exceptions import InputError, InputTypeError
from ...types import IntArray

__all__ = ["ArrayRows", "RowSource", "checked_rows", "even_bounds"]


@runtime_checkable
class RowSource(Protocol):
    """n rows of p numbers; chunk k has the rows bounds[k] : bounds[k + 1]."""

    n: int
    p: int
    bounds: IntArray

    def read(self, k: int) -> Any:
        """Chunk k, checked: a float64 array or a CSR matrix, all finite."""
        ...

    def take(self, rows: IntArray) -> Any:
        """Some rows, in the given order."""
        ...

    def column(self, name: str) -> NDArray[Any]:
        """A column that is not a feature: labels or weights."""
        ...


def even_bounds(n: int, chunk_rows: int) -> IntArray:
    """Chunks of ``chunk_rows`` rows, the last one shorter."""
    return np.append(np.arange(0, n, chunk_rows), n).astype(np.intp)


class ArrayRows:
    """A NumPy array or memmap, or a SciPy sparse matrix.

    Examples
    --------
    >>> source = ArrayRows(np.arange(6.0).reshape(3, 2), chunk_rows=2)
    >>> source.bounds, source.read(1)
    (array([0, 2, 3]), array([[4., 5.]]))
    """

    def __init__(self, X: Any, chunk_rows: int):
        self.X = X.tocsr() if sparse.issparse(X) else X
        self.n, self.p = map(int, X.shape)
        self.bounds = even_bounds(self.n, chunk_rows)

    def read(self, k: int) -> Any:
        start, stop = self.bounds[k], self.bounds[k + 1]
        return checked_rows(self.X[start:stop], int(start))

    def take(self, rows: IntArray) -> Any:
        return checked_rows(self.X[rows], rows)

    def column(self, name: str) -> NDArray[Any]:
        raise InputTypeError(
            f"{name!r} names a column, but X is an array: pass the values themselves (names are "
            "for Parquet files and Dask dataframes)"
        )


def checked_rows(X: Any, rows: int | IntArray) -> Any:
    """Float64 and finite, or an error that names the row.

    ``rows`` are the row numbers, or that of the first row.
    """
    if np.iscomplexobj(X):
        raise InputError("X holds complex numbers; features are real: give both parts as columns")
    if sparse.issparse(X):
        X = X.tocsr().astype(np.float64)
        if not np.isfinite(X.data).all():
            where = _row_number(rows, int(np.argmax(~np.isfinite(X.data))), X.indptr)
            raise InputError(f"X is not finite (NaN or infinity) in row {where}")
        return X
    try:
        X = np.ascontiguousarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        first = _row_number(rows, 0)
        raise InputTypeError(
            f"X does not hold numbers in row {first} or soon after: {error}"
        ) from error
    if not np.isfinite(X).all():
        where = _row_number(rows, int(np.argmin(np.isfinite(X).all(axis=1))))
        raise InputError(
            f"X is not finite (NaN or infinity) in row {where}; drop or fill such rows"
        )
    return X


def _row_number(rows: int | IntArray, k: int, starts: IntArray | None = None) -> int:
    """The number of the k-th row at hand, or of the row of entry k if rows start at ``starts``."""
    if starts is not None:
        k = int(np.searchsorted(starts, k, side="right")) - 1
    return int(rows + k) if isinstance(rows, int) else int(rows[k])
