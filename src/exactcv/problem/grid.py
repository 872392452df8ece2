"""The grid of C or lambda, in the user's order, and how it carries over to a fold."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..exceptions import InputError, InputTypeError
from ..types import FloatArray, IntArray
from .checks import LEAST, finite_numbers
from .folds import Folds

__all__ = ["Grid", "make_grid"]

DEFAULT_GRID_SIZE = 50
MOST_GRID_POINTS = 10_000
_GRID_ENDS = (6.0, -6.0)  # lambda from e^6 to e^-6, as in the papers


@dataclass(frozen=True)
class Grid:
    """The values of C, in the user's order, and how they carry over to a fold.

    ``scale_with_fold`` is set when the user gave lambdas: a fold with n_train rows then has
    C = 1 / (2 n_train lambda), except in leave-one-out, where the papers keep 1 / n.
    """

    Cs: FloatArray
    lambdas: FloatArray
    scale_with_fold: bool

    def __len__(self) -> int:
        return int(self.Cs.shape[0])

    def part(self, points: IntArray) -> Grid:
        return replace(self, Cs=self.Cs[points], lambdas=self.lambdas[points])

    def for_fold(self, folds: Folds, fold: int) -> FloatArray:
        """C along the grid for the problem of one fold: lambda keeps its value, or C does."""
        if not self.scale_with_fold or folds.leave_one_out:
            return self.Cs
        return self.Cs * folds.ratio(fold)


def make_grid(Cs: Any, lambdas: Any, n: float) -> Grid:
    """The grid from ``Cs`` or ``lambdas``; C = 1 / (2 n lambda).

    Examples
    --------
    >>> make_grid(None, [0.5, 0.05], n=10).Cs
    array([0.1, 1. ])
    """
    if Cs is not None and lambdas is not None:
        raise InputError("give Cs or lambdas, not both: C = 1 / (2 n lambda)")
    if Cs is not None:
        values = _grid_values(Cs, "Cs")
        return Grid(Cs=values, lambdas=_inverse(values, n, "Cs"), scale_with_fold=False)
    if lambdas is None:
        lambdas = DEFAULT_GRID_SIZE
    if isinstance(lambdas, numbers.Integral) and not isinstance(lambdas, bool):
        if int(lambdas) > MOST_GRID_POINTS:
            raise InputError(f"lambdas={lambdas} asks for more than {MOST_GRID_POINTS} grid points")
        if lambdas < 2:
            raise InputError(
                f"lambdas={lambdas}: an int is the number of grid points and must be at least 2; "
                "for a single value write it in brackets, lambdas=[1.0]"
            )
        values = np.exp(np.linspace(*_GRID_ENDS, int(lambdas)))
    else:
        values = _grid_values(lambdas, "lambdas")
    return Grid(Cs=_inverse(values, n, "lambdas"), lambdas=values, scale_with_fold=True)


def _grid_values(values: Any, name: str) -> FloatArray:
    if isinstance(values, (bool, str)):
        raise InputTypeError(f"{name} must be a number or an array of numbers, got {values!r}")
    array = finite_numbers([values] if isinstance(values, numbers.Real) else values, name)
    if len(array) == 0:
        raise InputError(f"{name} is empty")
    if (array <= 0).any():
        where = int(np.argmax(array <= 0))
        raise InputError(f"{name} must be positive, but position {where} holds {array[where]:g}")
    return array


def _inverse(values: FloatArray, n: float, name: str) -> FloatArray:
    """C from lambda or lambda from C: the formula is the same."""
    with np.errstate(over="ignore", divide="ignore"):
        other: FloatArray = 1.0 / (2.0 * n * values)
    both = np.concatenate([values, other])
    if not (np.isfinite(both) & (both > LEAST) & (both < 1 / LEAST)).all():
        raise InputError(f"{name} holds values too small or too large for C = 1 / (2 n lambda)")
    return other
