"""`SVCCV` against brute force, `cross_validate` and scikit-learn's `SVC`."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from _problems import labels
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFECV, SelectFromModel
from sklearn.metrics import log_loss
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import exactcv
from exactcv import SVCCV, InputError
from exactcv.crossval.one_vs_one import votes_of
from exactcv.exceptions import ExactCVError, UnsupportedError

CS = [0.05, 1.0, 30.0]


def iris(step: int = 3) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_iris(return_X_y=True)
    return ((X - X.mean(axis=0)) / X.std(axis=0))[::step], y[::step]


def wine(step: int = 3) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_wine(return_X_y=True)
    return ((X - X.mean(axis=0)) / X.std(axis=0))[::step], y[::step]


def mixture(n: int = 40, p: int = 3) -> tuple[np.ndarray, np.ndarray]:
    return exactcv.datasets.make_mixture(n, p, random_state=1)


def refitted(
    X: np.ndarray, y: Any, C: float, gamma: float, splits: Any, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Left-out labels and decision values, each fold trained anew by scikit-learn."""
    found = []
    for train, test in splits:
        model = SVC(C=C, gamma=gamma, tol=1e-10, decision_function_shape="ovo")
        model.fit(X[train], y[train], sample_weight=weight[train])
        found += zip(test, model.predict(X[test]), model.decision_function(X[test]), strict=True)
    found.sort(key=lambda one: one[0])
    return np.array([one[1] for one in found]), np.array([one[2] for one in found])


CASES: dict[str, Any] = {
    "binary": lambda: (*mixture(), None, None),
    "iris": lambda: (*iris(), None, None),
    "wine": lambda: (*wine(), None, None),
    "weights": lambda: (*wine(), np.random.default_rng(0).uniform(0.3, 3.0, 60), None),
    "groups": lambda: (*iris(), None, np.arange(50) % 7),
    "strings": lambda: (iris()[0], np.array(["x", "aa", "q"])[iris()[1]], None, None),
    "one feature": lambda: (mixture()[0][:, :1], mixture()[1], None, None),
    "ten rows": lambda: (*mixture(10), None, None),
}


@pytest.mark.parametrize("case", sorted(CASES))
@pytest.mark.parametrize("cv", ["loo", "folds"])
def test_left_out_labels_and_values_equal_refits(case: str, cv: str) -> None:
    X, y, weight, groups = CASES[case]()
    n, splitter = len(y), None
    ones = np.ones(n) if weight is None else weight
    if groups is not None:
        splitter = LeaveOneGroupOut() if cv == "loo" else GroupKFold(3)
    elif cv == "folds":
        splitter = StratifiedKFold(3, shuffle=True, random_state=0)
    if splitter is None:
        splits = [(np.delete(np.arange(n), i), [i]) for i in range(n)]
    else:
        splits = list(splitter.split(X, y, groups))
    model = SVCCV(Cs=CS, gamma=[0.2], cv=splitter or "loo", store_cv_results=True)
    model.fit(X, y, sample_weight=weight, groups=groups)
    assert model.certificate_.exact
    binary = len(model.classes_) == 2
    for l, C in enumerate(CS):
        label, value = refitted(X, y, C, 0.2, splits, ones)
        ours = model.cv_results_["decision"][l]
        # What is not decided (every coefficient at its bound, intercepts that may be anything in
        # an interval) is up to each solver's rounding.
        clear = (np.abs(value) if binary else np.abs(value).min(axis=1)) > 1e-3
        assert clear.mean() > 0.5
        assert ours[clear] == pytest.approx(value[clear], abs=1e-3)
        if clear.all():
            error = np.average(label != y, weights=ones)
            assert model.cv_results_["error"][l] == pytest.approx(error)
        shown = model.classes_[(ours > 0).astype(int)] if binary else _voted(model, ours)
        np.testing.assert_array_equal(shown[clear], label[clear])


def _voted(model: SVCCV, ovo: np.ndarray) -> np.ndarray:
    votes = np.zeros((len(ovo), len(model.classes_)))
    for p, (a, b) in enumerate(zip(*np.triu_indices(len(model.classes_), 1), strict=True)):
        votes[:, a] += ovo[:, p] > 0
        votes[:, b] += ovo[:, p] <= 0
    return model.classes_[votes.argmax(axis=1)]


