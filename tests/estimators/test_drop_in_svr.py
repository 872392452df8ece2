"""The drop-ins with `sklearn.svm.SVR`: scikit-learn's answers, from the exact engine."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from _numbers import wave
from sklearn import model_selection
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, RepeatedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import SVR

import exactcv
from exactcv import SlowFoldsWarning

GRID = {"C": [0.1, 1.0, 20.0], "epsilon": [0.01, 0.2], "gamma": [0.3, 1.0]}
TIGHT: dict[str, Any] = {"tol": 1e-9}


def same_search(estimator: Any, grid: Any, X: Any, y: Any, **settings: Any) -> Any:
    ours = exactcv.GridSearchCV(estimator, grid, **settings).fit(X, y)
    theirs = model_selection.GridSearchCV(estimator, grid, **settings).fit(X, y)
    assert ours.best_params_ == theirs.best_params_
    assert ours.cv_results_.keys() == theirs.cv_results_.keys()
    for name, values in theirs.cv_results_.items():
        if "test" in name and "time" not in name and "rank" not in name:
            np.testing.assert_allclose(ours.cv_results_[name], values, atol=1e-5)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X))
    return ours


@pytest.fixture(autouse=True)
def never_their_fits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is ours must not be handed over to scikit-learn in secret."""
    if "handed_over" in request.keywords or "foreign" in request.node.name:
        return
    from exactcv.estimators.drop_in import table

    def refuse(self: Any, setting: Any, split: int) -> bool:
        raise AssertionError("left to scikit-learn")

    monkeypatch.setattr(table.Table, "fit_by_scikit_learn", refuse)


@pytest.mark.parametrize("cv", [4, RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)])
def test_grid_search(cv: Any) -> None:
    X, y = wave(60)
    same_search(SVR(**TIGHT), GRID, X, y, cv=cv)


def test_several_scorers_and_training_scores() -> None:
    X, y = wave(50)
    same_search(
        SVR(gamma=0.5, **TIGHT), {"C": [0.5, 5.0]}, X, y, cv=KFold(3),
        scoring=["r2", "neg_mean_absolute_error", "neg_root_mean_squared_error"], refit="r2",
        return_train_score=True,
    )  # fmt: skip


def test_pipelines_and_what_changes_with_the_fold() -> None:
    X, y = wave(50)
    grid = {"svr__C": [0.5, 5.0], "svr__epsilon": [0.0, 0.1]}
    with pytest.warns(SlowFoldsWarning, match="standardscaler"):
        same_search(make_pipeline(StandardScaler(), SVR(gamma=0.5, **TIGHT)), grid, X, y, cv=3)
    with pytest.warns(SlowFoldsWarning, match="gamma='scale'"):
        same_search(SVR(**TIGHT), {"C": [1.0]}, X, y, cv=3)
    same_search(make_pipeline(Normalizer(), SVR(gamma=0.5, **TIGHT)), grid, X, y, cv=3)


@pytest.mark.parametrize("kernel", ["linear", "poly", "precomputed"])
def test_kernels(kernel: Any) -> None:
    X, y = wave(40)
    rows = X @ X.T if kernel == "precomputed" else X
    model = SVR(kernel=kernel, gamma=0.5, coef0=1.0, degree=2, **TIGHT)
    same_search(model, {"C": [0.1, 1.0]}, rows, y, cv=3)


def test_weights_and_groups() -> None:
    X, y = wave(40)
    weight = np.random.default_rng(0).uniform(0, 2, 40)
    weight[::9] = 0.0
    model, groups = SVR(gamma=0.5, C=3.0, **TIGHT), np.repeat(np.arange(8), 5)
    settings: dict[str, Any] = {"cv": GroupKFold(4), "groups": groups}
    settings["params"] = {"sample_weight": weight}
    ours = exactcv.cross_val_score(model, X, y, **settings)
    np.testing.assert_allclose(
        ours, model_selection.cross_val_score(model, X, y, **settings), atol=1e-5
    )


def test_scores_and_predictions() -> None:
    X, y = wave(45)
    model = SVR(gamma=0.5, C=3.0, epsilon=0.05, **TIGHT)
    for cv in (3, LeaveOneOut()):
        settings = {"cv": cv, "scoring": "neg_mean_absolute_error"}
        np.testing.assert_allclose(
            exactcv.cross_val_score(model, X, y, **settings),
            model_selection.cross_val_score(model, X, y, **settings), atol=1e-5,
        )  # fmt: skip
        np.testing.assert_allclose(
            exactcv.cross_val_predict(model, X, y, cv=cv),
            model_selection.cross_val_predict(model, X, y, cv=cv), atol=1e-5,
        )  # fmt: skip


def test_whole_numbers_are_numbers() -> None:
    X, y = wave(40)
    y = np.round(3 * y).astype(int)
    model = SVR(gamma=0.5, C=3.0, **TIGHT)
    ours = exactcv.cross_val_predict(model, X, y, cv=4)
    np.testing.assert_allclose(
        ours, model_selection.cross_val_predict(model, X, y, cv=4), atol=1e-5
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert exactcv.cross_val_score(model, X, y, cv=KFold(4)).shape == (4,)


def test_foreign_regressors_are_scikit_learns() -> None:
    X, y = wave(30)
    with pytest.warns(SlowFoldsWarning, match="KernelRidge is not sklearn.svm.SVR"):
        ours = exactcv.cross_val_score(KernelRidge(), X, y, cv=3)
    np.testing.assert_array_equal(ours, model_selection.cross_val_score(KernelRidge(), X, y, cv=3))
    with pytest.raises((AttributeError, ValueError)):
        exactcv.cross_val_predict(SVR(), X, y, cv=3, method="decision_function")
    with pytest.raises(ValueError, match=r"NaN|missing"):
        exactcv.cross_val_score(SVR(), X, np.full(30, np.nan), cv=3, error_score="raise")
