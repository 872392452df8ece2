"""Memory that was freed and stays at hand while tasks run on a worker.

Dask starts its workers with ``MALLOC_TRIM_THRESHOLD_=65536``, so that the system soon has back what
was freed.  Then every array of more than 128 kB is a mapping of its own, whose pages are paid for
anew each time: small problems take twice the time.  While our tasks run, and for a moment after the
last of them, up to 64 MB a thread are kept; then the setting is what it was, and all of it is given
back.
"""

from __future__ import annotations

import ctypes
import os
import sys
from threading import Lock, Thread
from time import monotonic, sleep
from types import TracebackType
from typing import Any

__all__ = ["KeptPages"]

SETTING = "MALLOC_TRIM_THRESHOLD_"
# The options of mallopt(3).
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
# Bytes that stay, and up to which an array has no mapping of its own (the most there is, and what
# it is without us).
KEPT, LARGEST, USUAL = 1 << 26, 1 << 25, 1 << 17
# Seconds without a task after which nothing is kept.
PATIENCE = 2.0


class KeptPages:
    """A context in which freed memory is kept; nothing where the user's system does so anyway.

    Examples
    --------
    >>> with KeptPages():
    ...     numbers = list(range(3))
    """

    def __enter__(self) -> None:
        _PAGES.begin()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _PAGES.end()


class _Pages:
    """Contexts of all threads, which hold one setting together."""

    def __init__(self) -> None:
        self._lock, self._held, self._last = Lock(), 0, 0.0
        self.kept = False

    def begin(self) -> None:
        with self._lock:
            self._held += 1
            if not self.kept and _trims():
                self._set(KEPT, LARGEST)
                self.kept = True
                Thread(target=self._watch, daemon=True).start()

    def end(self) -> None:
        with self._lock:
            self._held -= 1
            self._last = monotonic()

    def _watch(self) -> None:
        """Until no task has come for a while."""
        while True:
            sleep(PATIENCE / 4)
            with self._lock:
                if not self._held and monotonic() - self._last >= PATIENCE:
                    self._set(int(os.environ[SETTING]), USUAL)
                    _library().malloc_trim(0)
                    self.kept = False
                    return  # the next task has a watch of its own

    @staticmethod
    def _set(trim: int, mapped: int) -> None:
        library = _library()
        library.mallopt(_TRIM_THRESHOLD, trim)
        library.mallopt(_MMAP_THRESHOLD, mapped)


def _trims() -> bool:
    """Is this a process of the GNU C library that was told to keep less?"""
    told = os.environ.get(SETTING, "")
    if not (sys.platform == "linux" and told.isdecimal() and int(told) < KEPT):
        return False
    library = _library()
    return all(hasattr(library, name) for name in ("gnu_get_libc_version", "mallopt"))


def _library() -> Any:
    return ctypes.CDLL(None)


_PAGES = _Pages()
