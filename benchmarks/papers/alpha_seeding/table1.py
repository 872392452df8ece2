"""Alpha seeding, Table 1: cold starts, ATO, MIR and SIR in 10-fold cross-validation, and ``exact``.

python benchmarks/seeding_table1.py --data DIR [--quick | --full] [--only FILE ...] [--write]
"""

from __future__ import annotations

from seeding import LARGEST_MATRIX, SETS, Loaded, finish, labels, load, parse, run, verdicts
from seeding_records import Record, Records

K = 10
SCHEMES = ("cold", "ato", "mir", "sir", "exact")
# ATO's and MIR's linear algebra grows with the cube of their sets; the paper's took hours on adult.
LARGEST_FOLD = 1000
LARGE, ENOUGH = 3000, 3


def measure(loaded: Loaded, scheme: str) -> Record | None:
    n = len(loaded.y)
    if scheme in ("ato", "mir") and n / K > LARGEST_FOLD:
        return None
    if scheme == "exact" and n > LARGEST_MATRIX:
        return None
    return run(loaded, scheme, K, ENOUGH if scheme == "ato" and n > LARGE else None)


def table(records: Records) -> list[str]:
    lines = [
        "| data | n | scheme | folds run | seeding CPU s | total CPU s | seeding share | "
        "iterations | kernel evaluations | accuracy | ties | labels settled (iterations) | "
        "labels beside cold |",
        "|" + " --- |" * 13,
    ]
    for what in SETS:
        cold = records.get(what.file, K, "cold")
        for scheme in SCHEMES:
            row = records.get(what.file, K, scheme)
            if row is not None:
                lines.append(_line(row, cold))
    return lines


def _line(row: Record, cold: Record | None) -> str:
    seeds = "- | - | -" if row.scheme == "exact" else ""
    if not seeds:
        seeds = f"{row.share:.1%} | {row.iterations} | {row.evaluations:.3g}"
    settled = "-" if row.scheme == "exact" else f"{row.close} ({row.settling})"
    return (
        f"| {row.name} | {row.n} | {row.scheme} | {row.rounds} of {row.folds} | "
        f"{row.seeding:.4f} | {row.seconds:.3f} | {seeds} | {row.accuracy:.2%} | {row.ties} | "
        f"{settled} | {labels(row, cold)} |"
    )


def main() -> None:
    settings = parse(__doc__)
    records = Records(settings.size)
    for loaded in load(settings):
        for scheme in filter(settings.wants, SCHEMES):
            record = measure(loaded, scheme)
            if record is not None:
                records.add(record)
        if settings.write:
            records.save()
    pairs = [(what.file, K) for what in SETS]
    lines = [*table(records), "", *verdicts(records, pairs)]
    finish(settings, "seeding_table1", "Table 1: efficiency, k = 10", lines)


if __name__ == "__main__":
    main()
