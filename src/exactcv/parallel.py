"""Threads that stop when the user asks.

All work runs in worker threads, even with one of them, so that the main thread is free to see
Ctrl-C.  Long compiled loops look at ``workers.cancel`` (one int32, set to 1 to stop) now and then;
between blocks of work the workers look themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from functools import cache
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

__all__ = ["Cancelled", "Workers"]

Item = TypeVar("Item")


@cache
def _blas() -> ThreadpoolController:
    """The libraries in use; NumPy and SciPy have loaded them by now, and looking takes a while."""
    return ThreadpoolController()


class Cancelled(Exception):
    """Raised inside a worker when the user has interrupted the run."""


class Workers:
    """A pool of threads with a shared cancel flag; BLAS runs on one thread inside.

    What a block of work computes must not depend on the thread that runs it: the results are then
    the same, bit for bit, for any number of threads.
    """

    def __init__(self, n_threads: int):
        self.n_threads = n_threads
        self.cancel = np.zeros(1, dtype=np.int32)

    def __enter__(self) -> Self:
        self._limits = _blas().limit(limits=1, user_api="blas")
        self._pool = ThreadPoolExecutor(self.n_threads, thread_name_prefix="exactcv")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cancel[0] = 1
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._limits.restore_original_limits()

    def map(self, work: Callable[[Item], Any], items: Iterable[Item]) -> list[Any]:
        """Run ``work`` on every item; results in order; the first error stops the rest."""

        def guarded(item: Item) -> Any:
            if self.cancel[0]:
                raise Cancelled
            return work(item)

        futures = [self._pool.submit(guarded, item) for item in items]
        pending: set[Future[Any]] = set(futures)
        try:
            while pending:
                # The short wait lets Ctrl-C through.
                done, pending = wait(pending, timeout=0.2, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
        except BaseException:
            self.cancel[0] = 1
            raise
        return [future.result() for future in futures]

    def run(self, work: Callable[[], Any]) -> Any:
        """Run one piece of work in a worker thread."""
        return self.map(lambda _: work(), [None])[0]
