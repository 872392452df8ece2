"""What was asked of ``cross_validate``, read and checked: rows for a kernel, or for features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..exceptions import InputError
from ..lowrank.options import Options
from ..lowrank.passes.distributed import as_local
from ..lowrank.rows.sources import open_source
from ..lowrank.task import FeatureProblem, FeatureTask
from ..problem import inputs
from ..problem.folds import Folds
from ..problem.grid import Grid, make_grid
from ..problem.kernels import Kernel
from ..problem.problem import Task
from ..runtime.memory import available_memory, parse_bytes
from ..runtime.threads import Workers
from .run import AnyTask, KernelRows, Plan

__all__ = ["FeatureRequest", "KernelRequest", "Request"]

FOR_MORE_CLASSES = (
    "approx takes two classes: for more, wrap exactcv.SVCCV(approx=...) in "
    "sklearn.multiclass.OneVsOneClassifier or OneVsRestClassifier"
)


class Request(Protocol):
    """Two classes, and the task that is to be run; ``task`` also tells gamma if it is known."""

    @property
    def classes(self) -> NDArray[Any]: ...

    def task(self, plan: Plan, workers: Workers) -> tuple[AnyTask, float | None]: ...


@dataclass(frozen=True)
class KernelRequest:
    """Rows whose kernel matrix fits into memory."""

    data: inputs.Data
    kernel: Kernel
    folds: Folds
    grid: Grid

    @classmethod
    def read(
        cls,
        X: Any,
        y: Any,
        plan: Plan,
        *,
        kernel: Kernel,
        Cs: Any,
        lambdas: Any,
        cv: Any,
        groups: Any,
        sample_weight: Any,
        class_weight: Any,
        random_state: Any,
        memory_limit: Any,
    ) -> KernelRequest:
        """Arguments as in ``cross_validate``."""
        data = inputs.read_data(X, y, kernel, sample_weight, class_weight, memory_limit)
        grid = make_grid(Cs, lambdas, len(data.y))
        folds = inputs.check_folds(cv, data, groups, random_state)
        plan.check_folds(folds)
        return cls(data, kernel, folds, grid)

    @property
    def classes(self) -> NDArray[Any]:
        return self.data.classes

    def task(self, plan: Plan, workers: Workers) -> tuple[Task, float | None]:
        """Computes the kernel matrix."""
        data = self.data
        rows = KernelRows.of(data.X, self.kernel, plan, workers)
        return plan.task(rows, data.y, data.weight, self.folds, self.grid), rows.gamma


@dataclass(frozen=True)
class FeatureRequest:
    """Rows that are read in chunks, wherever they are."""

    ready: FeatureTask
    classes: NDArray[Any]

    @classmethod
    def read(
        cls,
        X: Any,
        y: Any,
        plan: Plan,
        approx: str,
        n_components: int,
        options: Mapping[str, Any],
        *,
        kernel: Kernel,
        Cs: Any,
        lambdas: Any,
        cv: Any,
        groups: Any,
        sample_weight: Any,
        class_weight: Any,
        random_state: Any,
        memory_limit: Any,
    ) -> FeatureRequest:
        """Arguments as in ``cross_validate``; ``options`` are its ``method_options``."""
        chosen, seed = Options.read(options), _seed(random_state)
        others = [given for given in (y, sample_weight, groups) if isinstance(given, str)]
        source = open_source(X, others, chosen.chunk_rows)
        y, sample_weight, groups = (
            source.column(given) if isinstance(given, str) else as_local(given)
            for given in (y, sample_weight, groups)
        )
        labels, classes, signs = inputs.read_labels(y, source.n, FOR_MORE_CLASSES)
        weight = inputs.read_weights(sample_weight, class_weight, signs, classes)
        stand_in = np.broadcast_to(np.zeros(1), (source.n, 1))  # splitters need only its length
        rows = inputs.Data(stand_in, signs, classes, labels, weight)
        ready = FeatureTask(
            problem=FeatureProblem(
                source, signs, weight, kernel, approx, n_components, seed, plan.fit_intercept
            ),
            folds=inputs.check_folds(cv, rows, groups, random_state),
            grid=make_grid(Cs, lambdas, source.n),
            want_decision=plan.want_decision,
            tol=plan.tol,
            options=chosen,
            budget=_budget(memory_limit),
        )
        return cls(ready, classes)

    def task(self, plan: Plan, workers: Workers) -> tuple[FeatureTask, float | None]:
        """The task as it was read; gamma is worked out with the features."""
        return self.ready, None


def _seed(random_state: Any) -> int:
    from sklearn.utils import check_random_state

    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise InputError(f"random_state cannot be used: {error}") from error


def _budget(memory_limit: Any) -> int:
    if memory_limit is not None:
        return parse_bytes(memory_limit)
    return (available_memory() or 4 * 10**9) // 2
