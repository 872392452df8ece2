"""Plots where y are numbers: left-out against observed, residuals, and a fan of quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..exceptions import InputError
from ..types import FloatArray
from .displays import Display
from .overview import LeftOutNumbers, Overview

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FanChartDisplay", "PredictedDisplay", "ResidualDisplay"]


def _numbers(it: Overview) -> LeftOutNumbers:
    if it.numbers is None:
        raise InputError("this plot is of numbers, and the result is of classes")
    return it.numbers


class PredictedDisplay(Display):
    """Left-out predictions against what was observed; on the line they agree.

    Attributes
    ----------
    ax_, figure_, points_, line_ : artists

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import exactcv, numpy as np
    >>> X = np.linspace(0, 3, 30)[:, None]
    >>> result = exactcv.cross_validate(X, X[:, 0] ** 2, loss="epsilon_insensitive", Cs=[1.0])
    >>> result.plot("decision").ax_.get_xlabel()
    'observed'
    """

    def __init__(self, *, truth: FloatArray, predicted: FloatArray):
        self.truth, self.predicted = truth, predicted

    @classmethod
    def _from_overview(cls, it: Overview) -> Self:
        numbers = _numbers(it)
        return cls(truth=numbers.truth, predicted=numbers.predicted)

    def plot(self, ax: Axes | None = None, **scatter_options: Any) -> Self:
        """Draw it; options are those of ``Axes.scatter``."""
        axes = self._place(ax)
        options: dict[str, Any] = {"s": 14, "alpha": 0.6} | scatter_options
        self.points_ = axes.scatter(self.truth, self.predicted, **options)
        ends = [
            min(self.truth.min(), self.predicted.min()), max(self.truth.max(), self.predicted.max())
        ]  # fmt: skip
        (self.line_,) = axes.plot(ends, ends, color="0.5", linewidth=1)
        axes.set(xlabel="observed", ylabel="left-out prediction")
        return self


class ResidualDisplay(Display):
    """Left-out residuals (observed less predicted) against the predictions.

    Attributes
    ----------
    ax_, figure_, points_, line_ : artists
    """

    def __init__(self, *, predicted: FloatArray, residual: FloatArray):
        self.predicted, self.residual = predicted, residual

    @classmethod
    def _from_overview(cls, it: Overview) -> Self:
        numbers = _numbers(it)
        return cls(predicted=numbers.predicted, residual=numbers.residual)

    def plot(self, ax: Axes | None = None, **scatter_options: Any) -> Self:
        """Draw it; options are those of ``Axes.scatter``."""
        axes = self._place(ax)
        options: dict[str, Any] = {"s": 14, "alpha": 0.6} | scatter_options
        self.points_ = axes.scatter(self.predicted, self.residual, **options)
        self.line_ = axes.axhline(0.0, color="0.5", linewidth=1)
        axes.set(xlabel="left-out prediction", ylabel="residual")
        return self


class FanChartDisplay(Display):
    """Quantiles along one feature: bands between those that belong together, and the middle.

    Parameters
    ----------
    x : (m,)
        Rising.
    quantiles : (q,)
    values : (m, q)

    Attributes
    ----------
    ax_, figure_, bands_, lines_ : artists

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import numpy as np, exactcv
    >>> x = np.linspace(0, 1, 5)
    >>> fan = exactcv.FanChartDisplay(
    ...     x=x, quantiles=[0.1, 0.5, 0.9], values=np.column_stack([x - 1, x, x + 1])
    ... )
    >>> len(fan.plot().bands_)
    1
    """

    def __init__(self, *, x: Any, quantiles: Sequence[float] | FloatArray, values: Any):
        self.x, self.quantiles = np.asarray(x, dtype=float), np.asarray(quantiles, dtype=float)
        self.values = np.asarray(values, dtype=float)
        if self.values.shape != (len(self.x), len(self.quantiles)):
            raise InputError(
                f"values has shape {self.values.shape}, not one row for each of {len(self.x)} x "
                f"and one column for each of {len(self.quantiles)} quantiles"
            )

    @classmethod
    def from_quantile_model(
        cls, model: Any, x: Any, *, ax: Axes | None = None, **options: Any
    ) -> Self:
        """From a fitted ``QuantileSVRCV`` of one feature, drawn."""
        along = np.sort(np.asarray(x, dtype=float).ravel())
        values = model.predict(along[:, None]).reshape(len(along), -1)
        made = cls(x=along, quantiles=model.quantiles_, values=values)
        return made.plot(ax=ax, **options)

    def plot(self, ax: Axes | None = None, **band_options: Any) -> Self:
        """Draw it; options are those of ``Axes.fill_between``."""
        axes = self._place(ax)
        q, self.bands_, self.lines_ = len(self.quantiles), [], []
        options: dict[str, Any] = {"color": "C0", "linewidth": 0} | band_options
        for k in range(q // 2):
            shade: dict[str, Any] = {"alpha": 0.15 + 0.35 * (k + 1) / (q // 2)} | options
            low, high = self.values[:, k], self.values[:, q - 1 - k]
            label = f"{self.quantiles[k]:.4g} to {self.quantiles[q - 1 - k]:.4g}"
            self.bands_.append(axes.fill_between(self.x, low, high, label=label, **shade))
        if q % 2:
            (line,) = axes.plot(
                self.x, self.values[:, q // 2], color="C3", label=f"{self.quantiles[q // 2]:.4g}"
            )
            self.lines_.append(line)
        axes.legend(title="quantiles", frameon=False)
        return self
