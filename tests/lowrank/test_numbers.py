"""Losses of numbers with approx: the answer is that of the exact engine on the kernel Z Z'."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold

import exactcv
from exactcv.crossval.result import CVResult
from exactcv.lowrank import lost
from exactcv.lowrank.small import leave_out
from exactcv.lowrank.small.exchange import exchange
from exactcv.lowrank.small.hinges import hinges_of
from exactcv.lowrank.small.reduced import Reduced, at_knot, best_intercept
from exactcv.lowrank.small.solve import solve
from exactcv.problem.losses import PiecewiseLinear, epsilon_insensitive, pinball

CANCEL = np.zeros(1, dtype=np.int32)
CS = np.array([1e-3, 0.1, 10.0, 1e4])
LOSSES = {
    "tube": {"loss": "epsilon_insensitive", "epsilon": 0.25},
    "no tube": {"loss": "epsilon_insensitive", "epsilon": 0.0},
    "quantile": {"loss": "pinball", "quantile": 0.8},
}
# Few rows in the small problems: samples, several rounds and rows that escape all happen.
SMALL = {"target_rows": 40, "chunk_rows": 50}


def table(n: int = 90, repeated: bool = False, rounded: bool = False) -> tuple[Any, Any]:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3))
    if repeated:
        X = X[rng.integers(0, n // 3, n)]
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n) + 5.0
    return X, np.round(2.0 * y) / 2.0 if rounded else y


def both(
    X: Any, y: Any, features: dict[str, Any] | None = None, **common: Any
) -> tuple[CVResult, CVResult]:
    given = {"approx": "rff", "n_components": 9, "random_state": 0} | (features or {})
    result = exactcv.cross_validate(X, y, **given, **common)
    assert result.feature_map is not None
    Z = result.feature_map.transform(X)
    return result, exactcv.cross_validate(Z @ Z.T, y, kernel="precomputed", **common)


def assert_same(result: CVResult, exact: CVResult, unit: float = 1.0) -> None:
    assert result.certificate.exact and exact.certificate.exact
    assert result.decision is not None and exact.decision is not None
    np.testing.assert_allclose(result.decision, exact.decision, rtol=0, atol=1e-6 * unit)
    np.testing.assert_allclose(result.intercept, exact.intercept, rtol=0, atol=1e-6 * unit)
    np.testing.assert_allclose(result.objective, exact.objective, rtol=1e-8)
    np.testing.assert_allclose(result.error, exact.error, rtol=1e-6, atol=1e-6 * unit)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("cv", ["loo", 3])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("options", [{}, SMALL])
def test_it_is_the_exact_answer(name, cv, weighted, options) -> None:
    X, y = table()
    weight = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], len(y))
    common = LOSSES[name] | {"sample_weight": weight if weighted else None, "Cs": CS}
    common |= {"cv": KFold(cv) if cv != "loo" else cv, "fit_intercept": not weighted}
    result, exact = both(X, y, {"method_options": options}, **common)
    assert_same(result, exact)
    settled = sum(result.stats[how] for how in ("unchanged", "bound", "solved", "fallback"))
    rows = np.count_nonzero(weight) if weighted else len(y)
    assert settled == len(CS) * (rows if cv == "loo" else cv)


@pytest.mark.parametrize("name", ["tube", "quantile"])
@pytest.mark.parametrize("approx", ["rff", "nystroem"])
@pytest.mark.parametrize("m", [1, 20, 60])
@pytest.mark.parametrize("rounded", [True, False])
def test_repeated_rows_and_any_number_of_features(name, approx, m, rounded) -> None:
    """Rounded numbers: knots of different rows coincide."""
    X, y = table(60, repeated=True, rounded=rounded)
    result, exact = both(X, y, {"approx": approx, "n_components": m}, Cs=CS[1:], **LOSSES[name])
    assert_same(result, exact)


@pytest.mark.parametrize("name", ["tube", "quantile"])
@pytest.mark.parametrize("unit", [1e-6, 1e6])
@pytest.mark.parametrize("cv", ["loo", 3])
def test_the_unit_of_y_does_not_matter(name, unit, cv) -> None:
    X, y = table()
    given = {"approx": "nystroem", "n_components": 12, "random_state": 0, "cv": cv}
    one = exactcv.cross_validate(X, y, Cs=CS, **given, **LOSSES[name])
    loss = dict(LOSSES[name])
    if "epsilon" in loss:
        loss["epsilon"] *= unit
    other = exactcv.cross_validate(X, unit * y + 7.0 * unit, Cs=unit * CS, **given, **loss)
    assert one.certificate.exact and other.certificate.exact
    np.testing.assert_allclose(other.decision / unit - 7.0, one.decision, atol=1e-7)
    np.testing.assert_allclose(other.weights / unit, one.weights, atol=1e-7)
    np.testing.assert_allclose(other.objective / unit, one.objective, rtol=1e-9)
    np.testing.assert_allclose(other.error / unit, one.error, atol=1e-7)


def test_the_default_grid_is_in_the_units_of_y() -> None:
    X, y = table(40)
    given = {"approx": "rff", "n_components": 5, "random_state": 0, "cv": 3, "loss": "pinball"}
    one = exactcv.cross_validate(X, y, **given)
    other = exactcv.cross_validate(X, 1e6 * y, **given)
    np.testing.assert_allclose(other.Cs, 1e6 * one.Cs)
    exact = exactcv.cross_validate(X, y, cv=3, loss="pinball")
    assert exact.Cs[0] in one.Cs


def test_rows_that_move_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """No kernel matrix of rows near the margin: each is solved in m dimensions."""
    monkeypatch.setattr(leave_out.LeaveOut, "_tiers", lambda self, drift: [])
    monkeypatch.setattr(lost, "LEAST_AROUND", 30)
    monkeypatch.setattr(lost, "AROUND", 2)
    X, y = table(50)
    for loss in LOSSES.values():
        result, exact = both(X, y, Cs=[0.1, 100.0], **loss)
        assert result.stats["solved"] > 20
        assert_same(result, exact)


def test_many_rows_in_passes() -> None:
    """More rows than small problems hold: guesses, sampled rounds, the exact finish."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(800, 4))
    y = X[:, 0] * X[:, 1] + 0.5 * rng.standard_t(3, 800)
    options = {"method_options": {"target_rows": 80, "chunk_rows": 300}}
    common = {"Cs": [1e-3, 0.1, 10.0], "cv": KFold(3)} | LOSSES["tube"]
    result, exact = both(X, y, options, **common)
    assert result.stats["passes"] > 4
    assert_same(result, exact)


