"""Of numbers, the corrected score equals a plain loop too, and does not promise too much."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import get_scorer
from sklearn.model_selection import GroupKFold, KFold

from exactcv import SVRCV, InputError, QuantileSVRCV
from exactcv.crossval.corrected import draws
from exactcv.crossval.numbers_scoring import _KnownNumbers

CS, GAMMAS = [0.05, 0.5, 5.0], [0.1, 1.0]


def noisy_line(n: int = 30, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, 100.0 + X[:, 0] + rng.normal(size=n)


def plain_loop(
    model: SVRCV, y: np.ndarray, scoring: str, weight: np.ndarray | None, unit: np.ndarray
) -> np.ndarray:
    """BBC-CV as the paper writes it, with scikit-learn's scorers; every row is tested once."""
    scorer, table = get_scorer(scoring), model.cv_results_
    # Among equals the smallest C, then the first curve.
    preference = np.argsort(table["param_C"], kind="stable")

    def score(s: int, rows: np.ndarray) -> float:
        if scoring == "r2":  # by the variance of all tests: that of a few rows is far off
            off, all_weight = (y - table["decision"][s]) ** 2, np.ones(len(y))
            all_weight = all_weight if weight is None else weight
            spread = np.cov(y, aweights=all_weight, ddof=0)
            return 1.0 - np.average(off[rows], weights=all_weight[rows]) / spread
        extra = {} if weight is None else {"sample_weight": weight[rows]}
        known = _KnownNumbers(table["decision"][s, rows])
        return scorer(known, np.zeros((len(rows), 1)), y[rows], **extra)

    found, n = [], unit.max() + 1
    for drawn in np.concatenate(list(draws(n, 30, 0))):
        inside = np.concatenate([np.flatnonzero(unit == u) for u in drawn])
        best = max(preference, key=lambda s: score(s, inside))
        found.append(score(best, np.flatnonzero(~np.isin(unit, drawn))))
    return np.array(found)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "scoring",
    [
        "r2",
        "neg_mean_absolute_error",
        "neg_mean_squared_error",
        "neg_root_mean_squared_error",
        "neg_median_absolute_error",  # a scorer that has to be called
    ],
)
def test_equals_a_plain_loop(scoring: str, weighted: bool, monkeypatch: Any) -> None:
    monkeypatch.setattr("exactcv.crossval.corrected._correct_numbers.__kwdefaults__", _FEWER)
    X, y = noisy_line()
    weight = np.random.default_rng(1).integers(1, 4, 30).astype(float) if weighted else None
    model = SVRCV(
        Cs=CS, gamma=GAMMAS, epsilon=[0.1, 0.5], cv=KFold(5), scoring=scoring, store_cv_results=True
    ).fit(X, y, weight)
    corrected = model.corrected_score_
    expected = plain_loop(model, y, scoring, weight, np.arange(30))
    np.testing.assert_allclose(corrected.samples, expected, rtol=1e-10, atol=1e-10)
    assert corrected.apparent == model.best_score_ and corrected.scoring == scoring
    assert corrected.error == pytest.approx(
        1 - corrected.score if scoring == "r2" else -corrected.score
    )
    again = pickle.loads(pickle.dumps(model))
    assert again.corrected_score_.score == corrected.score


_FEWER = {"n_bootstrap": 30, "random_state": 0}


def test_groups_are_drawn_together(monkeypatch: Any) -> None:
    monkeypatch.setattr("exactcv.crossval.corrected._correct_numbers.__kwdefaults__", _FEWER)
    X, y = noisy_line()
    groups = np.repeat(np.arange(10), 3)
    model = SVRCV(Cs=CS, gamma=GAMMAS, cv=GroupKFold(5), store_cv_results=True)
    model.fit(X, y, groups=groups)
    expected = plain_loop(model, y, "r2", None, groups)
    np.testing.assert_allclose(model.corrected_score_.samples, expected, rtol=1e-10, atol=1e-10)


def test_what_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = noisy_line()
    model = SVRCV(Cs=CS, gamma=GAMMAS, cv=5).fit(X, y)
    corrected = model.corrected_score_
    assert model._overview().corrected == (corrected.score, *corrected.interval)
    assert f"R2 after tuning {corrected.score:.4g}" in model.summary()
    assert f"R2 after tuning is {corrected.score:.4g}" in model.methods_text()
    monkeypatch.setattr("exactcv.estimators.kernel_regressor.QUICK", 10)
    later = SVRCV(Cs=CS, gamma=GAMMAS, cv=5).fit(X, y)
    assert later._overview().corrected is None
    assert later.corrected_score_.score == corrected.score


