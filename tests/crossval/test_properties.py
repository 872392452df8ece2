"""What must not change the answer, and how it changes when it must."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from _oracle import random_small
from _problems import FloatArray, Small
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold

import exactcv

CS = [1e-3, 0.05, 1.0, 20.0]

settings.register_profile("fewer", settings.get_profile("fixed"), max_examples=60)
settings.load_profile("fewer")

seeds = st.integers(0, 10_000)
switches = st.booleans()
schemes = st.sampled_from(["loo", "pairs"])


def problem(seed: int) -> Small:
    return random_small(np.random.default_rng(seed), largest=30)


def pairs_of(n: int) -> list[tuple[Any, Any]]:
    """Three folds with one row of each class at least on either side (rows 0 to 3 see to that)."""
    rows = np.arange(n)
    return [(rows[rows % 3 != k], rows[rows % 3 == k]) for k in range(3)]


def both_classes(small: Small, pairs: list[tuple[Any, Any]]) -> bool:
    used = [small.y[train][small.weight[train] > 0] for train, _ in pairs]
    return all(len(np.unique(y)) == 2 for y in used)


def cross_validate(small: Small, cv: Any = "loo", Cs: Any = CS, **options: Any) -> Any:
    return exactcv.cross_validate(
        small.K,
        small.y,
        kernel="precomputed",
        sample_weight=small.weight,
        Cs=Cs,
        cv=cv,
        output="decision",
        **options,
    )


def folds_for(small: Small, scheme: str) -> Any:
    pairs = pairs_of(len(small.y))
    return pairs if scheme == "pairs" and both_classes(small, pairs) else "loo"


def same(a: FloatArray, b: FloatArray) -> bool:
    """To 1e-6: the kernels are of every condition, and C is up to 20.

    Values of rows of weight zero, which are as good as absent, are NaN on both sides.
    """
    near = np.abs(a - b) <= 1e-6 * np.maximum(1.0, np.abs(b))
    return bool((near | (np.isnan(a) & np.isnan(b))).all())


@given(seeds, switches, schemes)
def test_label_flip(seed: int, fit_intercept: bool, scheme: str) -> None:
    small = problem(seed)
    cv = folds_for(small, scheme)
    one = cross_validate(small, cv, fit_intercept=fit_intercept)
    two = cross_validate(small._replace(y=-small.y), cv, fit_intercept=fit_intercept)
    assert same(one.decision, -two.decision)
    assert same(one.objective, two.objective)


@given(seeds, switches, schemes)
def test_row_permutation(seed: int, fit_intercept: bool, scheme: str) -> None:
    small = problem(seed)
    n = len(small.y)
    cv = folds_for(small, scheme)
    order = np.random.default_rng(seed).permutation(n)
    place = np.argsort(order)
    shuffled = Small(
        np.ascontiguousarray(small.K[np.ix_(order, order)]), small.y[order], small.weight[order]
    )
    moved = cv if cv == "loo" else [(place[train], place[test]) for train, test in cv]
    one = cross_validate(small, cv, fit_intercept=fit_intercept)
    two = cross_validate(shuffled, moved, fit_intercept=fit_intercept)
    assert same(two.decision[:, place], one.decision)


@given(seeds, switches)
def test_weight_two_is_the_row_twice(seed: int, fit_intercept: bool) -> None:
    """Both copies on the same side of every fold; their coefficients add up to the one row's f."""
    small = problem(seed)
    n = len(small.y)
    pairs = pairs_of(n)
    if not both_classes(small, pairs):
        return
    twice = np.random.default_rng(seed).choice(n, n // 3, replace=False)
    weight = small.weight.copy()
    weight[twice] *= 2
    every = np.r_[np.arange(n), twice]
    copied = Small(
        np.ascontiguousarray(small.K[np.ix_(every, every)]), small.y[every], small.weight[every]
    )
    both_sides = [
        (np.flatnonzero(np.isin(every, train)), np.flatnonzero(np.isin(every, test)))
        for train, test in pairs
    ]
    one = cross_validate(small._replace(weight=weight), pairs, fit_intercept=fit_intercept)
    two = cross_validate(copied, both_sides, fit_intercept=fit_intercept)
    assert same(two.decision, one.decision[:, every])
    together = np.array([np.bincount(every, coef, minlength=n) for coef in two.coef])
    assert same(together @ small.K, one.coef @ small.K)
    assert same(two.intercept, one.intercept)


@given(seeds, schemes, st.sampled_from([0.01, 1.0, 50.0]))
def test_constant_added_to_the_kernel(seed: int, scheme: str, constant: float) -> None:
    """With an intercept f only trades it for b, which costs nothing."""
    small = problem(seed)
    cv = folds_for(small, scheme)
    one = cross_validate(small, cv)
    two = cross_validate(small._replace(K=small.K + constant), cv)
    assert same(one.decision, two.decision)
    assert same(one.objective, two.objective)


@given(seeds, switches)
def test_leave_one_out_is_n_fold(seed: int, fit_intercept: bool) -> None:
    small = problem(seed)
    n = len(small.y)
    one = cross_validate(small, "loo", fit_intercept=fit_intercept)
    used = np.flatnonzero(small.weight)
    two = cross_validate(small, KFold(len(used)), fit_intercept=fit_intercept)
    assert two.leave_one_out and np.array_equal(one.decision, two.decision, equal_nan=True)
    # One fold more, of two rows, and it is no longer leave-one-out: paths instead of steps.
    rows = np.arange(n)
    pairs = [(np.delete(rows, j), rows[j : j + 1]) for j in rows]
    pairs.append((np.setdiff1d(rows, used[[0, -1]]), used[:1]))
    if both_classes(small, pairs):
        three = cross_validate(small, pairs, fit_intercept=fit_intercept)
        assert not three.leave_one_out
        assert same(three.pair_decision[:, : len(used)], one.decision[:, used])


@given(seeds, switches, schemes)
def test_order_of_the_grid(seed: int, fit_intercept: bool, scheme: str) -> None:
    small = problem(seed)
    cv = folds_for(small, scheme)
    order = np.random.default_rng(seed).permutation(len(CS))
    one = cross_validate(small, cv, fit_intercept=fit_intercept)
    two = cross_validate(small, cv, np.array(CS)[order], fit_intercept=fit_intercept)
    assert same(two.decision, one.decision[order])
    assert np.array_equal(two.Cs, np.array(CS)[order])


@given(seeds, switches, schemes, st.sampled_from(["exact", "refit"]))
@settings(max_examples=40)
def test_number_of_threads(seed: int, fit_intercept: bool, scheme: str, method: str) -> None:
    """The same bits."""
    small = problem(seed)
    cv = folds_for(small, scheme)
    options = {"fit_intercept": fit_intercept, "method": method}
    one = cross_validate(small, cv, n_jobs=1, **options)
    two = cross_validate(small, cv, n_jobs=2, **options)
    assert np.array_equal(one.decision, two.decision, equal_nan=True)
    for name in ("coef", "intercept", "objective", "pair_wrong"):
        assert np.array_equal(getattr(one, name), getattr(two, name))
    assert np.array_equal(one.certificate.kkt, two.certificate.kkt)
    assert np.array_equal(one.certificate.gap, two.certificate.gap)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one processor")
@pytest.mark.parametrize("output", ["error", "decision"])
@pytest.mark.parametrize("cv", ["loo", 10])
def test_number_of_threads_on_a_larger_problem(cv: Any, output: str) -> None:
    X, y = exactcv.datasets.make_mixture(300, 10, random_state=0)
    results = [
        exactcv.cross_validate(X, y, cv=cv, lambdas=20, output=output, n_jobs=n_jobs)
        for n_jobs in (1, 2, 3)
    ]
    for other in results[1:]:
        assert np.array_equal(results[0].pair_wrong, other.pair_wrong)
        assert np.array_equal(results[0].coef, other.coef)
        assert np.array_equal(results[0].certificate.kkt, other.certificate.kkt)
        assert np.array_equal(results[0].certificate.gap, other.certificate.gap)
        if output == "decision":
            assert np.array_equal(results[0].decision, other.decision)
