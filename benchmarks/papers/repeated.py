"""The tables that the papers average over many runs, one run at a time, kept after each.

    python -m benchmarks.papers.repeated --data DIR [--cells PREFIX ...] [--columns NAME ...]
        [--runs N | --full] [--seconds S]
    python -m benchmarks.papers.repeated --no-run

A *cell* is one row of a table.  All cells get their first run, then all their second, and so on;
what is in results/paper_runs.json is not run again, column by column, so that a stopped process is
taken up by the same command.  results/paper_runs.md is made anew from all that is there, with the
papers' figures beside ours and the number of runs.  Times are CPU seconds of one thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter, process_time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import exactcv
from benchmarks.lib import command, results
from benchmarks.lib.comparison import one_by_one
from benchmarks.lib.data import is_there, read_rows, simulation, standardised
from benchmarks.lib.machine import count_cpu_time, facts
from exactcv.algorithms.finite_smoothing import levels

from .magic_loo import MAGIC, figure1
from .printed import PRINTED, PRINTED_NOTE

FILE = "paper_runs"
HEAD = "The papers' tables over many runs"
Record = dict[str, float]

GRID = np.exp(np.linspace(6, -6, 50))
CHOSEN = "chosen"
ALONE = "same solver fold by fold"
SETS = ("leuk", "sonar", "heart", "arrhythmia", "musk", "valley", "australian")
LARGE = "chess"
COLUMNS: dict[str, tuple[str, dict[str, Any]]] = {
    "exact": ("exact", {}),
    "consolidated": ("consolidated", {}),
    "consolidated, printed bounds": ("consolidated", {"bounds": "printed"}),
    "magic": ("magic", {}),
}


def validate(X: np.ndarray, y: np.ndarray, column: str, **options: Any) -> tuple[float, Any]:
    """Seconds and result of one column."""
    method, own = COLUMNS[column]
    settings = {"lambdas": GRID, "tol": 1e-6, "output": "decision", "method_options": own or None}
    with threadpool_limits(limits=1):
        start = process_time()
        found = exactcv.cross_validate(X, y, method=method, **(settings | options))
        return process_time() - start, found


def side_by_side(
    X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray, columns: Sequence[str]
) -> Record:
    """Seconds of every column and what bounds fix; `chosen`: objective and error at the best."""
    out: Record = {}
    if CHOSEN in columns:
        _, found = validate(X, y, "exact", output="error")
        best = int(found.best)
        f = _values(found, X, X_test, best)
        out["objective"] = float(found.objective[best])
        out["test error"] = float(np.mean(y_test * f <= 0))
    timed = [column for column in COLUMNS if column in columns]
    if timed:  # their decision values are held against those of `exact`
        out["s, exact"], base = validate(X, y, "exact")
    for column in timed:
        if column == "exact":
            continue
        out[f"s, {column}"], found = validate(X, y, column)
        apart = float(np.abs(found.decision - base.decision).max())
        out["decision apart"] = max(out.get("decision apart", 0.0), apart)
        if "size_S" in found.stats:
            fixed = 1.0 - found.stats["size_S"][1:].mean() / len(y)
            out[f"share fixed, {column}"] = float(fixed)
    return out


def _values(found: Any, X: np.ndarray, X_test: np.ndarray, l: int) -> np.ndarray:
    from sklearn.metrics.pairwise import rbf_kernel

    return rbf_kernel(X_test, X, gamma=found.gamma) @ found.coef[l] + found.intercept[l]


def consolidated_table1(n: int, p: int, run: int, columns: Sequence[str]) -> Record:
    return side_by_side(*simulation(n, p, run), columns)


def consolidated_table2(
    folder: str, name: str, rows: int | None, run: int, columns: Sequence[str]
) -> Record:
    """Trained on nine tenths of the rows, or on so many of them."""
    X, y = read_rows(folder, name)
    X = standardised(X)
    order = np.random.default_rng(run).permutation(len(y))
    cut = int(0.9 * len(y))
    train, test = np.sort(order[: rows or cut]), order[cut:]
    return side_by_side(X[train], y[train], X[test], y[test], columns)


def consolidated_profile(run: int, columns: Sequence[str]) -> Record:
    """n = 800, p = 20: what lambda = 0.1 alone takes, after the two lambdas of the grid before it.

    (The bounds at a lambda hang on the solutions at the one before, and on nothing earlier.)
    """
    count_cpu_time(levels)
    X, y, *_ = simulation(800, 20, run, 10)
    out: Record = {}
    for column in columns:
        _, found = validate(X, y, column, lambdas=np.append(GRID[GRID > 0.105][-2:], 0.1))
        out[f"inversions, {column}"] = float(found.stats["seconds_factorising"][-1])
        out[f"leave-one-out, {column}"] = float(found.stats["seconds_iterating"][-1])
    return out


def magic_table1(n: int, p: int, run: int, columns: Sequence[str]) -> Record:
    """Times; the objectives are in `magic_loo.objectives`."""
    X, y, *_ = simulation(n, p, run, 10, **MAGIC)
    out: Record = {}
    for column in ("exact", "magic"):
        if column in columns:
            out[f"s, {column}"] = validate(X, y, column, fit_intercept=False)[0]
    if ALONE in columns:
        gamma = exactcv.cross_validate(X, y, lambdas=[1.0], fit_intercept=False).gamma
        out[f"s, {ALONE}"] = one_by_one(X, y, gamma, "hinge", False)
    return out


def magic_figure1(n: int, run: int, columns: Sequence[str]) -> Record:
    X, y, *_ = simulation(n, n // 2, run, 10, **MAGIC)
    out: Record = {}
    for loss in columns:
        spent, found = validate(X, y, "magic", loss=loss, fit_intercept=False, tol=1e-8)
        out[f"speed-up, {loss}"] = one_by_one(X, y, found.gamma, loss, False, 1e-8) / spent
        out[f"s, magic, {loss}"] = spent
    return out


@dataclass(frozen=True)
class Cell:
    """How many runs each column should have, and what does the columns of one run."""

    runs: dict[str, int]
    work: Callable[[int, Sequence[str]], Record]

    def missing(self, run: int, record: Record, columns: Sequence[str]) -> list[str]:
        """The columns that this run still has to do."""
        wanted = [c for c in self.runs if run < self.runs[c] and (not columns or c in columns)]
        return [c for c in wanted if not any(_is_of(key, c) for key in record)]


def _is_of(key: str, column: str) -> bool:
    """Does a run with this figure have this column?"""
    return key.startswith("objective") if column == CHOSEN else key.endswith(f", {column}")


def cells(folder: str | None, full: bool) -> dict[str, Cell]:
    """Every cell; objectives and errors have the paper's number of runs, since they cost little."""
    out: dict[str, Cell] = {}
    runs = dict.fromkeys(("exact", "magic", ALONE), 20)
    for n in (200, 300, 400):
        for p in (n // 5, n // 2):
            out[f"magic table 1, n={n}, p={p}"] = Cell(runs, partial(magic_table1, n, p))
    runs = dict.fromkeys(("logistic", "squared_hinge"), 20)
    for n in (100, 200, 300, 400):
        out[f"magic figure 1, n={n}"] = Cell(runs, partial(magic_figure1, n))
    runs = {CHOSEN: 50} | dict.fromkeys(COLUMNS, 50 if full else 5)
    for name in SETS:
        if folder is not None and is_there(folder, name):
            work = partial(consolidated_table2, folder, name, None)
            out[f"consolidated table 2, {name}"] = Cell(runs, work)
    if folder is not None and is_there(folder, LARGE):  # hours, unless with fewer rows
        for rows in (None, 800, 400):
            name = f"{LARGE}, {rows} rows" if rows else LARGE
            asked = runs if rows or full else {CHOSEN: 5, "exact": 5}
            work = partial(consolidated_table2, folder, LARGE, rows)
            out[f"consolidated table 2, {name}"] = Cell(asked, work)
    runs = {CHOSEN: 50} | dict.fromkeys(COLUMNS, 50 if full else 10)
    for n in (200, 400, 800, 1600):
        for p in (20, 200):
            out[f"consolidated table 1, n={n}, p={p}"] = Cell(
                runs, partial(consolidated_table1, n, p)
            )
    runs = dict.fromkeys(list(COLUMNS)[1:], 5)
    out["consolidated profile, lambda=0.1"] = Cell(runs, consolidated_profile)
    return out


def measure(todo: dict[str, Cell], columns: Sequence[str], most: int | None, until: float) -> None:
    """Whatever is missing, run by run; nothing new is begun after ``until``."""
    for run in range(most or max((max(cell.runs.values()) for cell in todo.values()), default=0)):
        for name, cell in todo.items():
            kept = results.read_records(FILE)
            missing = cell.missing(run, kept.get(name, {}).get(str(run), {}), columns)
            if not missing or perf_counter() > until:
                continue
            record = cell.work(run, missing) | {"load": os.getloadavg()[0]}
            kept = results.read_records(FILE)
            records = kept.setdefault(name, {})
            records[str(run)] = _joined(records.get(str(run), {}), record)
            results.write_records(FILE, kept)
            command.say(f"{name}, run {run}: {record}")


def _joined(old: Record, new: Record) -> Record:
    """Both; of how far columns are apart the worst."""
    both = {key for key in old if key in new and key.endswith("apart")}
    return old | new | {key: max(old[key], new[key]) for key in both}


def table(names: list[str], kept: dict[str, dict[str, Record]]) -> str:
    """Means and standard errors, the paper's figure beside them."""
    found = {name: kept[name] for name in names if kept.get(name)}
    columns: list[str] = []
    for records in found.values():
        for record in records.values():
            columns += [c for c in record if c not in columns and c != "load"]
    lines = []
    for name, records in found.items():
        line = [name.split(", ", 1)[1]]
        for column in columns:
            values = np.array([one[column] for one in records.values() if column in one])
            shown = _worst(values) if column.endswith("apart") else _mean(values)
            line.append(shown + _beside(name, column))
        lines.append(line)
    return results.markdown(["", *columns], lines)


def _worst(values: np.ndarray) -> str:
    return f"{values.max():.0e}" if len(values) else "-"


def _mean(values: np.ndarray) -> str:
    """With its standard error and the number of runs."""
    if len(values) < 2:
        return f"{values[0]:.3g} (1 run)" if len(values) else "-"
    error = values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.3g} ({error:.1g}; {len(values)})"


