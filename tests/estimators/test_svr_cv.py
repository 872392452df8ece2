"""`SVRCV` and `QuantileSVRCV`: what is chosen, what is predicted, and intervals that hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from _numbers import wave
from scipy import sparse
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold, LeaveOneOut, cross_val_predict
from sklearn.svm import SVR

import exactcv
from exactcv import SVRCV, QuantileSVRCV

GRID: dict[str, Any] = {"Cs": [0.1, 1.0, 10.0], "gamma": [0.2, 1.0]}


# ---- SVRCV ---------------------------------------------------------------------------------------


def test_choice_is_the_best_of_the_grid() -> None:
    X, y = wave(50)
    model = SVRCV(**GRID, epsilon=[0.05, 0.3], store_cv_results=True).fit(X, y)
    table = model.cv_results_
    assert len(table["params"]) == 12 and model.best_index_ == np.argmax(table["mean_test_score"])
    for k, point in enumerate(table["params"]):
        result = exactcv.cross_validate(
            X, y, loss="epsilon_insensitive", Cs=[point["C"]], gamma=point["gamma"],
            epsilon=point["epsilon"],
        )  # fmt: skip
        np.testing.assert_allclose(table["decision"][k], result.decision[0], atol=1e-7)
        assert table["mean_test_score"][k] == pytest.approx(r2_score(y, result.decision[0]))
    best = table["params"][model.best_index_]
    assert (model.C_, model.gamma_, model.epsilon_) == (best["C"], best["gamma"], best["epsilon"])
    np.testing.assert_allclose(model.left_out_, table["decision"][model.best_index_])


def test_model_is_that_of_svr() -> None:
    X, y = wave(60)
    model = SVRCV(**GRID, cv=5).fit(X, y)
    theirs = SVR(C=model.C_, gamma=model.gamma_, epsilon=model.epsilon_, tol=1e-8).fit(X, y)
    Z = wave(20, seed=1)[0]
    np.testing.assert_allclose(model.predict(Z), theirs.predict(Z), atol=1e-5)
    assert model.dual_coef_.shape == (1, len(model.support_))
    assert model.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-5)
    by_hand = rbf_kernel(Z, model.support_vectors_, gamma=model.gamma_) @ model.dual_coef_[0]
    np.testing.assert_allclose(model.predict(Z), by_hand + model.intercept_[0])


def test_sparse_precomputed_and_weights() -> None:
    X, y = wave(40)
    plain = SVRCV(Cs=[1.0, 5.0], gamma=0.5, cv=4).fit(X, y)
    np.testing.assert_allclose(
        SVRCV(Cs=[1.0, 5.0], gamma=0.5, cv=4).fit(sparse.csr_matrix(X), y).predict(X),
        plain.predict(X), atol=1e-9,
    )  # fmt: skip
    K = rbf_kernel(X, gamma=0.5)
    given = SVRCV(Cs=[1.0, 5.0], kernel="precomputed", cv=4).fit(K, y)
    np.testing.assert_allclose(given.predict(K), plain.predict(X), atol=1e-7)
    np.testing.assert_allclose(
        given.predict_interval(K[:5]), plain.predict_interval(X[:5]), atol=1e-6
    )
    weight = np.tile([1.0, 0.0], 20)
    half = SVRCV(Cs=[1.0, 5.0], gamma=0.5).fit(X, y, sample_weight=weight)
    alone = SVRCV(Cs=[1.0, 5.0], gamma=0.5).fit(X[::2], y[::2])
    np.testing.assert_allclose(half.predict(X), alone.predict(X), atol=1e-9)
    assert np.isnan(half.left_out_[1::2]).all()


def test_scoring_and_one_se() -> None:
    X, y = wave(50)
    Cs = np.logspace(-2, 2, 9)
    best = SVRCV(Cs=Cs, gamma=0.5, scoring="neg_mean_absolute_error").fit(X, y)
    errors = [
        np.abs(y - one).mean()
        for one in exactcv.cross_validate(
            X, y, loss="epsilon_insensitive", Cs=Cs, gamma=0.5
        ).decision
    ]
    assert -best.best_score_ == pytest.approx(min(errors))
    smaller = SVRCV(Cs=Cs, gamma=0.5, select="1se").fit(X, y)
    assert smaller.C_ <= SVRCV(Cs=Cs, gamma=0.5).fit(X, y).C_


def test_default_grid_grows_and_follows_units() -> None:
    X, y = wave(30)
    one = SVRCV(cv=3).fit(X, y)
    many = SVRCV(cv=3, epsilon=1e5).fit(X, 1e6 * y)
    assert pytest.approx(1e6 * one.C_) == many.C_ and many.gamma_ == pytest.approx(one.gamma_)
    np.testing.assert_allclose(many.predict(X), 1e6 * one.predict(X), rtol=1e-6)


def test_words_are_of_numbers() -> None:
    X, y = wave(40)
    for source in (
        SVRCV(**GRID, epsilon=[0.1, 0.2]).fit(X, y),
        exactcv.cross_validate(X, y, loss="pinball", Cs=[1.0, 2.0]),
    ):
        text = source.summary()
        assert "R2" in text and "MAE" in text and "loss" in text
        assert "wrong" not in text and "class" not in text
    noise = np.random.default_rng(0).normal(size=40)
    assert "explain nothing" in SVRCV(Cs=[100.0], gamma=5.0).fit(X, noise).summary()


@pytest.mark.parametrize("kind", [SVRCV, QuantileSVRCV])
def test_an_r2_of_1_for_numbers_that_do_not_vary_is_no_praise(kind: Any) -> None:
    X, _ = wave(12)
    text = " ".join(kind(Cs=[1.0], gamma=0.5).fit(X, np.full(12, 2.5)).summary().split())
    assert "y is 2.5 in every tested row: there is nothing to learn" in text


# ---- intervals -----------------------------------------------------------------------------------


def brute_force(model: Any, X: Any, y: Any, Z: Any, folds: Any, coverage: float) -> Any:
    """(values of every fold's model at Z, R, fold of each row), by one refit a fold."""
    values, score, fold = [], np.empty(len(y)), np.empty(len(y), dtype=int)
    for k, (train, test) in enumerate(folds.split(X)):
        fitted = SVR(
            C=model.C_, gamma=model.gamma_, epsilon=model.epsilon_, tol=1e-10
        ).fit(X[train], y[train])  # fmt: skip
        values.append(fitted.predict(Z))
        score[test], fold[test] = np.abs(y[test] - fitted.predict(X[test])), k
    return np.array(values), score, fold


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.95])
@pytest.mark.parametrize("method", ["jackknife+", "cv+", "jackknife-minmax"])
def test_intervals_equal_brute_force(method: Any, coverage: float) -> None:
    X, y = wave(40)
    Z = wave(15, seed=3)[0]
    folds = KFold(8) if method == "cv+" else LeaveOneOut()
    model = SVRCV(Cs=[2.0], gamma=0.5, cv=folds).fit(X, y)
    values, score, fold = brute_force(model, X, y, Z, folds, coverage)
    k = int(np.ceil(coverage * 41 - 1e-9))
    if method == "jackknife-minmax":
        reach = np.sort(score)[k - 1]
        expected = np.column_stack([values.min(axis=0) - reach, values.max(axis=0) + reach])
    else:
        low = np.sort(values[fold] - score[:, None], axis=0)[40 - k]
        high = np.sort(values[fold] + score[:, None], axis=0)[k - 1]
        expected = np.column_stack([low, high])
    np.testing.assert_allclose(model.predict_interval(Z, coverage, method), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("ours", "theirs"), [("jackknife+", "plus"), ("jackknife-minmax", "minmax")]
)
def test_intervals_equal_those_of_mapie(ours: Any, theirs: str) -> None:
    mapie = pytest.importorskip("mapie.regression")
    X, y = wave(60)
    Z = wave(20, seed=3)[0]
    model = SVRCV(Cs=[2.0], gamma=0.5).fit(X, y)
    regressor = mapie.CrossConformalRegressor(
        SVR(C=2.0, gamma=0.5, tol=1e-10), confidence_level=0.9, method=theirs, cv=LeaveOneOut()
    )
    regressor.fit_conformalize(X, y)
    ends = regressor.predict_interval(Z)[1][:, :, 0]
    np.testing.assert_allclose(model.predict_interval(Z, 0.9, ours), ends, atol=1e-6)


