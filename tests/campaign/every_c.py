"""Errors at every C against errors at many single values of C.

    python -m tests.campaign.every_c --data DIR [--sets heart sonar ...] [--count 10000]
        [--rows plain repeated weighted] [--most 300] [--keep DIR] [--refit]

The papers' simulation (n = 400, p = 20), real sets of DIR (standardised), wine and iris (three
classes), and each with a tenth of its rows repeated (every other of these with another label), or
with random weights, some of them 0; leave-one-out and 10-fold.  ``--most`` draws so many rows.

- At ``--count`` random C, log-uniform from 1e-3 to 1e3, the number of errors on the path must equal
  that of ``cross_validate``, or of ``SVCCV`` where there are several classes.
- A little below and above every breakpoint (1e-9, relative) the problem is solved afresh: the
  number of errors must be what the path says on both sides, and other rows must be wrong (of
  several classes: the number must be another).
- With ``--refit`` the same for every row that changes, its training set solved by ``refit`` (two
  classes, without weights).

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
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import LeaveOneOut, StratifiedKFold

import exactcv

SETS = ("simulation", "heart", "sonar", "australian", "breast_cancer")
ROWS = ("plain", "repeated")
THREE_CLASSES = {"wine": load_wine, "iris": load_iris}
LOW, HIGH = 1e-3, 1e3
BESIDE = 1e-9
AT_A_TIME = 250
UNKNOWN = -1


def load(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Standardised features and labels."""
    if name == "simulation":
        return exactcv.datasets.make_mixture(400, 20, random_state=0)
    if name in THREE_CLASSES:
        X, y = THREE_CLASSES[name](return_X_y=True)
    elif name == "breast_cancer":
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
    classes = np.unique(y)
    other = classes[(np.searchsorted(classes, y) + 1) % len(classes)]
    again = np.where(np.arange(len(rows)) % 2, other[rows], y[rows])
    return np.concatenate([X, X[rows]]), np.concatenate([y, again])


class Case(NamedTuple):
    """Rows and folds."""

    X: np.ndarray
    y: np.ndarray
    cv: Any
    weight: np.ndarray | None = None

    def path(self) -> Any:
        more = {"cv": self.cv, "sample_weight": self.weight, "n_jobs": 1}
        return exactcv.error_path(self.X, self.y, C_range=(LOW, HIGH), **more)

    def runs(self, Cs: np.ndarray) -> Iterator[tuple[Any, Any, Any]]:
        """Counts of errors at single values of C, some at a time; first, which these are.

        The last are the rows that are wrong; None for several classes.  Neighbours go together: a
        solution starts from that of the C before.
        """
        order = np.argsort(Cs, kind="stable")
        for first in range(0, len(Cs), AT_A_TIME):
            some = order[first : first + AT_A_TIME]
            if len(np.unique(self.y)) > 2:
                model = exactcv.SVCCV(Cs=Cs[some], cv=self.cv)
                model.fit(self.X, self.y, sample_weight=self.weight)
                yield some, model.cv_results_["n_errors"], None
            else:
                more = {"cv": self.cv, "sample_weight": self.weight, "n_jobs": 1}
                found = exactcv.cross_validate(self.X, self.y, Cs=Cs[some], **more)
                yield some, found.n_errors, found.wrong


def weights(y: np.ndarray) -> np.ndarray:
    """Of each row; every 20th has none."""
    weight = np.random.default_rng(2).uniform(0.1, 3.0, len(y))
    weight[::20] = 0.0
    return weight


def kept_counts(case: Case, Cs: np.ndarray, file: Path | None) -> Any:
    """Of each C; those in ``file`` are taken from there, new ones added to it."""
    found = np.full(len(Cs), UNKNOWN)
    if file is not None and file.exists():
        with np.load(file) as stored:
            known = min(len(stored["found"]), len(Cs))
            found[:known] = stored["found"][:known]
            if not np.array_equal(stored["Cs"][:known], Cs[:known]):
                raise SystemExit(f"{file} is of other values of C")
    todo = np.flatnonzero(found == UNKNOWN)
    for some, counts, _ in case.runs(Cs[todo]):
        found[todo[some]] = counts
        if file is not None:
            np.savez(file, found=found, Cs=Cs)
    return found


def around(Cs: np.ndarray) -> np.ndarray:
    """(2, m): a little below and a little above."""
    return np.array([Cs * (1.0 - BESIDE), Cs * (1.0 + BESIDE)])


def beside(case: Case, path: Any) -> tuple[int, int]:
    """How many breakpoints are not where they are said to be, and of how many."""
    sides = around(path.breakpoints)
    sides = sides[:, (sides[0] > LOW) & (sides[1] < HIGH)]
    if not sides.size:
        return 0, 0
    counts, wrong = np.empty(sides.size, dtype=np.intp), {}
    for some, found, of_rows in case.runs(sides.ravel()):
        counts[some] = found
        wrong |= {} if of_rows is None else dict(zip(some.tolist(), of_rows, strict=True))
    counts, n = counts.reshape(2, -1), sides.shape[1]
    same = counts[0] == counts[1]
    if wrong:
        same = np.array([np.array_equal(wrong[k], wrong[n + k], equal_nan=True) for k in range(n)])
    off = (counts != path.at(sides)).any(axis=0) | same
    return int(off.sum()), len(off)


def refitted(case: Case, path: Any) -> tuple[int, int]:
    """How many rows do not change where they are said to, their training sets solved afresh."""
    X, y, cv, _ = case
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


def check(case: Case, count: int, file: Path | None, refit: bool) -> tuple[str, int]:
    """What one case gives, and how many counts differ."""
    rng = np.random.default_rng(0)
    Cs = np.exp(rng.uniform(np.log(LOW), np.log(HIGH), count))
    expected = kept_counts(case, Cs, file)
    start = time.process_time()
    path = case.path()
    seconds = time.process_time() - start
    differ = int((expected != path.at(Cs)).sum())
    off, of = beside(case, path)
    text = (
        f"{len(path.breakpoints)} breakpoints, {seconds:.1f} s, certificate exact: "
        f"{path.certificate.exact}; {differ} of {count} counts differ; {off} of {of} breakpoints "
        "not where they should be"
    )
    if refit and case.weight is None and len(np.unique(case.y)) == 2:
        other, of = refitted(case, path)
        text, off = f"{text}; {other} of {of} rows refitted differ", off + other
    return text, differ + off + (not path.certificate.exact)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path())
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--cv", nargs="+", default=("loo", "10"))
    parser.add_argument("--rows", nargs="+", choices=(*ROWS, "weighted"), default=ROWS)
    parser.add_argument("--most", type=int)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--refit", action="store_true")
    given = parser.parse_args(arguments)
    if given.keep is not None:
        given.keep.mkdir(parents=True, exist_ok=True)
    wrong = 0
    for name in given.sets:
        for rows in given.rows:
            X, y = load(given.data, name)
            if given.most is not None:
                drawn = np.sort(np.random.default_rng(3).permutation(len(y))[: given.most])
                X, y = X[drawn], y[drawn]
            if rows == "repeated":
                X, y = repeated(X, y)
            for cv in given.cv:
                case = name if rows == "plain" else f"{name}_{rows}"
                file = None if given.keep is None else given.keep / f"{case}_{cv}.npz"
                folds = "loo" if cv == "loo" else int(cv)
                one = Case(X, y, folds, weights(y) if rows == "weighted" else None)
                text, bad = check(one, given.count, file, given.refit)
                wrong += bad
                kind = f"{case}, n = {len(y)}, {cv}"
                print(f"{kind}: {text}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
