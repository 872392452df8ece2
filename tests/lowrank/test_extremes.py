"""Approximate kernels on data and settings at the edge of what numbers and memory can hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import exactcv

COMMON: dict[str, Any] = {"n_components": 20, "lambdas": [0.1, 0.01], "random_state": 0}


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    return exactcv.datasets.make_mixture(300, 5, random_state=0)


@pytest.mark.parametrize(
    ("scale", "options"),
    [
        (1e-160, {"approx": "nystroem"}),
        (1e-160, {"approx": "rff"}),
        (1e-160, {"approx": "rff", "kernel": "laplacian"}),
        (1e-160, {"approx": "nystroem", "kernel": "poly", "coef0": 0.0}),
        (1e160, {"approx": "nystroem"}),
        (1e160, {"approx": "nystroem", "kernel": "linear"}),
        (1e160, {"approx": "nystroem", "kernel": "poly"}),
        (1e160, {"approx": "nystroem", "kernel": "poly", "gamma": 1.0}),
        (1e307, {"approx": "rff", "gamma": 1e3}),
    ],
)
def test_overflow_is_an_error_that_says_what_to_do(data: Any, scale: float, options: Any) -> None:
    X, y = data
    with pytest.raises(exactcv.InputError, match=r"overflow.*standardise"):
        exactcv.cross_validate(X * scale, y, **COMMON, **options)


@pytest.mark.parametrize("options", [{"kernel": "linear"}, {"gamma": 0.1}, {}])
def test_one_huge_row(data: Any, options: Any) -> None:
    """Whether it is a landmark or not."""
    X, y = data
    for row in (0, 7, 100):
        spoilt = X.copy()
        spoilt[row] = 1e308
        with pytest.raises(exactcv.InputError, match=r"overflow.*standardise"):
            exactcv.cross_validate(spoilt, y, approx="nystroem", **COMMON, **options)


def test_new_rows_may_overflow_too(data: Any) -> None:
    X, y = data
    model = exactcv.SVCCV(approx="nystroem", kernel="linear", **COMMON).fit(X, y)
    with pytest.raises(exactcv.InputError, match="the linear kernel overflows"):
        model.predict(np.full((2, 5), 1e308))


def test_features_may_overflow_in_single_precision(data: Any) -> None:
    X, y = data
    spoilt = X.copy()
    spoilt[7] = 1e60
    with pytest.raises(exactcv.InputError, match=r"overflow in float32.*float64"):
        exactcv.cross_validate(
            spoilt, y, approx="nystroem", kernel="linear", **COMMON,
            method_options={"dtype": "float32"},
        )  # fmt: skip


def test_a_kernel_function_that_is_not_finite(data: Any) -> None:
    X, y = data
    with pytest.raises(exactcv.InputError, match="not finite"):
        exactcv.cross_validate(
            X, y, kernel=lambda A, B: np.full((len(A), len(B)), np.nan), approx="nystroem", **COMMON
        )


@pytest.mark.parametrize("scale", [1e-160, 0.0])
def test_underflow_leaves_the_intercept(data: Any, scale: float) -> None:
    """As with the exact kernel; in particular, without a warning that it is not semidefinite."""
    X, y = data
    options = {"kernel": "linear", "lambdas": [0.1, 0.01]}
    found = exactcv.cross_validate(
        X * scale, y, approx="nystroem", n_components=20, random_state=0, **options
    )
    exact = exactcv.cross_validate(X * scale, y, **options)
    np.testing.assert_array_equal(found.n_errors, exact.n_errors)
    np.testing.assert_array_equal(found.weights, 0.0)


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("cv", [3, "loo"])
def test_very_small_problems(data: Any, rows: int, cv: Any) -> None:
    X, y = data
    expected = exactcv.cross_validate(X, y, approx="rff", cv=cv, **COMMON)
    found = exactcv.cross_validate(
        X, y, approx="rff", cv=cv, method_options={"target_rows": rows}, **COMMON
    )
    assert found.certificate.exact
    np.testing.assert_array_equal(found.n_errors, expected.n_errors)
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-8)


def test_more_components_than_memory_holds(data: Any) -> None:
    X, y = data
    with pytest.raises(exactcv.InputError, match=r"1000000000000 components need at least .* GB"):
        exactcv.cross_validate(X, y, approx="rff", n_components=10**12)
    for approx in ("rff", "nystroem"):
        with pytest.raises(exactcv.InputError, match=r"250 components .* limit is 1\.0 MB"):
            exactcv.cross_validate(X, y, approx=approx, n_components=250, memory_limit="1MB")


def test_a_sample_that_memory_cuts_short(data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It changes the way to the solution, not the solution."""
    from exactcv.lowrank import budget
    from exactcv.lowrank import method as driver

    X, y = data
    common = COMMON | {"approx": "rff", "gamma": 0.1}
    expected = exactcv.cross_validate(X, y, **common)
    monkeypatch.setattr(budget, "GAMMA_ROWS", 50)
    sizes: list[int] = []
    original = driver._sample_size

    def noted(job: Any, n: int) -> int:
        sizes.append(original(job, n))
        return sizes[-1]

    monkeypatch.setattr(driver, "_sample_size", noted)
    found = exactcv.cross_validate(X, y, memory_limit="150kB", **common)
    assert sizes == [150_000 // (4 * 2 * 8 * 20)]
    np.testing.assert_array_equal(found.n_errors, expected.n_errors)
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-8)


