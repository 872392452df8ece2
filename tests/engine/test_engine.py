"""The parts of the exact engine on their own, and on losses other than the hinge."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time
import warnings
from collections import Counter

import numpy as np
import pytest
from _oracle import Run, Start, Twin, make_task, random_small, run
from _problems import BUILDERS, FloatArray, Small, labels, linear, rbf
from sklearn.metrics.pairwise import rbf_kernel

import exactcv
from exactcv._core import _bounds
from exactcv._core._active_set import ActiveSet, Status
from exactcv._core._factor import Factor
from exactcv._core.reference import residuals as reference
from exactcv.engine.path import Tracker, full_path, initial_states
from exactcv.engine.smo import solve
from exactcv.exceptions import NotPSDWarning
from exactcv.judge.certificate import residuals
from exactcv.judge.intercept import canonical_intercept, intercept_limits
from exactcv.judge.ledger import Ledger
from exactcv.problem.folds import Folds, leave_one_out_folds, make_folds
from exactcv.problem.grid import Grid
from exactcv.problem.losses import PiecewiseLinear, hinge
from exactcv.problem.problem import Problem, Task

intercepts = pytest.mark.parametrize("fit_intercept", [True, False], ids=["intercept", "none"])


def no_cancel() -> np.ndarray:
    return np.zeros(1, dtype=np.int32)


# ---- leaving one out --------------------------------------------------------------------------


@pytest.mark.parametrize("n", [201, 301])
def test_coefficients_at_a_bound_but_for_rounding_are_not_solved_one_by_one(n: int) -> None:
    """One class has a row more, and C is tiny: every row of the other that leaves frees its share.

    Rounding of u is then 1e-10 of a box and more.
    """
    X, y = exactcv.datasets.make_mixture(2 * n, 200, random_state=0)
    rows = np.r_[np.flatnonzero(y > 0)[: n // 2], np.flatnonzero(y < 0)[: n // 2 + 1]]
    found = exactcv.cross_validate(
        X[rows], y[rows], lambdas=[4e4, 4e3, 403.0, 100.0], tol=1e-6, output="decision", n_jobs=1
    )
    assert found.certificate.exact
    assert found.stats["fallback"] <= n // 20


def generic(seed: int) -> Small:
    """No ties of any kind: random points and random weights."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 50))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2], y[2:4] = 1.0, -1.0
    X = rng.normal(size=(n, int(rng.choice([2, 5, 20])))) + 0.3 * y[:, None]
    return Small(rbf(X), y, rng.uniform(0.5, 2.0, size=n))


@intercepts
@pytest.mark.parametrize("C", [0.01, 0.3, 3.0, 30.0])
def test_compiled_drive_equals_twin(C: float, fit_intercept: bool) -> None:
    drives = Counter[str]()
    for seed in range(25):
        task = make_task(generic(seed), C, fit_intercept=fit_intercept)
        for j, base, coef in Start.of(task).drives():
            drives["failed" if coef is None else "done"] += 1
            if coef is not None:
                twin = Twin(
                    task.problem, base.levels, base.state.copy(), base.coef.copy(), base.u.copy()
                )
                # Coefficients are known less well than decision values, where K is nearly singular.
                expected, K = twin.leave_out(j), task.problem.K
                assert coef == pytest.approx(expected, abs=1e-6 * C)
                assert K @ coef == pytest.approx(K @ expected, abs=1e-8 * max(1.0, C))
                drives["events"] += twin.events
    assert drives["failed"] <= 0.01 * drives["done"]
    assert drives["events"] > 100 or C == 0.01


