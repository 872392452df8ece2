"""The solution of a problem in m dimensions, from a guess.

1. Rows are taken in units of the longest, equal rows become one (``sites.py``), and losses are
   taken apart at their knots (``hinges.py``): what is said of rows below is true of their hinges.
2. If the guess is the solution, but for a row or two, exchange steps say so at once.
3. Smoothing (``smoothing.py``) comes near the solution, whatever the guess; as soon as tau is
   small, with the rows nearest to the margin alone, the others being added to the linear term.
4. Exchange steps (``exchange.py``) go the rest of the way.
5. All rows are looked at: those set aside that have changed sides are taken in, and again.

A step costs two products with the rows, and what the free rows take, m^2 k for k of them: nothing
grows with the square of the number of rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...types import FloatArray, IntArray
from .exchange import Exchange, exchange
from .hinges import HIGH, LOW, Hinges
from .ordinary import by_engine
from .reduced import Reduced, Reply, best_intercept, strictly_inside, without_rounding
from .sites import Sites, sites_of
from .smoothing import LEAST_TAU, Smoothed, sharpen, sharpened, smoothed

__all__ = ["Prepared", "approach", "solve"]

# Margins that a guess may have at its free rows; exchange steps from it, and from where smoothing
# ends, for each dimension.
ON_MARGIN, AT_ONCE, STEPS = 1e-7, 20, 20
# Exchange steps before less smoothing is tried: where faces meet at blunt angles they may be many.
AT_A_TIME = 120
# Rows in reach that are worth being taken for themselves: at most this share of all; and how many
# for each dimension.
SHARE, PER_DIMENSION = 0.4, 6
ATTEMPTS = 12
# Where far more rows than dimensions are on the margin at once (w = 0), exchange steps may never
# end: the last resort is the engine, on the kernel matrix of the rows, if they are no more than so.
MOST_ROWS = 6000
# Weights so far apart leave the light rows few digits in sums over all rows, which the steps in m
# dimensions take; the engine has each row on its own scale.
WIDE = 1e6
# The smoothing that is left where the solution is not worth more, of how far the guess may be off.
ROUGH = 0.25
# Exchange steps begin when the guess has so many rows in a wrong place, or a few percent.  Where it
# takes long to find out, that is asked when less smoothing has lost no more than this share.
SURPRISES = 4
STEADY = 0.1


def solve(
    problem: Reduced,
    theta: FloatArray,
    cancel: NDArray[np.int32],
    tau: float | None = None,
    sites: Sites | None = None,
) -> Reply:
    """The solution, from a guess at theta that may be off by about ``tau``.

    ``sites`` are those of the rows, if they are known.
    """
    return Prepared(problem, sites).solve(problem, theta, cancel, tau)


def approach(problem: Reduced, theta: FloatArray, error: float) -> Reply:
    """About the solution, from a guess at theta that is off by about ``error``: nearer than that.

    Where rows stand for others a guess is all that the solution is.  No coefficients are told.
    """
    hinges = problem.hinges
    near = smoothed(hinges, theta, error, len(hinges))
    while near.tau > ROUGH * error:
        sharpen(hinges, near)
    nothing = np.zeros(problem.n)
    return Reply(near.theta, nothing, nothing.astype(np.int8), True, near.steps)


class Prepared:
    """Rows in units, and which of them are equal: for many problems that have the same rows.

    The problems may differ in boxes and in the linear term.
    """

    def __init__(self, problem: Reduced, sites: Sites | None = None):
        self.sites = sites_of(problem.Z, problem.loss) if sites is None else sites
        self.unit = _unit(problem.Z)
        self.Z = problem.Z if self.unit == 1.0 else problem.Z / self.unit
        self.few, self.loss = None, problem.loss
        if self.sites.any:
            self.few, self.loss = self.Z[self.sites.first], problem.loss.at(self.sites.first)

    def solve(
        self, problem: Reduced, theta: FloatArray, cancel: NDArray[np.int32], tau: float | None
    ) -> Reply:
        """The solution of a problem with these rows, from a guess."""
        scale = np.append(np.full(self.Z.shape[1], self.unit), 1.0)
        reply = self._in_units(problem, theta * scale, cancel, tau)
        return replace(reply, theta=reply.theta / scale, coef=reply.coef / self.unit**2)

    def _in_units(
        self, problem: Reduced, theta: FloatArray, cancel: NDArray[np.int32], tau: float | None
    ) -> Reply:
        """The problem with rows of length 1 at most, about: in w unit and c unit^2."""
        unit, square = self.unit, self.unit**2
        problem = replace(
            problem,
            Z=self.Z,
            box=problem.box * square,
            a=problem.a * unit,
            beta=problem.beta * square,
        )
        if self.few is None:
            return _canonical(problem, _distinct(problem, theta, cancel, tau))
        box = self.sites.total(problem.box)
        few = replace(problem, Z=self.few, loss=self.loss, box=box)
        return spread(problem, self.sites, _distinct(few, theta, cancel, tau))


def _unit(Z: FloatArray) -> float:
    """A power of two about as large as the longest row: rows in units of it lose no digit."""
    longest = float(np.sqrt(np.einsum("ij,ij->i", Z, Z).max(initial=0.0)))
    return float(2.0 ** np.round(np.log2(longest))) if 0.0 < longest < np.inf else 1.0


def spread(problem: Reduced, sites: Sites, reply: Reply) -> Reply:
    """The solution of the sites as one of the rows."""
    whole = Reply(
        reply.theta,
        sites.spread(reply.coef, problem.box),
        reply.state[sites.of],
        reply.solved,
        reply.steps,
    )
    return _canonical(problem, whole)


def _distinct(
    problem: Reduced, theta: FloatArray, cancel: NDArray[np.int32], tau: float | None
) -> Reply:
    """Rows of which no two are equal."""
    boxes, few = problem.box[problem.box > 0], problem.n <= MOST_ROWS
    if len(boxes) and boxes.max() > WIDE * boxes.min() and few:
        return by_engine(problem, theta, cancel)
    reply = _stepwise(problem.hinges, theta, cancel, tau)
    if not reply.solved and few:
        found = by_engine(problem, theta, cancel)
        return replace(found, steps=found.steps + reply.steps)
    coef, state = problem.joined(reply.coef, reply.state)
    return replace(reply, coef=coef, state=state)


def _stepwise(
    problem: Hinges, theta: FloatArray, cancel: NDArray[np.int32], tau: float | None
) -> Reply:
    """By steps in m dimensions."""
    m = problem.Z.shape[1]
    r = problem.margins(theta)
    steps = 0
    if tau is None or tau < ON_MARGIN:
        free = np.flatnonzero((np.abs(r) < ON_MARGIN) & (problem.box > 0))
        if theta.any():
            reply = exchange(problem, theta, _nearest_to_margin(r, free, m), AT_ONCE, cancel)
            if reply.solved:
                return reply
            steps += reply.steps
            # The guess is worse than was said, by about as much as these steps have moved it.
            moved = problem.margins(reply.theta) - r
            tau = max(float(np.sqrt(np.mean(moved**2))), 1e-6)
    tau = _first_tau(r, m) if tau is None else max(tau, 1e-6)
    near = smoothed(problem, theta, tau, max(PER_DIMENSION * m, 200))
    reply = _nearest(problem, near, cancel)
    return replace(reply, steps=reply.steps + steps)


def _first_tau(r: FloatArray, m: int) -> float:
    """Where nothing is known of the guess: half of the rows are inside."""
    return max(float(np.quantile(np.abs(r), 0.5)) if len(r) else 1.0, 1e-6)


def _nearest(problem: Hinges, near: Smoothed, cancel: NDArray[np.int32]) -> Reply:
    """From a smoothed solution, with the rows in reach; then with those that were not, too."""
    r, n, m = near.r, len(problem), problem.Z.shape[1]
    size = max(PER_DIMENSION * m, 1000)
    if size >= SHARE * n:
        return _to_the_end(problem, near, cancel)
    reach = max(4.0 * near.tau, float(np.partition(np.abs(r), size)[size]))
    kept = np.flatnonzero(np.abs(r) <= reach)
    few = problem.only(kept, _held(problem, r))
    near, steps = near.only(problem, kept), 0
    for attempt in range(1, ATTEMPTS + 1):
        reply = _to_the_end(few, near, cancel)
        steps += reply.steps
        moved = problem.margins(reply.theta)
        aside = np.ones(n, dtype=bool)
        aside[kept] = False
        crossed = np.flatnonzero(aside & ((moved < 0) != (r < 0)))
        if not len(crossed):
            return _whole(problem, r, kept, replace(reply, steps=steps))
        tau = max(float(np.abs(moved[crossed]).max()), 1e-6)
        if len(kept) + len(crossed) > SHARE * n or attempt == ATTEMPTS:
            break
        # Those that have crossed, and others near the margin now.
        limit = np.partition(np.abs(moved), size)[size]
        kept = np.union1d(np.union1d(kept, crossed), np.flatnonzero(np.abs(moved) <= limit))
        r, few = moved, problem.only(kept, _held(problem, moved))
        near = smoothed(few, reply.theta, tau, m + 1)
    reply = _to_the_end(problem, smoothed(problem, reply.theta, tau, m + 1), cancel)
    return replace(reply, steps=steps + reply.steps)


def _to_the_end(problem: Hinges, near: Smoothed, cancel: NDArray[np.int32]) -> Reply:
    """Smooth less and less, until the rows inside are the free ones, or nearly so."""
    m = problem.Z.shape[1]
    near.settled = False  # the few rows that may still come or go would be surprises
    near = sharpened(problem, near, m + 1)
    before = np.zeros(0, dtype=np.intp)
    while True:
        free, last = near.inside, near.tau <= LEAST_TAU
        # Rows that stay inside are free, but for few: less smoothing would lose them to rounding.
        stayed = len(free) > 0 and np.array_equal(free, before)
        # A good guess needs no less smoothing, so that they are asked for at first.
        steady = not len(before) or 0 <= len(before) - len(free) <= STEADY * len(free)
        quick = len(free) ** 2 <= len(problem)
        before = free
        if last or (len(free) <= m + 1 and (steady or quick)):
            free = _nearest_to_margin(near.r, free, m)
            walk = Exchange(problem, near.theta, free)
            if walk.surprises <= SURPRISES + len(free) // 20 or stayed or last:
                solved = walk.run(STEPS * (m + 10) if last else AT_A_TIME, cancel)
                near.steps += walk.steps
                if solved or last or cancel[0]:
                    return replace(walk.reply(solved), steps=near.steps)
        sharpen(problem, near)


def _held(problem: Hinges, r: FloatArray) -> FloatArray:
    """Coefficients of hinges that are low or high, not free."""
    return np.where(r < 0, problem.box * problem.sign, 0.0)


def _nearest_to_margin(r: FloatArray, rows: IntArray, m: int) -> IntArray:
    """Of these rows, as many as can be independent."""
    return rows if len(rows) <= m + 1 else rows[np.argsort(np.abs(r[rows]), kind="stable")[: m + 1]]


def _whole(problem: Hinges, r: FloatArray, kept: IntArray, reply: Reply) -> Reply:
    """The reply for the kept hinges as one for all, the others being where r has them."""
    state, coef = np.where(r < 0, LOW, HIGH), _held(problem, r)
    state[kept], coef[kept] = reply.state, reply.coef
    return Reply(reply.theta, coef, state, reply.solved, reply.steps)


def _canonical(problem: Reduced, reply: Reply) -> Reply:
    """With no coefficient strictly inside its box b has an interval: its midpoint.

    Digits that rounding left of coefficients at a bound are dropped, and those of w with them:
    where nothing is lost (w = 0 within a wide tube) the objective is 0, and so must be the gap.
    """
    if not problem.fit_intercept or strictly_inside(problem, reply.coef).any():
        return reply
    coef = without_rounding(problem, reply.coef)
    w = reply.theta[:-1] if coef is reply.coef else problem.a + coef @ problem.Z
    return replace(reply, theta=np.append(w, best_intercept(problem.hinges, w)), coef=coef)
