"""Any scorer on pooled left-out values equals the metric on those values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import metrics
from sklearn.datasets import load_wine
from sklearn.metrics import get_scorer, make_scorer, roc_auc_score

import exactcv
from exactcv.crossval.scoring import fit_sigmoids, probabilities, read_scoring
from exactcv.exceptions import InputError, InputTypeError

CS = [0.01, 0.3, 10.0]


def binary(n: int = 40) -> tuple[np.ndarray, np.ndarray]:
    return exactcv.datasets.make_mixture(n, 3, random_state=3)


def fit(X: Any, y: Any, **settings: Any) -> exactcv.SVCCV:
    sample_weight = settings.pop("sample_weight", None)
    settings = {"Cs": CS, "store_cv_results": True, **settings}
    return exactcv.SVCCV(**settings).fit(X, y, sample_weight=sample_weight)


@pytest.mark.parametrize(
    ("scoring", "metric", "of"),
    [
        ("roc_auc", metrics.roc_auc_score, "decision"),
        ("average_precision", metrics.average_precision_score, "decision"),
        ("matthews_corrcoef", metrics.matthews_corrcoef, "label"),
        ("balanced_accuracy", metrics.balanced_accuracy_score, "label"),
        ("f1", metrics.f1_score, "label"),
        ("neg_log_loss", lambda *a, **k: -metrics.log_loss(*a, **k), "proba"),
        ("neg_brier_score", lambda *a, **k: -metrics.brier_score_loss(*a, **k), "proba"),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_pooled_scores(scoring: str, metric: Any, of: str, weighted: bool) -> None:
    X, y = binary()
    y = (y > 0).astype(int)
    w = np.random.default_rng(0).integers(1, 4, len(y)).astype(float) if weighted else None
    model = fit(X, y, scoring=scoring, sample_weight=w)
    for l, score in enumerate(model.cv_results_["mean_test_score"]):
        d = model.cv_results_["decision"][l]
        shown: Any = {"decision": d, "label": (d > 0).astype(int)}.get(of)
        if of == "proba":
            sigmoids = fit_sigmoids(d[:, None], y, 2, np.ones(len(y)) if w is None else w)
            shown = probabilities(d[:, None], sigmoids, 2)[:, 1]
        assert score == pytest.approx(metric(y, shown, sample_weight=w))
    best = np.nanmax(model.cv_results_["mean_test_score"])
    assert (
        model.best_score_ == best and model.cv_results_["rank_test_score"][model.best_index_] == 1
    )


def test_several_classes() -> None:
    X, y = load_wine(return_X_y=True)
    X, y = ((X - X.mean(axis=0)) / X.std(axis=0))[::4], y[::4]
    labels = fit(X, y, Cs=[0.3], scoring="f1_macro")
    from exactcv.crossval.one_vs_one import most_votes, votes_of

    predicted = most_votes(votes_of(-labels.cv_results_["decision"][0], 3))
    assert labels.best_score_ == pytest.approx(metrics.f1_score(y, predicted, average="macro"))
    for scoring in ("neg_log_loss", "roc_auc_ovo", "roc_auc_ovr_weighted", "top_k_accuracy"):
        assert np.isfinite(fit(X, y, Cs=[0.3], cv=3, scoring=scoring).best_score_)
    with pytest.raises(InputError, match="multi_class"):
        fit(X, y, Cs=[0.3], cv=3, scoring="roc_auc")


def test_callables() -> None:
    X, y = binary()
    seen = []

    def by_hand(estimator: Any, X: Any, y: Any) -> float:
        seen.append(X.shape)
        return float((estimator.predict(X) == y).mean() + X[0, 0])

    model = fit(X, y, scoring=by_hand, cv=4)
    assert seen == [X.shape] * (len(CS) + 2)  # and what either class alone would score
    accuracy = fit(X, y, cv=4)
    first = accuracy._folds(X, y, np.arange(len(y)), len(y), {}).pair_rows[0]
    expected = accuracy.cv_results_["mean_test_score"] + X[first, 0]
    assert model.cv_results_["mean_test_score"] == pytest.approx(expected)
    made = make_scorer(metrics.accuracy_score)
    scored = fit(X, y, cv=4, scoring=made)
    assert scored.cv_results_["mean_test_score"] == pytest.approx(
        accuracy.cv_results_["mean_test_score"]
    )
    with pytest.warns(UserWarning, match="takes no sample_weight"):
        fit(X, y, scoring=by_hand, cv=4, sample_weight=np.arange(1.0, len(y) + 1))


def test_labels_are_enough_for_scorers_of_labels() -> None:
    assert read_scoring(None).labels_only and read_scoring("f1").labels_only
    assert not read_scoring("roc_auc").labels_only
    assert not read_scoring(lambda e, X, y: 0.0).labels_only


def test_bad_scoring() -> None:
    X, y = binary()
    for wrong, kind, match in (
        ("acuracy", InputError, "get_scorer_names"),
        (metrics.accuracy_score, InputError, "scoring cannot be used"),
        (["accuracy", "f1"], InputTypeError, "several scores"),
        (lambda e, X, y: "high", InputTypeError, "must give a number"),
        (lambda e, X, y: float(e.predict(X[:3]).sum()), InputError, "asks for 3 rows"),
        (lambda e, X, y: float("nan"), InputError, "NaN at every grid point"),
        (get_scorer("r2"), InputError, None),
    ):
        if match is not None:
            with pytest.raises(kind, match=match):
                fit(X, y, scoring=wrong)


def test_one_standard_error_of_any_score() -> None:
    X, y = binary(60)
    Cs = np.geomspace(0.01, 100, 9)
    least = fit(X, y, Cs=Cs, scoring="roc_auc")
    model = fit(X, y, Cs=Cs, scoring="roc_auc", select="1se")
    results, best = model.cv_results_, least.best_index_
    se = results["se_test_score"][best]
    assert 0 < se < 0.2 and np.isnan(np.delete(results["se_test_score"], best)).all()
    within = results["mean_test_score"] >= least.best_score_ - se
    assert model.C_ == results["param_C"][within].min() <= least.C_
    # The jackknife by hand, for leave-one-out: fold f is row f.
    d, rows = results["decision"][best], np.arange(60)
    parts = [rows % 20 != part for part in range(20)]
    scores = np.array([metrics.roc_auc_score(y[p], d[p]) for p in parts])
    assert se == pytest.approx(np.sqrt(19 / 20 * ((scores - scores.mean()) ** 2).sum()))


def test_ranking_scorers_see_ties_of_repeated_rows() -> None:
    """AUC of few distinct rows: not decided by the order of the rows, nor by rounding."""
    rng = np.random.default_rng(1)
    X, y = rng.integers(0, 3, (90, 2)).astype(float), rng.integers(0, 2, 90)
    other = rng.permutation(90)
    settings = {"Cs": [0.1, 1.0, 10.0], "gamma": 0.5, "scoring": "roc_auc"}
    one = exactcv.SVCCV(store_cv_results=True, **settings).fit(X, y).cv_results_
    two = exactcv.SVCCV(**settings).fit(X[other], y[other]).cv_results_
    expected = [roc_auc_score(y, values.round(8)) for values in one["decision"]]
    np.testing.assert_allclose(one["mean_test_score"], expected, rtol=1e-12)
    np.testing.assert_allclose(two["mean_test_score"], expected, rtol=1e-12)
