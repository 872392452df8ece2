"""Alpha seeding, Figure 2: leave-one-out, every scheme's time in units of SIR's.

    python -m benchmarks.papers.alpha_seeding.figure2 --data DIR [--full] [--only FILE] [--write]

As in the paper the first rounds stand for the large sets (100 for adult, 30 for webdata); without
--full also for madelon (100).  The solution on all rows is in the totals of AVG and TOP, which need
it.  ``exact`` runs all rounds, and its time is for all of them.
"""

from __future__ import annotations

from functools import partial

from benchmarks.lib.results import markdown, pyplot, save_figure

from .records import Record, Records
from .runs import SETS, Settings, collect, finish, labels, parse, verdicts
from .solvers import Loaded

SCHEMES = ("cold", "avg", "top", "ato", "mir", "sir")
ROUNDS = {"madelon": 100, "a9a": 100, "w8a": 30}
HEAD = [
    "data", "n", "rounds", "scheme", "seeding CPU s", "total CPU s", "seeding share", "iterations",
    "kernel evaluations", "accuracy", "labels settled (iterations)", "labels beside cold",
]  # fmt: skip


def first(settings: Settings, loaded: Loaded, scheme: str, k: int | str) -> int | None:
    """How many rounds are run, if not all."""
    whole = settings.full and loaded.what.file == "madelon"
    return None if whole or scheme == "exact" else ROUNDS.get(loaded.what.file)


def table(records: Records) -> str:
    lines = []
    for what in SETS:
        cold = records.get(what.file, "loo", "cold")
        for scheme in (*SCHEMES, "exact"):
            row = records.get(what.file, "loo", scheme)
            if row is not None:
                lines.append(_cells(row, cold))
    return markdown(HEAD, lines)


def _cells(row: Record, cold: Record | None) -> list[str]:
    return [
        *(row.name, str(row.n), str(row.rounds), row.scheme),
        *(f"{row.seeding:.4f}", f"{row.seconds:.3f}"),
        *row.seeding_cells(),
        *(f"{row.accuracy:.2%}", row.settled_cell(), labels(row, cold)),
    ]


def draw(records: Records, settings: Settings) -> str:
    """Bars of time and of iterations in units of SIR's, a group for each data set."""
    sets = [what for what in SETS if records.get(what.file, "loo", "sir") is not None]
    figure, axes = pyplot().subplots(1, 2, figsize=(10, 3.4), layout="constrained")
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
    return save_figure(figure, f"alpha_seeding_figure2{'_full' if settings.full else ''}")


def main() -> None:
    settings = parse(__doc__)
    records = collect(settings, (*SCHEMES, "exact"), ["loo"], partial(first, settings))
    lines = [table(records), "", *verdicts(records, [(what.file, "loo") for what in SETS])]
    if settings.write:
        lines += ["", f"![Figure 2]({draw(records, settings)})"]
    finish(settings, "figure2", "Figure 2: leave-one-out", lines)


if __name__ == "__main__":
    main()
