"""Magic LOO, Table 3: leave-one-out and 10-fold CV on half the rows of the benchmark data."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from sklearn.model_selection import KFold

from benchmarks.lib.comparison import METHODS, not_run, ours, run_peers
from benchmarks.lib.data import is_there, read_rows, standardised
from benchmarks.lib.kept_table import Row, Table, table
from benchmarks.lib.other_solvers import Job
from benchmarks.lib.results import bars, seconds

NAMES = ("hepatitis", "lsvt", "sonar", "arrhythmia", "musk", "valley", "australian")


def cases(args: Namespace) -> dict[str, Callable[[], Row]]:
    return {name: partial(one_set, args.data, name) for name in NAMES if is_there(args.data, name)}


def one_set(folder: str, name: str) -> Row:
    X, y = read_rows(folder, name)
    X = standardised(X)
    train = np.sort(np.random.default_rng(0).permutation(len(y))[: len(y) // 2])
    X, y = X[train], y[train]
    row: Row = {"shape": list(X.shape), "skipped": []}
    for label, folds in (("LOO", 0), ("10-fold", 10)):
        cv = KFold(folds) if folds else "loo"
        found = {
            name: ours(X, y, name, cv=cv, fit_intercept=False, tol=1e-6)
            for name in ("magic", "exact")
        }
        magic, exact = found["magic"][1], found["exact"][1]
        job = Job(X, y, exact.gamma, exact.best, folds or len(y))
        fits, skipped = run_peers(job, ("TorchKM",))
        row["skipped"] += skipped
        row[label] = {k: v[0] for k, v in found.items()} | {k: f.seconds for k, f in fits.items()}
        row[f"{label} decision"] = float(np.abs(magic.decision - exact.decision).max())
        row[f"{label} fallback"] = magic.stats["fallback"]
    return row


def body(rows: dict[str, Row]) -> Iterable[str]:
    parts = []
    for label in ("LOO", "10-fold"):
        cells = []
        for name, row in rows.items():
            line = {label: f"{name} ({row['shape'][0]} x {row['shape'][1]})"}
            for k, v in row[label].items():
                line[k] = seconds(v) + ("" if k in METHODS else "*")
            line["decision values differ by"] = f"{row[f'{label} decision']:.0e}"
            line["fallback"] = str(row[f"{label} fallback"])
            cells.append(line)
        parts.append(table(cells))
    return [
        *parts,
        "CPU seconds for 50 lambdas on half of the rows (training rows x features), one split, "
        "one thread; no intercept on our side (as in the paper); * estimated from a sample, peers "
        f"as in Table 1 of consolidated CV. {not_run(rows)}",
    ]


def figure(key: str, rows: dict[str, Row]) -> None:
    series = {
        f"{label} {name}": [row[label][name] for row in rows.values()]
        for label in ("LOO", "10-fold")
        for name in ("magic", "kernlab", "LIBSVM -v")
        if all(name in row[label] for row in rows.values())
    }
    bars(key, list(rows), series, "CPU seconds, 50 lambdas")


TABLE = Table("magic_loo_table3", "Magic LOO, Table 3", cases, body, figure)

if __name__ == "__main__":
    TABLE.main(__doc__)
