"""One pass over the rows, for many solutions at once: what each chunk contributes.

A *column* is one training problem: a value of C, a fold to leave out (or none) and a guess
theta = (w, b).  For each column the pass collects the training rows near the margin, those with a
knot of their loss within ``width`` of u: their place is still open.  If a column has more of them
than it can use, it keeps those with the smallest keys (``lowrank/rows/sampling.py``).  The other
rows have the coefficients that go with their segments, and of them it adds up all that the judge
and the other rows must know (``judge/features.py``, `side_sums`).

The pass is a pure function of a chunk, so that threads, processes or a cluster can run it; the sums
are merged in the order of the chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..._core._chunks import near_rows
from ...judge.features import SideSums, side_sums
from ...problem.loss_rules import LossRule
from ...types import FloatArray, IntArray
from ..rows.sampling import row_keys

__all__ = ["Chunk", "Columns", "Gathered", "LeftOut", "Sums", "Work", "gathered", "merge", "sweep"]


@dataclass(frozen=True)
class Chunk:
    """Features, labels (or numbers) and weights of the rows from ``start`` on."""

    start: int
    Z: FloatArray
    y: FloatArray
    weight: FloatArray

    @property
    def rows(self) -> IntArray:
        return np.arange(self.start, self.start + len(self.y))


@dataclass(frozen=True)
class Columns:
    """What a pass needs to know of P columns.

    theta : (P, m + 1).  fold : (P,), -1 for the full data.
    width : (P, 2), for rows whose loss pushes down (the negative class), and for those up.
    rate : (P,), the share of the rows near the margin that is kept.
    loss : what rows with these y lose.
    """

    theta: FloatArray
    fold: IntArray
    width: FloatArray
    rate: FloatArray
    seed: int
    loss: LossRule

    def values(self, chunk: Chunk) -> FloatArray:
        """u, (rows, P)."""
        u = chunk.Z @ self.theta[:, :-1].T
        u += self.theta[:, -1]
        return np.asarray(u)


@dataclass(frozen=True)
class Gathered:
    """Rows near the margin: for column p, ``index[p]`` points into the rows, u[p] are values."""

    rows: IntArray
    Z: FloatArray
    y: FloatArray
    weight: FloatArray
    index: list[IntArray]
    u: list[FloatArray]

    def column(self, p: int) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Row numbers, features, labels (or numbers) and weights of one column's rows."""
        k = self.index[p]
        return self.rows[k], self.Z[k], self.y[k], self.weight[k]


@dataclass(frozen=True)
class Sums:
    """What a pass adds up, and the rows it collects, part by part."""

    rest: SideSums  # of the rows that are not collected
    near: FloatArray  # (P, 2), sum of w_i within the width by side, rows kept or not
    gathered: list[Gathered]


class Work(Protocol):
    """A function of a chunk that can put the results of neighbouring chunks together."""

    def __call__(self, chunk: Chunk) -> Any: ...

    def join(self, results: list[Any]) -> Any: ...


LeftOut = Mapping[int, IntArray]


def training_weights(chunk: Chunk, columns: Columns, left_out: LeftOut) -> FloatArray:
    """Weights as a column vector, or one column for each problem if folds differ.

    ``left_out`` has the sorted row numbers that each fold does without.
    """
    if not (columns.fold >= 0).any():
        return chunk.weight[:, None]
    weights = np.repeat(chunk.weight[:, None], len(columns.fold), axis=1)
    stop = chunk.start + len(chunk.y)
    for fold in np.unique(columns.fold[columns.fold >= 0]):
        rows = left_out[int(fold)]
        mine = rows[np.searchsorted(rows, chunk.start) : np.searchsorted(rows, stop)] - chunk.start
        weights[np.ix_(mine, columns.fold == fold)] = 0.0
    return weights


def sweep(chunk: Chunk, columns: Columns, left_out: LeftOut) -> Sums:
    """The chunk's share of the sums, and its rows near the margin."""
    u, loss = columns.values(chunk), columns.loss(chunk.y)
    weights = training_weights(chunk, columns, left_out)
    near, mass = np.empty(u.shape, dtype=bool), np.zeros((len(columns.fold), 2))
    few = bool((columns.rate < 1).any())
    keys = row_keys(chunk.rows, columns.seed) if few else np.zeros(len(u))
    up = loss.upward.view(np.uint8)
    near_rows(
        u, loss.knots, up, weights, columns.width, keys, columns.rate, near.view(np.uint8), mass
    )
    return Sums(side_sums(chunk.Z, loss, u, weights, ~near), mass, [_gather(chunk, u, near)])


def _gather(chunk: Chunk, u: FloatArray, near: NDArray[np.bool_]) -> Gathered:
    index = [np.flatnonzero(column) for column in near.T]
    return gathered(chunk, index, [u[rows, p] for p, rows in enumerate(index)])


def gathered(chunk: Chunk, index: list[IntArray], u: list[FloatArray]) -> Gathered:
    """Some rows of a chunk for each column, by their places in it, and their values."""
    picked = np.zeros(len(chunk.y), dtype=bool)
    for rows in index:
        picked[rows] = True
    used = np.flatnonzero(picked)
    position = np.full(len(chunk.y), -1, dtype=np.intp)
    position[used] = np.arange(len(used))
    return Gathered(
        rows=used + chunk.start,
        Z=chunk.Z[used],
        y=chunk.y[used],
        weight=chunk.weight[used],
        index=[position[rows] for rows in index],
        u=u,
    )


def merge(parts: Iterable[Sums]) -> Sums:
    """The sums of all chunks, added in their order."""
    parts = list(parts)
    return Sums(
        rest=reduce(add, (part.rest for part in parts)),
        near=np.sum([part.near for part in parts], axis=0),
        gathered=[one for part in parts for one in part.gathered],
    )
