"""The corrected error equals a plain loop over bootstraps, and takes off what the choice gained."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import get_scorer, make_scorer, roc_auc_score
from sklearn.model_selection import GroupKFold, RepeatedStratifiedKFold

from exactcv import SVCCV, cross_validate
from exactcv.crossval.corrected import Points, draws
from exactcv.datasets import make_mixture
from exactcv.exceptions import InputError, InputTypeError
from exactcv.problem.checks import seed_from

CS = [0.05, 0.3, 1.0, 5.0, 30.0]


def noise(n: int = 30, k: int = 2, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.integers(0, k, n)


class Known:
    """A classifier that recites: what scikit-learn's scorers are shown."""

    _estimator_type = "classifier"

    def __init__(self, classes: Any, labels: Any, values: Any):
        self.classes_, self.labels, self.values = classes, labels, values

    def __sklearn_tags__(self) -> Any:
        return SVCCV().__sklearn_tags__()

    def predict(self, X: Any) -> Any:
        return self.labels

    def decision_function(self, X: Any) -> Any:
        return self.values


def plain_loop(
    truth: np.ndarray,
    unit: np.ndarray,
    labels: np.ndarray,
    values: np.ndarray | None,
    preference: np.ndarray,
    scoring: str,
    n_bootstrap: int,
    weight: np.ndarray | None = None,
) -> np.ndarray:
    """BBC-CV as the paper writes it; ``preference`` lists grid points, the first among equals."""
    scorer, rng = get_scorer(scoring), np.random.default_rng(seed_from(0))
    classes = np.unique(truth)

    def score(s: int, tests: np.ndarray) -> float:
        known = Known(classes, labels[s, tests], None if values is None else values[s, tests])
        if scoring == "roc_auc" and len(np.unique(truth[tests])) < 2:
            return np.nan
        extra = {} if weight is None else {"sample_weight": weight[tests]}
        return scorer(known, np.zeros((len(tests), 1)), truth[tests], **extra)

    found = []
    for _ in range(n_bootstrap):
        drawn = rng.integers(0, unit.max() + 1, size=unit.max() + 1)
        inside = np.concatenate([np.flatnonzero(unit == u) for u in drawn])
        outside = np.flatnonzero(~np.isin(unit, drawn))
        scores = {s: np.round(score(s, inside), 12) for s in preference}
        best = max((s for s in preference if scores[s] == scores[s]), key=lambda s: scores[s])
        found.append(score(best, outside))
    return np.array(found)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "scoring",
    [
        "accuracy",
        "balanced_accuracy",
        "f1",
        "f1_macro",
        "matthews_corrcoef",
        "precision",
        "recall",
        "roc_auc",
        "average_precision",
    ],
)
@pytest.mark.parametrize("cv", ["loo", RepeatedStratifiedKFold(n_splits=3, n_repeats=2)])
def test_equals_a_plain_loop(scoring: str, cv: Any) -> None:
    X, y = noise()
    result = cross_validate(X, y, Cs=CS, cv=cv, output="decision")
    unit, truth = result.test_row, y[result.test_row]
    labels = np.where(result.pair_wrong, 1 - truth, truth)
    assert result.pair_decision is not None
    expected = plain_loop(truth, unit, labels, result.pair_decision, np.arange(5), scoring, 40)
    got = result.corrected(40, random_state=0, scoring=scoring)
    np.testing.assert_allclose(got.samples, expected, rtol=0, atol=1e-12)
    known = expected[~np.isnan(expected)]
    assert got.score == pytest.approx(known.mean(), abs=1e-12)
    np.testing.assert_allclose(got.interval, np.percentile(known, [2.5, 97.5]), atol=1e-12)
    assert got.chosen.sum() == 40


@pytest.mark.parametrize("weighted", [False, True])
def test_several_classes_over_gamma_and_C(weighted: bool) -> None:
    X, y = noise(36, 3)
    weight = np.random.default_rng(1).integers(1, 4, 36).astype(float) if weighted else None
    gammas, Cs = [1.0, 0.1], [10.0, 0.5, 2.0]
    model = SVCCV(Cs=Cs, gamma=gammas, cv=4, store_cv_results=True).fit(X, y, weight)
    corrected = model.corrected_score_
    labels = np.array([_labels(d) for d in -model.cv_results_["decision"]])
    # Among equals the smallest C, then the smallest gamma.
    preference = np.lexsort((np.repeat(gammas, 3), np.tile(Cs, 2)))
    expected = plain_loop(y, np.arange(36), labels, None, preference, "accuracy", 100, weight)
    np.testing.assert_allclose(corrected.samples[:100], expected, rtol=0, atol=1e-12)
    assert corrected.apparent == model.best_score_
    assert float(corrected) == corrected.score == pytest.approx(1.0 - corrected.error)


