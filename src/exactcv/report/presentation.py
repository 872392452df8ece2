"""``summary`` and ``plot`` for whatever has an overview of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from ..types import PlotKind

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .number_plots import ResidualDisplay
    from .overview import Overview
    from .plots import ErrorCurveDisplay, HeatMapDisplay, LeftOutDisplay, RocDisplay

__all__ = ["Presented"]


class Presented:
    """A mixin for results and estimators; they say what there is to show in ``_overview``."""

    def _overview(self) -> Overview:
        raise NotImplementedError

    def summary(self) -> str:
        """What was chosen, how sure it is, and what would mislead, in words.

        Examples
        --------
        >>> import exactcv
        >>> X, y = exactcv.datasets.make_mixture(40, 4, random_state=0)
        >>> print(exactcv.cross_validate(X, y, lambdas=5).summary())  # doctest: +ELLIPSIS
        Leave-one-out over 5 grid points, 40 folds, method 'exact'.
        least error: ...
        """
        from .words import summary

        return summary(self)

    def methods_text(self) -> str:
        """A paragraph for a paper: data, model, folds, grid, software, numbers and references.

        Examples
        --------
        >>> import exactcv
        >>> X, y = exactcv.datasets.make_mixture(40, 4, random_state=0)
        >>> exactcv.cross_validate(X, y, lambdas=5).methods_text()[:27]
        'The data have 40 rows in 2 '
        """
        from .methods_text import methods_text

        return methods_text(self)

    @overload
    def plot(
        self, kind: Literal["error"] = "error", *, ax: Axes | None = None, **options: Any
    ) -> ErrorCurveDisplay: ...
    @overload
    def plot(
        self, kind: Literal["heatmap"], *, ax: Axes | None = None, **options: Any
    ) -> HeatMapDisplay: ...
    @overload
    def plot(
        self, kind: Literal["decision"], *, ax: Axes | None = None, **options: Any
    ) -> LeftOutDisplay: ...
    @overload
    def plot(
        self, kind: Literal["residuals"], *, ax: Axes | None = None, **options: Any
    ) -> ResidualDisplay: ...
    @overload
    def plot(
        self, kind: Literal["roc"], *, ax: Axes | None = None, **options: Any
    ) -> RocDisplay: ...
    def plot(self, kind: PlotKind = "error", *, ax: Axes | None = None, **options: Any) -> Any:
        """Draw one of the plots (needs matplotlib).

        Parameters
        ----------
        kind : {"error", "heatmap", "decision", "residuals", "roc"}
            The error curve with its standard error, the chosen point and that of the 1-SE rule;
            the error over gamma and C; the left-out decision values by class; their ROC curve.
            Of numbers: the left-out loss instead of the error, the left-out predictions against
            what was observed ("decision"), and their residuals.
        ax : Axes, optional
            New ones if not given.
        **options :
            For the display's own ``plot``.

        Returns
        -------
        Display
            The drawing: ``ax_``, ``figure_`` and its artists.
        """
        from .plots import draw

        return draw(self, kind, ax=ax, **options)
