"""Table 2 of the LOO-stopping paper: the errors of the models with the least LOO error.

python benchmarks/stopping_table2.py --data DIR            13 sets, the paper's grids
python benchmarks/stopping_table2.py --data DIR --quick    four sets, small: about a minute

The errors are those of ``loo_stopping`` and, fold by fold, those of ``exact``.  The test error is
that of the chosen model on the rows that the realization leaves for testing.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

import machine
import numpy as np
import stopping as shared

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
    """Of every model of the grid, averaged over realizations."""

    loo: np.ndarray
    test: np.ndarray
    equal: bool
    seconds: float
    exact_seconds: float

    @property
    def best(self) -> int:
        return int(np.argmin(self.loo))


def main() -> int:
    options = shared.arguments("LOO stopping, Table 2")
    facts = machine.facts()
    head = ["set"]
    for kernel in options.kernels:
        head += [f"{kernel}: LOO (%)", "paper", "test (%)", "paper", "`loo_stopping` (s)"]
        head += ["`exact` (s)", "equal"]
    body, equal = [], True
    for name in options.sets:
        cells = [name]
        for kernel in options.kernels:
            errors = _errors(options, name, kernel)
            cells += _cells(name, kernel, errors)
            equal &= errors.equal
        body.append(cells)
        shared.note(" ".join(cells))
    made = f"Made by `{shared.command('stopping_table2.py', options)}`.\n\n{facts}"
    text = f"## Table 2\n\n{made}\n\n{shared.table(head, body)}\n\n{_words(options)}"
    print(text)
    if options.write:
        shared.write_section("table 2", text)
    return 0 if equal else 1


def _words(options: argparse.Namespace) -> str:
    return (
        f"{options.realizations} realization(s) of each set (the paper: 5 for LOO, 100 for test). "
        "Equal: both methods have the same left-out labels, fold by fold, at every grid point."
    )


def _errors(options: argparse.Namespace, name: str, kernel: str) -> Errors:
    loo, test, equal, seconds, exact_seconds = [], [], True, 0.0, 0.0
    for data in shared.load(options, name):
        for model in shared.models(kernel, options.coarse):
            task = model.task(data)
            ours, exact = (
                shared.measure(task, shared.get_method(method))
                for method in ("loo_stopping", "exact")
            )
            equal &= np.array_equal(ours.ledger.wrong, exact.ledger.wrong)
            equal &= ours.ledger.certificate().exact
            seconds, exact_seconds = seconds + ours.seconds, exact_seconds + exact.seconds
            loo.append(ours.ledger.wrong.mean(axis=1))
            values = ours.ledger.coef @ model.kernel(data.X, data.X_test)
            right = data.y_test * (values + ours.ledger.intercept[:, None]) > 0
            test.append(1.0 - right.mean(axis=1))
    shape = (options.realizations, -1)
    averages = (np.reshape(errors, shape).mean(axis=0) for errors in (loo, test))
    return Errors(*averages, equal, seconds, exact_seconds)


def _cells(name: str, kernel: str, errors: Errors) -> list[str]:
    published = PUBLISHED[name][:2] if kernel == "linear" else PUBLISHED[name][2:]
    best = errors.best
    return [
        f"{100 * errors.loo[best]:.2f}",
        f"{published[0]:.2f}",
        f"{100 * errors.test[best]:.2f}",
        f"{published[1]:.2f}",
        f"{errors.seconds:.2f}",
        f"{errors.exact_seconds:.2f}",
        "yes" if errors.equal else "**NO**",
    ]


if __name__ == "__main__":
    sys.exit(main())
