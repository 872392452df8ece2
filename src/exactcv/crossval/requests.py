"""What was asked of ``cross_validate``, read and checked: rows for a kernel, or for features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .._core._rows import KERNEL_CODES
from ..algorithms import get_method
from ..exceptions import MemoryLimitError
from ..lowrank.open_source import open_source
from ..lowrank.options import Options
from ..lowrank.passes.distributed import as_local
from ..lowrank.rows.kept import keep_rows
from ..lowrank.rows.sampling import smallest_keys
from ..lowrank.rows.sources import ArrayRows, RowSource
from ..lowrank.task import MOST_COLUMNS, FeatureTask, is_wide
from ..problem import inputs
from ..problem.checks import seed_from
from ..problem.folds import Folds
from ..problem.grid import Grid, default_grid, make_grid
from ..problem.kernels import Kernel, gamma_value, kernel_scale, of_weighted_rows
from ..problem.loss_rules import LossRule
from ..problem.problem import Task
from ..runtime.memory import budget_of, shortage
from ..runtime.threads import Workers
from ..types import Approx
from .feature_rows import FeatureRows
from .run import AnyTask, KernelRows, Plan

__all__ = [
    "SCALE_ROWS",
    "FeatureRequest",
    "Given",
    "KernelRequest",
    "Request",
    "columns_of",
    "linear_scale",
]

FOR_MORE_CLASSES = "for several classes use exactcv.SVCCV(approx=...)"
# Rows that tell the scale of the kernel, where not all of them are in memory.
SCALE_ROWS = 2000


@dataclass(frozen=True)
class Given:
    """Data and settings as they were handed to ``cross_validate``; the kernel is checked."""

    X: Any
    y: Any
    kernel: Kernel
    Cs: Any
    lambdas: Any
    cv: Any
    groups: Any
    sample_weight: Any
    class_weight: Any
    random_state: Any
    memory_limit: Any


class Request(Protocol):
    """Two classes or numbers, and the task that is to be run.

    ``task`` also tells gamma if it is known.
    """

    @property
    def classes(self) -> NDArray[Any]: ...

    @property
    def present(self) -> inputs.Present: ...

    def task(self, plan: Plan, workers: Workers) -> tuple[AnyTask, float | None]: ...


@dataclass(frozen=True)
class KernelRequest:
    """Rows whose kernel matrix fits into memory; ``data`` are those that count.

    Or rows of which it does not fit, for a method that needs only a cache of them: ``cache`` is
    what that may take, in bytes.
    """

    data: inputs.Data
    kernel: Kernel
    folds: Folds
    grid: Grid | None  # None is the default, which depends on the kernel
    present: inputs.Present
    cache: int | None = None

    @classmethod
    def read(cls, given: Given, plan: Plan) -> KernelRequest:
        """Read and check."""
        given = _reduced(given, plan)
        weights = given.sample_weight, given.class_weight
        cached = _needs_cache(given, plan)
        data = inputs.read_data(
            given.X,
            given.y,
            given.kernel,
            *weights,
            given.memory_limit,
            plan.target.numeric,
            whole=not cached,
        )
        present = inputs.Present.of(data.weight, data.y)
        if not present.all:
            data = data.part(present.rows, given.kernel.name == "precomputed")
        grid = None
        if not (given.Cs is None and given.lambdas is None):
            grid = make_grid(given.Cs, given.lambdas, len(data.y))
        folds = inputs.check_folds(given.cv, data, given.groups, given.random_state, present)
        plan.check_folds(folds)
        kernel = given.kernel
        if not (cached and kernel.gamma == "median"):  # which is refused later
            of_rows = inputs.read_sample_weight(given.sample_weight, present.n)[present.rows]
            kernel = of_weighted_rows(kernel, data.X, of_rows)
        return cls(
            data,
            kernel,
            folds,
            grid,
            present,
            budget_of(given.memory_limit) if cached else None,
        )

    @property
    def classes(self) -> NDArray[Any]:
        return self.data.classes

    def task(self, plan: Plan, workers: Workers) -> tuple[Task, float | None]:
        """Computes the kernel matrix."""
        data = self.data
        if self.cache is None:
            rows = KernelRows.of(data.X, self.kernel, plan, workers)
        else:
            rows = KernelRows.cached(data.X, self.kernel, self.cache, workers)
        grid = self.grid
        if grid is None:
            units = plan.units(data.y, data.weight)
            scale = kernel_scale(data.X, rows.kernel, rows.K) / units.C_scale
            grid = default_grid(len(data.y), scale)
        return plan.task(rows, data.y, data.weight, self.folds, grid), rows.gamma


@dataclass(frozen=True)
class FeatureRequest:
    """Rows that are read in chunks, wherever they are."""

    ready: FeatureTask
    classes: NDArray[Any]
    present: inputs.Present

    @classmethod
    def read(
        cls,
        given: Given,
        plan: Plan,
        approx: Approx | None,
        n_components: int,
        options: Mapping[str, Any],
    ) -> FeatureRequest:
        """Read and check; ``options`` are the ``method_options`` of ``cross_validate``."""
        chosen, seed = Options.read(options), seed_from(given.random_state)
        by_row = given.y, given.sample_weight, given.groups
        source = open_source(
            given.X, [name for name in by_row if isinstance(name, str)], chosen.chunk_rows
        )
        y, sample_weight, groups = (
            source.column(one) if isinstance(one, str) else as_local(one) for one in by_row
        )
        rows = _targets(given, plan, y, sample_weight, source.n, approx)
        present, classes = inputs.Present.of(rows.weight, rows.y), rows.classes
        if not present.all:
            source, rows = keep_rows(source, present.rows), rows.part(present.rows, False)
        limit = given.memory_limit
        features = FeatureRows(source, given.kernel, approx, n_components, seed, limit, chosen)
        folds = inputs.check_folds(given.cv, rows, groups, given.random_state, present)
        grid = _feature_grid(given, plan, source, rows, seed, approx)
        return cls(features.task(plan, rows.y, rows.weight, folds, grid), classes, present)

    def task(self, plan: Plan, workers: Workers) -> tuple[FeatureTask, float | None]:
        """The task as it was read; gamma is worked out with the features."""
        return self.ready, None


def _targets(
    given: Given, plan: Plan, y: Any, sample_weight: Any, n: int, approx: Any
) -> inputs.Data:
    """Labels or numbers, and weights, of n rows that are read in chunks."""
    stand_in = np.broadcast_to(np.zeros(1), (n, 1))  # splitters need only its length
    if plan.target.numeric:
        values = inputs.read_numbers(y, n)
        weight = inputs.read_number_weights(sample_weight, given.class_weight, n)
        return inputs.Data(stand_in, values, np.empty(0), values, weight)
    more = () if approx is None else (FOR_MORE_CLASSES,)
    labels, classes, signs = inputs.read_labels(y, n, *more)
    weight = inputs.read_weights(sample_weight, given.class_weight, signs, classes)
    return inputs.Data(stand_in, signs, classes, labels, weight)


def _feature_grid(
    given: Given, plan: Plan, source: RowSource, rows: inputs.Data, seed: int, approx: Any
) -> Grid:
    """What was asked for; else the papers' grid, or one in units of the numbers or columns."""
    asked = given.Cs is not None or given.lambdas is not None
    if asked or not (plan.target.numeric or approx is None):
        return make_grid(given.Cs, given.lambdas, source.n)
    if not plan.target.numeric:
        return default_grid(source.n, linear_scale(source))
    few = source.take(smallest_keys(source.n, min(SCALE_ROWS, source.n), seed))
    X = few.toarray() if sparse.issparse(few) else few
    kernel = given.kernel
    if kernel.uses_gamma:
        kernel = replace(kernel, gamma=float(gamma_value(X, kernel) or 0.0))
    units = plan.units(rows.y, rows.weight)
    return default_grid(source.n, kernel_scale(X, kernel) / units.C_scale)


