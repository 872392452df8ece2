"""Leave-one-out where rows move further than the small problems of the full solution reach."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import exactcv
from exactcv.lowrank import left_out, solver
from exactcv.lowrank.passes.sweep import Chunk
from exactcv.lowrank.small import leave_out
from exactcv.lowrank.small.beyond import Crossings, Standing
from exactcv.lowrank.small.nearby import Nearby
from exactcv.lowrank.small.press import Leaving, Press
from exactcv.lowrank.small.reduced import Reduced
from exactcv.lowrank.small.solve import solve
from exactcv.problem.loss_rules import LossRule
from exactcv.problem.losses import hinge

CANCEL = np.zeros(1, dtype=np.int32)
CS = [1e-3, 1.0, 1e2, 1e4]


@pytest.fixture
def all_move_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """No kernel matrix of rows near the margin; few rows around it."""
    monkeypatch.setattr(leave_out.LeaveOut, "_tiers", lambda self, drift: [])
    monkeypatch.setattr(left_out, "LEAST_AROUND", 30)
    monkeypatch.setattr(left_out, "AROUND", 2)


def table(repeated: bool) -> tuple[np.ndarray, np.ndarray]:
    X, y = exactcv.datasets.make_mixture(70, 4, random_state=5)
    if repeated:
        X[40:] = X[np.random.default_rng(0).integers(0, 25, 30)]
    return X, y


@pytest.mark.usefixtures("all_move_far")
@pytest.mark.parametrize("m", [1, 12, 70])
@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("options", [{}, {"target_rows": 30, "chunk_rows": 50}])
def test_labels_and_values_are_those_of_the_kernel(m: int, repeated: bool, options: Any) -> None:
    X, y = table(repeated)
    weight = np.random.default_rng(1).choice([0.0, 0.5, 2.0], len(y)) if m == 12 else None
    m = min(m, len(y) if weight is None else int(np.count_nonzero(weight)))
    common: dict[str, Any] = {"Cs": CS, "sample_weight": weight}
    settings = common | {
        "approx": "nystroem", "n_components": m, "random_state": 0, "method_options": options,
    }  # fmt: skip
    found = exactcv.cross_validate(X, y, output="decision", **settings)
    Z = found.feature_map.transform(X)
    exact = exactcv.cross_validate(Z @ Z.T, y, kernel="precomputed", output="decision", **common)
    assert found.certificate.exact and exact.certificate.exact
    scale = np.maximum(1.0, np.abs(exact.decision))
    np.testing.assert_allclose(found.decision / scale, exact.decision / scale, atol=1e-6)
    labels = exactcv.cross_validate(X, y, output="error", **settings)
    assert labels.certificate.exact
    clear = np.abs(exact.decision) > 1e-6  # else it is a tie, and rounding decides
    np.testing.assert_array_equal(labels.wrong[clear], exact.wrong[clear])


@pytest.mark.usefixtures("all_move_far")
@pytest.mark.parametrize("spoilt", [False, True])
def test_what_is_solved_is_proved_as_it_is(monkeypatch: pytest.MonkeyPatch, spoilt: bool) -> None:
    """Solutions without a row are not solved again where they are proved, unless they are wrong."""
    monkeypatch.setattr(left_out, "LEAST_AROUND", 190)  # so that no row beyond crosses
    X, y = exactcv.datasets.make_mixture(200, 4, random_state=5)
    settings: dict[str, Any] = {"approx": "nystroem", "n_components": 12, "random_state": 0}
    settings |= {"Cs": [100.0], "method_options": {"target_rows": 80}}
    expected = exactcv.cross_validate(X, y, **settings)
    calls = []
    monkeypatch.setattr(solver, "solve", lambda *given: calls.append(1) or solve(*given))
    if spoilt:
        known = solver._known
        monkeypatch.setattr(solver, "_known", lambda *given: known(*given[:-1], 0.9 * given[-1]))
    found = exactcv.cross_validate(X, y, **settings)
    assert found.stats["fallback"] > 10
    assert (len(calls) >= found.stats["fallback"]) == spoilt
    np.testing.assert_array_equal(found.wrong, expected.wrong)
    assert found.certificate.exact


@pytest.mark.parametrize("approx", ["rff", "nystroem"])
@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_rows_beyond_the_small_problem_are_asked(
    approx: str, loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Solutions that move rows further than the small problem reaches hold if no row crosses."""
    asked: list[np.ndarray] = []
    join = Crossings.join
    monkeypatch.setattr(Crossings, "join", lambda *given: asked.append(join(*given)) or asked[-1])
    monkeypatch.setattr(solver, "PER_FREE_ROW", 2)
    X, y = exactcv.datasets.make_mixture(400, 4, random_state=5)
    if loss != "hinge":
        y = y + 0.3 * X[:, 0] ** 2
    weights = None, np.random.default_rng(1).choice([0.0, 0.5, 2.0], len(y))
    for weight, (m, target) in product(weights, ((6, 20), (10, 20), (16, 30))):
        common: dict[str, Any] = {"Cs": [0.1, 1.0, 10.0], "sample_weight": weight, "loss": loss}
        common["output"] = "decision"
        found = exactcv.cross_validate(
            X, y, approx=approx, n_components=m, random_state=0,
            method_options={"target_rows": target, "chunk_rows": 50}, **common,
        )  # fmt: skip
        Z = found.feature_map.transform(X)
        exact = exactcv.cross_validate(Z @ Z.T, y, kernel="precomputed", **common)
        assert found.certificate.exact and exact.certificate.exact
        scale = np.maximum(1.0, np.abs(exact.decision))
        np.testing.assert_allclose(found.decision / scale, exact.decision / scale, atol=1e-6)
    crossed = np.concatenate(asked)
    assert np.count_nonzero(~crossed) > 100
    assert crossed.any() or loss == "hinge"  # where hardly any row crosses in data this small


