"""Table 3 of the LOO-stopping paper: what the stopping condition saves.

python benchmarks/stopping_table3.py --data DIR            13 sets, the paper's grids: hours
python benchmarks/stopping_table3.py --data DIR --quick    four sets, small: about a minute
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field

import machine
import numpy as np
import stopping as shared

COUNTS = ("kernel_evaluations", "finish_evaluations", "iterations", "stopped", "converged")

HOW_MEASURED = """\
*Columns* are kernel evaluations over the number of training rows, as in the paper: each row of the
kernel matrix that a step needs costs one. "To 1e-3": plain SMO to eps = 1e-3 from the seed, or to
the proof. "In all": with what it takes to certify the folds without proof. *Saving* is standard /
proposed. *Prec* is the share of proofs among the folds that no check settled. `loo_stopping` is the
method as it comes (after 10 SMO steps a row it solves for the free coefficients at once), `exact`
the default method on the same work. Equal: all four have the same left-out labels, fold by fold."""


@dataclass
class Line:
    """One set under one kernel, summed over realizations and the grid."""

    name: str
    n: int
    original: bool
    equal: bool = True
    seconds: dict[str, float] = field(default_factory=dict)
    counts: dict[str, dict[str, float]] = field(default_factory=dict)

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
        return [
            self.name + ("" if self.original else " (seeded split)"),
            str(self.n),
            f"{self.columns('standard', False) / 1e3:,.1f}",
            f"{self.saving():.2f}",
            f"{self.columns('standard', True) / 1e3:,.1f}",
            f"{self.saving(True):.2f}",
            f"{time['standard']:.2f}",
            f"{time['standard'] / time['proposed']:.2f}",
            f"{self.prec:.1f}",
            f"{self.columns('loo_stopping', True) / 1e3:,.1f}",
            f"{time['loo_stopping']:.2f}",
            f"{time['exact']:.2f}",
            "yes" if self.equal else "**NO**",
        ]


HEAD = [
    "set", "n", "standard, 10^3 columns to 1e-3", "saving", "in all", "saving", "standard (s)",
    "time saving", "Prec (%)", "`loo_stopping`, 10^3 columns", "`loo_stopping` (s)", "`exact` (s)",
    "equal",
]  # fmt: skip


def main() -> int:
    options = shared.arguments("LOO stopping, Table 3")
    facts = machine.facts()
    lines = {
        kernel: [_line(options, name, kernel) for name in options.sets]
        for kernel in options.kernels
    }
    for kernel, found in lines.items():
        made = f"Made by `{shared.command('stopping_table3.py', options)}`.\n\n{facts}"
        text = (
            f"## Table 3, {kernel} kernel\n\n{made}\n\n{HOW_MEASURED}\n\n{_report(kernel, found)}"
        )
        print(text)
        if options.write:
            shared.write_section(f"table 3 {kernel}", text)
            _figure(kernel, found)
    return 0 if all(line.equal for found in lines.values() for line in found) else 1


def _line(options: argparse.Namespace, name: str, kernel: str) -> Line:
    line: Line | None = None
    for data in shared.load(options, name):
        line = line or Line(name, len(data.y), data.original)
        for model in shared.models(kernel, options.coarse):
            _add(line, model.task(data))
    assert line is not None
    shared.note(f"{kernel} {name}: saving {line.saving():.2f}, Prec {line.prec:.1f}")
    return line


def _add(line: Line, task: shared.Task) -> None:
    labels = []
    for who, method in shared.contenders().items():
        run = shared.measure(task, method)
        line.seconds[who] = line.seconds.get(who, 0.0) + run.seconds
        labels.append(run.ledger.wrong)
        line.equal &= run.ledger.certificate().exact
        if who == "exact":
            continue
        totals = line.counts.setdefault(who, dict.fromkeys(COUNTS, 0.0))
        for count in COUNTS:
            totals[count] += float(np.sum(run.stats[count]))
    line.equal &= all(np.array_equal(labels[0], other) for other in labels[1:])


def _report(kernel: str, lines: list[Line]) -> str:
    savings = np.array([line.saving() for line in lines])
    bar = (
        f"mean saving {savings.mean():.2f} (bar: at least 2), geometric mean "
        f"{np.exp(np.log(savings).mean()):.2f}"
        if kernel == "linear"
        else f"least saving {savings.min():.2f} (bar: at least 1 / 1.1 = 0.91), "
        f"mean {savings.mean():.2f}"
    )
    return shared.table(HEAD, [line.cells() for line in lines]) + f"\n\nColumns to 1e-3: {bar}."


def _figure(kernel: str, lines: list[Line]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    at = np.arange(len(lines))
    axes.bar(at - 0.2, [line.saving() for line in lines], 0.4, label="to 1e-3")
    axes.bar(at + 0.2, [line.saving(True) for line in lines], 0.4, label="in all")
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_xticks(at, [line.name for line in lines], rotation=45, ha="right")
    axes.set_ylabel("kernel evaluations,\nstandard / proposed")
    axes.set_title(f"LOO stopping, {kernel} kernel")
    axes.legend(frameon=False)
    shared.FIGURES.mkdir(exist_ok=True)
    figure.savefig(shared.FIGURES / f"stopping_{kernel}.png", dpi=90)


if __name__ == "__main__":
    sys.exit(main())
