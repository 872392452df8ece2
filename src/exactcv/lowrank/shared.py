"""One computation of features for several problems, each on some of the rows.

The rows of a class stand together, so that the rows of two classes are two blocks of one array, in
memory or in a file: no problem has a copy of its own.  Rows that are with Dask stay where they are;
there each problem has the features of its rows made anew, by the same map.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..runtime.threads import Workers
from ..types import FloatArray, IntArray
from .budget import least_memory
from .features import FeatureMap, OwnColumns, features_of
from .method import check_room, fit_map, runner_of
from .passes.distributed import DaskRows
from .passes.local import LocalRunner, scratch_array
from .passes.sweep import Chunk
from .rows.kept import keep_rows
from .rows.made import MadeRows
from .rows.sampling import smallest_keys
from .solver import Runner
from .task import FeatureProblem, FeatureTask

__all__ = ["SharedFeatures", "share"]


class SharedFeatures(Protocol):
    """Features of all rows, for problems that have some of them."""

    @property
    def feature_map(self) -> FeatureMap: ...

    @property
    def order(self) -> IntArray | None:
        """The rows as they stand here; None if they stand as they are given."""
        ...

    @property
    def kept(self) -> int:
        """Bytes of memory that the features take in this process."""
        ...

    def part(self, problem: FeatureProblem, rows: IntArray) -> FeatureProblem:
        """The problem with these of the rows (numbers rise); y and weight are the caller's."""
        ...

    def runner(self, workers: Workers) -> Runner:
        """Passes over all rows."""
        ...


def share(task: FeatureTask, codes: NDArray[np.integer], workers: Workers) -> SharedFeatures:
    """Fit the map to all rows and make the features, once."""
    if task.wide:
        return _Sparse(task, OwnColumns(task.problem.source.p))
    check_room(task)
    problem, fmap = task.problem, task.problem.feature_map
    if fmap is None:
        landmarks = problem.n_components if problem.approx == "nystroem" else 0
        fmap, _ = fit_map(problem, smallest_keys(problem.n, landmarks, problem.seed))
    if isinstance(problem.source, DaskRows):
        return _WithDask(task, fmap)
    return _Here.make(task, fmap, np.argsort(codes, kind="stable"), workers)


@dataclass(frozen=True)
class _Here:
    """Features in this process: ``Z`` in the order of the classes."""

    task: FeatureTask
    feature_map: FeatureMap
    order: IntArray
    Z: FloatArray
    kept: int

    @classmethod
    def make(cls, task: FeatureTask, fmap: FeatureMap, order: IntArray, workers: Workers) -> _Here:
        source, options = task.problem.source, task.options
        on_disk = options.store_for(source.n, fmap.n_components, task.budget) != "memory"
        size = source.n * fmap.n_components * np.dtype(options.dtype).itemsize
        need = least_memory(source, options, fmap.n_components, source.n)
        on_disk |= size + need > task.budget
        Z = scratch_array((source.n, fmap.n_components), options.dtype, on_disk, options.folder)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))

        def fill(k: int) -> None:
            rows = place[source.bounds[k] : source.bounds[k + 1]]
            Z[rows] = features_of(fmap, source.read(k), Z.dtype)

        workers.map(fill, range(len(source.bounds) - 1))
        return cls(task, fmap, order, Z, 0 if on_disk else Z.nbytes)

    def part(self, problem: FeatureProblem, rows: IntArray) -> FeatureProblem:
        made = MadeRows(self.Z, rows, self.task.options.chunk_rows)
        return replace(problem, source=made, feature_map=_as_they_are(self.feature_map))

    def runner(self, workers: Workers) -> Runner:
        n = len(self.Z)
        rows = MadeRows(self.Z, np.arange(n), self.task.options.chunk_rows)
        return LocalRunner(
            rows, np.ones(n), np.ones(n), _as_they_are(self.feature_map), workers, "recompute",
            self.Z.dtype,
        )  # fmt: skip


@dataclass(frozen=True)
class _Sparse:
    """Rows that are features themselves, and sparse: each problem takes its own."""

    task: FeatureTask
    feature_map: FeatureMap
    order: IntArray | None = None
    kept: int = 0

    def part(self, problem: FeatureProblem, rows: IntArray) -> FeatureProblem:
        return replace(problem, source=keep_rows(problem.source, rows))

    def runner(self, workers: Workers) -> Runner:
        source = self.task.problem.source
        one = np.ones(source.n)
        return _SparseRunner(source, one, one, self.feature_map, workers, "recompute", np.float64)


class _SparseRunner(LocalRunner):
    """Passes over rows that stay sparse."""

    def chunk(self, k: int) -> Chunk:
        rows = slice(self.bounds[k], self.bounds[k + 1])
        return Chunk(int(self.bounds[k]), self.source.read(k), self.y[rows], self.weight[rows])


@dataclass(frozen=True)
class _WithDask:
    """Features that workers make of their rows."""

    task: FeatureTask
    feature_map: FeatureMap
    order: IntArray | None = None
    kept: int = 0

    def part(self, problem: FeatureProblem, rows: IntArray) -> FeatureProblem:
        source = keep_rows(problem.source, rows)
        return replace(problem, source=source, feature_map=self.feature_map)

    def runner(self, workers: Workers) -> Runner:
        return runner_of(self.task, self.feature_map, workers, "recompute")


def _as_they_are(made_by: FeatureMap) -> OwnColumns:
    """The map of rows that are features already."""
    return OwnColumns(made_by.n_components, made_by.gamma)
