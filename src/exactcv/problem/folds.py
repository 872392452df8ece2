"""Folds as index arrays into one kernel matrix, and how to make them from ``cv``."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import InputError, InputTypeError
from ..runtime.user_line import split_at_user_line, user_level
from ..types import BoolArray, IntArray

if TYPE_CHECKING:
    from sklearn.model_selection import KFold, StratifiedKFold

__all__ = [
    "Folds",
    "complement",
    "folds_among",
    "folds_of_rows",
    "holds_pairs",
    "leave_one_out_folds",
    "make_folds",
    "rises",
]


@dataclass(frozen=True)
class Folds:
    """For each fold the rows it does not train on, and the rows it is tested on.

    The two differ when the caller's training sets do not fill up what the test sets leave.
    ``pair_rows`` and ``pair_folds`` list every (row, fold) pair that is tested, fold by fold:
    all left-out results are stored along that axis.

    ``whole_to_part``, where given, is what lambda needs to know of each fold: all rows over the
    training rows.  By default rows are counted here; it is given where the rows at hand are only
    some of those that count (one pair of several classes), or count by their weight.
    """

    n: int
    left_out: Sequence[IntArray]
    test: Sequence[IntArray]
    whole_to_part: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.test)

    @cached_property
    def leave_one_out(self) -> bool:
        """Does every fold leave out exactly one row (and test on that row alone)?"""
        if self.whole_to_part is not None:  # blocks, of which this is but a part
            return False
        if isinstance(self.test, _Singles):
            return True
        return len(self) > 0 and all(
            len(out) == 1 and len(test) == 1 and out[0] == test[0]
            for out, test in zip(self.left_out, self.test, strict=True)
        )

    @cached_property
    def every_row_alone(self) -> bool:
        """Does fold j leave out row j, for all rows?"""
        rows = self.pair_rows
        return self.leave_one_out and len(rows) == self.n and bool((np.diff(rows) == 1).all())

    def part(self, folds: IntArray) -> Folds:
        """Some of the folds."""
        ratio = None if self.whole_to_part is None else self.whole_to_part[folds]
        left_out = tuple(self.left_out[f] for f in folds)
        return Folds(self.n, left_out, tuple(self.test[f] for f in folds), ratio)

    def moved(self, place: IntArray) -> Folds:
        """The same folds where row i stands at place[i]."""
        if isinstance(self.test, _Singles):
            return folds_of_rows(self.n, place[self.test.rows])
        left_out = tuple(np.sort(place[rows]) for rows in self.left_out)
        return Folds(self.n, left_out, tuple(place[r] for r in self.test), self.whole_to_part)

    @cached_property
    def pair_rows(self) -> IntArray:
        return _joined(self.test)

    @cached_property
    def offsets(self) -> IntArray:
        """Fold f owns the pairs offsets[f] : offsets[f + 1]."""
        return _offsets(self.test)

    @cached_property
    def out_rows(self) -> IntArray:
        """The rows that are left out, fold by fold."""
        return _joined(self.left_out)

    @cached_property
    def out_offsets(self) -> IntArray:
        """Fold f leaves out ``out_rows[out_offsets[f] : out_offsets[f + 1]]``."""
        return _offsets(self.left_out)

    def ratio(self, fold: int) -> float:
        """All rows over the training rows of this fold, as lambda counts them."""
        return float(self.ratios[fold])

    @cached_property
    def ratios(self) -> NDArray[np.float64]:
        """The same of every fold."""
        if self.whole_to_part is not None:
            return self.whole_to_part
        return np.asarray(self.n / (self.n - np.diff(self.out_offsets)))

    def removed(self, mask: BoolArray) -> IntArray:
        """How many of the rows in ``mask`` each fold leaves out."""
        counts = np.concatenate([[0], np.cumsum(mask[self.out_rows])])
        return np.asarray(np.diff(counts[self.out_offsets]))

    @cached_property
    def pair_folds(self) -> IntArray:
        return np.repeat(np.arange(len(self)), np.diff(self.offsets)).astype(np.intp)


class _Singles(Sequence[IntArray]):
    """Fold k has row ``rows[k]`` alone.

    Made when asked for, since millions of arrays would be too many.
    """

    def __init__(self, rows: IntArray):
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, fold: Any) -> Any:
        if isinstance(fold, slice):
            return tuple(self.rows[fold, None])
        return self.rows[fold, None]

    def __iter__(self) -> Iterator[IntArray]:
        return iter(self.rows[:, None])


class _Blocks(tuple[IntArray, ...]):
    """Blocks of one array, ``rows``, which need not be put together a second time."""

    rows: IntArray

    @classmethod
    def of(cls, parts: Sequence[IntArray]) -> _Blocks:
        rows = np.concatenate(parts)
        blocks = cls(np.split(rows, _offsets(parts)[1:-1]))
        blocks.rows = rows
        return blocks


def _joined(parts: Sequence[IntArray]) -> IntArray:
    if isinstance(parts, (_Singles, _Blocks)):
        return parts.rows
    return np.concatenate(parts) if len(parts) else np.zeros(0, dtype=np.intp)


def _offsets(parts: Sequence[IntArray]) -> IntArray:
    if isinstance(parts, _Singles):
        return np.arange(len(parts) + 1, dtype=np.intp)
    return np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.intp)


def rises(rows: IntArray) -> bool:
    """Are the row numbers in order, none twice?"""
    return bool((rows[1:] > rows[:-1]).all())


def complement(rows: IntArray, n: int) -> IntArray:
    """All other rows.

    Examples
    --------
    >>> complement(np.array([1, 3]), 5)
    array([0, 2, 4])
    """
    others = np.ones(n, dtype=bool)
    others[rows] = False
    return np.flatnonzero(others)


def leave_one_out_folds(n: int) -> Folds:
    """One fold a row.

    Examples
    --------
    >>> tuple(leave_one_out_folds(3).test)
    (array([0]), array([1]), array([2]))
    """
    return folds_of_rows(n, np.arange(n, dtype=np.intp))


def folds_of_rows(n: int, rows: IntArray) -> Folds:
    """A fold for each of some of n rows, which leaves out that row alone."""
    single = _Singles(rows)
    return Folds(n=n, left_out=single, test=single)


def make_folds(
    cv: Any,
    X: Any,
    y: NDArray[Any],
    groups: Any = None,
    random_state: Any = None,
    *,
    stratify: bool = True,
    **more: Any,
) -> Folds:
    """Folds from "loo", a number, a splitter or an iterable of (train, test) pairs.

    Parameters
    ----------
    cv : "loo", int, splitter or iterable
        An int k means ``StratifiedKFold(k)``, shuffled only if ``random_state`` is given; None
        means 5, as in scikit-learn.  Pairs hold row numbers or boolean masks.
    stratify : bool
        Without it an int k means ``KFold(k)``: numbers have no classes to keep in proportion.
    X, y, groups, **more : array-like
        Handed to the splitter.
    random_state : int, RandomState or None

    Examples
    --------
    >>> import numpy as np
    >>> folds = make_folds([([0, 1, 2], [3]), ([2, 3], [0])], None, np.array([0, 1, 0, 1]))
    >>> folds.left_out
    (array([3]), array([0, 1]))
    """
    n = len(y)
    if isinstance(cv, str):
        if cv != "loo":
            raise InputError(f"cv={cv!r} is not known; {_VALID_CV}")
        if groups is not None:
            _warn_of_groups(cv)
        return leave_one_out_folds(n)
    # Imported when first needed, for it takes most of a second.
    from sklearn.model_selection import LeaveOneOut, StratifiedKFold

    if cv is None or isinstance(cv, numbers.Integral):
        cv = _k_fold(5 if cv is None else cv, n, random_state, stratify)
    if isinstance(cv, (LeaveOneOut, StratifiedKFold)) and groups is not None:
        _warn_of_groups(cv)
        groups = None
    if isinstance(cv, LeaveOneOut):
        return leave_one_out_folds(n)
    if isinstance(cv, type):
        raise InputTypeError(f"cv is the class {cv.__name__}; make one: {cv.__name__}(...)")
    if hasattr(cv, "split"):
        return _collect(_splits(cv, X, y, groups, more), n)
    if not isinstance(cv, Iterable):
        raise InputTypeError(f"cv has type {type(cv).__name__}; {_VALID_CV}")
    return _collect(cv, n)


def folds_among(
    keep: IntArray,
    n: int,
    cv: Any,
    X: Any,
    y: NDArray[Any],
    groups: Any = None,
    random_state: Any = None,
    **more: Any,
) -> Folds:
    """Folds of the rows ``keep`` of n, as if the others had never been there.

    X, y, groups and the like are those of the rows ``keep``; row numbers that the user gave count
    all n rows, and are renumbered.

    Examples
    --------
    >>> import numpy as np
    >>> pairs = [([0, 1, 2], [3]), ([0, 2, 3], [1])]
    >>> folds_among(np.array([0, 2, 3]), 4, pairs, None, np.array([0, 1, 1])).test
    (array([2]),)
    """
    if len(keep) < n and holds_pairs(cv):
        return _renumbered(make_folds(cv, None, np.zeros(n)), keep)
    return make_folds(cv, X, y, groups, random_state, **more)


def holds_pairs(cv: Any) -> bool:
    """Is it an iterable of row numbers, rather than a rule that makes them?"""
    return not (cv is None or isinstance(cv, (str, numbers.Integral)) or hasattr(cv, "split"))


def _renumbered(folds: Folds, keep: IntArray) -> Folds:
    """The folds of the rows ``keep``; those that test none of them are dropped."""
    place = np.full(folds.n, -1, dtype=np.intp)
    place[keep] = np.arange(len(keep))
    left_out, test = [], []
    for out, rows in zip(folds.left_out, folds.test, strict=True):
        new = place[rows]
        if (new >= 0).any():
            left_out.append(place[out][place[out] >= 0])
            test.append(new[new >= 0])
    if not test:
        raise InputError("no fold of cv tests a row with positive weight")
    return Folds(len(keep), tuple(left_out), tuple(test))


_VALID_CV = (
    "use 'loo', an int >= 2, a scikit-learn splitter, or an iterable of (train, test) row numbers"
)


def _warn_of_groups(cv: Any) -> None:
    warnings.warn(
        f"groups is ignored by cv={cv!r}; use a group splitter such as GroupKFold or "
        "LeaveOneGroupOut to keep groups together",
        UserWarning,
        stacklevel=user_level(),
    )


def _k_fold(cv: Any, n: int, random_state: Any, stratify: bool) -> StratifiedKFold | KFold:
    from sklearn.model_selection import KFold, StratifiedKFold

    if isinstance(cv, bool) or not 2 <= cv <= n:
        raise InputError(
            f"cv={cv!r}: the number of folds must be between 2 and the number of rows, {n}"
        )
    kind = StratifiedKFold if stratify else KFold
    return kind(int(cv), shuffle=random_state is not None, random_state=random_state)


def _splits(cv: Any, X: Any, y: NDArray[Any], groups: Any, more: dict[str, Any]) -> Iterable[Any]:
    """The splitter's pairs; its own complaints become ours."""
    try:
        yield from split_at_user_line(cv.split(X, y, groups, **more))
    except ValueError as error:
        raise InputError(f"cv={cv!r} cannot split these data: {error}") from error


