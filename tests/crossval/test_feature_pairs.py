"""Several classes with features, against the exact engine on the kernel of these features."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, ShuffleSplit

import exactcv
from exactcv.crossval.classes import ManyClasses
from exactcv.crossval.feature_pairs import (
    FeatureClasses,
    FeatureResults,
    cross_validate_features,
)
from exactcv.crossval.one_vs_one import PairResults, cross_validate_pairs
from exactcv.crossval.run import KernelRows, Plan
from exactcv.lowrank.open_source import open_source
from exactcv.lowrank.options import Options
from exactcv.lowrank.task import FeatureProblem, FeatureTask
from exactcv.problem.folds import Folds, folds_of_rows, leave_one_out_folds, make_folds
from exactcv.problem.grid import make_grid
from exactcv.problem.kernels import Kernel
from exactcv.runtime.threads import Workers

N = 90
C_GRID = {"Cs": [1e-3, 1e-1, 1.0, 1e2, 1e4], "lambdas": None}
LAMBDA_GRID = {"Cs": None, "lambdas": [1.0, 1e-2, 1e-4]}


def data(n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, some of them repeated and in two classes; classes of unlike size; weights."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(n_classes, N, p=np.arange(1, n_classes + 1) / sum(range(1, n_classes + 1)))
    codes[:n_classes] = np.arange(n_classes)
    X = rng.normal(size=(N, 3)) + 0.7 * codes[:, None]
    X[60:70] = X[:10]
    return X, codes, rng.choice([0.5, 1.0, 3.0], N)


def task_of(
    X: Any, codes: np.ndarray, weight: np.ndarray, folds: Folds, **changes: Any
) -> FeatureClasses:
    options = {"approx": "nystroem", "m": 12, "want_decision": True, "budget": 10**9, "chunk": 17}
    options |= {"fit_intercept": True} | C_GRID | changes
    problem = FeatureProblem(
        open_source(X, [], options["chunk"]),
        np.zeros(len(codes)),  # not used
        weight,
        Kernel("rbf", gamma=0.3),
        options["approx"],
        options["m"],
        0,
        options["fit_intercept"],
    )
    grid = make_grid(options["Cs"], options["lambdas"], len(codes))
    how = Options(chunk_rows=options["chunk"])
    wanted = options["want_decision"]
    return FeatureClasses(
        FeatureTask(problem, folds, grid, wanted, 1e-8, how, options["budget"]), codes
    )


def run(task: FeatureClasses, n_threads: int = 1) -> FeatureResults:
    with Workers(n_threads) as workers:
        return cross_validate_features(task, workers)


def labels_of(found: FeatureResults) -> np.ndarray:
    return np.array([found.labels_at(l) for l in range(len(found.wrong))])


def exactly(task: FeatureClasses, X: np.ndarray, found: FeatureResults) -> PairResults:
    """The same by the exact engine."""
    Z = found.feature_map.transform(X)
    plan = Plan(fit_intercept=task.task.problem.fit_intercept)
    many = ManyClasses(KernelRows(Z @ Z.T), task.codes, task.weight, task.folds, task.grid, plan)
    with Workers(1) as workers:
        return cross_validate_pairs(many, workers)


def folds_by_name(name: str, X: np.ndarray, codes: np.ndarray) -> Folds:
    if name == "loo":
        return leave_one_out_folds(N)
    if name == "some rows":
        return folds_of_rows(N, np.arange(0, N, 3))
    if name == "groups":  # some folds leave out no row of some pairs
        groups = codes * 2 + (np.arange(N) % 2)
        return make_folds(GroupKFold(len(np.unique(groups))), X, codes, groups, None)
    if name == "shuffled":  # rows that several folds test, and none
        return make_folds(ShuffleSplit(3, test_size=0.3, random_state=1), X, codes, None, None)
    return make_folds(int(name), X, codes, None, None)


@pytest.mark.parametrize("m", [1, 12, N])
@pytest.mark.parametrize("folds", ["loo", "5"])
@pytest.mark.parametrize("grid", [C_GRID, LAMBDA_GRID], ids=["Cs", "lambdas"])
def test_values_and_labels_are_those_of_the_exact_engine(
    m: int, folds: str, grid: dict[str, Any]
) -> None:
    X, codes, weight = data(4)
    task = task_of(X, codes, weight, folds_by_name(folds, X, codes), m=m, **grid)
    found = run(task)
    exact = exactly(task, X, found)
    assert exact.decision is not None and found.decision is not None
    np.testing.assert_allclose(found.decision, exact.decision, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(labels_of(found), exact.labels)
    np.testing.assert_array_equal(found.wrong, exact.wrong)
    assert found.certificate.exact and max(found.certificate.kkt) <= 1e-8
    # Labels that are proved are those that are solved.
    proved = run(replace(task, task=replace(task.task, want_decision=False)))
    np.testing.assert_array_equal(labels_of(proved), exact.labels)
    assert proved.decision is None and proved.certificate.exact
    # The models of the full data.
    Z = found.feature_map.transform(X)
    for p, fit in enumerate(exact.fits):
        values = fit.coef @ (Z @ Z[fit.rows].T).T + fit.intercept[:, None]
        own = found.weights[p] @ Z.T + found.intercept[p][:, None]
        np.testing.assert_allclose(own, values, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("folds", ["some rows", "groups", "shuffled"])
@pytest.mark.parametrize("approx", ["rff", "nystroem"])
@pytest.mark.parametrize("grid", [C_GRID, LAMBDA_GRID], ids=["Cs", "lambdas"])
def test_folds_of_every_kind(folds: str, approx: str, grid: dict[str, Any]) -> None:
    X, codes, weight = data(3)
    plan = {"approx": approx, "fit_intercept": approx == "rff"} | grid
    task = task_of(X, codes, weight, folds_by_name(folds, X, codes), **plan)
    found = run(task)
    exact = exactly(task, X, found)
    np.testing.assert_allclose(found.decision, exact.decision, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(labels_of(found), exact.labels)
    assert found.certificate.exact


def test_threads_and_memory_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs side by side or one after the other, features in memory or in a file."""
    from exactcv.lowrank import shared

    X, codes, weight = data(4)
    task = task_of(X, codes, weight, folds_by_name("5", X, codes), m=5, chunk=8)
    alone, both = run(task), run(task, 2)
    np.testing.assert_array_equal(alone.decision, both.decision)
    made = []
    scratch = shared.scratch_array
    monkeypatch.setattr(
        shared, "scratch_array", lambda *given: made.append(given[2]) or scratch(*given)
    )
    features = 8 * N * 5
    tight = run(replace(task, task=replace(task.task, budget=int(2.48 * features))), 2)
    assert made == [True]
    np.testing.assert_allclose(tight.decision, alone.decision, atol=1e-9)
    np.testing.assert_array_equal(labels_of(tight), labels_of(alone))


