"""Rows in a temporary file: for what is read once, chunk by chunk, and needed in many passes."""

from __future__ import annotations

import os
import tempfile
import threading
import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...exceptions import FileError, InputTypeError
from ...types import FloatArray, IntArray
from .sources import checked_rows, even_bounds

__all__ = ["SpilledRows", "no_room"]

FolderPath = str | os.PathLike[str]


class SpilledRows:
    """n rows of p float64 numbers, in a file that goes when this does.

    The file is read, not mapped, so that it takes no address space and no memory beyond a chunk.

    Parameters
    ----------
    parts : iterable of ndarray of shape (any, p)
        All rows in order; what comes is written at once.
    chunk_rows : int
    folder : path, optional
        By default the system's folder for temporary files (``TMPDIR``).

    Examples
    --------
    >>> parts = (np.full((2, 3), float(k)) for k in range(2))
    >>> rows = SpilledRows(parts, chunk_rows=3)
    >>> rows.shape, rows.read(1), rows.take(np.array([3, 0]))[:, 0]
    ((4, 3), array([[1., 1., 1.]]), array([1., 0.]))
    """

    def __init__(
        self,
        parts: Iterable[FloatArray],
        chunk_rows: int,
        folder: FolderPath | None = None,
    ):
        self._file = tempfile.TemporaryFile(prefix="exactcv-", dir=folder)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._lock = threading.Lock()
        self.n, self.p = 0, 0
        try:
            for part in parts:
                self.n, self.p = self.n + len(part), part.shape[1]
                self._write(part, folder)
        except BaseException:
            self._file.close()
            raise
        self.bounds = even_bounds(self.n, chunk_rows)

    def _write(self, part: FloatArray, folder: FolderPath | None) -> None:
        try:
            self._file.write(np.ascontiguousarray(part, dtype=np.float64).tobytes())
            self._file.flush()
        except OSError as error:
            raise no_room(error, f"the first {self.n} prepared rows", folder) from error

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, self.p

    def _between(self, start: int, stop: int) -> FloatArray:
        row = 8 * self.p
        with self._lock:
            self._file.seek(start * row)
            data = self._file.read((stop - start) * row)
        if len(data) != (stop - start) * row:
            raise FileError("a temporary file with prepared rows was cut short; run it again")
        return np.frombuffer(data, dtype=np.float64).reshape(stop - start, self.p)

    def read(self, k: int) -> Any:
        start, stop = int(self.bounds[k]), int(self.bounds[k + 1])
        return checked_rows(self._between(start, stop), start)

    def take(self, rows: IntArray) -> Any:
        out = np.empty((len(rows), self.p))
        chunk = np.searchsorted(self.bounds, rows, side="right") - 1
        order = np.argsort(chunk, kind="stable")
        ends = np.flatnonzero(np.diff(chunk[order])) + 1
        for mine in np.split(order, ends):
            if len(mine):
                k = int(chunk[mine[0]])
                out[mine] = self.read(k)[rows[mine] - self.bounds[k]]
        return out

    def all(self) -> FloatArray:
        """All rows at once."""
        return self._between(0, self.n)

    def column(self, name: str) -> NDArray[Any]:
        raise InputTypeError(f"{name!r} names a column, which prepared rows have not")


def no_room(error: OSError, what: str, folder: FolderPath | None) -> FileError:
    """What to raise when a temporary file cannot be written."""
    where, named = tempfile.gettempdir(), "the environment variable TMPDIR"
    if folder is not None:
        where, named = os.fspath(folder), "method_options['folder']"
    return FileError(
        f"cannot write {what} to a temporary file in {where!r}: {error.strerror or error}; free "
        f"some space there, or name a folder with more of it in {named}"
    )
