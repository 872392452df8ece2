"""All checks of what the user hands in.  Below this module nothing is checked again.

Every message says what was wrong, where, and what to do.  scikit-learn is imported inside the
functions that need it: that takes most of a second, which ``import exactcv`` should not.
"""

from __future__ import annotations

import numbers
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..exceptions import InputError, InputTypeError, UnsupportedError
from ..runtime.memory import check_memory
from ..runtime.user_line import user_level
from ..types import FloatArray, IntArray
from .checks import LEAST, check_choice, check_positive, check_seed, finite_numbers, real
from .folds import Folds, folds_among
from .gamma import GAMMA_RULES
from .kernels import KERNELS, Kernel

__all__ = [
    "Data",
    "Present",
    "check_approx",
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


@dataclass(frozen=True)
class Present:
    """The rows that count: those of positive weight; the others are as good as absent.

    ``rows`` are their numbers, ``y`` the labels +-1 (or numbers) of all n rows.
    """

    rows: IntArray
    y: FloatArray

    @classmethod
    def of(cls, weight: FloatArray, y: FloatArray) -> Present:
        return cls(np.flatnonzero(weight > 0).astype(np.intp), y)

    @classmethod
    def all_of(cls, y: FloatArray) -> Present:
        return cls(np.arange(len(y), dtype=np.intp), y)

    @property
    def n(self) -> int:
        return len(self.y)

    @property
    def all(self) -> bool:
        return len(self.rows) == self.n

    def spread(self, values: NDArray[Any], absent: Any) -> NDArray[Any]:
        """Values of the rows that count, the last axis, among those of all rows."""
        wide = np.full((*values.shape[:-1], self.n), absent, dtype=values.dtype)
        wide[..., self.rows] = values
        return wide


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
    _refuse_masked(X, "X")
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


def read_numbers(y: Any, n: int) -> FloatArray:
    """Finite numbers, one a row.

    Examples
    --------
    >>> read_numbers([1, 2.5], 2)
    array([1. , 2.5])
    """
    from sklearn.utils import column_or_1d

    if y is None:
        raise InputError("y is None; it must hold one number a row")
    _refuse_masked(y, "y")
    try:
        values = column_or_1d(y, warn=True)
    except (TypeError, ValueError) as error:
        raise InputError(f"y must be one-dimensional, one number a row: {error}") from error
    if len(values) != n:
        raise InputError(f"X has {n} rows but y has {len(values)} numbers")
    refuse_missing_labels(values)
    if values.dtype.kind == "c":
        raise InputError("Complex data not supported: y holds complex numbers")
    if values.dtype.kind == "O" and any(isinstance(value, str) for value in values):
        raise InputTypeError("y holds text, and a loss of numbers needs numbers: convert it first")
    return finite_numbers(values, "y")


def read_number_weights(sample_weight: Any, class_weight: Any, n: int) -> FloatArray:
    """Row weights where y are numbers: there are no classes that could weigh anything."""
    if class_weight is not None:
        raise InputError("class_weight goes with classes; y are numbers: use sample_weight")
    weight = read_sample_weight(sample_weight, n)
    used = weight[weight > 0]
    if used.min() < LEAST or used.max() > 1 / LEAST:
        raise InputError("sample_weight is too large or too small; rescale it")
    return weight


def shown_classes(classes: NDArray[Any]) -> str:
    """How many classes, and the first of them."""
    shown = ", ".join(repr(label) for label in classes[:5].tolist())
    return f"{len(classes)}: {shown}" + (", ..." if len(classes) > 5 else "")


def encode_labels(y: Any, n: int) -> tuple[NDArray[Any], NDArray[Any], IntArray]:
    """The labels as an array, the classes in sort order, and the class number of each row."""
    from sklearn.utils import column_or_1d

    if y is None:
        raise InputError("y is None; it must hold one class label a row")
    _refuse_masked(y, "y")
    try:
        labels = column_or_1d(y, warn=True)
    except (TypeError, ValueError) as error:
        raise InputError(f"y must be one-dimensional, one label a row: {error}") from error
    if len(labels) != n:
        raise InputError(f"X has {n} rows but y has {len(labels)} labels")
    refuse_missing_labels(labels)
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise InputTypeError(f"y mixes labels that cannot be sorted: {error}") from error
    if labels.dtype.kind == "f" and not (classes == np.floor(classes)).all():
        raise InputError(
            "y holds real numbers that are not class labels (Unknown label type: continuous); "
            "for numbers use SVRCV, or a loss for them such as epsilon_insensitive"
        )
    return labels, classes, codes.astype(np.intp)


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


def _refuse_masked(values: Any, name: str) -> None:
    if np.ma.isMaskedArray(values) and np.ma.is_masked(values):
        raise InputError(f"{name} contains missing values (masked entries); drop those rows")


def is_missing(label: Any) -> bool:
    """None, NaN or pandas.NA; the last does not even know whether it equals itself."""
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True


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


# --- folds --------------------------------------------------------------------------------------


def check_folds(
    cv: Any, data: Data, groups: Any, random_state: Any, among: Present | None = None
) -> Folds:
    """Folds whose training parts all have both classes; ``data`` are the rows that count."""
    among = Present.all_of(data.y) if among is None else among
    groups = read_groups(groups, among.n)
    groups = None if groups is None else groups[among.rows]
    check_seed(random_state)
    folds = folds_among(
        among.rows,
        among.n,
        cv,
        data.X,
        data.labels,
        groups,
        random_state,
        stratify=not data.numeric,
    )
    if data.numeric:
        return check_some_training(folds, data.weight)
    codes = (data.y > 0).astype(np.intp)
    return check_training_parts(folds, codes, data.classes, data.weight, among.rows)


def read_groups(groups: Any, n: int) -> NDArray[Any] | None:
    """One group a row, or None."""
    from sklearn.utils import column_or_1d

    if groups is None:
        return None
    try:
        array: NDArray[Any] = column_or_1d(groups)
    except ValueError as error:
        raise InputError(f"groups must hold one entry a row: {error}") from error
    if len(array) != n:
        raise InputError(f"groups has {len(array)} entries for {n} rows")
    return array


def check_training_parts(
    folds: Folds, codes: IntArray, classes: NDArray[Any], weight: FloatArray, rows: IntArray
) -> Folds:
    """Refuse folds that train without a row (of positive weight) of some class.

    But leave-one-out goes on when a row is the only one of its class.  Of two classes there is
    then nothing to train on, and the fold is dropped: the row is not tested.  Of several, those
    that are left predict the row, wrongly of course, as in scikit-learn.  ``rows`` are the user's
    numbers of the rows.
    """
    two = len(classes) == 2
    dropped, only = np.zeros(len(folds), dtype=bool), []
    for code, label in enumerate(classes.tolist()):
        mine = (codes == code) & (weight > 0)
        lacking = folds.removed(mine) == np.count_nonzero(mine)
        if not lacking.any():
            continue
        dropped |= lacking & two
        if not folds.leave_one_out or dropped.all():
            raise InputError(
                f"the training part of fold {int(np.argmax(lacking))} of cv has no row of "
                f"class {label!r} with positive weight; a classifier needs "
                f"{'both classes' if two else 'every class'}: use fewer or stratified folds, or "
                "more rows of that class"
            )
        only.append((int(rows[np.argmax(mine)]), label))
    for row, label in only:
        _warn_of_an_only_row(row, label, two)
    return folds.part(np.flatnonzero(~dropped)) if dropped.any() else folds


def check_some_training(folds: Folds, weight: FloatArray) -> Folds:
    """Refuse folds that leave nothing to train on."""
    empty = folds.removed(weight > 0) == np.count_nonzero(weight > 0)
    if empty.any():
        raise InputError(
            f"the training part of fold {int(np.argmax(empty))} of cv has no row with positive "
            "weight; use other folds"
        )
    return folds


def _warn_of_an_only_row(row: int, label: Any, two_classes: bool) -> None:
    if two_classes:
        then = "there is nothing to train on, so it is not tested"
    else:
        then = "it cannot be recognised, so it counts as wrong"
    warnings.warn(
        f"class {label!r} has one row only, row {row}: when that is left out, {then}",
        UserWarning,
        stacklevel=user_level(),
    )


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
    if isinstance(n_components, bool) or not isinstance(n_components, numbers.Integral):
        raise InputTypeError(f"n_components must be an integer, got {n_components!r}")
    if n_components < 1:
        raise InputError(f"n_components must be at least 1, got {n_components}")
    if method != "exact" or loss != "hinge":
        raise UnsupportedError(
            f"approx={approx!r} goes with method='exact' and loss='hinge', got method={method!r} "
            f"and loss={loss!r}; leave these out, or use approx=None"
        )
    return int(n_components)
