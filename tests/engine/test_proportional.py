"""Small C: solutions without some rows are proportional to C, and so are differences of values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from exactcv import cross_validate, leave_pair_out
from exactcv.crossval.run import KernelRows, Plan, run
from exactcv.engine import leave_two_out
from exactcv.engine.bounds import Span
from exactcv.engine.proportional import MOST_VALUE, proportional_below
from exactcv.judge.ledger import Ledger
from exactcv.problem.folds import Folds, leave_one_out_folds
from exactcv.problem.grid import make_grid
from exactcv.problem.problem import Task
from exactcv.runtime.threads import Workers

KINDS = ["coin", "balanced", "lopsided", "weights", "repeated"]


def data(kind: str, n: int = 14) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, signs and weights."""
    rng = np.random.default_rng(5)
    X, weight = rng.normal(size=(n, 2)), np.ones(n)
    y = np.where(rng.normal(size=n) > (0.8 if kind == "lopsided" else 0.0), 1.0, -1.0)
    if kind == "balanced":
        y = np.where(np.arange(n) % 2, 1.0, -1.0)
    y[:4], y[-4:] = 1.0, -1.0  # enough of both
    if kind == "weights":
        weight = rng.uniform(0.5, 1.5, n)
    return (np.round(X) if kind == "repeated" else X), y, weight


def task_of(X: Any, y: Any, weight: Any, Cs: Any, folds: Folds) -> Task:
    K = np.exp(-0.7 * ((X[:, None] - X) ** 2).sum(-1))
    return Plan(want_decision=True).task(
        KernelRows(K), y, weight, folds, make_grid(Cs, None, len(y))
    )


@pytest.mark.parametrize("kind", KINDS)
def test_differences_are_proportional_to_C_up_to_the_bound(kind: str) -> None:
    X, y, weight = data(kind)
    problem = task_of(X, y, weight, [1.0], leave_one_out_folds(len(y))).problem
    reach = proportional_below(problem, Span.of(problem), 2)
    assert reach > 0
    Cs = reach * np.array([1.0, 0.1, 0.01])
    pairs = np.column_stack(np.triu_indices(len(y), 1)).astype(np.intp)
    task = task_of(X, y, weight, Cs, Folds(len(y), tuple(pairs), tuple(pairs)))
    with Workers(1) as workers:
        ran = run(replace(task, tol=1e-10), "refit", workers)
    values = ran.ledger.decision.reshape(3, -1, 2)
    by = (values[..., 0] - values[..., 1]) / Cs[:, None]
    # A refit is within its duality gap of the solution: off by sqrt(2 g) times a distance of phi.
    off = 2.0 * np.sqrt(2.0 * np.abs(ran.ledger.gap_abs[:, :-1])) / Cs[:, None]
    assert (np.abs(by - by[0]) <= off + off[0] + 1e-9).all()
    assert np.abs(values).max() <= MOST_VALUE


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tournament", [True, False])
def test_leave_pair_out_is_the_same_without_it(
    kind: str, tournament: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, weight = data(kind, 20)
    settings: dict[str, Any] = {"Cs": np.geomspace(1e-5, 10.0, 12), "tournament": tournament}
    quick = leave_pair_out(X, y, sample_weight=weight, n_jobs=2, **settings)
    monkeypatch.setattr(leave_two_out, "proportional_below", lambda *given: 0.0)
    slow = leave_pair_out(X, y, sample_weight=weight, **settings)
    np.testing.assert_array_equal(quick.auc, slow.auc)
    np.testing.assert_array_equal(quick.se, slow.se)
    np.testing.assert_array_equal(quick.pooled_auc, slow.pooled_auc)
    assert quick.stats["bound"] >= slow.stats["bound"]
    assert quick.certificate.exact


def test_nothing_is_claimed_where_a_class_may_vanish_or_there_is_no_intercept() -> None:
    X, y, weight = data("coin")
    problem = task_of(X, y, weight, [1.0], leave_one_out_folds(len(y))).problem
    span = Span.of(problem)
    assert proportional_below(problem, span, int((y > 0).sum())) == 0.0
    assert proportional_below(replace(problem, fit_intercept=False), span, 2) == 0.0


@pytest.mark.parametrize("want_decision", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_grid_gives_what_each_C_gives(
    kind: str, fit_intercept: bool, want_decision: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folds that are solved at one C serve the smaller ones, if the judge says so."""
    entered = []
    proportional = Ledger.proportional

    def noting(ledger: Ledger, ls: Any, *given: Any, **more: Any) -> Any:
        entered.append(len(ls))
        return proportional(ledger, ls, *given, **more)

    monkeypatch.setattr(Ledger, "proportional", noting)
    X, y, weight = data(kind, 30)
    Cs, folds = np.geomspace(1e-4, 1.0, 25), leave_one_out_folds(len(y))
    task = replace(task_of(X, y, weight, Cs, folds), want_decision=want_decision)
    task = replace(task, problem=replace(task.problem, fit_intercept=fit_intercept))
    with Workers(1) as workers:
        whole = run(task, "exact", workers).ledger
        alone = [
            run(task.part(np.array([l]), np.arange(len(folds))), "exact", workers).ledger
            for l in range(len(Cs))
        ]
    assert whole.certificate().exact and (whole.how > 0).all()
    for l, one in enumerate(alone):
        np.testing.assert_array_equal(whole.wrong[l], one.wrong[0])
        if want_decision:
            np.testing.assert_allclose(whole.decision[l], one.decision[0], rtol=0, atol=1e-8)
    if want_decision and (kind == "balanced" or not fit_intercept):
        assert max(entered) > 2


def test_a_tube_gives_what_each_C_gives() -> None:
    """Numbers: at a small C all coefficients are at a bound."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(24, 2)), rng.normal(size=24)
    settings: dict[str, Any] = {"loss": "epsilon_insensitive", "epsilon": 0.0, "gamma": 0.5}
    Cs = np.geomspace(1e-5, 1.0, 16)
    whole = cross_validate(X, y, Cs=Cs, **settings)
    assert whole.certificate.exact and min(whole.stats["at_knot"]) == 0
    for l, C in enumerate(Cs):
        alone = cross_validate(X, y, Cs=[C], **settings)
        np.testing.assert_allclose(whole.decision[l], alone.decision[0], rtol=0, atol=1e-8)
