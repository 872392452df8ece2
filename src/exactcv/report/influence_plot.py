"""A plot of rows by what their removal does to the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from ..types import FloatArray, IntArray
from .displays import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

__all__ = ["InfluenceDisplay"]


class InfluenceDisplay(Display):
    """Rows by their own left-out margin and by how the others' loss changes without them.

    Mislabelled rows are at the lower left: on the wrong side when they are left out, and the others
    better off without them.

    Parameters
    ----------
    margin : (n,)
        Left-out decision values, positive on the row's own side.
    loss_change : (n,)
        Change of the mean loss of the others when the row is left out.
    named : rows whose number is shown.

    Attributes
    ----------
    ax_, figure_, points_, lines_ : artists
    """

    points_: PathCollection

    def __init__(self, *, margin: FloatArray, loss_change: FloatArray, named: IntArray):
        self.margin, self.loss_change, self.named = margin, loss_change, named

    def plot(self, ax: Axes | None = None, **scatter_options: Any) -> Self:
        """Draw it; options are those of ``Axes.scatter``."""
        axes = self._place(ax)
        options: dict[str, Any] = {"s": 14, "alpha": 0.6} | scatter_options
        self.points_ = axes.scatter(self.margin, self.loss_change, **options)
        self.lines_ = [
            axes.axhline(0.0, color="0.5", linewidth=1),
            axes.axvline(0.0, color="0.5", linewidth=1),
        ]
        for row in self.named:
            place = (self.margin[row], self.loss_change[row])
            axes.annotate(str(row), place, textcoords="offset points", xytext=(4, 2), fontsize=8)
        axes.set(xlabel="left-out margin", ylabel="change of the others' mean loss without the row")
        return self
