"""``SVRCV`` and ``QuantileSVRCV`` with ``approx``: features in place of a kernel, for numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _numbers import wave
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold

import exactcv
from exactcv import SVRCV, QuantileSVRCV
from exactcv.crossval import components
from exactcv.storage.quantile_model import quantiles_in, quantiles_tree

GRID: dict[str, Any] = {"Cs": [0.1, 5.0, 100.0], "epsilon": [0.05, 0.2], "cv": KFold(4)}
FEATURES: dict[str, Any] = {"approx": "nystroem", "n_components": 15, "random_state": 0}


def explicit(model: SVRCV, X: np.ndarray, y: np.ndarray, **more: Any) -> tuple[SVRCV, np.ndarray]:
    """The same with the exact kernel of the features of one gamma."""
    Z = model.feature_map_.transform(X)
    K = Z @ Z.T
    return SVRCV(kernel="precomputed", **(GRID | more)).fit(K, y), K


@pytest.mark.parametrize("scoring", [None, "neg_median_absolute_error"])
@pytest.mark.parametrize("cv", ["loo", KFold(4)])
def test_it_is_the_model_of_the_exact_kernel(scoring, cv) -> None:
    X, y = wave(60)
    more = {"scoring": scoring, "cv": cv}
    model = SVRCV(gamma=0.5, **(GRID | FEATURES | more)).fit(X, y)
    exact, K = explicit(model, X, y, **more)
    assert model.certificate_.exact
    assert (model.C_, model.epsilon_) == (exact.C_, exact.epsilon_)
    assert model.best_score_ == pytest.approx(exact.best_score_, abs=1e-6)
    np.testing.assert_allclose(model.left_out_, exact.left_out_, atol=1e-6)
    np.testing.assert_allclose(model.predict(X), exact.predict(K), atol=1e-6)
    np.testing.assert_allclose(
        model.cv_results_["error"], exact.cv_results_["error"], rtol=1e-6, atol=1e-7
    )
    assert not hasattr(model, "support_") and model.weights_.shape == (15,)
    assert "approximate kernel (nystroem, 15 components)" in model.summary()


def test_intervals_are_those_of_folds(tmp_path: Path) -> None:
    X, y = wave(60)
    model = SVRCV(gamma=0.5, **(GRID | FEATURES)).fit(X, y)
    exact, K = explicit(model, X, y)
    found = model.predict_interval(X, 0.8, "cv+")
    np.testing.assert_allclose(found, exact.predict_interval(K, 0.8, "cv+"), atol=1e-6)
    assert model.coverage_text(0.8, "cv+") == exact.coverage_text(0.8, "cv+")
    with pytest.raises(exactcv.UnsupportedError, match="use method='cv\\+'"):
        model.predict_interval(X)
    file = exactcv.save_model(model, tmp_path / "model.exactcv")
    again = exactcv.load_model(file)
    assert isinstance(again, SVRCV)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.predict_interval(X, 0.8, "cv+"), found)
    assert again.get_params()["approx"] == "nystroem" and again.C_ == model.C_
    exactcv.save_model(again, tmp_path / "again.exactcv")


def test_gammas_weights_and_sparse_rows() -> None:
    X, y = wave(60)
    weight = np.random.default_rng(0).choice([0.0, 1.0, 2.0], 60)
    given = GRID | FEATURES | {"gamma": [0.1, 0.5], "scoring": "neg_mean_squared_error"}
    model = SVRCV(**given).fit(X, y, sample_weight=weight)
    assert model.gamma_ in (0.1, 0.5) and len(model.cv_results_["param_C"]) == 12
    assert np.isnan(model.left_out_[weight == 0]).all()
    exact, _ = explicit(
        model, X, y, Cs=[model.C_], epsilon=model.epsilon_, scoring="neg_mean_squared_error"
    )
    Z = model.feature_map_.transform(X)
    exact.fit(Z @ Z.T, y, sample_weight=weight)
    used = weight > 0
    np.testing.assert_allclose(model.left_out_[used], exact.left_out_[used], atol=1e-6)
    other = SVRCV(**given).fit(sparse.csr_matrix(X), y, sample_weight=weight)
    np.testing.assert_allclose(other.predict(sparse.csr_matrix(X)), model.predict(X), atol=1e-8)


def test_it_becomes_another_model_when_it_is_fitted_again() -> None:
    X, y = wave(40)
    model = SVRCV(gamma=0.5, **(GRID | FEATURES)).fit(X, y)
    model.set_params(approx=None).fit(X, y)
    assert not hasattr(model, "weights_") and hasattr(model, "support_")
    model.set_params(approx="rff").fit(X, y)
    assert hasattr(model, "weights_") and not hasattr(model, "dual_coef_")
    assert clone(model).approx == "rff"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"approx": "other"}, "approx"),
        ({"n_components": 0}, "n_components must be at least 1"),
        ({"n_components": "many"}, "must be an integer or 'auto', got 'many'"),
        ({"n_components": 41}, "n_components=41 is more than the 40 rows"),
        ({"method": "refit"}, "method='exact'"),
        ({"kernel": "linear", "approx": "rff"}, "random Fourier features"),
    ],
)
def test_what_is_refused(settings: dict[str, Any], message: str) -> None:
    X, y = wave(40)
    with pytest.raises(exactcv.ExactCVError, match=message):
        SVRCV(**({"gamma": 0.5} | GRID | FEATURES | settings)).fit(X, y)


def test_it_finds_how_many_features_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """For each point by itself; what it ends with is what that number gives."""
    monkeypatch.setattr(components, "FIRST", 4)
    X, y = wave(120)
    given: dict[str, Any] = {"gamma": [0.05, 1.0], "epsilon": [0.05, 0.3], "Cs": None}
    model = SVRCV(**(GRID | FEATURES | given | {"n_components": "auto", "cv": KFold(3)}))
    model.fit(X, y)
    m = len(model.weights_)
    assert m > 4 and "more gain less than the standard error" in " ".join(model.summary().split())
    assert f"{m} components" in model.summary()
    assert model.certificate_.exact
    same = clone(model).set_params(
        n_components=m, gamma=model.gamma_, epsilon=model.epsilon_, Cs=[model.C_]
    )
    same.fit(X, y)
    np.testing.assert_allclose(same.predict(X), model.predict(X), rtol=0, atol=1e-9)
    np.testing.assert_allclose(same.left_out_, model.left_out_, rtol=0, atol=1e-9)
    found = model.predict_interval(X[:3], method="cv+")
    np.testing.assert_allclose(found, same.predict_interval(X[:3], method="cv+"), atol=1e-7)
    levels = QuantileSVRCV(
        quantiles=(0.2, 0.7),
        Cs=[1.0],
        gamma=0.5,
        cv=KFold(3),
        **(FEATURES | {"n_components": "auto"}),
    ).fit(X, y)
    assert [len(one) for one in levels.weights_] == [
        one.n_components for one in levels.feature_map_
    ]


def test_what_was_tried_is_told_where_the_grid_has_grown_below(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing but noise takes it to smaller C."""
    monkeypatch.setattr(components, "FIRST", 2)
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    given: dict[str, Any] = {"gamma": 20.0, "epsilon": 0.0, "n_components": "auto"}
    model = SVRCV(approx="rff", random_state=0, cv=KFold(3), **given).fit(X, y)
    words = " ".join(model.summary().split())
    assert "n_components=2 (error" in words
    assert "has grown by 3 decades below" in words


