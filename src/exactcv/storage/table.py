"""A table as it stands in a file: named columns whose cells are text until someone asks for more.

What a cell means is decided here, once, for files of every format:

- *missing*: an empty cell, NA, N/A, NaN, null, None in whatever case, or a question mark;
- *number*: what Python's ``float`` takes, but for underscores; infinite ones are refused; other
  notations ("1.234,5") where the reader was told of them (``notation.py``);
- *flag*: true or false, in whatever case; 1 or 0 where a number is wanted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import InputError
from ..types import FloatArray, IntArray
from .notation import FLAGS, MISSING, PLAIN, Notation, fitting, in_some_notation

__all__ = ["NUMBERS", "Table", "listed", "parse_labels"]

NUMBERS = ("number", "flag")  # kinds of columns that are numbers as they stand
UNNAMED = "unnamed column "
_INTEGER = re.compile(r"0|-?[1-9]\d*")

Cells = Sequence[str] | FloatArray


@dataclass(frozen=True)
class Table:
    """Columns by name, in the order of the file.

    Attributes
    ----------
    source : str
        What to call the table in messages.
    columns : dict
        Each a list of text, one cell a row, or an array of floats (NaN: missing).
        Messages count rows from 1, without the line of names.
    matrix : sparse matrix or None
        Features without names of their own (svmlight): row by row, absent is zero.  Then
        ``columns`` holds the target alone.
    index : tuple of str
        Columns that were the index of a pandas frame: to be had by name, but neither counted nor
        features.
    notation : Notation
        How numbers are written.
    unusable : dict
        Columns that are there, without cells, and why they have none: they may be dropped, but
        whoever asks for their cells gets this as an error.
    start : int
        Of a piece of a table: how many rows come before it.
    """

    source: str
    n_rows: int
    columns: dict[str, Cells]
    matrix: Any = None
    index: tuple[str, ...] = ()
    notation: Notation = PLAIN
    unusable: dict[str, str] = field(default_factory=dict)
    start: int = 0
    _known: dict[str, FloatArray | None] = field(default_factory=dict, repr=False, compare=False)

    @property
    def names(self) -> list[str]:
        return [name for name in self.columns if name not in self.index]

    def find(self, column: str) -> str:
        """The name of a column given by name or by number: 1 is the first, -1 the last."""
        names = self.names
        if column in self.columns:
            return column
        try:
            number = int(column)
        except ValueError:
            number = 0
        if 1 <= abs(number) <= len(names):
            return names[number - 1 if number > 0 else number]
        close = [name for name in names if name.strip().lower() == column.strip().lower()]
        hint = f"; did you mean {close[0]!r}?" if close else f"; it has {listed(names)}"
        if len(names) == 1 and not close:
            hint = f"; it has one column only, {names[0]!r}; if that is several, say --delimiter"
        raise InputError(f"{self.source} has no column {column!r}{hint}")

    def number_of(self, row: int) -> int:
        """What to call a row: its number in the file, from 1."""
        return self.start + int(row) + 1

    def _cells(self, name: str) -> Cells:
        if name in self.unusable:
            raise InputError(f"{self.source}: {self.unusable[name]}")
        return self.columns[name]

    def _quick(self, name: str) -> FloatArray | None:
        """All cells as numbers, if that is what they are: most columns, ten times as fast."""
        cells = self._cells(name)
        if isinstance(cells, np.ndarray):
            return cells
        if self.notation != PLAIN:
            return None
        if name not in self._known:
            try:
                values = np.array(cells, dtype=np.float64)
            except ValueError:
                self._known[name] = None
            else:
                odd = "_" in "".join(cells)
                self._known[name] = None if odd else values
        return self._known[name]

    def is_missing(self, name: str) -> NDArray[np.bool_]:
        quick = self._quick(name)
        if quick is not None:
            return np.isnan(quick)
        cells = self._cells(name)
        return np.array([cell.strip().lower() in MISSING for cell in cells], dtype=bool)

    def texts(self, name: str) -> list[str | None]:
        """Cells as text without blanks around it, None where missing."""
        cells = self._cells(name)
        if isinstance(cells, np.ndarray):
            return [None if math.isnan(v) else _shortest(v) for v in cells.tolist()]
        stripped = (cell.strip() for cell in cells)
        return [None if cell.lower() in MISSING else cell for cell in stripped]

    def kinds_of(self, name: str) -> tuple[list[str | None], IntArray | None]:
        """Texts, and which of them is the cell of each row; None if these are all cells in order.

        Of a column of numbers each number has one text, which takes a thousandth of the time.
        """
        cells = self._cells(name)
        if not isinstance(cells, np.ndarray):
            return self.texts(name), None
        values, first, which = np.unique(cells, return_index=True, return_inverse=True)
        order = np.argsort(first)  # as they come
        texts = [None if math.isnan(v) else _shortest(v) for v in values[order].tolist()]
        return texts, np.argsort(order)[which]

    def numbers(self, name: str) -> FloatArray:
        """Cells as numbers, NaN where missing; ``InputError`` names the first that is none."""
        cells, quick = self._cells(name), self._quick(name)
        if quick is not None:
            values = quick
        else:
            number = self.notation.number
            values = np.fromiter(map(number, cells), dtype=np.float64, count=len(cells))
            bad = np.flatnonzero(np.isnan(values) & ~self.is_missing(name))
            if len(bad):
                raise InputError(self._not_a_number(name, int(bad[0]), str(cells[bad[0]])))
        infinite = np.flatnonzero(np.isinf(values))
        if len(infinite):
            row = self.number_of(infinite[0])
            raise InputError(f"{self.source}: column {name!r} is infinite in row {row}")
        return values

    def _not_a_number(self, name: str, row: int, cell: str) -> str:
        seen = {text for text in self.texts(name) if text is not None}
        others = fitting(seen) or fitting([cell])
        return (
            f"{self.source}: column {name!r} has {cell[:40]!r} in row {self.number_of(row)}, which "
            "is no number" + (f"; {_remedy(others, cell)}" if others else "")
        )

    def misread(self, name: str, what: str = "column") -> str:
        """What to say of a column of numbers in another notation."""
        row, cell = self.first_odd(name)
        others = fitting({text for text in self.texts(name) if text is not None})
        return (
            f"{self.source}: {what} {name!r} has {cell[:40]!r} in row {self.number_of(row)}; "
            f"{_remedy(others, cell)}"
        )

    def kind(self, name: str) -> str:
        """What the cells are.

        "number", "flag", "text", "mixed" (numbers and text), "misread" (numbers, but in another
        notation), or "missing" (nothing at all).
        """
        cells, quick = self._cells(name), self._quick(name)
        if quick is not None:
            return "missing" if np.isnan(quick).all() else "number"
        seen = {cell.strip().lower() for cell in cells} - MISSING
        if not seen:
            return "missing"
        if seen <= set(FLAGS):
            return "flag"
        if not any(math.isnan(self.notation.number(cell)) for cell in seen):
            return "number"
        numeric = [in_some_notation(cell) for cell in seen]
        if all(numeric) and fitting(seen):
            return "misread"
        return "mixed" if any(numeric) else "text"

    def first_text(self, name: str) -> tuple[int, str]:
        """The first row, and its cell, that is neither a number nor missing."""
        for row, cell in enumerate(self.texts(name)):
            if cell is not None and not in_some_notation(cell):
                return row, cell
        return self.first_odd(name)

    def first_odd(self, name: str) -> tuple[int, str]:
        """The first row, and its cell, that is no number in the notation of the table."""
        for row, cell in enumerate(self.texts(name)):
            if cell is not None and math.isnan(self.notation.number(cell)):
                return row, cell
        raise AssertionError(name)


def listed(names: Sequence[Any], most: int = 8) -> str:
    """Names for a message.

    Examples
    --------
    >>> listed(["a", "b"]), listed(list("abcdefghijk"), most=2)
    ("'a', 'b'", "'a', 'b' and 9 more")
    """
    shown = ", ".join(repr(name) for name in names[:most])
    more = len(names) - most
    return shown + (f" and {more} more" if more > 0 else "")


def _remedy(others: Sequence[Notation], cell: str) -> str:
    """The options under which a cell is a number, and which number."""
    ways = [f"{way.options} reads it as {_shortest(way.number(cell))}" for way in others]
    return "say how numbers are written: " + ", ".join(ways)


def _shortest(value: float) -> str:
    return str(int(value)) if abs(value) < 2**53 and value == int(value) else repr(value)


def parse_labels(table: Table, name: str) -> NDArray[Any]:
    """The target: whole numbers as integers, anything else as the text that is there.

    Numbers such as 1.0 are whole.  Whole numbers too large for 64 bits, or with leading zeros, stay
    text.  Real numbers are refused: they are no classes.

    Examples
    --------
    >>> parse_labels(Table("t", 3, {"y": ["1.0", "0", "1"]}), "y")
    array([1, 0, 1])
    >>> parse_labels(Table("t", 2, {"y": ["no", "yes"]}), "y").tolist()
    ['no', 'yes']
    """
    texts = table.texts(name)
    missing = [row + 1 for row, cell in enumerate(texts) if cell is None]
    if missing:
        raise InputError(
            f"{table.source}: the target {name!r} is missing in {len(missing)} of "
            f"{table.n_rows} rows (first: row {missing[0]}); remove these rows"
        )
    labels = [cell for cell in texts if cell is not None]
    seen = {cell: _label(cell, table.notation) for cell in set(labels)}
    if all(isinstance(value, int) for value in seen.values()):
        return np.array([seen[cell] for cell in labels], dtype=np.int64)
    numbers = {cell: float(v) for cell, v in seen.items() if not isinstance(v, str)}
    if len(numbers) < len(seen):
        return np.array(labels, dtype=object)
    if any(value != math.floor(value) for value in numbers.values()):
        raise InputError(
            f"{table.source}: the target {name!r} holds {len(seen)} different real numbers, such "
            f"as {min(numbers)}, which are no classes: give a column of class labels, or tune "
            "with --task regression"
        )
    if any(abs(value) >= 2**53 for value in numbers.values()):
        return np.array(labels, dtype=object)
    return np.array([int(numbers[cell]) for cell in labels], dtype=np.int64)


def _label(cell: str, notation: Notation) -> int | float | str:
    """An integer in its usual form, another finite number, or text."""
    if _INTEGER.fullmatch(cell):
        value = int(cell)
        return value if -(2**63) <= value < 2**63 else cell
    number = notation.number(cell) if cell.lower() not in FLAGS else math.nan
    odd = re.fullmatch(r"[+-]?0\d+", cell) is not None  # 007 is a name
    return cell if math.isnan(number) or math.isinf(number) or odd else number
