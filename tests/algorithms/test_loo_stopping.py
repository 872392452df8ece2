"""The labels of ``loo_stopping`` are those of ``refit``, and what proves them is sound."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from _oracle import Run, clear_of_ties, make_task, random_small, run
from _problems import BUILDERS, FloatArray, Small, floor, rbf
from sklearn.datasets import load_iris, load_wine

import exactcv
from exactcv import tolerances
from exactcv._core import _stopping
from exactcv._core.reference import stopping as reference_stopping
from exactcv.algorithms.loo_stopping.checks import reaches, sufficiency
from exactcv.algorithms.loo_stopping.dual_pair import DualPair, Outcome
from exactcv.algorithms.loo_stopping.method import TRIAL_ROWS, LooStopping
from exactcv.engine import smo
from exactcv.exceptions import InputError, NotExactWarning, UnsupportedError
from exactcv.judge.ledger import PROVED, Ledger
from exactcv.problem.folds import Folds
from exactcv.problem.problem import Task
from exactcv.runtime.threads import Workers

CS = np.logspace(-4, 4, 9)
NEVER = np.zeros(1, dtype=np.int32)


def labels_task(small: Small, Cs: Any, fit_intercept: bool = True, **options: Any) -> Task:
    return make_task(small, Cs, fit_intercept=fit_intercept, decision=False, **options)


def run_with(task: Task, n_threads: int = 1, **options: Any) -> Run:
    with Workers(n_threads) as workers:
        ledger = Ledger(task)
        stats = LooStopping(**options).run(task, ledger, workers)
    return Run(ledger, stats)


def solution(task: Task) -> tuple[smo.Solution, FloatArray]:
    """The full-data solution at the first C, and K coef."""
    problem, C = task.problem, float(task.grid.Cs[0])
    everyone = np.arange(problem.n)
    full = smo.solve_hinge(problem, everyone, C, 1e-10, NEVER)
    return full, problem.K @ full.coef


def pair_of(task: Task, limit: int = 10_000) -> DualPair:
    full, h = solution(task)
    box = float(task.grid.Cs[0]) * task.problem.weight
    return DualPair(task.problem, box, full.coef, h, 1e-9, limit, NEVER)


def left_out_value(task: Task, r: int) -> float:
    """y_r u_r without row r, from a cold start."""
    train = np.delete(np.arange(task.problem.n), r)
    found = smo.solve_hinge(task.problem, train, float(task.grid.Cs[0]), 1e-10, NEVER)
    return float(task.problem.y[r] * (task.problem.K[r] @ found.coef + found.intercept))


# ---- labels -------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", BUILDERS)
def test_labels_are_those_of_refit(name: str, fit_intercept: bool) -> None:
    task = labels_task(BUILDERS[name](), CS, fit_intercept)
    ours, theirs = run(task, "loo_stopping"), run(task, "refit")
    assert ours.exact
    np.testing.assert_array_equal(ours.ledger.wrong, theirs.ledger.wrong)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("batch", range(5))
def test_labels_of_random_problems(batch: int, fit_intercept: bool) -> None:
    for seed in range(40 * batch, 40 * batch + 40):
        small = random_small(np.random.default_rng(seed), largest=24)
        task = labels_task(small, CS[::2], fit_intercept)
        ours, theirs = run(task, "loo_stopping"), run(task, "refit")
        noise = floor(small.K, CS[-1] * small.weight)
        assert ours.exact or ours.ledger.certificate().gap.max() <= noise, seed
        differ = ours.ledger.wrong != theirs.ledger.wrong
        assert not (differ & clear_of_ties(theirs.ledger)).any(), seed


@pytest.mark.parametrize("surplus", [0, 1, 2])
def test_labels_where_no_coefficient_is_free(surplus: int) -> None:
    """A tiny C, classes of nearly equal size: the intercept jumps when a row goes."""
    rng = np.random.default_rng(surplus)
    y = np.r_[np.ones(12 + surplus), -np.ones(12)]
    small = Small(rbf(rng.normal(size=(len(y), 2)) + 0.3 * y[:, None]), y, np.ones(len(y)))
    task = labels_task(small, [1e-4, 1e-3, 1e-2])
    ours, theirs = run(task, "loo_stopping"), run(task, "refit")
    assert ours.exact
    np.testing.assert_array_equal(ours.ledger.wrong, theirs.ledger.wrong)


def test_with_and_without_the_condition() -> None:
    task = labels_task(BUILDERS["mixture"](), CS)
    runs = [
        run_with(task, stopping=stopping, limit=limit)
        for stopping in (True, False)
        for limit in (None, 1, 10)
    ]
    for other in runs:
        assert other.exact
        np.testing.assert_array_equal(other.ledger.wrong, runs[0].ledger.wrong)
    assert runs[0].stats["stopped"].sum() > 0
    assert runs[-1].stats["stopped"].sum() == 0


def test_number_of_threads_changes_nothing() -> None:
    task = labels_task(BUILDERS["overlap"](), CS)
    one, two = run_with(task, 1), run_with(task, 2)
    np.testing.assert_array_equal(one.ledger.how, two.ledger.how)
    for name in ("iterations", "kernel_evaluations", "stopped"):
        np.testing.assert_array_equal(one.stats[name], two.stats[name])


def test_some_rows_in_any_order() -> None:
    """Folds that leave one row out need not be all of them, nor in order."""
    small = BUILDERS["mixture"]()
    rows = tuple(np.array([r], dtype=np.intp) for r in (7, 3, 41, 3))
    some = run(labels_task(small, CS, folds=Folds(60, rows, rows)), "loo_stopping")
    every = run(labels_task(small, CS), "loo_stopping")
    np.testing.assert_array_equal(some.ledger.wrong, every.ledger.wrong[:, [7, 3, 41, 3]])


def test_one_row_of_a_class() -> None:
    """Without it the other class alone is left, and the row is wrong."""
    rng = np.random.default_rng(0)
    y = np.r_[1.0, -np.ones(9)]
    small = Small(rbf(rng.normal(size=(10, 2)) + y[:, None]), y, np.ones(10))
    task = labels_task(small, CS)
    ours, theirs = run(task, "loo_stopping"), run(task, "refit")
    assert ours.ledger.wrong[:, 0].all()
    np.testing.assert_array_equal(ours.ledger.wrong, theirs.ledger.wrong)


@pytest.mark.parametrize("name", ["breast cancer", "iris", "wine"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_labels_on_real_data(name: str, kernel: str) -> None:
    """The paper's values of C, from 0.01 to 100, on data with ties and correlated features."""
    X, y = real_data(name)
    options = {"kernel": kernel, "gamma": 0.1, "Cs": [0.01, 1.0, 100.0]}
    ours = exactcv.cross_validate(X, y, method="loo_stopping", **options)
    theirs = exactcv.cross_validate(X, y, method="refit", **options)
    assert ours.certificate.exact
    np.testing.assert_array_equal(ours.wrong, theirs.wrong)
    assert ours.stats["stopped"].sum() > 0