def _labels(decision: np.ndarray) -> np.ndarray:
    votes = np.zeros((len(decision), 3))
    for p, (a, b) in enumerate([(0, 1), (0, 2), (1, 2)]):
        votes[:, a] += decision[:, p] < 0
        votes[:, b] += decision[:, p] > 0
    return votes.argmax(axis=1)


def test_any_callable_as_scorer() -> None:
    X, y = noise()
    own = make_scorer(roc_auc_score, response_method="decision_function")
    models = [
        SVCCV(Cs=CS[:2], gamma=0.3, scoring=scoring).fit(X, y) for scoring in ("roc_auc", own)
    ]
    first, second = (model.corrected_score_ for model in models)
    np.testing.assert_allclose(first.samples, second.samples, rtol=0, atol=1e-12)
    assert models[1].corrected_score_ is second
    again = pickle.loads(pickle.dumps(models[0]))
    assert again.corrected_score_.score == first.score


def test_what_takes_long_waits_until_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = noise()
    at_once = SVCCV(Cs=CS, gamma=0.3).fit(X, y)
    monkeypatch.setattr("exactcv.estimators.svc_cv.QUICK", 10)
    later = SVCCV(Cs=CS, gamma=0.3).fit(X, y)
    assert at_once._overview().corrected is not None
    assert later._overview().corrected is None
    assert later.corrected_score_.score == at_once.corrected_score_.score


def test_one_se_is_judged_as_one_se() -> None:
    X, y = noise(40)
    result = cross_validate(X, y, Cs=CS)
    one_se = result.corrected(200, random_state=0, select="1se")
    assert one_se.apparent == 1.0 - result.error[result.one_se]
    # Whatever is the best in a sample, the rule goes to smaller C.
    mean_C = [c.chosen @ np.log(CS) for c in (one_se, result.corrected(200, random_state=0))]
    assert mean_C[0] <= mean_C[1]
    model = SVCCV(Cs=CS, gamma=result.gamma, select="1se").fit(X, y)
    same = result.corrected(1000, random_state=0, select="1se")
    np.testing.assert_array_equal(model.corrected_score_.samples, same.samples)


def test_noise_is_seen_as_noise() -> None:
    apparent, corrected = [], []
    for seed in range(12):
        X, y = noise(40, seed=seed)
        found = cross_validate(X, y, Cs=np.geomspace(0.01, 100, 12), cv=10).corrected(300, 0)
        apparent.append(1.0 - found.apparent)
        corrected.append(found.error)
        assert found.optimism == pytest.approx(found.apparent - found.score)
    assert np.mean(apparent) < 0.47
    assert 0.46 < np.mean(corrected) < 0.56
    assert np.mean(corrected) > np.mean(apparent)


def test_points_with_unresolved_solutions_come_last() -> None:
    score = np.array([[0.9, 0.5, 0.7], [np.nan, np.nan, 0.1], [np.nan, np.nan, np.nan]])
    short = np.array([True, False, False])
    points = Points(np.array([1.0, 2.0, 3.0]), np.array([np.nan]), short)
    assert points.choose(score).tolist() == [2, 2, -1]


def test_without_values_no_score_of_values() -> None:
    result = cross_validate(*noise(), Cs=[1.0])
    with pytest.raises(InputError, match="output='decision'"):
        result.corrected(scoring="roc_auc")
    with pytest.raises(InputError, match="too few"):
        result.corrected(1)
    with pytest.raises(InputTypeError, match="integer"):
        result.corrected(1.5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="select"):
        result.corrected(select="best")  # type: ignore[arg-type]


def test_iris_needs_little_correction() -> None:
    model = SVCCV(Cs=[0.1, 1.0, 10.0], gamma=[0.1, 1.0]).fit(*load_iris(return_X_y=True))
    low, high = model.corrected_score_.interval
    assert low < model.corrected_score_.score < high
    assert 0.0 <= model.corrected_score_.optimism < 0.03


