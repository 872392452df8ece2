"""What is asked of several classes, and what one pair of classes sees of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..engine.fold_kernels import RbfOfFolds, rbf_matrix
from ..judge.certificate import Certificate
from ..problem.folds import Folds, folds_of_rows
from ..problem.grid import Grid
from ..problem.problem import Guests, Task
from ..types import BoolArray, FloatArray, IntArray
from .run import KernelRows, Plan

__all__ = ["Classes", "ManyClasses", "PairFit", "PairTask", "Part", "SolvedPair", "cut_down"]


class Classes(Protocol):
    """What the pairs of classes are cut out of, whatever their rows are."""

    @property
    def codes(self) -> NDArray[np.integer]: ...
    @property
    def weight(self) -> FloatArray: ...
    @property
    def folds(self) -> Folds: ...
    @property
    def grid(self) -> Grid: ...
    @property
    def n_classes(self) -> int: ...
    @property
    def pairs(self) -> list[tuple[int, int]]: ...

    @property
    def every_fold(self) -> bool:
        """Does a fold have a model of its own also where it leaves out no row of a pair?"""
        ...


@dataclass(frozen=True)
class ManyClasses:
    """What is to be cross-validated: a ``Task`` for any number of classes, checked before.

    Attributes
    ----------
    rows : KernelRows
        Of all classes.
    codes : (n,) int
        Classes 0 to k - 1; each needs a row of positive weight in every training set, except
        that leave-one-out of several classes may leave out the only one.
    weight : (n,)
    folds, grid : Folds, Grid
        Of all rows.
    plan : Plan
    ties_are_wrong : bool
        Does a left-out value of zero (up to 1e-9) vote against the row's own class?  If not, for
        the second class of its pair, as in LIBSVM.
    gammas : (F + 1,), optional
        Where given, ``rows`` holds squared distances, and the kernel of fold f is
        exp(-gammas[f] D); the last is for the full data, whose solution is a guide to the folds.
        For method "exact" and folds that leave out several rows.
    """

    rows: KernelRows
    codes: NDArray[np.integer]
    weight: FloatArray
    folds: Folds
    grid: Grid
    plan: Plan = field(default_factory=Plan)
    ties_are_wrong: bool = True
    gammas: FloatArray | None = None

    @property
    def n_classes(self) -> int:
        return int(self.codes.max()) + 1

    def moved(self, order: IntArray, place: IntArray) -> ManyClasses:
        """The same where ``rows`` are in that order (`by_class`) already, and nothing else is."""
        codes, weight = self.codes[order], self.weight[order]
        return replace(self, codes=codes, weight=weight, folds=self.folds.moved(place))

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """(0, 1), (0, 2), ..., (k-2, k-1): LIBSVM's order."""
        return list(combinations(range(self.n_classes), 2))

    def pair(self, first: int, second: int) -> PairTask:
        """The problem of one pair of classes."""
        inside = (self.codes == first) | (self.codes == second)
        rows, everyone = np.flatnonzero(inside), bool(inside.all())
        signs = np.where(self.codes[rows] == second, 1.0, -1.0)
        part, own = cut_down(self, inside), self.rows if everyone else self.rows.part(rows)
        guests = kernels = gammas = None
        if self.gammas is not None:
            gammas = np.append(self.gammas[part.kept], self.gammas[-1])
            kernels = RbfOfFolds(self.rows.K, rows, own.K, gammas)
            own = replace(own, K=rbf_matrix(own.K, float(gammas[-1])))
        if not everyone:
            test = tuple(self.folds.pair_rows[at] for at in part.guest_at)
            guests = Guests(self.rows.K, rows, test, gammas)
        task = self.plan.task(own, signs, self.weight[rows], part.folds, self.grid, guests)
        task = task if kernels is None else replace(task, kernels=kernels)
        return PairTask(first, second, inside, rows, part, task)

    @property
    def every_fold(self) -> bool:
        scaled = self.grid.scale_with_fold and not self.folds.leave_one_out
        return scaled or self.gammas is not None


@dataclass(frozen=True)
class PairFit:
    """The full-data models of one pair: on ``rows``, f = K[:, rows] coef + intercept."""

    first: int
    second: int
    rows: IntArray
    coef: FloatArray  # (L, len(rows)), positive for the second class
    intercept: FloatArray  # (L,)

    def of_rows(self, order: IntArray) -> PairFit:
        """The same where row i is row order[i] of the data."""
        rows = order[self.rows]
        sorted_rows = np.argsort(rows, kind="stable")
        coef = np.ascontiguousarray(self.coef[:, sorted_rows])
        return replace(self, rows=rows[sorted_rows], coef=coef)


