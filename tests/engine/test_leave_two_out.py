"""Models without two rows: labels, and which value is larger, against refits of every pair."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from exactcv import cross_validate
from exactcv._core.reference.leave_several import leave_several
from exactcv.algorithms.exact import METHOD
from exactcv.crossval.run import KernelRows, Plan, run
from exactcv.engine.leave_two_out import LeaveTwoOut
from exactcv.engine.merged import Merged
from exactcv.engine.pair_table import PairTable
from exactcv.engine.path import Point, Tracker, rising
from exactcv.problem.folds import Folds, leave_one_out_folds
from exactcv.problem.grid import make_grid
from exactcv.problem.problem import Task
from exactcv.runtime.threads import Workers
from exactcv.tolerances import TIE

CS = np.geomspace(1e-2, 1e2, 5)


def data(kind: str, n: int = 15) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, signs and weights."""
    rng = np.random.default_rng(3)
    X, y, weight = rng.normal(size=(n, 2)), np.sign(rng.normal(size=n)), np.ones(n)
    if kind == "balanced":  # no coefficient is inside its box while C is small
        y = np.where(np.arange(n) % 2, 1.0, -1.0)
    if kind == "repeated":
        X = np.round(X)
    if kind == "weights":
        weight = rng.uniform(0.2, 3.0, n)
    if kind == "apart":
        X[:, 0] += 3.0 * y
    return X, y, weight


KINDS = ["coin", "balanced", "repeated", "weights", "apart"]


def task_of(X: Any, y: Any, weight: Any, intercept: bool = True, folds: Any = None) -> Task:
    plan = Plan(want_decision=True, fit_intercept=intercept)
    K = np.exp(-0.7 * ((X[:, None] - X) ** 2).sum(-1))
    folds = leave_one_out_folds(len(y)) if folds is None else folds
    return plan.task(KernelRows(K), y, weight, folds, make_grid(CS, None, len(y)))


def begin(task: Task, workers: Workers) -> tuple[LeaveTwoOut, list[tuple[int, Point]]]:
    merged = Merged.of(task.problem)
    two = LeaveTwoOut(task, workers.cancel, merged)
    tracker = Tracker(merged.problem, workers.cancel, task.tol)
    points = METHOD.path(task, two.ledger, tracker, merged)
    return two, [(int(l), point) for l, point in zip(rising(CS), points, strict=True)]


def refits(X: Any, y: Any, weight: Any, intercept: bool = True) -> np.ndarray:
    """(L, n, n, 2): the values of rows i and j in the model without both."""
    n = len(y)
    pairs = np.column_stack(np.triu_indices(n, 1)).astype(np.intp)
    task = task_of(X, y, weight, intercept, Folds(n, tuple(pairs), tuple(pairs)))
    with Workers(1) as workers:
        values = run(task, "refit", workers).ledger.decision.reshape(len(CS), -1, 2)
    out = np.zeros((len(CS), n, n, 2))
    out[:, pairs[:, 0], pairs[:, 1]] = values
    out[:, pairs[:, 1], pairs[:, 0]] = values[..., ::-1]
    return out


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_labels_and_order_equal_refits(kind: str, intercept: bool) -> None:
    X, y, weight = data(kind)
    values = refits(X, y, weight, intercept)
    off = ~np.eye(len(y), dtype=bool)
    with Workers(1) as workers:
        two, points = begin(task_of(X, y, weight, intercept), workers)
        for l, point in points:
            found = two.labels(l, point)
            wrong = ~(y * values[l, ..., 1] > TIE)
            np.testing.assert_array_equal(found.wrong[off], wrong[off], f"C = {CS[l]}")
            assert found.counts.sum() == off.sum()
            assert (found.kkt <= 1e-8).all()
            order = two.order(l, point, off)
            by = values[l, ..., 0] - values[l, ..., 1]
            most = np.maximum(1.0, np.abs(values[l]).max(axis=-1))
            # What is a tie but for the accuracy of a refit may be one or not.
            clear = off & (np.abs(np.abs(by) - TIE * most) > 1e-8)
            sign = np.where(np.abs(by) > TIE * most, np.sign(by), 0)
            np.testing.assert_array_equal(order.sign[clear], sign[clear], f"C = {CS[l]}")
            np.testing.assert_array_equal(order.sign, -order.sign.T)


