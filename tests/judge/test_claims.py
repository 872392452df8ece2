"""Claimed values: what is right is taken, what is wrong is found out and worked out again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from _numbers import LOSSES
from _oracle import make_task, run
from _problems import Small, mixture, rbf

import exactcv
from exactcv.engine import fold_solver
from exactcv.engine.fold_solver import FoldSolver
from exactcv.engine.smo import solve
from exactcv.engine.table import Table
from exactcv.judge.claims import Claims
from exactcv.judge.ledger import Ledger
from exactcv.judge.piecewise_linear import PiecewiseLinearJudge
from exactcv.problem.losses import epsilon_insensitive, pinball

NUMBERS = np.linspace(-2.0, 2.0, 12) ** 3 / 4.0
GRID = [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]


@pytest.fixture(autouse=True)
def claiming_from_the_first_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """These problems are so small that values would be worked out, not claimed."""
    monkeypatch.setattr(fold_solver, "FEW_TO_CLAIM", 0)


def many_free(n: int = 60, seed: int = 0) -> Small:
    """Hardly any two rows are similar: nearly all are free, and for large C none is at a bound."""
    small = mixture(n, seed=seed)
    rng = np.random.default_rng(seed)
    return Small(rbf(4.0 * rng.normal(size=(n, 12))), small.y, small.weight)


def decisions(task: Any, monkeypatch: pytest.MonkeyPatch, claiming: bool = True) -> Any:
    with monkeypatch.context() as patch:
        if not claiming:
            patch.setattr(Table, "covers", lambda self, rows: False)
        return run(task)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("copies", [False, True])
def test_claimed_values_equal_products(
    fit_intercept: bool, copies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = many_free()
    if copies:
        twice = np.concatenate([np.arange(60), np.arange(20)])
        small = Small(small.K[np.ix_(twice, twice)], small.y[twice], small.weight[twice])
    task = make_task(small, GRID, fit_intercept=fit_intercept)
    held: list[bool] = []
    hold = Claims.hold
    monkeypatch.setattr(Claims, "hold", lambda self: held.append(hold(self)) or held[-1])
    ours, products = decisions(task, monkeypatch), decisions(task, monkeypatch, claiming=False)
    assert held and all(held)
    assert ours.exact and products.exact
    assert ours.ledger.decision == pytest.approx(products.ledger.decision, abs=1e-8)
    assert (ours.ledger.wrong == products.ledger.wrong).all()


def test_wrong_claims_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """One value of one fold is off by a millionth; all is as if nothing had been claimed."""
    task = make_task(many_free(), GRID)
    expected = decisions(task, monkeypatch, claiming=False)
    told = Table.solutions_and_values

    def lie(self: Table, *given: Any) -> Any:
        coef, u, found = told(self, *given)
        u[len(u) // 2, -1] += 1e-6
        return coef, u, found

    monkeypatch.setattr(Table, "solutions_and_values", lie)
    ours = run(task)
    assert np.array_equal(ours.ledger.decision, expected.ledger.decision)
    assert np.array_equal(ours.ledger.kkt, expected.ledger.kkt)
    assert np.array_equal(ours.ledger.how, expected.ledger.how)


def test_claims_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error is found wherever it is, however many claims there are."""
    task = make_task(many_free(), [1.0])
    rng, K = np.random.default_rng(0), task.problem.K
    for where in range(0, 300, 37):
        claims = Ledger(task).claims(0)
        assert claims is not None
        coef = rng.normal(size=(300, len(K)))
        h = coef @ K
        h[where, where % len(K)] += 1e-8
        for part in (slice(0, 100), slice(100, 300)):
            claims.add(coef[part], h[part])
        assert not claims.hold()


def test_what_all_folds_have_in_common_drowns_no_error() -> None:
    """Equal rows of both classes are at their bounds in every fold: sums of that round too much."""
    task = make_task(many_free(), [1.0])
    K, rng = task.problem.K.copy(), np.random.default_rng(0)
    for twin in (1, 2):
        K[twin], K[:, twin] = K[0], K[:, 0]
    base = np.zeros(len(K))
    # Thirds, so that their sums round and do not just cancel, on any processor.
    base[:3] = 1e7 / 3.0, 2e7 / 3.0, -1e7
    moved = rng.normal(size=(1000, len(K)))
    moved[:, :3] = 0.0
    held = []
    for near in ((base, base @ K), (np.zeros(len(K)), np.zeros(len(K)))):
        given = Ledger(task).claims(0)
        assert given is not None
        claims = Claims(K, given.judge, given.allowed, near)
        claims.add(moved + base, moved @ K + base @ K)
        held.append(claims.hold())
    assert held == [True, False]


