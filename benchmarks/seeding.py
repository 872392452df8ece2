"""What the alpha-seeding benchmarks share: data, cold starts, one cross-validation, the results.

Every scheme runs plain SMO with tolerance 1e-3, as the paper's LIBSVM does, on the same folds.
``cold`` starts every fold from zero.  As in the paper no kernel matrix is held: rows are computed
from the features into a cache of 200 MB, anew in each fold.  Iterations and kernel evaluations are
those of the folds (the solution on all rows is not in them, except for AVG and TOP, which start
from it).  Times are processor time on one thread.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd
from scipy import sparse
from threadpoolctl import threadpool_limits

from exactcv import tolerances
from exactcv.datasets import make_mixture
from exactcv.folds import Folds, leave_one_out_folds, make_folds
from exactcv.kernels import Kernel, kernel_matrix
from exactcv.ledger import Ledger
from exactcv.losses import hinge
from exactcv.methods import get_method
from exactcv.parallel import Workers
from exactcv.problem import Grid, Problem, Task
from exactcv.rows import CachedRows, RowSource
from exactcv.seeding.chain import FROM_FULL, SEEDS, Chain
from exactcv.smo import Solution

TOL = 1e-3
BUDGET = "200MB"
RESULTS = Path(__file__).parent / "RESULTS_seeding.md"
FIGURES = Path(__file__).parent / "figures"
SEED = 0
LARGEST_MATRIX = 20_000
SMALL = 1000
BLOCK = 1 << 22  # kernel entries held at a time


@dataclass(frozen=True)
class Settings:
    """The command line."""

    data: Path
    full: bool
    write: bool
    only: tuple[str, ...]
    command: str
    exact: bool = True


@dataclass(frozen=True)
class DataSet:
    """One set of the paper with its C and gamma (Table 2)."""

    name: str
    file: str
    C: float
    gamma: float
    quick_rows: int | None = None  # all, if not given
    random: bool = False


SETS = (
    DataSet("heart", "heart", 2182.0, 0.2),
    DataSet("madelon", "madelon", 1.0, 0.7071),
    DataSet("adult (a9a)", "a9a", 100.0, 0.5, 5000),
    DataSet("webdata (w8a)", "w8a", 64.0, 7.8125, 5000, random=True),
)


@dataclass(frozen=True)
class Loaded:
    """The rows of a data set and where their kernel comes from."""

    what: DataSet
    X: np.ndarray
    y: np.ndarray
    source: RowSource
    exact: bool = True

    def folds(self, k: int | str) -> Folds:
        if k == "loo":
            return leave_one_out_folds(len(self.y))
        return make_folds(k, self.X, self.y, random_state=SEED)


def parse(doc: str | None) -> Settings:
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default=os.environ.get("EXACTCV_DATA"), help="folder of the CSVs")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="5,000 rows of the large sets (default)")
    size.add_argument("--full", action="store_true", help="all rows")
    parser.add_argument("--only", nargs="*", default=[], metavar="FILE", help="only these sets")
    parser.add_argument("--skip-exact", action="store_true", help="without method exact")
    parser.add_argument("--write", action="store_true", help=f"write the section of {RESULTS.name}")
    given = parser.parse_args()
    if given.data is None:
        parser.error("give --data DIR, or set EXACTCV_DATA, to the folder of the papers' data sets")
    options = ["--full"] if given.full else []
    options += ["--skip-exact"] if given.skip_exact else []
    options += ["--write"] if given.write else []
    if given.only:
        options += ["--only", *given.only]
    command = " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", "--data DIR", *options])
    return Settings(
        Path(given.data), given.full, given.write, tuple(given.only), command, not given.skip_exact
    )


def read_csv(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    table = pd.read_csv(folder / f"{name}.csv.gz")
    y = table.pop("y").to_numpy(float)
    return table.to_numpy(float), y


def load(settings: Settings) -> list[Loaded]:
    """The data sets asked for, after a small run that loads what is loaded on first use."""
    X, y = make_mixture(60, 4, random_state=0)
    small = Loaded(SETS[0], X, y, CachedRows(X, Kernel("rbf", gamma=0.1), BUDGET))
    for scheme in ("cold", *SEEDS):
        run_scheme(small, scheme, small.folds("loo"))
    run_exact(small, small.folds(3))
    chosen = [what for what in SETS if not settings.only or what.file in settings.only]
    return [_load(what, settings) for what in chosen]


def _load(what: DataSet, settings: Settings) -> Loaded:
    X, y = read_csv(settings.data, what.file)
    kernel = Kernel("rbf", gamma=what.gamma)
    if what.quick_rows and not settings.full:
        rows = np.arange(what.quick_rows)
        if what.random:
            rows = np.sort(np.random.default_rng(SEED).choice(len(y), what.quick_rows, False))
        X, y = np.ascontiguousarray(X[rows]), y[rows]
    mostly_zero = np.count_nonzero(X) < 0.2 * X.size
    features = sparse.csr_matrix(X) if mostly_zero else X
    return Loaded(what, X, y, CachedRows(features, kernel, BUDGET), settings.exact)


@dataclass(frozen=True)
class Row:
    """One scheme on one data set and one number of folds."""

    scheme: str
    seeding: float
    seconds: float
    iterations: int
    evaluations: int
    values: np.ndarray
    wrong: np.ndarray

    @property
    def accuracy(self) -> float:
        return 1.0 - float(self.wrong.mean())

    @property
    def share(self) -> float:
        return self.seeding / self.seconds


def run_scheme(loaded: Loaded, scheme: str, folds: Folds, first: int | None = None) -> Row:
    """One cross-validation; small ones three times, of which the quickest counts."""
    repeat = 3 if len(loaded.y) < SMALL else 1
    runs = [_run_scheme(loaded, scheme, folds, first) for _ in range(repeat)]
    return min(runs, key=lambda row: row.seconds)


def _run_scheme(loaded: Loaded, scheme: str, folds: Folds, first: int | None) -> Row:
    """From start to end; the ``first`` folds only, if given."""
    chain = Chain(
        loaded.source,
        hinge(loaded.y),
        np.ones(len(loaded.y)),
        None if scheme == "cold" else scheme,
        TOL,
        polish=False,
    )
    Cs = np.full(len(folds), loaded.what.C)
    values: list[np.ndarray] = []
    with threadpool_limits(limits=1):
        start = process_time()
        full = None
        if scheme in FROM_FULL:
            full = chain.cold(np.arange(folds.n), loaded.what.C)
        for fold, placed in itertools.islice(chain.run(folds, Cs, full), first):
            values.append(_values(loaded, placed.solution, folds.test[fold]))
        seconds = process_time() - start
    counts, found = chain.counts, np.concatenate(values)
    assert not counts.not_converged
    y = loaded.y[folds.pair_rows[: len(found)]]
    return Row(
        scheme,
        counts.seeding_seconds,
        seconds,
        counts.iterations,
        counts.kernel_evaluations,
        found,
        ~(y * found > tolerances.TIE),
    )


def _values(loaded: Loaded, solution: Solution, test: np.ndarray) -> np.ndarray:
    """Left-out decision values, some rows at a time."""
    used = np.flatnonzero(solution.coef)
    values = np.full(len(test), solution.intercept)
    step = max(1, BLOCK // max(len(used), 1))
    for first in range(0, len(test), step):
        rows = test[first : first + step]
        values[first : first + step] += loaded.source.block(rows, used) @ solution.coef[used]
    return values


def run_exact(loaded: Loaded, folds: Folds) -> Row | None:
    """Method ``exact`` on the same folds, kernel matrix included, to its own tolerance of 1e-8."""
    n = len(loaded.y)
    if n > LARGEST_MATRIX or not loaded.exact:
        return None
    C = np.array([loaded.what.C])
    with Workers(1) as workers:
        start = process_time()
        K, _ = kernel_matrix(loaded.X, Kernel("rbf", gamma=loaded.what.gamma), workers)
        problem = Problem(K, loaded.y, np.ones(n), hinge(loaded.y))
        task = Task(problem, folds, Grid(C, 1 / (2 * n * C), False), True, 1e-8)
        ledger = Ledger(task)
        get_method("exact").run(task, ledger, workers)
        seconds = process_time() - start
    return Row("exact", 0.0, seconds, 0, 0, ledger.decision[0], ledger.wrong[0])


def differences(rows: Sequence[Row]) -> str:
    """How the left-out labels of the schemes differ from those of the first, row by row."""
    out = []
    for row in rows[1:]:
        count = min(len(row.wrong), len(rows[0].wrong))
        differ = row.wrong[:count] != rows[0].wrong[:count]
        if differ.any():
            size = np.maximum(np.abs(row.values[:count]), np.abs(rows[0].values[:count]))
            size = size[differ].max()
            out.append(
                f"{row.scheme}: {differ.sum()} of {len(differ)} labels differ, "
                f"all with decision values within {size:.1e} of 0"
            )
    return "; ".join(out) or "all the same"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def write_section(settings: Settings, key: str, title: str, text: str, facts: str) -> None:
    """Print the section; with --write also put it in the results file, in place of its old self."""
    key += "_full" if settings.full else ""
    title += " (all rows)" if settings.full else ""
    if settings.only:
        key, title = "_".join([key, *settings.only]), f"{title}: {', '.join(settings.only)}"
    body = f"## {title}\n\nMade by `{settings.command}`.\n\n{facts}\n\n{text}\n"
    print(body)
    if not settings.write:
        return
    old = (
        RESULTS.read_text() if RESULTS.exists() else "# Alpha seeding and the working-set solver\n"
    )
    section = f"<!-- {key} -->\n{body}<!-- end {key} -->\n"
    pattern = re.compile(rf"<!-- {key} -->\n.*?<!-- end {key} -->\n", re.DOTALL)
    if pattern.search(old):
        RESULTS.write_text(pattern.sub(lambda _: section, old))
    else:
        RESULTS.write_text(f"{old}\n{section}")
