"""The data as the search sees them: rows, splits, and what goes with each row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, column_or_1d, indexable

from ...exceptions import InputError
from ...types import IntArray

__all__ = ["Data", "read_data"]


@dataclass(frozen=True)
class Data:
    """X and y as given, labels as numbers 0, 1, ..., and the splits.

    ``rows[f]`` are the rows on which split f is evaluated: its test rows, then, where training
    scores are wanted, its training rows.
    """

    X: Any
    y: Any
    labels: NDArray[Any]
    classes: NDArray[Any]
    codes: IntArray
    train: tuple[IntArray, ...]
    test: tuple[IntArray, ...]
    with_train: bool = False
    _parts: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def n(self) -> int:
        return len(self.codes)

    @property
    def n_splits(self) -> int:
        return len(self.test)

    def rows(self, split: int) -> IntArray:
        if not self.with_train:
            return self.test[split]
        return np.concatenate([self.test[split], self.train[split]])

    def once_each(self, split: int) -> bool:
        """Does the split train on no row twice?"""
        return len(np.unique(self.train[split])) == len(self.train[split])

    def part(self, split: int, which: str, pairwise: bool) -> tuple[Any, Any]:
        """X and y of the training or test rows; the same objects whenever asked."""
        key = split, which, pairwise
        if key not in self._parts:
            rows = getattr(self, which)[split]
            X = _safe_indexing(self.X, rows)
            if pairwise:
                X = X[:, self.train[split]]
            self._parts[key] = X, _safe_indexing(self.y, rows)
        return self._parts[key]


def read_data(
    X: Any, y: Any, cv: Any, split_params: Mapping[str, Any], with_train: bool = False
) -> Data:
    """Check what scikit-learn would check before its first fit, and split."""
    if y is None:
        raise InputError("y is None; it must hold one class label a row")
    X, y = indexable(X, y)
    labels = column_or_1d(y, warn=True)
    classes, codes = np.unique(labels, return_inverse=True)
    chosen = check_cv(cv, y, classifier=True)
    pairs = list(chosen.split(X, y, **split_params))
    expected = chosen.get_n_splits(X, y, **split_params)
    if len(pairs) != expected:
        raise InputError(f"cv promises {expected} splits but yields {len(pairs)}")
    if not pairs:
        raise InputError("cv has no folds")
    n = len(labels)
    train = tuple(_numbers(train, n) for train, _ in pairs)
    test = tuple(_numbers(test, n) for _, test in pairs)
    return Data(X, y, labels, classes, codes.astype(np.intp), train, test, with_train)


def _numbers(rows: Any, n: int) -> IntArray:
    """Row numbers, from numbers (negative ones count from the end) or a mask."""
    return np.arange(n, dtype=np.intp)[np.asarray(rows)]


def rows_of(params: Mapping[str, Any], n: int, rows: IntArray) -> dict[str, Any]:
    """Parameters with one entry a row, for some of the rows; others are handed on as they are."""
    return {
        name: _safe_indexing(value, rows) if _has_rows(value, n) else value
        for name, value in params.items()
    }


def _has_rows(value: Any, n: int) -> bool:
    if sparse.issparse(value):
        return bool(value.shape[0] == n)
    sized = hasattr(value, "__len__") and not isinstance(value, (str, bytes, Mapping))
    return sized and len(value) == n


def as_numbers(values: Iterable[Any] | None, n: int) -> NDArray[np.float64] | None:
    """Sample weights as an array; None if there are none, or if they are no such thing."""
    if values is None:
        return None
    array = np.asarray(values, dtype=float)
    if array.shape != (n,) or not np.isfinite(array).all():
        raise InputError(f"sample_weight must be {n} finite numbers, one for each row")
    return array
