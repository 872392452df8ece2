"""Leave-one-out where rows move further than the small problems of the full solution reach."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

import exactcv
from exactcv.judge.features import Extent, Tally, figures, tally
from exactcv.lowrank import lost, solver
from exactcv.lowrank.passes.sweep import Chunk
from exactcv.lowrank.small import leave_out, moves
from exactcv.lowrank.small.around import Around
from exactcv.lowrank.small.beyond import Beyond, Crossed, Crossings, Standing
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
    monkeypatch.setattr(lost, "LEAST_AROUND", 30)
    monkeypatch.setattr(lost, "AROUND", 2)


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


@pytest.mark.parametrize(("seed", "n"), [(41, 301), (231, 300), (231, 301)])
def test_rows_far_from_the_margin_end_the_interval_of_b(seed: int, n: int) -> None:
    """b has one where no coefficient is inside its box; the small problem holds few of the rows."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) < (n + 1) // 2, 1.0, -1.0)
    X = rng.normal(size=(n, 3)) + 0.5 * y[:, None] * [1.0, 0.0, 0.0]
    common: dict[str, Any] = {"Cs": [1e-7, 1e-5, 1e-4, 1e-3, 1e-2], "output": "decision"}
    found = exactcv.cross_validate(
        X, y, approx="nystroem", n_components=2, random_state=0,
        method_options={"target_rows": 10, "chunk_rows": 50}, **common,
    )  # fmt: skip
    Z = found.feature_map.transform(X)
    exact = exactcv.cross_validate(Z @ Z.T, y, kernel="precomputed", **common)
    assert found.certificate.exact and exact.certificate.exact
    scale = np.maximum(1.0, np.abs(exact.decision))
    np.testing.assert_allclose(found.decision / scale, exact.decision / scale, atol=1e-6)


@pytest.mark.usefixtures("all_move_far")
@pytest.mark.parametrize("spoilt", [False, True])
def test_what_is_solved_is_proved_as_it_is(monkeypatch: pytest.MonkeyPatch, spoilt: bool) -> None:
    """Solutions without a row are not solved again where they are proved, unless they are wrong."""
    X, y = exactcv.datasets.make_mixture(200, 4, random_state=5)
    settings: dict[str, Any] = {"approx": "nystroem", "n_components": 12, "random_state": 0}
    settings |= {"Cs": [100.0], "method_options": {"target_rows": 80}}
    expected = exactcv.cross_validate(X, y, **settings)
    if spoilt:
        without = Nearby.without

        def spoil(*given: Any) -> Any:
            reply = without(*given)
            return replace(reply, coef=0.9 * reply.coef)

        monkeypatch.setattr(Nearby, "without", spoil)
    found = exactcv.cross_validate(X, y, **settings)
    settled = {name: found.stats[name] for name in ("solved", "fallback")}
    assert settled["fallback" if spoilt else "solved"] > 10
    assert spoilt or settled["fallback"] == 0
    np.testing.assert_array_equal(found.wrong, expected.wrong)
    assert found.certificate.exact