def columns_of(X: Any, kernel: Any, plan: Plan, memory_limit: Any) -> int | None:
    """How many columns X has, if they take the place of the linear kernel's matrix.

    They do where that does not fit, or where X is a source of rows, which has no matrix; None where
    it does, or where they cannot.
    """
    shape = (X.n, X.p) if isinstance(X, RowSource) else getattr(X, "shape", None)
    able = plan.loss == "hinge" or LossRule(plan.loss).squared
    plain = kernel == "linear" and plan.method == "exact" and able
    if not plain or shape is None or len(shape) != 2 or plan.options:
        return None
    n, p = map(int, shape)
    short = shortage(n, memory_limit, 8 * n * p if sparse.issparse(X) else 0)
    if isinstance(X, RowSource):
        short = short or f"the {n} rows are read in chunks; load them,"
    if short is None:
        return None
    rows = X.X if isinstance(X, ArrayRows) else X
    if is_wide(p) and not (sparse.issparse(rows) and plan.loss == "hinge"):
        raise MemoryLimitError(
            f"{short} or raise memory_limit.  kernel='linear' does without the matrix where X has "
            f"at most {MOST_COLUMNS} columns, here it has {p}, or is a sparse matrix in memory and "
            "loss='hinge': make it sparse if most entries are zero, leave out columns that "
            "are nearly always zero, or reduce them (sklearn.decomposition.TruncatedSVD, "
            "sklearn.random_projection), or let features stand in for the kernel: "
            "approx='nystroem'"
        )
    return p


def linear_scale(source: RowSource) -> float:
    """Of the rows, over all columns, as ``kernel_scale`` has it for the linear kernel."""
    total, square = np.zeros(source.p), np.zeros(source.p)
    start = None
    if not is_wide(source.p):  # rows of so many columns stay sparse
        first = source.take(np.zeros(1, dtype=np.intp))
        start = np.asarray(first.todense() if sparse.issparse(first) else first).ravel()
    for k in range(len(source.bounds) - 1):
        rows = source.read(k)
        if start is not None:
            rows = (rows.toarray() if sparse.issparse(rows) else rows) - start
        total += np.asarray(rows.sum(axis=0)).ravel()
        square += np.asarray(
            (rows.multiply(rows) if start is None else rows**2).sum(axis=0)
        ).ravel()
    return float((square / source.n - (total / source.n) ** 2).sum())


def _reduced(given: Given, plan: Plan) -> Given:
    """A rectangular kernel is data like any other, for the methods to which kernels are data.

    f = K u + b with a ridge on u is the linear model of the features K.
    """
    shape = getattr(given.X, "shape", (0, 0))
    able = given.kernel.name == "precomputed" and get_method(plan.method).support.any_kernel
    if able and len(shape) == 2 and shape[0] != shape[1]:
        return replace(given, kernel=Kernel("linear"))
    return given


def _needs_cache(given: Given, plan: Plan) -> bool:
    """Does the kernel matrix not fit, and is the method content with some of its rows?"""
    shape = getattr(given.X, "shape", None)
    if shape is None or len(shape) != 2 or given.kernel.name not in KERNEL_CODES:
        return False
    able = get_method(plan.method).support.row_cache
    return able and shortage(int(shape[0]), given.memory_limit) is not None
