"""Boxes that move: every solution on the way is that of a problem solved from nothing."""

from __future__ import annotations

import numpy as np
import pytest
from _oracle import hinge_problem
from _problems import BUILDERS, FloatArray

from exactcv._core._active_set import ActiveSet, Status
from exactcv.engine.moves import Mover, Standing
from exactcv.engine.smo import solve_hinge
from exactcv.judge.certificate import judge_for
from exactcv.problem.losses import hinge
from exactcv.problem.problem import Problem

GO_ON = np.zeros(1, dtype=np.int32)
# What "exact" promises of values, relative to their scale (1, the margin, at least).
CLOSE = 1e-8


def from_nothing(problem: Problem, weight: FloatArray, C: float) -> FloatArray:
    """Values of all rows by the working-set solver, with the intercept that the rule picks."""
    other = problem.weighted(weight)
    found = solve_hinge(other, np.flatnonzero(weight > 0), C, 1e-12, GO_ON, 2_000_000)
    h = found.coef @ problem.K
    b = judge_for(other).intercepts(h[None], found.coef[None], np.array([C]))
    return np.asarray(h + b[0])


def assert_solved(problem: Problem, found: Standing, C: float) -> None:
    assert found.kkt <= 1e-8
    assert found.gap <= 1e-8
    assert (found.coef[found.weight == 0.0] == 0.0).all()
    truth = from_nothing(problem, found.weight, C)
    scale = max(1.0, float(np.abs(truth).max()))
    assert np.abs(problem.K @ found.coef + found.intercept - truth).max() <= CLOSE * scale
    assert np.abs(found.values - truth).max() <= CLOSE * scale


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", sorted(BUILDERS))
def test_rows_go_and_come_back(name: str, fit_intercept: bool, C: float) -> None:
    problem = hinge_problem(BUILDERS[name](n=30), fit_intercept)
    mover = Mover(problem, C)
    every = at = mover.solved(GO_ON)
    assert_solved(problem, every, C)
    order = np.random.default_rng(3).permutation(problem.n)
    # Of each class some stay.
    going = [j for j in order if np.count_nonzero(problem.y == problem.y[j]) > 2][:8]
    gone: list[int] = []
    for j in going:
        rest = np.delete(np.arange(problem.n), [*gone, j])
        if len(np.unique(problem.y[rest])) < 2:
            continue
        at = mover.moved(at, np.array([j]), np.zeros(1), GO_ON)
        gone.append(int(j))
        assert_solved(problem, at, C)
    several = mover.moved(every, np.array(gone), np.zeros(len(gone)), GO_ON)
    assert_solved(problem, several, C)
    for j in gone:
        at = mover.moved(at, np.array([j]), problem.weight[[j]], GO_ON)
    assert_solved(problem, at, C)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_weights_change(C: float) -> None:
    problem = hinge_problem(BUILDERS["duplicates"](n=30))
    mover = Mover(problem, C)
    at = mover.solved(GO_ON)
    for row, weight in ((0, 0.3), (4, 5.0), (0, 2.0), (7, 1e-3)):
        at = mover.moved(at, np.array([row]), np.array([weight]), GO_ON)
        assert at.weight[row] == weight
        assert_solved(problem, at, C)


def test_a_solution_that_somebody_else_has_found() -> None:
    problem = hinge_problem(BUILDERS["mixture"](n=40))
    mover = Mover(problem, 1.0)
    weight = problem.weight.copy()
    weight[5] = 0.0
    rough = solve_hinge(problem.weighted(weight), np.flatnonzero(weight), 1.0, 1e-3, GO_ON, 10**6)
    assert_solved(problem, mover.found(weight, rough.coef, GO_ON), 1.0)


def test_solutions_are_not_changed_by_later_moves() -> None:
    problem = hinge_problem(BUILDERS["overlap"](n=40))
    mover = Mover(problem, 10.0)
    every = mover.solved(GO_ON)
    before = every.coef.copy(), every.point.state.copy(), every.values.copy()
    first = mover.moved(every, np.array([1]), np.zeros(1), GO_ON)
    mover.moved(every, np.array([2]), np.zeros(1), GO_ON)
    again = mover.moved(every, np.array([1]), np.zeros(1), GO_ON)
    for now, then in zip((every.coef, every.point.state, every.values), before, strict=True):
        assert np.array_equal(now, then)
    assert np.abs(first.values - again.values).max() <= CLOSE


