"""What came out of leave-pair-out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import InputError, InputIndexError
from ..judge.certificate import Certificate
from ..report.words import paragraph
from ..runtime.frozen import freeze
from ..types import FloatArray

__all__ = ["PairResult"]

_Z = 1.959963984540054  # of the normal distribution, for 95 percent


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PairResult:
    """The leave-pair-out AUC along the grid, of length L.

    Attributes
    ----------
    Cs, lambdas : (L,)
        The grid in both languages.
    auc : (L,)
        Share of the (positive, negative) pairs in which the model without both rows gives the
        positive one the larger value; equal values count half.
    se : (L,)
        Its standard error after DeLong: from the spread of the rows' own shares of wins.
    interval : (L, 2)
        ``auc`` +- 1.96 ``se``, within 0 and 1.  Of the largest AUC it is too good by what the
        choice has gained.
    best : int
        Index of the largest AUC; among equals the smallest C.  Points with unresolved solutions
        are passed over while there are others.
    pooled_auc : (L,)
        The AUC of all leave-one-out values put together, which is too low.
    wins : (L, n) or None
        Of each row against all others, in the model without both; NaN for rows of weight 0.  None
        without ``tournament``.
    n_pairs : int
        (positive, negative) pairs.
    y : (n,)
        The labels as signs: +1 is ``classes[1]``.
    classes : (2,)
    kernel, method : str
    gamma : float or None
    certificate : Certificate
        The worst over all rows and all pairs left out; in ``unresolved`` folds 0 to n - 1 are rows,
        with method "exact" also for the pairs of that row.  Else pairs count on from there: those
        of both classes, positive row by positive row, then those of one class.
    stats, timings : dict
    """

    Cs: FloatArray
    lambdas: FloatArray
    auc: FloatArray
    se: FloatArray
    pooled_auc: FloatArray
    wins: FloatArray | None
    n_pairs: int
    y: FloatArray
    classes: NDArray[Any]
    kernel: str
    gamma: float | None
    method: str
    certificate: Certificate
    stats: dict[str, int]
    timings: dict[str, float]

    def __post_init__(self) -> None:
        freeze(self)

    def __repr__(self) -> str:
        low, high = self.interval[self.best]
        exact = "exact" if self.certificate.exact else "NOT exact"
        return (
            f"<PairResult: {len(self.Cs)} grid points, {self.n_pairs} pairs, largest AUC "
            f"{self.auc[self.best]:.4g} ({low:.4g} to {high:.4g}) at C={self.Cs[self.best]:.4g}, "
            f"{exact}>"
        )

    @property
    def best(self) -> int:
        ranked = np.round(self.auc, 12)
        return int(np.lexsort((self.Cs, -ranked, self.certificate.short))[0])

    @property
    def interval(self) -> FloatArray:
        half = _Z * self.se
        return np.clip(np.column_stack([self.auc - half, self.auc + half]), 0.0, 1.0)

    def roc(self, l: int | None = None) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The tournament ROC curve at a grid point (``best`` if none is given).

        Rows are ranked by their wins against all others.

        Returns
        -------
        false_positive_rate, true_positive_rate, wins : ndarrays
            From the corner (0, 0) on; a row is called positive if it has at least so many wins.
        """
        if self.wins is None:
            raise InputError(
                "there are no wins within a class: use leave_pair_out(tournament=True)"
            )
        at = self.best if l is None else l
        if not -len(self.Cs) <= at < len(self.Cs):
            raise InputIndexError(f"l={l} is no grid point; there are {len(self.Cs)}")
        from sklearn.metrics import roc_curve

        there = ~np.isnan(self.wins[at])
        fpr, tpr, wins = roc_curve(self.y[there] > 0, self.wins[at, there])
        return fpr, tpr, wins

    def summary(self) -> str:
        """The AUC, how sure it is, and how it differs from the pooled one."""
        l = self.best
        low, high = self.interval[l]
        gamma = "" if self.gamma is None else f", gamma={self.gamma:.4g}"
        exact = "exact" if self.certificate.exact else "NOT exact"
        kkt, gap = (float(np.fmax.reduce(x)) for x in (self.certificate.kkt, self.certificate.gap))
        parts = [
            (
                "largest AUC",
                f"{self.auc[l]:.4f} (standard error {self.se[l]:.4f}, 95% interval {low:.4f} to "
                f"{high:.4f}) at C={self.Cs[l]:.4g} (lambda={self.lambdas[l]:.4g}{gamma})"
                + (
                    f"; the largest of {len(self.Cs)}, so rather too good"
                    if len(self.Cs) > 1
                    else ""
                ),
            ),
            (
                "pooled AUC",
                f"{self.pooled_auc[l]:.4f} there, of the leave-one-out values put together: they "
                "come from different models, and leaving a positive row out moves its own value "
                "down, so that this is too low (on noise far below 0.5); report the other",
            ),
            ("certificate", f"{exact}: KKT violation at most {kkt:.1e}, duality gap {gap:.1e}"),
            ("time", f"{self.timings['total']:.3f} s"),
        ]
        head = (
            f"Leave-pair-out over {len(self.Cs)} grid points, {self.n_pairs} pairs of a positive "
            f"({self.classes[1]!s}) and a negative ({self.classes[0]!s}) row, method "
            f"{self.method!r}."
        )
        return "\n".join([head, *(paragraph(label, text) for label, text in parts)])
