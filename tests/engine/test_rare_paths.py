"""Paths of the compiled loops that ordinary problems do not take."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from _oracle import Start, make_task
from _problems import FloatArray, floor, mixture

import exactcv
from exactcv._core import _smo
from exactcv._core._active_set import ActiveSet, Status
from exactcv._core._base import Base
from exactcv._core._factor import Factor
from exactcv._core._rough import RoughSteps
from exactcv.engine import table as table_module
from exactcv.engine.pair_table import PairTable
from exactcv.engine.smo import solve
from exactcv.judge.certificate import residuals
from exactcv.problem.losses import hinge
from exactcv.runtime.threads import Cancelled

GO, STOP = np.zeros(1, dtype=np.int32), np.ones(1, dtype=np.int32)
# Two rows that no kernel has: whatever is added to all entries, the second pivot is negative.
INDEFINITE = np.array([[1.0, 5.0, 0.1], [5.0, 1.0, 0.1], [0.1, 0.1, 1.0]])


# ---- columns, factors ---------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [3.0, 30.0])
def test_columns_that_were_given_up_are_made_again(
    C: float, fit_intercept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room for as many as change at a time is room enough: the answers are the same."""
    small = mixture(600, 3, seed=1)
    start = Start.of(make_task(small, C, fit_intercept=fit_intercept))
    plenty = [coef for _, _, coef in start.drives()]
    monkeypatch.setattr(table_module, "Base", partial(Base, held=260))
    assert max(len(table.columns.others) for _, table in start.tables()) > 260
    scarce = [coef for _, _, coef in start.drives()]
    assert not any(coef is None for coef in scarce + plenty)
    # A column may be made by another product.
    apart = (np.array(scarce) - np.array(plenty)) @ small.K
    assert np.abs(apart).max() <= 1e-9 * C


@pytest.mark.parametrize("constant", [True, False])
def test_a_factor_that_failed_is_forgotten(constant: bool) -> None:
    """What is solved after it is right, whether or not it has rows of it."""
    factor = Factor(INDEFINITE, constant)
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        factor.solve_with([0, 1], [1.0, 2.0])
    for rows in ([0, 2], [1, 2], [2]):
        right = np.arange(1.0, 1.0 + len(rows))
        G = INDEFINITE[np.ix_(rows, rows)]
        x = factor.solve_with(rows, right)
        assert (G + constant * factor.top) @ x == pytest.approx(right, abs=1e-10)
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        factor.solve_with([0, 1], [1.0, 2.0])


def test_a_factor_serves_its_rows_in_any_order() -> None:
    K = mixture(150, 30).K
    factor, rows = Factor(K, False), np.arange(120)
    factor.solve_with(rows, np.ones(120))
    rows = np.random.default_rng(0).permutation(rows)
    right = np.arange(120.0)
    assert K[np.ix_(rows, rows)] @ factor.solve_with(rows, right) == pytest.approx(right, abs=1e-6)
    assert factor.n_factorised == 1


# ---- the active set -----------------------------------------------------------------------------


def active_set(K: FloatArray, y: FloatArray, fit_intercept: bool) -> ActiveSet:
    loss = hinge(y)
    return ActiveSet(K, loss.knots, loss.coefficient_levels(np.ones(len(y))), fit_intercept)


@pytest.mark.parametrize("crowd", [np.inf, 0])
def test_an_indefinite_kernel_is_seen_by_block_and_monotone_steps(crowd: float) -> None:
    """With a crowd of 0, block steps give up before they meet it.  The states are as they were."""
    y = np.array([1.0, 1.0, 1.0])
    solver = active_set(INDEFINITE, y, False)
    state, c, h = np.full(3, 2, dtype=np.int8), np.zeros(3), np.zeros(3)
    _, status, _ = solver.solve(100.0, state, c, h, 0.0, monotone=True, crowd=crowd)
    assert status == Status.SINGULAR
    if crowd:
        assert state.tolist() == [2, 2, 2] and not c.any() and not h.any()


@pytest.mark.parametrize("monotone", [True, False])
def test_steps_are_as_many_as_allowed(monotone: bool) -> None:
    small = mixture(60, 3)
    solver = active_set(small.K, small.y, True)
    state, c, h = np.where(small.y > 0, 2, 0).astype(np.int8), np.zeros(60), np.zeros(60)
    before = state.copy()
    _, status, done = solver.solve(10.0, state, c, h, 0.0, monotone=monotone, max_iter=3)
    assert (status, done) == (Status.STALLED, 3)
    if not monotone:
        assert np.array_equal(state, before) and not c.any() and not h.any()
    b, status, done = solver.solve(10.0, state, c, h, 0.0, monotone=True)
    assert status == Status.CONVERGED and done > 3
    assert max(residuals(small.K, hinge(small.y), np.full(60, 10.0), c, b)) <= 1e-9


