"""The error at every C against a curve of 50 points: how many times as long it takes.

    python -m benchmarks.users.every_c [--sizes 400 800] [--repeats 3] [--write]

The papers' simulation (p = 20), leave-one-out, C from 1e-3 to 1e3.  The curve is that of
``cross_validate`` with ``output="decision"``.  CPU seconds on one thread; the two take turns, and
the least of the repeats counts.
"""

from __future__ import annotations

from time import process_time

import numpy as np
from threadpoolctl import threadpool_limits

import exactcv
from benchmarks.lib import command
from benchmarks.lib.results import markdown, write_section

FILE, TITLE = "every_c", "Every C"
LOW, HIGH, POINTS = 1e-3, 1e3, 50
HEAD = ("n", "50 points, s", "every C, s", "times", "breakpoints", "solutions", "exact")


def measure(n: int, repeats: int) -> tuple[str, ...]:
    """A row of the table."""
    X, y = exactcv.datasets.make_mixture(n, 20, random_state=0)
    Cs, curve, path = np.geomspace(LOW, HIGH, POINTS), [], []
    for _ in range(repeats):
        start = process_time()
        exactcv.cross_validate(X, y, Cs=Cs, cv="loo", output="decision", n_jobs=1)
        between = process_time()
        found = exactcv.error_path(X, y, C_range=(LOW, HIGH), cv="loo", n_jobs=1)
        curve.append(between - start)
        path.append(process_time() - between)
    return (
        str(n),
        f"{min(curve):.2f}",
        f"{min(path):.2f}",
        f"{min(path) / min(curve):.1f}",
        str(len(found.breakpoints)),
        f"{found.stats['solutions']:,}",
        "yes" if found.certificate.exact else "no",
    )


def main() -> None:
    made = command.parser(__doc__, {}, FILE)
    made.add_argument("--sizes", type=int, nargs="+", default=[400, 800])
    made.add_argument("--repeats", type=int, default=3)
    given = made.parse_args()
    with threadpool_limits(1):
        measure(100, 1)  # what is loaded or compiled at its first use
        body = [measure(n, given.repeats) for n in given.sizes]
    text = f"Made by `{command.command_line()}`.\n\n{markdown(HEAD, body)}"
    print(text, flush=True)
    if given.write:
        write_section(FILE, "fast", text, TITLE)


if __name__ == "__main__":
    main()