def test_folds_of_repeated_rows_have_their_own_models() -> None:
    X, y = wave(15)
    X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    Z = wave(10, seed=3)[0]
    model = SVRCV(Cs=[2.0], gamma=0.5, epsilon=0.0).fit(X, y)
    values, score, fold = brute_force(model, X, y, Z, LeaveOneOut(), 0.8)
    k = int(np.ceil(0.8 * 31 - 1e-9))
    high = np.sort(values[fold] + score[:, None], axis=0)[k - 1]
    np.testing.assert_allclose(model.predict_interval(Z, 0.8)[:, 1], high, atol=1e-5)


def test_too_few_rows_give_infinite_intervals() -> None:
    X, y = wave(8)
    ends = SVRCV(Cs=[1.0], gamma=1.0).fit(X, y).predict_interval(X, 0.95)
    assert (ends[:, 0] == -np.inf).all() and (ends[:, 1] == np.inf).all()


def test_coverage_is_kept() -> None:
    """Over 500 sets the share of new values inside is at least 1 - 2 alpha, and near 1 - alpha."""
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(500):
        X = rng.uniform(-2, 2, size=(31, 1))
        y = np.sin(2 * X[:, 0]) + (0.2 + 0.2 * np.abs(X[:, 0])) * rng.normal(size=31)
        model = SVRCV(Cs=[1.0], gamma=1.0, cv=3).fit(X[:30], y[:30])
        low, high = model.predict_interval(X[30:], 0.8)[0]
        inside.append(low <= y[30] <= high)
    share = np.mean(inside)
    error = np.sqrt(0.8 * 0.2 / 500)
    assert share >= 0.6 and abs(share - 0.8) <= 4 * error


