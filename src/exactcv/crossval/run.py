"""The one assembly line: a task in; entries, counts and a certificate out.

    Plan (how) + KernelRows (of what) -> Task -> method -> ledger -> Ran -> result

``cross_validate``, each pair of several classes, the drop-ins and the low-rank mode come through
`run`; what they add is how they read their input and what they make of a `Ran`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Generic, TypeAlias, TypeVar, overload

import numpy as np
from scipy import sparse

from .._core._gather import gather
from ..algorithms import check_loss, check_output, check_support, get_method
from ..algorithms.options import read_options
from ..engine.kernel_rows import CachedRows
from ..exceptions import Interrupted, MemoryLimitError
from ..judge.certificate import Certificate
from ..judge.ledger import Ledger, Seen
from ..lowrank import method as lowrank
from ..lowrank.entries import Entries, SeenFolds
from ..lowrank.task import FeatureTask
from ..lowrank.wide import method as wide
from ..problem import checks
from ..problem.differentiable import LOSS_BY_NAME, LOSS_PARAMETERS, NUMERIC_LOSSES
from ..problem.folds import Folds
from ..problem.grid import Grid
from ..problem.kernels import Kernel, check_psd, gamma_value, kernel_matrix
from ..problem.problem import Guests, Problem, Task
from ..problem.repeated import first_similar
from ..problem.targets import NUMBERS, SIGNS, Target
from ..problem.units import Units
from ..runtime.threads import Workers
from ..types import FloatArray, IntArray
from .work import Work

__all__ = ["KernelRows", "Plan", "Ran", "run"]

# Features with a smaller share of entries that are not zero are kept sparse for a cache of rows.
SPARSE = 0.3
# Rows that tell whether a kernel is positive semidefinite, where not all fit.
TRIED = 500

AnyTask: TypeAlias = Task | FeatureTask


@dataclass(frozen=True)
class Plan:
    """How folds are to be solved: one plan serves all gammas and all pairs of classes.

    ``parameters`` are those of the loss: {"epsilon": 0.1}, {"quantile": 0.5}.
    """

    method: str = "exact"
    loss: str = "hinge"
    parameters: Mapping[str, float] = field(default_factory=dict)
    fit_intercept: bool = True
    want_decision: bool = True
    tol: float = 1e-8
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        *,
        method: str,
        loss: str,
        fit_intercept: Any,
        want_decision: bool,
        tol: Any,
        options: Mapping[str, Any] | None = None,
        epsilon: Any = 0.1,
        quantile: Any = 0.5,
    ) -> Plan:
        """A plan whose parts exist and go together; the folds come later (`check_folds`)."""
        get_method(method)
        check_loss(method, loss)
        want_decision = want_decision or loss in NUMERIC_LOSSES
        check_output(method, loss, want_decision)
        return cls(
            method=method,
            loss=loss,
            parameters=_loss_parameters(loss, epsilon, quantile),
            fit_intercept=checks.check_flag("fit_intercept", fit_intercept),
            want_decision=want_decision,
            tol=checks.check_positive("tol", tol),
            options=read_options(method, get_method(method).support.options, options or {}),
        )

    @property
    def target(self) -> Target:
        """What the loss is a loss of."""
        return NUMBERS if self.loss in NUMERIC_LOSSES else SIGNS

    def units(self, y: FloatArray, weight: FloatArray) -> Units:
        """In which C and y are measured."""
        if not self.target.numeric:
            return Units()
        degree = 2 if self.loss == "least_squares" else 1
        return Units.of_numbers(y, weight, self.fit_intercept, degree)

    def check_folds(self, folds: Folds) -> None:
        """Refuse folds that the method cannot do."""
        check_support(self.method, folds, self.fit_intercept, self.loss)

    def task(
        self,
        rows: KernelRows,
        y: FloatArray,
        weight: FloatArray,
        folds: Folds,
        grid: Grid,
        guests: Guests | None = None,
    ) -> Task:
        """The task of these rows; y are labels +-1, or numbers."""
        support = get_method(self.method).support
        problem = Problem(
            K=rows.K,
            y=y,
            weight=weight,
            loss=LOSS_BY_NAME[self.loss](y, **self.parameters),
            fit_intercept=self.fit_intercept,
            psd=rows.psd,
            penalty=support.penalty,
            features=rows.X if support.penalty == "ridge" and rows.linear else None,
            rows=rows.cache,
            target=self.target,
            known_same=rows.same,
        )
        return Task(problem, folds, grid, self.want_decision, self.tol, self.options, guests)


def _loss_parameters(loss: str, epsilon: Any, quantile: Any) -> dict[str, float]:
    """What the loss needs to be told, checked."""
    given = {
        "epsilon": checks.real("epsilon", epsilon, lambda x: x >= 0, "a number, 0 or more"),
        "quantile": checks.check_quantile("quantile", quantile),
    }
    name = LOSS_PARAMETERS.get(loss)
    return {} if name is None else {name: given[name]}


@dataclass(frozen=True)
class KernelRows:
    """Rows as a method sees them: their kernel matrix, and what it was made of.

    ``X`` are the features (None for a precomputed matrix), ``kernel`` has gamma as a number, and
    ``psd`` says whether K is positive semidefinite as far as one can tell, or need not be.
    Where K does not fit it is empty, and ``cache`` computes its rows.  ``same``, if anyone has
    looked, names for each row the first whose row of K is equal to it.
    """

    K: FloatArray
    X: FloatArray | None = None
    kernel: Kernel = field(default_factory=lambda: Kernel("precomputed"))
    psd: bool = True
    cache: CachedRows | None = None
    same: IntArray | None = None

    @classmethod
    def of(cls, X: FloatArray, kernel: Kernel, plan: Plan, workers: Workers) -> KernelRows:
        """The kernel matrix of all rows; one that is not positive semidefinite is said aloud."""
        workers.watch.say(f"kernel matrix, {len(X)} rows")
        any_kernel = get_method(plan.method).support.any_kernel
        K, gamma = kernel_matrix(X, kernel, workers, symmetric=not any_kernel)
        psd = any_kernel or check_psd(K, kernel)
        kernel = kernel if gamma is None else replace(kernel, gamma=gamma)
        return cls(K, None if kernel.name == "precomputed" else X, kernel, psd)

    @classmethod
    def cached(cls, X: FloatArray, kernel: Kernel, memory: int, workers: Workers) -> KernelRows:
        """No matrix: rows as they are asked for, in as much memory as is left beside X.

        Half of it is for what goes with them (blocks of kernel values, sparse copies of X).
        """
        workers.watch.say(f"rows of the kernel matrix, of {len(X)}, on demand")
        if kernel.uses_gamma and kernel.gamma == "median":
            raise MemoryLimitError(
                "the kernel matrix does not fit, and gamma='median' needs all distances: give "
                "gamma as a number, 'scale' or 'auto', or raise memory_limit"
            )
        if kernel.uses_gamma:
            kernel = replace(kernel, gamma=float(gamma_value(X, kernel) or 0.0))
        features: Any = X
        if kernel.name != "laplacian" and np.count_nonzero(X) < SPARSE * X.size:
            features = sparse.csr_matrix(X)
        budget = max(memory - X.nbytes, memory // 4) // (2 * workers.n_threads)
        rows = CachedRows(features, kernel, budget)
        part = np.linspace(0, len(X) - 1, min(len(X), TRIED)).astype(np.intp)
        psd = check_psd(rows.block(part, part), kernel)
        return cls(np.empty((0, 0)), X, kernel, psd, rows)

    @property
    def linear(self) -> bool:
        return self.kernel.name == "linear"

    @property
    def gamma(self) -> float | None:
        return float(self.kernel.gamma) if self.kernel.uses_gamma else None

    def part(self, rows: IntArray) -> KernelRows:
        """Some of the rows, with a copy of their part of the matrix."""
        same = None if self.same is None else _among(self.same, rows)
        X = None if self.X is None else self.X[rows]
        return replace(self, K=gather(self.K, rows, rows), X=X, same=same)

    def compared(self) -> KernelRows:
        """With equal rows known, so that parts need not look for them."""
        return self if self.same is not None else replace(self, same=first_similar(self.K))


def _among(same: IntArray, rows: IntArray) -> IntArray:
    """For each of some rows the first of them that is equal to it."""
    mine = same[rows]
    if (mine == rows).all():
        return np.arange(len(rows), dtype=np.intp)
    _, first, group = np.unique(mine, return_index=True, return_inverse=True)
    return np.asarray(first[group])


Book = TypeVar("Book", Ledger, Entries)


@dataclass(frozen=True)
class Ran(Generic[Book]):
    """What a run left: its entries, what the method counted, and seconds by phase."""

    task: AnyTask
    ledger: Book
    certificate: Certificate
    stats: dict[str, Any]
    timings: dict[str, float]


@overload
def run(task: Task, method: str, workers: Workers, seen: Seen | None = None) -> Ran[Ledger]: ...
@overload
def run(
    task: FeatureTask, method: str, workers: Workers, seen: SeenFolds | None = None
) -> Ran[Entries]: ...
def run(task: AnyTask, method: str, workers: Workers, seen: Any = None) -> Any:
    """Open a ledger, let the method fill it, and have the certificate written.

    ``seen`` is shown the solutions of folds (in the units of the ledger), which nobody keeps.

    Ctrl-C becomes ``Interrupted``, whose ``partial`` is the `Ran` of what is complete (None if
    nothing is).
    """
    start = perf_counter()
    ledger: Ledger | Entries
    if isinstance(task, FeatureTask):
        units, ledger = Units(), Entries(task.inside(), seen)
    else:
        units = Units.of(task.problem)
        ledger = Ledger(units.inside(task), seen)
    if method == "exact" and isinstance(ledger, Ledger) and ledger.task.problem.psd:
        workers.watch.follow(Work(ledger))
    else:
        workers.watch.follow(ledger)
    chosen: Any = get_method(method)
    if isinstance(task, FeatureTask):
        chosen = wide.METHOD if task.wide else lowrank.METHOD
    try:
        stats = dict(chosen.run(ledger.task, ledger, workers))
    except KeyboardInterrupt as stop:
        seconds = _by_phase(perf_counter() - start, {}, ledger, workers)
        raise _interrupted(_outside(ledger, units, task), seconds) from stop
    timings = _by_phase(perf_counter() - start, stats.pop("timings", {}), ledger, workers)
    not_converged = int(stats.get("not_converged", 0))
    certificate = replace(ledger.certificate(), not_converged=not_converged)
    return Ran(task, _outside(ledger, units, task), certificate, stats, timings)


def _outside(ledger: Ledger | Entries, units: Units, task: AnyTask) -> Ledger | Entries:
    """The ledger in the user's units."""
    if isinstance(ledger, Ledger) and isinstance(task, Task):
        return ledger.outside(units, task)
    return ledger


def _by_phase(
    seconds: float, by_method: dict[str, float], ledger: Ledger | Entries, workers: Workers
) -> dict[str, float]:
    """What the method timed itself; what it did not is counted as time for folds."""
    judging = ledger.seconds / workers.n_threads
    known = {"path": 0.0, **by_method}
    rest = max(seconds - sum(known.values()) - judging, 0.0)
    return {"folds": rest, **known, "certificate": judging}


def _interrupted(ledger: Ledger | Entries, timings: dict[str, float]) -> Interrupted:
    """What is complete, as a run of its own."""
    points, folds = ledger.complete()
    if not (len(points) and len(folds)):
        return Interrupted("interrupted; no grid point and no fold is complete")
    assert isinstance(ledger, Ledger)
    what = f"{len(points)} of {len(ledger.task.grid)} grid points"
    if len(folds) < len(ledger.task.folds):
        what = f"{len(folds)} of {len(ledger.task.folds)} folds"
    done = ledger.part(points, folds)
    return Interrupted(
        f"interrupted with {what} complete; they are in the `partial` of this exception (after a "
        "traceback, in an interactive session: sys.last_value.partial)",
        Ran(done.task, done, done.certificate(), {}, timings),
    )