@intercepts
@pytest.mark.parametrize("kind", ["copies", "grid"])
def test_drives_among_equal_rows(kind: str, fit_intercept: bool) -> None:
    """Rows at the same place share a knot: rounding must not make events, nor leave the box."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(6, 60))
        X = rng.normal(size=(n, 2))
        X = X[rng.integers(max(2, n // 3), size=n)] if kind == "copies" else np.round(2 * X) / 2
        y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        y[:2], y[2:4] = 1.0, -1.0
        small, C = Small(rbf(3 * X), y, np.ones(n)), 10.0 ** rng.uniform(-1, 2)
        task = make_task(small, C, fit_intercept=fit_intercept)
        for j, base, coef in Start.of(task).drives():
            assert coef is not None, (seed, j)
            assert (coef <= base.levels[:, 0]).all() and (coef >= base.levels[:, -1]).all()
        judged = run(task)
        assert judged.exact and judged.share("fallback") <= 0.05, (seed, judged.ledger.counts())


def test_row_at_the_origin() -> None:
    """A linear kernel and x = 0: K_ii = 0, so K_MM may be zero altogether."""
    X = np.array([[2.0, 2], [0, 0], [2, 2], [1, 0], [0, 0], [-1, 0], [0, 1], [0, 0], [-1, 1]])
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y = np.where(rng.random(len(X)) < 0.5, 1.0, -1.0)
        y[:2], y[2:4] = 1.0, -1.0
        task = make_task(Small(linear(X), y, np.ones(len(X))), [0.01, 0.04, 0.3, 3.0])
        ours, theirs = run(task), run(task, "refit")
        assert ours.exact
        assert ours.ledger.decision == pytest.approx(theirs.ledger.decision, abs=1e-7)


# ---- the active set ---------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", range(4))
def test_active_set_equals_working_set(chunk: int) -> None:
    """From any states whatever, and on degenerate problems too."""
    outcomes = Counter[int]()
    for seed in range(chunk, 400, 4):
        rng = np.random.default_rng(seed)
        small = random_small(rng)
        C, fit_intercept = 10.0 ** rng.uniform(-4, 2), bool(rng.random() < 0.7)
        loss = hinge(small.y)
        solver = ActiveSet(
            small.K, loss.knots, loss.coefficient_levels(small.weight), fit_intercept
        )
        state = rng.integers(0, 3, size=len(small.y)).astype(np.int8)
        state[small.weight == 0] = -1
        coef, h = np.zeros(len(small.y)), np.zeros(len(small.y))
        b, status, _ = solver.solve(C, state, coef, h, 0.0, monotone=True)
        outcomes[status] += 1
        if status != Status.CONVERGED:
            continue
        box = C * small.weight
        theirs = solve(small.K, loss, box, fit_intercept=fit_intercept)
        if fit_intercept:  # any of the optimal ones will do
            levels = loss.coefficient_levels(box)
            low, high = intercept_limits(h, coef, levels, loss, box > 0)
            assert low - 1e-8 <= b <= high + 1e-8, seed
            b = canonical_intercept(h, coef, levels, loss, box > 0)
        kkt, _ = residuals(small.K, loss, box, coef, b, fit_intercept=fit_intercept)
        assert kkt <= 1e-8, seed
        # A gap of 1e-10 of an objective of up to 1e4 would allow more: sqrt(2 gap K_xx).
        assert small.K @ coef == pytest.approx(small.K @ theirs.coef, rel=1e-5, abs=1e-5), seed
    assert outcomes[Status.CONVERGED] >= 0.9 * outcomes.total()  # 95 of a hundred and more


def test_active_set_keeps_rows_out() -> None:
    small = BUILDERS["mixture"](40)
    loss = hinge(small.y)
    solver = ActiveSet(small.K, loss.knots, loss.coefficient_levels(small.weight), True)
    state = initial_states(Problem(small.K, small.y, small.weight, loss))
    out = np.array([3, 4, 11])
    state[out] = -1
    coef = np.where(state == 0, 2.0, -2.0)  # the rows left out still have theirs
    h = small.K @ coef
    b, status, _ = solver.solve(2.0, state, coef, h, 0.0, True)
    assert status == Status.CONVERGED and (coef[out] == 0).all() and (state[out] == -1).all()
    kkt, gap = residuals(small.K, loss, 2.0 * small.weight, coef, b, out)
    assert max(kkt, gap) <= 1e-8
    assert h == pytest.approx(small.K @ coef, abs=1e-10)


# ---- other piecewise-linear losses --------------------------------------------------------------


def regression(n: int, seed: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return rbf(X), np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=n)


def epsilon_insensitive(target: FloatArray, epsilon: float) -> PiecewiseLinear:
    """max(0, |u - t| - epsilon): two knots, levels C, 0, -C."""
    knots = np.column_stack([target - epsilon, target + epsilon])
    return PiecewiseLinear(knots, np.tile([-1.0, 0.0, 1.0], (len(target), 1)))


def pinball(target: FloatArray, share: float) -> PiecewiseLinear:
    slopes = np.tile([-share, 1.0 - share], (len(target), 1))
    return PiecewiseLinear(np.ascontiguousarray(target[:, None]), slopes)


def staircase(target: FloatArray) -> PiecewiseLinear:
    """Three knots and no symmetry."""
    knots = np.column_stack([target - 0.5, target, target + 0.3])
    return PiecewiseLinear(knots, np.tile([-2.0, -0.5, 0.25, 1.0], (len(target), 1)))


LOSSES = {
    "epsilon": lambda t: epsilon_insensitive(t, 0.1),
    "wide epsilon": lambda t: epsilon_insensitive(t, 0.7),
    "absolute": lambda t: epsilon_insensitive(t, 1e-3),
    "median": lambda t: pinball(t, 0.5),
    "quantile": lambda t: pinball(t, 0.9),
    "staircase": staircase,
}
losses = pytest.mark.parametrize("name", LOSSES)
CS = np.array([1e-3, 0.03, 0.5, 3.0, 30.0])


def regression_task(name: str, n: int, seed: int, fit_intercept: bool, folds: Folds) -> Task:
    K, target = regression(n, seed)
    problem = Problem(K, labels(n), np.ones(n), LOSSES[name](target), fit_intercept)
    return Task(problem, folds, Grid(CS, 1 / (2 * n * CS), False), True, 1e-8)


@intercepts
@losses
def test_path_of_other_losses(name: str, fit_intercept: bool) -> None:
    for seed in range(5):
        task = regression_task(name, 50, seed, fit_intercept, leave_one_out_folds(50))
        problem = task.problem
        tracker = Tracker(problem, no_cancel())
        for point in full_path(problem, CS, tracker):
            box = np.full(50, point.C)
            kkt, gap = residuals(
                problem.K, problem.loss, box, point.coef, point.b, fit_intercept=fit_intercept
            )
            assert kkt <= 1e-8 and gap <= 1e-8, (seed, point.C)


@intercepts
@losses
def test_bounds_of_other_losses(name: str, fit_intercept: bool) -> None:
    """The bounds hold for several knots a row as well."""
    for seed in range(5):
        task = regression_task(name, 40, seed, fit_intercept, leave_one_out_folds(40))
        ledger = run(task).ledger
        for l, C in enumerate(CS):
            one = Grid(np.array([C]), 1 / (80 * np.array([C])), False)
            begin = Start.of(Task(task.problem, task.folds, one, True, 1e-8))
            value = ledger.decision[l, begin.who]
            slack = 1e-8 * max(1.0, float(np.abs(begin.full.u).max()))
            assert (value >= begin.bounds.low - slack).all()
            assert (value <= begin.bounds.high + slack).all()


@pytest.mark.parametrize("seed", range(10))
def test_compiled_walk_equals_twin(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    knots, levels = rng.normal(size=(n, 1)), np.array([[1.0, 0.0]]) - (rng.random((n, 1)) < 0.5)
    state = rng.integers(-1, 3, n).astype(np.int8)
    inside = levels[:, 1] + rng.random(n)
    coef = np.select(
        [state == 0, state == 1, state == 2], [levels[:, 0], inside, levels[:, 1]], 0.0
    )
    u = np.where(state == 1, knots[:, 0], knots[:, 0] + (state - 1) * rng.random(n))
    who = np.flatnonzero(coef).astype(np.intp)
    found = []
    for walk in (_bounds.walk, reference.walk):
        least, most = np.zeros(len(who)), np.zeros(len(who))
        walk(knots, levels, state, coef, u, who, coef[who], 1e-9, least, most)
        found.append((least, most))
    np.testing.assert_array_equal(*found)


@intercepts
@pytest.mark.parametrize("scheme", ["loo", "5-fold"])
@losses
def test_folds_of_other_losses(name: str, scheme: str, fit_intercept: bool) -> None:
    """Certified, and equal to the same training set solved from scratch."""
    n = 40
    pairs = [(np.setdiff1d(np.arange(n), np.arange(n)[k::5]), np.arange(n)[k::5]) for k in range(5)]
    folds = leave_one_out_folds(n) if scheme == "loo" else make_folds(pairs, None, labels(n))
    for seed in range(3):
        task = regression_task(name, n, seed, fit_intercept, folds)
        ours: Run = run(task)
        assert ours.exact
        assert ours.share("fallback") <= 0.05
        for fold in (0, 2, 4):
            scratch = from_scratch(task, fold)
            mine = folds.pair_folds == fold
            assert ours.ledger.decision[:, mine] == pytest.approx(scratch, abs=1e-6)


def from_scratch(task: Task, fold: int) -> FloatArray:
    """One fold's left-out values from a problem that has no other rows."""
    problem, out = task.problem, task.folds.left_out[fold]
    keep = np.setdiff1d(np.arange(problem.n), out)
    part = Problem(
        np.ascontiguousarray(problem.K[np.ix_(keep, keep)]),
        problem.y[keep],
        problem.weight[keep],
        PiecewiseLinear(problem.loss.knots[keep], problem.loss.slopes[keep]),
        problem.fit_intercept,
    )
    alone = Task(part, leave_one_out_folds(len(keep)), task.grid, True, task.tol)
    tracker = Tracker(part, no_cancel())
    ledger = Ledger(alone)
    points = list(full_path(part, task.grid.Cs, tracker))
    assert ledger.full(np.arange(len(points)), np.array([p.coef for p in points])).all()
    rows = task.folds.test[fold]
    return ledger.coef @ problem.K[np.ix_(keep, rows)] + ledger.intercept[:, None]


