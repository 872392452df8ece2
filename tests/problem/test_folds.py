"""Folds from every kind of cv, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
)

from exactcv.exceptions import InputError, InputTypeError
from exactcv.problem.folds import leave_one_out_folds, make_folds

Y = np.tile([0, 1], 6)
X = np.zeros((12, 1))


@pytest.mark.parametrize("cv", ["loo", LeaveOneOut(), KFold(12)])
def test_leave_one_out(cv: Any) -> None:
    folds = make_folds(cv, X, Y)
    assert folds.leave_one_out
    assert folds.pair_rows.tolist() == list(range(12))
    assert folds.pair_folds.tolist() == list(range(12))


@pytest.mark.parametrize(
    "cv",
    [
        StratifiedKFold(3),
        RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
        ShuffleSplit(4, test_size=3, train_size=5, random_state=0),
    ],
)
def test_splitters_agree_with_scikit_learn(cv: Any) -> None:
    folds = make_folds(cv, X, Y)
    pairs = list(cv.split(X, Y))
    assert len(folds) == len(pairs)
    assert not folds.leave_one_out
    for left_out, test, (train, expected) in zip(folds.left_out, folds.test, pairs, strict=True):
        assert np.setdiff1d(np.arange(12), left_out).tolist() == sorted(train)
        assert test.tolist() == expected.tolist()


def test_an_int_is_stratified_and_shuffles_only_with_a_random_state() -> None:
    plain = [test.tolist() for test in make_folds(4, X, Y).test]
    assert plain == [test.tolist() for _, test in StratifiedKFold(4).split(X, Y)]
    mixed = [test.tolist() for test in make_folds(4, X, Y, random_state=3).test]
    expected = StratifiedKFold(4, shuffle=True, random_state=3).split(X, Y)
    assert mixed == [test.tolist() for _, test in expected]
    assert mixed != plain
    assert len(make_folds(None, X, Y)) == 5


def test_groups_reach_the_splitter() -> None:
    groups = np.repeat([0, 1, 2], 4)
    folds = make_folds(LeaveOneGroupOut(), X, Y, groups)
    assert [out.tolist() for out in folds.left_out] == [
        list(range(k, k + 4)) for k in range(0, 12, 4)
    ]
    with pytest.raises(InputError, match="groups"):
        make_folds(GroupKFold(2), X, Y)


@pytest.mark.parametrize("cv", ["loo", 3, StratifiedKFold(3)])
def test_groups_that_are_not_used_warn(cv: Any) -> None:
    with pytest.warns(UserWarning, match="groups is ignored"):
        make_folds(cv, X, Y, np.zeros(12))


def test_pairs_may_overlap_and_be_partial() -> None:
    folds = make_folds(iter([([0, 1, 2], [5, 4]), ([0, 1], [5])]), X, Y)
    assert folds.left_out[0].tolist() == list(range(3, 12))
    assert folds.pair_rows.tolist() == [5, 4, 5]
    assert folds.pair_folds.tolist() == [0, 0, 1]
    assert folds.offsets.tolist() == [0, 2, 3]


def test_masks_are_converted() -> None:
    test = np.arange(12) < 3
    folds = make_folds([(~test, test)], X, Y)
    assert folds.left_out[0].tolist() == folds.test[0].tolist() == [0, 1, 2]


def test_leave_one_out_is_structural() -> None:
    everything_else = np.delete(np.arange(12), 4)
    assert make_folds([(everything_else, [4])], X, Y).leave_one_out
    assert not make_folds([(everything_else[:-1], [4])], X, Y).leave_one_out
    assert leave_one_out_folds(5).leave_one_out


@pytest.mark.parametrize(
    ("cv", "kind", "message"),
    [
        ("lou", InputError, "'loo'"),
        (1, InputError, "between 2 and the number of rows, 12"),
        (13, InputError, "between 2"),
        (True, InputError, "between 2"),
        (2.5, InputTypeError, "type float"),
        (7, InputError, "cannot split"),
        ([], InputError, "no folds"),
        ([3], InputTypeError, "fold 0 .* pair"),
        ([([0, 1], [2]), ([0, 1], [])], InputError, "test set of fold 1 of cv is empty"),
        ([([], [2])], InputError, "training set of fold 0 of cv is empty"),
        ([([0, 12], [2])], InputError, "contains 12; row numbers are 0 to 11"),
        ([([0, 1], [-1])], InputError, "contains -1"),
        ([([0.0, 1.0], [2])], InputTypeError, "integers"),
        ([(["a", "b"], [2])], InputTypeError, "integers"),
        ([([[0], [1]], [2])], InputError, "one-dimensional"),
        ([([True, False], [2])], InputError, "mask of length 2 for 12"),
        ([([0, 0], [2])], InputError, "row 0 more than once"),
        ([([0, 1], [3, 1])], InputError, "its own test row 1"),
    ],
)
def test_bad_folds(cv: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        make_folds(cv, X, Y)
