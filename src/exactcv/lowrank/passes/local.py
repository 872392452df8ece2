"""Runs a function on every chunk of features, in this process.

Features are computed once and kept in memory, or on disk, or computed anew in every pass.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...problem.folds import rises
from ...runtime.memory import readable
from ...runtime.threads import Workers
from ...types import FloatArray, IntArray
from ..features import FeatureMap, features_of
from ..rows.made import MadeRows
from ..rows.sources import RowSource
from ..rows.spilled import no_room
from .sweep import Chunk, Features, Work

__all__ = ["STORES", "LocalRunner", "scratch_array"]

Result = TypeVar("Result")
FolderPath = str | os.PathLike[str]
STORES = ("memory", "spill", "recompute")


def scratch_array(
    shape: tuple[int, ...], dtype: Any, on_disk: bool, folder: FolderPath | None
) -> Any:
    """An array in memory, or in a file that goes when the array does."""
    if not on_disk:
        return np.zeros(shape, dtype=dtype)
    with tempfile.NamedTemporaryFile(prefix="exactcv-", dir=folder) as file:
        size = math.prod(shape) * np.dtype(dtype).itemsize
        try:
            _reserve(file.fileno(), size)
        except OSError as error:
            raise no_room(error, f"{readable(size)} of features or results", folder) from error
        # The mapping keeps the unnamed file alive.
        return np.memmap(file, dtype=dtype, mode="r+", shape=shape)


def _reserve(handle: int, size: int) -> None:
    """Take the space at once: a disk that is full when a page is written would kill the process."""
    if size and hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, size)
        return
    os.truncate(handle, size)


@dataclass(frozen=True)
class _Kept:
    """Features in one array of this process (`sweep.Features`)."""

    Z: NDArray[np.floating]

    def take(self, rows: IntArray) -> FloatArray:
        every = len(rows) == len(self.Z) and rises(rows)
        return np.asarray(self.Z if every else self.Z[rows], dtype=np.float64)


class LocalRunner:
    """Chunks of one source, on the threads of ``workers``.

    Parameters
    ----------
    source : RowSource
    y, weight : ndarray of shape (n,)
    feature_map : FeatureMap
    workers : Workers
    store : {"memory", "spill", "recompute"}
    dtype : numpy dtype of the features
    folder : where to spill

    Attributes
    ----------
    at_hand : Features or None
        All features, if they are in memory.
    """

    def __init__(
        self,
        source: RowSource,
        y: FloatArray,
        weight: FloatArray,
        feature_map: FeatureMap,
        workers: Workers,
        store: str,
        dtype: Any,
        folder: FolderPath | None = None,
    ):
        self.source, self.y, self.weight = source, y, weight
        self.feature_map, self.workers, self.dtype = feature_map, workers, np.dtype(dtype)
        self.n, self.bounds = int(np.count_nonzero(weight > 0)), source.bounds
        self._kept: Any = None
        if store != "recompute":
            shape = (source.n, feature_map.n_components)
            kept = scratch_array(shape, self.dtype, store == "spill", folder)
            workers.map(lambda k: self._fill(kept, k), range(len(self.bounds) - 1))
            self._kept = kept
        self.at_hand: Features | None = None
        if store == "memory":
            self.at_hand = _Kept(self._kept)
        elif isinstance(source, MadeRows) and source.in_memory:
            self.at_hand = source

    def _fill(self, kept: NDArray[np.floating], k: int) -> None:
        out = kept[self.bounds[k] : self.bounds[k + 1]]
        features_of(self.feature_map, self.source.read(k), self.dtype, out)

    def _features(self, k: int) -> NDArray[np.floating]:
        return features_of(self.feature_map, self.source.read(k), self.dtype)

    def chunk(self, k: int) -> Chunk:
        rows = slice(self.bounds[k], self.bounds[k + 1])
        kept = self._features(k) if self._kept is None else self._kept[rows]
        Z: FloatArray = np.asarray(kept, dtype=np.float64)
        # They may be labels of a byte, and one weight for all.
        y = np.asarray(self.y[rows], dtype=np.float64)
        weight = np.ascontiguousarray(self.weight[rows])
        return Chunk(int(self.bounds[k]), Z, y, weight, self.at_hand)

    def all_features(self) -> FloatArray:
        """Those of all rows at once; where they are kept so, not a copy."""
        if self._kept is not None and type(self._kept) is np.ndarray:
            return np.asarray(self._kept, dtype=np.float64)
        Z = np.empty((int(self.bounds[-1]), self.feature_map.n_components))
        for k in range(len(self.bounds) - 1):
            Z[self.bounds[k] : self.bounds[k + 1]] = self.chunk(k).Z
        return Z

    def map(self, work: Callable[[Chunk], Result]) -> list[Result]:
        return self.workers.map(lambda k: work(self.chunk(k)), range(len(self.bounds) - 1))

    def each(self, work: Callable[[Chunk], Result], use: Callable[[Chunk, Result], None]) -> None:
        """Run ``work`` on every chunk and hand each result on, in order, without keeping any."""
        step = self.workers.n_threads
        for start in range(0, len(self.bounds) - 1, step):
            some = range(start, min(start + step, len(self.bounds) - 1))
            chunks = self.workers.map(self.chunk, some)
            for chunk, result in zip(chunks, self.workers.map(work, chunks), strict=True):
                use(chunk, result)

    def joined(self, work: Work) -> Any:
        """The results of all chunks together."""
        results = self.map(work)
        return results[0] if len(results) == 1 else work.join(results)

    def added(self, work: Work) -> Any:
        """The same of results that are sums: chunk after chunk, without keeping all of them."""
        sums: list[Any] = []

        def use(chunk: Chunk, result: Any) -> None:
            sums[:] = [work.join([*sums, result])]

        self.each(work, use)
        return sums[0]

    def small(
        self,
        work: Callable[..., Result],
        shared: Sequence[Any],
        items: Sequence[tuple[Any, ...]],
        seen: Callable[[Result], Result] | None = None,
    ) -> list[tuple[Result, Any]]:
        """``work(*shared, *item)`` of each item, on the threads."""
        results = self.workers.map(lambda item: work(*shared, *item), items)
        return [(result, result) for result in results]
