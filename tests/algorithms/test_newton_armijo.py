"""The smooth SVM: model, Newton-Armijo and the two updating strategies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from _problems import FloatArray, labels, rbf
from scipy.optimize import minimize

from exactcv.algorithms.rank_update import newton_armijo
from exactcv.algorithms.rank_update.design import Design, make_design
from exactcv.algorithms.rank_update.newton_armijo import (
    ENOUGH,
    STRATEGIES,
    Fit,
    Updated,
    fit,
    hold,
    leave_afresh,
    leave_out,
    refine,
)
from exactcv.algorithms.rank_update.represent import Representer
from exactcv.algorithms.rank_update.updates import (
    NONE,
    Fresh,
    Leaving,
    StrategyOne,
    StrategyTwo,
    inverse,
    price_afresh,
)
from exactcv.types import BoolArray, IntArray

KINDS = ("linear", "nonlinear")
EPSILON = float(np.finfo(float).eps)


def design_of(
    kind: str, n: int = 40, p: int = 5, seed: int = 0, weighted: bool = False
) -> tuple[Design, FloatArray]:
    rng = np.random.default_rng(seed)
    y = labels(n)
    X = rng.normal(size=(n, p)) + 0.4 * y[:, None]
    weight = rng.uniform(0.2, 3.0, n) if weighted else np.ones(n)
    data = X if kind == "linear" else rbf(X)
    return make_design(data, y, weight, True, kind == "nonlinear"), X


def gradient_terms(design: Design, theta: FloatArray, c: float) -> FloatArray:
    """How large the terms are that add up to the gradient: |theta| + c |A|' (|t| + |A| |theta|)."""
    A, size = np.abs(design.A), np.abs(theta)
    terms: FloatArray = size + c * (A.T @ (np.abs(design.t) + A @ size))
    return terms


def assert_minimum(
    design: Design, c: float, found: Fit, train: BoolArray | None = None, out: IntArray = NONE
) -> None:
    """The gradient is what ends the refinement, or no more than its rounding.

    theta is a float64 vector, which alone makes half a unit of each term, and as much is lost each
    time that a sum is rounded.
    """
    g = design.gradient(found.theta, c, design.used if train is None else train)
    enough = ENOUGH * max(1.0, float(np.linalg.norm(found.theta)))
    rounding = 4 * EPSILON * np.linalg.norm(gradient_terms(design, found.theta, c))
    assert np.linalg.norm(np.delete(g, out)) <= enough + rounding


