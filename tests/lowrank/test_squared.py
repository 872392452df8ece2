"""The squared loss with approx: the answer is that of the exact engine on the kernel Z Z'."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GroupKFold, KFold, RepeatedKFold, ShuffleSplit

import exactcv
from exactcv.crossval.result import CVResult
from exactcv.lowrank import squared

CS = np.array([1e-3, 0.1, 10.0, 1e4])


def table(n: int = 90, p: int = 3, repeated: bool = False) -> tuple[Any, Any]:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, p))
    if repeated:
        X = X[rng.integers(0, n // 3, n)]
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n) + 5.0


def both(X: Any, y: Any, features: dict[str, Any], **common: Any) -> tuple[CVResult, CVResult]:
    given_ = {"approx": "rff", "n_components": 9, "random_state": 0} | features
    common = {"loss": "least_squares", "Cs": CS, "output": "decision"} | common
    result = exactcv.cross_validate(X, y, **given_, **common)
    assert result.feature_map is not None
    Z = result.feature_map.transform(X)
    return result, exactcv.cross_validate(Z @ Z.T, y, kernel="precomputed", **common)


def assert_same(result: CVResult, exact: CVResult, unit: float = 1.0) -> None:
    assert result.certificate.exact and exact.certificate.exact
    assert result.decision is not None and exact.decision is not None
    np.testing.assert_allclose(result.decision, exact.decision, rtol=0, atol=1e-6 * unit)
    np.testing.assert_allclose(result.intercept, exact.intercept, rtol=0, atol=1e-6 * unit)
    np.testing.assert_allclose(result.objective, exact.objective, rtol=1e-6)
    np.testing.assert_allclose(result.error, exact.error, rtol=1e-6, atol=1e-6 * unit)


@pytest.fixture(params=["by formula", "by sums", "as it comes"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Folds are all taken for small, all for large, or as they are."""
    if request.param != "as it comes":
        few = request.param == "by formula"

        def small(self: Any) -> list[int]:
            folds = self.task.folds
            return list(range(len(folds))) if few and self._alone is None else []

        monkeypatch.setattr(squared._Work, "_small", property(small))
    return str(request.param)


@pytest.mark.parametrize("loss", ["least_squares", "squared"])
@pytest.mark.parametrize("cv", ["loo", 3, 30])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("m", [1, 9, 90])
def test_it_is_the_exact_answer(loss: str, cv: Any, weighted: bool, m: int, way: str) -> None:
    X, y = table(repeated=m == 9)
    weight = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], len(y))
    common = {"sample_weight": weight if weighted else None, "loss": loss}
    common |= {"cv": KFold(cv) if cv != "loo" else cv, "fit_intercept": not weighted}
    if loss == "squared":
        y = y > np.median(y)
    result, exact = both(X, y, {"n_components": m}, **common)
    assert_same(result, exact)
    np.testing.assert_array_equal(result.n_errors, exact.n_errors)
    assert np.isnan(result.at_bound).all()


@pytest.mark.parametrize(
    "cv",
    [
        RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
        ShuffleSplit(4, test_size=0.2, train_size=0.3, random_state=0),
        [
            (np.arange(1, 90), [0]),
            (np.arange(0, 90, 2), [1, 5]),
            (np.arange(10), np.arange(40, 80)),
        ],
        [(np.delete(np.arange(90), i), [i]) for i in (3, 3, 70, 5)],
        [(np.delete(np.arange(90), i), [i]) for i in (70, 3, 5, 0)],
    ],
)
@pytest.mark.parametrize("grid", [{"Cs": CS}, {"Cs": None, "lambdas": [1e-1, 1e-3, 1e-6]}])
def test_folds_of_any_kind(cv: Any, grid: dict[str, Any], way: str) -> None:
    X, y = table()
    assert_same(*both(X, y, {}, cv=cv, **grid))