@intercepts
def test_pinball_equals_the_working_set_solver(fit_intercept: bool) -> None:
    task = regression_task("quantile", 40, 7, fit_intercept, leave_one_out_folds(40))
    decision = run(task).ledger.decision
    for l, C in enumerate(CS):
        for j in (0, 5, 17):
            others = np.setdiff1d(np.arange(40), [j])
            theirs = solve(
                task.problem.K,
                task.problem.loss,
                np.full(40, C),
                others,
                fit_intercept=fit_intercept,
            )
            value = task.problem.K[j] @ theirs.coef + theirs.intercept
            assert decision[l, j] == pytest.approx(value, abs=1e-7)


# ---- no answer takes for ever -------------------------------------------------------------------


@intercepts
@pytest.mark.parametrize("cv", ["loo", 3])
@pytest.mark.parametrize("method", ["exact", "refit"])
def test_indefinite_kernel_is_answered_with_a_warning(
    method: str, cv: object, fit_intercept: bool
) -> None:
    rng = np.random.default_rng(0)
    y = labels(40)
    X = rng.normal(size=(40, 5)) + 0.3 * y[:, None]
    for C in (0.1, 10.0):
        with pytest.warns(NotPSDWarning, match="not positive semidefinite"):
            result = exactcv.cross_validate(
                X,
                y,
                kernel="sigmoid",
                gamma=1.0,
                coef0=-0.5,
                Cs=[C],
                cv=cv,
                method=method,
                fit_intercept=fit_intercept,
            )
        assert not result.certificate.exact and not result.certificate.convex
        assert not result.certificate.unresolved
        assert np.isfinite(result.error).all()


