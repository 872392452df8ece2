"""What came out of a cross-validation of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..exceptions import InputError, UnsupportedError
from ..problem.differentiable import LOSS_BY_NAME
from ..problem.problem import Problem
from ..report.overview import Overview
from ..types import FloatArray, ScorerLike, Seed, Select, Vector
from .number_overviews import of_numbers_result
from .result import CVResult, spread_of
from .run import Ran

if TYPE_CHECKING:
    import pandas as pd

    from .corrected import Corrected

__all__ = ["RegressionResult", "pair_losses", "r2_of"]

NORMAL = 1.959964  # the 97.5 percent point of the normal distribution
DIGITS = 10  # of losses that are compared


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RegressionResult(CVResult):
    """The result of ``cross_validate`` with a loss of numbers.

    What ``CVResult`` has, where it is not about classes, with these meanings:

    Attributes
    ----------
    error : (L,)
        Mean left-out loss over all pairs: that which was minimised, in units of y (of its square
        for "least_squares").
    se : (L,)
        Its standard error: the standard deviation of the folds' means over the root of their
        number.
    interval : (L, 2)
        The 95 percent interval of ``error``, from the spread of the rows' losses.
    decision : (L, n)
        Left-out predictions, in units of y.
    y : (n,)
        The numbers themselves.
    at_bound : (L,)
        Share of the rows whose coefficient is at an end of its box: those outside the tube of
        width epsilon, those not on the quantile; NaN for "least_squares".
    parameters : dict
        Of the loss: {"epsilon": 0.1}, {"quantile": 0.5}.

    ``classes`` is empty, and ``n_errors`` and ``wrong`` count nothing.

    Examples
    --------
    >>> import exactcv, numpy as np
    >>> X = np.linspace(0, 3, 40)[:, None]
    >>> result = exactcv.cross_validate(X, np.sin(X[:, 0]), loss="epsilon_insensitive", Cs=[1, 10])
    >>> result.r2.shape, bool(result.mae[1] < 0.2)
    ((2,), True)
    """

    parameters: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        exact = "exact" if self.certificate.exact else "NOT exact"
        return (
            f"<RegressionResult: {len(self.Cs)} grid points, {self.n_folds} folds, least loss "
            f"{self.error[self.best]:.4g} (R2 {self.r2[self.best]:.4g}) at "
            f"C={self.Cs[self.best]:.4g}, {exact}>"
        )

    @staticmethod
    def _worth(ran: Ran[Any]) -> FloatArray:
        problem, rows = ran.task.problem, ran.task.folds.pair_rows
        loss = problem.loss if isinstance(problem, Problem) else problem.loss.plain(problem.y)
        return np.array([_losses(loss, rows, one) for one in ran.ledger.decision])

    @staticmethod
    def _ranked(error: FloatArray) -> FloatArray:
        """To so many digits: solutions that hold for every larger C differ by rounding."""
        scale = float(np.abs(error[np.isfinite(error)]).max(initial=0.0))
        return error if scale == 0.0 else np.round(error / scale, DIGITS)

    @cached_property
    def pair_loss(self) -> FloatArray:
        """(L, T): the loss of each left-out value."""
        assert self.pair_decision is not None
        return pair_losses(self.loss, self.parameters, self.y[self.test_row], self.pair_decision)

    @cached_property
    def fold_error(self) -> FloatArray:
        """(L, F): each fold's mean loss."""
        starts = np.searchsorted(self.test_fold, np.arange(self.n_folds))
        sizes = np.bincount(self.test_fold, minlength=self.n_folds)
        return np.asarray(np.add.reduceat(self.pair_loss, starts, axis=1) / sizes)

    @property
    def residuals(self) -> FloatArray:
        """(L, T): y less its left-out prediction, pair by pair."""
        assert self.pair_decision is not None
        return np.asarray(self.y[self.test_row] - self.pair_decision)

    @property
    def mae(self) -> FloatArray:
        """(L,): mean absolute left-out error."""
        return np.asarray(np.abs(self.residuals).mean(axis=1))

    @property
    def rmse(self) -> FloatArray:
        """(L,): root of the mean squared left-out error."""
        return np.asarray(np.sqrt((self.residuals**2).mean(axis=1)))

    @property
    def r2(self) -> FloatArray:
        """(L,): 1 - (squared left-out errors) / (squared distances from the mean), pooled."""
        return r2_of(self.y[self.test_row], self.residuals)

    @property
    def interval(self) -> FloatArray:
        """(L, 2): the 95 percent interval of ``error``."""
        rows, place = np.unique(self.test_row, return_inverse=True)
        counts = np.bincount(place, minlength=len(rows))
        by_row = np.array([np.bincount(place, weights=one) / counts for one in self.pair_loss])
        half = NORMAL * spread_of(by_row)
        return np.column_stack([np.maximum(self.error - half, 0.0), self.error + half])

    def score(self, scoring: ScorerLike) -> FloatArray:
        """(L,): a scikit-learn regression scorer on the pooled left-out values.

        Parameters
        ----------
        scoring : str or callable
            "r2", "neg_mean_absolute_error" and so on; larger is better.

        Examples
        --------
        >>> import exactcv, numpy as np
        >>> X = np.linspace(0, 3, 40)[:, None]
        >>> result = exactcv.cross_validate(X, X[:, 0] ** 2, loss="pinball", Cs=[1.0, 10.0])
        >>> np.allclose(result.score("neg_mean_absolute_error"), -result.mae)
        True
        """
        from .numbers_scoring import NumbersScorer

        assert self.pair_decision is not None
        scorer = NumbersScorer.of(scoring)
        y = self.y[self.test_row]
        return np.array([scorer.score(y, values) for values in self.pair_decision])

    def corrected(
        self,
        n_bootstrap: int = 1000,
        random_state: Seed | None = None,
        scoring: ScorerLike | None = None,
        *,
        select: Select = "min",
        groups: Vector | None = None,
    ) -> Corrected:
        """The loss after tuning: the least loss of the grid without what the choice has gained.

        As ``CVResult.corrected``, for the loss that was minimised: ``error`` of what comes back is
        a loss, and ``score`` is its negative.
        """
        from .corrected import correct_losses

        if scoring is not None:
            raise UnsupportedError(
                "corrected() of numbers corrects the loss that was minimised; leave scoring out"
            )
        return correct_losses(self, n_bootstrap, random_state, select, groups)

    def _plain_overview(self) -> Overview:
        return of_numbers_result(self, super()._plain_overview())

    def to_frame(self) -> pd.DataFrame:
        """One row per grid point (needs pandas)."""
        table = super().to_frame().drop(columns="n_errors")
        for name in ("mae", "rmse", "r2"):
            table.insert(table.columns.get_loc("objective"), name, getattr(self, name))
        return table


