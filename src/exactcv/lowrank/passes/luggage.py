"""What travels between workers and client: how large it is, and truth values in bits.

Of every row and grid point the client learns whether its label is wrong, and how that was found: at
a byte each these would be most of what moves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["packed", "size_of", "unpacked"]


@dataclass(frozen=True)
class Bits:
    """An array of truth values, eight to a byte."""

    data: NDArray[np.uint8]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, array: NDArray[np.bool_]) -> Bits:
        return cls(np.packbits(array.ravel()), array.shape)

    def array(self) -> NDArray[np.bool_]:
        count = int(np.prod(self.shape))
        return np.unpackbits(self.data, count=count).astype(bool).reshape(self.shape)


def packed(value: Any) -> Any:
    """The same with all arrays of truth values as bits.

    Examples
    --------
    >>> found = packed((np.ones((10, 4), dtype=bool), np.zeros(3)))
    >>> size_of(found), unpacked(found)[0].shape
    (45, (10, 4))
    """
    return _changed(value, lambda one: Bits.of(one) if _is_flags(one) else one)


def unpacked(value: Any) -> Any:
    """What was packed."""
    return _changed(value, lambda one: one.array() if isinstance(one, Bits) else one)


def _is_flags(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == bool


def _changed(value: Any, change: Callable[[Any], Any]) -> Any:
    """The same tuples, lists, dicts and dataclasses with every leaf changed."""
    if isinstance(value, Bits) or not _has_parts(value):
        return change(value)
    if isinstance(value, dict):
        return {key: _changed(part, change) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [_changed(part, change) for part in value]
        return value._make(parts) if hasattr(value, "_make") else type(value)(parts)
    named = {field.name: _changed(getattr(value, field.name), change) for field in fields(value)}
    return replace(value, **named)


def _has_parts(value: Any) -> bool:
    return isinstance(value, (dict, list, tuple)) or (
        is_dataclass(value) and not isinstance(value, type)
    )


def size_of(value: Any) -> int:
    """Bytes of all arrays in a result."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, Bits):
        return int(value.data.nbytes) + 8 * len(value.shape)
    if isinstance(value, dict):
        return sum(map(size_of, value.values()))
    if isinstance(value, (list, tuple)):
        return sum(map(size_of, value))
    if is_dataclass(value) and not isinstance(value, type):
        return sum(size_of(getattr(value, field.name)) for field in fields(value))
    return 8