def test_scores_and_summary() -> None:
    X, y = table()
    result, exact = both(X, y, Cs=CS, cv=KFold(3), **LOSSES["tube"])
    np.testing.assert_allclose(result.score("r2"), exact.score("r2"), atol=1e-6)
    np.testing.assert_allclose(
        result.score("neg_mean_absolute_error"), exact.score("neg_mean_absolute_error"), atol=1e-6
    )
    assert "approximate kernel (rff, 9 components)" in result.summary()
    assert result.coef is None and result.weights.shape == (len(CS), 9)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_other_losses_are_refused(loss: str) -> None:
    X, y = table(20)
    with pytest.raises(exactcv.ExactCVError):
        exactcv.cross_validate(X, np.sign(y - 5.0), approx="rff", n_components=5, loss=loss)


def test_constant_numbers_and_a_tube_that_holds_all() -> None:
    X, y = table(30)
    for values, epsilon in ((np.full(30, 3.0), 0.1), (y, 100.0)):
        result, exact = both(X, values, Cs=[0.1, 10.0], loss="epsilon_insensitive", epsilon=epsilon)
        assert result.certificate.exact
        np.testing.assert_allclose(result.decision, exact.decision, atol=1e-6)


# ---- hinges --------------------------------------------------------------------------------------


def random_loss(rng: np.random.Generator, n: int, kind: str) -> PiecewiseLinear:
    y = np.round(rng.normal(size=n), 1)
    return pinball(y, 0.3) if kind == "pinball" else epsilon_insensitive(y, 0.2)


@pytest.mark.parametrize("kind", ["pinball", "tube"])
def test_pieces_add_up_to_the_loss(kind: str) -> None:
    rng = np.random.default_rng(0)
    loss, box = random_loss(rng, 20, kind), rng.uniform(0.5, 2.0, 20)
    Z, theta = rng.normal(size=(20, 3)), rng.normal(size=(2, 4))
    hinges = hinges_of(Z, loss, box, (np.zeros(3), 0.0), True)
    assert hinges.Z is Z  # held once, however many hinges there are
    whole, apart = [], []
    for one in theta:
        u = Z @ one[:-1] + one[-1]
        whole.append(box @ loss.value(u))
        linear = -hinges.a @ one[:-1] - hinges.beta * one[-1]
        apart.append(linear + hinges.box @ np.maximum(-hinges.margins(one), 0.0))
    assert apart[1] - apart[0] == pytest.approx(whole[1] - whole[0])


