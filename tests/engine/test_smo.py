"""The working-set solver against a QP solver, its twin, the judge, and the intercept rule."""

from __future__ import annotations

import numpy as np
import pytest
from _clarabel import clarabel_objective
from _problems import BUILDERS, FloatArray, Small, floor, mixture, rounding, weighted
from sklearn.svm import SVC

from exactcv._core import _smo
from exactcv._core.reference import residuals as reference
from exactcv.algorithms.alpha_seeding import repair
from exactcv.engine import smo
from exactcv.engine.kernel_rows import CachedRows
from exactcv.engine.smo import Known, solve
from exactcv.exceptions import InputError
from exactcv.judge.certificate import residuals
from exactcv.judge.intercept import canonical_intercept, intercept_limits
from exactcv.problem.kernels import Kernel
from exactcv.problem.losses import PiecewiseLinear, hinge
from exactcv.runtime.threads import Cancelled

HARD_C = [1e-6, 1e-2, 1.0, 1e2, 1e4]


def primal_objective(small: Small, C: float, coef: FloatArray, b: float) -> float:
    h = small.K @ coef
    return float(0.5 * coef @ h + C * small.weight @ np.maximum(0, 1 - small.y * (h + b)))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("name", BUILDERS)
def test_objective_agrees_with_clarabel(name: str, C: float, fit_intercept: bool) -> None:
    small = BUILDERS[name](36)
    solution = solve(small.K, hinge(small.y), C * small.weight, fit_intercept=fit_intercept)
    ours = primal_objective(small, C, solution.coef, solution.intercept)
    assert ours == pytest.approx(clarabel_objective(small, C, fit_intercept), rel=1e-8)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", HARD_C)
@pytest.mark.parametrize("name", BUILDERS)
def test_certified_to_1e_10(name: str, C: float, fit_intercept: bool) -> None:
    for n, seed in ((60, 1), (150, 2)):
        small = BUILDERS[name](n, seed=seed)
        box, loss = C * small.weight, hinge(small.y)
        solution = solve(small.K, loss, box, fit_intercept=fit_intercept, tol=1e-10)
        kkt, gap = residuals(
            small.K, loss, box, solution.coef, solution.intercept, fit_intercept=fit_intercept
        )
        noise = floor(small.K, solution.coef)
        assert solution.converged or noise > 1e-10
        assert max(kkt, gap) <= max(1e-10, noise)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", BUILDERS)
