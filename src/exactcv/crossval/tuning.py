"""A grid of kernels times a grid of C: error curves, scores, and the point that is chosen.

For each kernel the pairs of classes are cross-validated over all C at once (``one_vs_one.py``).
Left-out errors count by sample weight: a row of weight w is that many rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..exceptions import Interrupted
from ..judge.certificate import Certificate
from ..problem.folds import Folds
from ..problem.gamma import GAMMA_STEP
from ..problem.grid import MOST_GROWTH, End, Grid
from ..problem.intervals import effective_count
from ..problem.kernels import Kernel, gamma_value, kernel_matrix, of_weighted_rows
from ..runtime.progress import job
from ..runtime.threads import Workers
from ..types import FloatArray, IntArray
from .choice import best_point, smallest_within
from .classes import ManyClasses, PairFit
from .growth import edge
from .one_vs_one import PairResults, by_class, cross_validate_pairs
from .pair_wins import play
from .result import spread_of, standard_error
from .run import KernelRows, Plan
from .scoring import LeftOut, Scorer, chance_score, jackknife_se

__all__ = [
    "Curve",
    "Searched",
    "Store",
    "Tuned",
    "Tuning",
    "count_by_weight",
    "error_and_se",
]


class Store(Protocol):
    """Keeps finished curves (``Curve``, or ``ApproxCurve`` with ``approx``) by number of kernel."""

    def load(self, number: int) -> Any: ...

    def save(self, number: int, curve: Any) -> None: ...


@dataclass(frozen=True)
class Tuning:
    """What is to be tuned; everything has been checked.

    Attributes
    ----------
    X : (n, p)
        Features, or the precomputed matrix.
    shown : the rows as scorers see them; X itself unless it was sparse.
    codes, classes : (n,), (k,)
    sample_weight : (n,)
        Positive: how many rows each row counts for.
    weight : (n,)
        ``sample_weight`` times the weight of the class, for training.
    folds, grid : Folds, Grid
    kernels : list of Kernel
    scorer : Scorer
    score_arguments : dict
        What the scorer gets besides, one entry a row (``sample_weight``).
    select : {"min", "1se"}
    plan : Plan
    store : Store or None
        Where finished curves are kept, so that a run that was cut short can go on.
    new_gammas : (int, int) or None
        How many gammas the default grid has gained below and above; None if the user gave gamma.
    rows_of : callable or None
        Gives the kernel matrix of these rows where it is known already.
    curve_of : callable or None
        Gives the curve of a kernel where it is known already, without labels and models, or None.
    """

    X: FloatArray
    shown: Any
    codes: IntArray
    classes: NDArray[Any]
    sample_weight: FloatArray
    weight: FloatArray
    folds: Folds
    grid: Grid
    kernels: list[Kernel]
    scorer: Scorer
    score_arguments: dict[str, FloatArray]
    select: str
    plan: Plan
    shape: str = "ovr"
    keep_decision: bool = False
    show_progress: bool = False
    store: Store | None = None
    new_gammas: tuple[int, int] | None = None
    rows_of: Callable[[Kernel, Workers], KernelRows] | None = None
    curve_of: Callable[[Kernel, Grid, Workers], Curve | None] | None = None

    @property
    def n_solutions(self) -> int:
        """Models of folds and of the full data, over the whole grid."""
        return len(self.kernels) * len(self.grid) * (len(self.folds) + 1)

    def curves(self, workers: Workers) -> list[Curve]:
        """One curve a kernel; ``Interrupted`` brings those that were done by then."""
        curves: list[Curve] = []
        try:
            with job(self.show_progress, len(self.kernels)) as progress:
                for number, kernel in enumerate(self.kernels):
                    with workers.followed(progress):
                        curves.append(self._kept_curve(number, kernel, workers))
        except KeyboardInterrupt as stop:
            raise Interrupted(partial=curves) from stop
        return curves

    def search(self, workers: Workers) -> Searched:
        """The curves of the whole grid, which, if it is the default one, grows as it should.

        ``Interrupted`` brings what was complete by then, if anything was.
        """
        try:
            done = Searched(self, self.curves(workers))
        except Interrupted as stop:
            stop.partial = Searched(self, stop.partial) if stop.partial else None
            raise
        number = len(self.kernels)
        while True:
            step = done.next_step()
            if step is None:
                return done
            try:
                with job(self.show_progress, len(step.kernels)) as progress:
                    found = []
                    for kernel in step.kernels:
                        with workers.followed(progress):
                            one = replace(self, grid=step.grid)
                            found.append(one._kept_curve(number, kernel, workers))
                        number += 1
            except KeyboardInterrupt as stop:
                raise Interrupted(partial=done) from stop
            done = done.with_step(step, found)

    def choose(self, curves: list[Curve], workers: Workers) -> Tuned:
        """The best point, and by the 1-SE rule another if that is asked for."""
        score, short, gammas = _figures(curves)
        se = np.array([c.se for c in curves] if self.scorer.call is None else score * np.nan)
        best = g, l = best_point(-score, short, self.grid.Cs, gammas)
        if self.select == "1se" and self.scorer.call is not None:
            se[best] = self._score_se(curves[g], l, workers)
        one_se = None
        if self.select == "1se" or self.scorer.call is None:
            one_se = g, smallest_within(1.0 - score[g], short[g], self.grid.Cs, l, se[best])
        at = one_se if self.select == "1se" and one_se is not None else best
        return Tuned(curves, score, se, gammas, *at, best, one_se, self._chance())

    def left_out_at(self, curve: Curve, l: int, workers: Workers) -> LeftOut:
        """Left-out labels and values at one grid point, worked out for this point alone."""
        point = self.grid.part(np.array([l]))
        K, _ = kernel_matrix(self.X, curve.kernel, workers)
        rows = KernelRows(K, self._features, curve.kernel, curve.certificate.convex)
        plan = replace(self.plan, want_decision=True)
        task = ManyClasses(rows, self.codes, self.weight, self.folds, point, plan)
        found = cross_validate_pairs(task, workers)
        return self._left_out(found, 0)

    def _kept_curve(self, number: int, kernel: Kernel, workers: Workers) -> Curve:
        """The curve from the store if it is there; else it is computed and put there."""
        if self.store is None:
            return self._curve(kernel, workers)
        found: Curve | None = self.store.load(number)
        if found is None:
            found = self._curve(kernel, workers)
            self.store.save(number, found)
        return found

    def _curve(self, kernel: Kernel, workers: Workers) -> Curve:
        """All grid points with one kernel."""
        known = None if self.curve_of is None else self.curve_of(kernel, self.grid, workers)
        if known is not None:
            return known
        order = self._order(kernel)
        rows = self.kernel_rows(kernel, workers, order)
        gamma = "" if rows.gamma is None else f"gamma={rows.gamma:.4g}, "
        workers.watch.say(f"{gamma}{len(self.grid)} grid points, {len(self.folds)} folds")
        task = ManyClasses(rows, self.codes, self.weight, self.folds, self.grid, self.plan)
        if order is not None:
            task = task.moved(*order)
        found = cross_validate_pairs(task, workers)
        fits = found.fits if order is None else tuple(f.of_rows(order[0]) for f in found.fits)
        tested = self.sample_weight[self.folds.pair_rows]
        error, se = error_and_se(found.wrong, self.folds.offsets, tested)
        score = 1.0 - error
        if self.scorer.pairs:
            score = self._pair_score(rows, workers)
        elif self.scorer.call is not None:
            tests = self._tested_rows(), self._tested_arguments()
            left_out = (self._left_out(found, l) for l in range(len(self.grid)))
            score = np.array([one.score_with(self.scorer, *tests) for one in left_out])
        return Curve(
            kernel=rows.kernel,
            gamma=rows.gamma,
            error=error,
            se=se,
            n_errors=found.wrong.sum(axis=1),
            labels=found.labels.astype(np.int16),
            score=score,
            at_bound=found.at_bound,
            fits=fits,
            certificate=found.certificate,
            stats=found.stats,
            # A scorer of values is asked again, by the bootstrap (``corrected.py``).
            decision=None if self.scorer.labels_only and not self.keep_decision else found.decision,
        )

    def _order(self, kernel: Kernel) -> tuple[IntArray, IntArray] | None:
        """The rows by class, where that is worth it and the matrix is not there yet."""
        given = kernel.name == "precomputed" or callable(kernel.name)
        return None if given or self.rows_of is not None else by_class(self.codes)

    def kernel_rows(
        self, kernel: Kernel, workers: Workers, order: tuple[IntArray, IntArray] | None = None
    ) -> KernelRows:
        """The kernel matrix of all rows, in that order, with gamma as a number."""
        if self.rows_of is not None:
            return self.rows_of(kernel, workers)
        kernel = of_weighted_rows(kernel, self.X, self.sample_weight)
        if order is None:
            return KernelRows.of(self.X, kernel, self.plan, workers)
        if kernel.uses_gamma and kernel.gamma != "median":  # the same to the last bit
            kernel = replace(kernel, gamma=float(gamma_value(self.X, kernel) or 0.0))
        return KernelRows.of(self.X[order[0]], kernel, self.plan, workers)

    @property
    def _features(self) -> FloatArray | None:
        return None if self.kernels[0].name == "precomputed" else self.X

    # ---- scores -------------------------------------------------------------------------------

    def _pair_score(self, rows: KernelRows, workers: Workers) -> FloatArray:
        """The leave-pair-out AUC along the grid."""
        signs = np.where(self.codes == 1, 1.0, -1.0)
        task = self.plan.task(rows, signs, self.weight, self.folds, self.grid)
        return play(task, self.plan.method, False, workers).tally.auc

    def _left_out(self, found: PairResults, l: int) -> LeftOut:
        rows = self.folds.pair_rows
        decision = None if found.decision is None else found.decision[l]
        parts = (self.codes[rows], found.labels_at(l), decision, self.sample_weight[rows])
        return LeftOut(self.classes, *parts, self.shape)

    def _tested_rows(self) -> Any:
        return self.shown[self.folds.pair_rows]

    def _tested_arguments(self) -> dict[str, Any]:
        return {name: value[self.folds.pair_rows] for name, value in self.score_arguments.items()}

    def _chance(self) -> float | None:
        rows = self.folds.pair_rows
        tests = self._tested_rows(), self._tested_arguments()
        return chance_score(
            self.classes, self.codes[rows], self.sample_weight[rows], self.scorer, *tests
        )

    @property
    def effective_tests(self) -> float | None:
        """How many rows the tested ones amount to; None if all weigh the same."""
        weight = self.sample_weight[np.unique(self.folds.pair_rows)]
        return None if (weight == weight[0]).all() else effective_count(weight)

    def _score_se(self, curve: Curve, l: int, workers: Workers) -> float:
        left_out = self.left_out_at(curve, l, workers)
        return jackknife_se(
            left_out,
            self.scorer,
            self._tested_rows(),
            self._tested_arguments(),
            self.folds.pair_folds,
        )


def _figures(curves: list[Curve]) -> tuple[FloatArray, NDArray[np.bool_], FloatArray]:
    """Scores and which of them are short, (G, L), and the gammas."""
    short = np.array([curve.certificate.short for curve in curves])
    score = np.array([curve.score for curve in curves])
    return score, short, np.array([np.nan if c.gamma is None else c.gamma for c in curves])


@dataclass(frozen=True)
class Step:
    """What a default grid gains: a decade of C for all kernels, or one kernel for all C."""

    end: End
    grid: Grid
    kernels: list[Kernel]
    of_gamma: bool


@dataclass(frozen=True)
class Searched:
    """Curves, and what they are curves of."""

    tuning: Tuning
    curves: list[Curve]

    def next_step(self) -> Step | None:
        """Where the grid should grow: the best point is at that edge, and beats all the rest."""
        tuning = self.tuning
        if tuning.grid.grown is None:
            return None
        score, short, gammas = _figures(self.curves)
        best = best_point(-score, short, tuning.grid.Cs, gammas)
        if tuning.scorer.call is None and score[best] >= 1.0:
            return None
        end = edge(score, best, axis=1)
        more = None if end is None else tuning.grid.next_decade(end)
        if end is not None and more is not None:
            return Step(end, more, [curve.kernel for curve in self.curves], of_gamma=False)
        end = edge(score, best, axis=0)
        if end is None or tuning.new_gammas is None:
            return None
        if tuning.new_gammas[end == "high"] >= MOST_GROWTH:
            return None
        gamma = gammas[best[0]] * (GAMMA_STEP if end == "high" else 1.0 / GAMMA_STEP)
        kernel = replace(self.curves[best[0]].kernel, gamma=float(gamma))
        return Step(end, tuning.grid, [kernel], of_gamma=True)

    def with_step(self, step: Step, found: list[Curve]) -> Searched:
        """All curves, once those of the step are there."""
        tuning, high = self.tuning, step.end == "high"
        if step.of_gamma:
            assert tuning.new_gammas is not None
            low_new, high_new = tuning.new_gammas
            grown = replace(
                tuning,
                new_gammas=(low_new, high_new + 1) if high else (low_new + 1, high_new),
                kernels=_joined(tuning.kernels, step.kernels, high),
            )
            return Searched(grown, _joined(self.curves, found, high))
        grid = tuning.grid.with_decade(step.grid, step.end)
        curves = [
            Curve.along_C(_joined([old], [new], high))
            for old, new in zip(self.curves, found, strict=True)
        ]
        return Searched(replace(tuning, grid=grid), curves)


def _joined(old: list[Any], new: list[Any], high: bool) -> list[Any]:
    return [*old, *new] if high else [*new, *old]


@dataclass(frozen=True)
class Curve:
    """What came out for one kernel, along the grid of C."""

    kernel: Kernel
    gamma: float | None
    error: FloatArray
    se: FloatArray
    n_errors: IntArray
    labels: NDArray[np.int16]  # (L, T): left-out predictions
    score: FloatArray
    at_bound: FloatArray
    fits: tuple[PairFit, ...]
    certificate: Certificate
    stats: dict[str, int]
    decision: FloatArray | None  # (L, T, P)

    @classmethod
    def along_C(cls, parts: Sequence[Curve]) -> Curve:
        """Curves of one kernel over grids one after the other, as one."""
        first = parts[0]
        names = ["error", "se", "n_errors", "labels", "score", "at_bound"]
        names += [] if first.decision is None else ["decision"]
        together: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in names
        }
        fits = tuple(
            replace(
                pair[0],
                coef=np.concatenate([fit.coef for fit in pair]),
                intercept=np.concatenate([fit.intercept for fit in pair]),
            )
            for pair in zip(*(part.fits for part in parts), strict=True)
        )
        stats = {
            name: sum(part.stats.get(name, 0) for part in parts)
            for name in dict.fromkeys(name for part in parts for name in part.stats)
        }
        certificate = Certificate.joined([part.certificate for part in parts])
        return replace(first, fits=fits, stats=stats, certificate=certificate, **together)


@dataclass(frozen=True)
class Tuned:
    """All curves, and the chosen point: ``curves[kernel]`` at grid point ``point``."""

    curves: list[Curve]
    score: FloatArray  # (G, L)
    se: FloatArray  # (G, L), NaN where it was not worked out
    gammas: FloatArray  # (G,), NaN for kernels without gamma
    kernel: int
    point: int
    best: tuple[int, int]
    one_se: tuple[int, int] | None  # None if the standard error of the score was not asked for
    chance: float | None  # the score of predictions that tell nothing, if it has one

    @property
    def chosen(self) -> Curve:
        return self.curves[self.kernel]

    def stacked(self, name: str) -> NDArray[Any]:
        """One entry a grid point, kernel after kernel."""
        return np.concatenate([getattr(curve, name) for curve in self.curves])

    @property
    def certificate(self) -> Certificate:
        return Certificate.joined([curve.certificate for curve in self.curves])


def count_by_weight(folds: Folds, grid: Grid, sample_weight: FloatArray) -> Folds:
    """Folds in which lambda counts rows by their weight; as they are if all weigh the same."""
    even = (sample_weight == sample_weight[0]).all()
    if even or folds.leave_one_out or not grid.scale_with_fold:
        return folds
    total = sample_weight.sum()
    gone = np.array([sample_weight[out].sum() for out in folds.left_out])
    return replace(folds, whole_to_part=total / (total - gone))


def error_and_se(
    wrong: NDArray[np.bool_], offsets: IntArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Weighted left-out error over all tests, and its standard error, along the grid.

    Fold f has the tests offsets[f] : offsets[f + 1]; ``weight`` has one entry a test.

    The standard error is that of ``CVResult``: the standard deviation of the folds' errors (within
    a fold, rows count by weight) over the square root of their number F.  In leave-one-out a fold
    is a row, and rows count by weight there too: with shares v_f = w_f / sum w

        se^2 = F / (F - 1) sum_f v_f^2 (e_f - e)^2,

    which is the same if all weigh the same.
    """
    n_folds = len(offsets) - 1
    if (weight == weight[0]).all():
        return wrong.sum(axis=1) / wrong.shape[1], standard_error(wrong, offsets)
    error = wrong @ weight / weight.sum()
    single = wrong.shape[1] == n_folds
    if single and n_folds > 1:
        share = weight / weight.sum()
        spread = (share * (row - e) for row, e in zip(wrong, error, strict=True))
        return error, np.sqrt([n_folds / (n_folds - 1) * (one**2).sum() for one in spread])
    sizes = np.add.reduceat(weight, offsets[:-1])
    fold_error = np.add.reduceat(wrong * weight, offsets[:-1], axis=1) / sizes
    return error, spread_of(fold_error)
