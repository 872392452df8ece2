"""What a user waits for and what it takes: is the time left right, and how much memory is used?

    python -m benchmarks.users.waiting --data DIR [--parts NAME ...] [--rows ROW ...] [--write]

*Time left*: what the progress says once a tenth of the work is done, beside what was still to come,
and the worst ratio of the two from there to nine tenths.  The clock of the progress is the CPU time
of this process (one thread), so that other work on the machine counts for nothing.

*Memory*: peak of a fresh process above that of a run with 60 rows, over the size of the kernel
matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np

import exactcv
from benchmarks.lib.data import read_rows, standardised
from benchmarks.lib.ours import run_alone
from benchmarks.lib.parts import Part, run_parts
from exactcv.runtime import progress

FILE, TITLE = "waiting", "Waiting: the time left, and memory"
N = 3000
USERS = np.geomspace(1e-2, 1e3, 11).tolist()


class Notes:
    """A screen that keeps what it is shown: share of the work, seconds so far, seconds left."""

    def __init__(self) -> None:
        self.shown: list[tuple[float, float, float | None]] = []
        self._start = process_time()
        self.end = 0.0

    def say(self, text: str) -> None:
        """Stages are not kept."""

    def draw(self, fraction: float, seconds: float, left: float | None) -> None:
        self.shown.append((fraction, seconds, left))

    def close(self, text: str) -> None:
        self.end = process_time() - self._start


def watched(work: Callable[[], Any]) -> Notes:
    """The work with its progress on a screen that takes notes."""
    notes: list[Notes] = []

    def screen(file: Any = None) -> Notes:
        notes.append(Notes())
        return notes[-1]

    vars(progress).update(monotonic=process_time, choose_screen=screen)
    work()
    return notes[0]


def told(notes: Notes) -> list[str]:
    """What is said after a tenth of the work, what was true, and the worst from there on."""
    said = [
        (fraction, left, notes.end - seconds)
        for fraction, seconds, left in notes.shown
        if 0.1 <= fraction <= 0.9 and left is not None
    ]
    ratios = [left / true for _, left, true in said]
    fraction, left, true = said[0]
    return [
        f"{notes.end:.1f}",
        f"{fraction:.0%}, {notes.end - true:.1f}",
        f"{left:.1f}",
        f"{true:.1f}",
        f"{ratios[0]:.2f}",
        f"{min(ratios):.2f} to {max(ratios):.2f}",
    ]


def classes(name: str, **settings: Any) -> Callable[[str], list[str]]:
    """``SVCCV`` on one of the data sets."""

    def row(data: str) -> list[str]:
        X, y = read_rows(data, name)
        model = exactcv.SVCCV(verbose=1, random_state=0, **settings)
        return told(watched(lambda: model.fit(standardised(X), y)))

    return row


def numbers(name: str, **settings: Any) -> Callable[[str], list[str]]:
    """``SVRCV`` on one of the data sets."""

    def row(data: str) -> list[str]:
        X, y = read_rows(f"{data}/regression", name)
        model = exactcv.SVRCV(verbose=1, **settings)
        return told(watched(lambda: model.fit(standardised(X), y)))

    return row


def memory(**options: Any) -> Callable[[str], list[str]]:
    """One run of the simulation, with as many rows as columns suit."""

    def row(data: str) -> list[str]:
        empty = run_alone(60, 20, **options).peak_bytes
        run = run_alone(N, 20, **options)
        assert empty is not None and run.peak_bytes is not None
        kernel = 8 * N * N
        above = run.peak_bytes - empty
        return [f"{above / 1e6:.0f}", f"{kernel / 1e6:.0f}", f"{above / kernel:.2f}"]

    return row


PARTS = {
    "time_left": Part(
        "The time left, said after a tenth of the work (CPU seconds)",
        ["job", "whole job", "said at, after", "said to be left", "was left", "ratio",
         "ratio until nine tenths"],
        {
            "pima, leave-one-out, default grid": classes("pima"),
            "a1a, 5 folds, default grid": classes("a1a", cv=5),
            "a1a, leave-one-out, default grid": classes("a1a"),
            "a9a_5000, 5 folds, 11 C, three gammas": classes(
                "a9a_5000", cv=5, Cs=USERS, gamma=[0.001, 0.01, 0.1]
            ),
            "madelon, leave-one-out, 11 C, one gamma": classes("madelon", Cs=USERS, gamma=0.002),
            "concrete, numbers, leave-one-out, default grid": numbers("concrete"),
            "a9a_5000, 200 Nystroem features, 5 folds": classes(
                "a9a_5000", cv=5, approx="nystroem", n_components=200
            ),
        },
    ),
    "memory": Part(
        f"Peak memory with {N} rows, above that of a run with 60 (MB)",
        ["run", "peak", "kernel matrix", "ratio"],
        {
            "papers' grid, leave-one-out, labels": memory(lambdas=50),
            "papers' grid, leave-one-out, values": memory(lambdas=50, output="decision"),
            "C 1e-2 to 1e3, leave-one-out, labels": memory(Cs=USERS),
            "C 1e-2 to 1e3, leave-one-out, values": memory(Cs=USERS, output="decision"),
            "the same, every row free (gamma 10/p)": memory(Cs=USERS, gamma=0.5, output="decision"),
            "C 1e-2 to 1e3, 5 folds": memory(Cs=USERS, cv=5),
            "the same, gamma 10/p": memory(Cs=USERS, gamma=0.5, cv=5),
            "method='refit', 5 folds, C 0.01 to 1": memory(Cs=[0.01, 1.0], cv=5, method="refit"),
            "method='magic', leave-one-out, 2 C": memory(Cs=[0.01, 0.1], method="magic"),
        },
    ),
}  # fmt: skip


if __name__ == "__main__":
    run_parts(__doc__, FILE, TITLE, PARTS)
