"""Ctrl-C: prompt, and nothing that is finished is lost."""

from __future__ import annotations

import _thread
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import exactcv
from exactcv.algorithms import REGISTRY, get_method
from exactcv.algorithms.exact import Exact
from exactcv.judge.ledger import Ledger
from exactcv.problem.problem import Task
from exactcv.runtime.threads import Workers

X, y = exactcv.datasets.make_mixture(30, 3, random_state=0)
GRID: dict[str, Any] = {"Cs": np.geomspace(100, 0.01, 6), "output": "decision"}


@pytest.fixture(autouse=True)
def heeded() -> Iterator[None]:
    """A shell that starts the tests in the background makes them deaf to Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Stopped:
    """A method that is interrupted, like the user would, in the middle of a real one."""

    def __init__(self, name: str, when: Callable[[Ledger], bool]):
        self.inner, self.when = get_method(name), when
        self.support = self.inner.support

    def run(self, task: Task, ledger: Ledger, workers: Workers) -> dict[str, Any]:
        note, fired = ledger._note, threading.Event()

        def noting(*args: Any) -> None:
            note(*args)
            if self.when(ledger) and not fired.is_set():
                fired.set()
                _thread.interrupt_main()
            if fired.is_set():  # until the main thread has seen it
                limit = threading.Event()
                while not (workers.cancel[0] or limit.wait(0.005)):
                    pass

        ledger._note = noting  # type: ignore[method-assign]
        return self.inner.run(task, ledger, workers)


def interrupted(
    monkeypatch: pytest.MonkeyPatch, name: str, when: Callable[[Ledger], bool], **arguments: Any
) -> exactcv.Interrupted:
    method = Stopped(name, when)
    monkeypatch.setitem(REGISTRY, "stopped", lambda: method)
    with pytest.raises(KeyboardInterrupt) as info:
        exactcv.cross_validate(X, y, method="stopped", **(GRID | arguments))
    assert isinstance(info.value, exactcv.Interrupted)
    return info.value


def settled(share: float) -> Callable[[Ledger], bool]:
    return lambda ledger: bool((ledger.how > 0).mean() >= share)


def same_as(partial: exactcv.CVResult, full: exactcv.CVResult) -> None:
    """The part agrees with the whole, to the bit."""
    points = np.flatnonzero(np.isin(full.Cs, partial.Cs))
    rows = partial.test_row
    assert partial.decision is not None and full.decision is not None
    np.testing.assert_array_equal(partial.Cs, full.Cs[points])
    np.testing.assert_array_equal(partial.coef, full.coef[points])
    np.testing.assert_array_equal(partial.decision[:, rows], full.decision[np.ix_(points, rows)])
    np.testing.assert_array_equal(partial.wrong[:, rows], full.wrong[np.ix_(points, rows)])
    assert partial.certificate.exact
    assert partial.stats["missing"] == 0


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_grid_points_that_are_complete_are_kept(
    monkeypatch: pytest.MonkeyPatch, n_jobs: int
) -> None:
    stop = interrupted(monkeypatch, "exact", settled(0.5), n_jobs=n_jobs)
    assert 2 <= len(stop.partial.Cs) < 6
    assert f"{len(stop.partial.Cs)} of 6 grid points complete" in str(stop)
    assert len(stop.partial.test_row) == 30
    same_as(stop.partial, exactcv.cross_validate(X, y, **GRID))
    assert "Leave-one-out over" in stop.partial.summary()


@pytest.mark.parametrize("method", ["exact", "refit"])
def test_folds_that_are_complete_are_kept(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    monkeypatch.setattr("exactcv.engine.blocks.AT_A_TIME", 1)  # one fold after the other
    stop = interrupted(monkeypatch, method, settled(0.5), cv=6)
    assert len(stop.partial.Cs) == 6
    assert 3 <= stop.partial.fold_error.shape[1] < 6
    assert f"{stop.partial.fold_error.shape[1]} of 6 folds complete" in str(stop)
    same_as(stop.partial, exactcv.cross_validate(X, y, method=method, cv=6, **GRID))


def test_nothing_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = interrupted(monkeypatch, "exact", lambda ledger: bool(ledger.kkt[:, -1].any()))
    assert stop.partial is None
    assert "no fold is complete" in str(stop)


def test_interrupted_before_the_first_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel(X: Any, Y: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(exactcv.Interrupted, match="before the first fold") as info:
        exactcv.cross_validate(X, y, kernel=kernel)
    assert info.value.partial is None


def test_a_solution_that_misses_the_tolerance_is_not_complete(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(self: Exact, task: Task, ledger: Ledger, workers: Workers) -> dict[str, Any]:
        real(self, task, ledger, workers)
        ledger.kkt[2, 5] = 1e-3
        raise KeyboardInterrupt

    real = Exact.run
    monkeypatch.setattr(Exact, "run", run)
    with pytest.raises(exactcv.Interrupted) as info:
        exactcv.cross_validate(X, y, **GRID)
    partial = info.value.partial
    # 29 folds at 6 points are more than 30 folds at 5.
    assert partial.fold_error.shape == (6, 29)
    assert partial.certificate.exact
    assert 5 not in partial.test_row


def test_it_is_a_keyboard_interrupt_and_survives_pickling() -> None:
    assert issubclass(exactcv.Interrupted, KeyboardInterrupt)
    assert not issubclass(exactcv.Interrupted, Exception)
    again = pickle.loads(pickle.dumps(exactcv.Interrupted("stopped", {"a": 1})))
    assert str(again) == "stopped" and again.partial == {"a": 1}


SCRIPT = """
    import signal, sys
    import numpy as np
    import exactcv
    from exactcv.runtime.progress import Lines

    signal.signal(signal.SIGINT, signal.default_int_handler)

    class Watch(Lines):
        def draw(self, fraction, seconds, left):
            if fraction > 0.01:
                print("ready", flush=True)

    exactcv.runtime.progress.choose_screen = lambda file=None: Watch(sys.stderr)
    X, y = exactcv.datasets.make_mixture(300, 5, random_state=0)
    try:
        # Most of a minute's work.
        exactcv.cross_validate(
            X, y, lambdas=np.geomspace(1e-2, 1e-4, 3000), output="decision", progress=True
        )
    except exactcv.Interrupted as stop:
        part = stop.partial
        print(part.certificate.exact, 10 < len(part.Cs) < 3000, flush=True)
        sys.exit(7)
"""


def test_a_real_signal_stops_a_long_run_at_once() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        while child.stdout.readline() != "ready\n":
            assert child.poll() is None
        child.send_signal(signal.SIGINT)
        rest, _ = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 7
    assert rest.splitlines()[-1] == "True True"
