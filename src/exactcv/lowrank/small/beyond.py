"""Do rows beyond a small problem change sides in solutions that were found without them?

A solution of a small problem holds for all rows as long as none of the others passes a knot.  How
far w and b have moved often says so at once (``leave_out.py``).  Where it does not, the rows
themselves are asked: one pass for many solutions, a product and a comparison for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from ...problem.loss_rules import LossRule
from ...problem.losses import PiecewiseLinear
from ...types import BoolArray, FloatArray, IntArray
from ..passes.sweep import Chunk, Gathered, gathered

__all__ = ["Beyond", "Crossed", "Crossings", "Standing", "passing"]

# Solutions that are looked at together.
BLOCK = 256


def passing(
    loss: PiecewiseLinear, u: FloatArray, values: FloatArray, spare: FloatArray
) -> BoolArray:
    """Which rows pass a knot on the way from u to ``values``, (rows, solutions).

    Or would, wherever b is that has an interval: a row that ends it sooner moves its midpoint.
    """
    before = loss.passed(u)[:, None]
    out = loss.passed(values) != before
    some = np.flatnonzero(spare)
    for side in (-1.0, 1.0) if len(some) else ():
        out[:, some] |= loss.passed(values[:, some] + side * spare[some]) != before
    return np.asarray(out)


@dataclass(frozen=True)
class Beyond:
    """Solutions that may move rows further than the small problem reaches.

    places : which of the rows that were left out they are without.
    theta : (k, m + 1).
    moved : no row's value moves further.
    spare : how far b may go to either side of theta's, if nothing else stops it; in ``moved``.
    """

    places: IntArray
    theta: FloatArray
    moved: FloatArray
    spare: FloatArray

    def at(self, which: IntArray) -> Beyond:
        """The same as places in a longer list, of which ``which`` are ours."""
        return replace(self, places=which[self.places])

    @classmethod
    def none(cls, m: int) -> Beyond:
        return cls(np.zeros(0, dtype=np.intp), np.zeros((0, m + 1)), np.zeros(0), np.zeros(0))

    @classmethod
    def joined(cls, parts: Sequence[Beyond]) -> Beyond:
        names = [part.name for part in fields(cls)]
        return cls(*(np.concatenate([getattr(one, name) for one in parts]) for name in names))


@dataclass(frozen=True)
class Standing:
    """A full-data solution and some without a row each.

    known : the rows of its small problem, in rising order: of these nothing is asked.
    rows : which row each of the solutions is without.
    """

    theta: FloatArray
    known: IntArray
    rows: IntArray
    without: Beyond

    def crossed(self, chunk: Chunk, loss: LossRule) -> tuple[BoolArray, IntArray]:
        """In which of the solutions does a row of the chunk pass a knot, and which rows do?"""
        out, which = np.zeros(len(self.rows), dtype=bool), np.zeros(len(chunk.y), dtype=bool)
        losses, u = loss(chunk.y), chunk.Z @ self.theta[:-1] + self.theta[-1]
        away = losses.distance(u)
        away[chunk.weight <= 0] = np.inf
        stop = chunk.start + len(chunk.y)
        first, last = np.searchsorted(self.known, [chunk.start, stop])
        away[self.known[first:last] - chunk.start] = np.inf
        without = self.without
        order = np.argsort(without.moved)
        for start in range(0, len(order), BLOCK):
            some = order[start : start + BLOCK]
            rows = np.flatnonzero(away <= without.moved[some[-1]])
            if not len(rows):
                continue
            values = chunk.Z[rows] @ without.theta[some, :-1].T
            values += without.theta[some, -1]
            passed = passing(losses.at(rows), u[rows], values, without.spare[some])
            own = self.rows[some] - chunk.start
            place = np.minimum(np.searchsorted(rows, own), len(rows) - 1)
            mine = np.flatnonzero(rows[place] == own)
            passed[place[mine], mine] = False
            out[some] = passed.any(axis=0)
            which[rows] |= passed.any(axis=1)
        return out, np.flatnonzero(which)


@dataclass(frozen=True)
class Crossed:
    """Of several full-data solutions: in which of those without a row each a row beyond crosses.

    rows : those that cross in any of them, with their features; as many as wanted.
    """

    solutions: list[BoolArray]
    gathered: Gathered

    def rows(self, p: int) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Row numbers, features, labels (or numbers) and weights, for the p-th of them."""
        return self.gathered.column(p)[:4]


@dataclass(frozen=True)
class Crossings:
    """`Standing.crossed` of a chunk, for several full-data solutions.

    ``share`` of the rows of a chunk may be handed on for each of them: a part of those that cross,
    if they are more.
    """

    standings: Sequence[Standing]
    loss: LossRule
    share: float = 0.0

    def __call__(self, chunk: Chunk) -> Crossed:
        found = [one.crossed(chunk, self.loss) for one in self.standings]
        most = int(np.ceil(self.share * len(chunk.y)))
        index = [_spaced(rows, most) for _, rows in found]
        of = np.repeat(np.arange(len(index)), [len(rows) for rows in index])
        # Of their values nothing is asked.
        some = gathered(chunk, of, np.concatenate(index), np.zeros(len(of)))
        return Crossed([flags for flags, _ in found], some)

    def join(self, results: list[Crossed]) -> Crossed:
        flags = zip(*(one.solutions for one in results), strict=True)
        together = [np.logical_or.reduce(of_one) for of_one in flags]
        return Crossed(together, Gathered.together([one.gathered for one in results]))


def _spaced(rows: IntArray, most: int) -> IntArray:
    """No more than so many of them."""
    return rows if len(rows) <= most else rows[:: -(-len(rows) // most)] if most else rows[:0]
