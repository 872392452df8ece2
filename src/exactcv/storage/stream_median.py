"""Medians of columns that are read piece by piece, exactly.

Each pass counts the weight in bins between two numbers that have the median between them, until so
few different values are left that they can be kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ..types import FloatArray

__all__ = ["medians"]

BINS = 4096
KEPT = 1 << 16  # different values of a column that are kept

Part = tuple[FloatArray, FloatArray]  # values and their weights


@dataclass
class _Search:
    """The median of one column lies in [low, high]; ``below`` is the weight under low."""

    low: float
    high: float
    half: float
    below: float = 0.0
    values: FloatArray | None = field(default_factory=lambda: np.zeros(0))
    weight: FloatArray = field(default_factory=lambda: np.zeros(0))
    counts: FloatArray = field(default_factory=lambda: np.zeros(BINS))

    def add(self, values: FloatArray, weight: FloatArray) -> None:
        inside = (values >= self.low) & (values <= self.high)
        values, weight = values[inside], weight[inside]
        more = np.bincount(self._bin(values), weights=weight, minlength=BINS)
        self.counts = self.counts + more.astype(float)
        if self.values is None:
            return
        both = np.concatenate([self.values, values])
        self.values, place = np.unique(both, return_inverse=True)
        weights = np.concatenate([self.weight, weight])
        self.weight = np.bincount(place, weights=weights).astype(float)
        if len(self.values) > KEPT:
            self.values, self.weight = None, np.zeros(0)

    def _bin(self, values: FloatArray) -> np.ndarray:
        width = self.high / BINS - self.low / BINS  # which may be large, but not infinite
        if width <= 0.0:
            return np.zeros(len(values), dtype=np.intp)
        share = (values / BINS - self.low / BINS) / width
        return np.minimum((share * BINS).astype(np.intp), BINS - 1)

    def found(self) -> float | None:
        """The median, if all values that it may be are at hand."""
        if self.values is None:
            return None
        reached = self.below + np.cumsum(self.weight)
        low = self.values[np.searchsorted(reached, self.half, side="left")]
        place = min(int(np.searchsorted(reached, self.half, side="right")), len(reached) - 1)
        return float(0.5 * low + 0.5 * self.values[place])

    def narrowed(self) -> _Search:
        """Between the ends of the bins that hold the median."""
        reached = self.below + np.cumsum(self.counts)
        first = int(np.searchsorted(reached, self.half, side="left"))
        last = min(int(np.searchsorted(reached, self.half, side="right")), BINS - 1)
        width = self.high / BINS - self.low / BINS
        slack = 1e-6 * width  # for a value may fall on either side of an end by rounding
        low = max(self.low, self.low + first * width - slack)
        high = min(self.high, self.low + (last + 1) * width + slack)
        return _Search(low, high, self.half)


def medians(
    names: dict[str, tuple[float, float, float]],
    parts: Callable[[list[str]], Iterator[dict[str, Part]]],
) -> dict[str, float]:
    """Weighted medians, as if all values were at hand.

    Parameters
    ----------
    names : dict
        The least and the greatest value of each column, and the weight of all its values.
    parts : callable
        Reads the values of some columns, piece by piece, with positive weights.

    Examples
    --------
    >>> values = [np.array([3.0, 1.0]), np.array([2.0, 10.0, 2.5])]
    >>> read = lambda names: ({"x": (part, np.ones(len(part)))} for part in values)
    >>> medians({"x": (1.0, 10.0, 5.0)}, read)
    {'x': 2.5}
    """
    searches = {name: _Search(low, high, 0.5 * all_) for name, (low, high, all_) in names.items()}
    done: dict[str, float] = {}
    while searches:
        under = dict.fromkeys(searches, 0.0)
        for piece in parts(list(searches)):
            for name, (values, weight) in piece.items():
                under[name] += float(weight[values < searches[name].low].sum())
                searches[name].add(values, weight)
        for name in list(searches):
            searches[name].below = under[name]
            found = searches[name].found()
            if found is None:
                searches[name] = searches[name].narrowed()
            else:
                done[name] = found
                del searches[name]
    return done
