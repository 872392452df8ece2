"""Folds that leave out several rows: the path of each training set, guided by the full one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from ..judge import ledger as entries
from ..judge.ledger import Ledger
from ..problem.problem import Task
from ..types import FloatArray
from .merged import Merged
from .path import Point, StateArray, Tracker, follow, rising

__all__ = ["solve_fold"]


def solve_fold(
    task: Task,
    ledger: Ledger,
    fold: int,
    full: list[Point],
    merged: Merged,
    cancel: NDArray[np.int32],
) -> int:
    """Solve one fold along the whole grid; returns the number of linear solves.

    ``full`` holds the full-data solutions along rising C, with repeated rows as one.
    """
    order, Cs = rising(task.grid.Cs), task.fold_Cs(fold)
    weight = task.problem.weight.copy()
    weight[task.folds.left_out[fold]] = 0.0
    problem = merged.problem.weighted(merged.together(weight))
    tracker = Tracker(problem, cancel, task.tol)

    def guess(step: int, point: Point) -> StateArray:
        """Rows that agreed with the full data at the last C are expected to do so at this one."""
        last = full[max(step - 1, 0)].state
        state = np.where(point.state == last, full[step].state, point.state)
        state[problem.weight == 0] = -1
        return state

    start = tracker.adopt(full[0], float(Cs[order[0]]))
    points = follow(tracker, start, Cs[order], guess)
    coef = merged.apart(np.array([point.coef for point in points]), weight)
    good = ledger.solved(
        order, np.full(len(order), fold), coef, within=tolerances.POLISH * task.tol
    )
    for step, point in enumerate(points):
        if not good[step]:
            _again(ledger, tracker, fold, int(order[step]), point, merged, weight)
        elif point.fallback:
            ledger.how[order[step], fold] = entries.FALLBACK
    return tracker.solves


def _again(
    ledger: Ledger,
    tracker: Tracker,
    fold: int,
    l: int,
    point: Point,
    merged: Merged,
    weight: FloatArray,
) -> None:
    """A solution that misses the mark: once more, with K c computed afresh."""
    for solve_again in (tracker.polish, tracker.slow_but_sure):
        point = solve_again(point)
        how = entries.FALLBACK if point.fallback else entries.SOLVED
        coef = merged.apart(point.coef, weight)
        good = ledger.solved(l, [fold], coef[None], how=how)[0]
        if good or point.fallback or not ledger.behind(l, fold):
            break
