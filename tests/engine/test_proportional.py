"""Small C: solutions without two rows are proportional to C, and so are differences of values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from exactcv import leave_pair_out
from exactcv.crossval.run import KernelRows, Plan, run
from exactcv.engine import leave_two_out
from exactcv.engine.bounds import Span
from exactcv.engine.proportional import MOST_VALUE, proportional_below
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
