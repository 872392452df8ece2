"""The ordinary solver for smooth losses: damped Newton in float64.

    min over c, b   P(c, b) = 1/2 c' K c + sum_i C_i L_i(u_i),     u = K c + b,

is solved when c_i = -C_i L_i'(u_i) and sum c = 0.  A Newton step linearises L' at u.  With
d_i = C_i L_i''(u_i) the rows of T = {d_i > 0} solve

    (K_TT + 1 / d) c_T + b = u_T - L_T' / L_T'' - K_{T,rest} c_rest,       sum c = 0,

and the others have c_i = -C_i L_i'(u_i).  The matrix is positive definite for any kernel.  The step
is halved until P falls (u is linear and c'Kc quadratic along it, so a trial costs O(n)).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from .._core.reference.residuals import Scale
from ..problem.differentiable import DifferentiableLoss
from ..runtime.threads import Cancelled
from ..types import FloatArray, IntArray

__all__ = ["SmoothSolution", "solve_smooth"]

MAX_STEPS = 200
MAX_HALVINGS = 40
# Steps in a row that gain nothing that could be measured, and come no closer: rounding is reached.
PATIENCE = 8
# The rounding of the objective, relative to its terms.
ROUNDING, EPSILON = 1e-14, 1.1e-16
# Rows whose curvature is less than this share of the largest possible count as linear.
FLAT = 1e-13


@dataclass(frozen=True)
class SmoothSolution:
    """A solution over all n rows (zeros for those left out) and how it was reached.

    ``converged`` is also True where rounding keeps it from coming closer.
    """

    coef: FloatArray
    intercept: float
    iterations: int
    converged: bool


def solve_smooth(
    K: FloatArray,
    loss: DifferentiableLoss,
    C: FloatArray,
    train: IntArray | None = None,
    *,
    fit_intercept: bool = True,
    tol: float = 1e-10,
    start: FloatArray | None = None,
    cancel: NDArray[np.int32] | None = None,
) -> SmoothSolution:
    """Solve one problem until the natural residual of every row is at most tol.

    Near the solution it is tau_i |c_i + C_i L_i'(u_i)| / (1 + tau_i C_i L_i''(u_i)), with the tau_i
    of ``judge/differentiable.py``.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    loss : DifferentiableLoss
    C : ndarray of shape (n,)
        C_i; rows with zero take no part.
    train : ndarray of int, optional
        The training rows; all of them if not given.
    fit_intercept : bool
    tol : float
    start : ndarray of shape (n,), optional
        Coefficients to start from.
    cancel : ndarray of one int32, optional

    Examples
    --------
    >>> import numpy as np
    >>> from exactcv.problem.differentiable import squared_hinge
    >>> loss = squared_hinge(np.array([1.0, -1.0]))
    >>> solution = solve_smooth(np.eye(2), loss, np.full(2, 0.5))
    >>> solution.coef, solution.converged
    (array([ 0.5, -0.5]), True)
    """
    rows = np.arange(len(C), dtype=np.intp) if train is None else np.asarray(train, np.intp)
    rows = rows[C[rows] > 0]
    part = _Part(
        K[np.ix_(rows, rows)], DifferentiableLoss(loss.shape, loss.y[rows]), C[rows], fit_intercept
    )
    c = np.zeros(len(rows)) if start is None else start[rows].copy()
    b, h = 0.0, part.K @ c
    converged, steps, waited = False, 0, 0
    best, least = (c, b), np.inf
    while steps < MAX_STEPS and not converged:
        steps += 1
        if cancel is not None and cancel[0]:
            raise Cancelled
        new_c, new_b = part.newton(c, h, b)
        new_h = part.K @ new_c
        t, gained = part.search(c, h, b, new_c - c, new_h - h, new_b - b)
        c, b = c + t * (new_c - c), b + t * (new_b - b)
        h = part.K @ c
        violation = part.violation(c, h, b)
        waited = 0 if gained or violation < 0.5 * least else waited + 1
        if violation < least:
            best, least = (c, b), violation
        converged = violation <= tol or waited == PATIENCE
        if t == 0.0:
            break
    c, b = best
    coef = np.zeros(len(C))
    coef[rows] = c
    return SmoothSolution(coef, float(b), steps, converged)


class _Part:
    """The fixed part: one entry for each training row."""

    def __init__(self, K: FloatArray, loss: DifferentiableLoss, C: FloatArray, fit_intercept: bool):
        self.K, self.loss, self.C, self.fit_intercept = K, loss, C, fit_intercept
        scale = Scale.of(np.diagonal(K))
        self.tau, self.root, self.widest = scale.stiffness(C), scale.root, scale.widest

    def violation(self, c: FloatArray, h: FloatArray, b: float) -> float:
        u = h + b
        missed = np.abs(c + self.C * self.loss.slope(u)) * self.tau
        first = (missed / (1.0 + self.tau * self.C * self.loss.curvature(u))).max()
        if not self.fit_intercept:
            return float(first)
        return float(max(first, abs(c.sum()) / max(np.abs(c).sum(), np.finfo(float).tiny)))

    def newton(self, c: FloatArray, h: FloatArray, b: float) -> tuple[FloatArray, float]:
        """Where the linearised conditions hold."""
        u = h + b
        slope, bend = self.loss.slope(u), self.loss.curvature(u)
        curved = bend > FLAT / self.loss.kappa
        new = np.where(curved, 0.0, -self.C * slope)
        T = np.flatnonzero(curved)
        if not len(T):
            # Everybody is content: nothing but the intercept is left to move.
            return new, b
        right = u[T] - slope[T] / bend[T] - self.K[T] @ new
        A = self.K[np.ix_(T, T)] + np.diag(1.0 / (self.C[T] * bend[T]))
        columns = np.column_stack([right, np.ones(len(T))])
        _, x, info = lapack.dposv(A, columns)
        if info:
            x = np.linalg.lstsq(A, columns, rcond=None)[0]
        x += _refine(A, columns - A @ x)
        new_b = 0.0
        if self.fit_intercept:
            new_b = float((x[:, 0].sum() + new.sum()) / x[:, 1].sum())
        new[T] = x[:, 0] - new_b * x[:, 1]
        return new, new_b

    def search(
        self,
        c: FloatArray,
        h: FloatArray,
        b: float,
        dc: FloatArray,
        dh: FloatArray,
        db: float,
    ) -> tuple[float, bool]:
        """A step 1, 1/2, 1/4, ... with enough descent (Armijo), and whether it can be measured."""
        flat, bent = float(c @ dh), float(dc @ dh)
        u, du = h + b, dh + db
        now, slope = float(self.C @ self.loss.value(u)), self.loss.slope(u)
        # What the rounding of u does to the losses.
        blur = self.widest * float(self.root @ np.abs(c)) * float(self.C @ np.abs(slope)) * EPSILON
        downhill = flat + float(self.C @ (slope * du))
        t = 1.0
        for _ in range(MAX_HALVINGS):
            then = float(self.C @ self.loss.value(u + t * du))
            gain = then - now + t * flat + 0.5 * t * t * bent
            # Near the solution rounding hides the descent: a full step is then right.
            hidden = ROUNDING * (abs(now) + abs(flat))
            if gain <= 1e-4 * t * downhill + hidden:
                return t, gain < -hidden - blur
            t *= 0.5
        return 0.0, False


def _refine(A: FloatArray, residual: FloatArray) -> FloatArray:
    """One round of iterative refinement."""
    _, x, info = lapack.dposv(A, residual)
    return np.zeros_like(residual) if info else np.asarray(x)
