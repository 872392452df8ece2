"""The judge passes right solutions and fails wrong ones, by the condition meant."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _problems import BUILDERS, mixture, weighted

from exactcv._core.reference import residuals as reference
from exactcv.engine.smo import solve
from exactcv.judge.certificate import Certificate, PiecewiseLinearJudge, implied_accuracy, residuals
from exactcv.judge.intercept import canonical_intercept, closeness, doubt
from exactcv.problem.losses import PiecewiseLinear, epsilon_insensitive, hinge, pinball

TOL = 1e-8
C = 0.5
OUT = np.array([3])


@pytest.fixture(scope="module")
def right() -> dict[str, Any]:
    """A certified solution with free coefficients and both kinds of bound, row 3 left out."""
    small = mixture(40, 5, seed=3)
    loss = hinge(small.y)
    box = C * small.weight
    solution = solve(small.K, loss, box, np.setdiff1d(np.arange(40), OUT), tol=1e-12)
    size = np.abs(solution.coef)
    free = np.flatnonzero((size > 0.05 * C) & (size < 0.95 * C))
    assert len(free) >= 2 and (size == C).any() and (size == 0).any()
    return {
        "K": small.K, "loss": loss, "C": box, "coef": solution.coef,
        "intercept": solution.intercept, "left_out": OUT, "free": free,
    }  # fmt: skip


def figures(right: dict[str, Any], **changed: Any) -> tuple[float, float]:
    args = {k: v for k, v in right.items() if k != "free"} | changed
    with np.errstate(invalid="ignore"):  # numbers that are not finite
        return residuals(**args)


def natural_residual(right: dict[str, Any], coef: np.ndarray, b: float) -> float:
    """Straight from the definition: the hinge's prox by brute force over the three candidates."""
    worst = 0.0
    u, diagonal = right["K"] @ coef + b, right["K"].diagonal()
    for i in np.setdiff1d(np.arange(len(u)), right["left_out"]):
        y, C_i = right["loss"].knots[i, 0], right["C"][i]
        tau = max(np.sqrt(diagonal[i] * diagonal.max()), 1 / C_i)
        z = u[i] - tau * coef[i]
        candidates = np.array([y, z, z + tau * C_i * y])
        value = 0.5 * (candidates - z) ** 2 + tau * C_i * np.maximum(0, 1 - y * candidates)
        worst = max(worst, abs(u[i] - candidates[np.argmin(value)]))
    return worst


def test_right_solution_passes(right: dict[str, Any]) -> None:
    kkt, gap = figures(right)
    assert kkt <= 1e-11 and gap <= 1e-11


def test_coefficient_off_its_bound(right: dict[str, Any]) -> None:
    coef = right["coef"].copy()
    margin = right["loss"].knots[:, 0] * (right["K"] @ coef + right["intercept"])
    i = int(np.argmin(margin))  # far on the wrong side: its coefficient must be C
    coef[i] *= 1 - 1e-4
    j = right["free"][0]
    coef[j] += right["coef"][i] - coef[i]  # keep the sum
    kkt, gap = figures(right, coef=coef)
    assert kkt > 1e-6 and gap > TOL
    assert kkt == pytest.approx(natural_residual(right, coef, right["intercept"]), rel=1e-6)


def test_free_pair_moved(right: dict[str, Any]) -> None:
    coef = right["coef"].copy()
    i, j = right["free"][:2]
    coef[i] += 1e-5
    coef[j] -= 1e-5
    kkt, gap = figures(right, coef=coef)
    assert kkt > 1e-6 and gap > TOL
    assert kkt == pytest.approx(natural_residual(right, coef, right["intercept"]), rel=1e-6)


def test_outside_the_box(right: dict[str, Any]) -> None:
    coef = right["coef"].copy()
    i = int(np.argmax(np.abs(coef) == C))
    coef[i] *= 1 + 1e-3
    coef[right["free"][0]] -= coef[i] - right["coef"][i]
    kkt, _ = figures(right, coef=coef)
    assert kkt >= 1e-3 * (1 - 1e-6)


def test_sum_broken(right: dict[str, Any]) -> None:
    """The optimum without an intercept meets every condition but the sum."""
    K, loss, box = right["K"], right["loss"], right["C"]
    coef = solve(K, loss, box, fit_intercept=False, tol=1e-12).coef
    assert max(residuals(K, loss, box, coef, 0.0, fit_intercept=False)) <= 1e-11
    kkt, gap = residuals(K, loss, box, coef, 0.0)
    assert gap > 1e-3  # the sum has to go somewhere
    assert kkt == pytest.approx(abs(coef.sum()) / np.abs(coef).sum(), rel=1e-9)
    assert kkt > 1e-3


