"""Where the time of a run on two Dask workers goes, in CPU seconds.

    python -m benchmarks.users.dask_stages [--rows 300000] [--repeats 3] [--write]

The papers' simulation with p = 20, Nystroem with m = 200, 50 lambdas, leave-one-out error curve,
one thread for each process.  A run is cut where the client waits for the workers.  The *critical
path* is what a run would take with a processor for each process: of each stage the CPU seconds of
the client before it waits (with all it computes, in one thread; not the scheduler, which is another
thread of the same process), and those of the busiest worker, but the larger of the two where both
are busy (the first guess).  What a worker takes that has nothing to do, by the
clock, is taken off (measured after each run): on a busy machine the clock says little.  Of each
stage the least of all repeats counts, and of one process the least as well.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from time import perf_counter, process_time, sleep, thread_time
from typing import Any

import numpy as np

from benchmarks.lib import command
from benchmarks.lib.machine import facts
from benchmarks.lib.results import markdown, write_section
from benchmarks.papers.consolidated_cv.approximate_kernels import GRID, P, draw

FILE, TITLE = "large", "Large data, with features in place of a kernel"
OPTIONS: dict[str, Any] = {
    "approx": "nystroem", "n_components": 200, "lambdas": GRID, "random_state": 0, "n_jobs": 1,
}  # fmt: skip
# What is run at the same time as the first guess.
TOGETHER = "map"
HEAD = ["rows", "one process (CPU s)", "client, before it waits",
        "first guess (client) or features", "busiest worker otherwise", "critical path",
        "ratio (bar: 1.5)", "sent MB", "received MB", "labels that differ", "load average",
]  # fmt: skip


class Stages:
    """Of each stage of a run: client before it waits, busiest worker (CPU s), and the clock."""

    def __init__(self, client: Any):
        self.client = client
        self.names: list[str] = []
        self.found: list[tuple[float, float, float]] = []
        self._mark()

    def _workers(self) -> np.ndarray:
        found = self.client.run(process_time)
        return np.array([found[name] for name in sorted(found)])

    def _mark(self) -> None:
        self.before, self.clock, self.mine = self._workers(), perf_counter(), thread_time()

    def around(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """The same method of a runner, with a stage for each call."""

        def timed(*arguments: Any) -> Any:
            client = thread_time() - self.mine
            out = original(*arguments)
            spent, clock = self._workers() - self.before, perf_counter() - self.clock
            self.names.append(original.__name__)
            self.found.append((client, float(spent.max()), clock))
            self._mark()
            return out

        return timed

    def without_idle(self) -> np.ndarray:
        """(stages, 2): client, and busiest worker but for what one without work takes."""
        client, busiest, clock = np.array(self.found).T
        share = idle_share(self.client)
        command.say(f"gross {busiest.sum():.1f}, an idle worker {share:.3f} of a processor")
        return np.column_stack([client, np.maximum(busiest - share * clock, 0.0)])


def idle_share(client: Any) -> float:
    """What a worker without work takes of a processor."""
    sleep(3.0)
    before, clock = client.run(process_time), perf_counter()
    sleep(5.0)
    after = client.run(process_time)
    return float(np.mean([after[k] - before[k] for k in before])) / (perf_counter() - clock)


def in_this_thread(_: Any, work: Callable[[Any], Any], items: Any) -> list[Any]:
    """In place of a pool of one thread, whose time would not be that of the client's own."""
    return [work(item) for item in items]


def on_workers(X: np.ndarray, y: np.ndarray) -> tuple[Any, list[str], np.ndarray]:
    """The result, and the stages of one run."""
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    import exactcv
    from exactcv.lowrank.passes.distributed import DaskRunner
    from exactcv.runtime.threads import Workers

    names = ("map", "joined", "small", "each")
    kept, pool = {name: getattr(DaskRunner, name) for name in names}, Workers.map
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        # One process has the rows at hand as well.
        rows = client.persist(da.from_array(X, chunks=(len(X) // 8, P)))
        wait(rows)
        client.run(lambda: __import__("exactcv.lowrank.method"))
        stages = Stages(client)
        try:
            Workers.map = in_this_thread  # type: ignore[method-assign]
            for name in names:
                setattr(DaskRunner, name, stages.around(kept[name]))
            options = OPTIONS | {"method_options": {"features": "memory"}}
            result = exactcv.cross_validate(rows, y, **options)
        finally:
            Workers.map = pool  # type: ignore[method-assign]
            for name in names:
                setattr(DaskRunner, name, kept[name])
        found = stages.without_idle()
    return result, stages.names, found


def row_of(n: int, repeats: int) -> list[str]:
    """One process and two workers in turn."""
    import exactcv

    (X, y), alone, least, load = draw(n, 1), np.inf, np.array(np.inf), os.getloadavg()[0]
    for _ in range(repeats):
        start = process_time()
        local = exactcv.cross_validate(X, y, **OPTIONS)
        alone = min(alone, process_time() - start)
        result, names, found = on_workers(X, y)
        least = np.minimum(least, found)
        command.say(f"one process {alone:.1f}; stages {found.sum(axis=0).round(1)}")
    both = np.array(names) == TOGETHER
    parts = [least[~both, 0].sum(), least[both].max(axis=1).sum(), least[~both, 1].sum()]
    path = sum(parts)
    moved = [f"{result.stats[name] / 1e6:.0f}" for name in ("bytes_sent", "bytes_received")]
    differ = int((result.wrong != local.wrong).sum())
    return [
        f"{n:,}", f"{alone:.1f}", *(f"{part:.1f}" for part in parts), f"{path:.1f}",
        f"{alone / path:.2f}", *moved, str(differ), f"{load:.1f}",
    ]  # fmt: skip


def main() -> None:
    parser = command.parser(__doc__, {}, FILE)
    parser.add_argument("--rows", type=int, nargs="+", default=[300_000])
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    lines = [row_of(n, args.repeats) for n in args.rows]
    body = f"`{command.command_line()}`\n\n{facts()}\n\n{markdown(HEAD, lines)}"
    print(body)
    if args.write:
        write_section(FILE, "dask", body, TITLE)


if __name__ == "__main__":
    main()
