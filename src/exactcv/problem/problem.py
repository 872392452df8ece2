"""What is to be solved: one kernel matrix, labels, weights, a grid and folds.

    min over f in H_K, b   1/2 ||f||^2 + sum_{i in train} C_i L(y_i, b + f(x_i)),    C_i = C w_i

for the full data and for every fold, for every C of the grid.  In the papers' form

    min over f, b   (1/n) sum_i w_i L(y_i, b + f(x_i)) + lambda ||f||^2

the same problem has C = 1 / (2 n lambda).

Everything here is immutable and has been checked (see ``inputs.py``): nothing below validates
again, and nothing copies the kernel matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..types import FloatArray, IntArray
from .folds import Folds

if TYPE_CHECKING:
    from ..judge.certificate import Judge

__all__ = ["Grid", "Guests", "OwnModel", "Problem", "Task", "row_weights"]


def row_weights(weight: FloatArray, count: int, own: IntArray | None) -> FloatArray:
    """Row weights of ``count`` solutions, each of which may leave out one more row (-1: none).

    Examples
    --------
    >>> row_weights(np.ones(3), 2, np.array([1, -1]))
    array([[1., 0., 1.],
           [1., 1., 1.]])
    """
    weights = np.tile(weight, (count, 1))
    if own is not None:
        mine = np.flatnonzero(own >= 0)
        weights[mine, own[mine]] = 0.0
    return weights


class OwnModel(Protocol):
    """A model other than the one above; see ``ssvm/``."""

    def judge(self, problem: Problem, left_out: IntArray | None) -> Judge: ...


@dataclass(frozen=True)
class Problem:
    """Kernel matrix K (symmetric, C-contiguous), labels +-1, row weights and the loss."""

    K: FloatArray
    y: FloatArray
    weight: FloatArray
    loss: Any  # PiecewiseLinear, or a SmoothLoss for the methods that have smooth losses
    fit_intercept: bool = True
    psd: bool = True  # is K positive semidefinite, as far as one can tell, or need it not be?
    # A method whose model is not this one brings its own, and with it its own judge.
    model: OwnModel | None = None

    @property
    def n(self) -> int:
        return int(self.y.shape[0])

    def times(self, coef: FloatArray) -> FloatArray:
        """K c for each row c of ``coef``."""
        return np.asarray(coef @ self.K)

    @property
    def bounded(self) -> bool:
        """Has every coefficient an upper bound?"""
        return self.model is None and bool(self.loss.bounded)

    @cached_property
    def diagonal(self) -> FloatArray:
        return np.ascontiguousarray(np.diagonal(self.K))


@dataclass(frozen=True)
class Grid:
    """The values of C, in the user's order, and how they carry over to a fold.

    ``scale_with_fold`` is set when the user gave lambdas: a fold with n_train rows then has
    C = 1 / (2 n_train lambda), except in leave-one-out, where the papers keep 1 / n.
    """

    Cs: FloatArray
    lambdas: FloatArray
    scale_with_fold: bool

    def __len__(self) -> int:
        return int(self.Cs.shape[0])

    def part(self, points: IntArray) -> Grid:
        return replace(self, Cs=self.Cs[points], lambdas=self.lambdas[points])

    def for_fold(self, folds: Folds, fold: int) -> FloatArray:
        if not self.scale_with_fold or folds.leave_one_out:
            return self.Cs
        if folds.whole_to_part is not None:
            return self.Cs * folds.whole_to_part[fold]
        return self.Cs * (folds.n / (folds.n - len(folds.left_out[fold])))


@dataclass(frozen=True)
class Guests:
    """Rows that take no part in the problem, but on which folds are tested all the same.

    K : kernel values between the G guests and the rows of the problem.
    test : the guests that each fold is tested on, as indices into the first axis of K.
    """

    K: FloatArray
    test: tuple[IntArray, ...]


@dataclass(frozen=True)
class Task:
    """All that a method is given."""

    problem: Problem
    folds: Folds
    grid: Grid
    want_decision: bool
    tol: float
    options: Mapping[str, Any] = field(default_factory=dict)
    guests: Guests | None = None

    def part(self, points: IntArray, folds: IntArray) -> Task:
        """The task of some grid points and some folds."""
        return replace(self, folds=self.folds.part(folds), grid=self.grid.part(points))

    def fold_Cs(self, fold: int) -> FloatArray:
        """C along the grid for one fold's problem (multiply by the row weights)."""
        return self.grid.for_fold(self.folds, fold)
