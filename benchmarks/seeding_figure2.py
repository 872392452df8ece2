"""Alpha seeding, Figure 2: leave-one-out, every scheme's time in units of SIR's.

    python benchmarks/seeding_figure2.py --data DIR [--quick | --full] [--only FILE ...] [--write]

As in the paper, heart and madelon run in full and the first rounds stand for the large sets (100
for adult, 30 for webdata).  The solution on all rows is in the totals of AVG and TOP; they need it.
"""

from __future__ import annotations

import matplotlib
from machine import facts
from seeding import (
    FIGURES,
    Loaded,
    Row,
    Settings,
    differences,
    load,
    parse,
    run_exact,
    run_scheme,
    say,
    write_section,
)  # fmt: skip

SCHEMES = ("cold", "avg", "top", "ato", "mir", "sir")
ROUNDS = {"a9a": 100, "w8a": 30}


def measure(loaded: Loaded) -> list[Row]:
    folds, first = loaded.folds("loo"), ROUNDS.get(loaded.what.file)
    rows = []
    for scheme in SCHEMES:
        say(f"{loaded.what.name}, {scheme}")
        rows.append(run_scheme(loaded, scheme, folds, first))
    exact = run_exact(loaded, folds)
    return [*rows, exact] if exact else rows


def draw(results: list[tuple[Loaded, list[Row]]], settings: Settings) -> str:
    """Bars of time and of iterations, a group for each data set."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for axis, what in zip(axes, ("seconds", "iterations"), strict=True):
        for s, scheme in enumerate(SCHEMES):
            heights, places = [], []
            for d, (_, rows) in enumerate(results):
                by_name = {row.scheme: row for row in rows}
                heights.append(getattr(by_name[scheme], what) / getattr(by_name["sir"], what))
                places.append(d + (s - 2.5) / 7)
            axis.bar(places, heights, width=1 / 8, label=scheme)
        axis.set_xticks(range(len(results)), [loaded.what.name for loaded, _ in results])
        axis.set_yscale("log")
        axis.axhline(1.0, color="black", linewidth=0.5)
        axis.set_title(f"leave-one-out, {what} (SIR = 1)")
    axes[0].legend(fontsize=7)
    FIGURES.mkdir(exist_ok=True)
    name = "_".join(["seeding_figure2", *settings.only, *(["full"] if settings.full else [])])
    name += ".png"
    figure.savefig(FIGURES / name, dpi=90)
    return name


def main() -> None:
    settings = parse(__doc__)
    results = [(loaded, measure(loaded)) for loaded in load(settings)]
    lines = [
        "| data | n | rounds | scheme | seeding CPU s | total CPU s | seeding share | iterations | "
        "kernel evaluations | labels |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for loaded, rows in results:
        count = len(rows[0].wrong)
        for row in rows:
            if row.scheme == "exact":
                whole = f"{row.seconds:.3f} (all {len(row.wrong)} rounds) | - | - | - | "
                lines.append(
                    f"| {loaded.what.name} | {len(loaded.y)} | {len(row.wrong)} | exact | - | "
                    f"{whole}{int((row.wrong[:count] != rows[0].wrong).sum())} differ |"
                )
                continue
            lines.append(
                f"| {loaded.what.name} | {len(loaded.y)} | {count} | {row.scheme} | "
                f"{row.seeding:.4f} | {row.seconds:.3f} | {row.share:.1%} | {row.iterations} | "
                f"{row.evaluations:.3g} | {differences([rows[0], row])} |"
            )
    if settings.write:
        lines += ["", f"![Figure 2](figures/{draw(results, settings)})"]
    write_section(settings, "figure2", "Figure 2: leave-one-out", "\n".join(lines), facts())


if __name__ == "__main__":
    main()
