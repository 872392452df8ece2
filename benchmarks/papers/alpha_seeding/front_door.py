"""SIR on all rows of a9a through ``cross_validate``, with 200 MB and no kernel matrix.

    python -m benchmarks.papers.alpha_seeding.front_door --data DIR [--quick] [--write]

The paper's C, gamma and tolerance, 10 folds; --quick: 5,000 rows, with 20 MB.  The peak of the
process's memory is told before and after.
"""

from __future__ import annotations

import resource
import warnings
from time import process_time

from threadpoolctl import threadpool_limits

import exactcv
from benchmarks.lib import command
from benchmarks.lib.data import read_rows
from benchmarks.lib.machine import facts
from benchmarks.lib.results import markdown, write_section

from .records import FILE
from .runs import HEAD

C, GAMMA, TOL = 100.0, 0.5, 1e-3


def peak() -> float:
    """Megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def main() -> None:
    parser = command.parser(__doc__, {"quick": "5,000 rows, 20 MB", "full": "all (default)"}, FILE)
    given = command.parse_with_data(parser)
    X, y = read_rows(given.data, "a9a")
    limit = "200MB"
    if given.quick:
        X, y, limit = X[:5000], y[:5000], "20MB"
    before = peak()
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", exactcv.NotExactWarning)  # 1e-3 is the paper's
        start = process_time()
        found = exactcv.cross_validate(
            X, y, Cs=[C], gamma=GAMMA, cv=10, method="sir", tol=TOL, memory_limit=limit
        )
        seconds = process_time() - start
    after = peak()
    head = ["rows", "memory_limit", "CPU s", "iterations", "kernel evaluations", "accuracy (%)"]
    row = [str(len(y)), limit, f"{seconds:.0f}", str(int(found.stats["iterations"][0]))]
    row += [f"{found.stats['kernel_evaluations'][0]:.3g}", f"{100 * (1 - found.error[0]):.2f}"]
    head += ["peak before (MB)", "peak after (MB)", "kernel matrix (MB)"]
    row += [f"{before:.0f}", f"{after:.0f}", f"{8 * len(y) ** 2 / 1e6:,.0f}"]
    text = "\n\n".join(
        [
            "## SIR through cross_validate, without a kernel matrix",
            f"Made by `python -m {command.module()} --data DIR --write`; one run.",
            facts(),
            markdown(head, [row]),
        ]
    )
    print(text)
    if given.write:
        write_section(FILE, "front_door", text, HEAD)


if __name__ == "__main__":
    main()
