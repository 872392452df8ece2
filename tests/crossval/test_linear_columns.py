"""kernel="linear" without the kernel matrix: the columns are the features, and all is exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import exactcv

CS = [1e-3, 0.1, 10.0]


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    """Rows with many zeros, some of them equal."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6)) * (rng.random((400, 6)) < 0.4)
    y = np.where(X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=400) > 0, "yes", "no")
    return X, y


@pytest.mark.parametrize("cv", ["loo", 5])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_array])
def test_the_same_as_with_the_matrix(data, cv: Any, form: Any) -> None:
    X, y = data
    options: dict[str, Any] = {"kernel": "linear", "cv": cv, "output": "decision"}
    weight = np.where(np.arange(400) % 50 == 0, 0.0, 1.0 + np.arange(400) % 3)
    expected = exactcv.cross_validate(X, y, Cs=CS, sample_weight=weight, **options)
    result = exactcv.cross_validate(
        form(X), y, Cs=CS, sample_weight=weight, memory_limit="1.2MB", **options
    )
    assert result.certificate.exact
    assert result.approx is None
    assert result.coef is None
    np.testing.assert_allclose(result.decision, expected.decision, atol=1e-6)
    np.testing.assert_array_equal(result.n_errors, expected.n_errors)
    np.testing.assert_allclose(result.objective, expected.objective, rtol=1e-7)
    for w, coef in zip(result.weights, expected.coef, strict=True):
        np.testing.assert_allclose(w, coef @ X, atol=1e-6)


def test_the_default_grid_is_the_same(data) -> None:
    X, y = data
    options: dict[str, Any] = {"kernel": "linear", "cv": 5}
    expected = exactcv.cross_validate(X + 1.0, y, **options)
    result = exactcv.cross_validate(X + 1.0, y, memory_limit="1.2MB", **options)
    np.testing.assert_allclose(result.Cs, expected.Cs)
    assert result.grown == expected.grown
    assert len(result.weights) == len(result.Cs)


def test_where_there_are_too_many_columns() -> None:
    """Sparse rows may have more (``tests/lowrank/test_wide.py``)."""
    X = np.broadcast_to(np.zeros(1), (100_000, 50_000))
    y = np.arange(100_000) % 2
    with pytest.raises(exactcv.MemoryLimitError, match="at most 4000 columns, here it has 50000"):
        exactcv.cross_validate(X, y, kernel="linear", memory_limit="4GB")


def test_where_the_columns_do_not_fit_either(data) -> None:
    X, y = data
    with pytest.raises(exactcv.InputError, match=r"6 columns need at least .* kB of memory"):
        exactcv.cross_validate(X, y, kernel="linear", memory_limit="10kB")


def test_more_classes_are_for_svccv(data) -> None:
    X, _ = data
    with pytest.raises(exactcv.InputError, match=r"use exactcv\.SVCCV"):
        exactcv.cross_validate(X, np.arange(400) % 3, kernel="linear", memory_limit="1MB")


@pytest.mark.parametrize("cv", ["loo", 5])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_svccv_is_the_same_as_with_the_matrix(data, cv: Any, n_classes: int, tmp_path) -> None:
    X, y = data
    y = y if n_classes == 2 else np.digitize(X[:, 0] - X[:, 1], [-0.5, 0.5])
    options: dict[str, Any] = {"kernel": "linear", "cv": cv, "probability": True}
    expected = exactcv.SVCCV(Cs=CS, random_state=0, **options).fit(X, y)
    model = exactcv.SVCCV(Cs=CS, random_state=0, memory_limit="1.2MB", **options)
    model.fit(sparse.csr_matrix(X), y)
    assert not hasattr(model, "support_")
    assert model._overview().approx is None
    np.testing.assert_array_equal(model.cv_results_["n_errors"], expected.cv_results_["n_errors"])
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-6)
    exactcv.save_model(model, tmp_path / "model.exactcv")
    again = exactcv.load_model(tmp_path / "model.exactcv")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    with pytest.raises(exactcv.ExactCVError, match="cannot forget"):
        model.forget(0)


def test_svccv_has_the_default_grid_of_the_matrix(data) -> None:
    X, y = data
    expected = exactcv.SVCCV(kernel="linear", cv=5).fit(X, y)
    model = exactcv.SVCCV(kernel="linear", cv=5, memory_limit="1.2MB").fit(X, y)
    assert model.weights_.shape == (6,)
    np.testing.assert_allclose(model.cv_results_["param_C"], expected.cv_results_["param_C"])
    np.testing.assert_array_equal(model.cv_results_["n_errors"], expected.cv_results_["n_errors"])
