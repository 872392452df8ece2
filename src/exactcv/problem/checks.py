"""Checks of single options: choices, flags, numbers.

Every message says what was wrong, where, and what to do.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from ..exceptions import InputError, InputTypeError
from ..types import FloatArray

__all__ = [
    "LEAST",
    "check_choice",
    "check_flag",
    "check_method_options",
    "check_n_threads",
    "check_positive",
    "check_quantile",
    "check_seed",
    "finite_numbers",
    "real",
    "seed_from",
]

LEAST = 1e-100  # values of C and weights beyond this, or its inverse, would overflow on the way
# A quantile nearer to 0 or 1 has one level so near to 0 that coefficients at it seem to be none.
LEAST_QUANTILE = 1e-6


def check_choice(name: str, value: Any, valid: Iterable[str], more: str = "") -> str:
    """``value`` if it is one of ``valid``; otherwise an error that lists them."""
    valid = tuple(valid)
    if isinstance(value, str) and value in valid:
        return value
    kind = InputError if isinstance(value, str) else InputTypeError
    shown = ", ".join(repr(choice) for choice in valid)
    raise kind(f"{name}={value!r} is not known; valid: {shown}" + (f" {more}" if more else ""))


def check_flag(name: str, value: Any) -> bool:
    """``value`` if it is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputTypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_positive(name: str, value: Any) -> float:
    """``value`` as a float, if it is positive and finite."""
    return real(name, value, lambda x: x > 0, "a positive number")


def real(name: str, value: Any, accept: Any, wanted: str) -> float:
    """``value`` as a float, if it is finite and ``accept`` takes it; ``wanted`` says what is."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputTypeError(f"{name} must be {wanted}, got {value!r}")
    if not np.isfinite(float(value)) or not accept(value):
        raise InputError(f"{name} must be {wanted} and finite, got {value!r}")
    return float(value)


def check_quantile(name: str, value: Any, wanted: str = "a number") -> float:
    """``value`` as a float, if it lies between 0 and 1 and not too close to them."""
    level = real(name, value, lambda x: 0 < x < 1, f"{wanted} between 0 and 1")
    if not LEAST_QUANTILE <= level <= 1.0 - LEAST_QUANTILE:
        raise InputError(
            f"{name}: {value!r} is too close to 0 or 1; from {LEAST_QUANTILE:g} to "
            f"1 - {LEAST_QUANTILE:g} is possible"
        )
    return level


def finite_numbers(values: Any, name: str) -> FloatArray:
    """A finite one-dimensional float array."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biuf":
            array = array.astype(object).astype(np.float64)
        array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(f"{name} must hold numbers: {error}") from error
    if array.ndim != 1:
        raise InputError(f"{name} must be one-dimensional, got shape {array.shape}")
    if not np.isfinite(array).all():
        where = int(np.argmin(np.isfinite(array)))
        raise InputError(f"{name} is not finite at position {where}: {array[where]}")
    return array


def check_n_threads(n_jobs: Any) -> int:
    """Threads from ``n_jobs``, as joblib counts (None is 1, -1 is all processors)."""
    if n_jobs is not None and (
        isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral)
    ):
        raise InputTypeError(f"n_jobs must be None or an integer, got {n_jobs!r}")
    if n_jobs == 0:
        raise InputError("n_jobs=0 has no meaning; use 1, a larger number, or -1 for all")
    return int(effective_n_jobs(n_jobs))


def check_method_options(given: Any) -> Mapping[str, Any]:
    """A dict; None stands for an empty one."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputTypeError(f"method_options must be a dict, got {given!r}")
    return given


def check_seed(random_state: Any) -> None:
    """Refuse what scikit-learn would not take for a ``random_state``."""
    _generator(random_state)


def seed_from(random_state: Any) -> int:
    """A number drawn from a ``random_state``: the same for the same int."""
    return int(_generator(random_state).randint(2**31 - 1))


def _generator(random_state: Any) -> Any:
    from sklearn.utils import check_random_state

    try:
        return check_random_state(random_state)
    except ValueError as error:
        raise InputError(f"random_state cannot be used: {error}") from error