def test_each_quantile_has_its_own() -> None:
    X, y = noisy_line()
    model = QuantileSVRCV(Cs=CS, gamma=GAMMAS, quantiles=(0.2, 0.5), cv=5).fit(X, y)
    low, middle = model.corrected_score_
    assert (low.apparent, middle.apparent) == tuple(model.best_score_)
    assert 0 < middle.error == -middle.score
    assert model._overview().corrected == (middle.error, *middle.error_interval)
    assert f"loss after tuning {middle.error:.4g}" in model.summary()


@pytest.mark.parametrize("y", [np.zeros(8), np.r_[np.zeros(7), 1.0]])
def test_numbers_that_hardly_vary(y: np.ndarray) -> None:
    X = np.arange(8.0)[:, None]
    assert np.isfinite(SVRCV(Cs=CS, gamma=0.1).fit(X, y).corrected_score_.score)
    assert np.isfinite(QuantileSVRCV(Cs=CS, gamma=0.1).fit(X, y).corrected_score_[0].score)


def test_without_a_choice_next_to_nothing_is_gained() -> None:
    """Also of 20 rows, where R2 of the seven or so outside a sample would be a quarter lower."""
    X, y = noisy_line(20)
    corrected = SVRCV(Cs=[0.5], gamma=0.3).fit(X, y).corrected_score_
    assert abs(corrected.optimism) < 0.03


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("estimator", [SVRCV, QuantileSVRCV])
def test_two_rows_are_enough(estimator: Any, n: int) -> None:
    X, y = noisy_line(n)
    model = estimator(Cs=CS, gamma=0.1).fit(X, y)
    assert np.isfinite(np.ravel([model.corrected_score_])[0].score)


def test_no_negative_zeros() -> None:
    X, _ = noisy_line(8)
    model = QuantileSVRCV(Cs=CS, gamma=0.1).fit(X, np.full(8, 3.0))
    assert "loss after tuning 0 (95% interval 0 to 0)" in model.summary()
    assert "-0" not in repr(model.corrected_score_[0])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_one_tested_row() -> None:
    """The fit has no use for a correction; asked for it, it says why there is none."""
    X, y = noisy_line(8)
    one: Any = {"Cs": CS, "gamma": 0.1, "cv": [(np.arange(1, 8), [0])]}
    squares = SVRCV(scoring="neg_mean_squared_error", **one).fit(X, y)
    for model in squares, QuantileSVRCV(**one).fit(X, y):
        assert "corrected" in model.summary()
        with pytest.raises(InputError, match="a single group or row"):
            _ = model.corrected_score_
    with pytest.raises(InputError, match=r"'r2' is NaN at every grid point: .*R2 two rows"):
        SVRCV(**one).fit(X, y)


def test_one_se_is_judged_as_one_se() -> None:
    X, y = noisy_line()
    models = [SVRCV(Cs=CS, gamma=0.3, cv=5, select=select).fit(X, y) for select in ("min", "1se")]
    first, second = (model.corrected_score_.chosen @ np.log(CS) for model in models)
    assert second <= first


@pytest.mark.parametrize("kind", ["absolute", "squared", "pinball"])
def test_noise_is_seen_as_noise(kind: str) -> None:
    """The corrected error is not below that on new rows by more than chance; the least error is."""
    gap, gained = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
        new_X, new_y = rng.normal(size=(2000, 3)), rng.normal(size=2000)
        grid: dict[str, Any] = {"Cs": np.geomspace(0.01, 10, 6), "gamma": [0.1, 0.3, 1.0], "cv": 5}
        model: Any
        if kind == "pinball":
            model = QuantileSVRCV(quantiles=0.2, **grid).fit(X, y)
            corrected, truth = model.corrected_score_[0], -model.score(new_X, new_y)
        else:
            model = SVRCV(scoring=f"neg_mean_{kind}_error", **grid).fit(X, y)
            corrected = model.corrected_score_
            off = np.abs(new_y - model.predict(new_X))
            truth = float(np.mean(off if kind == "absolute" else off**2))
        gap.append(corrected.error - truth)
        gained.append(corrected.error + corrected.apparent)
    chance = np.std(gap, ddof=1) / np.sqrt(len(gap))
    assert np.mean(gap) > -2 * chance
    assert np.mean(gained) > 2 * np.std(gained, ddof=1) / np.sqrt(len(gained))