@pytest.mark.parametrize("weighted", [False, True])
def test_with_features_in_place_of_a_kernel(weighted: bool) -> None:
    X, y = noise(40)
    weight = np.random.default_rng(1).integers(0, 4, 40).astype(float) if weighted else None
    settings: dict[str, Any] = {"Cs": CS, "gamma": [0.1, 1.0], "cv": 4, "store_cv_results": True}
    model = SVCCV(approx="rff", n_components=30, random_state=0, **settings).fit(X, y, weight)
    kept = np.arange(40) if weight is None else np.flatnonzero(weight)
    labels = (model.cv_results_["decision"][:, kept] > 0).astype(int)
    preference = np.lexsort((np.repeat([0.1, 1.0], 5), np.tile(CS, 2)))
    w = None if weight is None else weight[kept]
    unit = np.arange(len(kept))
    expected = plain_loop(y[kept], unit, labels, None, preference, "accuracy", 50, w)
    corrected = model.corrected_score_
    np.testing.assert_allclose(corrected.samples[:50], expected, rtol=0, atol=1e-12)
    assert f"error after tuning {corrected.error:.4f}" in model.summary()


def test_groups_are_drawn_together() -> None:
    X, y = make_mixture(24, 3, random_state=0)
    groups = np.repeat(np.arange(8), 3)
    result = cross_validate(X, y, Cs=[0.1, 1.0, 10.0], cv=GroupKFold(4), groups=groups)
    found = result.corrected(50, random_state=1, groups=groups)
    drawn = np.concatenate(list(draws(8, 50, 1)))
    wrong = result.pair_wrong[:, np.argsort(result.test_row)]  # every row is tested once
    scores = []
    for sample in drawn:
        rows = np.concatenate([np.flatnonzero(groups == g) for g in sample])
        best = np.argmin(wrong[:, rows].mean(axis=1))
        outside = ~np.isin(groups, sample)
        if outside.any():
            scores.append(1.0 - wrong[best, outside].mean())
    assert found.score == pytest.approx(np.mean(scores))
    assert found.score != result.corrected(50, random_state=1).score
    model = SVCCV(Cs=[0.1, 1.0, 10.0], gamma="median", cv=GroupKFold(4))
    model.fit(X, y, groups=groups)
    same = result.corrected(random_state=0, groups=groups)
    assert model.corrected_score_.score == pytest.approx(same.score)
    with pytest.raises(InputError, match="single group"):
        result.corrected(50, groups=np.zeros(24))


@pytest.mark.parametrize("approx", [None, "rff"])
def test_what_is_not_defined_is_said_when_it_is_asked_for(approx: Any) -> None:
    """One row of each class is tested: no sample leaves both outside."""
    X, y = make_mixture(8, 2, random_state=0)
    tested = [int(np.argmin(y)), int(np.argmax(y))]
    folds = [(np.setdiff1d(np.arange(8), tested), tested)]
    model = SVCCV(Cs=[0.1, 1.0], gamma=0.5, approx=approx, scoring="roc_auc", cv=folds)
    model.set_params(random_state=0).fit(X, y)
    assert "tell how much" in " ".join(model.summary().split())
    with pytest.raises(InputError, match="'roc_auc' is not defined in any bootstrap sample"):
        _ = model.corrected_score_


@pytest.mark.parametrize("approx", [None, "rff"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_one_tested_row(approx: Any) -> None:
    X, y = make_mixture(8, 2, random_state=0)
    one: Any = {"Cs": [0.1, 1.0], "gamma": 0.5, "cv": [(np.arange(1, 8), [0])], "approx": approx}
    model = SVCCV(random_state=0, **one).fit(X, y)
    result = cross_validate(X, y, random_state=0, **one)
    for shown in model, result:
        assert "tell how much" in " ".join(shown.summary().split())
    for ask in lambda: model.corrected_score_, result.corrected:
        with pytest.raises(InputError, match="a single group or row"):
            ask()
    with pytest.raises(InputError, match="an AUC needs both classes among them"):
        SVCCV(random_state=0, scoring="roc_auc", **one).fit(X, y)
