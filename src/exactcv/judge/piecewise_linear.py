"""The judge for piecewise-linear losses: what the reported (c, b) are worth.

    min over f, b   P(f, b) = 1/2 ||f||^2 + sum_i C_i L_i(u_i),      u_i = f(x_i) + b,

over the training rows (C_i > 0 and not left out) is solved by f = sum_i c_i K(., x_i) and b if and
only if, with u = K c + b and the box [lo_i, hi_i] of the coefficients (``problem/losses.py``),

    (1) -c_i / C_i is a slope (subgradient) of L_i at u_i for every training row,
    (2) sum_i c_i = 0                                  (if there is an intercept; else b = 0),
    (3) c_i = 0 for every row that takes no part       (its box is the point 0).

Nothing here knows how c and b were found.  Two figures come out.

**kkt: the largest violation, on the scale of what it could change.**

- Of (1) and (3) the natural residual  r_i = |u_i - prox(u_i - tau_i c_i)|, prox that of
  tau_i C_i L_i, in units of t, the largest knot (1 for the hinge).  It is zero if and only if (1)
  holds.  For one knot t_i it is v_i = u_i - t_i clipped to
  [tau_i (c_i - hi_i), tau_i (c_i - lo_i)]: a row off its knot is measured by its distance from it,
  or by how far its coefficient is from the bound where it ought to be, whichever is less, and a
  coefficient outside its box by how far outside.  Such a distance q counts for

      tau_i q,      tau_i = max( sqrt(K_ii max_k K_kk), t / C_i ):

  what moving c_i by q can do to any u, or its share of the row's own box.  In units of the largest
  C (as LIBSVM has it) a coefficient of the wrong sign would be invisible where all coefficients are
  far below C, and so would every row of small weight.
- Of (2) |sum c~| / sum |c|, with c~ the coefficients brought into their boxes; or |b|.
- How far b is from what the rule of ``intercept.py`` picks, also where rounding leaves it open
  whether a coefficient is at a bound: with the wrong answer b may be anywhere in its interval.
- The rounding of u = K c + b itself, e_i = 1.1e-16 sqrt(K_ii) sum_j sqrt(K_jj) |c_j|, the largest
  of rows within 1 of their knot.  It bounds what is seen in practice (the errors of a sum of n
  terms largely cancel), and rounding in the entries of K.  Beyond it nothing that is computed from
  c in float64 means anything; a left-out value that is no further than that from changing its label
  counts for 1 (``ledger.py``).

**gap: a duality gap of a primal and a dual point that are both feasible.**  Let c~ be any point in
the boxes with sum c~ = 0, f~ its function, and D(c~) = -1/2 ||f~||^2 - sum_i C_i L*_i(-c~_i / C_i)
the dual objective.  For *any* f and b, since sum_i c~_i u_i = <f~, f>,

    P(f, b) - D(c~) = sum_i F_i(u_i, c~_i) + 1/2 ||f - f~||^2,                             (4)
    F_i(u, c) = C_i [L_i(u) + L*_i(-c / C_i)] + c u  >= 0     (Fenchel-Young)

where F_i is computed without cancellation: for one knot it is (c - lo) v+ + (hi - c) v-.
P is strongly convex in f and D strongly concave in f~, so that with the optimum f*

    1/2 ||f - f*||^2 + 1/2 ||f~ - f*||^2 <= P(f, b) - D(c~).                               (5)

*The dual point.*  c is cut to its box, and what is left of its sum is taken off rows that have
room.  What was changed is charged for: with d = c - c~,  ||f - f~|| <= sum_i |d_i| sqrt(K_ii) =:
``stray``, which enters (4), and moving the sum costs at most |sum| (t + max |u|) in the F_i.

*What rounding hides of the sum* is charged for as well: with weights many decades apart the sum of
the heavy rows is rounded more coarsely than the light ones are large.  Coefficients that sum up to
s are judged as above in the problem P(f, b) - s b.  While s goes to 0 its optimum moves piece by
piece, each time by the combination of free rows that has the sum 1 and the least norm, which is no
longer than any one of the rows: by at most |s| max_k sqrt(K_kk) in all.  That, with
s = 4.4e-16 sum |c|, is added to sqrt(2 g) below.

*The primal point* for the hinge is not quite the reported one.  Rows that are short of their knot
by rounding, say 1e-15, cost C_i 1e-15 in P: any amount if C is large enough, though nothing is
wrong with f.  (1 + theta) (f, b) with theta = lack / (1 - lack), ``lack`` the largest such
shortfall, meets their knots again.  With rows turned by y, so that 0 <= c~ <= C_i and v = y u - 1,

    P - D <= (1 + theta) sum' F_i + theta (sum c~_i + sum'' (C_i - c~_i) |u_i|)
             + 1/2 (theta ||f|| + stray)^2

with sum' without the rows that were short, the next over the rows at or beyond their knot, and
sum'' over those that are far short (by more than 1e-6, or with a coefficient that is at C_i but for
rounding).  No C is in it once no coefficient is at its bound: the verdict is then that of every
larger C.

*Rounding.*  An error e in all u changes F_i by at most e times |c~_i - c(u)|, where c(u) is the
coefficient that goes with u; near a knot that may be either end of the box.  For the hinge ``lack``
has e in it, and the terms with theta are taken large enough.  Of values that were claimed
(``claims.py``) a bound on the norm of all errors is known: they change sum F_i by at most it times
the norm of the |c~_i - c(u)|, far less than their sum where many rows are at a knot.

With g for this bound on P - D, (5) gives ||f~ - f*|| <= sqrt(2 g), and so ||f - f*|| <= stray +
sqrt(2 g).  **gap** = 1/2 (stray + sqrt(2 g))^2, so that in every case

    ||f - f*|| <= sqrt(2 gap),      |f(x) - f*(x)| <= sqrt(2 gap K(x, x)).

*The intercept* follows.  b is the middle of the minimisers of sum_i C_i L_i(f(x_i) + b), whose ends
are weighted quantiles of t_i - f(x_i).  No quantile moves further than its entries, so that for
u = f + b at any x

    |u(x) - u*(x)| <= sqrt(2 gap) max_i ||phi(x) - phi(x_i)|| <= 2 sqrt(2 gap max_k K_kk).

All of it is sums and maxima over rows, given h = K c: O(n) for a solution.  A number that is not
finite makes both figures infinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .. import tolerances
from .._core import _residuals
from .._core._lines import Lines
from .._core.reference import residuals as reference
from ..problem.losses import PiecewiseLinear
from ..types import FloatArray, IntArray

__all__ = ["HingeTables", "PiecewiseLinearJudge"]


@dataclass(frozen=True)
class PiecewiseLinearJudge:
    """The judge of one training set; see ``certificate.Judge``.

    ``weight`` is zero for rows that take no part; C_i = C weight_i.  The hinge loss has tables
    (``vector.h`` says what is in them), other losses are judged by ``lines``.
    """

    loss: PiecewiseLinear
    weight: FloatArray
    fit_intercept: bool
    scale: reference.Scale
    tables: HingeTables | None
    lines: Lines | None
    heaviest: float

    @classmethod
    def of(
        cls,
        loss: PiecewiseLinear,
        weight: FloatArray,
        fit_intercept: bool,
        diagonal: FloatArray,
        left_out: IntArray | None = None,
    ) -> PiecewiseLinearJudge:
        unit = float(np.abs(loss.knots).max(initial=0.0))
        scale = reference.Scale.of(diagonal, unit)
        if left_out is not None:
            weight = weight.copy()
            weight[left_out] = 0.0
        if not reference.is_hinge(loss):
            return cls._of_lines(loss, weight, fit_intercept, scale)
        tables = HingeTables.of(loss.knots[:, 0], weight[None], fit_intercept, scale)
        heaviest = float(weight.max(initial=0.0))
        return cls(loss, weight, fit_intercept, scale, tables, None, heaviest)

    @classmethod
    def _of_lines(
        cls,
        loss: PiecewiseLinear,
        weight: FloatArray,
        fit_intercept: bool,
        scale: reference.Scale,
    ) -> PiecewiseLinearJudge:
        lines, heaviest = _lines(loss, weight, fit_intercept, scale), weight.max(initial=0.0)
        return cls(loss, weight, fit_intercept, scale, None, lines, float(heaviest))

    def weighted(self, weight: FloatArray) -> PiecewiseLinearJudge:
        """The judge of the same rows with other weights."""
        more = self.fit_intercept, self.scale
        if self.tables is None:
            return self._of_lines(self.loss, weight, *more)
        tables = HingeTables.of(self.loss.knots[:, 0], weight[None], *more)
        heaviest = float(weight.max(initial=0.0))
        return replace(self, weight=weight, tables=tables, heaviest=heaviest)

    def without(self, left_out: Sequence[IntArray]) -> HingeTables | list[PiecewiseLinearJudge]:
        """The judges of the same rows but ``left_out``, for several such sets."""
        weights = np.tile(self.weight, (len(left_out), 1))
        for weight, rows in zip(weights, left_out, strict=True):
            weight[rows] = 0.0
        more = self.fit_intercept, self.scale
        if self.tables is not None:
            return HingeTables.of(self.loss.knots[:, 0], weights, *more)
        return [self._of_lines(self.loss, weight, *more) for weight in weights]

    def astray(self, coef: FloatArray, rows: IntArray, C: float) -> FloatArray:
        """tau_i |c_i| of rows that take no part, in units of the largest knot."""
        share = 1.0 / (C * self.heaviest)
        stiff = self.scale.root[rows] * self.scale.widest / self.scale.unit
        return np.asarray(np.abs(coef) * np.maximum(stiff, share))

    def intercepts(
        self, h: FloatArray, coef: FloatArray, C: FloatArray, own: IntArray | None = None
    ) -> FloatArray:
        """What the rule of ``intercept.py`` picks."""
        if self.tables is not None:
            return self.tables.intercepts(h, coef, C, own=own)
        out = np.zeros(len(coef))
        if self.fit_intercept:
            assert self.lines is not None
            self.lines.intercepts(h, coef, C, _nobody(coef) if own is None else own, out)
        return out

    def figures(
        self,
        h: FloatArray,
        coef: FloatArray,
        intercept: FloatArray,
        C: FloatArray,
        own: IntArray | None = None,
        blurred: FloatArray | None = None,
    ) -> FloatArray:
        """KKT violation, absolute duality gap, primal objective and floor of each solution.

        ``blurred`` is what the h of each may be off by besides rounding, in the Euclidean norm.
        """
        if self.tables is not None:
            return self.tables.figures(h, coef, intercept, C, own=own, blurred=blurred)
        assert self.lines is not None
        out = np.empty((len(coef), 4))
        blurred = np.zeros(len(coef)) if blurred is None else blurred
        own = _nobody(coef) if own is None else own
        self.lines.judge(h, coef, intercept, C, own, blurred, out)
        return out

    def along(
        self,
        h: FloatArray,
        coef: FloatArray,
        rays: tuple[IntArray, FloatArray],
        C: FloatArray,
        own: IntArray,
        blurred: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Intercepts and figures of multiples of solutions, as those at ``C``.

        Solution k is that in row ``rays[0][k]`` times ``rays[1][k]``, and its h likewise.
        """
        if self.tables is not None:
            b = self.tables.intercepts(h, coef, C, own=own, rays=rays)
            return b, self.tables.figures(h, coef, b, C, own=own, blurred=blurred, rays=rays)
        at, scale = rays[0], rays[1][:, None]
        h, coef = scale * h[at], scale * coef[at]
        b = self.intercepts(h, coef, C, own)
        return b, self.figures(h, coef, b, C, own, blurred)


