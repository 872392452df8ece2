"""A grid of kernels, of parameters of the loss and of C for numbers: curves, and the choice.

For each kernel the matrix is computed once; for each parameter (epsilon, a quantile) one run goes
over all C.  As ``tuning.py`` does for classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..exceptions import Interrupted
from ..judge.certificate import Certificate
from ..judge.ledger import HOW
from ..lowrank.entries import Entries
from ..lowrank.features import FeatureMap
from ..lowrank.task import FeatureTask
from ..problem.folds import Folds
from ..problem.gamma import GAMMA_STEP
from ..problem.grid import MOST_GROWTH, End, Grid
from ..problem.kernels import Kernel, of_weighted_rows
from ..problem.problem import Task
from ..runtime.progress import job
from ..runtime.threads import Workers
from ..types import BoolArray, FloatArray, IntArray
from .choice import smallest_within
from .components import enough_components
from .feature_rows import FeatureRows, feature_fold_models
from .fold_models import FoldModels, fold_models
from .growth import edge
from .numbers_scoring import NumbersScorer
from .regression_result import pair_losses
from .result import standard_error
from .run import KernelRows, Plan, Ran, run

__all__ = ["NumberCurve", "NumberTuning", "NumbersTuned"]

EQUAL = 10  # digits of scores that are compared


@dataclass(frozen=True)
class NumberCurve:
    """What came out for one kernel and one plan, along the grid of C; L points, T tests."""

    kernel: Kernel
    gamma: float | None
    plan: Plan
    error: FloatArray  # (L,): the mean loss
    se: FloatArray
    score: FloatArray
    decision: FloatArray  # (L, T)
    coef: FloatArray  # (L, n), or (L, m): the weights of the features
    intercept: FloatArray
    at_bound: FloatArray
    certificate: Certificate
    settled: dict[str, int]
    feature_map: FeatureMap | None = None
    grown: str = ""  # which numbers of features were tried, in words

    @property
    def best(self) -> int:
        """Where the mean loss is least."""
        return int(np.argmin(self.error))

    @property
    def parameter(self) -> float:
        """Epsilon or the quantile; NaN if the loss has none."""
        return next(iter(self.plan.parameters.values()), np.nan)

    @property
    def n_components(self) -> int | None:
        """How many features it has, in place of a kernel matrix."""
        return None if self.feature_map is None else self.feature_map.n_components

    @classmethod
    def along_C(cls, parts: Sequence[NumberCurve]) -> NumberCurve:
        """Curves over grids one after the other, as one."""
        names = ("error", "se", "score", "decision", "coef", "intercept", "at_bound")
        together: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in names
        }
        return replace(
            parts[0],
            certificate=Certificate.joined([part.certificate for part in parts]),
            settled={name: sum(part.settled[name] for part in parts) for name in HOW},
            grown=next((part.grown for part in parts if part.grown), ""),
            **together,
        )


@dataclass(frozen=True)
class NumberTuning:
    """What is to be tuned; everything has been checked.

    Attributes
    ----------
    X : (n, p)
        Features, or the precomputed matrix.
    y, weight : (n,)
        Numbers, and the positive weights of the rows.
    folds, grid : Folds, Grid
    kernels : list of Kernel
    plans : list of Plan
        They differ in the parameter of the loss.
    scorer : NumbersScorer or None
        None: the loss itself, as small as possible.
    select : {"min", "1se"}
    new_gammas : (int, int) or None
    rows_of : callable or None
        As in ``Tuning``.
    features : FeatureRows or None
        The rows, if features stand in for a kernel matrix; X is empty then.
    grow_features : bool
        Each curve has as many features as it needs (``components.py``).
    """

    X: FloatArray
    y: FloatArray
    weight: FloatArray
    folds: Folds
    grid: Grid
    kernels: list[Kernel]
    plans: list[Plan]
    scorer: NumbersScorer | None
    select: str
    new_gammas: tuple[int, int] | None = None
    show_progress: bool = False
    rows_of: Callable[[Kernel, Workers], KernelRows] | None = None
    features: FeatureRows | None = None
    grow_features: bool = False

    def search(self, workers: Workers) -> NumbersTuned:
        """All curves, the grid grown as it should if it is the default one, and the choice."""
        tuned = self.choose(self._curves(self.kernels, self.grid, workers), workers)
        while True:
            step = tuned.next_step()
            if step is None:
                return tuned
            tuned = step[0].choose(step[0]._extended(tuned, *step[1:], workers), workers)

    def _curves(
        self, kernels: list[Kernel], grid: Grid, workers: Workers,
        before: Sequence[NumberCurve] = (),
    ) -> list[NumberCurve]:  # fmt: skip
        """Kernel after kernel, plan after plan; with the features of the curves ``before``."""
        curves: list[NumberCurve] = []
        counts = [curve.n_components for curve in before]
        try:
            with job(self.show_progress, len(kernels) * len(self.plans)) as progress:
                for kernel in kernels:
                    with workers.followed(progress):
                        rows = self._rows(kernel, workers)
                        for plan in self.plans:
                            m = counts[len(curves)] if counts else None
                            curves.append(self._enough(rows, plan, grid, workers, m))
        except KeyboardInterrupt as stop:
            raise Interrupted("interrupted before the whole grid was done") from stop
        return curves

    def _extended(
        self, tuned: NumbersTuned, end: End, kernels: list[Kernel] | None, part: Grid | None,
        workers: Workers,
    ) -> list[NumberCurve]:  # fmt: skip
        """The curves with those of one more kernel, or of one more decade."""
        if part is None:
            assert kernels is not None
            new = self._curves(kernels, self.grid, workers)
            return [*tuned.curves, *new] if end == "high" else [*new, *tuned.curves]
        kernels = [curve.kernel for curve in tuned.curves[:: len(self.plans)]]
        found = self._curves(kernels, part, workers, tuned.curves)
        pairs = zip(tuned.curves, found, strict=True)
        return [NumberCurve.along_C([a, b] if end == "high" else [b, a]) for a, b in pairs]

    def _rows(self, kernel: Kernel, workers: Workers) -> KernelRows | FeatureRows:
        """The rows with one kernel."""
        if self.features is not None:
            return replace(self.features, kernel=kernel)
        return self.kernel_rows(kernel, workers)

    def _task(
        self, rows: KernelRows | FeatureRows, plan: Plan, folds: Folds, grid: Grid
    ) -> Task | FeatureTask:
        if isinstance(rows, FeatureRows):
            return rows.task(plan, self.y, self.weight, folds, grid)
        return plan.task(rows, self.y, self.weight, folds, grid)

    def _enough(
        self, rows: KernelRows | FeatureRows, plan: Plan, grid: Grid, workers: Workers,
        n_components: int | None,
    ) -> NumberCurve:  # fmt: skip
        """A curve, with so many features (None: as many as it needs, or was asked for)."""
        if not isinstance(rows, FeatureRows):
            return self._curve(rows, plan, grid, workers)

        def solve(m: int) -> NumberCurve:
            return self._curve(replace(rows, n_components=m), plan, grid, workers)

        if n_components is not None or not self.grow_features:
            return solve(rows.n_components if n_components is None else n_components)
        found, words = enough_components(solve, len(self.y), rows.memory_limit)
        return replace(found, grown=words)

    def _curve(
        self, rows: KernelRows | FeatureRows, plan: Plan, grid: Grid, workers: Workers
    ) -> NumberCurve:
        """All grid points with one kernel and one loss."""
        ran: Ran[Any] = run(self._task(rows, plan, self.folds, grid), plan.method, workers)
        ledger, tested = ran.ledger, self.folds.pair_rows
        coef, fmap, kernel = ledger.coef, None, rows.kernel
        if isinstance(ledger, Entries):
            coef, fmap = ledger.weights, ledger.feature_map
            kernel = replace(kernel, gamma=fmap.gamma or 1.0) if kernel.uses_gamma else kernel
        y, weight = self.y[tested], self.weight[tested]
        losses = pair_losses(plan.loss, plan.parameters, y, ledger.decision)
        error = losses @ weight / weight.sum()
        score = -error
        if self.scorer is not None:
            score = np.array([self.scorer.score(y, values) for values in ledger.decision])
        return NumberCurve(
            kernel=kernel,
            gamma=float(kernel.gamma) if kernel.uses_gamma else None,
            plan=plan,
            error=error,
            se=standard_error(losses, self.folds.offsets),
            score=score,
            decision=ledger.decision,
            coef=coef,
            intercept=ledger.intercept,
            at_bound=ledger.at_bound(),
            certificate=ran.certificate,
            settled=ledger.counts(),
            feature_map=fmap,
        )

    def choose(self, curves: list[NumberCurve], workers: Workers) -> NumbersTuned:
        """The best point: among equals the smallest C, then the first curve."""
        score = np.array([curve.score for curve in curves])
        short = np.array([curve.certificate.short for curve in curves])
        best = c, l = _best(score, short, self.grid.Cs)
        se = self._score_se(curves[c], l)
        one_se = c, smallest_within(-score[c], short[c], self.grid.Cs, l, se)
        chosen = one_se if self.select == "1se" else best
        return NumbersTuned(self, curves, score, best, one_se, chosen, se)

    def _score_se(self, curve: NumberCurve, l: int) -> float:
        if self.scorer is None:
            return float(curve.se[l])
        tested = self.folds.pair_rows
        return self.scorer.jackknife_se(self.y[tested], curve.decision[l], self.folds.pair_folds)

    def kernel_rows(self, kernel: Kernel, workers: Workers) -> KernelRows:
        """The kernel matrix of all rows, with gamma as a number."""
        if self.rows_of is not None:
            return self.rows_of(kernel, workers)
        kernel = of_weighted_rows(kernel, self.X, self.weight)
        return KernelRows.of(self.X, kernel, self.plans[0], workers)

    def models(self, curve: NumberCurve, l: int, folds: Folds, workers: Workers) -> FoldModels:
        """Every fold's model at one grid point, for any folds."""
        if self.features is not None:
            point, m = self.grid.part(np.array([l])), curve.n_components
            assert m is not None
            rows = replace(self.features, kernel=curve.kernel, n_components=m)
            made = self._task(rows, curve.plan, folds, point)
            assert isinstance(made, FeatureTask)
            return feature_fold_models(made, workers)
        task = self.task_at(curve, l, folds, workers)
        return fold_models(task, curve.plan.method, workers)

    def task_at(self, curve: NumberCurve, l: int, folds: Folds, workers: Workers) -> Task:
        """The problem of one grid point with other folds."""
        rows = self.kernel_rows(curve.kernel, workers)
        point = self.grid.part(np.array([l]))
        return curve.plan.task(rows, self.y, self.weight, folds, point)


