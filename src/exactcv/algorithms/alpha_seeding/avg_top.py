"""AVG and TOP: leave-one-out seeds from the solution on all rows.

Leaving row t out takes c_t = y_t alpha_t from the sum.  In signed coefficients both put it back by
raising others by c_t in all, whatever their class:

- AVG (DeCoste & Wagstaff 2000) spreads it evenly over the coefficients strictly inside their boxes;
  what one cannot take goes, again evenly, to the others;
- TOP (Lee et al. 2004) gives all of it to the row most similar to x_t, what that cannot take to the
  next, and so on.
"""

from __future__ import annotations

import numpy as np

from ...types import FloatArray
from .change import Change
from .feasible import repair

__all__ = ["avg", "top"]


def avg(change: Change) -> FloatArray:
    """The seed that spreads what has left evenly over the free rows."""
    seed = change.kept()
    return repair(
        seed,
        change.lower,
        change.upper,
        lambda: change.inside(seed, change.shared),
        lambda: change.train,
        fit_intercept=change.fit_intercept,
    )


def top(change: Change) -> FloatArray:
    """The seed that gives what has left to the rows most like it."""
    seed = change.kept()
    if change.fit_intercept:
        for row in change.leaving:
            _hand_over(change, seed, int(row))
    return repair(
        seed,
        change.lower,
        change.upper,
        lambda: change.train,
        fit_intercept=change.fit_intercept,
    )


def _hand_over(change: Change, seed: FloatArray, row: int) -> None:
    """Raise the coefficients nearest to ``row`` by its own, each as far as it goes; in place."""
    amount, others = change.coef[row], change.shared
    if amount > 0:
        room = change.upper[others] - seed[others]
    else:
        room = seed[others] - change.lower[others]
    able = np.flatnonzero(room > 0)
    similarity = change.block(np.array([row]), others[able])[0]
    order = able[np.argsort(-similarity, kind="stable")]
    taken = np.minimum(np.cumsum(room[order]), abs(amount))
    seed[others[order]] += np.sign(amount) * np.diff(taken, prepend=0.0)
