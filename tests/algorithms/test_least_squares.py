"""The squared loss: closed-form folds against plain solves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _problems import BUILDERS, FloatArray, Small
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import KFold, LeaveOneOut

import exactcv
from exactcv.algorithms.least_squares import LeastSquares


def solve(small: Small, rows: Any, C: float, fit_intercept: bool) -> tuple[FloatArray, float]:
    """[c; b] of a training set by a dense solver."""
    rows = rows[small.weight[rows] > 0]
    m = len(rows)
    M = np.zeros((m + 1, m + 1))
    M[:m, :m] = small.K[np.ix_(rows, rows)] + np.diag(1 / (C * small.weight[rows]))
    M[:m, m] = M[m, :m] = 1.0
    if not fit_intercept:
        M[m], M[:, m], M[m, m] = 0.0, 0.0, 1.0
    x = np.linalg.solve(M, np.append(small.y[rows], 0.0))
    coef = np.zeros(len(small.y))
    coef[rows] = x[:m]
    return coef, float(x[m])


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("scheme", ["loo", "k-fold", "lambdas"])
@pytest.mark.parametrize("name", ["mixture", "low_rank", "duplicates", "weighted"])
def test_equals_refits(name: str, scheme: str, fit_intercept: bool) -> None:
    small = BUILDERS[name](48)
    cv = LeaveOneOut() if scheme == "loo" else KFold(5, shuffle=True, random_state=0)
    lambdas = np.array([1.0, 1e-2, 1e-4])
    Cs = 1 / (2 * 48 * lambdas)
    grid: dict[str, Any] = {"lambdas": lambdas} if scheme == "lambdas" else {"Cs": Cs}
    result = exactcv.cross_validate(
        small.K,
        small.y,
        kernel="precomputed",
        method="least_squares",
        loss="squared",
        cv=cv,
        sample_weight=small.weight,
        fit_intercept=fit_intercept,
        output="decision",
        **grid,
    )
    assert result.certificate.exact
    used = np.flatnonzero(small.weight)
    for l in range(3):
        for train, test in cv.split(used):
            train, test = used[train], used[test]
            C = Cs[l] * (48 / len(train) if scheme == "lambdas" else 1.0)
            coef, b = solve(small, train, C, fit_intercept)
            expected = (small.K @ coef)[test] + b
            assert result.decision[l, test] == pytest.approx(expected, abs=1e-8)


def test_equals_kernel_ridge() -> None:
    small = BUILDERS["mixture"](40)
    ridge = KernelRidge(alpha=0.5, kernel="precomputed").fit(small.K, small.y)
    system = LeastSquares(small.K, small.y, small.weight, False)
    solution = system.full(system.inverse(2.0))
    assert solution == pytest.approx(ridge.dual_coef_, abs=1e-10)


def test_residual_formula() -> None:
    """y_i - f^(-i)(x_i) = c_i / G_ii, and the block formula for several rows."""
    small = BUILDERS["mixture"](40)
    system = LeastSquares(small.K, small.y, small.weight, True)
    G = system.inverse(3.0)
    full = system.full(G)
    rows = np.array([4, 9, 11])
    left = system.without(G, full, rows)
    f = small.K @ left[:40] + left[40]
    expected = np.linalg.solve(G[np.ix_(rows, rows)], full[rows])
    assert small.y[rows] - f[rows] == pytest.approx(expected, abs=1e-11)
    each = system.without_each(G, full, rows)
    f = each[:, :40] @ small.K + each[:, 40:]
    alone = f[np.arange(3), rows]
    assert small.y[rows] - alone == pytest.approx(full[rows] / np.diagonal(G)[rows], abs=1e-11)


def test_the_judge_notices() -> None:
    from exactcv.judge.squared import SquaredJudge
    from exactcv.problem.differentiable import SquaredLoss

    small = BUILDERS["mixture"](30)
    judge = SquaredJudge.of(SquaredLoss(small.y), small.weight, True, small.K.diagonal())
    coef, b = solve(small, np.arange(30), 2.0, True)

    def kkt(coef: FloatArray, b: float) -> float:
        h = (small.K @ coef)[None]
        return float(judge.figures(h, coef[None], np.array([b]), np.array([2.0]))[0, 0])

    assert kkt(coef, b) < 1e-13
    h = (small.K @ coef)[None]
    assert judge.intercepts(h, coef[None], np.array([2.0]))[0] == pytest.approx(b, abs=1e-12)
    assert kkt(coef, b + 1e-3) > 1e-4
    assert kkt(coef + 1e-3, b) > 1e-4


def test_other_losses_are_refused() -> None:
    X, y = exactcv.datasets.make_mixture(20, 2, random_state=0)
    with pytest.raises(exactcv.UnsupportedError, match="least_squares"):
        exactcv.cross_validate(X, y, loss="squared", method="magic")
    with pytest.raises(exactcv.UnsupportedError, match="magic"):
        exactcv.cross_validate(X, y, loss="logistic", method="least_squares")
