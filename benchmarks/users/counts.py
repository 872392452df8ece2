"""How much work a run takes, in counts that do not depend on the machine.

    python -m benchmarks.users.counts [--write]

Events of drives, solves of block steps, folds that had to be solved or fell back, over C from 1e-2
to 1e3 on data that come with the library and with scikit-learn.  ``--write`` records them as those
of this release (results/counts.json); the tests compare with the record.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, load_digits

import exactcv

RECORD = Path(__file__).resolve().parents[1] / "results" / "counts.json"
Cs = np.geomspace(1e-2, 1e3, 11)
COUNTED = ("events", "path_solves", "fold_solves", "solved", "fallback")
# Rounding may turn an event into two; more than this is another algorithm.
FACTOR, SLACK = 1.25, 20


def cancer(gamma: float, **settings: Any) -> dict[str, Any]:
    X, y = exactcv.datasets.load_breast_cancer()
    return exactcv.cross_validate(X, y, Cs=Cs, gamma=gamma / 30, **settings).stats


def repeated_rows(**settings: Any) -> dict[str, Any]:
    """Digits in four grey levels, few pixels: most rows have twins."""
    X, y = load_digits(return_X_y=True)
    X = np.round(X[:600, 18:46:7] / 5.0)
    return exactcv.cross_validate(X, np.where(y[:600] < 5, -1, 1), Cs=Cs, **settings).stats


def diabetes(**settings: Any) -> dict[str, Any]:
    X, y = load_diabetes(return_X_y=True)
    loss = {"loss": "epsilon_insensitive", "epsilon": 0.3}
    y = (y - y.mean()) / y.std()
    return exactcv.cross_validate(X[:200] * 20, y[:200], Cs=Cs, **loss, **settings).stats


WORKS: dict[str, Callable[[], dict[str, Any]]] = {
    "LOO labels, gamma 0.1/p": lambda: cancer(0.1),
    "LOO labels, gamma 1/p": lambda: cancer(1.0),
    "LOO labels, gamma 10/p": lambda: cancer(10.0),
    "LOO values, gamma 1/p": lambda: cancer(1.0, output="decision"),
    "5-fold, gamma 0.1/p": lambda: cancer(0.1, cv=5),
    "5-fold, gamma 1/p": lambda: cancer(1.0, cv=5),
    "5-fold, gamma 10/p": lambda: cancer(10.0, cv=5),
    "LOO labels, repeated rows": repeated_rows,
    "5-fold, repeated rows": lambda: repeated_rows(cv=5),
    "LOO values, regression": diabetes,
}


def counts(work: str) -> dict[str, int]:
    """What one of the works takes."""
    stats = WORKS[work]()
    return {name: int(np.sum(stats[name])) for name in COUNTED if name in stats}


def too_much(now: dict[str, int], before: dict[str, int]) -> dict[str, tuple[int, int]]:
    """The counts that have grown beyond what rounding can do: (now, before).

    Examples
    --------
    >>> too_much({"events": 130, "solved": 900}, {"events": 100, "solved": 700})
    {'solved': (900, 700)}
    """
    return {
        name: (now.get(name, 0), most)
        for name, most in before.items()
        if now.get(name, 0) > FACTOR * most + SLACK
    }


def recorded() -> dict[str, dict[str, int]]:
    """Those of the last release."""
    found: dict[str, dict[str, int]] = json.loads(RECORD.read_text(encoding="utf-8"))["counts"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="record them as this release's")
    write = parser.parse_args().write
    found = {work: counts(work) for work in WORKS}
    before = recorded() if RECORD.exists() else {}
    for work, now in found.items():
        print(f"{work}: {now} {too_much(now, before.get(work, {})) or ''}")
    if write:
        record = {"version": version("exactcv"), "counts": found}
        RECORD.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
