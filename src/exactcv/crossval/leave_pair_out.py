"""Leave-pair-out: the area under the ROC curve from pairs of rows that no model has seen.

The AUC is the chance that a row of the positive class has a larger value than one of the other.
Leave-pair-out trains without both rows i and j of a pair and compares what the model says of them,

    AUC = mean over positive i, negative j of  [f_ij(x_i) > f_ij(x_j)] + 1/2 [f_ij(x_i) = f_ij(x_j)]

where f_ij is trained without i and j: nearly unbiased (Airola and others 2009, 2011), for the two
values belong to one model.  Pooled leave-one-out compares values of different models, and leaving a
positive row out moves all values down: its AUC is too low, on noise far below 1/2.

If pairs of one class are compared too, every row has played against every other, and the number of
wins ranks them: the tournament ROC curve (Montoya Perez and others 2019).

`pair_values` is all that a pair costs, and the one place where a faster way, from the solutions
without one row, has to fit in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from ..exceptions import InputError, Interrupted
from ..judge.certificate import Certificate, warn_if_short
from ..problem import checks, inputs
from ..problem.folds import Folds
from ..problem.problem import Task
from ..runtime.progress import following
from ..runtime.threads import Workers
from ..runtime.user_line import user_level
from ..tolerances import TIE
from ..types import (
    ClassWeight,
    FloatArray,
    GammaRule,
    GridValues,
    IntArray,
    KernelFunction,
    KernelName,
    LossName,
    Matrix,
    MemoryLimit,
    Vector,
)
from .pair_result import PairResult
from .requests import Given, KernelRequest
from .run import Plan, run

__all__ = ["leave_pair_out", "pair_values"]

VALUES = 1 << 22  # left-out values held at a time


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
    try:
        with following(progress) as watch, Workers(n_threads, watch) as workers:
            task, used_gamma = request.task(plan, workers)
            plan.check_folds(_pair_folds(len(task.problem.y), np.array([[0, 1]])))
            found = _play(task, method, tournament, workers)
    except KeyboardInterrupt as stop:
        raise Interrupted("interrupted before all pairs were compared") from stop
    present, tally = request.present, found.tally
    wins = tally.wins
    if wins is not None and not present.all:
        wins = present.spread(wins, np.nan)
    result = PairResult(
        Cs=task.grid.Cs,
        lambdas=task.grid.lambdas,
        auc=tally.auc,
        se=tally.se,
        pooled_auc=found.pooled_auc,
        wins=wins,
        n_pairs=len(tally.positive) * len(tally.negative),
        y=present.y.copy(),
        classes=request.classes,
        kernel=given.kernel.label,
        gamma=used_gamma,
        method=method,
        certificate=found.certificate,
        stats=found.stats,
        timings={"total": perf_counter() - start},
    )
    n_solutions = len(task.grid) * (found.n_pairs + len(task.folds) + 1)
    warn_if_short(result.certificate, result.Cs, n_solutions, stacklevel=user_level())
    return result


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


# ---- pairs -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Played:
    """What came of all pairs."""

    tally: _Tally
    pooled_auc: FloatArray
    certificate: Certificate
    stats: dict[str, int]
    n_pairs: int


def _play(task: Task, method: str, tournament: bool, workers: Workers) -> _Played:
    alone = run(task, method, workers)  # leave-one-out, for the pooled AUC
    tally = _Tally(task.problem.y, len(task.grid), tournament)
    certificates, counts = [(0, alone.certificate)], [alone.ledger.counts()]
    n_pairs = 0
    for pairs in _in_parts(task.problem.y, len(task.grid), tournament):
        workers.watch.say(f"pairs {n_pairs + 1} to {n_pairs + len(pairs)}")
        values, certificate, stats = pair_values(task, pairs, method, workers)
        tally.add(pairs, values)
        certificates.append((len(task.folds) + n_pairs, certificate))
        counts.append(stats)
        n_pairs += len(pairs)
    pooled = _pooled(task.problem.y[task.folds.pair_rows], alone.ledger.decision)
    names = dict.fromkeys(name for one in counts for name in one)
    stats = {name: sum(one.get(name, 0) for one in counts) for name in names}
    return _Played(tally, pooled, _worst(certificates), stats, n_pairs)


def pair_values(
    task: Task, pairs: IntArray, method: str, workers: Workers
) -> tuple[FloatArray, Certificate, dict[str, int]]:
    """What models without both rows of each pair say of them: values (L, pairs, 2)."""
    without = replace(task, folds=_pair_folds(len(task.problem.y), pairs))
    ran = run(without, method, workers)
    values = ran.ledger.decision.reshape(len(task.grid), len(pairs), 2)
    return values, ran.certificate, ran.ledger.counts()


def _pair_folds(n: int, pairs: IntArray) -> Folds:
    both = tuple(np.asarray(pair, dtype=np.intp) for pair in pairs)
    return Folds(n, both, both)


def _in_parts(y: FloatArray, n_grid: int, tournament: bool) -> Iterator[IntArray]:
    """All pairs, some at a time: (positive, negative), and for a tournament those of one class."""
    positive, negative = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    kinds = [np.stack(np.meshgrid(positive, negative, indexing="ij"), -1).reshape(-1, 2)]
    if tournament:
        kinds += [
            rows[np.column_stack(np.triu_indices(len(rows), 1))] for rows in (positive, negative)
        ]
    pairs = np.concatenate(kinds)
    step = max(1, VALUES // (2 * n_grid))
    for start in range(0, len(pairs), step):
        yield pairs[start : start + step]


class _Tally:
    """Wins, added up pair by pair; the table of all pairs is never held."""

    def __init__(self, y: FloatArray, n_grid: int, tournament: bool):
        self.y = y
        self.positive, self.negative = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
        self.against = np.zeros((n_grid, len(y)))  # wins against the other class
        self.wins = np.zeros((n_grid, len(y))) if tournament else None  # against everyone

    def add(self, pairs: IntArray, values: FloatArray) -> None:
        first, second = values[..., 0], values[..., 1]
        apart = np.abs(first - second) > TIE * np.maximum(1.0, np.maximum(abs(first), abs(second)))
        won = np.where(apart, (first > second).astype(float), 0.5)
        both = self.y[pairs[:, 0]] != self.y[pairs[:, 1]]
        for table, chosen in ((self.against, both), (self.wins, np.ones(len(pairs), dtype=bool))):
            if table is not None:
                for l, row in enumerate(won[:, chosen]):
                    np.add.at(table[l], pairs[chosen, 0], row)
                    np.add.at(table[l], pairs[chosen, 1], 1.0 - row)

    @property
    def auc(self) -> FloatArray:
        pairs = len(self.positive) * len(self.negative)
        return np.asarray(self.against[:, self.positive].sum(axis=1) / pairs)

    @property
    def se(self) -> FloatArray:
        """DeLong's: the variances of the rows' own shares of wins, class by class, over their n."""
        variance = np.zeros(len(self.against))
        for rows, others in ((self.positive, self.negative), (self.negative, self.positive)):
            share = self.against[:, rows] / len(others)
            variance += share.var(axis=1, ddof=1) / len(rows)
        return np.sqrt(variance)


def _pooled(y: FloatArray, decision: FloatArray) -> FloatArray:
    """The AUC of leave-one-out values put together, along the grid."""
    from sklearn.metrics import roc_auc_score

    from .scoring import with_ties

    return np.array([roc_auc_score(y > 0, with_ties(values)) for values in decision])


def _worst(parts: list[tuple[int, Certificate]]) -> Certificate:
    """Figures of one grid over all folds; each part says which fold its first one is."""
    found = [part for _, part in parts]
    return replace(
        found[0],
        kkt=np.max([part.kkt for part in found], axis=0),
        gap=np.max([part.gap for part in found], axis=0),
        exact=all(part.exact for part in found),
        unresolved=sorted(
            {(l, f if f < 0 else first + f) for first, part in parts for l, f in part.unresolved}
        ),
        not_converged=sum(part.not_converged for part in found),
    )
