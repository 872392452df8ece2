"""Losses of numbers: the same answers as refits, interior points and scikit-learn's SVR."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _numbers import LOSSES, clarabel_fit, repeated_rows, wave
from sklearn.datasets import load_diabetes
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

import exactcv
from exactcv.types import FloatArray

CS = np.array([0.01, 0.5, 20.0, 1000.0])
losses = pytest.mark.parametrize("name", LOSSES)
intercepts = pytest.mark.parametrize("fit_intercept", [True, False], ids=["b", "no b"])


def both(X: FloatArray, y: FloatArray, **settings: Any) -> tuple[Any, Any]:
    quick = exactcv.cross_validate(X, y, **settings)
    slow = exactcv.cross_validate(X, y, method="refit", **settings)
    assert quick.certificate.exact and slow.certificate.exact
    return quick, slow


def diabetes(n: int) -> tuple[FloatArray, FloatArray]:
    X, y = load_diabetes(return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(y))[:n]
    return StandardScaler().fit_transform(X[chosen]), y[chosen]


# ---- against refits ------------------------------------------------------------------------------


@losses
@intercepts
@pytest.mark.parametrize("cv", ["loo", 4])
@pytest.mark.parametrize("data", [wave, repeated_rows])
def test_folds_equal_refits(name: str, fit_intercept: bool, cv: Any, data: Any) -> None:
    X, y = data()
    quick, slow = both(X, y, Cs=CS, cv=cv, fit_intercept=fit_intercept, **LOSSES[name])
    np.testing.assert_allclose(quick.decision, slow.decision, atol=1e-6)
    np.testing.assert_allclose(quick.objective, slow.objective, rtol=1e-8, atol=1e-12)


@losses
@intercepts
def test_rows_that_are_there_twice_equal_refits(name: str, fit_intercept: bool) -> None:
    """Equal in x and y, with other weights: one row to the engine, whatever the loss."""
    X, y = wave(16)
    X, y = np.repeat(X, [1, 2, 3, 1] * 4, axis=0), np.repeat(y, [1, 2, 3, 1] * 4)
    weight = np.tile([1.0, 2.0, 0.5, 1.0], 7)
    settings: dict[str, Any] = {"Cs": CS, "fit_intercept": fit_intercept, "gamma": 0.5}
    quick, slow = both(X, y, sample_weight=weight, **settings, **LOSSES[name])
    np.testing.assert_allclose(quick.decision, slow.decision, atol=1e-6)
    assert quick.stats["fallback"] == 0


@pytest.mark.parametrize("name", ["tube", "absolute", "median", "low", "high"])
@pytest.mark.parametrize("seed", range(3))
def test_many_rows_in_few_places_of_a_line(name: str, seed: int) -> None:
    """Other numbers at the same place: when one row leaves its knot, its neighbour comes to one."""
    rng = np.random.default_rng(seed)
    x = np.round(rng.uniform(0, 3, 60), 1)
    y = np.round(np.sin(2 * x) + 0.3 * rng.normal(size=60), 2)
    quick, slow = both(x[:, None], y, Cs=[0.01, 1.0, 100.0], gamma=1.0, **LOSSES[name])
    np.testing.assert_allclose(quick.decision, slow.decision, atol=1e-6)


@losses
@pytest.mark.parametrize("kernel", ["linear", "laplacian", "poly"])
def test_kernels(name: str, kernel: Any) -> None:
    X, y = wave(30)
    settings = {"kernel": kernel, "gamma": 0.5, "coef0": 1.0, "degree": 2, "Cs": CS[:3], "cv": 3}
    quick, slow = both(X, y, **settings, **LOSSES[name])
    np.testing.assert_allclose(quick.decision, slow.decision, atol=1e-6)


@losses
@pytest.mark.parametrize("cv", ["loo", 3])
def test_weights(name: str, cv: Any) -> None:
    """Integer weights are repeated rows, and weight 0 is absence."""
    X, y = wave(24)
    weight = np.tile([1.0, 2.0, 0.0, 1.0], 6)
    quick, slow = both(X, y, sample_weight=weight, gamma=0.5, Cs=CS, cv=cv, **LOSSES[name])
    np.testing.assert_allclose(quick.decision, slow.decision, atol=1e-6)
    assert np.isnan(quick.decision[:, weight == 0]).all()
    times = weight.astype(int)
    longer = exactcv.cross_validate(
        np.repeat(X, times, axis=0), np.repeat(y, times), gamma=0.5, Cs=CS, cv=3, **LOSSES[name]
    )
    there = weight > 0
    np.testing.assert_allclose(quick.coef[:, there].sum(axis=1), 0.0, atol=1e-9 * CS.max())
    np.testing.assert_allclose(quick.intercept, longer.intercept, atol=1e-6)


@losses
def test_three_rows(name: str) -> None:
    X, y = wave(3)
    for cv in ("loo", 3):
        quick, slow = both(X, y, Cs=CS[:3], cv=cv, **LOSSES[name])
        np.testing.assert_allclose(quick.decision, slow.decision, atol=1e-7)


@losses
@pytest.mark.parametrize("value", [0.0, 0.1, -3e5])
def test_constant_numbers_are_found(name: str, value: float) -> None:
    X, _ = wave(20)
    for cv in ("loo", 4):
        result = exactcv.cross_validate(X, np.full(20, value), Cs=CS, cv=cv, **LOSSES[name])
        assert result.certificate.exact
        np.testing.assert_allclose(result.decision, value, rtol=4e-15, atol=1e-300)
        assert (result.error <= 4e-15 * abs(value)).all() and (result.coef == 0.0).all()


@losses
def test_grid_of_lambdas(name: str) -> None:
    X, y = wave(25)
    quick, slow = both(X, y, lambdas=[1.0, 0.05, 0.002], cv=4, **LOSSES[name])
    np.testing.assert_allclose(quick.decision, slow.decision, atol=1e-6)


# ---- units ---------------------------------------------------------------------------------------


@losses
@intercepts
@pytest.mark.parametrize("scale", [1e6, 1e-6, 1e-40])
def test_scaled_numbers_have_scaled_answers(name: str, fit_intercept: bool, scale: float) -> None:
    X, y = wave()
    settings = dict(LOSSES[name])
    plain = exactcv.cross_validate(X, y, Cs=CS, fit_intercept=fit_intercept, **settings)
    degree = 2 if name == "ridge" else 1
    if "epsilon" in settings:
        settings["epsilon"] *= scale
    Cs = CS * scale ** (2 - degree)
    scaled = exactcv.cross_validate(X, scale * y, Cs=Cs, fit_intercept=fit_intercept, **settings)
    assert scaled.certificate.exact and scaled.best == plain.best
    np.testing.assert_allclose(scaled.decision / scale, plain.decision, atol=1e-8)
    np.testing.assert_allclose(scaled.error / scale**degree, plain.error, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(scaled.objective / scale**degree, plain.objective, rtol=1e-8)


@losses
def test_distant_numbers_have_shifted_answers(name: str) -> None:
    X, y = wave()
    y = np.round(y * 2**20) / 2**20  # so that the sum below is exact
    plain = exactcv.cross_validate(X, y, Cs=CS, **LOSSES[name])
    shifted = exactcv.cross_validate(X, y + 2.0**20, Cs=CS, **LOSSES[name])
    assert shifted.certificate.exact
    np.testing.assert_allclose(shifted.decision - 2.0**20, plain.decision, atol=1e-8)
    np.testing.assert_allclose(shifted.coef, plain.coef, atol=1e-7 * CS.max())


def test_a_slope_wrong_by_little_is_not_exact() -> None:
    """With numbers near a million, a wrong solution must not pass because they are large."""
    from exactcv.crossval.run import KernelRows, Plan
    from exactcv.judge.certificate import judge_for
    from exactcv.problem.folds import leave_one_out_folds
    from exactcv.problem.grid import Grid
    from exactcv.problem.units import Units

    X, y = wave(30)
    result = exactcv.cross_validate(X, y, loss="pinball", Cs=[1.0], gamma=1.0)
    plan = Plan.of(method="exact", loss="pinball", fit_intercept=True, want_decision=True, tol=1e-8)
    grid = Grid(np.ones(1), np.ones(1), False)
    rows = KernelRows(rbf_kernel(X, gamma=1.0))
    task = plan.task(rows, y + 1e6, np.ones(30), leave_one_out_folds(30), grid)
    inner = Units.of(task.problem).inside(task)
    coef = result.coef[0] / Units.of(task.problem).scale
    coef[[0, 1]] += [1e-5, -1e-5]
    h = inner.problem.times(coef[None])
    judge, Cs = judge_for(inner.problem), inner.grid.Cs
    kkt = judge.figures(h, coef[None], judge.intercepts(h, coef[None], Cs), Cs)[0, 0]
    assert kkt > 1e-6


# ---- against others ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "ridge"])
@intercepts
def test_objective_and_values_equal_interior_points(name: str, fit_intercept: bool) -> None:
    for X, y in (wave(35), repeated_rows(35)):
        K = rbf_kernel(X, gamma=0.7)
        for C in (0.1, 5.0, 100.0):
            low, high, values = clarabel_fit(K, y, C, fit_intercept, **LOSSES[name])
            ours = exactcv.cross_validate(
                K, y, kernel="precomputed", Cs=[C], cv=2, fit_intercept=fit_intercept,
                **LOSSES[name],
            )  # fmt: skip
            slack = 1e-8 * (1.0 + high)
            assert low - slack <= ours.objective[0] * len(y) * C <= high + slack
            assert high - low <= 1e-6 * (1.0 + high)
            f, theirs = K @ ours.coef[0], values
            if fit_intercept:  # interior points pick another intercept where several are optimal
                f, theirs = f - f.mean(), values - values.mean()
            # What their gap leaves open: ||f - f*|| <= sqrt(2 gap), and k(x, x) = 1.
            np.testing.assert_allclose(
                f, theirs, atol=1e-5 + 2.0 * np.sqrt(2.0 * max(high - low, 0.0))
            )


@pytest.mark.parametrize("epsilon", [0.0, 5.0, 40.0])
def test_svr_on_diabetes(epsilon: float) -> None:
    """scikit-learn's solver stops at its tolerance, and its kernel is single precision."""
    X, y = diabetes(150)
    folds = KFold(5)
    Cs = [1.0, 30.0, 300.0]
    result = exactcv.cross_validate(
        X, y, loss="epsilon_insensitive", epsilon=epsilon, Cs=Cs, gamma=0.05, cv=folds
    )
    for l, C in enumerate(Cs):
        model = SVR(C=C, epsilon=epsilon, gamma=0.05, tol=1e-7)
        for train, test in folds.split(X):
            theirs = model.fit(X[train], y[train]).predict(X[test])
            np.testing.assert_allclose(result.decision[l, test], theirs, atol=2e-4 * y.std())


