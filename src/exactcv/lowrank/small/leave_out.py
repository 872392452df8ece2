"""Leaving out single rows, from the small problem of the full-data solution.

A row that the bounds (``lowrank/verdict.py``) do not settle is left out by the engine of the exact
path (``engine/leave_one_out.py``), which drives its coefficient to zero.  It works on the kernel
matrix of the rows near the margin and of the rows to be left out: all others stay at the bound that
goes with their side, as long as no decision value moves by more than their distance to the margin.
That is checked for every solution found: row by row for the rows of the small problem, and for
those beyond it from how far w and b have moved.  If one of the small problem changes sides, more
rows come into play, and in the end the row that is left out is handed back, to be solved over all
rows.  Where those beyond it may change sides, a pass over all rows has to say (``beyond.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...engine.bounds import Span
from ...engine.leave_one_out import LeaveOneOut
from ...engine.merged import Merged
from ...engine.path import Point
from ...judge import ledger as entries
from ...judge.certificate import attainable
from ...judge.features import lengths, rounding_floor
from ...judge.ledger import Ledger
from ...problem.folds import Folds
from ...problem.grid import Grid
from ...problem.losses import PiecewiseLinear
from ...problem.problem import Problem, Task
from ...problem.repeated import copy_repeated
from ...runtime.space import Space
from ...types import FloatArray, IntArray
from ..solver import EXCUSED, Solved
from ..verdict import Spread, accuracy, walks
from .beyond import Beyond
from .feature_shares import Shares
from .moves import Aside, Moves
from .ordinary import engine_states, expanded
from .reduced import Reduced, StateArray
from .sites import Sites, sites_of

__all__ = ["MATRICES", "MOST", "LeaveOut", "Outcome"]

# Rows left out at a time.
BLOCK = 256
# Rows in play at first, besides the free ones (or as many as these), how many times more at each
# further attempt, and at most: their kernel matrix takes 290 MB then.  There are so many MATRICES:
# theirs, and the same with the rows that are left out; COPIES of their features; and TABLES of the
# free rows with each other and those left out.
FIRST, MORE, MOST = 400, 2, 6000
MATRICES, COPIES, TABLES = 2, 3, 5
# Where rows beyond the small problem may have to be asked, and not all rows that matter be at hand,
# the kernel matrix takes no more than so many times the room of the small problem.
SHARE = 4
# So many rows nearest to the margin stay in play in any case.
FEWEST = 64


@dataclass(frozen=True)
class Outcome:
    """One entry for each row that was left out.

    how : index into ``ledger.HOW``.  escaped : not settled here.
    beyond : those of the others whose solutions hold if no row beyond the small problem crosses.
    """

    value: FloatArray
    wrong: NDArray[np.bool_]
    how: NDArray[np.uint8]
    kkt: FloatArray
    gap: FloatArray
    escaped: NDArray[np.bool_]
    beyond: Beyond

    def some(self, which: NDArray[Any]) -> Outcome:
        """Those of some rows, with nothing beyond."""
        parts = {name: getattr(self, name)[which] for name in EACH}
        return replace(self, **parts, beyond=Beyond.none(self.beyond.theta.shape[1] - 1))


# What an `Outcome` has of each row.
EACH = ("value", "wrong", "how", "kkt", "gap", "escaped")


class LeaveOut:
    """Leaves out rows at one grid point.

    Parameters
    ----------
    solved : Solved
    spread : Spread
    largest : float
        The largest row weight.
    tol : float
    want_decision : bool
    cancel : ndarray of one int32
    most : int
        Rows that may be in play.
    space : Space
        For their kernel matrices.
    """

    def __init__(
        self,
        solved: Solved,
        spread: Spread,
        largest: float,
        tol: float,
        want_decision: bool,
        cancel: NDArray[np.int32],
        most: int,
        space: Space,
    ):
        self.solved, self.spread, self.tol, self.cancel = solved, spread, tol, cancel
        self.most, self.space, walked = most, space, 0.0
        if spread.fit_intercept:
            sizes = np.full((2, 2), solved.C * largest)
            walked = float(walks(solved, sizes, accuracy(solved, spread))[1].max())
        self._want_decision, self._walked = want_decision, walked
        # Values have no proofs: if all rows are here, and not too many, all are solved here.
        here = len(solved.rows) <= most and bool(np.isinf(solved.width).all())
        self._all_here = want_decision and here
        self._drift = 1.01 * (solved.C * largest * spread.most + walked) + 1e-6

    def _tiers(self, drift: float) -> list[float]:
        """How near to the margin rows must be to be in play: few at first, then more, then all."""
        distance = np.sort(self.solved.distance)
        within = int(np.searchsorted(distance, drift))
        free = int(np.count_nonzero(self.solved.free))
        k, tiers = free + max(FIRST, free), []
        most = self.most
        if drift > self.solved.width.min():
            most = min(most, max(k, isqrt(SHARE * self.solved.problem.Z.size)))
        while k < min(within, most):
            tiers.append(float(distance[k]))
            k *= MORE
        if self._all_here:
            return [*tiers, np.inf]
        return [*tiers, drift] if within <= most else [*tiers, float(distance[most])]

    def _in_tiers(
        self,
        out: Outcome,
        todo: IntArray,
        drift: float,
        solve: Callable[[IntArray], Outcome],
    ) -> Outcome:
        beyond, out.escaped[todo] = [out.beyond], True
        for tier in self._tiers(drift):
            if not len(todo):
                break
            self._select(tier)
            with self.space.taken(self._size(min(len(todo), BLOCK)), self.cancel):
                self._K = self.base.Z @ self.base.Z.T
                for start in range(0, len(todo), BLOCK):
                    mine = todo[start : start + BLOCK]
                    found = solve(mine)
                    _put(out, mine, found)
                    beyond.append(found.beyond.at(mine))
                del self._K
            todo = todo[out.escaped[todo]]
        return replace(out, beyond=Beyond.joined(beyond))

    def _size(self, guests: int) -> int:
        """Bytes for the rows in play with so many guests."""
        n, m = self.base.n + guests, self.base.Z.shape[1]
        free = min(int(np.count_nonzero(self.solved.free)), m + 1)
        return 8 * (MATRICES * n * n + COPIES * n * m + TABLES * free * (free + guests))

    def _select(self, drift: float) -> None:
        """The rows in play: others of the small problem join the linear term."""
        solved, whole = self.solved, self.solved.problem
        distance = solved.distance
        if len(distance) > FEWEST:
            for side in (~whole.loss.upward, whole.loss.upward):
                if side.any():
                    k = min(FEWEST, int(side.sum())) - 1
                    drift = max(drift, float(np.partition(distance[side], k)[k]))
        kept = (distance <= drift) | solved.free
        self.aside = Aside(whole, solved.u, np.flatnonzero(~kept))
        # Labels are proved only if the walk of b ends among the rows at hand.
        near = min(drift, float(solved.width.min()))
        self.want_decision = self._want_decision or self._walked > near
        rows = whole.only(kept, solved.coef)
        sites = _sites(rows)
        self.site = np.full(len(kept), -1, dtype=np.intp)
        self.site[kept] = sites.of
        self.count = np.bincount(sites.of, minlength=len(sites.first))
        few, box = sites.first, sites.total(rows.box)
        self.base = replace(rows, Z=rows.Z[few], loss=rows.loss.at(few), box=box)
        self.coef = sites.total(solved.coef[kept])
        self.state = _of_sites(few[sites.of], solved.state[kept])[few]

    def near_rows(self, which: IntArray) -> Outcome:
        """Leave out rows of the small problem, by their places in it."""
        out = self._empty(len(which))
        left = np.arange(len(which))
        if not self._want_decision:
            whole, coef = self.solved.problem, self.solved.coef[which]
            value = whole.y[which] * self.solved.u[which]
            left = self._unproved(out, whole.Z[which], coef, value, self.shares.place[which])
        return self._in_tiers(out, left, self._drift, partial(self._leave_out_near, which))

    def _unproved(
        self, out: Outcome, Z: FloatArray, coef: FloatArray, value: FloatArray, place: IntArray
    ) -> IntArray:
        """Enter what shares prove; the rows that are left."""
        right = self.shares.prove(Z, coef, value, place)
        out.how[right] = entries.PROVED
        return np.flatnonzero(~right)

    def _leave_out_near(self, which: IntArray, mine: IntArray) -> Outcome:
        """Rows that are not in play, or not alone in their site, join as guests."""
        whole, solved = self.solved.problem, self.solved
        where = self.site[which[mine]]
        joins = where < 0
        joins[~joins] = self.count[where[~joins]] > 1
        guests, sites = which[mine][joins], where[joins]
        where[joins] = self.base.n + np.arange(len(guests))
        rows = whole.Z[guests], whole.loss.at(guests), whole.box[guests]
        return self._leave_out(*rows, solved.coef[guests], solved.state[guests], sites, where)

    def far_rows(self, Z: FloatArray, loss: PiecewiseLinear, weight: FloatArray) -> Outcome:
        """Leave out rows with a coefficient that are not in the small problem."""
        box, theta = self.solved.C * weight, self.solved.theta
        u = Z @ theta[:-1] + theta[-1]
        coef = -box * loss.slope(u)
        out = self._empty(len(u))
        left = np.arange(len(u))
        if not self._want_decision:
            value = np.sign(coef) * u
            left = self._unproved(out, Z, coef, value, np.full(len(u), -1))
        reach = self.shares.reach(Z[left], coef[left])
        drift = min(self._drift, 1.01 * reach + 1e-6)
        state = (2 * loss.passed(u)).astype(np.int8)
        solve = partial(self._leave_out_far, Z, loss, box, coef, state)
        return self._in_tiers(out, left, drift, solve)

    def _leave_out_far(
        self,
        Z: FloatArray,
        loss: PiecewiseLinear,
        box: FloatArray,
        coef: FloatArray,
        state: StateArray,
        mine: IntArray,
    ) -> Outcome:
        rows = Z[mine], loss.at(mine), box[mine], coef[mine], state[mine]
        nowhere = np.full(len(mine), -1, dtype=np.intp)
        return self._leave_out(*rows, nowhere, self.base.n + np.arange(len(mine)))

    @cached_property
    def _floor(self) -> float:
        """What rounding alone makes of the figures: no other way would do better."""
        problem, coef = self.solved.problem, np.abs(self.solved.coef)
        length = lengths(problem.Z)
        added = float(length @ coef) + float(np.linalg.norm(problem.a))
        return rounding_floor(added, float(length.max(initial=0.0)))

    @cached_property
    def shares(self) -> Shares:
        return Shares(self.solved, self.spread, self._walked)

    def _leave_out(
        self,
        Z: FloatArray,
        loss: PiecewiseLinear,
        box: FloatArray,
        coef: FloatArray,
        state: StateArray,
        sites: IntArray,
        where: IntArray,
    ) -> Outcome:
        """The guests Z, ... join the rows in play; those at ``where`` are left out in turn.

        ``sites`` are those that guests come from, -1 where these were not in play.
        """
        base, ours = self._base_without(sites, box, coef)
        new = sites < 0
        problem = Reduced(
            np.concatenate([base.Z, Z]),
            base.loss.beside(loss),
            np.concatenate([base.box, box]),
            base.a - coef[new] @ Z[new],
            base.beta - float(coef[new].sum()),
            base.fit_intercept,
        )
        ordinary, rows = expanded(problem, self.solved.theta, known=self._K)
        merged = _merged(ordinary, problem)
        states = _of_sites(merged.first[: problem.n], np.concatenate([self.state, state]))
        all_coef = np.concatenate([ours, coef, np.zeros(ordinary.n - problem.n)])
        frame = slice(problem.n, ordinary.n)
        all_coef[frame] = ordinary.y[frame] * ordinary.weight[frame]
        found = self._run(merged, rows, engine_states(merged.problem, states), all_coef, where)
        return self._outcome(*found, where, problem)

    def _base_without(
        self, sites: IntArray, box: FloatArray, coef: FloatArray
    ) -> tuple[Reduced, FloatArray]:
        """The rows in play and their coefficients, when some have left their sites."""
        left = sites >= 0
        if not left.any():
            return self.base, self.coef
        n, gone = self.base.n, sites[left]
        more = np.bincount(gone, minlength=n) < self.count
        boxes = self.base.box - np.bincount(gone, weights=box[left], minlength=n)
        base = replace(self.base, box=np.where(more, np.maximum(boxes, 0.0), 0.0))
        levels = base.loss.coefficient_levels(base.box)
        rest = self.coef - np.bincount(gone, weights=coef[left], minlength=n)
        return base, np.clip(rest, levels[:, -1], levels[:, 0])

    def _run(
        self,
        merged: Merged,
        Z: FloatArray,
        state: StateArray,
        coef: FloatArray,
        where: IntArray,
    ) -> tuple[Ledger, Moves]:
        """The ledger of these rows left out in turn, and how far each solution moved."""
        problem, coef = merged.original, merged.together(coef)
        single = tuple(where[:, None])
        folds = Folds(n=problem.n, left_out=single, test=single)
        grid = Grid(np.ones(1), np.ones(1), scale_with_fold=False)
        task = Task(problem, folds, grid, self.want_decision, self.tol)
        n_real = problem.n - (2 if problem.fit_intercept else 1)
        moves = Moves(len(folds), Z, n_real, self.spread, self.aside)
        ledger = Ledger(task, moves)
        b = float(self.solved.theta[-1])
        ledger.full(0, merged.apart(coef), b)
        own = self.spread.own(Z)
        span = Span(own, np.sqrt(own * self.spread.most))
        point = Point(1.0, state, coef, problem.K @ coef, b)
        # A solution of the small problem says nothing of rows that are not in it until it is seen.
        engine = LeaveOneOut(task, ledger, span, self.cancel, merged, judge_all=True)
        engine.at(np.zeros(1, dtype=np.intp), [point])
        moves.alike(*ledger.twins)
        return ledger, moves

    def _outcome(self, ledger: Ledger, moves: Moves, where: IntArray, problem: Reduced) -> Outcome:
        value, how = ledger.decision[0], ledger.how[0]
        lost = problem.loss.at(where).value(value) * problem.box[where]
        primal = np.maximum(self.solved.primal - np.nan_to_num(lost), np.finfo(float).tiny)
        kkt = np.where(how == entries.PROVED, 0.0, ledger.kkt[0, :-1])
        gap = np.where(how == entries.PROVED, 0.0, ledger.gap_abs[0, :-1] / primal)
        goal = float(attainable(self.tol, self._floor))
        good = (kkt <= goal) & (gap <= min(goal, EXCUSED)) & np.isfinite(moves.moved)
        places = np.flatnonzero(good & (moves.moved >= self.solved.width.min()))
        theta = self.solved.theta + moves.dtheta[places]
        beyond = Beyond(places, theta, moves.moved[places], moves.spare[places])
        return Outcome(value, ledger.wrong[0], how, kkt, gap, ~good, beyond)

    def _empty(self, count: int) -> Outcome:
        value, kkt, gap = (np.zeros(count) for _ in range(3))
        wrong, escaped = (np.zeros(count, dtype=bool) for _ in range(2))
        how, m = np.zeros(count, dtype=np.uint8), self.spread.centre.size
        return Outcome(value, wrong, how, kkt, gap, escaped, Beyond.none(m))


def _merged(ordinary: Problem, problem: Reduced) -> Merged:
    """Equal rows of the problem as one, and made equal in the kernel matrix to the last bit.

    Any number of equal rows may be free, where of others there are no more than dimensions.
    """
    first, sites = np.arange(ordinary.n, dtype=np.intp), _sites(problem)
    first[: problem.n] = sites.first[sites.of]
    copy_repeated(ordinary.K, first)
    return Merged(ordinary, first)


def _sites(problem: Reduced) -> Sites:
    """Equal rows, if they can be one row for the engine, as `Merged.of` says."""
    if problem.loss.slopes[:, 1:-1].any():
        each = np.arange(problem.n, dtype=np.intp)
        return Sites(each, each)
    return sites_of(problem.Z, problem.loss)


def _of_sites(first: IntArray, state: StateArray) -> StateArray:
    """The states of sites, at their first rows: at the knot between them where rows differ.

    Examples
    --------
    >>> _of_sites(np.array([0, 0, 2, 2, 4]), np.array([0, 2, 1, 2, 2], dtype=np.int8))
    array([1, 2, 1, 2, 2], dtype=int8)
    """
    least, most = state.copy(), state.copy()
    others = np.flatnonzero(first != np.arange(len(first)))
    np.minimum.at(least, first[others], state[others])
    np.maximum.at(most, first[others], state[others])
    return np.where(least == most, least, least | 1).astype(np.int8)


def _put(out: Outcome, where: IntArray, part: Outcome) -> None:
    for name in EACH:
        getattr(out, name)[where] = getattr(part, name)