def pair_losses(
    name: str, parameters: Mapping[str, float], y: FloatArray, values: FloatArray
) -> FloatArray:
    """The loss of values (..., T) of T numbers y."""
    if name not in LOSS_BY_NAME:
        raise InputError(f"loss={name!r} is not known")
    loss, rows = LOSS_BY_NAME[name](y, **parameters), np.arange(len(y))
    flat = np.atleast_2d(values)
    return np.array([_losses(loss, rows, one) for one in flat]).reshape(np.shape(values))


def _losses(loss: Any, rows: Any, values: FloatArray) -> FloatArray:
    """Row ``rows[k]``'s loss of ``values[k]``."""
    return np.asarray(loss.at(rows).value(values))


def r2_of(y: FloatArray, residuals: FloatArray, weight: FloatArray | None = None) -> FloatArray:
    """R2 of residuals (..., T); as in scikit-learn 1 or 0 if y does not vary.

    Examples
    --------
    >>> r2_of(np.array([1.0, 2.0, 3.0]), np.array([0.0, 0.0, 1.0]))
    array(0.5)
    """
    weight = np.ones(len(y)) if weight is None else weight
    left = (residuals**2) @ weight
    total = float(weight @ (y - np.average(y, weights=weight)) ** 2)
    if total == 0.0:
        return np.where(left == 0.0, 1.0, 0.0)
    return np.asarray(1.0 - left / total)
