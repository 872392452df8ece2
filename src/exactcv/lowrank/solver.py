"""Many training problems over the same rows, in few passes.

Every problem (a *column*, see ``lowrank/passes/sweep.py``) is solved in rounds.  A round is one
pass over all rows for all open columns together, and one small problem for each:

1. *Pass* at the present guess theta: rows far from their knots add up to a linear term; rows near
   the margin (near a knot) are collected.  If they are too many, a sample of them stands for all,
   with larger weights, and the linear term makes up the difference: it is such that the small
   problem has the same gradient at theta as the whole.
2. *Small problem* (``lowrank/small/solve.py``): its solution is the next guess.  With all rows near
   the margin collected it is the solution itself, unless a row beyond them changed sides.

The pass of the next round is also the proof: the coefficients of the small problem, with all other
rows at the bound that goes with their segment, are feasible for the dual problem, so the duality
gap of the guess at which the pass was made is known.  A column is done when that gap, and the
violation of the optimality conditions, meet the tolerance.

The first guess comes from rows in memory, along the grid (``lowrank/small/guesses.py``).  If they
are all rows it is the solution, and one pass proves it.  Else each round cuts the error by a factor
of three or so; once the rows within reach of the error are few enough to be collected it vanishes.
The number of passes grows like log n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from ..judge.certificate import attainable
from ..judge.features import Extent, Tally, figures, tally
from ..problem.loss_rules import LossRule
from ..problem.losses import PiecewiseLinear
from ..runtime.space import Space
from ..runtime.threads import Workers
from ..types import BoolArray, FloatArray, IntArray
from .passes.sweep import Chunk, Columns, Features, LeftOut, Sums, Work, merge, sweep
from .small.around import Around
from .small.beyond import Crossings, Standing
from .small.guesses import STRIDES, WIDTH, Column, Guesses, Sample, like, widest_stride
from .small.reduced import Reduced, Reply, StateArray, at_bound, at_knot, spare
from .small.solve import approach, solve

__all__ = ["EXCUSED", "LARGEST", "Column", "Room", "Runner", "Sample", "Solved", "Solver"]

Result = TypeVar("Result")

# Rounds after which a column gets more rows, and after which it is given up.
MANY_ROUNDS, MOST_ROUNDS = 10, 30
# The same where its small problem has all rows: the rounds then differ by rounding alone.
ROUNDS_OF_ALL = 3
# Rounding may leave no digit of w = sum c z, but it spoils neither b nor the objective beyond this.
EXCUSED = 1e-4
# The next guess is expected to be this much nearer than the last step was long.
CONTRACTION = 0.5
# With more than this left of the error a sample is too small: in many dimensions it says little.
SLOW = 0.5
# Of the difference between two neighbours, how far a guess in between may be off.
BETWEEN = 0.1
# Copies of its rows that the solver of a small problem has: all, distinct ones, those in reach.
COPIES = 3
# Rows that near to the margin are on it.
ON_MARGIN = 1e-6
# Rows in a small problem for each row that is on the margin, and at most.
PER_FREE_ROW, LARGEST = 50, 12_000


@dataclass(frozen=True)
class Room:
    """How many rows there may be.

    target : in a small problem, about.
    least, largest, most : in a small problem at least, at most, and what it may grow to in need.
    capacity : that a pass may collect for all of its columns together.
    together : that several small problems may have, with their features.
    """

    target: int
    least: int
    largest: int
    most: int
    capacity: int
    together: int


class Runner(Protocol):
    """Runs a function on every chunk of the data, somewhere; results in the order of the rows."""

    n: int  # rows with positive weight

    def map(self, work: Callable[[Chunk], Result]) -> list[Result]: ...

    def each(
        self, work: Callable[[Chunk], Result], use: Callable[[Chunk, Result], None]
    ) -> None: ...

    def joined(self, work: Work) -> Any:
        """The results of all chunks, put together by ``work.join`` and left where they are."""
        ...

    def added(self, work: Work) -> Any:
        """The same of results that are sums, put together here."""
        ...

    def small(
        self,
        work: Callable[..., Result],
        shared: Sequence[Any],
        items: Sequence[tuple[Any, ...]],
        seen: Callable[[Result], Result] | None = None,
    ) -> list[tuple[Result, Any]]:
        """``work(*shared, *item)`` of each item, side by side, and where the result is kept.

        What is kept somewhere (this, or what `joined` returns) may be shared, or part of an item.
        ``seen`` is what need come of a result that is kept elsewhere.
        """
        ...


class _Near(NamedTuple):
    """The rows of one column's small problem."""

    rows: IntArray
    Z: FloatArray
    loss: PiecewiseLinear
    weight: FloatArray
    u: FloatArray