def test_what_holds_for_every_larger_C_is_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    task = make_task(many_free(), GRID)
    entered: list[tuple[int, int]] = []
    enter = FoldSolver._enter

    def count(self: FoldSolver, place: Any, leaves: Any, *rest: Any) -> Any:
        entered.append((place.l, len(leaves)))
        return enter(self, place, leaves, *rest)

    monkeypatch.setattr(FoldSolver, "_enter", count)
    ours = run(task)
    settled = [l for l in range(1, len(GRID)) if np.array_equal(*ours.ledger.coef[l - 1 : l + 1])]
    assert settled
    assert sum(n for l, n in entered if l in settled) == 0
    theirs = run(task, "refit")
    assert ours.exact and ours.ledger.decision == pytest.approx(theirs.ledger.decision, abs=1e-7)


# ---- losses of numbers ---------------------------------------------------------------------------


def numbers(name: str, Cs: list[float], fit_intercept: bool = True) -> Any:
    """Nearly every row at a knot, and numbers near a million."""
    rng = np.random.default_rng(0)
    X = 2.0 * rng.normal(size=(50, 8))
    y = 1e6 + np.sin(X[:, 0]) + rng.normal(size=50)
    settings: dict[str, Any] = {"gamma": 0.05, "fit_intercept": fit_intercept} | LOSSES[name]
    if not fit_intercept:
        y -= 1e6
    return exactcv.cross_validate(X, y, Cs=Cs, **settings)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", ["tube", "absolute", "median", "low"])
def test_claims_of_numbers_equal_products(
    name: str, fit_intercept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[bool] = []
    hold = Claims.hold
    monkeypatch.setattr(Claims, "hold", lambda self: held.append(hold(self)) or held[-1])
    ours = numbers(name, [0.3, 3.0, 30.0], fit_intercept)
    assert held and all(held)
    monkeypatch.setattr(Table, "covers", lambda self, rows: False)
    products = numbers(name, [0.3, 3.0, 30.0], fit_intercept)
    assert ours.certificate.exact and products.certificate.exact
    np.testing.assert_allclose(ours.decision, products.decision, atol=1e-8, rtol=1e-14)


@pytest.mark.parametrize("name", ["tube", "median"])
def test_wrong_claims_of_numbers_are_found_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All is as if nothing had been claimed."""
    with monkeypatch.context() as patch:
        patch.setattr(Table, "covers", lambda self, rows: False)
        expected = numbers(name, [3.0])
    told, held = Table.solutions_and_values, []
    hold = Claims.hold
    monkeypatch.setattr(Claims, "hold", lambda self: held.append(hold(self)) or held[-1])

    def lie(self: Table, *given: Any) -> Any:
        coef, u, found = told(self, *given)
        u[len(u) // 2, -1] += 1e-7
        return coef, u, found

    monkeypatch.setattr(Table, "solutions_and_values", lie)
    ours = numbers(name, [3.0])
    assert held and not any(held)
    np.testing.assert_array_equal(ours.decision, expected.decision)
    np.testing.assert_array_equal(ours.certificate.kkt, expected.certificate.kkt)


@pytest.mark.parametrize("blurred", [0.0, 1e-9, 1e-6])
@pytest.mark.parametrize("loss", [epsilon_insensitive(NUMBERS, 0.25), pinball(NUMBERS, 0.3)])
def test_an_allowance_covers_whatever_is_off_by_it(loss: Any, blurred: float) -> None:
    """The figures of values that are off, with the allowance, are no less than those of the right.

    So are the violations; the gap is a bound, and grows by what rows at a knot can lose.
    """
    K = np.exp(-0.5 * (NUMBERS[:, None] - NUMBERS) ** 2)
    weight, one = np.ones(len(NUMBERS)), np.ones(1)
    solved = solve(K, loss, weight, tol=1e-12)
    judge = PiecewiseLinearJudge.of(loss, weight, True, np.diagonal(K))
    h, b = (K @ solved.coef)[None], np.array([solved.intercept])
    right = judge.figures(h, solved.coef[None], b, one)[0]
    rng = np.random.default_rng(0)
    for _ in range(20):
        off = h + blurred * rng.uniform(-1.0, 1.0, h.shape)
        charged = replace(judge, blurred=blurred).figures(off, solved.coef[None], b, one)[0]
        assert charged[0] >= right[0] and charged[1] >= right[1]
