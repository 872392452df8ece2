"""All checks of what the user hands in.  Below this module nothing is checked again.

Reading y, weights and folds has files of its own; others find all of it here.  Every message
says what was wrong, where, and what to do.  scikit-learn is imported inside the
functions that need it: that takes most of a second, which ``import exactcv`` should not.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..exceptions import InputError, InputTypeError, UnsupportedError
from ..runtime.memory import check_memory
from ..types import FloatArray, IntArray
from .checks import check_choice, check_positive, real
from .differentiable import SQUARED_LOSSES
from .gamma import GAMMA_RULES
from .kernels import KERNELS, Kernel
from .labels import (
    encode_labels,
    is_missing,
    read_labels,
    read_numbers,
    refuse_masked,
    refuse_missing_labels,
    shown_classes,
)
from .training_parts import (
    Present,
    check_folds,
    check_some_training,
    check_training_parts,
    read_groups,
)
from .weights import (
    class_factors,
    read_number_weights,
    read_sample_weight,
    read_weights,
    times_class_weight,
)

__all__ = [
    "APPROX_LOSSES",
    "Data",
    "Present",
    "check_approx",
    "check_components",
    "check_folds",
    "check_kernel",
    "check_some_training",
    "check_training_parts",
    "class_factors",
    "encode_labels",
    "is_missing",
    "naming_text",
    "noting_cells",
    "read_data",
    "read_features",
    "read_groups",
    "read_labels",
    "read_number_weights",
    "read_numbers",
    "read_sample_weight",
    "read_weights",
    "refuse_missing_labels",
    "refuse_path",
    "shown_classes",
    "times_class_weight",
]

# What features in place of a kernel can do: losses of knots and slopes, and the squared loss.
APPROX_LOSSES = ("hinge", "epsilon_insensitive", "pinball", *SQUARED_LOSSES)


@dataclass(frozen=True)
class Data:
    """Checked rows: features (or the precomputed matrix), labels +-1 or numbers, and weights.

    Numbers have no classes.
    """

    X: FloatArray
    y: FloatArray
    classes: NDArray[Any]
    labels: NDArray[Any]  # the user's own, for splitters
    weight: FloatArray

    @property
    def numeric(self) -> bool:
        return len(self.classes) == 0

    def part(self, rows: IntArray, precomputed: bool) -> Data:
        """Some of the rows."""
        X = self.X[np.ix_(rows, rows)] if precomputed else self.X[rows]
        return replace(
            self, X=X, y=self.y[rows], labels=self.labels[rows], weight=self.weight[rows]
        )


def read_data(
    X: Any,
    y: Any,
    kernel: Kernel,
    sample_weight: Any = None,
    class_weight: Any = None,
    memory_limit: Any = None,
    numeric: bool = False,
    whole: bool = True,
) -> Data:
    """Check X, y (labels, or numbers if ``numeric``) and the weights.

    Also that the kernel matrix will fit, if the ``whole`` is needed.

    Examples
    --------
    >>> data = read_data([[0.0], [1.0], [2.0]], ["no", "yes", "no"], Kernel("linear"))
    >>> data.y, [str(label) for label in data.classes]
    (array([-1.,  1., -1.]), ['no', 'yes'])
    """
    precomputed = kernel.name == "precomputed"
    n, p = _shape(X)
    if precomputed and n != p:
        raise InputError(
            f"with kernel='precomputed' X is the kernel matrix and must be square, got ({n}, {p})"
        )
    is_sparse = sparse.issparse(X)
    if whole:
        check_memory(n, memory_limit, extra_bytes=8 * n * p if is_sparse else 0)
    features = read_features(X.toarray() if is_sparse else X)
    if numeric:
        numbers_, weight = read_numbers(y, n), read_number_weights(sample_weight, class_weight, n)
        return Data(features, numbers_, np.empty(0), numbers_, weight)
    labels, classes, signs = read_labels(y, n)
    weight = read_weights(sample_weight, class_weight, signs, classes)
    return Data(X=features, y=signs, classes=classes, labels=labels, weight=weight)


def _shape(X: Any) -> tuple[int, int]:
    """(rows, columns) of X without converting a large one."""
    if X is None:
        raise InputTypeError("X is None; it must be a matrix of numbers, one row per sample")
    refuse_path(X)
    if hasattr(X, "npartitions") and hasattr(X, "columns"):
        raise InputTypeError(
            "X is a Dask dataframe, which goes with approx='rff' or 'nystroem' only; else load it "
            "first, with X.compute()"
        )
    refuse_masked(X, "X")
    shape = getattr(X, "shape", None)
    if shape is None:
        try:
            shape = np.asarray(X).shape
        except ValueError as error:
            raise InputError(f"X is not a matrix, its rows differ in length: {error}") from error
    if len(shape) != 2:
        raise InputError(
            f"X has {len(shape)} dimension(s), shape {tuple(shape)}; it must have two: "
            "use X.reshape(-1, 1) for a single feature"
        )
    return int(shape[0]), int(shape[1])


def refuse_path(X: Any) -> None:
    """Files are for approximate kernels."""
    if isinstance(X, (str, os.PathLike)):
        raise InputTypeError(
            f"X is a path, {os.fspath(X)!r}: rows are read from Parquet files with approx='rff' or "
            "'nystroem' only; else load them first, with pandas.read_parquet for example"
        )


def read_features(X: Any, name: str = "X", least: int = 2) -> FloatArray:
    """A finite matrix of at least so many rows."""
    from sklearn.utils import check_array

    try:
        with naming_text(X):
            checked: FloatArray = check_array(
                X, dtype=np.float64, order="C", ensure_min_samples=least, input_name=name
            )
    except InputError:
        raise
    except TypeError as error:
        raise InputTypeError(f"{name} cannot be used: {error}") from error
    except ValueError as error:
        raise InputError(f"{name} cannot be used: {error}") from error
    return checked


@contextmanager
def naming_text(X: Any) -> Iterator[None]:
    """Where text in X cannot be converted, say in which column and row it is."""
    try:
        yield
    except ValueError as error:
        found = _text_named(X, error)
        if found is None:
            raise
        raise InputError(f"{found} ({error})") from error


@contextmanager
def noting_cells(X: Any, y: Any) -> Iterator[None]:
    """The same for errors that are to stay as they are: a note says where text or gaps are."""
    try:
        yield
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        found = _text_named(X, error)
        if found is None:
            try:
                refuse_missing_labels(y)
            except InputError as missing:
                found = str(missing)
        if found is not None:
            error.add_note(found)
        raise


def _text_named(X: Any, error: Exception) -> str | None:
    """Where the text is that could not be converted, and what to do."""
    found = None if "convert" not in str(error) else _first_text(X)
    if found is None:
        return None
    column, row, cell = found
    return (
        f"X has text in column {column!r} (row {row}: {str(cell)[:40]!r}); make numbers of it, "
        "with sklearn.preprocessing.OneHotEncoder for example, or leave the column out"
    )


def _first_text(X: Any) -> tuple[Any, int, Any] | None:
    """Column, row and cell of the first text in X that is no number."""
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):
        columns = [(name, np.asarray(X[name])) for name in X.columns]
    else:
        array = np.asarray(X, dtype=object)
        columns = list(enumerate(array.T)) if array.ndim == 2 else []
    for name, cells in columns:
        if cells.dtype.kind not in "OUS":
            continue
        for row, cell in enumerate(cells.tolist()):
            try:
                float(cell)
            except (TypeError, ValueError):
                return name, row, cell
    return None


# --- kernels ------------------------------------------------------------------------------------


def check_kernel(kernel: Any, gamma: Any, degree: Any, coef0: Any) -> Kernel:
    """The kernel and its parameters; parameters that the kernel does not use are checked too."""
    if not callable(kernel):
        check_choice("kernel", kernel, KERNELS, "or a callable k(X, Y)")
    if isinstance(gamma, str):
        check_choice("gamma", gamma, GAMMA_RULES, "or a positive number")
    else:
        gamma = check_positive("gamma", gamma)
    if isinstance(degree, bool) or not isinstance(degree, numbers.Integral):
        raise InputTypeError(f"degree must be an integer, got {degree!r}")
    if degree < 1:
        raise InputError(f"degree must be at least 1, got {degree}")
    coef0 = real("coef0", coef0, lambda x: True, "a number")
    return Kernel(name=kernel, gamma=gamma, degree=int(degree), coef0=coef0)


def check_approx(approx: Any, n_components: Any, method: str, loss: str) -> int:
    """``n_components`` as a number; what ``approx`` cannot do is refused."""
    check_choice("approx", approx, ("rff", "nystroem"), "or None")
    count = check_components(n_components)
    if method != "exact" or loss not in APPROX_LOSSES:
        known = ", ".join(map(repr, APPROX_LOSSES))
        raise UnsupportedError(
            f"approx={approx!r} goes with method='exact' and a loss of {known}; got "
            f"method={method!r} and loss={loss!r}; leave these out, or use approx=None"
        )
    return count


def check_components(n_components: Any) -> int:
    """A number of features."""
    if isinstance(n_components, bool) or not isinstance(n_components, numbers.Integral):
        raise InputTypeError(f"n_components must be an integer or 'auto', got {n_components!r}")
    if n_components < 1:
        raise InputError(f"n_components must be at least 1, got {n_components}")
    return int(n_components)
