"""Leave-pair-out: the area under the ROC curve from pairs of rows that no model has seen.

The AUC is the chance that a row of the positive class has a larger value than one of the other.
Leave-pair-out trains without both rows i and j of a pair and compares what the model says of them,

    AUC = mean over positive i, negative j of  [f_ij(x_i) > f_ij(x_j)] + 1/2 [f_ij(x_i) = f_ij(x_j)]

where f_ij is trained without i and j: nearly unbiased (Airola and others 2009, 2011), for the two
values belong to one model.  Pooled leave-one-out compares values of different models, and leaving a
positive row out moves all values down: its AUC is too low, on noise far below 1/2.

If pairs of one class are compared too, every row has played against every other, and the number of
wins ranks them: the tournament ROC curve (Montoya Perez and others 2019).

How the pairs are gone through is told in ``pair_wins.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from ..exceptions import InputError, Interrupted
from ..judge.certificate import warn_if_short
from ..problem import checks, inputs
from ..runtime.progress import following
from ..runtime.threads import Workers
from ..runtime.user_line import user_level
from ..types import (
    ClassWeight,
    FloatArray,
    GammaRule,
    GridValues,
    KernelFunction,
    KernelName,
    LossName,
    Matrix,
    MemoryLimit,
    Vector,
)
from .pair_result import PairResult
from .pair_wins import Played, pair_folds, play
from .requests import Given, KernelRequest
from .run import Plan

__all__ = ["leave_pair_out"]


def leave_pair_out(
    X: Matrix,
    y: Vector,
    *,
    kernel: KernelName | KernelFunction = "rbf",
    gamma: float | GammaRule = "median",
    degree: int = 3,
    coef0: float = 0.0,
    loss: LossName = "hinge",
    Cs: GridValues | None = None,
    lambdas: GridValues | None = None,
    tournament: bool = True,
    sample_weight: Vector | None = None,
    class_weight: ClassWeight | None = None,
    fit_intercept: bool = True,
    method: str = "exact",
    n_jobs: int | None = None,
    tol: float = 1e-8,
    progress: bool = False,
    memory_limit: MemoryLimit | None = None,
    method_options: Mapping[str, Any] | None = None,
) -> PairResult:
    """The exact leave-pair-out AUC of two classes over a whole regularisation path.

    Every pair of rows is left out together, and the model without them says which of the two is
    rather of the positive class.

    Parameters
    ----------
    X, y, kernel, gamma, degree, coef0, loss, Cs, lambdas, sample_weight, class_weight :
        As in ``exactcv.cross_validate``; the default grid does not grow.  Weights count in training
        alone; a row of weight 0 is as good as absent.
    tournament : bool
        Compare the rows of one class with each other too, for ``PairResult.roc``; takes about twice
        as many pairs.
    fit_intercept, method, n_jobs, tol, progress, memory_limit, method_options :
        As in ``exactcv.cross_validate``.

    Returns
    -------
    PairResult

    Examples
    --------
    >>> import exactcv
    >>> X, y = exactcv.datasets.make_mixture(24, 4, random_state=0)
    >>> pairs = exactcv.leave_pair_out(X, y, Cs=[0.1, 1.0])
    >>> pairs.auc.shape, pairs.certificate.exact
    ((2,), True)
    """
    start = perf_counter()
    plan = Plan.of(
        method=method,
        loss=loss,
        fit_intercept=fit_intercept,
        want_decision=True,
        tol=tol,
        options=checks.check_method_options(method_options),
    )
    given = Given(
        X=X,
        y=y,
        kernel=inputs.check_kernel(kernel, gamma, degree, coef0),
        Cs=Cs,
        lambdas=lambdas,
        cv="loo",
        groups=None,
        sample_weight=sample_weight,
        class_weight=class_weight,
        random_state=None,
        memory_limit=memory_limit,
    )
    checks.check_flag("tournament", tournament)
    checks.check_flag("progress", progress)
    n_threads = checks.check_n_threads(n_jobs)
    _check_rows(inputs.read_labels(y, len(np.asarray(y)))[2], sample_weight, tournament)
    request = KernelRequest.read(given, plan)
    with following(progress) as watch, Workers(n_threads, watch) as workers:
        task, used_gamma = request.task(plan, workers)
        finish = partial(_result, request, given.kernel.label, used_gamma, method, start)
        plan.check_folds(pair_folds(len(task.problem.y), np.array([[0, 1]])))
        try:
            found = play(task, method, tournament, workers)
        except Interrupted as stop:
            if stop.partial is not None:
                stop.partial = finish(stop.partial)
            raise
    result = finish(found)
    n_solutions = len(task.grid) * (found.n_pairs + len(task.folds) + 1)
    warn_if_short(result.certificate, result.Cs, n_solutions, stacklevel=user_level() + 1)
    return result


def _result(
    request: KernelRequest,
    kernel: str,
    gamma: float | None,
    method: str,
    start: float,
    found: Played,
) -> PairResult:
    present, tally = request.present, found.tally
    wins = tally.wins
    if wins is not None and not present.all:
        wins = present.spread(wins, np.nan)
    return PairResult(
        Cs=found.grid.Cs,
        lambdas=found.grid.lambdas,
        auc=tally.auc,
        se=tally.se,
        pooled_auc=found.pooled_auc,
        wins=wins,
        n_pairs=len(tally.positive) * len(tally.negative),
        y=present.y.copy(),
        classes=request.classes,
        kernel=kernel,
        gamma=gamma,
        method=method,
        certificate=found.certificate,
        stats=found.stats,
        timings={"total": perf_counter() - start},
    )


def _check_rows(signs: FloatArray, sample_weight: Any, tournament: bool) -> None:
    """Every class keeps a row when a pair is gone."""
    weight = inputs.read_sample_weight(sample_weight, len(signs))
    least = 3 if tournament else 2
    for sign in (-1.0, 1.0):
        count = np.count_nonzero((signs == sign) & (weight > 0))
        if count < least:
            raise InputError(
                f"a class has {count} rows of positive weight; leave-pair-out needs {least} of "
                "each class" + (" (2 with tournament=False)" if tournament else "")
            )
