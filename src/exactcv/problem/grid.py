"""The grid of C or lambda, in the user's order, and how it carries over to a fold.

Who gives none gets the *default grid*: C from 1e-3 to 1e3 over the scale of the kernel, and, where
gamma is tuned too, five gammas around the median rule, each four times the one before.  The scale
is the variance of the rows in feature space (the mean of the diagonal of K less that of all its
entries), to the next power of ten; kernels with k(x, x) = 1 have 1.  While the best point is at an
edge the grid grows there, by a decade of C or by one gamma, three times at most at each end.  On
real data that is enough (benchmarks/results/default_grid.md).

With features in place of the kernel there are many rows, and what a lambda does to
(1/n) sum L + lambda ||f||^2 hardly depends on how many, while the same C = 1 / (2 n lambda) would
regularise ever less.  There the default grid is one of lambdas, 1e-2 to 1e-5, with three gammas:
small, for every point is a pass over many rows, and it grows in the same way.  Of very many rows a
sample is searched first (``estimators/lowrank_pilot.py``), and the grid is smaller still.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from ..exceptions import InputError, InputTypeError
from ..types import BoolArray, FloatArray, IntArray
from .checks import LEAST, finite_numbers
from .folds import Folds

__all__ = [
    "DEFAULT_POINTS",
    "MOST_GROWTH",
    "End",
    "Grid",
    "default_grid",
    "feature_grid",
    "make_grid",
]

DECADES = (-3, 3)  # of the default grid
PER_DECADE = 4
DEFAULT_POINTS = (DECADES[1] - DECADES[0]) * PER_DECADE + 1
FEATURE_LAMBDAS = np.geomspace(1e-2, 1e-5, 7)  # with features in place of the kernel
AROUND_FOUND = 10.0 ** np.array([0.5, 0.0, -0.5, -1.0, -1.5])  # times the lambda of a sample
MOST_GROWTH = 3  # decades of C, and gammas, that the default grid gains at each end
MOST_POWER = 60  # of ten, in the scale of the kernel: beyond it float64 is at its end anyway
PAPERS_GRID_SIZE = 50
MOST_GRID_POINTS = 10_000
_GRID_ENDS = (6.0, -6.0)  # lambda from e^6 to e^-6, as in the papers

End: TypeAlias = Literal["low", "high"]


@dataclass(frozen=True)
class Grid:
    """The values of C, in the user's order, and how they carry over to a fold.

    ``scale_with_fold`` is set when the user gave lambdas: a fold with n_train rows then has
    C = 1 / (2 n_train lambda), except in leave-one-out, where the papers keep 1 / n.

    ``grown`` counts the decades that the default grid has gained below and above; None if the grid
    is the user's own, which stays as it is.
    """

    Cs: FloatArray
    lambdas: FloatArray
    scale_with_fold: bool
    grown: tuple[int, int] | None = None

    def __len__(self) -> int:
        return int(self.Cs.shape[0])

    def part(self, points: IntArray) -> Grid:
        return replace(self, Cs=self.Cs[points], lambdas=self.lambdas[points])

    def times(self, factor: float) -> Grid:
        """The same points with every C multiplied."""
        return replace(self, Cs=self.Cs * factor, lambdas=self.lambdas / factor)

    def next_decade(self, end: End) -> Grid | None:
        """The points that a default grid gains at one end; None if it may gain no more."""
        if self.grown is None or self.grown[end == "high"] >= MOST_GROWTH:
            return None
        edge = -1 if end == "high" else 0
        count = round(1.0 / np.log10(self.Cs[1] / self.Cs[0]))  # of points in a decade
        steps = np.arange(1, count + 1) if end == "high" else np.arange(-count, 0)
        factors = 10.0 ** (steps / count)
        per_C = self.lambdas[0] * self.Cs[0]
        if self.scale_with_fold:
            lambdas = _rounded(self.lambdas[edge] / factors)
            return replace(self, Cs=per_C / lambdas, lambdas=lambdas)
        Cs = _rounded(self.Cs[edge] * factors)
        return replace(self, Cs=Cs, lambdas=per_C / Cs)

    def with_decade(self, part: Grid, end: End) -> Grid:
        """A default grid together with what `next_decade` gave."""
        assert self.grown is not None
        low, high = self.grown
        first, last = (self, part) if end == "high" else (part, self)
        return replace(
            self,
            Cs=np.concatenate([first.Cs, last.Cs]),
            lambdas=np.concatenate([first.lambdas, last.lambdas]),
            grown=(low, high + 1) if end == "high" else (low + 1, high),
        )

    def for_fold(self, folds: Folds, fold: int) -> FloatArray:
        """C along the grid for the problem of one fold: lambda keeps its value, or C does."""
        if not self.scale_with_fold or folds.leave_one_out:
            return self.Cs
        return self.Cs * folds.ratio(fold)


def default_grid(n: float, scale: float = 1.0) -> Grid:
    """C from 1e-3 to 1e3 over the scale of the kernel; it may grow.

    Examples
    --------
    >>> default_grid(10, scale=20.0).Cs[[0, 4, -1]]
    array([1.e-04, 1.e-03, 1.e+02])
    """
    power = round(np.log10(scale)) if 0.0 < scale < np.inf else 0
    power = min(max(power, -MOST_POWER), MOST_POWER)
    Cs = _rounded(10.0 ** (np.linspace(*DECADES, DEFAULT_POINTS) - power))
    return Grid(Cs=Cs, lambdas=_inverse(Cs, n, "Cs"), scale_with_fold=False, grown=(0, 0))


def feature_grid(n: float, found: float | None = None) -> Grid:
    """Lambda from 1e-2 to 1e-5, for features in place of the kernel; it may grow.

    Where a sample of the rows has ``found`` a lambda: some around it, more of them below.

    Examples
    --------
    >>> feature_grid(50).Cs[[0, -1]], float(feature_grid(50).next_decade("high").lambdas[-1])
    (array([   1., 1000.]), 1e-06)
    """
    lambdas = _rounded(FEATURE_LAMBDAS if found is None else found * AROUND_FOUND)
    Cs = _inverse(lambdas, n, "lambdas")
    return Grid(Cs=Cs, lambdas=lambdas, scale_with_fold=True, grown=(0, 0))


def _rounded(values: FloatArray) -> FloatArray:
    """So that decades are what they look like."""
    return np.array([float(f"{value:.12g}") for value in values])


def make_grid(Cs: Any, lambdas: Any, n: float) -> Grid:
    """The grid from ``Cs`` or ``lambdas``, or else the papers'; C = 1 / (2 n lambda).

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
        lambdas = PAPERS_GRID_SIZE
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
        hint = ""
        if isinstance(values, str) and values.lower() == "all":
            hint = "; every C is for SVCCV(Cs='all') and exactcv.error_path"
        raise InputTypeError(
            f"{name} must be a number or an array of numbers, got {values!r}{hint}"
        )
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
    if not (_in_range(values) & _in_range(other)).all():
        where = int(np.argmin(_in_range(values) & _in_range(other)))
        raise InputError(
            f"{name} holds {values[where]:g}, which is too small or too large for float64 "
            "(C = 1 / (2 n lambda))"
        )
    return other


def _in_range(values: FloatArray) -> BoolArray:
    return np.asarray(np.isfinite(values) & (values > LEAST) & (values < 1 / LEAST))
