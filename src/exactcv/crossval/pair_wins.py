"""Who wins against whom when two rows are left out together, along the grid.

With method "exact" the pairs are gone through grid point after grid point, from the solutions on
all rows and without one row, and only which of two values is larger has to be found out, or proved
(``engine/leave_two_out.py``).  Other methods solve every pair as a fold of its own, some at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..engine.leave_two_out import LeaveTwoOut
from ..engine.path import Point
from ..exceptions import Interrupted
from ..judge.certificate import Certificate
from ..judge.ledger import HOW
from ..problem.folds import Folds
from ..problem.grid import Grid
from ..problem.problem import Task
from ..runtime.threads import Workers
from ..tolerances import TIE
from ..types import FloatArray, IntArray
from .all_pairs import MOST_ROWS, each_point
from .run import run

__all__ = ["Played", "Tally", "pair_folds", "pair_values", "play"]

VALUES = 1 << 22  # left-out values held at a time


@dataclass(frozen=True)
class Played:
    """What came of all pairs, at the grid points of ``grid``."""

    grid: Grid
    tally: Tally
    pooled_auc: FloatArray
    certificate: Certificate
    stats: dict[str, int]
    n_pairs: int


def play(task: Task, method: str, tournament: bool, workers: Workers) -> Played:
    """Compare the rows of every pair.

    Ctrl-C becomes ``Interrupted``; its ``partial`` are the grid points that are complete, if any.
    """
    problem = task.problem
    quick = method == "exact" and problem.psd and problem.bounded and (problem.weight > 0).all()
    if quick and task.folds.every_row_alone and problem.n <= MOST_ROWS:
        return _by_grid_point(task, tournament, workers)
    try:
        return _by_pair(task, method, tournament, workers)
    except KeyboardInterrupt as stop:
        raise Interrupted("interrupted before all pairs were compared") from stop


# ---- grid point by grid point --------------------------------------------------------------------


class _Book:
    """What is known of each grid point; threads write different rows."""

    def __init__(self, task: Task, tournament: bool):
        n, n_grid = task.problem.n, len(task.grid)
        self.task, self.tally = task, Tally(task.problem.y, n_grid, tournament)
        self.kkt, self.gap = np.full((n_grid, n), np.nan), np.full((n_grid, n), np.nan)
        self.value = np.full((n_grid, n), np.nan)  # without the row alone
        self.counts = np.zeros((n_grid, len(HOW) - 1), dtype=np.intp)
        self.done = np.zeros(n_grid, dtype=bool)
        between = task.problem.y != task.problem.y[:, None]
        self.asked = np.ones_like(between) if tournament else between

    def enter(self, two: LeaveTwoOut, l: int, point: Point) -> None:
        asked = self.asked & ~np.eye(len(self.asked), dtype=bool)
        out = two.order(l, point, asked)
        self.tally.enter(l, out.sign)
        self.kkt[l], self.gap[l] = out.kkt, out.gap
        self.value[l] = two.ledger.decision[l]
        self.counts[l] = out.counts.sum(axis=0) // 2
        self.done[l] = True

    def played(self) -> Played:
        """All there is, at the grid points that are done."""
        points, task = np.flatnonzero(self.done), self.task
        kkt, gap = self.kkt[points], self.gap[points]
        failed = np.argwhere(~((kkt <= task.tol) & (gap <= task.tol)))
        unresolved = [(int(l), int(row)) for l, row in failed]
        counts = dict(zip(HOW[1:], self.counts[points].sum(axis=0).tolist(), strict=True))
        return Played(
            grid=task.grid.part(points),
            tally=self.tally.part(points),
            pooled_auc=_pooled(task.problem.y, self.value[points]),
            certificate=Certificate(
                kkt.max(axis=1), gap.max(axis=1), not unresolved, unresolved, task.tol
            ),
            stats={"missing": 0, **counts},
            n_pairs=int(np.count_nonzero(np.triu(self.asked, 1))),
        )


def _by_grid_point(task: Task, tournament: bool, workers: Workers) -> Played:
    book, n = _Book(task, tournament), task.problem.n
    workers.watch.say(f"{len(task.grid)} grid points, {n * (n - 1) // 2} pairs of rows")
    try:
        each_point(task, workers, book.enter)
    except KeyboardInterrupt as stop:
        done, count = int(book.done.sum()), len(task.grid)
        raise Interrupted(
            f"interrupted with {done} of {count} grid points complete; they are in the `partial` "
            "of this exception",
            book.played() if done else None,
        ) from stop
    return book.played()


# ---- pair by pair --------------------------------------------------------------------------------


def _by_pair(task: Task, method: str, tournament: bool, workers: Workers) -> Played:
    alone = run(task, method, workers)  # leave-one-out, for the pooled AUC
    tally = Tally(task.problem.y, len(task.grid), tournament)
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
    return Played(task.grid, tally, pooled, _worst(certificates), stats, n_pairs)


def pair_values(
    task: Task, pairs: IntArray, method: str, workers: Workers
) -> tuple[FloatArray, Certificate, dict[str, int]]:
    """What models without both rows of each pair say of them: values (L, pairs, 2)."""
    without = replace(task, folds=pair_folds(len(task.problem.y), pairs))
    ran = run(without, method, workers)
    values = ran.ledger.decision.reshape(len(task.grid), len(pairs), 2)
    return values, ran.certificate, ran.ledger.counts()


def pair_folds(n: int, pairs: IntArray) -> Folds:
    """One fold a pair, tested on both of its rows."""
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


class Tally:
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

    def enter(self, l: int, sign: NDArray[np.int8]) -> None:
        """All pairs at one grid point: the sign of u_i - u_j at (i, j)."""
        won = 0.5 * (sign + 1.0)
        np.fill_diagonal(won, 0.0)
        other = self.y != self.y[:, None]
        self.against[l] = np.where(other, won, 0.0).sum(axis=1)
        if self.wins is not None:
            self.wins[l] = won.sum(axis=1)

    def part(self, points: IntArray) -> Tally:
        """Some of the grid points."""
        some = Tally(self.y, len(points), self.wins is not None)
        some.against[:] = self.against[points]
        if self.wins is not None and some.wins is not None:
            some.wins[:] = self.wins[points]
        return some

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
        unproved=sum(part.unproved for part in found),
    )