@pytest.mark.parametrize("kind", KINDS)
def test_gradient_and_hessian_are_derivatives(kind: str) -> None:
    design, _ = design_of(kind, weighted=True)
    rng = np.random.default_rng(1)
    theta, z = rng.normal(size=(2, design.d))
    # No row crosses its kink on the way, so that differences err by rounding alone: by that of sums
    # of n terms, divided by the step.
    step, c = 1e-5, 3.0
    rounding = design.n * EPSILON / step
    up, down = (design.objective(theta + s * step * z, c, design.used) for s in (1, -1))
    g = design.gradient(theta, c, design.used)
    assert (up - down) / (2 * step) == pytest.approx(g @ z, abs=rounding * up)
    up, down = (design.gradient(theta + s * step * z, c, design.used) for s in (1, -1))
    H = design.hessian(c, design.support(design.A @ theta, design.used))
    terms = gradient_terms(design, theta, c).max()
    assert (up - down) / (2 * step) == pytest.approx(H @ z, abs=rounding * terms)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("c", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("kind", KINDS)
def test_fit_ends_at_the_minimum(kind: str, c: float, strategy: str) -> None:
    """Gradient at rounding level, and no worse than a general minimiser."""
    for seed in range(3):
        design, _ = design_of(kind, seed=seed, weighted=seed == 2)
        found = fit(design, c, strategy)
        assert found.converged
        assert_minimum(design, c, found)
        other = minimize(
            design.objective,
            np.zeros(design.d),
            (c, design.used),
            jac=design.gradient,
            method="BFGS",
            options={"gtol": 1e-6, "maxiter": 300},
        )
        ours = design.objective(found.theta, c, design.used)
        assert ours <= other.fun * (1 + 1e-12)


def test_armijo_is_needed_and_still_ends() -> None:
    """Starts from arbitrary sets of support vectors all lead to the one solution."""
    shortened = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        design, _ = design_of("nonlinear", n=30, p=2, seed=seed)
        best = fit(design, 100.0)
        found = fit(design, 100.0, "I", rng.random(30) < 0.3)
        assert found.converged
        assert found.theta == pytest.approx(best.theta, abs=1e-9)
        shortened += len(found.steps) > 3
    assert shortened


def test_rows_on_the_kink_do_not_make_it_cycle() -> None:
    """Copies of rows sit on the margin together."""
    X = np.repeat(np.array([[1.0], [-1.0], [0.5]]), 4, axis=0)
    y = np.repeat([1.0, -1.0, 1.0], 4)
    for c in (1e-2, 1.0, 1e2, 1e4):
        design = make_design(X, y, np.ones(12), True, False)
        found = fit(design, c)
        assert found.converged and len(found.steps) < 10
        assert_minimum(design, c, found)


@pytest.mark.parametrize("strategy", [StrategyOne, StrategyTwo])
@pytest.mark.parametrize("kind", KINDS)
def test_updated_target_equals_a_fresh_one(kind: str, strategy: type) -> None:
    """For any sets of rows that leave and join, and columns that are dropped."""
    design, _ = design_of(kind, weighted=True)
    rng = np.random.default_rng(2)
    for c in (1e-2, 1.0, 100.0):
        base = rng.random(design.n) < 0.6
        held = strategy(design, c, base)
        for _ in range(10):
            active = base ^ (rng.random(design.n) < 0.15)
            out = rng.choice(design.n, 3, replace=False)
            active[out] = False
            leaving = Leaving(held, design.columns(out))
            expected = Fresh(design, c, design.columns(out)).target(active)
            assert leaving.target(active) == pytest.approx(expected, abs=1e-7)  # not refined


@pytest.mark.parametrize("kind", KINDS)
def test_both_strategies_hold_the_same_inverse(kind: str) -> None:
    design, _ = design_of(kind)
    active = np.arange(design.n) % 3 > 0
    one, two = StrategyOne(design, 2.0, active), StrategyTwo(design, 2.0, active)
    assert two.f == pytest.approx(one.f, abs=1e-11)
    G = np.random.default_rng(0).normal(size=(4, design.d))
    exact = np.linalg.solve(design.hessian(2.0, active), G.T).T
    assert one.solve(G) == pytest.approx(exact, abs=1e-10)
    assert two.solve(G) == pytest.approx(exact, abs=1e-10)
    rows = np.array([0, 1, 5, 6])
    assert two.row_columns(rows) == pytest.approx(one.row_columns(rows), abs=1e-10)
    gone = rows[active[rows]]
    F = one.row_columns(gone)
    assert two.leaving_block(gone, F) == pytest.approx(one.leaving_block(gone, F), abs=1e-10)


@pytest.mark.parametrize("strategy", [StrategyOne, StrategyTwo])
@pytest.mark.parametrize("kind", KINDS)
def test_factor_alone_gives_what_the_inverse_gives(kind: str, strategy: type) -> None:
    design, _ = design_of(kind, weighted=True)
    active = np.arange(design.n) % 3 > 0
    whole, factor = (strategy(design, 5.0, active, each) for each in (True, False))
    assert factor.f == pytest.approx(whole.f, abs=1e-11)
    rows, columns = np.array([0, 1, 5, 6]), np.array([0, 2, 4])
    F = whole.row_columns(rows)
    assert factor.row_columns(rows) == pytest.approx(F, abs=1e-10)
    for mine, other in zip(factor.unit_columns(columns), whole.unit_columns(columns), strict=True):
        assert mine == pytest.approx(other, abs=1e-10)
    gone = rows[active[rows]]
    F = whole.row_columns(gone)
    block = whole.leaving_block(gone, F)
    assert factor.leaving_block(gone, F) == pytest.approx(block, abs=1e-10)
    G = np.random.default_rng(0).normal(size=(2, design.d))
    assert factor.solve(G) == pytest.approx(whole.solve(G), abs=1e-10)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_fit_updates_where_that_is_less_work(strategy: str) -> None:
    """From the solution of a neighbouring c few rows change sides; from none all do."""
    design, _ = design_of("nonlinear", n=120)
    near = fit(design, 1.0)
    found = fit(design, 1.01, strategy, near.active)
    assert found.converged
    assert len(found.steps) == 1 or found.steps[-1][1] < 10
    assert_minimum(design, 1.01, found)
    held = hold(design, 1.0, near.active, "II", whole=False)
    other = near.active.copy()
    other[:2] ^= True
    leaving = Leaving(held)
    few, afresh = leaving.price(other), price_afresh(design, int(other.sum()))
    assert few < afresh < leaving.price(~near.active)
    leaving.target(other)
    assert leaving.price(other) < few  # its columns have been fetched


@pytest.mark.parametrize("c", [1e3, 1e5])
def test_newton_ends_where_rounding_hides_the_descent(c: float) -> None:
    """A wide kernel: the objective is known to 1e-9 of itself at best."""
    rng = np.random.default_rng(0)
    y = labels(150)
    X = rng.normal(size=(150, 3)) + 0.3 * y[:, None]
    design = make_design(rbf(X), y, np.ones(150), True, True)
    full = fit(design, c)
    for row in range(0, 150, 10):
        train = design.used.copy()
        train[row] = False
        found = leave_afresh(design, c, train, np.array([row]), full.active)
        assert found.converged and len(found.steps) < 30


def test_automatic_choice_takes_the_smaller_matrix() -> None:
    wide, _ = design_of("linear", n=20, p=50)
    tall, _ = design_of("linear", n=50, p=5)
    assert isinstance(hold(wide, 1.0, wide.used, "auto"), StrategyTwo)
    assert isinstance(hold(tall, 1.0, tall.used, "auto"), StrategyOne)
    assert isinstance(hold(tall, 1.0, tall.used, "II"), StrategyTwo)


@pytest.mark.parametrize("strategy", ["I", "II"])
@pytest.mark.parametrize("kind", KINDS)
def test_leaving_out_equals_fitting_without(kind: str, strategy: str) -> None:
    """Against a design that never had the rows, nor their kernel columns."""
    design, X = design_of(kind, weighted=True)
    for c in (0.1, 10.0):
        full = fit(design, c)
        held = hold(design, c, full.active, strategy)
        for out in (np.array([3]), np.array([0, 7, 8, 20, 39])):
            kept = np.setdiff1d(np.arange(design.n), out)
            train = np.isin(np.arange(design.n), kept)
            data = X[kept] if kind == "linear" else rbf(X)[np.ix_(kept, kept)]
            small = make_design(
                data, design.y[kept], design.root[kept] ** 2, True, kind == "nonlinear"
            )
            expected = fit(small, c, "none")
            updated = leave_out(Leaving(held, design.columns(out)), train)
            afresh = leave_afresh(design, c, train, design.columns(out), full.active)
            for found in (updated, afresh):
                assert found.f[kept] == pytest.approx(expected.f, abs=1e-9)
            assert not afresh.theta[design.columns(out)].any()


def test_a_weight_counts_copies() -> None:
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(20, 3)), labels(20)
    counts = rng.integers(0, 4, 20)
    copies = np.repeat(np.arange(20), counts)
    for data, again, own in (
        (X, X[copies], False),
        (rbf(X), rbf(X)[np.ix_(copies, copies)], True),
    ):
        once = fit(make_design(data, y, counts.astype(float), True, own), 2.0)
        many = fit(make_design(again, y[copies], np.ones(len(copies)), True, own), 2.0)
        f = once.f[copies] / np.sqrt(counts[copies])
        assert many.f == pytest.approx(f, abs=1e-10)


