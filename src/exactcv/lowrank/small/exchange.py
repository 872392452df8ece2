"""From a nearby point to the solution itself, by exchange of free rows.

The objective P of ``hinges.py`` is convex and piecewise quadratic.  The point theta always has the
free rows F on the margin (r_F = 0); all others are low or high.  A step goes towards the minimum
of P's present piece on that face (`Face.target`), as far as P itself falls:

    slope(t) = P'(theta; d) + t ||d_w||^2 + sum over rows crossed before t of B_i |dr_i|,

where a row is crossed at t_i = -r_i / dr_i.  Rows are crossed, many at once, until the slope is no
longer negative: if that happens at a row, it becomes free.  At the minimum of a face, a free row
whose coefficient is outside its box leaves, on the side where it belongs.  P falls with every step
but those of length 0, so no face returns, but by such steps: after a few of them the row that
leaves is drawn by lot, which no circle survives.

There are at most m + 1 free rows: a row that depends on them is passed over.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import tolerances
from ...types import BoolArray, FloatArray, IntArray
from .face import Face
from .hinges import FREE, HIGH, LOW, Hinges
from .reduced import Reply, best_intercept

__all__ = ["Exchange", "exchange"]

# Changes of r below this, relative to the largest possible, are rounding.
ROUNDING = 1e-13
# Steps after which margins and the inverse are computed anew.
REFRESH = 50
# Steps of length 0, one after the other, after which lots are drawn.
STUCK = 10
MOST_JUMPS = 3
# What is left of a solution is put right at most so often, with the sums over rows themselves, and
# as long as free rows are further off the margin: what they lose there is in units of their boxes.
CORRECTIONS, ON_MARGIN = 2, 1e-14
# How far w may then be from its coefficients, as values in units of the knots, so that free rows
# are on the margin to the last digit: far less than a certificate asks for.
HARMLESS = 1e-10


class Exchange:
    """Where an exchange stands.

    v, total : a and beta with the low rows added (see ``face.py``).
    """

    def __init__(self, problem: Hinges, theta: FloatArray, free: IntArray):
        self.problem, self.steps, self.stuck = problem, 0, 0
        self.lots = np.random.default_rng(0)
        self.face = Face(problem, free)
        self.held = problem.box * problem.sign
        self.length = problem.spread(np.sqrt(np.einsum("ij,ij->i", problem.Z, problem.Z)))
        self.inside = np.zeros(len(problem), dtype=bool)
        self.inside[self.face.rows] = True
        self.theta, self.r = theta, problem.margins(theta)
        self.low: BoolArray = (self.r < 0) & ~self.inside
        self._sum_up()
        self._jump()

    def _sum_up(self) -> None:
        held = np.where(self.low, self.held, 0.0)
        self.v = self.problem.a + self.problem.pull(held)
        self.total = self.problem.beta + float(held.sum())

    def _jump(self) -> None:
        """To the face, from wherever the guess is, with the others on the side where they end.

        ``surprises`` counts those that cross, and the coefficients that are outside their boxes.
        """
        self.surprises = 0
        if not len(self.face):
            return
        for _ in range(MOST_JUMPS):
            self.theta, self.coef = self.face.target(self.v, self.total)
            self.r = self.problem.margins(self.theta)
            low = (self.r < 0) & ~self.inside
            moved = np.flatnonzero(low != self.low)
            self.surprises += len(moved)
            if not len(moved):
                break
            self._cross(moved)
        outside, slack = self._outside()
        self.surprises += int(np.count_nonzero(outside > slack))

    def _cross(self, rows: IntArray) -> None:
        """These rows change sides."""
        change = np.where(self.low[rows], -self.held[rows], self.held[rows])
        self.v = self.v + change @ self.problem.features(rows)
        self.total += float(change.sum())
        self.low[rows] = ~self.low[rows]

    # ---- steps ----------------------------------------------------------------------------------

    def run(self, most: int, cancel: NDArray[np.int32]) -> bool:
        """To the solution; False if that takes more than so many steps."""
        # An inverse that rounding has spoilt is found out by what it gives.
        with np.errstate(over="ignore", invalid="ignore"):
            return self._walk(most, cancel)

    def _walk(self, most: int, cancel: NDArray[np.int32]) -> bool:
        while self.steps < most and not cancel[0]:
            self.steps += 1
            if self.steps % REFRESH == 0:
                self._refresh()
                self.r = self.problem.margins(self.theta)
                self._sum_up()
            direction, unbounded = self._direction()
            if not np.isfinite(direction).all():
                return False
            if self._advance(direction, unbounded):
                continue
            worst = self._worst()
            if worst is None and not self.face.fresh:
                # Rounding may hide coefficients that are far outside their boxes.
                if self._refresh():
                    continue
                self.coef = self.face.target(self.v, self.total)[1]
                worst = self._worst()
            if worst is None:
                return True
            self._release(worst)
        return False

    def _refresh(self) -> bool:
        """The inverse anew; are there rows, on the margin, that make way since they are dependent?

        They count as not lost, as good as any side for a row on the margin.
        """
        out = self.face.refresh()
        self.inside[out] = self.low[out] = False
        return bool(len(out))

    def _direction(self) -> tuple[FloatArray, bool]:
        """Towards the minimum of the face; or along b alone, which has no minimum."""
        if len(self.face):
            target, self.coef = self.face.target(self.v, self.total)
            if not (self.face.fresh or self.face.holds(target)):
                self._refresh()
                target, self.coef = self.face.target(self.v, self.total)
            return target - self.theta, False
        self.coef = np.zeros(0)
        scale = abs(self.problem.beta) + float(np.abs(self.held).sum())
        if self.problem.fit_intercept and abs(self.total) > 1e-13 * scale:
            return np.append(np.zeros(len(self.v)), np.sign(self.total)), True
        return np.append(self.v, self.theta[-1]) - self.theta, False

    def _advance(self, d: FloatArray, unbounded: bool) -> bool:
        """Go as far as P falls; False if that is all the way."""
        change = self.problem.change(d)
        change[self.inside] = 0.0
        noise = ROUNDING * (float(np.linalg.norm(d[:-1])) * self.length + abs(float(d[-1])))
        size = float(np.linalg.norm(self.theta[:-1])) * self.length + abs(float(self.theta[-1]))
        noise = np.maximum(noise, 0.1 * ROUNDING * (1.0 + size))
        able = np.where(self.low, change > noise, change < -noise) & (self.problem.box > 0)
        rows = np.flatnonzero(able)
        at = np.maximum(-self.r[rows] / change[rows], 0.0)
        if not unbounded:
            reached = at < 1.0
            rows, at = rows[reached], at[reached]
        order = np.argsort(at, kind="stable")
        rows, at = rows[order], at[order]
        length, crossed, entering = self._stop(d, rows, at, np.abs(change[rows]))
        if unbounded and entering < 0:
            return False
        self.theta = self.theta + length * d
        self.r += length * change
        moved = length * float(np.abs(change).max(initial=0.0)) > ROUNDING
        self.stuck = 0 if moved else self.stuck + 1
        self._cross(crossed)
        if entering >= 0:
            self._enter(entering)
        return bool(len(crossed) or entering >= 0)

    def _stop(
        self, d: FloatArray, rows: IntArray, at: FloatArray, speed: FloatArray
    ) -> tuple[float, IntArray, int]:
        """How far, which rows are crossed on the way, and which is met at the end (or -1)."""
        square = float(d[:-1] @ d[:-1])
        start = float((self.theta[:-1] - self.v) @ d[:-1])
        start -= self.total * float(d[-1])
        rise = self.problem.box[rows] * speed
        after = start + square * at + np.cumsum(rise)
        k = int(np.argmax(after >= 0)) if (after >= 0).any() else len(rows)
        if k == len(rows):
            return 1.0, rows, -1
        before = float(after[k] - rise[k])
        if before >= 0 and square > 0:
            length = float(at[k]) - before / square
            return min(max(length, 0.0), 1.0), rows[:k], -1
        return float(at[k]), rows[:k], int(rows[k])

    def _enter(self, row: int) -> None:
        if self.low[row]:
            self._cross(np.array([row]))
            was_low = True
        else:
            was_low = False
        if self.face.add(row):
            self.inside[row] = True
            self.r[row] = 0.0
        elif not was_low:
            self._cross(np.array([row]))  # over to the other side: it is on the margin anyway

    def _worst(self) -> int | None:
        """The place of the free row whose coefficient is farthest outside its box, if one is."""
        if not len(self.face):
            return None
        outside, slack = self._outside()
        able = np.flatnonzero(outside > slack)
        if not len(able):
            return None
        if self.stuck > STUCK:
            return int(self.lots.choice(able))
        return int(able[np.argmax(outside[able])])

    def _outside(self) -> tuple[FloatArray, FloatArray]:
        """How far the coefficients of the free rows are outside their boxes, and may be."""
        box = self.problem.box[self.face.rows]
        size = self.problem.sign[self.face.rows] * self.coef
        return np.maximum(size - box, -size), 1e-3 * tolerances.AT_BOUND * box

    def _release(self, place: int) -> None:
        row = int(self.face.rows[place])
        beyond = bool(self.problem.sign[row] * self.coef[place] > 0.5 * self.problem.box[row])
        self.face.drop(place)
        self.inside[row], self.low[row] = False, False
        if beyond:
            self._cross(np.array([row]))

    # ---- what came out --------------------------------------------------------------------------

    def reply(self, solved: bool) -> Reply:
        """The point, with w from the coefficients themselves."""
        problem = self.problem
        coef = np.where(self.low, self.held, 0.0)
        if len(self.face):
            if not self.face.fresh:
                self._refresh()
            theta, self.coef = self.face.target(self.v, self.total)
            coef[self.face.rows] = self.coef
        w, total = problem.added_up(coef)
        for _ in range(CORRECTIONS if len(self.face) else 0):
            dc, db, miss = self.face.step(np.append(w, theta[-1]), total)
            if miss <= ON_MARGIN:
                break
            coef[self.face.rows] += dc
            theta[-1] += db
            w, total = problem.added_up(coef)
        state = np.where(self.low, LOW, HIGH)
        state[self.face.rows] = FREE
        if len(self.face):
            far = float(self.length.max()) or 1.0
            unit = float(np.abs(problem.knot).max(initial=0.0)) / far
            theta = self.face.onto(np.append(w, theta[-1]), HARMLESS * unit)
        else:
            b = best_intercept(problem, w) if problem.fit_intercept else float(self.theta[-1])
            theta = np.append(w, b)
        return Reply(theta, coef, state, solved, self.steps)


def exchange(
    problem: Hinges, theta: FloatArray, free: IntArray, most: int, cancel: NDArray[np.int32]
) -> Reply:
    """The solution from a guess: a point, and the rows that may be free there.

    Examples
    --------
    >>> from exactcv.lowrank.small.hinges import hinges_of
    >>> from exactcv.problem.losses import hinge
    >>> Z, loss = np.array([[2.0], [-1.0]]), hinge(np.array([1.0, -1.0]))
    >>> problem = hinges_of(Z, loss, np.ones(2), (np.zeros(1), 0.0), True)
    >>> none = np.zeros(0, dtype=np.intp)
    >>> reply = exchange(problem, np.zeros(2), none, 20, np.zeros(1, dtype=np.int32))
    >>> reply.theta.round(6), reply.coef.round(6)
    (array([ 0.666667, -0.333333]), array([ 0.222222, -0.222222]))
    """
    walk = Exchange(problem, theta, free)
    return walk.reply(walk.run(most, cancel))
