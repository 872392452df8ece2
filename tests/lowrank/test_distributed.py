"""On a cluster the answer is the local one, whatever happens to the workers."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import joblib
import numpy as np
import pytest

import exactcv
from exactcv.crossval.lowrank_grid import cross_validate_grid
from exactcv.lowrank.passes import cluster
from exactcv.lowrank.passes import distributed as on_cluster

# Closing a cluster is not our business: it may leave a socket or a loop to the collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

COMMON: dict[str, Any] = {"approx": "rff", "n_components": 10, "lambdas": 4, "random_state": 3}


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    return exactcv.datasets.make_mixture(400, 4, random_state=0)


@pytest.fixture
def client() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0",
            silence_logs=50,
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        yield client


def same(result: exactcv.CVResult, expected: exactcv.CVResult) -> None:
    np.testing.assert_allclose(result.weights, expected.weights, atol=1e-8)
    np.testing.assert_array_equal(result.wrong, expected.wrong)
    if expected.decision is not None:
        np.testing.assert_allclose(result.decision, expected.decision, atol=1e-8)
    assert result.certificate.exact


def test_cluster_gives_the_local_answer_even_if_a_worker_dies(data, client) -> None:
    import dask.array as da

    X, y = data
    more: dict[str, Any] = {"target_rows": 60, "chunk_rows": 64, "cluster": False}
    expected = exactcv.cross_validate(X, y, output="decision", method_options=more, **COMMON)
    more["cluster"] = True
    # An array of this process, and one that is on the cluster; features kept there or not.
    same(exactcv.cross_validate(X, y, output="decision", method_options=more, **COMMON), expected)
    rows = da.from_array(X, chunks=(90, 4))
    result = exactcv.cross_validate(
        rows, y, output="decision", method_options=more | {"features": "recompute"}, **COMMON
    )
    same(result, expected)
    assert result.stats["bytes_received"] > 0
    assert result.stats["bytes_sent"] > 0
    folds = exactcv.cross_validate(rows, y, cv=3, method_options=more, **COMMON)
    more["cluster"] = False
    same(folds, exactcv.cross_validate(X, y, cv=3, method_options=more, **COMMON))

    # One worker is killed between two passes.
    workers = client.run(os.getpid)
    killed = []
    original = on_cluster.DaskRunner.map

    def map_and_kill(self: Any, work: Any) -> Any:
        tasks_done = original(self, work)
        if not killed:
            killed.append(next(iter(workers.values())))
            os.kill(killed[0], signal.SIGKILL)
        return tasks_done

    more["cluster"] = True
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_cluster.DaskRunner, "map", map_and_kill)
        result = exactcv.cross_validate(
            rows, y, output="decision", method_options=more | {"features": "memory"}, **COMMON
        )
    assert killed
    same(result, expected)

    # Another in the middle of a pass, while the tasks run.
    workers = client.run(os.getpid)
    slow = _Slow()
    stop = threading.Timer(0.7, lambda: os.kill(next(iter(workers.values())), signal.SIGKILL))
    stop.start()
    rows = rows.map_blocks(slow, dtype=float)
    same(
        exactcv.cross_validate(
            rows, y, output="decision", method_options=more | {"features": "recompute"}, **COMMON
        ),
        expected,
    )
    stop.join()


class _Slow:
    """Rows that take their time."""

    def __call__(self, block: np.ndarray) -> np.ndarray:
        time.sleep(0.1)
        return block


@pytest.mark.parametrize(("cv", "when"), [(3, "Rounds"), ("loo", "_Leave")])
def test_a_worker_dies_with_small_problems(data, client, monkeypatch, cv: Any, when: str) -> None:
    """At a first guess, or where rows are left out; what it held is made again."""
    import dask.array as da

    X, y = data
    more: dict[str, Any] = {"target_rows": 60, "chunk_rows": 64}
    options = COMMON | {"output": "decision", "cv": cv}
    expected = exactcv.cross_validate(X, y, method_options=more | {"cluster": False}, **options)
    original, killed = on_cluster.DaskRunner.small, []

    def small_and_kill(self: Any, work: Any, *more: Any) -> Any:
        if not killed and type(work).__name__.startswith(when):
            killed.append(next(iter(client.run(os.getpid).values())))
            threading.Timer(0.02, lambda: os.kill(killed[0], signal.SIGKILL)).start()
        return original(self, work, *more)

    monkeypatch.setattr(on_cluster.DaskRunner, "small", small_and_kill)
    rows = da.from_array(X, chunks=(50, 4))
    same(exactcv.cross_validate(rows, y, method_options=more, **options), expected)
    assert killed


def test_a_cluster_that_disappears(data, client, monkeypatch) -> None:
    import dask.array as da

    X, y = data
    monkeypatch.setattr(cluster, "PATIENCE", 1.0)
    rows = da.from_array(X, chunks=(100, 4))
    original = on_cluster.DaskRunner.map

    def map_then_close(self: Any, work: Any) -> Any:
        found = original(self, work)
        client.cluster.scale(0)
        while client.scheduler_info()["workers"]:
            time.sleep(0.05)
        return found

    monkeypatch.setattr(on_cluster.DaskRunner, "map", map_then_close)
    with pytest.raises(exactcv.ClusterError, match="no result was made"):
        exactcv.cross_validate(rows, y, **COMMON)


def test_nothing_waits_for_a_cluster_without_workers(data, client, monkeypatch) -> None:
    import dask.array as da
    import dask.dataframe as dd
    import pandas as pd

    X, y = data
    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    rows, labels = da.from_array(X, chunks=(100, 4)), da.from_array(y, chunks=100)
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")).assign(label=y), npartitions=2)
    source = on_cluster.DaskRows.open(frame, ["label"])
    np.testing.assert_array_equal(source.take(np.array([300, 2])), X[[300, 2]])
    client.cluster.scale(0)
    while client.scheduler_info()["workers"]:
        time.sleep(0.05)
    waiting: list[Callable[[], Any]] = [
        lambda: on_cluster.DaskRows.open(frame, ["label"]),
        lambda: source.take(np.array([300, 2])),
        lambda: source.read(1),
        lambda: source.column("label"),
        lambda: on_cluster.as_local(labels),
        lambda: exactcv.cross_validate(rows, y, **COMMON),
        lambda: exactcv.cross_validate(rows, y, method_options={"cluster": False}, **COMMON),
        lambda: exactcv.SVCCV(approx="rff", Cs=[1.0]).fit(frame, "label"),
    ]
    for call in waiting:
        with pytest.raises(exactcv.ClusterError, match=r"no worker for .* no result was made"):
            call()


def test_grids_go_through_joblib(data, client) -> None:
    X, y = data[0][:120], data[1][:120]
    options: dict[str, Any] = {"n_components": 6, "lambdas": 3, "cv": 3}
    options |= {"gammas": [0.01, 0.1], "random_states": [0, 1]}
    expected = cross_validate_grid(X, y, **options)
    assert [(r.gamma, r.n_errors.shape) for r in expected] == [
        (0.01, (3,)), (0.01, (3,)), (0.1, (3,)), (0.1, (3,)),
    ]  # fmt: skip
    assert not np.array_equal(expected[0].weights, expected[1].weights)
    for backend in ("loky", "dask"):
        with joblib.parallel_config(backend=backend, n_jobs=2):
            for result, local in zip(cross_validate_grid(X, y, **options), expected, strict=True):
                same(result, local)


def tasks_of(client: Any, seconds: float = 120.0) -> int:
    """Tasks that the scheduler knows, once it has had time to forget."""
    limit = time.monotonic() + seconds
    count = -1
    while count and time.monotonic() < limit:
        count = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        time.sleep(0.05)
    return count


def test_nothing_is_left_on_the_cluster(data, client, monkeypatch) -> None:
    X, y = data
    exactcv.cross_validate(X, y, method_options={"features": "memory"}, **COMMON)
    assert tasks_of(client) == 0

    original = on_cluster.DaskRunner.map

    def stopped(self: Any, work: Any) -> Any:
        original(self, work)
        raise KeyboardInterrupt

    monkeypatch.setattr(on_cluster.DaskRunner, "map", stopped)
    with pytest.raises(KeyboardInterrupt):
        exactcv.cross_validate(X, y, method_options={"features": "memory"}, **COMMON)
    assert tasks_of(client) == 0


GOES_AWAY = """
import sys, time
import dask.array as da
import numpy as np
from distributed import Client
import exactcv

