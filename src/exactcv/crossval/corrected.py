"""What the choice of the grid point has gained, taken off again: bootstrap bias-corrected CV.

The least error of a grid is too good, for the grid point was chosen by the very errors that are
then reported.  Tsamardinos, Greasidou and Borboudakis (Machine Learning 107, 2018, BBC-CV) repeat
the choice on bootstrap samples of the left-out predictions: in each sample the best point is chosen
by the rows that were drawn and judged by those that were not,

    estimate = mean over b of score(rows not in sample b, best point of the rows in sample b),

and the 2.5 and 97.5 percent quantiles over b are its interval.  Nothing is trained again.

All tests of a row are drawn together, and where rows belong to groups all rows of a group.  A
sample in which a score is not defined (an AUC without both classes) is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..exceptions import InputError, InputTypeError
from ..problem.checks import check_choice, seed_from
from ..problem.inputs import read_groups
from ..types import BoolArray, FloatArray, IntArray
from .choice import EQUAL
from .scoring import Scorer, read_scoring
from .weighted_number_scores import MeanLoss, number_measure
from .weighted_scores import Measure, Tests, measure_of

if TYPE_CHECKING:
    from .number_tuning import NumbersTuned
    from .regression_result import RegressionResult
    from .result import CVResult
    from .tuning import Tuned, Tuning

__all__ = [
    "Corrected",
    "CorrectedLoss",
    "Correction",
    "Points",
    "correct",
    "correct_losses",
    "correct_result",
    "correction_of",
    "correction_of_numbers",
    "draws",
    "now_or_later",
]

CHUNK = 1 << 20  # counts held at a time, in a few copies
ENDS = (2.5, 97.5)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Corrected:
    """The score after tuning, corrected for the choice; what ``corrected()`` returns.

    Attributes
    ----------
    score : float
        The corrected score; larger is better.
    error : float
        1 - ``score``; for accuracy the corrected error.
    interval : (float, float)
        The 95 percent interval of ``score``: quantiles over the bootstrap samples.
    error_interval : (float, float)
        The same of ``error``.
    apparent : float
        The score of the chosen point on all left-out values, which is too good.
    optimism : float
        ``apparent - score``.
    samples : (B,)
        The score in each bootstrap sample; NaN where it is not defined.
    chosen : (S,) int
        How often each grid point was chosen.
    scoring : str
    """

    score: float
    interval: tuple[float, float]
    apparent: float
    samples: FloatArray
    chosen: IntArray
    scoring: str

    @property
    def error(self) -> float:
        return 1.0 - self.score

    @property
    def error_interval(self) -> tuple[float, float]:
        low, high = self.interval
        return 1.0 - high, 1.0 - low

    @property
    def optimism(self) -> float:
        return self.apparent - self.score

    def __float__(self) -> float:
        return self.score

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"<Corrected: {self.scoring} {self.score:.4f} after tuning (95% {low:.4f} to "
            f"{high:.4f}); {self.apparent:.4f} before correction, {len(self.samples)} bootstraps>"
        )


# The score after tuning, or how to work it out.
Correction: TypeAlias = Corrected | partial[Corrected]


def now_or_later(later: partial[Corrected], quick: bool) -> Correction:
    """At once where that is quick and there is one; why there is none is said when it is asked for.

    So a fit does not fail because of too few rows for the bootstrap.
    """
    if not quick:
        return later
    try:
        return later()
    except InputError:
        return later


class CorrectedLoss(Corrected):
    """The same of a loss: ``score`` is its negative."""

    @property
    def error(self) -> float:
        return 0.0 - self.score  # not -0.0

    @property
    def error_interval(self) -> tuple[float, float]:
        low, high = self.interval
        return 0.0 - high, 0.0 - low


@dataclass(frozen=True)
class Points:
    """The grid as the choice sees it: G kernels times L values of C.

    ``short`` are points with unresolved solutions, taken only if there is nothing else.
    ``allowance`` is the standard error of the 1-SE rule, None for the best score.
    """

    Cs: FloatArray  # (L,)
    gammas: FloatArray  # (G,), NaN without
    short: BoolArray  # (G * L,)
    allowance: float | None = None

    def choose(self, score: FloatArray) -> IntArray:
        """The point chosen in each sample, (B,), by scores (B, S); -1 if none has a score.

        Among equals the smallest C, then the smallest gamma, as in ``choice.best_point``.
        """
        G, L = len(self.gammas), len(self.Cs)
        C = np.tile(self.Cs, G)
        order = np.lexsort((np.repeat(self.gammas, L), C, self.short))
        ranked = np.round(score[:, order], EQUAL)
        # Points that miss the tolerance come after all the others.
        ranked = np.where(np.isnan(ranked), -np.inf, ranked)
        proved = ~self.short[order]
        usable = (ranked > -np.inf) & proved
        ranked = np.where(usable.any(axis=1, keepdims=True) & ~proved, -np.inf, ranked)
        best = order[np.argmax(ranked, axis=1)]
        if self.allowance is not None:
            best = self._smallest_within(score, best)
        return np.where((ranked > -np.inf).any(axis=1), best, -1)

    def _smallest_within(self, score: FloatArray, best: IntArray) -> IntArray:
        """The smallest C, with the same kernel, whose score is within the allowance."""
        assert self.allowance is not None
        L, rows = len(self.Cs), np.arange(len(best))
        start = (best // L) * L
        own = score[rows[:, None], start[:, None] + np.arange(L)]
        short = self.short[start[:, None] + np.arange(L)]
        bar = 1.0 - score[rows, best] + np.nan_to_num(self.allowance)
        within = (1.0 - own <= bar[:, None]) & (short == self.short[best][:, None])
        within[rows, best - start] = True
        return np.asarray(start + np.argmin(np.where(within, self.Cs, np.inf), axis=1))


def draws(n: int, n_bootstrap: int, random_state: object) -> Iterator[NDArray[np.int64]]:
    """The samples, (b, n) row numbers at a time."""
    rng = np.random.default_rng(seed_from(random_state))
    step = max(1, CHUNK // n)
    for start in range(0, n_bootstrap, step):
        yield rng.integers(0, n, size=(min(step, n_bootstrap - start), n))


def correct(
    tests: Tests,
    points: Points,
    scorer: Scorer,
    *,
    apparent: float,
    n_bootstrap: int = 1000,
    random_state: object = None,
) -> Corrected:
    """The bias-corrected score of the choice among ``points``, from the left-out results alone."""
    measure, samples = measure_of(tests, scorer), (n_bootstrap, random_state)
    score, chosen = _repeated(measure, points, tests.unit, *samples)
    name = getattr(scorer.name, "__name__", str(scorer.name))
    return _made(Corrected, score, chosen, apparent, name)


def _made(
    kind: type[Corrected], score: FloatArray, chosen: IntArray, apparent: float, name: str
) -> Corrected:
    """The estimate and its interval, from the score in each sample."""
    known = score[~np.isnan(score)]
    if not len(known):
        raise InputError(
            f"scoring={name!r} is not defined in any bootstrap sample: there are too few rows (of "
            "a class); use another scorer, or nested_cross_validate"
        )
    known = known + 0.0  # no -0.0
    low, high = (float(end) for end in np.percentile(known, ENDS))
    return kind(
        score=float(known.mean()),
        interval=(low, high),
        apparent=float(apparent) + 0.0,
        samples=score,
        chosen=chosen,
        scoring=name,
    )


def _repeated(
    measure: Measure, points: Points, unit: IntArray, n_bootstrap: int, random_state: object
) -> tuple[FloatArray, IntArray]:
    """The score of the choice in each sample, (B,), and how often each point was chosen.

    Test t is of row ``unit[t]``.
    """
    n, everyone = int(unit.max()) + 1, np.arange(len(points.short))
    if n < 2:
        raise InputError("all tests are of a single group or row: there is nothing to be drawn")
    samples, chosen = [], np.zeros(len(everyone), dtype=np.intp)
    # Where every unit has one test, it is quicker to put the draws in the order of the tests than
    # the counts.
    single = len(unit) == n
    place = np.argsort(unit)
    for drawn in draws(n, check_bootstraps(n_bootstrap), random_state):
        counts = _counts(place[drawn], n) if single else _counts(drawn, n)[:, unit]
        best = points.choose(measure(everyone, counts))
        samples.append(_judged(measure, best, (counts == 0).astype(float)))
        chosen += np.bincount(best[best >= 0], minlength=len(everyone))
    return np.concatenate(samples), chosen


def check_bootstraps(n_bootstrap: object) -> int:
    """A number of samples."""
    if isinstance(n_bootstrap, bool) or not isinstance(n_bootstrap, (int, np.integer)):
        raise InputTypeError(f"n_bootstrap must be an integer, got {n_bootstrap!r}")
    if n_bootstrap < 2:
        raise InputError(f"n_bootstrap={n_bootstrap} is too few; use 1000")
    return int(n_bootstrap)


def _counts(drawn: NDArray[np.int64], n: int) -> FloatArray:
    """How often each row is in each sample, (b, n)."""
    flat = drawn + n * np.arange(len(drawn))[:, None]
    return np.bincount(flat.ravel(), minlength=n * len(drawn)).reshape(len(drawn), n).astype(float)


def _judged(measure: Measure, best: IntArray, outside: FloatArray) -> FloatArray:
    """The score of each sample's own choice on the rows outside it."""
    found = np.full(len(best), np.nan)
    for point in np.unique(best[best >= 0]):
        mine = np.flatnonzero(best == point)
        found[mine] = measure(np.array([point]), outside[mine])[:, 0]
    return found


