"""Smooth losses on all columns: accelerated proximal gradient (magic LOO, Algorithm 2).

The last step of a column is taken without its left-out rows B, from the same inverse: the step of
`SharedInverse` gives c = A_c (v - o) - ..., and leaving the rows B out of it changes that to

    c - A_c[:, B] (A_c[B, B])^{-1} c_B,

which is zero on B and keeps sum c.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...problem.differentiable import DifferentiableLoss
from ...runtime.threads import Cancelled
from ...types import FloatArray, IntArray
from .batch import Batch, Mask, SharedInverse
from .levels import Effort
from .proximal_gradient import Descent

__all__ = ["SmoothOutcome", "solve_smooth_columns"]

BURST = 10
# Steps after which a column is handed to Newton's method.
MAX_STEPS = 1500


@dataclass
class SmoothOutcome:
    """Coefficients (n, m), intercepts (m,) and which columns have converged."""

    coef: FloatArray
    intercept: FloatArray
    solved: Mask
    effort: Effort


def solve_smooth_columns(
    batch: Batch,
    loss: DifferentiableLoss,
    U: FloatArray,
    inverse: SharedInverse,
    tol: float,
    cancel: NDArray[np.int32],
) -> SmoothOutcome:
    """Run every column until |c_i / C_i + L_i'(u_i)| <= tol, from decision values U."""
    coef, solved = np.zeros((batch.n, batch.size)), np.zeros(batch.size, dtype=bool)
    b = np.zeros(batch.size)
    out = SmoothOutcome(coef, b, solved, Effort(levels=1))
    descent = Descent(batch, inverse, partial(_pull, loss, inverse.rho), U)
    todo = np.arange(batch.size)
    for _ in range(0, MAX_STEPS, BURST):
        if cancel[0]:
            raise Cancelled
        descent.run(BURST)
        out.effort.iterations += BURST * len(todo)
        # How far the slope can have changed in the last step, in the metric of the step.
        kappa = inverse.rho * descent.batch.C
        done = np.flatnonzero(2.0 * descent.change <= tol * kappa)
        if len(done):
            coef[:, todo[done]], b[todo[done]] = _last_step(descent, done)
            solved[todo[done]] = True
            left = np.setdiff1d(np.arange(len(todo)), done)
            todo = todo[left]
            if not len(todo):
                break
            descent.keep(left)
    else:
        coef[:, todo], b[todo] = _last_step(descent, np.arange(len(todo)))
    return out


def _pull(loss: DifferentiableLoss, rho: float, u: FloatArray, batch: Batch) -> FloatArray:
    """-kappa L'(u) with kappa = rho C."""
    pulled = (-rho * batch.C) * loss.slope(u.T).T
    pulled[batch.out] = 0.0
    return np.asarray(pulled)


def _last_step(descent: Descent, columns: IntArray) -> tuple[FloatArray, FloatArray]:
    """Coefficients and intercepts of these columns, with the rows left out of the last step."""
    batch, inverse = descent.batch, descent.inverse
    c = descent.coefficients()[:, columns]
    out, scale = batch.out[:, columns], (inverse.rho / batch.weight)[:, None]
    A = inverse.pull / scale
    for k in range(len(columns)):
        rows = np.flatnonzero(out[:, k])
        if len(rows):
            c[:, k] -= A[:, rows] @ np.linalg.solve(A[np.ix_(rows, rows)], c[rows, k])
            c[rows, k] = 0.0
    if not batch.fit_intercept:
        return c, np.zeros(len(columns))
    # The step leaves u = v - rho W^-1 c = o + K c + b: every training row has the same b.
    b = descent.v[:, columns] - scale * c - batch.offset[:, columns] - batch.K @ c
    return c, np.asarray(np.where(out, 0.0, b).sum(axis=0) / (~out).sum(axis=0))