@dataclass(frozen=True)
class HingeTables:
    """The judges of several training sets of one problem with the hinge loss.

    ``which`` names for each solution its training set, the first if not given.  With ``rays``,
    two arrays, solution k is that of h and coef in row ``rays[0][k]`` times ``rays[1][k]``.
    """

    values: FloatArray  # (F, 4, n), what ``vector.h`` says of each
    heaviest: FloatArray
    lightest: FloatArray
    fit_intercept: bool
    widest: float

    @classmethod
    def of(
        cls, y: FloatArray, weights: FloatArray, fit_intercept: bool, scale: reference.Scale
    ) -> HingeTables:
        values, used = np.empty((len(weights), 4, weights.shape[1])), weights > 0
        heaviest = weights.max(axis=1, initial=0.0)
        values[:, 0], values[:, 1], values[:, 3] = y, weights, scale.root * scale.widest
        inside = np.where(heaviest > 0, heaviest, 1.0)[:, None]
        values[:, 2] = 1.0 / np.where(used, weights, inside)
        lightest = weights.min(axis=1, where=used, initial=np.inf)
        return cls(values, heaviest, lightest, fit_intercept, scale.widest)

    def intercepts(
        self,
        h: FloatArray,
        coef: FloatArray,
        C: FloatArray,
        which: IntArray | None = None,
        own: IntArray | None = None,
        rays: tuple[IntArray, FloatArray] | None = None,
    ) -> FloatArray:
        out = np.zeros(len(C))
        if self.fit_intercept:
            which = np.zeros(len(C), dtype=np.intp) if which is None else which
            own = _nobody(C) if own is None else own
            solutions = h, coef, *(_themselves(coef) if rays is None else rays), C
            _residuals.intercepts(*solutions, self.values, which, own, tolerances.AT_BOUND, out)
        return out

    def figures(
        self,
        h: FloatArray,
        coef: FloatArray,
        intercept: FloatArray,
        C: FloatArray,
        which: IntArray | None = None,
        own: IntArray | None = None,
        blurred: FloatArray | None = None,
        rays: tuple[IntArray, FloatArray] | None = None,
    ) -> FloatArray:
        out = np.empty((len(C), 4))
        which = np.zeros(len(C), dtype=np.intp) if which is None else which
        own = _nobody(C) if own is None else own
        blurred = np.zeros(len(C)) if blurred is None else blurred
        solutions = h, coef, *(_themselves(coef) if rays is None else rays), intercept, C
        training = self.values, which, own, self.widest, self.heaviest, self.lightest
        slack = tolerances.AT_BOUND
        _residuals.judge(*solutions, *training, slack, self.fit_intercept, blurred, out)
        return out