def test_intercept_moved(right: dict[str, Any]) -> None:
    kkt, gap = figures(right, intercept=right["intercept"] + 1e-5)
    assert kkt > 1e-6 and gap > TOL


def test_intercept_where_there_is_none(right: dict[str, Any]) -> None:
    kkt, _ = figures(right, fit_intercept=False, intercept=1e-5)
    assert kkt >= 1e-5


def test_left_out_row_given_weight(right: dict[str, Any]) -> None:
    coef = right["coef"].copy()
    coef[OUT] = 1e-5
    coef[right["free"][0]] -= 1e-5
    kkt, _ = figures(right, coef=coef)
    assert kkt >= 1e-5 / C * (1 - 1e-9)


def test_row_without_weight_given_a_coefficient() -> None:
    small = weighted(40)
    box = C * small.weight
    solution = solve(small.K, hinge(small.y), box)
    i = int(np.flatnonzero(box == 0)[0])
    coef = solution.coef.copy()
    assert residuals(small.K, hinge(small.y), box, coef, solution.intercept)[0] <= 1e-10
    coef[i] = 1e-6
    kkt, _ = residuals(small.K, hinge(small.y), box, coef, solution.intercept)
    assert kkt >= 1e-6 / box.max() * (1 - 1e-9)


def test_solution_of_another_C_fails(right: dict[str, Any]) -> None:
    assert max(figures(right, C=right["C"] * 1.001)) > 1e-5


def test_left_out_row_put_back_fails(right: dict[str, Any]) -> None:
    """The solution without row 3 is not the solution with it (row 3 is a support vector)."""
    assert max(figures(right, left_out=None)) > 1e-3


@pytest.mark.parametrize("b", [0.0, 1.0, -1.0, 0.3])
def test_all_zero_fails(right: dict[str, Any], b: float) -> None:
    kkt, gap = figures(right, coef=np.zeros_like(right["coef"]), intercept=b)
    assert kkt > 0.1 and gap > 0.1


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_finite(right: dict[str, Any], bad: float) -> None:
    coef = right["coef"].copy()
    coef[int(np.argmax(coef == 0))] = bad
    assert figures(right, coef=coef)[0] == np.inf
    assert figures(right, intercept=bad)[0] == np.inf
    K = right["K"].copy()
    K[0, int(np.argmax(coef != 0))] = bad
    assert figures(right, K=K)[0] == np.inf