def slow(block):
    time.sleep(0.2)
    return block

X, y = exactcv.datasets.make_mixture(400, 4, random_state=0)
rows = da.from_array(X, chunks=(40, 4)).map_blocks(slow, dtype=float)
with Client(sys.argv[1]):
    print("begun", flush=True)
    exactcv.cross_validate(rows, y, approx="rff", n_components=10, lambdas=4, random_state=3)
"""


def test_a_client_that_is_killed_leaves_no_tasks(client) -> None:
    import subprocess
    import sys

    address = client.scheduler_info()["address"]
    with subprocess.Popen(
        [sys.executable, "-c", GOES_AWAY, address], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "begun\n"
        count, limit = 0, time.monotonic() + 60
        while not count and time.monotonic() < limit:
            count = client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
        other.kill()
    assert count > 0
    assert tasks_of(client) == 0


@pytest.mark.parametrize("n_parts", [3, 8, 9, 80])
def test_sums_come_together_on_the_workers(data, n_parts: int) -> None:
    """Whatever the number of partitions, little arrives, and all of it in order."""
    import dask.array as da

    from exactcv.lowrank.features import make_feature_map
    from exactcv.problem.kernels import Kernel

    X, y = data
    rows = on_cluster.DaskRows.open(da.from_array(X, chunks=(400 // n_parts, 4)), [])
    fmap = make_feature_map("rff", Kernel(gamma=0.3), 5, None, 4, 0)
    runner = on_cluster.DaskRunner(rows, y, np.ones(400), fmap, "recompute", "float64", 64, None)
    found = runner.map(_Rows())
    assert len(found) <= on_cluster.JOINED
    np.testing.assert_array_equal(np.concatenate(found), np.arange(400))
    seen: list[np.ndarray] = []
    runner.each(_Right(), lambda chunk, right: seen.append(right))
    np.testing.assert_array_equal(np.concatenate(seen), y > 0)
    assert runner.bytes_received < 400 * 8 + 400 / 8 + 16 * (n_parts + 40)


class _Rows:
    def __call__(self, chunk: Any) -> np.ndarray:
        return chunk.rows

    def join(self, results: list[np.ndarray]) -> np.ndarray:
        return np.concatenate(results)


class _Right(_Rows):
    def __call__(self, chunk: Any) -> np.ndarray:
        return chunk.y > 0
