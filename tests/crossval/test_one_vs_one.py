"""Several classes: every left-out vote equals that of refitted pairs."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.svm import SVC
from sklearn.utils.multiclass import _ovr_decision_function

from exactcv.crossval.one_vs_one import (
    ManyClasses,
    PairResults,
    cross_validate_pairs,
    most_votes,
    ovo_columns,
    ovr_columns,
    votes_of,
)
from exactcv.crossval.run import KernelRows, Plan
from exactcv.engine.smo import solve_hinge
from exactcv.judge.ledger import HOW
from exactcv.problem.folds import Folds, leave_one_out_folds, make_folds
from exactcv.problem.grid import make_grid
from exactcv.problem.kernels import Kernel, kernel_matrix
from exactcv.problem.losses import hinge
from exactcv.problem.problem import Problem
from exactcv.runtime.threads import Workers

CS = [0.1, 3.0, 100.0]


def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    load = {"iris": load_iris, "wine": load_wine, "digits": load_digits}[name]
    X, y = load(return_X_y=True)
    if name == "digits":
        X, y = X[:120] / 16, y[:120]
    else:
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        X, y = X[::2], y[::2]
    return X, y


def many(name: str, folds: Any = None, **settings: Any) -> ManyClasses:
    X, y = data(name)
    K, _ = kernel_matrix(X, Kernel())
    parts = leave_one_out_folds(len(y)) if folds is None else make_folds(folds, X, y)
    grid = settings.pop("grid", make_grid(CS, None, len(y)))
    weight = settings.pop("weight", np.ones(len(y)))
    plan = Plan(**settings)
    return ManyClasses(KernelRows(K), y.astype(np.intp), weight, parts, grid, plan)


def run(task: ManyClasses, n_threads: int = 1) -> PairResults:
    with Workers(n_threads) as workers:
        return cross_validate_pairs(task, workers)


def brute_force(task: ManyClasses, l: int) -> np.ndarray:
    """Left-out pair decisions at one grid point, every pair of every fold trained afresh."""
    out, never = [], np.zeros(1, dtype=np.int32)
    cache: dict[Any, Any] = {}
    for fold in range(len(task.folds)):
        train = np.setdiff1d(np.arange(len(task.codes)), task.folds.left_out[fold])
        C = task.grid.for_fold(task.folds, fold)[l]
        columns = []
        for a, b in combinations(range(task.n_classes), 2):
            rows = train[np.isin(task.codes[train], [a, b])]
            key = (a, b, rows.tobytes())
            if key not in cache:
                y = np.where(task.codes == b, 1.0, -1.0)
                problem = Problem(task.rows.K, y, task.weight, hinge(y), task.plan.fit_intercept)
                cache[key] = solve_hinge(problem, rows, float(C), 1e-10, never)
            fit = cache[key]
            columns.append(task.rows.K[task.folds.test[fold]] @ fit.coef + fit.intercept)
        out.append(np.column_stack(columns))
    return np.vstack(out)


def assert_equals_brute_force(task: ManyClasses, at: tuple[int, ...]) -> None:
    found = run(task)
    labels_only = run(replace(task, plan=replace(task.plan, want_decision=False)))
    assert found.decision is not None and found.certificate.exact
    assert labels_only.decision is None
    np.testing.assert_array_equal(labels_only.votes, found.votes)
    for l in at:
        expected = brute_force(task, l)
        assert found.decision[l] == pytest.approx(expected, abs=1e-6)
        assert np.abs(expected).min() > 1e-7  # no draw, so all votes must agree
        np.testing.assert_array_equal(found.votes[l], votes_of(expected, task.n_classes))
        np.testing.assert_array_equal(found.labels[l], most_votes(found.votes[l]))
    truth = task.codes[task.folds.pair_rows]
    np.testing.assert_array_equal(found.wrong, found.labels != truth)


@pytest.mark.parametrize(("name", "at"), [("iris", (0, 1, 2)), ("wine", (1, 2)), ("digits", (1,))])
def test_leave_one_out(name: str, at: tuple[int, ...]) -> None:
    assert_equals_brute_force(many(name), at)


@pytest.mark.parametrize("name", ["iris", "wine", "digits"])
def test_k_fold(name: str) -> None:
    assert_equals_brute_force(many(name, StratifiedKFold(4, shuffle=True, random_state=0)), (1, 2))


def test_lambdas_count_the_rows_of_all_classes() -> None:
    grid = make_grid(None, [0.01, 0.0005], len(data("wine")[1]))
    task = many("wine", StratifiedKFold(3), grid=grid)
    share = 1 - len(task.folds.left_out[0]) / len(task.codes)
    assert task.grid.for_fold(task.folds, 0) == pytest.approx(grid.Cs / share)
    assert_equals_brute_force(task, (0, 1))


@pytest.mark.parametrize("lambdas", [False, True])
def test_folds_that_leave_out_one_class_or_one_row_of_a_pair(lambdas: bool) -> None:
    """A pair may lose no row at all in a fold, or one in each, without being leave-one-out."""
    y = data("iris")[1]
    a, b = np.flatnonzero(y == 0), np.flatnonzero(y == 2)
    tests = [a[:3], b[:3], np.array([a[5], b[5]]), np.array([a[6], b[6]])]
    splits = [(np.setdiff1d(np.arange(len(y)), test), test) for test in tests]
    n = len(y)
    grid = make_grid(None, 1 / (2 * n * np.array(CS)), n) if lambdas else make_grid(CS, None, n)
    assert_equals_brute_force(many("iris", splits, grid=grid), (0, 2))
    assert_equals_brute_force(many("iris", splits[:1], grid=grid), (0, 2))


def test_weights_and_no_intercept() -> None:
    rng = np.random.default_rng(0)
    n = len(data("wine")[1])
    assert_equals_brute_force(many("wine", weight=10 ** rng.uniform(-1, 1, n)), (1, 2))
    assert_equals_brute_force(many("wine", 4, weight=rng.uniform(0.5, 2, n)), (1, 2))
    assert_equals_brute_force(many("wine", 3, fit_intercept=False), (1, 2))


def test_groups_and_repeats() -> None:
    X, y = data("wine")
    splits = GroupKFold(3).split(X, y, np.arange(len(y)) % 9)
    assert_equals_brute_force(many("wine", [*splits, *StratifiedKFold(2).split(X, y)]), (1,))


@pytest.mark.parametrize("method", ["refit", "magic"])
def test_other_methods_agree(method: str) -> None:
    task = many("iris", StratifiedKFold(3), grid=make_grid([1.0, 10.0], None, 75))
    ours, other = run(task), run(replace(task, plan=replace(task.plan, method=method)))
    assert other.decision == pytest.approx(ours.decision, abs=1e-5)
    np.testing.assert_array_equal(other.votes, ours.votes)


def test_threads_give_the_same_bits() -> None:
    for folds in (None, 3):
        one, two = run(many("digits", folds)), run(many("digits", folds), n_threads=2)
        np.testing.assert_array_equal(one.decision, two.decision)
        np.testing.assert_array_equal(one.certificate.kkt, two.certificate.kkt)
        assert one.stats == two.stats


def test_leaving_a_row_out_touches_only_the_pairs_of_its_class() -> None:
    task = many("digits")
    found = run(task)
    assert found.decision is not None
    n_slots = len(task.grid) * len(task.folds) * len(found.fits)
    assert sum(found.stats[name] for name in HOW) == n_slots
    assert found.stats["missing"] == 0
    for p, fit in enumerate(found.fits):
        others = ~np.isin(task.codes, [fit.first, fit.second])
        K = task.rows.K[np.ix_(others, fit.rows)]
        full = fit.coef @ K.T + fit.intercept[:, None]
        assert found.decision[:, others, p] == pytest.approx(full)


def test_full_models_and_columns_are_those_of_svc() -> None:
    task = many("wine")
    found = run(task)
    for l, C in enumerate(CS):
        model = SVC(C=C, kernel="precomputed", tol=1e-8).fit(task.rows.K, task.codes)
        values = np.column_stack(
            [task.rows.K[:, fit.rows] @ fit.coef[l] + fit.intercept[l] for fit in found.fits]
        )
        model.decision_function_shape = "ovo"
        assert ovo_columns(values) == pytest.approx(model.decision_function(task.rows.K), abs=1e-3)
        model.decision_function_shape = "ovr"
        assert ovr_columns(values, 3) == pytest.approx(
            model.decision_function(task.rows.K), abs=1e-3
        )
        predicted = most_votes(votes_of(values, 3))
        np.testing.assert_array_equal(predicted, model.predict(task.rows.K))


def test_ovr_columns_follow_scikit_learn() -> None:
    d = np.random.default_rng(0).normal(size=(30, 10))
    assert ovr_columns(d, 5) == pytest.approx(_ovr_decision_function(d > 0, d, 5))


def test_draws() -> None:
    assert most_votes(votes_of(np.array([[-1.0, 1.0, -1.0]]), 3)).tolist() == [0]  # one vote each
    assert votes_of(np.array([[0.0, -1e-12, -1.0]]), 3).tolist() == [[0, 2, 1]]
    # A left-out value of zero is held against the row: equal classes, nothing to learn.
    codes = np.repeat([0, 1, 2], 4)
    rows, grid = KernelRows(np.ones((12, 12))), many("iris").grid
    task = ManyClasses(rows, codes, np.ones(12), leave_one_out_folds(12), grid)
    assert run(task).wrong.all()


def test_unresolved_folds_keep_their_numbers() -> None:
    task = many("iris", tol=1e-18)
    found = run(task)
    assert not found.certificate.exact
    folds = {fold for _, fold in found.certificate.unresolved}
    assert folds <= set(range(-1, len(task.folds))) and max(folds) > 50


def test_parts_are_no_leave_one_out() -> None:
    single = leave_one_out_folds(3)
    assert not Folds(3, single.left_out, single.test, np.ones(3)).leave_one_out
