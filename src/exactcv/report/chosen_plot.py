"""A plot of the points that the outer folds of a nested cross-validation have chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .displays import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection

__all__ = ["ChosenDisplay"]


class ChosenDisplay(Display):
    """Points of the grid, each as large as it was chosen often.

    Parameters
    ----------
    often : list of (C, gamma, count)
        gamma is NaN where the kernel has none; the counts are then the heights.
    """

    points_: PathCollection

    def __init__(self, *, often: list[tuple[float, float, int]]):
        self.often = often

    def plot(self, ax: Axes | None = None, **options: Any) -> Self:
        """Draw it; ``options`` go to ``Axes.scatter``."""
        axes = self._place(ax)
        C, gamma, count = np.array(self.often, dtype=float).T
        with_gamma = not np.isnan(gamma).any()
        size = 400.0 * count / count.max() if with_gamma else 60.0
        options = {"s": size, "alpha": 0.7} | options
        self.points_ = axes.scatter(C, gamma if with_gamma else count, **options)
        axes.set(xscale="log", xlabel="C", ylabel="gamma" if with_gamma else "outer folds")
        if with_gamma:
            axes.set_yscale("log")
        axes.set_title("chosen by the outer folds")
        return self
