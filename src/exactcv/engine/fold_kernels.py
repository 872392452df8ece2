"""Kernel matrices of folds that have a gamma of their own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .._core._gather import gather_rbf
from ..types import FloatArray, IntArray

__all__ = ["RbfOfFolds"]


@dataclass(frozen=True)
class RbfOfFolds:
    """RBF kernels of some rows, exp(-gammas[f] D); see `problem.FoldKernels`.

    ``squares`` are the squared distances of all rows, ``rows`` those of the problem.

    Examples
    --------
    >>> import numpy as np
    >>> squares = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [4.0, 1.0, 0.0]])
    >>> kernels = RbfOfFolds(squares, np.array([0, 2]), np.array([0.1, 1.0]))
    >>> kernels.of(0).round(3)
    array([[1.  , 0.67],
           [0.67, 1.  ]])
    """

    squares: FloatArray
    rows: IntArray
    gammas: FloatArray
    _kept: dict[int, FloatArray] = field(default_factory=dict, repr=False)

    def of(self, fold: int) -> FloatArray:
        if fold not in self._kept:
            gamma = float(self.gammas[fold])
            self._kept[fold] = gather_rbf(self.squares, self.rows, self.rows, gamma)
        return self._kept[fold]

    def drop(self, folds: Iterable[int]) -> None:
        for fold in folds:
            self._kept.pop(fold, None)
