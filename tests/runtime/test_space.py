"""Threads never hold more of a `Space` than there is."""

from __future__ import annotations

import pickle
from threading import Barrier, Lock
from time import sleep

import numpy as np
import pytest

from exactcv.runtime.space import Space
from exactcv.runtime.threads import Cancelled, Workers

GO_ON = np.zeros(1, np.int32)


def test_threads_wait_for_each_other() -> None:
    space, lock, held, most = Space(100), Lock(), [0], [0]

    def work(size: int) -> None:
        with space.taken(size, GO_ON):
            with lock:
                held[0] += min(size, 100)
                most[0] = max(most[0], held[0])
            sleep(0.01)
            with lock:
                held[0] -= min(size, 100)

    with Workers(8) as workers:
        workers.map(work, [30, 60, 50, 10, 100, 20, 1000, 40, 5, 90])
    assert 60 <= most[0] <= 100
    assert space.left == 100


def test_what_fits_goes_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """And who waits goes on as soon as there is room, not when it next looks."""
    monkeypatch.setattr("exactcv.runtime.space.LOOK", 60.0)
    space, both = Space(100), Barrier(2, timeout=30.0)

    def work(size: int) -> None:
        with space.taken(size, GO_ON):
            both.wait()

    with Workers(4) as workers:
        workers.map(work, [50, 50, 50, 50])
    assert space.left == 100


def test_an_error_gives_back_what_was_held() -> None:
    space = Space(10)
    with pytest.raises(ZeroDivisionError), space.taken(7, GO_ON):
        raise ZeroDivisionError
    assert space.left == 10


def test_who_waits_sees_that_the_run_is_stopped() -> None:
    space = Space(10)
    with (
        space.taken(10, GO_ON),
        pytest.raises(Cancelled),
        space.taken(1, np.ones(1, np.int32)),
    ):
        pass


def test_a_copy_elsewhere_has_as_many() -> None:
    space = Space(10)
    with space.taken(4, GO_ON):
        assert pickle.loads(pickle.dumps(space)).left == 10