def test_least_squares_is_kernel_ridge() -> None:
    X, y = diabetes(120)
    Cs, folds = [0.1, 3.0], KFold(4)
    result = exactcv.cross_validate(
        X, y, loss="least_squares", Cs=Cs, gamma=0.05, cv=folds, fit_intercept=False
    )
    for l, C in enumerate(Cs):
        for train, test in folds.split(X):
            model = KernelRidge(alpha=1 / C, kernel="rbf", gamma=0.05).fit(X[train], y[train])
            np.testing.assert_allclose(result.decision[l, test], model.predict(X[test]), rtol=1e-8)


def test_quantile_is_a_quantile() -> None:
    """Below the tau-quantile lie at most tau n rows, and with those on it at least tau n."""
    X, y = wave(80)
    for tau in (0.01, 0.05, 0.3, 0.5, 0.9, 0.99):
        result = exactcv.cross_validate(X, y, loss="pinball", quantile=tau, Cs=CS, gamma=1.0)
        for l in range(len(CS)):
            u = rbf_kernel(X, gamma=1.0) @ result.coef[l] + result.intercept[l]
            below, at_most = (y < u - 1e-8).mean(), (y <= u + 1e-8).mean()
            assert below <= tau + 1e-12 and at_most >= tau - 1e-12


