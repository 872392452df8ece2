"""What the scripts of this folder share: data, cold starts, one cross-validation, the results.

Sets can be run one by one (``--only``): what is measured is kept, and the tables are made of all
that is there.

Every scheme runs plain SMO with tolerance 1e-3, as the paper's LIBSVM does, on the same folds.
``cold`` starts every fold from zero; ``libsvm`` is LIBSVM, if libsvm-official is there, with its
shrinking.  As in the paper no kernel matrix is held: rows are computed
from the features into a cache of 200 MB, anew in each fold.  Iterations and kernel evaluations are
those of the folds (the solution on all rows is not in them, except for AVG and TOP, which start
from it).  Times are processor time on one thread.

*Labels.*  At tolerance 1e-3 a decision value is right to about 1e-3, so one nearer to zero than
``CLOSE`` times that may have either sign, from a cold start as from a seed.  Folds with such rows
are solved further, beside the chain, until the tolerance tells; that work is counted apart and not
timed.  As in LIBSVM what is then not above zero is predicted to be of class -1.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import process_time

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from benchmarks.lib import command
from benchmarks.lib.command import say
from benchmarks.lib.data import read_rows
from benchmarks.lib.machine import facts
from benchmarks.lib.results import write_section
from exactcv import tolerances
from exactcv.algorithms import get_method
from exactcv.algorithms.alpha_seeding.chain import FROM_FULL, SEEDS, Chain, Placed
from exactcv.datasets import make_mixture
from exactcv.engine.kernel_rows import CachedRows, RowSource
from exactcv.engine.smo import Known, solve
from exactcv.judge.ledger import Ledger
from exactcv.problem.folds import Folds, leave_one_out_folds, make_folds
from exactcv.problem.grid import Grid
from exactcv.problem.kernels import Kernel, kernel_matrix
from exactcv.problem.losses import hinge
from exactcv.problem.problem import Problem, Task
from exactcv.runtime.threads import Workers

from .records import FILE, Record, Records, pack

HEAD = "Alpha seeding and the working-set solver"
TOL = 1e-3
# Labels within CLOSE times the tolerance are settled, by tolerances down to the last.
CLOSE, LAST_TOL = 10.0, 1e-10
BUDGET = "200MB"
SEED = 0
LARGEST_MATRIX = 20_000
SMALL, REPEAT = 1000, 10
BLOCK = 1 << 22  # kernel entries held at a time


@dataclass(frozen=True)
class Settings:
    """The command line."""

    data: Path
    full: bool
    write: bool
    only: tuple[str, ...]
    schemes: tuple[str, ...]
    measure: bool
    missing: bool = False

    @property
    def size(self) -> str:
        return "full" if self.full else "quick"

    def wants(self, scheme: str) -> bool:
        return self.measure and (not self.schemes or scheme in self.schemes)


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

    def folds(self, k: int | str, first: int | None = None) -> Folds:
        """All folds, or the first ones."""
        if k == "loo":
            folds = leave_one_out_folds(len(self.y))
        else:
            folds = make_folds(k, self.X, self.y, random_state=SEED)
        return (
            folds if first is None else Folds(folds.n, folds.left_out[:first], folds.test[:first])
        )


def parse(doc: str | None) -> Settings:
    sizes = {"quick": "5,000 rows of the large sets (default)", "full": "all rows"}
    parser = command.parser(doc, sizes, FILE)
    parser.add_argument("--only", nargs="*", default=[], metavar="FILE", help="only these sets")
    parser.add_argument("--schemes", nargs="*", default=[], metavar="NAME", help="only these")
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


@dataclass(frozen=True)
class Run:
    """What one cross-validation took and gave."""

    seeding: float
    seconds: float
    iterations: int
    evaluations: int
    values: np.ndarray
    close: int = 0
    settling: int = 0


def run(loaded: Loaded, scheme: str, k: int | str, first: int | None = None) -> Record:
    """One cross-validation; of a small set several times, of which the quickest counts."""
    say(f"{loaded.what.name}, k = {k}, {scheme}")
    folds = loaded.folds(k, first)
    work = {"exact": _run_exact, "libsvm": _run_libsvm}.get(scheme, _run_scheme)
    best = min(
        (work(loaded, scheme, folds) for _ in range(REPEAT if len(loaded.y) < SMALL else 1)),
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


def _run_scheme(loaded: Loaded, scheme: str, folds: Folds) -> Run:
    """From start to end."""
    chain = Chain(
        loaded.source,
        hinge(loaded.y),
        np.ones(len(loaded.y)),
        None if scheme == "cold" else scheme,
        TOL,
        polish=False,
    )
    solutions = _folds_of(chain, loaded, folds)
    values: list[np.ndarray] = []
    seconds, close, settling = 0.0, 0, 0
    with threadpool_limits(limits=1):
        for fold in itertools.count():
            start = process_time()
            placed = next(solutions, None)
            if placed is None:
                break
            answer = placed.solution
            found = _values(loaded, answer.coef, answer.intercept, folds.test[fold])
            seconds += process_time() - start
            found, near, extra = _settled(chain, loaded, placed, folds.test[fold], found)
            close, settling = close + near, settling + extra
            values.append(found)
    counts = chain.counts
    assert not counts.not_converged
    return Run(
        counts.seeding_seconds,
        seconds,
        counts.iterations,
        counts.kernel_evaluations,
        np.concatenate(values),
        close,
        settling,
    )


def _folds_of(chain: Chain, loaded: Loaded, folds: Folds) -> Iterable[Placed]:
    full = None
    if chain.scheme in FROM_FULL:
        full = chain.cold(np.arange(folds.n), loaded.what.C)
    for _, placed in chain.run(folds, np.full(len(folds), loaded.what.C), full):
        yield placed


def _values(loaded: Loaded, coef: np.ndarray, b: float, test: np.ndarray) -> np.ndarray:
    """Left-out decision values, some rows at a time."""
    used = np.flatnonzero(coef)
    values = np.full(len(test), b)
    step = max(1, BLOCK // max(len(used), 1))
    for first in range(0, len(test), step):
        rows = test[first : first + step]
        values[first : first + step] += loaded.source.block(rows, used) @ coef[used]
    return values


def _settled(
    chain: Chain, loaded: Loaded, placed: Placed, test: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, int, int]:
    """Decision values whose signs are settled, how many were not, and the iterations it took."""
    tol, solution, iterations = TOL, placed.solution, 0
    close = int((np.abs(values) <= CLOSE * tol).sum())
    while (np.abs(values) <= CLOSE * tol).any() and tol > 1.5 * LAST_TOL:
        tol *= 0.1
        solution = solve(
            loaded.source,
            chain.loss,
            placed.C * chain.weight,
            placed.train,
            tol=tol,
            start=solution.coef,
            known=Known(solution.coef, solution.errors, placed.train),
            polish=False,
        )
        iterations += solution.iterations
        values = _values(loaded, solution.coef, solution.intercept, test)
    return values, close, iterations


def has_libsvm() -> bool:
    return find_spec("libsvm") is not None


def _run_libsvm(loaded: Loaded, scheme: str, folds: Folds) -> Run:
    """LIBSVM itself (libsvm-official), a training of its own for each fold, a cache of 200 MB."""
    from libsvm.svmutil import svm_parameter, svm_problem, svm_train

    what, values, seconds, iterations = loaded.what, [], 0.0, 0
    X, everyone = sparse.csr_matrix(loaded.X), np.arange(len(loaded.y))
    parameter = svm_parameter(f"-t 2 -c {what.C} -g {what.gamma} -e {TOL} -m 200")
    for out, test in zip(folds.left_out, folds.test, strict=True):
        train = np.delete(everyone, out)
        problem = svm_problem(loaded.y[train], X[train])
        start = process_time()
        with threadpool_limits(limits=1), _Heard() as heard:
            model = svm_train(problem, parameter)
        coef, first = np.zeros(len(loaded.y)), model.get_labels()[0]
        coef[train[np.array(model.get_sv_indices()) - 1]] = first * np.ravel(model.get_sv_coef())
        b = -first * model.rho[0]
        values.append(_values(loaded, coef, b, test))
        seconds += process_time() - start
        iterations += sum(map(int, re.findall(r"#iter = (\d+)", heard.text)))
    return Run(0.0, seconds, iterations, 0, np.concatenate(values))


class _Heard:
    """What compiled code prints: LIBSVM tells its iterations nowhere else."""

    text = ""

    def __enter__(self) -> _Heard:
        self._file, self._screen = tempfile.TemporaryFile(), os.dup(1)
        sys.stdout.flush()
        os.dup2(self._file.fileno(), 1)
        return self

    def __exit__(self, *_: object) -> None:
        ctypes.CDLL(None).fflush(None)
        os.dup2(self._screen, 1)
        os.close(self._screen)
        self._file.seek(0)
        self.text = self._file.read().decode()
        self._file.close()


def _run_exact(loaded: Loaded, scheme: str, folds: Folds) -> Run:
    """Method ``exact`` on the same folds, kernel matrix included, to its own tolerance of 1e-8."""
    n, C = len(loaded.y), np.array([loaded.what.C])
    with Workers(1) as workers:
        start = process_time()
        K, _ = kernel_matrix(loaded.X, Kernel("rbf", gamma=loaded.what.gamma), workers)
        problem = Problem(K, loaded.y, np.ones(n), hinge(loaded.y))
        task = Task(problem, folds, Grid(C, 1 / (2 * n * C), False), True, 1e-8)
        ledger = Ledger(task)
        get_method(scheme).run(task, ledger, workers)
        seconds = process_time() - start
    return Run(0.0, seconds, 0, n * n, ledger.decision[0])


# ---- results -------------------------------------------------------------------------------------


def collect(
    settings: Settings,
    schemes: Sequence[str],
    ks: Sequence[int | str],
    measure: Callable[[Loaded, str, int | str], Record | None],
) -> Records:
    """All records, with what is measured now; ``measure`` gives None for what takes too long."""
    records = Records(settings.size)
    for loaded in load(settings):
        for k in ks:
            for scheme in filter(settings.wants, schemes):
                if settings.missing and records.get(loaded.what.file, k, scheme) is not None:
                    continue
                record = measure(loaded, scheme, k)
                if record is not None:
                    records.add(record)
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
