"""Between two values of C: which left-out labels cannot change.

Let c0, b0 and c1, b1 solve the problem of one training set at C0 and C1.  At C = (1 - t) C0 + t C1
take c = (1 - t) c0 + t c1, b = (1 - t) b0 + t b1, with u = K c + b.  The coefficients are in their
boxes there, for these grow with C, and their sum is zero.  So (f, b) and c are a primal and a dual
point, with the duality gap (``judge/piecewise_linear.py``, rows turned by y, p = C_i - a)

    g = sum_i  p_i v_i^- + a_i v_i^+,        v_i = y_i u_i - 1,

a sum of products of two functions that are linear in t, or convex pieces of such.  At both ends
every product is zero, and so

    g(t) <= t (1 - t) k,      k = sum_i  p_i0 v_i1^- + p_i1 v_i0^- + a_i0 v_i1^+ + a_i1 v_i0^+.  (1)

Only rows whose state is not the same at both ends contribute.  With a step d in C there are about
d of them, and each product is of size d^2: halving the step makes k eight times smaller.

*The label* of a row j that is tested, say with u_j(t) > 0 (its value less the threshold).  Suppose
the solution (f', b') at C had u'_j <= 0.  Then it also solves the problem with this as a
constraint.  A multiplier q >= 0 of the constraint is a coefficient -q for row j, which other rows
have to take up in shares w_i that sum to 1 and fit into their boxes.  As in ``labels.py`` the dual
objective rises from c by at least q (u_j - e) - 1/2 q^2 s, where e bounds how far those rows are
off their knots and s = ||phi_j - sum_i w_i phi_i||^2.  The gap that is left is at least what strong
convexity demands of a primal and a dual point that are q sqrt(s) apart, 1/4 q^2 s (``shares.py``).
So q (u_j - e) - 1/4 q^2 s <= g, and the label is that of u_j if for r, the most that the boxes
allow,

    (u_j - e)^2 > s g        and        r (u_j - e) > 2 g.                                       (2)

*For all t at once.*  u_j is linear between u0 and u1 of one sign, so that u_j^2 >= 4 t (1 - t) u0
u1; the room of a row in its box is linear too, and at least t (1 - t) (sqrt(room at C0) + sqrt(room
at C1))^2 =: t (1 - t) rho_i.  With (1), and shares in proportion to rho_i, (2) follows from

    4 (1 - o)^2 u0 u1 > s k        and        (1 - o) min(u0, u1) sum_i rho_i > 2 k,             (3)

where no row that takes part is off its knot by more than o min(u0, u1) at either end.  A row at a
bound may take part as well as a free one, if it has room on the side where it is needed.  The share
may go to all rows within some o, with s at most the largest squared distance of row j from any row;
or to a few free ones, the nearest to row j, with s computed; or to these in shares of either sign,
for which sum_i rho_i is min_i rho_i / |w_i|, and s is least for the projection of phi_j on their
affine span.  Without an intercept no shares are needed, and o is 0.  What the solutions at the ends
are off by, g0 and g1, is taken off u0 and u1 as sqrt(s g0).

This holds for every optimal intercept, so that it does not matter by which rule one is picked.
Where all states are the same at both ends, (1) is zero: the solutions in between are those on the
line.  So are their values if a row is free, or if there is no intercept; else the intercept is in
the middle of an interval whose ends are a maximum and a minimum of lines, and it follows a line if
the same two rows set them at both ends.  These intervals need no proof.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from .._core._between import between
from ..problem.problem import Problem
from ..types import FloatArray, IntArray
from .path import StateArray

__all__ = ["Asked", "Ends", "Tests", "compare"]


@dataclass(frozen=True)
class Tests:
    """What training sets are tested on.

    kernel : (T, n), kernel values with the rows of the problem.
    square : (T,), with itself.
    threshold : (T,): a value above it speaks for the second class.
    """

    kernel: FloatArray
    square: FloatArray
    threshold: FloatArray

    def __len__(self) -> int:
        return len(self.threshold)

    def part(self, which: IntArray | slice) -> Tests:
        return Tests(self.kernel[which], self.square[which], self.threshold[which])

    def widest(self, problem: Problem) -> FloatArray:
        """Squared distances from the farthest row, from above."""
        most = float(problem.diagonal.max())
        return np.asarray(np.maximum(self.square + most - 2.0 * self.kernel.min(axis=1), 0.0))


@dataclass(frozen=True)
class Ends:
    """Solutions of training sets, a row each, and what they give for tests.

    ``C`` is that of each, ``b`` are the intercepts, and ``values`` those of the tests, less their
    thresholds.  ``states`` are those of the rows (``path.py``), where they are at hand.
    """

    C: FloatArray
    coef: FloatArray
    u: FloatArray
    b: FloatArray
    values: FloatArray
    states: StateArray | None = None

    @property
    def n(self) -> int:
        return int(self.coef.shape[1])

    def part(self, sets: IntArray | slice, tests: IntArray | slice) -> Ends:
        states = None if self.states is None else self.states[sets]
        return Ends(
            self.C[sets], self.coef[sets], self.u[sets], self.b[sets], self.values[tests], states
        )

    def copy(self) -> Ends:
        return self.part(np.arange(len(self.C)), np.arange(len(self.values)))

    def put(self, k: int, other: Ends) -> None:
        """Take the only solution of another in place of solution k."""
        self.coef[k], self.u[k], self.b[k] = other.coef[0], other.u[0], other.b[0]
        if self.states is not None and other.states is not None:
            self.states[k] = other.states[0]

    @staticmethod
    def joined(parts: list[Ends]) -> Ends:
        def all_(name: str) -> FloatArray:
            return np.concatenate([getattr(part, name) for part in parts])

        states = [part.states for part in parts if part.states is not None]
        known = np.concatenate(states) if len(states) == len(parts) else None
        return Ends(all_("C"), all_("coef"), all_("u"), all_("b"), all_("values"), known)


@dataclass(frozen=True)
class Asked:
    """Which tests to look at, and between which solutions.

    first, last : (T,), rows of the ends, those of the training set of each test.
    tests : (T,), rows of `Tests`.
    own, rest : (T,), a row of which the training set has only so much weight; -1 for none.
    values : the values of the tests at both ends, less their thresholds.
    """

    first: IntArray
    last: IntArray
    tests: IntArray
    own: IntArray
    rest: FloatArray
    values: tuple[FloatArray, FloatArray]


def compare(
    problem: Problem,
    weight: FloatArray,
    first: Ends,
    last: Ends,
    asked: Asked,
    tests: Tests,
    widest: FloatArray,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which tests have one label from ``first`` to ``last``; which have values on a line.

    ``weight`` is that of all rows, before each training set goes without its own.
    """
    proved, line = np.empty((2, len(asked.tests)), dtype=np.uint8)
    which = np.column_stack([asked.first, asked.last, asked.tests, asked.own])
    between(
        problem.K, problem.y, weight, first.C, first.coef, first.u, last.C, last.coef, last.u,
        which, asked.rest, tests.kernel, tests.square, widest, *asked.values,
        tolerances.AT_BOUND, problem.fit_intercept, proved, line,
    )  # fmt: skip
    return proved.astype(bool), line.astype(bool)
