"""The names of types that everyone uses: arrays, what counts as data, and the choices.

Choices are literals, so that a type checker finds ``cv="lo"``.  The name of a method is any
``str``, since more of them can be registered.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Approx",
    "BoolArray",
    "ClassWeight",
    "Crossing",
    "DecisionShape",
    "FilePath",
    "FloatArray",
    "GammaRule",
    "GridValues",
    "HasShape",
    "HorizontalAxis",
    "IntArray",
    "IntervalMethod",
    "KernelFunction",
    "KernelName",
    "LossName",
    "Matrix",
    "MemoryLimit",
    "Output",
    "PlotKind",
    "PredictMethod",
    "ScorerLike",
    "Seed",
    "Select",
    "SparseMatrix",
    "Splits",
    "Splitter",
    "Strategy",
    "TaskName",
    "Unseen",
    "Vector",
]

# ---- what we compute ---------------------------------------------------------------------------

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]

# ---- choices -----------------------------------------------------------------------------------

KernelName = Literal["rbf", "laplacian", "poly", "sigmoid", "linear", "precomputed"]
GammaRule = Literal["median", "scale", "auto"]
LossName = Literal[
    "hinge",
    "squared_hinge",
    "logistic",
    "squared",
    "epsilon_insensitive",
    "pinball",
    "least_squares",
]
Output = Literal["error", "decision"]
Approx = Literal["rff", "nystroem"]
Select = Literal["min", "1se"]
TaskName = Literal["classification", "regression"]
DecisionShape = Literal["ovr", "ovo"]
Strategy = Literal["auto", "I", "II", "none"]
PredictMethod = Literal["predict", "decision_function", "predict_proba", "predict_log_proba"]
PlotKind = Literal["error", "heatmap", "decision", "residuals", "roc"]
Crossing = Literal["forbid-by-sorting", "allow"]
IntervalMethod = Literal["jackknife+", "cv+", "jackknife-minmax"]
HorizontalAxis = Literal["lambda", "C"]
Unseen = Literal["error", "zeros"]

# ---- what we are given -------------------------------------------------------------------------


class HasShape(Protocol):
    """Arrays of any make: NumPy, SciPy sparse, pandas, polars, Dask."""

    @property
    def shape(self) -> Any:
        """Rows, and columns if it has them."""


class SparseMatrix(Protocol):
    """SciPy's sparse matrices, whose ``shape`` pyright does not take for one."""

    def toarray(self) -> Any:
        """All entries, zeros too."""


class Splitter(Protocol):
    """A scikit-learn splitter, or whatever splits as it does."""

    def split(self, X: Any, y: Any, groups: Any, /) -> Iterable[Any]:
        """(train, test) for each fold."""


FilePath: TypeAlias = str | os.PathLike[str]
# Rows of numbers.  numpy.typing.ArrayLike would take a single number and refuse sparse matrices.
Matrix: TypeAlias = HasShape | SparseMatrix | Sequence[Sequence[float] | HasShape]
# One entry a row: labels of any kind, weights, groups.
Vector: TypeAlias = HasShape | Sequence[Any]
GridValues: TypeAlias = float | Sequence[float] | HasShape
KernelFunction: TypeAlias = Callable[[FloatArray, FloatArray], Any]
Splits: TypeAlias = int | Splitter | Iterable[tuple[Vector, Vector]]
ScorerLike: TypeAlias = str | Callable[..., Any]
ClassWeight: TypeAlias = Mapping[Any, float] | Literal["balanced"]
Seed: TypeAlias = int | np.integer[Any] | np.random.RandomState
MemoryLimit: TypeAlias = int | float | str