@dataclass(frozen=True)
class Part:
    """What one pair sees of the folds.

    kept : the folds (numbered as the caller does) that it solves; the others leave out none of its
        rows, and their model is that of the full data.
    own : which of the T tests are on its own rows.
    alone : which of the T tests are on the only row of one of its classes: without that row
        there is nothing to train on, and the pair votes for the other class.
    guest_at : for each fold kept, the tests on other rows, as positions along T; nothing in
        leave-one-out, where all of these are of the full data's model.
    """

    folds: Folds
    kept: IntArray
    own: BoolArray
    alone: BoolArray
    guest_at: tuple[IntArray, ...]


@dataclass(frozen=True)
class PairTask:
    """One pair of classes: which rows are ``inside``, their numbers, and what is to be solved."""

    first: int
    second: int
    inside: BoolArray
    rows: IntArray
    part: Part
    task: Task

    @cached_property
    def place(self) -> IntArray:
        """The number that each row inside has among those."""
        return np.asarray(np.cumsum(self.inside) - 1)


@dataclass(frozen=True)
class SolvedPair:
    """One pair of classes, cross-validated.

    for_second : (L, T), does it vote for the second class?
    decision : (L, T), or empty unless wanted.
    at_bound : (L,), share of the coefficients of the full data that are at their bound.
    counts : how many (grid point, fold) slots were settled how, and what the method counted.
    """

    fit: PairFit
    part: Part
    for_second: BoolArray
    decision: FloatArray
    certificate: Certificate
    at_bound: FloatArray
    counts: dict[str, int]


def cut_down(task: Classes, inside: BoolArray) -> Part:
    """The folds as one pair sees them."""
    folds = task.folds
    alone = _alone(task, inside)[folds.pair_rows]
    own = inside[folds.pair_rows] & ~alone
    if inside.all():
        nobody = (np.zeros(0, dtype=np.intp),) * len(folds)
        return Part(folds, np.arange(len(folds)), own, alone, nobody)
    place = np.cumsum(inside) - 1  # among the rows of the pair
    if folds.leave_one_out and own.any():
        kept = np.flatnonzero(own)
        pick = folds_of_rows(int(inside.sum()), place[folds.pair_rows[kept]])
        return Part(pick, kept, own, alone, ())
    left_out = _among(inside, place, folds.out_rows, folds.out_offsets)
    test = _among(inside, place, folds.pair_rows, folds.offsets)
    # A fold that tests its own training rows is kept even if it leaves none of them out.
    touched = [len(out) or len(rows) for out, rows in zip(left_out, test, strict=True)]
    solved = np.ones(len(folds), bool) if task.every_fold else np.array(touched, bool)
    solved[folds.pair_folds[alone]] = False
    kept, n = np.flatnonzero(solved), int(place[-1]) + 1
    if not len(kept):  # no fold touches this pair: one that leaves nothing out, for the full data
        nothing = (np.zeros(0, dtype=np.intp),)
        return Part(Folds(n, nothing, nothing, np.ones(1)), kept, own, alone, nothing)
    ratio = None if folds.leave_one_out else folds.ratios[kept]
    which = kept.tolist()
    pick = Folds(n, tuple(left_out[f] for f in which), tuple(test[f] for f in which), ratio)
    others = np.flatnonzero(~own)
    ends = np.searchsorted(others, folds.offsets).tolist()
    return Part(pick, kept, own, alone, tuple(others[ends[f] : ends[f + 1]] for f in which))


def _among(inside: BoolArray, place: IntArray, rows: IntArray, offsets: IntArray) -> list[IntArray]:
    """Of lists of rows, one after the other, those inside, by their places."""
    mine = inside[rows]
    found, ends = place[rows[mine]], np.concatenate([[0], np.cumsum(mine)])[offsets]
    return [found[start:stop] for start, stop in pairwise(ends.tolist())]


def _alone(task: Classes, inside: BoolArray) -> BoolArray:
    """Rows of a pair that are the only ones of their class, if they may be left out."""
    if task.n_classes == 2 or not task.folds.leave_one_out:
        return np.zeros(task.folds.n, dtype=bool)
    some = task.weight > 0
    sizes = np.bincount(task.codes[some], minlength=task.n_classes)
    return inside & some & (sizes[task.codes] == 1)
