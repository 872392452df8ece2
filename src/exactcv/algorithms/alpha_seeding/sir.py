"""Single instance replacement (SIR): each row that leaves hands its alpha to one like it.

For p in R with alpha_p > 0, replacing x_p by x_q changes the indicators by (21)

    Delta f_i = alpha_p (y_q K(x_i, x_q) - y_p K(x_i, x_p)),

which is small if x_q is similar and of the same class.  So alpha_q = alpha_p for the row q of T
with y_q = y_p and the largest K(x_p, x_q) that has not been taken yet.

Where no such row is left the paper's text picks any row of T at random, its Algorithm 3 none.  A
row of the other class would double what the sum lacks, so we follow the algorithm.  What the sum
lacks is then spread over T as in MIR, and over the free rows of S when T cannot take it.

All of it is compiled (``_core/_seeding.pyx``): the seed of a fold of two rows takes microseconds.
"""

from __future__ import annotations

import numpy as np

from ..._core import _seeding
from ...types import FloatArray
from .change import Change

__all__ = ["sir"]


def sir(change: Change) -> FloatArray:
    """The seed of the next fold; see the module's docstring."""
    seed = np.empty(len(change.coef))
    change.evaluations += _seeding.sir(
        change.kernel, change.coef, change.lower, change.upper,
        change.train, change.removed, change.added, change.fit_intercept, seed,
    )  # fmt: skip
    return seed