# ---- of what -----------------------------------------------------------------------------------


def correct_result(
    result: CVResult,
    n_bootstrap: int,
    random_state: object,
    scoring: object,
    select: str,
    groups: object = None,
) -> Corrected:
    """What ``CVResult.corrected`` does."""
    scorer, tests = read_scoring(scoring), tests_of(result)
    group = read_groups(groups, len(result.y))
    if group is not None:
        tests = replace(tests, unit=_units(group[result.test_row]))
    check_choice("select", select, ("min", "1se"))
    if tests.decision is None and not scorer.labels_only:
        raise InputError(
            f"scoring={scorer.name!r} needs left-out decision values; use "
            "cross_validate(..., output='decision')"
        )
    points = Points(result.Cs, np.array([np.nan]), result.certificate.short)
    if scorer.call is None:
        taken = result.one_se if select == "1se" else result.best
        apparent = 1.0 - float(result.error[taken])
        if select == "1se":
            points = replace(points, allowance=float(result.se[result.best]))
    elif select == "1se":
        raise InputError("select='1se' goes with scoring=None here; use SVCCV(select='1se')")
    else:
        measure = measure_of(tests, scorer)
        apparent = float(
            np.nanmax(measure(np.flatnonzero(_taken_first(points.short)), _once(tests)))
        )
    return correct(
        tests, points, scorer, apparent=apparent, n_bootstrap=n_bootstrap, random_state=random_state
    )


