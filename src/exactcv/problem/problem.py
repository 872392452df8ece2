"""What is to be solved: one kernel matrix, labels, weights, a grid and folds.

    min over f in H_K, b   1/2 ||f||^2 + sum_{i in train} C_i L(y_i, b + f(x_i)),    C_i = C w_i

for the full data and for every fold, for every C of the grid.  In the papers' form

    min over f, b   (1/n) sum_i w_i L(y_i, b + f(x_i)) + lambda ||f||^2

the same problem has C = 1 / (2 n lambda).  With ``penalty="ridge"`` (the smooth SVM) the penalty is
1/2 ||theta||^2 instead, on the coefficients theta = (u, b) of f = K u + b, or theta = (w, b) of the
linear model f = X w + b; the loss and C mean what they mean everywhere.

Everything here is immutable and has been checked (``inputs.py``): nothing below validates
again, and nothing copies the kernel matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from ..types import FloatArray, IntArray
from .folds import Folds
from .grid import Grid
from .repeated import first_similar
from .targets import SIGNS, Target

__all__ = ["FoldKernels", "Guests", "Penalty", "Problem", "Task", "row_weights"]

Penalty = Literal["norm", "ridge"]

# Kernel values computed at a time where K is not held.
AT_A_TIME = 1 << 21


def row_weights(
    weight: FloatArray, count: int, own: IntArray | None, rest: FloatArray | None = None
) -> FloatArray:
    """Row weights of ``count`` solutions, each of which may leave out one more row (-1: none).

    With ``rest`` so much of its weight stays.

    Examples
    --------
    >>> row_weights(np.ones(3), 2, np.array([1, -1]))
    array([[1., 0., 1.],
           [1., 1., 1.]])
    """
    weights = np.tile(weight, (count, 1))
    if own is not None:
        mine = np.flatnonzero(own >= 0)
        weights[mine, own[mine]] = 0.0 if rest is None else rest[mine]
    return weights


@dataclass(frozen=True)
class Problem:
    """Kernel matrix K (C-contiguous), targets, row weights, loss and penalty.

    K is symmetric, unless the penalty is a ridge and K the data.

    Attributes
    ----------
    K : (n, n)
    y : (n,)
        What the loss was built from: labels +-1, or numbers.
    weight : (n,)
    loss : PiecewiseLinear, DifferentiableLoss or SquaredLoss
    fit_intercept : bool
    psd : bool
        Is K positive semidefinite, as far as one can tell, or need it not be?
    penalty : {"norm", "ridge"}
        "norm": 1/2 ||f||^2, and b is free.  "ridge": 1/2 ||theta||^2, the intercept included.
    features : (n, p) or None
        With "ridge": the rows of a linear model, f = X w + b; None makes K the data, f = K u + b.
    target : Target
        What a left-out value is worth.
    rows : row source or None
        Where K does not fit: what computes its rows (``engine/kernel_rows.py``); K is empty then,
        and only methods whose ``Support`` has ``row_cache`` are given such a problem.
    known_same : (n,) or None
        What `same` is, if whoever states the problem has looked already.
    """

    K: FloatArray
    y: FloatArray
    weight: FloatArray
    loss: Any
    fit_intercept: bool = True
    psd: bool = True
    penalty: Penalty = "norm"
    features: FloatArray | None = None
    target: Target = SIGNS
    rows: Any = None
    known_same: IntArray | None = None

    @property
    def n(self) -> int:
        return int(self.y.shape[0])

    def times(self, coef: FloatArray) -> FloatArray:
        """K c for each row c of ``coef``."""
        if self.rows is None and self.symmetric and len(coef) == 1:
            # One vector waits for memory, of which one triangle is half.
            return np.asarray(blas.dsymv(1.0, self.K.T, coef[0]))[None]
        if self.rows is None:
            return np.asarray(coef @ (self.K if self.symmetric else self.K.T))
        had = np.flatnonzero(coef.any(axis=0))
        given, out = coef[:, had], np.empty(coef.shape)
        step = max(1, AT_A_TIME // max(1, len(had)))
        for first in range(0, self.n, step):
            here = np.arange(first, min(first + step, self.n))
            out[:, here] = given @ self.rows.block(had, here)
        return out

    def weighted(self, weight: FloatArray) -> Problem:
        """The same problem with other row weights; what depends on K alone is shared."""
        other = object.__new__(type(self))  # asked for thousands of times: quicker than `replace`
        other.__dict__.update(self.__dict__, weight=weight)
        return other

    @property
    def kernel_rows(self) -> Any:
        """K, or what computes its rows as they are needed (``engine/fold_kernels.py``)."""
        return self.K

    @cached_property
    def symmetric(self) -> bool:
        """Is K its transpose?  It need not be where it is the data (the smooth SVM)."""
        data = self.penalty == "ridge" and self.features is None
        return not data or bool(np.array_equal(self.K, self.K.T))

    @property
    def bounded(self) -> bool:
        """Has every coefficient an upper bound?"""
        return bool(self.loss.bounded)

    @cached_property
    def diagonal(self) -> FloatArray:
        if self.rows is not None:
            return np.asarray(self.rows.diagonal)
        return np.ascontiguousarray(np.diagonal(self.K))

    @cached_property
    def same(self) -> IntArray:
        """For each row the first whose row of K is equal to it."""
        return first_similar(self.K) if self.known_same is None else self.known_same

    @cached_property
    def K_single(self) -> tuple[NDArray[np.float32], float]:
        """K in single precision, divided by its largest diagonal entry, and that entry.

        For rough solutions; made when first asked for, and then kept.
        """
        return in_single_precision(self.K, self.diagonal)


def in_single_precision(K: FloatArray, diagonal: FloatArray) -> tuple[NDArray[np.float32], float]:
    """K divided by its largest diagonal entry, and that entry."""
    scale = float(diagonal.max()) or 1.0
    single = K.astype(np.float32)
    if scale != 1.0:
        single *= np.float32(1.0 / scale)
    return single, scale


class FoldKernels(Protocol):
    """Kernel matrices that differ from fold to fold by gamma, with the same diagonal."""

    @property
    def gammas(self) -> FloatArray:
        """One for each fold, and perhaps more."""
        ...

    def times(self, fold: int, coef: FloatArray) -> FloatArray:
        """K c for each row c of ``coef``, with the kernel matrix of one fold."""
        ...

    def times_each(self, coef: FloatArray) -> FloatArray:
        """K c for one solution of each of the first folds, a row each."""
        ...

    def problem(self, problem: Problem) -> Problem:
        """That problem with the kernel of one fold after the other."""
        ...

    def turn(self, problem: Problem, fold: int) -> None:
        """From here on the kernel of such a problem is that of this fold."""
        ...


@dataclass(frozen=True)
class Guests:
    """Rows that take no part in the problem, but on which folds are tested all the same.

    K : kernel values between all rows, guests and those of the problem.
    rows : where the rows of the problem stand in it.
    test : the guests that each fold is tested on, as rows of K.
    gammas : where given, K are squared distances, and the kernel of fold f is exp(-gammas[f] K).
    """

    K: FloatArray
    rows: IntArray
    test: tuple[IntArray, ...]
    gammas: FloatArray | None = None


@dataclass(frozen=True)
class Task:
    """All that a method is given.

    ``kernels``: where given, folds have kernel matrices of their own, and that of the problem is
    near them (method "exact" alone, and no leave-one-out).
    """

    problem: Problem
    folds: Folds
    grid: Grid
    want_decision: bool
    tol: float
    options: Mapping[str, Any] = field(default_factory=dict)
    guests: Guests | None = None
    kernels: FoldKernels | None = None

    def part(self, points: IntArray, folds: IntArray) -> Task:
        """The task of some grid points and some folds."""
        return replace(self, folds=self.folds.part(folds), grid=self.grid.part(points))

    def fold_Cs(self, fold: int) -> FloatArray:
        """C along the grid for one fold's problem (multiply by the row weights)."""
        return self.grid.for_fold(self.folds, fold)
