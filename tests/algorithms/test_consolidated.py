"""Method ``consolidated`` against ``refit`` and ``exact``, and the safety of its bounds."""

from __future__ import annotations

import numpy as np
import pytest
from _problems import BUILDERS, Small, linear, rbf

import exactcv
from exactcv.algorithms import get_method
from exactcv.algorithms.finite_smoothing.block_bounds import (
    FoldBefore,
    FullNow,
    block_bounds,
    known_for_all,
)
from exactcv.algorithms.finite_smoothing.consolidated_bounds import (
    Previous,
    bounds_at,
    intercept_bounds,
    printed_bounds_at,
)
from exactcv.engine.smo import solve
from exactcv.exceptions import InputError, UnsupportedError
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


def test_other_losses_are_refused_with_the_methods_that_have_them():
    X, y = exactcv.datasets.make_mixture(40, 5, random_state=3)
    with pytest.raises(UnsupportedError, match="'magic'"):
        exactcv.cross_validate(X, y, method="consolidated", loss="logistic")
    with pytest.raises(InputError, match="'tight', 'printed'"):
        exactcv.cross_validate(X, y, method="consolidated", method_options={"bounds": "loose"})


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_printed_bounds_fix_fewer_rows_with_the_same_answer(fit_intercept):
    X, y = exactcv.datasets.make_mixture(80, 5, random_state=3)
    found = {
        bounds: exactcv.cross_validate(
            X, y, lambdas=30, method="consolidated", output="decision", tol=1e-6,
            fit_intercept=fit_intercept, method_options={"bounds": bounds},
        )
        for bounds in ("tight", "printed")
    }  # fmt: skip
    tight, printed = (found[kind].stats["size_S"] for kind in ("tight", "printed"))
    assert (tight <= printed).all()
    assert printed.min() < 80
    if fit_intercept:
        assert tight.sum() < printed.sum()
    np.testing.assert_allclose(found["tight"].decision, found["printed"].decision, atol=1e-5)
    assert found["printed"].certificate.exact


