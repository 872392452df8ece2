"""Consolidated CV, Table 2: time on the benchmark data, nine tenths of the rows for training."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from benchmarks.lib.comparison import compare, comparison, not_run, time_bars
from benchmarks.lib.data import is_there, read_rows, standardised
from benchmarks.lib.kept_table import Row, Table

NAMES = ("leuk", "sonar", "heart", "arrhythmia", "musk", "valley", "australian")
LARGE = ("chess",)


def cases(args: Namespace) -> dict[str, Callable[[], Row]]:
    names = [*NAMES, *LARGE] if args.full else NAMES
    runs = 50 if args.full else 1
    return {
        name: partial(one_set, args.data, name, runs) for name in names if is_there(args.data, name)
    }


def one_set(folder: str, name: str, runs: int) -> Row:
    X, y = read_rows(folder, name)
    X = standardised(X)
    draws = []
    for seed in range(runs if len(y) < 1000 else 1):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = np.sort(order[: int(0.9 * len(y))]), order[int(0.9 * len(y)) :]
        draws.append((X[train], y[train], X[test], y[test]))
    row = compare(draws, ("TorchKM",) if len(y) > 1000 else ())
    return row | {"shape": [len(draws[0][1]), X.shape[1]]}


def body(rows: dict[str, Row]) -> Iterable[str]:
    named = {f"{name} ({row['shape'][0]} x {row['shape'][1]})": row for name, row in rows.items()}
    return [
        *comparison(named),
        "As in Table 1, on nine tenths of the rows (training rows x features in brackets); "
        "features standardised; the test error is that of the other tenth. Missing: "
        f"malaria (not found); chess unless with --full. {not_run(rows)}",
    ]


TABLE = Table("consolidated_cv_table2", "Consolidated CV, Table 2", cases, body, time_bars)

if __name__ == "__main__":
    TABLE.main(__doc__)