def test_callable_kernel_and_splitters() -> None:
    X, y = wave(30)
    folds = [(np.arange(10, 30), np.arange(10)), (np.arange(15), np.arange(15, 30))]
    settings = {"loss": "epsilon_insensitive", "Cs": [1.0, 10.0], "cv": folds}
    ours = exactcv.cross_validate(X, y, kernel=lambda a, b: laplacian_kernel(a, b, 0.5), **settings)
    named = exactcv.cross_validate(X, y, kernel="laplacian", gamma=0.5, **settings)
    np.testing.assert_allclose(ours.decision, named.decision, atol=1e-8)


# ---- what a result says --------------------------------------------------------------------------


def test_figures_of_the_result() -> None:
    from sklearn.metrics import mean_absolute_error, mean_pinball_loss, r2_score

    X, y = wave()
    result = exactcv.cross_validate(X, y, loss="pinball", quantile=0.3, Cs=CS, cv=4)
    for l in range(len(CS)):
        values = result.decision[l]
        assert result.error[l] == pytest.approx(mean_pinball_loss(y, values, alpha=0.3))
        assert result.mae[l] == pytest.approx(mean_absolute_error(y, values))
        assert result.r2[l] == pytest.approx(r2_score(y, values))
        assert result.rmse[l] == pytest.approx(np.sqrt(np.mean((y - values) ** 2)))
    np.testing.assert_allclose(result.score("r2"), result.r2)
    np.testing.assert_allclose(result.fold_error.mean(axis=1), result.error)
    np.testing.assert_allclose(result.se, result.fold_error.std(axis=1, ddof=1) / 2.0, rtol=1e-12)
    low, high = result.interval.T
    assert (low < result.error).all() and (result.error < high).all()
    assert result.best == np.argmin(result.error)
    assert result.error[result.one_se] <= result.error[result.best] + result.se[result.best]
    assert "n_errors" not in result.to_frame() and "r2" in result.to_frame()
    assert isinstance(result, exactcv.RegressionResult)


