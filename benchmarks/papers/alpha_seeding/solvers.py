"""How one cross-validation is run: our chain of folds, LIBSVM itself, or ``exact``.

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
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from time import process_time

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from exactcv.algorithms import get_method
from exactcv.algorithms.alpha_seeding.chain import FROM_FULL, Chain, Placed
from exactcv.engine.kernel_rows import RowSource
from exactcv.engine.smo import Known, solve
from exactcv.judge.ledger import Ledger
from exactcv.problem.folds import Folds, leave_one_out_folds, make_folds
from exactcv.problem.grid import Grid
from exactcv.problem.kernels import Kernel, kernel_matrix
from exactcv.problem.losses import hinge
from exactcv.problem.problem import Problem, Task
from exactcv.runtime.threads import Workers

TOL = 1e-3
# Labels within CLOSE times the tolerance are settled, by tolerances down to the last.
CLOSE, LAST_TOL = 10.0, 1e-10
SEED = 0
LARGEST_MATRIX = 20_000
# Schemes with the paper's rule where ours is another one.
AS_PRINTED = {"sir, printed": ("sir", {"match": "printed"})}
BLOCK = 1 << 22  # kernel entries held at a time


@dataclass(frozen=True)
class DataSet:
    """One set of the paper with its C and gamma (Table 2)."""

    name: str
    file: str
    C: float
    gamma: float
    quick_rows: int | None = None  # all, if not given
    random: bool = False


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


def unavailable(loaded: Loaded, scheme: str) -> bool:
    """Is there no LIBSVM, or no room for the kernel matrix of ``exact``?"""
    if scheme == "libsvm":
        return find_spec("libsvm") is None
    return scheme == "exact" and len(loaded.y) > LARGEST_MATRIX


def validated(loaded: Loaded, scheme: str, folds: Folds) -> Run:
    """One cross-validation by the scheme of that name."""
    work = {"exact": _by_exact, "libsvm": _by_libsvm}.get(scheme)
    return work(loaded, folds) if work else _by_chain(loaded, scheme, folds)


def _by_chain(loaded: Loaded, scheme: str, folds: Folds) -> Run:
    """From start to end."""
    name, choices = AS_PRINTED.get(scheme, (scheme, {}))
    chain = Chain(
        loaded.source,
        hinge(loaded.y),
        np.ones(len(loaded.y)),
        None if scheme == "cold" else name,
        TOL,
        polish=False,
        choices=choices,
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


def _by_libsvm(loaded: Loaded, folds: Folds) -> Run:
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


def _by_exact(loaded: Loaded, folds: Folds) -> Run:
    """Method ``exact`` on the same folds, kernel matrix included, to its own tolerance of 1e-8."""
    n, C = len(loaded.y), np.array([loaded.what.C])
    with Workers(1) as workers:
        start = process_time()
        K, _ = kernel_matrix(loaded.X, Kernel("rbf", gamma=loaded.what.gamma), workers)
        problem = Problem(K, loaded.y, np.ones(n), hinge(loaded.y))
        task = Task(problem, folds, Grid(C, 1 / (2 * n * C), False), True, 1e-8)
        ledger = Ledger(task)
        get_method("exact").run(task, ledger, workers)
        seconds = process_time() - start
    return Run(0.0, seconds, 0, n * n, ledger.decision[0])
