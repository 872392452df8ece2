"""A worker that is killed at any stage of a run changes nothing, whether another takes its place.

Nothing is left on the cluster either.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import exactcv
from exactcv.lowrank.passes.distributed import DaskRows, DaskRunner

# Closing a cluster is not our business: it may leave a socket or a loop to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

OPTIONS: dict[str, Any] = {"approx": "rff", "n_components": 10, "lambdas": 4, "random_state": 3}
MORE: dict[str, Any] = {"target_rows": 60, "chunk_rows": 64, "features": "memory"}
# Seconds to wait for workers; what a stage needs before the worker dies in the middle of it.
PATIENCE, LATER = 120.0, 0.03


class Cluster:
    """Two workers, with nannies that start them again or processes that are started here."""

    def __init__(self, nanny: bool):
        from distributed import Client, LocalCluster

        self.nanny = nanny
        self.cluster = LocalCluster(
            n_workers=2 if nanny else 0, threads_per_worker=1, processes=True,
            dashboard_address=":0", silence_logs=50,
        )  # fmt: skip
        self.client, self.processes = Client(self.cluster), list[subprocess.Popen[bytes]]()
        self.timers: list[threading.Timer] = []

    def fill(self) -> None:
        """Two workers again."""
        for _ in range(0 if self.nanny else 2 - len(self.pids())):
            command = ["-m", "distributed.cli.dask_worker", self.cluster.scheduler_address]
            self.processes.append(
                subprocess.Popen(
                    [sys.executable, *command, "--no-nanny", "--nthreads", "1"],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
        limit = time.monotonic() + PATIENCE
        while len(self.pids()) < 2 and time.monotonic() < limit:
            time.sleep(0.1)
        time.sleep(0.5)  # a nanny does not start a worker again that dies while it begins

    def pids(self) -> list[int]:
        return sorted(self.client.run(os.getpid, on_error="ignore").values())

    def kill_one(self, later: float) -> None:
        """Now, or while what comes next runs."""
        timer = threading.Timer(later, os.kill, (self.pids()[0], signal.SIGKILL))
        timer.start()
        if not later:
            timer.join()
        self.timers.append(timer)

    def tasks(self) -> int:
        """Tasks that the scheduler knows, once it has had time to forget."""
        count, limit = -1, time.monotonic() + PATIENCE
        while count and time.monotonic() < limit:
            count = self.client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
            time.sleep(0.05)
        return count

    def close(self) -> None:
        self.client.close()
        self.cluster.close()
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def cluster(nanny: bool) -> Iterator[Cluster]:
    made = Cluster(nanny)
    yield made
    made.close()


def stages(monkeypatch: pytest.MonkeyPatch, reached: Callable[[str], None]) -> None:
    """Have ``reached`` told of every stage of a run on the workers, before it begins."""

    def told(owner: Any, name: str, shown: Callable[..., str]) -> None:
        original = getattr(owner, name)

        def stage(self: Any, *given: Any, **named: Any) -> Any:
            reached(shown(*given))
            return original(self, *given, **named)

        monkeypatch.setattr(owner, name, stage)

    told(DaskRows, "take", lambda rows: "take")
    for name in ("map", "joined", "small", "each"):
        told(DaskRunner, name, lambda work, *_, name=name: f"{name} {type(work).__name__}")


@pytest.mark.parametrize(("nanny", "cv"), [(True, 3), (False, "loo")])
def test_a_worker_dies_at_each_stage(cluster: Cluster, monkeypatch, cv: Any) -> None:
    import dask.array as da

    X, y = exactcv.datasets.make_mixture(400, 4, random_state=0)
    local = MORE | {"cluster": False}
    expected = exactcv.cross_validate(X, y, cv=cv, method_options=local, **OPTIONS)
    rows = da.from_array(X, chunks=(50, 4))
    seen: list[str] = []
    dies: list[str] = []

    def reached(stage: str) -> None:
        if stage not in seen:
            seen.append(stage)
            if dies == [stage]:
                cluster.kill_one(LATER * (len(seen) % 2))

    cluster.fill()
    stages(monkeypatch, reached)
    exactcv.cross_validate(rows, y, cv=cv, method_options=MORE, **OPTIONS)
    all_stages = list(seen)
    assert {"take", "map Farthest", "joined _Sweep", "small Rounds"} < set(all_stages)
    for stage in all_stages:
        seen.clear()
        dies[:] = [stage]
        cluster.fill()
        before = cluster.pids()
        result = exactcv.cross_validate(rows, y, cv=cv, method_options=MORE, **OPTIONS)
        cluster.timers.pop().join()
        np.testing.assert_allclose(result.weights, expected.weights, atol=1e-8, err_msg=stage)
        np.testing.assert_array_equal(result.wrong, expected.wrong, err_msg=stage)
        assert result.certificate.exact
        assert result.stats["bytes_sent"] > 0 and result.stats["bytes_received"] > 0
        assert cluster.tasks() == 0, stage
        assert set(cluster.pids()) != set(before), stage
