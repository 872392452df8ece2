"""Reading folds, each of which must leave something to train on; rows without weight are absent."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import InputError
from ..runtime.user_line import user_level
from ..types import FloatArray, IntArray
from .checks import check_seed
from .folds import Folds, folds_among

if TYPE_CHECKING:
    from .inputs import Data

__all__ = ["Present", "check_folds", "check_some_training", "check_training_parts", "read_groups"]


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
        f"class {label!r} has one row only, row {row} (from 0): when that is left out, {then}",
        UserWarning,
        stacklevel=user_level(),
    )
