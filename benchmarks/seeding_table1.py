"""Alpha seeding, Table 1: cold starts, ATO, MIR and SIR in 10-fold cross-validation, and ``exact``.

python benchmarks/seeding_table1.py --data DIR [--quick | --full] [--only FILE ...] [--write]
"""

from __future__ import annotations

from dataclasses import replace

from machine import facts
from seeding import Loaded, Row, differences, load, parse, run_exact, run_scheme, say, write_section

SCHEMES = ("cold", "ato", "mir", "sir")
# ATO's and MIR's linear algebra grows with the cube of their sets; the paper's took hours on adult.
LARGEST_FOLD = 1000
LARGE, ENOUGH = 3000, 3


def measure(loaded: Loaded) -> list[Row]:
    folds = loaded.folds(10)
    rows = []
    for scheme in SCHEMES:
        if scheme in ("ato", "mir") and len(folds.test[0]) > LARGEST_FOLD:
            continue
        say(f"{loaded.what.name}, {scheme}")
        count = ENOUGH if scheme == "ato" and len(loaded.y) > LARGE else None
        row = run_scheme(loaded, scheme, folds, count)
        rows.append(replace(row, scheme=f"ato, {count} folds") if count else row)
    exact = run_exact(loaded, folds)
    return [*rows, exact] if exact else rows


def table(results: list[tuple[Loaded, list[Row]]]) -> list[str]:
    lines = [
        "| data | n | scheme | seeding CPU s | total CPU s | seeding share | iterations | "
        "kernel evaluations | accuracy | labels |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for loaded, rows in results:
        for row in rows:
            counts = (
                "- | - | -"
                if row.scheme == "exact"
                else f"{row.share:.1%} | {row.iterations} | {row.evaluations:.3g}"
            )
            lines.append(
                f"| {loaded.what.name} | {len(loaded.y)} | {row.scheme} | {row.seeding:.4f} | "
                f"{row.seconds:.3f} | {counts} | {row.accuracy:.2%} | "
                f"{differences([rows[0], row])} |"
            )
    return lines


def verdicts(results: list[tuple[Loaded, list[Row]]]) -> list[str]:
    lines = []
    for loaded, rows in results:
        by_name = {row.scheme: row for row in rows}
        cold, sir = by_name["cold"], by_name["sir"]
        lines.append(
            f"- {loaded.what.name}: SIR needs {sir.iterations / cold.iterations:.2f} times the "
            f"iterations of cold starts "
            f"({'met' if sir.iterations < cold.iterations else '**not met**'}), its seeding "
            f"{sir.share:.1%} of its total ({'met' if sir.share < 0.05 else '**not met**'}), "
            f"labels {differences([cold, sir])}."
        )
    return lines


def main() -> None:
    settings = parse(__doc__)
    results = [(loaded, measure(loaded)) for loaded in load(settings)]
    text = "\n".join([*table(results), "", *verdicts(results)])
    write_section(settings, "table1", "Table 1: efficiency, k = 10", text, facts())


if __name__ == "__main__":
    main()
