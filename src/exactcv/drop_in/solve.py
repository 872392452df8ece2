"""Decision values of every pair of classes, of problems that share a kernel or do not.

Both return arrays of shape (C, row, pair), in the convention of ``votes.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..engine.path import Tracker
from ..folds import Folds, IntArray
from ..ledger import Ledger
from ..losses import FloatArray, hinge
from ..methods.exact import METHOD as EXACT
from ..parallel import Workers
from ..problem import Grid, Problem, Task
from .votes import for_second, pairs_of

__all__ = ["Found", "left_out_values", "trained_values"]

TOL = 1e-8


@dataclass(frozen=True)
class Found:
    """Values and votes (for the second class of the pair); values are NaN where only the vote is
    known.  ``misses`` counts solutions that do not meet the tolerance."""

    values: FloatArray
    second: NDArray[np.bool_]
    misses: int


def left_out_values(
    K: FloatArray,
    codes: IntArray,
    weight: FloatArray,
    folds: Folds,
    Cs: FloatArray,
    votes_only: bool,
    workers: Workers,
) -> Found:
    """One kernel, one set of weights: the exact engine over all folds and all C.

    Rows of other classes have weight zero in the problem of a pair; they are tested all the same.
    """
    pairs = pairs_of(int(codes.max()) + 1)
    shape = (len(Cs), len(folds.pair_rows), len(pairs))
    values, second, misses = np.empty(shape), np.empty(shape, dtype=bool), 0
    for p, (i, j) in enumerate(pairs):
        mine = (codes == i) | (codes == j)
        task = _task(K, codes == j, np.where(mine, weight, 0.0), folds, Cs, not votes_only)
        ledger = Ledger(task)
        EXACT.run(task, ledger, workers)
        values[:, :, p] = ledger.decision
        proved = (task.problem.y[folds.pair_rows] > 0) ^ ledger.wrong
        second[:, :, p] = np.where(np.isnan(ledger.decision), proved, for_second(ledger.decision))
        misses += len(ledger.certificate().unresolved)
    return Found(values, second, misses)


def trained_values(
    K: FloatArray, codes: IntArray, weight: FloatArray, Cs: FloatArray, workers: Workers
) -> Found:
    """One training set (the rows with some weight): its path along C, evaluated on every row."""
    pairs = pairs_of(int(codes[weight > 0].max()) + 1)
    values, misses = np.empty((len(Cs), len(K), len(pairs))), 0
    for p, (i, j) in enumerate(pairs):
        mine = np.flatnonzero(((codes == i) | (codes == j)) & (weight > 0))
        none = (np.zeros(0, dtype=np.intp),)
        part = np.ascontiguousarray(K[np.ix_(mine, mine)])
        task = _task(part, codes[mine] == j, weight[mine], Folds(len(mine), none, none), Cs, True)
        ledger = Ledger(task)
        EXACT.path(task, ledger, Tracker(task.problem, workers.cancel, TOL))
        values[:, :, p] = ledger.coef @ K[mine] + ledger.intercept[:, None]
        misses += sum(not ledger.sound(l) for l in range(len(Cs)))
    return Found(values, for_second(values), misses)


def _task(
    K: FloatArray,
    positive: NDArray[np.bool_],
    weight: FloatArray,
    folds: Folds,
    Cs: FloatArray,
    want_decision: bool,
) -> Task:
    y = np.where(positive, 1.0, -1.0)
    grid = Grid(Cs=Cs, lambdas=1.0 / (2.0 * len(K) * Cs), scale_with_fold=False)
    return Task(Problem(K, y, weight, hinge(y)), folds, grid, want_decision, TOL)
