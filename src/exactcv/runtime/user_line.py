"""The line of the user's code that a warning is about."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TypeVar

__all__ = ["split_at_user_line", "user_level"]

T = TypeVar("T")

_OURS = ("exactcv", "sklearn", "joblib")  # whose lines say nothing to a user


def user_level() -> int:
    """The ``stacklevel`` with which a warning points at the first line that is not ours.

    For ``warnings.warn`` in the function that calls this one.  Lines of scikit-learn and joblib
    are passed over too: they stand between when an estimator is cross-validated.  In a thread of
    ours, where there is no such line, it is the level of the caller's caller.

    Examples
    --------
    >>> def warn_of(what: str) -> None:
    ...     warnings.warn(what, stacklevel=user_level())
    """
    level, frame = 1, sys._getframe(1)
    while _is_ours(str(frame.f_globals.get("__name__", ""))):
        if frame.f_back is None:
            return 2
        level, frame = level + 1, frame.f_back
    return 2 if frame.f_globals.get("__name__") == "threading" else level


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in _OURS or module in ("contextlib", "functools")


def split_at_user_line(pairs: Iterable[T]) -> Iterator[T]:
    """What a splitter gives; what it warns of before its first pair points at the user's line.

    That is all that scikit-learn's splitters warn of, and they point at their own line.

    Examples
    --------
    >>> list(split_at_user_line([1, 2]))
    [1, 2]
    """
    rest, caught = iter(pairs), []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            first = list(_first_of(rest))
    finally:  # also if the splitter fails in the end
        for one in caught:
            warnings.warn(one.message, one.category, stacklevel=user_level())
    return chain(first, rest)


def _first_of(them: Iterator[T]) -> Iterator[T]:
    for one in them:
        yield one
        return
