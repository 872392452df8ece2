"""Method ``magic`` against ``refit``, and the machinery it shares with ``consolidated``."""

from __future__ import annotations

import numpy as np
import pytest
from _problems import BUILDERS, Small

import exactcv
from exactcv.algorithms.finite_smoothing import grid_point
from exactcv.algorithms.finite_smoothing.batch import Batch, SharedInverse, best_intercepts
from exactcv.algorithms.finite_smoothing.levels import Inverses, solve_hinge_columns
from exactcv.algorithms.finite_smoothing.margin import AllOnMargin
from exactcv.algorithms.finite_smoothing.projection import times

CS = [1e-3, 1e-1, 1.0, 30.0, 1e3]


def run(small, method, **options):
    settings = {"kernel": "precomputed", "output": "decision", "sample_weight": small.weight}
    return exactcv.cross_validate(small.K, small.y, method=method, **(settings | options))


def build(kind):
    return BUILDERS[kind]() if kind == "unbalanced" else BUILDERS[kind](36)


def unsettled(result):
    """Where the decision value is the optimum's own, so that two solvers must agree."""
    return np.isfinite(result.decision)


@pytest.mark.parametrize("differing", [0, 3, 30])
@pytest.mark.parametrize("columns", [0, 1, 4])
def test_product_by_the_rows_that_differ(differing, columns):
    """K c, whether the columns of c are equal, differ in a few rows, or in all."""
    rng = np.random.default_rng(0)
    K = rng.normal(size=(30, 30))
    c = np.tile(rng.normal(size=(30, 1)), (1, columns))
    c[:differing] = rng.normal(size=(differing, columns))
    np.testing.assert_allclose(times(K, c), K @ c, atol=1e-13)


@pytest.mark.parametrize("kind", sorted(set(BUILDERS) - {"constant_features"}))
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("cv", ["loo", 5])
def test_hinge_equals_refit(kind, fit_intercept, cv):
    small = build(kind)
    if kind == "unbalanced" and cv == 5:
        cv = 2
    options = {"Cs": CS, "cv": cv, "fit_intercept": fit_intercept, "tol": 1e-6}
    magic, refit = run(small, "magic", **options), run(small, "refit", **options)
    assert magic.certificate.exact
    np.testing.assert_allclose(magic.decision, refit.decision, atol=1e-6)
    np.testing.assert_allclose(magic.objective, refit.objective, rtol=1e-6)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("kind", sorted(set(BUILDERS) - {"constant_features"}))
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("cv", ["loo", 2])
def test_smooth_losses_equal_refit(loss, kind, fit_intercept, cv):
    small = build(kind)
    options = {"Cs": CS, "cv": cv, "fit_intercept": fit_intercept, "loss": loss, "tol": 1e-8}
    magic, refit = run(small, "magic", **options), run(small, "refit", **options)
    assert magic.certificate.exact and refit.certificate.exact
    assert magic.certificate.kkt.max() <= 1e-8
    np.testing.assert_allclose(magic.decision, refit.decision, atol=1e-6)


def test_lambdas_scale_with_the_fold():
    X, y = exactcv.datasets.make_mixture(50, 6, random_state=1)
    folds = [(np.arange(20, 50), np.arange(20)), (np.arange(0, 45), np.arange(45, 50))]
    for loss in ("hinge", "logistic"):
        options = {"lambdas": [0.5, 0.01], "cv": folds, "output": "decision", "loss": loss}
        magic = exactcv.cross_validate(X, y, method="magic", **options)
        refit = exactcv.cross_validate(X, y, method="refit", **options)
        tested = np.isfinite(refit.decision)
        assert tested.sum() == 50
        np.testing.assert_allclose(magic.decision[tested], refit.decision[tested], atol=1e-6)


def test_breast_cancer():
    X, y = exactcv.datasets.load_breast_cancer()
    X, y = X[::6], y[::6]
    options = {"lambdas": 6, "output": "decision", "tol": 1e-6}
    magic = exactcv.cross_validate(X, y, method="magic", **options)
    refit = exactcv.cross_validate(X, y, method="refit", **options)
    np.testing.assert_allclose(magic.decision, refit.decision, atol=1e-6)


def test_result_does_not_depend_on_threads(monkeypatch):
    monkeypatch.setattr(grid_point, "BLOCK", 32)  # several lots of folds, though there are few rows
    X, y = exactcv.datasets.make_mixture(80, 5, random_state=2)
    one, two = (
        exactcv.cross_validate(X, y, method="magic", lambdas=3, output="decision", n_jobs=jobs)
        for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.decision, two.decision)


