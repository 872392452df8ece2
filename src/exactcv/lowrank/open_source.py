"""From what the user gives to a source of rows.

Readers of files and Dask are imported when there is something for them: both take long.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..exceptions import InputError
from .rows.sources import ArrayRows, RowSource

__all__ = ["open_source"]


def open_source(X: Any, others: list[str], chunk_rows: int) -> RowSource:
    """The source for whatever X is; ``others`` are columns that hold no features."""
    if isinstance(X, (str, os.PathLike)):
        from .rows.parquet import ParquetRows

        return ParquetRows(os.fspath(X), others, chunk_rows)
    if type(X).__module__.partition(".")[0] in ("dask", "dask_expr"):
        from .passes.distributed import DaskRows

        return DaskRows.open(X, others)
    if isinstance(X, RowSource):
        return X
    if sparse.issparse(X):
        return ArrayRows(X, chunk_rows)
    array: NDArray[Any] = np.asanyarray(X)
    if array.ndim != 2:
        raise InputError(
            f"X has {array.ndim} dimension(s), shape {array.shape}; it must have two: rows and "
            "features"
        )
    if array.shape[0] < 2 or array.shape[1] < 1:
        raise InputError(f"X has shape {array.shape}; it needs two rows and one feature at least")
    return ArrayRows(array, chunk_rows)
