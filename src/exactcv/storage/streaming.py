"""A table that is never in memory as a whole: prepared in one pass, and read again for its rows.

The first pass gathers what the preparation needs (``tallies.py``), the target, weights, groups and
names of rows; with ``impute`` some more find the medians (``stream_median.py``).  The last one
writes the prepared rows to a temporary file, from which the solver reads them as often as it likes.
The matrix is that of ``fit_preparation`` up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import InputError
from ..lowrank.rows.spilled import SpilledRows
from ..runtime.memory import parse_bytes
from ..types import FloatArray, IntArray
from .notation import PLAIN
from .preparation import Preparation
from .stream_median import Part, medians
from .suspects import refuse_suspects
from .table import UNNAMED, Table, parse_labels
from .tallies import ColumnTally

__all__ = ["PEEK_ROWS", "Roles", "Streamed", "piece_rows", "stream"]

# Rows that are read to see what columns there are, and cells that are in memory at a time, at most:
# of a CSV file some 150 bytes each, which may take a quarter of the memory.
PEEK_ROWS, PIECE_CELLS = 256, 1 << 20
CELL_BYTES, SHARE = 150, 4
# More labels than this are no classes that features could separate.
MOST_LABELS = 1000

Pieces = Callable[[], Iterator[Table]]


def piece_rows(n_columns: int, memory_limit: str | None = None) -> int:
    """How many rows of a table are in memory at a time.

    Examples
    --------
    >>> piece_rows(20), piece_rows(20, "40MB")
    (52428, 3333)
    """
    cells = PIECE_CELLS
    if memory_limit is not None:
        cells = min(cells, parse_bytes(memory_limit) // (SHARE * CELL_BYTES))
    return min(1 << 16, max(PEEK_ROWS, cells // n_columns))


@dataclass(frozen=True)
class Roles:
    """What columns are for, by name."""

    target: str
    weight: str | None = None
    groups: str | None = None
    id: str | None = None
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()

    @property
    def others(self) -> tuple[str, ...]:
        found = (self.weight, self.groups, self.id, *self.drop)
        return tuple(dict.fromkeys(name for name in found if name is not None))


@dataclass(frozen=True)
class Streamed:
    """What came out; ``names`` are those of the rows, if there is a column of them."""

    rows: SpilledRows
    y: NDArray[Any]
    weight: FloatArray | None
    groups: NDArray[Any] | None
    names: Any
    preparation: Preparation


@dataclass
class Codes:
    """Text of few kinds, as numbers: one list of levels and an array of places in it."""

    place: dict[str, int] = field(default_factory=dict)
    parts: list[NDArray[np.int32]] = field(default_factory=list)

    def add(self, cells: list[str], which: IntArray | None = None) -> None:
        """More cells; with ``which`` cell ``which[i]`` is that of row i."""
        place = self.place
        found = (place.setdefault(cell, len(place)) for cell in cells)
        codes = np.fromiter(found, dtype=np.int32, count=len(cells))
        self.parts.append(codes if which is None else codes[which])

    def all(self) -> NDArray[np.int32]:
        return np.concatenate(self.parts)


def stream(
    pieces: Pieces,
    roles: Roles,
    *,
    impute: bool,
    standardize: bool,
    most_levels: int,
    chunk_rows: int,
) -> Streamed:
    """Prepare a table that comes in pieces.

    Parameters
    ----------
    pieces : callable
        Begins to read the table from its start.
    """
    first = _Pass(roles, most_levels)
    for piece in pieces():
        first.add(piece)
    made = _preparation(first, pieces, impute, standardize)
    rows = SpilledRows((made.apply(piece, "zeros") for piece in pieces()), chunk_rows)
    if rows.n != first.n:
        raise InputError(f"{first.source} changed while it was read; run the command again")
    return Streamed(
        rows, first.y(), first.all_weights(), first.all_groups(), first.all_names(), made
    )


class _Pass:
    """The first pass."""

    def __init__(self, roles: Roles, most_levels: int):
        self.roles, self.n, self.source, self.notation = roles, 0, "", PLAIN
        self._most_levels = most_levels
        self._labels, self._groups = Codes(), Codes()
        self._weights: list[FloatArray] = []
        self._names: list[Any] = []
        self.tallies: dict[str, ColumnTally] = {}
        self.index: tuple[str, ...] = ()

    def add(self, piece: Table) -> None:
        roles = self.roles
        self._labels.add(*self._whole(piece, roles.target, "target"))
        if len(self._labels.place) > MOST_LABELS:
            raise InputError(
                f"{piece.source}: the target {roles.target!r} has more than {MOST_LABELS} "
                "different values; of a table that is read in pieces it must hold classes: numbers "
                "need a table that fits into memory"
            )
        weight = np.ones(piece.n_rows)
        if roles.weight is not None:
            weight = _weights(piece, roles.weight)
            self._weights.append(weight)
        if roles.groups is not None:
            self._groups.add(*self._whole(piece, roles.groups, "group"))
        if roles.id is not None:
            self._names.append(_texts(piece, roles.id))
        if not self.n:
            self._begin(piece)
        for tally in self.tallies.values():
            tally.add(piece, weight)
        self.n += piece.n_rows

    def _begin(self, piece: Table) -> None:
        """Which columns are features; those that look like none are sought in the first piece."""
        roles = self.roles
        self.source, self.index, self.notation = piece.source, piece.index, piece.notation
        not_used = {roles.target, *roles.others}
        used = [name for name in piece.names if name not in not_used]
        if not used:
            raise InputError(f"{piece.source} has no columns besides the target and those not used")
        unnamed = [name for name in used if name.startswith(UNNAMED)]
        if unnamed:
            number = unnamed[0].removeprefix(UNNAMED)
            raise InputError(
                f"{piece.source}: column {number} has no name; if it only numbers the rows use "
                f"--id {number} or --drop {number}, else give it a name"
            )
        refuse_suspects(piece, [n for n in used if n not in roles.keep], self._labels.all())
        self.tallies = {
            name: ColumnTally(name, name in roles.categorical, self._most_levels) for name in used
        }

    @staticmethod
    def _whole(piece: Table, name: str, what: str) -> tuple[list[str], IntArray | None]:
        """The kinds of cells of a column that must have one in every row (`Table.kinds_of`)."""
        cells, which = piece.kinds_of(name)
        whole = [cell for cell in cells if cell is not None]
        if len(whole) < len(cells):
            gap = cells.index(None)
            row = piece.number_of(gap if which is None else int(np.argmax(which == gap)))
            raise InputError(
                f"{piece.source}: the {what} {name!r} is missing in row {row}; remove the rows "
                "without one"
            )
        return whole, which

    def y(self) -> NDArray[Any]:
        """Labels, by the rule for all texts that occur."""
        texts = list(self._labels.place)
        name = self.roles.target
        few = Table(self.source, len(texts), {name: texts}, notation=self.notation)
        kinds = parse_labels(few, name)
        return np.asarray(kinds[self._labels.all()])

    def all_weights(self) -> FloatArray | None:
        if not self._weights:
            return None
        weight = np.concatenate(self._weights)
        if not weight.any():
            raise InputError(f"{self.source}: all weights in column {self.roles.weight!r} are zero")
        return weight

    def all_groups(self) -> NDArray[Any] | None:
        return None if self.roles.groups is None else self._groups.all()

    def all_names(self) -> Any:
        return None if self.roles.id is None else Names(self._names)


def _weights(piece: Table, name: str) -> FloatArray:
    weight = piece.numbers(name)
    bad = np.flatnonzero(~(weight >= 0))
    if len(bad):
        raise InputError(
            f"{piece.source}: the weight in row {piece.number_of(bad[0])} of column {name!r} is "
            "missing or negative"
        )
    return weight


def _texts(piece: Table, name: str) -> NDArray[np.bytes_]:
    """Names of rows as bytes, which take a tenth of the room of Python's text."""
    return np.array([(cell or "").encode() for cell in piece.texts(name)])


