"""Folds that leave out several rows: the path of each training set, guided by the full one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from .._core._factor import Factor
from ..judge import ledger as entries
from ..judge.ledger import Ledger
from ..problem.problem import Task
from ..types import FloatArray
from .merged import Merged
from .path import Point, StateArray, Tracker, follow, rising

__all__ = ["FoldPath", "fold_paths", "solve_folds", "to_lend", "together"]

# So many coefficients are entered at a time: those of all folds, where problems are small.
AT_A_TIME = 20_000


def together(task: Task) -> list[range]:
    """The folds in groups that are worth entering together."""
    count = len(task.folds)
    size = max(1, AT_A_TIME // (task.problem.n * len(task.grid)))
    return [range(first, min(first + size, count)) for first in range(0, count, size)]


def to_lend(task: Task, merged: Merged, factor: Factor) -> Factor | None:
    """The factor of the full data, if some fold can lean on it; else its memory is given back."""
    rows = factor.rows
    for left_out in task.folds.left_out if task.kernels is None else ():
        weight = task.problem.weight.copy()
        weight[left_out] = 0.0
        if factor.worth_lending(int(np.count_nonzero(merged.together(weight)[rows] == 0))):
            return factor
    factor.release()
    return None


@dataclass(frozen=True)
class FoldPath:
    """The path of one fold; ``weight`` are those of rows, ``boxes`` of repeated rows as one."""

    fold: int
    tracker: Tracker
    weight: FloatArray
    boxes: FloatArray
    points: list[Point]
    coef: FloatArray


def solve_folds(
    task: Task,
    ledger: Ledger,
    folds: Sequence[int],
    full: list[Point],
    merged: Merged,
    cancel: NDArray[np.int32],
    factor: Factor | None = None,
) -> int:
    """Solve some folds along the whole grid; returns the number of linear solves.

    ``full`` holds the full-data solutions along rising C, with repeated rows as one; ``factor`` is
    that of the last, where it is of use (`to_lend`).
    """
    order = rising(task.grid.Cs)
    solved = fold_paths(task, folds, full, merged, cancel, factor)
    good = ledger.solved(
        np.tile(order, len(solved)),
        np.repeat(np.asarray(folds, dtype=np.intp), len(order)),
        np.concatenate([one.coef for one in solved]),
        within=tolerances.aim(task.tol),
    )
    for one, met in zip(solved, good.reshape(len(solved), -1), strict=True):
        for step, point in enumerate(one.points):
            if not met[step]:
                _again(task, ledger, one, int(order[step]), point, merged)
            elif point.fallback:
                ledger.how[order[step], one.fold] = entries.FALLBACK
    return solved[-1].tracker.solves


def fold_paths(
    task: Task,
    folds: Sequence[int],
    full: list[Point],
    merged: Merged,
    cancel: NDArray[np.int32],
    factor: Factor | None = None,
    tracker: Tracker | None = None,
) -> list[FoldPath]:
    """The paths of some folds, which nobody has judged yet.

    ``tracker`` is that of the full data, if nobody else needs it and folds have the same kernel.
    """
    weights = np.tile(task.problem.weight, (len(folds), 1))
    for weight, fold in zip(weights, folds, strict=True):
        weight[task.folds.left_out[fold]] = 0.0
    boxes = np.array([merged.together(weight) for weight in weights]) if merged.any else weights
    Cs = [np.sort(task.fold_Cs(fold), kind="stable") for fold in folds]
    if tracker is None:
        own = merged.problem if task.kernels is None else task.kernels.problem(merged.problem)
        tracker = Tracker(own.weighted(boxes[0]), cancel, task.tol, task.tol >= tolerances.ROUGH)
    if factor is not None and task.kernels is None:
        tracker.factor.lean_on(factor)
    known: Sequence[Point | None] = [None] * len(folds)
    if len(task.grid) == 1:
        gammas = None if task.kernels is None else task.kernels.gammas[np.asarray(folds)]
        known = tracker.several(full[0], np.concatenate(Cs), boxes, gammas)
    solved = []
    for fold, point, C, box, weight in zip(folds, known, Cs, boxes, weights, strict=True):
        points = [point] if point is not None else _follow(task, fold, full, tracker, C, box)
        coef = merged.apart(np.array([point.coef for point in points]), weight)
        solved.append(FoldPath(fold, tracker, weight, box, points, coef))
    return solved


def _follow(
    task: Task, fold: int, full: list[Point], tracker: Tracker, Cs: FloatArray, boxes: FloatArray
) -> list[Point]:
    """The path of one fold; the tracker may have done its work for another."""
    tracker.start_over(boxes)
    start, nobody = full[0], boxes == 0
    if task.kernels is not None:
        task.kernels.turn(tracker.problem, fold)
        coef = np.where(nobody, 0.0, start.coef)
        h = tracker.problem.kernel_rows.times(coef)
        start = Point(start.C, start.state, coef, h, start.b, rate=start.rate)

    def guess(step: int, point: Point) -> StateArray:
        """Rows that agreed with the full data at the last C are expected to do so at this one."""
        last, now = full[max(step - 1, 0)].state, full[step].state
        if np.array_equal(last, now):
            return point.state
        state = np.where(point.state == last, now, point.state)
        state[nobody] = -1
        return state

    return follow(tracker, tracker.adopt(start, float(Cs[0])), Cs, guess)


def _again(task: Task, ledger: Ledger, one: FoldPath, l: int, point: Point, merged: Merged) -> None:
    """A solution that misses the mark: once more, with K c computed afresh."""
    tracker = one.tracker
    if tracker.problem.weight is not one.boxes:  # it has gone on to another fold
        tracker.start_over(one.boxes)
        if task.kernels is not None:
            task.kernels.turn(tracker.problem, one.fold)
    for solve_again in tracker.attempts:
        point = solve_again(point)
        how = entries.FALLBACK if point.fallback else entries.SOLVED
        coef = merged.apart(point.coef, one.weight)
        good = ledger.solved(l, [one.fold], coef[None], how=how)[0]
        if good or point.fallback or not ledger.behind(l, one.fold):
            break
