"""Small pairs at one C, solved and judged together, against the way of all problems."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import GroupKFold, StratifiedKFold

from exactcv.crossval import one_vs_one, small_pairs
from exactcv.crossval.classes import ManyClasses
from exactcv.crossval.one_vs_one import PairResults, cross_validate_pairs
from exactcv.crossval.run import KernelRows, Plan
from exactcv.judge.certificate import judge_for, relative_gap
from exactcv.judge.ledger import HOW
from exactcv.judge.stacked import Stacked
from exactcv.problem.folds import leave_one_out_folds, make_folds
from exactcv.problem.grid import make_grid
from exactcv.problem.kernels import Distances, Kernel, kernel_matrix
from exactcv.problem.losses import hinge
from exactcv.problem.problem import Problem
from exactcv.runtime.threads import Workers


def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X[:200] / 16, y[:200]
    X, y = load_iris(return_X_y=True)  # two rows of which are equal
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def many(name: str, C: float = 1.0, cv: Any = 5, lambdas: Any = None, **more: Any) -> ManyClasses:
    X, y = data(name)
    K, _ = kernel_matrix(X, Kernel("rbf", gamma=1.0 / X.shape[1]))
    groups = np.arange(len(y)) // 12 if isinstance(cv, GroupKFold) else None
    grid = make_grid(None if lambdas else [C], lambdas, len(y))
    weight = more.pop("weight", np.ones(len(y)))
    ties = more.pop("ties_are_wrong", True)
    parts = make_folds(cv, X, y, groups)
    return ManyClasses(KernelRows(K), y.astype(np.intp), weight, parts, grid, Plan(**more), ties)


def solve(task: ManyClasses, n_threads: int = 1) -> PairResults:
    with Workers(n_threads) as workers:
        return cross_validate_pairs(task, workers)


def one_by_one(task: ManyClasses, monkeypatch: pytest.MonkeyPatch) -> PairResults:
    with monkeypatch.context() as patch:
        patch.setattr(one_vs_one, "groups_of", lambda task, pairs: [])
        return solve(task)


def assert_same(found: PairResults, expected: PairResults) -> None:
    np.testing.assert_array_equal(found.votes, expected.votes)
    np.testing.assert_array_equal(found.wrong, expected.wrong)
    if expected.decision is not None:
        assert found.decision is not None
        np.testing.assert_allclose(found.decision, expected.decision, atol=1e-8)
    for mine, other in zip(found.fits, expected.fits, strict=True):
        assert (mine.first, mine.second) == (other.first, other.second)
        np.testing.assert_array_equal(mine.rows, other.rows)
        np.testing.assert_allclose(mine.intercept, other.intercept, atol=1e-8)
        np.testing.assert_allclose(mine.coef, other.coef, atol=1e-6)
    np.testing.assert_allclose(found.at_bound, expected.at_bound)
    assert found.certificate.exact and expected.certificate.exact
    assert {how: found.stats[how] for how in HOW} == {how: expected.stats[how] for how in HOW}


WEIGHTS = np.random.default_rng(0).uniform(0.0, 2.0, 150).round(1)  # some of them 0


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("iris", {}),
        ("iris", {"C": 100.0, "ties_are_wrong": False}),
        ("iris", {"C": 1e5}),
        ("iris", {"lambdas": [1e-3]}),
        ("iris", {"weight": WEIGHTS, "C": 3.0}),
        ("iris", {"fit_intercept": False}),
        ("iris", {"cv": GroupKFold(10)}),  # each fold leaves out rows of one or two classes
        ("digits", {}),
        ("digits", {"C": 1e-3, "want_decision": False}),
        ("digits", {"C": 30.0, "cv": StratifiedKFold(3)}),
    ],
)
def test_as_one_by_one(name: str, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    task = many(name, **settings)
    assert sum(map(len, small_pairs.groups_of(task, task.pairs))) == len(task.pairs)
    assert_same(solve(task), one_by_one(task, monkeypatch))


def test_two_classes_and_a_gamma_a_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data("iris")
    for keep in (y < 3, y > 0):
        task = many("iris", cv=4)
        squares = Distances(X[keep]).squares
        gammas = np.array([0.2, 0.25, 0.3, 0.22, 0.25])
        task = replace(
            task,
            rows=KernelRows(squares),
            codes=y[keep] - y[keep].min(),
            weight=np.ones(keep.sum()),
            folds=make_folds(4, X[keep], y[keep]),
            gammas=gammas,
        )
        assert_same(solve(task), one_by_one(task, monkeypatch))


def test_bits_do_not_depend_on_threads() -> None:
    task = many("digits")
    one, two = solve(task), solve(task, 2)
    np.testing.assert_array_equal(one.decision, two.decision)
    np.testing.assert_array_equal(one.certificate.gap, two.certificate.gap)


@pytest.mark.parametrize("which", ["_meets", "_own_values", "_solve"])
def test_what_misses_goes_the_way_of_all(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A figure that misses, a label that drowns in rounding, a solution by the last resort."""
    task, original = many("iris"), getattr(small_pairs, which)
    expected = one_by_one(task, monkeypatch)

    def spoilt(*given: Any) -> Any:
        if which == "_meets":
            good = original(*given)
            good[-1] = False  # a fold of the last pair
            return good
        if which == "_own_values":
            values, sound = original(*given)
            sound[0] = False
            return values, sound
        return None

    monkeypatch.setattr(small_pairs, which, spoilt)
    assert_same(solve(task), expected)


