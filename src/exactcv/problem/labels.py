"""Reading y: labels of classes, or numbers.  Every message says what was wrong, and where."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import InputError, InputTypeError
from ..types import FloatArray, IntArray
from .checks import LEAST, finite_numbers

__all__ = [
    "beyond_range",
    "count_labels",
    "encode_labels",
    "is_missing",
    "read_labels",
    "read_numbers",
    "refuse_masked",
    "refuse_missing_labels",
    "shown_classes",
]


# Labels that are sorted at a time.
PART = 1 << 18


def read_labels(
    y: Any, n: int, for_more: str = "for several classes use exactcv.SVCCV"
) -> tuple[NDArray[Any], NDArray[Any], FloatArray]:
    """The labels as an array, the two classes in sort order, and signs: +1 is the second.

    ``for_more`` says what to do with more classes.
    """
    labels, classes, codes = encode_labels(y, n)
    if len(classes) != 2:
        raise InputError(
            f"y must have exactly two classes, got {shown_classes(classes)}"
            + (f"; {for_more}" if len(classes) > 2 else "")
        )
    return labels, classes, np.where(codes == 1, 1.0, -1.0)


def _one_a_row(y: Any, n: int, what: str, in_full: str | None = None) -> NDArray[Any]:
    """The entries of y, one for each of n rows and none missing; messages call them ``what``."""
    from sklearn.utils import column_or_1d

    if y is None:
        raise InputError(f"y is None; it must hold one {in_full or what} a row")
    refuse_masked(y, "y")
    try:
        found = column_or_1d(y, warn=True)
    except (TypeError, ValueError) as error:
        raise InputError(f"y must be one-dimensional, one {what} a row: {error}") from error
    if len(found) != n:
        raise InputError(f"X has {n} rows but y has {len(found)} {what}s")
    refuse_missing_labels(found)
    return np.asarray(found)


def read_numbers(y: Any, n: int) -> FloatArray:
    """Finite numbers, one a row.

    Examples
    --------
    >>> read_numbers([1, 2.5], 2)
    array([1. , 2.5])
    """
    values = _one_a_row(y, n, "number")
    if values.dtype.kind == "c":
        raise InputError("Complex data not supported: y holds complex numbers")
    if values.dtype.kind == "O" and any(isinstance(value, str) for value in values):
        raise InputTypeError("y holds text, and a loss of numbers needs numbers: convert it first")
    found = finite_numbers(values, "y")
    if beyond_range(found):
        size = float(np.abs(found).max())
        raise InputError(
            f"y is too large or too small (it reaches {size:.3g}): squares overflow; rescale it"
        )
    return found


def beyond_range(y: FloatArray) -> bool:
    """Would squares of these numbers, or of how they differ, overflow or vanish on the way?"""
    if not len(y):
        return False
    return bool(np.abs(y).max() > 1 / LEAST or 0 < np.ptp(y) < LEAST)


def shown_classes(classes: NDArray[Any]) -> str:
    """How many classes, and the first of them."""
    shown = ", ".join(repr(label) for label in classes[:5].tolist())
    return f"{len(classes)}: {shown}" + (", ..." if len(classes) > 5 else "")


def encode_labels(y: Any, n: int) -> tuple[NDArray[Any], NDArray[Any], IntArray]:
    """The labels as an array, the classes in sort order, and the class number of each row."""
    labels = _one_a_row(y, n, "label", "class label")
    try:
        classes, _ = count_labels(labels)
    except TypeError as error:
        raise InputTypeError(f"y mixes labels that cannot be sorted: {error}") from error
    if labels.dtype.kind == "f" and not (classes == np.floor(classes)).all():
        raise InputError(
            "y holds real numbers that are not class labels (Unknown label type: continuous); "
            "for numbers use SVRCV, or a loss for them such as epsilon_insensitive"
        )
    codes = np.empty(n, dtype=np.intp)
    for part in _parts(n):
        codes[part] = np.searchsorted(classes, labels[part])
    return labels, classes, codes


def count_labels(labels: NDArray[Any]) -> tuple[NDArray[Any], IntArray]:
    """The different labels in sort order, and how often each occurs.

    Part by part: ``np.unique`` of all would take several copies of them.

    Examples
    --------
    >>> count_labels(np.array(["b", "a", "b"]))
    (array(['a', 'b'], dtype='<U1'), array([1, 2]))
    """
    found = [np.unique(labels[part], return_counts=True) for part in _parts(len(labels))]
    if len(found) == 1:
        return found[0]
    kinds, place = np.unique(np.concatenate([some for some, _ in found]), return_inverse=True)
    counts = np.zeros(len(kinds), dtype=np.intp)
    np.add.at(counts, place, np.concatenate([some for _, some in found]))
    return kinds, counts


def _parts(n: int) -> list[slice]:
    return [slice(start, start + PART) for start in range(0, max(n, 1), PART)]


def refuse_missing_labels(y: Any) -> None:
    """``InputError`` that names the first row of y without a label.

    Examples
    --------
    >>> refuse_missing_labels(["a", None, "b"])
    Traceback (most recent call last):
    exactcv.exceptions.InputError: y contains missing values (NaN or None), first in row 1; ...
    """
    labels = y if isinstance(y, np.ndarray) else np.asarray(y, dtype=object)
    if labels.ndim != 1:
        return
    if labels.dtype.kind == "f":
        missing = np.isnan(labels)
        if np.isinf(labels).any():
            raise InputError(f"Input y contains infinity, first in row {np.isinf(labels).argmax()}")
    elif labels.dtype.kind == "O":
        missing = np.array([is_missing(label) for label in labels], dtype=bool)
    else:
        return
    if missing.any():
        raise InputError(
            f"y contains missing values (NaN or None), first in row {int(np.argmax(missing))}; "
            "drop those rows"
        )


def refuse_masked(values: Any, name: str) -> None:
    """``InputError`` if some entries are masked."""
    if np.ma.isMaskedArray(values) and np.ma.is_masked(values):
        raise InputError(f"{name} contains missing values (masked entries); drop those rows")


def is_missing(label: Any) -> bool:
    """None, NaN or pandas.NA; the last does not even know whether it equals itself."""
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True
