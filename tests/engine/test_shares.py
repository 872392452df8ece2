"""Labels proved by sharing out the coefficient of the left-out row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exactcv
from exactcv.engine import leave_one_out
from exactcv.engine.shares import Leaving, Shares


def problem(seed: int, n: int = 150) -> tuple[np.ndarray, np.ndarray]:
    return exactcv.datasets.make_mixture(n, 2, random_state=seed)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(20, 90),
    C=st.floats(1e-2, 1e3),
    fit_intercept=st.booleans(),
    repeats=st.booleans(),
)
def test_proved_labels_are_right(seed, n, C, fit_intercept, repeats) -> None:
    X, y = problem(seed, n)
    if repeats:
        X = X[np.random.default_rng(seed).integers(0, 8, n)]
    options = {"Cs": [C], "gamma": 0.1, "fit_intercept": fit_intercept}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leave_one_out, "ENOUGH", 0)
        labels = exactcv.cross_validate(X, y, **options)
    values = exactcv.cross_validate(X, y, output="decision", **options)
    clear = np.abs(values.decision) > 1e-6  # on a tie the two may round to different sides
    np.testing.assert_array_equal(labels.wrong[clear], values.wrong[clear])


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_fewer_rows_have_to_be_solved(fit_intercept, monkeypatch) -> None:
    X, y = problem(0, 400)
    options = {"lambdas": np.geomspace(1e-2, 1e-5, 8), "gamma": 0.05}
    options |= {"fit_intercept": fit_intercept}
    result = exactcv.cross_validate(X, y, **options)
    monkeypatch.setattr(leave_one_out, "ENOUGH", np.inf)
    without = exactcv.cross_validate(X, y, **options)
    assert result.stats["events"] < 0.9 * without.stats["events"]
    np.testing.assert_array_equal(result.wrong, without.wrong)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_sizes_are_those_of_the_shares(fit_intercept) -> None:
    """||v|| is no less than the least possible, and near it where no box is in the way."""
    rng = np.random.default_rng(1)
    free, left_out = rng.normal(size=(4, 9)), rng.normal(size=(6, 9))
    coef = rng.uniform(0.5, 1.0, 6)
    own, nowhere = (left_out**2).sum(axis=1), np.full(6, -1)
    rows = Leaving(coef, own, nowhere, lambda some, of: left_out[some] @ free[of].T)
    wide = Shares(free @ free.T, np.full(4, -1e3), np.full(4, 1e3), fit_intercept, 0.0)
    base = free[:-1] - free[-1] if fit_intercept else free
    target = left_out - free[-1] if fit_intercept else left_out
    missed = target - target @ np.linalg.pinv(base) @ base
    least = coef * np.linalg.norm(missed, axis=1)
    found = wide.moves(rows)
    assert np.all(found >= least * (1 - 1e-9))
    np.testing.assert_allclose(found, least, rtol=0.05)
    # With boxes there is less to share, and with none at all, nothing.
    narrow = Shares(free @ free.T, np.full(4, -0.3), np.full(4, 0.3), fit_intercept, 0.0)
    assert np.all(narrow.moves(rows) >= least * (1 - 1e-9))
    shut = Shares(free @ free.T, np.zeros(4), np.zeros(4), fit_intercept, 0.0)
    whole = np.full(6, np.inf) if fit_intercept else coef * np.sqrt(rows.own)
    np.testing.assert_allclose(shut.moves(rows), whole)


def test_a_row_takes_no_share_of_its_own() -> None:
    free = np.eye(3)
    rows = Leaving(np.ones(3), np.ones(3), np.arange(3), lambda some, of: free[some][:, of])
    shares = Shares(free @ free.T, np.full(3, -9.0), np.full(3, 9.0), False, 0.0)
    np.testing.assert_allclose(shares.moves(rows), 1.0, rtol=1e-6)
    assert not shares.prove(rows, np.full(3, 0.5)).any()
    assert shares.prove(rows, np.full(3, 1.2)).all()


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_few_free_rows_prove_most(fit_intercept, monkeypatch) -> None:
    """They prove the rows that all of them prove, and all are asked of the rest alone."""
    rng = np.random.default_rng(2)
    free, left_out = rng.normal(size=(60, 70)), rng.normal(size=(300, 70))
    coef, value = rng.uniform(0.5, 1.0, 300), rng.uniform(0.0, 150.0, 300)
    place = np.where(np.arange(300) < 60, np.arange(300), -1)
    left_out[:60] = free
    asked: list[int] = []

    def cross(some, of) -> np.ndarray:
        if isinstance(of, slice):
            asked.append(len(some))
        return left_out[some] @ free[of].T

    rows = Leaving(coef, (left_out**2).sum(axis=1), place, cross)
    down, up = -rng.uniform(0.0, 1.0, 60), rng.uniform(0.0, 1.0, 60)
    shares = Shares(free @ free.T, down, up, fit_intercept, 1e-9)
    monkeypatch.setattr("exactcv.engine.shares.SOME", ())
    expected = shares.prove(rows, value)
    every, asked[:] = sum(asked), []
    monkeypatch.setattr("exactcv.engine.shares.SOME", (20,))
    np.testing.assert_array_equal(shares.prove(rows, value), expected)
    assert 100 < np.count_nonzero(expected) < 300 and sum(asked) < 0.5 * every


def test_without_free_rows_nothing_is_proved() -> None:
    rows = Leaving(np.ones(2), np.ones(2), np.full(2, -1), lambda some, _: np.zeros((len(some), 0)))
    shares = Shares(np.zeros((0, 0)), np.zeros(0), np.zeros(0), True, 0.0)
    assert not shares.prove(rows, np.full(2, 5.0)).any()
    assert np.isinf(shares.moves(rows)).all()