def test_corrected_loss_is_no_better_than_the_least() -> None:
    X = wave(60)[0]
    rng = np.random.default_rng(0)
    result = exactcv.cross_validate(X, rng.normal(size=60), loss="pinball", Cs=np.logspace(-2, 3))
    corrected = result.corrected(200, random_state=0)
    assert corrected.error >= result.error[result.best]
    low, high = corrected.error_interval
    assert low < corrected.error < high and corrected.apparent == -result.error[result.best]
    scaled = exactcv.cross_validate(
        X, 1e-6 * np.random.default_rng(0).normal(size=60), loss="pinball",
        Cs=1e-6 * np.logspace(-2, 3),
    )  # fmt: skip
    again = scaled.corrected(200, random_state=0)
    assert again.error == pytest.approx(1e-6 * corrected.error, rel=1e-6)
    with pytest.raises(exactcv.ExactCVError, match="leave scoring out"):
        result.corrected(scoring="r2")


def test_default_grid_follows_the_numbers() -> None:
    X, y = wave()
    one = exactcv.cross_validate(X, y, loss="pinball", cv=4)
    many = exactcv.cross_validate(X, 1e6 * y, loss="pinball", cv=4)
    np.testing.assert_allclose(many.Cs, 1e6 * one.Cs, rtol=1e-9)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon": -1.0}, "epsilon must be a number, 0 or more"),
        ({"quantile": 1.0}, "quantile must be a number between 0 and 1"),
        ({"class_weight": "balanced"}, "class_weight goes with classes"),
        ({"method": "sir"}, "does not support loss='pinball'"),
        (
            {"approx": "rff", "method": "refit"},
            "approx='rff' goes with method='exact' and a loss of 'hinge'",
        ),
        ({"y": ["a"] * 40}, "y"),
        ({"y": [np.nan] * 40}, "missing"),
        ({"cv": [([0], [1]), ([], [2])]}, "fold 1"),
    ],
)
def test_what_is_refused(settings: dict[str, Any], message: str) -> None:
    X, y = wave()
    given = {"y": y, "loss": "pinball"} | settings
    with pytest.raises(exactcv.ExactCVError, match=message):
        exactcv.cross_validate(X, **given)


# ---- what was once taken from the hinge ----------------------------------------------------------