def test_counts_are_reported():
    X, y = exactcv.datasets.make_mixture(40, 5, random_state=2)
    stats = exactcv.cross_validate(X, y, method="magic", lambdas=4, output="decision").stats
    assert (stats["iterations"] >= 40).all()
    assert stats["solved"] + stats["fallback"] == 160
    assert (stats["seconds_factorising"] > 0).all()


# ---- the machinery -------------------------------------------------------------------------------


def batch_of(small, C, out, fit_intercept=True):
    n, m = out.shape
    return Batch(
        small.K, small.y, small.weight, np.full(m, C), out, np.zeros((n, m)), np.zeros(m),
        fit_intercept,
    )  # fmt: skip


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ["mixture", "low_rank", "duplicates"])
def test_a_step_solves_its_proximal_problem(kind, fit_intercept):
    small, rho = build(kind), 0.3
    n = len(small.y)
    rng = np.random.default_rng(0)
    weight, v, o = rng.uniform(0.5, 2, n), rng.normal(size=(n, 3)), rng.normal(size=(n, 3))
    s = rng.normal(size=3) if fit_intercept else np.zeros(3)
    no_one = np.zeros((n, 3), dtype=bool)
    batch = Batch(small.K, small.y, weight, np.ones(3), no_one, o, s, fit_intercept)
    inverse = SharedInverse.of(small.K, weight, rho, fit_intercept)
    new = inverse.step(batch, v)
    c = inverse.coefficients(batch, v, new)
    b = new - o - small.K @ c
    if fit_intercept:
        np.testing.assert_allclose(b, np.tile(b.mean(axis=0), (n, 1)), atol=1e-9)
        np.testing.assert_allclose(c.sum(axis=0), -s, atol=1e-9)
    else:
        np.testing.assert_allclose(b, 0.0, atol=1e-9)
    np.testing.assert_allclose(c, weight[:, None] * (v - new) / rho, atol=1e-9)


def test_best_intercept_minimises_the_losses():
    rng = np.random.default_rng(3)
    small = build("mixture")
    n = len(small.y)
    weight = rng.uniform(0.2, 3, n)
    out = rng.random((n, 8)) < 0.2
    h, s = rng.normal(size=(n, 8)), rng.normal(size=8)
    batch = Batch(small.K, small.y, weight, np.ones(8), out, np.zeros((n, 8)), s, True)
    found = best_intercepts(batch, h)

    def total(b):
        losses = np.maximum(0, 1 - small.y[:, None] * (h + b))
        return (batch.boxes() * losses).sum(axis=0) - s * b

    for b in np.r_[np.linspace(-8, 8, 321)]:
        assert (total(found) <= total(b) + 1e-9).all()


def test_columns_that_cannot_converge_are_not_called_solved(monkeypatch):
    """With one level and one attempt little is solved, and what is, is right."""
    small = build("overlap")
    n = len(small.y)
    monkeypatch.setattr("exactcv.algorithms.finite_smoothing.levels.MAX_LEVELS", 1)
    monkeypatch.setattr("exactcv.algorithms.finite_smoothing.levels.ATTEMPTS", 1)
    monkeypatch.setattr("exactcv.algorithms.finite_smoothing.projection.MAX_ROUNDS", 1)
    batch = batch_of(small, 50.0, np.eye(n, dtype=bool))
    inverses = Inverses(small.K, small.weight, 50.0, True)
    cancel = np.zeros(1, dtype=np.int32)
    found = solve_hinge_columns(batch, np.zeros((n, n)), inverses, 1.0, cancel)
    assert not found.solved.all()


@pytest.mark.parametrize("method", ["magic", "consolidated"])
def test_weak_regularisation_needs_no_fallback(method):
    """C up to 1e4: nearly all rows on the margin, far from where smoothing starts."""
    X, y = exactcv.datasets.load_breast_cancer()
    options = {"lambdas": np.exp([-6.0, -9.0, -13.0]), "output": "decision", "tol": 1e-6}
    mine = exactcv.cross_validate(X[:120, :6], y[:120], method=method, **options)
    exact = exactcv.cross_validate(X[:120, :6], y[:120], method="exact", **options)
    assert mine.certificate.exact
    assert mine.stats["fallback"] == 0
    np.testing.assert_allclose(mine.decision, exact.decision, atol=1e-6)


