"""One solution moved: rows forgotten, their influence, and conformal p-values.

    python -m benchmarks.users.moves --data DIR [--parts NAME ...] [--write]

CPU seconds on one thread, the least of some runs where a run is short.  Features are standardised
(but for the simulation), gamma is in units of 1 / p.  The oracle of exactness is the float64
``refit`` method.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from time import process_time
from typing import Any

import numpy as np
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import exactcv
from benchmarks.lib import command
from benchmarks.lib.data import Rows, read_rows, standardised
from benchmarks.lib.results import markdown, write_section
from exactcv.engine.moves import Mover
from exactcv.problem.kernels import Kernel, kernel_between, kernel_matrix
from exactcv.problem.losses import hinge
from exactcv.problem.problem import Problem

FILE, TITLE = "moves", "One solution moved: forget, influence, conformal p-values"
GO_ON = np.zeros(1, dtype=np.int32)
FORGOTTEN = 40
REAL, REAL_C, REPEATED = ("heart", "sonar", "australian", "a1a"), (1e-2, 1.0, 1e2, 1e3), 20
DRAWS, COVERAGES = 500, (0.8, 0.9, 0.95)


def rows_of(folder: str, name: str, most: int) -> Rows:
    """Features and labels; "simulation" is the papers'."""
    if name == "simulation":
        X, y = exactcv.datasets.make_mixture(most, 20, random_state=0)
        return X, np.where(np.asarray(y) > 0, 1.0, -1.0)
    X, y = read_rows(folder, name)
    drawn = np.sort(np.random.default_rng(0).permutation(len(y))[:most])
    return standardised(X[drawn]), y[drawn]


def seconds(job: Callable[[], Any], repeats: int = 2) -> float:
    """CPU seconds, the least of some runs."""
    found = []
    for _ in range(repeats):
        start = process_time()
        job()
        found.append(process_time() - start)
    return min(found)


def difference(model: exactcv.SVCCV, X: Any, y: Any, gone: Any) -> float:
    """How far values are from those of a refit without the rows, relative to their scale."""
    rest = np.setdiff1d(np.arange(len(y)), gone)
    gamma = model.gamma_
    assert gamma is not None
    K, _ = kernel_matrix(X[rest], Kernel("rbf", gamma))
    Cs = [model.C_]
    truth = exactcv.cross_validate(
        K, y[rest], kernel="precomputed", Cs=Cs, method="refit", cv=[(np.arange(1, len(K)), [0])]
    )
    between = kernel_between(X, X[rest], Kernel("rbf", gamma))
    values = between @ truth.coef[0] + truth.intercept[0]
    return float(np.abs(model.decision_function(X) - values).max() / max(1.0, np.abs(values).max()))


# ---- forget --------------------------------------------------------------------------------------


def forget_cell(folder: str, name: str, share: float, C: float) -> list[str]:
    """One deletion against fits, n = 2,000."""
    X, y = rows_of(folder, name, 2000)
    gamma = share / X.shape[1]
    kernel = seconds(lambda: kernel_matrix(X, Kernel("rbf", gamma)))
    K, _ = kernel_matrix(X, Kernel("rbf", gamma))
    problem = Problem(K, y, np.ones(len(y)), hinge(y))
    plain = kernel + seconds(lambda: Mover(problem, C).solved(GO_ON))
    theirs = kernel + seconds(lambda: SVC(C=C, kernel="precomputed").fit(K, y))
    model = exactcv.SVCCV(Cs=[C], gamma=gamma)
    fit = seconds(lambda: model.fit(X, y), 1)
    order = np.random.default_rng(0).permutation(len(y))
    first = seconds(lambda: model.forget(order[0]), 1)
    one = seconds(lambda: reduce(exactcv.SVCCV.forget, order[:FORGOTTEN], model)) / FORGOTTEN
    current = reduce(exactcv.SVCCV.forget, order[:FORGOTTEN], model)
    free = np.count_nonzero(np.abs(np.abs(current.dual_coef_) - 0.5 * C) < 0.5 * C * (1 - 1e-9))
    return [
        f"{name}, {share:g}/p, C={C:g}", str(free), f"{1e3 * first:.0f}", f"{1e3 * one:.1f}",
        f"{1e3 * fit:.0f}", f"{fit / one:.0f}", f"{1e3 * plain:.0f}", f"{plain / one:.0f}",
        f"{1e3 * theirs:.0f}", f"{theirs / one:.0f}",
    ]  # fmt: skip


