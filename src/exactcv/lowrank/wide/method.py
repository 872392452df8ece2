"""Linear kernels with more columns than there is room for matrices of them, and sparse rows.

1. ``solve.py`` goes along the grid, each full-data solution from the one before.
2. Folds start from the full-data solution, with the boxes of their rows empty.
3. Single rows are left out by ``leave_out.py``: most labels are proved, and of the rest each is
   solved on the rows near the margin.  That takes the kernel matrix of the rows *on* the margin, so
   if they are too many, leave-one-out is refused before anything is spent on it.

In memory are X once, some vectors as long as its sides for each thread, and in 3 the matrices.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import isqrt
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

from ...exceptions import InputError, MemoryLimitError
from ...judge.features import lengths
from ...judge.ledger import HOW
from ...runtime.memory import readable
from ...runtime.threads import Workers
from ...types import FloatArray, IntArray
from ..entries import Entries
from ..features import OwnColumns
from ..rows.sources import ArrayRows
from ..task import FeatureTask
from ..verdict import Spread
from .leave_out import Found, LeaveRowsOut
from .problem import WideProblem, WideSolution
from .solve import solve

__all__ = ["METHOD", "TooManyOnMargin", "Wide", "most_on_margin"]

# Rows in play where single rows are left out, at most, which is a matter of hours.  Their matrices
# may take this share of the memory; one is shared by all threads, each has so many more of its own
# (measured: 3.5 of rows in play and guests), and before them proofs have theirs.
MOST, SHARED, OWN, SHARE = 16_000, 1, 5, 0.5
# Rows in play besides those on the margin, at least.
FEWEST = 64
# Numbers as long as X has rows and columns that a thread works with.
VECTORS = 40
# The same for each solution that is compared with all rows, and how many are at a time.
TABLES, TOGETHER = 6, 64
# Rows left out at a time: the more, the less often what they share is worked out; but those that
# are not in play join as guests, which are to be few.
# In so many parts at least, however many threads there are: figures must not depend on them.
BLOCK, LEAST_BLOCK, GUESTS, PARTS = 1024, 64, 8, 8
# Rows that long at most go as they are, and products of longer ones are refused.
SHORT, LONG, LONGEST = 0.1, 10.0, 1e75
_BOUND, _FALLBACK = HOW.index("bound"), HOW.index("fallback")


class TooManyOnMargin(MemoryLimitError):
    """Leave-one-out is refused.

    Attributes
    ----------
    C, free : float, int
        Where most rows are on the margin, and how many.
    most : int
        So many may be.
    possible : list of float
        C of the grid that can be done.
    """

    def __init__(self, message: str, C: float, free: int, most: int, possible: list[float]):
        super().__init__(message)
        self.C, self.free, self.most, self.possible = C, free, most, possible


def most_on_margin(budget: int) -> int:
    """How many rows may be on the margin where single rows are left out.

    Examples
    --------
    >>> most_on_margin(10**9), most_on_margin(10**12)
    (3163, 15936)
    """
    return max(_most_in_play(budget) - FEWEST, 0)


def _most_in_play(budget: int) -> int:
    return min(MOST, isqrt(int(SHARE * budget) // (8 * (SHARED + OWN))))


class Wide:
    """Exact cross-validation of a linear SVM whose columns are too many for matrices of them."""

    def run(self, task: FeatureTask, entries: Entries, workers: Workers) -> dict[str, Any]:
        """Fill the entries; returns what was counted, ``timings`` among it."""
        start = perf_counter()
        X = _rows(task, workers.n_threads)
        problem, tol = task.problem, task.tol
        entries.features(OwnColumns(problem.source.p))
        X, unit = _in_units(X)
        weight = problem.weight * unit**2
        base = WideProblem(X, problem.loss(problem.y), weight, problem.fit_intercept)
        workers.watch.say(f"path, {len(task.grid)} grid points")
        timings = {"kernel": perf_counter() - start}
        before = perf_counter()
        solved = _path(base, task.grid.Cs, tol, workers)
        entries.full([one.outside(unit) for one in solved])
        timings["path"] = perf_counter() - before
        workers.watch.say("folds")
        before = perf_counter()
        if task.folds.every_row_alone:
            escaped = _Alone(task, base, solved, entries, workers).run()
        else:
            escaped = 0
            _folds(task, base, solved, entries, workers, unit)
        timings["folds"] = perf_counter() - before
        free = [_free(base, one) for one in solved]
        steps = sum(one.steps for one in solved)
        return {"steps": steps, "free": free, "escaped": escaped, "timings": timings}


METHOD = Wide()


def _rows(task: FeatureTask, n_threads: int) -> Any:
    """X, checked; it is not copied if it is as it should be."""
    source, parts, entries = task.problem.source, [], 0
    as_it_is = isinstance(source, ArrayRows) and source.X.dtype == np.float64
    for k in range(len(source.bounds) - 1):
        part = source.read(k)
        entries += part.nnz
        _check_memory(task, entries, n_threads)
        if not as_it_is:
            parts.append(part)
    X = source.X if isinstance(source, ArrayRows) and as_it_is else sparse.vstack(parts, "csr")
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _in_units(X: Any) -> tuple[Any, float]:
    """X in units of a power of two about as large as its longest row, and that unit.

    The steps of ``solve.py`` have roundings of their own that suit rows of such a length.  Rows
    that are nearly so are not copied.
    """
    with np.errstate(over="ignore"):
        longest = float(lengths(X).max(initial=0.0))
    if not longest <= LONGEST:
        raise InputError(
            "inner products of the rows of X are too large: standardise its columns (without "
            "taking means off, as in sklearn.preprocessing.MaxAbsScaler), or leave out those of "
            "huge numbers"
        )
    if SHORT <= longest <= LONG or longest == 0.0:
        return X, 1.0
    unit = float(2.0 ** np.round(np.log2(max(longest, 1.0 / LONGEST))))
    return sparse.csr_matrix((X.data / unit, X.indices, X.indptr), X.shape, copy=False), unit


def _check_memory(task: FeatureTask, entries: int, n_threads: int) -> None:
    n, p = task.problem.n, task.problem.source.p
    need = 12 * entries + 8 * (VECTORS * n_threads + len(task.grid)) * (n + p)
    if need > task.budget:
        raise MemoryLimitError(
            f"{n} rows with {p} columns and {entries} entries (or more) need about "
            f"{readable(need)} of memory, but the limit is {readable(task.budget)} (memory_limit, "
            "or half of what is free)"
        )


def _free(problem: WideProblem, solved: WideSolution) -> int:
    """How many rows are on the margin."""
    levels = problem.loss.coefficient_levels(solved.C * problem.box)
    return int(np.count_nonzero((solved.coef > levels[:, 1]) & (solved.coef < levels[:, 0])))


def _path(base: WideProblem, Cs: FloatArray, tol: float, workers: Workers) -> list[WideSolution]:
    """Full-data solutions, in grid order."""
    order, found = np.argsort(Cs, kind="stable"), {}
    coef, b, last = np.zeros(base.n), 0.0, 0.0
    for l in order:
        C = float(Cs[l])
        problem = base.with_box(C * base.box)
        if last:
            bound = np.abs(coef) >= last * base.box
            coef = np.where(bound, np.sign(coef) * problem.box, coef)
        one = solve(problem, C, tol, workers.cancel, coef, b)
        found[int(l)], coef, b, last = one, one.coef, one.intercept, C
    return [found[l] for l in range(len(Cs))]


# --- folds of several rows ------------------------------------------------------------------------


def _folds(
    task: FeatureTask,
    base: WideProblem,
    solved: list[WideSolution],
    entries: Entries,
    workers: Workers,
    unit: float,
) -> None:
    """Every fold at every grid point, from the full-data solutions."""
    folds, n_points = task.folds, len(task.grid)

    def work(item: tuple[int, int]) -> WideSolution:
        f, l = item
        C = float(task.grid.for_fold(folds, f)[l])
        box = C * base.box
        box[folds.left_out[f]] = 0.0
        one = solved[l]
        coef = np.where(np.abs(one.coef) >= one.C * base.box, np.sign(one.coef) * box, one.coef)
        return solve(base.with_box(box), C, task.tol, workers.cancel, coef, one.intercept)

    for f in range(len(folds)):
        found = workers.map(work, [(f, l) for l in range(n_points)])
        test = folds.test[f]
        pairs = slice(int(folds.offsets[f]), int(folds.offsets[f]) + len(test))
        for l, one in enumerate(found):
            entries.decide(l, pairs, one.u[test])
            entries.model(l, f, one.outside(unit).theta)
            entries.note(l, f, one.kkt, one.relative_gap)
        entries.settle("solved", n_points)
        entries.show({f: np.array([one.outside(unit).theta for one in found])})


# --- single rows ----------------------------------------------------------------------------------


class _Alone:
    """Leave-one-out, one grid point after the other."""

    def __init__(
        self,
        task: FeatureTask,
        base: WideProblem,
        solved: list[WideSolution],
        entries: Entries,
        workers: Workers,
    ):
        self.task, self.base, self.solved = task, base, solved
        self.entries, self.workers = entries, workers
        self.want_decision = entries.decision is not None
        self.most = _most_in_play(task.budget)
        self.spread, self.distance = _spread(base)
        room = int(SHARE * task.budget) // (8 * TABLES * sum(base.X.shape) * workers.n_threads)
        self.together = max(1, min(TOGETHER, room))

    def run(self) -> int:
        """Settle every row at every grid point; how many had to be solved over all rows."""
        self._check_margins()
        return sum(self._at(l) for l in range(len(self.solved)))

    def _check_margins(self) -> None:
        """Refuse what has too many rows on the margin, naming the C that go."""
        free = np.array([_free(self.base, one) for one in self.solved])
        least = min(FEWEST, self.base.n - int(free.max(initial=0)))
        large = free + least > self.most
        if not large.any():
            return
        l, p = int(np.argmax(free)), self.base.X.shape[1]
        possible = [one.C for one, no in zip(self.solved, large, strict=True) if not no]
        some = ", ".join(f"{C:.4g}" for C in possible)
        fit = f"of this grid C={some} can be done" if some else "no C of this grid fits"
        raise TooManyOnMargin(
            f"{free[l]} rows are on the margin at C={self.solved[l].C:.4g}, and leave-one-out "
            f"needs the kernel matrix of them: with kernel='linear' and {p} columns that goes up "
            f"to {max(self.most - FEWEST, 0)} {self._why()}.  Use smaller C ({fit}), folds of "
            "several rows (cv=5: any C), fewer rows, or fewer columns "
            "(sklearn.decomposition.TruncatedSVD)",
            self.solved[l].C,
            int(free[l]),
            self.most - FEWEST,
            possible,
        )

    def _why(self) -> str:
        """What limits the rows on the margin, and what more memory would do."""
        if self.most == MOST:
            return "and no further, whatever the memory"
        return (
            f"within {readable(self.task.budget)} (memory_limit, or half of what is free); "
            f"{readable(8 * (SHARED + OWN) * MOST**2 / SHARE)} do for {MOST - FEWEST}, the most"
        )

    def _at(self, l: int) -> int:
        task, one, workers = self.task, self.solved[l], self.workers
        problem = self.base.with_box(one.C * self.base.box)
        leave = LeaveRowsOut(
            problem, one, self.spread, self.distance, self.most, task.tol, self.want_decision,
            workers.cancel, self.together,
        )  # fmt: skip
        found, left = leave.proved()
        if len(left) and not self.want_decision:
            proved = left[leave.shared(left)]
            found.settled[proved] = True
            found.how[proved] = _BOUND
            left = np.flatnonzero(~found.settled)
        for count in leave.tiers():
            if not len(left):
                break
            play, threads = leave.in_play(count), self._threads(count)
            size = min(BLOCK, max(count // GUESTS, LEAST_BLOCK), -(-len(left) // PARTS))
            blocks = list(_blocks(left, size))
            done = workers.map(partial(leave.leave_out, play), blocks, threads)
            for rows, part in zip(blocks, done, strict=True):
                found.put(rows, part)
            left = np.flatnonzero(~found.settled)
        self._by_all_rows(l, problem, found, left)
        self._enter(l, found)
        return len(left)

    def _threads(self, count: int) -> int:
        """How many threads there is room for with so many rows in play."""
        matrices = SHARE * self.task.budget / (8 * count**2)
        return max(1, min(self.workers.n_threads, int((matrices - SHARED) / OWN)))

    def _by_all_rows(self, l: int, problem: WideProblem, found: Found, left: IntArray) -> None:
        """What is left, each over all rows."""
        one, tol = self.solved[l], self.task.tol

        def work(j: int) -> WideSolution:
            box, coef = problem.box.copy(), one.coef.copy()
            box[j] = coef[j] = 0.0
            return solve(
                problem.with_box(box), one.C, tol, self.workers.cancel, coef, one.intercept
            )

        for j, other in zip(left, self.workers.map(work, left), strict=True):
            found.value[j], found.how[j] = other.u[j], _FALLBACK
            found.kkt[j], found.gap[j] = other.kkt, other.relative_gap
            found.wrong[j] = self.task.problem.target.wrong(self.task.problem.y[[j]], other.u[[j]])[
                0
            ]

    def _enter(self, l: int, found: Found) -> None:
        entries, rows = self.entries, self.task.folds.pair_rows
        values = found.value[rows] if self.want_decision else None
        entries.enter(l, slice(None), found.wrong[rows], values)
        for name, count in zip(HOW, np.bincount(found.how[rows], minlength=len(HOW)), strict=True):
            entries.settle(name, int(count))
        entries.note_some(np.full(len(rows), l), rows, found.kkt[rows], found.gap[rows])


def _blocks(rows: IntArray, size: int) -> Iterator[IntArray]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _spread(problem: WideProblem) -> tuple[Spread, FloatArray]:
    """A centre of the rows, and how far each is from it."""
    n, p = problem.X.shape
    centre = np.zeros(p)
    if problem.fit_intercept:
        centre = problem.columns @ np.full(n, 1.0 / n)
    around = Spread(centre, 0.0, problem.fit_intercept)
    distance = around.distance(problem.X)
    return Spread(centre, float(distance.max()), problem.fit_intercept), distance