LONG_RUN = """
import numpy as np, exactcv
rng = np.random.default_rng(0)
y = np.where(np.arange({n}) % 2, 1, -1)
X = rng.normal(size=({n}, 5))
# Import what is imported late: Python exits as if killed when it is interrupted inside an exec.
exactcv.cross_validate(X[:20], y[:20], method={method!r}, cv={few!r}, lambdas=2, n_jobs={n_jobs})
print("ready", flush=True)
try:
    exactcv.cross_validate(X, y, method={method!r}, cv={cv!r}, lambdas=200, n_jobs={n_jobs},
                           output="decision")
except KeyboardInterrupt:
    print("stopped", flush=True)
else:
    print("finished", flush=True)
"""


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(("method", "cv"), [("refit", "loo"), ("exact", "loo"), ("exact", 50)])
def test_interrupt_stops_the_run(method: str, cv: object, n_jobs: int) -> None:
    """Ctrl-C while at work: one is enough, and it does not take long."""
    few = "loo" if cv == "loo" else 5
    code = textwrap.dedent(LONG_RUN).format(n=2500, method=method, cv=cv, few=few, n_jobs=n_jobs)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline().strip() == "ready"
        time.sleep(1.0)
        child.send_signal(signal.SIGINT)
        try:
            out, _ = child.communicate(timeout=10)  # a second or less, on a machine of one's own
        finally:
            child.kill()
    assert out.strip() == "stopped"
    assert child.returncode == 0