@pytest.mark.parametrize("shift", [1e6, -1e6])
@pytest.mark.parametrize("loss", ["tube", "median"])
def test_a_wrong_slope_is_rejected_wherever_the_numbers_are(shift: float, loss: str) -> None:
    """f wrong by a hundredth of x: nothing beside a million, but not beside the spread of y."""
    from exactcv.algorithms import REGISTRY, Support
    from exactcv.algorithms.refit import METHOD as REFIT

    class Wrong:
        support = Support(
            summary="wrong on purpose", paper="none", losses=REFIT.support.losses, folds=("any",)
        )

        def run(self, task: Any, ledger: Any, workers: Any) -> dict[str, Any]:
            found = REFIT.run(task, ledger, workers)
            coef = ledger.coef[0].copy()
            inside = np.argsort(np.abs(np.abs(coef) - 0.5 * task.grid.Cs[0]))[:2]
            coef[inside] += [1e-2, -1e-2]
            ledger.kkt[:, -1] = ledger.gap[:, -1] = np.nan  # so that it is not kept as the better
            ledger.full(0, coef)
            return found

    X, y = wave(30)
    settings: dict[str, Any] = {"Cs": [1.0], "gamma": 1.0, "cv": 3} | LOSSES[loss]
    REGISTRY["wrong"] = Wrong
    try:
        with pytest.warns(exactcv.NotExactWarning, match="1 of 4 solutions"):
            result = exactcv.cross_validate(X, y + shift, method="wrong", **settings)
    finally:
        del REGISTRY["wrong"]
    assert not result.certificate.exact and result.certificate.kkt[0] > 1e-4
    assert exactcv.cross_validate(X, y + shift, **settings).certificate.exact


def test_folds_of_numbers_are_not_stratified() -> None:
    """Also where the numbers are few whole ones, which could be classes."""
    X, y = wave(31)
    y = np.sort(np.round(y))
    ours = exactcv.cross_validate(X, y, loss="pinball", Cs=[1.0], cv=4)
    plain = exactcv.cross_validate(X, y, loss="pinball", Cs=[1.0], cv=KFold(4))
    np.testing.assert_array_equal(ours.decision, plain.decision)
    with pytest.raises(exactcv.ExactCVError, match="cannot split these data"):
        exactcv.cross_validate(
            X, y + 0.5 * X[:, 0], loss="pinball", Cs=[1.0], cv=StratifiedKFold(4)
        )


@pytest.mark.parametrize("cv", ["loo", 4])
def test_a_tube_around_everything_needs_no_row(cv: Any) -> None:
    X, y = wave(30)
    result = exactcv.cross_validate(X, y, loss="epsilon_insensitive", epsilon=100.0, Cs=CS, cv=cv)
    assert result.certificate.exact
    assert (result.coef == 0.0).all() and (result.error == 0.0).all()
    for train, test in result_folds(cv, 30):
        middle = 0.5 * (y[train].min() + y[train].max())
        np.testing.assert_allclose(result.decision[:, test], middle, atol=1e-12)


def result_folds(cv: Any, n: int) -> list[tuple[Any, Any]]:
    return list(KFold(n if cv == "loo" else cv).split(np.zeros((n, 1))))


def test_words_about_numbers_know_no_classes() -> None:
    X, y = wave(30)
    for name, loss in LOSSES.items():
        result = exactcv.cross_validate(X, y, Cs=[0.1, 1.0], **loss)
        for text in (result.summary(), result.methods_text(), repr(result)):
            assert "class" not in text and "wrong" not in text, name
            assert "accuracy" not in text, name
        assert not result.wrong.any() and not result.n_errors.any()


@pytest.mark.parametrize("name", ["tube", "absolute", "median", "low", "high"])
def test_shares_at_bound_of_each_loss(name: str) -> None:
    """Both ends of the box are bounds, however far from 0; the level 0 inside a tube is none."""
    X, y = wave(40)
    result = exactcv.cross_validate(X, y, Cs=CS, gamma=1.0, cv=4, **LOSSES[name])
    tau = LOSSES[name].get("quantile")
    top, bottom = (CS, CS) if tau is None else (tau * CS, (1.0 - tau) * CS)
    there = np.isclose(result.coef, top[:, None], rtol=1e-8, atol=0.0)
    there |= np.isclose(result.coef, -bottom[:, None], rtol=1e-8, atol=0.0)
    np.testing.assert_allclose(result.to_frame()["at_bound"], there.mean(axis=1))
    assert there[0].mean() > 0.7
