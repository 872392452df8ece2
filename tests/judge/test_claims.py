"""Claimed values: what is right is taken, what is wrong is found out and worked out again."""

from __future__ import annotations

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


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """For each block of folds with claims, how many there were and how many were good enough."""
    seen: list[tuple[int, int]] = []
    by_claims = FoldSolver._by_claims

    def count(self: FoldSolver, place: Any, table: Any, leaves: Any) -> Any:
        failed, met = by_claims(self, place, table, leaves)
        seen.append((len(leaves) - int(failed.sum()), met))
        return failed, met

    monkeypatch.setattr(FoldSolver, "_by_claims", count)
    return seen


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("copies", [False, True])
def test_claimed_values_equal_products(
    fit_intercept: bool, copies: bool, settled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = many_free()
    if copies:
        twice = np.concatenate([np.arange(60), np.arange(20)])
        small = Small(small.K[np.ix_(twice, twice)], small.y[twice], small.weight[twice])
    task = make_task(small, GRID, fit_intercept=fit_intercept)
    ours, products = decisions(task, monkeypatch), decisions(task, monkeypatch, claiming=False)
    assert settled and all(met == there for there, met in settled)
    assert ours.exact and products.exact
    assert ours.ledger.decision == pytest.approx(products.ledger.decision, abs=1e-8)
    assert (ours.ledger.wrong == products.ledger.wrong).all()


def test_wrong_claims_are_found_out(settled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One value of every fold is off by a millionth; all is as if nothing had been claimed."""
    task = make_task(many_free(), GRID)
    expected = decisions(task, monkeypatch, claiming=False)
    told = Table.solutions_and_values

    def lie(self: Table, *given: Any) -> Any:
        coef, u, found = told(self, *given)
        u[:, -1] += 1e-6
        return coef, u, found

    monkeypatch.setattr(Table, "solutions_and_values", lie)
    ours = run(task)
    assert settled and all(met == 0 for _, met in settled)
    assert np.array_equal(ours.ledger.decision, expected.ledger.decision)
    assert np.array_equal(ours.ledger.kkt, expected.ledger.kkt)
    assert np.array_equal(ours.ledger.how, expected.ledger.how)


def test_one_wrong_claim_is_that_fold_s_alone(
    settled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Table.solutions_and_values

    def lie(self: Table, *given: Any) -> Any:
        coef, u, found = told(self, *given)
        u[len(u) // 2, -1] += 1e-6
        return coef, u, found

    task = make_task(many_free(), [1.0])
    expected = decisions(task, monkeypatch, claiming=False)
    monkeypatch.setattr(Table, "solutions_and_values", lie)
    ours = run(task)
    assert settled and all(met == there - 1 for there, met in settled)
    assert ours.exact
    assert ours.ledger.decision == pytest.approx(expected.ledger.decision, abs=1e-8)


@pytest.mark.parametrize("size", [1e-8, 1.0])
def test_what_is_off_is_bounded(size: float) -> None:
    """Wherever an error is, it is found, and no more than some tens of times it is charged."""
    rng = np.random.default_rng(0)
    K = rbf(rng.normal(size=(60, 3)))
    claims, nearby = Claims(K), (np.zeros(60), np.zeros(60))
    coef = rng.normal(size=(300, 60))
    error = size * rng.normal(size=(300, 60)) * (rng.random((300, 60)) < 0.1)
    off, norm = claims.off(coef, coef @ K + error, nearby), np.linalg.norm(error, axis=1)
    assert (off >= norm).all()
    assert (off <= 40.0 * norm + 1e-11).all()


def test_what_all_folds_have_in_common_drowns_no_error() -> None:
    """Equal rows of both classes are at their bounds in every fold: sums of that round too much."""
    K, rng = many_free().K.copy(), np.random.default_rng(0)
    for twin in (1, 2):
        K[twin], K[:, twin] = K[0], K[:, 0]
    base = np.zeros(len(K))
    # Thirds, so that their sums round and do not just cancel, on any processor.
    base[:3] = 1e7 / 3.0, 2e7 / 3.0, -1e7
    moved = rng.normal(size=(1000, len(K)))
    moved[:, :3] = 0.0
    off = [
        Claims(K).off(moved + base, moved @ K + base @ K, near).max()
        for near in ((base, base @ K), (np.zeros(len(K)), np.zeros(len(K))))
    ]
    assert off[0] < 0.1 * off[1]


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
    name: str, fit_intercept: bool, settled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = numbers(name, [0.3, 3.0, 30.0], fit_intercept)
    assert settled and all(met == there for there, met in settled)
    monkeypatch.setattr(Table, "covers", lambda self, rows: False)
    products = numbers(name, [0.3, 3.0, 30.0], fit_intercept)
    assert ours.certificate.exact and products.certificate.exact
    np.testing.assert_allclose(ours.decision, products.decision, atol=1e-8, rtol=1e-14)


@pytest.mark.parametrize("name", ["tube", "median"])
def test_wrong_claims_of_numbers_are_found_out(
    name: str, settled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is as if nothing had been claimed."""
    with monkeypatch.context() as patch:
        patch.setattr(Table, "covers", lambda self, rows: False)
        expected = numbers(name, [3.0])
    told = Table.solutions_and_values

    def lie(self: Table, *given: Any) -> Any:
        coef, u, found = told(self, *given)
        u[:, -1] += 1e-7
        return coef, u, found

    monkeypatch.setattr(Table, "solutions_and_values", lie)
    ours = numbers(name, [3.0])
    assert settled and all(met == 0 for _, met in settled)
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
        error = rng.normal(size=h.shape)
        off = h + blurred * error / np.linalg.norm(error)
        charged = judge.figures(off, solved.coef[None], b, one, None, blurred * one)[0]
        assert charged[0] >= right[0] and charged[1] >= right[1]
