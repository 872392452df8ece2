"""Alpha seeding, Figure 2: leave-one-out, every scheme's time in units of SIR's.

    python benchmarks/seeding_figure2.py --data DIR [--quick | --full] [--only FILE ...] [--write]

As in the paper the first rounds stand for the large sets (100 for adult, 30 for webdata); without
--full also for madelon (100).  The solution on all rows is in the totals of AVG and TOP, which need
it.  ``exact`` runs all rounds, and its time is for all of them.
"""

from __future__ import annotations

import matplotlib
from seeding import (
    LARGEST_MATRIX,
    SETS,
    Loaded,
    Settings,
    finish,
    labels,
    load,
    parse,
    run,
    verdicts,
)
from seeding_records import HERE, Record, Records

SCHEMES = ("cold", "avg", "top", "ato", "mir", "sir")
ROUNDS = {"madelon": 100, "a9a": 100, "w8a": 30}
FIGURES = HERE / "figures"


def measure(loaded: Loaded, scheme: str, settings: Settings) -> Record | None:
    if scheme == "exact":
        return run(loaded, scheme, "loo") if len(loaded.y) <= LARGEST_MATRIX else None
    whole = settings.full and loaded.what.file == "madelon"
    return run(loaded, scheme, "loo", None if whole else ROUNDS.get(loaded.what.file))


def table(records: Records) -> list[str]:
    lines = [
        "| data | n | rounds | scheme | seeding CPU s | total CPU s | seeding share | iterations | "
        "kernel evaluations | accuracy | labels settled (iterations) | labels beside cold |",
        "|" + " --- |" * 12,
    ]
    for what in SETS:
        cold = records.get(what.file, "loo", "cold")
        for scheme in (*SCHEMES, "exact"):
            row = records.get(what.file, "loo", scheme)
            if row is None:
                continue
            counts = "- | - | -" if scheme == "exact" else ""
            if not counts:
                counts = f"{row.share:.1%} | {row.iterations} | {row.evaluations:.3g}"
            settled = "-" if scheme == "exact" else f"{row.close} ({row.settling})"
            lines.append(
                f"| {row.name} | {row.n} | {row.rounds} | {scheme} | {row.seeding:.4f} | "
                f"{row.seconds:.3f} | {counts} | {row.accuracy:.2%} | {settled} | "
                f"{labels(row, cold)} |"
            )
    return lines


def draw(records: Records, settings: Settings) -> str:
    """Bars of time and of iterations in units of SIR's, a group for each data set."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    sets = [what for what in SETS if records.get(what.file, "loo", "sir") is not None]
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
    for axis, what in zip(axes, ("seconds", "iterations"), strict=True):
        for s, scheme in enumerate(SCHEMES):
            heights, places = [], []
            for d, one in enumerate(sets):
                row, sir = (records.get(one.file, "loo", name) for name in (scheme, "sir"))
                if row is not None and sir is not None and getattr(sir, what):
                    heights.append(getattr(row, what) / getattr(sir, what))
                    places.append(d + (s - 2.5) / 7)
            axis.bar(places, heights, width=1 / 8, label=scheme)
        axis.set_xticks(range(len(sets)), [one.name for one in sets])
        axis.set_yscale("log")
        axis.axhline(1.0, color="black", linewidth=0.5)
        axis.set_title(f"leave-one-out, {what} (SIR = 1)")
    axes[0].legend(fontsize=7)
    FIGURES.mkdir(exist_ok=True)
    name = f"seeding_figure2{'_full' if settings.full else ''}.png"
    figure.savefig(FIGURES / name, dpi=90)
    return name


def main() -> None:
    settings = parse(__doc__)
    records = Records(settings.size)
    for loaded in load(settings):
        for scheme in filter(settings.wants, (*SCHEMES, "exact")):
            record = measure(loaded, scheme, settings)
            if record is not None:
                records.add(record)
                if settings.write:
                    records.save()
    lines = [*table(records), "", *verdicts(records, [(what.file, "loo") for what in SETS])]
    if settings.write:
        lines += ["", f"![Figure 2](figures/{draw(records, settings)})"]
    finish(settings, "seeding_figure2", "Figure 2: leave-one-out", lines)


if __name__ == "__main__":
    main()
