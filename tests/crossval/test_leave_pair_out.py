"""Leave-pair-out equals refits, pair by pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import auc as area
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVC

from exactcv import cross_validate, leave_pair_out
from exactcv.exceptions import InputError, InputIndexError, UnsupportedError

CS = [0.3, 2.0]


def data(n: int, seed: int = 0, shift: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.r_[np.zeros(n // 3, int), np.ones(n - n // 3, int)]
    return rng.normal(size=(n, 2)) + shift * y[:, None], y


def refits(X: np.ndarray, y: np.ndarray, C: float, gamma: float, weight: Any = None) -> np.ndarray:
    """(n, n): does row i win against row j, in the model without both?"""
    n = len(y)
    w = np.ones(n) if weight is None else weight
    won = np.full((n, n), np.nan)
    for i in range(n):
        for j in range(i):
            train = np.setdiff1d(np.arange(n), [i, j])
            model = SVC(C=C, gamma=gamma, tol=1e-12).fit(X[train], y[train], w[train])
            a, b = model.decision_function(X[[i, j]])
            won[i, j] = 0.5 if abs(a - b) <= 1e-9 else float(a > b)
            won[j, i] = 1.0 - won[i, j]
    return won


@pytest.mark.parametrize("weighted", [False, True])
def test_equals_refits_pair_by_pair(weighted: bool) -> None:
    X, y = data(14)
    X[5] = X[0]  # the same row in both classes
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 14) if weighted else None
    found = leave_pair_out(X, y, gamma=0.7, Cs=CS, sample_weight=weight)
    for l, C in enumerate(CS):
        won = refits(X, y, C, 0.7, weight)
        between = won[np.ix_(y == 1, y == 0)]
        assert found.auc[l] == pytest.approx(between.mean(), abs=1e-12)
        by_row = between.mean(axis=1).var(ddof=1) / 10 + between.mean(axis=0).var(ddof=1) / 4
        assert found.se[l] == pytest.approx(np.sqrt(by_row), abs=1e-12)
        assert found.wins is not None
        np.testing.assert_allclose(found.wins[l], np.nansum(won, axis=1), atol=1e-12)
        fpr, tpr, _ = found.roc(l)
        expected = roc_auc_score(y, np.nansum(won, axis=1))
        assert area(fpr, tpr) == pytest.approx(expected, abs=1e-12)
    assert found.certificate.exact
    assert found.n_pairs == 40


def test_the_pooled_AUC_is_that_of_leave_one_out() -> None:
    X, y = data(16)
    found = leave_pair_out(X, y, Cs=CS, tournament=False)
    values = cross_validate(X, y, Cs=CS, output="decision").decision
    assert values is not None
    np.testing.assert_allclose(found.pooled_auc, [roc_auc_score(y, v) for v in values])
    assert found.wins is None
    with pytest.raises(InputError, match="tournament=True"):
        found.roc()


def test_few_pairs_at_a_time_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = data(12)
    whole = leave_pair_out(X, y, Cs=CS)
    monkeypatch.setattr("exactcv.crossval.pair_wins.VALUES", 28)
    parts = leave_pair_out(X, y, Cs=CS, method="refit")
    np.testing.assert_array_equal(parts.auc, whole.auc)
    np.testing.assert_array_equal(parts.wins, whole.wins)


def test_rows_of_weight_zero_are_absent() -> None:
    X, y = data(13)
    weight = np.ones(13)
    weight[[1, 7]] = 0.0
    kept = np.flatnonzero(weight)
    found = leave_pair_out(X, y, gamma=0.7, Cs=CS, sample_weight=weight)
    same = leave_pair_out(X[kept], y[kept], gamma=0.7, Cs=CS)
    np.testing.assert_array_equal(found.auc, same.auc)
    assert found.wins is not None
    assert np.isnan(found.wins[:, [1, 7]]).all()
    np.testing.assert_array_equal(found.roc(0)[1], same.roc(0)[1])


def test_on_noise_one_half_while_the_pooled_one_is_far_below() -> None:
    pairs, pooled = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(16, 3)), np.arange(16) % 2
        found = leave_pair_out(X, y, Cs=[0.1], tournament=False)
        pairs.append(found.auc[0])
        pooled.append(found.pooled_auc[0])
    # 20 draws with a standard deviation of about 0.2 each.
    assert abs(np.mean(pairs) - 0.5) < 0.15
    assert np.mean(pooled) < np.mean(pairs) - 0.1


def test_words_and_choice() -> None:
    found = leave_pair_out(*data(14), Cs=[5.0, 0.5])
    text = " ".join(found.summary().split())
    assert text.startswith("Leave-pair-out over 2 grid points, 40 pairs")
    assert f"largest AUC: {found.auc[found.best]:.4f}" in text
    assert "too low" in text
    assert found.auc[found.best] == found.auc.max()
    assert ((found.interval >= 0) & (found.interval <= 1)).all()
    assert "40 pairs" in repr(found)
    with pytest.raises(InputIndexError, match="2"):
        found.roc(2)


def test_bad_input() -> None:
    X, y = data(9)
    few = np.array([0, 0] + [1] * 7)
    with pytest.raises(InputError, match=r"needs 3 of each class.*tournament=False"):
        leave_pair_out(X, few, Cs=CS)
    leave_pair_out(X, few, Cs=CS, tournament=False)
    with pytest.raises(InputError, match="needs 2 of each"):
        leave_pair_out(X, np.array([0] + [1] * 8), Cs=CS, tournament=False)
    with pytest.raises(InputError, match="class"):
        leave_pair_out(X, np.arange(9) % 3, Cs=CS)
    with pytest.raises(UnsupportedError, match="decision values"):
        leave_pair_out(X, y, Cs=CS, method="loo_stopping")
