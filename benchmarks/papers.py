"""What the scripts for the tables of the magic-LOO and consolidated-CV papers share.

Each script makes one table or figure:  python magic_table1.py [--quick | --full] [--data DIR].
``--rows`` runs some rows only; ``--write`` keeps what was found in papers1_rows.json, row by row,
and makes the section of RESULTS_papers1.md and the figure from all rows kept there.  Times are CPU
seconds of one thread, so that other work on the machine disturbs them little.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from machine import facts
from papers_peers import LAMBDAS, PEERS, Fit, Job
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

import exactcv
from exactcv.algorithms.magic import one_path
from exactcv.judge.ledger import Ledger
from exactcv.problem.differentiable import SMOOTH_LOSSES
from exactcv.problem.folds import leave_one_out_folds
from exactcv.problem.grid import Grid
from exactcv.problem.losses import hinge
from exactcv.problem.problem import Problem, Task
from exactcv.runtime.threads import Workers

HERE = Path(__file__).parent
RESULTS, ROWS = HERE / "RESULTS_papers1.md", HERE / "papers1_rows.json"
FIGURES = HERE / "figures"
HEAD = "# The papers' tables: magic LOO and consolidated CV\n"
N_TEST = 10_000
METHODS = ("exact", "consolidated", "magic")
ALONE = "same solver, fold by fold"

Row = dict[str, Any]


# ---- one script ----------------------------------------------------------------------------------


@dataclass
class Table:
    """A table in the making: ``cases`` by row name, what is said about the rows, the figure.

    ``body`` turns the rows kept so far into paragraphs.
    """

    title: str
    cases: Callable[[argparse.Namespace], dict[str, Callable[[], Row]]]
    body: Callable[[dict[str, Row]], Iterable[str]]
    figure: Callable[[dict[str, Row]], None]

    def main(self, what: str) -> None:
        args = options(what)
        cases = self.cases(args)
        name = Path(sys.argv[0]).stem
        kept: dict[str, Row] = _stored().get(name, {}) if args.write else {}
        for row, run in cases.items():
            if args.rows and row not in args.rows:
                continue
            kept[row] = run() | {"load": round(os.getloadavg()[0], 1), "size": _size(args)}
            print(f"{row}: {kept[row]}", file=sys.stderr)
            if args.write:
                kept |= _store(name, {row: kept[row]})
        order = [*cases, *(row for row in kept if row not in cases)]
        kept = {row: kept[row] for row in order if row in kept}
        if kept:
            self._publish(args, name, kept)
        else:
            print(f"no rows; there are: {', '.join(cases) or 'none (is --data given?)'}")

    def _publish(self, args: argparse.Namespace, name: str, kept: dict[str, Row]) -> None:
        sizes = " and ".join(sorted({f"--{row['size']}" for row in kept.values()}))
        command = f"Made by `python benchmarks/{name}.py --write` with {sizes}"
        load = f"load average at the end of each row {[row['load'] for row in kept.values()]}"
        text = "\n\n".join(
            [f"## {self.title}", f"{command}; {load}. The last row on", facts(), *self.body(kept)]
        )
        print(text)
        if args.write:
            self.figure(kept)
            _into_results(name, f"{text}\n\n![{self.title}](figures/{name}.png)")


def options(what: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=what)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="one run, no large sizes (default)")
    size.add_argument("--full", action="store_true", help="the papers' sizes and numbers of runs")
    parser.add_argument("--rows", nargs="+", metavar="ROW", help="only these, such as p=20,n=400")
    parser.add_argument(
        "--data", default=os.environ.get("EXACTCV_DATA"), help="folder of data sets"
    )
    parser.add_argument("--write", action="store_true", help=f"write to {RESULTS.name}")
    return parser.parse_args()


def _size(args: argparse.Namespace) -> str:
    return "full" if args.full else "quick"


def _stored() -> dict[str, dict[str, Row]]:
    return json.loads(ROWS.read_text()) if ROWS.exists() else {}


def _store(name: str, rows: dict[str, Row]) -> dict[str, Row]:
    """Add rows to those kept; returns all, also those that others have added meanwhile."""
    stored = _stored()
    rows = stored.get(name, {}) | rows
    ROWS.write_text(json.dumps(stored | {name: rows}, indent=1) + "\n")
    return rows


def _into_results(name: str, text: str) -> None:
    """Put a section between markers of its own."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    old = RESULTS.read_text() if RESULTS.exists() else HEAD
    section = f"{begin}\n{text}\n{end}\n"
    if begin in old:
        head, rest = old.split(begin)
        old = head + section + rest.split(end + "\n", 1)[1]
    else:
        old = old.rstrip("\n") + "\n\n" + section
    RESULTS.write_text(old)


