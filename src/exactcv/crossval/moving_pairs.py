"""The models of all pairs of classes at one C, as solutions that can move.

To forget a row is to move its box to 0 in every pair of classes that it belongs to
(``engine/moves.py``); the other pairs do not know the row and stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from threading import Lock

import numpy as np

from ..engine.moves import Mover, Standing
from ..judge.certificate import Certificate
from ..problem.losses import hinge
from ..problem.problem import Problem
from ..runtime.threads import Workers
from ..types import FloatArray, IntArray
from .classes import PairFit
from .run import KernelRows

__all__ = ["MovingPair", "MovingPairs"]


@dataclass(frozen=True)
class MovingPair:
    """The model of one pair of classes, and what moves it."""

    first: int
    second: int
    rows: IntArray
    mover: Mover
    standing: Standing

    def without(self, gone: IntArray, workers: Workers) -> MovingPair:
        """The same without some of all rows."""
        mine = np.searchsorted(self.rows, gone)
        mine = mine[self.rows[np.minimum(mine, len(self.rows) - 1)] == gone]
        if not len(mine):
            return self
        to = np.zeros(len(mine))
        return replace(self, standing=self.mover.moved(self.standing, mine, to, workers.cancel))

    @property
    def fit(self) -> PairFit:
        found = self.standing
        return PairFit(
            self.first, self.second, self.rows, found.coef[None], np.array([found.intercept])
        )


@dataclass(frozen=True)
class MovingPairs:
    """One model for each pair of classes, in the order of ``one_vs_one``.

    Those that come from one another share kernel matrices and factors, which ``lock`` guards.
    """

    pairs: tuple[MovingPair, ...]
    convex: bool
    tol: float
    lock: Lock

    @classmethod
    def of(
        cls,
        rows: KernelRows,
        codes: IntArray,
        weight: FloatArray,
        C: float,
        fit_intercept: bool,
        tol: float,
        workers: Workers,
        coef: Sequence[FloatArray] | None = None,
    ) -> MovingPairs:
        """The models on all rows; ``coef`` are those of each pair, for all rows, if known."""
        classes = range(int(codes.max()) + 1)

        def one(k: int) -> MovingPair:
            first, second = pairs[k]
            mine = np.flatnonzero((codes == first) | (codes == second))
            signs = np.where(codes[mine] == second, 1.0, -1.0)
            K = rows.K if len(mine) == len(codes) else rows.part(mine).K
            problem = Problem(K, signs, weight[mine], hinge(signs), fit_intercept, rows.psd)
            mover = Mover(problem, C, tol)
            if coef is None:
                standing = mover.solved(workers.cancel)
            else:
                standing = mover.found(weight[mine], coef[k][mine], workers.cancel)
            return MovingPair(first, second, mine, mover, standing)

        pairs = list(combinations(classes, 2))
        return cls(tuple(workers.map(one, range(len(pairs)))), rows.psd, tol, Lock())

    def without(self, rows: IntArray, workers: Workers) -> MovingPairs:
        """The models without these rows, each from the one at hand."""
        with self.lock:
            moved = workers.map(lambda pair: pair.without(rows, workers), self.pairs)
        return replace(self, pairs=tuple(moved))

    @property
    def fits(self) -> tuple[PairFit, ...]:
        """In the order of ``one_vs_one``, each with a grid of one point."""
        return tuple(pair.fit for pair in self.pairs)

    @property
    def certificate(self) -> Certificate:
        """The worst over the pairs, all of them judged as they are now."""
        kkt = max(pair.standing.kkt for pair in self.pairs)
        gap = max(pair.standing.gap for pair in self.pairs)
        short = not (kkt <= self.tol and gap <= self.tol)
        return Certificate(
            kkt=np.array([kkt]),
            gap=np.array([gap]),
            exact=self.convex and not short,
            unresolved=[(0, -1)] if short else [],
            tol=self.tol,
            convex=self.convex,
        )
