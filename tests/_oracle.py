"""Running the methods without the front door, and what their certificates allow them to differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from _problems import FloatArray, Small

from exactcv import tolerances
from exactcv.algorithms import get_method
from exactcv.engine.bounds import Reach, Span, reach
from exactcv.engine.full_solution import FullSolution
from exactcv.engine.leave_one_out import LeaveOneOut, groups, in_play
from exactcv.engine.path import Tracker, full_path
from exactcv.engine.table import Driven, Inverse, Table
from exactcv.judge.certificate import implied_accuracy
from exactcv.judge.ledger import Ledger
from exactcv.problem.folds import Folds, leave_one_out_folds
from exactcv.problem.grid import Grid
from exactcv.problem.losses import hinge
from exactcv.problem.problem import Problem, Task
from exactcv.runtime.threads import Workers
from exactcv.types import BoolArray


@dataclass(frozen=True)
class Run:
    """What one method made of one task."""

    ledger: Ledger
    stats: dict[str, Any]

    @property
    def exact(self) -> bool:
        return self.ledger.certificate().exact

    def share(self, kind: str) -> float:
        """The share of (grid point, fold) slots that were settled in that way."""
        return self.ledger.counts()[kind] / self.ledger.how.size


def hinge_problem(small: Small, fit_intercept: bool = True) -> Problem:
    """Of the rows with some weight."""
    some = np.flatnonzero(small.weight > 0)
    K = np.ascontiguousarray(small.K[np.ix_(some, some)])
    return Problem(K, small.y[some], small.weight[some], hinge(small.y[some]), fit_intercept)


def make_task(
    small: Small,
    Cs: Any,
    folds: Folds | None = None,
    *,
    fit_intercept: bool = True,
    decision: bool = True,
    lambdas: bool = False,
    tol: float = 1e-8,
) -> Task:
    Cs = np.atleast_1d(np.asarray(Cs, dtype=float))
    n = len(small.y)
    problem = Problem(
        np.ascontiguousarray(small.K), small.y, small.weight, hinge(small.y), fit_intercept
    )
    grid = Grid(Cs, 1 / (2 * n * Cs), scale_with_fold=lambdas)
    return Task(problem, folds or leave_one_out_folds(n), grid, decision, tol)


def run(task: Task, method: str = "exact", n_threads: int = 1) -> Run:
    with Workers(n_threads) as workers:
        ledger = Ledger(task)
        stats = get_method(method).run(task, ledger, workers)
    return Run(ledger, stats)


@dataclass(frozen=True)
class Start:
    """From where the engine leaves rows out: the full-data solution at the first C, and bounds."""

    engine: LeaveOneOut
    full: FullSolution
    who: Any
    bounds: Reach

    @classmethod
    def of(cls, task: Task) -> Start:
        tracker, ledger = Tracker(task.problem, np.zeros(1, dtype=np.int32)), Ledger(task)
        point = full_path(task.problem, task.grid.Cs[:1], tracker)[0]
        if not ledger.full(0, point.coef, within=tolerances.POLISH * task.tol)[0]:
            point = tracker.polish(point)
            ledger.full(0, point.coef)
        span = Span.of(task.problem)
        engine = LeaveOneOut(task, ledger, span, np.zeros(1, dtype=np.int32))
        full = engine._solution(0, point)
        who = np.flatnonzero(full.coef)
        bounds = reach(task.problem, span, full, who, full.coef[who])
        return cls(engine, full, who, bounds)

    def tables(self) -> Iterator[tuple[Any, Table]]:
        """Rows to be left out, and the table from which that is done."""
        up, inverse = self.bounds.up, Inverse(self.full.problem)
        for mine, start in groups(self.full, up, ~up) if len(self.who) else ():
            base = inverse.of(start)
            moving = in_play(self.full, self.bounds, mine)
            moving[base.members] = False
            yield self.who[mine], Table(base, inverse.columns(np.flatnonzero(moving)))

    def drives(self) -> Iterator[tuple[int, FullSolution, FloatArray | None]]:
        """Each row, the solution from which it is left out, and the coefficients without it."""
        for who, table in self.tables():
            base = table.base
            cancel = np.zeros(1, dtype=np.int32)
            coef, found = table.solutions(who, base.coef[who], cancel, Driven.ALL)
            for j, row, bad in zip(who, coef, found.failed, strict=True):
                yield int(j), base, None if bad else row


def allowed(one: Ledger, two: Ledger) -> FloatArray:
    """How far decision values may be apart, pair by pair, given both certificates.

    The function: sqrt(K_xx) (sqrt(2 g_1) + sqrt(2 g_2)) (`certificate.implied_accuracy`).  The
    intercept: at a row whose coefficient is inside its box in both, u misses the knot by at most
    the KKT residual, so b differs by at most the two residuals and the difference of the functions
    at that row; if there is none, b is the midpoint of two limits knot - f(x_i), and differs by at
    most the difference of the functions at some row.
    """
    task = one.task
    folds, problem = task.folds, task.problem
    norm = np.sqrt(np.maximum(problem.diagonal, 0.0))
    unit = np.vectorize(implied_accuracy)(one.gap_abs, two.gap_abs, 1.0)[:, folds.pair_folds]
    out = unit * norm[folds.pair_rows]
    if problem.fit_intercept:
        scale = np.maximum(1.0, np.abs(one.decision).max(axis=1))[:, None]
        kkt = (one.kkt + two.kkt)[:, folds.pair_folds] * np.maximum(scale, largest_value(one))
        out = out + unit * norm.max() + kkt
    return np.asarray(out)


def clear_of_ties(ledger: Ledger) -> BoolArray:
    """Pairs whose label does not hang on the last digits of a value next to `tolerances.TIE`."""
    return np.asarray(np.abs(np.abs(ledger.decision) - tolerances.TIE) > 0.5 * tolerances.TIE)


def largest_value(ledger: Ledger) -> FloatArray:
    """max(1, |u|) over the full-data solutions, which those of the folds do not exceed by much."""
    return np.maximum(1.0, np.abs(ledger.h + ledger.intercept[:, None]).max(axis=1))[:, None]


def random_small(rng: np.random.Generator, largest: int = 40) -> Small:
    """A small problem of a random awkward kind; two rows of each class have a weight at least."""
    n, p = int(rng.integers(6, largest + 1)), int(rng.choice([1, 2, 5, 20]))
    y = np.where(rng.random(n) < rng.choice([0.5, 0.5, 0.2, 0.1]), 1.0, -1.0)
    y[:2], y[2:4] = 1.0, -1.0
    X = rng.normal(size=(n, p)) + rng.choice([0.0, 0.3, 1.5]) * y[:, None]
    kind = rng.integers(4)
    if kind == 0:
        X = np.round(X)
    elif kind == 1:
        X = X[rng.integers(max(2, n // 3), size=n)]
    kernel = rng.choice(["rbf", "narrow", "wide", "linear", "cubic"])
    D = ((X[:, None] - X) ** 2).sum(axis=2)
    median = np.median(D[np.triu_indices(n, 1)])
    scale = median if median > 0 else 1.0
    if kernel in ("linear", "cubic"):
        K = X @ X.T / p
        K = K if kernel == "linear" else (K + 1.0) ** 3
    else:
        K = np.exp(-D / scale * {"rbf": 1.0, "narrow": 30.0, "wide": 0.01}[str(kernel)])
    weight = np.ones(n)
    weighting = rng.integers(4)
    if weighting == 0:
        weight = 10.0 ** rng.uniform(-1, 1, size=n)
    elif weighting == 1:
        weight = rng.integers(0, 3, size=n).astype(float)
        weight[:4] = 1.0
    shuffled = rng.permutation(n)
    K = K[np.ix_(shuffled, shuffled)]
    return Small(np.ascontiguousarray((K + K.T) / 2), y[shuffled], weight[shuffled])


@dataclass
class Twin:
    """Leaving one row out, event by event, with a fresh linear solve for each: slow and plain.

    For problems without ties: no two events at once, no rows that depend on others.
    """

    problem: Problem
    levels: FloatArray
    state: Any
    coef: FloatArray
    u: FloatArray
    events: int = 0

    def leave_out(self, j: int) -> FloatArray:
        sign = -np.sign(self.coef[j])
        self.state[j] = -1
        for _ in range(1000):
            if self.problem.fit_intercept and not len(self._members()):
                self._move_intercept(sign)
            du, dc = self._slopes(j)
            t, row, place = self._first_event(sign * du, sign * dc, abs(self.coef[j]))
            self.u += t * sign * du
            self.coef += t * sign * dc
            if row < 0:
                self.coef[j] = 0.0
                return self.coef
            self.state[row] = place
            self.events += 1
        raise AssertionError("too many events")

    def _members(self) -> Any:
        return np.flatnonzero((self.state >= 0) & (self.state % 2 == 1))

    def _slopes(self, j: int) -> tuple[FloatArray, FloatArray]:
        """How u and c move as c_j rises by one."""
        K, M, border = self.problem.K, self._members(), int(self.problem.fit_intercept)
        size = len(M)
        A = np.zeros((size + border, size + border))
        A[:size, :size] = K[np.ix_(M, M)]
        if border:
            A[size, :size] = A[:size, size] = 1.0
        answer = np.linalg.solve(A, -np.r_[K[M, j], np.ones(border)])
        dc = np.zeros(self.problem.n)
        dc[M], dc[j] = answer[:size], 1.0
        du = K @ dc + answer[size:].sum()
        du[M] = 0.0
        return du, dc

    def _first_event(self, du: FloatArray, dc: FloatArray, left: float) -> tuple[float, int, int]:
        best = (left, -1, -1)
        for i in np.flatnonzero(self.state >= 0):
            place = int(self.state[i])
            rate = dc[i] if place % 2 else du[i]
            if rate == 0.0:
                continue
            if place % 2:  # c rises: to the left in u, and conversely
                after = place - 1 if rate > 0 else place + 1
                t = (self.levels[i, after // 2] - self.coef[i]) / rate
            else:
                after = place + 1 if rate > 0 else place - 1
                if not 0 <= after <= 2 * self.problem.loss.n_knots:
                    continue
                t = (self.problem.loss.knots[i, after // 2] - self.u[i]) / rate
            best = min(best, (max(t, 0.0), int(i), after))
        return best

    def _move_intercept(self, sign: float) -> None:
        """c_j falls (sign -1), others must take up weight: u falls until a row meets its knot."""
        knots, m = self.problem.loss.knots, self.problem.loss.n_knots
        gaps = {}
        for i in np.flatnonzero(self.state >= 0):
            after = int(self.state[i]) + int(sign)
            if 0 <= after <= 2 * m:
                gaps[sign * (knots[i, after // 2] - self.u[i])] = int(i), after
        gap = min(gaps)
        row, after = gaps[gap]
        self.u += sign * gap
        self.state[row] = after


def compare(one: Run, two: Run, strictly: bool) -> None:
    """Every left-out value, to 1e-7 relative to max(1, |value|).

    Unless ``strictly``, to the accuracy that the two certificates imply if that is less.  With
    absolute duality gaps g_1 and g_2 (at most 1e-8 of the objective, and usually 1e-12 of it) it is
    sqrt(K_xx) (sqrt(2 g_1) + sqrt(2 g_2)) for f(x), and as much again at some training row for
    the intercept, plus the two KKT residuals: see `allowed`.
    """
    assert one.exact and two.exact
    a, b = one.ledger.decision, two.ledger.decision
    limit = 1e-7 * np.maximum(1.0, np.abs(b))
    if not strictly:
        # What the gaps imply is a bound, and far from what happens: no more than 1e-6 is accepted.
        limit = np.maximum(limit, np.minimum(allowed(one.ledger, two.ledger), 10 * limit))
    assert (np.abs(a - b) <= limit).all()
