"""The drop-in functions against fits of every fold and pair, one by one, in float64.

scikit-learn is the other judge, where its own accuracy allows: it keeps kernel values in float32,
so its decision values are right to 1e-5 or so, or to its tolerance where the kernel values are
exact in float32.
"""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn import model_selection as theirs
from sklearn.datasets import load_iris
from sklearn.exceptions import FitFailedWarning
from sklearn.svm import SVC

import exactcv
from exactcv.engine.smo import solve_hinge
from exactcv.problem.losses import hinge
from exactcv.problem.problem import Problem

X_IRIS, Y_IRIS = load_iris(return_X_y=True)
X_IRIS, Y_IRIS = X_IRIS[::2], Y_IRIS[::2]
FLOWERS = np.array(["setosa", "versicolor", "virginica"])[Y_IRIS]
WEIGHT = np.random.default_rng(0).uniform(0.2, 3.0, len(Y_IRIS))


def squared(A: Any, B: Any) -> Any:
    return (A @ B.T + 1.0) ** 2


def matrix(svc: SVC, X: Any) -> Any:
    """The kernel matrix, written out."""
    if callable(svc.kernel):
        return svc.kernel(X, X)
    if svc.kernel == "rbf":
        return np.exp(-svc.gamma * ((X[:, None] - X) ** 2).sum(axis=2))
    products = X @ X.T
    return products if svc.kernel == "linear" else (svc.gamma * products + svc.coef0) ** svc.degree


def brute_force(svc: SVC, X: Any, y: Any, weight: Any, cv: Any) -> Any:
    """scikit-learn's "ovo" columns of every row, each fold and pair trained on its own."""
    K, never = np.ascontiguousarray(matrix(svc, X)), np.zeros(1, dtype=np.int32)
    classes = np.unique(y)
    pairs = list(combinations(range(len(classes)), 2))
    out = np.full((len(y), len(pairs)), np.nan)
    for train, test in cv.split(X, y):
        for p, (a, b) in enumerate(pairs):
            rows = train[np.isin(y[train], classes[[a, b]])]
            signs = np.where(y == classes[b], 1.0, -1.0)
            problem = Problem(K, signs, weight, hinge(signs))
            fit = solve_hinge(problem, rows.astype(np.intp), float(svc.C), 1e-11, never)
            out[test, p] = -(K[test] @ fit.coef + fit.intercept)
    return out


KERNELS = [
    {"kernel": "linear"},
    {"kernel": "poly", "gamma": 0.25, "coef0": 1.0, "degree": 2},
    {"kernel": squared},
    {"kernel": "rbf", "gamma": 0.3},
]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_values_equal_brute_force(kernel: dict[str, Any], C: float, weight: Any) -> None:
    svc = SVC(C=C, decision_function_shape="ovo", **kernel)
    cv = theirs.StratifiedKFold(4)
    params = None if weight is None else {"sample_weight": weight}
    found = exactcv.cross_val_predict(
        svc, X_IRIS, FLOWERS, cv=cv, method="decision_function", params=params
    )
    ones = np.ones(len(FLOWERS)) if weight is None else weight
    expected = brute_force(svc, X_IRIS, FLOWERS, ones, cv)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("kernel", KERNELS[:3])
@pytest.mark.parametrize("shape", ["ovo", "ovr"])
def test_values_equal_scikit_learns_where_float32_is_exact(
    kernel: dict[str, Any], shape: str
) -> None:
    """Features are multiples of 1/2, so kernel values are multiples of 1/256 and below 2**14."""
    X = np.round(2.0 * X_IRIS) / 2.0
    svc = SVC(decision_function_shape=shape, tol=1e-10, **kernel)
    K = matrix(svc, X)
    np.testing.assert_array_equal(K, K.astype(np.float32))
    options: dict[str, Any] = {"cv": 4, "method": "decision_function"}
    found = exactcv.cross_val_predict(svc, X, FLOWERS, **options)
    expected = theirs.cross_val_predict(svc, X, FLOWERS, **options)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


# ---- random problems ---------------------------------------------------------------------------


def figures(model: Any, X: Any, y: Any) -> dict[str, float]:
    """All labels in one number, the share that is right, and the values."""
    labels, values = model.predict(X), model.decision_function(X)
    numbers = np.array([1.0 + "abcd".index(label[-1]) for label in labels])
    return {
        "labels": float(numbers @ 5.0 ** np.arange(len(labels))),  # exact: at most 20 rows
        "right": float((labels == y).mean()),
        "least": float(np.abs(values).min()),
        "sum": float(values.sum()),
    }


