"""Errors at every C against errors at many single values of C.

    python -m tests.campaign.every_c --data DIR [--sets heart sonar ...] [--count 10000]

The papers' simulation (n = 400, p = 20), real sets of DIR (standardised), and each with a tenth of
its rows repeated (every other of these with the other label); leave-one-out and 10-fold.

- At ``--count`` random C, log-uniform from 1e-3 to 1e3, the number of errors on the path must equal
  that of ``cross_validate``.
- A little below and above every breakpoint (1e-9, relative) the problem is solved afresh: the
  number of errors must be what the path says on both sides.

A line for each case; the exit status is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import exactcv

SETS = ("simulation", "heart", "sonar", "australian", "breast_cancer")
LOW, HIGH = 1e-3, 1e3
BESIDE = 1e-9
AT_A_TIME = 250


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Standardised features and labels."""
    if name == "simulation":
        return exactcv.datasets.make_mixture(400, 20, random_state=0)
    if name == "breast_cancer":
        with np.load(folder / "ida" / f"{name}.npz") as stored:
            X, y = stored["x"].astype(float), stored["t"].ravel()
    else:
        table = np.loadtxt(folder / f"{name}.csv.gz", delimiter=",", skiprows=1)
        X, y = table[:, :-1], table[:, -1]
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0), y


def repeated(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A tenth of the rows once more, every other with the other label."""
    rows = np.random.default_rng(1).permutation(len(y))[: len(y) // 10]
    first, second = np.unique(y)
    other = np.where(y == first, second, first)
    again = np.where(np.arange(len(rows)) % 2, other[rows], y[rows])
    return np.concatenate([X, X[rows]]), np.concatenate([y, again])


def counts(X: np.ndarray, y: np.ndarray, Cs: np.ndarray, cv: Any) -> Iterator[np.ndarray]:
    """Errors at single values of C, in their order."""
    for first in range(0, len(Cs), AT_A_TIME):
        some = Cs[first : first + AT_A_TIME]
        yield exactcv.cross_validate(X, y, Cs=some, cv=cv, n_jobs=1).n_errors


def check(X: np.ndarray, y: np.ndarray, cv: Any, count: int) -> tuple[str, int]:
    """What one case gives, and how many counts differ."""
    start = time.process_time()
    path = exactcv.error_path(X, y, C_range=(LOW, HIGH), cv=cv, n_jobs=1)
    seconds = time.process_time() - start
    rng = np.random.default_rng(0)
    Cs = np.exp(rng.uniform(np.log(LOW), np.log(HIGH), count))
    differ = int((np.concatenate(list(counts(X, y, Cs, cv))) != path.at(Cs)).sum())
    below, above = path.breakpoints * (1.0 - BESIDE), path.breakpoints * (1.0 + BESIDE)
    beside = np.concatenate([below, above])
    beside = beside[(beside > LOW) & (beside < HIGH)]
    found = np.concatenate(list(counts(X, y, beside, cv))) if len(beside) else beside
    off = int((found != path.at(beside)).sum())
    text = (
        f"{len(path.breakpoints)} breakpoints, {seconds:.1f} s, certificate exact: "
        f"{path.certificate.exact}; {differ} of {count} counts differ; {off} of {len(beside)} "
        "beside breakpoints differ"
    )
    return text, differ + off + (not path.certificate.exact)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path())
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--cv", nargs="+", default=("loo", "10"))
    given = parser.parse_args(arguments)
    wrong = 0
    for name in given.sets:
        for more in (False, True):
            X, y = load(given.data, name)
            if more:
                X, y = repeated(X, y)
            for cv in given.cv:
                text, bad = check(X, y, "loo" if cv == "loo" else int(cv), given.count)
                wrong += bad
                kind = f"{name}{' repeated' if more else ''}, n = {len(y)}, {cv}"
                print(f"{kind}: {text}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
