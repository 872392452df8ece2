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
    found = np.full((len(task.folds), task.problem.n), np.nan)

    def seen(ledger: Ledger, folds: IntArray, coef: FloatArray) -> None:
        found[folds] = coef

    want = replace(task, want_decision=True)
    ran = run(want, method, workers, seen)
    ledger, folds = ran.ledger, task.folds
    twins, others = ledger.twins
    found[twins] = found[others]  # rows that are alike: the same function
    found *= Units.of(task.problem).scale
    found[np.isnan(found).any(axis=1)] = ledger.coef[0]  # unchanged
    # The value of its first test is known, and the intercept what it lacks.
    first = folds.offsets[:-1]
    rows = folds.pair_rows[first]
    b = ledger.decision[0, first] - np.einsum("ij,ij->i", task.problem.K[rows], found)
    models = FoldModels(
        coef=found,
        intercept=b if task.problem.fit_intercept else np.zeros(len(b)),
        row=folds.pair_rows,
        fold=folds.pair_folds,
        left_out=ledger.decision[0],
        certificate=ran.certificate,
    )
    return models, ledger
