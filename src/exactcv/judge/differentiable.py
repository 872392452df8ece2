"""The judge for smooth losses (``certificate.py`` has the one for piecewise-linear ones).

With u = K c + b and s_i = -c_i / C_i the conditions are

    (1) s_i = L_i'(u_i) for every training row,
    (2) sum c = 0 (or b = 0),
    (3) c_i = 0 for every row that takes no part.

**kkt** is the largest of |s_i - L_i'(u_i)|, |sum c| / sum |c| (or |b|) and |c_i| / max C of rows
that take no part.  In terms of the primal problem min 1/2 c'Kc + sum C_i L_i(u_i) the first is the
gradient, row by row, in units of C_i.  **gap** is sum_i C_i [L_i(u_i) + L*_i(s_i) - s_i u_i], each
bracket nonnegative by Fenchel-Young; s outside the range of slopes, where L* is infinite, is
brought into it for this figure.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..problem.differentiable import DifferentiableLoss
from ..problem.problem import row_weights
from ..types import FloatArray, IntArray

__all__ = ["DifferentiableJudge"]

EPS = float(np.finfo(float).eps)
# Newton steps, each safeguarded by halving the bracket.
MAX_STEPS = 200


@dataclass(frozen=True)
class DifferentiableJudge:
    """The judge of one training set; ``weight`` is zero for rows that take no part."""

    loss: DifferentiableLoss
    weight: FloatArray
    fit_intercept: bool
    weight_max: float

    @classmethod
    def of(
        cls,
        loss: DifferentiableLoss,
        weight: FloatArray,
        fit_intercept: bool,
        left_out: IntArray | None = None,
    ) -> DifferentiableJudge:
        weight = weight.copy()
        if left_out is not None:
            weight[left_out] = 0.0
        return cls(loss, weight, fit_intercept, float(weight.max(initial=0.0)))

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
        """KKT violation, absolute duality gap and primal objective of each solution."""
        box = row_weights(self.weight, len(coef), own) * C[:, None]
        used = box > 0
        u = h + intercept[:, None]
        s = -np.divide(coef, box, out=np.zeros_like(coef), where=used)
        with np.errstate(over="ignore", invalid="ignore"):
            first = np.where(used, np.abs(s - self.loss.slope(u)), 0.0).max(axis=1, initial=0.0)
            last = np.where(used, 0.0, np.abs(coef)).max(axis=1, initial=0.0)
            kkt = np.maximum(first, last / (C * self.weight_max))
            if self.fit_intercept:
                size = np.abs(coef).sum(axis=1) + EPS * box.sum(axis=1)
                kkt = np.maximum(kkt, np.abs(coef.sum(axis=1)) / size)
            else:
                kkt = np.maximum(kkt, np.abs(intercept))
            gap = (box * self.loss.divergence(u, self.loss.inside(s))).sum(axis=1)
            primal = 0.5 * (coef * h).sum(axis=1) + (box * self.loss.value(u)).sum(axis=1)
        out = np.column_stack([kkt, gap, primal])
        out[~np.isfinite(out).all(axis=1)] = np.inf
        return out
