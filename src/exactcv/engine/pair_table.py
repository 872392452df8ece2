"""The whole table of one solution, from which pairs of rows are left out (``_leave_several.pyx``).

What is certain of a pair follows from the duality gap g of the solution that was found, as in
``labels.py``; the argument there holds for the value of any row that takes no part, so for both.

*No coefficient inside.*  Then the intercept has an interval.  If that is wider than all u may be
off, the coefficients that were found (all at their levels) are the solution exactly, and b is the
middle of the interval, as everywhere.

*Which of the two is larger.*  Suppose that u_i - u_j = d > 0 was found, and that the truth is at
most 0.  A multiplier q of this constraint is a coefficient q for row j and -q for row i, whose sum
is zero: no other row has to take anything up, b does not matter, and q has no bound.  So d is right
in sign if

    d^2 > 2 g ||phi_i - phi_j||^2.                                                               (1)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from .._core._leave_several import FACTS, LeaveSeveral
from ..judge.intercept import BALANCE
from ..runtime.threads import Cancelled
from ..types import BoolArray, FloatArray, IntArray
from .bounds import Span
from .full_solution import FullSolution
from .labels import certain, gaps
from .path import StateArray
from .table import Found, Inverse, Table

__all__ = ["PairTable", "Pairs"]

EPSILON = float(np.finfo(float).eps)
# So many times wider than what all u may be off must an interval be.
CLEAR = 4.0


@dataclass(frozen=True)
class Pairs:
    """Models without two rows each: what was found of them, and what is certain.

    Attributes
    ----------
    rows : (B, 2)
    done : (B,)
        Was a solution found?
    values : (B, 2)
        The u of both rows.
    labels : (B, 2)
        Is the sign of the value certain, and that it is no tie?
    gap : (B,)
        A bound on the duality gap.
    coef : (B, n) or (0, n)
        The coefficients if they were asked for.
    """

    rows: IntArray
    done: BoolArray
    values: FloatArray
    labels: BoolArray
    gap: FloatArray
    coef: FloatArray

    def apart(self, K: FloatArray) -> tuple[BoolArray, FloatArray]:
        """Is it certain which of two values is larger, and that it is no tie?  By (1).

        Besides: how far their difference may be from the exact one.
        """
        i, j = self.rows.T
        square = K[i, i] + K[j, j] - 2.0 * K[i, j]
        most = np.maximum(1.0, np.abs(self.values).max(axis=1))
        by = np.abs(self.values[:, 0] - self.values[:, 1]) - tolerances.TIE * most
        off = np.sqrt(2.0 * self.gap * np.maximum(square, EPSILON * K[i, i]))
        return self.done & (by > off), off


class PairTable:
    """A solution with all of its table.

    Parameters
    ----------
    full : FullSolution
        With an intercept at least one row is at a knot.
    span : Span
    single : (n, n)
        Solutions without one row each, whose changes are expected.
    gone : int
        A row that takes no part in ``full``, but may be in a pair; -1 for none.

    Attributes
    ----------
    matrix : (a, a)
        Column i of the table (``_core/_base.pyx``) as row i.
    rows : (a,)
        Which rows those are; first those at a knot.
    """

    def __init__(self, full: FullSolution, span: Span, single: FloatArray, gone: int = -1):
        inverse = Inverse(full.problem)
        base = inverse.of(full)
        others = base.state >= 0
        others[inverse.members] = False
        if gone >= 0:
            others[gone] = True
        columns = inverse.columns(np.flatnonzero(others))
        self.span, self.table = span, Table(base, columns)
        self.rows = rows = np.concatenate([columns.members, columns.others])
        k, problem = len(columns.members), base.problem
        T = np.empty((len(rows), len(rows)))
        T[:k] = columns.free
        T[k:, :k] = -columns.free[:, k:].T
        T[k:, k:] = problem.K[np.ix_(columns.others, columns.others)]
        T[k:, k:] -= columns.tail[:, None] + columns.free[:, k:].T @ columns.border.T
        self.matrix = T
        self._loop = LeaveSeveral(
            T, k, self.table.u[rows], base.coef[rows], base.state[rows],
            problem.loss.knots[rows], base.levels[rows], self.table.tol,
            tolerances.AT_BOUND, float(np.abs(problem.diagonal).max()),
        )  # fmt: skip
        self._expected = self._changes(single)

    @property
    def events(self) -> int:
        """Changes of place so far, all pairs together."""
        return int(self._loop.events)

    def leave_out(self, pairs: IntArray, cancel: NDArray[np.int32], coef: bool = False) -> Pairs:
        """Leave out both rows of each pair; with the coefficients if they are asked for."""
        sets = np.ascontiguousarray(self.table.position[pairs])
        values, facts = np.full(sets.shape, np.nan), np.full((len(sets), len(FACTS)), np.nan)
        done = np.zeros(len(sets), dtype=np.int8)
        out = np.zeros((len(sets) if coef else 0, max(len(self.rows), 1)))
        self._loop.leave_out(sets, *self._expected, values, facts, done, out, cancel)
        if cancel[0]:
            raise Cancelled
        fact = dict(zip(FACTS, facts.T, strict=True))
        found = Found(
            done == 0, values[:, 0], fact["moves_free"], fact["moves_other"], fact["room"],
            fact["clipped"],
        )  # fmt: skip
        gap, good = gaps(self.table, found), done > 0
        sure = self._in_sign(pairs, values, gap, fact["room"]) & good[:, None]
        at_levels, middle = self._middle(pairs, found, fact["low"], fact["high"], fact["stray"])
        at_levels &= good
        values[at_levels] += middle[at_levels, None]
        off = self._off(found)[at_levels, None]
        sure[at_levels] = np.abs(values[at_levels]) > off + tolerances.TIE
        everywhere = np.zeros((len(out), self.table.base.problem.n))
        everywhere[:, self.rows] = out
        return Pairs(pairs, good, values, sure, gap, everywhere)

    def _in_sign(
        self, pairs: IntArray, values: FloatArray, gap: FloatArray, room: FloatArray
    ) -> BoolArray:
        """Which signs follow from the gap, where some coefficient is inside its box."""
        table = self.table
        if not table.base.problem.fit_intercept:
            room = np.full(len(room), np.inf)
        known = np.abs(values) - np.abs(table.u - table.base.u)[pairs]
        own = self.span.own[pairs]
        return np.column_stack([certain(known[:, p], gap, own[:, p], room) for p in range(2)])

    def _middle(
        self, pairs: IntArray, found: Found, low: FloatArray, high: FloatArray, stray: FloatArray
    ) -> tuple[BoolArray, FloatArray]:
        """Which solutions are all at levels, and how far b then is from its interval's middle."""
        base = self.table.base
        if not base.problem.fit_intercept:
            return np.zeros(len(pairs), dtype=bool), np.zeros(len(pairs))
        size = np.abs(base.coef)
        box = (base.levels[:, 0] - base.levels[:, -1])[base.state >= 0]
        # As in ``intercept.doubt``: what rounding may do to the sum of the coefficients.
        blur = BALANCE * 0.5 * EPSILON * (size.sum() - size[pairs].sum(axis=1))
        with np.errstate(invalid="ignore"):
            fits = (high - low > CLEAR * self._off(found)) & (stray <= blur)
            fits &= box.min(initial=np.inf) > blur
            fits &= np.isfinite(low) | np.isfinite(high)
            middle = 0.5 * (low + high)
        middle = np.where(np.isinf(low), high, np.where(np.isinf(high), low, middle))
        return fits, middle

    def _off(self, found: Found) -> FloatArray:
        """How far any u may be from that of the coefficients."""
        free, other = self.table.columns.errors
        off = free * found.moves_free + other * found.moves_other
        missed = np.abs(self.table.u - self.table.base.u).max(initial=0.0) + self.table.tol
        return np.asarray(off + missed + found.clipped * self._largest)

    @cached_property
    def _largest(self) -> float:
        return float(np.abs(self.table.base.problem.diagonal).max(initial=0.0))

    def _changes(self, single: FloatArray) -> tuple[IntArray, IntArray, StateArray]:
        """Which rows change their state without each row, and to what; by positions."""
        base = self.table.base
        state = _states_in(single, base.levels)
        changed = (state != base.state) & (base.state >= 0)
        np.fill_diagonal(changed, False)
        changed = changed[np.ix_(self.rows, self.rows)]
        which, rows = np.nonzero(changed)
        offsets = np.concatenate([[0], np.cumsum(changed.sum(axis=1))]).astype(np.intp)
        return offsets, rows.astype(np.intp), state[self.rows[which], self.rows[rows]]


def _states_in(coef: FloatArray, levels: FloatArray) -> StateArray:
    """States of many solutions, by coefficients that are exactly at a level."""
    state = np.zeros(coef.shape, dtype=np.int8)
    for level in levels.T[:-1]:
        state += coef < level
    for level in levels.T[1:]:
        state += coef <= level
    return state
