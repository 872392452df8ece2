"""Results that nobody can change by mistake."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

__all__ = ["freeze"]


def freeze(result: Any) -> None:
    """Make the arrays of a dataclass read-only.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Found:
    ...     values: np.ndarray
    >>> found = Found(np.zeros(2))
    >>> freeze(found)
    >>> found.values[0] = 1.0
    Traceback (most recent call last):
        ...
    ValueError: assignment destination is read-only
    """
    for field in fields(result):
        value = getattr(result, field.name)
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