def test_what_intervals_promise_is_said() -> None:
    X, y = wave(30)
    model = SVRCV(Cs=[1.0], gamma=0.5, cv=5).fit(X, y)
    assert "at least 80%" in model.coverage_text(0.9)
    assert "at least 90%" in model.coverage_text(0.9, "jackknife-minmax")
    assert "cv+" in model.coverage_text(0.9, "cv+")
    for coverage, method in ((1.0, "jackknife+"), (0.9, "jackknife")):
        with pytest.raises(exactcv.ExactCVError):
            model.predict_interval(X, coverage, method)  # type: ignore[arg-type]


# ---- quantiles -----------------------------------------------------------------------------------


def test_every_quantile_has_its_own_point() -> None:
    X, y = wave(50)
    model = QuantileSVRCV(quantiles=[0.1, 0.5, 0.9], **GRID).fit(X, y)
    for q, tau in enumerate(model.quantiles_):
        found = [
            exactcv.cross_validate(X, y, loss="pinball", quantile=tau, Cs=GRID["Cs"], gamma=gamma)
            for gamma in GRID["gamma"]
        ]
        least = min(result.error.min() for result in found)
        assert -model.best_score_[q] == pytest.approx(least, rel=1e-8)
        np.testing.assert_allclose(model.cv_results_[q]["error"][:3], found[0].error, rtol=1e-7)


def test_crossings_are_counted_and_gone_with_sorting() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 1)), rng.normal(size=40)
    Z = np.linspace(-3, 3, 200)[:, None]
    settings: dict[str, Any] = {"quantiles": np.arange(1, 10) / 10, "Cs": [100.0], "gamma": 20.0}
    free = QuantileSVRCV(crossing="allow", **settings).fit(X, y)
    assert free.crossings_ > 0 and (np.diff(free.predict(Z), axis=1) < 0).any()
    tidy = QuantileSVRCV(**settings).fit(X, y)
    assert (np.diff(tidy.predict(Z), axis=1) >= 0).all()
    np.testing.assert_allclose(np.sort(free.predict(Z), axis=1), tidy.predict(Z))
    assert tidy.score(X, y) >= free.score(X, y)


