"""The judge for the squared loss.

    (1) c_i = C_i (y_i - u_i) on training rows, (2) sum c = 0 (or b = 0), (3) c_i = 0 elsewhere.

**kkt** is the largest of |u_i - y_i + c_i / C_i| / max(1, max |u|), |sum c| / sum |c| (or |b|) and
|c_i| / max C.  The duality **gap** is sum_i C_i / 2 (u_i - y_i + c_i / C_i)^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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

    @classmethod
    def of(
        cls,
        loss: SquaredLoss,
        weight: FloatArray,
        fit_intercept: bool,
        left_out: IntArray | None = None,
    ) -> SquaredJudge:
        weight = weight.copy()
        if left_out is not None:
            weight[left_out] = 0.0
        return cls(loss.y, weight, fit_intercept)

    @property
    def weight_max(self) -> float:
        return float(self.weight.max(initial=0.0))

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
        """KKT violation, absolute duality gap and primal objective of each solution."""
        weight = row_weights(self.weight, len(h), own)
        used, box = weight > 0, C[:, None] * weight
        u = h + intercept[:, None]
        miss = np.divide(coef, box, out=np.zeros_like(coef), where=used)
        miss = np.where(used, u - self.y + miss, 0.0)
        kkt = np.abs(miss).max(axis=1) / np.maximum(1.0, np.abs(u).max(axis=1))
        if self.fit_intercept:
            total = np.abs(coef).sum(axis=1) + np.finfo(float).eps * box.sum(axis=1)
            kkt = np.maximum(kkt, np.abs(coef.sum(axis=1)) / total)
        else:
            kkt = np.maximum(kkt, np.abs(intercept))
        astray = np.where(used, 0.0, np.abs(coef)).max(axis=1) / (C * self.weight_max)
        out = np.empty((len(h), 3))
        out[:, 0] = np.maximum(kkt, astray)
        out[:, 1] = 0.5 * (box * miss**2).sum(axis=1)
        fitted = np.einsum("ij,ij->i", coef, h)
        out[:, 2] = 0.5 * fitted + 0.5 * (box * (self.y - u) ** 2).sum(axis=1)
        out[~np.isfinite(out).all(axis=1), :2] = np.inf
        return out