@pytest.mark.parametrize("name", ["mixture", "duplicates", "low_rank"])
def test_a_row_is_taken_up(name: str) -> None:
    whole = hinge_problem(BUILDERS[name](n=30))
    part = Problem(
        np.ascontiguousarray(whole.K[:-1, :-1]), whole.y[:-1], whole.weight[:-1],
        hinge(whole.y[:-1]), True,
    )  # fmt: skip
    small = Mover(part, 1.0).solved(GO_ON)
    mover = Mover(whole, 1.0)
    start = mover.taking_up(small)
    assert start.values[-1] == pytest.approx(float(whole.K[-1] @ start.coef) + small.intercept)
    last = np.array([whole.n - 1])
    assert_solved(whole, mover.moved(start, last, whole.weight[last], GO_ON), 1.0)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_onto_knots_by_what_is_left_of_a_factor(fit_intercept: bool) -> None:
    """Rows leave and come while the factor stays; against dense systems, h being that of before."""
    rng, n = np.random.default_rng(4), 240
    X = rng.normal(size=(n, 6))
    K = np.eye(n) + 0.01 * X @ X.T  # coefficients keep the sign of y
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    loss, C = hinge(y), 1e6  # boxes that no row leaves
    levels = loss.coefficient_levels(np.ones(n))
    engine = ActiveSet(K, loss.knots, levels, fit_intercept)
    # Of some rows the state is 0 or 2, whichever has the level 0: the others are free.
    idle = np.where(y > 0, 2, 0).astype(np.int8)
    state, c, b = idle.copy(), np.zeros(n), 0.0
    state[:160] = 1
    moves = [
        [],
        [3],  # leaves the base
        [3, 17, 200],  # another one does, and a row that was not in it comes
        [3, 17, 200, 201, 5],
        [17, 200, 5],  # a row comes back, and one that came goes
        [17, 200, 5, 230, 231],
        [],
    ]
    factorised = 0
    for k, changed in enumerate(moves):
        state = idle.copy()
        state[:160] = 1
        state[changed] = [1 if j >= 160 else -1 for j in changed]
        h, new = K @ c, state.copy()
        b, status = engine.onto_knots(C, new, c, h, b)
        assert status == Status.CONVERGED
        assert np.array_equal(new, state)
        free, one = np.flatnonzero(state == 1), float(fit_intercept)
        system = np.block(
            [[K[np.ix_(free, free)], np.full((len(free), 1), one)], [np.full(len(free), one), 0.0]]
        )
        system[-1, -1] = 1.0 - one
        truth = np.linalg.solve(system, np.append(y[free], 0.0))
        assert (c[state != 1] == 0.0).all()
        scale = np.abs(truth).max()
        assert np.abs(K[free] @ c + b - y[free]).max() <= 1e-9 * scale
        assert abs(b - truth[-1]) <= 1e-7 * scale
        _, residual = engine.misplaced(C, state, c, K @ c, b)
        assert residual <= 1e-9 * scale
        factorised = engine.factor.n_factorised if k == 0 else factorised
    assert engine.factor.n_factorised == factorised == 1


def test_onto_knots_sends_rows_to_the_end_of_their_box() -> None:
    y = np.array([1.0, 1.0, -1.0])
    K, loss = np.diag([2.0, 1.0, 1.0]), hinge(y)
    engine = ActiveSet(K, loss.knots, loss.coefficient_levels(np.ones(3)), False)
    state, c = np.ones(3, dtype=np.int8), np.zeros(3)
    b, status = engine.onto_knots(0.8, state, c, np.zeros(3), 0.0)
    assert status == Status.CONVERGED and b == 0.0
    assert state.tolist() == [1, 0, 2]
    assert np.allclose(c, [0.5, 0.8, -0.8], atol=1e-11)
    state[:], c[:] = 2, 0.0  # nobody on a knot: nothing to solve
    assert engine.onto_knots(0.8, state, c, np.zeros(3), 0.0)[1] == Status.STALLED
