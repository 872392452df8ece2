"""Table 2 of the LOO-stopping paper: the errors of the models with the least LOO error.

    python -m benchmarks.papers.loo_stopping.table2 --data DIR [--quick | --full] [--write]

13 sets, sizes and grids of the paper; --quick: four sets, small, about a minute; --full: every
label also by ``loo_stopping``, hours.

The LOO error is over all rows of five realizations, by ``exact``; ``loo_stopping`` does the same
work on the first realization (or as much of it as Table 3 does), and the labels are compared.

The printed LOO errors are *means of each realization's minimum* over the grid, not the minimum of
the mean, which the text suggests: on stored splits that gives heart 14.24 and 13.53 and ringnorm
23.45, to the digit.  Both are shown.  The test error is that of the model with the least mean.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

import numpy as np

from benchmarks.lib import machine
from benchmarks.lib.command import say
from benchmarks.lib.results import markdown, pyplot, save_figure

from . import runs

# (linear LOO, linear test, RBF LOO, RBF test) as printed in the paper, in percent.
PUBLISHED = {
    "banana": (41.40, 47.80, 8.55, 10.43), "breast_cancer": (27.20, 29.00, 23.00, 26.06),
    "diabetis": (22.05, 23.44, 21.50, 23.27), "flare_solar": (32.85, 32.33, 32.31, 34.04),
    "german": (24.91, 24.06, 23.71, 23.61), "heart": (14.24, 15.22, 13.53, 15.55),
    "image": (15.48, 15.34, 2.94, 3.15), "ringnorm": (23.45, 24.59, 1.10, 1.60),
    "splice": (15.36, 16.20, 10.60, 10.95), "thyroid": (8.43, 10.16, 2.29, 4.87),
    "titanic": (21.20, 23.01, 15.47, 23.99), "twonorm": (2.50, 2.90, 2.25, 2.59),
    "waveform": (10.90, 12.95, 8.85, 10.50),
}  # fmt: skip


@dataclass(frozen=True)
class Errors:
    """Of every model of the grid, averaged over realizations.

    ``minima`` is the mean of each realization's least LOO error.
    """

    loo: np.ndarray
    minima: float
    test: np.ndarray
    spread: np.ndarray
    exact_seconds: float
    checked: Checked

    @property
    def best(self) -> int:
        return int(np.argmin(self.loo))


@dataclass(frozen=True)
class Checked:
    """Labels that ``loo_stopping`` and ``exact`` were both asked for."""

    labels: int
    equal: bool
    seconds: float
    exact_seconds: float


def main() -> int:
    options = runs.arguments(__doc__)
    facts = machine.facts()
    bench = runs.Bench(options)
    head = ["set"]
    for kernel in options.kernels:
        head += [
            f"{kernel}: LOO, mean of minima (%)",
            "paper",
            "minimum of the mean",
            "test (%)",
            "paper",
            "`exact` (s)",
        ]
        head += ["labels compared", "`loo_stopping` (s)", "`exact` (s)", "equal"]
    body, equal = [], True
    found: dict[str, list[Errors]] = {kernel: [] for kernel in options.kernels}
    for name in options.sets:
        cells = [name + runs.origin(options.data, name, runs.REALIZATIONS)]
        for kernel in options.kernels:
            errors = _errors(bench, name, kernel)
            found[kernel].append(errors)
            cells += _cells(name, kernel, errors)
            equal &= errors.checked.equal
        body.append(cells)
        say(" ".join(cells))
    runs.publish(options, "table2", "Table 2", facts, [_words(options), markdown(head, body)])
    if options.write:
        _figure(options.sets, found)
    return 0 if equal else 1


def _words(options: argparse.Namespace) -> str:
    checked = "every realization" if options.full else "one realization, the rows of Table 3"
    return (
        f"LOO error over {runs.REALIZATIONS} realizations, every row left out, by `exact`, whose "
        "seconds these are: the mean of each realization's least error, which is what the paper "
        "prints, and the least mean; the test error of the model with the least mean over the same "
        "realizations (the paper: 100), with the standard deviation. Splits that are not "
        "stored are seeded. "
        f"Then both methods on the same work ({checked}). Equal: the same left-out labels, fold by "
        "fold, at every grid point, and exact certificates. Seconds are of processor time."
    )


def _errors(bench: runs.Bench, name: str, kernel: str) -> Errors:
    n, loo, test, seconds, exact = runs.TRAIN_SIZE[name], [], [], 0.0, True
    coarse = bench.options.quick
    for k in range(runs.REALIZATIONS):
        for model in range(len(runs.models(kernel, coarse))):
            record = bench.measure(runs.Work(name, k, kernel, model, n, coarse), "exact")
            loo.append(record["loo"])
            test.append(record["test"])
            seconds += record["seconds"]
            exact &= record["exact"]
    shape = (runs.REALIZATIONS, -1)
    by_loo, by_test = np.reshape(loo, shape), np.reshape(test, shape)
    checked = _check(bench, name, kernel, exact)
    minima = float(by_loo.min(axis=1).mean())
    return Errors(
        by_loo.mean(axis=0), minima, by_test.mean(axis=0), by_test.std(axis=0), seconds, checked
    )


def _check(bench: runs.Bench, name: str, kernel: str, equal: bool) -> Checked:
    labels, seconds = 0, {"loo_stopping": 0.0, "exact": 0.0}
    count = runs.left_out(bench.options, name, kernel)
    coarse = runs.is_coarse(bench.options, name, kernel)
    for k in range(runs.REALIZATIONS if bench.options.full else 1):
        for model in range(len(runs.models(kernel, coarse))):
            work = runs.Work(name, k, kernel, model, count, coarse)
            records = {who: bench.measure(work, who) for who in seconds}
            for who, record in records.items():
                seconds[who] += record["seconds"]
                equal &= record["exact"]
            equal &= records["loo_stopping"]["wrong"] == records["exact"]["wrong"]
            labels += count * len(records["exact"]["loo"])
    return Checked(labels, equal, seconds["loo_stopping"], seconds["exact"])


def _cells(name: str, kernel: str, errors: Errors) -> list[str]:
    loo, test = PUBLISHED[name][:2] if kernel == "linear" else PUBLISHED[name][2:]
    best, checked = errors.best, errors.checked
    return [
        f"{100 * errors.minima:.2f}",
        f"{loo:.2f}",
        f"{100 * errors.loo[best]:.2f}",
        f"{100 * errors.test[best]:.2f} ± {100 * errors.spread[best]:.2f}",
        f"{test:.2f}",
        f"{errors.exact_seconds:.1f}",
        f"{checked.labels:,}",
        f"{checked.seconds:.1f}",
        f"{checked.exact_seconds:.1f}",
        "yes" if checked.equal else "**NO**",
    ]


def _figure(sets: list[str], found: dict[str, list[Errors]]) -> None:
    figure, axes = pyplot().subplots(figsize=(4.2, 4), layout="constrained")
    for kernel, errors in found.items():
        paper = [PUBLISHED[name][0 if kernel == "linear" else 2] for name in sets]
        axes.loglog(paper, [100 * e.minima for e in errors], "o", label=kernel, alpha=0.7)
    ends = (0.8, 60.0)
    axes.plot(ends, ends, color="black", linewidth=0.8)
    axes.set_xlabel("least LOO error, paper (%)")
    axes.set_ylabel("here (%)")
    axes.legend(frameon=False)
    save_figure(figure, "loo_stopping_table2")


if __name__ == "__main__":
    sys.exit(main())
