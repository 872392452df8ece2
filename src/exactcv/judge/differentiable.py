"""The judge for differentiable losses (``piecewise_linear.py`` derives what the figures mean).

With u = K c + b the conditions are

    (1) c_i = -C_i L_i'(u_i) for every training row,
    (2) sum c = 0 (or b = 0),
    (3) c_i = 0 for every row that takes no part.

**kkt** is the largest natural residual r_i = |u_i - x|, where x + tau_i C_i L_i'(x) = u_i -
tau_i c_i with tau_i = max(sqrt(K_ii max K), 1 / C_i); or |sum c~| / sum |c| (or |b|); or the
rounding of u.
Where C is small r_i is the gradient of the primal problem in units of C_i; where it is large, how
far u_i is from where L_i' would be -c_i / C_i.

**gap** is sum_i C_i [L_i(u_i) + L*_i(s_i) - s_i u_i] with s_i = -c~_i / C_i in the range of slopes,
plus what c~ differs from c, and what rounding in u could add:  noise sum_i C_i |L_i'(u_i) - s_i| +
noise^2 / (2 kappa) sum_i C_i.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._core.reference.residuals import ROUNDING, Scale, reported_gap
from ..problem.differentiable import DifferentiableLoss
from ..problem.problem import row_weights
from ..types import FloatArray, IntArray

__all__ = ["DifferentiableJudge"]

# Residuals below this are not looked into: their upper bound will do.
SMALL = 1e-12
# Newton steps, each safeguarded by halving the bracket.
MAX_STEPS = 200


@dataclass(frozen=True)
class DifferentiableJudge:
    """The judge of one training set; ``weight`` is zero for rows that take no part."""

    loss: DifferentiableLoss
    weight: FloatArray
    fit_intercept: bool
    scale: Scale

    @classmethod
    def of(
        cls,
        loss: DifferentiableLoss,
        weight: FloatArray,
        fit_intercept: bool,
        diagonal: FloatArray,
        left_out: IntArray | None = None,
    ) -> DifferentiableJudge:
        weight = weight.copy()
        if left_out is not None:
            weight[left_out] = 0.0
        return cls(loss, weight, fit_intercept, Scale.of(diagonal))

    def astray(self, coef: FloatArray, rows: IntArray, C: float) -> FloatArray:
        """tau_i |c_i| of rows that take no part."""
        stiff = self.scale.root[rows] * self.scale.widest
        return np.asarray(np.abs(coef) * np.maximum(stiff, 1.0 / (C * self.weight.max())))

    def intercepts(
        self, h: FloatArray, coef: FloatArray, C: FloatArray, own: IntArray | None = None
    ) -> FloatArray:
        """The b that minimises sum_i C_i L_i(h_i + b): the root of its slope in b."""
        if not self.fit_intercept:
            return np.zeros(len(coef))
        weight = row_weights(self.weight, len(coef), own)
        reach = 1.0 + np.abs(h).max(axis=1, initial=0.0)
        low, high = -1e3 * reach, 1e3 * reach
        b = np.zeros(len(coef))
        for _ in range(MAX_STEPS):
            u = h + b[:, None]
            slope = (weight * self.loss.slope(u)).sum(axis=1)
            bend = (weight * self.loss.curvature(u)).sum(axis=1)
            low, high = np.where(slope < 0, b, low), np.where(slope > 0, b, high)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = b - slope / bend
            inside = (step > low) & (step < high)
            following = np.where(slope == 0, b, np.where(inside, step, 0.5 * (low + high)))
            if np.array_equal(following, b):
                break
            b = following
        return np.asarray(b)

    def figures(
        self,
        h: FloatArray,
        coef: FloatArray,
        intercept: FloatArray,
        C: FloatArray,
        own: IntArray | None = None,
    ) -> FloatArray:
        """KKT violation, absolute duality gap, primal objective and floor of each solution."""
        scale, loss = self.scale, self.loss
        box = row_weights(self.weight, len(coef), own) * C[:, None]
        used = box > 0
        u = h + intercept[:, None]
        s = loss.inside(-np.divide(coef, box, out=np.zeros_like(coef), where=used))
        stray, off, rounding = scale.charges(coef, -box * s, self.fit_intercept)
        noise, size = rounding * scale.widest, np.abs(coef).sum(axis=1)
        with np.errstate(over="ignore", invalid="ignore"):
            largest = np.maximum(1.0, np.where(used, np.abs(u), 0.0).max(axis=1, initial=0.0))
            kkt = np.maximum(self._residual(u, coef, box).max(axis=1), noise / largest)
            kkt = np.maximum(kkt, off / np.where(size > 0, size, 1.0))
            kkt = kkt if self.fit_intercept else np.maximum(kkt, np.abs(intercept))
            norm = np.maximum((coef * h).sum(axis=1), 0.0)
            primal = 0.5 * norm + (box * loss.value(u)).sum(axis=1)
            steep = (box * np.abs(loss.slope(u) - s)).sum(axis=1)
            gap = (box * loss.divergence(u, s)).sum(axis=1) + 0.5 * stray**2
            gap += noise * steep + 0.5 * noise**2 / loss.kappa * box.sum(axis=1)
            stray = stray + scale.unseen(coef, self.fit_intercept)
            gap = reported_gap(gap, stray, off * (1.0 + largest))
        out = np.column_stack([kkt, gap, primal, ROUNDING * noise])
        out[~np.isfinite(out).all(axis=1)] = np.inf, np.inf, np.inf, 0.0
        return out

    def _residual(self, u: FloatArray, coef: FloatArray, box: FloatArray) -> FloatArray:
        """The natural residuals, by Newton's method in the margin m = y u.

        g(m) = m + tau C phi'(m) - (y u - tau y c) rises at least as fast as m, so its root is
        within |g(y u)| of y u: an upper bound of the residual, which will do where it is small.
        """
        y, tau = np.broadcast_to(self.loss.y, u.shape), self.scale.stiffness(box)
        shape = self.loss.shape
        residual = np.abs(tau * (coef + box * self.loss.slope(u)))
        where = residual > SMALL
        if not where.any():
            return residual
        start, strength = (y * u)[where], (tau * box)[where]
        goal = start - (tau * y * coef)[where]
        low, high = start - residual[where], start + residual[where]
        m = start
        for _ in range(MAX_STEPS):
            g = m + strength * shape.slope(m) - goal
            low, high = np.where(g < 0, m, low), np.where(g > 0, m, high)
            step = m - g / (1.0 + strength * shape.curvature(m))
            step = np.where((step >= low) & (step <= high), step, 0.5 * (low + high))
            done = np.abs(step - m) <= 1e-3 * np.abs(step - start)
            m = step
            if done.all():
                break
        residual[where] = np.abs(m - start)
        return residual
