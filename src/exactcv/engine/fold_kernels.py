"""Kernel matrices of folds that have a gamma of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._core._gather import RbfRows, combine, combine_parts, rbf
from ..problem.problem import Problem, in_single_precision
from ..types import FloatArray, IntArray

__all__ = ["RbfOfFolds", "rbf_matrix"]


def rbf_matrix(squares: FloatArray, gamma: float) -> FloatArray:
    """exp(-gamma D).

    Examples
    --------
    >>> rbf_matrix(np.array([[0.0, 4.0], [4.0, 0.0]]), 0.1).round(2)
    array([[1.  , 0.67],
           [0.67, 1.  ]])
    """
    K = np.empty_like(squares)
    rbf(squares, gamma, K)
    return K


@dataclass(frozen=True)
class RbfOfFolds:
    """RBF kernels of some rows, exp(-gammas[f] D); see `problem.FoldKernels`.

    ``squares`` are the squared distances of all rows, ``rows`` those of the problem, and ``own``
    the distances between those alone.

    Examples
    --------
    >>> import numpy as np
    >>> squares = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [4.0, 1.0, 0.0]])
    >>> rows = np.array([0, 2])
    >>> kernels = RbfOfFolds(squares, rows, squares[::2, ::2], np.array([0.1, 1.0]))
    >>> kernels.times(0, np.array([[1.0, 0.0]])).round(3)
    array([[1.  , 0.67]])
    """

    squares: FloatArray
    rows: IntArray
    own: FloatArray
    gammas: FloatArray

    def times(self, fold: int, coef: FloatArray) -> FloatArray:
        nothing = np.zeros(len(coef))
        gamma = float(self.gammas[fold])
        return combine(self.squares, self.rows, self.rows, coef, nothing, gamma)

    def times_each(self, coef: FloatArray) -> FloatArray:
        count, n = coef.shape
        parts = np.tile(self.rows, count), np.arange(0, (count + 1) * n, n)
        nothing = np.zeros(count)
        found = combine_parts(self.squares, *parts, self.rows, coef, nothing, self.gammas[:count])
        return found.reshape(count, n)

    def problem(self, problem: Problem) -> Problem:
        return OnDemand.of(problem, RbfRows(self.own))

    def turn(self, problem: Problem, fold: int) -> None:
        problem.kernel_rows.start_over(float(self.gammas[fold]))


class OnDemand(Problem):
    """A problem whose kernel is computed as it is needed.

    Block steps from a solution nearby (``_active_set.pyx``) need the rows of those with a
    coefficient, a quarter of them or so; whoever asks for ``K`` gets all of it.
    """

    _source: RbfRows

    @classmethod
    def of(cls, problem: Problem, source: RbfRows) -> OnDemand:
        """``problem`` with another kernel, which has the same diagonal and the same equal rows."""
        other = object.__new__(cls)
        known = {name: what for name, what in vars(problem).items() if name not in OF_ONE_KERNEL}
        other.__dict__.update(known, diagonal=problem.diagonal, same=problem.same, _source=source)
        return other

    @property
    def kernel_rows(self) -> RbfRows:
        return self._source

    @property
    def K(self) -> FloatArray:
        return self._source.complete()

    @property
    def K_single(self) -> tuple[NDArray[np.float32], float]:
        return in_single_precision(self.K, self.diagonal)


# What a problem keeps of its kernel matrix that is not so of another.
OF_ONE_KERNEL = ("K", "K_single")
