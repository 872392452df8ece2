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
from dataclasses import dataclass, fields, replace
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

__all__ = [
    "Chunk",
    "Columns",
    "Features",
    "Gathered",
    "LeftOut",
    "Sums",
    "Work",
    "gathered",
    "merge",
    "sweep",
    "training_weights",
]


class Features(Protocol):
    """The features of all rows, where these are at hand."""

    def take(self, rows: IntArray) -> FloatArray:
        """Of some rows, by their numbers, in float64; of all of them perhaps not a copy."""
        ...


@dataclass(frozen=True)
class Chunk:
    """Features, labels (or numbers) and weights of the rows from ``start`` on.

    ``at_hand`` has the features of the others too, if they are kept in this process.
    """

    start: int
    Z: FloatArray
    y: FloatArray
    weight: FloatArray
    at_hand: Features | None = None

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
    """Rows near the margin; for each entry its column, where its row is among these, and its value.

    Few arrays whatever the number of columns: each is a message of its own when they travel.  Z has
    no columns if the features are ``at_hand`` anyway: they are many, and several passes' worth of
    them is kept.
    """

    rows: IntArray
    Z: FloatArray
    y: FloatArray
    weight: FloatArray
    of: IntArray
    index: IntArray
    u: FloatArray
    at_hand: Features | None = None

    def column(self, p: int) -> tuple[IntArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        """Row numbers, features, labels (or numbers), weights and values of one column's rows."""
        entries = self.of == p
        k = self.index[entries]
        rows = self.rows[k]
        Z = self.Z[k] if self.at_hand is None else self.at_hand.take(rows)
        return rows, Z, self.y[k], self.weight[k], self.u[entries]

    @classmethod
    def together(cls, parts: list[Gathered]) -> Gathered:
        """Those of rows that follow each other."""
        starts = np.cumsum([0, *(len(part.rows) for part in parts[:-1])])
        moved = [replace(one, index=one.index + at) for one, at in zip(parts, starts, strict=True)]
        names = [field.name for field in fields(cls) if field.name != "at_hand"]
        return cls(
            **{name: np.concatenate([getattr(one, name) for one in moved]) for name in names},
            at_hand=parts[0].at_hand,
        )


@dataclass(frozen=True)
class Sums:
    """What a pass adds up, and the rows it collects, part by part."""

    rest: SideSums  # of the rows that are not collected
    near: FloatArray  # (P, 2), sum of w_i within the width by side, rows kept or not
    gathered: Gathered


class Work(Protocol):
    """A function of a chunk that can put the results of neighbouring chunks together."""

    def __call__(self, chunk: Chunk) -> Any: ...

    def join(self, results: list[Any]) -> Any: ...


LeftOut = Mapping[int, IntArray]


def training_weights(chunk: Chunk, folds: IntArray, left_out: LeftOut) -> FloatArray:
    """Weights as a column vector, or one column for each problem if folds differ.

    ``folds`` names that of each problem (-1 for none), and ``left_out`` has the sorted row numbers
    that each fold does without.
    """
    if not (folds >= 0).any():
        return chunk.weight[:, None]
    weights = np.repeat(chunk.weight[:, None], len(folds), axis=1)
    stop = chunk.start + len(chunk.y)
    for fold in np.unique(folds[folds >= 0]):
        rows = left_out[int(fold)]
        mine = rows[np.searchsorted(rows, chunk.start) : np.searchsorted(rows, stop)] - chunk.start
        weights[np.ix_(mine, folds == fold)] = 0.0
    return weights


def sweep(chunk: Chunk, columns: Columns, left_out: LeftOut) -> Sums:
    """The chunk's share of the sums, and its rows near the margin."""
    u, loss = columns.values(chunk), columns.loss(chunk.y)
    weights = training_weights(chunk, columns.fold, left_out)
    near, mass = np.empty(u.shape, dtype=bool), np.zeros((len(columns.fold), 2))
    few = bool((columns.rate < 1).any())
    keys = row_keys(chunk.rows, columns.seed) if few else np.zeros(len(u))
    up = loss.upward.view(np.uint8)
    near_rows(
        u, loss.knots, up, weights, columns.width, keys, columns.rate, near.view(np.uint8), mass
    )
    return Sums(side_sums(chunk.Z, loss, u, weights, ~near), mass, _gather(chunk, u, near))


def _gather(chunk: Chunk, u: FloatArray, near: NDArray[np.bool_]) -> Gathered:
    of, rows = np.nonzero(near.T)
    return gathered(chunk, of, rows, u[rows, of])


def gathered(chunk: Chunk, of: IntArray, rows: IntArray, u: FloatArray) -> Gathered:
    """Rows of a chunk, by their places in it, each for the column that it is of."""
    used = np.unique(rows)
    position = np.empty(len(chunk.y), dtype=np.intp)
    position[used] = np.arange(len(used))
    return Gathered(
        rows=used + chunk.start,
        Z=chunk.Z[used, : None if chunk.at_hand is None else 0],
        y=chunk.y[used],
        weight=chunk.weight[used],
        of=of,
        index=position[rows],
        u=u,
        at_hand=chunk.at_hand,
    )


def merge(parts: Iterable[Sums]) -> Sums:
    """The sums of all chunks, added in their order."""
    parts = list(parts)
    return Sums(
        rest=reduce(add, (part.rest for part in parts)),
        near=np.sum([part.near for part in parts], axis=0),
        gathered=Gathered.together([part.gathered for part in parts]),
    )