def _beside(name: str, column: str) -> str:
    printed = PRINTED.get(name, {}).get(column)
    return "" if printed is None else f" [{printed:g}]"


def publish() -> None:
    kept = results.read_records(FILE)
    parts = [f"# {HEAD}", (__doc__ or "").split("\n\n")[2], PRINTED_NOTE, facts()]
    for title in ("magic table 1", "magic figure 1", "consolidated table 1",
                  "consolidated table 2", "consolidated profile"):  # fmt: skip
        names = [name for name in cells(None, False) if name.startswith(title)]
        names += [name for name in kept if name.startswith(title) and name not in names]
        if any(kept.get(name) for name in names):
            parts += [f"## {title[0].upper()}{title[1:]}", table(names, kept)]
            if title == "magic figure 1":
                parts.append(f"![Magic LOO, Figure 1]({figure1.draw()})")
    path = results.RESULTS / f"{FILE}.md"
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def main() -> None:
    sizes = {"quick": "the numbers of runs that are asked for (default)", "full": "the papers'"}
    parser = command.parser(__doc__, sizes, FILE)
    parser.add_argument("--cells", nargs="*", default=[], metavar="PREFIX", help="only these")
    parser.add_argument("--columns", nargs="*", default=[], metavar="NAME", help="only these")
    parser.add_argument("--runs", type=int, help="no more runs than that of each cell")
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin nothing after that")
    parser.add_argument("--no-run", action="store_true", help="make the tables of earlier runs")
    given = parser.parse_args()
    if not given.no_run:
        todo = cells(given.data, given.full)
        wanted = tuple(given.cells)
        chosen = {k: v for k, v in todo.items() if not wanted or k.startswith(wanted)}
        measure(chosen, given.columns, given.runs, perf_counter() + given.seconds)
    publish()


if __name__ == "__main__":
    main()
