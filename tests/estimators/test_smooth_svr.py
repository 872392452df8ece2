"""`SmoothSVR`: its model, its left-out predictions, and scikit-learn's conventions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from exactcv import SmoothSVR
from exactcv.exceptions import InputError
from exactcv.problem.folds import make_folds


@parametrize_with_checks([SmoothSVR(), SmoothSVR(kernel="rbf", gamma=0.1)])
def test_scikit_learn_conventions(estimator: Any, check: Any) -> None:
    check(estimator)


def data(n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 4))
    return X, X @ [1.0, -2.0, 0.0, 0.5] + 0.5 * rng.normal(size=n) + 0.3


def test_it_minimises_the_squared_tube_loss() -> None:
    X, y = data()
    model = SmoothSVR(C=3.0, epsilon=0.4).fit(X, y)

    def objective(theta: np.ndarray) -> float:
        loss = np.maximum(np.abs(y - X @ theta[:-1] - theta[-1]) - 0.4, 0.0)
        return float(0.5 * theta @ theta + 1.5 * loss @ loss)

    best = minimize(objective, np.zeros(5), method="BFGS", options={"gtol": 1e-9})
    assert np.append(model.coef_, model.intercept_) == pytest.approx(best.x, abs=1e-5)
    outside = np.abs(y - model.predict(X)) > 0.4
    assert (np.flatnonzero(outside) == model.support_).all()


def test_without_a_tube_it_is_ridge_regression() -> None:
    X, y = data()
    ours = SmoothSVR(C=2.0, epsilon=0.0, fit_intercept=False).fit(X, y)
    theirs = Ridge(alpha=0.5, fit_intercept=False, tol=1e-12).fit(X, y)
    assert ours.coef_ == pytest.approx(theirs.coef_, abs=1e-8)


@pytest.mark.parametrize("strategy", ["auto", "I", "II", "none"])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "reduced"])
@pytest.mark.parametrize("cv", ["loo", 5])
def test_left_out_predictions_are_those_of_fits_of_their_own(
    cv: Any, kernel: str, strategy: Any
) -> None:
    X, y = data(60)
    settings: dict[str, Any] = {"C": 5.0, "epsilon": 0.3, "kernel": kernel, "gamma": 0.2}
    if kernel == "reduced":
        X, settings["kernel"] = (
            np.tanh(X @ np.random.default_rng(0).normal(size=(4, 9))),
            "precomputed",
        )
    found = SmoothSVR(strategy=strategy, **settings).left_out_predict(X, y, cv=cv)
    for out in make_folds(cv, X, np.zeros(60)).left_out:
        train = np.setdiff1d(np.arange(60), out)
        apart = SmoothSVR(**settings).fit(X[train], y[train])
        assert found[out] == pytest.approx(apart.predict(X[out]), abs=1e-7)


def test_weights_count_copies() -> None:
    X, y = data()
    weight = np.random.default_rng(0).integers(0, 3, 40)
    for kernel in ("linear", "rbf"):
        model = SmoothSVR(kernel=kernel, gamma=0.2, epsilon=0.2)
        one = model.fit(X, y, sample_weight=weight).predict(X)
        copies = np.repeat(np.arange(40), weight)
        assert one == pytest.approx(model.fit(X[copies], y[copies]).predict(X), abs=1e-7)


def test_bad_arguments() -> None:
    X, y = data()
    for wrong in ({"C": -1.0}, {"strategy": "III"}, {"epsilon": -0.1}, {"kernel": "cubic"}):
        with pytest.raises(InputError):
            SmoothSVR(**wrong).fit(X, y)
