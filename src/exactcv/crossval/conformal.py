"""Exact full conformal prediction: how well a new row with a label fits in with the others.

For a new row x and a label k that it might have, (x, k) is added to the training rows, and every
row of this larger set gets a score,

    s_i = min over classes j other than its own of the left-out value in favour of its own,

by the models of pairs of classes without row i: how far it is on its own side when no model has
seen it, against the class that it is nearest to (of two classes, y_i f(x_i) without row i).  The
p-value of k is the share of the rows, the new one included, whose score is at most that of the new
row.  All rows are treated alike, so that if the new one is exchangeable with the others, p <= eps
has a probability of at most eps, whatever the distribution and however bad the model (Vovk,
Gammerman and Shafer 2005, chapter 2).

The new row's own score comes from the models without it: those of the training rows alone.  For
each k the row's box moves from 0 to C (``engine/moves.py``), and then only comparisons count: most
follow from bounds, for the others the row is left out (``engine/comparisons.py``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..engine.comparisons import LeftOut, compare, left_out_values, tie
from ..engine.moves import Mover
from ..exceptions import Interrupted
from ..judge.certificate import Certificate
from ..problem.losses import hinge
from ..runtime.threads import Workers
from ..types import BoolArray, FloatArray, IntArray
from .moving_pairs import MovingPair, MovingPairs

__all__ = ["Conformal", "NewRows", "PValues"]


@dataclass(frozen=True)
class NewRows:
    """Rows to be tried: kernel values with the n training rows and with themselves."""

    K: FloatArray  # (m, n)
    diagonal: FloatArray  # (m,)

    def __len__(self) -> int:
        return len(self.K)


@dataclass(frozen=True)
class PValues:
    """``p`` is (m, k); NaN for rows that were not reached.

    kkt, gap : (m,), the worst of all solutions that a row took.
    solved, compared : how many comparisons took a solution, and how many there were.
    """

    p: FloatArray
    kkt: FloatArray
    gap: FloatArray
    solved: int
    compared: int
    tol: float

    @property
    def certificate(self) -> Certificate:
        """An entry for each new row."""
        short = np.flatnonzero(~((self.kkt <= self.tol) & (self.gap <= self.tol)))
        unresolved = [(int(t), -1) for t in short]
        return Certificate(self.kkt, self.gap, not unresolved, unresolved, self.tol)


@dataclass(frozen=True)
class Conformal:
    """The models of all rows, and what does not depend on a new one.

    K : (n, n), of all rows.
    weights : (k,), of a row of each class.
    within_class : compare a row of a class with rows of that class alone.
    still : (n, k), the least left-out value of each row over the pairs of its class that do not
        concern class k; +inf where there is none.  Of two classes there never is.
    """

    K: FloatArray
    models: MovingPairs
    codes: IntArray
    weights: FloatArray
    within_class: bool
    still: FloatArray
    proofs: bool = True

    @classmethod
    def of(
        cls,
        K: FloatArray,
        models: MovingPairs,
        codes: IntArray,
        weights: FloatArray,
        within_class: bool,
        workers: Workers,
    ) -> Conformal:
        """Of several classes, every row is left out of the models that a new row may not touch."""
        n, k = len(codes), len(weights)
        still = np.full((n, k), np.inf)
        if k > 2 and not within_class:

            def values(pair: MovingPair) -> FloatArray:
                return left_out_values(pair.mover, pair.standing, workers.cancel)

            for pair, found in zip(models.pairs, workers.map(values, models.pairs), strict=True):
                others = np.setdiff1d(np.arange(k), [pair.first, pair.second])
                cell = np.ix_(pair.rows, others)
                still[cell] = np.minimum(still[cell], found[:, None])
        return cls(K, models, codes, weights, within_class, still)

    @property
    def n_classes(self) -> int:
        return len(self.weights)

    def p_values(self, new: NewRows, workers: Workers) -> PValues:
        """Row after row.

        Ctrl-C raises ``Interrupted``, whose ``partial`` has the rows that are done by then.
        """
        m = len(new)
        done = PValues(
            np.full((m, self.n_classes), np.nan), np.zeros(m), np.zeros(m), 0, 0, self.models.tol
        )
        counted = np.zeros((m, 2), dtype=np.intp)
        workers.watch.follow(_Rows(done.p))

        def one(t: int) -> None:
            at_most, counted[t], done.kkt[t], done.gap[t] = self._try(
                new.K[t], float(new.diagonal[t]), workers.cancel
            )
            done.p[t] = self._share(at_most)

        try:
            workers.map(one, range(m))
        except KeyboardInterrupt as stop:
            n_done = int(np.count_nonzero(~np.isnan(done.p).any(axis=1)))
            raise Interrupted(
                f"interrupted with the p-values of {n_done} of {m} rows done; they are in the "
                "`partial` of this exception",
                done.p if n_done else None,
            ) from stop
        solved, compared = counted.sum(axis=0)
        return replace(done, solved=int(solved), compared=int(compared))

    def _share(self, at_most: BoolArray) -> FloatArray:
        """p-values from which rows do not score higher, (k, n)."""
        if not self.within_class:
            return np.asarray((at_most.sum(axis=1) + 1.0) / (len(self.codes) + 1.0))
        own = at_most & (self.codes == np.arange(self.n_classes)[:, None])
        return np.asarray((own.sum(axis=1) + 1.0) / (np.bincount(self.codes) + 1.0))

    def _try(
        self, row: FloatArray, itself: float, cancel: NDArray[np.int32]
    ) -> tuple[BoolArray, tuple[int, int], float, float]:
        """For each label, which rows score at most as high as the new one; figures."""
        bars = self._scores(row)
        slack = np.array([tie(bar) for bar in bars])
        at_most = (self.still <= bars + slack).T
        solved = compared = 0
        kkt = max(pair.standing.kkt for pair in self.models.pairs)
        gap = max(pair.standing.gap for pair in self.models.pairs)
        for pair in self.models.pairs:
            larger = _bordered(pair.mover.problem.K, row[pair.rows], itself)
            for label in (pair.first, pair.second):
                asked = ~at_most[label, pair.rows]
                if self.within_class:
                    asked &= self.codes[pair.rows] == label
                which = np.flatnonzero(asked)
                compared += len(which)
                if not len(which):
                    continue
                left_out = self._with(pair, larger, label, cancel)
                found = compare(left_out, which, float(bars[label]), self.proofs)
                at_most[label, pair.rows[which]] = found.at_most
                solved += found.solved
                kkt, gap = max(kkt, found.kkt), max(gap, found.gap)
        return at_most, (solved, compared), kkt, gap

    def _scores(self, row: FloatArray) -> FloatArray:
        """The new row's own score with each label, by the models that have not seen it."""
        scores = np.full(self.n_classes, np.inf)
        for pair in self.models.pairs:
            value = row[pair.rows] @ pair.standing.coef + pair.standing.intercept
            scores[pair.second] = min(scores[pair.second], value)
            scores[pair.first] = min(scores[pair.first], -value)
        return scores

    def _with(
        self, pair: MovingPair, K: FloatArray, label: int, cancel: NDArray[np.int32]
    ) -> LeftOut:
        """The model of a pair with the new row in it, from which rows are left out."""
        small = pair.mover.problem
        y = np.append(small.y, 1.0 if label == pair.second else -1.0)
        weight = np.append(small.weight, self.weights[label])
        problem = replace(small, K=K, y=y, weight=weight, loss=hinge(y))
        mover = Mover(problem, pair.mover.C, pair.mover.tol)
        start = mover.taking_up(pair.standing)
        last = np.array([len(y) - 1])
        return LeftOut.of(mover, mover.moved(start, last, weight[last], cancel), cancel)


def _bordered(K: FloatArray, row: FloatArray, itself: float) -> FloatArray:
    """K with one row and column more."""
    n = len(K)
    larger = np.empty((n + 1, n + 1))
    larger[:n, :n] = K
    larger[n, :n] = larger[:n, n] = row
    larger[n, n] = itself
    return larger


class _Rows:
    """How many rows are done; see ``runtime.progress.Filling``."""

    def __init__(self, p: FloatArray):
        self.p = p

    def fraction(self) -> float:
        return 1.0 - float(np.isnan(self.p[:, 0]).mean()) if len(self.p) else 1.0