def thousand(folder: str, name: str, share: float, C: float) -> list[str]:
    """1,000 deletions in a row at n = 2,000, each judged, and every 250th compared with a refit."""
    X, y = rows_of(folder, name, 2000)
    model = exactcv.SVCCV(Cs=[C], gamma=share / X.shape[1], cv=2).fit(X, y)
    order, current = np.random.default_rng(1).permutation(len(y))[:1000], model
    exact, start, worst = 0, process_time(), []
    for k, row in enumerate(order):
        current = current.forget(row)
        exact += current.certificate_.exact
        if k % 250 == 249:
            pause = process_time()
            worst.append(difference(current, X, y, order[: k + 1]))
            start += process_time() - pause
    spent = process_time() - start
    return [
        f"{name}, {share:g}/p, C={C:g}", f"{exact} of 1000", f"{max(worst):.1e}", f"{spent:.1f}",
    ]  # fmt: skip


def real(folder: str, name: str) -> list[str]:
    """Real sets with repeated rows over C: 30 rows one by one, and all at once."""
    X, y = rows_of(folder, name, 2000)
    X, y = np.vstack([X, X[:REPEATED]]), np.append(y, y[:REPEATED])
    cells = [f"{name}, n={len(y)}"]
    gone = np.random.default_rng(2).permutation(len(y))[:30]
    for C in REAL_C:
        model = current = exactcv.SVCCV(Cs=[C], gamma=1 / X.shape[1], cv=2).fit(X, y)
        exact = True
        for row in gone:
            current = current.forget(row)
            exact = exact and current.certificate_.exact
        both = max(difference(m, X, y, gone) for m in (current, model.forget(gone)))
        cells.append(f"{both:.1e}" + ("" if exact else " (not certified)"))
    return cells


# ---- influence -----------------------------------------------------------------------------------


def influence_cell(folder: str, name: str, n: int, C: float) -> list[str]:
    """Against one leave-one-out with decision values."""
    X, y = rows_of(folder, name, n)
    settings: dict[str, Any] = {"gamma": 1 / X.shape[1]}
    once = [
        (
            seconds(lambda: exactcv.cross_validate(X, y, Cs=[C], output="decision", **settings), 1),
            seconds(lambda: exactcv.influence(X, y, C=C, **settings), 1),
        )
        for _ in range(5)
    ]
    loo, ours = np.min(once, axis=0)
    return [f"{name}, n={len(y)}, C={C:g}", f"{loo:.2f}", f"{ours:.2f}", f"{ours / loo:.2f}"]


# ---- conformal -----------------------------------------------------------------------------------


def conformal_cell(folder: str, name: str, n: int, share: float, C: float, m: int) -> list[str]:
    """p-values of m new rows; one thread."""
    X, y = rows_of(folder, name, n + m)
    model = exactcv.ConformalSVC(C=C, gamma=share / X.shape[1]).fit(X[:n], y[:n])
    start = process_time()
    p = model.p_values(X[n:])
    spent = process_time() - start
    inside = p > 0.1 + 1e-12
    hits = inside[np.arange(len(p)), (y[n:] > 0).astype(int)].mean()
    return [
        f"{name}, {share:g}/p, C={C:g}", str(n), str(len(p)), f"{spent:.1f}",
        f"{1e3 * spent / p.size:.1f}", f"{hits:.3f}", f"{inside.sum(axis=1).mean():.2f}",
    ]  # fmt: skip


def coverage(n_classes: int, within_class: bool) -> list[str]:
    """500 simulated sets of 40 rows, each with one new row: how many sets hold the truth."""
    rng = np.random.default_rng(n_classes + 10 * within_class)
    hits, size = np.zeros(len(COVERAGES)), np.zeros(len(COVERAGES))
    for _ in range(DRAWS):
        y = rng.integers(n_classes, size=41)
        X = rng.normal(size=(41, 2)) + 1.2 * y[:, None] * np.array([1.0, -0.5])
        if len(np.unique(y[:-1])) < n_classes:  # next to never: then every label is in the set
            hits, size = hits + 1, size + n_classes
            continue
        model = exactcv.ConformalSVC(C=1.0, gamma=0.5, within_class=within_class)
        p = model.fit(X[:-1], y[:-1]).p_values(X[-1:])[0]
        hits += p[y[-1]] > 1.0 - np.array(COVERAGES) + 1e-12
        size += (p[:, None] > 1.0 - np.array(COVERAGES) + 1e-12).sum(axis=0)
    cells = [f"{n_classes} classes" + (", within class" if within_class else "")]
    for promise, hit, total in zip(COVERAGES, hits / DRAWS, size / DRAWS, strict=True):
        error = np.sqrt(promise * (1.0 - promise) / DRAWS)
        cells.append(f"{hit:.3f} ({(hit - promise) / error:+.1f} s.e.), size {total:.2f}")
    return cells


