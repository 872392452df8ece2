"""Nested cross-validation of numbers equals a double loop of refits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _numbers import wave
from sklearn.metrics import r2_score
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut
from sklearn.svm import SVR

import exactcv
from exactcv import SVRCV, nested_cross_validate
from exactcv.crossval import nested_numbers
from exactcv.exceptions import InputError, Interrupted, UnsupportedError
from exactcv.problem.intervals import mean_interval, resampled_count

CS, GAMMAS, EPSILONS = [0.3, 3.0], [0.2, 1.0], [0.05, 0.3]


def splitter(folds: Any) -> Any:
    if folds == "loo":
        return LeaveOneOut()
    return KFold(folds) if isinstance(folds, int) else folds


def refitted(X: Any, y: Any, w: Any, train: Any, test: Any, point: Any) -> np.ndarray:
    C, gamma, epsilon = point
    model = SVR(C=C, gamma=gamma, epsilon=epsilon, tol=1e-10)
    return model.fit(X[train], y[train], w[train]).predict(X[test])


def double_loop(
    X: Any, y: Any, outer: Any, cv: Any, weight: Any = None, groups: Any = None
) -> tuple[np.ndarray, list[tuple[float, float, float]]]:
    """Left-out predictions, and the chosen points."""
    w = np.ones(len(y)) if weight is None else weight
    grid = [(C, gamma, epsilon) for gamma in GAMMAS for epsilon in EPSILONS for C in CS]
    predicted, chosen = [], []
    for train, test in splitter(outer).split(X, y, groups):
        among = None if groups is None else groups[train]
        folds = list(splitter(cv).split(X[train], y[train], among))
        tests = np.concatenate([train[t] for _, t in folds])
        scores = []
        for point in grid:
            values = [refitted(X, y, w, train[s], train[t], point) for s, t in folds]
            scores.append(r2_score(y[tests], np.concatenate(values), sample_weight=w[tests]))
        best = grid[int(np.argmax(scores))]
        chosen.append(best)
        predicted.append(refitted(X, y, w, train, test, best))
    return np.concatenate(predicted), chosen


@pytest.mark.parametrize(("n", "outer", "cv"), [(12, "loo", "loo"), (24, 4, 3), (20, 3, "loo")])
def test_equals_a_double_loop_of_refits(n: int, outer: Any, cv: Any) -> None:
    X, y = wave(n)
    expected, chosen = double_loop(X, y, outer, cv)
    model = SVRCV(Cs=CS, gamma=GAMMAS, epsilon=EPSILONS, cv=cv)
    found = model.nested_score(X, y, outer=outer)
    assert not hasattr(model, "C_")  # it stays as it is
    np.testing.assert_array_equal(np.column_stack([found.chosen, found.epsilon]), chosen)
    np.testing.assert_allclose(found.decision, expected, atol=1e-4)  # single precision, theirs
    off = np.abs(found.decision - found.y)
    assert found.error == pytest.approx(off.mean())
    assert found.r2 == pytest.approx(r2_score(found.y, found.decision)) == found.score
    assert found.rmse == pytest.approx(np.sqrt((off**2).mean()))
    trained = n - n / found.n_folds
    tests = resampled_count(n, trained)
    assert found.interval == pytest.approx(mean_interval(off.mean(), off.var(), tests))
    assert found.optimism == pytest.approx(found.inner.mean() - found.score)
    assert found.certificate.exact


def test_weights_groups_and_duplicates() -> None:
    X, y = wave(24)
    X[6:10] = X[:4]
    groups, weight = np.arange(24) // 4, np.random.default_rng(0).integers(1, 4, 24).astype(float)
    outer, cv = GroupKFold(3), GroupKFold(2)
    expected, chosen = double_loop(X, y, outer, cv, weight, groups)
    found = nested_cross_validate(
        X, y, loss="epsilon_insensitive", epsilon=EPSILONS, Cs=CS, gammas=GAMMAS, outer=outer,
        cv=cv, groups=groups, sample_weight=weight,
    )  # fmt: skip
    np.testing.assert_array_equal(np.column_stack([found.chosen, found.epsilon]), chosen)
    np.testing.assert_allclose(found.decision, expected, atol=1e-4)
    rows = found.test_row
    assert found.error == pytest.approx(weight[rows] @ np.abs(expected - y[rows]) / weight.sum(),
                                        abs=1e-4)  # fmt: skip


def test_rows_of_weight_zero_are_absent_and_a_precomputed_kernel_is_the_same() -> None:
    X, y = wave(20)
    weight = np.ones(20)
    weight[[3, 8]] = 0.0
    kept = np.flatnonzero(weight)
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(-1))
    model = SVRCV(Cs=CS, gamma=0.5, cv=3)
    found = model.nested_score(X, y, outer=4, sample_weight=weight)
    same = model.nested_score(X[kept], y[kept], outer=4)
    other = SVRCV(Cs=CS, kernel="precomputed", cv=3).nested_score(K, y, 4, weight)
    np.testing.assert_allclose(found.decision, same.decision, atol=1e-8)
    np.testing.assert_allclose(found.decision, other.decision, atol=1e-8)
    np.testing.assert_array_equal(found.test_row, kept[same.test_row])


def test_words_and_bad_input() -> None:
    X, y = wave(20)
    model = SVRCV(Cs=CS, gamma=0.5, epsilon=EPSILONS, cv=3, scoring="neg_mean_absolute_error")
    found = model.nested_score(X, y, outer=4)
    assert found.score == pytest.approx(-found.error)
    text = found.summary()
    assert "mean absolute error of 20 tests" in text and "epsilon:" in text and "R2" in text
    assert "Nadeau" in found.methods_text() and "mean absolute error" in repr(found)
    with pytest.raises(InputError, match="LeaveOneGroupOut"):
        model.nested_score(X, y, groups=np.arange(20) // 2)
    with pytest.raises(InputError, match=r"outer fold 0 leaves 1 row.*outer=5"):
        model.nested_score(X, y, outer=[([0], np.arange(1, 20))])
    anything: Any = exactcv.nested_cross_validate
    with pytest.raises(UnsupportedError, match="epsilon_insensitive"):
        anything(X, y, loss="pinball")
    with pytest.raises(InputError, match="sample_weight"):
        anything(X, y, loss="epsilon_insensitive", class_weight="balanced")


def test_interrupted_brings_the_folds_that_are_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = wave(20)
    whole = SVRCV(Cs=CS, gamma=0.5, cv=3).nested_score(X, y, outer=4)
    real, calls = nested_numbers._tuned_without, []

    def stopping(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(nested_numbers, "_tuned_without", stopping)
    with pytest.raises(Interrupted, match="2 of 4 outer folds") as stop:
        SVRCV(Cs=CS, gamma=0.5, cv=3).nested_score(X, y, outer=4)
    partial = stop.value.partial
    assert partial.n_folds == 2
    np.testing.assert_array_equal(partial.decision, whole.decision[: len(partial.decision)])
