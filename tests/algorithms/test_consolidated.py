"""Method ``consolidated`` against ``refit`` and ``exact``, and the safety of its bounds."""

from __future__ import annotations

import numpy as np
import pytest
from _problems import BUILDERS, Small, linear, rbf

import exactcv
from exactcv.algorithms import get_method
from exactcv.algorithms.finite_smoothing.consolidated_bounds import (
    Previous,
    bounds_at,
    intercept_bounds,
)
from exactcv.engine.smo import solve
from exactcv.exceptions import UnsupportedError
from exactcv.judge.ledger import Ledger
from exactcv.problem.folds import leave_one_out_folds
from exactcv.problem.grid import Grid
from exactcv.problem.losses import hinge
from exactcv.problem.problem import Problem, Task
from exactcv.runtime.threads import Workers

CS = [1e-3, 1e-1, 1.0, 30.0, 1e3]


def run(small, method, **options):
    settings = {"kernel": "precomputed", "output": "decision", "sample_weight": small.weight}
    return exactcv.cross_validate(small.K, small.y, method=method, **(settings | options))


@pytest.mark.parametrize("kind", sorted(set(BUILDERS) - {"constant_features"}))
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_equals_refit(kind, fit_intercept):
    small = BUILDERS[kind]() if kind == "unbalanced" else BUILDERS[kind](36)
    options = {"Cs": CS, "fit_intercept": fit_intercept, "tol": 1e-6}
    mine, refit = run(small, "consolidated", **options), run(small, "refit", **options)
    assert mine.certificate.exact
    np.testing.assert_allclose(mine.decision, refit.decision, atol=1e-6)
    np.testing.assert_allclose(mine.objective, refit.objective, rtol=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("p", [5, 60])
def test_the_papers_grid(fit_intercept, p):
    X, y = exactcv.datasets.make_mixture(80, p, random_state=3)
    options = {"fit_intercept": fit_intercept, "output": "decision", "tol": 1e-6}
    mine = exactcv.cross_validate(X, y, method="consolidated", **options)
    exact = exactcv.cross_validate(X, y, method="exact", **options)
    assert mine.certificate.exact
    np.testing.assert_allclose(mine.decision, exact.decision, atol=1e-6)


def test_grid_in_any_order():
    X, y = exactcv.datasets.make_mixture(40, 5, random_state=3)
    options = {"method": "consolidated", "output": "decision"}
    one = exactcv.cross_validate(X, y, Cs=[0.1, 1.0, 10.0], **options)
    other = exactcv.cross_validate(X, y, Cs=[10.0, 0.1, 1.0], **options)
    np.testing.assert_allclose(other.decision, one.decision[[2, 0, 1]], atol=1e-9)


def test_sizes_and_skips_are_reported():
    X, y = exactcv.datasets.make_mixture(60, 5, random_state=3)
    result = exactcv.cross_validate(X, y, method="consolidated", output="decision")
    stats = result.stats
    total = stats["size_L"] + stats["size_R"] + stats["size_S"]
    assert (total == 60).all()
    assert stats["size_S"].min() < 40
    idle = (result.coef == 0).mean(axis=1)
    np.testing.assert_allclose(stats["share_skipped"], idle)
    assert stats["unchanged"] > 0


def test_other_folds_are_refused_with_the_methods_that_have_them():
    X, y = exactcv.datasets.make_mixture(40, 5, random_state=3)
    with pytest.raises(UnsupportedError, match="'magic'") as refused:
        exactcv.cross_validate(X, y, method="consolidated", cv=10)
    assert "rank_update" not in str(refused.value)  # it has these folds, but not the hinge loss
    with pytest.raises(UnsupportedError, match="'magic'"):
        exactcv.cross_validate(X, y, method="consolidated", loss="logistic")


# ---- safety of the reduction ---------------------------------------------------------------------


def random_problem(rng):
    """Kernels, sizes, class ratios and weights of many kinds."""
    n = int(rng.integers(6, 16))
    X = rng.normal(size=(n, int(rng.integers(1, 6))))
    y = np.where(rng.random(n) < rng.choice([0.2, 0.5, 0.8]), 1.0, -1.0)
    y[:2], y[2:4] = 1.0, -1.0
    X += rng.choice([0.0, 0.5, 2.0]) * y[:, None]
    if rng.random() < 0.2:
        X[n // 2 :] = X[: n - n // 2]
    K = linear(X) if rng.random() < 0.3 else rbf(X)
    weight = rng.uniform(0.3, 3.0, n) if rng.random() < 0.3 else np.ones(n)
    return Small(K, y, weight)


def exact_solutions(small, Cs, fit_intercept):
    """The engine's solutions: coefficients (L, n + 1, n), the full data first, and intercepts."""
    n = len(small.y)
    problem = Problem(small.K, small.y, small.weight, hinge(small.y), fit_intercept)
    grid = Grid(np.asarray(Cs), 1.0 / (2 * n * np.asarray(Cs)), False)
    task = Task(problem, leave_one_out_folds(n), grid, True, 1e-8)
    kept = Keeping(task)
    with Workers(1) as workers:
        get_method("exact").run(task, kept, workers)
    assert kept.certificate().exact
    return problem, kept


class Keeping(Ledger):
    """A ledger that keeps the folds' coefficients."""

    def __init__(self, task):
        super().__init__(task)
        n = task.problem.n
        self.kept = np.full((len(task.grid), n, n), np.nan)

    def solved(self, l, folds, coef, *args, **kwargs):
        self.kept[l, folds] = coef
        return super().solved(l, folds, coef, *args, **kwargs)

    def alike(self, l, folds, others):
        for fold, other in zip(folds, others, strict=True):
            self.kept[l, fold] = self.kept[l, other]
            self.kept[l, fold, [fold, other]] = self.kept[l, other, [other, fold]]
        super().alike(l, folds, others)

    def unchanged(self, l, folds):
        self.kept[l, folds] = self.coef[l]
        super().unchanged(l, folds)


def previous_point(problem, kept, l, C):
    own = np.arange(problem.n)
    folds = kept.kept[l]
    h = folds @ problem.K
    norms = np.sqrt(np.maximum((folds * h).sum(axis=1), 0.0))
    norm = np.sqrt(max(kept.coef[l] @ kept.h[l], 0.0))
    return Previous(C, kept.h[l], norm, h, norms, own)


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_fixed_at_a_wrong_value(seed):
    """Thousands of (problem, C) pairs, each with all its folds."""
    rng = np.random.default_rng(seed)
    fixed = 0
    for _ in range(60):
        small, fit_intercept = random_problem(rng), bool(rng.random() < 0.6)
        Cs = np.sort(10.0 ** rng.uniform(-3, 3) * np.cumprod(rng.uniform(1.05, 3.0, size=4)))
        problem, kept = exact_solutions(small, Cs, fit_intercept)
        for l in range(1, len(Cs)):
            bounds = bounds_at(problem, Cs[l], previous_point(problem, kept, l - 1, Cs[l - 1]))
            fixed += check_bounds(problem, kept, l, float(Cs[l]), bounds)
    assert fixed > 100


def check_bounds(problem, kept, l, C, bounds):
    n, y, box = problem.n, problem.y, C * problem.weight
    solutions = [(0, -1, kept.coef[l])] + [(int(y[j]), j, kept.kept[l, j]) for j in range(n)]
    for kind, own, coef in solutions:
        others = np.arange(n) != own
        h = problem.K @ coef
        slack = 1e-6 * max(1.0, np.abs(h).max())
        value = (y * h)[others]
        assert (bounds[kind].low[others] <= value + slack).all()
        assert (bounds[kind].high[others] >= value - slack).all()
        left, right = bounds[kind].known(y)
        np.testing.assert_allclose(coef[left & others], (y * box)[left & others], rtol=1e-6)
        np.testing.assert_allclose(coef[right & others], 0.0, atol=1e-6 * box.max())
        if problem.fit_intercept:
            b = intercept_range(problem, coef, C, own)
            assert bounds[kind].b_low <= b[0] + slack and b[1] - slack <= bounds[kind].b_high
    left, right = bounds[1].known(y)
    return int(left.sum() + right.sum())


def intercept_range(problem, coef, C, own):
    """Every optimal intercept of one solution lies in this range."""
    from exactcv.judge.intercept import intercept_limits

    train = np.flatnonzero((np.arange(problem.n) != own) & (problem.weight > 0))
    levels = problem.loss.coefficient_levels(C * problem.weight)
    low, high = intercept_limits(problem.K @ coef, coef, levels, problem.loss, train)
    return min(low, high), max(low, high)


def test_intercept_bounds_by_brute_force():
    """Bounds of zero width on f: the intercept must be that of the losses themselves."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        n = int(rng.integers(5, 12))
        y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        y[:2], y[2:4] = 1.0, -1.0
        weight, value = rng.uniform(0.5, 2.0, n), rng.normal(size=n)
        for removed in (0, 1, -1):
            low, high = intercept_bounds(y, weight, value, value, removed)
            for j in np.flatnonzero(y == removed) if removed else [-1]:
                part = np.arange(n) != j
                knots = (y * (1.0 - value))[part]
                total = [
                    (weight[part] * np.maximum(0, 1 - value[part] - y[part] * b)).sum()
                    for b in knots
                ]
                best = knots[np.argmin(total)]
                assert low - 1e-9 <= best <= high + 1e-9


def test_reduced_and_full_problem_agree_on_a_fold():
    """Known rows folded into offset and slope: the same solution as by SMO on all rows."""
    X, y = exactcv.datasets.make_mixture(50, 4, random_state=1)
    result = exactcv.cross_validate(X, y, method="consolidated", lambdas=20, output="decision")
    K = rbf(X)
    assert result.stats["size_L"].max() > 10
    l = int(np.argmax(result.stats["size_L"][:, 0]))
    for j in (0, 7, 23):
        train = np.setdiff1d(np.arange(50), [j])
        found = solve(K, hinge(y), np.full(50, result.Cs[l]), train)
        expected = K[j] @ found.coef + found.intercept
        assert result.decision[l, j] == pytest.approx(expected, abs=1e-6)
