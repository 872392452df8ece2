"""A file that one process at a time holds; the system lets go of it when the process dies."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import IO

__all__ = ["Lock"]


class Lock:
    """Hold a file as long as the object is held.

    Raises ``BlockingIOError`` if another process has it.  On a file system without locks there is
    none, and everybody gets it.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / ".lock"
    >>> lock = Lock(path)
    >>> path.exists()
    True
    >>> lock.release()
    >>> path.exists()
    False
    """

    def __init__(self, path: Path):
        self.path = path
        self._file: IO[str] | None = open(path, "a")  # noqa: SIM115  (until it is released)
        try:
            _take(self._file)
        except BlockingIOError:
            self._file.close()
            raise
        except OSError:
            pass  # no locks here

    def release(self) -> None:
        """Let go, and remove the file; a second time does nothing."""
        if self._file is None:
            return
        file, self._file = self._file, None
        if sys.platform == "win32":  # an open file cannot be removed there
            file.close()
        with contextlib.suppress(OSError):
            os.unlink(self.path)
        file.close()


if sys.platform == "win32":
    import msvcrt

    def _take(file: IO[str]) -> None:
        file.seek(0)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except PermissionError as error:  # what Windows calls it
            raise BlockingIOError(*error.args) from error

else:
    import fcntl

    def _take(file: IO[str]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
