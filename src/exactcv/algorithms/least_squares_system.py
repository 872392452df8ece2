"""The squared loss (kernel ridge classification, least-squares SVM): folds in closed form.

    min over f in H_K, b   1/2 ||f||^2 + 1/2 sum_{i in train} C w_i (y_i - f(x_i) - b)^2

has one linear system for all rows,

    M [c; b] = [y; 0],    M = [ K + diag(1/(C w_i))   1 ]
                              [ 1'                    0 ]        (without the border: no intercept),

and leaving out rows T deletes their rows and columns from it.  With G = M^-1, formula (7) of the
rank-r paper says what that does to the solution:

    c^(-T) = c - G_.T G_TT^-1 c_T,        b^(-T) likewise,
    y_T - f^(-T)(x_T) = G_TT^-1 c_T       (for one row: c_i / G_ii).

Rows of weight zero are left out from the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import eigh

from ..problem.problem import row_weights
from ..types import FloatArray, IntArray

if TYPE_CHECKING:
    from ..judge.certificate import Judge
    from ..problem.problem import Problem

__all__ = ["LeastSquares", "SquaredJudge", "SquaredLoss"]


class LeastSquares:
    """Full-data solution and G at any C, from one eigendecomposition of W^1/2 K W^1/2."""

    def __init__(self, K: FloatArray, y: FloatArray, weight: FloatArray, fit_intercept: bool):
        self.y, self.fit_intercept = y, fit_intercept
        self.rows = np.flatnonzero(weight > 0)
        self.root = np.sqrt(weight[self.rows])
        scaled = K[np.ix_(self.rows, self.rows)] * np.outer(self.root, self.root)
        self.values, self.vectors = eigh(scaled, overwrite_a=True, check_finite=False)

    def inverse(self, C: float) -> FloatArray:
        """G over the rows with weight, bordered by the intercept if there is one."""
        inner = (self.vectors / (self.values + 1.0 / C)) @ self.vectors.T
        inner *= np.outer(self.root, self.root)
        if not self.fit_intercept:
            return inner
        m = len(inner)
        sums = inner.sum(axis=1)
        total = float(sums.sum())
        G = np.empty((m + 1, m + 1))
        G[:m, :m] = inner - np.outer(sums, sums / total)
        G[m, :m] = G[:m, m] = sums / total
        G[m, m] = -1.0 / total
        return G

    def full(self, G: FloatArray) -> FloatArray:
        """[c; b] on all rows with weight."""
        solution: FloatArray = G[:, : len(self.rows)] @ self.y[self.rows]
        return solution

    def without(self, G: FloatArray, solution: FloatArray, places: IntArray) -> FloatArray:
        """[c; b] without the rows at these places of ``self.rows``."""
        if not len(places):
            return solution
        q = np.linalg.solve(G[np.ix_(places, places)], solution[places])
        left: FloatArray = solution - G[:, places] @ q
        left[places] = 0.0
        return left

    def without_each(self, G: FloatArray, solution: FloatArray, places: IntArray) -> FloatArray:
        """The same for single rows, one solution a row."""
        share = solution[places] / np.diagonal(G)[places]
        left: FloatArray = solution - share[:, None] * G[places]
        left[np.arange(len(places)), places] = 0.0
        return left


@dataclass(frozen=True)
class SquaredLoss:
    """What ``Problem.model`` is for the squared loss."""

    def judge(self, problem: Problem, left_out: IntArray | None) -> Judge:
        weight = problem.weight.copy()
        if left_out is not None:
            weight[left_out] = 0.0
        return SquaredJudge(problem.y, weight, problem.fit_intercept)


@dataclass(frozen=True)
class SquaredJudge:
    """The judge for the squared loss; ``weight`` is zero for rows that take no part.

    (1) c_i = C_i (y_i - u_i) on training rows, (2) sum c = 0 (or b = 0), (3) c_i = 0 elsewhere.
    **kkt** is the largest of |u_i - y_i + c_i / C_i| / max(1, max |u|), |sum c| / sum |c| (or |b|)
    and |c_i| / max C.  The duality gap is sum_i C_i / 2 (u_i - y_i + c_i / C_i)^2.
    """

    y: FloatArray
    weight: FloatArray
    fit_intercept: bool

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