def test_groups_of_any_size_with_lambda(way: str) -> None:
    X, y = table()
    groups = np.repeat(np.arange(8), [1, 2, 3, 4, 10, 20, 20, 30])
    common = {"cv": GroupKFold(8), "groups": groups, "Cs": None, "lambdas": [1e-2, 1e-4]}
    assert_same(*both(X, y, {}, **common))


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(4, 40),
    seed=st.integers(0, 10_000),
    cv=st.sampled_from(["loo", 2, 4]),
    scale=st.sampled_from([1e-12, 1.0, 1e12]),
    shift=st.sampled_from([0.0, 1e3]),
)
def test_whatever_the_unit(n: int, seed: int, cv: Any, scale: float, shift: float) -> None:
    rng = np.random.default_rng(seed)
    X, m = np.round(rng.normal(size=(n, 2)), 1), int(rng.integers(1, n + 1))
    y = scale * (rng.normal(size=n) + shift)
    folds = cv if cv == "loo" else KFold(cv)
    result, exact = both(X, y, {"n_components": m, "gamma": 0.5}, cv=folds)
    assert_same(result, exact, unit=scale)


def test_more_features_than_rows_at_huge_C() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = rng.normal(size=60)
    for m in (60, 120):
        result, exact = both(X, y, {"n_components": m, "gamma": 0.1}, Cs=[1e5])
        assert result.decision is not None and exact.decision is not None
        assert result.certificate.exact
        np.testing.assert_allclose(result.decision, exact.decision, rtol=0, atol=1e-5)


