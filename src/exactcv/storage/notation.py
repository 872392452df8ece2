"""How numbers are written in a file: decimal points or commas, and what separates thousands.

Also what is written as text but names no category: dates, lists, numbers with a unit.

A comma is never guessed to be a decimal one: "1,234" is 1.234 in one country and 1234 in the next.
Columns that would be numbers in another notation are told apart from text, so that a message can
name the options under which they are read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from ..exceptions import InputError

__all__ = ["FLAGS", "MISSING", "PLAIN", "Notation", "fitting", "in_some_notation", "no_category"]

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "<na>"})
FLAGS = {"true": 1.0, "false": 0.0}
SPACES = " \u00a0\u2009\u202f"  # what stands for a space between thousands

_TIME = r"([T ]\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?\s*([APap][Mm])?\s*(Z|[+-]\d{2}:?\d{2})?)?"
_MONTH = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
_NUMBER = rf"\d[\d.,'{SPACES}]*"
_NO_CATEGORY = {
    "dates": re.compile(
        r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})"
        r"|\d{1,2}[- ][A-Za-z]{3,9}\.?[- ]\d{2,4}"
        rf"|{_MONTH}\.?[- ]\d{{1,2}},?[- ]\d{{4}}){_TIME}"
    ),
    "lists": re.compile(r"\[.*\]|\{.*\}", re.DOTALL),
    "numbers with a unit": re.compile(
        rf"[+-]?[$\u20ac\u00a3\u00a5]\s?[+-]?{_NUMBER}|[+-]?{_NUMBER}[%\u2030$\u20ac\u00a3\u00a5]"
    ),
}
_INSTEAD = {
    "dates": "put numbers in their place (days since a first one)",
    "lists": "put a column of numbers for each entry in their place",
    "numbers with a unit": "write the numbers without it",
}


@dataclass(frozen=True)
class Notation:
    """What a number looks like.

    Examples
    --------
    >>> Notation().number("1234.5"), Notation(",", ".").number("1.234,5")
    (1234.5, 1234.5)
    """

    decimal: str = "."
    thousands: str | None = None

    def __post_init__(self) -> None:
        if self.decimal == self.thousands:
            raise InputError(f"--decimal and --thousands are both {self.decimal!r}")

    @property
    def options(self) -> str:
        """What to say on the command line."""
        parts = [f"--decimal {self.decimal}"] if self.decimal != "." else []
        if self.thousands is not None:
            quoted = f'"{self.thousands}"' if self.thousands in "' " else self.thousands
            parts.append(f"--thousands {quoted}")
        return " ".join(parts) or "--decimal ."

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        whole = r"\d+"
        if self.thousands is not None:
            gap = f"[{SPACES}]" if self.thousands == " " else re.escape(self.thousands)
            whole = rf"(?:\d{{1,3}}(?:{gap}\d{{3}})+|\d+)"
        point = re.escape(self.decimal)
        return re.compile(rf"[+-]?(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?")

    def number(self, cell: str) -> float:
        """The number in a cell, NaN if there is none; true and false are 1 and 0."""
        text = cell.strip()
        flag = FLAGS.get(text.lower())
        if flag is not None:
            return flag
        if self != PLAIN and any(letter.isdigit() for letter in text):
            if self._pattern.fullmatch(text) is None:
                return math.nan
            gaps = SPACES if self.thousands == " " else self.thousands or ""
            text = "".join(letter for letter in text if letter not in gaps)
            text = text.replace(self.decimal, ".")
        try:
            value = float(text)
        except ValueError:
            return math.nan
        return math.nan if "_" in text else value


PLAIN = Notation()
_KNOWN = (
    PLAIN,
    Notation(","),
    Notation(".", ","),
    Notation(",", "."),
    Notation(",", " "),
    Notation(".", " "),
    Notation(".", "'"),
    Notation(",", "'"),
)


def fitting(cells: Iterable[str]) -> list[Notation]:
    """The notations in which all cells are numbers, the simplest first.

    Examples
    --------
    >>> [notation.options for notation in fitting(["1,234", "7"])]
    ['--decimal ,', '--thousands ,']
    >>> [notation.options for notation in fitting(["1.234,5", "-0,7"])]
    ['--decimal , --thousands .']
    """
    cells = list(cells)
    found = [k for k in _KNOWN if not any(math.isnan(k.number(cell)) for cell in cells)]
    # What needs two options where one of them is enough says nothing more.
    return [k for k in found if not any(_simpler(other, k) for other in found)]


def _simpler(one: Notation, other: Notation) -> bool:
    return one != other and one.decimal == other.decimal and one.thousands is None


def in_some_notation(cell: str) -> bool:
    """Would somebody read this as a number?"""
    return any(not math.isnan(notation.number(cell)) for notation in _KNOWN)


def no_category(name: str, cells: Iterable[str]) -> str | None:
    """What a column of text holds, if every cell is a date or the like, and what to do.

    Examples
    --------
    >>> no_category("when", ["2024-02-29", "2024-03-01 12:30"])  # doctest: +ELLIPSIS
    "holds dates, such as '2024-02-29'; --drop 'when', put numbers in their place ..."
    >>> no_category("share", ["12.5%", "7 %"])  # doctest: +ELLIPSIS
    "holds numbers with a unit, such as '12.5%'; --drop 'share', write the numbers without it, ..."
    >>> no_category("size", ["large", "12.5%"])
    """
    cells = list(cells)
    for kind, pattern in _NO_CATEGORY.items():
        if cells and all(pattern.fullmatch(cell.strip()) is not None for cell in cells):
            return (
                f"holds {kind}, such as {min(cells)[:40]!r}; --drop {name!r}, {_INSTEAD[kind]}, or "
                f"use --categorical {name!r}"
            )
    return None
