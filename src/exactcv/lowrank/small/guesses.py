"""First guesses for the problems of ``lowrank/solver.py``, from rows held in memory.

If these are all rows, the guesses are the solutions, but for the proof.  Else a guess from k of n
rows is off by about as much as it differs from one from k/2 of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...problem.losses import PiecewiseLinear
from ...runtime.threads import Workers
from ...types import BoolArray, FloatArray, IntArray
from .reduced import Reduced, Reply, at_knot
from .sites import Sites, sites_of
from .solve import approach, solve

__all__ = ["STRIDES", "WIDTH", "Column", "Guesses", "Sample", "like", "widest_stride"]

# The grid is solved in waves: every eighth point, then every fourth, and so on.
STRIDES = (8, 4, 2, 1)
# Rows are collected this many root mean square errors around the margin.
WIDTH = 3.0
# Rows by which those near margins are counted where all are in memory.
COUNTED = 8192
# How far the solutions of a fold, or of the next C, are off.
NEARBY = 0.1


@dataclass(frozen=True)
class Sample:
    """Rows held in memory, by rising key: for first guesses, and for counting rows near margins.

    If they are all rows (``whole``), they are in the order of the data.
    """

    rows: IntArray
    Z: FloatArray
    loss: PiecewiseLinear
    weight: FloatArray
    whole: bool = False

    @property
    def n(self) -> int:
        return len(self.rows)

    def distance(self, theta: FloatArray) -> FloatArray:
        """How far the rows are from the margin, (n, P), of P guesses."""
        return self.loss.distance(self.Z @ theta[:, :-1].T + theta[:, -1])

    def counted(self) -> Sample:
        """Some of the rows, if they are all there are: enough to count by."""
        if not self.whole or self.n <= COUNTED:
            return self
        return self.some(np.arange(0, self.n, -(-self.n // COUNTED)))

    def some(self, which: IntArray) -> Sample:
        """Not all of the rows."""
        return Sample(self.rows[which], self.Z[which], self.loss.at(which), self.weight[which])

    def apart(self, one: FloatArray, other: FloatArray) -> float:
        """Root mean square difference of the decision values of two guesses."""
        step = self.Z @ (one - other)[:-1] + (one[-1] - other[-1])
        return float(np.sqrt(np.mean(step**2)))


@dataclass(frozen=True)
class Column:
    """One training problem: C (times the row weights), the fold it leaves out, a first guess.

    ``error`` is how far the guess may be off, as a decision value; None if nothing is known.
    ``free`` is about how many rows lie on the margin: a sample must have many more to be of use.
    """

    C: float
    fold: int
    theta: FloatArray
    error: float | None = None
    free: int = 0


class Guesses:
    """Makes columns.

    Parameters
    ----------
    sample : Sample
    mass : (2,)
        Sum of the weights of each side (`sweep.Columns`).
    fit_intercept : bool
    workers : Workers
    """

    def __init__(self, sample: Sample, mass: FloatArray, fit_intercept: bool, workers: Workers):
        self.sample, self.mass = sample, mass
        self.fit_intercept, self.workers = fit_intercept, workers
        self.steps = 0

    @cached_property
    def _sites(self) -> Sites:
        return sites_of(self.sample.Z, self.sample.loss)

    @cached_property
    def _rows(self) -> tuple[FloatArray, PiecewiseLinear]:
        """Features and losses, of equal rows once."""
        sample, first = self.sample, self._sites.first
        if not self._sites.any:
            return sample.Z, sample.loss
        return sample.Z[first], sample.loss.at(first)

    def prepare(self) -> None:
        """Make the rows of the sample once, before threads ask for them."""
        _ = self._rows

    def let_go(self) -> None:
        """Hold no rows of the sample twice until guesses are wanted again."""
        self.__dict__.pop("_rows", None)

    def first(self, Cs: FloatArray) -> dict[int, Column]:
        """The columns of a path that need a guess from the sample, by their place in rising Cs.

        If the sample has all rows these are all; else some, and those in between are guessed from
        their solutions.
        """
        stride = 1 if self.sample.whole else widest_stride(len(Cs))
        # None shortly before the last: between others it costs a fraction.
        places = [*range(0, len(Cs) - 1 - stride // 2, stride), len(Cs) - 1]
        return dict(zip(places, self.columns(Cs[places]), strict=True))

    def columns(self, Cs: FloatArray) -> list[Column]:
        """Columns of the full data along rising Cs."""
        if self.sample.whole:
            found = self._path(Cs, self.sample.weight)
            return [self._column(C, -1, one) for C, one in zip(Cs, found, strict=True)]
        half = self.sample.some(np.arange(max(1, self.sample.n // 2)))
        less = Guesses(half, self.mass, self.fit_intercept, self.workers)
        # What is asked of half of the rows is how far it is from what all of them say.
        good, rough = self.workers.map(
            lambda one: one._path(Cs, one._like(), one is less), (self, less)
        )
        self.steps += less.steps
        columns = []
        for C, one, other in zip(Cs, good, rough, strict=True):
            error = self.sample.apart(one.theta, other.theta)
            columns.append(replace(self._column(C, -1, one), error=error))
        return columns

    def without(self, column: Column, left_out: IntArray) -> Column:
        """The column of a fold, from one of the full data; these rows are left out."""
        if not self.sample.whole:
            return column
        weight = self.sample.weight.copy()
        weight[left_out] = 0.0
        return self._column(column.C, column.fold, self._solve(column.C, weight, column.theta))

    def _path(self, Cs: FloatArray, weight: FloatArray, roughly: bool = False) -> list[Reply]:
        """Solutions along rising Cs; what is near them if ``roughly`` will do."""
        theta, out = np.zeros(self.sample.Z.shape[1] + 1), []
        for C in Cs:
            reply = self._solve(float(C), weight, theta, roughly)
            theta = reply.theta
            out.append(reply)
        return out

    def _solve(
        self, C: float, weight: FloatArray, theta: FloatArray, roughly: bool = False
    ) -> Reply:
        Z, loss = self._rows
        box = C * self._sites.total(weight)
        problem = Reduced(Z, loss, box, np.zeros(Z.shape[1]), 0.0, self.fit_intercept)
        distinct = Sites(np.arange(len(Z)), np.arange(len(Z)))
        if roughly and theta.any():
            reply = approach(problem, theta, NEARBY)
        else:
            tau = NEARBY if theta.any() else None
            reply = solve(problem, theta, self.workers.cancel, tau, distinct)
        self.steps += reply.steps
        return reply

    def _column(self, C: float, fold: int, reply: Reply) -> Column:
        free = np.count_nonzero(at_knot(reply.state)[self._sites.of])
        return Column(float(C), fold, reply.theta, 0.0 if reply.solved else None, int(free))

    def _like(self) -> FloatArray:
        """Weights of the sample: both sides weigh as much as in the whole data.

        Where regularisation is strong nothing matters but which of them weighs more.
        """
        return like(self.sample.weight, self.sample.loss.upward, self.mass)


def widest_stride(n_points: int) -> int:
    """How far the first wave's points of the grid are apart.

    Examples
    --------
    >>> [widest_stride(n) for n in (1, 2, 3, 8, 9)]
    [1, 1, 2, 4, 8]
    """
    return max(k for k in STRIDES if k < max(n_points, 2))


def like(weight: FloatArray, upward: BoolArray, mass: FloatArray) -> FloatArray:
    """Weights of a sample, scaled so that each side weighs what it does in the whole."""
    out = weight.copy()
    for side, whole in zip((~upward, upward), mass, strict=True):
        held = float(weight[side].sum())
        if held > 0:
            out[side] *= whole / held
    return out
