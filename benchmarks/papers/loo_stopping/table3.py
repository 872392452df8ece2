"""Table 3 of the LOO-stopping paper: what the stopping condition saves.

    python -m benchmarks.papers.loo_stopping.table3 --data DIR [--quick | --full] [--write]

13 sets, sizes and grids of the paper, at most 100 rows left out, one realization or
--realizations of them; --quick: four sets, small, about a minute; --full: 5 realizations, all rows,
many hours.  With --keep FILE it can be done set by set; --kept then makes the tables of the
realizations that are complete.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field

import numpy as np

from benchmarks.lib import machine
from benchmarks.lib.command import say
from benchmarks.lib.results import markdown, pyplot, save_figure

from . import runs

# (columns / 10^6, saving in kernel evaluations, Prec) as printed in the paper.
PUBLISHED = {
    "linear": {
        "banana": (109.5, 12.3, 56.9), "breast_cancer": (34.6, 2.1, 64.2),
        "diabetis": (432.1, 7.2, 93.1), "flare_solar": (4.7, 1.1, 59.3),
        "german": (3685.7, 4.4, 82.0), "heart": (90.1, 2.1, 83.1), "image": (4793.8, 14.9, 98.3),
        "ringnorm": (1536.0, 3.0, 91.8), "splice": (2222.1, 1.5, 74.5),
        "thyroid": (8.2, 5.2, 66.0), "titanic": (0.1, 1.0, 17.6), "twonorm": (8.3, 2.2, 89.1),
        "waveform": (503.3, 2.6, 90.7),
    },
    "rbf": {
        "banana": (222.4, 6.1, 81.9), "breast_cancer": (74.0, 1.6, 55.6),
        "diabetis": (382.3, 1.5, 54.8), "flare_solar": (189.1, 2.4, 50.3),
        "german": (549.4, 1.1, 31.3), "heart": (20.7, 1.2, 50.3), "image": (514.5, 3.1, 75.3),
        "ringnorm": (47.4, 1.4, 39.1), "splice": (453.8, 1.0, 14.6), "thyroid": (3.3, 2.4, 80.3),
        "titanic": (7.9, 2.7, 50.2), "twonorm": (36.8, 1.0, 22.2), "waveform": (59.4, 1.1, 30.9),
    },
}  # fmt: skip

HOW_MEASURED = """\
*Columns* are kernel evaluations over the number of training rows, as in the paper: each row of the
kernel matrix that a step needs costs one. "To 1e-3": plain SMO to eps = 1e-3 from the seed, or to
the proof. "In all": with what it takes to certify the folds without proof. *Saving* is standard /
proposed. *Prec* is the share of proofs among the folds that no check settled. `loo_stopping` is the
method as it comes (after 10 SMO steps a row it solves for the free coefficients at once), `exact`
the default method on the same work. Equal: all four have the same left-out labels, fold by fold,
and an exact certificate. Seconds are of processor time."""


@dataclass
class Line:
    """One set under one kernel, summed over realizations and the grid."""

    name: str
    kernel: str
    left_out: int
    points: int
    origin: str
    realizations: int = 0
    equal: bool = True
    seconds: dict[str, float] = field(default_factory=dict)
    counts: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return runs.TRAIN_SIZE[self.name]

    def columns(self, who: str, all_of_it: bool) -> float:
        found = self.counts[who]["kernel_evaluations"]
        return (found + all_of_it * self.counts[who]["finish_evaluations"]) / self.n

    def saving(self, all_of_it: bool = False) -> float:
        return self.columns("standard", all_of_it) / max(self.columns("proposed", all_of_it), 1.0)

    @property
    def prec(self) -> float:
        found = self.counts["proposed"]
        return 100.0 * found["stopped"] / max(found["stopped"] + found["converged"], 1)

    def cells(self) -> list[str]:
        time = self.seconds
        _, saving, prec = PUBLISHED[self.kernel][self.name]
        return [
            self.name + self.origin,
            str(self.realizations),
            str(self.n),
            "all" if self.left_out == self.n else str(self.left_out),
            str(self.points),
            f"{self.columns('standard', False) / 1e3:,.1f}",
            f"{self.saving():.2f}",
            f"{saving:.1f}",
            f"{self.columns('standard', True) / 1e3:,.1f}",
            f"{self.saving(True):.2f}",
            f"{self.prec:.1f}",
            f"{prec:.1f}",
            f"{time['standard']:.2f}",
            f"{time['standard'] / time['proposed']:.2f}",
            f"{self.columns('loo_stopping', True) / 1e3:,.1f}",
            f"{time['loo_stopping']:.2f}",
            f"{time['exact']:.2f}",
            "yes" if self.equal else "**NO**",
        ]


HEAD = [
    "set", "realizations", "n", "rows left out", "grid points", "standard, 10^3 columns to 1e-3",
    "saving", "paper", "in all", "saving", "Prec (%)", "paper", "standard (s)", "time saving",
    "`loo_stopping`, 10^3 columns", "`loo_stopping` (s)", "`exact` (s)", "equal",
]  # fmt: skip


def main() -> int:
    options = runs.arguments(__doc__)
    facts = machine.facts()
    bench = runs.Bench(options)
    lines = {}
    for kernel in options.kernels:
        found = [_line(bench, name, kernel) for name in options.sets]
        lines[kernel] = [line for line in found if line.realizations]
    for kernel, found in lines.items():
        report = [f"{HOW_MEASURED} {_size(options)}", _report(kernel, found)]
        runs.publish(options, f"table3_{kernel}", f"Table 3, {kernel} kernel", facts, report)
        if options.write:
            _figure(kernel, found)
    return 0 if all(line.equal for found in lines.values() for line in found) else 1


def _size(options: argparse.Namespace) -> str:
    if options.full:
        return f"{runs.REALIZATIONS} realizations, as in the paper."
    return (
        "The paper has 5 realizations. Where not all rows are left out in turn, a random sample of "
        "them is; all others train, so that each problem has the paper's size. The ten rows on "
        "trial are then a larger share of the work, which makes the savings look smaller. The "
        "paper's grid has 5 points for the linear kernel (3: C up to 1) and 64 for RBF (16: every "
        "second gamma and C)."
    )


def _line(bench: runs.Bench, name: str, kernel: str) -> Line:
    options = bench.options
    origin = runs.origin(options.data, name, options.realizations)
    coarse = runs.is_coarse(options, name, kernel)
    models = runs.models(kernel, coarse)
    points = sum(len(model.Cs) for model in models)
    line = Line(name, kernel, runs.left_out(options, name, kernel), points, origin)
    for k in range(options.realizations):
        works = [
            runs.Work(name, k, kernel, model, line.left_out, coarse) for model in range(len(models))
        ]
        if options.kept and not all(map(bench.has, works)):
            continue
        line.realizations += 1
        for work in works:
            _add(line, bench, work)
    if line.realizations:
        say(f"{kernel} {name}: saving {line.saving():.2f}, Prec {line.prec:.1f}")
    return line


def _add(line: Line, bench: runs.Bench, work: runs.Work) -> None:
    labels = set()
    for who in runs.contenders():
        record = bench.measure(work, who)
        line.seconds[who] = line.seconds.get(who, 0.0) + record["seconds"]
        labels.add(record["wrong"])
        line.equal &= record["exact"]
        totals = line.counts.setdefault(who, dict.fromkeys(runs.COUNTS, 0.0))
        for count, along_grid in record["counts"].items():
            totals[count] += float(np.sum(along_grid))
    line.equal &= len(labels) == 1


def _report(kernel: str, lines: list[Line]) -> str:
    savings = np.array([line.saving() for line in lines])
    bar = (
        f"mean saving {savings.mean():.2f} (bar: at least 2), geometric mean "
        f"{np.exp(np.log(savings).mean()):.2f}"
        if kernel == "linear"
        else f"least saving {savings.min():.2f} (bar: at least 1 / 1.1 = 0.91), "
        f"mean {savings.mean():.2f}"
    )
    return markdown(HEAD, [line.cells() for line in lines]) + f"\n\nColumns to 1e-3: {bar}."


def _figure(kernel: str, lines: list[Line]) -> None:
    figure, axes = pyplot().subplots(figsize=(7, 3.2), layout="constrained")
    at = np.arange(len(lines))
    axes.bar(at - 0.2, [line.saving() for line in lines], 0.4, label="to 1e-3")
    axes.bar(at + 0.2, [line.saving(True) for line in lines], 0.4, label="in all")
    paper = [PUBLISHED[kernel][line.name][1] for line in lines]
    axes.plot(at, paper, "k_", markersize=14, label="paper")
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xticks(at, [line.name for line in lines], rotation=45, ha="right")
    axes.set_ylabel("kernel evaluations,\nstandard / proposed")
    axes.set_title(f"LOO stopping, {kernel} kernel")
    axes.legend(frameon=False)
    save_figure(figure, f"loo_stopping_{kernel}")


if __name__ == "__main__":
    sys.exit(main())
