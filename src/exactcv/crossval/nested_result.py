"""What came out of a nested cross-validation."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..judge.certificate import Certificate
from ..report.after_tuning import NADEAU, AfterTuning, loss_name
from ..report.words import paragraph
from ..runtime.frozen import freeze
from ..types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..report.chosen_plot import ChosenDisplay

__all__ = ["PINBALL", "Nested", "NestedRegressionResult", "NestedResult"]

PINBALL = "neg_mean_pinball_loss"  # what quantiles are chosen by, unless a scorer is named

BEYOND = (
    "an error above 0.5 can be true: leaving rows of a class out makes it rarer among the rest, "
    "and where there is little to learn, or C is small, the commoner class is predicted"
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Nested:
    """What the results of nested cross-validations of classes and of numbers share."""

    error: float
    se: float
    interval: tuple[float, float]
    score: float
    score_se: float
    scoring: str
    chosen: FloatArray
    inner: FloatArray
    optimism: float
    decision: FloatArray
    test_row: IntArray
    test_fold: IntArray
    n_folds: int
    n_rows: int
    select: str
    method: str
    n_points: int
    certificate: Certificate
    stats: dict[str, int]
    timings: dict[str, float]
    _numeric: ClassVar[bool] = False

    def __post_init__(self) -> None:
        freeze(self)

    def often(self) -> list[tuple[float, float, int]]:
        """(C, gamma, how often), the most frequent choice first."""
        counts = Counter((float(C), float(g) if g == g else None) for C, g in self.chosen)
        ranked = sorted(counts.items(), key=lambda one: (-one[1], one[0][0], one[0][1] or 0.0))
        return [(C, np.nan if g is None else g, n) for (C, g), n in ranked]

    def summary(self) -> str:
        """The error after tuning, how sure it is, what was chosen and what the choice gained."""
        lines = [
            f"Nested cross-validation: {self.n_folds} outer folds, {self.n_points} grid points "
            f"tuned in each, method {self.method!r}."
        ]
        lines += [paragraph(label, text) for label, text in self._parts()]
        return "\n".join(lines)

    def after_tuning(self) -> AfterTuning:
        """The figures that summaries and reports show."""
        return AfterTuning(
            n_folds=self.n_folds,
            leave_one_out=self.n_folds == len(self.test_row),
            error=self.error,
            low=self.interval[0],
            high=self.interval[1],
            score=self.score,
            scoring=self.scoring,
            optimism=self.optimism,
            numeric=self._numeric,
            quantile=getattr(self, "quantile", None),
        )

    def methods_text(self) -> str:
        """A sentence for a paper, and its reference; ``SVCCV.methods_text`` says what was tuned."""
        return f"{self.after_tuning().sentence()}\n\nReferences\n- {NADEAU}"

    def _parts(self) -> list[tuple[str, str]]:
        """Labels and texts of the summary."""
        raise NotImplementedError

    def _choice_parts(self) -> list[tuple[str, str]]:
        """What the choice gained, what was chosen, the certificate and the time."""
        inner = float(self.inner.mean())
        parts = [
            (
                "optimism",
                f"{self.optimism:+.4f}: the chosen points have {self.scoring} {inner:.4f} in the "
                f"inner folds that chose them, and {self.score:.4f} outside",
            )
        ]
        shown = [
            f"C={C:.4g}" + ("" if np.isnan(g) else f", gamma={g:.4g}") + f" ({n} times)"
            for C, g, n in self.often()[:5]
        ]
        more = len(self.often()) - len(shown)
        parts.append(("chosen", "; ".join(shown) + (f"; and {more} others" if more else "")))
        exact = "exact" if self.certificate.exact else "NOT exact"
        kkt, gap = (float(np.fmax.reduce(x)) for x in (self.certificate.kkt, self.certificate.gap))
        parts.append(
            ("certificate", f"{exact}: KKT violation at most {kkt:.1e}, duality gap {gap:.1e}")
        )
        parts.append(("time", f"{self.timings['total']:.3f} s"))
        return parts

    def plot(self, *, ax: Axes | None = None, **options: Any) -> ChosenDisplay:
        """The points that were chosen, each as large as it is frequent (needs matplotlib)."""
        from ..report.chosen_plot import ChosenDisplay

        return ChosenDisplay(often=self.often()).plot(ax=ax, **options)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NestedResult(Nested):
    """The error after tuning: of F outer folds, with T tests in all.

    Attributes
    ----------
    error, se : float
        The share of wrong tests (by sample weight), and its standard error over outer folds.
    interval : (float, float)
        The 95 percent interval of ``error``, for the model that is tuned on all rows: Wilson's,
        with fewer tests, as the models of overlapping training sets share much (after Nadeau and
        Bengio 2003).
    score, score_se : float
        The score that was asked for; accuracy if none was.  A scorer of labels judges the labels of
        all outer folds together; one of values or probabilities each outer fold, of which this is
        the mean.
    scoring : str
    chosen : (F, 2)
        C and gamma (NaN if there is none) of each outer fold.  With ``lambdas``, C is that of all
        rows.
    inner : (F,)
        The inner score of the chosen point, which is too good.
    optimism : float
        By how much: the mean of ``inner`` less ``score``; for accuracy the outer less the inner
        error.
    decision : (T,) or (T, k)
        Left-out decision values.  Those of different outer folds belong to different points of the
        grid.
    predicted, wrong : (T,)
    test_row, test_fold : (T,) int
    certificate : Certificate
        ``kkt`` and ``gap`` of each outer fold, the worst over its grid and inner folds;
        ``unresolved`` lists (outer fold, inner fold).
    stats, timings : dict
        As in ``CVResult``, added up.
    """

    predicted: NDArray[Any]
    wrong: BoolArray
    classes: NDArray[Any]

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"<NestedResult: {self.n_folds} outer folds, error after tuning {self.error:.4g} "
            f"({low:.4g} to {high:.4g}), optimism {self.optimism:.3g}>"
        )

    def _parts(self) -> list[tuple[str, str]]:
        low, high = self.interval
        wrong = f"{int(self.wrong.sum())} of {len(self.wrong)} wrong"
        parts = [
            (
                "error",
                f"{self.error:.4f} after tuning ({wrong}; 95% interval {low:.4f} to {high:.4f}, "
                "for the model that is tuned on all rows)",
            )
        ]
        if self.error > 0.5 and len(self.classes) == 2:
            parts.append(("beyond 1/2", BEYOND))
        if self.scoring != "accuracy":
            se = "" if np.isnan(self.score_se) else f" (standard error {self.score_se:.4f})"
            parts.append(("score", f"{self.scoring} {self.score:.4f} after tuning{se}"))
        return parts + self._choice_parts()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class NestedRegressionResult(Nested):
    """The error after tuning, of numbers: of F outer folds, with T tests in all.

    Attributes
    ----------
    error, se : float
        The mean absolute error (by sample weight), and its standard error over outer folds.
    interval : (float, float)
        The 95 percent interval of ``error``, from the spread of the rows' errors, with fewer tests
        than there are as in ``NestedResult``; it takes the mean for normally distributed.
    rmse, r2 : float
        Of all left-out predictions together.
    score, score_se : float
        The score that was asked for (R2 if none was) of all left-out predictions together, and its
        standard error by leaving out folds.
    chosen : (F, 2)
        C and gamma (NaN if there is none) of each outer fold.
    epsilon : (F,)
        The epsilon of each; NaN of quantiles, which have none.
    inner, optimism, scoring, test_row, test_fold, certificate, stats, timings :
        As in ``NestedResult``.
    decision : (T,)
        Left-out predictions.
    y : (T,)
        The numbers themselves.
    quantile : float or None
        Of ``QuantileSVRCV``: the quantile whose mean pinball loss ``error`` is then; ``score`` is
        the negative loss if no other was asked for.
    """

    _numeric: ClassVar[bool] = True
    epsilon: FloatArray
    rmse: float
    r2: float
    y: FloatArray
    quantile: float | None = None

    @property
    def _measure(self) -> str:
        return loss_name(self.quantile)

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"<NestedRegressionResult: {self.n_folds} outer folds, {self._measure} after "
            f"tuning {self.error:.4g} ({low:.4g} to {high:.4g}), optimism {self.optimism:.3g}>"
        )

    def _parts(self) -> list[tuple[str, str]]:
        low, high = self.interval
        parts = [
            (
                "error",
                f"{self.error:.4g} after tuning ({self._measure} of {len(self.y)} tests; 95% "
                f"interval {low:.4g} to {high:.4g}, for the model that is tuned on all rows)",
            ),
        ]
        if self.quantile is None:
            figures = f"root mean squared error {self.rmse:.4g}, R2 {self.r2:.4f}"
            parts.append(("besides", figures))
        if self.scoring not in ("r2", PINBALL):
            se = "" if np.isnan(self.score_se) else f" (standard error {self.score_se:.4g})"
            parts.append(("score", f"{self.scoring} {self.score:.4g} after tuning{se}"))
        if self.quantile is not None:
            return parts + self._choice_parts()
        values, counts = np.unique(self.epsilon, return_counts=True)
        each = ", ".join(f"{e:.4g} ({n} times)" for e, n in zip(values, counts, strict=True))
        parts.append(("epsilon", each))
        return parts + self._choice_parts()