def test_kernel_entries_of_every_size() -> None:
    """Nothing overflows on the way: a warning would be an error here."""
    K = np.eye(4)
    K[0, 1] = K[1, 0] = 0.25
    K[0, 3] = K[3, 0] = 8e-19
    K[2, 3] = K[3, 2] = 7e-283
    task = make_task(Small(K, np.array([-1.0, -1, 1, 1]), np.ones(4)), 100.0, fit_intercept=False)
    ours, theirs = run(task), run(task, "refit")
    assert ours.exact and theirs.exact
    assert ours.ledger.decision == pytest.approx(theirs.ledger.decision, abs=1e-7)


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_proved_by_an_indefinite_kernel(seed: int) -> None:
    """The bounds rest on distances; without them the labels are those of the values."""
    rng = np.random.default_rng(seed)
    y = labels(30)
    X = rng.normal(size=(30, 5)) + 0.3 * y[:, None]
    options = {"kernel": "sigmoid", "gamma": float(rng.choice([0.1, 0.5, 1.0]))}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for coef0 in (-1.0, -0.5, 0.0):
            options |= {"coef0": coef0, "Cs": [0.05, 0.3, 3.0, 30.0]}
            values = exactcv.cross_validate(X, y, output="decision", **options)
            alone = exactcv.cross_validate(X, y, output="error", **options)
            assert np.array_equal(values.pair_wrong, alone.pair_wrong)


@pytest.mark.parametrize("constant", [True, False])
def test_factor_follows_a_changing_set(constant):
    """Rows come and go by the dozen; every solve is right, and few of them factorise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 30))
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 30)
    factor = Factor(K, constant)
    rows = np.sort(rng.choice(300, 180, replace=False))
    for _ in range(40):
        right = rng.normal(size=len(rows))
        x = factor.solve_with(rows, right)
        G = K[np.ix_(rows, rows)] + constant * factor.top
        np.testing.assert_allclose(G @ x, right, atol=1e-9)
        both = factor.solve_with(rows, np.array([np.ones(len(rows)), right]))
        np.testing.assert_allclose(both @ G, [np.ones(len(rows)), right], atol=1e-9)
        rows = np.setxor1d(rows, rng.choice(300, rng.integers(0, 10), replace=False))
    assert factor.n_factorised <= 12
    assert factor.firm


def test_factor_sees_that_equal_rows_make_it_singular():
    X = np.repeat(np.random.default_rng(0).normal(size=(60, 3)), 2, axis=0)
    factor = Factor(X @ X.T + 1.0, False)
    factor.solve_with(np.arange(120), np.ones(120))
    assert not factor.firm


# ---- a factor that leans on another --------------------------------------------------------------


def lender_and(n: int, n_base: int, constant: bool = True) -> tuple[np.ndarray, Factor, Factor]:
    """A kernel matrix, a factor of its first rows, and one that leans on it."""
    X = np.random.default_rng(n).normal(size=(n, 30))
    K = rbf_kernel(X, gamma=0.2)
    lender, other = Factor(K, constant), Factor(K, constant)
    lender.solve_with(np.arange(n_base), np.ones(n_base))
    other.lean_on(lender)
    return K, lender, other


def assert_solves(factor: Factor, K: np.ndarray, rows: np.ndarray, constant: bool = True) -> None:
    right = np.random.default_rng(1).normal(size=len(rows))
    x = factor.solve_with(rows, right)
    G = K[np.ix_(rows, rows)] + constant * factor.top
    np.testing.assert_allclose(G @ x, right, atol=1e-9)


@pytest.mark.parametrize("constant", [True, False])
def test_what_is_left_of_all_rows_is_solved_by_their_factor(constant):
    """As folds are: some rows left, some came; the lender goes on as if nothing had been."""
    K, lender, other = lender_and(650, 600, constant)
    rng, rows = np.random.default_rng(2), np.arange(600)
    for step in range(5):
        fold = np.setdiff1d(rows, np.arange(120 * step, 120 * step + 40))
        assert_solves(other, K, fold, constant)
        assert_solves(other, K, np.append(fold, 600 + rng.permutation(50)[:15]), constant)
        other.start_over()
    assert other.n_factorised == 0
    assert_solves(lender, K, rows, constant)
    assert lender.n_factorised == 1


def test_sets_far_from_the_lent_one_are_factorised():
    K, lender, other = lender_and(650, 600)
    assert_solves(other, K, np.arange(0, 650, 2))
    assert other.n_factorised == 1
    other.start_over()
    assert_solves(other, K, np.arange(30, 600))
    assert other.n_factorised == 1
    # A base that was lent is not written into when the next set is factorised.
    assert_solves(other, K, np.arange(200, 650))
    assert other.n_factorised == 2
    assert_solves(lender, K, np.arange(600))
    assert lender.n_factorised == 1


def test_only_a_large_firm_factor_of_the_same_matrix_is_lent():
    K, lender, _ = lender_and(650, 600)
    small = Factor(K, True)
    small.solve_with(np.arange(300), np.ones(300))
    singular = Factor(np.ones((650, 650)), False)
    singular.solve_with(np.arange(600), np.ones(600))
    for owner, matrix, constant in (
        (lender, K.copy(), True),
        (lender, K, False),
        (small, K, True),
        (singular, K, False),
    ):
        other = Factor(matrix, constant)
        other.lean_on(owner)
        assert_solves(other, K, np.arange(290), constant)
        assert other.n_factorised == 1


def test_folds_by_the_factor_of_the_full_data_are_those_of_refits():
    """Nearly all of 700 rows are free at large C: every fold leans on the full data's factor."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(700, 6))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=700) > 0, 1, -1)
    options = {"Cs": [1.0, 10.0, 100.0], "cv": 10, "gamma": 1.0, "output": "decision"}
    found = exactcv.cross_validate(X, y, **options)
    again = exactcv.cross_validate(X, y, n_jobs=2, **options)
    oracle = exactcv.cross_validate(X, y, method="refit", **options)
    assert min(found.stats["at_knot"][-1:]) >= 500
    assert found.certificate.exact and oracle.certificate.exact
    np.testing.assert_allclose(found.decision, oracle.decision, atol=1e-7)
    np.testing.assert_array_equal(found.decision, again.decision)


