"""What judges are rarely shown: nothing to train on, boxes that decide nothing, no numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _oracle import make_task, run
from _problems import FloatArray, Small, mixture, rbf

from exactcv._core.reference import residuals as reference
from exactcv.judge.certificate import Certificate, Judge, PiecewiseLinearJudge, judge_for
from exactcv.judge.features import Extent, figures, tally
from exactcv.judge.intercept import doubt
from exactcv.judge.ledger import SOLVED, Ledger
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


@pytest.mark.parametrize("short", [1e-10, 1e-6])
@pytest.mark.parametrize("name", LOSSES)
def test_two_rows_that_are_not_quite_at_their_bounds_leave_no_intercept(
    name: str, short: float
) -> None:
    """One demands b above, the other below: the middle of that is no answer."""
    loss, weight = LOSSES[name], np.ones(6)
    K = 1e-7 * np.eye(6)
    judge = PiecewiseLinearJudge.of(loss, weight, True, np.diagonal(K))
    levels = loss.coefficient_levels(weight)
    coef = np.where(SIDES > 0, levels[:, 0], levels[:, -1])
    # The rows that come last as b grows, and as it falls: the ends are then those of the interval.
    for row in (
        np.argmin(np.where(SIDES > 0, NUMBERS, 9)),
        np.argmax(np.where(SIDES < 0, NUMBERS, -9)),
    ):
        coef[row] *= 1.0 - short
    h = coef @ K
    b = judge.intercepts(h[None], coef[None], np.ones(1))
    out = judge.figures(h[None], coef[None], b, np.ones(1))
    assert out[0, 0] == pytest.approx(in_doubt(judge, h, coef, b[0]), rel=1e-10)
    assert out[0, 0] > 0.1


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
        "ridge, linear": Problem(X @ X.T, y, ones, squared_hinge(y), penalty="ridge", features=X),
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
    loss, box, extent = hinge(np.array([1.0, -1.0])), np.ones(2), Extent(2.0, 1.0)

    def judged() -> Any:
        args = parts["row"], loss, box, parts["coefficient"], parts["theta"]
        with np.errstate(invalid="ignore"):
            return figures([tally(*args, extent)], parts["theta"], extent)

    assert judged().kkt <= 1e-14 and judged().gap <= 1e-14
    if where in parts:
        parts[where].flat[0] = bad
    else:
        parts["theta"][0 if where == "w" else 1] = bad
    assert judged().kkt == np.inf and judged().gap == np.inf and judged().floor == 0.0


def test_without_an_intercept_the_smooth_judge_picks_none() -> None:
    """And one that is there all the same is a violation."""
    small = mixture(12, 3)
    problem = Problem(small.K, small.y, np.ones(12), squared_hinge(small.y), False, penalty="ridge")
    judge, coef = judge_for(problem), np.full((1, 12), 0.1)
    h = coef @ small.K
    assert judge.intercepts(h, coef, np.ones(1)).tolist() == [0.0]
    flat = judge.figures(h, coef, np.zeros(1), np.ones(1))
    moved = judge.figures(h, coef, np.array([1e-3]), np.ones(1))
    assert moved[0, 0] != flat[0, 0]


# ---- smooth losses ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["squared", "logistic", "squared hinge"])
@pytest.mark.parametrize("own", [-1, 5])
def test_the_intercept_of_a_smooth_loss_is_its_minimiser(name: str, own: int) -> None:
    """The slope of sum C_i L_i(h_i + b) is zero there, without the row that is left out."""
    small, h = mixture(12, 3), 3.0 * np.random.default_rng(2).normal(size=(1, 12))
    weight = np.linspace(0.5, 2.0, 12)
    make = {"squared": SquaredLoss, "logistic": logistic, "squared hinge": squared_hinge}[name]
    loss = make(small.y)
    for fit_intercept in (True, False):
        judge = judge_for(Problem(small.K, small.y, weight, loss, fit_intercept))
        b = judge.intercepts(h, np.zeros((1, 12)), np.ones(1), np.array([own]))
        if not fit_intercept:
            assert b.tolist() == [0.0]
            continue
        used = np.where(np.arange(12) == own, 0.0, weight)
        assert abs(used @ loss.slope(h[0] + b[0])) <= 1e-12 * used.sum()


@pytest.mark.parametrize("loss", [SquaredLoss, logistic, squared_hinge])
def test_a_coefficient_of_a_row_that_takes_no_part_is_seen(loss: Any) -> None:
    """What the full data's solution owes to a row is what its fold is charged with."""
    small = mixture(12, 3)
    judge = judge_for(Problem(small.K, small.y, np.full(12, 2.0), loss(small.y)))
    rows, coef = np.array([1, 4]), np.array([0.0, -1e-3])
    for C in (0.1, 10.0):
        # K_ii = 1: tau_i is 1, or 1 / C_i where C is small.
        expected = np.abs(coef) * max(1.0, 1.0 / (2.0 * C))
        assert judge.astray(coef, rows, C) == pytest.approx(expected, rel=1e-12)


