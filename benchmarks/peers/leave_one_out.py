"""Leave-one-out rows: the papers' simulation (consolidated CV, section 4.1) and chess."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

import exactcv
from benchmarks.lib.data import is_there, read_rows, standardised
from benchmarks.lib.harness import (
    GRID_SIZE,
    Bar,
    Case,
    PeerRun,
    Report,
    Settings,
    Skip,
    contest,
    make_row,
)
from benchmarks.lib.ours import OurRun, run_ours

from .svc import kernel, plain_fits, support_vector_refits

LAMBDAS = np.exp(np.linspace(6.0, -6.0, GRID_SIZE))  # the papers' grid, and the default


def cases(settings: Settings) -> list[Case]:
    sizes = (200, 400) if settings.quick else (200, 400, 800, 1600)
    features = (20,) if settings.quick else (20, 200)
    found = [
        Case(f"loo-n{n}-p{p}", partial(_simulation, n=n, p=p)) for n in sizes for p in features
    ]
    n = 200 if settings.quick else 800
    return [
        *found,
        Case(f"refits-n{n}-p20", partial(_refits, n=n, p=20)),
        Case("chess", _chess),
        Case("growth", _growth),
    ]


def _both(X: np.ndarray, y: np.ndarray) -> dict[str, Callable[[], OurRun]]:
    outputs = ("decision", "error")
    return {output: partial(run_ours, X, y, output=output, n_jobs=1) for output in outputs}


def _simulation(settings: Settings, report: Report, n: int, p: int) -> None:
    X, y = exactcv.datasets.make_mixture(n, p, random_state=0)

    def peer(run: OurRun) -> Callable[[], PeerRun]:
        return partial(plain_fits, kernel(X, run.gamma), y, LAMBDAS)

    runs, fits = contest(_both(X, y), peer, settings.repeats(7 if n <= 800 else 4))
    bars = {"decision": Bar(1.5 if n < 1600 else 3.0), "error": Bar(0.5)}
    for output, run in runs.items():
        report.rows.append(make_row(f"LOO {output}, n={n}, p={p}", run, fits, bars[output]))


def _refits(settings: Settings, report: Report, n: int, p: int) -> None:
    X, y = exactcv.datasets.make_mixture(n, p, random_state=0)

    def peer(run: OurRun) -> Callable[[], PeerRun]:
        K = kernel(X, run.gamma)
        return partial(support_vector_refits, K, y, LAMBDAS, run.n_support)

    runs, fits = contest(
        {"decision": partial(run_ours, X, y, output="decision", n_jobs=1)},
        peer,
        settings.repeats(3),
    )
    bar = Bar(200, faster=True) if n == 800 else None
    work = f"LOO decision, n={n}, p={p}, against refits of the support vectors"
    report.rows.append(make_row(work, runs["decision"], fits, bar))


def _chess(settings: Settings, report: Report) -> None:
    X, y = _load_chess(settings)
    if settings.quick:
        rows = np.random.default_rng(0).permutation(len(y))[:400]
        X, y = X[rows], y[rows]
    X = standardised(X)

    def peer(run: OurRun) -> Callable[[], PeerRun]:
        return partial(plain_fits, kernel(X, run.gamma), y, LAMBDAS)

    runs, fits = contest(_both(X, y), peer, settings.repeats(2))
    for output, run in runs.items():
        bar = Bar(2.0) if output == "decision" and not settings.quick else None
        report.rows.append(make_row(f"LOO {output}, chess, n={len(y)}", run, fits, bar))


def _load_chess(settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """King-rook against king-pawn: from a file (37 columns and y = -1, 1), or from OpenML."""
    if settings.data is not None and is_there(settings.data, "chess"):
        return read_rows(settings.data, "chess")
    if not settings.fetch:
        raise Skip(
            "no chess.csv.gz: give its folder with --data or EXACTCV_DATA, or use --fetch to "
            "download kr-vs-kp from OpenML"
        )
    import pandas as pd
    from sklearn.datasets import fetch_openml

    try:
        chess = fetch_openml("kr-vs-kp", version=1, as_frame=True, parser="auto")
    except OSError as error:
        raise Skip(f"OpenML cannot be reached: {error}") from error
    X = pd.get_dummies(chess.data, drop_first=True).to_numpy(dtype=float)
    return X, np.where(chess.target == "won", 1.0, -1.0)


def _growth(settings: Settings, report: Report) -> None:
    """The slope of log time against log n."""
    sizes = (100, 200, 400) if settings.quick else (200, 400, 800, 1600)
    lines = ["| n | LOO decision (s) | LOO error (s) |", "|---|---|---|"]
    seconds = np.full((len(sizes), 2), np.inf)
    for _ in range(settings.repeats(3)):
        for k, n in enumerate(sizes):
            X, y = exactcv.datasets.make_mixture(n, 20, random_state=0)
            now = [run().seconds for run in _both(X, y).values()]
            seconds[k] = np.minimum(seconds[k], now)
    lines += [f"| {n} | {a:.3g} | {b:.3g} |" for n, (a, b) in zip(sizes, seconds, strict=True)]
    slopes = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
    lines.append(f"| **slope** | **{slopes[0]:.2f}** | **{slopes[1]:.2f}** |")
    title = "## How the time grows\n\np = 20, slope of log time against log n:\n\n"
    report.notes.append(title + "\n".join(lines))