def test_it_needs_the_rows() -> None:
    X, y = wave(40)
    with pytest.raises(exactcv.UnsupportedError, match="needs the rows themselves"):
        SVRCV(kernel="precomputed", **FEATURES).fit(X @ X.T, y)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_nested_is_a_fit_without_every_outer_fold(form: Any) -> None:
    X, y = wave(60)
    weight = np.where(np.arange(60) == 7, 0.0, 1.0 + np.arange(60) % 2)
    model = SVRCV(**(GRID | FEATURES | {"gamma": ["median", 0.5]}))
    outer = KFold(3)
    nested = model.nested_score(form(X), y, outer=outer, sample_weight=weight)
    assert nested.certificate.exact
    keep = np.flatnonzero(weight > 0)
    found = np.full(60, np.nan)
    for k, (train, test) in enumerate(outer.split(keep)):
        inside, test = keep[train], keep[test]
        one = clone(model).fit(form(X[inside]), y[inside], weight[inside])
        assert nested.chosen[k, 0] == one.C_
        found[test] = one.predict(form(X[test]))
    values = np.full(60, np.nan)
    values[nested.test_row] = nested.decision
    np.testing.assert_allclose(values[keep], found[keep], rtol=0, atol=1e-9)


# --- quantiles ----------------------------------------------------------------------------------