@pytest.mark.parametrize("name", BUILDERS)
def test_gap_is_primal_minus_dual(name: str) -> None:
    """For any feasible point, not only optimal ones."""
    small = BUILDERS[name]()
    rng = np.random.default_rng(1)
    loss, box = hinge(small.y), 2.0 * small.weight
    plus, minus = small.y > 0, small.y < 0
    coef = rng.uniform(0, 1, len(box)) * box * small.y
    total = min(coef[plus].sum(), -coef[minus].sum())
    coef[plus] *= total / coef[plus].sum()
    coef[minus] *= -total / coef[minus].sum()
    b, used = 0.3, box > 0
    quadratic, s = coef @ small.K @ coef, np.zeros_like(box)
    s[used] = -coef[used] / box[used]
    s = np.clip(s, loss.slopes[:, 0], loss.slopes[:, 1])
    primal = 0.5 * quadratic + box @ loss.value(small.K @ coef + b)
    dual = -0.5 * quadratic - box @ loss.conjugate(s)
    _, gap = residuals(small.K, loss, box, coef, b)
    assert gap == pytest.approx((primal - dual) / primal, rel=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", BUILDERS)
def test_compiled_judge_equals_twin(name: str, fit_intercept: bool) -> None:
    small = BUILDERS[name](53)
    n = len(small.y)
    rng = np.random.default_rng(2)
    coef = rng.normal(size=(6, n)) * np.where(small.weight > 0, 1.0, rng.integers(2, size=(6, n)))
    b, Cs = rng.normal(size=6), 10.0 ** rng.uniform(-2, 2, 6)
    own = np.array([0, 1, n - 1, n // 2, -1, 8], dtype=np.intp)
    loss = hinge(small.y)
    h = coef @ small.K
    judge = PiecewiseLinearJudge.of(loss, small.weight, fit_intercept, small.K.diagonal())
    got = judge.figures(h, coef, b, Cs, own)
    for k in range(6):
        assert got[k] == pytest.approx(twin(judge, h[k], coef[k], b[k], Cs[k], own[k]), rel=1e-10)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ["hinge", "tube"])
def test_multiples_of_solutions_are_judged_as_themselves(kind: str, fit_intercept: bool) -> None:
    small = BUILDERS["weighted"](53)
    n, rng = len(small.y), np.random.default_rng(3)
    loss = hinge(small.y) if kind == "hinge" else epsilon_insensitive(rng.normal(size=n), 0.2)
    judge = PiecewiseLinearJudge.of(loss, small.weight, fit_intercept, small.K.diagonal())
    coef = rng.normal(size=(3, n))
    coef[:, ::5] = 0.0
    h = coef @ small.K
    at, scale = np.array([2, 0, 2, 1]), np.array([0.5, 3.0, 1.0, 1e-3])
    C, own, blurred = scale * 1.5, np.array([4, -1, n - 1, 0]), np.array([0.0, 1e-3, 0.0, 1e-9])
    b, figures = judge.along(h, coef, (at, scale), C, own, blurred)
    themselves = scale[:, None] * h[at], scale[:, None] * coef[at]
    np.testing.assert_allclose(b, judge.intercepts(*themselves, C, own), rtol=1e-13, atol=1e-13)
    expected = judge.figures(*themselves, b, C, own, blurred)
    np.testing.assert_allclose(figures, expected, rtol=1e-11)


def twin(
    judge: PiecewiseLinearJudge, h: Any, coef: Any, b: float, C: float, own: int = -1
) -> list[float]:
    """The figures once more, in NumPy."""
    box = C * judge.weight
    if own >= 0:
        box[own] = 0.0
    found = reference.tally(h, coef, b, box, judge.loss, judge.fit_intercept, judge.scale)
    unsure = 0.0
    if judge.fit_intercept:
        levels = judge.loss.coefficient_levels(box)
        near = closeness(levels, judge.scale.root**2)
        unsure = doubt(h, coef, b, levels, judge.loss, box > 0, near)
    return [max(found.kkt, unsure), *found[1:]]


def two_knots(centre: np.ndarray, width: float) -> PiecewiseLinear:
    """The epsilon-insensitive loss."""
    n = len(centre)
    return PiecewiseLinear(
        np.column_stack([centre - width, centre + width]), np.tile([-1.0, 0.0, 1.0], (n, 1))
    )


def test_several_knots_in_general() -> None:
    """Residual zero exactly at subgradients; gap equal to the definition; two equal knots = one."""
    rng = np.random.default_rng(4)
    loss = two_knots(rng.normal(size=200), 0.5)
    u, s = 2 * rng.normal(size=200), rng.uniform(-1, 1, size=200)
    direct = loss.value(u) + loss.conjugate(s) - s * u
    levels = loss.coefficient_levels(np.ones(200))
    assert reference.fenchel_young(u, -s, loss.knots, levels) == pytest.approx(direct, abs=1e-13)
    scale = reference.Scale.of(np.zeros(1), 1.0)
    for value, slope in [(0.0, 0.0), (0.5, 0.4), (-0.5, -0.4), (3.0, 1.0), (-0.6, -1.0)]:
        one = two_knots(np.zeros(1), 0.5)
        args = np.array([value]), np.array([-slope]), 0.0, np.ones(1), one, False, scale
        assert reference.tally(*args).kkt == pytest.approx(0.0, abs=1e-15)
        off = np.array([value - 0.1]), np.array([-slope + 0.1]), 0.0, np.ones(1), one, False
        assert reference.tally(*off, scale).kkt >= 0.03
    y = np.array([1.0, -1.0, 1.0])
    single = hinge(y)
    double = PiecewiseLinear(
        np.repeat(single.knots, 2, axis=1),
        np.column_stack([single.slopes[:, 0], single.slopes.mean(axis=1), single.slopes[:, 1]]),
    )
    h, coef = np.array([0.4, 1.3, 0.9]), np.array([0.3, -0.1, 0.7])
    scale = reference.Scale.of(np.ones(3), 1.0)
    for b in (-1.0, 0.0, 0.6):
        one_knot = reference.tally(h, coef, b, np.ones(3), single, True, scale)
        two = reference.tally(h, coef, b, np.ones(3), double, True, scale)
        assert two == pytest.approx(one_knot, rel=1e-9)


def test_judge_takes_several_knots() -> None:
    rng = np.random.default_rng(5)
    loss = two_knots(rng.normal(size=10), 0.2)
    h, coef = rng.normal(size=(2, 10)), rng.uniform(-1, 1, size=(2, 10))
    judge = PiecewiseLinearJudge.of(loss, np.ones(10), False, np.ones(10), np.array([4]))
    out = judge.figures(h, coef, np.zeros(2), np.array([2.0, 3.0]))
    box = np.full(10, 3.0)
    box[4] = 0.0
    expected = reference.tally(h[1], coef[1], 0.0, box, loss, False, judge.scale)
    assert out[1] == pytest.approx(expected, rel=1e-12, abs=0.0)


def test_implied_accuracy_holds() -> None:
    """Two poor solutions of one problem differ by no more than their gaps allow."""
    small = mixture(40, 5)
    loss, box = hinge(small.y), np.full(40, 2.0)
    judge = PiecewiseLinearJudge.of(loss, box, True, small.K.diagonal())
    found = []
    for tol in (1e-1, 1e-3):
        coef = solve(small.K, loss, box, tol=1e-12).coef
        noise = np.random.default_rng(int(1 / tol)).normal(size=40) * tol
        coef = np.clip(coef + noise - noise.mean(), np.minimum(0, 2 * small.y),
                       np.maximum(0, 2 * small.y))  # fmt: skip
        coef[np.argmax(np.abs(np.abs(coef) - 1) < 0.5)] -= coef.sum()
        h = np.ascontiguousarray((coef @ small.K)[None])
        gaps = [judge.figures(h, coef[None], np.array([b]), np.ones(1))[0, 1]
                for b in np.linspace(-2, 2, 401)]  # fmt: skip
        found.append((h[0], min(gaps)))
    (h1, g1), (h2, g2) = found
    assert np.abs(h1 - h2).max() <= implied_accuracy(g1, g2, small.K.diagonal().max())
    assert implied_accuracy(g1, g2, 1.0) < 10


def test_certificate_says_so_in_one_line() -> None:
    good = Certificate(np.array([1e-12]), np.array([1e-11]), True, [], 1e-8)
    assert str(good) == "exact: KKT violation 1.0e-12, duality gap 1.0e-11 (tolerance 1e-08)"
    bad = Certificate(np.array([1e-3]), np.array([1e-11]), False, [(0, 4)], 1e-8)
    assert str(bad).startswith("NOT exact") and "1 unresolved" in str(bad)


# ---- compiled loops for any knots and slopes -----------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ["tube", "quantile", "three knots"])
def test_lines_equal_their_twins(kind: str, fit_intercept: bool) -> None:
    """Of solutions near and far from the optimum, with rows at levels, between them and outside."""
    rng = np.random.default_rng(0)
    n, y = 30, rng.normal(size=30)
    loss = {
        "tube": epsilon_insensitive(y, 0.3),
        "quantile": pinball(y, 0.2),
        "three knots": PiecewiseLinear(
            np.column_stack([y - 0.5, y, y + 0.3]), np.tile([-2.0, -0.5, 0.25, 1.0], (n, 1))
        ),
    }[kind]
    A = rng.normal(size=(n, n))
    K, weight = A @ A.T / n, rng.uniform(0.5, 2.0, n)
    weight[[3, 7]] = 0.0
    judge = PiecewiseLinearJudge.of(loss, weight, fit_intercept, np.diagonal(K))
    assert judge.lines is not None
    C, own = np.array([0.3, 1.0, 20.0, 1.0]), np.array([-1, 5, 11, 3])
    coef = np.empty((4, n))
    for k in range(4):
        box = C[k] * weight
        levels = loss.coefficient_levels(box)
        coef[k] = np.clip(rng.normal(size=n) * box, levels[:, -1], levels[:, 0])
        coef[k, rng.random(n) < 0.3] = 0.0
        coef[k, 2] = levels[2, 0]
        coef[k, 4] *= 1.5
    h = np.ascontiguousarray(coef @ K)
    b = judge.intercepts(h, coef, C, own)
    figures = judge.figures(h, coef, b, C, own)
    for k in range(4):
        box = C[k] * weight
        if own[k] >= 0:
            box[own[k]] = 0.0
        levels = loss.coefficient_levels(box)
        near = judge.scale.closeness(levels)
        one = h[k], coef[k], b[k]
        if fit_intercept:
            expected = canonical_intercept(h[k], coef[k], levels, loss, box > 0, near)
            assert b[k] == pytest.approx(expected, abs=1e-12)
        tally = reference.tally(*one, box, loss, fit_intercept, judge.scale)
        kkt = tally.kkt
        if fit_intercept:
            kkt = max(kkt, doubt(*one, levels, loss, box > 0, near) / judge.scale.unit)
        assert figures[k] == pytest.approx([kkt, *tally[1:]], rel=1e-10)


def test_a_loss_without_a_minimum_is_refused() -> None:
    """Its value would be minus infinity; a slope that is never zero shows it."""
    loss = PiecewiseLinear(np.zeros((3, 1)), np.tile([0.5, 1.0], (3, 1)))
    with pytest.raises(ValueError, match="without a minimum"):
        PiecewiseLinearJudge.of(loss, np.ones(3), True, np.ones(3))