def test_compiled_steps_equal_twin(name: str, fit_intercept: bool) -> None:
    small = BUILDERS[name](40)
    rows = np.flatnonzero(small.weight > 0)[1::2].astype(np.intp)
    y, box = small.y[rows].copy(), 3.0 * small.weight[rows]
    # Two classes again, whatever the builder's pattern of labels.
    y[: len(y) // 2] *= -1
    lower, upper = np.minimum(0, y * box), np.maximum(0, y * box)
    diagonal = small.K[rows, rows]
    c, e, twin_c, twin_e = np.zeros(len(rows)), y.copy(), np.zeros(len(rows)), y.copy()
    # Few steps: after many, rounding may break a tie the other way.
    fixed, rule = (small.K, rows, diagonal, lower, upper), (fit_intercept, 1e-6, 12)
    ours = _smo.smo_steps(*fixed, c, e, *rule, np.zeros(1, dtype=np.int32))
    twin = reference.smo_steps(*fixed, twin_c, twin_e, *rule)
    assert ours == pytest.approx(twin, rel=1e-10)
    assert e == pytest.approx(twin_e, abs=1e-11)
    if name != "duplicates":  # which of three equal rows moves is a tie
        assert c == pytest.approx(twin_c, abs=1e-11)
    again = np.empty(len(rows))
    _smo.gradient(small.K, rows, y, c, again)
    noise = float(rounding(small.K[np.ix_(rows, rows)], c).max())
    assert again == pytest.approx(reference.gradient(small.K, rows, y, c), abs=noise)
    assert again == pytest.approx(e, abs=1e-11)


def test_only_training_rows_take_part() -> None:
    small = weighted(50)
    train = np.setdiff1d(np.arange(50), [0, 7, 8])
    loss = hinge(small.y)
    solution = solve(small.K, loss, small.weight, train)
    part = solve(
        np.ascontiguousarray(small.K[np.ix_(train, train)]),
        PiecewiseLinear(loss.knots[train], loss.slopes[train]),
        small.weight[train],
    )
    assert solution.coef[[0, 7, 8]].tolist() == [0, 0, 0]
    assert solution.coef[small.weight == 0].tolist() == [0] * 5
    assert solution.coef[train] == pytest.approx(part.coef, abs=1e-10)
    assert solution.intercept == pytest.approx(part.intercept, abs=1e-10)


def test_warm_start_gives_the_same_answer_sooner() -> None:
    small = mixture(80)
    loss, box = hinge(small.y), np.full(80, 5.0)
    cold = solve(small.K, loss, box)
    warm = solve(small.K, loss, box, start=cold.coef)
    assert warm.coef == pytest.approx(cold.coef, abs=1e-9)
    assert warm.iterations < cold.iterations / 4


def test_indefinite_kernel_ends_with_an_answer() -> None:
    rng = np.random.default_rng(0)
    K = rng.normal(size=(40, 40))
    y = np.where(np.arange(40) < 20, 1.0, -1.0)
    for fit_intercept in (True, False):
        solution = solve(
            (K + K.T) / 2, hinge(y), np.ones(40), fit_intercept=fit_intercept, max_iter=20_000
        )
        assert np.isfinite(solution.coef).all()
        assert np.abs(solution.coef).max() <= 1.0


def test_iteration_limit_is_reported() -> None:
    small = mixture(80)
    solution = solve(small.K, hinge(small.y), np.full(80, 100.0), max_iter=3)
    assert not solution.converged and solution.iterations == 3


def test_cancel() -> None:
    small = mixture(30)
    with pytest.raises(Cancelled):
        solve(small.K, hinge(small.y), np.ones(30), cancel=np.ones(1, dtype=np.int32))


def test_pinball_loss() -> None:
    """One knot, other slopes: the residual of a quantile fit, judged by the certificate."""
    small = mixture(40, 5)
    target = np.random.default_rng(3).normal(size=40)
    loss = PiecewiseLinear(target[:, None].copy(), np.tile([-0.3, 0.7], (40, 1)))
    solution = solve(small.K, loss, np.full(40, 2.0), tol=1e-10)
    kkt, gap = residuals(small.K, loss, np.full(40, 2.0), solution.coef, solution.intercept)
    assert max(kkt, gap) <= 1e-10


class TestInterceptRule:
    """The optimal intercepts form an interval; the rule is its midpoint."""

    def test_no_free_coefficient_gives_the_midpoint(self) -> None:
        # Tiny C, balanced classes: every coefficient at its bound, u = b + rounding.
        small = mixture(40, 5)
        solution = solve(small.K, hinge(small.y), np.full(40, 1e-6))
        assert np.abs(solution.coef).tolist() == [1e-6] * 40
        h = small.K @ solution.coef
        low = (-1 - h)[small.y < 0].max()
        high = (1 - h)[small.y > 0].min()
        assert solution.intercept == pytest.approx((low + high) / 2, abs=1e-12)

    def test_a_free_coefficient_lies_on_its_knot(self) -> None:
        small = mixture(41, 5)
        solution = solve(small.K, hinge(small.y), np.ones(41))
        free = (np.abs(solution.coef) > 1e-6) & (np.abs(solution.coef) < 1 - 1e-6)
        assert free.any()
        u = small.K @ solution.coef + solution.intercept
        assert u[free] == pytest.approx(small.y[free], abs=1e-10)

    def test_one_class_takes_the_end_that_exists(self) -> None:
        for sign in (1.0, -1.0):
            y = np.full(3, sign)
            solution = solve(np.eye(3), hinge(y), np.ones(3))
            assert solution.coef.tolist() == [0, 0, 0] and solution.intercept == sign

    def test_coefficient_close_to_its_bound_counts_as_there(self) -> None:
        y = np.array([1.0, -1.0])
        loss, train = hinge(y), np.arange(2)
        levels = loss.coefficient_levels(np.ones(2))
        at = np.array([1.0, -1.0])
        for coef in (at, at * (1 - 1e-12)):
            assert intercept_limits(np.zeros(2), coef, levels, loss, train) == (-1.0, 1.0)
        assert canonical_intercept(np.zeros(2), at * (1 - 1e-6), levels, loss, train) == 0.0
        low, high = intercept_limits(np.zeros(2), at * (1 - 1e-6), levels, loss, train)
        assert (low, high) == (1.0, -1.0)  # no intercept suits both: not a solution

    def test_two_knots(self) -> None:
        """Level 0 between the knots limits b on both sides."""
        loss = PiecewiseLinear(np.array([[-0.5, 0.5], [0.0, 2.0]]), np.tile([-1.0, 0, 1], (2, 1)))
        levels = loss.coefficient_levels(np.ones(2))
        limits = intercept_limits(np.zeros(2), np.zeros(2), levels, loss, np.arange(2))
        assert limits == (0.0, 0.5)
        assert canonical_intercept(
            np.zeros(2), np.array([0.0, 0.3]), levels, loss, np.arange(2)
        ) == pytest.approx(0.0)


class TestPlain:
    """The loop alone: shrinking, caches, starting points."""

    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("name", BUILDERS)
    def test_shrinking_ends_at_the_same_objective(self, name: str, fit_intercept: bool) -> None:
        small = BUILDERS[name](120)
        loss, box = hinge(small.y), 5.0 * small.weight
        found = [
            solve(
                small.K, loss, box,
                fit_intercept=fit_intercept, tol=1e-6, polish=False, shrinking=shrinking,
            )
            for shrinking in (True, False)
        ]  # fmt: skip
        values = []
        for solution in found:
            assert solution.converged
            train = box > 0
            errors = loss.knots[:, 0] - small.K @ solution.coef
            # e of the coefficients that were set aside has been brought up to date.
            assert solution.errors[train] == pytest.approx(errors[train], abs=1e-9)
            values.append(0.5 * solution.coef @ (small.y + errors))
        assert values[0] == pytest.approx(values[1], rel=1e-7)

    def test_coefficients_are_set_aside(self) -> None:
        """Fewer kernel values are looked at, on a problem long enough to shrink."""
        small = mixture(300, 5)
        loss, box = hinge(small.y), np.full(300, 10.0)
        source = CachedRows(np.linalg.cholesky(small.K + 1e-9 * np.eye(300)), Kernel("linear"))
        counts = [
            solve(source, loss, box, tol=1e-6, polish=False, shrinking=shrinking)
            for shrinking in (True, False)
        ]
        assert counts[0].kernel_evaluations != counts[1].kernel_evaluations
        # A violation of 1e-6 at every row is a gap of 1e-6 times the boxes.
        dual = [s.coef @ small.y - 0.5 * s.coef @ small.K @ s.coef for s in counts]
        assert dual[0] == pytest.approx(dual[1], abs=1e-6 * box.sum())

    @pytest.mark.parametrize("rows_held", [2, 7, 100])
    def test_a_cache_of_any_size_gives_the_same_answer(self, rows_held: int) -> None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(100, 4))
        y = np.where(X[:, 0] + rng.normal(size=100) > 0, 1.0, -1.0)
        source = CachedRows(X, Kernel("rbf", gamma=0.3), rows_held * 8 * 100)
        everyone = np.arange(100)
        K = np.ascontiguousarray(source.block(everyone, everyone))
        ours = solve(source, hinge(y), np.full(100, 3.0))
        theirs = solve(K, hinge(y), np.full(100, 3.0))
        assert ours.coef == pytest.approx(theirs.coef, abs=1e-8)
        assert ours.intercept == pytest.approx(theirs.intercept, abs=1e-8)
        assert ours.kernel_evaluations >= theirs.kernel_evaluations

    def test_counts_agree_with_libsvm(self) -> None:
        """Same working-set rule, same stopping rule: nearly the same number of iterations.

        Nearly, since its kernel values are float32, and the paths part where two pairs are alike.
        """
        rng = np.random.default_rng(1)
        X = rng.normal(size=(400, 6))
        y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=400) > 0, 1.0, -1.0)
        model = SVC(C=5.0, gamma=0.2, tol=1e-3).fit(X, y)
        source = CachedRows(X, Kernel("rbf", gamma=0.2))
        ours = solve(source, hinge(y), np.full(400, 5.0), tol=1e-3, polish=False)
        assert ours.iterations == pytest.approx(int(model.n_iter_[0]), rel=0.2)
        K = source.block(np.arange(400), np.arange(400))
        theirs = np.zeros(400)
        theirs[model.support_] = model.dual_coef_[0]
        dual = [y @ c - 0.5 * c @ K @ c for c in (ours.coef, theirs)]
        assert dual[0] == pytest.approx(dual[1], rel=1e-5)

    @pytest.mark.parametrize("polish", [True, False])
    def test_any_feasible_start_gives_the_same_answer(self, polish: bool) -> None:
        small = mixture(60)
        loss, box = hinge(small.y), np.full(60, 2.0)
        cold = solve(small.K, loss, box, tol=1e-9, polish=polish)
        start = np.where(small.y > 0, 1.3, -1.3)
        start[small.y > 0] *= (small.y < 0).sum() / (small.y > 0).sum()
        warm = solve(small.K, loss, box, tol=1e-9, start=start, polish=polish)
        assert warm.coef == pytest.approx(cold.coef, abs=1e-6)

    def test_errors_known_nearby(self) -> None:
        """Rows leave, others come: e is carried over, and computed where it was not known."""
        small = mixture(60)
        loss, box = hinge(small.y), np.full(60, 2.0)
        first = solve(small.K, loss, box, np.arange(55))
        train = np.arange(5, 60)
        bounds = np.sort([0 * small.y, 2 * small.y * (np.arange(60) >= 5)], axis=0)
        start = repair(first.coef, *bounds, lambda: np.arange(55, 60))
        known = Known(first.coef, first.errors, np.arange(55))
        ours = solve(small.K, loss, box, train, start=start, known=known, polish=False, tol=1e-6)
        errors = small.y - small.K @ ours.coef
        assert ours.errors[train] == pytest.approx(errors[train], abs=1e-9)

    def test_infeasible_starts_are_refused(self) -> None:
        small = mixture(20)
        loss, box = hinge(small.y), np.ones(20)
        outside = np.zeros(20)
        outside[3] = 2.0 * small.y[3]
        with pytest.raises(InputError, match=r"row 3 is outside"):
            solve(small.K, loss, box, start=outside)
        unbalanced = np.where(small.y > 0, 0.5, 0.0)
        with pytest.raises(InputError, match="add up to"):
            solve(small.K, loss, box, start=unbalanced)
        with pytest.raises(InputError, match="row 0 is outside"):
            solve(small.K, loss, box, start=np.full(20, np.nan))
        solve(small.K, loss, box, start=unbalanced, fit_intercept=False)

    def test_starts_for_other_rows_are_refused(self) -> None:
        small = mixture(20)
        loss, box = hinge(small.y), np.ones(20)
        with pytest.raises(InputError, match=r"shape \(5,\).* the 20 rows"):
            solve(small.K, loss, box, start=np.zeros(5))
        elsewhere = np.where(np.arange(20) >= 15, 0.5 * small.y, 0.0)
        with pytest.raises(InputError, match="row 15 takes no part"):
            solve(small.K, loss, box, np.arange(15), start=elsewhere)

    def test_iteration_limit(self) -> None:
        small = mixture(80)
        solution = solve(small.K, hinge(small.y), np.full(80, 100.0), max_iter=3, polish=False)
        assert not solution.converged and solution.iterations == 3


