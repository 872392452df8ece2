"""The judge for the squared loss.

    (1) c_i = C_i (y_i - u_i) on training rows, (2) sum c = 0 (or b = 0), (3) c_i = 0 elsewhere.

**kkt** is the largest of |u_i - y_i + c_i / C_i| / max |y|, |sum c| / sum |c| (or |b|), tau_i |c_i|
of rows that take no part, and the rounding of u (``piecewise_linear.py`` says why).  The duality
**gap** is sum_i C_i / 2 (u_i - y_i + c_i / C_i)^2, plus what rows that take no part, the sum of c
and rounding could add to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._core.reference.residuals import ROUNDING, Scale, reported_gap
from ..problem.differentiable import SquaredLoss
from ..problem.problem import row_weights
from ..types import FloatArray, IntArray

__all__ = ["SquaredJudge"]


@dataclass(frozen=True)
class SquaredJudge:
    """See ``certificate.Judge``; ``weight`` is zero for rows that take no part."""

    y: FloatArray
    weight: FloatArray
    fit_intercept: bool
    scale: Scale

    @classmethod
    def of(
        cls,
        loss: SquaredLoss,
        weight: FloatArray,
        fit_intercept: bool,
        diagonal: FloatArray,
        left_out: IntArray | None = None,
    ) -> SquaredJudge:
        weight = weight.copy()
        if left_out is not None:
            weight[left_out] = 0.0
        unit = float(np.abs(loss.y).max(initial=0.0))
        return cls(loss.y, weight, fit_intercept, Scale.of(diagonal, unit))

    def astray(self, coef: FloatArray, rows: IntArray, C: float) -> FloatArray:
        """tau_i |c_i| of rows that take no part."""
        stiff = self.scale.root[rows] * self.scale.widest / self.scale.unit
        return np.asarray(np.abs(coef) * np.maximum(stiff, 1.0 / (C * self.weight.max())))

    def intercepts(
        self, h: FloatArray, coef: FloatArray, C: FloatArray, own: IntArray | None = None
    ) -> FloatArray:
        """The best b for h = K coef: the weighted mean of y - h."""
        if not self.fit_intercept:
            return np.zeros(len(h))
        weight = row_weights(self.weight, len(h), own)
        return np.asarray((weight * (self.y - h)).sum(axis=1) / weight.sum(axis=1))

    def figures(
        self,
        h: FloatArray,
        coef: FloatArray,
        intercept: FloatArray,
        C: FloatArray,
        own: IntArray | None = None,
    ) -> FloatArray:
        """KKT violation, absolute duality gap, primal objective and floor of each solution."""
        weight = row_weights(self.weight, len(h), own)
        used, box = weight > 0, C[:, None] * weight
        u = h + intercept[:, None]
        scale, size = self.scale, np.abs(coef).sum(axis=1)
        stray, off, rounding = scale.charges(coef, np.where(used, coef, 0.0), self.fit_intercept)
        noise = rounding * scale.widest
        miss = np.divide(coef, box, out=np.zeros_like(coef), where=used)
        miss = np.where(used, u - self.y + miss, scale.stiffness(box) * coef)
        largest = np.maximum(scale.unit, np.where(used, np.abs(u), 0.0).max(axis=1))
        kkt = np.maximum(np.abs(miss).max(axis=1) / scale.unit, noise / largest)
        kkt = np.maximum(kkt, off / np.where(size > 0, size, 1.0))
        kkt = kkt if self.fit_intercept else np.maximum(kkt, np.abs(intercept))
        norm = np.maximum(np.einsum("ij,ij->i", coef, h), 0.0)
        gap = 0.5 * (box * (np.abs(miss) + noise[:, None]) ** 2).sum(axis=1) + 0.5 * stray**2
        out = np.empty((len(h), 4))
        out[:, 3] = ROUNDING * noise / scale.unit
        out[:, 0] = kkt
        stray = stray + scale.unseen(coef, self.fit_intercept)
        out[:, 1] = reported_gap(gap, stray, off * (scale.unit + largest))
        out[:, 2] = 0.5 * norm + 0.5 * (box * (self.y - u) ** 2).sum(axis=1)
        out[~np.isfinite(out).all(axis=1)] = np.inf, np.inf, np.inf, 0.0
        return out
