"""kernel="linear" with sparse rows and more columns than there is room for matrices of them.

The oracle is the exact engine on the kernel matrix X X'.
"""

from __future__ import annotations

import tracemalloc
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
import pytest
from scipy import sparse

import exactcv
from exactcv.crossval import requests
from exactcv.judge.piecewise_linear import PiecewiseLinearJudge
from exactcv.lowrank import task
from exactcv.lowrank.wide import leave_out, method
from exactcv.lowrank.wide.problem import WideProblem, gram
from exactcv.lowrank.wide.solve import solve
from exactcv.problem.losses import hinge
from exactcv.runtime.threads import Cancelled

CS = [1e-3, 1e-1, 10.0, 1e3]
GO = np.zeros(1, dtype=np.int32)


@pytest.fixture
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three columns are too many, and no kernel matrix of a sparse X fits."""
    monkeypatch.setattr(task, "MOST_COLUMNS", 2)
    fits = requests.shortage
    monkeypatch.setattr(
        requests, "shortage", lambda n, limit, more=0: "short" if more else fits(n, limit, more)
    )


def make_rows(n: int, p: int, seed: int = 0, share: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    """Rows with many zeros, some of them equal and some empty; one class is the smaller."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * (rng.random((n, p)) < share)
    X[5:15], X[3], X[30] = X[20:30], 0.0, 0.0
    noise = 0.5 * rng.normal(size=n)
    return X, np.where(X[:, 0] - X[:, 1] + noise > 0.3, "yes", "no")


def both(X: np.ndarray, y: Any, **options: Any) -> tuple[Any, Any]:
    """The exact engine on X X', and the sparse rows."""
    given: dict[str, Any] = {"kernel": "linear", "Cs": CS, "random_state": 0} | options
    with catch_warnings():
        simplefilter("ignore", exactcv.NotExactWarning)  # of empty rows without an intercept
        expected = exactcv.cross_validate(X, y, **given)
    return expected, exactcv.cross_validate(sparse.csr_matrix(X), y, **given)


# Fewer columns than rows, and more.
@pytest.mark.parametrize(("p", "weighted"), [(5, False), (40, False), (40, True), (200, False)])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("cv", ["loo", 5])
def test_the_same_as_on_the_kernel_matrix(wide, p, fit_intercept, cv, weighted) -> None:
    X, y = make_rows(120, p)
    k = np.arange(len(y))
    weight = np.where(k % 20 == 0, 0.0, 1.0 + k % 3) if weighted else None
    given: dict[str, Any] = {"fit_intercept": fit_intercept, "cv": cv, "sample_weight": weight}
    expected, values = both(X, y, output="decision", **given)
    _, labels = both(X, y, **given)
    assert labels.certificate.exact
    assert values.certificate.exact
    assert labels.coef is None
    exact = ~expected.certificate.short
    np.testing.assert_array_equal(labels.n_errors[exact], expected.n_errors[exact])
    np.testing.assert_array_equal(values.n_errors[exact], expected.n_errors[exact])
    np.testing.assert_allclose(values.decision[exact], expected.decision[exact], atol=1e-6)
    np.testing.assert_allclose(values.objective[exact], expected.objective[exact], rtol=1e-7)


