"""Method `rank_update`: every strategy equals refits, and the judge tells right from wrong."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest
from _problems import FloatArray, labels
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import KFold, LeaveOneOut, PredefinedSplit

import exactcv
from exactcv.algorithms.rank_update.newton_armijo import GRADIENT
from exactcv.exceptions import InputError, UnsupportedError
from exactcv.judge.certificate import judge_for
from exactcv.judge.smooth_svm import SmoothSVMJudge
from exactcv.problem.differentiable import squared_hinge
from exactcv.problem.problem import Problem

CS = [1e-3, 1.0, 1e3]


def breast_cancer() -> tuple[FloatArray, FloatArray]:
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X[::9], np.where(y > 0, 1.0, -1.0)[::9]


def shifted(n: int, p: int, by: float) -> tuple[FloatArray, FloatArray]:
    y = labels(n)
    return np.random.default_rng(n).normal(size=(n, p)) + by * y[:, None], y


DATA: dict[str, Any] = {
    "mixture": lambda: exactcv.datasets.make_mixture(50, 20, random_state=0),
    "breast_cancer": breast_cancer,
    "p>>n": lambda: shifted(40, 500, 0.1),
    "n>>p": lambda: shifted(120, 3, 0.5),
}


def validate(X: FloatArray, y: FloatArray, strategy: str = "auto", **options: Any) -> Any:
    """``Cs`` are the paper's c, twice the C of ``cross_validate``."""
    options = {"output": "decision", "Cs": CS, "loss": "squared_hinge"} | options
    if options["Cs"] is not None:
        options["Cs"] = [c / 2 for c in options["Cs"]]
    return exactcv.cross_validate(
        X, y, method="rank_update", method_options={"strategy": strategy}, **options
    )


def refits(
    X: FloatArray, y: FloatArray, kernel: str, gamma: Any, cv: Any, Cs: Any = CS
) -> FloatArray:
    """Left-out decision values by fitting each training set on its own."""
    out = np.full((len(Cs), len(y)), np.nan)
    for l, C in enumerate(Cs):
        for train, test in cv.split(X, y):
            model = exactcv.SmoothSVC(C=C, kernel=kernel, gamma=gamma, strategy="none")
            out[l, test] = model.fit(X[train], y[train]).decision_function(X[test])
    return out


def gradient_limit(X: FloatArray, kernel: str, Cs: Any = CS) -> FloatArray:
    """||g|| / max(1, ||theta||): the aim of the refinement, and the rounding of c A'(t - A theta).

    The rows of A are (x, 1), or (k, 1) with kernel values of at most 1.
    """
    length = np.sqrt((X * X).sum(axis=1) + 1) if kernel == "linear" else np.sqrt(len(X) + 1.0)
    terms = np.asarray(Cs) * np.sum(np.ones(len(X)) * length * (1 + length))
    return GRADIENT + np.finfo(float).eps * terms


@pytest.mark.parametrize("cv", [LeaveOneOut(), KFold(10, shuffle=True, random_state=0)])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("data", DATA)
def test_strategies_equal_refits(data: str, kernel: str, cv: Any) -> None:
    """Decision values to 1e-8, gradients to their aim or to rounding, for C from 1e-3 to 1e3."""
    X, y = DATA[data]()
    gamma = 1.0 / X.shape[1]
    expected = refits(X, y, kernel, gamma, cv)
    for strategy in ("auto", "I", "II", "none"):
        result = validate(X, y, strategy, kernel=kernel, gamma=gamma, cv=cv)
        assert result.certificate.exact
        assert (result.certificate.kkt <= gradient_limit(X, kernel)).all()
        assert result.decision == pytest.approx(expected, abs=1e-8)
        assert result.stats["missing"] == 0


def test_rows_that_are_no_support_vectors_cost_nothing() -> None:
    X, y = shifted(80, 3, 1.5)
    result = validate(X, y, kernel="linear", Cs=[1.0])
    full = exactcv.SmoothSVC(C=1.0).fit(X, y)
    assert 0 < len(full.support_) < 80
    assert result.stats["unchanged"] == 80 - len(full.support_)
    assert result.coef[0] @ X == pytest.approx(full.coef_[0], abs=1e-10)
    # The kernel model loses a column with each row, so every fold is solved.
    assert validate(X, y, kernel="rbf", Cs=[1.0]).stats["unchanged"] == 0


