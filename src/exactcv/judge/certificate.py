"""The judge: is this the solution of that problem?

    min over f, b   1/2 ||f||^2 + sum_i C_i L_i(u_i),      u_i = f(x_i) + b,

over the training rows (C_i > 0 and not left out) is solved by f = sum_i c_i K(., x_i) and b if and
only if, with u = K c + b and s_i = -c_i / C_i,

    (1) s_i is a slope (subgradient) of L_i at u_i for every training row,
    (2) sum_i c_i = 0                                  (if there is an intercept; else b = 0),
    (3) c_i = 0 for every row that takes no part.

Nothing here knows how c and b were found.  Two figures come out.

**kkt**, the largest violation of the conditions:

- of (1): the natural residual |u_i - prox(u_i + s_i)|, divided by max(1, max |u|), where
  prox(z) = argmin over u of 1/2 (u - z)^2 + L_i(u).  It is zero if and only if (1) holds, since
  u = prox(u + s) says exactly that s is a subgradient at u.  With knots t_k and slopes s_k

      prox(z) = min(z - s_0, max(t_1, min(z - s_1, max(t_2, ... z - s_m)))).

  Besides, how far s_i lies outside [s_0, s_m], undivided;
- of (2): |sum c| / (sum |c| + e), or |b|.  The coefficients themselves measure their sum: C would
  be too lax where all of them are far below it.  e = 2.2e-16 sum C_i keeps 0 / 0 at bay;
- of (3): |c_i| / max C.

**gap**, the duality gap, relative to the primal objective.  Let D(c) = -1/2 c' K c -
sum_i C_i L*_i(s_i) be the dual objective.  Then

    P - D = c' K c + sum_i C_i [L_i(u_i) + L*_i(s_i)]
          = sum_i C_i [L_i(u_i) + L*_i(s_i) - s_i u_i]

because sum_i C_i s_i u_i = -c' (K c + b 1) = -c' K c when sum c = 0 (or b = 0).  Each bracket is
nonnegative by the Fenchel-Young inequality and is computed without cancellation; for one knot and
v = u - t it is  max((C s_0 + c) v, (C s_1 + c) v).  Coefficients outside their box, for which L* is
infinite, are brought into it for this figure: ``kkt`` reports them.

A number that is not finite makes both infinite.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Protocol

import numpy as np

from .. import tolerances
from .._core import _residuals
from .._core.reference import residuals as reference
from ..exceptions import NotExactWarning
from ..problem.differentiable import DifferentiableLoss, SquaredLoss
from ..problem.losses import PiecewiseLinear
from ..problem.problem import Problem, row_weights
from ..types import BoolArray, FloatArray, IntArray
from .differentiable import DifferentiableJudge
from .intercept import canonical_intercept
from .smooth_svm import SmoothSVMJudge
from .squared import SquaredJudge

__all__ = [
    "Certificate",
    "Judge",
    "PiecewiseLinearJudge",
    "implied_accuracy",
    "judge_for",
    "relative_gap",
    "residuals",
    "warn_if_short",
]

TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True)
class Certificate:
    """What the judge found, grid point by grid point.

    Attributes
    ----------
    kkt, gap : ndarray of shape (L,)
        The worst over the full-data problem and every solved fold.
    exact : bool
        Do all of them meet the tolerance?
    unresolved : list of (int, int)
        (grid index, fold) of those that do not; fold -1 is the full data.
    tol : float
    convex : bool
        Is the kernel matrix positive semidefinite?  If not, the figures show stationary points,
        which need not be optimal, and ``exact`` is False.
    not_converged : int
        How many solves ended at their iteration limit.  What they gave is judged like the rest: it
        is among ``unresolved`` unless it meets the tolerance all the same.
    """

    kkt: FloatArray
    gap: FloatArray
    exact: bool
    unresolved: list[tuple[int, int]]
    tol: float
    convex: bool = True
    not_converged: int = 0

    def __post_init__(self) -> None:
        for figures in (self.kkt, self.gap):
            figures.flags.writeable = False

    @property
    def short(self) -> BoolArray:
        """(L,): which grid points have solutions that miss the tolerance."""
        return np.isin(np.arange(len(self.kkt)), [l for l, _ in self.unresolved])

    @classmethod
    def joined(cls, parts: Sequence[Certificate]) -> Certificate:
        """Grids one after the other: their figures, with ``unresolved`` renumbered."""
        starts = np.cumsum([0, *(len(part.kkt) for part in parts)]).tolist()
        return cls(
            kkt=np.concatenate([part.kkt for part in parts]),
            gap=np.concatenate([part.gap for part in parts]),
            exact=all(part.exact for part in parts),
            unresolved=[
                (start + l, fold)
                for start, part in zip(starts, parts, strict=False)
                for l, fold in part.unresolved
            ],
            tol=parts[0].tol,
            convex=all(part.convex for part in parts),
            not_converged=sum(part.not_converged for part in parts),
        )

    def __str__(self) -> str:
        worst = f"KKT violation {np.max(self.kkt):.1e}, duality gap {np.max(self.gap):.1e}"
        if self.exact:
            return f"exact: {worst} (tolerance {self.tol:.0e})"
        if not self.convex and not self.unresolved:
            return f"NOT exact: stationary points only, K is not positive semidefinite: {worst}"
        limit = f", {self.not_converged} not converged" if self.not_converged else ""
        return (
            f"NOT exact: {worst}, {len(self.unresolved)} unresolved{limit} "
            f"(tolerance {self.tol:.0e})"
        )


def warn_if_short(
    certificate: Certificate, Cs: FloatArray, n_solutions: int, stacklevel: int = 3
) -> None:
    """Say aloud that some solutions miss the tolerance; ``Cs`` follows the certificate."""
    if not certificate.unresolved:
        return
    least = min(Cs[l] for l, _ in certificate.unresolved)
    warnings.warn(
        f"{len(certificate.unresolved)} of {n_solutions} solutions, from C={least:g} on, "
        f"do not meet tol={certificate.tol:g} (KKT violation to {certificate.kkt.max():.1e}, "
        f"relative gap to {certificate.gap.max():.1e}); {_advice(certificate.not_converged)}; see "
        "certificate.unresolved",
        NotExactWarning,
        stacklevel=stacklevel,
    )


def _advice(not_converged: int) -> str:
    """Why solutions may miss the tolerance, and what to do."""
    if not_converged:
        return (
            f"{not_converged} solves have not converged within their iteration limit: raise it "
            "(max_iter, where the method has it), standardise the features, or leave out the "
            "largest C"
        )
    return (
        "they are beyond the accuracy of float64 or of the method: standardise the features, "
        "leave out the largest C, or raise tol"
    )


class Judge(Protocol):
    """The judge of one training set: the only part of the ledger that knows the model.

    ``own``, where given, names one more row that each solution leaves out (-1 for none).
    """

    @property
    def weight_max(self) -> float:
        """The largest row weight."""
        ...

    def intercepts(
        self, h: FloatArray, coef: FloatArray, C: FloatArray, own: IntArray | None = None
    ) -> FloatArray:
        """The intercept that belongs to each block of coefficients, h = K coef."""
        ...

    def figures(
        self,
        h: FloatArray,
        coef: FloatArray,
        intercept: FloatArray,
        C: FloatArray,
        own: IntArray | None = None,
    ) -> FloatArray:
        """KKT violation, absolute duality gap and primal objective: shape (B, 3)."""
        ...


@dataclass(frozen=True)
class PiecewiseLinearJudge:
    """The judge for piecewise-linear losses.

    ``weight`` is zero for rows that take no part; C_i = C weight_i.  ``table`` (one-knot losses
    only) stacks knot, slopes, weight and 1 / weight, with zeros for rows that take no part.
    """

    loss: PiecewiseLinear
    weight: FloatArray
    fit_intercept: bool
    table: FloatArray | None
    weight_max: float
    weight_sum: float

    @classmethod
    def of(
        cls,
        loss: PiecewiseLinear,
        weight: FloatArray,
        fit_intercept: bool,
        left_out: IntArray | None = None,
    ) -> PiecewiseLinearJudge:
        weight = weight.copy()
        if left_out is not None:
            weight[left_out] = 0.0
        used = weight > 0
        table = None
        if loss.n_knots == 1:
            table = np.zeros((5, len(weight)))
            table[0], table[3] = loss.knots[:, 0], weight
            np.copyto(table[1:3], loss.slopes.T, where=used)
            np.divide(1.0, weight, out=table[4], where=used)
        largest, total = float(weight.max(initial=0.0)), float(weight.sum())
        return cls(loss, weight, fit_intercept, table, largest, total)

    def intercepts(
        self, h: FloatArray, coef: FloatArray, C: FloatArray, own: IntArray | None = None
    ) -> FloatArray:
        """What the rule of ``intercept.py`` picks."""
        out = np.zeros(len(coef))
        if not self.fit_intercept:
            return out
        if own is None:
            own = np.full(len(coef), -1, dtype=np.intp)
        if self.table is not None:
            _residuals.intercepts(h, coef, C, self.table, own, tolerances.AT_BOUND, out)
            return out
        for k, box in enumerate(C[:, None] * row_weights(self.weight, len(C), own)):
            levels = self.loss.coefficient_levels(box)
            out[k] = canonical_intercept(h[k], coef[k], levels, self.loss, box > 0)
        return out

    def figures(
        self,
        h: FloatArray,
        coef: FloatArray,
        intercept: FloatArray,
        C: FloatArray,
        own: IntArray | None = None,
    ) -> FloatArray:
        """KKT violation, absolute duality gap and primal objective of each solution."""
        out = np.empty((len(coef), 3))
        if own is None:
            own = np.full(len(coef), -1, dtype=np.intp)
        if self.table is not None:
            totals = self.weight_max, self.weight_sum, self.fit_intercept
            _residuals.judge(h, coef, intercept, C, self.table, own, *totals, out)
            return out
        for k, box in enumerate(C[:, None] * row_weights(self.weight, len(C), own)):
            found = reference.tally(h[k], coef[k], intercept[k], box, self.loss, self.fit_intercept)
            out[k] = found
        return out


def judge_for(problem: Problem, left_out: IntArray | None = None) -> Judge:
    """The judge of a training set: all rows but ``left_out``."""
    if problem.penalty == "ridge":
        return SmoothSVMJudge.of(problem, left_out)
    kind: Any = PiecewiseLinearJudge
    if isinstance(problem.loss, DifferentiableLoss):
        kind = DifferentiableJudge
    elif isinstance(problem.loss, SquaredLoss):
        kind = SquaredJudge
    judge: Judge = kind.of(problem.loss, problem.weight, problem.fit_intercept, left_out)
    return judge


def relative_gap(gap: FloatArray, primal: FloatArray) -> FloatArray:
    """The gap in units of the objective."""
    return np.asarray(gap / np.maximum(np.abs(primal), TINY))


def residuals(
    K: FloatArray,
    loss: PiecewiseLinear,
    C: FloatArray,
    coef: FloatArray,
    intercept: float,
    left_out: IntArray | None = None,
    fit_intercept: bool = True,
) -> tuple[float, float]:
    """KKT violation and relative duality gap of one solution, from scratch.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    loss : PiecewiseLinear
    C : ndarray of shape (n,)
        C_i; rows with zero take no part.
    coef : ndarray of shape (n,)
        Signed dual coefficients.
    intercept : float
    left_out : ndarray of int, optional
        Rows that take no part besides.
    fit_intercept : bool

    Returns
    -------
    kkt, gap : float

    Examples
    --------
    >>> import numpy as np
    >>> from exactcv.problem.losses import hinge
    >>> y = np.array([1.0, -1.0])
    >>> residuals(np.eye(2), hinge(y), np.full(2, 5.0), np.array([1.0, -1.0]), 0.0)
    (0.0, 0.0)
    >>> residuals(np.eye(2), hinge(y), np.full(2, 5.0), np.array([0.0, 0.0]), 0.0)
    (1.0, 1.0)
    """
    coef = np.ascontiguousarray(coef, dtype=float)
    h = np.ascontiguousarray(coef @ K)  # K is symmetric; the ledger multiplies in this order too
    judge = PiecewiseLinearJudge.of(loss, np.asarray(C, dtype=float), fit_intercept, left_out)
    out = judge.figures(h[None], coef[None], np.array([intercept]), np.ones(1))
    return float(out[0, 0]), float(relative_gap(out[0, 1], out[0, 2]))


def implied_accuracy(gap_abs_1: float, gap_abs_2: float, K_xx: float) -> float:
    """How far two certified solutions can be apart at a point x, in f (without intercept).

    With b minimised out, the primal objective P(f) is the sum of 1/2 ||f||^2 and a convex function,
    so it is strongly convex: P(f) - P(f*) >= 1/2 ||f - f*||^2.  A solution whose absolute duality
    gap is g has P(f) - P(f*) <= g, hence ||f - f*|| <= sqrt(2 g).  For two solutions of the same
    problem the triangle inequality gives ||f1 - f2|| <= sqrt(2 g1) + sqrt(2 g2), and by the
    reproducing property |f1(x) - f2(x)| <= sqrt(K(x, x)) ||f1 - f2||.

    Examples
    --------
    >>> implied_accuracy(2e-16, 0.0, 1.0)
    2e-08
    """
    return sqrt(max(K_xx, 0.0)) * (sqrt(2.0 * gap_abs_1) + sqrt(2.0 * gap_abs_2))
