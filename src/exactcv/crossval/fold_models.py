"""The models of all folds at one grid point: what jackknife+ and CV+ predict with."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..judge.certificate import Certificate
from ..judge.ledger import Ledger
from ..problem.problem import Task
from ..problem.units import Units
from ..runtime.threads import Workers
from ..types import FloatArray, IntArray
from .run import run

__all__ = ["FoldModels", "fold_models", "models_and_ledger"]

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
    known : (F, n), optional
        What each says of all rows, if that was asked for.
    """

    coef: FloatArray
    intercept: FloatArray
    row: IntArray
    fold: IntArray
    left_out: FloatArray
    certificate: Certificate
    known: FloatArray | None = None

    def values(self, K: FloatArray) -> FloatArray:
        """(m, F): every model's value of m points; K are the kernel values with the rows."""
        return np.asarray(K @ self.coef.T + self.intercept)


def fold_models(task: Task, method: str, workers: Workers) -> FoldModels:
    """Solve a task of one grid point and keep every fold's model."""
    return models_and_ledger(task, method, workers)[0]


def models_and_ledger(
    task: Task, method: str, workers: Workers, known: bool = False
) -> tuple[FoldModels, Ledger]:
    """The same, with the ledger, which knows the model of all rows.

    With ``known`` the models come with their values of all rows, as they were judged.
    """
    shape = len(task.folds), task.problem.n
    found, there = np.empty(shape), np.zeros(len(task.folds), dtype=bool)
    values = np.empty(shape) if known else None

    def seen(
        ledger: Ledger, folds: IntArray, coef: FloatArray, h: FloatArray, b: FloatArray
    ) -> None:
        found[folds], there[folds] = coef, True
        if values is not None:
            values[folds] = h
            values[folds] += b[:, None]

    want, units = replace(task, want_decision=True), Units.of(task.problem)
    ran = run(want, method, workers, seen)
    ledger, folds = ran.ledger, task.folds
    twins, others = ledger.twins
    for kept in (found, there, values):
        if kept is not None:
            kept[twins] = kept[others]  # rows that are alike: the same function
    if not units.trivial:
        found *= units.scale
    found[~there] = ledger.coef[0]  # unchanged
    if values is not None:
        values = values if units.trivial else units.values(values)
        values[~there] = ledger.h[0] + ledger.intercept[0]
    models = FoldModels(
        coef=found,
        intercept=_intercepts(task, ledger, found),
        row=folds.pair_rows,
        fold=folds.pair_folds,
        left_out=ledger.decision[0],
        certificate=ran.certificate,
        known=values,
    )
    return models, ledger


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