def test_drift_is_found_and_taken_out() -> None:
    """A held inverse that is a little wrong gives a wrong target; refinement puts it right."""
    design, _ = design_of("nonlinear")
    c = 10.0
    full = fit(design, c)
    held = StrategyOne(design, c, full.active)
    noise = np.random.default_rng(0).normal(size=held.inverse.shape)
    held.inverse = held.inverse + 1e-6 * (noise + noise.T)
    train = design.used.copy()
    train[5] = False
    out = np.array([5])
    leaving = Leaving(held, out)
    rough = leave_out(leaving, train)
    fine = refine(design, c, [rough], [out], Updated(held, [leaving], [rough]).solve, 8)[0]
    drifted = design.gradient(design.theta(rough.alpha, out), c, train)
    assert np.linalg.norm(np.delete(drifted, out)) > 1e-8
    assert_minimum(design, c, fine, train, out)


@pytest.mark.parametrize("strategy", ["I", "II", "auto"])
def test_rough_updates_give_way_to_fresh_factors(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    design, _ = design_of("nonlinear")
    expected, polished = fit(design, 10.0, "none"), []
    polish = newton_armijo.polish

    def rough_at_first(*args: Any) -> Fit:
        polished.append(polish(*args))
        error = 1e-6 if len(polished) == 1 else 0.0
        return replace(polished[-1], theta=polished[-1].theta * (1 + error))

    monkeypatch.setattr(newton_armijo, "polish", rough_at_first)
    assert np.array_equal(fit(design, 10.0, strategy).theta, expected.theta)
    assert len(polished) == 2


@pytest.mark.skipif(
    np.finfo(np.longdouble).eps == EPSILON, reason="there is no extended precision here"
)
def test_extended_precision_where_float64_sums_do_not_do() -> None:
    """p >> n, uncentred, c = 1e5: of the gradient no more is left than rounding theta makes of it.

    Each theta_j is off by half a unit at most, at random, and c ||A|| times what that makes of f
    is the gradient.  With sums in float64 several times as much is left.
    """
    y, c = labels(60), 1e5
    left = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, size=(60, 2000)) * 0.5 + 0.3 + 0.05 * y[:, None]
        design = make_design(X, y, np.ones(60), True, False)
        theta = fit(design, c).theta
        A = design.A.astype(np.longdouble)
        f = A @ theta
        active = design.support(f.astype(float), design.used)
        g = (theta - c * (np.where(active, design.t - f, 0) @ A)).astype(float)
        limit = EPSILON / 2 * c * np.linalg.norm(design.A, 2) * np.linalg.norm(design.A * theta)
        left.append(np.linalg.norm(g) / limit)
    assert np.median(left) <= 1.0


def test_representer_and_inverse() -> None:
    design, X = design_of("linear", n=60, p=4)
    active = np.arange(60) % 2 == 0
    w = np.random.default_rng(0).normal(size=(3, 4))
    outs = [NONE, np.array([2, 3]), np.array([0, 4, 6])]
    coef, good = Representer(design, active)(w, outs)
    assert good.all()
    assert coef @ X == pytest.approx(w, abs=1e-12)
    assert not coef[:, ~active].any() and not coef[2, outs[2]].any()
    # A row that alone carries a feature cannot be left out.
    lonely = np.column_stack([X, np.arange(60) == 10])
    other = make_design(lonely, design.y, np.ones(60), True, False)
    _, good = Representer(other, active)(np.ones((1, 5)), [np.array([10])])
    assert not good[0]
    M = X.T @ X
    assert inverse(M.copy()) @ M == pytest.approx(np.eye(4), abs=1e-12)
    with pytest.raises(np.linalg.LinAlgError):
        inverse(-np.eye(3))