def correct_losses(
    result: RegressionResult,
    n_bootstrap: int,
    random_state: object,
    select: str,
    groups: object = None,
) -> Corrected:
    """What ``RegressionResult.corrected`` does; in units of the least loss, as choices are."""
    check_choice("select", select, ("min", "1se"))
    group = read_groups(groups, len(result.y))
    unit = _units(result.test_row if group is None else group[result.test_row])
    taken, allowance = result.best, None
    if select == "1se":
        taken, allowance = result.one_se, float(result.se[result.best])
    return _correct_numbers(
        MeanLoss(result.pair_loss, np.ones(len(unit))),
        Points(result.Cs, np.array([np.nan]), result.certificate.short, allowance),
        unit,
        CorrectedLoss,
        scale=float(result.error[result.best]),
        apparent=-float(result.error[taken]),
        name=f"negative {result.loss} loss",
        n_bootstrap=n_bootstrap,
        random_state=random_state,
    )


def _correct_numbers(
    measure: Measure,
    points: Points,
    unit: IntArray,
    kind: type[Corrected],
    *,
    scale: float,
    apparent: float,
    name: str,
    n_bootstrap: int = 1000,
    random_state: object = 0,
) -> Corrected:
    """The choice repeated in units of ``scale``: what is equal does not depend on those of y."""
    scale = abs(scale) or 1.0
    if points.allowance is not None:
        points = replace(points, allowance=points.allowance / scale)

    def scaled(which: IntArray, counts: FloatArray) -> FloatArray:
        return measure(which, counts) / scale

    score, chosen = _repeated(scaled, points, unit, n_bootstrap, random_state)
    return _made(kind, score * scale, chosen, apparent, name)