def random_search(seed: int) -> tuple[Any, Any, dict[str, Any], Any, dict[str, Any]]:
    """Rows, string labels, a grid, folds and fit parameters."""
    rng = np.random.default_rng(seed)
    n_classes, n = int(rng.integers(2, 5)), int(rng.integers(14, 36))
    codes = rng.permutation(
        np.r_[np.repeat(np.arange(n_classes), 3), rng.integers(0, n_classes, n)]
    )
    codes = codes[:40]
    X = rng.normal(size=(len(codes), int(rng.integers(1, 5))))
    X += rng.choice([0.0, 0.7, 2.0]) * np.column_stack([codes == 1] * X.shape[1])
    y = np.array(["class " + "abcd"[code] for code in codes])
    gammas: list[Any] = [*10.0 ** rng.uniform(-1.5, 1.0, 2), "scale", "auto"]
    grid: dict[str, Any] = {
        "C": 10.0 ** rng.uniform(-2, 2, int(rng.integers(1, 4))),
        "gamma": [gammas[k] for k in rng.choice(4, 2, replace=False)],
    }
    if rng.random() < 0.3:
        # Not "balanced": all coefficients can then be at their bounds but for rounding, on which
        # it depends whether LIBSVM takes the midpoint or an end of the optimal intercepts.
        grid["class_weight"] = [None, {"class a": 2.5, "class b": 0.7}]
    cv = [
        theirs.StratifiedKFold(3),
        theirs.KFold(4, shuffle=True, random_state=seed),
        theirs.ShuffleSplit(3, test_size=0.3, random_state=seed),
        theirs.LeaveOneOut(),
    ][rng.integers(4)]
    fit = {}
    if rng.random() < 0.5:
        fit["sample_weight"] = rng.choice([0.0, 0.5, 1.0, 2.0], len(y), p=[0.05, 0.3, 0.35, 0.3])
        fit["sample_weight"] *= rng.uniform(0.8, 1.25, len(y))
    return X, y, grid, cv, fit


def test_random_searches_are_scikit_learns() -> None:
    clear = []

    @settings(
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=30,
        suppress_health_check=list(HealthCheck),
    )
    @given(seed=st.integers(0, 100_000))
    def check(seed: int) -> None:
        clear.append(compare(*random_search(seed)))

    check()
    cases = np.concatenate(clear)
    assert cases.mean() > 0.95 and len(cases) > 500  # few are ties, which prove nothing


def compare(X: Any, y: Any, grid: Any, cv: Any, fit: dict[str, Any]) -> Any:
    """Compare all that was found; returns where no decision value is near zero."""
    svc = SVC(tol=1e-10, decision_function_shape="ovo")
    options: dict[str, Any] = {"cv": cv, "refit": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", exactcv.SlowFoldsWarning)
        warnings.simplefilter("ignore", FitFailedWarning)
        warnings.filterwarnings("ignore", "One or more of the test scores")
        warnings.filterwarnings("ignore", "Scoring failed")
        warnings.filterwarnings("ignore", "The scoring .* does not support sample_weight")
        ours, expected, plain, plain_expected = (
            search.fit(X, y, **fit).cv_results_
            for search in (
                exactcv.GridSearchCV(svc, grid, scoring=figures, **options),
                theirs.GridSearchCV(svc, grid, scoring=figures, **options),
                exactcv.GridSearchCV(svc, grid, **options),
                theirs.GridSearchCV(svc, grid, **options),
            )
        )
    assert ours["params"] == expected["params"] == plain["params"]

    def table(results: Any, name: str) -> Any:
        keys = [key for key in results if key.startswith("split") and key.endswith(f"_{name}")]
        return np.array([results[key] for key in keys])

    clear = ~(table(ours, "least") <= 1e-6)  # also where the fit fails: then both have NaN
    for name in ("labels", "right"):
        np.testing.assert_array_equal(table(ours, name)[clear], table(expected, name)[clear])
    # scikit-learn's kernel values are float32; how exact ours are is tested above.
    np.testing.assert_allclose(table(ours, "sum"), table(expected, "sum"), rtol=2e-3, atol=2e-3)
    # Without a scorer of one's own the scores count by weight.
    pair = table(plain, "score"), table(plain_expected, "score")
    np.testing.assert_allclose(pair[0][clear], pair[1][clear], rtol=1e-12)
    if not fit:
        np.testing.assert_array_equal(pair[0], table(ours, "right"))
    return clear.ravel()
