"""The same passes on a Dask cluster, and the small problems that come of them.

Sums over chunks and the rows near margins stay on the workers, where the small problems are solved,
one a task; the client sees what they come to, and says what is next.

Every task is a pure function of a chunk and of the guesses, so a task that is lost with its worker
is simply run again, with the same result; nothing is ever sent to a worker that the scheduler
could not send again.  Results are merged in the order of the rows, wherever they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ...exceptions import InputError, InputTypeError
from ...runtime.pages import KeptPages
from ...runtime.threads import SingleThreadedBlas
from ...types import FloatArray, IntArray
from ..features import FeatureMap, features_of
from ..rows.sources import ArrayRows, RowSource, checked_rows
from .cluster import (
    active_client,
    awaited,
    cluster_error,
    compute_all,
    import_dask,
    n_workers,
    submitted,
    turn,
    worker_places,
)
from .luggage import packed, size_of, unpacked
from .sweep import Chunk, Work

__all__ = ["DaskRows", "DaskRunner", "active_client", "as_local", "row_block"]

Result = TypeVar("Result")

# Rows of a NumPy array are sent to the workers in pieces of about so many bytes.
PIECE = 1 << 22
# Results that are put together on a worker before they travel on.
JOINED = 8


def as_local(values: Any) -> Any:
    """Labels or weights that are a Dask collection, as an array; anything else as it is."""
    if hasattr(values, "dask") and hasattr(values, "compute"):
        return np.asarray(compute_all([values])[0])
    return values


# --- rows ----------------------------------------------------------------------------------------


class DaskRows:
    """A Dask array or dataframe; its partitions are the chunks.

    ``parts`` are delayed blocks of rows.
    """

    def __init__(self, parts: list[Any], sizes: Any, names: list[str] | None, p: int):
        # Empty partitions are common in dataframes; they would be empty chunks.
        kept = [k for k, size in enumerate(sizes) if size]
        self.parts = [parts[k] for k in kept]
        self.bounds = np.concatenate([[0], np.cumsum([sizes[k] for k in kept])]).astype(np.intp)
        self.n, self.p, self.names = int(self.bounds[-1]), p, names
        self._all = parts
        if self.n < 2 or p < 1:
            raise InputError(
                f"X has {self.n} rows and {p} features; it needs two rows and one feature"
            )

    @classmethod
    def open(cls, X: Any, others: list[str]) -> DaskRows:
        dask = import_dask()
        if hasattr(X, "npartitions") and hasattr(X, "columns"):
            names = [str(name) for name in X.columns]
            for name in others:
                if name not in names:
                    raise InputError(f"X has no column {name!r}; it has {', '.join(names)}")
            parts = X.to_delayed()
            sizes = compute_all([dask.delayed(len)(part) for part in parts])
            features = [name for name in names if name not in others]
            return cls(list(parts), sizes, features, len(features))
        if getattr(X, "ndim", 0) != 2:
            raise InputError(
                f"X is a Dask {type(X).__name__} with {getattr(X, 'ndim', '?')} dimension(s); it "
                "must have two: rows and features"
            )
        if others:
            raise InputTypeError(f"{others[0]!r} names a column, but X is a Dask array")
        if np.isnan(np.array(X.chunks[0], dtype=float)).any() or np.isnan(X.shape[1]):
            raise InputError(
                "X is a Dask array with chunks of unknown size; call X.compute_chunk_sizes() first"
            )
        whole_rows = X.rechunk({1: -1})
        blocks = whole_rows.to_delayed()[:, 0]
        return cls(list(blocks), whole_rows.chunks[0], None, int(X.shape[1]))

    def read(self, k: int) -> Any:
        (block,) = compute_all([self.parts[k]])
        return _rows_of(block, self.names, int(self.bounds[k]))

    def take(self, rows: IntArray) -> Any:
        some = import_dask().delayed(_some_rows)
        chunk = np.searchsorted(self.bounds, rows, side="right") - 1
        used = np.unique(chunk)
        places = [np.flatnonzero(chunk == k) for k in used]
        found = compute_all(
            [
                some(self.parts[k], self.names, rows[mine] - start, int(start))
                for k, start, mine in zip(used, self.bounds[used], places, strict=True)
            ]
        )
        some_sparse = any(map(sparse.issparse, found))
        together = sparse.vstack(found, "csr") if some_sparse else np.vstack(found)
        return together[np.argsort(np.concatenate(places))]

    def column(self, name: str) -> NDArray[Any]:
        one = import_dask().delayed(_column)
        return np.concatenate(compute_all([one(part, name) for part in self._all]))


def row_block(block: Any) -> Any:
    """A block of an array so that rows can be taken from it; of sparse kinds, CSR alone can."""
    return sparse.csr_matrix(block.tocsr()) if hasattr(block, "tocsr") else block


def _rows_of(block: Any, names: list[str] | None, start: int) -> Any:
    return checked_rows(row_block(block) if names is None else block[names].to_numpy(), start)


def _some_rows(block: Any, names: list[str] | None, rows: IntArray, start: int) -> Any:
    some = row_block(block)[rows] if names is None else block[names].iloc[rows].to_numpy()
    return checked_rows(some, rows + start)


def _column(block: Any, name: str) -> NDArray[Any]:
    return np.asarray(block[name])


def _same(block: Any) -> Any:
    return block


# --- passes --------------------------------------------------------------------------------------


def _apply(
    block: Any,
    start: int,
    y: NDArray[Any],
    weight: FloatArray | None,
    make: Callable[[Any, int], NDArray[np.floating]] | None,
    work: Work,
    chunk_rows: int,
    packs: bool,
) -> Any:
    """One partition, in chunks that do not take too much room; ``packs``: for the journey."""
    results, block = [], row_block(block)
    with SingleThreadedBlas(), KeptPages():
        for first in range(0, len(y), chunk_rows):
            part = slice(first, first + chunk_rows)
            rows = _part_of(block, part)
            made = rows if make is None else make(rows, start + first)
            Z: FloatArray = np.asarray(made, dtype=np.float64)
            targets = y[part].astype(float)
            weights = np.ones(len(targets)) if weight is None else weight[part]
            results.append(work(Chunk(start + first, Z, targets, weights)))
    joined = _join(work, *results)
    return packed(joined) if packs else joined


def _join(work: Work, *results: Any) -> Any:
    return results[0] if len(results) == 1 else work.join(list(results))


class _Make:
    """Rows into features, as something that can be sent to a worker once."""

    def __init__(self, names: list[str] | None, fmap: FeatureMap, dtype: str, chunk_rows: int):
        self.names, self.fmap, self.dtype = names, fmap, dtype
        self.chunk_rows = chunk_rows

    def __call__(
        self, block: Any, start: int, out: NDArray[np.floating] | None = None
    ) -> NDArray[np.floating]:
        return features_of(self.fmap, _rows_of(block, self.names, start), self.dtype, out)

    def in_chunks(self, block: Any, start: int) -> NDArray[np.floating]:
        """The same, of a block whose kernel values would take much room at once."""
        block = row_block(block)
        n = block.shape[0]
        made = np.empty((n, self.fmap.n_components), dtype=self.dtype)
        for first in range(0, n, self.chunk_rows):
            part = slice(first, first + self.chunk_rows)
            self(_part_of(block, part), start + first, made[part])
        return made


def _part_of(block: Any, part: slice) -> Any:
    return block.iloc[part] if hasattr(block, "iloc") else block[part]


class DaskRunner:
    """Runs passes with Dask: on the cluster of ``client``, or else on Dask's own threads.

    Attributes
    ----------
    bytes_sent, bytes_received : int
        Of guesses and open rows to the workers, and of results from them (rows and features
        of the data excepted).
    """

    def __init__(
        self,
        source: RowSource,
        y: FloatArray,
        weight: FloatArray,
        feature_map: FeatureMap,
        store: str,
        dtype: str,
        chunk_rows: int,
        client: Any,
    ):
        self._dask, self.client = import_dask(), client
        self.n = int(np.count_nonzero(weight > 0))
        self.chunk_rows, self.bytes_sent, self.bytes_received = chunk_rows, 0, 0
        names = getattr(source, "names", None)
        made = _Make(names, feature_map, dtype, chunk_rows)
        make = self._dask.delayed(made, traverse=False)
        blocks, bounds = self._blocks(source)
        if store == "memory":
            blocks = [
                self._dask.delayed(_call)(make, block, int(start))
                for block, start in zip(blocks, bounds[:-1], strict=True)
            ]
            blocks = list(client.persist(blocks) if client else self._dask.persist(*blocks))
            make = None
        plain = bool((weight == 1.0).all())
        kind = np.int8 if (np.abs(y) == 1.0).all() else np.float64  # labels travel light
        self._arguments = [
            (
                block,
                int(bounds[k]),
                y[bounds[k] : bounds[k + 1]].astype(kind),
                None if plain else weight[bounds[k] : bounds[k + 1]],
                make,
            )
            for k, block in enumerate(blocks)
        ]

    def _blocks(self, source: RowSource) -> tuple[list[Any], IntArray]:
        if isinstance(source, DaskRows):
            return list(source.parts), source.bounds
        assert isinstance(source, ArrayRows)
        size = max(1, PIECE // (8 * source.p))
        bounds = np.append(np.arange(0, source.n, size), source.n).astype(np.intp)
        # One task for each piece: the scheduler keeps it, so a lost piece can be sent again.
        pieces = [
            self.client.submit(_same, source.X[start:stop], pure=False)
            for start, stop in pairwise(bounds)
        ]
        return pieces, bounds

    def _shared(self, work: Any) -> Any:
        self.bytes_sent += size_of(work) * n_workers(self.client)
        return self._dask.delayed(work, traverse=False)

    def _tasks(self, shared: Any, packs: bool) -> list[Any]:
        run = self._dask.delayed(_apply)
        return [run(*some, shared, self.chunk_rows, packs) for some in self._arguments]

    def map(self, work: Callable[[Chunk], Result]) -> list[Result]:
        """Results of neighbouring partitions, put together on the workers.

        Which ones follows from their number alone, so that sums are always added in one order.
        """
        return list(self._results(self._together(work, JOINED)))

    def _together(self, work: Any, most: int) -> list[Any]:
        """Tasks that put neighbours together until there are at most so many."""
        shared = self._shared(work)
        tasks, join = self._tasks(shared, False), self._dask.delayed(_join)
        while len(tasks) > most:
            groups = [tasks[k : k + JOINED] for k in range(0, len(tasks), JOINED)]
            tasks = [join(shared, *group) for group in groups]
        return tasks

    def joined(self, work: Work) -> Any:
        """The results of all partitions together: on a cluster they stay there."""
        (task,) = self._together(work, 1)
        if self.client is None:
            (result,) = self._results([task])
            return result
        return self._compute([task])[0]

    def added(self, work: Work) -> Any:
        """The results of all partitions together, here."""
        return _join(work, *self.map(work))

    def small(
        self,
        work: Callable[..., Result],
        shared: Sequence[Any],
        items: Sequence[tuple[Any, ...]],
        seen: Callable[[Result], Result] | None = None,
    ) -> list[tuple[Result, Any]]:
        """``work(*shared, *item)`` of each item, a task each; the result stays there as well.

        Left to itself the scheduler puts all of them where the rows are, on one worker: each gets
        a worker by turns, first to last and back again, since the longest come first.  Any other
        may take it, as when that one is gone.
        """
        if self.client is None:
            results = compute_all([self._dask.delayed(_alone)(work, *shared, *x) for x in items])
            return [(result, result) for result in results]
        places = worker_places(self.client)
        common = [self._held(one) for one in (work, *shared)]
        futures = []
        for k, item in enumerate(items):
            self.bytes_sent += sum(size_of(part) for part in item if not _is_kept(part))
            futures.append(
                submitted(
                    self.client,
                    _alone,
                    *common,
                    *item,
                    workers=turn(places, k),
                    allow_other_workers=True,
                    pure=False,
                    priority=1,
                )
            )
        shown = list(futures)
        if seen is not None:
            shown = [submitted(self.client, seen, one, pure=False, priority=2) for one in futures]
        return list(zip(self._awaited(shown), futures, strict=True))

    def _held(self, value: Any) -> Any:
        """A value as one task, which any worker can have from the scheduler or from another."""
        if _is_kept(value):
            return value
        self.bytes_sent += size_of(value) * n_workers(self.client)
        return submitted(self.client, _same, value, pure=False, priority=1)

    def each(self, work: Callable[[Chunk], Result], use: Callable[[Chunk, Result], None]) -> None:
        nothing = np.zeros((0, 0))
        results = self._results(self._tasks(self._shared(work), True))
        for (_, start, y, weight, _), result in zip(self._arguments, results, strict=True):
            weights = np.ones(len(y)) if weight is None else weight
            use(Chunk(start, nothing, y.astype(float), weights), unpacked(result))

    def _results(self, tasks: list[Any]) -> Iterator[Any]:
        """Results in order, as they are asked for."""
        if self.client is None:
            step = 8
            for start in range(0, len(tasks), step):
                for result in compute_all(tasks[start : start + step]):
                    self.bytes_received += size_of(result)
                    yield result
            return
        yield from self._awaited(self._compute(tasks))

    def _compute(self, tasks: list[Any]) -> list[Any]:
        try:
            return list(self.client.compute(tasks))
        except Exception as error:
            raise cluster_error(error) from error

    def _awaited(self, futures: list[Any]) -> Iterator[Any]:
        for k, future in enumerate(futures):
            result = awaited(self.client, future)
            futures[k] = None  # lets the worker forget it
            self.bytes_received += size_of(result)
            yield result


def _call(make: _Make, block: Any, start: int) -> Any:
    with SingleThreadedBlas(), KeptPages():
        return make.in_chunks(block, start)


def _alone(work: Callable[..., Any], *arguments: Any) -> Any:
    with SingleThreadedBlas(), KeptPages():
        return work(*arguments)


def _is_kept(value: Any) -> bool:
    """Is it on the cluster already?"""
    return hasattr(value, "key") and hasattr(value, "client")
