"""The table from which rows are left out (``_core/_base.pyx``), shared by all of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from .._core._base import Base
from .._core._drive import Outcome
from .._core._gather import gather
from .._core._leave_out import FACTS, Driven, LeaveOut
from ..problem.problem import Problem
from ..runtime.threads import Cancelled
from ..types import FloatArray, IntArray
from .full_solution import FullSolution, independent
from .inverse import Bordered, scale_of
from .sweep import swept

__all__ = ["Driven", "Found", "Inverse", "Table"]

# Added to a matrix that rounding keeps from being positive definite, relative to its diagonal.
RIDGE = 1e-14
NOTHING = np.empty((0, 1))
# The most that all columns of a table may take: as much as those that are made one by one.
WHOLE_BYTES = 128_000_000
# Random combinations of columns, and by how much their errors may flatter (``judge/claims.py``): a
# normal number is below 1 / FLATTERY in size with a probability of 0.38.
PROBES, FLATTERY = 48, 2.0
# Rows at a knot that differ from the last, as a share of all, up to which the table is made from
# that one; and for how many it is worth it.
ALIKE, WORTH = 0.25, 48


@dataclass(frozen=True)
class Columns:
    """Part of the table for the rows at a knot and ``others``; see ``_core/_base.pyx``.

    Columns of the others are made when each is needed, or if it is ``complete``, all at once, which
    is quicker where most of them are.  ``every`` are the rows of the members for all rows of the
    problem, where they are known (``sweep.py``).
    """

    problem: Problem
    system: Bordered
    members: IntArray
    others: IntArray
    complete: bool = False
    every: FloatArray | None = None

    @cached_property
    def P(self) -> FloatArray:
        """The inverse, without the border."""
        return self.system.inverse if self.every is None else self.every[:, self.members]

    @cached_property
    def border(self) -> FloatArray:
        return gather(self.problem.K, self.others, self.members)

    @cached_property
    def _solved(self) -> tuple[FloatArray, FloatArray]:
        return self.system.solve(self.border)

    @cached_property
    def _eliminated(self) -> tuple[FloatArray, FloatArray]:
        among = gather(self.problem.K, self.others, self.others)
        return self.system.eliminate(self.border, among)

    @property
    def whole(self) -> FloatArray | None:
        """The columns of all others, as rows, if they are all there."""
        return self._eliminated[0] if self.complete else None

    @cached_property
    def tail(self) -> FloatArray:
        if self.complete:
            return self._eliminated[1]
        return self._solved[1] if self.every is None else self.system.tail(self.border)

    def solved_for(self, rows: IntArray, places: IntArray) -> tuple[FloatArray, FloatArray]:
        """What each row on a segment takes from the members, and its tail.

        ``places`` are those among the others, negative for rows that are not in play.
        """
        if (places >= 0).all():
            return self.free[:, len(self.members) + places].T, self.tail[places]
        return self.system.solve(self.problem.K[np.ix_(rows, self.members)])

    @cached_property
    def free(self) -> FloatArray:
        """The columns of the members, as rows."""
        k = len(self.members)
        if self.every is not None and not self.complete:
            return gather(self.every, np.arange(k), np.concatenate([self.members, self.others]))
        columns = np.empty((k, k + len(self.others)))
        columns[:, :k] = self.P
        if self.complete:
            np.negative(self._eliminated[0][:, :k].T, out=columns[:, k:])
        else:
            columns[:, k:] = self._solved[0].T
        return columns

    @property
    def whole_rows(self) -> FloatArray:
        """The same for all rows of the problem."""
        if self.every is not None:
            return self.every
        rows, k = np.empty((len(self.members), self.problem.n)), len(self.members)
        rows[:, self.members], rows[:, self.others] = self.free[:, :k], self.free[:, k:]
        rest = np.ones(self.problem.n, dtype=bool)
        rest[self.members] = rest[self.others] = False
        left = np.flatnonzero(rest)
        rows[:, left] = self.system.solve(gather(self.problem.K, left, self.members))[0].T
        return rows

    @cached_property
    def errors(self) -> tuple[float, float]:
        """What the columns of members and of others may be wrong by, in the Euclidean norm.

        Freivalds' test: what they predict for random combinations is compared with K times the
        coefficients.  If E holds the errors, E z for normal z is about as long as E is large
        (``judge/claims.py``).
        """
        k, (z, x, c) = len(self.members), self._probes
        among, mine = gather(self.problem.K, self.members, self.members), c[self.members]
        # Moves of members are looked at in all rows, those of others in the members.
        u = np.concatenate([among, self.border]) @ mine[:, :PROBES]
        v = among @ mine[:, PROBES:] + self.border.T @ x
        if self.problem.fit_intercept:
            u += self.system.ones @ z
            v -= self.tail @ x
        u[:k] -= z
        u[k:] -= self.free[:, k:].T @ z
        free, other = (np.linalg.norm(one, axis=0).max(initial=0.0) for one in (u, v))
        return FLATTERY * float(free), FLATTERY * float(other)

    @cached_property
    def drifts(self) -> tuple[float, float]:
        """The same of the sum of the coefficients, which is to stay what it is."""
        total = np.abs(self._probes[2].sum(axis=0))
        return FLATTERY * float(total[:PROBES].max()), FLATTERY * float(total[PROBES:].max())

    @cached_property
    def _probes(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Random moves of members (in u) and of others (in c), and the coefficients they make."""
        rng, k = np.random.default_rng(0), len(self.members)
        z, x = rng.standard_normal((k, PROBES)), rng.standard_normal((len(self.others), PROBES))
        c = np.zeros((self.problem.n, 2 * PROBES))
        c[self.members, :PROBES] = self.P @ z
        c[self.members, PROBES:] = -(self.free[:, k:] @ x)
        c[self.others, PROBES:] = x
        return z, x, c