def test_a_column_without_coefficient_costs_nothing() -> None:
    """A kernel whose far rows see nobody: neither support vectors nor coefficients."""
    K = np.eye(6) * 100.0
    K[4:, 4:] = 0.0
    y = np.array([1.0, -1, 1, -1, 1, -1])
    result = validate(K, y, kernel="precomputed", Cs=[1e-6], fit_intercept=False)
    assert result.certificate.exact
    rows = np.flatnonzero(result.coef[0] == 0)
    assert set(rows) == {4, 5}


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_lambdas_and_weights(kernel: str) -> None:
    """C = 1 / (2 m lambda) in folds of m rows; weights as in SmoothSVC."""
    X, y = shifted(45, 4, 0.4)
    weight = np.random.default_rng(0).uniform(0.3, 2.0, 45)
    weight[[3, 30]] = 0.0
    used = np.flatnonzero(weight)
    cv, lambdas = KFold(4), np.array([0.1, 1e-3])
    for strategy in ("I", "II", "none"):
        result = validate(
            X,
            y,
            strategy,
            kernel=kernel,
            gamma=0.2,
            cv=cv,
            Cs=None,
            lambdas=lambdas,
            sample_weight=weight,
        )
        assert result.certificate.exact
        assert np.isnan(result.decision[:, weight == 0]).all()
        for l, value in enumerate(lambdas):
            for train, test in cv.split(X[used]):
                train, test = used[train], used[test]
                C = 1 / (2 * len(train) * value)
                model = exactcv.SmoothSVC(C=2 * C, kernel=kernel, gamma=0.2)
                model.fit(X[train], y[train], weight[train])
                expected = model.decision_function(X[test])
                assert result.decision[l, test] == pytest.approx(expected, abs=1e-9)


def test_without_intercept_and_threads() -> None:
    X, y = shifted(60, 4, 0.3)
    one = validate(X, y, fit_intercept=False)
    assert one.certificate.exact and not one.intercept.any()
    two = validate(X, y, fit_intercept=False, n_jobs=2)
    assert np.array_equal(one.decision, two.decision)


@pytest.mark.parametrize("strategy", ["I", "II"])
def test_updates_keep_their_digits_at_large_c(strategy: str) -> None:
    """A wide kernel at c = 1e3: no fold needs a factor of its own, none goes round in circles."""
    X, y = shifted(150, 3, 0.3)
    result = validate(X, y, strategy, kernel="rbf", gamma=0.1, Cs=[1e3])
    assert result.stats["refactored"] == 0
    assert result.stats["newton_steps"] < 5 * 150
    assert (result.certificate.kkt <= gradient_limit(X, "rbf", [1e3])).all()
    some = np.arange(0, 150, 50)
    expected = refits(X, y, "rbf", 0.1, PredefinedSplit(_alone(some, 150)), [1e3])
    assert result.decision[:, some] == pytest.approx(expected[:, some], abs=1e-8)


def _alone(rows: Any, n: int) -> Any:
    """Folds of one row each for `PredefinedSplit`; the other rows are always trained on."""
    fold = np.full(n, -1)
    fold[rows] = np.arange(len(rows))
    return fold


def test_the_kernel_matrix_need_not_be_positive_semidefinite() -> None:
    """It is data: the problem is convex all the same, and nobody is warned."""
    X, y = shifted(40, 3, 0.5)
    result = validate(X, y, kernel="sigmoid", gamma=1.0, coef0=-1.0, Cs=[1.0])
    assert np.linalg.eigvalsh(np.tanh(X @ X.T - 1.0))[0] < -0.1
    assert result.certificate.exact and result.certificate.convex
    expected = np.empty(40)
    for train, test in LeaveOneOut().split(X):
        model = exactcv.SmoothSVC(kernel="sigmoid", gamma=1.0, coef0=-1.0).fit(X[train], y[train])
        expected[test] = model.decision_function(X[test])
    assert result.decision[0] == pytest.approx(expected, abs=1e-8)


