"""Threads that stop when the user asks.

All work runs in worker threads, even with one of them, so that the main thread is free to see
Ctrl-C.  Long compiled loops look at ``workers.cancel`` (one int32, set to 1 to stop) now and then;
between blocks of work the workers look themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock, Thread
from types import TracebackType
from typing import Any, Self, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from .progress import Progress, Run, following

__all__ = ["Cancelled", "Workers", "single_threaded_blas"]

Item = TypeVar("Item")


@cache
def _blas() -> ThreadpoolController:
    """The libraries in use; NumPy and SciPy have loaded them by now, and looking takes a while."""
    return ThreadpoolController()


def single_threaded_blas() -> Any:
    """A context in which BLAS runs on one thread."""
    return _blas().limit(limits=1, user_api="blas")


class Cancelled(Exception):
    """Raised inside a worker when the user has interrupted the run."""


class Workers:
    """A pool of threads with a shared cancel flag; BLAS runs on one thread inside.

    ``watch`` is told of every ledger that is opened, and shows how far they are if anyone looks.

    What a block of work computes must not depend on the thread that runs it: the results are then
    the same, bit for bit, for any number of threads.
    """

    def __init__(self, n_threads: int, watch: Run | None = None):
        self.n_threads = n_threads
        self.cancel = np.zeros(1, dtype=np.int32)
        self.watch = Run() if watch is None else watch
        self._threads: list[Thread] = []

    def __enter__(self) -> Self:
        self._limits = _blas().limit(limits=1, user_api="blas")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cancel[0] = 1
        try:
            for thread in self._threads:
                if thread.ident is not None:  # an interrupt may strike before all have started
                    thread.join()
        finally:
            self._limits.restore_original_limits()

    def map(self, work: Callable[[Item], Any], items: Iterable[Item]) -> list[Any]:
        """Run ``work`` on every item; results in order; the first error stops the rest.

        Plain threads, and a main thread that only joins them: an interrupt can strike at any point
        of it without leaving a lock behind.
        """
        todo = list(items)
        results: list[Any] = [None] * len(todo)
        errors: list[BaseException] = []
        positions, lock = iter(range(len(todo))), Lock()

        def worker() -> None:
            while not (errors or self.cancel[0]):
                with lock:
                    k = next(positions, None)
                if k is None:
                    return
                try:
                    results[k] = work(todo[k])
                except BaseException as error:
                    errors.append(error)

        count = min(self.n_threads, len(todo))
        self._threads = [Thread(target=worker, daemon=True) for _ in range(count)]
        try:
            for thread in self._threads:
                thread.start()
            for thread in self._threads:
                while thread.is_alive():
                    thread.join(timeout=0.2)
        except BaseException:
            self.cancel[0] = 1
            raise
        if errors:
            raise errors[0]
        return results

    @contextmanager
    def followed(self, progress: bool | Progress) -> Iterator[None]:
        """In this context ``watch`` is a run of its own on this progress."""
        before = self.watch
        with following(progress) as self.watch:
            try:
                yield
            finally:
                self.watch = before

    def run(self, work: Callable[[], Any]) -> Any:
        """Run one piece of work in a worker thread."""
        return self.map(lambda _: work(), [None])[0]

    def alone(self) -> Workers:
        """The pool as one of its threads sees it: whatever it is given runs in that thread."""
        return _Alone(self)


class _Alone(Workers):
    """No threads of its own; stops when the pool it belongs to does."""

    def __init__(self, pool: Workers):
        super().__init__(1, pool.watch)
        self.cancel = pool.cancel

    def map(self, work: Callable[[Item], Any], items: Iterable[Item]) -> list[Any]:
        results = []
        for item in items:
            if self.cancel[0]:
                raise Cancelled
            results.append(work(item))
        return results
