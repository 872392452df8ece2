"""The data as the search sees them: rows, splits, and what goes with each row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, column_or_1d
from sklearn.utils.validation import _check_method_params, _num_samples

from ...exceptions import InputError
from ...types import IntArray

__all__ = ["Data", "copy_of_rows", "read_data"]


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
    def numbers(self) -> NDArray[np.float64]:
        """y as numbers."""
        return np.asarray(self.labels, dtype=float)

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
            self._parts[key] = self.copy_of_part(split, which, pairwise)
        return self._parts[key]

    def copy_of_part(self, split: int, which: str, pairwise: bool = False) -> tuple[Any, Any]:
        """The same as new objects, which a step of a pipeline may change."""
        rows = getattr(self, which)[split]
        X = _safe_indexing(self.X, rows)
        if pairwise:
            X = X[:, self.train[split]]
        return X, _safe_indexing(self.y, rows)

    def params_of(self, split: int, which: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters with one entry a row, for those rows; others are handed on as they are."""
        rows = getattr(self, which)[split]
        return dict(_check_method_params(self.X, params=params, indices=rows))


def read_data(X: Any, y: Any, splits: Sequence[Any], with_train: bool = False) -> Data:
    """The rows and labels, which scikit-learn has made indexable, and the splits."""
    labels = column_or_1d(y)
    classes, codes = np.unique(labels, return_inverse=True)
    if not splits:
        raise InputError(
            "No fits were performed: cv has no folds. Was the CV iterator empty? Were there no "
            "candidates?"
        )
    n = len(labels)
    train = tuple(_numbers(train, n) for train, _ in splits)
    test = tuple(_numbers(test, n) for _, test in splits)
    return Data(X, y, labels, classes, codes.astype(np.intp), train, test, with_train)


def copy_of_rows(X: Any) -> Any:
    """All rows, as a new object of the same kind."""
    return _safe_indexing(X, np.arange(_num_samples(X)))


def _numbers(rows: Any, n: int) -> IntArray:
    """Row numbers, from numbers (negative ones count from the end) or a mask."""
    return np.arange(n, dtype=np.intp)[np.asarray(rows)]


def as_numbers(values: Iterable[Any] | None, n: int) -> NDArray[np.float64] | None:
    """Sample weights as an array; None if there are none, or if they are no such thing."""
    if values is None:
        return None
    array = np.asarray(values, dtype=float)
    if array.shape != (n,) or not np.isfinite(array).all():
        raise InputError(f"sample_weight must be {n} finite numbers, one for each row")
    return array
