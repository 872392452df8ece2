"""Errors at every C against errors at many single values of C.

    python -m tests.campaign.every_c --data DIR [--sets heart sonar ...] [--count 10000]
        [--rows plain repeated] [--keep DIR] [--refit]

The papers' simulation (n = 400, p = 20), real sets of DIR (standardised), and each with a tenth of
its rows repeated (every other of these with the other label); leave-one-out and 10-fold.

- At ``--count`` random C, log-uniform from 1e-3 to 1e3, the number of errors on the path must equal
  that of ``cross_validate``.
- A little below and above every breakpoint (1e-9, relative) the problem is solved afresh: the
  number of errors must be what the path says on both sides, and other rows must be wrong.
- With ``--refit`` the same for every row that changes, its training set solved by ``refit``.

With ``--keep`` the counts at random C are kept in a folder, a few hundred at a time: a run that was
stopped goes on from there, and one after a change of ``error_path`` needs no new counts.

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
from sklearn.model_selection import LeaveOneOut, StratifiedKFold

import exactcv

SETS = ("simulation", "heart", "sonar", "australian", "breast_cancer")
ROWS = ("plain", "repeated")
LOW, HIGH = 1e-3, 1e3
BESIDE = 1e-9
AT_A_TIME = 250
UNKNOWN = -1


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


def runs(X: np.ndarray, y: np.ndarray, Cs: np.ndarray, cv: Any) -> Iterator[tuple[Any, Any]]:
    """Results at single values of C, some at a time, and which these are.

    Neighbours go together: a solution starts from that of the C before.
    """
    order = np.argsort(Cs, kind="stable")
    for first in range(0, len(Cs), AT_A_TIME):
        some = order[first : first + AT_A_TIME]
        yield some, exactcv.cross_validate(X, y, Cs=Cs[some], cv=cv, n_jobs=1)


def kept_counts(X: np.ndarray, y: np.ndarray, Cs: np.ndarray, cv: Any, file: Path | None) -> Any:
    """The same as one array; those in ``file`` are taken from there, new ones added to it."""
    found = np.full(len(Cs), UNKNOWN)
    if file is not None and file.exists():
        with np.load(file) as stored:
            known = min(len(stored["found"]), len(Cs))
            found[:known] = stored["found"][:known]
            if not np.array_equal(stored["Cs"][:known], Cs[:known]):
                raise SystemExit(f"{file} is of other values of C")
    todo = np.flatnonzero(found == UNKNOWN)
    for some, result in runs(X, y, Cs[todo], cv):
        found[todo[some]] = result.n_errors
        if file is not None:
            np.savez(file, found=found, Cs=Cs)
    return found


def around(Cs: np.ndarray) -> np.ndarray:
    """(2, m): a little below and a little above."""
    return np.array([Cs * (1.0 - BESIDE), Cs * (1.0 + BESIDE)])


def beside(X: np.ndarray, y: np.ndarray, path: Any, cv: Any) -> tuple[int, int]:
    """How many breakpoints are not where they are said to be, and of how many."""
    sides = around(path.breakpoints)
    sides = sides[:, (sides[0] > LOW) & (sides[1] < HIGH)]
    if not sides.size:
        return 0, 0
    counts, wrong = np.empty(sides.size, dtype=np.intp), np.empty((sides.size, len(y)), dtype=bool)
    for some, result in runs(X, y, sides.ravel(), cv):
        counts[some], wrong[some] = result.n_errors, result.wrong
    counts, (below, above) = counts.reshape(2, -1), np.split(wrong, 2)
    off = (counts != path.at(sides)).any(axis=0) | (below == above).all(axis=1)
    return int(off.sum()), len(off)


def refitted(X: np.ndarray, y: np.ndarray, path: Any, cv: Any) -> tuple[int, int]:
    """How many rows do not change where they are said to, their training sets solved afresh."""
    sides, off = around(path.changed_at), 0
    folds = list(read_folds(X, y, cv))
    of = {int(row): fold for fold in folds for row in fold[1]}
    inside = np.flatnonzero((sides[0] > LOW) & (sides[1] < HIGH))
    for k in inside:
        row, (train, _) = path.changed_row[k], of[int(path.changed_row[k])]
        one = exactcv.cross_validate(
            X, y, Cs=sides[:, k], cv=[(train, [row])], method="refit", gamma=path.gamma, n_jobs=1
        )
        after = bool(path.changed_wrong[k])
        off += one.n_errors.tolist() != [int(not after), int(after)]
    return off, len(inside)


def read_folds(X: np.ndarray, y: np.ndarray, cv: Any) -> Iterator[Any]:
    splitter = LeaveOneOut() if cv == "loo" else StratifiedKFold(cv)
    yield from splitter.split(X, y)


def check(
    X: np.ndarray, y: np.ndarray, cv: Any, count: int, file: Path | None, refit: bool
) -> tuple[str, int]:
    """What one case gives, and how many counts differ."""
    rng = np.random.default_rng(0)
    Cs = np.exp(rng.uniform(np.log(LOW), np.log(HIGH), count))
    expected = kept_counts(X, y, Cs, cv, file)
    start = time.process_time()
    path = exactcv.error_path(X, y, C_range=(LOW, HIGH), cv=cv, n_jobs=1)
    seconds = time.process_time() - start
    differ = int((expected != path.at(Cs)).sum())
    off, of = beside(X, y, path, cv)
    text = (
        f"{len(path.breakpoints)} breakpoints, {seconds:.1f} s, certificate exact: "
        f"{path.certificate.exact}; {differ} of {count} counts differ; {off} of {of} breakpoints "
        "not where they should be"
    )
    if refit:
        other, of = refitted(X, y, path, cv)
        text, off = f"{text}; {other} of {of} rows refitted differ", off + other
    return text, differ + off + (not path.certificate.exact)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path())
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--cv", nargs="+", default=("loo", "10"))
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=ROWS)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--refit", action="store_true")
    given = parser.parse_args(arguments)
    if given.keep is not None:
        given.keep.mkdir(parents=True, exist_ok=True)
    wrong = 0
    for name in given.sets:
        for rows in given.rows:
            X, y = load(given.data, name)
            if rows == "repeated":
                X, y = repeated(X, y)
            for cv in given.cv:
                case = name if rows == "plain" else f"{name}_{rows}"
                file = None if given.keep is None else given.keep / f"{case}_{cv}.npz"
                folds = "loo" if cv == "loo" else int(cv)
                text, bad = check(X, y, folds, given.count, file, given.refit)
                wrong += bad
                kind = f"{case}, n = {len(y)}, {cv}"
                print(f"{kind}: {text}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
