"""What all displays share; see ``plots.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from ..exceptions import MissingExtraError
from .overview import HasOverview, Overview, Source, overview

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

__all__ = ["Display"]


class Display:
    """What the displays share: where they come from, and the axes they are drawn on."""

    ax_: Axes
    figure_: Figure | SubFigure

    @classmethod
    def from_result(cls, result: Source, *, ax: Axes | None = None, **options: Any) -> Self:
        """From a ``CVResult``, or a list of them that differ in gamma alone."""
        return cls._from_overview(overview(result)).plot(ax=ax, **options)

    @classmethod
    def from_estimator(
        cls, estimator: HasOverview, *, ax: Axes | None = None, **options: Any
    ) -> Self:
        """From a fitted estimator that chose its model by cross-validation."""
        return cls._from_overview(overview(estimator)).plot(ax=ax, **options)

    @classmethod
    def _from_overview(cls, it: Overview) -> Self:
        raise NotImplementedError

    def plot(self, ax: Axes | None = None, **options: Any) -> Self:
        raise NotImplementedError

    def _place(self, ax: Axes | None) -> Axes:
        """The axes to draw on, new ones if none are given."""
        try:
            import matplotlib.pyplot as plt
        except ImportError as missing:
            raise MissingExtraError(
                'plots need matplotlib: pip install "exactcv[plot]"'
            ) from missing
        self.ax_ = plt.subplots(layout="constrained")[1] if ax is None else ax
        self.figure_ = self.ax_.figure
        return self.ax_
