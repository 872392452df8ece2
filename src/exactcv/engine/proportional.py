"""Small C: solutions without some rows are proportional to C, and so is every difference of values.

Take any part of the rows, with an intercept and the hinge loss, and let a be the class with the
smaller sum of weights W_a there, b the other.  Minimise ||f|| over coefficients with all of class a
at their bounds, class b within theirs, and sum c = 0.  The minimiser is proportional to C.  It is
the solution of the problem itself if b can be chosen so that class b is on the right sides of its
knot, which fixes a threshold t between values of f in class b, and no row of class a is beyond its
own knot:

    |t - f_j| <= 2    for all j in class a.                                                      (1)

Now f = S (m_b - m_a), with S <= C W_a and m_a, m_b means of phi over the classes.  The uniform mean
of class b can be had too, so ||f|| is at most S times the distance of the class means, and
differences of f at two rows are at most D ||f||, D being the largest distance of two phi.  So (1)
holds if

    C W_a d D <= 2,                                                                              (2)

d being the distance of the class means.  Leaving out rows of weight r in all makes W_a no larger
and moves the class means by at most r D / (W - r).  Below that C the order of the values of two
left-out rows is the same at every C, and their difference is proportional to C.
"""

from __future__ import annotations

import numpy as np

from ..problem.problem import Problem
from ..types import FloatArray
from .bounds import Span

__all__ = ["MOST_VALUE", "proportional_below"]

# By (1) no value, of rows that are left out either, is further from 0.
MOST_VALUE = 3.0
# The bound is taken a little smaller, for rounding.
CAREFUL = 1.0 - 1e-6


def proportional_below(problem: Problem, span: Span, left_out: int) -> float:
    """Up to which C all solutions without so many rows are proportional to C; 0 if not known.

    Examples
    --------
    >>> import numpy as np
    >>> from exactcv.problem.losses import hinge
    >>> y = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    >>> K = np.eye(6)
    >>> problem = Problem(K=K, y=y, weight=np.ones(6), loss=hinge(y), fit_intercept=True)
    >>> round(proportional_below(problem, Span.of(problem), 1), 3)
    0.333
    """
    y, weight = problem.y, problem.weight
    if not (problem.fit_intercept and problem.psd and _is_hinge(problem)):
        return 0.0
    most = left_out * float(weight.max(initial=0.0))
    shares = [np.where(y == sign, weight, 0.0) for sign in (1.0, -1.0)]
    least = min(float(share.sum()) for share in shares)
    if least <= most:
        return 0.0
    between = shares[0] / shares[0].sum() - shares[1] / shares[1].sum()
    widest = float(np.sqrt(max(span.own.max(initial=0.0), 0.0)))
    apart = float(np.sqrt(max(between @ (problem.K @ between), 0.0)))
    apart += most * widest / (least - most)
    reach = least * min(apart, widest) * widest
    return CAREFUL * 2.0 / reach if reach > 0 else np.inf


def _is_hinge(problem: Problem) -> bool:
    """One knot, at the row's own label, and no loss beyond it."""
    loss, y = problem.loss, problem.y
    knots: FloatArray = loss.knots
    return knots.shape[1] == 1 and np.array_equal(knots[:, 0], y) and bool((np.abs(y) == 1).all())
