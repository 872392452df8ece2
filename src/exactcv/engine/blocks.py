"""Folds that leave out several rows: the path of each training set, guided by the full one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from ..judge import ledger as entries
from ..judge.ledger import Ledger
from ..problem.problem import Task
from .path import Point, StateArray, Tracker, follow, rising, states_of

__all__ = ["solve_fold"]


def solve_fold(
    task: Task, ledger: Ledger, fold: int, full: list[Point], cancel: NDArray[np.int32]
) -> int:
    """Solve one fold along the whole grid; returns the number of linear solves.

    ``full`` holds the full-data solutions along rising C.
    """
    problem, Cs = task.problem, task.fold_Cs(fold)
    order = rising(task.grid.Cs)
    tracker = Tracker(problem, cancel, task.tol)
    out = task.folds.left_out[fold]

    def guess(step: int, point: Point) -> StateArray:
        """Rows that agreed with the full data at the last C are expected to do so at this one."""
        last = full[max(step - 1, 0)].state
        state = np.where(point.state == last, full[step].state, point.state)
        state[out] = -1
        return state

    points = follow(tracker, full[0], Cs[order], guess)
    coef, fallback = np.empty((len(order), problem.n)), np.zeros(len(order), dtype=bool)
    for l, point in zip(order, points, strict=True):
        coef[l], fallback[l] = point.coef, point.fallback
    grid = np.arange(len(order))
    folds = np.full(len(order), fold)
    good = ledger.solved(grid, folds, coef, within=tolerances.POLISH * task.tol)
    for l in np.flatnonzero(~good):
        _again(task, ledger, tracker, fold, int(l), coef[l])
    ledger.how[grid[fallback], fold] = entries.FALLBACK
    return tracker.solves


def _again(
    task: Task, ledger: Ledger, tracker: Tracker, fold: int, l: int, coef: np.ndarray
) -> None:
    """A solution that misses the mark: once more, with K c computed afresh."""
    C = float(task.fold_Cs(fold)[l])
    state = states_of(task.problem, C, coef)
    state[task.folds.left_out[fold]] = -1
    solution = tracker.polish(Point(C, state, coef, task.problem.times(coef), 0.0))
    how = entries.FALLBACK if solution.fallback else entries.SOLVED
    if not ledger.solved(l, [fold], solution.coef[None], how=how)[0] and ledger.sound(l):
        solution = tracker.slow_but_sure(solution)
        ledger.solved(l, [fold], solution.coef[None], how=entries.FALLBACK)