def test_auto_solves_afresh_where_that_is_less_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many rows, few of them support vectors, several of which leave: columns of n are dearer."""
    module = import_module("exactcv.algorithms.rank_update.method")
    leave_out, calls = module.leave_out, []
    monkeypatch.setattr(module, "leave_out", lambda *given: calls.append(1) or leave_out(*given))
    X, y = shifted(600, 60, 0.3)
    found, updated = {}, {}
    for strategy in ("auto", "I"):
        calls.clear()
        found[strategy] = validate(X, y, strategy, kernel="linear", cv=10, Cs=[1.0]).decision
        updated[strategy] = len(calls)
    assert updated["auto"] < updated["I"] == 10
    assert found["auto"] == pytest.approx(found["I"], abs=1e-9)


def test_rank_counts_rows_and_columns() -> None:
    X, y = shifted(60, 3, 0.5)
    rank = {
        kernel: validate(X, y, kernel=kernel, gamma=0.3, cv=5, Cs=[1e-3]).stats["mean_rank"]
        for kernel in ("linear", "rbf")
    }
    # At this c every row is a support vector in every fold: 12 rows leave, and 12 columns.
    assert rank == {"linear": 12.0, "rbf": 24.0}


def test_other_combinations_are_refused() -> None:
    X, y = shifted(20, 2, 1.0)
    with pytest.raises(UnsupportedError, match="squared_hinge"):
        exactcv.cross_validate(X, y, method="rank_update")
    with pytest.raises(InputError, match="strategy"):
        validate(X, y, "III")
    with pytest.raises(InputError, match="strategy"):
        exactcv.cross_validate(
            X, y, method="rank_update", loss="squared_hinge", method_options={"rank": 3}
        )


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_judge_notices(kernel: str) -> None:
    """A wrong coefficient, a wrong intercept, and one on a row that takes no part."""
    X, y = shifted(30, 3, 0.5)
    result = validate(X, y, kernel=kernel, gamma=0.3, Cs=[1.0])
    K = X @ X.T
    if kernel == "rbf":
        square = (X**2).sum(axis=1)
        K = np.exp(-0.3 * (square[:, None] + square - 2 * K))
    features = X if kernel == "linear" else None
    loss = squared_hinge(y)
    problem = Problem(K, y, np.ones(30), loss, penalty="ridge", features=features)
    judge = judge_for(problem)
    assert isinstance(judge, SmoothSVMJudge)

    def kkt(coef: FloatArray, b: float, judge: Any = judge) -> float:
        h = np.ascontiguousarray((K @ coef)[None])
        return float(judge.figures(h, coef[None], np.array([b]), np.array([0.5]))[0, 0])

    coef, b = result.coef[0].copy(), float(result.intercept[0])
    assert kkt(coef, b) < GRADIENT
    assert judge.intercepts((K @ coef)[None], coef[None], np.array([0.5])) == pytest.approx(b)
    assert kkt(coef, b + 1e-4) > 1e-5
    assert kkt(coef, b, judge_for(problem, np.array([int(np.abs(coef).argmax())]))) > 1e-3
    coef[np.abs(coef).argmax()] += 1e-4
    assert kkt(coef, b) > 1e-5
    coef[0] = np.nan
    assert kkt(coef, b) == np.inf


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_no_share_at_a_bound_that_does_not_exist(kernel: str) -> None:
    X, y = DATA["mixture"]()
    result = validate(X, y, kernel=kernel, cv=5)
    assert np.isnan(result.at_bound).all()
    assert "bound and" not in result.summary()


def test_a_row_that_alone_spans_a_direction() -> None:
    """Only row 7 knows feature 2, so without it w cannot be told from the full fit's rows."""
    X, y = DATA["n>>p"]()
    X = X * np.array([1.0, 1.0, 0.0])
    X[7, 2] = 1.0
    result = validate(X, y, kernel="linear", cv="loo")
    assert (result.certificate.kkt <= gradient_limit(X, "linear")).all()
    assert result.decision == pytest.approx(refits(X, y, "linear", 1.0, LeaveOneOut()), abs=1e-8)
