"""Decision values of every pair of classes, of problems that share a kernel or do not.

Both functions return arrays of shape (C, row, pair) in the order and with the signs of
``crossval/one_vs_one.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ...crossval.classes import ManyClasses
from ...crossval.one_vs_one import cross_validate_pairs, most_votes, votes_of
from ...crossval.run import KernelRows, Plan, run
from ...judge.ledger import Ledger
from ...problem.folds import Folds
from ...problem.grid import Grid
from ...problem.problem import Guests
from ...runtime.threads import Workers
from ...types import FloatArray, IntArray

__all__ = ["Found", "left_out_numbers", "left_out_values", "trained_numbers", "trained_values"]


@dataclass(frozen=True)
class Found:
    """Pair values (C, row, pair), None if only labels were asked for, and labels (C, row).

    Of numbers there is one value a row, and labels mean nothing.  ``misses`` counts solutions that
    do not meet the tolerance.
    """

    values: FloatArray | None
    labels: IntArray
    misses: int


def left_out_values(
    K: FloatArray,
    codes: IntArray,
    weight: FloatArray,
    folds: Folds,
    Cs: FloatArray,
    labels_only: bool,
    workers: Workers,
    gammas: FloatArray | None = None,
) -> Found:
    """One kernel, one set of weights: the exact engine over all folds and all C.

    With ``gammas`` K are squared distances, and each fold has its own kernel (`ManyClasses`).
    """
    plan, rows, grid = Plan(want_decision=not labels_only), KernelRows(K), _grid(Cs, len(K))
    task = ManyClasses(rows, codes, weight, folds, grid, plan, ties_are_wrong=False, gammas=gammas)
    found = cross_validate_pairs(task, workers)
    return Found(found.decision, found.labels, len(found.certificate.unresolved))


def trained_values(
    K: FloatArray,
    codes: IntArray,
    weight: FloatArray,
    Cs: FloatArray,
    test: IntArray,
    workers: Workers,
) -> Found:
    """One training set (the rows with some weight): its path along C, evaluated on some rows."""
    n_classes = int(codes[weight > 0].max()) + 1
    pairs = list(combinations(range(n_classes), 2))
    values, misses = np.empty((len(Cs), len(test), len(pairs))), 0
    rows, plan = KernelRows(K).compared(), Plan()
    for p, (i, j) in enumerate(pairs):
        mine = np.flatnonzero(((codes == i) | (codes == j)) & (weight > 0))
        signs = np.where(codes[mine] == j, 1.0, -1.0)
        folds, grid = Folds(len(mine), (), ()), _grid(Cs, len(mine))  # the full data alone
        task = plan.task(rows.part(mine), signs, weight[mine], folds, grid)
        ran = run(task, "exact", workers)
        model = ran.ledger.coef, ran.ledger.intercept
        values[:, :, p] = Ledger.elsewhere(Guests(K, mine, ()), test, *model)
        misses += len(ran.certificate.unresolved)
    return Found(values, most_votes(votes_of(values, n_classes)), misses)


def left_out_numbers(
    K: FloatArray,
    y: FloatArray,
    weight: FloatArray,
    folds: Folds,
    Cs: FloatArray,
    epsilon: float,
    workers: Workers,
) -> Found:
    """The same of numbers."""
    task = _svr(epsilon).task(KernelRows(K), y, weight, folds, _grid(Cs, len(K)))
    ran = run(task, "exact", workers)
    return _of_numbers(ran.ledger.decision, len(ran.certificate.unresolved))


def trained_numbers(
    K: FloatArray,
    y: FloatArray,
    weight: FloatArray,
    Cs: FloatArray,
    epsilon: float,
    test: IntArray,
    workers: Workers,
) -> Found:
    """One training set of numbers: its path along C, evaluated on some rows."""
    mine = np.flatnonzero(weight > 0)
    folds, grid = Folds(len(mine), (), ()), _grid(Cs, len(mine))
    task = _svr(epsilon).task(KernelRows(K).part(mine), y[mine], weight[mine], folds, grid)
    ran = run(task, "exact", workers)
    model = ran.ledger.coef, ran.ledger.intercept
    values = Ledger.elsewhere(Guests(K, mine, ()), test, *model)
    return _of_numbers(values, len(ran.certificate.unresolved))


def _svr(epsilon: float) -> Plan:
    return Plan(loss="epsilon_insensitive", parameters={"epsilon": epsilon})


def _of_numbers(values: FloatArray, misses: int) -> Found:
    return Found(values[:, :, None], np.zeros(values.shape, dtype=np.intp), misses)


def _grid(Cs: FloatArray, n: int) -> Grid:
    return Grid(Cs=Cs, lambdas=1.0 / (2.0 * n * Cs), scale_with_fold=False)
