"""With approx the answer is that of the exact engine on the explicit kernel Z Z'."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold

import exactcv
from exactcv.crossval.result import CVResult
from exactcv.lowrank.small.feature_shares import Shares

# Few rows in the small problems: samples, several rounds and rows that escape all happen.
SMALL = {"target_rows": 40, "chunk_rows": 50}


def on_explicit_kernel(result: CVResult, X: np.ndarray, y: np.ndarray, **options: Any) -> CVResult:
    Z = result.feature_map.transform(X)
    return exactcv.cross_validate(Z @ Z.T, y, kernel="precomputed", **options)


def assert_same(result: CVResult, exact: CVResult, atol: float = 1e-6) -> None:
    assert result.certificate.exact and exact.certificate.exact
    np.testing.assert_array_equal(result.wrong, exact.wrong)
    np.testing.assert_array_equal(result.n_errors, exact.n_errors)
    np.testing.assert_allclose(result.objective, exact.objective, rtol=1e-10)
    np.testing.assert_allclose(result.intercept, exact.intercept, atol=atol)
    np.testing.assert_allclose(result.at_bound, exact.at_bound)
    np.testing.assert_allclose(result.se, exact.se)
    assert (result.best, result.one_se) == (exact.best, exact.one_se)
    if result.decision is not None:
        np.testing.assert_allclose(result.decision, exact.decision, atol=atol)


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y = exactcv.datasets.make_mixture(240, 5, random_state=3)
    weight = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], 240)
    return X, y, weight


@pytest.mark.parametrize("approx", ["rff", "nystroem"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("options", [{}, SMALL])
def test_leave_one_out(data, approx, fit_intercept, weighted, options) -> None:
    X, y, weight = data
    common = {"lambdas": np.geomspace(1, 1e-4, 4), "output": "decision"}
    common |= {"fit_intercept": fit_intercept, "sample_weight": weight if weighted else None}
    result = exactcv.cross_validate(
        X, y, approx=approx, n_components=9, random_state=0, method_options=options, **common
    )
    exact = on_explicit_kernel(result, X, y, **common)
    assert_same(result, exact)
    labels = exactcv.cross_validate(
        X, y, approx=approx, n_components=9, random_state=0, method_options=options,
        **(common | {"output": "error"}),
    )  # fmt: skip
    np.testing.assert_array_equal(labels.wrong, exact.wrong)
    assert labels.decision is None
    settled = sum(labels.stats[how] for how in ("unchanged", "bound", "solved", "fallback"))
    counted = np.count_nonzero(weight) if weighted else len(y)
    assert settled == 4 * counted
    assert labels.stats["bound"] > 0


@pytest.mark.parametrize(
    ("cv", "options"),
    [
        (4, {}),
        (4, SMALL),
        (RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=1), SMALL),
    ],
)
@pytest.mark.parametrize("grid", [{"lambdas": [0.3, 0.01, 1e-4]}, {"Cs": [0.01, 1.0]}])
def test_folds(data, cv, options, grid) -> None:
    X, y, weight = data
    common = grid | {"output": "decision", "class_weight": "balanced", "sample_weight": weight}
    result = exactcv.cross_validate(
        X, y, cv=cv, approx="rff", n_components=8, random_state=0, method_options=options, **common
    )
    same = StratifiedKFold(4, shuffle=True, random_state=0) if cv == 4 else cv
    assert_same(result, on_explicit_kernel(result, X, y, cv=same, **common))
    np.testing.assert_array_equal(result.pair_wrong.shape, (len(result.Cs), len(result.test_row)))


def test_any_splits_and_labels(data) -> None:
    X, y, _ = data
    labels = np.where(y > 0, "yes", "no")
    rows = np.random.default_rng(5).permutation(len(y))
    cv = [(rows[:100], rows[100:150]), (rows[50:], rows[:20]), (rows[1:], rows[:1])]
    common = {"Cs": [0.1, 5.0], "output": "decision", "cv": cv}
    result = exactcv.cross_validate(
        X, labels, approx="nystroem", n_components=8, random_state=2, method_options=SMALL, **common
    )
    assert_same(result, on_explicit_kernel(result, X, labels, **common))
    assert result.classes.tolist() == ["no", "yes"]


def test_several_passes_with_samples() -> None:
    """More rows than small problems hold: guesses, sampled rounds, the exact finish."""
    X, y = exactcv.datasets.make_mixture(1000, 6, random_state=0)
    common = {"lambdas": np.geomspace(1, 1e-3, 4), "output": "decision"}
    result = exactcv.cross_validate(
        X, y, approx="rff", n_components=10, random_state=1, n_jobs=2,
        method_options={"target_rows": 80, "chunk_rows": 300}, **common,
    )  # fmt: skip
    assert result.stats["passes"] > 2
    assert_same(result, on_explicit_kernel(result, X, y, **common))


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(12, 90),
    m=st.integers(1, 7),
    C=st.floats(1e-3, 1e3),
    fit_intercept=st.booleans(),
    repeats=st.booleans(),
    target=st.integers(4, 60),
)
def test_proved_labels_are_the_solved_ones(seed, n, m, C, fit_intercept, repeats, target) -> None:
    """Also with duplicated and contradictory rows, and unbalanced classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    if repeats:
        X = X[rng.integers(0, 5, n)]
    y = np.where(X[:, 0] + rng.normal(size=n) > rng.normal(), 1.0, -1.0)
    y[:4] = [1.0, 1.0, -1.0, -1.0]
    common = {"Cs": [C, 0.3 * C], "fit_intercept": fit_intercept}
    result = exactcv.cross_validate(
        X, y, approx="rff", gamma=0.3, n_components=m, random_state=seed,
        method_options={"target_rows": target, "chunk_rows": 17}, **common,
    )  # fmt: skip
    values = on_explicit_kernel(result, X, y, output="decision", **common)
    assert result.certificate.exact
    clear = np.abs(values.decision) > 1e-6  # on a tie the two may round to different sides
    np.testing.assert_array_equal(result.wrong[clear], values.wrong[clear])


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_shares_prove_labels(fit_intercept, weighted, monkeypatch) -> None:
    """Weak regularisation: many of the labels that are still open, and only right ones."""
    X, y = exactcv.datasets.make_mixture(1500, 4, random_state=3)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 1500) if weighted else None
    asked, proved = [], []
    prove = Shares.prove

    def counted(self, Z, coef, value, place):
        right = prove(self, Z, coef, value, place)
        asked.append(len(right))
        proved.append(int(right.sum()))
        return right

    monkeypatch.setattr(Shares, "prove", counted)
    common = {"lambdas": np.geomspace(1e-2, 1e-4, 4), "fit_intercept": fit_intercept}
    result = exactcv.cross_validate(
        X, y, approx="rff", n_components=6, random_state=1, sample_weight=weight,
        method_options={"target_rows": 60}, **common,
    )  # fmt: skip
    values = on_explicit_kernel(result, X, y, output="decision", sample_weight=weight, **common)
    np.testing.assert_array_equal(result.wrong, values.wrong)
    assert sum(asked) > 300
    assert sum(proved) > 0.4 * sum(asked)


