"""The judge: is this the solution of that problem, and what follows from it?

The judge of each kind of loss has a file of its own: ``piecewise_linear.py`` (which derives what
the figures mean), ``differentiable.py``, ``squared.py`` and ``smooth_svm.py``.  Each gives two
figures from the problem, the coefficients and the intercept alone: **kkt**, the largest violation
of the conditions of optimality, and **gap**, a duality gap with

    ||f - f*|| <= sqrt(2 gap)

for the reported f and the optimum f*.  Here is what is made of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Protocol

import numpy as np

from ..exceptions import NotExactWarning
from ..problem.differentiable import DifferentiableLoss, SquaredLoss
from ..problem.losses import PiecewiseLinear
from ..problem.problem import Problem
from ..runtime.frozen import freeze
from ..types import BoolArray, FloatArray, IntArray
from .differentiable import DifferentiableJudge
from .piecewise_linear import HingeTables, PiecewiseLinearJudge
from .smooth_svm import SmoothSVMJudge
from .squared import SquaredJudge

__all__ = [
    "Certificate",
    "Judge",
    "PiecewiseLinearJudge",
    "attainable",
    "implied_accuracy",
    "judge_for",
    "relative_gap",
    "residuals",
    "warn_if_short",
    "without",
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
    unproved : int
        Where the tolerance is rough (1e-5 or more): how many left-out labels the optimum may not
        share, for all that the duality gaps say.  Few of them are wrong: the bound is a wide one.
    """

    kkt: FloatArray
    gap: FloatArray
    exact: bool
    unresolved: list[tuple[int, int]]
    tol: float
    convex: bool = True
    not_converged: int = 0
    unproved: int = 0

    def __post_init__(self) -> None:
        freeze(self)

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
            unproved=sum(part.unproved for part in parts),
        )

    def __str__(self) -> str:
        worst = f"KKT violation {np.max(self.kkt):.1e}, duality gap {np.max(self.gap):.1e}"
        if self.unproved:
            worst += f", {self.unproved} labels not proved"
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
    certificate: Certificate, Cs: FloatArray, n_solutions: int | None, stacklevel: int = 3
) -> None:
    """Say aloud that some solutions miss the tolerance; ``Cs`` follows the certificate.

    ``n_solutions`` is how many there are, if that is known.
    """
    if not certificate.unresolved:
        return
    least = min(Cs[l] for l, _ in certificate.unresolved)
    of_all = "" if n_solutions is None else f" of {n_solutions}"
    warnings.warn(
        f"{len(certificate.unresolved)}{of_all} solutions, from C={least:g} on, "
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

    def astray(self, coef: FloatArray, rows: IntArray, C: float) -> FloatArray:
        """The KKT violation of rows that have a coefficient though they take no part."""
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
        """KKT violation, absolute duality gap, primal objective and floor: shape (B, 4).

        The floor is what rounding in K c alone may make of the first, and of the second relative to
        the third: trying harder is no use below it.
        """
        ...


def judge_for(problem: Problem, left_out: IntArray | None = None) -> Judge:
    """The judge of a training set: all rows but ``left_out``."""
    if problem.penalty == "ridge":
        return SmoothSVMJudge.of(problem, left_out)
    kind: Any = PiecewiseLinearJudge
    if isinstance(problem.loss, DifferentiableLoss):
        kind = DifferentiableJudge
    elif isinstance(problem.loss, SquaredLoss):
        kind = SquaredJudge
    judge: Judge = kind.of(
        problem.loss, problem.weight, problem.fit_intercept, problem.diagonal, left_out
    )
    return judge


class FoldJudges(Protocol):
    """The judges of several training sets; ``which`` names for each solution its own."""

    def intercepts(
        self, h: FloatArray, coef: FloatArray, C: FloatArray, which: IntArray
    ) -> FloatArray: ...

    def figures(
        self,
        h: FloatArray,
        coef: FloatArray,
        intercept: FloatArray,
        C: FloatArray,
        which: IntArray,
    ) -> FloatArray: ...


@dataclass(frozen=True)
class _OneByOne:
    """Judges that are asked one after the other."""

    judges: Sequence[Judge]

    def intercepts(
        self, h: FloatArray, coef: FloatArray, C: FloatArray, which: IntArray
    ) -> FloatArray:
        out = np.empty(len(coef))
        for k, judge in enumerate(self.judges):
            mine = which == k
            out[mine] = judge.intercepts(h[mine], coef[mine], C[mine])
        return out

    def figures(
        self,
        h: FloatArray,
        coef: FloatArray,
        intercept: FloatArray,
        C: FloatArray,
        which: IntArray,
    ) -> FloatArray:
        out = np.empty((len(coef), 4))
        for k, judge in enumerate(self.judges):
            mine = which == k
            out[mine] = judge.figures(h[mine], coef[mine], intercept[mine], C[mine])
        return out


def without(judge: Judge, problem: Problem, left_out: Sequence[IntArray]) -> FoldJudges:
    """The judges of all rows but ``left_out``, a set each, from the judge of all rows."""
    if not isinstance(judge, PiecewiseLinearJudge):
        return _OneByOne([judge_for(problem, rows) for rows in left_out])
    found = judge.without(left_out)
    return found if isinstance(found, HingeTables) else _OneByOne(found)


def attainable(tol: float, floor: Any, within: float | None = None) -> FloatArray:
    """What figures must meet so that another attempt is no use: ``within``, or rounding.

    Where rounding (the floor) is no more than about the tolerance, this can be met.

    Examples
    --------
    >>> attainable(1e-8, np.array([1e-12, 1.5e-8, 1e-6]), 1e-9).tolist()
    [1e-09, 1e-08, 1e-06]
    """
    floor = np.asarray(floor)
    excused = np.where(floor > 2.0 * tol, floor, np.minimum(floor, tol))
    return np.maximum(tol if within is None else within, excused)


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
    >>> kkt, gap = residuals(np.eye(2), hinge(y), np.full(2, 5.0), np.array([1.0, -1.0]), 0.0)
    >>> kkt < 1e-14 and gap < 1e-14
    True
    >>> kkt, gap = residuals(np.eye(2), hinge(y), np.full(2, 5.0), np.array([0.0, 0.0]), 0.0)
    >>> f"{kkt:.2f}, {gap:.2f}"
    '1.00, 1.00'
    """
    coef = np.ascontiguousarray(coef, dtype=float)
    h = np.ascontiguousarray(coef @ K)  # K is symmetric; the ledger multiplies in this order too
    weight, diagonal = np.asarray(C, dtype=float), np.diagonal(K)
    judge = PiecewiseLinearJudge.of(loss, weight, fit_intercept, diagonal, left_out)
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
