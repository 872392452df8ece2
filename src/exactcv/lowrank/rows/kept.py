"""Some of the rows of a source, as if the others had never been there."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...types import IntArray
from ..passes.distributed import DaskRows, row_block
from .sources import ArrayRows, RowSource

__all__ = ["KeptRows", "keep_rows"]


def keep_rows(source: RowSource, keep: IntArray) -> RowSource:
    """The rows with the numbers ``keep``, which rise; they stay where they are.

    Examples
    --------
    >>> source = ArrayRows(np.arange(8.0).reshape(4, 2), chunk_rows=2)
    >>> keep_rows(source, np.array([0, 3])).take(np.array([1]))
    array([[6., 7.]])
    """
    if isinstance(source, ArrayRows):
        return ArrayRows(source.X[keep], int(np.diff(source.bounds).max()))
    if not isinstance(source, DaskRows):
        return KeptRows(source, keep)
    from dask.delayed import delayed

    places = _by_chunk(source.bounds, keep)
    parts = [delayed(_part)(part, mine) for part, mine in zip(source.parts, places, strict=True)]
    return DaskRows(parts, [len(mine) for mine in places], source.names, source.p)


def _by_chunk(bounds: IntArray, keep: IntArray) -> list[IntArray]:
    """The places of the kept rows in each chunk."""
    shares = np.split(keep, np.searchsorted(keep, bounds[1:-1]))
    return [share - start for share, start in zip(shares, bounds[:-1], strict=True)]


def _part(block: Any, rows: IntArray) -> Any:
    return block.iloc[rows] if hasattr(block, "iloc") else row_block(block)[rows]


class KeptRows:
    """Rows of a source that is read in this process; chunks that lose all rows are gone."""

    def __init__(self, source: RowSource, keep: IntArray):
        self._source, self._keep = source, keep
        places = _by_chunk(source.bounds, keep)
        self._chunks = [(k, mine) for k, mine in enumerate(places) if len(mine)]
        sizes = [len(mine) for _, mine in self._chunks]
        self.bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        self.n, self.p = len(keep), source.p
        self.names: list[str] | None = getattr(source, "names", None)

    def read(self, k: int) -> Any:
        chunk, mine = self._chunks[k]
        return self._source.read(chunk)[mine]

    def take(self, rows: IntArray) -> Any:
        return self._source.take(self._keep[rows])

    def column(self, name: str) -> NDArray[Any]:
        return self._source.column(name)[self._keep]
