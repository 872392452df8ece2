"""Memory that threads have together: what would take too much of it waits for the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .threads import Cancelled

__all__ = ["Space"]

# Seconds between two looks at whether the run was stopped.
LOOK = 0.2


class Space:
    """So many bytes, for the large temporary arrays of all threads.

    A copy that is sent to another process has as many there.

    Examples
    --------
    >>> space = Space(100)
    >>> with space.taken(60, np.zeros(1, np.int32)):
    ...     space.left
    40
    """

    def __init__(self, size: int):
        self.size = self.left = size
        self._changed = Condition()

    def __reduce__(self) -> Any:
        return Space, (self.size,)

    @contextmanager
    def taken(self, size: int, cancel: NDArray[np.int32]) -> Iterator[None]:
        """Wait until there are so many bytes, or all of them if there are no more, and hold them.

        A thread must not ask for more while it holds some.
        """
        size = min(size, self.size)
        with self._changed:
            while self.left < size:
                if cancel[0]:
                    raise Cancelled
                self._changed.wait(LOOK)
            self.left -= size
        try:
            yield
        finally:
            with self._changed:
                self.left += size
                self._changed.notify_all()
