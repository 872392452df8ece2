"""One left-out row: SMO on its problem, and the proof of its label beside it.

The problem without row r, and the same with the decision value of row r held at zero:

    P*   = min over f, b                     1/2 ||f||^2 + sum_{i != r} C_i L(y_i, f(x_i) + b)
    P_0* = the same over f, b with  f(x_r) + b = 0

Let F be the value of the first at any f, b.  **If F < P_0*, then f(x_r) + b has the sign of the
optimum's** (Theorem 1): on the way from (f, b) to an optimum the objective, being convex, stays at
or below F, so it never meets a point where the decision value of row r is zero.  This holds for
every optimum, hence also where the intercept is an interval.

P_0* is bounded from below by its dual.  Put b = -f(x_r): the decision values are
<f, phi_i - phi_r>, so the dual is (13), a problem without equality constraint for the kernel

    K'_ij = K_ij - K_ir - K_rj + K_rr,      H(d) = t' d - 1/2 d' K' d.

Without an intercept (the paper has one throughout) f must be orthogonal to phi_r, and K' is the
kernel of what is left of the phi_i: K'_ij = K_ij - K_ir K_rj / K_rr.  If K_rr = 0 the decision
value is zero for every f, which counts as an error.

*Ties.*  A decision value within TIE of zero counts as an error, so a sign is not enough.  Move the
optimum's b by -u_r, its decision value for row r: the objective rises by at most |u_r| sum C_i and
cannot stay below H.  Hence |u_r| >= (H - P*) / sum C_i, and F < H - TIE sum C_i proves
|u_r| > TIE.  Without an intercept the same with f - (u_r / K_rr) phi_r gives
sum C_i |K_ir| / K_rr.

*Seeds.*  Both problems start from the full-data coefficients c.  For the second, drop c_r: then
K' d = K c - (K c)_r needs no kernel row at all.  For the first, hand c_r over to the rows that lose
least by it.  That seed is feasible for the second problem too, with H = G, and is taken if better.

*Steps.*  One step of the first problem, then steps of the second in the two rows of K just used,
which are at hand, and in the row that gains most (the paper: in that one only).

*Without proof.*  The loop stops at the paper's eps = 1e-3, or after ``limit`` steps where SMO
crawls.  That is no solution to be certified: the free coefficients are then solved for at once
(``smo.solve``), again after more steps or with a smaller eps if need be.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ... import tolerances
from ..._core import _stopping
from ...engine import smo
from ...problem.problem import Problem
from ...runtime.threads import Cancelled
from ...types import FloatArray, IntArray

__all__ = ["Counts", "DualPair", "Outcome"]

# The paper's tolerance for the KKT conditions, where the loop gives way to the subspace steps.
EPS = 1e-3
# How often that is tried before the solver takes over.
ROUNDS = 20
# SMO steps, for each row, between two of those tries.
FINISH_STEPS = 10
# What rounding can do to F and H, relative to the largest sums in them.
ROUNDING = 1e-13

CONVERGED, CANCELLED, PROVED = 0, 2, 3


@dataclass
class Counts:
    """Steps, and the kernel evaluations that they needed.

    ``first`` and ``second``: steps of the two problems.  ``evaluations``: of their steps and seeds,
    n for each row of the kernel matrix, whether it was used before or not, as in the paper.
    ``finish``: of what follows when there is no proof at eps or the limit; the solver counts a row
    that it uses several times once.
    """

    first: int = 0
    second: int = 0
    evaluations: int = 0
    finish: int = 0

    def add(self, other: Counts) -> None:
        for name in ("first", "second", "evaluations", "finish"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(frozen=True)
class Outcome:
    """A proved label (``coef`` is None), or a solution."""

    wrong: bool = False
    coef: FloatArray | None = None
    intercept: float = 0.0
    counts: Counts = field(default_factory=Counts)


@dataclass(frozen=True)
class DualPair:
    """The full-data solution at one C (coef, h = K coef), from which rows are left out.

    ``limit``: steps after which the free coefficients are first solved for at once.  With
    ``epsilon`` they never are: a row without proof has the solution at that eps.
    """

    problem: Problem
    C: FloatArray
    coef: FloatArray
    h: FloatArray
    tol: float
    limit: int
    cancel: NDArray[np.int32]
    epsilon: float | None = None

    def leave_out(self, r: int, stopping: bool) -> Outcome:
        """Settle the label of row r: by proof if ``stopping``, else by the solution."""
        counts = Counts()
        fixed = self._fixed(r)
        if stopping and not self.problem.fit_intercept and fixed[3, r] <= 0.0:
            return Outcome(wrong=True, counts=counts)
        moving = self._seeds(r, fixed, counts)
        slack = self._slack(r, fixed)
        steps_cost = 2 if self.problem.fit_intercept else 1
        eps = self.epsilon or EPS
        for attempt in range(ROUNDS):
            cap = self.limit if attempt == 0 else FINISH_STEPS * self.problem.n
            status, first, second, _, value = _stopping.pair_steps(
                self.problem.K, r, fixed, moving, *slack, self.problem.fit_intercept,
                stopping, eps, min(self.limit, cap), self.cancel,
            )  # fmt: skip
            counts.add(Counts(first, second))
            used = self.problem.n * (steps_cost * first + second)
            counts.add(Counts(finish=used) if attempt else Counts(evaluations=used))
            if status == CANCELLED:
                raise Cancelled
            if status == PROVED:
                return Outcome(wrong=bool(self.problem.y[r] * value < 0), counts=counts)
            if self.epsilon is not None:
                return Outcome(coef=moving[0].copy(), counts=counts)
            solution = self._solve(r, moving[0], 0)
            counts.finish += solution.kernel_evaluations
            if solution.converged:
                break
            moving[0] = solution.coef
            moving[1] = fixed[0] - self.problem.K @ solution.coef
            eps *= 0.1 if status == CONVERGED else 1.0
        else:
            solution = self._solve(r, moving[0], 10_000_000)
            counts.add(Counts(solution.iterations, finish=solution.kernel_evaluations))
        return Outcome(coef=solution.coef, intercept=solution.intercept, counts=counts)

    def _fixed(self, r: int) -> FloatArray:
        """What ``_stopping.pair_steps`` calls ``fixed``; row r takes no part."""
        problem, K_r = self.problem, self.problem.K[r]
        levels = problem.loss.coefficient_levels(self.C)
        diagonal, K_rr = problem.diagonal, problem.K[r, r]
        if problem.fit_intercept:
            share, offset = np.ones(problem.n), K_r - K_rr
            curvature = diagonal - 2.0 * K_r + K_rr
        else:
            share, offset = K_r / K_rr if K_rr > 0 else np.zeros(problem.n), np.zeros(problem.n)
            curvature = diagonal - share * K_r
        scale = np.sqrt(np.maximum(diagonal, 0.0))
        target = problem.loss.knots[:, 0]
        out = np.array(
            [target, levels[:, 1], levels[:, 0], diagonal, scale, curvature, share, offset]
        )
        out[1:3, r] = 0.0
        return out

    def _slack(self, r: int, fixed: FloatArray) -> tuple[float, float]:
        """By how much F must be below H: a tie's worth, and a unit of rounding."""
        width = fixed[2] - fixed[1]
        shift = 1.0 if self.problem.fit_intercept else np.abs(fixed[6])
        return (
            float(tolerances.TIE * (width * shift).sum()),
            float(ROUNDING * width.sum() * fixed[4].max()),
        )

    def _seeds(self, r: int, fixed: FloatArray, counts: Counts) -> FloatArray:
        """c, e, d, g to start from (and scratch): see the top of the module."""
        problem, target, K_r = self.problem, fixed[0], self.problem.K[r]
        moving = np.zeros((6, problem.n))
        c, e, d, g = moving[:4]
        d[:] = c[:] = self.coef
        d[r] = c[r] = 0.0
        e[:] = target - self.h + self.coef[r] * K_r
        counts.evaluations += problem.n
        if not problem.fit_intercept:
            # The part of f along phi_r goes: f(x_r) becomes zero.
            g[:] = e + fixed[6] * (target[r] - e[r])
            return moving
        g[:] = target - self.h + self.h[r]
        self._hand_over(float(self.coef[r]), fixed, c, e, counts)
        if c @ (target + e) > d @ (target + g):
            d[:], g[:] = c, e + (target[r] - e[r])
        return moving

    def _hand_over(
        self, amount: float, fixed: FloatArray, c: FloatArray, e: FloatArray, counts: Counts
    ) -> None:
        """Add ``amount`` to other coefficients, first to those that gain most for each unit.

        Moving c_i by s raises the objective by s e_i - 1/2 s^2 K_ii.
        """
        _, lower, upper, diagonal = fixed[:4]
        side = np.sign(amount)
        while amount != 0.0:
            room = upper - c if side > 0 else c - lower
            step = np.minimum(room, abs(amount))
            gain = np.where(step > 0, side * e - 0.5 * step * diagonal, -np.inf)
            i = int(np.argmax(gain))
            if not step[i] > 0:
                break  # rounding: all the others are at their ends
            full = step[i] >= room[i]
            c[i] = (upper[i] if side > 0 else lower[i]) if full else c[i] + side * step[i]
            e -= side * step[i] * self.problem.K[i]
            amount = amount - side * step[i] if full else 0.0
            counts.evaluations += self.problem.n

    def _solve(self, r: int, start: FloatArray, max_iter: int) -> smo.Solution:
        problem = self.problem
        train: IntArray = np.delete(np.arange(problem.n, dtype=np.intp), r)
        return smo.solve(
            problem.K,
            problem.loss,
            self.C,
            train,
            fit_intercept=problem.fit_intercept,
            tol=self.tol,
            start=start,
            max_iter=max_iter,
            cancel=self.cancel,
        )
