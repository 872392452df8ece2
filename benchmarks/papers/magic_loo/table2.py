"""Magic LOO, Table 2: leave-one-out, 10-, 5- and 2-fold CV as estimators of the error."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

import exactcv
from benchmarks.lib.data import N_TEST, simulation
from benchmarks.lib.kept_table import Row, Table, table
from benchmarks.lib.results import bars

from . import MAGIC

SCHEMES = {"LOO": 0, "10": 10, "5": 5, "2": 2}
LAMBDAS = np.exp(np.linspace(6, -6, 10))


def cases(args: Namespace) -> dict[str, Callable[[], Row]]:
    """50 runs are the paper's; 500 tell what of it is chance."""
    method = "magic" if args.full else "exact"
    sizes = (100, 200, 300, 400)
    rows = [(n, 50, method) for n in sizes]
    rows += [(n, 500, "exact") for n in (sizes if args.full else sizes[:2])]
    return {f"n={n},runs={runs}": partial(one_size, n, runs, how) for n, runs, how in rows}


def one_size(n: int, runs: int, method: str) -> Row:
    """Bias, standard deviation and root mean squared error of each scheme."""
    estimates = {name: np.zeros((runs, len(LAMBDAS))) for name in SCHEMES}
    truth = np.zeros((runs, len(LAMBDAS)))
    for seed in range(runs):
        X, y, X_test, y_test = simulation(n, n // 5, seed, balanced=False, **MAGIC)
        for name, folds in SCHEMES.items():
            cv = KFold(folds, shuffle=True, random_state=seed) if folds else "loo"
            options = {"lambdas": LAMBDAS, "cv": cv, "fit_intercept": False}
            with threadpool_limits(limits=1):
                result = exactcv.cross_validate(X, y, method=method, **options)
                if seed == 0 and method != "magic":
                    same = exactcv.cross_validate(X, y, method="magic", **options)
                    assert (same.n_errors == result.n_errors).all()
            estimates[name][seed] = 100 * result.error
        f = rbf_kernel(X_test, X, gamma=result.gamma) @ result.coef.T + result.intercept
        truth[seed] = 100 * np.mean(y_test[:, None] * f <= 0, axis=0)
    off = {name: value - truth for name, value in estimates.items()}
    return {
        "bias": {k: float(v.mean()) for k, v in off.items()},
        "its standard error": {
            k: float(v.mean(axis=1).std(ddof=1) / np.sqrt(runs)) for k, v in off.items()
        },
        "sd": {k: float(v.std(axis=0, ddof=1).mean()) for k, v in estimates.items()},
        "RMSE": {k: float(np.sqrt((v**2).mean(axis=0)).mean()) for k, v in off.items()},
        "method": method,
    }


def body(rows: dict[str, Row]) -> Iterable[str]:
    cells = [
        {"": name, "criterion": what} | {k: f"{v:.2f}" for k, v in row[what].items()}
        for name, row in rows.items()
        for what in ("bias", "its standard error", "sd", "RMSE")
    ]
    methods = ", ".join(sorted({f"`{row['method']}`" for row in rows.values()}))
    return [
        table(cells),
        "Percentage points, averages over 10 lambdas (log-uniform from e^6 to e^-6) and over the "
        f"runs; p = n / 5, no intercept; the error is measured on {N_TEST} test rows. "
        "Labels are drawn row by row and folds at random, without regard to the labels. "
        f"Computed by {methods}; `exact` and `magic` have the same left-out labels (checked on the "
        "first run of each size).",
    ]


def figure(key: str, rows: dict[str, Row]) -> None:
    series = {name: [row["RMSE"][name] for row in rows.values()] for name in SCHEMES}
    bars(key, [name.replace(",", "\n") for name in rows], series, "RMSE, percentage points")


TABLE = Table("magic_loo_table2", "Magic LOO, Table 2", cases, body, figure)

if __name__ == "__main__":
    TABLE.main(__doc__)
