"""Consolidated CV, Table 1: at which lambda the printed objectives and test errors come out.

    python -m benchmarks.papers.consolidated_cv.one_lambda [--quick] [--write]

At the lambda of least left-out error, run by run, objectives are far below the printed ones and, at
p = 200, test errors a twentieth of them (``paper_runs.md``).  The printed standard errors say that
objectives hardly vary from run to run, and test errors at p = 200 very much, whatever n.  Here: one
lambda for all runs, that at which the mean objective is the printed one, and the test error there.
"""

from __future__ import annotations

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

import exactcv
from benchmarks.lib import command
from benchmarks.lib.data import simulation
from benchmarks.lib.kept_table import FILE, HEAD
from benchmarks.lib.results import markdown, write_section

# n, p: objective, test error, each with its standard error, as printed (50 runs)
PRINTED = {
    (200, 20): (0.814, 0.005, 0.351, 0.007), (400, 20): (0.827, 0.003, 0.332, 0.005),
    (800, 20): (0.846, 0.002, 0.309, 0.002), (1600, 20): (0.853, 0.001, 0.297, 0.001),
    (200, 200): (0.780, 0.006, 0.337, 0.015), (400, 200): (0.794, 0.003, 0.366, 0.015),
    (800, 200): (0.811, 0.001, 0.346, 0.015), (1600, 200): (0.821, 0.001, 0.322, 0.013),
}  # fmt: skip
LAMBDAS = np.exp(np.linspace(-3.4, -5.0, 33))


def curves(n: int, p: int, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Objectives and test errors along the grid, a row for each run."""
    objectives, errors = [], []
    for seed in range(runs):
        X, y, X_test, y_test = simulation(n, p, seed, 2000)
        with threadpool_limits(limits=1):  # two folds: only the fit to all rows is wanted
            found = exactcv.cross_validate(X, y, lambdas=LAMBDAS, cv=2)
        f = rbf_kernel(X_test, X, gamma=found.gamma) @ found.coef.T + found.intercept
        objectives.append(found.objective)
        errors.append(np.mean(y_test[:, None] * f <= 0, axis=0))
    return np.array(objectives), np.array(errors)


def line(n: int, p: int, runs: int) -> list[str]:
    objectives, errors = curves(n, p, runs)
    objective, _, error, error_se = PRINTED[n, p]
    at = np.interp(-objective, -objectives.mean(axis=0), np.log(LAMBDAS))
    own = [np.interp(-at, -np.log(LAMBDAS), one) for one in objectives]
    missed = [np.interp(-at, -np.log(LAMBDAS), one) for one in errors]
    implied = [np.sqrt(50) * PRINTED[n, p][k] for k in (1, 3)]
    return [
        *(f"{p}", f"{n}", f"{objective:.3f}", f"{at:.2f}"),
        *(f"{np.std(own, ddof=1):.3f}", f"{implied[0]:.3f}"),
        *(f"{np.mean(missed):.3f} ({np.std(missed, ddof=1) / np.sqrt(runs):.3f})",),
        *(f"{error:.3f} ({error_se:.3f})", f"{np.std(missed, ddof=1):.3f}", f"{implied[1]:.3f}"),
        str(runs),
    ]


def main() -> None:
    sizes = {"quick": "5 runs, n to 400", "full": "20 runs, 10 of n = 1600 (default)"}
    given = command.parser(__doc__, sizes, FILE).parse_args()
    head = [
        *("p", "n", "objective, printed", "log lambda where it is so here"),
        *("spread of runs", "printed", "test error there", "printed"),
        *("spread of runs", "printed", "runs"),
    ]
    body = []
    for n, p in PRINTED:
        if n <= 400 or not given.quick:
            body.append(line(n, p, 5 if given.quick else 10 if n == 1600 else 20))
            command.say(" ".join(body[-1]))
    words = (
        "Spreads are standard deviations of single runs; the printed ones are the printed standard "
        "errors times the square root of 50. Standard errors in brackets; 2,000 test rows."
    )
    made = f"Made by `{command.command_line()}`."
    title = "## Consolidated CV, Table 1: which lambda the printed figures belong to"
    text = "\n\n".join([title, made, words, markdown(head, body)])
    print(text)
    if given.write:
        write_section(FILE, "consolidated_cv_one_lambda", text, HEAD)


if __name__ == "__main__":
    main()
