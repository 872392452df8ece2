"""SIR on all rows of a9a through ``cross_validate``, with 200 MB and no kernel matrix.

    python -m benchmarks.papers.alpha_seeding.front_door --data DIR [--quick] [--folds N] [--write]

The paper's C, gamma and tolerance, 10 folds or the first of them; --quick: 5,000 rows, with 20 MB.
The peak of the process's memory is told before and after.
"""

from __future__ import annotations

import resource
import warnings
from itertools import islice
from time import process_time

from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

import exactcv
from benchmarks.lib import command
from benchmarks.lib.data import read_rows
from benchmarks.lib.machine import facts
from benchmarks.lib.results import markdown, publish

from .records import FILE
from .runs import HEAD
from .solvers import SEED

C, GAMMA, TOL, K = 100.0, 0.5, 1e-3, 10


def peak() -> float:
    """Megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def main() -> None:
    parser = command.parser(__doc__, {"quick": "5,000 rows, 20 MB", "full": "all (default)"}, FILE)
    parser.add_argument("--folds", type=int, default=K, help="only the first of the ten")
    given = command.parse_with_data(parser)
    X, y = read_rows(given.data, "a9a")
    limit = "200MB"
    if given.quick:
        X, y, limit = X[:5000], y[:5000], "20MB"
    splitter = StratifiedKFold(K, shuffle=True, random_state=SEED)
    cv = list(islice(splitter.split(X, y), given.folds))
    before = peak()
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", exactcv.NotExactWarning)  # 1e-3 is the paper's
        start = process_time()
        found = exactcv.cross_validate(
            X, y, Cs=[C], gamma=GAMMA, cv=cv, method="sir", tol=TOL, memory_limit=limit
        )
        seconds = process_time() - start
    after = peak()
    row = {
        "rows": str(len(y)),
        "folds": f"{len(cv)} of {K}",
        "memory_limit": limit,
        "CPU s": f"{seconds:.0f}",
        "iterations": str(int(found.stats["iterations"][0])),
        "kernel evaluations": f"{found.stats['kernel_evaluations'][0]:.3g}",
        "accuracy (%)": f"{100 * (1 - found.error[0]):.2f}",
        "peak before (MB)": f"{before:.0f}",
        "peak after (MB)": f"{after:.0f}",
        "kernel matrix (MB)": f"{8 * len(y) ** 2 / 1e6:,.0f}",
    }
    title = "SIR through cross_validate, without a kernel matrix"
    table = markdown([*row], [[*row.values()]])
    publish(FILE, "front_door", title, [f"{facts()}\n\nOne run.", table], HEAD, given.write)


if __name__ == "__main__":
    main()