def test_which_solutions_rows_cross_in() -> None:
    """All but the known rows, the one that is left out, and those without weight."""
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(60, 3)), rng.choice([-1.0, 1.0], 60)
    weight = np.where(np.arange(60) == 20, 0.0, 1.0)
    theta = rng.normal(size=4)
    without = theta + 0.3 * rng.normal(size=(400, 4)) * rng.uniform(size=(400, 1)) ** 3
    known, rows = np.array([3, 17, 44]), rng.integers(0, 60, 400)
    u, moved = (Z @ one[..., :-1].T + one[..., -1] for one in (theta, without))
    passed = (moved > y[:, None]) != (u > y)[:, None]
    passed[[*known, 20]] = passed[rows, np.arange(400)] = False
    far = np.abs(moved - u[:, None]).max(axis=0)
    work = Crossings([Standing(theta, known, rows, without, far)], LossRule())
    parts = [slice(0, 25), slice(25, 60)]
    found = work.join([work(Chunk(part.start, Z[part], y[part], weight[part])) for part in parts])
    np.testing.assert_array_equal(found, passed.any(axis=0))
    assert 0 < np.count_nonzero(found) < 400


def solved_problem(seed: int, C: float, intercept: bool) -> tuple[Reduced, Any]:
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(150, 8))
    y = np.where(Z[:, 0] + rng.normal(size=150) > 0, 1.0, -1.0)
    problem = Reduced(Z, hinge(y), C * rng.choice([0.5, 1.0], 150), np.zeros(8), 0.0, intercept)
    return problem, solve(problem, np.zeros(9), CANCEL)


def apart(problem: Reduced, one: Any, other: Any) -> float:
    return float(np.abs(problem.values(one) - problem.values(other)).max())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("C", [0.03, 1.0, 100.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_rows_pressed_to_the_wrong_side(seed: int, C: float, intercept: bool) -> None:
    """What is proved right is right; and most of what is right by far is proved."""
    problem, full = solved_problem(seed, C, intercept)
    u = problem.values(full.theta)
    r = problem.y * u - 1.0
    kept = np.sort(np.argsort(np.abs(r))[:80])
    near = problem.only(kept, full.coef)
    place = np.full(len(r), -1)
    place[kept] = np.arange(len(kept))
    who = np.flatnonzero((full.coef != 0.0) & (r > -1.0))
    coef = problem.box * problem.y
    leaving = Leaving(
        problem.Z[who], problem.y[who], problem.box[who], coef[who], u[who], place[who]
    )
    lengths = np.linalg.norm(problem.Z, axis=1)
    press = Press(
        near, full.theta, r[kept], full.coef[kept], float(lengths.max()),
        float(np.abs(full.coef) @ lengths),
    )  # fmt: skip
    right, guess = press.prove(leaving)
    nearby = Nearby(near, full.theta, u[kept], CANCEL)
    values, nearer = np.empty(len(who)), []
    for k, row in enumerate(who):
        box = problem.box.copy()
        box[row] = 0.0
        alone = Reduced(problem.Z, problem.loss, box, problem.a, problem.beta, intercept)
        reply = solve(alone, full.theta, CANCEL)
        theta = reply.theta
        values[k] = problem.y[row] * (problem.Z[row] @ theta[:-1] + theta[-1])
        moved = alone.hinges.margins(theta)
        beyond = (place < 0) & (np.arange(len(r)) != row)
        if not ((moved < 0) != (r < 0))[beyond].any():
            for start in (None, guess[k]):
                found = nearby.without(leaving, k, start).theta
                np.testing.assert_allclose(found[:-1], theta[:-1], atol=1e-7)
            if not right[k] and leaving.value[k] > 0:
                nearer.append(apart(near, guess[k], theta) < apart(near, full.theta, theta))
    assert (values[right] > 0).all()
    assert sum(nearer) >= 0.8 * len(nearer)
    # With theta as it is, rows that keep half of their value can be proved if the steps go on.
    clear = values > 0.75 * (r[who] + 1.0)
    if np.count_nonzero(clear) >= 5:
        assert np.count_nonzero(right & clear) >= 0.5 * np.count_nonzero(clear)
