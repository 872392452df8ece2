"""Single instance replacement (SIR): each row that leaves hands its alpha to one like it.

For p in R with alpha_p > 0, replacing x_p by x_q changes the indicators by (21)

    Delta f_i = alpha_p (y_q K(x_i, x_q) - y_p K(x_i, x_p)),

which is small if x_q is similar and of the same class.  So alpha_q = alpha_p for the row q of T
with y_q = y_p and the largest K(x_p, x_q) that has not been taken yet.

Where no such row is left the paper's text picks any row of T at random, its Algorithm 3 none.  A
row of the other class would double what the sum lacks, so we follow the algorithm.  What the sum
lacks is then spread over T as in MIR, and over the free rows of S when T cannot take it.

``match`` says who may be given an alpha:

- "nearest" (the default): the nearest row, however far.  Where kernel values are all 0 in float64,
  distances still tell;
- "printed": Algorithm 3 to the letter.  It asks for K(x_p, x_q) > 0, so that alphas whose kernel
  values are all 0 go to nobody, and rows of R with alpha 0 take their match away too.  On madelon,
  where K is the identity in float64, this is why the paper counts 1,800 iterations for SIR: 900 of
  the first fold and 100 of each other one.  "nearest" takes the first 900 alone.

The default is compiled as a whole (``_core/_seeding.pyx``): the seed of a fold of two rows takes
microseconds.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from ..._core import _seeding
from ...types import FloatArray
from .change import Change
from .feasible import repair

__all__ = ["MATCH", "sir"]

Match = Literal["nearest", "printed"]
MATCH = get_args(Match)


def sir(change: Change, match: Match = "nearest") -> FloatArray:
    """The seed of the next fold; see the module's docstring."""
    if match == "printed":
        return _printed(change)
    seed = np.empty(len(change.coef))
    change.evaluations += _seeding.sir(
        change.kernel, change.coef, change.lower, change.upper,
        change.train, change.removed, change.added, change.fit_intercept, seed,
    )  # fmt: skip
    return seed


def _printed(change: Change) -> FloatArray:
    """Algorithm 3, line by line; what the sum lacks is spread as in MIR."""
    seed, lower, upper = change.kept(), change.lower, change.upper
    added = change.added
    takers = {True: added[upper[added] > 0.0], False: added[lower[added] < 0.0]}
    for r in change.removed:
        mine = takers[bool(upper[r] > 0.0)]
        if not len(mine):
            continue
        similarity = change.block(np.array([r]), mine)[0]
        best = int(similarity.argmax())
        if similarity[best] > 0.0:
            seed[mine[best]] = change.coef[r]
            takers[bool(upper[r] > 0.0)] = np.delete(mine, best)
    return repair(
        seed,
        lower,
        upper,
        lambda: added,
        lambda: change.inside(seed, change.shared),
        lambda: change.train,
        fit_intercept=change.fit_intercept,
    )
