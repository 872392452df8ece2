"""``SVCCV(approx=...)``: several classes and any scorer, as without ``approx`` on the features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import StratifiedKFold

import exactcv

CS = [0.1, 1.0, 100.0]


@pytest.fixture(scope="module")
def iris() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)[:90]
    weight = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], 90)
    return X[order], np.array(["setosa", "versicolor", "virginica"])[y[order]], weight


def pair_of(iris: Any, weighted: bool = False, **changes: Any) -> tuple[Any, Any, np.ndarray]:
    """The model with features, and that of the exact engine on them."""
    X, y, weight = iris
    given = {"sample_weight": weight} if weighted else {}
    common = {"Cs": CS} | changes
    if common.get("lambdas") is not None:
        common.pop("Cs")
    model = exactcv.SVCCV(
        approx="nystroem", n_components=15, gamma=0.2, random_state=0, **common
    ).fit(X, y, **given)
    Z = model.feature_map_.transform(X)
    return model, exactcv.SVCCV(kernel="linear", random_state=0, **common).fit(Z, y, **given), Z


@pytest.mark.parametrize("cv", ["loo", StratifiedKFold(4)])
@pytest.mark.parametrize("grid", [{}, {"lambdas": [0.1, 1e-3]}], ids=["Cs", "lambdas"])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_that_is_fitted(
    iris: Any, cv: Any, grid: dict[str, Any], weighted: bool, tmp_path: Path
) -> None:
    X, _, _ = iris
    options = {"cv": cv, "class_weight": "balanced", "probability": True} | grid
    model, exact, Z = pair_of(iris, weighted, store_cv_results=True, **options)
    for name in ("param_C", "lambda", "error", "se", "n_errors", "mean_test_score"):
        np.testing.assert_allclose(model.cv_results_[name], exact.cv_results_[name], rtol=1e-9)
    np.testing.assert_allclose(
        model.cv_results_["decision"], exact.cv_results_["decision"], rtol=1e-6, atol=1e-6
    )
    assert (model.C_, model.best_index_) == (exact.C_, exact.best_index_)
    assert float(model.corrected_score_) == pytest.approx(float(exact.corrected_score_))
    assert model.certificate_.exact and model.weights_.shape == (3, 15)
    np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(Z), atol=1e-5)
    for shape in ("ovr", "ovo"):
        one, other = (m.set_params(decision_function_shape=shape) for m in (model, exact))
        values = one.decision_function(X)
        np.testing.assert_allclose(values, other.decision_function(Z), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(values, Z @ model.weights_.T + model.intercept_, atol=1e-9)
    assert model.predict(X).tolist() == exact.predict(Z).tolist()
    assert (model._overview().left_out.row == exact._overview().left_out.row).all()
    again = exactcv.load_model(exactcv.save_model(model, tmp_path / "m"))
    for name in ("predict", "decision_function", "predict_proba"):
        np.testing.assert_array_equal(getattr(again, name)(X), getattr(model, name)(X))
    assert again._overview().classes.tolist() == model.classes_.tolist()


@pytest.mark.parametrize(
    "scoring", ["balanced_accuracy", "f1_macro", "roc_auc_ovr", "neg_log_loss", "matthews_corrcoef"]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_scorers_of_several_classes(iris: Any, scoring: str, weighted: bool) -> None:
    model, exact, _ = pair_of(iris, weighted, scoring=scoring, cv=StratifiedKFold(4))
    for name in ("mean_test_score", "error", "rank_test_score"):
        np.testing.assert_allclose(model.cv_results_[name], exact.cv_results_[name], rtol=1e-7)
    assert model.best_score_ == pytest.approx(exact.best_score_)
    assert model._overview().chance == pytest.approx(exact._overview().chance)
    assert scoring in model.summary()


@pytest.mark.parametrize("scoring", ["roc_auc", "neg_brier_score", "f1"])
@pytest.mark.parametrize("select", ["min", "1se"])
def test_scorers_of_two_classes(iris: Any, scoring: str, select: str) -> None:
    X, y, weight = iris
    two = y != "setosa"
    codes = (y[two] == "virginica").astype(int)
    model, exact, _ = pair_of((X[two], codes, weight[two]), scoring=scoring, select=select)
    for name in ("mean_test_score", "se_test_score", "error"):
        np.testing.assert_allclose(model.cv_results_[name], exact.cv_results_[name], rtol=1e-6)
    assert model.C_ == exact.C_
    if scoring != "neg_brier_score":  # a thousand fits of sigmoids
        assert float(model.corrected_score_) == pytest.approx(float(exact.corrected_score_))
        assert model._overview().corrected == pytest.approx(exact._overview().corrected)


def test_functions_of_the_rows(iris: Any, tmp_path: Path) -> None:
    """They see the rows if these are in memory; what scikit-learn makes needs none."""
    pandas = pytest.importorskip("pandas")
    X, y, _ = iris

    def on_long_ones(model: Any, rows: np.ndarray, truth: np.ndarray) -> float:
        return float(accuracy_score(truth, model.predict(rows), sample_weight=rows[:, 0] > 5.5))

    frame = pandas.DataFrame(X, columns=list("abcd")).assign(y=y)
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=30)
    options = {"approx": "nystroem", "n_components": 15, "gamma": 0.2, "Cs": CS, "cv": 3}
    options |= {"random_state": 0}
    model = exactcv.SVCCV(**options, scoring=on_long_ones).fit(X, y)
    shown = model._overview().left_out
    right = (shown.truth == shown.predicted)[X[shown.row, 0] > 5.5]
    assert model.best_score_ == pytest.approx(right.mean())
    with pytest.raises(exactcv.UnsupportedError, match="rows, which are not in memory"):
        exactcv.SVCCV(**options, scoring=on_long_ones).fit(tmp_path / "t.parquet", "y")
    scorer = make_scorer(accuracy_score)
    from_file = exactcv.SVCCV(**options, scoring=scorer).fit(tmp_path / "t.parquet", "y")
    local = exactcv.SVCCV(**options).fit(X, y)
    np.testing.assert_allclose(
        from_file.cv_results_["mean_test_score"], local.cv_results_["mean_test_score"]
    )
    assert (from_file.predict(tmp_path / "t.parquet") == local.predict(X)).all()


def test_sparse_rows_memory_and_threads(iris: Any) -> None:
    X, y, _ = iris
    options = {"approx": "rff", "n_components": 16, "gamma": 0.2, "Cs": CS, "random_state": 0}
    plain = exactcv.SVCCV(**options).fit(X, y)
    for rows, more in (
        (sparse.csr_matrix(X), {}),
        (X, {"n_jobs": 2}),
        (X, {"memory_limit": "300kB", "n_jobs": 2}),
    ):
        model = exactcv.SVCCV(**options, **more).fit(rows, y)
        np.testing.assert_array_equal(model.cv_results_["error"], plain.cv_results_["error"])
        np.testing.assert_allclose(
            model.decision_function(rows), plain.decision_function(X), atol=1e-7
        )
    with pytest.raises(exactcv.InputError, match=r"components need at least .* of memory"):
        exactcv.SVCCV(**options, memory_limit="10kB").fit(X, y)


def test_a_number_of_components_that_is_found(iris: Any) -> None:
    X, y, _ = iris
    model = exactcv.SVCCV(approx="nystroem", n_components="auto", Cs=CS, cv=3, random_state=0)
    assert "n_components=90 (error" in model.fit(X, y).summary()