@settings(max_examples=60)
@given(
    seed=st.integers(0, 100_000),
    n=st.integers(4, 40),
    m=st.integers(1, 6),
    size=st.sampled_from([1e-3, 0.1, 1.0, 30.0]),
    intercept=st.booleans(),
    kind=st.sampled_from(["pinball", "tube"]),
)
def test_solutions_meet_the_conditions(seed, n, m, size, intercept, kind) -> None:
    rng = np.random.default_rng(seed)
    Z, loss = rng.normal(size=(n, m)), random_loss(rng, n, kind)
    box = size * rng.choice([1.0, 0.5], n)
    problem = Reduced(Z, loss, box, 0.5 * size * rng.normal(size=m), 0.0, intercept)
    reply = solve(problem, np.zeros(m + 1), CANCEL)
    assert reply.solved
    u, levels = problem.values(reply.theta), loss.coefficient_levels(box)
    scale = max(1.0, float(np.abs(reply.theta).max()))
    np.testing.assert_allclose(problem.a + reply.coef @ Z, reply.theta[:-1], atol=1e-8 * scale)
    if intercept:
        assert abs(reply.coef.sum()) <= 1e-9 * box.sum()
    above, below = loss.passed(u - 1e-6 * scale), loss.passed(u + 1e-6 * scale)
    rows = np.arange(n)
    assert (reply.coef <= levels[rows, above] + 1e-8 * box).all()
    assert (reply.coef >= levels[rows, below] - 1e-8 * box).all()
    assert (loss.distance(u)[at_knot(reply.state)] <= 1e-6 * scale).all()


def test_exchange_alone_finds_the_same() -> None:
    rng = np.random.default_rng(3)
    Z, loss = rng.normal(size=(150, 5)), random_loss(rng, 150, "tube")
    problem = Reduced(Z, loss, np.full(150, 0.7), np.zeros(5), 0.0, True)
    expected = solve(problem, np.zeros(6), CANCEL)
    start = rng.normal(size=6)
    reply = exchange(problem.hinges, start, np.zeros(0, dtype=np.intp), 5000, CANCEL)
    assert expected.solved and reply.solved
    np.testing.assert_allclose(reply.theta, expected.theta, atol=1e-9)


def test_the_intercept_of_numbers() -> None:
    loss = epsilon_insensitive(np.array([0.0, 4.0, 2.5]), 1.0)
    box = np.array([1.0, 1.0, 0.0])  # what has no box ends nothing
    problem = Reduced(np.zeros((3, 1)), loss, box, np.zeros(1), 0.0, True)
    assert best_intercept(problem.hinges, np.zeros(1)) == 2.0  # anything from 1 to 3 is as good


def test_numbers_of_dask() -> None:
    """They travel as they are, labels in a byte."""
    da = pytest.importorskip("dask.array")
    X, y = table(80)
    given = {"approx": "rff", "n_components": 6, "random_state": 0, "Cs": [0.1, 10.0], "cv": 3}
    local = exactcv.cross_validate(X, y, **given, **LOSSES["tube"])
    there = exactcv.cross_validate(
        da.from_array(X, chunks=(30, 3)), da.from_array(y, chunks=30), **given, **LOSSES["tube"]
    )
    assert there.certificate.exact
    np.testing.assert_allclose(there.decision, local.decision, atol=1e-8)


def test_all_rows_are_in_play_where_each_is_left_out_alone() -> None:
    """More rows than a small problem has by itself, and C so large that each moves many others."""
    X, y = table(2050)
    result, exact = both(X, y, Cs=[10.0], gamma=0.3, cv="loo", **LOSSES["tube"])
    assert_same(result, exact)
    assert result.stats["escaped"] == 0


@pytest.mark.parametrize("quantile", [0.05, 0.5])
@pytest.mark.parametrize("cv", [2, 5])
def test_as_many_features_as_rows_with_large_boxes(quantile, cv) -> None:
    """Every row is on its knot: what rounding leaves there is in units of the boxes."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(250, 3))
    y = np.sin(X[:, 0]) + 0.3 * rng.normal(size=250)
    result = exactcv.cross_validate(
        X, y, loss="pinball", quantile=quantile, approx="nystroem", kernel="laplacian",
        n_components=250, cv=cv, random_state=0, Cs=[1.0, 1e4],
    )  # fmt: skip
    assert result.certificate.exact
