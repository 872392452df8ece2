"""Consolidated CV, Table 1: time, objective and test error on the simulation, with an intercept."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable
from functools import partial

from benchmarks.lib.comparison import compare, comparison, not_run, time_bars
from benchmarks.lib.data import simulation
from benchmarks.lib.kept_table import Row, Table

# TorchKM is left out of the largest size: hours.
SLOW = ("TorchKM",)


def cases(args: Namespace) -> dict[str, Callable[[], Row]]:
    sizes = [200, 400, 800] + [1600] * args.full
    runs = 50 if args.full else 1
    return {f"p={p},n={n}": partial(one_size, n, p, runs) for p in (20, 200) for n in sizes}


def one_size(n: int, p: int, runs: int) -> Row:
    draws = [simulation(n, p, seed) for seed in range(runs)]
    return compare(draws, SLOW if n > 800 else ())


def body(rows: dict[str, Row]) -> Iterable[str]:
    runs = sorted({row["runs"] for row in rows.values()})
    return [
        *comparison(rows),
        "CPU seconds for 50 lambdas and all left-out decision values, BLAS on one thread, means of "
        f"{'/'.join(map(str, runs))} run(s) (the paper: 50); * estimated from a sample of fits, "
        "lambdas or folds. `same solver, fold by fold`: the smoothing solver of `magic` on each "
        "fold's own kernel matrix, nothing shared. The columns of the third table: objective and "
        "test error less those of `exact`, all at the lambda that leave-one-out picks. gamma is "
        "1 / median squared distance (the paper: kernlab's `sigest`). `consolidated` bounds folds "
        "that leave out a positive and a negative row apart, the paper all together. scikit-learn "
        "and LIBSVM get the kernel matrix for nothing; kernlab the quicker of rows and kernel "
        "matrix; LIBSVM and e1071 a cache for the whole matrix; TorchKM its defaults. "
        + not_run(rows),
    ]


TABLE = Table("consolidated_cv_table1", "Consolidated CV, Table 1", cases, body, time_bars)

if __name__ == "__main__":
    TABLE.main(__doc__)