# ---- data ----------------------------------------------------------------------------------------

Draw = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def simulation(n: int, p: int, seed: int, n_test: int = N_TEST, **kwargs: Any) -> Draw:
    """Training and test rows of one draw of centres."""
    X, y = exactcv.datasets.make_mixture(n + n_test, p, random_state=seed, **kwargs)
    return X[:n], y[:n], X[n:], y[n:]


# The magic paper's own simulation: means of 2.  Its sigma = 4 is a standard deviation: with a
# variance of 4 every left-out error is 0, which its objectives (0.55 to 0.62) rule out.
MAGIC = {"mean": 2.0, "noise": 4.0}


def data_set(folder: str | None, name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """A standardised data set, or None if it is not there."""
    path = Path(folder or "") / f"{name}.csv.gz"
    if folder is None or not path.exists():
        return None
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    X, y = table[:, :-1], table[:, -1]
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0), y


# ---- our side ------------------------------------------------------------------------------------


def ours(X: np.ndarray, y: np.ndarray, method: str, **kwargs: Any) -> tuple[float, Any]:
    """All left-out decision values, from raw data to certificate, BLAS on one thread."""
    with threadpool_limits(limits=1):
        start = process_time()
        result = exactcv.cross_validate(X, y, method=method, output="decision", **kwargs)
        return process_time() - start, result


def one_by_one(
    X: np.ndarray,
    y: np.ndarray,
    gamma: float,
    loss: str,
    fit_intercept: bool = True,
    tol: float = 1e-6,
) -> float:
    """Ordinary leave-one-out with the solver of ``magic``: one fold after the other, each with the
    kernel matrix of its own rows, its own inverses and its own path; estimated from two folds."""
    K, n, sample = rbf_kernel(X, gamma=gamma), len(y), 2
    seconds = 0.0
    for j in np.linspace(0, n - 1, sample).astype(int):
        train = np.delete(np.arange(n), j)
        with threadpool_limits(limits=1), Workers(1) as workers:
            start = process_time()
            part = np.ascontiguousarray(K[np.ix_(train, train)])
            make = {"hinge": hinge, **SMOOTH_LOSSES}[loss]
            problem = Problem(part, y[train], np.ones(n - 1), make(y[train]), fit_intercept)
            # C of leave-one-out: 1 / (2 n lambda), with all n rows.
            grid = Grid(1 / (2 * n * LAMBDAS), LAMBDAS, False)
            task = Task(problem, leave_one_out_folds(n - 1), grid, True, tol)
            one_path(task, Ledger(task), workers)
            seconds += process_time() - start
    return seconds * n / sample


# ---- all sides -----------------------------------------------------------------------------------


def run_peers(job: Job, leave_out: Sequence[str] = ()) -> tuple[dict[str, Fit], list[str]]:
    """Each peer's times and fit, and the reasons of those that did not run."""
    fits, skipped = {}, []
    for name, run in PEERS.items():
        if name in leave_out:
            continue
        found = run(job)
        if isinstance(found, str):
            skipped.append(found)
        else:
            fits[name] = found
    return fits, skipped


def compare(draws: Sequence[Draw], leave_out: Sequence[str] = ()) -> Row:
    """Seconds, objective and test error of every column; ours as means over the draws, peers and
    the same solver fold by fold on the first draw, at the lambda that leave-one-out picks there."""
    found = {name: [ours(d[0], d[1], name, tol=1e-6) for d in draws] for name in METHODS}
    X, y, X_test, y_test = draws[0]
    base = found["exact"][0][1]
    job = Job(X, y, base.gamma, base.best, len(y))
    alone = one_by_one(X, y, base.gamma, "hinge")
    fits, skipped = run_peers(job, leave_out)
    times = {name: float(np.mean([spent for spent, _ in found[name]])) for name in METHODS}
    fits = {n: Fit(0.0, r.coef[base.best], float(r.intercept[base.best])) for n in METHODS
            for r in [found[n][0][1]]} | fits  # fmt: skip
    quality = {name: _quality(job, fit, X_test, y_test) for name, fit in fits.items()}
    apart = {
        name: max(
            float(np.abs(r.decision - e.decision).max())
            for (_, r), (_, e) in zip(found[name], found["exact"], strict=True)
        )
        for name in METHODS
    }
    return {
        "seconds": times | {ALONE: alone} | {k: f.seconds for k, f in fits.items() if f.basis},
        "basis": {k: f.basis for k, f in fits.items() if f.basis} | {ALONE: "2 folds"},
        "objective": {k: v[0] for k, v in quality.items()},
        "test error": {k: v[1] for k, v in quality.items()},
        "decision": max(apart.values()),
        "exact": all(r.certificate.exact for name in METHODS for _, r in found[name]),
        "fallback": sum(r.stats["fallback"] for name in METHODS for _, r in found[name]),
        "runs": len(draws),
        "skipped": skipped,
    }