def test_conformalised_quantiles_equal_brute_force() -> None:
    X, y = wave(40)
    Z = wave(10, seed=2)[0]
    model = QuantileSVRCV(quantiles=[0.1, 0.9], Cs=[1.0], gamma=0.5).fit(X, y)
    values = np.empty((2, 40, 10))
    left_out = np.empty((2, 40))
    for q, tau in enumerate((0.1, 0.9)):
        for i, (train, test) in enumerate(LeaveOneOut().split(X)):
            one = exactcv.cross_validate(
                X[train], y[train], loss="pinball", quantile=tau, Cs=[1.0], gamma=0.5, cv=2
            )
            at = lambda rows: (  # noqa: E731
                rbf_kernel(rows, X[train], gamma=0.5) @ one.coef[0] + one.intercept[0]  # noqa: B023
            )
            values[q, i], left_out[q, test] = at(Z), at(X[test])
    score = np.maximum(left_out[0] - y, y - left_out[1])
    k = int(np.ceil(0.8 * 41 - 1e-9))
    low = np.sort(values[0] - score[:, None], axis=0)[40 - k]
    high = np.sort(values[1] + score[:, None], axis=0)[k - 1]
    ends = model.predict_interval(Z, 0.8)
    np.testing.assert_allclose(ends, np.sort(np.column_stack([low, high]), axis=1), atol=1e-6)
    assert "0.1 and 0.9" in model.coverage_text(0.8)


def test_single_quantile_and_refusals() -> None:
    X, y = wave(30)
    assert QuantileSVRCV(quantiles=0.3, Cs=[1.0], gamma=1.0).fit(X, y).predict(X).shape == (30,)
    for wrong in ([], [0.5, 0.5], [0.0, 0.5], 1.5):
        with pytest.raises(exactcv.ExactCVError, match="quantiles"):
            QuantileSVRCV(quantiles=wrong).fit(X, y)
    with pytest.raises(exactcv.ExactCVError, match="two quantiles"):
        QuantileSVRCV(quantiles=0.3, Cs=[1.0]).fit(X, y).predict_interval(X)
    with pytest.raises(exactcv.ExactCVError, match="epsilon"):
        SVRCV(epsilon=[]).fit(X, y)


def test_in_scikit_learns_tools() -> None:
    X, y = wave(30)
    values = cross_val_predict(SVRCV(Cs=[1.0], gamma=0.5), X, y, cv=3)
    assert r2_score(y, values) > 0.0


@pytest.mark.parametrize(
    "scoring", ["accuracy", "leave_pair_out_auc", "roc_auc", "average_precision", "neg_log_loss"]
)
def test_scores_of_classes_are_refused_for_numbers(scoring: str) -> None:
    X, y = wave(12)
    with pytest.raises(exactcv.ExactCVError, match=f"{scoring}' is of classes"):
        exactcv.SVRCV(Cs=[1.0], scoring=scoring).fit(X, y)


def test_a_score_that_is_not_known_is_not_told_of_scores_of_classes() -> None:
    X, y = wave(12)
    with pytest.raises(exactcv.ExactCVError, match=r"is not known; see .*names\(\)$"):
        exactcv.SVRCV(Cs=[1.0], scoring="foo").fit(X, y)


@pytest.mark.filterwarnings("error")
def test_two_rows_are_enough() -> None:
    """One row has no R2: there is no standard error of it, which is no reason to warn."""
    model = exactcv.SVRCV(Cs=[1.0, 10.0]).fit(np.array([[0.0], [1.0]]), np.array([1.0, 2.0]))
    assert np.isfinite(model.predict([[0.5]])).all()
    assert np.isfinite(model.corrected_score_.score)  # by the variance of all tests