class Names:
    """Names of rows, one at a time.

    Examples
    --------
    >>> names = Names([np.array([b"a", b"bb"]), np.array([b"c"])])
    >>> len(names), names[1], names[2]
    (3, 'bb', 'c')
    """

    def __init__(self, parts: list[NDArray[np.bytes_]]):
        self._parts = parts
        self._ends = np.cumsum([len(part) for part in parts])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, row: int) -> str:
        k = int(np.searchsorted(self._ends, row, side="right"))
        part = self._parts[k]
        return bytes(part[row - (self._ends[k] - len(part))]).decode()


def _preparation(first: _Pass, pieces: Pieces, impute: bool, standardize: bool) -> Preparation:
    """Columns, and which features vary by how much."""
    tallies = list(first.tallies.values())
    if not impute:
        _refuse_gaps(tallies, first.source)
    fills = _medians(first, pieces) if impute else {}
    columns = tuple(tally.column(fills.get(tally.name), first.source) for tally in tallies)
    found = [
        moments
        for tally, column in zip(tallies, columns, strict=True)
        for moments in tally.features(column)
    ]
    roles = first.roles
    not_used = {roles.target, *roles.others}
    made = Preparation(
        columns=columns,
        target=roles.target,
        others=(*roles.others, *(name for name in first.index if name not in not_used)),
        impute=impute,
        standardize=standardize,
        keep=np.array([one.low != one.high for one in found]),
        row_names=roles.id,
    )
    if not made.keep.any():  # type: ignore[union-attr]
        raise InputError(
            f"all features of {first.source} are constant: there is nothing to learn from"
        )
    if not standardize:
        return made
    kept = [one for one in found if one.low != one.high]
    scale = np.array([one.scale for one in kept])
    bad = np.flatnonzero(~np.isfinite(scale) | (scale <= 0.0))
    if len(bad):
        name = np.array(made.features)[made.keep][bad[0]]
        raise InputError(
            f"{first.source}: column {str(name)!r} cannot be standardised (its values are too "
            "large or too close together); rescale or --drop it"
        )
    return replace(made, shift=np.array([one.mean for one in kept]), scale=scale)


def _refuse_gaps(tallies: list[ColumnTally], source: str) -> None:
    named = [f"{tally.name!r} ({tally.gaps})" for tally in tallies if tally.gaps]
    if named:
        shown = ", ".join(named[:20]) + (f" and {len(named) - 20} more" if named[20:] else "")
        raise InputError(
            f"{source} has missing values in {shown}; fill or remove them, or tune with "
            "--impute median"
        )


def _medians(first: _Pass, pieces: Pieces) -> dict[str, float]:
    """Of all columns of numbers."""
    wanted = {
        tally.name: (tally.moments.low, tally.moments.high, tally.moments.weight)
        for tally in first.tallies.values()
        if not tally.text and tally.moments.weight
    }
    weight = first.all_weights()

    def parts(names: list[str]) -> Iterator[dict[str, Part]]:
        for piece in pieces():
            mine = np.ones(piece.n_rows)
            if weight is not None:
                mine = weight[piece.start : piece.start + piece.n_rows]
            found = {}
            for name in names:
                values = piece.numbers(name)
                counted = ~np.isnan(values) & (mine > 0)
                found[name] = values[counted], mine[counted]
            yield found

    return medians(wanted, parts)
