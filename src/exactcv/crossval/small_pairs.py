"""Small pairs of classes at one C, many at a time.

A pair of a hundred rows and its five folds are solved in half a millisecond; to open a ledger for
them, to have each judged and its certificate written takes three times as long.  So these are
solved one after the other, with all folds of a pair in one compiled call, and judged together.
Only what meets the tolerance there and then is settled: other pairs go the way of all problems
(``run.py``), where there is more to try.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .. import tolerances
from .._core._gather import combine_parts
from .._core.reference.residuals import ROUNDING
from ..engine.blocks import fold_paths
from ..engine.merged import Merged
from ..engine.path import Tracker, full_path
from ..judge.certificate import Certificate, attainable
from ..judge.ledger import HOW
from ..judge.stacked import Stacked, Verdicts
from ..problem.problem import Task
from ..runtime.threads import Workers
from ..tolerances import TIE
from ..types import BoolArray, FloatArray, IntArray
from .classes import ManyClasses, PairFit, PairTask, SolvedPair

__all__ = ["groups_of", "solve_together"]

# Pairs with at most so many coefficients (rows times training sets) are small, and so many make a
# group: enough for what is done once a group to count little, and for every thread to have some.
# All pairs of a group take as much memory as its largest, and each keeps its part of K until they
# are judged: so rows are few, too.
SMALL = 6_000
MOST_ROWS = 500
GROUP = 30_000


def groups_of(task: ManyClasses, pairs: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """The small pairs among these, in groups that are solved together."""
    plan, rows = task.plan, task.rows
    plain = plan.method == "exact" and plan.loss == "hinge" and plan.tol < tolerances.ROUGH
    one_C = len(task.grid) == 1 and not task.folds.leave_one_out
    if not (plain and one_C and rows.psd and rows.cache is None):
        return []
    sizes, sets = np.bincount(task.codes), len(task.folds) + 1
    rows_of = {pair: int(sizes[list(pair)].sum()) for pair in pairs}
    most = min(MOST_ROWS, SMALL // sets)
    small = [pair for pair in pairs if rows_of[pair] <= most]
    small.sort(key=rows_of.__getitem__, reverse=True)
    groups: list[list[tuple[int, int]]] = []
    for pair in small:
        if not groups or sets * rows_of[groups[-1][0]] * (len(groups[-1]) + 1) > GROUP:
            groups.append([])
        groups[-1].append(pair)
    return groups


@dataclass(frozen=True)
class _Solutions:
    """Of one pair: those of the full data, then of the folds that it keeps."""

    pair: PairTask
    coef: FloatArray
    h: FloatArray
    C: FloatArray
    gammas: FloatArray | None
    counts: dict[str, int]

    def model_of(self, n_folds: int) -> IntArray:
        """Which solution speaks for each fold: that of the full data where it is not kept."""
        model = np.zeros(n_folds, dtype=np.intp)
        model[self.pair.part.kept] = np.arange(1, len(self.C))
        return model


def solve_together(
    task: ManyClasses, pairs: Sequence[tuple[int, int]], workers: Workers
) -> list[SolvedPair]:
    """Cross-validate some pairs; those are returned that met the tolerance."""
    tried = (_solve(task, task.pair(*which), workers) for which in pairs)
    solved = [one for one in tried if one is not None]
    if not solved:
        return []
    starts = np.cumsum([0, *(len(one.C) for one in solved)])
    sets = _stacked(solved, starts)
    C = np.concatenate([one.C for one in solved])
    verdicts = sets.judge(C, task.plan.fit_intercept)
    at_bound = sets.at_bound(starts[:-1], C[starts[:-1]])
    values, sound = _own_values(task, solved, starts, sets, verdicts)
    sound &= np.logical_and.reduceat(_meets(verdicts, task.plan.tol), starts[:-1])
    settled = []
    for k in np.flatnonzero(sound).tolist():
        mine = verdicts.part(slice(starts[k], starts[k + 1]))
        settled.append(_settled(task, solved[k], mine, values[k], at_bound[k : k + 1]))
        workers.watch.part_done()
    return settled


def _solve(task: ManyClasses, pair: PairTask, workers: Workers) -> _Solutions | None:
    """Solutions that nobody has judged yet; None if the usual means have failed."""
    job, n_folds = pair.task, len(pair.part.kept)
    if n_folds == 0:
        return None
    merged = Merged.of(job.problem)
    tracker = Tracker(merged.problem, workers.cancel, job.tol)
    full = full_path(tracker.problem, job.grid.Cs, tracker)
    solves, known = tracker.solves, tracker.solves if job.kernels is None else 0
    again = tracker if job.kernels is None else None
    paths = fold_paths(job, range(n_folds), full, merged, workers.cancel, tracker=again)
    if any(point.fallback for path in (full, *(one.points for one in paths)) for point in path):
        return None
    coef = np.concatenate([merged.apart(full[0].coef)[None], *(one.coef for one in paths)])
    C = np.concatenate([job.grid.Cs, *(job.fold_Cs(fold) for fold in range(n_folds))])
    counts = {"path_solves": solves, "fold_solves": paths[-1].tracker.solves - known}
    gammas = None
    if task.gammas is not None:
        gammas = np.append(task.gammas[-1], task.gammas[pair.part.kept])
    return _Solutions(pair, coef, _products(job, coef), C, gammas, counts)


def _products(job: Task, coef: FloatArray) -> FloatArray:
    """K c, with the kernel of each training set."""
    if job.kernels is None:
        return job.problem.times(coef)
    return np.concatenate([job.problem.times(coef[:1]), job.kernels.times_each(coef[1:])])


def _stacked(solved: Sequence[_Solutions], starts: IntArray) -> Stacked:
    """The solutions of all pairs, one after the other."""
    sets = Stacked.empty(int(starts[-1]), max(one.pair.task.problem.n for one in solved))
    for one, start in zip(solved, starts.tolist(), strict=False):
        problem, folds = one.pair.task.problem, one.pair.task.folds
        mine = slice(start, start + len(one.C)), slice(problem.n)
        sets.h[mine], sets.coef[mine], sets.y[mine] = one.h, one.coef, problem.y
        sets.weight[mine], sets.diagonal[mine] = problem.weight, problem.diagonal
        for k, left_out in enumerate(folds.left_out, start + 1):
            sets.weight[k, left_out] = 0.0
    return sets


def _meets(verdicts: Verdicts, tol: float) -> BoolArray:
    """Which solutions need not be tried again, and meet the tolerance at that."""
    limit = np.minimum(attainable(tol, verdicts.floor, tolerances.aim(tol)), tol)
    return np.asarray((verdicts.kkt <= limit) & (verdicts.gap <= limit))


def _own_values(
    task: ManyClasses,
    solved: Sequence[_Solutions],
    starts: IntArray,
    sets: Stacked,
    verdicts: Verdicts,
) -> tuple[FloatArray, BoolArray]:
    """Left-out values (P, T) of the rows of each pair, NaN for others, and labels (P,) that stand.

    A label that the rounding of its value could turn round does not; see ``ledger.py``.
    """
    folds = task.folds
    own = np.array([one.pair.part.own for one in solved])
    pair, test = np.nonzero(own)
    place = np.array([one.pair.place for one in solved])[pair, folds.pair_rows[test]]
    model = np.array([one.model_of(len(folds)) for one in solved])[pair, folds.pair_folds[test]]
    model += starts[pair]
    u, y = sets.h[model, place] + verdicts.intercept[model], sets.y[model, place]
    blur = verdicts.floor / ROUNDING + 2.0 * np.minimum(verdicts.kkt, task.plan.tol)
    low, high = y * (u - blur[model]) > TIE, y * (u + blur[model]) > TIE
    values, sound = np.full(own.shape, np.nan), np.ones(len(solved), dtype=bool)
    values[pair, test] = u
    sound[pair[low != high]] = False
    return values, sound


def _settled(
    task: ManyClasses,
    one: _Solutions,
    verdicts: Verdicts,
    values: FloatArray,
    at_bound: FloatArray,
) -> SolvedPair:
    """What the models of a pair say of all rows they are tested on; ``values`` are filled up."""
    pair, folds, b = one.pair, task.folds, verdicts.intercept
    own = pair.part.own
    if not own.all():
        of = one.model_of(len(folds))[folds.pair_folds]
        others = np.flatnonzero(~own)
        if len(pair.part.kept) < len(folds):
            others = others[np.argsort(of[others], kind="stable")]
        parts = np.searchsorted(of[others], np.arange(len(b) + 1))
        models = pair.rows, one.coef, b, one.gammas
        values[others] = combine_parts(task.rows.K, folds.pair_rows[others], parts, *models)
    for_second = values > -TIE
    if task.ties_are_wrong:
        # Of its own rows, those of the second class need more than a tie to be right.
        second = own & (task.codes[folds.pair_rows] == pair.second)
        for_second[second] = values[second] > TIE
        first = own & ~second
        for_second[first] = values[first] >= -TIE
    worst = verdicts.kkt.max(keepdims=True), verdicts.gap.max(keepdims=True)
    return SolvedPair(
        fit=PairFit(pair.first, pair.second, pair.rows, one.coef[:1], b[:1]),
        part=pair.part,
        for_second=for_second[None],
        decision=values[None] if task.plan.want_decision else np.zeros((0, 0)),
        certificate=Certificate(*worst, True, [], task.plan.tol),
        at_bound=at_bound,
        counts=dict.fromkeys(HOW, 0) | {"solved": len(b) - 1} | one.counts,
    )