def _collect(pairs: Iterable[Any], n: int) -> Folds:
    left_out: list[IntArray | None] = []  # None: the rows that are tested, in their order
    tests: list[IntArray] = []
    for fold, pair in enumerate(pairs):
        try:
            train, test = pair
        except (TypeError, ValueError) as error:
            raise InputTypeError(f"fold {fold} of cv is not a (train, test) pair") from error
        train = _row_numbers(train, n, fold, "training")
        test = _row_numbers(test, n, fold, "test")
        uses = np.bincount(train, minlength=n)
        if uses.max() > 1:
            raise InputError(
                f"fold {fold} of cv trains on row {int(uses.argmax())} more than once; "
                "give repeated rows a sample_weight instead"
            )
        if uses[test].any():
            raise InputError(
                f"fold {fold} of cv trains on its own test row {int(test[uses[test] > 0][0])}; "
                "its error would be too good: make the two sets disjoint"
            )
        out = np.flatnonzero(uses == 0)
        left_out.append(None if np.array_equal(out, test) else out)
        tests.append(test)
    if not tests:
        raise InputError("cv has no folds")
    # Of millions of rows a list more or less counts: where folds leave out what they test, both
    # are one.
    blocks = _Blocks.of(tests)
    parts = zip(left_out, blocks, strict=True)
    return Folds(n, tuple(test if out is None else out for out, test in parts), blocks)


def _row_numbers(rows: Any, n: int, fold: int, part: str) -> IntArray:
    """One side of a split as an index array."""
    rows = np.asarray(rows)
    where = f"the {part} set of fold {fold} of cv"
    if rows.ndim != 1:
        raise InputError(f"{where} has shape {rows.shape}; it must be one-dimensional")
    if rows.dtype == bool:
        if len(rows) != n:
            raise InputError(f"{where} is a mask of length {len(rows)} for {n} rows")
        rows = np.flatnonzero(rows)
    if len(rows) == 0:
        raise InputError(f"{where} is empty")
    if not np.issubdtype(rows.dtype, np.integer):
        raise InputTypeError(f"{where} has dtype {rows.dtype}; it must hold row numbers (integers)")
    outside = (rows < 0) | (rows >= n)
    if outside.any():
        raise InputError(f"{where} contains {int(rows[outside][0])}; row numbers are 0 to {n - 1}")
    return rows.astype(np.intp)
