"""What a method lets its user choose: declared in its ``Support``, read here.

An option is a name, a default, what it means, and a check; ``exactcv.methods()`` shows them, and
``method_options`` of ``cross_validate`` sets them.  Nothing else carries choices to a method.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..exceptions import InputError, UnsupportedError
from ..problem.checks import check_choice, check_flag, check_positive

__all__ = ["Option", "choice", "flag", "positive", "read_options", "whole"]

Check = Callable[[str, Any], Any]


@dataclass(frozen=True)
class Option:
    """One key of ``method_options``."""

    name: str
    default: Any
    meaning: str
    check: Check


def choice(*values: Any) -> Check:
    """One of these values."""
    return lambda name, value: check_choice(name, value, values)


def flag(name: str, value: Any) -> bool:
    """True or False."""
    return check_flag(name, value)


def positive(name: str, value: Any) -> float:
    """A positive number."""
    return check_positive(name, value)


def whole(least: int = 1, optional: bool = False) -> Check:
    """A whole number of at least ``least``; None too if it is optional."""

    def check(name: str, value: Any) -> int | None:
        if value is None and optional:
            return None
        if isinstance(value, bool) or not isinstance(value, numbers.Integral) or int(value) < least:
            wanted = "a positive whole number" if least == 1 else f"a whole number from {least} on"
            raise InputError(f"{name} must be {wanted}{' or None' * optional}, got {value!r}")
        return int(value)

    return check


def read_options(
    method: str, known: tuple[Option, ...], given: Mapping[str, Any]
) -> dict[str, Any]:
    """The options with their defaults; an unknown one or a bad value is an error.

    Examples
    --------
    >>> read_options("sir", (Option("max_iter", 10, "", whole()),), {"max_iter": 3})
    {'max_iter': 3}
    """
    names = [option.name for option in known]
    unknown = sorted(set(map(str, given)) - set(names))
    if unknown and not known:
        raise UnsupportedError(f"method={method!r} has no options; leave method_options out")
    if unknown:
        raise InputError(
            f"method={method!r} has no option {unknown[0]!r}; it has {', '.join(names)}"
        )
    return {one.name: one.check(one.name, given.get(one.name, one.default)) for one in known}
