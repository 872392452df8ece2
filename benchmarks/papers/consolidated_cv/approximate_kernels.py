"""Approximate kernels: speed against LinearSVC, growth with n, accuracy against m, Dask.

    python -m benchmarks.papers.consolidated_cv.approximate_kernels [--quick | --full]
        [--part speed growth accuracy dask] [--write]

Every part runs in processes of its own, on the simulation of the papers with p = 20; what was found
is kept in results/approximate_kernels.json, and the results file is made from all that is there.
Seconds are wall clock, with two threads, from the raw rows to the certified leave-one-out curve.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np

import exactcv
from benchmarks.lib import command, results
from benchmarks.lib.machine import facts

from . import approximate_kernels_words as words

FILE = "approximate_kernels"
P, SEED, N_TEST = 20, 0, 100_000
GRID = np.exp(np.linspace(6, -6, 50))
REPEATS = 3
PARTS = ("speed", "growth", "accuracy", "dask")
MODULE = "benchmarks.papers.consolidated_cv.approximate_kernels"

Row = dict[str, Any]


def lambdas_of(approx: str, m: int, grid: str) -> np.ndarray:
    """``words.GRIDS`` says what they are."""
    return GRID * 2.0 / m if approx == "rff" and grid == "paper" else GRID


# ---- data ----------------------------------------------------------------------------------------


def centres() -> dict[float, np.ndarray]:
    """The centres that ``make_mixture`` draws first."""
    rng = np.random.default_rng(SEED)
    mean = np.where(np.arange(P) < P // 2, 1.0, 0.0)
    return {1.0: rng.normal(size=(10, P)) + mean, -1.0: rng.normal(size=(10, P)) + (1.0 - mean)}


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the mixture with these centres, in pieces so that little is held twice."""
    rng, middle = np.random.default_rng([SEED, seed]), centres()
    y = rng.permutation(np.where(np.arange(n) < n // 2, 1.0, -1.0))
    X = np.empty((n, P))
    for start in range(0, n, 100_000):
        part = slice(start, min(start + 100_000, n))
        signs = y[part]
        rows = 3.0 * rng.normal(size=(len(signs), P))
        for sign, centre in middle.items():
            mine = signs == sign
            rows[mine] += centre[rng.integers(10, size=int(mine.sum()))]
        X[part] = rows
    return X, y


def bayes_error(X: np.ndarray, y: np.ndarray) -> float:
    """Of the rule that knows the mixture, on these rows."""
    score = np.zeros(len(y))
    for sign, centre in centres().items():
        square = (X**2).sum(axis=1)[:, None] - 2.0 * X @ centre.T + (centre**2).sum(axis=1)
        score += sign * np.logaddexp.reduce(-square / 18.0, axis=1)
    return float(np.mean(score * y <= 0))


def test_error(result: exactcv.CVResult, X: np.ndarray, y: np.ndarray) -> float:
    assert result.weights is not None
    best = result.best
    wrong = 0
    for start in range(0, len(y), 10_000):
        part = slice(start, start + 10_000)
        u = result.feature_map.transform(X[part]) @ result.weights[best] + result.intercept[best]
        wrong += int(np.count_nonzero(u * y[part] <= 0))
    return wrong / len(y)


# ---- the parts: each runs in a process of its own ------------------------------------------------


def ours(n: int, m: int, approx: str, grid: str = "paper", options: Row | None = None) -> Row:
    """One leave-one-out error curve; the rows come from a file that is mapped, not read."""
    lambdas = lambdas_of(approx, m, grid)
    with tempfile.TemporaryDirectory() as folder:
        X, y = draw(n, 1)
        np.save(f"{folder}/X.npy", X)
        del X
        X = np.load(f"{folder}/X.npy", mmap_mode="r")
        start = perf_counter()
        result = exactcv.cross_validate(
            X, y, approx=approx, n_components=m, lambdas=lambdas, random_state=0, n_jobs=2,
            progress=True, memory_limit="6GB", method_options=options or {},
        )  # fmt: skip
        seconds = perf_counter() - start
    X_test, y_test = draw(N_TEST, 2)
    used = sum(result.stats[how] for how in ("unchanged", "bound", "solved", "fallback"))
    return {
        "n": n, "m": m, "approx": approx, "grid": grid, "seconds": seconds,
        "cpu": sum(resource.getrusage(resource.RUSAGE_SELF)[:2]),
        "GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "loo": float(result.error[result.best]), "test": test_error(result, X_test, y_test),
        "bayes": bayes_error(X_test, y_test), "lambda": float(result.lambdas[result.best]),
        "exact": result.certificate.exact, "kkt": float(result.certificate.kkt.max()),
        "gap": float(result.certificate.gap.max()), "passes": result.stats["passes"],
        "proved": (result.stats["unchanged"] + result.stats["bound"]) / used,
        "solved": result.stats["solved"] + result.stats["fallback"],
        "features": result.stats["features"], "timings": result.timings,
    }  # fmt: skip


def linear_svc(n: int, m: int, approx: str, grid: str, which: list[int]) -> Row:
    """LinearSVC(loss="hinge") on the same features, at some lambdas; scikit-learn's defaults."""
    import warnings

    from sklearn.svm import LinearSVC

    lambdas = lambdas_of(approx, m, grid)
    X, y = draw(n, 1)
    short = exactcv.cross_validate(
        X, y, approx=approx, n_components=m, lambdas=lambdas[:1], random_state=0, n_jobs=2
    )
    Z = short.feature_map.transform(X)
    found = []
    for l in which:
        C = 1.0 / (2 * n * lambdas[l])
        model = LinearSVC(loss="hinge", C=C, random_state=0)
        start = perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(Z, y)
        found.append((l, perf_counter() - start, int(np.max(model.n_iter_))))
        command.say(str(found[-1]))
    return _total({"n": n, "m": m, "approx": approx, "grid": grid, "fits": found})


def _total(peer: Row) -> Row:
    """With the time of 50 fits, the ones not made as long as those on either side."""
    at, spent = [fit[0] for fit in peer["fits"]], [fit[1] for fit in peer["fits"]]
    return peer | {"seconds": float(np.interp(np.arange(50), at, spent).sum())}


def quickest(one: Row, other: Row) -> Row:
    """The better of two runs; of LinearSVC, fit by fit."""
    if "fits" not in one:
        return min(one, other, key=lambda row: row["seconds"])
    fits = [
        min(pair, key=lambda fit: fit[1]) for pair in zip(one["fits"], other["fits"], strict=True)
    ]
    return _total(one | {"fits": fits})


def exact_kernel(n: int) -> Row:
    X, y = draw(n, 1)
    start = perf_counter()
    result = exactcv.cross_validate(X, y, lambdas=GRID, n_jobs=2)
    seconds = perf_counter() - start
    X_test, y_test = draw(N_TEST, 2)
    wrong = 0
    for part in np.array_split(np.arange(N_TEST), 50):
        square = (X_test[part] ** 2).sum(axis=1)[:, None] - 2 * X_test[part] @ X.T
        K = np.exp(-result.gamma * (square + (X**2).sum(axis=1)))
        u = K @ result.coef[result.best] + result.intercept[result.best]
        wrong += int(np.count_nonzero(u * y_test[part] <= 0))
    bayes = bayes_error(X_test, y_test)
    return {"n": n, "seconds": seconds, "test": wrong / N_TEST, "bayes": bayes}


def on_dask(n: int, m: int) -> Row:
    """The same rows with one process and with two Dask workers of one thread each."""
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    X, y = draw(n, 1)
    options: Row = {"approx": "nystroem", "n_components": m, "lambdas": GRID, "random_state": 0}
    exactcv.cross_validate(X[:2000], y[:2000], **options)
    start = perf_counter()
    local = exactcv.cross_validate(X, y, n_jobs=1, **options)
    alone = perf_counter() - start
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        # One process has the rows at hand as well, and has imported what it takes.
        rows = client.persist(da.from_array(X, chunks=(n // 8, P)))
        wait(rows)
        client.run(lambda: __import__("exactcv.lowrank.method"))
        start = perf_counter()
        spread = exactcv.cross_validate(
            rows, y, n_jobs=1, method_options={"features": "memory"}, **options
        )
        seconds = perf_counter() - start
    return {
        "n": n, "m": m, "one process": alone, "two workers": seconds,
        "sent MB": spread.stats["bytes_sent"] / 1e6,
        "received MB": spread.stats["bytes_received"] / 1e6,
        "weights differ by": float(np.abs(spread.weights - local.weights).max()),
        "labels differ": int((spread.wrong != local.wrong).sum()),
    }  # fmt: skip


# ---- which runs ----------------------------------------------------------------------------------


PROBLEMS = (("nystroem", "paper"), ("rff", "paper"), ("rff", "kernel"))


def jobs(part: str, size: str) -> dict[str, tuple[str, list[Any]]]:
    """Name of each run -> (function, arguments)."""
    if part == "speed":
        n = 20_000 if size == "quick" else 100_000
        some = [0, 10, 20, 30, 36, 40, 43, 46, 49]
        return {
            f"{who} {approx} n={n} {grid}": (function, [n, 200, approx, grid, *last])
            for approx, grid in PROBLEMS
            for who, function, last in (("ours", "ours", []), ("peer", "linear_svc", [some]))
        }
    if part == "growth":
        sizes = [20_000, 100_000] + [1_000_000] * (size != "quick") + [5_000_000] * (size == "full")
        big = {"features": "spill", "dtype": "float32"}
        return {
            f"{approx} n={n} {grid}": ("ours", [n, 200, approx, grid, big if n > 2_000_000 else {}])
            for approx, grid in PROBLEMS[:2]
            for n in sizes
        }
    if part == "accuracy":
        n, ms = (20_000, (50, 200)) if size == "quick" else (100_000, (50, 100, 200, 400, 1000))
        runs = {
            f"{a} {grid} m={m} n={n}": ("ours", [n, m, a, grid]) for a, grid in PROBLEMS for m in ms
        }
        few = {
            f"{a} {grid} m={m} n=800": ("ours", [800, m, a, grid])
            for a, grid in PROBLEMS
            for m in (50, 200)
        }
        return runs | few | {"exact n=800": ("exact_kernel", [800])}
    sizes = [20_000] if size == "quick" else [100_000, 1_000_000]
    return {f"dask n={n}": ("on_dask", [n, 200]) for n in sizes}


def run_alone(name: str, function: str, arguments: list[Any]) -> Row:
    """In a process of its own, for its memory and so that nothing is warm."""
    load = os.getloadavg()[0]
    printed = command.run_module(MODULE, "--call", function, json.dumps(arguments))
    row: Row = json.loads(printed.splitlines()[-1])
    command.say(f"{name}: {row}")
    return row | {"load": round(load, 1)}


def measured(todo: dict[str, tuple[str, list[Any]]], repeats: int) -> Iterator[tuple[str, Row]]:
    """What each run found, the quickest of its repeats, which are taken in turn."""
    found: dict[str, Row] = {}
    for _ in range(repeats):
        for name, (function, arguments) in todo.items():
            row = run_alone(name, function, arguments)
            found[name] = quickest(row, found[name]) if name in found else row
            yield name, found[name]


def options() -> argparse.Namespace:
    sizes = {"quick": "small sizes (default: all but 5e6)", "full": "n = 5,000,000 as well"}
    parser = command.parser(__doc__, sizes, FILE)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--only", nargs="+", help="only these runs of the parts")
    parser.add_argument("--call", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    args = options()
    if args.call:
        print(json.dumps(globals()[args.call[0]](*json.loads(args.call[1]))))
        return
    size = "quick" if args.quick else "full" if args.full else "usual"
    kept = results.read_records(FILE) if args.write else {}
    for part in args.part:
        todo = {
            name: job
            for name, job in jobs(part, size).items()
            if not args.only or name in args.only
        }
        for name, row in measured(todo, REPEATS if part == "speed" else 1):
            kept.setdefault(part, {})[name] = row
            if args.write:
                results.write_records(FILE, kept)
    body = words.text(kept, REPEATS)
    print(body)
    if args.write:
        if kept.get("accuracy"):
            words.plot_accuracy(kept["accuracy"])
        made = f"Made by `python -m {MODULE} --full --write`, part by part, on\n\n{facts()}"
        results.write_section(FILE, "all parts", f"{made}\n\n{body}", "Approximate kernels")


if __name__ == "__main__":
    main()
