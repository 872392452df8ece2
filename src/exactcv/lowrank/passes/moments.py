"""Passes for the squared loss: sums over rows, for all of them and for folds.

Rows are shifted by a point near their mean, and numbers are in their own units (`View`), so that
sums keep their digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from ...judge.squared_features import Moments, ResidualSums, residual_sums
from ...problem.units import Units
from ...types import FloatArray, IntArray
from ..small.ridge import LeftRows, Ridge
from .sweep import Chunk, LeftOut, training_weights

__all__ = ["FoldMoments", "LeaveEach", "Residuals", "TakeRows", "Taken", "View"]


@dataclass(frozen=True)
class View:
    """How rows are looked at: features from ``centre``, numbers in ``units``."""

    centre: FloatArray
    units: Units

    def features(self, Z: FloatArray) -> FloatArray:
        return Z - self.centre

    def numbers(self, y: FloatArray) -> FloatArray:
        return np.asarray((y - self.units.origin) / self.units.scale)

    def outside(self, theta: FloatArray) -> FloatArray:
        """(..., m + 1) as weights and intercept of the features as they are."""
        out = theta.copy()
        out[..., -1] -= theta[..., :-1] @ self.centre
        return out


@dataclass(frozen=True)
class FoldMoments:
    """Moments of all rows, if ``whole``, and of the rows (sorted) of each of some folds."""

    view: View
    rows: LeftOut
    whole: bool

    def __call__(self, chunk: Chunk) -> list[Moments]:
        X, y = self.view.features(chunk.Z), self.view.numbers(chunk.y)
        mine = [_here(chunk, rows) for rows in self.rows.values()]
        found = [Moments.of(X[k], y[k], chunk.weight[k]) for k in mine]
        if not self.whole:
            return found
        met = np.zeros(len(y), dtype=np.intp)
        for k in mine:
            met[k] += 1
        if (met > 1).any():  # not each row in one fold at most, or the sums of these would do
            return [Moments.of(X, y, chunk.weight), *found]
        rest = met == 0
        others = Moments.of(X[rest], y[rest], chunk.weight[rest])
        return [reduce(add, found, others), *found]

    def join(self, results: list[list[Moments]]) -> list[Moments]:
        return [reduce(add, parts) for parts in zip(*results, strict=True)]


@dataclass(frozen=True)
class Residuals:
    """The judge's sums at P solutions, each on all rows but those of its fold (-1: on all)."""

    view: View
    theta: FloatArray  # (P, m + 1)
    fold: IntArray
    left_out: LeftOut

    def __call__(self, chunk: Chunk) -> ResidualSums:
        weight = training_weights(chunk, self.fold, self.left_out)
        X, y = self.view.features(chunk.Z), self.view.numbers(chunk.y)
        return residual_sums(X, y, weight, self.theta)

    def join(self, results: list[ResidualSums]) -> ResidualSums:
        return reduce(add, results)


@dataclass(frozen=True)
class Taken:
    """Some rows, in their order: shifted features, numbers and weights."""

    X: FloatArray
    y: FloatArray
    weight: FloatArray

    def part(self, places: IntArray) -> Taken:
        return Taken(self.X[places], self.y[places], self.weight[places])


@dataclass(frozen=True)
class TakeRows:
    """These rows (sorted) of all."""

    view: View
    rows: IntArray

    def __call__(self, chunk: Chunk) -> Taken:
        k = _here(chunk, self.rows)
        return Taken(self.view.features(chunk.Z[k]), self.view.numbers(chunk.y[k]), chunk.weight[k])

    def join(self, results: list[Taken]) -> Taken:
        X, y, weight = (
            np.concatenate([getattr(one, name) for one in results]) for name in ("X", "y", "weight")
        )
        return Taken(X, y, weight)


@dataclass(frozen=True)
class LeaveEach:
    """Every row of a chunk left out alone; ``theta`` are the solutions of all rows."""

    view: View
    ridge: Ridge
    theta: FloatArray
    Cs: FloatArray

    def __call__(self, chunk: Chunk) -> LeftRows:
        X, y = self.view.features(chunk.Z), self.view.numbers(chunk.y)
        return self.ridge.without_each(X, y, chunk.weight, self.theta, self.Cs)

    def join(self, results: list[LeftRows]) -> LeftRows:
        values = np.concatenate([one.values for one in results])
        gone = zip(*(one.gone for one in results), strict=True)
        return LeftRows(values, type(results[0].gone)(*map(np.concatenate, gone)))


def _here(chunk: Chunk, rows: IntArray) -> IntArray:
    """Where rows (sorted) are in the chunk."""
    first, last = np.searchsorted(rows, [chunk.start, chunk.start + len(chunk.y)])
    return rows[first:last] - chunk.start