def test_features_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from exactcv.lowrank.features import Nystroem

    X, codes, weight = data(4)
    rows, transform = [], Nystroem.transform
    monkeypatch.setattr(
        Nystroem, "transform", lambda self, X: rows.append(len(X)) or transform(self, X)
    )
    run(task_of(X, codes, weight, folds_by_name("5", X, codes)))
    assert sum(rows) == N


@pytest.mark.parametrize("grid", [C_GRID, LAMBDA_GRID], ids=["Cs", "lambdas"])
def test_the_only_row_of_a_class(grid: dict[str, Any]) -> None:
    """Without it its pairs have nothing to train on, and vote for the other class."""
    X, codes, weight = data(3)
    codes = np.where(np.arange(N) == 40, 2, codes % 2)
    task = task_of(X, codes, weight, leave_one_out_folds(N), **grid)
    found = run(task)
    exact = exactly(task, X, found)
    np.testing.assert_allclose(found.decision, exact.decision, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(labels_of(found), exact.labels)
    assert found.wrong[:, 40].all()


def test_folds_that_fall_short_have_the_callers_numbers() -> None:
    """No solution meets a tolerance of 1e-18: all rows that were solved are named."""
    X, codes, weight = data(3)
    task = task_of(X, codes, weight, leave_one_out_folds(N), Cs=[1.0])
    found = run(replace(task, task=replace(task.task, tol=1e-18)))
    exact = run(task)
    short = {fold for _, fold in found.certificate.unresolved if fold >= 0}
    assert short and not found.certificate.exact and exact.certificate.exact
    # A row whose own class and rivals are far away is no support vector, and changes nothing.
    Z = found.feature_map.transform(X)
    values = np.einsum("pm,nm->np", found.weights[:, 0], Z) + found.intercept[:, 0]
    signs = {(a, b): p for p, (a, b) in enumerate(task.pairs)}
    inside = [
        any(
            codes[i] in pair and (2 * (codes[i] == pair[1]) - 1) * values[i, p] < 1 + 1e-6
            for pair, p in signs.items()
        )
        for i in range(N)
    ]
    assert short <= set(np.flatnonzero(inside).tolist())


def test_dask_rows() -> None:
    da = pytest.importorskip("dask.array")
    X, codes, weight = data(3)
    for folds in ("loo", "5"):
        task = task_of(X, codes, weight, folds_by_name(folds, X, codes), Cs=[0.1, 1.0])
        local = run(task)
        source = open_source(da.from_array(X, chunks=(40, 3)), [], 17)
        problem = replace(task.task.problem, source=source)
        found = run(replace(task, task=replace(task.task, problem=problem)))
        np.testing.assert_allclose(found.decision, local.decision, atol=1e-7)
        np.testing.assert_array_equal(labels_of(found), labels_of(local))


def test_rows_of_one_block() -> None:
    from exactcv.lowrank.rows.made import MadeRows

    made = MadeRows(np.arange(5.0)[:, None], np.arange(5), 2)
    assert np.concatenate([made.read(k) for k in range(3)]).ravel().tolist() == list(range(5))
    with pytest.raises(exactcv.InputTypeError, match="no column 'y'"):
        made.column("y")


def test_pairs_go_one_by_one_where_a_share_of_the_memory_is_too_small(monkeypatch) -> None:
    """Eight threads leave each an eighth of a budget that holds one pair well."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    y = np.repeat(np.arange(10), 60)
    monkeypatch.setattr("exactcv.lowrank.budget.LEAST", 0)
    monkeypatch.setattr("exactcv.lowrank.budget.BESIDES", 280 * 10**6)
    model = exactcv.SVCCV(
        approx="rff", n_components=600, gamma=0.1, Cs=[0.1], cv=3, n_jobs=8, random_state=0
    )
    assert model.fit(X, y).certificate_.exact