def _nobody(solutions: FloatArray) -> IntArray:
    """No solution leaves out a row of its own."""
    return np.full(len(solutions), -1, dtype=np.intp)


def _themselves(coef: FloatArray) -> tuple[IntArray, FloatArray]:
    """Every solution as it is."""
    return np.arange(len(coef), dtype=np.intp), np.ones(len(coef))


def _lines(
    loss: PiecewiseLinear, weight: FloatArray, fit_intercept: bool, scale: reference.Scale
) -> Lines:
    """The compiled loops."""
    slopes = loss.slopes
    if not ((slopes[:, 0] <= 0.0) & (slopes[:, -1] >= 0.0)).all():
        raise ValueError("a loss without a minimum has no value to speak of")
    heaviest = float(weight.max(initial=0.0)) or 1.0
    width = weight * (slopes[:, -1] - slopes[:, 0])
    table = np.vstack(
        [
            weight,
            1.0 / np.where(weight > 0, weight, heaviest),
            scale.root * scale.widest,
            loss.knots.T,
            slopes.T,
        ]
    )
    least = float(width.min(where=weight > 0, initial=np.inf))
    scales = (scale.unit, scale.widest, 1.0 / heaviest, float(width.max(initial=0.0)), least)
    return Lines(
        np.ascontiguousarray(table), loss.n_knots, (*scales, tolerances.AT_BOUND), fit_intercept
    )