def test_fallback_gives_the_same_answer(monkeypatch):
    monkeypatch.setattr("exactcv.algorithms.finite_smoothing.levels.MAX_LEVELS", 1)
    monkeypatch.setattr("exactcv.algorithms.finite_smoothing.levels.ATTEMPTS", 1)
    monkeypatch.setattr("exactcv.algorithms.finite_smoothing.projection.MAX_ROUNDS", 1)
    monkeypatch.setattr("exactcv.algorithms.finite_smoothing.differentiable_columns.MAX_STEPS", 10)
    small = build("overlap")
    for loss in ("hinge", "squared_hinge"):
        options = {"Cs": [1.0, 100.0], "loss": loss}
        magic, refit = run(small, "magic", **options), run(small, "refit", **options)
        assert magic.stats["fallback"] > 0
        assert magic.certificate.exact
        np.testing.assert_allclose(magic.decision, refit.decision, atol=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_all_on_margin(fit_intercept):
    small = build("mixture")
    n = len(small.y)
    out = [np.array([j]) for j in range(n)] + [np.array([1, 4, 9])]
    check = AllOnMargin.of(small.K, small.y, small.weight, fit_intercept, out)
    for column, rows in enumerate([np.zeros(0, dtype=int), *out]):
        train = np.setdiff1d(np.arange(n), rows)
        u = small.K[np.ix_(train, train)] @ check.coef[train, column]
        b = (small.y[train] - u).mean() if fit_intercept else 0.0
        np.testing.assert_allclose(u + b, small.y[train], atol=1e-8)
        assert not check.coef[rows, column].any()
    assert AllOnMargin.of(np.ones((4, 4)), np.array([1, -1, 1, -1.0]), np.ones(4), True, []) is None


def test_all_on_margin_is_used():
    """A kernel near the identity: with a large C every row is on the margin in every fold."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(30) % 2 == 0, 1.0, -1.0)
    Z = rng.normal(size=(30, 500)) / np.sqrt(500)
    K = Z @ Z.T
    magic = exactcv.cross_validate(
        K, y, kernel="precomputed", Cs=[100.0], method="magic", output="decision"
    )
    assert magic.stats["iterations"].sum() == 0
    exact = exactcv.cross_validate(K, y, kernel="precomputed", Cs=[100.0], output="decision")
    np.testing.assert_allclose(magic.decision, exact.decision, atol=1e-8)


@pytest.mark.parametrize("method", ["magic", "consolidated"])
def test_folds_that_smoothing_cannot_reach_start_from_the_sets_of_the_full_solution(method):
    """A nearly singular kernel with an intercept: rows that differ by 1e-9 of f's range decide."""
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(0, 10, 50))[:, None] * (1 + 0.1 * rng.normal(size=(50, 2)))
    y = np.where(rng.random(50) < 0.5, 1.0, -1.0)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    grid = {"lambdas": [1.0, 0.3], "gamma": 1.0, "tol": 1e-6, "output": "decision"}
    found = exactcv.cross_validate(X, y, method=method, **grid)
    refit = exactcv.cross_validate(X, y, method="refit", **grid)
    np.testing.assert_allclose(found.decision, refit.decision, atol=1e-5)
    assert found.certificate.exact and found.stats["fallback"] == 0
    assert found.stats["from_sets"].min() > 10
    assert found.stats["iterations"].max() < 5000  # smoothing alone: 130,000, and 79 fallbacks


@pytest.mark.filterwarnings("ignore::exactcv.exceptions.NotPSDWarning")
@pytest.mark.parametrize("cv", ["loo", 5])
def test_a_kernel_that_is_not_psd_skips_the_smoothing(cv):
    """Its smoothed problems have no minimum: all steps at all levels led nowhere, and took long."""
    A = np.random.default_rng(0).normal(size=(30, 30))
    y = np.arange(30) % 2
    result = exactcv.cross_validate(
        A + A.T, y, kernel="precomputed", Cs=[1.0], cv=cv, method="magic", random_state=0
    )
    assert result.stats["from_sets"].sum() == result.n_folds
    assert result.stats["iterations"].sum() == 0
    assert not result.certificate.exact and result.certificate.kkt[0] <= 1e-8


def test_smoothing_ends_where_it_cannot_lead_anywhere():
    """With a kernel that is not positive semidefinite, and where rounding hides the smoothing."""
    small, cancel = build("overlap"), np.zeros(1, dtype=np.int32)
    n = len(small.y)
    none = np.zeros((n, 1), dtype=bool)
    for K, most in ((-small.K, 0), (1e20 * small.K, 1)):
        other = Small(K, small.y, small.weight)
        batch = batch_of(other, 50.0, none)
        inverses = Inverses(K, small.weight, 50.0, True)
        start = K @ (50.0 * small.y)[:, None]
        found = solve_hinge_columns(batch, start, inverses, 1.0, cancel)
        assert found.effort.levels <= most
