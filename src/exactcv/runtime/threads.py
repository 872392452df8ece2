"""Threads that stop when the user asks, and BLAS on one thread while they work.

All work runs in worker threads, even with one of them, so that the main thread is free to see
Ctrl-C.  Long compiled loops look at ``workers.cancel`` (one int32, set to 1 to stop) now and then;
between blocks of work the workers look themselves.

Threads of BLAS beside our own would only get in each other's way, and sums would depend on how
many there are.  ``SingleThreadedBlas`` is the one place that sets their number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock, Thread, local
from types import TracebackType
from typing import Any, Self, TypeVar
from weakref import WeakSet

import numpy as np
from threadpoolctl import ThreadpoolController

from .progress import Progress, Run, following

__all__ = ["Cancelled", "SingleThreadedBlas", "Workers"]

Item = TypeVar("Item")


class SingleThreadedBlas:
    """A context in which BLAS runs on one thread.

    Most libraries have one setting for the whole process.  So contexts in several threads, or one
    inside the other, hold it together: the first to come in sets it, the last to leave puts back
    what the user had.  If the user has set another number in between, that is left as it is.  (A
    change to 1, or what a ``threadpool_limits`` of the user read in between and will put back
    later, cannot be told from our own setting.)

    Examples
    --------
    >>> with SingleThreadedBlas():
    ...     product = np.ones((3, 3)) @ np.ones((3, 3))
    """

    def __enter__(self) -> None:
        try:
            _BLAS.add(self)
        except BaseException:  # Ctrl-C in the middle of it
            _BLAS.remove(self)
            raise

    def __exit__(self, *exc: object) -> None:
        try:
            _BLAS.remove(self)
        except BaseException:
            _BLAS.remove(self)
            raise


class _Library:
    """One BLAS library, as threadpoolctl has found it."""

    def __init__(self, controller: Any):
        self.get: Callable[[], int] = controller.get_num_threads
        # In threadpoolctl 3.8 the public way to set OpenBLAS does nothing, without a word, in all
        # Python threads but the one that was first to use it.
        self.set: Callable[[int], None] = getattr(
            controller, "_real_set_num_threads", controller.set_num_threads
        )
        self._shared: bool | None = None

    def set_to_one(self, before: int) -> bool:
        """From ``before`` to 1; True if this holds for the whole process, not this thread alone.

        Which of the two it is depends on the library, how it was built and the version of
        threadpoolctl: another thread is asked what it sees, the first time.
        """
        if self._shared is None:
            same = _elsewhere(self.get) == before
            self.set(1)
            self._shared = same and _elsewhere(self.get) == 1
        self.set(1)
        return self._shared


def _elsewhere(ask: Callable[[], int]) -> int:
    """What another thread gets for an answer."""
    answers: list[int] = []
    thread = Thread(target=lambda: answers.append(ask()))
    thread.start()
    thread.join()
    return answers[0]


class _Held:
    """Contexts that hold a setting together, and what it was before the first of them.

    A context that Ctrl-C kept from leaving, right before ``__exit__`` could begin, does not count
    once it is gone: the next one to leave puts the setting back.
    """

    def __init__(self) -> None:
        self.contexts: WeakSet[SingleThreadedBlas] = WeakSet()
        self.before: dict[_Library, int] = {}

    def remove(self, context: SingleThreadedBlas) -> None:
        self.contexts.discard(context)
        if not self.contexts:
            for library, number in list(self.before.items()):
                if library.get() == 1:  # else the user has set it since
                    library.set(number)
                del self.before[library]


class _Blas:
    """All BLAS libraries of the process and the contexts that limit them.

    To add or to remove a context once more does no harm: either may be cut short by Ctrl-C.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._libraries: list[_Library] | None = None
        self._by_all = _Held()
        self._by_thread = local()

    def add(self, context: SingleThreadedBlas) -> None:
        with self._lock:
            everyone, mine = self._by_all, self._mine()
            everyone.contexts.add(context)
            mine.contexts.add(context)
            for library in self._found():
                number = library.get()
                if number != 1:
                    everyone.before[library] = number
                    if not library.set_to_one(number):
                        mine.before[library] = everyone.before.pop(library)

    def remove(self, context: SingleThreadedBlas) -> None:
        with self._lock:
            self._mine().remove(context)
            self._by_all.remove(context)

    def for_worker(self) -> AbstractContextManager[None]:
        """The context of a thread whose pool is in one: nothing, where the pool's limit reaches it.

        That is known at a glance, and many pieces of work are short.
        """
        with self._lock:
            limited = all(library.get() == 1 for library in self._found())
        return nullcontext() if limited else SingleThreadedBlas()

    def _mine(self) -> _Held:
        """What belongs to the thread that asks."""
        if not hasattr(self._by_thread, "held"):
            self._by_thread.held = _Held()
        held: _Held = self._by_thread.held
        return held

    def _found(self) -> list[_Library]:
        """The libraries; NumPy and SciPy have loaded them by now, and looking takes a while."""
        if self._libraries is None:
            found = ThreadpoolController().select(user_api="blas")
            self._libraries = [_Library(one) for one in found.lib_controllers]
        return self._libraries


_BLAS = _Blas()


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
        self._limit = SingleThreadedBlas()
        self._threads: list[Thread] = []

    def __enter__(self) -> Self:
        self._limit.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.cancel[0] = 1
            for thread in self._threads:
                if thread.ident is not None:  # an interrupt may strike before all have started
                    thread.join()
        finally:
            self._limit.__exit__()

    def map(
        self, work: Callable[[Item], Any], items: Iterable[Item], at_most: int | None = None
    ) -> list[Any]:
        """Run ``work`` on every item; results in order; the first error stops the rest.

        ``at_most`` so many at a time, where each takes much memory.
        Plain threads, and a main thread that only joins them: an interrupt can strike at any point
        of it without leaving a lock behind.
        """
        todo = list(items)
        results: list[Any] = [None] * len(todo)
        errors: list[BaseException] = []
        positions, lock = iter(range(len(todo))), Lock()

        def worker() -> None:
            with _BLAS.for_worker():
                while not (errors or self.cancel[0]):
                    with lock:
                        k = next(positions, None)
                    if k is None:
                        return
                    try:
                        results[k] = work(todo[k])
                    except BaseException as error:
                        errors.append(error)

        count = min(self.n_threads, at_most or self.n_threads, len(todo))
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

    def map(
        self, work: Callable[[Item], Any], items: Iterable[Item], at_most: int | None = None
    ) -> list[Any]:
        results = []
        for item in items:
            if self.cancel[0]:
                raise Cancelled
            results.append(work(item))
        return results