@pytest.mark.parametrize("kind", ["coin", "balanced"])
def test_the_long_way_gives_the_same(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y, weight = data(kind, 14)
    off = ~np.eye(len(y), dtype=bool)
    with Workers(1) as workers:
        two, points = begin(task_of(X, y, weight), workers)
        quick = [(two.labels(l, point), two.order(l, point, off)) for l, point in points]
        monkeypatch.setattr(two.ledger, "sound", lambda l: False)  # no proofs then
        slow = [(two.labels(l, point), two.order(l, point, off)) for l, point in points]
    for (labels, order), (other_labels, other_order) in zip(quick, slow, strict=True):
        np.testing.assert_array_equal(labels.wrong, other_labels.wrong)
        np.testing.assert_array_equal(order.sign, other_order.sign)


def test_most_pairs_are_settled_from_one_table() -> None:
    X, y, weight = data("coin", 40)
    with Workers(1) as workers:
        two, points = begin(task_of(X, y, weight), workers)
        counts = sum(two.labels(l, point).counts.sum(axis=0) for l, point in points)
    assert counts[:2].sum() > 0.98 * counts.sum()


def test_only_what_is_asked_for_is_compared() -> None:
    X, y, weight = data("coin")
    asked = np.zeros((len(y), len(y)), dtype=bool)
    asked[2, 5] = True
    with Workers(1) as workers:
        two, points = begin(task_of(X, y, weight), workers)
        found = two.order(*points[-1], asked)
    assert found.counts.sum() == 2
    assert np.count_nonzero(found.sign) <= 2


def test_the_compiled_loop_is_its_twin() -> None:
    rng = np.random.default_rng(0)
    solved = 0
    with Workers(1) as workers:
        for kind in ("coin", "weights", "apart"):
            X, y, weight = data(kind, 24)
            two, points = begin(task_of(X, y, weight), workers)
            for l, point in points:
                single = two.without_one(l, point)
                full = two.single._solution(l, point)
                if not len(full.members):
                    full = full.moved_to_knot(1)
                table = PairTable(full, two.span, single)
                pairs = np.array([rng.choice(24, 2, replace=False) for _ in range(20)])
                found = table.leave_out(pairs.astype(np.intp), workers.cancel, coef=True)
                rows, base, k = table.rows, table.table.base, len(table.table.columns.members)
                for r in np.flatnonzero(found.done):
                    twin = leave_several(
                        table.matrix, k, table.table.u[rows], base.coef[rows], base.state[rows],
                        base.problem.loss.knots[rows], base.levels[rows], table.table.tol,
                        table.table.position[pairs[r]],
                    )  # fmt: skip
                    if twin is None:
                        continue
                    solved += 1
                    # Without rows inside their boxes solutions differ in b, not in f.
                    scale = float(CS[l])
                    np.testing.assert_allclose(found.coef[r, rows], twin[0], atol=1e-9 * scale)
    assert solved > 200


def test_what_cross_validate_says_without_a_row() -> None:
    """The same through the front door, one outer row."""
    X, y, weight = data("coin")
    rest = np.delete(np.arange(len(y)), 4)
    plain = cross_validate(X[rest], y[rest], gamma=0.7, Cs=CS, n_jobs=1)
    with Workers(1) as workers:
        two, points = begin(task_of(X, y, weight), workers)
        for l, point in points:
            found = two.labels(l, point).wrong[4, rest]
            np.testing.assert_array_equal(found, plain.wrong[l])