class Inverse:
    """The bordered kernel matrix of the rows at a knot, kept while they stay the same.

    Parameters
    ----------
    problem : Problem
    lasting : bool
        Make the table from the last one where few of the rows are others.  For that all n columns
        are kept.

    Attributes
    ----------
    members : the rows.
    system : what solves with it.
    """

    def __init__(self, problem: Problem, lasting: bool = False):
        self.problem, self.lasting = problem, lasting
        self._had: IntArray | None = None
        self._columns: Columns | None = None
        self._every: FloatArray | None = None

    def of(self, full: FullSolution) -> FullSolution:
        """Make it that of the members; returns a solution whose members are independent."""
        if self._had is not None and np.array_equal(full.members, self._had):
            return full
        last, self._had, self.members = self._columns, None, full.members
        self.system = self._system()
        if self.system.least > tolerances.DEPENDENT:
            self._had = full.members
        elif len(full.members) > 1:
            full = independent(full)
            self.members = full.members
            self.system = self._system()
        self._every = self._from_last(last)
        self._columns = None
        return full

    def columns(self, others: IntArray, leaving: int = 0) -> Columns:
        """For these other rows, of which so many are to be left out."""
        most = WHOLE_BYTES / (8 * max(len(others) * (len(others) + len(self.members)), 1))
        complete = 2 * leaving >= len(others) > 0 and most >= 1
        had = self._columns
        if had is None or not np.array_equal(had.others, others) or complete > had.complete:
            given = self.problem, self.system, self.members, others, complete, self._every
            had = self._columns = Columns(*given)
        return had

    def _from_last(self, last: Columns | None) -> FloatArray | None:
        """The rows of the members for all rows of the problem, if the last ones are much alike."""
        if not self.lasting or last is None or len(self.members) < WORTH:
            return None
        if len(np.setxor1d(last.members, self.members)) > ALIKE * len(self.members):
            return None
        problem = self.problem
        return swept(problem.K, problem.fit_intercept, last.whole_rows, last.members, self.members)

    def _system(self) -> Bordered:
        K_MM = gather(self.problem.K, self.members, self.members)
        system = Bordered(K_MM, self.problem.fit_intercept)
        ridge = RIDGE * scale_of(K_MM)
        while system.least == 0.0:  # not positive definite, by rounding
            K_MM.flat[:: len(K_MM) + 1] += ridge
            system, ridge = Bordered(K_MM, self.problem.fit_intercept), 10.0 * ridge
        return system


@dataclass(frozen=True)
class Found:
    """What the compiled loop says of solutions without some row each.

    failed : came to nothing.
    value, moves_free, moves_other, room, clipped : as ``_leave_out.FACTS`` explains.
    """

    failed: NDArray[np.bool_]
    value: FloatArray
    moves_free: FloatArray
    moves_other: FloatArray
    room: FloatArray
    clipped: FloatArray