def test_few_rows_in_play_give_the_same_labels(wide, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows beyond those in play are asked, gaps prove labels, and the rest is solved."""
    X, y = make_rows(400, 40)
    monkeypatch.setattr(leave_out, "FIRST", 5)
    monkeypatch.setattr(method, "FEWEST", 5)
    monkeypatch.setattr(method, "MOST", 75)
    expected, found = both(X, y, Cs=[1e-2, 0.1, 1.0])
    np.testing.assert_array_equal(found.n_errors, expected.n_errors)
    assert found.certificate.exact
    assert found.stats["fallback"] > 0
    assert found.stats["bound"] > 0
    monkeypatch.setattr(method, "MOST", 400)
    expected, found = both(X, y, Cs=[1e-2, 0.1, 1.0], output="decision")
    np.testing.assert_allclose(found.decision, expected.decision, atol=1e-6)
    assert found.certificate.exact


def test_gaps_prove_labels_where_rows_have_crossed(wide, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_rows(400, 40)
    monkeypatch.setattr(leave_out, "FIRST", 5)
    monkeypatch.setattr(method, "FEWEST", 5)
    proved = []

    class Check(leave_out._Check):
        def found(self, ledger: Any) -> leave_out.Found:
            found = super().found(ledger)
            mine = found.settled & ~self.sure
            proved.extend(zip(self.which[mine], found.wrong[mine], strict=True))
            return found

    monkeypatch.setattr(leave_out, "_Check", Check)
    given: dict[str, Any] = {"kernel": "linear", "Cs": [0.1]}
    exactcv.cross_validate(sparse.csr_matrix(X), y, **given)
    assert proved
    expected = exactcv.cross_validate(X, y, **given)
    for row, wrong in proved:
        assert wrong == expected.wrong[0, row]


def test_the_solver_meets_the_judge_of_the_kernel_matrix() -> None:
    X, labels = make_rows(200, 30)
    y = np.where(labels == "yes", 1.0, -1.0)
    rows, loss = sparse.csr_matrix(X), hinge(y)
    base = WideProblem(rows, loss, np.ones(200), True)
    for C in CS:
        found = solve(base.with_box(np.full(200, C)), C, 1e-8, GO, np.zeros(200))
        judge = PiecewiseLinearJudge.of(loss, np.full(200, C), True, (X**2).sum(axis=1))
        h = (found.coef @ X @ X.T)[None]
        figures = judge.figures(h, found.coef[None], np.array([found.intercept]), np.ones(1))
        kkt, gap, primal, floor = figures[0]
        assert max(kkt, gap / primal) <= max(1e-8, 2 * floor)
        np.testing.assert_allclose(found.theta[:-1], found.coef @ X, atol=1e-9 * max(1.0, C))


def test_a_solve_is_stopped() -> None:
    X, labels = make_rows(60, 8)
    problem = WideProblem(
        sparse.csr_matrix(X), hinge(np.where(labels == "yes", 1.0, -1.0)), np.ones(60), True
    )
    with pytest.raises(Cancelled):
        solve(problem, 1.0, 1e-8, np.ones(1, dtype=np.int32), np.zeros(60))


def test_products_of_rows() -> None:
    X, _ = make_rows(600, 9)
    rows = sparse.csr_matrix(X)
    np.testing.assert_allclose(gram(rows[:550], rows.T.tocsr()), X[:550] @ X.T, atol=1e-12)


def test_too_many_rows_on_the_margin_are_refused(wide, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = make_rows(300, 200)
    monkeypatch.setattr(method, "MOST", 160)
    options: dict[str, Any] = {"kernel": "linear", "Cs": [1e-3, 10.0]}
    words = r"rows are on the margin at C=10, .* Use smaller C \(of this grid C=0.001 can be done\)"
    with pytest.raises(exactcv.MemoryLimitError, match=words):
        exactcv.cross_validate(sparse.csr_matrix(X), y, **options)
    folds = exactcv.cross_validate(sparse.csr_matrix(X), y, cv=5, **options)
    assert folds.certificate.exact


def test_rows_that_do_not_fit_are_refused(wide) -> None:
    X, y = make_rows(300, 200)
    with pytest.raises(exactcv.MemoryLimitError, match=r"300 rows with 200 columns .* need about"):
        exactcv.cross_validate(sparse.csr_matrix(X), y, kernel="linear", memory_limit="100kB")


@pytest.mark.parametrize("cv", ["loo", 5])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_svccv(wide, cv, n_classes: int) -> None:
    X, y = make_rows(150, 20)
    y = y if n_classes == 2 else np.digitize(X[:, 0] - X[:, 1], [-0.5, 0.5])
    options: dict[str, Any] = {"kernel": "linear", "cv": cv, "random_state": 0}
    expected = exactcv.SVCCV(Cs=[0.01, 0.1, 1.0], **options).fit(X, y)
    model = exactcv.SVCCV(Cs=[0.01, 0.1, 1.0], **options).fit(sparse.csr_matrix(X), y)
    assert not hasattr(model, "support_")
    np.testing.assert_array_equal(model.cv_results_["n_errors"], expected.cv_results_["n_errors"])
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-6)


def test_the_default_grid_is_the_same(wide) -> None:
    X, y = make_rows(150, 20)
    expected, found = both(X, y, Cs=None, cv=5)
    np.testing.assert_allclose(found.Cs, expected.Cs)
    assert found.grown == expected.grown


@pytest.mark.parametrize("form", [sparse.csc_matrix, sparse.coo_array, sparse.csr_array])
def test_other_sparse_matrices(wide, form: Any) -> None:
    X, y = make_rows(80, 6)
    expected = exactcv.cross_validate(X, y, kernel="linear", Cs=CS, cv=5, random_state=0)
    found = exactcv.cross_validate(
        form(X.astype(np.float32)), y, kernel="linear", Cs=CS, cv=5, random_state=0
    )
    np.testing.assert_array_equal(found.n_errors, expected.n_errors)


# Rows in other units are the same problem, with C in units of their square.
@pytest.mark.parametrize("unit", [1e-8, 1e-3, 1e2, 1e6])
@pytest.mark.parametrize("cv", ["loo", 3])
def test_rows_of_any_length(wide, unit, cv) -> None:
    X, y = make_rows(60, 40)
    given: dict[str, Any] = {"kernel": "linear", "cv": cv, "output": "decision"}
    Cs = np.array([1e-2, 1.0])
    ones = exactcv.cross_validate(sparse.csr_matrix(X), y, Cs=Cs, **given)
    found = exactcv.cross_validate(sparse.csr_matrix(X * unit), y, Cs=Cs / unit**2, **given)
    assert found.certificate.exact
    np.testing.assert_allclose(found.decision, ones.decision, atol=1e-6)
    np.testing.assert_allclose(found.weights * unit, ones.weights, atol=1e-6)
    np.testing.assert_allclose(found.objective, ones.objective, rtol=1e-7)
    np.testing.assert_array_equal(found.n_errors, ones.n_errors)


def test_rows_whose_products_overflow_are_refused(wide) -> None:
    X, y = make_rows(60, 40)
    X[3, 5] = 1e160
    with pytest.raises(exactcv.InputError, match="too large"):
        exactcv.cross_validate(sparse.csr_matrix(X), y, kernel="linear", Cs=[1.0])


def test_threads_do_not_take_more_memory_than_there_is(wide) -> None:
    """Each has matrices of its own, so that fewer are at work where these are large."""
    X, y = make_rows(900, 700, share=0.05)
    rows, limit = sparse.csr_matrix(X), 60_000_000
    given: dict[str, Any] = {"kernel": "linear", "Cs": [1.0], "memory_limit": limit}
    exactcv.cross_validate(rows[:90], y[:90], **given)  # what is imported when it is first needed
    found, peaks = [], []
    for n_jobs in (1, 4):
        tracemalloc.start()
        found.append(exactcv.cross_validate(rows, y, n_jobs=n_jobs, **given))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert found[0].stats["solved"] > 4 * method.LEAST_BLOCK  # there is work for all of them
    assert max(peaks) < limit
    np.testing.assert_array_equal(found[0].wrong, found[1].wrong)
    assert found[1].certificate.exact
