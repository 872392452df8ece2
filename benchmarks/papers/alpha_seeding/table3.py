"""Alpha seeding, Table 3: cold starts and SIR for k = 3, 10 and 100, and ``exact``.

    python -m benchmarks.papers.alpha_seeding.table3 --data DIR [--full] [--only FILE] [--write]

With --folds 30 the first 30 folds stand for all, as in the paper at k = 100 for MNIST.
"""

from __future__ import annotations

from benchmarks.lib.results import markdown

from .records import Record, Records
from .runs import SETS, collect, finish, labels, parse, verdicts

KS = (3, 10, 100)
SCHEMES = ("cold", "sir", "exact", "libsvm")


HEAD = [
    "data", "n", "k", "folds run", "LIBSVM CPU s", "cold CPU s", "SIR CPU s", "exact CPU s",
    "cold iterations", "SIR iterations", "cold evaluations", "SIR evaluations",
    "seeding share", "accuracy", "ties",
    "labels of SIR", "labels of exact",
]  # fmt: skip


def table(records: Records) -> str:
    lines = []
    for what in SETS:
        for k in KS:
            cold, sir, exact, libsvm = (records.get(what.file, k, one) for one in SCHEMES)
            if cold is not None and sir is not None:
                lines.append(_cells(cold, sir, exact, libsvm))
    return markdown(HEAD, lines)


def _cells(cold: Record, sir: Record, exact: Record | None, libsvm: Record | None) -> list[str]:
    return [
        *(cold.name, str(cold.n), cold.k, str(cold.rounds)),
        *(_seconds(one, cold.rounds) for one in (libsvm, cold, sir, exact)),
        *(str(cold.iterations), str(sir.iterations)),
        *(f"{cold.evaluations:.3g}", f"{sir.evaluations:.3g}", f"{sir.share:.1%}"),
        *(f"{sir.accuracy:.2%}", str(sir.ties)),
        *(labels(sir, cold), labels(exact, cold) if exact else "-"),
    ]


def _seconds(record: Record | None, rounds: int) -> str:
    """With the number of folds, if it is another one than that of the row."""
    if record is None:
        return "-"
    folds = "" if record.rounds == rounds else f" ({record.rounds} folds)"
    return f"{record.seconds:.3f}{folds}"


def main() -> None:
    settings = parse(__doc__)
    records = collect(settings, SCHEMES, KS)
    pairs = [(what.file, k) for what in SETS for k in KS]
    lines = [table(records), "", *verdicts(records, pairs)]
    finish(settings, "table3", "Table 3: the effect of k", lines)


if __name__ == "__main__":
    main()