@pytest.mark.parametrize("by", ["Cs", "lambdas"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", ["mixture", "weighted", "duplicates", "unbalanced"])
def test_blocks_equal_refit(name, fit_intercept, by):
    """k-fold: unequal blocks, so that lambda gives every fold a C of its own."""
    small = BUILDERS[name](48)
    rows = np.random.default_rng(1).permutation(48)
    blocks = [rows[:6], rows[6:11], rows[11:20]]
    cv = [(np.setdiff1d(rows, out), out) for out in blocks]
    options = {"cv": cv, "fit_intercept": fit_intercept, "tol": 1e-6, "output": "decision"}
    options |= {by: np.geomspace(0.05, 8.0, 8) if by == "Cs" else np.geomspace(0.5, 1e-3, 8)}
    mine = run(small, "consolidated", sample_weight=small.weight, **options)
    refit = run(small, "refit", sample_weight=small.weight, **options)
    assert mine.certificate.exact and mine.stats["fallback"] == 0
    np.testing.assert_allclose(mine.decision, refit.decision, atol=1e-5)


def test_blocks_fix_most_rows_on_the_papers_grid():
    X, y = exactcv.datasets.make_mixture(100, 5, random_state=0)
    found = exactcv.cross_validate(X, y, cv=10, method="consolidated", lambdas=50, tol=1e-6)
    assert found.certificate.exact
    assert np.median(found.stats["size_S"]) < 50


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

    def solved_at(self, ls, folds, coef, **kwargs):
        self.kept[np.ix_(ls, folds)] = coef
        return super().solved_at(ls, folds, coef, **kwargs)

    def proportional(self, ls, folds, coef, **kwargs):
        Cs = self.task.grid.Cs[ls]
        at, which = np.nonzero(self.how[np.ix_(ls, folds)] == 0)
        self.kept[ls[at], folds[which]] = coef[which] * (Cs[at] / Cs[0])[:, None]
        self.kept[ls[0], folds] = coef
        return super().proportional(ls, folds, coef, **kwargs)

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
            before = previous_point(problem, kept, l - 1, Cs[l - 1])
            for kind in (bounds_at, printed_bounds_at):
                bounds = kind(problem, Cs[l], before)
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


@pytest.mark.parametrize("seed", range(6))
def test_no_block_is_bounded_wrongly(seed):
    """Each fold's solution lies within its bounds, at its own C, and nothing is fixed wrongly."""
    rng = np.random.default_rng(100 + seed)
    fixed = 0
    for _ in range(25):
        small, fit_intercept = random_problem(rng), bool(rng.random() < 0.6)
        n = len(small.y)
        problem = Problem(small.K, small.y, small.weight, hinge(small.y), fit_intercept)
        out = np.sort(rng.choice(np.arange(4, n), int(rng.integers(1, n // 3 + 1)), replace=False))
        Cs = 10.0 ** rng.uniform(-2, 2) * np.cumprod(rng.uniform(1.0, 2.0, size=3))
        ratio = float(rng.choice([1.0, n / (n - len(out))]))
        train, before = np.setdiff1d(np.arange(n), out), None
        for C in Cs:
            full, fold = (
                solve(
                    small.K, problem.loss, c * small.weight, rows,
                    fit_intercept=fit_intercept, tol=1e-12,
                )
                for c, rows in ((C, np.arange(n)), (ratio * C, train))
            )  # fmt: skip
            now = FullNow(float(C), small.K @ full.coef, full.coef, full.intercept)
            bounds = block_bounds(problem, now, out, ratio * C, before)
            h = small.K @ fold.coef
            before = FoldBefore(ratio * C, h, float(np.sqrt(max(fold.coef @ h, 0.0))))
            if bounds is None:
                assert fit_intercept and Cs[0] == C
                continue
            slack = 1e-6 * max(1.0, np.abs(h).max())
            value = (problem.y * h)[train]
            assert (bounds.low[train] <= value + slack).all()
            assert (bounds.high[train] >= value - slack).all()
            left, right = known_for_all(problem, [(out, bounds)])
            box = ratio * C * small.weight
            here = np.isin(np.arange(n), train)
            np.testing.assert_allclose(
                fold.coef[left & here], (problem.y * box)[left & here], rtol=1e-5
            )
            np.testing.assert_allclose(fold.coef[right & here], 0.0, atol=1e-5 * box.max())
            fixed += int((left & here).sum() + (right & here).sum())
    assert fixed > 50


def test_printed_bounds_are_those_of_the_theorems():
    """Each formula of the paper written out, row by row, on one problem."""
    small = BUILDERS["mixture"](30)
    Cs = np.array([0.8, 1.1])
    lambdas = 1.0 / (2 * 30 * Cs)
    problem, kept = exact_solutions(small, Cs, True)
    before = previous_point(problem, kept, 0, Cs[0])
    found = printed_bounds_at(problem, Cs[1], before)[1]
    y, K, B = small.y, small.K, 1.0
    mean, diff = (lambdas.sum() / (2 * lambdas[1]), (lambdas[0] - lambdas[1]) / (2 * lambdas[1]))
    solutions = [kept.coef[0], *kept.kept[0]]  # j = 0, 1, ..., n
    low, high = np.full(30, np.inf), np.full(30, -np.inf)
    for j, a in enumerate(solutions):
        norm = np.sqrt(a @ K @ a)
        for i in range(30):
            if j != i + 1:
                value = mean * y[i] * (K[i] @ a)
                low[i] = min(low[i], value - diff * np.sqrt(B) * norm)
                high[i] = max(high[i], value + diff * np.sqrt(B) * norm)
    b_low, b_high = bisected(y, low, high)
    a = kept.coef[0]
    width = diff * np.sqrt(B * (a @ K @ a)) + B / (4 * 30 * lambdas[1])
    width += np.sqrt((B / (4 * 30 * lambdas[1])) ** 2 + B * (b_high - b_low) / (60 * lambdas[1]))
    low = np.maximum(low, mean * y * (K @ a) - width)
    high = np.minimum(high, mean * y * (K @ a) + width)
    np.testing.assert_allclose(found.low, low, atol=1e-6)
    np.testing.assert_allclose(found.high, high, atol=1e-6)
    np.testing.assert_allclose([found.b_low, found.b_high], bisected(y, low, high), atol=1e-6)


def bisected(y, low, high):
    """Algorithm 2, to 1e-7."""

    def psi(b, sign):
        first, second = y * b + high < 1, y * b + low > 1
        between = ~(first | second) & (y == sign)
        return y[first].sum() + sign * (between.sum() + 1)

    plus, minus = y > 0, y < 0
    top = max((high[minus] - 1).max(), (1 - low[plus]).max()) + 1e-7
    bottom = min((low[minus] - 1).min(), (1 - high[plus]).min()) - 1e-7
    ends = []
    for sign in (-1, 1):
        a, c = top, bottom
        while a - c > 1e-7:
            b = 0.5 * (a + c)
            if psi(b, sign) < 0 if sign > 0 else psi(b, sign) <= 0:
                a = b
            else:
                c = b
        ends.append(a if sign > 0 else c)
    return ends


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
