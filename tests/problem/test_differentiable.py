"""Squared hinge and logistic loss: derivatives, conjugates, their judge and Newton's method."""

from __future__ import annotations

import numpy as np
import pytest
from _problems import BUILDERS
from scipy.optimize import minimize

from exactcv.engine.newton import solve_smooth
from exactcv.judge.certificate import judge_for, relative_gap
from exactcv.problem.differentiable import DIFFERENTIABLE_LOSSES
from exactcv.problem.problem import Problem

LOSSES = sorted(DIFFERENTIABLE_LOSSES)


@pytest.mark.parametrize("name", LOSSES)
def test_slope_and_curvature_are_derivatives(name):
    y = np.tile([1.0, -1.0], 40)
    u = np.random.default_rng(0).normal(size=80) * 3
    loss, step = DIFFERENTIABLE_LOSSES[name](y), 1e-6
    slope = (loss.value(u + step) - loss.value(u - step)) / (2 * step)
    curvature = (loss.slope(u + step) - loss.slope(u - step)) / (2 * step)
    np.testing.assert_allclose(loss.slope(u), slope, atol=1e-8)
    np.testing.assert_allclose(loss.curvature(u), curvature, atol=1e-8)


@pytest.mark.parametrize("name", LOSSES)
def test_kappa_is_the_tight_lipschitz_constant(name):
    u = np.linspace(-6, 6, 4001)
    loss = DIFFERENTIABLE_LOSSES[name](np.ones(len(u)))
    steepest = np.max(np.abs(np.diff(loss.slope(u)) / np.diff(u)))
    assert steepest <= 1 / loss.kappa + 1e-9
    assert steepest >= 0.999 / loss.kappa


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_conjugate_is_the_supremum(name, sign):
    u = np.linspace(-40, 40, 400_001)
    value = DIFFERENTIABLE_LOSSES[name](np.full(len(u), sign)).value(u)
    one = DIFFERENTIABLE_LOSSES[name](np.array([sign]))
    for t in (-0.95, -0.5, -0.1):
        expected = np.max(sign * t * u - value)
        assert one.conjugate(np.array([sign * t]))[0] == pytest.approx(expected, abs=1e-6)
    assert np.isinf(one.conjugate(np.array([sign * 0.1]))[0])
    assert np.isinf(one.conjugate(np.array([sign * -1.5]))[0]) == (name == "logistic")


@pytest.mark.parametrize("name", LOSSES)
def test_divergence_is_the_fenchel_young_bracket(name):
    rng = np.random.default_rng(1)
    y = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    loss = DIFFERENTIABLE_LOSSES[name](y)
    u, s = rng.normal(size=200) * 2, -y * rng.random(200)
    bracket = loss.value(u) + loss.conjugate(s) - s * u
    np.testing.assert_allclose(loss.divergence(u, s), bracket, atol=1e-12)
    # Sums of three terms of at most one each, exp and log being good to a few units.
    assert (np.abs(loss.divergence(u, loss.slope(u))) < 10 * np.finfo(float).eps).all()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", ["mixture", "low_rank", "duplicates", "unbalanced", "weighted"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_newton_meets_the_judge(name, kind, fit_intercept, C):
    small = BUILDERS[kind](40) if kind != "unbalanced" else BUILDERS[kind]()
    loss = DIFFERENTIABLE_LOSSES[name](small.y)
    box, out = C * small.weight, np.array([0, 5])
    train = np.setdiff1d(np.arange(len(small.y)), out)
    found = solve_smooth(small.K, loss, box, train, fit_intercept=fit_intercept)
    assert found.converged
    problem = Problem(small.K, small.y, small.weight, loss, fit_intercept)
    judge = judge_for(problem, out)
    h = (small.K @ found.coef)[None]
    b, Cs = np.array([found.intercept]), np.array([C])
    kkt, gap, primal, _ = judge.figures(h, found.coef[None], b, Cs)[0]
    assert kkt <= 1e-9 and relative_gap(gap, primal) <= 1e-9
    worse = found.coef * 1.001
    assert judge.figures(h, worse[None], b, Cs)[0, 0] > 1e-7
    assert judge.figures(h, found.coef[None], b + 1e-3, Cs)[0, 0] > 1e-7


@pytest.mark.parametrize("name", LOSSES)
def test_newton_agrees_with_a_general_optimiser(name):
    small = BUILDERS["mixture"](24)
    loss, C = DIFFERENTIABLE_LOSSES[name](small.y), 2.0
    found = solve_smooth(small.K, loss, np.full(24, C))
    root = np.linalg.cholesky(small.K + 1e-12 * np.eye(24))

    def objective(z):
        u = root @ z[:-1] + z[-1]
        slope = C * loss.slope(u)
        value = 0.5 * z[:-1] @ z[:-1] + C * loss.value(u).sum()
        return value, np.r_[z[:-1] + root.T @ slope, slope.sum()]

    best = minimize(objective, np.zeros(25), jac=True, method="BFGS", options={"gtol": 1e-9})
    u = root @ best.x[:-1] + best.x[-1]
    np.testing.assert_allclose(small.K @ found.coef + found.intercept, u, atol=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_the_judge_finds_the_intercept(name):
    small = BUILDERS["weighted"](40)
    problem = Problem(small.K, small.y, small.weight, DIFFERENTIABLE_LOSSES[name](small.y), True)
    found = solve_smooth(small.K, problem.loss, 0.7 * small.weight)
    h = (small.K @ found.coef)[None]
    b = judge_for(problem).intercepts(h, found.coef[None], np.array([0.7]))
    assert b[0] == pytest.approx(found.intercept, abs=1e-7)


def test_coefficients_of_rows_left_out_are_found_out():
    small = BUILDERS["mixture"](20)
    loss = DIFFERENTIABLE_LOSSES["logistic"](small.y)
    problem = Problem(small.K, small.y, small.weight, loss, True)
    found = solve_smooth(small.K, loss, np.ones(20))
    h = (small.K @ found.coef)[None]
    b, Cs = np.array([found.intercept]), np.ones(1)
    assert judge_for(problem).figures(h, found.coef[None], b, Cs)[0, 0] < 1e-9
    own = judge_for(problem).figures(h, found.coef[None], b, Cs, np.array([3]))[0, 0]
    assert own >= abs(found.coef[3]) * 0.99
