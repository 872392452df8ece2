"""What judges are rarely shown: nothing to train on, boxes that decide nothing, no numbers at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _problems import FloatArray, mixture

from exactcv._core.reference import residuals as reference
from exactcv.judge.certificate import Judge, PiecewiseLinearJudge, judge_for
from exactcv.judge.features import figures, tally
from exactcv.judge.intercept import doubt
from exactcv.problem.differentiable import SquaredLoss, logistic, squared_hinge
from exactcv.problem.losses import PiecewiseLinear, epsilon_insensitive, hinge, pinball
from exactcv.problem.problem import Problem

SIDES = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
NUMBERS = SIDES * np.array([2.0, 1.7, 2.2, 1.9, 2.4, 1.6])
LOSSES: dict[str, PiecewiseLinear] = {
    "tube": epsilon_insensitive(NUMBERS, 0.25),
    "quantile": pinball(NUMBERS, 0.5),
    "hinge": hinge(SIDES),
}


def in_doubt(judge: PiecewiseLinearJudge, h: FloatArray, coef: FloatArray, b: float) -> float:
    """The KKT violation at C = 1, by NumPy."""
    levels, used = judge.loss.coefficient_levels(judge.weight), judge.weight > 0
    kkt = reference.tally(h, coef, b, judge.weight, judge.loss, True, judge.scale).kkt
    unsure = doubt(h, coef, b, levels, judge.loss, used, judge.scale.closeness(levels))
    assert unsure / judge.scale.unit > kkt  # else it decides nothing
    return unsure / judge.scale.unit


@pytest.mark.parametrize("name", LOSSES)
def test_with_every_row_at_a_level_b_may_be_anywhere_in_its_interval(name: str) -> None:
    """The sum of the coefficients misses, or one box is no more than the rounding of the others."""
    loss, A = LOSSES[name], np.random.default_rng(0).normal(size=(6, 6))
    K = 0.01 * A @ A.T  # no row gets as far as its knot
    for light, lift in ((1.0, 1e-10), (1e-18, 0.0)):
        weight = np.array([1.0, 1.0, 1.0, 1.0, light, light])
        judge = PiecewiseLinearJudge.of(loss, weight, True, np.diagonal(K))
        levels = loss.coefficient_levels(weight)
        coef = np.where(SIDES > 0, levels[:, 0], levels[:, -1])
        coef[1] *= 1.0 - lift
        h = coef @ K
        b = judge.intercepts(h[None], coef[None], np.ones(1))
        out = judge.figures(h[None], coef[None], b, np.ones(1))
        assert out[0, 0] == pytest.approx(in_doubt(judge, h, coef, b[0]), rel=1e-10)
        assert out[0, 0] > 0.1  # it is no certificate


@pytest.mark.parametrize("name", LOSSES)
def test_without_a_row_to_train_on_the_intercept_is_zero(name: str) -> None:
    """The only row with weight is the one that is left out; and with no limit at one end."""
    loss, none = LOSSES[name], np.zeros((1, 6))
    weight = np.array([0.0, 0.0, 2.0, 0.0, 0.0, 0.0])
    judge = PiecewiseLinearJudge.of(loss, weight, True, np.ones(6))
    assert judge.intercepts(none, none, np.ones(1), np.array([2])).tolist() == [0.0]
    out = judge.figures(none, none, np.zeros(1), np.ones(1), np.array([2]))
    assert out[0].tolist() == [0.0, 0.0, 0.0, 0.0]


# ---- numbers that are not finite ----------------------------------------------------------------


def smooth_judges() -> dict[str, tuple[Judge, FloatArray]]:
    """Every judge of a smooth problem, with K."""
    small = mixture(12, 3)
    X = np.random.default_rng(1).normal(size=(12, 3))
    y, ones = small.y, np.ones(12)
    problems = {
        "squared": Problem(small.K, y, ones, SquaredLoss(y)),
        "logistic": Problem(small.K, y, ones, logistic(y)),
        "squared hinge": Problem(small.K, y, ones, squared_hinge(y)),
        "ridge": Problem(small.K, y, ones, squared_hinge(y), penalty="ridge"),
        "ridge, linear": Problem(
            X @ X.T, y, ones, squared_hinge(y), penalty="ridge", features=X
        ),
    }
    return {name: (judge_for(problem), problem.K) for name, problem in problems.items()}


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", smooth_judges())
def test_smooth_judges_pass_nothing_that_is_not_finite(name: str, bad: float) -> None:
    """Neither in a coefficient nor in the intercept; the finite solution beside it is unharmed."""
    judge, K = smooth_judges()[name]
    coef = np.full((2, 12), 0.01)
    alone = judge.figures(coef[1:] @ K, coef[1:], np.zeros(1), np.ones(1))
    coef[0, 3] = bad
    with np.errstate(invalid="ignore", over="ignore"):
        h = coef @ K
        b = judge.intercepts(h, coef, np.ones(2))
        assert np.isfinite(b[1])
        out = judge.figures(h, coef, np.zeros(2), np.ones(2))
        moved = judge.figures(h[1:], coef[1:], np.array([bad]), np.ones(1))
    assert (out[0, :2] == np.inf).all() and (moved[0, :2] == np.inf).all()
    assert out[1] == pytest.approx(alone[0], rel=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("where", ["row", "coefficient", "w", "b"])
def test_features_with_numbers_that_are_not_finite(where: str, bad: float) -> None:
    parts: dict[str, Any] = {
        "row": np.array([[2.0], [-1.0]]),
        "coefficient": np.array([2 / 9, -2 / 9]),
        "theta": np.array([2 / 3, -1 / 3]),
    }
    y, box = np.array([1.0, -1.0]), np.ones(2)

    def judged() -> Any:
        args = parts["row"], y, box, parts["coefficient"], parts["theta"]
        with np.errstate(invalid="ignore"):
            return figures([tally(*args, 2.0)], parts["theta"], 2.0)

    assert judged().kkt <= 1e-14 and judged().gap <= 1e-14
    if where in parts:
        parts[where].flat[0] = bad
    else:
        parts["theta"][0 if where == "w" else 1] = bad
    assert judged().kkt == np.inf and judged().gap == np.inf and judged().floor == 0.0


def test_without_an_intercept_the_smooth_judge_picks_none() -> None:
    """And one that is there all the same is a violation."""
    small = mixture(12, 3)
    problem = Problem(
        small.K, small.y, np.ones(12), squared_hinge(small.y), False, penalty="ridge"
    )
    judge, coef = judge_for(problem), np.full((1, 12), 0.1)
    h = coef @ small.K
    assert judge.intercepts(h, coef, np.ones(1)).tolist() == [0.0]
    flat = judge.figures(h, coef, np.zeros(1), np.ones(1))
    moved = judge.figures(h, coef, np.array([1e-3]), np.ones(1))
    assert moved[0, 0] != flat[0, 0]
