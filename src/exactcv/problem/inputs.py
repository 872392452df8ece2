"""All checks of what the user hands in.  Below this module nothing is checked again.

Every message says what was wrong, where, and what to do.  scikit-learn is imported inside the
functions that need it: that takes most of a second, which ``import exactcv`` should not.
"""

from __future__ import annotations

import numbers
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy import sparse

from ..exceptions import InputError, InputTypeError, UnsupportedError
from ..runtime.memory import check_memory
from ..types import FloatArray, IntArray
from .folds import Folds, make_folds
from .gamma import GAMMA_RULES
from .kernels import KERNELS, Kernel
from .problem import Grid

__all__ = [
    "Data",
    "check_approx",
    "check_choice",
    "check_flag",
    "check_folds",
    "check_kernel",
    "check_method_options",
    "check_n_threads",
    "check_positive",
    "check_seed",
    "check_training_parts",
    "class_factors",
    "encode_labels",
    "is_missing",
    "make_grid",
    "read_data",
    "read_groups",
    "read_labels",
    "read_sample_weight",
    "read_weights",
    "refuse_path",
    "shown_classes",
    "times_class_weight",
]

DEFAULT_GRID_SIZE = 50
MOST_GRID_POINTS = 10_000
LEAST = 1e-100  # values of C and weights beyond this, or its inverse, would overflow on the way
_GRID_ENDS = (6.0, -6.0)  # lambda from e^6 to e^-6, as in the papers


@dataclass(frozen=True)
class Data:
    """Checked rows: features (or the precomputed matrix), labels +-1 and weights."""

    X: FloatArray
    y: FloatArray
    classes: NDArray[Any]
    labels: NDArray[Any]  # the user's own, for splitters
    weight: FloatArray


def read_data(
    X: Any,
    y: Any,
    kernel: Kernel,
    sample_weight: Any = None,
    class_weight: Any = None,
    memory_limit: Any = None,
) -> Data:
    """Check X, y and the weights, and that the kernel matrix will fit.

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
    check_memory(n, memory_limit, extra_bytes=8 * n * p if is_sparse else 0)
    features = _read_features(X.toarray() if is_sparse else X)
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


def _read_features(X: Any) -> FloatArray:
    from sklearn.utils import check_array

    try:
        checked: FloatArray = check_array(
            X, dtype=np.float64, order="C", ensure_min_samples=2, input_name="X"
        )
    except TypeError as error:
        raise InputTypeError(f"X cannot be used: {error}") from error
    except ValueError as error:
        raise InputError(f"X cannot be used: {error}") from error
    return checked


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
    if _has_missing(labels):
        raise InputError("y contains missing values (NaN or None); drop those rows")
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise InputTypeError(f"y mixes labels that cannot be sorted: {error}") from error
    if labels.dtype.kind == "f" and not (classes == np.floor(classes)).all():
        raise InputError(
            "y holds real numbers that are not class labels (Unknown label type: continuous); "
            "exactcv classifies"
        )
    return labels, classes, codes.astype(np.intp)


def _has_missing(labels: NDArray[Any]) -> bool:
    if labels.dtype.kind == "f":
        return not bool(np.isfinite(labels).all())
    if labels.dtype.kind == "O":
        return any(is_missing(label) for label in labels)
    return False


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

    ``class_weight="balanced"`` gives each class n / (2 n_class), with counts over all rows, once;
    as in scikit-learn ``sample_weight`` plays no part in it.
    """
    codes = (signs > 0).astype(np.intp)
    weight = read_sample_weight(sample_weight, len(signs))
    factors = class_factors(class_weight, np.bincount(codes, minlength=2), classes)
    return times_class_weight(weight, factors, codes, classes)


def read_sample_weight(sample_weight: Any, n: int) -> FloatArray:
    """One weight a row, not negative and not all zero; None stands for ones."""
    if sample_weight is None:
        return np.ones(n)
    weight = _numbers(sample_weight, "sample_weight")
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
        factors[labels.index(label)] = _real(
            f"class_weight[{label!r}]", value, lambda x: x >= 0, "a number that is not negative"
        )
    return factors


def times_class_weight(
    weight: FloatArray, factors: FloatArray, codes: IntArray, classes: NDArray[Any]
) -> FloatArray:
    """Row weights; every class must have some."""
    weight = weight * factors[codes]
    for code, label in enumerate(classes.tolist()):
        if not weight[codes == code].any():
            raise InputError(
                f"every row of class {label!r} has weight zero; both classes need some"
                if len(classes) == 2
                else f"every row of class {label!r} has weight zero; each class needs some"
            )
    used = weight[weight > 0]
    if not np.isfinite(weight).all() or used.min() < LEAST or used.max() > 1 / LEAST:
        raise InputError("sample_weight times class_weight is too large or too small; rescale them")
    return weight


def _numbers(values: Any, name: str) -> FloatArray:
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


# --- grid and folds ----------------------------------------------------------------------------


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
    array = _numbers([values] if isinstance(values, numbers.Real) else values, name)
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


def check_folds(cv: Any, data: Data, groups: Any, random_state: Any) -> Folds:
    """Folds whose training parts all have both classes (counting rows with some weight)."""
    groups = read_groups(groups, len(data.y))
    check_seed(random_state)
    folds = make_folds(cv, data.X, data.labels, groups, random_state)
    check_training_parts(folds, (data.y > 0).astype(np.intp), data.classes, data.weight)
    return folds


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


def check_seed(random_state: Any) -> None:
    from sklearn.utils import check_random_state

    try:
        check_random_state(random_state)
    except ValueError as error:
        raise InputError(f"random_state cannot be used: {error}") from error


def check_training_parts(
    folds: Folds, codes: IntArray, classes: NDArray[Any], weight: FloatArray
) -> None:
    """Refuse folds that train without a row (of positive weight) of some class."""
    rows = np.concatenate(folds.left_out)
    fold_of = np.repeat(np.arange(len(folds)), [len(out) for out in folds.left_out])
    both = "both classes" if len(classes) == 2 else "every class"
    for code, label in enumerate(classes.tolist()):
        counts = (codes == code) & (weight > 0)
        removed = np.bincount(fold_of[counts[rows]], minlength=len(folds))
        if (removed == counts.sum()).any():
            raise InputError(
                f"the training part of fold {int(np.argmax(removed == counts.sum()))} of cv has "
                f"no row of class {label!r} with positive weight; a classifier needs {both}: "
                "use fewer or stratified folds, or more rows of that class"
            )


# --- options -----------------------------------------------------------------------------------


def check_choice(name: str, value: Any, valid: Iterable[str], more: str = "") -> str:
    """``value`` if it is one of ``valid``; otherwise an error that lists them."""
    valid = tuple(valid)
    if isinstance(value, str) and value in valid:
        return value
    kind = InputError if isinstance(value, str) else InputTypeError
    shown = ", ".join(repr(choice) for choice in valid)
    raise kind(f"{name}={value!r} is not known; valid: {shown}" + (f" {more}" if more else ""))


def check_flag(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise InputTypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_positive(name: str, value: Any) -> float:
    return _real(name, value, lambda x: x > 0, "a positive number")


def _real(name: str, value: Any, accept: Any, wanted: str) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InputTypeError(f"{name} must be {wanted}, got {value!r}")
    if not np.isfinite(float(value)) or not accept(value):
        raise InputError(f"{name} must be {wanted} and finite, got {value!r}")
    return float(value)


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
    coef0 = _real("coef0", coef0, lambda x: True, "a number")
    return Kernel(name=kernel, gamma=gamma, degree=int(degree), coef0=coef0)


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