@pytest.mark.parametrize("approx", ["rff", "nystroem"])
def test_the_chunk_size_does_not_matter(data, approx) -> None:
    X, y, _ = data
    runs = [
        exactcv.cross_validate(
            X, y, approx=approx, n_components=12, random_state=7, lambdas=4, output="decision",
            memory_limit="1GB", method_options=how,
        )
        for how in (
            {"chunk_rows": 240}, {"chunk_rows": 7}, {"chunk_rows": 31, "features": "spill"},
            {"chunk_rows": 64, "features": "recompute"},
        )
    ]  # fmt: skip
    for other in runs[1:]:
        np.testing.assert_allclose(other.decision, runs[0].decision, atol=1e-8)
        np.testing.assert_allclose(other.weights, runs[0].weights, atol=1e-8)
        np.testing.assert_array_equal(other.wrong, runs[0].wrong)
    assert [run.stats["features"] for run in runs] == ["memory", "memory", "spill", "recompute"]


def test_float32_features(data) -> None:
    """Features rounded to float32 are features as good as any: all else stays float64."""
    X, y, _ = data
    common = {"lambdas": np.geomspace(1, 1e-3, 3), "output": "decision"}
    result = exactcv.cross_validate(
        X, y, approx="rff", n_components=12, random_state=7, **common,
        method_options={"dtype": "float32"},
    )  # fmt: skip
    Z = result.feature_map.transform(X).astype(np.float32).astype(float)
    assert_same(result, exactcv.cross_validate(Z @ Z.T, y, kernel="precomputed", **common))


def test_result_and_summary(data) -> None:
    X, y, _ = data
    result = exactcv.cross_validate(X, y, approx="rff", n_components=11, lambdas=3, random_state=0)
    assert "approximate kernel (rff, 11 components)" in result.summary()
    assert result.approx == "rff" and result.coef is None
    assert result.weights.shape == (3, 11)
    assert result.feature_map.gamma == result.gamma
    # The model can be rebuilt from it.
    u = result.feature_map.transform(X) @ result.weights[2] + result.intercept[2]
    hinge = np.maximum(0.0, 1.0 - y * u).mean()
    weights = result.weights[2]
    assert np.isclose(hinge + result.lambdas[2] * weights @ weights, result.objective[2])


@pytest.mark.parametrize("output", ["error", "decision"])
def test_repeated_rows_on_the_margin(output: Literal["error", "decision"]) -> None:
    """Each row stands there three times: what is left out is a part of its site."""
    rng = np.random.default_rng(0)
    X = np.tile(rng.normal(size=(90, 4)), (3, 1))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=270) > 0, 1.0, -1.0)
    result = exactcv.cross_validate(
        X, y, approx="nystroem", n_components=20, gamma=0.2, random_state=0,
        Cs=[0.3, 3.0, 30.0, 300.0], output=output,
    )  # fmt: skip
    assert result.feature_map is not None
    Z = result.feature_map.transform(X)
    exact = exactcv.cross_validate(
        Z @ Z.T, y, kernel="precomputed", Cs=[0.3, 3.0, 30.0, 300.0], output=output
    )
    assert result.certificate.exact and exact.certificate.exact
    np.testing.assert_array_equal(result.wrong, exact.wrong)
    if output == "decision":
        np.testing.assert_allclose(result.decision, exact.decision, rtol=0, atol=1e-6)
