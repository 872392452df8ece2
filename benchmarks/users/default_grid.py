"""Is the default grid good enough?  Its left-out error against a much wider grid.

    python -m benchmarks.users.default_grid --data DIR [--sets NAME ...] [--write]

``SVCCV()`` on standardised data, beside the papers' grid (``lambdas=50``, one gamma), which was the
default once, and beside a wide grid: C from 1e-4 to 1e4 and nine gammas
from 4^-4 to 4^4 times the median rule.  Leave-one-out up to 300 rows, else five folds, the same for
all three, of at most 1,000 rows.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import exactcv
from benchmarks.lib import command
from benchmarks.lib.data import Rows, is_there, read_rows, standardised
from benchmarks.lib.results import markdown, write_section
from exactcv.problem.gamma import around
from exactcv.problem.kernels import Kernel, gamma_value

FILE, TITLE = "default_grid", "The default grid against a wide one"
SETS = ("sonar", "musk", "chess", "heart", "ionosphere", "hepatitis", "lsvt", "colon", "leuk",
        "arrhythmia", "valley", "valley_noise", "madelon", "a1a", "australian", "pima")  # fmt: skip
IDA = ("thyroid", "breast_cancer", "german", "image", "ringnorm", "twonorm", "waveform", "splice",
       "banana", "flare_solar", "titanic")  # fmt: skip
MOST_ROWS, MOST_LOO = 1000, 300
WIDE = np.geomspace(1e-4, 1e4, 33)


def rows_of(folder: str, name: str) -> Rows | None:
    """At most ``MOST_ROWS`` rows, drawn once; None if the file is not there."""
    path = Path(folder) / "ida" / f"{name}.npz"
    if name in IDA and path.exists():
        found = np.load(path)
        X, y = found["x"], found["t"].astype(float)
    elif is_there(folder, name):
        X, y = read_rows(folder, name)
    else:
        return None
    drawn = np.sort(np.random.default_rng(0).permutation(len(y))[:MOST_ROWS])
    return standardised(X[drawn]), y[drawn]


def one(X: np.ndarray, y: np.ndarray) -> list[str]:
    folds: dict[str, Any] = {"cv": "loo"} if len(y) <= MOST_LOO else {"cv": 5, "random_state": 0}
    middle = gamma_value(X, Kernel())
    assert middle is not None
    start = process_time()
    ours: Any = exactcv.SVCCV(**folds).fit(X, y)
    seconds = process_time() - start
    papers = exactcv.SVCCV(lambdas=50, **folds).fit(X, y)
    wide = exactcv.SVCCV(Cs=WIDE, gamma=around(middle, 9), **folds).fit(X, y)
    errors = [float(model.cv_results_["error"].min()) for model in (papers, ours, wide)]
    apart = round((errors[1] - errors[2]) * len(y))
    return [
        f"{len(y)}, {'LOO' if folds['cv'] == 'loo' else '5 folds'}",
        *(f"{error:.4f}" for error in errors),
        f"{apart:+d}" if apart else "0",
        f"{ours.C_:.3g}, {ours.gamma_ / middle:.3g}",
        ours._overview().grown.partition("grown by ")[2] or "-",
        f"{seconds:.1f}",
    ]


def main() -> None:
    parser = command.parser(__doc__, {}, FILE)
    parser.add_argument("--sets", nargs="+", default=[*SETS, *IDA], metavar="NAME")
    given = command.parse_with_data(parser)
    lines = []
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore", exactcv.NotExactWarning)
        for name in given.sets:
            found = rows_of(given.data, name)
            if found is None:
                command.say(f"{name}: skipped, it is not in the folder")
                continue
            lines.append([name, *one(*found)])
            command.say(" ".join(lines[-1]))
    head = ["data", "rows, folds", "papers' grid", "default", "wide", "rows apart",
            "best C, gamma / median", "grown by", "CPU s"]  # fmt: skip
    text = (
        f"Made by `{command.command_line()}`. Least left-out error over each grid, standardised "
        "data. The wide grid has 297 points (C from 1e-4 to 1e4, gamma from 4^-4 to 4^4 times the "
        "median rule), the default 125 before it grows; more points find a smaller least error by "
        "chance alone. Rows apart: by how many rows the default is behind the wide grid.\n\n"
        + markdown(head, lines)
    )
    print(text)
    if given.write:
        write_section(FILE, "default_grid", text, TITLE)


if __name__ == "__main__":
    main()
