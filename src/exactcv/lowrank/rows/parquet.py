"""Rows of Parquet files: one file, or all files of a folder, in the order of their names."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...exceptions import InputError, InputTypeError, MissingExtraError
from ...types import IntArray
from .sources import checked_rows

__all__ = ["ParquetRows", "index_columns"]

# Row groups that are kept after they were read: chunks are smaller, and come in order.
KEPT_GROUPS = 3


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet as pq
    except ImportError as missing:
        raise MissingExtraError(
            "Parquet files need pyarrow: pip install 'exactcv[parquet]'"
        ) from missing
    return pq


def index_columns(schema: Any) -> list[str]:
    """Columns that hold the index of the pandas frame that was written; they are no features.

    A plain range is kept as a description instead, and takes no column.
    """
    told = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in told if isinstance(name, str) and name in schema.names]


class ParquetRows:
    """Numeric columns as features, except for the index of a pandas frame.

    A chunk is part of a row group, so that groups may be as large as they like.

    Parameters
    ----------
    path : str
        A file, or a folder with files ``*.parquet`` (at any depth).
    others : list of str
        Columns that hold no features.
    chunk_rows : int
    features : list of str, optional
        The columns that hold features, to predict from; by default all but ``others``.
    least : int
        Rows that there must be.
    """

    def __init__(
        self,
        path: str,
        others: list[str],
        chunk_rows: int,
        features: list[str] | None = None,
        least: int = 2,
    ):
        self.path, self._pq = path, _pyarrow()
        self._files = [self._open(file) for file in _files(path)]
        names = self._files[0].schema_arrow.names
        for name in (*others, *(features or ())):
            if name not in names:
                raise InputError(f"{path} has no column {name!r}; it has {', '.join(names)}")
        index = index_columns(self._files[0].schema_arrow)
        no_features = {*others, *index}
        self._all_columns = features is None
        self.names = features or [name for name in names if name not in no_features]
        for file, opened in zip(_files(path), self._files, strict=True):
            self._check_schema(file, opened.schema_arrow, others)
        self._groups, bounds = [], [0]
        for k, file in enumerate(self._files):
            for group in range(file.metadata.num_row_groups):
                count = file.metadata.row_group(group).num_rows
                for start in range(0, count, chunk_rows):
                    self._groups.append((k, group, start, min(start + chunk_rows, count)))
                    bounds.append(bounds[-1] + self._groups[-1][3] - start)
        self.bounds = np.array(bounds, dtype=np.intp)
        self.n, self.p = int(bounds[-1]), len(self.names)
        if self.n < least:
            raise InputError(f"{path} has {self.n} rows; at least {least} are needed")
        if self.p == 0:
            raise InputError(f"{path} has no columns besides {', '.join(map(repr, others))}")
        self._lock = threading.Lock()
        self._cache: OrderedDict[tuple[int, int], Any] = OrderedDict()

    def _open(self, file: Path) -> Any:
        try:
            return self._pq.ParquetFile(file)
        except Exception as error:  # pyarrow has many kinds
            raise InputError(f"{file} cannot be read as Parquet: {error}") from error

    def _check_schema(self, file: Path, schema: Any, others: list[str]) -> None:
        import pyarrow.types as types

        first = self._files[0].schema_arrow
        for name in (*self.names, *others):
            if name not in schema.names:
                raise InputError(f"{file} has no column {name!r}, which the first file has")
        if self._all_columns:
            for name in schema.names:
                if name not in first.names and name not in index_columns(schema):
                    raise InputError(
                        f"{file} has a column {name!r}, which the first file has not; write both "
                        "alike"
                    )
        for name in others:
            kind, before = schema.field(name).type, first.field(name).type
            if _sort_of(kind) != _sort_of(before):
                raise InputError(
                    f"column {name!r} of {file} holds {kind}, that of the first file {before}; "
                    "write both alike"
                )
        for name in self.names:
            kind = schema.field(name).type
            if not (types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)):
                raise InputTypeError(
                    f"column {name!r} of {file} holds {kind}, not numbers; encode it, or if it is "
                    f"the label pass y={name!r}"
                )

    def read(self, k: int) -> Any:
        file, group, start, stop = self._groups[k]
        return checked_rows(self._rows(file, group)[start:stop], int(self.bounds[k]))

    def _rows(self, file: int, group: int) -> NDArray[np.float64]:
        key = (file, group)
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
                return np.asarray(self._cache[key])
            table = self._table(file, group, self.names)
            rows = np.empty((table.num_rows, len(self.names)))
            for j, name in enumerate(self.names):
                rows[:, j] = table.column(name).to_numpy()
            self._cache[key] = rows
            while len(self._cache) > KEPT_GROUPS:
                self._cache.popitem(last=False)
            return rows

    def _table(self, file: int, group: int, names: list[str]) -> Any:
        try:
            return self._files[file].read_row_group(group, columns=names)
        except Exception as error:
            raise InputError(
                f"row group {group} of file {file} of {self.path} cannot be read: {error}"
            ) from error

    def take(self, rows: IntArray) -> Any:
        out = np.empty((len(rows), self.p))
        chunk = np.searchsorted(self.bounds, rows, side="right") - 1
        for k in np.unique(chunk):
            mine = np.flatnonzero(chunk == k)
            out[mine] = self.read(int(k))[rows[mine] - self.bounds[k]]
        return out

    def column(self, name: str) -> NDArray[Any]:
        parts = []
        for k, file in enumerate(self._files):
            for group in range(file.metadata.num_row_groups):
                parts.append(self._table(k, group, [name]).column(name).to_numpy())
        return np.concatenate(parts)


def _sort_of(kind: Any) -> str:
    """Numbers of any width are alike, and so are texts."""
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_floating(kind) or types.is_integer(kind):
        return "numbers"
    return "text" if types.is_string(kind) or types.is_large_string(kind) else str(kind)


def _files(path: str) -> list[Path]:
    where = Path(path)
    if where.is_dir():
        found = sorted(where.rglob("*.parquet"))
        if not found:
            raise InputError(f"the folder {path} has no files named *.parquet")
        return found
    if not where.exists():
        raise InputError(f"there is no file or folder {path}")
    return [where]
