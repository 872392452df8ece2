"""The models of all folds at one grid point: what jackknife+ and CV+ predict with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..judge.certificate import Certificate
from ..judge.ledger import Ledger
from ..problem.problem import Task
from ..problem.units import Units
from ..runtime.threads import Workers
from ..types import FloatArray, IntArray
from .run import Ran, run

__all__ = ["FoldModels", "fold_changes", "fold_models", "models_and_ledger"]

# Folds that are looked at together, so that their kernel values need not all be copied.
BLOCK = 256


@dataclass(frozen=True)
class FoldModels:
    """f(x) = k(x, rows) @ coef[fold] + intercept[fold], and what each says of its own tests.

    Attributes
    ----------
    coef : (F, n)
    intercept : (F,)
    row, fold : (T,)
        Each tested row, and the fold that tests it.
    left_out : (T,)
        What that fold's model says of the row.
    certificate : Certificate
    """

    coef: FloatArray
    intercept: FloatArray
    row: IntArray
    fold: IntArray
    left_out: FloatArray
    certificate: Certificate

    def values(self, K: FloatArray) -> FloatArray:
        """(m, F): every model's value of m points; K are the kernel values with the rows."""
        return np.asarray(K @ self.coef.T + self.intercept)


def fold_models(task: Task, method: str, workers: Workers) -> FoldModels:
    """Solve a task of one grid point and keep every fold's model."""
    return models_and_ledger(task, method, workers)[0]


def models_and_ledger(task: Task, method: str, workers: Workers) -> tuple[FoldModels, Ledger]:
    """The same, with the ledger, which knows the model of all rows."""
    # Not all folds are written by ``keep``, and what memory holds may be no number.
    found, units = np.zeros((len(task.folds), task.problem.n)), Units.of(task.problem)

    def keep(
        ledger: Ledger, folds: IntArray, coef: FloatArray, h: FloatArray, b: FloatArray
    ) -> None:
        found[folds] = coef

    ran, unchanged = _kept(task, method, workers, keep, found)
    ledger, folds = ran.ledger, task.folds
    if not units.trivial:
        found *= units.scale
    found[unchanged] = ledger.coef[0]
    models = FoldModels(
        coef=found,
        intercept=_intercepts(task, ledger, found),
        row=folds.pair_rows,
        fold=folds.pair_folds,
        left_out=ledger.decision[0],
        certificate=ran.certificate,
    )
    return models, ledger


def fold_changes(task: Task, method: str, workers: Workers) -> tuple[FloatArray, Ran[Ledger]]:
    """What the model of every fold says of all rows, less what that of all rows says: (F, n).

    Both as they were judged; for classes.
    """
    change = np.empty((len(task.folds), task.problem.n))

    def keep(
        ledger: Ledger, folds: IntArray, coef: FloatArray, h: FloatArray, b: FloatArray
    ) -> None:
        # Written once, while a block of it is at hand: these are n x n numbers.
        first, last = int(folds[0]), int(folds[-1]) + 1
        in_a_row = last - first == len(folds) and bool((np.diff(folds) == 1).all())
        block = change[first:last] if in_a_row else np.empty(h.shape)
        np.subtract(h, ledger.h[0], out=block)
        block += (b - ledger.intercept[0])[:, None]
        if not in_a_row:
            change[folds] = block

    ran, unchanged = _kept(task, method, workers, keep, change)
    change[unchanged] = 0.0
    return change, ran


def _kept(
    task: Task, method: str, workers: Workers, keep: Callable[..., None], kept: FloatArray
) -> tuple[Ran[Ledger], NDArray[np.bool_]]:
    """Solve a task and ``keep`` something of its folds, in ``kept``; for which there was nothing.

    Those have the solution of all rows.
    """
    there = np.zeros(len(task.folds), dtype=bool)

    def seen(
        ledger: Ledger, folds: IntArray, coef: FloatArray, h: FloatArray, b: FloatArray
    ) -> None:
        keep(ledger, folds, coef, h, b)
        there[folds] = True

    ran = run(replace(task, want_decision=True), method, workers, seen)
    twins, others = ran.ledger.twins  # rows that are alike: the same function
    kept[twins], there[twins] = kept[others], there[others]
    return ran, ~there


def _intercepts(task: Task, ledger: Ledger, coef: FloatArray) -> FloatArray:
    """The value of a fold's first test is known, and the intercept what it lacks."""
    if not task.problem.fit_intercept:
        return np.zeros(len(coef))
    first, b = task.folds.offsets[:-1], np.empty(len(coef))
    rows, K = task.folds.pair_rows[first], task.problem.K
    for start in range(0, len(b), BLOCK):
        part = slice(start, start + BLOCK)
        b[part] = np.einsum("ij,ij->i", K[rows[part]], coef[part])
    return np.asarray(ledger.decision[0, first] - b)
