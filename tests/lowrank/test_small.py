"""Small problems with a linear term, and what is proved from their solutions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactcv.engine.smo import solve_hinge
from exactcv.lowrank.small import nested, pivot
from exactcv.lowrank.small.continuation import smooth_solution
from exactcv.lowrank.small.reduced import FREE, HIGH, LOW, Reduced, best_intercept

CANCEL = np.zeros(1, dtype=np.int32)


def random_problem(seed: int, n: int, m: int, size: float, intercept: bool, ties: bool) -> Reduced:
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, m))
    y = np.where(Z[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    if ties:
        Z = Z[rng.integers(0, 3, n)]
    box = size * rng.choice([1.0, 1.0, 0.5], n)
    a = 0.5 * size * rng.normal(size=m)
    # Of the rows that are not here as many as not are positive, or b would run away.
    beta = float(rng.uniform(-0.9, 0.9)) * min(box[y > 0].sum(), box[y < 0].sum())
    return Reduced(Z, y, box, a, beta if intercept else 0.0, intercept)


def objective(problem: Reduced, theta: np.ndarray) -> float:
    loss = problem.box @ np.maximum(-problem.margins(theta), 0.0)
    return float(0.5 * theta[:-1] @ theta[:-1] - problem.linear @ theta + loss)


@settings(max_examples=100)
@given(
    seed=st.integers(0, 100_000),
    n=st.integers(4, 40),
    m=st.integers(1, 6),
    size=st.sampled_from([1e-3, 0.1, 1.0, 30.0]),
    intercept=st.booleans(),
    ties=st.booleans(),
)
def test_solutions_are_those_of_the_working_set_solver(seed, n, m, size, intercept, ties) -> None:
    problem = random_problem(seed, n, m, size, intercept, ties)
    reply = pivot.solve(problem, np.zeros(m + 1), CANCEL)
    assert reply.solved
    ordinary, Z = pivot.expanded(problem, np.full(m + 1, 1.0 + size * n), factor=1e3)
    oracle = solve_hinge(ordinary, np.arange(ordinary.n), 1.0, 1e-10, CANCEL)
    w = oracle.coef @ Z
    scale = max(1.0, float(np.abs(w).max()))
    np.testing.assert_allclose(reply.theta[:-1], w, atol=1e-6 * scale)
    best = min(objective(problem, np.append(w, b)) for b in (oracle.intercept, reply.theta[-1]))
    assert objective(problem, reply.theta) <= best + 1e-8 * max(1.0, abs(best))
    # The conditions, from scratch.
    r, share = problem.margins(reply.theta), problem.y * reply.coef / problem.box
    assert share.min() >= -1e-8 and share.max() <= 1 + 1e-8
    assert np.all(share[r > 1e-6 * scale] <= 1e-8)
    assert np.all(share[r < -1e-6 * scale] >= 1 - 1e-8)
    np.testing.assert_allclose(
        problem.a + reply.coef @ problem.Z, reply.theta[:-1], atol=1e-8 * scale
    )
    if intercept:
        total = problem.box.sum()
        assert abs(problem.beta + reply.coef.sum()) <= 1e-9 * total
    free = reply.state == FREE
    assert np.all(np.abs(r[free]) <= 1e-6 * scale)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("intercept", [True, False])
def test_smoothing_and_pivoting_find_the_same(seed, intercept, monkeypatch) -> None:
    problem = random_problem(seed, 200, 6, 0.5, intercept, False)
    expected = pivot.solve(problem, np.zeros(7), CANCEL)
    monkeypatch.setattr(pivot, "MOST_ROWS", 0)
    reply = pivot.solve(problem, np.zeros(7), CANCEL)
    np.testing.assert_allclose(reply.theta, expected.theta, atol=1e-9)
    assert np.abs(problem.margins(reply.theta)[reply.state == FREE]).max(initial=0.0) < 1e-9
    monkeypatch.setattr(pivot, "MOST_STEPS", 0)  # pivoting gives up: the engine after all
    reply = pivot.solve(problem, np.zeros(7), CANCEL)
    np.testing.assert_allclose(reply.theta, expected.theta, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("start", ["near", "far"])
def test_many_rows_are_solved_through_the_nearest(seed, intercept, start, monkeypatch) -> None:
    problem = random_problem(seed, 900, 6, 0.02, intercept, False)
    expected = pivot.solve(problem, np.zeros(7), CANCEL)
    monkeypatch.setattr(nested, "FEWEST", 60)
    seen: list[int] = []
    engine = pivot._by_engine

    def inner(few: Reduced, theta: np.ndarray) -> pivot.Reply:
        seen.append(len(few.y))
        return engine(few, theta, CANCEL)

    guess = expected.theta + 0.01 if start == "near" else -3.0 * np.ones(7) * intercept
    reply = nested.solve_nested(problem, guess, inner)
    assert reply is not None and max(seen) < 450
    np.testing.assert_allclose(reply.theta, expected.theta, atol=1e-9)
    np.testing.assert_allclose(reply.coef, expected.coef, atol=1e-9)
    np.testing.assert_array_equal(reply.state == FREE, expected.state == FREE)


def test_rows_that_keep_changing_sides_are_given_up(monkeypatch) -> None:
    problem = random_problem(0, 300, 3, 0.02, True, False)
    monkeypatch.setattr(nested, "FEWEST", 20)
    turns = iter(range(100))

    def restless(few: Reduced, theta: np.ndarray) -> pivot.Reply:
        away = np.full(4, 10.0 * (-1) ** next(turns))
        return pivot.Reply(away, np.zeros(len(few.y)), np.zeros(len(few.y), dtype=np.int8), True, 1)

    assert nested.solve_nested(problem, np.zeros(4), restless) is None


def test_smoothing_narrows_to_the_margin() -> None:
    problem = random_problem(2, 400, 5, 0.1, True, False)
    theta, tau, _ = smooth_solution(problem, np.zeros(6), few=10)
    r = problem.margins(theta)
    exact = pivot.solve(problem, np.zeros(6), CANCEL).theta
    assert np.count_nonzero(np.abs(r) < tau) <= 10
    assert np.abs(theta - exact).max() < 3 * tau


@pytest.mark.parametrize(
    ("y", "box", "beta", "expected"),
    [
        ([1.0, -1.0], [1.0, 1.0], 0.0, 0.0),  # an interval from -1 to 1
        ([1.0, 1.0, -1.0], [1.0, 1.0, 1.0], 0.0, 1.0),  # the larger class has its way
        ([1.0, -1.0], [1.0, 1.0], 0.5, 1.0),  # so do rows that are not here
        ([1.0, -1.0, -1.0], [2.0, 1.0, 1.0], 0.0, 0.0),
    ],
)
def test_intercepts(y, box, beta, expected) -> None:
    y, box = np.array(y), np.array(box)
    problem = Reduced(np.zeros((len(y), 1)), y, box, np.zeros(1), beta, True)
    assert best_intercept(problem, np.zeros(1)) == expected


def test_places() -> None:
    r = np.array([-1.0, -0.01, 0.02, 0.001, 3.0])
    assert pivot.places(r, 0.1, 5).tolist() == [LOW, FREE, FREE, FREE, HIGH]
    assert pivot.places(r, 0.1, 1).tolist() == [LOW, LOW, HIGH, FREE, HIGH]
