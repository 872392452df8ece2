"""The interval of Bates, Hastie and Tibshirani equals a plain loop of refits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from exactcv import InputError, cv_interval
from exactcv.datasets import make_mixture
from exactcv.problem.checks import seed_from


def plain_loop(X: Any, y: Any, K: int, repeats: int, seed: int) -> tuple[float, float, float]:
    """As the paper writes it, every inner fold a model of its own."""
    rng = np.random.default_rng(seed_from(seed))
    a, b, es, plain = [], [], [], []
    for _ in range(repeats):
        cutter = StratifiedKFold(K, shuffle=True, random_state=int(rng.integers(2**31)))
        parts = [test for _, test in cutter.split(X, y)]

        def wrong(out: Any, test: Any) -> np.ndarray:
            train = np.setdiff1d(np.arange(len(y)), out)
            model = SVC(C=2.0, gamma=0.3, tol=1e-9).fit(X[train], y[train])
            return model.predict(X[test]) != y[test]

        for k in range(K):
            e_out = wrong(parts[k], parts[k])
            others = [j for j in range(K) if j != k]
            e_in = np.concatenate([wrong(np.r_[parts[k], parts[j]], parts[j]) for j in others])
            a.append((e_in.mean() - e_out.mean()) ** 2)
            b.append(e_out.var(ddof=1) / len(e_out))
            es.append(e_in)
            plain.append(e_out)
    return float(np.mean(a) - np.mean(b)), np.concatenate(es).mean(), np.concatenate(plain).mean()


def test_equals_a_plain_loop() -> None:
    X, y = make_mixture(40, 3, random_state=2)
    mse, inner, plain = plain_loop(X, y, 4, 3, 5)
    found = cv_interval(X, y, C=2.0, gamma=0.3, folds=4, repeats=3, random_state=5)
    assert found.plain == pytest.approx(plain)
    assert found.error == pytest.approx(inner - 1.5 * (inner - plain))
    least = np.sqrt(plain * (1 - plain) / 40)
    assert found.se == pytest.approx(np.clip(np.sqrt(max(0.75 * mse, 0.0)), least, 2 * least))
    low, high = found.interval
    assert 0.0 <= low <= found.error <= high <= 1.0


def test_bad_input() -> None:
    X, y = make_mixture(20, 3, random_state=0)
    with pytest.raises(InputError, match="folds=2"):
        cv_interval(X, y, folds=2)
    with pytest.raises(InputError, match="use fewer folds"):
        cv_interval(X, y, folds=19)
