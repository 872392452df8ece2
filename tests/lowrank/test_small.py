"""Small problems with a linear term, and what is proved from their solutions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exactcv import cross_validate
from exactcv.datasets import make_mixture
from exactcv.engine.smo import solve_hinge
from exactcv.lowrank.small import solve as small
from exactcv.lowrank.small.exchange import exchange
from exactcv.lowrank.small.face import Face
from exactcv.lowrank.small.hinges import FREE, Hinges
from exactcv.lowrank.small.ordinary import expanded
from exactcv.lowrank.small.reduced import Reduced, best_intercept
from exactcv.lowrank.small.sites import sites_of
from exactcv.lowrank.small.smoothing import smoothed
from exactcv.lowrank.small.solve import approach, solve
from exactcv.problem.losses import hinge

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
    return Reduced(Z, hinge(y), box, a, beta if intercept else 0.0, intercept)


def objective(problem: Reduced, theta: np.ndarray) -> float:
    loss = problem.box @ problem.loss.value(problem.values(theta))
    return float(
        0.5 * theta[:-1] @ theta[:-1] - problem.a @ theta[:-1] - problem.beta * theta[-1] + loss
    )


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
    reply = solve(problem, np.zeros(m + 1), CANCEL)
    assert reply.solved
    ordinary, Z = expanded(problem, np.full(m + 1, 1.0 + size * n), factor=1e3)
    oracle = solve_hinge(ordinary, np.arange(ordinary.n), 1.0, 1e-10, CANCEL)
    w = oracle.coef @ Z
    scale = max(1.0, float(np.abs(w).max()))
    np.testing.assert_allclose(reply.theta[:-1], w, atol=1e-6 * scale)
    best = min(objective(problem, np.append(w, b)) for b in (oracle.intercept, reply.theta[-1]))
    assert objective(problem, reply.theta) <= best + 1e-8 * max(1.0, abs(best))
    # The conditions, from scratch.
    r, share = problem.hinges.margins(reply.theta), problem.y * reply.coef / problem.box
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
@pytest.mark.parametrize("size", [0.5, 1e3])
def test_exchange_alone_finds_the_same_from_anywhere(seed, intercept, size) -> None:
    problem = random_problem(seed, 200, 6, size, intercept, False)
    expected = solve(problem, np.zeros(7), CANCEL)
    start = np.random.default_rng(seed).normal(size=7) * ([1.0] * 6 + [float(intercept)])
    reply = exchange(problem.hinges, start, np.zeros(0, dtype=np.intp), 5000, CANCEL)
    assert expected.solved and reply.solved
    scale = max(1.0, float(np.abs(expected.theta).max()))
    np.testing.assert_allclose(reply.theta, expected.theta, atol=1e-9 * scale)
    assert np.abs(problem.hinges.margins(reply.theta)[reply.state == FREE]).max() < 1e-9 * scale


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("start", ["near", "far"])
def test_many_rows_are_solved_through_the_nearest(seed, intercept, start, monkeypatch) -> None:
    problem = random_problem(seed, 3000, 6, 0.02, intercept, False)
    expected = solve(problem, np.zeros(7), CANCEL)
    seen: list[int] = []
    to_the_end = small._to_the_end

    def watched(few: Hinges, *args: object) -> object:
        seen.append(len(few))
        return to_the_end(few, *args)

    monkeypatch.setattr(small, "_to_the_end", watched)
    guess = expected.theta + 0.01 * intercept if start == "near" else -3.0 * np.ones(7) * intercept
    reply = solve(problem, guess, CANCEL, 0.1)
    assert reply.solved and max(seen) < 1500
    np.testing.assert_allclose(reply.theta, expected.theta, atol=1e-9)
    np.testing.assert_allclose(reply.coef, expected.coef, atol=1e-9)
    np.testing.assert_array_equal(reply.state == FREE, expected.state == FREE)


@pytest.mark.parametrize("seed", range(20, 28))
@pytest.mark.parametrize("m", [1, 2, 5])
def test_the_unit_of_the_features_does_not_matter(seed: int, m: int) -> None:
    """With C K of 1e13; in other units the exchange of rows once ended far from the solution."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    Z, unit = rng.normal(size=(40, m)) + y[:, None], 2.0**26
    box, none, start = np.full(40, 2e-3), np.zeros(m), np.zeros(m + 1)
    one = solve(Reduced(Z, hinge(y), box * unit**2, none, 0.0, True), start, CANCEL)
    other = solve(Reduced(Z * unit, hinge(y), box, none, 0.0, True), start, CANCEL)
    assert one.solved and other.solved
    values = Z @ one.theta[:-1] + one.theta[-1]
    np.testing.assert_allclose(
        unit * Z @ other.theta[:-1] + other.theta[-1], values, atol=1e-9 * np.abs(values).max()
    )


def test_a_guess_that_is_the_solution_is_seen_at_once() -> None:
    problem = random_problem(3, 400, 5, 0.1, True, False)
    found = solve(problem, np.zeros(6), CANCEL)
    assert solve(problem, found.theta, CANCEL, 0.0).steps <= 2


