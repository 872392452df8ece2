"""Alpha seeding, Table 3: cold starts and SIR for k = 3, 10 and 100, and ``exact``.

    python benchmarks/seeding_table3.py --data DIR [--quick | --full] [--only FILE ...] [--write]

For k = 100 on the two large sets the first 30 folds stand for all, as in the paper for MNIST.
"""

from __future__ import annotations

from seeding import LARGEST_MATRIX, SETS, finish, labels, load, parse, run, verdicts
from seeding_records import Records

KS = (3, 10, 100)
SCHEMES = ("cold", "sir", "exact")
LARGE, ENOUGH = 3000, 30


def table(records: Records) -> list[str]:
    lines = [
        "| data | n | k | folds run | cold CPU s | SIR CPU s | exact CPU s | cold iterations | "
        "SIR iterations | cold evaluations | SIR evaluations | seeding share | accuracy | ties | "
        "labels of SIR | labels of exact |",
        "|" + " --- |" * 16,
    ]
    for what in SETS:
        for k in KS:
            cold, sir, exact = (records.get(what.file, k, scheme) for scheme in SCHEMES)
            if cold is None or sir is None:
                continue
            lines.append(
                f"| {cold.name} | {cold.n} | {k} | {cold.rounds} | {cold.seconds:.3f} | "
                f"{sir.seconds:.3f} | {f'{exact.seconds:.3f}' if exact else '-'} | "
                f"{cold.iterations} | {sir.iterations} | {cold.evaluations:.3g} | "
                f"{sir.evaluations:.3g} | {sir.share:.1%} | {sir.accuracy:.2%} | {sir.ties} | "
                f"{labels(sir, cold)} | {labels(exact, cold) if exact else '-'} |"
            )
    return lines


def main() -> None:
    settings = parse(__doc__)
    records = Records(settings.size)
    for loaded in load(settings):
        n = len(loaded.y)
        for k in KS:
            first = ENOUGH if k > ENOUGH and n > LARGE else None
            for scheme in filter(settings.wants, SCHEMES):
                if scheme != "exact" or n <= LARGEST_MATRIX:
                    records.add(run(loaded, scheme, k, first))
            if settings.write:
                records.save()
    pairs = [(what.file, k) for what in SETS for k in KS]
    lines = [*table(records), "", *verdicts(records, pairs)]
    finish(settings, "seeding_table3", "Table 3: the effect of k", lines)


if __name__ == "__main__":
    main()
