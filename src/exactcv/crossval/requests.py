"""What was asked of ``cross_validate``, read and checked: rows for a kernel, or for features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._core._rows import KERNEL_CODES
from ..algorithms import get_method
from ..lowrank.open_source import open_source
from ..lowrank.options import Options
from ..lowrank.passes.distributed import as_local
from ..lowrank.rows.kept import keep_rows
from ..lowrank.task import FeatureProblem, FeatureTask
from ..problem import inputs
from ..problem.checks import seed_from
from ..problem.folds import Folds
from ..problem.grid import Grid, default_grid, make_grid
from ..problem.kernels import Kernel, kernel_scale
from ..problem.problem import Task
from ..runtime.memory import available_memory, parse_bytes, shortage
from ..runtime.threads import Workers
from .run import AnyTask, KernelRows, Plan

__all__ = ["FeatureRequest", "Given", "KernelRequest", "Request"]

FOR_MORE_CLASSES = (
    "approx takes two classes: for more, wrap exactcv.SVCCV(approx=...) in "
    "sklearn.multiclass.OneVsOneClassifier or OneVsRestClassifier"
)


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
        return cls(
            data,
            given.kernel,
            folds,
            grid,
            present,
            _budget(given.memory_limit) if cached else None,
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
        approx: str,
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
        labels, classes, signs = inputs.read_labels(y, source.n, FOR_MORE_CLASSES)
        weight = inputs.read_weights(sample_weight, given.class_weight, signs, classes)
        stand_in = np.broadcast_to(np.zeros(1), (source.n, 1))  # splitters need only its length
        rows = inputs.Data(stand_in, signs, classes, labels, weight)
        present = inputs.Present.of(weight, signs)
        if not present.all:
            source, rows = keep_rows(source, present.rows), rows.part(present.rows, False)
        ready = FeatureTask(
            problem=FeatureProblem(
                source,
                rows.y,
                rows.weight,
                given.kernel,
                approx,
                n_components,
                seed,
                plan.fit_intercept,
                landmarks=chosen.landmarks,
            ),
            folds=inputs.check_folds(given.cv, rows, groups, given.random_state, present),
            grid=make_grid(given.Cs, given.lambdas, source.n),
            want_decision=plan.want_decision,
            tol=plan.tol,
            options=chosen,
            budget=_budget(given.memory_limit),
        )
        return cls(ready, classes, present)

    def task(self, plan: Plan, workers: Workers) -> tuple[FeatureTask, float | None]:
        """The task as it was read; gamma is worked out with the features."""
        return self.ready, None


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


def _budget(memory_limit: Any) -> int:
    if memory_limit is not None:
        return parse_bytes(memory_limit)
    return (available_memory() or 4 * 10**9) // 2