def _taken_first(short: BoolArray) -> BoolArray:
    """The points that a choice is among: those without unresolved solutions, if there are any."""
    return short if short.all() else ~short


def _once(tests: Tests) -> FloatArray:
    return np.ones((1, len(tests.unit)))


def _units(names: NDArray[Any]) -> IntArray:
    """What is drawn together, test by test."""
    return np.asarray(np.unique(names, return_inverse=True)[1].ravel(), dtype=np.intp)


def tests_of(result: CVResult) -> Tests:
    """The left-out results of two classes; rows count once whatever their weights."""
    codes = (result.y[result.test_row] > 0).astype(np.intp)
    values = result.pair_decision
    return Tests(
        classes=result.classes,
        unit=_units(result.test_row),
        codes=codes,
        labels=np.where(result.pair_wrong, 1 - codes, codes).astype(np.int8),
        decision=None if values is None else values[:, :, None],
        weight=np.ones(len(codes)),
        shown=result.test_row[:, None],
        arguments={},
    )


def correction_of(
    tuning: Tuning, tuned: Tuned, groups: NDArray[Any] | None = None
) -> partial[Corrected]:
    """The same for a grid of kernels and C, any number of classes, with weights; to be called.

    Rows of a group, if there are several groups, are drawn together.

    The samples are always the same, so that a fit has one answer.
    """
    rows = tuning.folds.pair_rows
    unit = _drawn_together(rows, groups)
    keeps = tuned.curves[0].decision is not None
    tests = Tests(
        classes=tuning.classes,
        unit=unit,
        codes=tuning.codes[rows],
        labels=tuned.stacked("labels"),
        decision=tuned.stacked("decision") if keeps else None,
        weight=tuning.sample_weight[rows],
        shown=tuning.shown[rows],
        arguments={name: value[rows] for name, value in tuning.score_arguments.items()},
        shape=tuning.shape,
    )
    allowance = float(tuned.se[tuned.best]) if tuning.select == "1se" else None
    points = Points(tuning.grid.Cs, tuned.gammas, tuned.certificate.short, allowance)
    apparent = float(tuned.score[tuned.kernel, tuned.point])
    return partial(correct, tests, points, tuning.scorer, apparent=apparent, random_state=0)


def _drawn_together(rows: IntArray, groups: NDArray[Any] | None) -> IntArray:
    """The tests of a row, and of a group if there are several."""
    several = groups is not None and len(np.unique(groups[rows])) > 1
    return _units(groups[rows] if groups is not None and several else rows)


def correction_of_numbers(
    tuned: NumbersTuned, groups: NDArray[Any] | None = None
) -> partial[Corrected]:
    """The same for numbers: a grid of kernels, parameters of the loss and C."""
    tuning, rows = tuned.tuning, tuned.tuning.folds.pair_rows
    y, scorer, best = tuning.y[rows], tuning.scorer, float(tuned.score[tuned.best])
    measure: Measure
    if scorer is None:
        measure = MeanLoss(tuned.losses(), tuning.weight[rows])
        name, scale = f"negative {tuning.plans[0].loss} loss", best
    else:
        measure, name = number_measure(scorer, y, tuned.stacked("decision")), scorer.name
        scale = best if name.startswith("neg_") else 1.0
    return partial(
        _correct_numbers,
        measure,
        Points(
            tuning.grid.Cs,
            np.arange(len(tuned.curves), dtype=float),  # among equals the first curve
            tuned.certificate.short,
            tuned.se if tuning.select == "1se" else None,
        ),
        _drawn_together(rows, groups),
        CorrectedLoss if scorer is None or name.startswith("neg_") else Corrected,
        scale=scale,
        apparent=float(tuned.score[tuned.chosen]),
        name=name,
    )