def test_what_is_not_small_or_plain_is_left_alone() -> None:
    task = many("iris")
    pairs = task.pairs
    assert not small_pairs.groups_of(many("iris", tol=1e-3), pairs)
    assert not small_pairs.groups_of(many("iris", method="refit"), pairs)
    assert not small_pairs.groups_of(replace(task, folds=leave_one_out_folds(150)), pairs)
    assert not small_pairs.groups_of(replace(task, rows=replace(task.rows, psd=False)), pairs)
    assert not small_pairs.groups_of(replace(task, grid=make_grid([1.0, 2.0], None, 150)), pairs)
    large = replace(task, codes=np.zeros(6000, dtype=np.intp))
    assert not small_pairs.groups_of(large, [(0, 0)])


def test_one_large_class_does_not_make_room_for_many_small_ones() -> None:
    """All pairs of a group take as much memory as its largest."""
    codes = np.repeat(np.arange(60), [400, *(2,) * 59])
    task = replace(many("iris"), codes=codes)
    groups, sizes = small_pairs.groups_of(task, task.pairs), np.bincount(codes)
    assert sorted(pair for group in groups for pair in group) == task.pairs
    for group in groups:
        most = max(sizes[first] + sizes[second] for first, second in group)
        assert most * len(group) * 6 <= small_pairs.GROUP


def test_stacked_figures_are_those_of_each() -> None:
    """Of problems of several sizes, kernels and training sets."""
    rng = np.random.default_rng(3)
    sets, C = Stacked.empty(4, 9), np.array([0.5, 2.0, 2.0, 30.0])
    judges = []
    for k, n in enumerate((5, 9, 9, 7)):
        y, X = np.where(np.arange(n) % 2, 1.0, -1.0), rng.normal(size=(n, 3))
        K, weight = X @ X.T, np.ones(n)
        weight[: k % 2] = 0.0
        coef = y * rng.uniform(0.0, C[k], n) * (weight > 0)
        sets.y[k, :n], sets.weight[k, :n], sets.coef[k, :n] = y, weight, coef
        sets.h[k, :n], sets.diagonal[k, :n] = K @ coef, np.diagonal(K)
        judges.append((judge_for(Problem(K, y, weight, hinge(y))), K @ coef, coef))
    found = sets.judge(C, True)
    for k, (judge, h, coef) in enumerate(judges):
        given = h[None], coef[None]
        b = judge.intercepts(*given, C[k : k + 1])
        out = judge.figures(*given, b, C[k : k + 1])[0]
        figures = found.intercept[k], found.kkt[k], found.gap[k], found.floor[k]
        expected = b[0], out[0], relative_gap(out[1], out[2]), out[3]
        np.testing.assert_allclose(figures, expected, rtol=1e-12)