@dataclass(frozen=True)
class Solved:
    """A solution, the rows near its margin, and what the rest of the rows amount to.

    problem : the small problem, without the features of its rows if these are ``at_hand``;
        ``rows`` are its row numbers, ``u`` their values at theta.
    width : (2,), every training row nearer to the margin is among them (by side).
    primal, gap, kkt : the objective (1/2 ||w||^2 + C sum w_i loss), its absolute duality gap and
        the violation of the optimality conditions, at theta.
    at_bound : number of rows whose coefficient is at its bound.
    home : where the `Round` that found it is kept, for work that needs it there.
    """

    C: float
    theta: FloatArray
    problem: Reduced
    rows: IntArray
    u: FloatArray
    coef: FloatArray
    state: StateArray
    width: FloatArray
    primal: float
    gap: float
    kkt: float
    at_bound: int
    home: Any = None
    at_hand: Features | None = None

    def with_features(self) -> Solved:
        """The same with the features of its rows."""
        if self.at_hand is None:
            return self
        return replace(self, problem=replace(self.problem, Z=self.at_hand.take(self.rows)))

    def features_of(self, rows: IntArray, Z: FloatArray) -> FloatArray:
        """Those of rows by their numbers: Z, unless they are at hand."""
        return Z if self.at_hand is None else self.at_hand.take(rows)

    def coef_of(self, problem: Reduced, near: _Near) -> FloatArray:
        """Coefficients of other rows: those that are not in the small problem are at a bound."""
        coef = problem.held(near.u)
        order = np.argsort(self.rows)
        place = np.minimum(np.searchsorted(self.rows, near.rows, sorter=order), len(order) - 1)
        if len(order):
            mine = order[place]
            known = self.rows[mine] == near.rows
            coef[known] = self.coef[mine[known]]
        return coef

    @property
    def free(self) -> BoolArray:
        """Which of the rows are on the margin."""
        return at_knot(self.state)

    @property
    def distance(self) -> FloatArray:
        """How far they are from it."""
        return self.problem.loss.distance(self.u)

    @property
    def relative_gap(self) -> float:
        return self.gap / max(abs(self.primal), float(np.finfo(float).tiny))


@dataclass
class _State:
    """Where one column stands.

    ``exact``: the guess is the solution of a small problem whose rows stood for no others.
    """

    column: Column
    theta: FloatArray
    error: float | None
    target: int  # rows to collect
    exact: bool = False
    rounds: int = 0
    rounds_of_all: int = 0
    best: float = np.inf
    best_theta: FloatArray | None = None


class Round(NamedTuple):
    """What came of one round of a column: the solution if it is proved, else the next guess.

    ``blind``: b has an interval that may end sooner, at rows which were not collected.
    """

    solved: Solved | None
    reply: Reply
    primal: float
    blind: bool = False