@pytest.mark.parametrize(
    "cv", ["loo", 4, RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)]
)
@pytest.mark.parametrize("grid", [{"Cs": CS}, {"lambdas": [0.3, 0.01, 1e-4]}])
def test_equals_cross_validate_looped_over_gamma(cv: Any, grid: dict[str, Any]) -> None:
    X, y = mixture(50)
    gammas = ["median", 0.05, "scale", 2.0]
    model = SVCCV(gamma=gammas, cv=cv, store_cv_results=True, **grid).fit(X, y)
    plain = SVCCV(gamma=gammas, cv=cv, **grid).fit(X, y)
    settings = {"cv": cv, **grid}
    looped = [exactcv.cross_validate(X, y, gamma=g, output="decision", **settings) for g in gammas]
    fast = [exactcv.cross_validate(X, y, gamma=g, **settings) for g in gammas]
    results = model.cv_results_
    for name, theirs in (("error", "error"), ("se", "se"), ("n_errors", "n_errors"),
                         ("decision", "decision"), ("at_bound", "at_bound"), ("param_C", "Cs"),
                         ("lambda", "lambdas")):  # fmt: skip
        expected = np.concatenate([getattr(one, theirs) for one in looped])
        np.testing.assert_array_equal(results[name], expected)
    np.testing.assert_array_equal(
        results["kkt"], np.concatenate([r.certificate.kkt for r in looped])
    )
    np.testing.assert_array_equal(results["param_gamma"][:: len(CS)], [r.gamma for r in looped])
    np.testing.assert_array_equal(
        plain.cv_results_["gap"], np.concatenate([r.certificate.gap for r in fast])
    )
    for name in ("error", "se", "n_errors"):
        np.testing.assert_array_equal(plain.cv_results_[name], results[name])
    errors = [r.error[r.best] for r in looped]
    assert 1 - model.best_score_ == pytest.approx(min(errors)) and model.C_ == plain.C_
    one = SVCCV(gamma=0.05, cv=cv, select="1se", **grid).fit(X, y)
    assert looped[1].Cs[looped[1].one_se] == one.C_


def test_model_is_that_of_svc() -> None:
    for X, y in (mixture(), iris(), wine()):
        model = SVCCV(Cs=CS, cv=3).fit(X, y)
        peer = SVC(C=model.C_, gamma=model.gamma_, tol=1e-8).fit(X, y)
        np.testing.assert_array_equal(model.support_, peer.support_)
        np.testing.assert_array_equal(model.n_support_, peer.n_support_)
        np.testing.assert_array_equal(model.support_vectors_, peer.support_vectors_)
        # LIBSVM has float32 kernel values, which coefficients feel more than decision values do.
        assert model.dual_coef_ == pytest.approx(peer.dual_coef_, abs=1e-3 * max(1.0, model.C_))
        assert model.intercept_ == pytest.approx(peer.intercept_, abs=1e-3)
        new = X + 0.1
        np.testing.assert_array_equal(model.predict(new), peer.predict(new))
        for shape in ("ovr", "ovo"):
            model.set_params(decision_function_shape=shape)
            peer.set_params(decision_function_shape=shape)
            assert model.decision_function(new) == pytest.approx(
                peer.decision_function(new), abs=1e-3
            )


def test_weights_are_copies_and_zero_is_absent() -> None:
    rng = np.random.default_rng(0)
    X, y = iris()
    w = rng.integers(0, 4, len(y)).astype(float)
    groups = np.arange(len(y)) % 5
    settings = {"gamma": ["median", "scale"], "lambdas": 9, "cv": LeaveOneGroupOut(),
                "class_weight": "balanced", "probability": True, "select": "1se"}  # fmt: skip
    weighted = SVCCV(**settings).fit(X, y, sample_weight=w, groups=groups)
    times = w.astype(int)
    X2, y2, groups2 = (np.repeat(a, times, axis=0) for a in (X, y, groups))
    copies = SVCCV(**settings).fit(X2, y2, groups=groups2)
    for name in ("param_C", "param_gamma", "error", "se", "mean_test_score"):
        assert weighted.cv_results_[name] == pytest.approx(copies.cv_results_[name], rel=1e-9)
    assert weighted.decision_function(X) == pytest.approx(copies.decision_function(X), abs=1e-6)
    assert weighted.predict_proba(X) == pytest.approx(copies.predict_proba(X), abs=1e-6)
    assert (w[weighted.support_] > 0).all()
    splits = list(LeaveOneGroupOut().split(X, y, groups))
    renumbered = SVCCV(**{**settings, "cv": splits}).fit(X, y, sample_weight=w)
    np.testing.assert_array_equal(renumbered.decision_function(X), weighted.decision_function(X))
    thrice = SVCCV(**settings).fit(X, y, sample_weight=3 * w, groups=groups)
    assert thrice.cv_results_["error"] == pytest.approx(weighted.cv_results_["error"])