# ---- tables --------------------------------------------------------------------------------------

FORGET = [
    ("simulation", 0.1, 1.0), ("simulation", 0.1, 10.0), ("simulation", 1.0, 10.0),
    ("a9a_5000", 0.1, 1.0), ("a9a_5000", 1.0, 1.0), ("a9a_5000", 1.0, 100.0),
    ("madelon", 0.1, 1.0), ("madelon", 1.0, 1.0),
]  # fmt: skip


def part(name: str, folder: str) -> tuple[str, list[str], list[list[str]]]:
    """Title, head and body of a table."""
    if name == "forget":
        title = (
            f"One deletion at n = 2,000, mean of {FORGOTTEN}, least of two runs, as are the fits "
            "(CPU milliseconds)"
        )
        head = ["data, gamma, C", "free rows", "first call", "a deletion", "SVCCV.fit (with LOO)",
                "fit / deletion", "plain fit, kernel included", "fit / deletion",
                "SVC, kernel included", "fit / deletion"]  # fmt: skip
        return title, head, [forget_cell(folder, *cell) for cell in FORGET]
    if name == "thousand":
        title = "1,000 deletions in a row, n = 2,000"
        head = ["data, gamma, C", "certified", "largest difference from a refit", "CPU seconds"]
        cells = [("simulation", 0.1, 1.0), ("a9a_5000", 1.0, 10.0)]
        return title, head, [thousand(folder, *cell) for cell in cells]
    if name == "real":
        title = (
            f"30 rows forgotten, {REPEATED} rows repeated: largest difference from a refit, "
            "relative to the values' scale"
        )
        return title, ["data", *(f"C={C:g}" for C in REAL_C)], [real(folder, d) for d in REAL]
    if name == "influence":
        title = "influence against one leave-one-out with decision values (CPU seconds)"
        cells = [(d, n, C) for d, n in (("simulation", 800), ("a1a", 1605)) for C in (0.1, 10.0)]
        return (
            title,
            ["data", "leave-one-out", "influence", "ratio"],
            [influence_cell(folder, *cell) for cell in cells],
        )
    if name in ("conformal", "growth"):
        head = ["data, gamma, C", "rows", "new rows", "CPU s, one thread", "ms a p-value",
                "coverage at 0.9", "mean size"]  # fmt: skip
        if name == "conformal":
            cells = [(d, 500, g, C, 200) for d in ("simulation", "pima") for g in (0.1, 1.0)
                     for C in (1.0, 10.0)]  # fmt: skip
            # Classes of one size and rows hardly alike: all of a class give way for one row.
            cells += [("simulation", 300, 1.0, C, 20) for C in (0.1, 1.0)]
            return (
                "p-values",
                head,
                [conformal_cell(folder, *cell) for cell in cells],
            )
        sizes = (125, 250, 500, 1000, 2000)
        body = [conformal_cell(folder, "simulation", n, 0.1, 1.0, 20) for n in sizes]
        for (_, *small), large in pairwise(body):
            large[4] += f" (x{float(large[4]) / float(small[3].split()[0]):.1f})"
        return "p-values: how they grow with n", head, body
    title = f"Coverage of {DRAWS} simulated sets of 40 rows, one new row each"
    kinds = [(2, False), (3, False), (2, True)]
    return title, ["", *(f"promise {c:g}" for c in COVERAGES)], [coverage(*k) for k in kinds]


PARTS = ("forget", "thousand", "real", "influence", "conformal", "growth", "coverage")


def main() -> None:
    made = command.parser(__doc__, {}, FILE)
    made.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    given = command.parse_with_data(made)
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for name in given.parts:
            title, head, body = part(name, given.data)
            made_by = f"Made by `python -m {command.module()} --data DIR --parts {name} --write`."
            text = f"{made_by}\n\n**{title}**\n\n{markdown(head, body)}"
            print(text, flush=True)
            if given.write:
                write_section(FILE, name, text, TITLE)


if __name__ == "__main__":
    main()