def few_positive(n: int, repeated: bool) -> tuple[np.ndarray, np.ndarray]:
    """One row in 20 is positive; most of the others lie just beyond their margin."""
    rng = np.random.default_rng(7)
    y = np.where(np.arange(n) % 20 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, 4)) * np.where(y > 0, 1.0, 0.5)[:, None]
    X[y > 0, 0] += 1.0
    if repeated:
        X[n // 2 :] = X[rng.integers(0, n // 2, n - n // 2)]
    return X, y


@pytest.mark.usefixtures("all_move_far")
@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("output", ["error", "decision"])
@pytest.mark.parametrize("limit", ["", "share", "rounds"])
def test_rows_that_cross_are_taken_up(
    repeated: bool, weighted: bool, output: str, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Left-out solutions with them are those of all rows, in one round or in several."""
    monkeypatch.setattr(lost, "LEAST_AROUND", 12)
    monkeypatch.setattr(lost, "AROUND", 1)
    if limit == "share":
        monkeypatch.setattr(lost, "MORE", 0.2)
    if limit == "rounds":
        monkeypatch.setattr(lost, "ROUNDS", 1)
    taken: list[int] = []
    take_up = Around.taking_up
    monkeypatch.setattr(
        Around, "taking_up", lambda *given: taken.append(len(given[1])) or take_up(*given)
    )
    X, y = few_positive(300, repeated)
    weight = np.random.default_rng(1).choice([0.0, 0.5, 2.0], len(y)) if weighted else None
    common: dict[str, Any] = {"Cs": [0.3, 30.0, 1e3], "sample_weight": weight}
    found = exactcv.cross_validate(
        X, y, approx="nystroem", n_components=25, gamma=0.3, random_state=0, output=output,
        method_options={"target_rows": 40, "chunk_rows": 90}, **common,
    )  # fmt: skip
    Z = found.feature_map.transform(X)
    exact = exactcv.cross_validate(Z @ Z.T, y, kernel="precomputed", output="decision", **common)
    assert found.certificate.exact and exact.certificate.exact
    clear = np.abs(exact.decision) > 1e-6
    np.testing.assert_array_equal(found.wrong[clear], exact.wrong[clear])
    if output == "decision":
        scale = np.maximum(1.0, np.abs(exact.decision))
        np.testing.assert_allclose(found.decision / scale, exact.decision / scale, atol=1e-6)
    assert sum(taken) > 0
    if limit == "rounds":
        assert found.stats["fallback"] > 0
    elif not limit:
        assert found.stats["fallback"] < 0.3 * found.stats["solved"]


@pytest.mark.usefixtures("all_move_far")
def test_rows_are_taken_up_from_dask_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """In chunks of its own: the same left-out values."""
    import dask.array as da

    monkeypatch.setattr(lost, "LEAST_AROUND", 12)
    monkeypatch.setattr(lost, "AROUND", 1)
    X, y = few_positive(300, repeated=False)
    settings: dict[str, Any] = {"approx": "nystroem", "n_components": 25, "gamma": 0.3}
    settings |= {"random_state": 0, "output": "decision", "Cs": [30.0]}
    settings["method_options"] = {"target_rows": 40, "chunk_rows": 90}
    here = exactcv.cross_validate(X, y, **settings)
    there = exactcv.cross_validate(da.from_array(X, chunks=(70, 4)), y, **settings)
    assert here.stats["solved"] == there.stats["solved"] > 10
    np.testing.assert_allclose(here.decision, there.decision, atol=1e-8)
    assert there.certificate.exact


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_rows_that_are_not_in_play_are_asked(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are in play at first, so that some of those aside cross: more have to come in."""
    monkeypatch.setattr(leave_out, "FIRST", 2)
    monkeypatch.setattr(leave_out, "FEWEST", 2)
    monkeypatch.setattr(moves, "STRIP", 50)
    crossed: list[np.ndarray] = []
    ask = moves.Aside.crossed
    monkeypatch.setattr(moves.Aside, "crossed", lambda *a: crossed.append(ask(*a)) or crossed[-1])
    X, y = exactcv.datasets.make_mixture(300, 4, random_state=5)
    if loss != "hinge":
        y = y + 0.3 * X[:, 0] ** 2
    common: dict[str, Any] = {"Cs": [0.01, 0.1, 1.0], "loss": loss, "output": "decision"}
    for m in (4, 8):
        found = exactcv.cross_validate(
            X, y, approx="rff", n_components=m, random_state=0,
            method_options={"target_rows": 100}, **common,
        )  # fmt: skip
        Z = found.feature_map.transform(X)
        exact = exactcv.cross_validate(Z @ Z.T, y, kernel="precomputed", **common)
        assert found.certificate.exact and exact.certificate.exact
        scale = np.maximum(1.0, np.abs(exact.decision))
        np.testing.assert_allclose(found.decision / scale, exact.decision / scale, atol=1e-6)
    flags = np.concatenate(crossed)
    assert flags.any() and not flags.all()


@pytest.mark.parametrize("loss", ["hinge", "epsilon_insensitive"])
def test_rows_beyond_the_small_problem_are_asked(
    loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Solutions that move rows further than the small problem reaches hold if no row crosses."""
    asked: list[Crossed] = []
    join = Crossings.join
    monkeypatch.setattr(Crossings, "join", lambda *given: asked.append(join(*given)) or asked[-1])
    monkeypatch.setattr(solver, "PER_FREE_ROW", 2)
    X, y = exactcv.datasets.make_mixture(400, 4, random_state=5)
    if loss != "hinge":
        y = y + 0.3 * X[:, 0] ** 2
    weights = None, np.random.default_rng(1).choice([0.0, 0.5, 2.0], len(y))
    sizes = (6, 20), (10, 20), (16, 30)
    for approx, weight, (m, target) in product(("rff", "nystroem"), weights, sizes):
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
    crossed = np.concatenate([flags for one in asked for flags in one.solutions])
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
    parts = [slice(0, 25), slice(25, 60)]
    chunks = [Chunk(part.start, Z[part], y[part], weight[part]) for part in parts]
    standings = [Standing(theta, known, rows, Beyond(rows, without, far, np.zeros(400)))]
    for share in (1.0, 0.1, 0.0):
        work = Crossings(standings, LossRule(), share)
        found = work.join([work(chunk) for chunk in chunks])
        np.testing.assert_array_equal(found.solutions[0], passed.any(axis=0))
        which, features, targets, weights = found.rows(0)
        expected = np.flatnonzero(passed.any(axis=1))
        assert set(which) <= set(expected)
        most = sum(int(np.ceil(share * len(chunk.y))) for chunk in chunks)
        assert min(len(expected), 2 * share) <= len(which) <= most
        assert len(which) == len(expected) or share < 1.0
        for mine, whole in ((features, Z), (targets, y), (weights, weight)):
            np.testing.assert_array_equal(mine, whole[which])
    assert 0 < np.count_nonzero(passed.any(axis=0)) < 400


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", [LossRule(), LossRule("epsilon_insensitive", {"epsilon": 0.2})])
def test_figures_are_those_of_all_rows(intercept: bool, loss: LossRule) -> None:
    """Of solutions in which the others stay where they are; however many are taken up."""
    rng = np.random.default_rng(3)
    Z, weight = rng.normal(size=(120, 5)), rng.choice([0.5, 1.0], 120)
    y = np.where(Z[:, 0] + rng.normal(size=120) > 0, 1.0, -1.0)
    C, losses = 2.0, loss(y)
    whole = Reduced(Z, losses, C * weight, np.zeros(5), 0.0, intercept)
    full = solve(whole, np.zeros(6), CANCEL)
    u, length = whole.values(full.theta), np.linalg.norm(Z, axis=1)
    extent = Extent(1.01 * float(length.max()), losses.largest_knot)
    order = np.argsort(losses.distance(u), kind="stable")
    inner, more = order[:40], order[40:70]
    coef = whole.held(u)
    coef[inner] = full.coef[inner]
    rest = order[40:]
    sums = tally(Z[rest], losses.at(rest), C * weight[rest], coef[rest], full.theta, extent)
    near = Reduced(Z[inner], losses.at(inner), C * weight[inner], sums.pull, sums.total, intercept)
    around = Around(C, full.theta, near, inner, u[inner], full.coef[inner], sums)
    wider = around.taking_up(more, Z[more], losses.at(more), weight[more])
    held = np.flatnonzero(coef != 0.0)
    who = np.concatenate([np.intersect1d(held, part) for part in (inner, more, order[70:])])
    assert {len(np.intersect1d(who, part)) > 0 for part in (inner, more, order[70:])} == {True}
    compared = 0
    for problem, known in ((around, inner), (wider, order[:70])):
        place = np.array([np.append(np.flatnonzero(known == j), -1)[0] for j in who])
        leaving = Leaving(Z[who], y[who], C * weight[who], coef[who], u[who], place)
        nearby = Nearby(problem, CANCEL)
        for k, j in enumerate(who):
            reply = nearby.without(leaving, k)
            moved = losses.passed(whole.values(reply.theta)) != losses.passed(u)
            moved[[*known, j]] = False
            if moved.any():
                continue
            box, all_coef = np.where(np.arange(120) == j, 0.0, C * weight), coef.copy()
            all_coef[known], all_coef[j] = reply.coef, 0.0
            expected = figures(
                [tally(Z, losses, box, all_coef, reply.theta, extent)],
                reply.theta, extent, intercept,
            )  # fmt: skip
            found = problem.figures(leaving, k, reply, loss, extent)
            np.testing.assert_allclose(found.primal, expected.primal, rtol=1e-9)
            assert abs(found.kkt - expected.kkt) <= 1e-9
            assert abs(found.gap - expected.gap) <= 1e-9 * expected.primal
            assert found.kkt <= 1e-6
            spoilt = replace(reply, coef=1.1 * reply.coef)
            assert problem.figures(leaving, k, spoilt, loss, extent).kkt > 1e-3
            compared += 1
    assert compared > 20


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
    nothing = Tally(near.a, near.beta, 0.0, 0.0, 0.0)
    around = Around(C, full.theta, near, kept, u[kept], full.coef[kept], nothing)
    nearby = Nearby(around, CANCEL)
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