def test_weighted_leave_one_out_error() -> None:
    X, y = mixture()
    w = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    model = SVCCV(Cs=CS, store_cv_results=True).fit(X, y, sample_weight=w)
    result = exactcv.cross_validate(X, y, Cs=CS, gamma=model.gamma_, sample_weight=w)
    error = result.wrong @ w / w.sum()
    assert model.cv_results_["error"] == pytest.approx(error)
    v = w / w.sum()
    se = np.sqrt(40 / 39 * (v**2 * (result.wrong - error[:, None]) ** 2).sum(axis=1))
    assert model.cv_results_["se"] == pytest.approx(se)


def test_threads_pickle_and_clone() -> None:
    for X, y in (mixture(), wine()):
        model = SVCCV(Cs=CS, gamma=[0.1, "median"], probability=True, store_cv_results=True)
        one, two = model.fit(X, y), clone(model).set_params(n_jobs=2).fit(X, y)
        again = pickle.loads(pickle.dumps(one))
        for other in (two, again):
            np.testing.assert_array_equal(other.predict_proba(X), one.predict_proba(X))
            np.testing.assert_array_equal(other.dual_coef_, one.dual_coef_)
            for name, values in one.cv_results_.items():
                np.testing.assert_array_equal(other.cv_results_[name], values)
        assert "SVCCV" in one._repr_html_()
        assert not hasattr(clone(one), "classes_")


def test_frames_sparse_and_pipelines() -> None:
    X, y = iris()
    names = ["a", "b", "c", "d"]
    frame = pd.DataFrame(X, columns=names)
    text = pd.Series(np.array(["setosa", "versicolor", "virginica"])[y])
    plain = SVCCV(Cs=CS, cv=3).fit(X, text)
    model = SVCCV(Cs=CS, cv=3).fit(frame, text)
    assert list(model.feature_names_in_) == names and model.classes_[0] == "setosa"
    np.testing.assert_array_equal(model.predict(frame), plain.predict(X))
    with pytest.raises(InputError, match="feature names"):
        model.predict(frame[names[::-1]])
    thin = SVCCV(Cs=CS, cv=3).fit(sparse.csr_matrix(X), y)
    assert sparse.issparse(thin.support_vectors_)
    assert thin.decision_function(sparse.csr_matrix(X)) == pytest.approx(
        plain.decision_function(X), abs=1e-8
    )
    assert thin.decision_function(X) == pytest.approx(plain.decision_function(X), abs=1e-8)
    pipe = make_pipeline(StandardScaler(), SVCCV(Cs=CS, cv=3)).set_output(transform="pandas")
    assert pipe.fit(frame, text).score(frame, text) > 0.9
    assert cross_val_score(pipe, frame, text, cv=3).shape == (3,)


def test_polars() -> None:
    polars = pytest.importorskip("polars")
    X, y = iris()
    frame = polars.DataFrame({name: X[:, j] for j, name in enumerate("abcd")})
    model = SVCCV(Cs=CS, cv=3).fit(frame, polars.Series(y))
    assert list(model.feature_names_in_) == list("abcd")
    np.testing.assert_array_equal(model.predict(frame), SVCCV(Cs=CS, cv=3).fit(X, y).predict(X))


def test_other_kernels() -> None:
    X, y = wine()
    K = X @ X.T
    linear = SVCCV(kernel="linear", Cs=[0.01, 0.1], cv=3).fit(X, y)
    given = SVCCV(kernel="precomputed", Cs=[0.01, 0.1], cv=3).fit(K, y)
    called = SVCCV(kernel=lambda A, B: A @ B.T, Cs=[0.01, 0.1], cv=3).fit(sparse.csr_matrix(X), y)
    for model, rows in ((given, K), (called, X), (called, sparse.csr_matrix(X))):
        assert model.decision_function(rows) == pytest.approx(linear.decision_function(X), abs=1e-7)
        assert model.gamma_ is None and np.isnan(model.cv_results_["param_gamma"]).all()
    assert linear.cv_results_["params"] == [{"C": 0.01}, {"C": 0.1}]
    assert sklearn.utils.get_tags(given).input_tags.pairwise
    assert cross_val_score(given, K, y, cv=3).mean() > 0.8
    absent = np.where(np.arange(len(y)) % 5 == 0, 0.0, 1.0)
    kept = absent > 0
    less = SVCCV(kernel="precomputed", Cs=[0.1], cv=3).fit(K, y, sample_weight=absent)
    peer = SVCCV(kernel="precomputed", Cs=[0.1], cv=3).fit(K[np.ix_(kept, kept)], y[kept])
    assert less.decision_function(K) == pytest.approx(peer.decision_function(K[:, kept]))