class Solver:
    """Solves columns; see the top of this file.

    Parameters
    ----------
    runner : Runner
    guesses : Guesses
    left_out : sequence
        For each fold its row numbers, sorted.
    fit_intercept : bool
    tol : float
    workers : Workers
        Threads for the small problems.
    loss : LossRule
    extent : Extent
    room : Room
    seed : int
        For the keys of the rows.
    space : Space
        For what the threads have in large arrays.
    """

    def __init__(
        self,
        runner: Runner,
        guesses: Guesses,
        left_out: Sequence[IntArray],
        fit_intercept: bool,
        tol: float,
        workers: Workers,
        loss: LossRule,
        extent: Extent,
        room: Room,
        seed: int,
        space: Space,
    ):
        self.runner, self.guesses, self.left_out = runner, guesses, left_out
        self.sample, self.counted = guesses.sample, guesses.sample.counted()
        self.fit_intercept, self.tol = fit_intercept, tol
        self.workers, self.loss, self.extent = workers, loss, extent
        self.room, self.seed = room, seed
        self.space = space
        self.rounds = Rounds(fit_intercept, tol, loss, extent, workers.cancel, space)
        self.passes = self.steps = 0

    # ---- the path -------------------------------------------------------------------------------

    def path(self, Cs: FloatArray, first: dict[int, Column]) -> list[Solved]:
        """Full-data solutions along rising Cs: first those with a guess, then those in between.

        Between two values of C the solution is nearly linear in C (without rows on the margin it is
        exactly so): far better guesses than a sample of the rows gives.
        """
        found = dict(zip(first, self.solve(first.values()), strict=True))
        for stride in (k for k in STRIDES if k < widest_stride(len(Cs))):
            some = [k for k in range(0, len(Cs), stride) if k not in found]
            columns = {k: self._between(Cs, found, k) for k in some}
            found |= dict(zip(columns, self.solve(columns.values()), strict=True))
        return [found[k] for k in range(len(Cs))]

    def _between(self, Cs: FloatArray, found: dict[int, Solved], k: int) -> Column:
        """A guess from the two solutions on either side."""
        low = max(i for i in found if i < k)
        high = min(i for i in found if i > k)
        one, other = found[low], found[high]
        gap = Cs[high] - Cs[low]
        share = (Cs[k] - Cs[low]) / gap if gap > 0 else 0.0
        theta = (1.0 - share) * one.theta + share * other.theta
        free = max(np.count_nonzero(end.free) for end in (one, other))
        error = BETWEEN * self.sample.apart(one.theta, other.theta) if free else 0.0
        return Column(float(Cs[k]), -1, theta, error, int(free))

    def without(self, columns: Sequence[Column]) -> list[Column]:
        """Better guesses for columns that leave out a fold, if all rows are in memory."""
        if self.sample.whole:
            self.guesses.prepare()
        found = self.workers.map(
            lambda column: self.guesses.without(column, self.left_out[column.fold]), columns
        )
        self.guesses.let_go()
        return found

    def around(self, some: Sequence[Solved], count: int) -> Any:
        """About ``count`` rows nearest to the margin of each solution, in one pass.

        They stay where they are; `Rounds.around` takes them up, by their place in ``some``.
        """
        theta = np.array([one.theta for one in some])
        away = self.counted.distance(theta)
        wanted = count * self.counted.n / self.runner.n
        width = np.array([max(_rank(column, wanted), ON_MARGIN) for column in away.T])
        fold, rate = np.full(len(some), -1), np.ones(len(some))
        plan = Columns(theta, fold, np.column_stack([width, width]), rate, self.seed, self.loss)
        self.passes += 1
        return self.runner.joined(_Sweep(plan, {}))

    def crossed(self, standings: Sequence[Standing], count: float) -> Any:
        """In which solutions rows beyond cross, by one pass, and about ``count`` of these rows.

        The answer (`small.beyond.Crossed`) stays where it is.
        """
        self.passes += 1
        return self.runner.joined(Crossings(standings, self.loss, count / self.runner.n))

    # ---- rounds ---------------------------------------------------------------------------------

    def solve(self, columns: Iterable[Column]) -> Iterator[Solved]:
        """Solutions, in the order of the columns; those that miss ``tol`` say so themselves."""
        batch: list[Column] = []
        left = self.room.capacity
        for column in columns:
            left -= self._rows_for(column)
            if batch and left < 0:
                yield from self._solve_together(batch)
                batch, left = [], self.room.capacity - self._rows_for(column)
            batch.append(column)
        if batch:
            yield from self._solve_together(batch)

    def _solve_together(self, columns: list[Column]) -> list[Solved]:
        states = [_State(c, c.theta, c.error, self._rows_for(c)) for c in columns]
        done: list[Solved | None] = [None] * len(columns)
        open_ = list(range(len(columns)))
        while open_:
            mine = [states[k] for k in open_]
            plan = self._plan(mine)
            sums = self.runner.joined(_Sweep(plan, self._left_out_of(plan)))
            self.passes += 1
            # The longest first, so that no thread is left with one when the others are done.
            order = np.argsort([-state.target for state in mine], kind="stable")
            items = [(mine[p], int(p)) for p in order]
            found = self.runner.small(self.rounds, (plan, sums), items, _without_rows)
            for p, (one, home) in zip(order, found, strict=True):
                self.steps += one.reply.steps
                if one.solved is not None:
                    done[open_[p]] = replace(one.solved, home=home)
                else:
                    self._next_guess(mine[p], plan, p, one)
            open_ = [k for k in open_ if done[k] is None]
        return [solved for solved in done if solved is not None]

    def _rows_for(self, column: Column) -> int:
        """How many rows the small problems of a column are to have."""
        if self.sample.whole and column.error == 0.0:
            return max(self.room.least, 2 * column.free)
        wanted = min(PER_FREE_ROW * column.free, self.room.largest)
        return min(max(self.room.least, wanted), self.room.most)

    def _left_out_of(self, plan: Columns) -> LeftOut:
        return {int(f): self.left_out[int(f)] for f in np.unique(plan.fold[plan.fold >= 0])}

    def _plan(self, states: list[_State]) -> Columns:
        """How wide to collect, and which share, by what the sample has near the margin."""
        theta = np.array([state.theta for state in states])
        away = self.counted.distance(theta)
        scale = self.runner.n / self.counted.n
        width, rate = np.empty((len(states), 2)), np.ones(len(states))
        sides = [~self.counted.loss.upward, self.counted.loss.upward]
        for p, state in enumerate(states):
            if self.runner.n <= 2 * state.target:
                width[p] = np.inf
                continue
            reach = np.inf if state.error is None else max(WIDTH * state.error, ON_MARGIN)
            if state.rounds + 1 >= MOST_ROUNDS:
                reach = 0.0  # the last round is to tell how good the guess is
            expected = scale * np.count_nonzero(away[:, p] <= reach)
            if expected > 2 * state.target:
                width[p], rate[p] = reach, state.target / expected
                continue
            for side, mask in enumerate(sides):
                share = state.target / scale * (0.5 if all(map(np.any, sides)) else 1.0)
                width[p, side] = max(reach, _rank(away[mask, p], share))
        fold = np.array([state.column.fold for state in states])
        return Columns(theta, fold, width, rate, self.seed, self.loss)

    def _next_guess(self, state: _State, plan: Columns, p: int, found: Round) -> None:
        """Take the solution of the small problem for the next guess, unless it is no better."""
        theta, reply, width = plan.theta[p], found.reply, plan.width[p]
        state.rounds += 1
        state.rounds_of_all += _has_all(plan, p)
        if found.primal > state.best * (1.0 + 1e-9) or not reply.solved:
            # The last step made it worse: back, and try again with more rows.
            state.target = min(2 * state.target, self.room.most)
            theta = state.best_theta if state.best_theta is not None else theta
            state.theta, state.error = theta, None if state.error is None else 4.0 * state.error
            state.exact = False
            return
        state.best, state.best_theta = found.primal, theta
        moved, sampled = self.counted.apart(reply.theta, theta), plan.rate[p] < 1.0
        beyond = sampled or WIDTH * moved > width.min()
        error = CONTRACTION * moved if beyond else 0.0
        slow = sampled and state.error is not None and error > SLOW * state.error
        if found.blind or state.rounds % MANY_ROUNDS == 0:
            state.target = min(2 * state.target, self.room.most)
        elif slow:  # no more than its part of what one pass may collect
            most = min(self.room.most, self.room.capacity // (2 * len(plan.fold)))
            state.target = max(state.target, min(2 * state.target, most))
        state.theta, state.error = reply.theta, error
        state.exact = bool(plan.rate[p] == 1.0)


def _without_rows(found: Round) -> Round:
    """The same without features, which the work that needs them finds where it is kept."""
    if found.solved is None:
        return found
    short = _short(found.solved.problem)
    return found._replace(solved=replace(found.solved, problem=short))


def _short(problem: Reduced) -> Reduced:
    """The problem without features."""
    return replace(problem, Z=np.zeros((problem.n, 0)))


@dataclass(frozen=True)
class Rounds:
    """The small problem of one column after a pass, as something that can be sent elsewhere."""

    fit_intercept: bool
    tol: float
    loss: LossRule
    extent: Extent
    cancel: NDArray[np.int32]
    space: Space

    def __call__(self, plan: Columns, sums: Sums, state: _State, p: int) -> Round:
        """The solution of the p-th column if it is proved, else the next guess."""
        size = 8 * COPIES * plan.theta.shape[1] * int(np.count_nonzero(sums.gathered.of == p))
        with self.space.taken(size, self.cancel):
            return self._round(plan, sums, state, p)

    def _round(self, plan: Columns, sums: Sums, state: _State, p: int) -> Round:
        column, rate, theta = state.column, float(plan.rate[p]), plan.theta[p]
        rest = sums.rest.tally(p, column.C)
        near = _near_rows(sums, p, self.loss)
        problem = self._small_problem(column.C, rate, sums.near[p], rest, near)
        if rate < 1.0 and state.error:
            reply = approach(problem, state.theta, state.error)
        else:
            error = None if state.exact else state.error
            reply = solve(problem, state.theta, self.cancel, error)
        blind = False
        if rate == 1.0:
            here = tally(near.Z, near.loss, problem.box, reply.coef, theta, self.extent)
            kkt, gap, primal, floor = figures([rest, here], theta, self.extent, self.fit_intercept)
            goal = float(attainable(self.tol, floor, tolerances.POLISH * self.tol))
            fair = min(goal, EXCUSED)
            # Any b of an interval is optimal; the one to report is that of the rule.
            same = abs(reply.theta[-1] - theta[-1]) <= max(self.tol, fair) * max(
                1.0, abs(theta[-1])
            )
            blind = spare(problem, reply.coef, theta) > plan.width[p].min()
            good = same and kkt <= goal and gap <= fair * primal and not blind
            rounds_of_all = state.rounds_of_all + _has_all(plan, p)
            if good or state.rounds + 1 >= MOST_ROUNDS or rounds_of_all >= ROUNDS_OF_ALL:
                full = int(sums.rest.bound[p] + np.count_nonzero(at_bound(problem, reply.coef)))
                at_hand = sums.gathered.at_hand
                solved = Solved(
                    column.C, theta, problem if at_hand is None else _short(problem), near.rows,
                    near.u, reply.coef, reply.state, plan.width[p], primal, gap,
                    np.inf if blind else kkt, full, at_hand=at_hand,
                )  # fmt: skip
                return Round(solved, reply, primal)
        loss = rest.loss + column.C * float(near.weight @ near.loss.value(near.u))
        return Round(None, reply, 0.5 * float(theta[:-1] @ theta[:-1]) + loss, blind)

    def around(self, sums: Sums, one: Solved, p: int) -> Around:
        """The rows of a pass around the margin of the p-th solution (`Solver.around`)."""
        rest, near = sums.rest.tally(p, one.C), _near_rows(sums, p, self.loss)
        problem = self._small_problem(one.C, 1.0, sums.near[p], rest, near)
        coef = one.coef_of(problem, near)
        return Around(one.C, one.theta, problem, near.rows, near.u, coef, rest)

    def _small_problem(
        self, C: float, rate: float, masses: FloatArray, rest: Tally, near: _Near
    ) -> Reduced:
        """What the rows that are not here amount to at theta is a linear term.

        Where a sample stands for more rows than it has, what it has too much of is taken back.
        """
        box = C * near.weight
        a, beta = rest.pull, rest.total
        if rate < 1.0:
            box = C * like(near.weight, near.loss.upward, masses)
            extra = (box - C * near.weight) * near.loss.slope(near.u)
            a, beta = a + extra @ near.Z, beta + float(extra.sum())
        return Reduced(near.Z, near.loss, box, a, beta, self.fit_intercept)


def _has_all(plan: Columns, p: int) -> bool:
    """Has the small problem all rows?"""
    return bool(plan.rate[p] == 1.0 and np.isinf(plan.width[p]).all())


def _near_rows(sums: Sums, p: int, loss: LossRule) -> _Near:
    rows, Z, y, weight, u = sums.gathered.column(p)
    return _Near(rows, Z, loss(y), weight, u)


@dataclass(frozen=True)
class _Sweep:
    """``sweep`` for these columns, as something that can be sent elsewhere."""

    columns: Columns
    left_out: LeftOut

    def __call__(self, chunk: Chunk) -> Sums:
        return sweep(chunk, self.columns, self.left_out)

    def join(self, results: list[Sums]) -> Sums:
        return merge(results)


def _rank(values: FloatArray, count: float) -> float:
    """A bound that about ``count`` of the values meet (a sample may have less than one)."""
    if not len(values):
        return np.inf  # so few that all of them may be collected
    k = min(max(int(np.ceil(count)), 1), len(values) - 1)
    return float(np.partition(values, k)[k])
