"""What the preparation of a table has to know of a column, gathered piece by piece.

Means and squares are put together by the rule of Chan, Golub and LeVeque,

    M2 = M2_a + M2_b + (mean_b - mean_a)^2 W_a W_b / (W_a + W_b),

which loses no digits to large means.  Gaps that will be filled are added last, as so much weight at
one value; of a text column everything follows from the weights of its levels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from ..exceptions import InputError
from ..types import FloatArray
from .notation import no_category
from .preparation import Column
from .table import NUMBERS, Table

__all__ = ["ColumnTally", "Moments"]


@dataclass
class Moments:
    """Weight, mean, sum of squares about it, and ends of some numbers."""

    weight: float = 0.0
    mean: float = 0.0
    squares: float = 0.0
    low: float = math.inf
    high: float = -math.inf

    def add(self, values: FloatArray, weight: FloatArray) -> None:
        """More numbers, each with a positive weight."""
        if not len(values):
            return
        total = float(weight.sum())
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused in the end
            mean = float(weight @ values) / total
            squares = float(weight @ (values - mean) ** 2)
        self.merge(Moments(total, mean, squares, float(values.min()), float(values.max())))

    def merge(self, other: Moments) -> None:
        """Put both together."""
        if other.weight <= 0.0:
            return
        total = self.weight + other.weight
        step = other.mean - self.mean
        with np.errstate(over="ignore", invalid="ignore"):
            moved = np.float64(step) ** 2 * self.weight * other.weight / total
            self.squares = float(self.squares + other.squares + moved)
        self.mean += step * other.weight / total
        self.weight = total
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)

    @property
    def scale(self) -> float:
        return math.sqrt(self.squares / self.weight) if self.squares >= 0.0 else math.nan


@dataclass
class ColumnTally:
    """One column so far."""

    name: str
    as_text: bool
    most_levels: int
    kinds: set[str] = field(default_factory=set)
    totals: dict[str, float] = field(default_factory=dict)
    moments: Moments = field(default_factory=Moments)
    gaps: int = 0
    gap_weight: float = 0.0

    def add(self, piece: Table, weight: FloatArray) -> None:
        """More rows of it."""
        name, kind = self.name, piece.kind(self.name)
        missing = piece.is_missing(name)
        self.gaps += int(missing.sum())
        self.gap_weight += float(weight[missing].sum())
        if kind == "missing":
            return
        self._check(piece, kind)
        counted = ~missing & (weight > 0)
        if self.text:
            self._add_levels(piece, counted, weight)
        else:
            self.moments.add(piece.numbers(name)[counted], weight[counted])

    @property
    def text(self) -> bool:
        return self.as_text or not self.kinds <= set(NUMBERS)

    def _check(self, piece: Table, kind: str) -> None:
        """Refuse what no rule covers, as soon as it is seen."""
        if self.as_text:
            return
        if kind == "misread":
            raise InputError(
                f"{piece.misread(self.name)}. If it is text, --categorical {self.name!r}"
            )
        before = set(self.kinds)
        self.kinds.add(kind)
        if kind == "mixed" or (self.text and self.kinds & set(NUMBERS)):
            row, cell = piece.first_text(self.name) if kind not in NUMBERS else (0, "")
            where = f"row {piece.number_of(row)}" + (f": {cell[:40]!r}" if cell else " and after")
            what = "numbers" if kind in NUMBERS and before else "text"
            raise InputError(
                f"{piece.source}: column {self.name!r} has numbers and text ({what} in {where}); "
                f"correct it, or use --categorical {self.name!r} or --drop {self.name!r}"
            )

    def _add_levels(self, piece: Table, counted: np.ndarray, weight: FloatArray) -> None:
        totals = self.totals
        cells = piece.texts(self.name)
        for cell, there, w in zip(cells, counted.tolist(), weight.tolist(), strict=True):
            if there:
                totals[str(cell)] = totals.get(str(cell), 0.0) + w
        refused = None if self.as_text else no_category(self.name, totals)
        if refused is not None:
            raise InputError(f"{piece.source}: column {self.name!r} {refused}")
        if len(totals) > self.most_levels:
            raise InputError(
                f"{piece.source}: column {self.name!r} has more than {self.most_levels} different "
                f"texts, such as {min(totals)[:40]!r}; use --drop {self.name!r} or --id "
                f"{self.name!r}, or raise --max-levels (now {self.most_levels})"
            )

    def column(self, fill: float | None, source: str) -> Column:
        """What is to be remembered of it; ``fill`` is the median of numbers, if gaps are filled."""
        if not self.totals and not self.moments.weight:
            raise InputError(f"{source}: no values at all in {self.name!r}; use --drop")
        if not self.text:
            return Column(self.name, fill=self.moments.mean if fill is None else fill)
        levels = tuple(sorted(self.totals))
        return Column(self.name, levels, max(levels, key=lambda level: self.totals[level]))

    def features(self, column: Column) -> list[Moments]:
        """The moments of each of its features once gaps are filled."""
        if column.levels is None:
            assert isinstance(column.fill, float)
            if self.gap_weight > 0.0:
                at = column.fill
                self.moments.merge(Moments(self.gap_weight, at, 0.0, at, at))
            return [self.moments]
        totals = dict(self.totals)
        totals[str(column.fill)] += self.gap_weight
        whole = sum(totals.values())
        return [_flag(totals[level], whole) for level in column.levels]


def _flag(weight: float, whole: float) -> Moments:
    """Of a column of 0 and 1."""
    share = weight / whole
    return Moments(
        whole, share, whole * share * (1.0 - share), float(weight >= whole), float(weight > 0.0)
    )