LEVELS: dict[str, Any] = {"quantiles": (0.1, 0.5, 0.9), "Cs": [0.1, 5.0], "cv": KFold(4)}


@pytest.mark.parametrize("cv", ["loo", KFold(4)])
def test_quantiles_are_those_of_the_exact_kernel(cv) -> None:
    X, y = wave(60)
    model = QuantileSVRCV(gamma=0.5, **(LEVELS | FEATURES | {"cv": cv})).fit(X, y)
    Z = model.feature_map_[1].transform(X)
    exact = QuantileSVRCV(kernel="precomputed", **(LEVELS | {"cv": cv})).fit(Z @ Z.T, y)
    assert model.certificate_.exact and model.C_.tolist() == exact.C_.tolist()
    np.testing.assert_allclose(model.best_score_, exact.best_score_, rtol=1e-6)
    np.testing.assert_allclose(model.left_out_, exact.left_out_, atol=1e-6)
    np.testing.assert_allclose(model.predict(X), exact.predict(Z @ Z.T), atol=1e-6)
    assert not hasattr(model, "support_") and [len(w) for w in model.weights_] == [15] * 3
    assert "approximate kernel (nystroem, 15 components)" in model.summary()
    found = model.predict_interval(X, 0.8, "cv+")
    if cv != "loo":
        np.testing.assert_allclose(found, exact.predict_interval(Z @ Z.T, 0.8, "cv+"), atol=1e-6)
    with pytest.raises(exactcv.UnsupportedError, match="use method='cv\\+'"):
        model.predict_interval(X)


def test_each_quantile_has_its_own_features(tmp_path: Path) -> None:
    """Their gammas differ; files keep them apart, and know when something is missing."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, (120, 1))
    # Most rows are near a line, the others near a wave above it.
    high = rng.random(120) < 0.3
    y = np.where(high, 4 + 3 * np.sin(3 * X[:, 0]), 0.3 * X[:, 0]) + 0.3 * rng.normal(size=120)
    given = FEATURES | {"quantiles": (0.1, 0.9), "Cs": [5.0], "cv": KFold(4), "n_components": 30}
    model = QuantileSVRCV(gamma=[0.02, 3.0], **given).fit(X, y)
    assert model.gamma_.tolist() == [0.02, 3.0]
    for fmap, gamma in zip(model.feature_map_, model.gamma_, strict=True):
        assert fmap.kernel.gamma == gamma
    again = exactcv.load_model(exactcv.save_model(model, tmp_path / "model.exactcv"))
    assert isinstance(again, QuantileSVRCV) and again.get_params()["approx"] == "nystroem"
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    ends = model.predict_interval(X, 0.8, "cv+")
    np.testing.assert_array_equal(again.predict_interval(X, 0.8, "cv+"), ends)
    exactcv.save_model(again, tmp_path / "again.exactcv")
    tree = quantiles_tree(model)
    for name in ("feature_maps", "weights"):
        with pytest.raises(exactcv.FileError, match="quantiles are missing"):
            quantiles_in(tree | {name: tree[name][:-1]})
    model.set_params(approx=None).fit(X, y)
    assert not hasattr(model, "weights_") and hasattr(model, "support_")
    model.set_params(approx="rff").fit(X, y)
    assert hasattr(model, "weights_") and not hasattr(model, "dual_coef_")
