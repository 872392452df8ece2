"""Reading weights of rows and of classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import InputError, InputTypeError
from ..types import FloatArray, IntArray
from .checks import LEAST, check_choice, finite_numbers, real

__all__ = [
    "class_factors",
    "read_number_weights",
    "read_sample_weight",
    "read_weights",
    "times_class_weight",
]


def read_number_weights(sample_weight: Any, class_weight: Any, n: int) -> FloatArray:
    """Row weights where y are numbers: there are no classes that could weigh anything."""
    if class_weight is not None:
        raise InputError("class_weight goes with classes; y are numbers: use sample_weight")
    weight = read_sample_weight(sample_weight, n)
    used = weight[weight > 0]
    if used.min() < LEAST or used.max() > 1 / LEAST:
        raise InputError("sample_weight is too large or too small; rescale it")
    return weight


def read_weights(
    sample_weight: Any, class_weight: Any, signs: FloatArray, classes: NDArray[Any]
) -> FloatArray:
    """Row weights: ``sample_weight`` times the weight of the row's class.

    ``class_weight="balanced"`` gives each class n / (2 n_class), with counts over all rows, once; a
    row of weight w counts as w rows, so that both classes weigh the same in the end.
    """
    codes = (signs > 0).astype(np.intp)
    weight = read_sample_weight(sample_weight, len(signs))
    counts = np.bincount(codes, weights=weight, minlength=2)
    factors = class_factors(class_weight, counts, classes)
    return times_class_weight(weight, factors, codes, classes)


def read_sample_weight(sample_weight: Any, n: int) -> FloatArray:
    """One weight a row, not negative and not all zero; None stands for ones."""
    if sample_weight is None:
        return np.ones(n)
    weight = finite_numbers(sample_weight, "sample_weight")
    if weight.shape != (n,):
        raise InputError(
            f"sample_weight has shape {weight.shape}; it must be one number for each of the "
            f"{n} rows"
        )
    if (weight < 0).any():
        row = int(np.argmax(weight < 0))
        raise InputError(f"sample_weight is negative in row {row}: {weight[row]:g}")
    if not weight.any():
        raise InputError("sample_weight is zero in every row; nothing is left to train on")
    return weight


def class_factors(class_weight: Any, counts: Any, classes: NDArray[Any]) -> FloatArray:
    """The weight of each class; "balanced" is total / (k count)."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):
        check_choice("class_weight", class_weight, ("balanced",), "or a dict from label to weight")
        with np.errstate(divide="ignore"):  # a class without weight is refused by the caller
            balanced: FloatArray = np.sum(counts) / (len(classes) * np.asarray(counts, dtype=float))
        return balanced
    if not isinstance(class_weight, Mapping):
        raise InputTypeError(
            f"class_weight must be None, 'balanced' or a dict, got {type(class_weight).__name__}"
        )
    factors, labels = np.ones(len(classes)), classes.tolist()
    for label, value in class_weight.items():
        if label not in labels:
            raise InputError(
                f"class_weight names the label {label!r}, which is not in y; y has {labels}"
            )
        factors[labels.index(label)] = real(
            f"class_weight[{label!r}]", value, lambda x: x >= 0, "a number that is not negative"
        )
    return factors


def times_class_weight(
    weight: FloatArray, factors: FloatArray, codes: IntArray, classes: NDArray[Any]
) -> FloatArray:
    """Row weights; every class must have some."""
    for code, label in enumerate(classes.tolist()):
        if not (weight[codes == code].any() and factors[code] > 0):
            raise InputError(
                f"every row of class {label!r} has weight zero; both classes need some"
                if len(classes) == 2
                else f"every row of class {label!r} has weight zero; each class needs some"
            )
    weight = weight * factors[codes]
    used = weight[weight > 0]
    if not np.isfinite(weight).all() or used.min() < LEAST or used.max() > 1 / LEAST:
        raise InputError("sample_weight times class_weight is too large or too small; rescale them")
    return weight