# ---- the certificate and the ledger -------------------------------------------------------------


def test_stationary_points_of_an_indefinite_kernel_are_called_that() -> None:
    certificate = Certificate(np.array([1e-12]), np.array([1e-11]), False, [], 1e-8, convex=False)
    assert str(certificate).startswith("NOT exact: stationary points only")
    assert not certificate.short.any()


def with_twins() -> Any:
    """Row 11 is like row 3; row 10 has the same features but the other label."""
    rng = np.random.default_rng(4)
    place, y = np.append(np.arange(10), [3, 3]), np.where(np.arange(12) % 2 == 0, 1.0, -1.0)
    K = np.ascontiguousarray(rbf(rng.normal(size=(10, 3)))[np.ix_(place, place)])
    return make_task(Small(K, y, np.ones(12)), [0.5, 5.0])


def test_folds_are_alike_only_if_their_rows_are() -> None:
    task = with_twins()
    found = run(task, "refit").ledger
    ledger = Ledger(task)
    assert [len(folds) for folds in ledger.twins] == [0, 0]
    for l in range(2):
        ledger.full(l, found.coef[l])
    assert ledger.fraction() == 0.0
    third = found.coef[0].copy()
    third[[3, 11]] = third[11], 0.0
    ledger.solved(0, [3], third[None])
    assert ledger.how[0, 3] == SOLVED and ledger.fraction() == 1 / 24
    ledger.alike(0, np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp))
    with pytest.raises(ValueError, match="row 10 is not like row 3"):
        ledger.alike(0, np.array([10]), np.array([3]))
    assert not ledger.how[0, [10, 11]].any()
    ledger.alike(0, np.array([11]), np.array([3]))
    assert ledger.decision[0, 11] == ledger.decision[0, 3] and ledger.how[0, 11] == SOLVED
    assert [folds.tolist() for folds in ledger.twins] == [[11], [3]]


def test_what_is_complete_can_be_taken_apart() -> None:
    """All folds at a grid point, or a fold at all of them, whichever is more."""
    task = with_twins()
    whole = run(task, "refit").ledger
    points, folds = whole.complete()
    assert points.tolist() == [0, 1] and folds.tolist() == list(range(12))
    whole.how[1, 4:] = 0  # four folds at both points, and all of the first
    points, folds = whole.complete()
    assert points.tolist() == [0] and len(folds) == 12
    whole.how[0, 11] = 0
    points, folds = whole.complete()
    assert points.tolist() == [0, 1] and folds.tolist() == [0, 1, 2, 3]
    part = whole.part(points, np.array([1, 3]))
    assert np.array_equal(part.decision, whole.decision[:, [1, 3]])
    assert np.array_equal(part.kkt, whole.kkt[:, [1, 3, 12]])
    assert part.certificate().exact and part.counts()["solved"] == 4
    whole.kkt[1, -1] = 1.0  # the full data's own solution fails there: nothing of it counts
    whole.how[:] = SOLVED
    points, folds = whole.complete()
    assert points.tolist() == [0] and len(folds) == 12