@pytest.mark.parametrize("cv", ["loo", KFold(30)])
def test_what_the_bound_leaves_open_is_proved_by_the_rows(
    cv: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table()
    common: dict[str, Any] = {"approx": "rff", "n_components": 20, "loss": "least_squares"}
    common |= {"Cs": CS, "cv": cv, "random_state": 0}
    plain = exactcv.cross_validate(X, y, **common)
    bound = squared.without

    def wide(*arguments: Any) -> Any:
        kkt, gap = bound(*arguments)
        return (1.0 + kkt if arguments[4].mass.min() < 3.5 else kkt), gap

    monkeypatch.setattr(squared, "without", wide)
    again = exactcv.cross_validate(X, y, **common)
    assert again.certificate.exact
    assert again.stats["passes"] > plain.stats["passes"]
    assert again.stats["solved"] == plain.stats["solved"]
    np.testing.assert_allclose(again.decision, plain.decision, rtol=0, atol=1e-9)
    if cv == "loo":
        monkeypatch.setattr(squared, "MOST_AGAIN", 80)
        with pytest.warns(exactcv.NotExactWarning, match="360 of 364 solutions"):
            exactcv.cross_validate(X, y, **common)


def test_labels_are_those_of_the_values() -> None:
    X, y = table()
    labels = y > np.median(y)
    common = {"approx": "rff", "n_components": 20, "loss": "squared", "Cs": CS, "random_state": 0}
    for cv in ("loo", 4):
        by_value = exactcv.cross_validate(X, labels, output="decision", cv=cv, **common)
        by_label = exactcv.cross_validate(X, labels, cv=cv, **common)
        np.testing.assert_array_equal(by_value.wrong, by_label.wrong)
        assert by_label.decision is None


def test_it_is_ridge_regression_of_scikit_learn() -> None:
    X, y = table(120)
    ours = exactcv.cross_validate(
        X, y, approx="nystroem", n_components=20, loss="least_squares", Cs=CS, gamma=0.3,
        random_state=0,
    )  # fmt: skip
    assert ours.feature_map is not None
    Z = ours.feature_map.transform(X)
    theirs = RidgeCV(alphas=1.0 / CS, store_cv_results=True, scoring=None).fit(Z, y)
    np.testing.assert_allclose(2.0 * ours.error, theirs.cv_results_.mean(axis=0), rtol=1e-7)


# --- rows from anywhere --------------------------------------------------------------------------


@pytest.mark.parametrize("cv", ["loo", 4, KFold(40)])
@pytest.mark.parametrize(
    "options",
    [
        {"chunk_rows": 17},
        {"features": "spill", "chunk_rows": 50},
        {"features": "recompute"},
        {"dtype": "float32"},
    ],
)
def test_chunks_and_stores_change_nothing(cv: Any, options: dict[str, Any]) -> None:
    X, y = table(200)
    common: dict[str, Any] = {"approx": "rff", "n_components": 12, "loss": "least_squares"}
    common |= {"Cs": CS, "cv": cv, "random_state": 0}
    plain = exactcv.cross_validate(X, y, **common)
    result = exactcv.cross_validate(X, y, method_options=options, **common)
    atol = 1e-3 if "dtype" in options else 1e-9
    np.testing.assert_allclose(result.decision, plain.decision, rtol=0, atol=atol)
    assert result.certificate.exact
    threads = exactcv.cross_validate(X, y, method_options=options, n_jobs=2, **common)
    np.testing.assert_array_equal(threads.decision, result.decision)


def test_little_memory_takes_more_passes(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table(300)
    common = {"approx": "rff", "n_components": 12, "loss": "least_squares", "Cs": CS}
    common |= {"cv": KFold(6), "random_state": 0}
    plain = exactcv.cross_validate(X, y, **common)
    monkeypatch.setattr(squared, "SHARE", 10**9)
    slow = exactcv.cross_validate(X, y, **common)
    assert slow.stats["passes"] > plain.stats["passes"]
    np.testing.assert_allclose(slow.decision, plain.decision, rtol=0, atol=1e-9)


def test_files_and_sparse_rows(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    X, y = table(150)
    X[np.abs(X) < 0.5] = 0.0
    common = {"approx": "nystroem", "n_components": 15, "loss": "least_squares", "Cs": CS, "cv": 5}
    common |= {"random_state": 0, "gamma": 0.2}
    plain = exactcv.cross_validate(X, y, **common)
    thin = exactcv.cross_validate(sparse.csr_array(X), y, **common)
    columns = {f"x{j}": X[:, j] for j in range(3)} | {"target": y}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet", row_group_size=40)
    filed = exactcv.cross_validate(tmp_path, "target", **common)
    for other in (thin, filed):
        np.testing.assert_allclose(other.decision, plain.decision, rtol=0, atol=1e-9)
        assert other.certificate.exact


def test_dask_gives_the_same() -> None:
    da = pytest.importorskip("dask.array")
    X, y = table(150)
    common = {"approx": "rff", "n_components": 8, "loss": "least_squares", "Cs": CS}
    for cv in ("loo", 3, KFold(50)):
        plain = exactcv.cross_validate(X, y, cv=cv, random_state=0, **common)
        rows = da.from_array(X, chunks=(40, 3))
        far = exactcv.cross_validate(rows, y, cv=cv, random_state=0, **common)
        np.testing.assert_allclose(far.decision, plain.decision, rtol=0, atol=1e-9)


@pytest.mark.parametrize("loss", ["least_squares", "squared"])
def test_columns_take_the_place_of_the_linear_kernel(loss: str) -> None:
    X, y = table(400, 5)
    if loss == "squared":
        y = y > np.median(y)
    options: dict[str, Any] = {"kernel": "linear", "loss": loss, "Cs": CS, "output": "decision"}
    plain = exactcv.cross_validate(X, y, **options)
    result = exactcv.cross_validate(X, y, memory_limit="1.2MB", **options)
    assert result.coef is None and result.certificate.exact
    np.testing.assert_allclose(result.decision, plain.decision, rtol=0, atol=1e-6)


# --- estimators ---------------------------------------------------------------------------------


@pytest.mark.parametrize("cv", ["loo", 4])
def test_several_classes_vote_as_with_the_kernel(cv: Any, tmp_path: Path) -> None:
    X, y = table(120)
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6, 0.8]))
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 120)
    common: dict[str, Any] = {"Cs": CS, "cv": cv, "loss": "squared", "store_cv_results": True}
    common |= {"random_state": 0}
    model = exactcv.SVCCV(approx="nystroem", n_components=30, gamma=0.3, probability=True, **common)
    model.fit(X, labels, sample_weight=weight)
    Z = model.feature_map_.transform(X)
    exact = exactcv.SVCCV(kernel="precomputed", **common).fit(Z @ Z.T, labels, weight)
    found, expected = model.cv_results_["decision"], exact.cv_results_["decision"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(model.cv_results_["n_errors"], exact.cv_results_["n_errors"])
    np.testing.assert_array_equal(model.predict(X), exact.predict(Z @ Z.T))
    assert model.certificate_.exact and "NaN" not in model.summary()
    exactcv.save_model(model, tmp_path / "model")
    again = exactcv.load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("size", [1e80, 1e150, 1e200])
def test_features_whose_squares_are_too_large_are_refused(size: float) -> None:
    X, y = table(40)
    given_: dict[str, Any] = {"kernel": "linear", "loss": "least_squares", "Cs": [1.0]}
    with pytest.raises(exactcv.InputError, match="standardise the features"):
        exactcv.cross_validate(X * size, y, memory_limit="0.01MB", **given_)
