"""Waits for a Dask cluster, but not for ever: one without workers will never answer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from time import monotonic, sleep
from typing import Any

from ...exceptions import ClusterError, ExactCVError, MissingExtraError

__all__ = [
    "active_client",
    "awaited",
    "cluster_error",
    "compute_all",
    "import_dask",
    "n_workers",
    "submitted",
    "turn",
    "worker_places",
]

# Seconds without any worker before giving up.
PATIENCE = 30.0
# Seconds between two looks at the workers, and at a task.
LOOK, PAUSE = 2.0, 0.005


def import_dask() -> Any:
    """Dask, or an error that names the extra to install."""
    try:
        import dask
    except ImportError as missing:
        raise MissingExtraError("Dask input needs dask: pip install 'exactcv[dask]'") from missing
    return dask


def active_client() -> Any:
    """The client of a Dask cluster that this process has opened, if any."""
    if "distributed" not in sys.modules:
        return None
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None


def compute_all(tasks: Sequence[Any]) -> list[Any]:
    """``dask.compute`` of many, which gives up if it would run on a cluster without workers."""
    dask = import_dask()
    client = _client_of_compute()
    if client is None:
        return list(dask.compute(*tasks))
    try:
        futures = client.compute(list(tasks))
    except Exception as error:
        raise cluster_error(error) from error
    return [awaited(client, future) for future in futures]


def _client_of_compute() -> Any:
    """The client that ``dask.compute`` would use.

    None if it would use threads, or if this is a task of a worker: to wait for other tasks it
    must first leave its place to them, as ``dask.compute`` does.
    """
    client = active_client()
    if client is None:
        return None
    from dask.base import get_scheduler
    from distributed import get_worker

    try:
        get_worker()
    except ValueError:
        return client if getattr(get_scheduler(), "__self__", None) is client else None
    return None


def awaited(client: Any, future: Any) -> Any:
    """The result of a future, or ``ClusterError`` if there is nobody left to make it."""
    _wait(client, future)
    try:
        return future.result()
    except ExactCVError:
        raise
    except Exception as error:
        raise cluster_error(error) from error
    except BaseException as error:
        # Dask's CancelledError is no Exception.
        if type(error).__name__ == "CancelledError":
            raise cluster_error(error) from error
        raise


def _wait(client: Any, future: Any) -> None:
    """Until it is done, well or not.

    ``result(timeout=...)`` would do, but the error it raises keeps the future alive, and with it
    its task, for as long as the collector lets it.
    """
    last_seen = looked = monotonic()
    while not future.done():
        sleep(PAUSE)
        now = monotonic()
        if now - looked < min(LOOK, PATIENCE):
            continue
        looked = now
        if client.status != "running":
            raise cluster_error("the scheduler does not answer")
        if n_workers(client):
            last_seen = now
        elif now - last_seen > PATIENCE:
            raise cluster_error(f"it has had no worker for {PATIENCE:.0f} s")


def n_workers(client: Any) -> int:
    """How many workers the client has; none if there is no client."""
    return len(_threads(client))


def worker_places(client: Any) -> list[str]:
    """Addresses of the workers, each as often as it has threads."""
    threads = _threads(client)
    most = max(threads.values(), default=0)
    return [one for k in range(most) for one in sorted(threads) if threads[one] > k]


def _threads(client: Any) -> dict[str, int]:
    """Threads of each worker."""
    if client is None:
        return {}
    try:
        return dict(client.nthreads())
    except Exception:  # the connection is gone, which the caller finds out
        return {}


def turn(places: list[str], k: int) -> list[str] | None:
    """Whose turn the k-th task is: first to last, and back again.

    Examples
    --------
    >>> [turn(["a", "b"], k) for k in range(4)]
    [['a'], ['b'], ['b'], ['a']]
    """
    if not places:
        return None
    lap, place = divmod(k, len(places))
    return [places[place if lap % 2 == 0 else -1 - place]]


def submitted(client: Any, *arguments: Any, **options: Any) -> Any:
    """``client.submit``, which has no word to say about how large the arguments are."""
    import dask

    try:
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return client.submit(*arguments, **options)
    except Exception as error:
        raise cluster_error(error) from error


def cluster_error(why: str | BaseException) -> ClusterError:
    """What to raise when the cluster did not finish."""
    said = why if isinstance(why, str) else f"{type(why).__name__}: {why}"
    return ClusterError(
        f"the Dask cluster did not finish: {said}; no result was made. Start the cluster again, or "
        "close the client to run in this process"
    )
