"""The ledger: methods hand in coefficients, the ledger works out what they mean.

A method never reports a decision value or a residual.  It reports, for a fold and a C, the
coefficients and the intercept; the ledger recomputes  u = K c + b  from those, and from u the
left-out decision values, the KKT violation and the duality gap (``certificate.py``).  Folds whose
label was proved without a solution, and folds that removing the row does not change, are entered
as such.  K c may be claimed; claims are checked, and what they may be off by is charged for
(``claims.py``).

Entries are disjoint slots of preallocated arrays, so threads may write at the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .._core import _residuals
from .._core._gather import combine
from .._core.reference.residuals import ROUNDING
from ..problem.losses import PiecewiseLinear
from ..problem.problem import Guests, Task
from ..problem.units import Units
from ..tolerances import AT_BOUND, ROUGH, TIE
from ..types import FloatArray, IntArray
from .certificate import Certificate, attainable, judge_for, relative_gap, without
from .claims import Claims
from .piecewise_linear import PiecewiseLinearJudge

__all__ = ["FALLBACK", "HOW", "PROVED", "SOLVED", "UNCHANGED", "Ledger", "Seen"]

HOW = ("missing", "unchanged", "bound", "solved", "fallback")
UNCHANGED, PROVED, SOLVED, FALLBACK = 1, 2, 3, 4

# So many leave-one-out folds are judged at a time, or as many as have so many values.
CACHED_FOLDS, CACHED_VALUES = 64, 1 << 16
# A fold is about as good as the full data if its figures are at most so many times theirs.
ABOUT = 10.0
# Rows of K copied at a time when only some columns matter.
PANEL_ROWS = 256
# How many times the size of a solution that of the full data's may be for its K c to serve both.
DROWNED = 4.0


class Seen(Protocol):
    """Is shown solutions of folds as they are entered, with their h = K c and intercepts.

    What it wants to keep of the arrays it has to copy.  Of solutions that are entered at several
    grid points the intercepts are those at the first.
    """

    def __call__(
        self,
        ledger: Ledger,
        folds: IntArray,
        coef: FloatArray,
        h: FloatArray,
        intercept: FloatArray,
        /,
    ) -> None: ...


@dataclass(frozen=True)
class _Where:
    """At which grid points solutions that hold at several are judged: (B, L).

    ``proportional``: what is given are those at the first; elsewhere they are those in units of C.
    """

    ls: IntArray
    wanted: NDArray[np.bool_]
    proportional: bool = False

    def part(self, which: slice) -> _Where:
        return replace(self, wanted=self.wanted[which])

    def scale(self, Cs: FloatArray) -> FloatArray:
        """How many times those at the first."""
        own = Cs[self.ls]
        return np.asarray(own / own[0]) if self.proportional else np.ones(len(own))


class Ledger:
    """Results of one cross-validation, slot by slot.

    Parameters
    ----------
    task : Task
    seen : callable, optional
        Shown the solutions of folds when they are entered.
    claims : Claims, optional
        Of the problem's K, where several ledgers are to share what it takes to check claims.

    Attributes
    ----------
    coef, intercept, objective : (L, n), (L,), (L,)
        The full-data solutions, and their objective in the papers' form.
    h : (L, n)
        K coef for the full-data solutions.
    decision, wrong : (L, T)
        Along ``folds.pair_rows``; decision is NaN where only the label is known.
    kkt, gap : (L, F + 1)
        Column F is the full-data problem.
    gap_abs : (L, F + 1)
        The gap before it is divided by the objective (see ``certificate.implied_accuracy``).
    how : (L, F) uint8
        Index into ``HOW``.
    guests : list of F arrays (L, G_f)
        Decision values of each fold for the guests it is tested on; none in leave-one-out.
    seconds : float
        Time spent here, added up over threads.
    """

    def __init__(self, task: Task, seen: Seen | None = None, claims: Claims | None = None):
        problem, folds = task.problem, task.folds
        n, n_grid, n_folds = problem.n, len(task.grid), len(folds)
        n_pairs = len(folds.pair_rows)
        self.task, self._seen = task, seen
        self.seconds = 0.0
        self.coef = np.zeros((n_grid, n))
        self.intercept = np.zeros(n_grid)
        self.objective = np.full(n_grid, np.nan)
        self.h = np.zeros((n_grid, n))
        self.decision = np.full((n_grid, n_pairs), np.nan)
        self.wrong = np.zeros((n_grid, n_pairs), dtype=bool)
        self.kkt = np.full((n_grid, n_folds + 1), np.nan)
        self.gap = np.full((n_grid, n_folds + 1), np.nan)
        self.gap_abs = np.full((n_grid, n_folds + 1), np.nan)
        self.how = np.zeros((n_grid, n_folds), dtype=np.uint8)
        # Leave-one-out: a row's own fold says nothing of the others.
        visiting = () if task.guests is None or folds.leave_one_out else task.guests.test
        self.guests = [np.full((n_grid, len(test)), np.nan) for test in visiting]
        self._lock = threading.Lock()
        self._scratch = threading.local()
        self._judge = judge_for(problem)
        self._claims = claims
        self._alike: tuple[IntArray, IntArray] | None = None
        # In leave-one-out, pair f is fold f: the row it leaves out.
        self._own = folds.pair_rows if folds.leave_one_out else None
        self._floor = np.zeros(n_grid)  # of the full data's figures
        self._length = np.sqrt(np.maximum(problem.diagonal, 0.0))  # of each row in feature space
        self._has_rows = problem.rows is None and problem.symmetric  # to find K c of neighbours by

    # ---- entries ------------------------------------------------------------------------------

    def full(
        self,
        l: int | IntArray,
        coef: FloatArray,
        intercept: float | FloatArray | None = None,
        *,
        within: float | None = None,
    ) -> NDArray[np.bool_]:
        """Enter full-data solutions; returns which of them need not be tried again.

        Those are the ones that meet the tolerance, or miss it by no more than rounding explains.

        An entry that is there already is replaced only by a better one; in `solved` too, but for
        leave-one-out folds whose K c follows from the full data's: those are entered once, and what
        is solved again (FALLBACK) is judged from scratch.

        ``l`` is a grid index with one solution, or an array of them with one solution a row; many
        at a time are much cheaper to multiply by K.  ``intercept`` and ``within`` as in `solved`.
        """
        with self._timed():
            where = np.atleast_1d(np.asarray(l, dtype=np.intp))
            coef = np.ascontiguousarray(np.atleast_2d(coef), dtype=float)
            problem, Cs = self.task.problem, self.task.grid.Cs[where]
            h = self._values(coef, Cs)
            b = self._given(intercept)
            b = self._judge.intercepts(h, coef, Cs) if b is None else b
            out = self._judge.figures(h, coef, b, Cs)
            column = np.full(len(where), len(self.task.folds))
            better = self._better(where, column, out)
            at = where[better]
            self.coef[at], self.intercept[at], self.h[at] = coef[better], b[better], h[better]
            self.objective[at] = out[better, 2] / (problem.n * Cs[better])
            self._note(at, column[better], out[better])
            self._floor[at] = out[better, 3]
            return self._meets(out, within)

    def solved(
        self,
        l: int | IntArray,
        folds: Sequence[int] | IntArray,
        coef: FloatArray,
        intercept: FloatArray | None = None,
        how: int = SOLVED,
        *,
        within: float | None = None,
    ) -> NDArray[np.bool_]:
        """Enter solutions (one a row of coef); returns which of them need not be tried again.

        Parameters
        ----------
        l : int or ndarray
            One grid index for all, or one for each.
        folds : sequence of int
        coef : ndarray of shape (B, n)
        intercept : ndarray of shape (B,), optional
            If not given, the one that the rule of ``intercept.py`` picks.
        how : int
        within : float, optional
            The tolerance to report on; the task's if not given.
        """
        with self._timed():
            folds = np.asarray(folds, dtype=np.intp)
            return self._enter(l, folds, coef, intercept, how, within)

    def solved_at(
        self,
        ls: IntArray,
        folds: IntArray,
        coef: FloatArray,
        *,
        within: float | None = None,
        claimed: FloatArray | None = None,
    ) -> NDArray[np.bool_]:
        """Enter leave-one-out solutions that hold at several grid points, as the full data's does.

        They are multiplied by K once, and judged at each.  Returns which need not be tried again at
        the first; at the others only those that need not are entered.  With ``claimed``, what their
        K c is said to be, they are not multiplied at all (only where `takes_claims`).
        """
        with self._timed():
            where = _Where(ls, np.ones((len(folds), len(ls)), dtype=bool))
            return self._solved_alike(where, folds, coef, within, claimed)

    def proportional(
        self, ls: IntArray, folds: IntArray, coef: FloatArray, *, within: float | None = None
    ) -> NDArray[np.bool_]:
        """The same for solutions that are proportional to C, as the full data's is.

        ``coef`` are those at the first of the grid points.  What is settled there is left alone,
        but for solutions at the first.
        """
        with self._timed():
            how = self.how[np.ix_(ls, folds)].T
            wanted = how == 0
            wanted[:, 0] |= how[:, 0] == SOLVED
            return self._solved_alike(_Where(ls, wanted, proportional=True), folds, coef, within)

    def _solved_alike(
        self,
        where: _Where,
        folds: IntArray,
        coef: FloatArray,
        within: float | None,
        claimed: FloatArray | None = None,
    ) -> NDArray[np.bool_]:
        coef = np.ascontiguousarray(coef, dtype=float)
        met = self._solved_nearby(where, folds, coef, None, within, claimed)
        entered = where.wanted & met
        entered[:, 0] = where.wanted[:, 0]
        which, at = np.nonzero(entered)
        self.how[where.ls[at], folds[which]] = SOLVED
        return met[:, 0]

    @property
    def takes_claims(self) -> bool:
        """Can this judge make allowance for values that are claimed?"""
        return isinstance(self._judge, PiecewiseLinearJudge)

    def unchanged(self, l: int, folds: IntArray) -> None:
        """Enter folds whose solution is the full-data one."""
        with self._timed():
            self._inherit(l, np.asarray(folds, dtype=np.intp))

    def proved(self, l: int | IntArray, folds: IntArray, wrong: NDArray[np.bool_]) -> None:
        """Enter leave-one-out folds whose label follows from a bound (``l``: one, or one each)."""
        self.wrong[l, folds] = wrong
        self.how[l, folds] = PROVED

    def alike(self, l: int, folds: IntArray, others: IntArray) -> None:
        """Enter leave-one-out folds whose problems are those of others but for equal rows.

        Fold ``folds[k]`` leaves out a row that is like that of ``others[k]`` in every respect: with
        the two exchanged, the one problem is the other, and what was found of it holds.
        """
        if not len(folds):
            return
        with self._timed():
            self._check_alike(folds, others)
            for of_pairs in (self.decision, self.wrong, self.kkt, self.gap, self.gap_abs, self.how):
                of_pairs[l, folds] = of_pairs[l, others]

    @property
    def twins(self) -> tuple[IntArray, IntArray]:
        """The folds that were entered as those of others are, and those others."""
        nobody = np.zeros(0, dtype=np.intp)
        return (nobody, nobody) if self._alike is None else self._alike

    # ---- what came out ------------------------------------------------------------------------

    def sound(self, l: int) -> bool:
        """Does the full-data solution at grid point l meet the tolerance?

        If not, the problem is beyond float64 there, and trying harder on its folds is no use.
        """
        tol = self.task.tol
        return bool(self.kkt[l, -1] <= tol and self.gap[l, -1] <= tol)

    def behind(self, l: int, fold: int) -> bool:
        """Is the solution of this fold worse than it need be?

        Where the full-data solution misses the tolerance, one that is about as good will do.
        """
        own, full = (max(self.kkt[l, k], self.gap[l, k]) for k in (fold, -1))
        return not own <= (self.task.tol if self.sound(l) else ABOUT * full)

    def fraction(self) -> float:
        """Which part of the (grid point, fold) slots is settled."""
        return float(np.count_nonzero(self.how) / max(self.how.size, 1))

    def counts(self) -> dict[str, int]:
        """How many (grid point, fold) slots were settled how."""
        totals = np.bincount(self.how.ravel(), minlength=len(HOW))
        return {name: int(total) for name, total in zip(HOW, totals, strict=True)}

    def at_bound(self) -> FloatArray:
        """Share of the rows with some weight that are at their bound; NaN without bounds."""
        problem = self.task.problem
        if not problem.bounded:
            return np.full(len(self.coef), np.nan)
        used = problem.weight > 0
        box = self.task.grid.Cs[:, None] * problem.weight[used]
        size = np.abs(self.coef[:, used])
        if isinstance(problem.loss, PiecewiseLinear):
            # Between the first and the last level; one of them may be 0, which is no bound.
            steepest = np.abs(problem.loss.slopes[used][:, [0, -1]])
            box = box * np.where(self.coef[:, used] > 0, steepest[:, 0], steepest[:, 1])
        full = (size >= box * (1.0 - AT_BOUND)) & (box > 0)
        return np.asarray(full.mean(axis=1))

    def certificate(self) -> Certificate:
        """The worst figures of each grid point; a missing entry counts as unresolved."""
        tol = self.task.tol
        waived = np.zeros(self.kkt.shape, dtype=bool)
        waived[:, :-1] = self.how == PROVED
        kkt = np.where(waived, 0.0, np.where(np.isnan(self.kkt), np.inf, self.kkt))
        gap = np.where(waived, 0.0, np.where(np.isnan(self.gap), np.inf, self.gap))
        failed = np.argwhere(~((kkt <= tol) & (gap <= tol)))
        last = len(self.task.folds)
        unresolved = [(int(l), -1 if f == last else int(f)) for l, f in failed]
        convex = self.task.problem.psd
        exact = convex and not unresolved
        figures = kkt.max(axis=1), gap.max(axis=1)
        unproved = self.unproved() if tol >= ROUGH else 0
        return Certificate(*figures, exact, unresolved, tol, convex, unproved=unproved)

    def unproved(self) -> int:
        """How many left-out labels the duality gaps do not prove.

        |u(x) - u*(x)| <= 2 sqrt(2 gap max_k K_kk), without an intercept half of that
        (``piecewise_linear.py``).
        """
        problem, judge = self.task.problem, self._judge
        if problem.target.numeric or not isinstance(judge, PiecewiseLinearJudge):
            return 0
        off = judge.scale.widest * np.sqrt(2.0 * self.gap_abs[:, :-1])
        off *= 2.0 if problem.fit_intercept else 1.0
        size = np.abs(self.decision)  # NaN where the label was proved without a value
        return int(np.count_nonzero(size <= off[:, self.task.folds.pair_folds]))

    def complete(self) -> tuple[IntArray, IntArray]:
        """Grid points and folds all of whose slots are settled within the tolerance.

        Either all folds at some grid points, or some folds at all of them, whichever is more: some
        methods go through the grid, others through the folds.
        """
        tol = self.task.tol
        sound = (self.kkt <= tol) & (self.gap <= tol)  # False where there is nothing yet
        done = (self.how > 0) & ((self.how == PROVED) | sound[:, :-1]) & sound[:, -1:]
        points, folds = np.flatnonzero(done.all(axis=1)), np.flatnonzero(done.all(axis=0))
        n_points, n_folds = done.shape
        if len(points) * n_folds >= len(folds) * n_points:
            return points, np.arange(n_folds if len(points) else 0)
        return np.arange(n_points), folds

    def part(self, points: IntArray, folds: IntArray) -> Ledger:
        """A ledger of its own for some grid points and some folds."""
        task = self.task.part(points, folds)
        other, offsets = Ledger(task), self.task.folds.offsets
        pairs = np.concatenate([np.arange(offsets[f], offsets[f + 1]) for f in folds])
        columns = np.append(folds, len(self.task.folds))
        for name in ("coef", "intercept", "objective", "h"):
            setattr(other, name, getattr(self, name)[points])
        for name in ("decision", "wrong"):
            setattr(other, name, getattr(self, name)[np.ix_(points, pairs)])
        for name in ("kkt", "gap", "gap_abs"):
            setattr(other, name, getattr(self, name)[np.ix_(points, columns)])
        other.how, other.seconds = self.how[np.ix_(points, folds)], self.seconds
        return other

    def outside(self, units: Units, task: Task) -> Ledger:
        """The same entries in the units of ``task``, whose inside is this ledger's."""
        if units.trivial:
            return self
        other, square = Ledger(task), units.scale**2
        other.coef, other.h = self.coef * units.scale, self.h * units.scale
        other.intercept, other.decision = units.values(self.intercept), units.values(self.decision)
        other.objective = self.objective * units.loss_scale
        other.kkt, other.gap, other.gap_abs = self.kkt, self.gap, self.gap_abs * square
        other.how, other.seconds = self.how, self.seconds
        other.guests, other._alike = [units.values(one) for one in self.guests], self._alike
        return other

    # ---- the work -----------------------------------------------------------------------------

    def _enter(
        self,
        l: int | IntArray,
        which: IntArray,
        coef: FloatArray,
        intercept: FloatArray | None,
        how: int,
        within: float | None,
    ) -> NDArray[np.bool_]:
        if not len(which):
            return np.zeros(0, dtype=bool)
        coef = np.ascontiguousarray(coef, dtype=float)
        # What had to be solved again is judged from scratch: where coefficients are huge, K c from
        # the full data's loses digits.
        nearby = self._own is not None and self._has_rows and np.ndim(l) == 0 and how != FALLBACK
        if nearby and np.isfinite(self.objective[l]):
            self.how[l, which] = how
            here = _Where(np.atleast_1d(l), np.ones((len(which), 1), dtype=bool))
            return self._solved_nearby(here, which, coef, intercept, within)[:, 0]
        where = np.full(which.shape, l, dtype=np.intp)
        return self._solved_blocks(where, which, coef, intercept, how, within)

    def _inherit(self, l: int, folds: IntArray) -> None:
        if self._own is None:
            block = np.broadcast_to(self.coef[l], (len(folds), self.task.problem.n))
            b = np.full(len(folds), self.intercept[l])
            self._enter(l, folds, block, b, UNCHANGED, None)
            return
        rows, last = self._own[folds], len(self.task.folds)
        # The left-out row must have had no coefficient; a method that errs here is found out.
        taken = self._judge.astray(self.coef[l, rows], rows, float(self.task.grid.Cs[l]))
        self.kkt[l, folds] = np.maximum(self.kkt[l, last], taken)
        self.gap[l, folds] = self.gap[l, last]
        self.gap_abs[l, folds] = self.gap_abs[l, last]
        self._decide(l, folds, folds, self.h[l, rows] + self.intercept[l], self._floor[l])
        self.how[l, folds] = UNCHANGED

    def _solved_nearby(
        self,
        where: _Where,
        folds: IntArray,
        coef: FloatArray,
        intercept: FloatArray | None,
        within: float | None,
        claimed: FloatArray | None = None,
    ) -> NDArray[np.bool_]:
        """Leave-one-out folds from the full data's solution: K c from its and what differs.

        Returns at which grid points they meet the tolerance, as far as they are judged there.
        """
        assert self._own is not None
        n, own, b = self.task.problem.n, self._own[folds], self._given(intercept)
        touched = self._touched(int(where.ls[0]), coef, own) if claimed is None else None
        shape = where.wanted.shape
        own_h, bs, out = np.empty(len(folds)), np.zeros(shape), np.zeros((*shape, 4))
        # A few folds at a time, so that their K c stay in the processor's cache.
        step = max(CACHED_FOLDS, CACHED_VALUES // n)
        for start in range(0, len(folds), step):
            part = slice(start, start + step)
            c, mine = coef[part], own[part]
            said = None if claimed is None else claimed[part]
            h, off = self._products_nearby(int(where.ls[0]), c, mine, touched, said)
            own_h[part] = h[np.arange(len(c)), mine]
            if len(where.ls) == 1:
                given = None if b is None else b[part]
                found = self._judged(int(where.ls[0]), c, h, given, mine, off)
                bs[part, 0], out[part, 0] = found
            else:
                here = where.part(part)
                bs[part][here.wanted], out[part][here.wanted] = self._along(here, c, h, mine, off)
            first = where.wanted[part, 0]
            if self._seen is not None and first.any():
                self._seen(self, folds[part][first], c[first], h[first], bs[part, 0][first])
        which, at = np.nonzero(where.wanted)
        figures, pairs = out[which, at], (where.ls[at], folds[which])
        values = where.scale(self.task.grid.Cs)[at] * own_h[which] + bs[which, at]
        self._note(*pairs, figures)
        self._decide(*pairs, folds[which], values, figures[:, 3])
        met = ~where.wanted
        met[which, at] = self._meets(figures, within)
        return met

    def _touched(self, l: int, coef: FloatArray, own: IntArray) -> IntArray:
        """In which columns any solution differs from the full data's, its own row aside."""
        n = self.task.problem.n
        columns, scratch = self._buffer("columns", n, np.intp), self._buffer("mark", n)
        count = _residuals.touched_columns(coef, self.coef[l], own, scratch, columns)
        return columns[:count]

    def _products_nearby(
        self,
        l: int,
        coef: FloatArray,
        own: IntArray,
        touched: IntArray | None,
        claimed: FloatArray | None,
    ) -> tuple[FloatArray, FloatArray]:
        """K c of solutions near the full data's, and what that may be off by besides rounding."""
        if claimed is not None:
            h, off = claimed, self._off(l, coef, claimed)
        else:
            assert touched is not None
            h, off = self._nearby(l, coef, own, touched), np.zeros(len(coef))
        drowned = self._drowned(l, coef)
        if drowned.any():
            h, off = h.copy(), np.where(drowned, 0.0, off)
            h[drowned] = self.task.problem.times(coef[drowned])
        return h, off

    def _judged(
        self,
        l: int,
        coef: FloatArray,
        h: FloatArray,
        intercept: FloatArray | None,
        own: IntArray,
        off: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Intercepts and figures at one grid point."""
        judge, C = self._judge, np.full(len(coef), self.task.grid.Cs[l])
        b = judge.intercepts(h, coef, C, own) if intercept is None else intercept
        more = (off,) if isinstance(judge, PiecewiseLinearJudge) else ()
        return b, judge.figures(h, coef, b, C, own, *more)

    def _along(
        self, where: _Where, coef: FloatArray, h: FloatArray, own: IntArray, off: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The same at several, solution by solution."""
        judge, Cs = self._judge, self.task.grid.Cs[where.ls]
        assert isinstance(judge, PiecewiseLinearJudge)
        which, at = (np.ascontiguousarray(one) for one in np.nonzero(where.wanted))
        scale = np.ones(len(which))
        if where.proportional:  # in units of C a coefficient that is at its bound is so at every C
            coef, h, off, scale = coef / Cs[0], h / Cs[0], off / Cs[0], Cs[at]
        return judge.along(h, coef, (which, scale), Cs[at], own[which], scale * off[which])

    def _drowned(self, l: int, coef: FloatArray) -> NDArray[np.bool_]:
        """Solutions so much smaller than the full data's that the rounding of its K c is too much.

        The judge knows the rounding of what it is shown: that of K c by itself.
        """
        size, full = np.empty(len(coef)), float(np.abs(self.coef[l]) @ self._length)
        _residuals.sizes(coef, self._length, size)
        return np.asarray(DROWNED * size < full)

    def _off(self, l: int, coef: FloatArray, h: FloatArray) -> FloatArray:
        """What claims about solutions near the full data's may be off by."""
        with self._lock:
            if self._claims is None:
                self._claims = Claims(self.task.problem.K)
        return self._claims.off(coef, h, (self.coef[l], self.h[l]))

    def _nearby(self, l: int, coef: FloatArray, own: IntArray, touched: IntArray) -> FloatArray:
        """K c, where c differs from the full data's in the columns touched and in its own row."""
        K, n = self.task.problem.K, self.task.problem.n
        h = self._buffer("h", len(coef) * n).reshape(len(coef), n)
        if len(touched) > n // 2:
            np.dot(coef, K, out=h)
        else:
            pack, panel = self._panel(len(coef))
            _residuals.nearby_values(K, coef, self.coef[l], self.h[l], own, touched, pack, panel, h)
        return h

    def _solved_blocks(
        self,
        where: IntArray,
        which: IntArray,
        coef: FloatArray,
        intercept: FloatArray | None,
        how: int,
        within: float | None,
    ) -> NDArray[np.bool_]:
        """Solutions of folds, one or several, at grid points."""
        folds, mine = _numbered(which, len(self.task.folds))
        Cs = np.array([self.task.fold_Cs(int(fold)) for fold in folds])[mine, where]
        h = self._products(folds, mine, coef, Cs)
        left_out = [self.task.folds.left_out[fold] for fold in folds]
        judges = without(self._judge, self.task.problem, left_out)
        b = self._given(intercept)
        b = judges.intercepts(h, coef, Cs, mine) if b is None else b
        out = judges.figures(h, coef, b, Cs, mine)
        better = self._better(where, which, out)
        meets = self._meets(out, within)
        if not better.all():
            where, which, out = where[better], which[better], out[better]
            coef, h, b = coef[better], h[better], b[better]
        self._note(where, which, out)
        if self._seen is not None:
            self._seen(self, which, coef, h, b)
        self._decide_blocks(where, which, coef, h, b, out[:, 3])
        self.how[where, which] = how
        return meets

    def _products(
        self, folds: IntArray, mine: IntArray, coef: FloatArray, Cs: FloatArray
    ) -> FloatArray:
        """K c of solutions of ``folds``; ``mine`` says of which."""
        if self.task.kernels is None and len(folds) == len(mine):
            return self.task.problem.times(coef)
        if self.task.kernels is None:
            return self._values(coef, Cs, order=np.lexsort((Cs, mine)))
        h = np.empty_like(coef)
        for k, fold in enumerate(folds):
            at = mine == k
            h[at] = self.task.kernels.times(int(fold), coef[at])
        return h

    def _decide_blocks(
        self,
        where: IntArray,
        which: IntArray,
        coef: FloatArray,
        h: FloatArray,
        b: FloatArray,
        floor: FloatArray,
    ) -> None:
        """Values and labels of the rows that folds are tested on, guests among them."""
        problem, folds = self.task.problem, self.task.folds
        blur, blurred = self._blur(where, which, floor), np.empty(len(which), dtype=np.uint8)
        tests, wrong = (folds.offsets, folds.pair_rows), self.wrong.view(np.uint8)
        solutions = h, b, blur, where, which
        _residuals.tested_values(*solutions, *tests, problem.y, TIE, self.decision, wrong, blurred)
        if problem.target.numeric:
            wrong[where] = 0  # no number is
        elif blurred.any():
            self._misses(where[blurred > 0], which[blurred > 0])
        guests = self.task.guests
        if self.guests and guests is not None:
            for fold in _numbered(which, len(self.task.folds))[0]:
                mine = np.flatnonzero(which == fold)
                gamma = None if guests.gammas is None else float(guests.gammas[fold])
                found = self.elsewhere(guests, guests.test[fold], coef[mine], b[mine], gamma)
                self.guests[fold][where[mine]] = found

    @staticmethod
    def elsewhere(
        guests: Guests,
        test: IntArray,
        coef: FloatArray,
        intercept: FloatArray,
        gamma: float | None = None,
    ) -> FloatArray:
        """Values of some solutions on rows that take no part; few coefficients are not zero."""
        which = guests.K, test, guests.rows
        return combine(*which, coef, intercept, -1.0 if gamma is None else gamma)

    @staticmethod
    def _given(intercept: float | FloatArray | None) -> FloatArray | None:
        if intercept is None:
            return None
        return np.ascontiguousarray(np.atleast_1d(intercept), dtype=float)

    def _values(
        self,
        coef: FloatArray,
        Cs: FloatArray,
        order: IntArray | None = None,
    ) -> FloatArray:
        """K c for solutions at several C.

        Neighbours on the grid often have the same coefficients in units of C, where regularisation
        is strong, or the very same, where it is weak: those are multiplied by K once.  In ``order``
        (by default that of rising C) they stand side by side.
        """
        problem = self.task.problem
        if len(Cs) == 1:
            return problem.times(coef / Cs[:, None]) * Cs[:, None]
        order = np.argsort(Cs, kind="stable") if order is None else order
        other = _differ(coef[order])
        at = order[other]
        units = coef[at] / Cs[at, None]
        fresh = _differ(units)
        products = problem.times(units[fresh])[np.cumsum(fresh) - 1]
        products *= Cs[at, None]
        h = np.empty_like(coef)
        h[order] = products[np.cumsum(other) - 1]
        return h

    def _check_alike(self, folds: IntArray, others: IntArray) -> None:
        """Are the rows really alike?  Looked at once."""
        if self._alike is not None and self._alike[0] is folds and self._alike[1] is others:
            return
        assert self._own is not None
        problem, rows, twins = self.task.problem, self._own[folds], self._own[others]
        same = problem.weight[rows] == problem.weight[twins]
        same &= (problem.loss.knots[rows] == problem.loss.knots[twins]).all(axis=1)
        same &= (problem.loss.slopes[rows] == problem.loss.slopes[twins]).all(axis=1)
        for k, (row, twin) in enumerate(zip(rows, twins, strict=True)):
            same[k] &= np.array_equal(problem.K[row], problem.K[twin])
        if not same.all():
            raise ValueError(f"row {rows[~same][0]} is not like row {twins[~same][0]}")
        self._alike = folds, others

    # ---- small change -------------------------------------------------------------------------

    def _decide(self, l: Any, pairs: IntArray, folds: Any, values: FloatArray, floor: Any) -> None:
        """Enter decision values and what the target makes of them; their figures are entered.

        A label that the rounding of its value could turn round means nothing, however good the
        solution is: it counts as a violation of 1.  Nor does one that f and b, each off by as much
        as rows miss their knots, could turn round (where the tolerance is rough, such labels are
        counted: `unproved`).
        """
        problem, target = self.task.problem, self.task.problem.target
        y, blur = problem.y[self.task.folds.pair_rows[pairs]], self._blur(l, folds, floor)
        self.decision[l, pairs] = values
        self.wrong[l, pairs] = target.wrong(y, values)
        blurred = target.wrong(y, values - blur) != target.wrong(y, values + blur)
        if blurred.any():
            where = np.broadcast_to(l, blurred.shape)[blurred]
            self._misses(where, np.broadcast_to(folds, blurred.shape)[blurred])

    def _blur(self, l: Any, folds: Any, floor: Any) -> FloatArray:
        """How far values of solutions, whose figures are entered, may be off; see `_decide`."""
        blur, tol = floor / ROUNDING, self.task.tol
        if tol < ROUGH:
            blur = blur + 2.0 * np.minimum(self.kkt[l, folds], tol)
        return np.asarray(blur)

    def _misses(self, l: IntArray, folds: IntArray) -> None:
        """Labels there mean nothing."""
        self.kkt[l, folds] = np.maximum(self.kkt[l, folds], 1.0)

    def _better(self, l: IntArray, columns: IntArray, out: FloatArray) -> NDArray[np.bool_]:
        """Which solutions are better than those entered before, if any."""
        new = np.maximum(out[:, 0], relative_gap(out[:, 1], out[:, 2]))
        old = np.maximum(self.kkt[l, columns], self.gap[l, columns])
        return np.asarray(np.isnan(old) | (new < old))

    def _note(self, l: Any, columns: IntArray, out: FloatArray) -> None:
        """Enter the judge's figures."""
        self.kkt[l, columns] = out[:, 0]
        self.gap[l, columns] = relative_gap(out[:, 1], out[:, 2])
        self.gap_abs[l, columns] = out[:, 1]

    def _meets(self, out: FloatArray, within: float | None) -> NDArray[np.bool_]:
        """Which solutions meet the tolerance, or miss it by rounding alone."""
        limit = attainable(self.task.tol, out[:, 3], within)
        return np.asarray((out[:, 0] <= limit) & (relative_gap(out[:, 1], out[:, 2]) <= limit))

    @contextmanager
    def _timed(self) -> Iterator[None]:
        start = perf_counter()
        try:
            yield
        finally:
            with self._lock:
                self.seconds += perf_counter() - start

    def _panel(self, block: int) -> tuple[FloatArray, FloatArray]:
        n = self.task.problem.n
        width = min(PANEL_ROWS, n)
        return self._buffer("pack", block * width), self._buffer("panel", width * n)

    def _buffer(self, name: str, size: int, dtype: Any = float) -> NDArray[Any]:
        """This thread's own scratch memory, kept from block to block."""
        held = getattr(self._scratch, name, None)
        if held is None or held.size < size:
            held = np.empty(size, dtype=dtype)
            setattr(self._scratch, name, held)
        return held[:size]


def _numbered(which: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Which numbers below ``count`` occur, and the place of each entry among those."""
    occurs = np.zeros(count, dtype=bool)
    occurs[which] = True
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[which]


def _differ(solutions: FloatArray) -> NDArray[np.bool_]:
    """Which rows differ from the one before; the first does."""
    out = np.ones(len(solutions), dtype=bool)
    out[1:] = (solutions[1:] != solutions[:-1]).any(axis=1)
    return out