def _quality(job: Job, fit: Fit, X_test: np.ndarray, y_test: np.ndarray) -> tuple[float, float]:
    """Objective and test error of a fit to all rows."""
    assert fit.coef is not None
    h = job.kernel() @ fit.coef
    hinge_loss = np.maximum(0, 1 - job.y * (h + fit.intercept)).mean()
    f = rbf_kernel(X_test, job.X, gamma=job.gamma) @ fit.coef + fit.intercept
    return float(hinge_loss + LAMBDAS[job.best] * fit.coef @ h), float(np.mean(y_test * f <= 0))


def comparison(rows: dict[str, Row]) -> list[str]:
    """Three tables of rows made by `compare`: seconds, ratios, agreement."""
    columns = [*METHODS, ALONE, *PEERS]
    times = [
        {"": name} | {c: _marked(row, c) for c in columns if c in row["seconds"]}
        for name, row in rows.items()
    ]
    ratios = [{"": name} | _ratios(row["seconds"]) for name, row in rows.items()]
    agree = [{"": name} | _agreement(row) for name, row in rows.items()]
    return [table(times), table(ratios), table(agree)]


def _marked(row: Row, column: str) -> str:
    return seconds(row["seconds"][column]) + ("*" if row["basis"].get(column) else "")


def _ratios(spent: dict[str, float]) -> dict[str, str]:
    out = {"magic / consolidated": f"{spent['magic'] / spent['consolidated']:.2f}"}
    for method in ("magic", "consolidated"):
        out[f"fold by fold / {method}"] = f"{spent[ALONE] / spent[method]:.1f}"
    peers = {name: spent[name] for name in PEERS if name in spent}
    if peers:
        quickest = min(peers, key=lambda name: peers[name])
        for method in METHODS:
            ratio = peers[quickest] / spent[method]
            out[f"quickest peer / {method}"] = f"{ratio:.3g} ({quickest})"
    return out


def _agreement(row: Row) -> dict[str, str]:
    """Objective and test error of `exact`, and how far from them the others are."""
    objective, error = row["objective"], row["test error"]
    out = {"objective": f"{objective['exact']:.6f}", "test error": f"{error['exact']:.4f}"}
    for name in objective:
        if name != "exact":
            by = objective[name] - objective["exact"]
            out[name] = f"{by:+.0e}, {error[name] - error['exact']:+.4f}"
    out["decision values differ by"] = f"{row['decision']:.0e}"
    out["certified at 1e-6"] = "yes" if row["exact"] else "**NO**"
    out["fallback"] = str(row["fallback"])
    return out


def not_run(rows: dict[str, Row]) -> str:
    reasons = sorted({reason for row in rows.values() for reason in row.get("skipped", [])})
    return f"Not run: {'; '.join(reasons) or 'nothing'}."


# ---- tables --------------------------------------------------------------------------------------


def seconds(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def table(rows: Sequence[dict[str, str]]) -> str:
    names: list[str] = []
    for row in rows:
        names += [name for name in row if name not in names]
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(row.get(name, "-") for name in names) + " |" for row in rows]
    return "\n".join(lines)


def bars(labels: Sequence[str], series: dict[str, Sequence[float]], ylabel: str) -> None:
    """A grouped bar chart on a log scale, saved as PNG under the name of the script."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
    width = 0.8 / len(series)
    for k, (name, values) in enumerate(series.items()):
        axes.bar(np.arange(len(labels)) + k * width, values, width, label=name)
    axes.set_xticks(np.arange(len(labels)) + 0.4 - width / 2, labels, fontsize=7)
    axes.set_yscale("log")
    axes.set_ylabel(ylabel)
    axes.legend(fontsize=6, ncols=2)
    FIGURES.mkdir(exist_ok=True)
    figure.savefig(FIGURES / f"{Path(sys.argv[0]).stem}.png", dpi=90)
    plt.close(figure)


def time_bars(rows: dict[str, Row]) -> None:
    """Seconds of every column that all rows have."""
    names = [c for c in [*METHODS, ALONE, *PEERS] if all(c in r["seconds"] for r in rows.values())]
    series = {name: [row["seconds"][name] for row in rows.values()] for name in names}
    bars([name.replace(",", "\n") for name in rows], series, "CPU seconds, 50 lambdas")