def _best(score: FloatArray, short: BoolArray, Cs: FloatArray) -> tuple[int, int]:
    """(curve, grid point) of the best score, those with unresolved solutions last."""
    scale = float(np.abs(score[np.isfinite(score)]).max(initial=0.0)) or 1.0
    loss = np.where(np.isnan(score), np.inf, -np.round(score / scale, EQUAL))
    C = np.broadcast_to(Cs, score.shape)
    order: IntArray = np.lexsort((C.ravel(), loss.ravel(), short.ravel()))
    return divmod(int(order[0]), score.shape[1])


@dataclass(frozen=True)
class NumbersTuned:
    """All curves, and the chosen point: (curve, grid point)."""

    tuning: NumberTuning
    curves: list[NumberCurve]
    score: FloatArray  # (kernels times plans, L)
    best: tuple[int, int]
    one_se: tuple[int, int]
    chosen: tuple[int, int]
    se: float  # of the best score

    @property
    def curve(self) -> NumberCurve:
        return self.curves[self.chosen[0]]

    @property
    def point(self) -> int:
        return self.chosen[1]

    @property
    def gammas(self) -> FloatArray:
        return np.array([np.nan if c.gamma is None else c.gamma for c in self.curves])

    @property
    def certificate(self) -> Certificate:
        return Certificate.joined([curve.certificate for curve in self.curves])

    def stacked(self, name: str) -> FloatArray:
        """One entry a grid point, curve after curve."""
        return np.concatenate([getattr(curve, name) for curve in self.curves])

    def losses(self) -> FloatArray:
        """(S, T): the loss of each left-out value, curve after curve."""
        y = self.tuning.y[self.tuning.folds.pair_rows]
        return np.concatenate(
            [pair_losses(c.plan.loss, c.plan.parameters, y, c.decision) for c in self.curves]
        )

    def next_step(self) -> tuple[NumberTuning, End, list[Kernel] | None, Grid | None] | None:
        """The tuning with a default grid grown where the best point is, and what is new in it."""
        tuning = self.tuning
        if tuning.grid.grown is None or self.curves[self.best[0]].error[self.best[1]] == 0.0:
            return None
        end = edge(self.score, self.best, axis=1)
        part = None if end is None else tuning.grid.next_decade(end)
        if end is not None and part is not None:
            grid = tuning.grid.with_decade(part, end)
            return replace(tuning, grid=grid), end, None, part
        return self._next_gamma()

    def _next_gamma(self) -> tuple[NumberTuning, End, list[Kernel] | None, Grid | None] | None:
        tuning, per = self.tuning, len(self.tuning.plans)
        by_kernel = np.nanmax(
            self.score.reshape(-1, per, self.score.shape[1]), axis=(1, 2), initial=-np.inf
        )
        g = self.best[0] // per
        end = edge(by_kernel[:, None], (g, 0), axis=0)
        if end is None or tuning.new_gammas is None:
            return None
        low, high = tuning.new_gammas
        if (high if end == "high" else low) >= MOST_GROWTH:
            return None
        old = self.curves[self.best[0]]
        assert old.gamma is not None
        gamma = old.gamma * (GAMMA_STEP if end == "high" else 1.0 / GAMMA_STEP)
        new = [replace(old.kernel, gamma=float(gamma))]
        grown = (low, high + 1) if end == "high" else (low + 1, high)
        kernels = [*tuning.kernels, *new] if end == "high" else [*new, *tuning.kernels]
        return replace(tuning, kernels=kernels, new_gammas=grown), end, new, None