def test_a_factor_is_lent_only_to_sets_that_it_helps():
    K, lender, _ = lender_and(650, 600)
    assert lender.worth_lending(40) and not lender.worth_lending(120)
    np.testing.assert_array_equal(lender.rows, np.arange(600))
    lender.release()
    assert len(lender.rows) == 0 and not lender.worth_lending(0)
    assert_solves(lender, K, np.arange(30, 640))
    assert lender.n_factorised == 2


@pytest.mark.parametrize("monotone", [False, True])
def test_several_training_sets_in_one_call(monotone):
    """As one after the other, each with a factor of its own."""
    rng, n = np.random.default_rng(5), 60
    X = rng.normal(size=(n, 3))
    K, y = rbf_kernel(X, gamma=0.5), np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    loss = hinge(y)
    boxes = np.ones((4, n))
    for fold, box in enumerate(boxes):
        box[fold::4] = 0.0
    levels, Cs = loss.coefficient_levels(boxes), np.array([1.0, 1.0, 2.0, 0.5])
    state = np.where(boxes == 0, np.int8(-1), np.where(y > 0, np.int8(0), np.int8(2)))
    c = np.where(boxes > 0, Cs[:, None] * y, 0.0)
    h, b, solved = c @ K, np.zeros(4), np.empty(4, dtype=np.uint8)
    sets = state.copy(), c.copy(), h.copy(), b.copy()
    whole = ActiveSet(K, loss.knots, loss.coefficient_levels(np.ones(n)), True)
    count = whole.solve_sets(Cs, levels, *sets, np.inf, monotone, solved)
    total = 0
    for k in range(4):
        one = ActiveSet(K, loss.knots, levels[k], True)
        given = state[k].copy(), c[k].copy(), h[k].copy()
        intercept, status, done = one.solve(Cs[k], *given, 0.0, monotone)
        total += done
        assert bool(solved[k]) == (status == Status.CONVERGED)
        for mine, expected in zip(sets, (*given, intercept), strict=True):
            np.testing.assert_array_equal(mine[k], expected)
    assert count == total
    assert solved.all() or not monotone
