"""What the scripts of this folder share: the sets, what is measured and kept, the results.

Sets can be run one by one (``--only``): what is measured is kept, and the tables are made of all
that is there.  ``solvers.py`` says how a cross-validation is run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.lib import command
from benchmarks.lib.command import say
from benchmarks.lib.data import read_rows
from benchmarks.lib.machine import facts
from benchmarks.lib.results import write_section
from exactcv import tolerances
from exactcv.algorithms.alpha_seeding.chain import SEEDS
from exactcv.datasets import make_mixture
from exactcv.engine.kernel_rows import CachedRows
from exactcv.problem.kernels import Kernel

from .records import FILE, Record, Records, pack
from .solvers import SEED, DataSet, Loaded, unavailable, validated

HEAD = "Alpha seeding and the working-set solver"
BUDGET = "200MB"
SMALL, REPEAT = 1000, 10


@dataclass(frozen=True)
class Settings:
    """The command line."""

    data: Path
    full: bool
    write: bool
    only: tuple[str, ...]
    schemes: tuple[str, ...]
    measure: bool
    missing: bool
    ks: tuple[str, ...]
    folds: int | None

    @property
    def size(self) -> str:
        return "full" if self.full else "quick"

    def wants(self, scheme: str, k: int | str) -> bool:
        """Is this scheme asked for, with so many folds?"""
        asked = not self.schemes or scheme in self.schemes
        return self.measure and asked and (not self.ks or str(k) in self.ks)


SETS = (
    DataSet("heart", "heart", 2182.0, 0.2),
    DataSet("madelon", "madelon", 1.0, 0.7071),
    DataSet("adult (a9a)", "a9a", 100.0, 0.5, 5000),
    DataSet("webdata (w8a)", "w8a", 64.0, 7.8125, 5000, random=True),
)


def parse(doc: str | None) -> Settings:
    sizes = {"quick": "5,000 rows of the large sets (default)", "full": "all rows"}
    parser = command.parser(doc, sizes, FILE)
    parser.add_argument("--only", nargs="*", default=[], metavar="FILE", help="only these sets")
    parser.add_argument("--schemes", nargs="*", default=[], metavar="NAME", help="only these")
    parser.add_argument(
        "--k", nargs="*", default=[], metavar="K", help="only these numbers of folds"
    )
    parser.add_argument("--folds", type=int, help="no more than the first of the folds")
    parser.add_argument("--missing", action="store_true", help="only what is not kept yet")
    parser.add_argument("--no-run", action="store_true", help="make the table of earlier runs")
    given = parser.parse_args()
    if given.data is None and not given.no_run:
        parser.error("give the folder of the data sets with --data or EXACTCV_DATA")
    folder = Path(given.data or ".")
    return Settings(
        folder,
        given.full,
        given.write,
        tuple(given.only),
        tuple(given.schemes),
        not given.no_run,
        given.missing,
        tuple(given.k),
        given.folds,
    )


def load(settings: Settings) -> Iterable[Loaded]:
    """The data sets asked for, after a small run that loads what is loaded on first use."""
    if not settings.measure:
        return
    X, y = make_mixture(60, 4, random_state=0)
    small = Loaded(SETS[0], X, y, CachedRows(X, Kernel("rbf", gamma=0.1), BUDGET))
    for scheme in ("cold", *SEEDS, "exact"):
        run(small, scheme, "loo")
    for what in SETS:
        if not settings.only or what.file in settings.only:
            yield load_set(what, settings)


def load_set(what: DataSet, settings: Settings) -> Loaded:
    X, y = read_rows(settings.data, what.file)
    kernel = Kernel("rbf", gamma=what.gamma)
    if what.quick_rows and not settings.full:
        rows = np.arange(what.quick_rows)
        if what.random:
            rows = np.sort(np.random.default_rng(SEED).choice(len(y), what.quick_rows, False))
        X, y = np.ascontiguousarray(X[rows]), y[rows]
    mostly_zero = np.count_nonzero(X) < 0.2 * X.size
    features = sparse.csr_matrix(X) if mostly_zero else X
    return Loaded(what, X, y, CachedRows(features, kernel, BUDGET))


def run(loaded: Loaded, scheme: str, k: int | str, first: int | None = None) -> Record:
    """One cross-validation; of a small set several times, of which the quickest counts."""
    say(f"{loaded.what.name}, k = {k}, {scheme}")
    folds = loaded.folds(k, first)
    best = min(
        (validated(loaded, scheme, folds) for _ in range(REPEAT if len(loaded.y) < SMALL else 1)),
        key=lambda one: one.seconds,
    )
    y = loaded.y[folds.pair_rows]
    positive = best.values > tolerances.TIE
    return Record(
        data=loaded.what.file,
        k=str(k),
        scheme=scheme,
        name=loaded.what.name,
        n=len(loaded.y),
        rounds=len(folds),
        folds=len(loaded.folds(k)),
        seeding=best.seeding,
        seconds=best.seconds,
        iterations=best.iterations,
        evaluations=best.evaluations,
        close=best.close,
        settling=best.settling,
        ties=int((np.abs(best.values) <= tolerances.TIE).sum()),
        correct=int((positive == (y > 0)).sum()),
        tested=len(y),
        labels=pack(positive),
        load=round(os.getloadavg()[0], 1),
    )


# ---- results -------------------------------------------------------------------------------------


def collect(
    settings: Settings,
    schemes: Sequence[str],
    ks: Sequence[int | str],
    first: Callable[[Loaded, str, int | str], int | None] = lambda *_: None,
) -> Records:
    """All records, with what is measured now; ``first`` says how many folds, if not all."""
    records = Records(settings.size)
    for loaded in load(settings):
        for k, scheme in product(ks, schemes):
            kept = settings.missing and records.get(loaded.what.file, k, scheme) is not None
            if kept or not settings.wants(scheme, k) or unavailable(loaded, scheme):
                continue
            records.add(run(loaded, scheme, k, settings.folds or first(loaded, scheme, k)))
            if settings.write:
                records.save()
    return records


def labels(record: Record, cold: Record | None) -> str:
    """How the labels compare with those of cold starts."""
    if cold is None:
        return "-"
    count = record.differences(cold)
    return "the same" if not count else f"**{count} differ**"


def verdicts(records: Records, pairs: Sequence[tuple[str, int | str]]) -> list[str]:
    """SIR against its bars, a line for each data set and k that has been run."""
    lines = []
    for data, k in pairs:
        cold, sir = records.get(data, k, "cold"), records.get(data, k, "sir")
        if cold is None or sir is None:
            continue
        fewer, quick = sir.iterations < cold.iterations, sir.share < 0.05
        same = not sir.differences(cold)
        lines.append(
            f"- {sir.name}, k = {k}: SIR needs {sir.iterations / cold.iterations:.3f} times the "
            f"iterations of cold starts ({_told(fewer)}), its seeding {sir.share:.1%} of its total "
            f"({_told(quick)}), labels {labels(sir, cold)} ({_told(same)})."
        )
    return lines


def _told(met: bool) -> str:
    return "met" if met else "**not met**"


def finish(settings: Settings, key: str, title: str, lines: Sequence[str]) -> None:
    """Print the section; with --write put it into the results file."""
    size = " --full" if settings.full else ""
    made = f"Made by `python -m {command.module()} --data DIR{size} --write`, one set at a time."
    title += " (all rows)" if settings.full else ""
    text = "\n".join([f"## {title}", "", made, "", facts(), "", *lines])
    print(text)
    if settings.write:
        write_section(FILE, f"{key}_{settings.size}", text, HEAD)
