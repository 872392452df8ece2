"""First guesses for the problems of ``lowrank/solver.py``, from a sample of rows in memory.

A guess from k of n rows is off by about as much as it differs from one from k/2 of them.  Where the
rows within reach of that error are more than a pass can collect, the whole sample makes a better
guess, smoothed (``continuation.py``): it need not be exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ...runtime.threads import Workers
from ...types import FloatArray, IntArray
from . import pivot
from .continuation import smooth_solution
from .reduced import FREE, Reduced, Reply

__all__ = ["WIDTH", "Column", "Guesses", "Sample", "like"]

# Rows are collected this many root mean square errors around the margin.
WIDTH = 3.0


@dataclass(frozen=True)
class Sample:
    """Rows held in memory, by rising key: for first guesses, and for counting rows near margins."""

    rows: IntArray
    Z: FloatArray
    y: FloatArray
    weight: FloatArray

    def apart(self, one: FloatArray, other: FloatArray) -> float:
        """Root mean square difference of the decision values of two guesses."""
        step = self.Z @ (one - other)[:-1] + (one[-1] - other[-1])
        return float(np.sqrt(np.mean(step**2)))

    def share_within(self, theta: FloatArray, reach: float) -> float:
        """Of the rows, how many lie within that reach of the margin."""
        r = (self.Z @ theta[:-1] + theta[-1]) * self.y - 1.0
        return np.count_nonzero(np.abs(r) <= reach) / len(r)


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
    """Makes columns for the full data.

    Parameters
    ----------
    sample : Sample
    n : int
        Rows in all.
    mass : (2,)
        Sum of the weights of each class, the negative one first.
    target : int
        Rows in a small problem, about.
    fit_intercept : bool
    workers : Workers
    """

    def __init__(
        self,
        sample: Sample,
        n: int,
        mass: FloatArray,
        target: int,
        fit_intercept: bool,
        workers: Workers,
    ):
        self.sample, self.n, self.mass, self.target = sample, n, mass, target
        self.fit_intercept, self.workers = fit_intercept, workers
        self.steps = 0

    def columns(self, Cs: FloatArray, rows_for: Callable[[Column], int]) -> list[Column]:
        """Columns along rising Cs; ``rows_for`` tells how many rows each may collect."""
        if self.n <= 2 * self.target:
            whole = self._solutions(Cs, self.n)
            return [Column(float(C), -1, one.theta) for C, one in zip(Cs, whole, strict=True)]
        sizes = (self.target, self.target // 2)
        good, rough = self.workers.map(partial(self._solutions, Cs), sizes)
        columns = []
        for C, one, other in zip(Cs, good, rough, strict=True):
            error, free = self.sample.apart(one.theta, other.theta), one.state == FREE
            columns.append(Column(float(C), -1, one.theta, error, int(np.count_nonzero(free))))
        refined = partial(self._refined, self._problem(len(self.sample.y)), rows_for)
        return self.workers.map(refined, columns[::-1])[::-1]  # the longest first

    def _refined(self, whole: Reduced, rows_for: Callable[[Column], int], column: Column) -> Column:
        """A guess from the whole sample, where the rows in reach are more than can be collected."""
        rows, error = len(self.sample.y), column.error
        if error is None or rows < 4 * self.target:
            return column
        within = self.n * self.sample.share_within(column.theta, WIDTH * error)
        if within <= 2 * rows_for(column):
            return column
        problem = replace(whole, box=column.C * whole.box)
        theta, _, steps = smooth_solution(problem, column.theta, 2 * self.target, 2.0 * error)
        self.steps += steps
        # Errors fall with the square root of the number of rows.
        error = self.sample.apart(theta, column.theta) * np.sqrt(self.target / rows)
        return replace(column, theta=theta, error=float(error))

    def _solutions(self, Cs: FloatArray, count: int) -> list[Reply]:
        """Solutions along rising Cs, from the ``count`` rows with the smallest keys."""
        theta, out = np.zeros(self.sample.Z.shape[1] + 1), []
        whole = self._problem(count)
        for C in Cs:
            reply = pivot.solve(replace(whole, box=C * whole.box), theta, self.workers.cancel)
            self.steps += reply.steps
            theta = reply.theta
            out.append(reply)
        return out

    def _problem(self, count: int) -> Reduced:
        """The problem of these rows, with C = 1.

        The classes weigh as much as in the whole data: where regularisation is strong nothing
        matters but which of them weighs more.
        """
        sample = self.sample
        used = np.flatnonzero(sample.weight[:count] > 0)
        Z, y = sample.Z[used], sample.y[used]
        box = like(sample.weight[used], y, self.mass)
        return Reduced(Z, y, box, np.zeros(Z.shape[1]), 0.0, self.fit_intercept)


def like(weight: FloatArray, y: FloatArray, mass: FloatArray) -> FloatArray:
    """Weights of a sample, scaled so that each class weighs what it does in the whole."""
    out = weight.copy()
    for side, whole in zip((y < 0, y > 0), mass, strict=True):
        held = float(weight[side].sum())
        if held > 0:
            out[side] *= whole / held
    return out
