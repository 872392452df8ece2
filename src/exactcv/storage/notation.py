"""How numbers are written in a file: decimal points or commas, and what separates thousands.

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

__all__ = ["FLAGS", "MISSING", "PLAIN", "Notation", "are_dates", "fitting", "in_some_notation"]

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "<na>"})
FLAGS = {"true": 1.0, "false": 0.0}
SPACES = " \u00a0\u2009\u202f"  # what stands for a space between thousands

_TIME = r"([T ]\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?\s*([APap][Mm])?\s*(Z|[+-]\d{2}:?\d{2})?)?"
_DATE = re.compile(
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})"
    rf"|\d{{1,2}}[- ][A-Za-z]{{3,9}}\.?[- ]\d{{2,4}}){_TIME}"
)


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


def are_dates(cells: Iterable[str]) -> bool:
    """Is every cell a date, with or without a time of day?

    Examples
    --------
    >>> are_dates(["2024-02-29", "2024-03-01 12:30"]), are_dates(["24.12.2023"]), are_dates(["1.5"])
    (True, True, False)
    """
    return all(_DATE.fullmatch(cell.strip()) is not None for cell in cells)
