"""Alpha seeding, Table 1: cold starts, ATO, MIR and SIR in 10-fold cross-validation, and ``exact``.

python -m benchmarks.papers.alpha_seeding.table1 --data DIR [--full] [--only FILE] [--write]
"""

from __future__ import annotations

from benchmarks.lib.results import markdown

from .records import Record, Records
from .runs import LARGEST_MATRIX, SETS, Loaded, collect, finish, labels, parse, run, verdicts

K = 10
SCHEMES = ("cold", "ato", "mir", "sir", "exact")
# ATO's and MIR's linear algebra grows with the cube of their sets; the paper's took hours on adult.
LARGEST_FOLD = 1000
LARGE, ENOUGH = 3000, 3


HEAD = [
    "data", "n", "scheme", "folds run", "seeding CPU s", "total CPU s", "seeding share",
    "iterations", "kernel evaluations", "accuracy", "ties", "labels settled (iterations)",
    "labels beside cold",
]  # fmt: skip


def measure(loaded: Loaded, scheme: str, k: int | str) -> Record | None:
    n = len(loaded.y)
    if scheme in ("ato", "mir") and n / K > LARGEST_FOLD:
        return None
    if scheme == "exact" and n > LARGEST_MATRIX:
        return None
    return run(loaded, scheme, k, ENOUGH if scheme == "ato" and n > LARGE else None)


def table(records: Records) -> str:
    lines = []
    for what in SETS:
        cold = records.get(what.file, K, "cold")
        for scheme in SCHEMES:
            row = records.get(what.file, K, scheme)
            if row is not None:
                lines.append(_cells(row, cold))
    return markdown(HEAD, lines)


def _cells(row: Record, cold: Record | None) -> list[str]:
    return [
        *(row.name, str(row.n), row.scheme, f"{row.rounds} of {row.folds}"),
        *(f"{row.seeding:.4f}", f"{row.seconds:.3f}"),
        *row.seeding_cells(),
        *(f"{row.accuracy:.2%}", str(row.ties)),
        *(row.settled_cell(), labels(row, cold)),
    ]


def main() -> None:
    settings = parse(__doc__)
    records = collect(settings, SCHEMES, [K], measure)
    lines = [table(records), "", *verdicts(records, [(what.file, K) for what in SETS])]
    finish(settings, "table1", "Table 1: efficiency, k = 10", lines)


if __name__ == "__main__":
    main()
