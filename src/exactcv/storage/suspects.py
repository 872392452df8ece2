"""Columns that say who a row is rather than what it is like.

A model learns them by heart, and cross-validation praises it for that: the rows of a patient that
were not left out give those that were away.  These are told from ordinary features:

- *identifier*: a text about as often different as there are rows;
- *row number*: whole numbers that go up by one from row to row; *date*: 20241231 and the like;
- *group*: values that repeat, none of them in rows of two classes, where chance alone would not
  have kept the classes apart; of many texts one in ten may be in rows of two.  Whole numbers count
  too if the classes change to and fro along them far more often than a quantity explains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import InputError
from .notation import in_some_notation, no_category
from .table import Table

__all__ = ["refuse_suspects"]

FEWEST_ROWS = 10  # below this nothing can be told
CHANCE = 1e-6  # how likely pure groups may be at random
MANY = 10  # texts, of which one in so many may be in rows of two classes


def refuse_suspects(table: Table, names: Sequence[str], y: NDArray[Any]) -> None:
    """``InputError`` that names the columns which are no features, and what to say of each."""
    if table.n_rows < FEWEST_ROWS:
        return
    classes = np.unique(y, return_inverse=True)[1]
    for name in names:
        _refuse_dates(table, name)
    reasons = {name: _reason(table, name, classes) for name in names}
    found = {name: reason for name, reason in reasons.items() if reason is not None}
    if not found:
        return
    shown = "; ".join(f"{name!r} {reason}" for name, reason in list(found.items())[:5])
    more = f"; and {len(found) - 5} more" if len(found) > 5 else ""
    raise InputError(
        f"{table.source}: {shown}{more}. As a feature it would give the answer away: say --id, "
        "--groups (its rows are left out together) or --drop COLUMN, or --keep COLUMN if it is a "
        "feature nevertheless"
    )


def _refuse_dates(table: Table, name: str) -> None:
    """Whole numbers that are all days, as 20241231: their distances are no spans of time."""
    if table.kind(name) != "number":
        return
    values = table.numbers(name)
    days = np.unique(values[~np.isnan(values)])
    if len(days) < 2 or days[0] < 19000101 or days[-1] > 21001231 or (days % 1 != 0).any():
        return
    try:
        for day in days.astype(int).astype(str):
            date.fromisoformat(day)
    except ValueError:
        return
    raise InputError(
        f"{table.source}: column {name!r} holds dates, such as {days[0]:.0f}; --drop {name!r}, put "
        "numbers in their place (days since a first one), or --keep it as it is"
    )


def _reason(table: Table, name: str, classes: NDArray[np.intp]) -> str | None:
    """Why a column looks like no feature."""
    kind = table.kind(name)
    if kind == "number":
        return _of_numbers(table.numbers(name), classes)
    if kind not in ("text", "mixed"):
        return None
    cells = table.texts(name)
    levels = {cell for cell in cells if cell is not None}
    if no_category(name, levels) is not None:  # which is refused in its own words
        return None
    if kind == "mixed" and 2 * sum(map(in_some_notation, levels)) > len(levels):  # and so is this
        return None
    if 2 * len(levels) > len(cells):
        return f"names the rows ({len(levels)} different texts in {len(cells)} rows)"
    there = np.array([cell is not None for cell in cells])
    values = np.array([cell for cell in cells if cell is not None])
    return _group(values, classes[there], len(levels) // MANY)


def _of_numbers(values: NDArray[Any], classes: NDArray[np.intp]) -> str | None:
    there = ~np.isnan(values)
    values, classes = values[there], classes[there]
    if (values != np.floor(values)).any():
        return None
    if len(values) == len(there) and (np.diff(values) == 1).all():
        return f"numbers the rows ({values[0]:.0f} to {values[-1]:.0f})"
    levels, first = np.unique(values, return_index=True)
    changes = int((np.diff(classes[first]) != 0).sum())
    if changes < 5 or 5 * changes < len(levels):
        return None
    return _group(values, classes, 0)


def _group(values: NDArray[Any], classes: NDArray[np.intp], allowed: int) -> str | None:
    """Pure levels that repeat, but for some; how likely that is follows from the shares of classes.

    That all but m levels are pure is at most as likely as that the smallest are, times the number
    of ways to choose the others.
    """
    _, level, size = np.unique(values, return_inverse=True, return_counts=True)
    pairs = np.unique(np.stack([level, classes]), axis=1)
    mixed = int((np.bincount(pairs[0]) > 1).sum())
    if mixed > allowed:
        return None
    share = np.bincount(classes) / len(classes)
    pure = np.sort(size)[: len(size) - mixed].tolist()
    chance = sum(math.log((share**k).sum()) for k in pure)
    if chance + math.log(math.comb(len(size), mixed)) > math.log(CHANCE):
        return None
    if len(size) <= len(share):
        return "repeats the target (each of its values goes with one class)"
    return (
        f"looks like a group ({len(size)} values that repeat, {mixed or 'none'} in rows of two "
        "classes)"
    )
