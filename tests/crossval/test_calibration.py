"""Sigmoids and pairwise coupling against their optimality conditions and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.calibration import _sigmoid_calibration

from exactcv.crossval import calibration
from exactcv.crossval.calibration import couple, fit_sigmoid, raise_winners


def test_equals_scikit_learns_sigmoid() -> None:
    rng = np.random.default_rng(0)
    f, positive = rng.normal(size=200), rng.random(200) < 0.4
    f[positive] += 1.0
    weight = rng.uniform(0.5, 2.0, 200)
    for w in (None, weight):
        ours = fit_sigmoid(f, positive, w)
        a, b = _sigmoid_calibration(f, positive.astype(int), w)  # 1 / (1 + exp(a f + b))
        assert (ours.slope, ours.offset) == pytest.approx((-a, -b), rel=1e-4)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_gradient_vanishes(scale: float) -> None:
    rng = np.random.default_rng(1)
    positive = rng.random(50) < 0.2
    f = scale * (rng.normal(size=50) + positive)
    p = fit_sigmoid(f, positive)(f)
    n_pos, n_neg = positive.sum(), (~positive).sum()
    target = np.where(positive, (n_pos + 1) / (n_pos + 2), 1 / (n_neg + 2))
    assert (p - target).sum() == pytest.approx(0.0, abs=1e-9)
    assert ((p - target) @ f) / scale == pytest.approx(0.0, abs=1e-9)


def test_weights_are_copies() -> None:
    rng = np.random.default_rng(2)
    f, positive, w = rng.normal(size=30), rng.random(30) < 0.5, rng.integers(0, 4, 30)
    weighted = fit_sigmoid(f, positive, w.astype(float))
    copies = fit_sigmoid(np.repeat(f, w), np.repeat(positive, w))
    assert (weighted.slope, weighted.offset) == pytest.approx((copies.slope, copies.offset))


def test_separable_constant_and_one_sided_values() -> None:
    f = np.array([-1.0, -2.0, 1.0, 2.0])
    p = fit_sigmoid(f, f > 0)(f)
    assert (np.diff(p[np.argsort(f)]) > 0).all() and 0 < p.min() < 0.5 < p.max() < 1
    assert fit_sigmoid(np.zeros(6), np.arange(6) < 2)(np.zeros(1))[0] == pytest.approx(
        (2 * 3 / 4 + 4 / 6) / 6
    )
    assert fit_sigmoid(f, np.ones(4, dtype=bool))(f) == pytest.approx(5 / 6)


def test_a_slope_never_turns_round() -> None:
    """Where the values speak against their classes, the best that does not fall is flat."""
    rng = np.random.default_rng(4)
    positive, weight = rng.random(60) < 0.3, rng.uniform(0.5, 2.0, 60)
    f = rng.normal(size=60) - 2.0 * positive
    found = fit_sigmoid(f, positive, weight)
    n_pos, n_neg = weight[positive].sum(), weight[~positive].sum()
    target = np.where(positive, (n_pos + 1) / (n_pos + 2), 1 / (n_neg + 2))
    assert found.slope == 0.0
    assert weight @ (found(f) - target) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("spread", [1e-9, 1e-3, 1.0, 30.0])
def test_a_few_steps_suffice(spread: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise, outliers and separable values: no search at the level of rounding."""
    calls = 0
    evaluate = calibration._cross_entropy

    def counted(*arguments: np.ndarray) -> float:
        nonlocal calls
        calls += 1
        return evaluate(*arguments)

    monkeypatch.setattr(calibration, "_cross_entropy", counted)
    rng = np.random.default_rng(5)
    for n in (5, 30, 3000):
        for shift in (-1.0, 0.0, 1.0, 1e3):
            positive = rng.random(n) < 0.4
            f = 1.0 + spread * (rng.standard_t(1.5, size=n) + shift * positive)
            calls = 0
            fit_sigmoid(f, positive)
            assert calls <= 40, (n, shift)


@pytest.mark.parametrize("k", [3, 4, 6])
def test_coupling_solves_its_problem(k: int) -> None:
    rng = np.random.default_rng(k)
    n_pairs = k * (k - 1) // 2
    r = rng.uniform(0.02, 0.98, size=(3, n_pairs))
    found = couple(r, k)
    assert found.sum(axis=1) == pytest.approx(1.0) and (found >= 0).all()
    first, second = np.triu_indices(k, 1)
    for probs, row in zip(found, r, strict=True):

        def misfit(p: np.ndarray, row: np.ndarray = row) -> float:
            return float(((row * p[first] - (1 - row) * p[second]) ** 2).sum())

        start = np.full(k, 1 / k)
        constraint = {"type": "eq", "fun": lambda p: p.sum() - 1}
        best = minimize(misfit, start, constraints=constraint, bounds=[(0, 1)] * k, tol=1e-14)
        assert probs == pytest.approx(best.x, abs=1e-5)


def test_coupling_recovers_consistent_pairs() -> None:
    p = np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    first, second = np.triu_indices(3, 1)
    with np.errstate(invalid="ignore"):
        r = np.nan_to_num(p[:, second] / (p[:, first] + p[:, second]), nan=0.5)
    assert couple(r, 3) == pytest.approx(p, abs=1e-6)


def test_a_winner_of_all_its_pairs_is_the_most_probable() -> None:
    rng = np.random.default_rng(6)
    for k in (3, 4, 7):
        p = rng.dirichlet(np.ones(k), 200)
        votes = np.zeros((200, k), dtype=np.intp)
        winner = rng.integers(k, size=200)
        votes[np.arange(200), winner] = k - 1
        votes[100:] = 1  # nobody has won: nothing changes
        fair = raise_winners(p, votes)
        assert (fair.argmax(axis=1) == winner)[:100].all()
        assert fair.sum(axis=1) == pytest.approx(1.0) and (fair >= 0).all()
        np.testing.assert_array_equal(fair[100:], p[100:])
        right = (p.argmax(axis=1) == winner)[:100]
        np.testing.assert_array_equal(fair[:100][right], p[:100][right])
        # The nearest that respect the vote: what is pooled keeps its sum, the others their values.
        for before, after, w in zip(p[:100], fair[:100], winner, strict=False):
            pooled = after >= after[w] - 1e-12
            np.testing.assert_array_equal(after[~pooled], before[~pooled])
            assert before[pooled].mean() == pytest.approx(after[w])
            assert (before[~pooled] <= after[w]).all()
