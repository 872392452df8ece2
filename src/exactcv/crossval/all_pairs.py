"""Grid point after grid point: what is to be done with all pairs of rows there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..algorithms.exact import METHOD
from ..engine.leave_two_out import LeaveTwoOut
from ..engine.merged import Merged
from ..engine.path import Point, Tracker, rising
from ..problem.problem import Task
from ..runtime.threads import Workers

__all__ = ["MOST_ROWS", "each_point"]

# Beyond so many rows the tables of pairs, some n x n numbers in each thread, are too large.
MOST_ROWS = 2500


class _Points:
    """Grid points that are done; see ``runtime.progress.Filling``."""

    def __init__(self, count: int):
        self.count, self.done = count, 0

    def fraction(self) -> float:
        return self.done / self.count


def each_point(
    task: Task, workers: Workers, work: Callable[[LeaveTwoOut, int, Point], None]
) -> LeaveTwoOut:
    """The path on all rows, then ``work`` at every grid point: its index, and the solution there.

    Returns what has left the rows out; its ledger knows the models without one row.
    """
    merged = workers.run(lambda: Merged.of(task.problem))
    two = LeaveTwoOut(task, workers.cancel, merged)
    tracker = Tracker(merged.problem, workers.cancel, task.tol)
    points = workers.run(lambda: METHOD.path(task, two.ledger, tracker, merged))
    order, seen = rising(task.grid.Cs), _Points(len(task.grid))
    workers.watch.follow(seen)

    def one(step: int) -> None:
        work(two, int(order[step]), points[step])
        seen.done += 1

    # The grid point that others follow from is done before them.
    steps = list(reversed(range(len(order))))
    first = two.first
    if first is not None:
        start = int(np.flatnonzero(order == first)[0])
        steps.remove(start)
        workers.run(lambda: one(start))
    workers.map(one, steps)
    return two