@pytest.mark.parametrize(
    ("loss", "method"),
    [("squared_hinge", "magic"), ("logistic", "refit"), ("squared", "least_squares"),
     ("squared_hinge", "rank_update"), ("hinge", "consolidated"), ("hinge", "loo_stopping")],
)  # fmt: skip
def test_other_losses_and_methods(loss: str, method: str) -> None:
    for X, y in (mixture(30), iris(5)):
        model = SVCCV(Cs=[0.1, 2.0], loss=loss, method=method).fit(X, y)
        assert model.score(X, y) > 0.55
        if len(model.classes_) == 2:
            result = exactcv.cross_validate(X, y, Cs=[0.1, 2.0], loss=loss, method=method)
            np.testing.assert_array_equal(model.cv_results_["error"], result.error)
            chosen = model.best_index_
            assert model.intercept_[0] == result.intercept[chosen]
            np.testing.assert_array_equal(model.dual_coef_[0], result.coef[chosen][model.support_])


def test_metadata_routing() -> None:
    X, y = iris()
    groups, w = np.arange(len(y)) % 5, np.random.default_rng(0).integers(1, 4, len(y))
    direct = SVCCV(Cs=CS, cv=GroupKFold(4), scoring="f1_macro")
    direct.fit(X, y, sample_weight=w, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = sklearn.metrics.get_scorer("f1_macro")
        asks = scorer.set_score_request(sample_weight=True)
        model = SVCCV(Cs=CS, cv=GroupKFold(4), scoring=asks)
        model.fit(X, y, sample_weight=w, groups=groups)
        refuses = SVCCV(
            Cs=CS, cv=GroupKFold(4), scoring=scorer.set_score_request(sample_weight=False)
        )
        refuses.fit(X, y, sample_weight=w, groups=groups)
        inner = SVCCV(Cs=CS, cv=GroupKFold(4)).set_fit_request(groups=True, sample_weight=False)
        pipe = make_pipeline(StandardScaler(), inner).fit(X, y, groups=groups)
    with pytest.raises(ExactCVError, match="metadata routing"):
        SVCCV(Cs=CS).fit(X, y, other=1)
    np.testing.assert_array_equal(
        model.cv_results_["mean_test_score"], direct.cv_results_["mean_test_score"]
    )
    assert (refuses.cv_results_["mean_test_score"] != model.cv_results_["mean_test_score"]).any()
    expected = SVCCV(Cs=CS, cv=GroupKFold(4)).fit(
        StandardScaler().fit_transform(X), y, groups=groups
    )
    assert pipe[-1].best_score_ == expected.best_score_


@pytest.mark.parametrize("seed", [2, 3, 5])
def test_probabilities_of_noise_do_not_contradict(seed: int) -> None:
    """Leaving a row of noise out speaks against it; the sigmoid is then flat, and that is said."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(30, 5)), np.arange(30) % 2
    with pytest.warns(UserWarning, match="carry no information"):
        model = SVCCV(probability=True, Cs=[1.0]).fit(X, y)
    new = rng.normal(size=(60, 5))
    assert model.predict_proba(new) == pytest.approx(0.5)


def test_probabilities_of_noise_name_the_classes() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(45, 4)), np.array(["a", "b", "c"])[np.arange(45) % 3]
    with pytest.warns(UserWarning, match="between a and b"):
        model = SVCCV(probability=True, Cs=[0.01]).fit(X, y)
    assert np.ptp(model.predict_proba(rng.normal(size=(20, 4))), axis=0) == pytest.approx(0.0)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_clear_votes_have_the_largest_probability(C: float) -> None:
    """And the log-loss on new rows is no worse than that of refitting, fold by fold."""
    X, y = wine(1)
    train, new = np.arange(len(y)) % 2 == 0, np.arange(len(y)) % 2 == 1
    model = SVCCV(Cs=[C], gamma=1 / 13, probability=True).fit(X[train], y[train])
    p = model.predict_proba(X[new])
    clear = votes_of(model._pair_decisions(X[new]), 3).max(axis=1) == 2
    assert clear.mean() > 0.9
    agree = model.classes_[p.argmax(axis=1)] == model.predict(X[new])
    assert agree[clear].all()
    peer = CalibratedClassifierCV(SVC(C=C, gamma=1 / 13), ensemble=False)
    peer.fit(X[train], y[train])
    assert log_loss(y[new], p) <= log_loss(y[new], peer.predict_proba(X[new]))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("k", [2, 3])
def test_a_linear_kernel_has_weights(k: int, make: Any) -> None:
    X, y = iris()
    X, y = X[y < k], y[y < k]
    model = SVCCV(kernel="linear", Cs=[0.5], decision_function_shape="ovo").fit(make(X), y)
    peer = SVC(kernel="linear", C=0.5, tol=1e-8, decision_function_shape="ovo").fit(X, y)
    assert model.coef_ == pytest.approx(peer.coef_, abs=1e-5)
    values = (X @ model.coef_.T + model.intercept_).reshape(model.decision_function(X).shape)
    np.testing.assert_allclose(values, model.decision_function(X), atol=1e-10)
    with pytest.raises(AttributeError, match="only with kernel='linear'"):
        _ = SVCCV(Cs=[0.5]).fit(X, y).coef_
    assert not hasattr(SVCCV(kernel="linear"), "coef_")


def test_features_can_be_selected_by_weight() -> None:
    X, y = wine()
    model = SVCCV(kernel="linear", Cs=[0.1, 1.0])
    found = RFECV(model, min_features_to_select=4, step=3, cv=3).fit(X, y)
    assert 4 <= found.n_features_ <= X.shape[1]
    chosen = SelectFromModel(model, max_features=5, threshold=-np.inf).fit(X, y)
    assert chosen.transform(X).shape[1] == 5


def test_probabilities_switched_off_say_how_to_switch_them_on() -> None:
    X, y = iris()
    model = SVCCV(Cs=CS).fit(X, y)
    for how in (lambda: model.predict_proba, lambda: SVCCV.predict_log_proba(model, X)):
        with pytest.raises(AttributeError, match=r"SVCCV\(probability=True\)"):
            how()
    with pytest.raises(AttributeError, match="fit it again"):
        _ = model.set_params(probability=True).predict_proba
    assert "left-out" in str(SVCCV.predict_proba.__doc__)


def test_probabilities_need_to_be_asked_for() -> None:
    X, y = mixture()
    model = SVCCV(Cs=CS).fit(X, y)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model.set_params(probability=True), "predict_proba")
    p = model.fit(X, y).predict_proba(X)
    assert p.sum(axis=1) == pytest.approx(1.0)
    assert np.exp(model.predict_log_proba(X)) == pytest.approx(p)
    model.set_params(probability=False).fit(X, y)
    assert not hasattr(model.set_params(probability=True), "predict_proba")  # none left over
    with pytest.raises(NotFittedError):
        SVCCV(probability=True).predict_proba(X)


def test_verbose_reports(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exactcv.runtime.progress.LINE_EVERY", 0.0)  # all stages, not some
    X, y = mixture(12)
    SVCCV(Cs=CS, gamma=[0.1, 1.0], verbose=1).fit(X, y)
    assert "12 rows (2 of 2)" in capsys.readouterr().err
    SVCCV(Cs=CS).fit(X, y)
    assert capsys.readouterr().err == ""


N = 12
BAD: list[tuple[dict[str, Any], str]] = [
    ({"y": np.zeros(N)}, "one class"),
    ({"y": np.r_[np.zeros(6), np.ones(5), 2], "cv": KFold(3)}, r"fold . .* class 2.* every class"),
    ({"y": np.r_[np.zeros(11), 1], "cv": KFold(3)}, "both classes"),
    ({"y": np.linspace(0, 1, N)}, "continuous"),
    ({"sample_weight": np.r_[np.ones(6), np.zeros(6)]}, "one class"),
    ({"sample_weight": np.zeros(N)}, "zero in every row"),
    ({"sample_weight": np.ones(3)}, "shape"),
    ({"groups": [1]}, "groups has 1 entries"),
    ({"cv": N + 1}, "number of folds"),
    ({"cv": "lou"}, "'loo'"),
    ({"gamma": []}, "empty list"),
    ({"gamma": [1.0, "big"]}, "gamma"),
    ({"gamma": [1.0, -1.0]}, "positive"),
    ({"kernel": "linear", "gamma": [1.0, 2.0]}, "has no gamma"),
    ({"kernel": "precomputed"}, "square"),
    ({"Cs": [1.0], "lambdas": [1.0]}, "not both"),
    ({"Cs": []}, "empty"),
    ({"select": "best"}, "'min', '1se'"),
    ({"decision_function_shape": "ova"}, "'ovr', 'ovo'"),
    ({"scoring": "best"}, "scoring"),
    ({"class_weight": {7: 1.0}}, "label 7"),
    ({"method": "magik"}, "method"),
    ({"loss": "logistic"}, "does not support"),
    ({"method": "loo_stopping", "cv": 3}, "does not support these folds"),
    ({"tol": -1.0}, "tol"),
    ({"probability": "yes"}, "probability"),
    ({"n_jobs": 0}, "n_jobs"),
    ({"X": np.full((N, 2), np.nan)}, "NaN"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "match"), BAD, ids=lambda value: str(value)[:40])
def test_bad_input(wrong: dict[str, Any], match: str) -> None:
    X = wrong.pop("X", np.random.default_rng(0).normal(size=(N, 2)))
    y = wrong.pop("y", np.repeat([0, 1], 6))
    more = {name: wrong.pop(name) for name in ("sample_weight", "groups") if name in wrong}
    with pytest.raises((InputError, UnsupportedError), match=match):
        SVCCV(**{"Cs": [1.0], **wrong} if "lambdas" not in wrong else wrong).fit(X, y, **more)


def test_repeats_and_untested_rows() -> None:
    X, y = iris()
    n = len(y)
    test = np.arange(0, n, 7)
    model = SVCCV(Cs=[1.0], cv=[(np.setdiff1d(np.arange(n), test), test)], store_cv_results=True)
    decision = model.fit(X, y).cv_results_["decision"]
    assert decision.shape == (1, n, 3)
    np.testing.assert_array_equal(np.isnan(decision[0, :, 0]), ~np.isin(np.arange(n), test))
    assert np.isnan(model.cv_results_["se"]).all()
    assert model.set_params(select="1se").fit(X, y).C_ == 1.0


def test_nothing_to_learn() -> None:
    """Equal rows and balanced classes: every left-out row is wrong, and nothing breaks."""
    with pytest.warns(UserWarning, match="carry no information"):
        model = SVCCV(Cs=CS, probability=True).fit(np.ones((12, 2)), labels(12))
    assert model.best_score_ == 0.0 and min(CS) == model.C_
    assert model.predict_proba(np.ones((1, 2)))[0] == pytest.approx(0.5, abs=0.2)


def test_the_leave_pair_out_auc_chooses() -> None:
    X, y = exactcv.datasets.make_mixture(30, 3, random_state=1)
    Cs = [0.05, 0.5, 5.0]
    model = SVCCV(Cs=Cs, gamma=[0.05, 0.5], scoring="leave_pair_out_auc").fit(X, y)
    auc = [exactcv.leave_pair_out(X, y, gamma=g, Cs=Cs, tournament=False).auc for g in (0.05, 0.5)]
    np.testing.assert_array_equal(model.cv_results_["mean_test_score"], np.concatenate(auc))
    assert model.best_score_ == np.max(auc)
    assert model.score(X, y) > 0.5
    with pytest.raises(UnsupportedError, match="roc_auc"):
        _ = model.corrected_score_
    with pytest.raises(UnsupportedError, match="outer=5"):
        model.nested_score(X, y)


@pytest.mark.parametrize(
    ("settings", "labels", "message"),
    [
        ({"cv": 5}, None, "cv must be 'loo'"),
        ({"select": "1se"}, None, "select='min'"),
        ({}, np.arange(30) % 3, "two classes"),
        ({}, np.arange(30) == 0, "at least 2 rows"),
    ],
)
def test_the_leave_pair_out_auc_refuses(settings: Any, labels: Any, message: str) -> None:
    X, y = exactcv.datasets.make_mixture(30, 3, random_state=1)
    model = SVCCV(Cs=[1.0], scoring="leave_pair_out_auc", **settings)
    with pytest.raises(ExactCVError, match=message):
        model.fit(X, y if labels is None else labels)
