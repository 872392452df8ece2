"""The kernel matrices of all rows of the data, which several candidates or folds ask for."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock

import numpy as np

from ...crossval.one_vs_one import by_class
from ...problem.kernels import Distances, Kernel, kernel_matrix
from ...runtime.threads import Workers
from ...types import FloatArray, IntArray

__all__ = ["KEPT", "Matrices"]

# Distances are kept for data with at most so many rows.
KEPT = 4096


@dataclass
class Matrices:
    """Kernel matrices with the rows of each class together.

    X : the rows, in the order of the data.
    order, place : row i of a matrix is row order[i] of the data, whose row j is at place[j].
    shared : will several matrices be asked for?  Those of RBF kernels then share their distances.
    """

    X: FloatArray
    order: IntArray
    place: IntArray
    shared: bool = False

    def __post_init__(self) -> None:
        self._distances: Distances | None = None
        self._lock = Lock()

    @classmethod
    def of(cls, X: FloatArray, codes: IntArray, kernel_of_rows: bool, shared: bool) -> Matrices:
        """``kernel_of_rows``: is it ours to say in which order the rows come?"""
        everyone = np.arange(len(X), dtype=np.intp)
        found = by_class(codes) if kernel_of_rows else None
        return cls(X, *((everyone, everyone) if found is None else found), shared)

    @property
    def rows(self) -> FloatArray:
        """X in the order of the matrices."""
        return self.X if self.order is self.place else self.X[self.order]

    def matrix(self, kernel: Kernel, workers: Workers) -> FloatArray:
        if kernel.name != "rbf" or not self.shared or len(self.X) > KEPT:
            return kernel_matrix(self.rows, kernel, workers)[0]
        return self.distances().rbf(float(kernel.gamma))

    def distances(self) -> Distances:
        """Computed when first asked for."""
        with self._lock:
            if self._distances is None:
                self._distances = Distances(self.rows)
        return self._distances
