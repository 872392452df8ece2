"""10-fold rows, and the rows with n = 10,000."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import exactcv
from benchmarks.lib.harness import (
    GRID_SIZE,
    Bar,
    Case,
    PeerRun,
    Report,
    Row,
    Settings,
    Skip,
    contest,
    make_row,
)
from benchmarks.lib.ours import OurRun, run_alone, run_ours
from exactcv.runtime.memory import available_memory

from .leave_one_out import LAMBDAS
from .svc import k_fold_fits, kernel, plain_fits

WIDE = np.geomspace(1e3, 1e-3, GRID_SIZE)
FOLDS = 10
GB = 1e9


def cases(settings: Settings) -> list[Case]:
    small, large = (200, 1000) if settings.quick else (800, 10_000)
    bars = {20: Bar(100, faster=True), 1000: Bar(25, faster=True)}
    return [
        Case(f"kfold-n{small}-p20", partial(_small, n=small)),
        *(
            Case(f"kfold-n{large}-p{p}", partial(_large_k_fold, n=large, p=p, bar=bar))
            for p, bar in bars.items()
        ),
        Case(f"loo-n{large}-p20", partial(_large_loo, n=large, p=20)),
    ]


def _small(settings: Settings, report: Report, n: int) -> None:
    X, y = exactcv.datasets.make_mixture(n, 20, random_state=0)

    def peer(run: OurRun) -> Callable[[], PeerRun]:
        return partial(k_fold_fits, kernel(X, run.gamma), y, LAMBDAS, FOLDS)

    ours = {"error": partial(run_ours, X, y, cv=FOLDS, n_jobs=1)}
    runs, fits = contest(ours, peer, settings.repeats(5))
    bar = Bar(30, faster=True) if n == 800 else None
    report.rows.append(make_row(f"10-fold, n={n}, p=20", runs["error"], fits, bar))


def _large_k_fold(settings: Settings, report: Report, n: int, p: int, bar: Bar) -> None:
    work = f"10-fold, n={n:,}, p={p}, two threads"

    def peer(run: OurRun) -> Callable[[], PeerRun]:
        X, y = exactcv.datasets.make_mixture(n, p, random_state=0)
        return partial(k_fold_fits, kernel(X, run.gamma), y, WIDE, FOLDS, sample=10)

    run, fits = _large(settings, n, p, peer, cv=FOLDS, lambdas=WIDE.tolist())
    report.rows.append(make_row(work, run, fits, None if settings.quick else bar))
    if not settings.quick:  # where the matrix is small, the interpreter is most of the memory
        report.rows.append(_memory_row(work, run, n, Bar(3.5) if p == 1000 else None))


def _large_loo(settings: Settings, report: Report, n: int, p: int) -> None:
    work = f"LOO error, n={n:,}, p={p}, two threads"

    def peer(run: OurRun) -> Callable[[], PeerRun]:
        X, y = exactcv.datasets.make_mixture(n, p, random_state=0)
        return partial(plain_fits, kernel(X, run.gamma), y, LAMBDAS)

    run, fits = _large(settings, n, p, peer, cv="loo")
    report.rows.append(make_row(work, run, fits, None if settings.quick else Bar(0.5)))
    if not settings.quick:
        report.rows.append(_memory_row(work, run, n, None))


def _large(
    settings: Settings,
    n: int,
    p: int,
    peer: Callable[[OurRun], Callable[[], PeerRun]],
    **options: Any,
) -> tuple[OurRun, PeerRun]:
    """Ours in a process of its own on two threads; the peer's fits, one after the other, here."""
    needed = 6 * 8 * n**2  # ours at its peak, and the peer's matrix and slice of it
    available = available_memory()
    if available is not None and available < needed:
        raise Skip(f"needs {needed / GB:.1f} GB of memory, {available / GB:.1f} GB available")
    ours = {"ours": partial(run_alone, n, p, n_jobs=2, **options)}
    runs, fits = contest(ours, peer, settings.repeats(2))
    return runs["ours"], fits


def _memory_row(work: str, run: OurRun, n: int, bar: Bar | None) -> Row:
    assert run.peak_bytes is not None
    peak, matrix = run.peak_bytes / GB, 8 * n**2 / GB
    return Row(f"peak memory: {work}", peak, matrix, "the kernel matrix", bar, unit="GB")