def test_a_guess_that_is_said_to_be_good_and_is_not() -> None:
    """It costs the steps that see it, and no more than another guess then."""
    problem = random_problem(1, 2000, 30, 0.1, intercept=True, ties=False)
    cold = solve(problem, np.zeros(31), CANCEL)
    guess = cold.theta + 0.05 * np.random.default_rng(0).normal(size=31)
    reply = solve(problem, guess, CANCEL, tau=0.0)
    assert reply.solved and reply.steps < 2 * cold.steps + small.AT_ONCE
    np.testing.assert_allclose(reply.theta, cold.theta, atol=1e-8)


def test_an_approach_halves_the_error_at_least() -> None:
    problem = random_problem(2, 2000, 30, 0.1, intercept=True, ties=False)
    best = solve(problem, np.zeros(31), CANCEL)
    guess = best.theta + 0.1 * np.random.default_rng(0).normal(size=31)
    before = np.sqrt(np.mean((problem.values(guess) - problem.values(best.theta)) ** 2))
    reply = approach(problem, guess, float(before))
    after = np.sqrt(np.mean((problem.values(reply.theta) - problem.values(best.theta)) ** 2))
    assert after < 0.5 * before and reply.steps < best.steps


def test_smoothing_narrows_to_the_margin() -> None:
    problem = random_problem(2, 400, 5, 0.1, True, False)
    near = smoothed(problem.hinges, np.zeros(6), 1.0, 10)
    exact = solve(problem, np.zeros(6), CANCEL).theta
    np.testing.assert_array_equal(near.inside, np.flatnonzero(np.abs(near.r) < near.tau))
    assert len(near.inside) <= 10
    assert np.abs(near.theta - exact).max() < 3 * near.tau


def test_faces_change_a_row_at_a_time() -> None:
    problem = random_problem(0, 30, 8, 1.0, True, False)
    face = Face(problem.hinges, np.arange(5))
    assert face.add(7) and face.add(20)
    face.drop(2)
    changed = face.inverse.copy()
    face.refresh()
    np.testing.assert_allclose(changed, face.inverse, atol=1e-10 * np.abs(face.inverse).max())
    theta, coef = face.target(problem.a, problem.beta)
    np.testing.assert_allclose(problem.hinges.margins(theta)[face.rows], 0.0, atol=1e-10)
    np.testing.assert_allclose(coef.sum(), -problem.beta, atol=1e-10)


def test_dependent_rows_do_not_join_a_face() -> None:
    problem = random_problem(1, 12, 3, 1.0, True, False)
    assert len(Face(problem.hinges, np.arange(12))) == 4  # as many as (w, b) has dimensions
    face = Face(problem.hinges, np.arange(4))
    assert not face.add(9) and len(face) == 4


def test_rows_that_have_become_dependent_make_way() -> None:
    problem = random_problem(2, 12, 3, 1.0, True, False)
    face = Face(problem.hinges, np.arange(3))
    assert face.fresh and face.add(3) and not face.fresh
    face.rows, face.Z = np.append(face.rows, 4), np.vstack([face.Z, problem.Z[4]])  # by rounding
    out = face.refresh()
    assert face.fresh and len(out) == 1 and len(face) == 4
    assert {*face.rows, *out} == {0, 1, 2, 3, 4}


@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5, 6])
def test_few_rows_of_a_class_beside_many(seed: int) -> None:
    """w = 0, every row of the many on the margin, of which m + 1 at most are independent."""
    X, _ = make_mixture(1000, 4, random_state=0)
    y = np.where(np.arange(1000) < 991, -1, 1)
    found = cross_validate(
        X, y, approx="nystroem", n_components=10, lambdas=[1e-3], gamma=0.1, cv=3, random_state=seed
    )
    assert found.certificate.exact and found.n_errors[0] == 9


def test_sites_are_equal_rows_of_a_class() -> None:
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(6, 3))[[0, 1, 0, 2, 1, 1]]
    Z[2] += 1e-15  # as two rows of a product may differ
    y = np.array([1.0, 1.0, 1.0, -1.0, 1.0, -1.0])
    sites = sites_of(Z, hinge(y))
    assert sites.any
    np.testing.assert_array_equal(sites.first, [0, 1, 3, 5])
    np.testing.assert_array_equal(sites.of, [0, 1, 0, 2, 1, 3])
    box = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 1.0])
    np.testing.assert_array_equal(sites.total(box), [4.0, 4.0, 1.0, 1.0])
    np.testing.assert_allclose(
        sites.spread(np.array([2.0, 4.0, -1.0, 0.0]), box), [0.5, 2.0, 1.5, -1.0, 2.0, 0.0]
    )


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
    problem = Reduced(np.zeros((len(y), 1)), hinge(y), box, np.zeros(1), beta, True)
    assert best_intercept(problem.hinges, np.zeros(1)) == expected