@pytest.mark.parametrize("total", [None, 0.0, -1.5])
def test_cholesky_solves_the_bordered_system(total: float | None) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 30))
    K, e = X @ X.T, rng.normal(size=20)
    d = smo._by_cholesky(K, e, total)
    assert d is not None
    beta = e - K @ d
    np.testing.assert_allclose(beta, 0.0 if total is None else beta.mean(), atol=1e-12)
    if total is not None:
        assert abs(d.sum() - total) <= 1e-13


@pytest.mark.parametrize("total", [None, -1.5])
def test_cholesky_of_repeated_rows_takes_independent_ones(total: float | None) -> None:
    rng = np.random.default_rng(0)
    X, twin = rng.normal(size=(20, 30)), np.array([*range(20), 3, 3, 7])
    K, e = X[twin] @ X[twin].T, rng.normal(size=20)[twin]
    d = smo._by_cholesky(K, e, total)
    assert d is not None and np.count_nonzero(d) == 20
    beta = e - K @ d
    np.testing.assert_allclose(beta, 0.0 if total is None else beta.mean(), atol=1e-12)
    assert smo._by_cholesky(K, e + (np.arange(23) == 22), total) is None  # two of them disagree


def test_cholesky_leaves_singular_matrices_to_least_squares() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 5))
    assert smo._by_cholesky(X @ X.T, rng.normal(size=20), 0.0) is None
    assert smo._by_cholesky(np.diag([1.0, -1.0]), np.ones(2), None) is None
    assert smo._by_cholesky(np.full((2, 2), np.nan), np.ones(2), None) is None


