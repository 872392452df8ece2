"""A plot of errors at every C, beside those on a grid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..types import FloatArray, IntArray
from .displays import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

__all__ = ["StepsDisplay"]


class StepsDisplay(Display):
    """The number of errors as a step function of C.

    Parameters
    ----------
    edges : (B + 2,)
        Where steps begin and end.
    counts : (B + 1,)
        Errors on each.
    best : (m, 2)
        The intervals with the fewest, which are shaded.
    grid, on_grid : (L,)
        Points of a grid, and the errors there.
    """

    steps_: Line2D
    grid_: Line2D | None

    def __init__(
        self,
        *,
        edges: FloatArray,
        counts: IntArray,
        best: FloatArray,
        grid: FloatArray,
        on_grid: IntArray,
    ):
        self.edges, self.counts, self.best = edges, counts, best
        self.grid, self.on_grid = grid, on_grid

    def plot(self, ax: Axes | None = None, **options: Any) -> Self:
        """Draw it; ``options`` go to ``Axes.step``."""
        axes = self._place(ax)
        heights = np.append(self.counts, self.counts[-1])
        options = {"where": "post", "label": "every C", "linewidth": 1.0, **options}
        self.steps_ = axes.step(self.edges, heights, **options)[0]
        least = int(self.counts.min())
        for k, (low, high) in enumerate(self.best):
            label = f"least: {least} errors" if k == 0 else None
            axes.axvspan(low, high, alpha=0.3, color="tab:green", label=label)
        self.grid_ = None
        if len(self.grid):
            found = int(self.on_grid.min())
            label = f"{len(self.grid)} grid points, best {found}"
            self.grid_ = axes.plot(self.grid, self.on_grid, "o", markersize=3, label=label)[0]
            if found > least:
                middle = float(np.sqrt(self.best[0, 0] * self.best[0, 1]))
                axes.annotate(
                    f"missed by the grid: {found - least} fewer",
                    (middle, least),
                    textcoords="offset points",
                    xytext=(8, -12),
                    fontsize="small",
                )
        axes.set(xscale="log", xlabel="C", ylabel="left-out errors")
        axes.legend(loc="best", fontsize="small")
        return self
