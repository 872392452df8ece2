"""Labels that follow from a solution which is known to be nearly optimal.

Let (f, b) with coefficients c be found for the problem without row j, whose optimum is (f', b'),
let g be its duality gap there, and u_j = f(x_j) + b the value it gives to row j, say u_j > 0.

Suppose that u'_j <= 0 all the same.  Then (f', b') also solves the problem with this as a
constraint, and the optimal objective p is the same.  A multiplier q >= 0 of the constraint is a
coefficient -q for row j.  With an intercept the rows at a knot have to take up q between them, in
any shares w_i in their boxes with sum w = 1.  From c, where the dual objective is at least p - g,
the dual objective of the constrained problem rises by

    q u_j - 1/2 q^2 s,        s = ||phi_j - sum_i w_i phi_i||^2,

and it cannot rise above p.  So q u_j - 1/2 q^2 s <= g for every q that the boxes allow.  The label
is that of u_j if this fails: at q = u_j / s if the boxes allow that much, else at their end r,
where q u_j - 1/2 q^2 s >= 1/2 r u_j.  For either case it is enough that

    u_j^2 > 2 s g        and       r u_j > 2 g.                                                 (1)

For u_j < 0 it is the same with signs changed.  No more of K is needed than a bound on s.

*The gap.*  The compiled loop makes solutions from columns of a table.  On its own figures they are
optimal; what they are in fact differs by what the table is wrong by (``table.Columns.errors``) and
by what the full-data solution was off.

- A row whose u is wrong by e adds at most e times the width of its box.  Wrong are: the u that the
  loop starts from, which it puts on their knots; the full data's K c, by rounding; what the table
  adds to it.
- A coefficient of a row on a segment that is off its level by d adds d times the distance of u from
  the knots, and so does what is cut off to keep coefficients in their boxes.
- A sum of coefficients that is not zero still has to be taken up, at a cost of that much times u.

Where C is large the first of these is far too much.  Instead, the solution may be scaled up until
no row is short of its knot that should not be (``judge/piecewise_linear.py``).  If no u is off by
more than e, let t = e / (1 - e), S = sum |c|, and B the rows at their bound.  The primal objective
at (1 + t) (f, b) exceeds the dual one at c by at most

    e S + t ||f||^2 (1 + t / 2) + sum_B C_i max(t |u_i|, e),

where ||f||^2 <= (1 + e) S, since y u <= 1 + e wherever c is not 0.  With P the objective of the
full data, which no fold exceeds, S <= 2 P (1 + e), and sum_B C_i |u_i| <= P + S: all together it is
at most (4 S + P) t but for terms of second order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .. import tolerances
from .._core.reference.residuals import ROUNDOFF
from ..types import FloatArray
from .table import Found, Table

__all__ = ["certain", "gaps", "slips"]

# For rounding in the sums below.
AMPLE = 1.1


def slips(table: Table, found: Found) -> FloatArray:
    """How far the u of any row may be from what its solution's coefficients make it.

    Besides what the loop has put on a knot.
    """
    problem = table.base.problem
    root = np.sqrt(np.maximum(problem.diagonal, 0.0))
    rounding = ROUNDOFF * float(root @ np.abs(table.base.coef)) * float(root.max())
    free, other = table.columns.errors
    wrong = free * found.moves_free + other * found.moves_other
    return AMPLE * (rounding + wrong + float(problem.diagonal.max()) * found.clipped)


def gaps(table: Table, found: Found) -> FloatArray:
    """Bounds on the duality gaps of the solutions, each in the problem without its row.

    The loss is the hinge, as it is wherever there are labels.
    """
    base, problem = table.base, table.base.problem
    width = base.levels[:, 0] - base.levels[:, -1]
    width[base.state < 0] = 0.0
    total = float(width.sum())
    root = np.sqrt(np.maximum(problem.diagonal, 0.0))
    scale = max(1.0, float(np.abs(base.u).max()), float(np.abs(problem.loss.knots).max()))
    missed = np.abs(table.u - base.u) + table.tol
    missed += ROUNDOFF * float(root @ np.abs(base.coef)) * root
    free, other = table.columns.errors
    wrong = free * found.moves_free + other * found.moves_other
    by_width = float(width @ missed) + float(np.linalg.norm(width)) * wrong
    most = float(missed.max(where=width > 0, initial=0.0)) + wrong
    primal = 0.5 * abs(float(base.coef @ base.u)) + float(width @ problem.loss.value(base.u))
    by_scaling = (4.0 * min(total, 2.0 * primal) + primal) * most / np.maximum(1.0 - most, 0.1)
    gap = np.minimum(by_width, by_scaling) + 2.0 * scale * _off_level(table)
    if problem.fit_intercept:
        free, other = table.columns.drifts
        drift = abs(float(base.coef.sum())) + ROUNDOFF * float(np.abs(base.coef).sum())
        gap += scale * (drift + free * found.moves_free + other * found.moves_other)
    clipped = (total * float(problem.diagonal.max()) + scale) * found.clipped
    return AMPLE * (gap + clipped)


def _off_level(table: Table) -> float:
    """By how much in all rows on a segment are off the level that goes with it."""
    base = table.base
    on_segment = np.flatnonzero((base.state >= 0) & (base.state % 2 == 0))
    level = base.levels[on_segment, base.state[on_segment] // 2]
    return float(np.abs(table.coef[on_segment] - level).sum())


def certain(
    value: FloatArray, gap: FloatArray, reach: FloatArray, room: FloatArray
) -> NDArray[np.bool_]:
    """Which labels follow: (1).  ``value`` is |u_j| at least.

    ``reach`` bounds s; ``room`` is r, infinite without an intercept.

    Examples
    --------
    >>> certain(np.array([0.1, 0.1]), np.array([1e-3, 1e-2]), np.ones(2), np.full(2, np.inf))
    array([ True, False])
    """
    size = value - tolerances.TIE
    with np.errstate(divide="ignore", invalid="ignore"):
        enough = np.maximum(np.sqrt(2.0 * reach * gap), 2.0 * gap / room)
        return np.asarray(size > enough)  # False where anything is NaN
