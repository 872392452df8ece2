"""`exact` against `refit` on awkward problems, fold schemes and C, and both against Clarabel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from _clarabel import clarabel_objective
from _oracle import Run, clear_of_ties, compare, make_task, run
from _problems import BUILDERS, FloatArray, Small, labels, rbf
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import KFold, LeaveOneGroupOut, RepeatedStratifiedKFold

import exactcv
from exactcv.judge.ledger import Ledger
from exactcv.problem.folds import make_folds

SMALL_C = [1e-6, 1e-3, 0.1, 1.0, 10.0, 100.0]
LARGE_C = [1e3, 1e4]
LAMBDAS = [1e2, 0.3, 1e-2, 1e-3]
ILL_CONDITIONED = {"polynomial", "low_rank"}


def breast_cancer(n: int = 70) -> Small:
    """Real data: every eighth row, standardised, as it comes."""
    X, target = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return Small(rbf(X[::8][:n]), np.where(target > 0, 1.0, -1.0)[::8][:n], np.ones(n))


def ties(n: int = 50) -> Small:
    """Points on a coarse grid: many distances are equal, some points are, with either label."""
    rng = np.random.default_rng(5)
    y = labels(n)
    return Small(rbf(np.round(rng.normal(size=(n, 2)) + 0.4 * y[:, None])), y, np.ones(n))


PROBLEMS: dict[str, Callable[[], Small]] = {
    **{name: lambda build=build: build(48) for name, build in BUILDERS.items()},  # type: ignore[misc]
    "unbalanced": BUILDERS["unbalanced"],
    "breast_cancer": breast_cancer,
    "ties": ties,
}


def some_pairs(n: int) -> Iterator[tuple[Any, Any]]:
    """Test sets that overlap and do not cover all rows; training sets that leave rows unused."""
    rows = np.arange(n)
    for first, last in ((0, 9), (5, 14), (30, 31)):
        yield np.r_[rows[:first], rows[last:]], rows[first:last]
    yield rows[: n - n // 4], rows[-3:]
    yield rows % 5 != 2, rows[rows % 5 == 2][:4]


def groups_of(n: int) -> FloatArray:
    return np.arange(n) * 7 % 9


SCHEMES: dict[str, Callable[[int], Any]] = {
    "loo": lambda n: "loo",
    "10-fold": lambda n: KFold(10, shuffle=True, random_state=3),
    "2-fold": lambda n: KFold(2, shuffle=True, random_state=0),
    "group": lambda n: LeaveOneGroupOut(),
    "repeated": lambda n: RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0),
    "pairs": some_pairs,
}


@cache
def solved(problem: str, scheme: str, grid: str, fit_intercept: bool, method: str) -> Run:
    return run(task_of(problem, scheme, grid, fit_intercept, decision=True), method)


def task_of(problem: str, scheme: str, grid: str, fit_intercept: bool, decision: bool) -> Any:
    small = PROBLEMS[problem]()
    n = len(small.y)
    groups = groups_of(n) if scheme == "group" else None
    folds = make_folds(SCHEMES[scheme](n), np.zeros((n, 1)), small.y, groups)
    values = {"small": SMALL_C, "large": LARGE_C, "lambdas": 1 / (2 * n * np.array(LAMBDAS))}[grid]
    return make_task(
        small,
        values,
        folds,
        fit_intercept=fit_intercept,
        decision=decision,
        lambdas=grid == "lambdas",
    )


intercepts = pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "none"])
schemes = pytest.mark.parametrize("scheme", SCHEMES)
problems = pytest.mark.parametrize("problem", PROBLEMS)


@intercepts
@schemes
@problems
def test_exact_equals_refit(problem: str, scheme: str, fit_intercept: bool) -> None:
    """To 1e-7 for C up to 100 (polynomial and low-rank kernels: to what is certified)."""
    which = problem, scheme, "small", fit_intercept
    strictly = problem not in ILL_CONDITIONED
    compare(solved(*which, "exact"), solved(*which, "refit"), strictly)


@intercepts
@pytest.mark.parametrize("scheme", ["loo", "10-fold", "pairs"])
@problems
def test_exact_equals_refit_for_large_C(problem: str, scheme: str, fit_intercept: bool) -> None:
    which = problem, scheme, "large", fit_intercept
    compare(solved(*which, "exact"), solved(*which, "refit"), strictly=False)


@pytest.mark.parametrize("scheme", ["loo", "2-fold", "pairs"])
@pytest.mark.parametrize("problem", ["mixture", "overlap", "duplicates", "weighted"])
def test_exact_equals_refit_with_lambdas(problem: str, scheme: str) -> None:
    which = problem, scheme, "lambdas", True
    compare(solved(*which, "exact"), solved(*which, "refit"), strictly=True)


@intercepts
@pytest.mark.parametrize("grid", ["small", "large"])
@problems
def test_labels_alone_are_the_labels_of_the_values(
    problem: str, grid: str, fit_intercept: bool
) -> None:
    """Wherever the value is not within rounding of a tie."""
    values = solved(problem, "loo", grid, fit_intercept, "exact")
    alone = run(task_of(problem, "loo", grid, fit_intercept, decision=False))
    assert alone.exact
    clear = clear_of_ties(values.ledger)
    assert clear.mean() > 0.9 or problem == "constant_features"
    assert (alone.ledger.wrong == values.ledger.wrong)[clear].all()


@intercepts
@problems
def test_few_folds_fall_back(problem: str, fit_intercept: bool) -> None:
    """The decremental steps and the paths do the work, not the solver behind them."""
    for scheme in ("loo", "10-fold"):
        assert solved(problem, scheme, "small", fit_intercept, "exact").share("fallback") <= 0.05


# ---- a judge that is not ours -------------------------------------------------------------------


def without(small: Small, rows: Any) -> Small:
    keep = np.setdiff1d(np.arange(len(small.y)), rows)
    return Small(small.K[np.ix_(keep, keep)], small.y[keep], small.weight[keep])


@intercepts
@problems
def test_objective_agrees_with_clarabel(problem: str, fit_intercept: bool) -> None:
    small = PROBLEMS[problem]()
    Cs = np.array([0.01, 1.0, 30.0])
    result = exactcv.cross_validate(
        small.K,
        small.y,
        kernel="precomputed",
        sample_weight=small.weight,
        Cs=Cs,
        fit_intercept=fit_intercept,
    )
    theirs = [clarabel_objective(small, C, fit_intercept) for C in Cs]
    n = np.count_nonzero(small.weight)  # a row of weight zero is as good as absent
    assert result.objective * n * Cs == pytest.approx(theirs, rel=1e-8)


@intercepts
@problems
def test_left_out_objective_agrees_with_clarabel(
    problem: str, fit_intercept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fold's objective, which only the ledger sees, is that of the rows that are left."""
    small = PROBLEMS[problem]()
    n, Cs = len(small.y), [0.05, 2.0]
    left_out = [np.arange(3, 4), np.arange(4, 12), np.arange(n)[5::3]]
    pairs = [(np.setdiff1d(np.arange(n), rows), rows) for rows in left_out]
    task = make_task(small, Cs, make_folds(pairs, None, small.y), fit_intercept=fit_intercept)
    primal, note = np.full((len(Cs), len(left_out) + 1), np.nan), Ledger._note

    def noted(self: Ledger, l: Any, columns: Any, out: Any) -> None:
        primal[l, columns] = out[:, 2]
        note(self, l, columns, out)

    monkeypatch.setattr(Ledger, "_note", noted)
    run(task)
    for fold, rows in enumerate(left_out):
        theirs = [clarabel_objective(without(small, rows), C, fit_intercept) for C in Cs]
        assert primal[:, fold] == pytest.approx(theirs, rel=1e-8)


# ---- through the front door ---------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES)
def test_public_result_equals_the_ledger(scheme: str) -> None:
    small = PROBLEMS["weighted"]()
    ours = solved("weighted", scheme, "small", True, "refit").ledger
    folds, rows = ours.task.folds, np.arange(len(small.y))
    result = exactcv.cross_validate(
        small.K,
        small.y,
        kernel="precomputed",
        sample_weight=small.weight,
        Cs=SMALL_C,
        cv=[
            (np.setdiff1d(rows, out), test)
            for out, test in zip(folds.left_out, folds.test, strict=True)
        ],
        output="decision",
    )
    assert result.certificate.exact
    counted = small.weight[folds.pair_rows] > 0  # a row of weight zero is as good as absent
    assert result.pair_decision == pytest.approx(ours.decision[:, counted], abs=1e-7)