class Table:
    """The compiled loop for one solution on the rows in play.

    Parameters
    ----------
    base : FullSolution
        With independent members.
    columns : Columns
        Of those members, and of the other rows that may change their state.
    given : (int, float), optional
        One of those, and what its coefficient is to rise by whichever row is left out: ``base`` is
        the solution before that, but has the row in the place where it is then.
    """

    def __init__(
        self, base: FullSolution, columns: Columns, given: tuple[int, float] | None = None
    ):
        problem, members = base.problem, columns.members
        self.base, self.columns = base, columns
        rows = np.concatenate([members, columns.others])
        self.position = np.full(problem.n, -1, dtype=np.intp)
        self.position[rows] = np.arange(len(rows))
        # Rounding may put a row a little behind its knot; the loop expects it on its own side.
        self.u = np.clip(base.u, *base.limits)
        self.u[members] = problem.loss.knots[members, base.state[members] // 2]
        self.tol = tolerances.CROSSING * max(1.0, float(np.abs(base.u).max()))
        self.coef = base.coef
        if given is not None:
            self.coef = base.coef.copy()
            self.coef[given[0]] += given[1]
        start = Base(
            problem.K, rows, columns.free, columns.border, columns.tail,
            self.u[rows], self.coef[rows], base.state[rows],
            problem.loss.knots[rows], base.levels[rows], problem.fit_intercept, self.tol,
            whole=columns.whole,
        )  # fmt: skip
        offset = np.zeros(len(rows))
        if given is not None:
            offset = given[1] * self._columns(np.array([given[0]]))[0][0]
        self.given = 0.0 if given is None else abs(given[1])
        self._loop = LeaveOut(start, tolerances.AT_BOUND, offset, self.given)

    @property
    def events(self) -> int:
        """Changes of place so far, all rows together."""
        return int(self._loop.events)

    def facts(self, who: IntArray, taken: FloatArray, cancel: NDArray[np.int32]) -> Found:
        """Leave out each row of ``who``, taking that much from its coefficient."""
        return self._leave_out(who, taken, NOTHING, NOTHING, Driven.NOBODY, cancel)

    def solutions(
        self,
        who: IntArray,
        taken: FloatArray,
        cancel: NDArray[np.int32],
        drive: Driven = Driven.NOBODY,
    ) -> tuple[FloatArray, Found]:
        """The same, with the coefficients; those that ``drive`` says also event by event."""
        coef = self._start(who)
        drive = Driven.NOBODY if self.given else drive
        found = self._leave_out(who, taken, coef, NOTHING, drive, cancel)
        coef[np.arange(len(who)), who] = self.coef[who] - taken
        return coef, found

    def solutions_and_values(
        self, who: IntArray, taken: FloatArray, cancel: NDArray[np.int32]
    ) -> tuple[FloatArray, FloatArray, Found]:
        """The same with u = K c + b of the rows in play."""
        coef, u = self._start(who), np.empty((len(who), self.base.problem.n))
        u[:] = self.base.u - self.u  # from where the loop thinks it starts to where it does
        found = self._leave_out(who, taken, coef, u, Driven.NOBODY, cancel)
        coef[np.arange(len(who)), who] = self.coef[who] - taken
        return coef, u, found

    def covers(self, rows: IntArray) -> bool:
        """Are all of these in play?"""
        return bool((self.position[rows] >= 0).all())

    def _start(self, who: IntArray) -> FloatArray:
        coef = np.empty((len(who), self.base.problem.n))
        coef[:] = self.coef
        return coef

    def _leave_out(
        self,
        who: IntArray,
        taken: FloatArray,
        coef: FloatArray,
        u: FloatArray,
        drive: Driven,
        cancel: NDArray[np.int32],
    ) -> Found:
        outcome, facts = np.empty(len(who), dtype=np.int8), np.empty((len(who), len(FACTS)))
        columns, column_of = self._columns(who)
        self._loop.leave_out(
            who,
            self.position[who],
            taken,
            columns,
            column_of,
            facts,
            outcome,
            coef,
            u,
            drive,
            cancel,
        )
        if cancel[0]:
            raise Cancelled
        return Found(outcome != Outcome.DONE, *facts.T)

    def _columns(self, who: IntArray) -> tuple[FloatArray, IntArray]:
        """The table's columns (as rows) of rows on a segment, and which is whose (-1: none)."""
        problem, members, others = self.base.problem, self.columns.members, self.columns.others
        k, place = len(members), self.position[who]
        on_segment = np.flatnonzero((place < 0) | (place >= k))
        column_of = np.full(len(who), -1, dtype=np.intp)
        column_of[on_segment] = np.arange(len(on_segment))
        if self.columns.whole is not None and (place >= 0).all():
            column_of[on_segment] = place[on_segment] - k
            return self.columns.whole, column_of
        out = who[on_segment]
        response, tail = self.columns.solved_for(out, place[on_segment] - k)
        columns = np.empty((len(out), k + len(others)))
        columns[:, :k] = -response
        columns[:, k:] = problem.K[np.ix_(out, others)] - tail[:, None]
        columns[:, k:] -= response @ self.columns.border.T
        return columns, column_of
