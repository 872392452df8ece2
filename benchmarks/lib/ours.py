"""Our side: ``cross_validate`` from the raw data, with all that a user pays for.

Run as a module it measures one cross-validation in a process of its own, so that the peak memory is
that of the library and nothing else.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import exactcv

from .command import run_module

HOW = ("unchanged", "bound", "solved", "fallback")


@dataclass(frozen=True)
class OurRun:
    """The time of one run, and what its result says of itself."""

    seconds: float
    gamma: float
    kkt: float
    gap: float
    exact: bool
    settled: dict[str, int]
    timings: dict[str, float]
    n_support: list[int]  # of the full-data fit, along the grid
    peak_bytes: int | None = None

    @property
    def settled_shares(self) -> str:
        total = max(sum(self.settled.values()), 1)
        return ", ".join(f"{how} {n / total:.0%}" for how, n in self.settled.items() if n)


def run_ours(X: np.ndarray, y: np.ndarray, **options: Any) -> OurRun:
    """Time one call; BLAS on one thread (``n_jobs`` threads of our own).

    The papers' grid, if no other is asked for.
    """
    options = options if {"Cs", "lambdas"} & options.keys() else {"lambdas": 50} | options
    with threadpool_limits(limits=1):
        start = perf_counter()
        result = exactcv.cross_validate(X, y, **options)
        seconds = perf_counter() - start
    certificate = result.certificate
    return OurRun(
        seconds=seconds,
        gamma=float(result.gamma),
        kkt=float(certificate.kkt.max()),
        gap=float(certificate.gap.max()),
        exact=certificate.exact,
        settled={how: int(result.stats[how]) for how in HOW},
        timings={name: float(value) for name, value in result.timings.items()},
        n_support=np.count_nonzero(result.coef, axis=1).tolist(),
    )


def run_alone(n: int, p: int, **options: Any) -> OurRun:
    """The same on the papers' simulation in a fresh process, with its peak memory."""
    job = json.dumps({"n": n, "p": p, "options": options})
    return OurRun(**json.loads(run_module("benchmarks.lib.ours", job)))


def peak_memory() -> int:
    """The largest resident size of this process so far, in bytes.

    On Linux not from getrusage: that figure is inherited from the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


def warm_up() -> None:
    """Load everything that is loaded on first use."""
    X, y = exactcv.datasets.make_mixture(60, 4, random_state=0)
    for cv in ("loo", 3):
        exactcv.cross_validate(X, y, lambdas=3, cv=cv, output="decision")


def main(job: str) -> None:
    what = json.loads(job)
    warm_up()
    X, y = exactcv.datasets.make_mixture(what["n"], what["p"], random_state=0)
    run = run_ours(X, y, **what["options"])
    print(json.dumps(asdict(run) | {"peak_bytes": peak_memory()}))


if __name__ == "__main__":
    main(sys.argv[1])
