"""Every kind of bad input gets an error of our own that says what, where and what to do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import exactcv
from exactcv.crossval.cross_validate import cross_validate
from exactcv.exceptions import (
    ExactCVError,
    InputError,
    InputTypeError,
    MemoryLimitError,
    UnsupportedError,
)
from exactcv.problem.grid import make_grid
from exactcv.problem.inputs import read_labels, read_weights

N = 12
X = np.random.default_rng(0).normal(size=(N, 2))
Y = np.tile([0, 1], 6)


def with_value(value: float) -> np.ndarray:
    changed = X.copy()
    changed[3, 1] = value
    return changed


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    # data
    ({"X": with_value(np.nan)}, InputError, "NaN"),
    ({"X": with_value(np.inf)}, InputError, "infinity"),
    ({"X": X[:, 0]}, InputError, r"1 dimension.*reshape"),
    ({"X": X[None]}, InputError, "3 dimension"),
    ({"X": [[1, 2], [3]]}, InputError, "differ in length"),
    ({"X": [["a", "b"]] * N}, InputError, "could not convert"),
    ({"X": X + 1j}, InputError, "[Cc]omplex"),
    ({"X": None}, InputTypeError, "X is None"),
    ({"X": np.empty((N, 0))}, InputError, "0 feature"),
    ({"X": X[:5]}, InputError, "X has 5 rows but y has 12"),
    ({"y": None}, InputError, "y is None"),
    ({"y": np.zeros(N)}, InputError, r"exactly two classes, got 1: 0\.0"),
    ({"y": np.arange(N)}, InputError, r"got 12: 0, 1, 2, 3, 4, \.\.\.; .*SVCCV"),
    ({"y": np.where(Y, 0.5, 1.5)}, InputError, "not class labels.*SVRCV"),
    ({"y": np.where(Y, np.nan, 1.0)}, InputError, "missing"),
    ({"y": np.array(["a", None] * 6, dtype=object)}, InputError, "missing"),
    ({"y": np.array(["a", 1] * 6, dtype=object)}, InputTypeError, "sorted"),
    ({"y": np.column_stack([Y, Y])}, InputError, "one-dimensional"),
    # kernel
    ({"kernel": "rbff"}, InputError, "'rbf', 'laplacian', 'poly', 'sigmoid', 'linear'"),
    ({"kernel": 3}, InputTypeError, "valid: 'rbf'"),
    ({"kernel": "precomputed"}, InputError, r"square, got \(12, 2\)"),
    ({"kernel": "precomputed", "X": np.triu(np.ones((N, N)))}, InputError, "not symmetric"),
    ({"gamma": "medium"}, InputError, "'median', 'scale', 'auto'"),
    ({"gamma": 0.0}, InputError, "gamma must be a positive"),
    ({"gamma": np.nan}, InputError, "gamma"),
    ({"gamma": None}, InputTypeError, "gamma"),
    ({"degree": 2.5}, InputTypeError, "degree"),
    ({"degree": 0}, InputError, "degree"),
    ({"coef0": np.inf}, InputError, "coef0"),
    ({"coef0": "1"}, InputTypeError, "coef0"),
    # grid
    ({"Cs": [1.0], "lambdas": [1.0]}, InputError, "not both"),
    ({"Cs": []}, InputError, "Cs is empty"),
    ({"Cs": [1.0, 0.0]}, InputError, "position 1 holds 0"),
    ({"Cs": -1}, InputError, "Cs must be positive"),
    ({"Cs": [1.0, np.nan]}, InputError, "not finite at position 1"),
    ({"Cs": [np.inf]}, InputError, "not finite"),
    ({"Cs": [[1.0]]}, InputError, "one-dimensional"),
    ({"Cs": "1"}, InputTypeError, "Cs"),
    ({"Cs": ["a"]}, InputTypeError, "Cs must hold numbers"),
    ({"Cs": True}, InputTypeError, "Cs"),
    ({"lambdas": [-1.0]}, InputError, "lambdas must be positive"),
    ({"lambdas": 1}, InputError, "number of grid points"),
    ({"lambdas": [1e-320]}, InputError, "too small"),
    # folds
    ({"cv": "lto"}, InputError, "'loo'"),
    ({"cv": 1}, InputError, "number of folds"),
    ({"cv": [(np.arange(0, N, 2), [1]), ([0, 1], [2])]}, InputError, r"fold 0 .* class 1"),
    ({"cv": [([0, 1], [2]), (np.arange(1, N, 2), [0])]}, InputError, r"fold 1 .* class 0"),
    ({"cv": [([0, 1], [1])]}, InputError, "its own test row"),
    ({"groups": [1, 2]}, InputError, "groups has 2 entries"),
    ({"cv": 3, "random_state": "x"}, InputError, "random_state"),
    # weights
    ({"sample_weight": np.ones(5)}, InputError, r"shape \(5,\)"),
    ({"sample_weight": np.where(np.arange(N) == 4, -1.0, 1)}, InputError, "negative in row 4"),
    ({"sample_weight": np.zeros(N)}, InputError, "zero in every row"),
    ({"sample_weight": np.full(N, np.nan)}, InputError, "not finite"),
    ({"sample_weight": ["a"] * N}, InputTypeError, "sample_weight must hold numbers"),
    ({"sample_weight": Y}, InputError, "every row of class 0 has weight zero"),
    ({"class_weight": {2: 1.0}}, InputError, r"label 2, .* y has \[0, 1\]"),
    ({"class_weight": {0: -1.0}}, InputError, r"class_weight\[0\]"),
    ({"class_weight": {0: 0.0}}, InputError, "class 0 has weight zero"),
    ({"class_weight": "even"}, InputError, "'balanced'"),
    ({"class_weight": [1, 2]}, InputTypeError, "dict"),
    # options
    ({"loss": "square"}, InputError, "'hinge', 'squared_hinge', 'logistic'"),
    ({"loss": "logistic"}, UnsupportedError, "does not support loss='logistic'"),
    ({"method": "magik"}, InputError, "method='magik' is not known; valid: .*'exact'"),
    ({"output": "labels"}, InputError, "'error', 'decision'"),
    ({"fit_intercept": "yes"}, InputTypeError, "fit_intercept"),
    ({"progress": 1}, InputTypeError, "progress"),
    ({"tol": 0.0}, InputError, "tol"),
    ({"tol": "small"}, InputTypeError, "tol"),
    ({"n_jobs": 0}, InputError, "n_jobs=0"),
    ({"n_jobs": 1.5}, InputTypeError, "n_jobs"),
    (
        {"approx": "nystroem", "n_components": 99, "method": "exact"},
        InputError,
        "n_components=99 is more than",
    ),
    ({"approx": "rff", "n_components": 0}, InputError, "n_components"),
    ({"approx": "rff", "n_components": "many"}, InputTypeError, "n_components"),
    ({"approx": "rff", "loss": "logistic", "method": "magic"}, UnsupportedError, "approx='rff'"),
    (
        {"approx": "rff", "kernel": "linear", "method": "exact"},
        UnsupportedError,
        "'rbf' and 'laplacian'",
    ),
    (
        {"approx": "rff", "method_options": {"chunks": 3}, "method": "exact"},
        UnsupportedError,
        "chunk_rows",
    ),
    ({"approx": "svd"}, InputError, "'rff', 'nystroem'"),
    ({"memory_limit": "lots"}, InputError, "memory_limit"),
    ({"memory_limit": 1000}, MemoryLimitError, "12 rows"),
]


@pytest.mark.parametrize(("arguments", "kind", "message"), BAD)
def test_bad_input(
    stub: Callable[..., Any], arguments: dict[str, Any], kind: type[Exception], message: str
) -> None:
    method = stub()
    with pytest.raises(kind, match=message) as info:
        cross_validate(**({"X": X, "y": Y, "method": "stub"} | arguments))
    assert isinstance(info.value, ExactCVError)
    assert method.task is None, "an error must come before any work"


def test_error_types_follow_python_and_scikit_learn() -> None:
    assert issubclass(InputError, ValueError)
    assert issubclass(InputTypeError, TypeError)
    assert issubclass(UnsupportedError, ValueError)
    assert issubclass(MemoryLimitError, MemoryError)


def test_zero_weight_rows_do_not_count_for_a_fold(stub: Callable[..., Any]) -> None:
    stub()
    weight = np.ones(N)
    weight[[0, 2, 4, 6, 8]] = 0.0
    with pytest.warns(UserWarning, match=r"class 0 has one row only, row 10.*not tested"):
        cross_validate(X, Y, method="stub", sample_weight=weight)
    pair = [(np.arange(N - 2), np.arange(N - 2, N))]
    with pytest.raises(InputError, match=r"fold 0 .* class 0"):
        cross_validate(X, Y, method="stub", sample_weight=weight, cv=pair)


def test_too_large_for_memory_is_seen_before_anything_is_made(stub: Callable[..., Any]) -> None:
    stub()
    huge = sparse.csr_matrix((500_000, 3))
    with pytest.raises(MemoryLimitError, match=r"500000 rows takes 2000\.0 GB"):
        cross_validate(huge, np.zeros(500_000), method="stub")


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (["b", "a", "b"], ["a", "b"]),
        ([True, False, True], [False, True]),
        ([1, -1, 1], [-1, 1]),
        (pd.Series(["b", "a", "b"], dtype="category"), ["a", "b"]),
        (pd.Series([7, 3, 7], index=[5, 6, 7]), [3, 7]),
        (np.array([2.0, 0.0, 2.0]), [0.0, 2.0]),
    ],
)
def test_labels_of_any_type_and_the_larger_is_positive(y: Any, classes: list[Any]) -> None:
    _, found, signs = read_labels(y, 3)
    assert found.tolist() == classes
    assert signs.tolist() == [1.0, -1.0, 1.0]


@pytest.mark.parametrize(
    "wrap", [np.asarray, np.ndarray.tolist, pd.DataFrame, sparse.csr_matrix, np.asfortranarray]
)
def test_containers_of_X_mean_the_same(stub: Callable[..., Any], wrap: Callable[..., Any]) -> None:
    method = stub()
    cross_validate(X, Y, method="stub", Cs=1.0)
    K = method.task.problem.K
    cross_validate(wrap(X), Y, method="stub", Cs=1.0)
    np.testing.assert_allclose(method.task.problem.K, K, rtol=1e-14)


def test_weights_multiply() -> None:
    signs = np.array([-1.0, -1.0, -1.0, 1.0])
    labels = np.array(["a", "b"])
    weight = read_weights([1, 2, 0, 4], {"a": 0.5}, signs, labels)
    assert weight.tolist() == [0.5, 1.0, 0.0, 4.0]
    balanced = read_weights(None, "balanced", signs, labels)
    np.testing.assert_allclose(balanced, [4 / 6, 4 / 6, 4 / 6, 2.0])
    # A row of weight w counts as w rows: both classes weigh the same in the end.
    both = read_weights([1, 2, 0, 9], "balanced", signs, labels)
    np.testing.assert_allclose(both, [2.0, 4.0, 0.0, 6.0])


def test_grids() -> None:
    default = make_grid(None, None, 10)
    assert len(default) == 50
    np.testing.assert_allclose(default.lambdas[[0, -1]], np.exp([6.0, -6.0]))
    np.testing.assert_allclose(default.Cs, 1 / (20 * default.lambdas))
    assert default.scale_with_fold
    assert make_grid(None, 0.5, 10).Cs.tolist() == [0.1]
    assert len(make_grid(None, 7, 10)) == 7
    given = make_grid([3, 1, 1, 2], None, 10)
    assert given.Cs.tolist() == [3.0, 1.0, 1.0, 2.0]
    assert not given.scale_with_fold
    assert make_grid(5, None, 10).Cs.tolist() == [5.0]


def test_a_fold_keeps_C_or_lambda(stub: Callable[..., Any]) -> None:
    method = stub()
    cross_validate(X, Y, method="stub", Cs=[1.0], cv=3)
    assert method.task.fold_Cs(0).tolist() == [1.0]
    cross_validate(X, Y, method="stub", lambdas=[1.0], cv=3)
    np.testing.assert_allclose(method.task.fold_Cs(0), 1 / (2 * 8 * 1.0))
    cross_validate(X, Y, method="stub", lambdas=[1.0])
    np.testing.assert_allclose(method.task.fold_Cs(0), 1 / (2 * 12 * 1.0))


def test_importing_is_light() -> None:
    code = "import sys, exactcv; print({'matplotlib', 'pandas', 'sklearn'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("size", [1e160, 1e300])
def test_numbers_whose_squares_overflow_are_refused(size: float) -> None:
    X = np.random.default_rng(0).normal(size=(12, 2))
    for call in (
        lambda y: exactcv.cross_validate(X, y, loss="epsilon_insensitive", Cs=[1.0]),
        lambda y: exactcv.SVRCV(Cs=[1.0]).fit(X, y),
    ):
        with pytest.raises(exactcv.InputError, match="squares overflow; rescale"):
            call(size * X[:, 0])


def test_every_public_name_exists() -> None:
    assert all(hasattr(exactcv, name) for name in exactcv.__all__)
