"""Rows with features in place of a kernel matrix, for whoever tunes several grids on them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..lowrank.budget import memory_of
from ..lowrank.options import Options
from ..lowrank.rows.sources import RowSource
from ..lowrank.task import FeatureProblem, FeatureTask, is_wide
from ..problem.folds import Folds
from ..problem.grid import Grid
from ..problem.kernels import Kernel
from ..problem.loss_rules import LossRule
from ..runtime.threads import Workers
from ..types import Approx, FloatArray
from .fold_models import FoldModels
from .run import Plan, run

__all__ = ["FeatureRows", "feature_fold_models"]


@dataclass(frozen=True)
class FeatureRows:
    """What `KernelRows` is to a kernel matrix; ``seed`` draws the features.

    ``kernel`` may still have a rule for gamma: it is worked out with the features.
    """

    source: RowSource
    kernel: Kernel
    approx: Approx | None
    n_components: int
    seed: int
    memory_limit: Any
    options: Options = field(default_factory=Options)

    def task(
        self, plan: Plan, y: FloatArray, weight: FloatArray, folds: Folds, grid: Grid
    ) -> FeatureTask:
        """The task of these rows; y are labels +-1, or numbers."""
        problem = FeatureProblem(
            source=self.source,
            y=y,
            weight=weight,
            kernel=self.kernel,
            approx=self.approx,
            n_components=self.n_components,
            seed=self.seed,
            fit_intercept=plan.fit_intercept,
            target=plan.target,
            loss=LossRule(plan.loss, plan.parameters).for_rows(y),
            landmarks=self.options.landmarks,
        )
        m, wide = self.n_components, self.approx is None and is_wide(self.source.p)
        options, budget = memory_of(self.memory_limit, self.options, self.source, m, wide)
        return FeatureTask(problem, folds, grid, plan.want_decision, plan.tol, options, budget)


def feature_fold_models(task: FeatureTask, workers: Workers) -> FoldModels:
    """Every fold's model at one grid point: f(x) = z(x) @ coef[fold] + intercept[fold].

    The folds leave out several rows each: the models without single rows are never written down.
    """
    ran = run(replace(task, keep_models=True), "exact", workers)
    models, decision = ran.ledger.models, ran.ledger.decision
    assert models is not None and decision is not None
    return FoldModels(
        coef=np.ascontiguousarray(models[0, :, :-1]),
        intercept=models[0, :, -1].copy(),
        row=task.folds.pair_rows,
        fold=task.folds.pair_folds,
        left_out=np.array(decision[0]),
        certificate=ran.certificate,
    )
