"""When the default grid grows, and how that is said.

The best point at an edge says that a better one may lie beyond.  The grid grows there while the
edge is strictly better than all the rest (a plateau needs no more of the same), until the error is
zero or the bound of ``problem/grid.py`` is reached.
"""

from __future__ import annotations

import numpy as np

from ..problem.grid import MOST_GROWTH, End, Grid
from ..types import FloatArray

__all__ = ["edge", "growth_text"]

# Scores that differ by less are equal.
EQUAL = 1e-12


def edge(score: FloatArray, best: tuple[int, int], axis: int) -> End | None:
    """The end of an axis of (gamma, C) where the best score is and beats all the rest, if it does.

    Examples
    --------
    >>> score = np.array([[0.5, 0.6, 0.9], [0.5, 0.6, 0.7]])
    >>> edge(score, (0, 2), axis=1), edge(score, (0, 2), axis=0)
    ('high', 'low')
    >>> edge(np.array([[0.9, 0.9, 0.5]]), (0, 0), axis=1) is None
    True
    """
    size, at = score.shape[axis], best[axis]
    if size < 2 or at not in (0, size - 1):
        return None
    rest = np.delete(score, at, axis=axis)
    if np.isnan(score[best]) or score[best] <= np.nanmax(rest, initial=-np.inf) + EQUAL:
        return None
    return "low" if at == 0 else "high"


def growth_text(grid: Grid, gammas: tuple[int, int] = (0, 0)) -> str:
    """What the default grid has gained, in words; empty if nothing."""
    if grid.grown is None or not (any(grid.grown) or any(gammas)):
        return ""
    gained = []
    for unit, (low, high) in (("decade", grid.grown), ("gamma", gammas)):
        for count, where in ((low, "below"), (high, "above")):
            if count:
                gained.append(f"{count} {unit}{'s' if count > 1 else ''} {where}")
    most = " (as far as it goes)" if max(*grid.grown, *gammas) >= MOST_GROWTH else ""
    what = ", ".join(gained)
    return f"the default grid, whose best point was at its edge, has grown by {what}{most}"