@pytest.mark.parametrize("C", [1e-12, 1e-6, 1.0])
def test_a_start_that_misses_its_sum_a_little_is_balanced(C: float) -> None:
    """Seeds whose large coefficients have cancelled were once refused: 5e-16, where C is tiny."""
    small = mixture(20)
    box = np.full(20, C)
    cold = solve(small.K, hinge(small.y), box)
    start = cold.coef.copy()
    plus = np.flatnonzero(start > 0)[0]
    start[plus] -= 1e-8 * C
    warm = solve(small.K, hinge(small.y), box, start=start)
    assert warm.converged
    assert abs(warm.coef.sum()) <= 1e-13 * np.abs(warm.coef).sum()
    assert warm.coef == pytest.approx(cold.coef, abs=1e-8 * C)
    start[plus] -= 1e-3 * C
    with pytest.raises(InputError, match="add up"):
        solve(small.K, hinge(small.y), box, start=start)


def test_subspace_steps_never_lose_objective(monkeypatch: pytest.MonkeyPatch) -> None:
    """With K not positive semidefinite a Newton step may lead downhill, to a saddle.

    The loop then climbs up again, and so on until the last round.
    """
    A = np.random.default_rng(3).normal(size=(12, 12))
    y = np.where(np.arange(12) % 2 == 0, 1.0, -1.0)
    boxes: list[smo._Box] = []
    ordinary = smo._subspace

    def watched(box: smo._Box, c: FloatArray, e: FloatArray) -> tuple[FloatArray, FloatArray]:
        boxes.append(box)
        return ordinary(box, c, e)

    monkeypatch.setattr(smo, "_subspace", watched)
    solve(A + A.T, hinge(y), np.full(12, 10.0))
    box = boxes[0]
    for seed in range(20):
        c = repair(np.random.default_rng(seed).uniform(0.0, 10.0, 12) * y, box.lower, box.upper)
        e = box.errors(c)
        new_c, new_e = ordinary(box, c, e)
        lost = box.objective(c, e) - box.objective(new_c, new_e)
        assert lost <= box.rounding(c) + box.rounding(new_c)


def test_rounds_end_where_nothing_gets_better() -> None:
    """At a tolerance below rounding: the rounds stop by themselves, far below their limit."""
    small = mixture(20)
    tight = solve(small.K * 1e8, hinge(small.y), np.full(20, 1e3), tol=1e-300)
    assert tight.iterations < 200_000
