"""Rows around the margin of a full-data solution, and what all other rows amount to.

The others have the coefficients that go with their segments at that solution.  A solution in which
none of them has left its segment solves the problem of all rows, and the judge's figures of it need
nothing else of them: their losses are straight lines from here to there,

    sum B_i L_i(u'_i) = sum B_i L_i(u_i) - (sum c_i z_i)'(w' - w) - (sum c_i) (b' - b).

Those that have left it are *taken up* into the problem.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...judge.features import Extent, Figures, Tally, figures, tally
from ...problem.loss_rules import LossRule
from ...problem.losses import PiecewiseLinear
from ...types import FloatArray, IntArray
from .press import Leaving
from .reduced import Reduced, Reply

__all__ = ["Around"]


@dataclass(frozen=True)
class Around:
    """The rows around the margin of theta.

    problem : their small problem; ``rows`` are their numbers, ``u`` and ``coef`` what they have.
    rest : the judge's sums over all other rows, at theta.
    """

    C: float
    theta: FloatArray
    problem: Reduced
    rows: IntArray
    u: FloatArray
    coef: FloatArray
    rest: Tally

    def taking_up(
        self, rows: IntArray, Z: FloatArray, loss: PiecewiseLinear, weight: FloatArray
    ) -> Around:
        """With some of the other rows."""
        if not len(rows):
            return self  # of no rows it is not known how many knots they have
        whole, box, u = self.problem, self.C * weight, Z @ self.theta[:-1] + self.theta[-1]
        coef, gone = _held(Z, loss, box, u)
        rest = _less(self.rest, gone)
        problem = Reduced(
            np.concatenate([whole.Z, Z]),
            whole.loss.beside(loss),
            np.concatenate([whole.box, box]),
            rest.pull,
            rest.total,
            whole.fit_intercept,
        )
        numbers = np.concatenate([self.rows, rows])
        u, coef = np.concatenate([self.u, u]), np.concatenate([self.coef, coef])
        return Around(self.C, self.theta, problem, numbers, u, coef, rest)

    def behind(self, start: int, theta: FloatArray) -> FloatArray:
        """How far rows, from the start-th on, are at most behind the knots that they have passed.

        At each of several theta.
        """
        loss = self.problem.loss.at(np.arange(start, len(self.rows)))
        u = self.problem.Z[start:] @ theta[:, :-1].T + theta[:, -1]
        passed = loss.passed(u) != loss.passed(self.u[start:])[:, None]
        return np.where(passed, loss.distance(u), 0.0).max(axis=0, initial=0.0)

    def without(self, leaving: Leaving, k: int) -> Reduced:
        """The problem without the k-th of these rows."""
        problem, place = self.problem, int(leaving.place[k])
        if place >= 0:
            boxes = problem.box.copy()
            boxes[place] = max(boxes[place] - float(leaving.box[k]), 0.0)
            return replace(problem, box=boxes)
        coef = float(leaving.coef[k])
        return replace(problem, a=problem.a - coef * leaving.Z[k], beta=problem.beta - coef)

    def figures(
        self, leaving: Leaving, k: int, reply: Reply, rule: LossRule, extent: Extent
    ) -> Figures:
        """What a solution of that problem is worth, if no other row has left its segment."""
        problem, rest = self.without(leaving, k), self.rest
        if leaving.place[k] < 0:
            own = slice(k, k + 1)
            loss = rule(leaving.y[own])
            rest = _less(rest, _held(leaving.Z[own], loss, leaving.box[own], leaving.u[own])[1])
        step = reply.theta - self.theta
        lost = rest.loss - float(rest.pull @ step[:-1]) - rest.total * float(step[-1])
        here = tally(problem.Z, problem.loss, problem.box, reply.coef, reply.theta, extent)
        return figures([replace(rest, loss=lost), here], reply.theta, extent, problem.fit_intercept)


def _held(
    Z: FloatArray, loss: PiecewiseLinear, box: FloatArray, u: FloatArray
) -> tuple[FloatArray, Tally]:
    """The coefficients that go with u, and the sums of these rows."""
    coef = -box * loss.slope(u) + 0.0
    size = np.abs(coef)
    length = np.sqrt(np.einsum("ij,ij->i", Z, Z))
    sums = float(coef.sum()), float(size.sum()), float(length @ size), float(box @ loss.value(u))
    return coef, Tally(coef @ Z, *sums)


def _less(rest: Tally, gone: Tally) -> Tally:
    """Without some rows; rounding is that of the sums which they were in."""
    return replace(
        rest,
        pull=rest.pull - gone.pull,
        total=rest.total - gone.total,
        taken=max(rest.taken - gone.taken, 0.0),
        added=rest.added + gone.added,
        loss=rest.loss - gone.loss,
    )
