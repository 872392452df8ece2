"""The judge of smooth-SVM solutions: the gradient of each training set's own objective.

    min over theta   1/2 ||theta||^2 + C sum_{i in train} w_i (1 - y_i f_i)_+^2

With f = h + b, h = K coef, and e_i = 2 C w_i y_i (1 - y_i f_i)_+  (zero for rows that take no
part):

- nonlinear, u = coef:  g_j = u_j / sqrt(w_j) - sqrt(w_j) (K e)_j on the training columns.  Columns
  that take no part must have u_j = 0; what is there instead counts as gradient;
- linear, w = X' coef:  g = X' (coef - e), and rows that take no part must have coef_i = 0;
- g_b = b - sum e, or b where there is no intercept.

**kkt** is ||g|| / max(1, ||theta||).  The objective is
strongly convex with constant 1, so P - P* <= ||g||^2 / 2: that is the **gap**, and ||theta -
theta*|| <= ||g||.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..problem.problem import Problem, row_weights
from ..types import FloatArray, IntArray

__all__ = ["SmoothSVMJudge"]

ROUNDS = 100


@dataclass(frozen=True)
class SmoothSVMJudge:
    """See ``certificate.Judge``; ``weight`` is zero for rows that take no part."""

    K: FloatArray
    y: FloatArray
    features: FloatArray | None
    weight: FloatArray
    fit_intercept: bool

    @classmethod
    def of(cls, problem: Problem, left_out: IntArray | None = None) -> SmoothSVMJudge:
        weight = problem.weight.copy()
        if left_out is not None:
            weight[left_out] = 0.0
        return cls(problem.K, problem.y, problem.features, weight, problem.fit_intercept)

    @property
    def weight_max(self) -> float:
        return float(self.weight.max(initial=0.0))

    def intercepts(
        self, h: FloatArray, coef: FloatArray, C: FloatArray, own: IntArray | None = None
    ) -> FloatArray:
        """The root of b = sum e(b), by Newton from 0; piecewise linear and increasing in b."""
        b = np.zeros(len(h))
        if not self.fit_intercept:
            return b
        weight = row_weights(self.weight, len(h), own)
        for _ in range(ROUNDS):
            e, slack = self._pull(h, b, C, weight)
            stiff = 2.0 * C * np.where(slack > 0, weight, 0.0).sum(axis=1)
            step = (b - e.sum(axis=1)) / (1.0 + stiff)
            b = b - step
            if (np.abs(step) <= 1e-15 * np.maximum(1.0, np.abs(b))).all():
                break
        return b

    def figures(
        self,
        h: FloatArray,
        coef: FloatArray,
        intercept: FloatArray,
        C: FloatArray,
        own: IntArray | None = None,
    ) -> FloatArray:
        """KKT violation, absolute gap and the objective of each solution."""
        weight = row_weights(self.weight, len(h), own)
        e, slack = self._pull(h, intercept, C, weight)
        used = weight > 0
        if self.features is None:
            root = np.sqrt(np.where(used, weight, 1.0))
            g = coef / root - np.where(used, root * (e @ self.K), 0.0)
            ridge = np.square(coef / root).sum(axis=1)
            astray = 0.0
        else:
            g = (coef - e) @ self.features
            ridge = np.maximum(np.einsum("ij,ij->i", coef, h), 0.0)
            astray = np.square(np.where(used, 0.0, coef)).sum(axis=1)
        to_b = intercept - (e.sum(axis=1) if self.fit_intercept else 0.0)
        square = np.einsum("ij,ij->i", g, g) + to_b**2 + astray
        ridge = ridge + intercept**2
        out = np.empty((len(h), 3))
        out[:, 0] = np.sqrt(square / np.maximum(1.0, ridge))
        out[:, 1] = 0.5 * square
        out[:, 2] = 0.5 * ridge + C * (weight * np.maximum(slack, 0.0) ** 2).sum(axis=1)
        out[~np.isfinite(out).all(axis=1), :2] = np.inf
        return out

    def _pull(
        self, h: FloatArray, b: FloatArray, C: FloatArray, weight: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """e and the slack 1 - y f."""
        slack = 1.0 - self.y * (h + b[:, None])
        return 2.0 * C[:, None] * weight * self.y * np.maximum(slack, 0.0), slack
