"""Alpha seeding, Table 1: LIBSVM, cold starts, ATO, MIR, SIR (also to the letter), ``exact``.

    python -m benchmarks.papers.alpha_seeding.table1 --data DIR [--full] [--only FILE] [--write]

ATO holds the columns of all free rows, and each of its seeds on the large sets takes minutes:
--folds 2 does one of them.
"""

from __future__ import annotations

from benchmarks.lib.results import markdown

from .records import Record, Records
from .runs import SETS, collect, finish, labels, parse, verdicts

K = 10
SCHEMES = ("libsvm", "cold", "ato", "mir", "sir", "sir, printed", "exact")


# Iterations as printed (libsvm, ATO, MIR, SIR), for the paper's number of rows.
PRINTED = {
    ("a9a", 32561): (397565, 361914, 318169, 317110), ("heart", 270): (6988, 4882, 1443, 3968),
    ("madelon", 2000): (9000, 5408, 1800, 1800), ("w8a", 49749): (783208, 245385, 230357, 356528),
}  # fmt: skip

HEAD = [
    "data", "n", "scheme", "folds run", "iterations of the paper (10 folds)", "seeding CPU s",
    "total CPU s", "seeding share", "iterations", "kernel evaluations", "accuracy",
    "ties", "labels settled (iterations)", "labels beside cold",
]  # fmt: skip


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
        *(row.name, str(row.n), row.scheme, f"{row.rounds} of {row.folds}", _printed(row)),
        *(f"{row.seeding:.4f}", f"{row.seconds:.3f}"),
        *row.seeding_cells(),
        *(f"{row.accuracy:.2%}", str(row.ties)),
        *(row.settled_cell(), labels(row, cold)),
    ]


def _printed(row: Record) -> str:
    printed = PRINTED.get((row.data, row.n))
    place = {"libsvm": 0, "cold": 0, "ato": 1, "mir": 2, "sir": 3, "sir, printed": 3}.get(
        row.scheme
    )
    return "-" if printed is None or place is None else f"{printed[place]}"


def main() -> None:
    settings = parse(__doc__)
    records = collect(settings, SCHEMES, [K])
    lines = [table(records), "", *verdicts(records, [(what.file, K) for what in SETS])]
    finish(settings, "table1", "Table 1: efficiency, k = 10", lines)


if __name__ == "__main__":
    main()