def real_data(name: str) -> tuple[FloatArray, Any]:
    """Sixty rows of two classes, the hardest to tell apart where there are three."""
    if name == "breast cancer":
        X, y = exactcv.datasets.load_breast_cancer()
    else:
        X, y = {"iris": load_iris, "wine": load_wine}[name](return_X_y=True)
        X, y = X[y > 0], y[y > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    rows = np.random.default_rng(0).permutation(len(y))[:60]
    return X[rows], y[rows]


@pytest.mark.filterwarnings("ignore:the kernel matrix is not positive")
def test_a_kernel_that_is_not_convex_is_refitted(small: tuple[np.ndarray, np.ndarray]) -> None:
    """Checks and proofs need convexity: without it no label may rest on them."""
    options = {"kernel": "sigmoid", "gamma": 2.0, "coef0": -1.0, "Cs": [0.1, 1.0, 10.0]}
    ours = exactcv.cross_validate(*small, method="loo_stopping", **options)
    theirs = exactcv.cross_validate(*small, method="refit", **options)
    assert not ours.certificate.exact and ours.stats["bound"] == 0
    np.testing.assert_array_equal(ours.wrong, theirs.wrong)


# ---- the checks ---------------------------------------------------------------------------------


def verdicts_of(task: Task) -> Any:
    full, h = solution(task)
    levels = task.problem.loss.coefficient_levels(task.grid.Cs[0] * task.problem.weight)
    box = levels[:, 1], levels[:, 0]
    u = h + full.intercept
    return sufficiency(task.problem, full.coef, u, box, reaches(task.problem), 1e-7)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_checks_are_sound(fit_intercept: bool) -> None:
    settled = np.zeros(3, dtype=int)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        small = random_small(rng, largest=20)
        task = labels_task(small, 10.0 ** rng.uniform(-4, 2), fit_intercept)
        verdicts = verdicts_of(task)
        value = np.array([left_out_value(task, r) for r in range(len(small.y))])
        used = small.weight > 0
        assert (value[verdicts.unchanged & used] > 1 - 1e-6).all()
        assert (value[verdicts.wrong] <= tolerances.TIE).all()
        assert (value[verdicts.right] > tolerances.TIE).all()
        settled += [verdicts.unchanged.sum(), verdicts.wrong.sum(), verdicts.right.sum()]
    assert (settled > 30).all()


def test_check_3_needs_room_for_the_coefficient_that_goes() -> None:
    """Nine rows against eight, a tiny C: as printed, the paper's check proves wrong labels."""
    rng = np.random.default_rng(3)
    y = np.r_[np.ones(9), -np.ones(8)]
    small = Small(rbf(rng.normal(size=(17, 2))), y, np.ones(17))
    task = labels_task(small, 1e-3)
    full, h = solution(task)
    C = float(task.grid.Cs[0])
    size = np.abs(full.coef)
    loss = np.maximum(0.0, 1 - y * (h + full.intercept))
    assert ((size > 1e-9 * C) & (size < (1 - 1e-9) * C)).any()  # "stable"
    as_printed = (size > 0) & (2 * size + loss < 1)  # R^2 = 1: an RBF kernel
    value = np.array([left_out_value(task, r) for r in range(17)])
    assert (value[as_printed] <= tolerances.TIE).any()
    assert (value[verdicts_of(task).right] > tolerances.TIE).all()


# ---- the stopping condition ---------------------------------------------------------------------


def test_check_3_walks_the_intercept() -> None:
    """Rows whose coefficient the free rows cannot take up are settled all the same."""
    rng = np.random.default_rng(0)
    settled = 0
    for _ in range(20):
        n = 30
        x = rng.normal(size=(n, 2)) + np.repeat([[1.5, 0.0], [-1.5, 0.0]], n // 2, axis=0)
        y = np.repeat([1.0, -1.0], n // 2)
        small = Small(np.ascontiguousarray(x @ x.T), y, np.ones(n))
        task = labels_task(small, [0.02])
        full, h = solution(task)
        levels = task.problem.loss.coefficient_levels(np.full(n, 0.02))
        box = levels[:, 1], levels[:, 0]
        u = h + full.intercept
        found = sufficiency(task.problem, full.coef, u, box, reaches(task.problem), 1e-7)
        inside = (full.coef > box[0] + 1e-9) & (full.coef < box[1] - 1e-9)
        room = np.where(inside, box[1] - full.coef, 0.0), np.where(inside, full.coef - box[0], 0.0)
        for r in np.flatnonzero(found.right):
            assert left_out_value(task, int(r)) > 0
            side = 0 if full.coef[r] > 0 else 1
            settled += abs(full.coef[r]) >= room[side].sum() - room[side][r]
    assert settled > 10  # rows that were left open while the free rows had to take up everything


def test_epsilon_is_that_of_the_paper(small: tuple[np.ndarray, np.ndarray]) -> None:
    """Plain SMO to eps: not certified, cheaper, and with a small eps the exact labels."""
    X, y = exactcv.datasets.make_mixture(80, 5, random_state=2)
    grid = {"Cs": [0.5, 20.0], "method": "loo_stopping"}
    exact = exactcv.cross_validate(X, y, **grid)
    assert exact.certificate.exact
    counts = []
    for epsilon in (1e-6, 1e-3, 0.3):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotExactWarning)
            found = exactcv.cross_validate(X, y, method_options={"epsilon": epsilon}, **grid)
        counts.append(int(found.stats["iterations"].sum() + found.stats["full_iterations"].sum()))
        if epsilon < 1e-2:
            assert (found.wrong == exact.wrong).all()
        assert not found.certificate.exact
    assert counts[0] > counts[1] > counts[2]
    plain = exactcv.cross_validate(X, y, method_options={"stopping": False}, **grid)
    assert plain.stats["stopped"].sum() == 0 and (plain.wrong == exact.wrong).all()
    with pytest.raises(InputError, match="epsilon"):
        exactcv.cross_validate(X, y, method_options={"epsilon": -1.0}, **grid)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_second_kernel(fit_intercept: bool) -> None:
    """K' is the kernel of phi_i - phi_r, or of what is left of phi_i without phi_r."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 4))
    small = Small(X @ X.T, np.tile([1.0, -1.0], 6), np.ones(12))
    pair, r = pair_of(labels_task(small, 1.0, fit_intercept)), 5
    fixed = pair._fixed(r)
    along = np.outer(X @ X[r], X[r]) / (X[r] @ X[r])
    Z = X - X[r] if fit_intercept else X - along
    K = small.K - np.outer(fixed[6], small.K[r]) - fixed[7][:, None]
    np.testing.assert_allclose(K, Z @ Z.T, atol=1e-12)
    np.testing.assert_allclose(fixed[5], np.diagonal(Z @ Z.T), atol=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", ["mixture", "low_rank", "weighted", "duplicates"])
def test_seeds_are_feasible(name: str, fit_intercept: bool) -> None:
    pair = pair_of(labels_task(BUILDERS[name](), 3.0, fit_intercept))
    K = pair.problem.K
    for r in np.flatnonzero(pair.coef)[:20]:
        fixed = pair._fixed(r)
        c, e, d, g = pair._seeds(r, fixed, Outcome().counts)[:4]
        for x in (c, d):
            assert (fixed[1] <= x).all() and (x <= fixed[2]).all() and x[r] == 0.0
        if fit_intercept:
            assert abs(c.sum()) <= 1e-12 * np.abs(c).sum()
        second = K - np.outer(fixed[6], K[r]) - fixed[7][:, None]
        np.testing.assert_allclose(e, fixed[0] - K @ c, atol=1e-9)
        np.testing.assert_allclose(g, fixed[0] - second @ d, atol=1e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_proofs_are_right(fit_intercept: bool) -> None:
    """Every row of many problems: the condition never proves what a refit denies."""
    proofs = 0
    for seed in range(100, 140):
        rng = np.random.default_rng(seed)
        small = random_small(rng, largest=20)
        task = labels_task(small, 10.0 ** rng.uniform(-4, 4), fit_intercept)
        pair = pair_of(task)
        for r in np.flatnonzero(pair.coef):
            outcome = pair.leave_out(int(r), stopping=True)
            if outcome.coef is None:
                assert outcome.wrong == (left_out_value(task, int(r)) <= tolerances.TIE), (seed, r)
                proofs += 1
    assert proofs > 200


def test_a_tie_is_not_proved_right() -> None:
    """Mirror images: without row 0 the solution is zero there, whatever is done."""
    X = np.array([[0.0], [1.0], [-1.0], [2.0], [-2.0]])
    y = np.array([1.0, 1.0, -1.0, 1.0, -1.0])
    task = labels_task(Small(X @ X.T + 0.0, y, np.ones(5)), [0.01, 1.0, 100.0])
    ours = run(task, "loo_stopping")
    assert ours.ledger.wrong[:, 0].all()
    assert (ours.ledger.how[:, 0] != PROVED).all()


def test_feature_vector_of_zero_without_intercept() -> None:
    X = np.array([[0.0], [1.0], [-1.0], [2.0]])
    small = Small(X @ X.T, np.array([1.0, 1.0, -1.0, 1.0]), np.ones(4))
    ours = run(labels_task(small, [0.1, 10.0], fit_intercept=False), "loo_stopping")
    assert ours.exact and ours.ledger.wrong[:, 0].all()


def test_switches_itself_off() -> None:
    """At a large C on separable data with few checks settled, proofs are rare."""
    task = labels_task(BUILDERS["mixture"](), [1.0, 1e4])
    stats = run(task, "loo_stopping").stats
    assert stats["switched_off"].tolist() == [False, True]
    assert stats["stopped"][1] < TRIAL_ROWS / 2
    assert stats["second_iterations"][1] > 0
    plain = run_with(task, stopping=False).stats
    assert plain["second_iterations"].sum() == 0 and not plain["switched_off"].any()


def test_stats_add_up() -> None:
    task = labels_task(BUILDERS["overlap"](), CS)
    found = run(task, "loo_stopping")
    stats = found.stats
    settled = sum(stats[k] for k in ("check_1", "check_2", "check_3", "stopped", "converged"))
    assert (settled == 60).all()
    counts = found.ledger.counts()
    assert counts["bound"] == sum(stats[k].sum() for k in ("check_2", "check_3", "stopped"))
    assert ((stats["Prec"] >= 0) & (stats["Prec"] <= 1)).all()
    assert (stats["kernel_evaluations"] % 60 == 0).all()


def test_polishing_counts_what_the_solver_evaluates(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated = []

    def spy(*args: Any, **options: Any) -> smo.Solution:
        found = real(*args, **options)
        evaluated.append(found.kernel_evaluations)
        return found

    pair, real = pair_of(labels_task(BUILDERS["mixture"](), 1.0)), smo.solve
    monkeypatch.setattr("exactcv.algorithms.loo_stopping.dual_pair.smo.solve", spy)
    counts = [pair.leave_out(int(r), stopping=False).counts for r in np.flatnonzero(pair.coef)]
    assert len(evaluated) == len(counts)  # one solve each was enough
    assert [count.finish for count in counts] == evaluated
    assert all(count.evaluations % 60 == 0 for count in counts)


# ---- the twin -----------------------------------------------------------------------------------


@pytest.mark.parametrize("second", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", ["mixture", "weighted", "polynomial"])
def test_compiled_loop_equals_its_twin(name: str, fit_intercept: bool, second: bool) -> None:
    pair = pair_of(labels_task(BUILDERS[name](), 2.0, fit_intercept))
    problem = pair.problem
    for r in np.flatnonzero(pair.coef)[:8]:
        fixed = pair._fixed(r)
        slack = pair._slack(r, fixed)
        mine = pair._seeds(r, fixed, Outcome().counts)
        twin = mine.copy()
        options = (fit_intercept, second, 1e-3, 60, NEVER)
        one = _stopping.pair_steps(problem.K, r, fixed, mine, *slack, *options)
        two = reference_stopping.pair_steps(problem.K, r, fixed, twin, *slack, *options)
        assert one[:3] == two[:3]
        np.testing.assert_allclose(one[3:], two[3:], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(mine[:4], twin[:4], rtol=1e-6, atol=1e-9)


def test_quantile_equals_its_twin() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 10, 101):
        for _ in range(30):
            values = rng.integers(0, 6, size).astype(float)  # with ties
            weights = rng.integers(1, 5, size).astype(float)
            target = float(rng.integers(0, int(weights.sum()) + 1))
            mine = _stopping.lower_quantile(values, weights, target)
            assert mine == reference_stopping.lower_quantile(values, weights, target)


def test_cancel_is_seen() -> None:
    pair = pair_of(labels_task(BUILDERS["mixture"](), 10.0))
    r = int(np.flatnonzero(pair.coef)[0])
    fixed = pair._fixed(r)
    moving = pair._seeds(r, fixed, Outcome().counts)
    flag = np.ones(1, dtype=np.int32)
    found = _stopping.pair_steps(
        pair.problem.K, r, fixed, moving, 1.0, 1.0, True, False, 1e-12, 10**6, flag
    )
    assert found[0] == 2


# ---- the front door -----------------------------------------------------------------------------


def test_refuses_decision_values_before_any_work(small: tuple[np.ndarray, np.ndarray]) -> None:
    def kernel(X: FloatArray, Z: FloatArray) -> FloatArray:
        raise AssertionError("the kernel was computed")

    with pytest.raises(UnsupportedError, match=r"use method='exact' or .*'refit'") as caught:
        exactcv.cross_validate(*small, kernel=kernel, method="loo_stopping", output="decision")
    assert "'least_squares'" not in str(caught.value)  # it has no hinge loss


@pytest.mark.parametrize(
    "name", [name for name, what in exactcv.methods().items() if "hinge" in what.losses]
)
def test_support_says_who_computes_decision_values(
    name: str, small: tuple[np.ndarray, np.ndarray]
) -> None:
    options = {"method": name, "Cs": [1.0], "output": "decision"}
    if exactcv.methods()[name].decision:
        found = exactcv.cross_validate(*small, **options).decision
        assert found is not None and np.isfinite(found).all()
    else:
        with pytest.raises(UnsupportedError, match="output='error'"):
            exactcv.cross_validate(*small, **options)


def test_refuses_other_folds(small: tuple[np.ndarray, np.ndarray]) -> None:
    with pytest.raises(UnsupportedError, match="loo"):
        exactcv.cross_validate(*small, method="loo_stopping", cv=3)


def test_through_the_front_door(small: tuple[np.ndarray, np.ndarray]) -> None:
    ours = exactcv.cross_validate(*small, method="loo_stopping", Cs=CS)
    theirs = exactcv.cross_validate(*small, method="refit", Cs=CS)
    assert ours.certificate.exact and ours.decision is None
    np.testing.assert_array_equal(ours.wrong, theirs.wrong)