@pytest.mark.parametrize("approx", ["rff", "nystroem"])
@pytest.mark.parametrize("options", [{}, {"target_rows": 12}])
def test_nearly_all_rows_have_weight_zero(approx: str, options: Any) -> None:
    """They are as good as absent."""
    X, y = exactcv.datasets.make_mixture(3000, 5, random_state=0)
    weight = np.zeros(3000)
    weight[np.concatenate([np.flatnonzero(y > 0)[:20], np.flatnonzero(y < 0)[:20]])] = 1.0
    used = np.flatnonzero(weight)
    common: dict[str, Any] = {"approx": approx, "n_components": 9, "random_state": 0, "gamma": 0.1}
    common |= {"Cs": [0.1, 1.0], "method_options": options}
    found = exactcv.cross_validate(X, y, sample_weight=weight, **common)
    alone = exactcv.cross_validate(X[used], y[used], **common)
    assert found.certificate.exact and found.wrong.shape == (2, 3000)
    np.testing.assert_allclose(found.weights, alone.weights, atol=1e-8)
    np.testing.assert_array_equal(found.wrong[:, used], alone.wrong)
    if approx == "nystroem":
        with pytest.raises(exactcv.InputError, match="more than the 40 rows"):
            exactcv.cross_validate(X, y, sample_weight=weight, **(common | {"n_components": 41}))


@pytest.mark.parametrize("gamma", ["median", "scale"])
def test_gamma_is_that_of_the_exact_kernel(data: Any, gamma: str) -> None:
    X, y = data
    weight = np.where(np.arange(300) < 200, 1.0, 0.0)
    common: dict[str, Any] = {"gamma": gamma, "lambdas": [0.1], "sample_weight": weight}
    found = exactcv.cross_validate(X, y, approx="rff", n_components=9, random_state=0, **common)
    assert found.gamma == pytest.approx(exactcv.cross_validate(X, y, **common).gamma, rel=1e-12)


@pytest.mark.parametrize("scale", [1e4, 1e6])
def test_what_only_rounding_keeps_from_the_tolerance_is_not_solved_again_and_again(
    scale: float,
) -> None:
    """Each row that is left out cost six rounds of three solvers each."""
    rng = np.random.default_rng(0)
    X, options = rng.normal(size=(60, 1)), {"kernel": "linear", "cv": "loo"}
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, 1, -1)
    approx: dict[str, Any] = {"approx": "nystroem", "n_components": 1}
    with pytest.warns(exactcv.NotExactWarning):
        result = exactcv.cross_validate(X * scale, y, lambdas=[0.01], **options, **approx)
    assert not result.certificate.exact
    assert result.stats["passes"] <= 5
    plain = exactcv.cross_validate(X, y, lambdas=[0.01 / scale], **options, **approx)
    assert abs(result.error[0] - plain.error[0]) <= 2 / 60