@pytest.mark.parametrize("crowd", [np.inf, 0])
@pytest.mark.parametrize("seed", range(4))
def test_repeated_rows_cost_an_updated_factor_its_digits(seed: int, crowd: float) -> None:
    """It is dropped then, and made afresh: the solution is as good as any."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(240, 5))[rng.integers(120, size=240)]
    y, C = np.where(rng.random(240) < 0.5, 1.0, -1.0), 5e3
    K = np.exp(-0.1 * np.square(X[:, None] - X).sum(axis=2))
    solver = active_set(K, y, False)
    state, c, h = np.ones(240, dtype=np.int8), np.zeros(240), np.zeros(240)
    _, status, _ = solver.solve(C, state, c, h, 0.0, monotone=True, crowd=crowd)
    assert status == Status.CONVERGED
    box = np.full(240, C)
    kkt, gap = residuals(K, hinge(y), box, c, 0.0, fit_intercept=False)
    limit = max(1e-9, floor(K, c))
    assert kkt <= limit and gap <= limit


# ---- stopped, empty, not a number ---------------------------------------------------------------


def test_leaving_rows_out_is_stopped() -> None:
    start = Start.of(make_task(mixture(40, 3), 1.0))
    who, table = next(iter(start.tables()))
    with pytest.raises(Cancelled):
        table.solutions(who, table.base.coef[who], STOP, table_module.Driven.ALL)
    coef, found = table.solutions(who, table.base.coef[who], GO)
    assert not found.failed.any()
    assert (coef[np.arange(len(who)), who] == 0.0).all()


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_working_set_steps_are_stopped_before_the_first(fit_intercept: bool) -> None:
    small = mixture(20, 3)
    y, rows = small.y, np.arange(20)
    fixed = small.K, rows, np.ones(20), np.minimum(0, y), np.maximum(0, y)
    c, e = np.zeros(20), y.copy()
    done, violation, status = _smo.smo_steps(*fixed, c, e, fit_intercept, 1e-6, 1000, STOP)
    assert (done, status) == (0, 2) and violation > 0.5
    assert not c.any() and np.array_equal(e, y)


def test_working_set_steps_without_a_row_have_converged() -> None:
    none = np.zeros(0)
    args = np.eye(3), np.zeros(0, dtype=np.intp), none, none, none, none.copy(), none.copy()
    assert _smo.smo_steps(*args, True, 1e-6, 1000, GO) == (0, 0.0, 0)


def rough(K: FloatArray, y: FloatArray, fit_intercept: bool) -> RoughSteps:
    levels = hinge(y).coefficient_levels(np.ones(len(y)))
    return RoughSteps(K, K.astype(np.float32), 1.0, hinge(y).knots, levels, fit_intercept)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_rough_steps_are_stopped_before_the_first(fit_intercept: bool) -> None:
    small = mixture(30, 3)
    state = np.where(small.y > 0, 2, 0).astype(np.int8)
    c, h = np.zeros(30), np.zeros(30)
    steps = rough(small.K, small.y, fit_intercept)
    done, violation = steps.run(1.0, state, c, h, 1e-3, 10**6, STOP)
    assert done == 0 and violation > 0.5 and not c.any() and not h.any()
    done, violation = steps.run(1.0, state, c, h, 1e-3, 10**6, GO)
    steps.settle(c, h)
    assert done > 0 and violation <= 1e-3
    best = solve(small.K, hinge(small.y), np.ones(30), fit_intercept=fit_intercept)
    assert h == pytest.approx(small.K @ best.coef, abs=0.1)


def test_rough_steps_end_where_no_pair_gains() -> None:
    """Sums of kernel values are beyond single precision: nothing moves, and the loop ends."""
    small = mixture(30, 3)
    K = np.where(np.eye(30) > 0, 1.0, -3e38)
    state = np.where(small.y > 0, 2, 0).astype(np.int8)
    c, h = np.zeros(30), np.zeros(30)
    done, violation = rough(K, small.y, True).run(1.0, state, c, h, 1e-3, 10**9, GO)
    assert done <= 1000 and violation > 0.5 and not c.any() and not h.any()


def test_leaving_pairs_out_is_stopped() -> None:
    small = mixture(24, 3)
    start = Start.of(make_task(small, 1.0))
    table = PairTable(start.full, start.engine.span, np.tile(start.full.coef, (24, 1)))
    pairs = np.array([[0, 5], [3, 7]])
    with pytest.raises(Cancelled):
        table.leave_out(pairs, STOP)
    found = table.leave_out(pairs, GO, coef=True)
    assert found.done.all()
    for (i, j), coef, values in zip(pairs, found.coef, found.values, strict=True):
        best = solve(small.K, hinge(small.y), np.ones(24), np.setdiff1d(np.arange(24), [i, j]))
        assert small.K @ coef == pytest.approx(small.K @ best.coef, abs=1e-7)
        assert values == pytest.approx((small.K @ coef + best.intercept)[[i, j]], abs=1e-7)


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_where_a_whole_class_gives_way_for_one_row(C):
    """Rows hardly alike, classes of one size: without a row, all of the other class have to give.

    From the full data's solution that takes an event for each of them, from that without another
    row of the class hardly any.
    """
    X, y = exactcv.datasets.make_mixture(200, 20, random_state=0)
    ours = exactcv.cross_validate(X, y, Cs=[C], gamma=1 / 20, output="decision", n_jobs=1)
    oracle = exactcv.cross_validate(
        X, y, Cs=[C], gamma=1 / 20, output="decision", method="refit", n_jobs=1
    )
    assert ours.certificate.exact
    np.testing.assert_allclose(ours.decision, oracle.decision, atol=1e-7)
    assert ours.stats["events"] < 20 * len(y)
