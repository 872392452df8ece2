"""The drop-in functions give scikit-learn's answers.

scikit-learn's solver stops at 1e-3; where a label could hang on that it is run with ``tol=1e-8``,
and its decision values are compared with that tolerance in mind.
"""

from __future__ import annotations

import inspect
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn import model_selection as theirs
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_circles,
    make_classification,
    make_moons,
)
from sklearn.decomposition import PCA
from sklearn.metrics import make_scorer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from sklearn.svm import SVC
from sklearn.utils import _safe_indexing

import exactcv
from exactcv.estimators.drop_in.models import read_candidates
from exactcv.estimators.drop_in.plan import make_plan

TIGHT: dict[str, Any] = {"tol": 1e-8}
X_MOONS, Y_MOONS = make_moons(60, noise=0.3, random_state=0)
X_IRIS, Y_IRIS = load_iris(return_X_y=True)
X_IRIS, Y_IRIS = X_IRIS[::2], Y_IRIS[::2]
FLOWERS = np.array(["setosa", "versicolor", "virginica"])[Y_IRIS]


def scaled(X: np.ndarray) -> np.ndarray:
    return StandardScaler().fit_transform(X)


def data_set(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name == "breast cancer":
        X, y = load_breast_cancer(return_X_y=True)
        return scaled(X)[::3], np.array(["malignant", "benign"])[y][::3]
    if name == "iris":
        return X_IRIS, FLOWERS
    if name == "wine":
        X, y = load_wine(return_X_y=True)
        return scaled(X), y
    if name == "digits":
        X, y = load_digits(n_class=5, return_X_y=True)
        return X[:150] / 16.0, y[:150]
    if name == "classification":
        return make_classification(120, 8, n_informative=4, n_classes=3, random_state=1)
    return make_circles(80, noise=0.2, factor=0.5, random_state=2)


SETS = ("breast cancer", "iris", "wine", "digits", "classification", "circles")
ESTIMATORS = {
    "fixed": SVC(gamma=0.1, **TIGHT),
    "scale": SVC(C=2.0, **TIGHT),
    "balanced": SVC(gamma=0.1, class_weight="balanced", **TIGHT),
    "pipeline": make_pipeline(StandardScaler(), SVC(C=3.0, **TIGHT)),
}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Slow folds are allowed here; that they are announced has tests of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", exactcv.SlowFoldsWarning)
        yield


# ---- six data sets ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_labels_and_values_are_scikit_learns(name: str, kind: str) -> None:
    X, y = data_set(name)
    estimator = ESTIMATORS[kind]
    labels = exactcv.cross_val_predict(estimator, X, y, cv=5)
    expected = theirs.cross_val_predict(estimator, X, y, cv=5)
    assert labels.dtype == expected.dtype
    np.testing.assert_array_equal(labels, expected)
    values = exactcv.cross_val_predict(estimator, X, y, cv=5, method="decision_function")
    expected = theirs.cross_val_predict(estimator, X, y, cv=5, method="decision_function")
    np.testing.assert_allclose(values, expected, atol=1e-5)


def test_a_label_that_differs_hangs_on_scikit_learns_tolerance() -> None:
    """With a loose tolerance scikit-learn leaves its own answer; ours is the tight one."""
    X, y = data_set("classification")
    loose = SVC(gamma=0.1, C=50.0, tol=0.5)
    tight = clone(loose).set_params(tol=1e-8)
    ours = exactcv.cross_val_predict(loose, X, y, cv=5)
    assert (ours != theirs.cross_val_predict(loose, X, y, cv=5)).any()
    np.testing.assert_array_equal(ours, theirs.cross_val_predict(tight, X, y, cv=5))


# ---- settings of SVC --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": "rbf", "gamma": "auto"},
        {"gamma": 0.3, "decision_function_shape": "ovo"},
        {"gamma": 0.3, "break_ties": True, "C": 0.05},
        {"gamma": 0.3, "class_weight": {"setosa": 3.0, "virginica": 0.2}},
        {"gamma": 0.0},
    ],
)
@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_settings(settings: dict[str, Any], method: str) -> None:
    estimator = SVC(**settings, **TIGHT)
    if method == "decision_function" and isinstance(settings.get("class_weight"), dict):
        # scikit-learn turns the labels into numbers first, and then misses the dict's keys.
        for module in (exactcv, theirs):
            with pytest.raises(ValueError, match="not in class_weight"):
                module.cross_val_predict(estimator, X_IRIS, FLOWERS, cv=4, method=method)
        return
    ours = exactcv.cross_val_predict(estimator, X_IRIS, FLOWERS, cv=4, method=method)
    expected = theirs.cross_val_predict(estimator, X_IRIS, FLOWERS, cv=4, method=method)
    if method == "predict":
        np.testing.assert_array_equal(ours, expected)
    else:
        # Other kernels, whose values are larger: test_drop_in_exactness.py.
        np.testing.assert_allclose(ours, expected, atol=1e-5)


def test_leave_one_out_votes() -> None:
    for C in (0.01, 1.0, 100.0):
        estimator = SVC(gamma=0.3, C=C, **TIGHT)
        cv = theirs.LeaveOneOut()
        ours = exactcv.cross_val_predict(estimator, X_IRIS, FLOWERS, cv=cv)
        expected = theirs.cross_val_predict(estimator, X_IRIS, FLOWERS, cv=cv)
        np.testing.assert_array_equal(ours, expected)
        scores = exactcv.cross_val_score(estimator, X_IRIS, FLOWERS, cv=cv)
        np.testing.assert_array_equal(scores, expected == FLOWERS)


def test_a_value_of_zero_is_for_the_second_class() -> None:
    """Both rows of a tie: K is 1 throughout, so only the intercept decides, and it is 0."""
    X, y = np.zeros((8, 1)), np.array([0, 1] * 4)
    folds = [(np.arange(6), np.arange(6, 8)), (np.arange(2, 8), np.arange(2))]
    scores = exactcv.cross_val_score(SVC(gamma=1.0), X, y, cv=folds)
    np.testing.assert_array_equal(scores, theirs.cross_val_score(SVC(gamma=1.0), X, y, cv=folds))


# ---- kinds of input ---------------------------------------------------------------------------


def test_precomputed_kernel() -> None:
    K = np.exp(-0.5 * ((X_MOONS[:, None] - X_MOONS) ** 2).sum(-1))
    estimator = SVC(kernel="precomputed", **TIGHT)
    for method in ("predict", "decision_function"):
        ours = exactcv.cross_val_predict(estimator, K, Y_MOONS, cv=5, method=method)
        expected = theirs.cross_val_predict(estimator, K, Y_MOONS, cv=5, method=method)
        np.testing.assert_allclose(ours, expected, atol=1e-5)
    aucs = exactcv.cross_val_score(estimator, K, Y_MOONS, cv=5, scoring="roc_auc")
    expected = theirs.cross_val_score(estimator, K, Y_MOONS, cv=5, scoring="roc_auc")
    np.testing.assert_allclose(aucs, expected)


def test_a_precomputed_kernel_must_be_square() -> None:
    search = exactcv.GridSearchCV(SVC(), {"kernel": ["rbf", "precomputed"]})
    with pytest.raises(ValueError, match="square kernel"):
        search.fit(X_MOONS, Y_MOONS)


@pytest.mark.parametrize("kind", ["sparse", "pandas", "list"])
@pytest.mark.parametrize("gamma", [0.5, "scale"])
def test_containers(kind: str, gamma: Any) -> None:
    estimator: Any = SVC(gamma=gamma, **TIGHT)
    X: Any = X_MOONS
    if kind == "sparse":
        X = sparse.csr_matrix(X_MOONS)
    elif kind == "pandas":
        pandas = pytest.importorskip("pandas")
        X = pandas.DataFrame(X_MOONS, columns=["a", "b"])
    else:
        X = X_MOONS.tolist()
    scores = exactcv.cross_val_score(estimator, X, Y_MOONS, cv=5, scoring="roc_auc")
    expected = theirs.cross_val_score(estimator, X, Y_MOONS, cv=5, scoring="roc_auc")
    np.testing.assert_allclose(scores, expected)


def test_kernel_that_is_not_positive_semidefinite_goes_to_scikit_learn() -> None:
    estimator = SVC(kernel="sigmoid", gamma=2.0, coef0=-1.0, C=5.0)
    with pytest.warns(exactcv.SlowFoldsWarning, match="not positive semidefinite"):
        ours = exactcv.cross_val_predict(estimator, X_MOONS, Y_MOONS, cv=5)
    expected = theirs.cross_val_predict(estimator, X_MOONS, Y_MOONS, cv=5)
    np.testing.assert_array_equal(ours, expected)


# ---- splits -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cv",
    [
        None,
        theirs.KFold(4, shuffle=True, random_state=0),
        theirs.RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
        theirs.ShuffleSplit(4, test_size=0.2, train_size=0.4, random_state=0),
        theirs.LeaveOneOut(),
        [(np.arange(40), np.arange(40, 60)), (np.tile(np.arange(20, 60), 2), np.arange(20))],
        [(np.arange(60) < 40, np.arange(60) >= 40)],
    ],
)
def test_any_splits(cv: Any) -> None:
    estimator = SVC(gamma=1.0, C=3.0, **TIGHT)
    ours = exactcv.cross_val_score(estimator, X_MOONS, Y_MOONS, cv=cv)
    expected = theirs.cross_val_score(estimator, X_MOONS, Y_MOONS, cv=cv)
    np.testing.assert_array_equal(ours, expected)


def test_splits_that_lack_a_class() -> None:
    """Unsorted k-fold on sorted labels: every training set lacks one of three classes."""
    estimator, cv = SVC(gamma=0.3, **TIGHT), theirs.KFold(3)
    ours = exactcv.cross_val_predict(estimator, X_IRIS, FLOWERS, cv=cv)
    expected = theirs.cross_val_predict(estimator, X_IRIS, FLOWERS, cv=cv)
    np.testing.assert_array_equal(ours, expected)


def test_splits_with_one_class_fail_as_in_scikit_learn() -> None:
    y = np.sort(Y_MOONS)
    cv = [(np.arange(20), np.arange(20, 60)), (np.arange(10, 60), np.arange(10))]
    with pytest.warns(sklearn.exceptions.FitFailedWarning, match="1 fits failed"):
        scores = exactcv.cross_val_score(SVC(gamma=1.0), X_MOONS, y, cv=cv)
    assert np.isnan(scores[0]) and not np.isnan(scores[1])
    with pytest.raises(ValueError, match="number of classes"):
        exactcv.cross_val_score(SVC(gamma=1.0), X_MOONS, y, cv=cv, error_score="raise")
    with pytest.raises(ValueError, match="All the 1 fits failed"):
        exactcv.cross_val_score(SVC(gamma=1.0), X_MOONS, y, cv=cv[:1])


@pytest.mark.parametrize("gamma", [1.0, "scale"])
def test_one_class_in_all_is_named(gamma: Any) -> None:
    with pytest.raises(ValueError, match="number of classes has to be greater than one"):
        exactcv.cross_val_score(SVC(gamma=gamma), X_MOONS, np.zeros(60, int))
    with pytest.raises(ValueError, match="number of classes has to be greater than one"):
        exactcv.cross_val_predict(SVC(gamma=gamma), X_MOONS, np.zeros(60, int))


def test_predictions_need_a_partition() -> None:
    cv = theirs.ShuffleSplit(3, random_state=0)
    with pytest.raises(exactcv.InputError, match="only works for partitions"):
        exactcv.cross_val_predict(SVC(gamma=1.0), X_MOONS, Y_MOONS, cv=cv)


def test_groups() -> None:
    groups, cv = np.arange(60) // 6, theirs.GroupKFold(5)
    options = {"cv": cv, "groups": groups}
    ours = exactcv.cross_val_score(SVC(gamma=1.0, **TIGHT), X_MOONS, Y_MOONS, **options)
    expected = theirs.cross_val_score(SVC(gamma=1.0, **TIGHT), X_MOONS, Y_MOONS, **options)
    np.testing.assert_array_equal(ours, expected)


# ---- weights ----------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [1.0, "scale"])
def test_sample_weight(gamma: Any) -> None:
    weight = np.random.default_rng(0).uniform(0.1, 2.0, 60)
    weight[::9] = 0.0
    for estimator, name in (
        (SVC(gamma=gamma, **TIGHT), "sample_weight"),
        (make_pipeline(StandardScaler(), SVC(gamma=gamma, **TIGHT)), "svc__sample_weight"),
    ):
        options: dict[str, Any] = {"cv": 4, "params": {name: weight}, "method": "decision_function"}
        ours = exactcv.cross_val_predict(estimator, X_MOONS, Y_MOONS, **options)
        expected = theirs.cross_val_predict(estimator, X_MOONS, Y_MOONS, **options)
        np.testing.assert_allclose(ours, expected, atol=1e-5)


def test_metadata_routing() -> None:
    weight = np.random.default_rng(1).uniform(0.1, 2.0, 60)
    with sklearn.config_context(enable_metadata_routing=True):
        svc = SVC(gamma=1.0, **TIGHT).set_fit_request(sample_weight=True)
        svc.set_score_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), svc)
        for estimator in (svc, pipeline):
            params = {"sample_weight": weight}
            ours = exactcv.cross_val_score(estimator, X_MOONS, Y_MOONS, cv=4, params=params)
            expected = theirs.cross_val_score(estimator, X_MOONS, Y_MOONS, cv=4, params=params)
            np.testing.assert_allclose(ours, expected)
            grid = {"C": [1.0]} if estimator is svc else {"svc__C": [1.0]}
            search = exactcv.GridSearchCV(estimator, grid, cv=4)
            search.fit(X_MOONS, Y_MOONS, sample_weight=weight)
            assert search.best_score_ == pytest.approx(ours.mean())


def test_metadata_for_other_steps() -> None:
    """A scaler that weighs the rows: weights that vary by group, so that it matters."""
    weight = np.where(Y_MOONS == 0, 50.0, 0.01) * np.linspace(0.5, 2.0, 60)
    options: dict[str, Any] = {"cv": 4, "method": "decision_function"}
    with sklearn.config_context(enable_metadata_routing=True):
        svc = SVC(gamma=5.0, **TIGHT).set_fit_request(sample_weight=False)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=True), svc)
        found = []
        for params in ({"sample_weight": weight}, None):
            arguments = (pipeline, X_MOONS, Y_MOONS)
            found.append(exactcv.cross_val_predict(*arguments, params=params, **options))
            expected = theirs.cross_val_predict(*arguments, params=params, **options)
            np.testing.assert_allclose(found[-1], expected, atol=1e-5)
        assert np.abs(found[0] - found[1]).max() > 0.01


# ---- the grid search --------------------------------------------------------------------------


def both(estimator: Any, grid: Any, X: Any, y: Any, fit: Any = None, **options: Any) -> Any:
    """Our search and scikit-learn's, after comparing all that must agree."""
    ours = exactcv.GridSearchCV(estimator, grid, **options).fit(X, y, **(fit or {}))
    expected = theirs.GridSearchCV(estimator, grid, **options).fit(X, y, **(fit or {}))
    assert list(ours.cv_results_) == list(expected.cv_results_)
    for key, value in expected.cv_results_.items():
        mine = ours.cv_results_[key]
        assert type(mine) is type(value)
        if key == "params":
            assert mine == value
        elif "time" in key:
            assert mine.dtype == value.dtype and (mine >= 0).all()
        elif key.startswith("param_"):
            assert mine.dtype == value.dtype
            np.testing.assert_array_equal(mine.mask, value.mask)
        else:
            assert mine.dtype == value.dtype
            np.testing.assert_allclose(mine, value, atol=1e-9)
    for name in ("best_index_", "best_params_", "best_score_", "n_splits_", "multimetric_"):
        assert hasattr(ours, name) == hasattr(expected, name)
        if hasattr(ours, name):
            assert getattr(ours, name) == getattr(expected, name)
    return ours, expected


def test_search_over_c_and_gamma() -> None:
    grid = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": [0.1, 1.0, "auto"]}
    ours, expected = both(SVC(**TIGHT), grid, X_IRIS, FLOWERS, cv=5, return_train_score=True)
    assert type(ours.best_estimator_) is SVC
    np.testing.assert_array_equal(ours.predict(X_IRIS), expected.predict(X_IRIS))
    assert ours.score(X_IRIS, FLOWERS) == expected.score(X_IRIS, FLOWERS)
    assert ours.refit_time_ > 0


def test_search_over_a_list_of_grids() -> None:
    grid = [
        {"kernel": ["linear"], "C": [0.1, 1.0]},
        {
            "kernel": ["rbf"],
            "C": [1.0],
            "gamma": [0.5, "scale"],
            "class_weight": [None, "balanced"],
        },
    ]
    both(SVC(**TIGHT), grid, X_MOONS, Y_MOONS, cv=4)


def test_search_over_the_steps_of_a_pipeline() -> None:
    pipeline = Pipeline([("first", StandardScaler()), ("pca", PCA(2)), ("svc", SVC(**TIGHT))])
    grid = {
        "first": ["passthrough", StandardScaler(), Normalizer()],
        "pca": ["passthrough", PCA(2)],
        "svc__C": [0.5, 5.0],
        "svc__gamma": [0.3],
    }
    ours, _ = both(pipeline, grid, X_IRIS, FLOWERS, cv=3, return_train_score=True)
    assert isinstance(ours.best_estimator_, Pipeline)


def test_search_with_several_scorers() -> None:
    scoring = {"acc": "accuracy", "auc": "roc_auc", "f1": "f1"}
    grid = {"C": [0.1, 10.0], "gamma": [0.5]}
    ours, expected = both(SVC(**TIGHT), grid, X_MOONS, Y_MOONS, cv=4, scoring=scoring, refit="auc")
    assert ours.score(X_MOONS, Y_MOONS) == pytest.approx(expected.score(X_MOONS, Y_MOONS))
    both(SVC(**TIGHT), grid, X_MOONS, Y_MOONS, cv=4, scoring=["accuracy", "f1"], refit=False)
    with pytest.raises(ValueError, match="refit"):
        exactcv.GridSearchCV(SVC(), grid, scoring=scoring).fit(X_MOONS, Y_MOONS)


def test_search_with_callables() -> None:
    def figures(model: Any, X: Any, y: Any) -> dict[str, float]:
        assert model.get_params()["gamma"] == 0.5
        return {"right": float((model.predict(X) == y).mean()), "sv": len(model.support_)}

    def last(results: dict[str, Any]) -> int:
        return len(results["params"]) - 1

    grid = {"C": [0.1, 10.0]}
    options: dict[str, Any] = {"cv": 3, "scoring": figures, "refit": last}
    ours, _ = both(SVC(gamma=0.5, **TIGHT), grid, X_MOONS, Y_MOONS, **options)
    assert ours.best_params_ == {"C": 10.0}
    cost = make_scorer(lambda y, labels: float((y != labels).sum()), greater_is_better=False)
    both(SVC(gamma=0.5, **TIGHT), grid, X_MOONS, Y_MOONS, cv=3, scoring=cost)


def test_search_with_weights() -> None:
    weight = np.random.default_rng(0).uniform(0.1, 2.0, 60)
    grid = {"C": [0.1, 10.0], "gamma": [0.5]}
    fit = {"sample_weight": weight}
    both(SVC(**TIGHT), grid, X_MOONS, Y_MOONS, cv=4, fit=fit)
    both(SVC(**TIGHT), grid, X_MOONS, Y_MOONS, cv=theirs.LeaveOneOut(), fit=fit)


def test_search_by_leave_one_out() -> None:
    grid = {"C": [0.01, 1.0, 100.0], "gamma": [0.1, 1.0]}
    both(SVC(**TIGHT), grid, X_MOONS, Y_MOONS, cv=theirs.LeaveOneOut())


@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.FitFailedWarning", "ignore:One or more of the test"
)
def test_search_with_candidates_that_fail() -> None:
    grid = {"C": [-1.0, 1.0], "gamma": [0.5]}
    ours, _ = both(SVC(**TIGHT), grid, X_MOONS, Y_MOONS, cv=3)
    assert np.isnan(ours.cv_results_["mean_test_score"][0]) and ours.best_index_ == 1
    with pytest.raises(ValueError, match="C"):
        exactcv.GridSearchCV(SVC(), grid, error_score="raise").fit(X_MOONS, Y_MOONS)


def test_threads_change_nothing() -> None:
    grid = {"C": np.geomspace(0.1, 100, 5), "gamma": [0.1, 0.3, 1.0, 3.0, "scale"]}
    results = [
        exactcv.GridSearchCV(SVC(), grid, scoring="roc_auc", cv=4, n_jobs=n_jobs)
        .fit(X_MOONS, Y_MOONS)
        .cv_results_["split0_test_score"]
        for n_jobs in (None, 2, 3)
    ]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_search_is_an_estimator() -> None:
    search = exactcv.GridSearchCV(SVC(gamma=0.5), {"C": [1.0, 2.0]}, cv=3)
    copy = clone(search).fit(X_MOONS, Y_MOONS)
    again = pickle.loads(pickle.dumps(copy))
    np.testing.assert_array_equal(again.predict(X_MOONS), copy.predict(X_MOONS))
    with pytest.raises(ValueError, match="cv"):
        clone(search).set_params(cv="five").fit(X_MOONS, Y_MOONS)


# ---- what is said -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "setting", "advice"),
    [
        (SVC(), "gamma='scale'", "a number"),
        (SVC(gamma=1.0, class_weight="balanced"), "class_weight='balanced'", "a dict"),
        (make_pipeline(StandardScaler(), SVC(gamma=1.0)), "'standardscaler'", "transform X once"),
    ],
)
def test_slow_settings_are_named(estimator: Any, setting: str, advice: str) -> None:
    with pytest.warns(exactcv.SlowFoldsWarning, match=f"{setting}.*{advice}") as caught:
        exactcv.cross_val_score(estimator, X_MOONS, Y_MOONS)
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "estimator",
    [
        SVC(gamma=1.0, class_weight={0: 2.0}),
        SVC(kernel="linear"),  # has no gamma
        make_pipeline(Normalizer(), FunctionTransformer(np.cbrt), SVC(gamma="auto")),
        Pipeline([("nothing", "passthrough"), ("svc", SVC(gamma=1.0))]),
    ],
)
def test_settings_that_share_a_kernel_are_silent(estimator: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exactcv.cross_val_score(estimator, X_MOONS, Y_MOONS)


def test_one_group_for_each_kernel() -> None:
    grid = [
        {"C": c, "gamma": g, "kernel": k}
        for c in (1, 2, 3)
        for g in (0.1, 0.2)
        for k in ("rbf", "linear")
    ]
    plan = make_plan(read_candidates(SVC(), grid, X_MOONS), {})
    assert sorted(len(group.candidates) for group in plan.shared) == [3, 3, 6]
    assert not plan.by_fold and not plan.foreign


@pytest.mark.filterwarnings("ignore:The `probability` parameter:FutureWarning")
def test_probabilities_are_scikit_learns_own() -> None:
    estimator = SVC(gamma=1.0, probability=True, random_state=0)
    with pytest.warns(exactcv.SlowFoldsWarning, match="SVCCV"):
        ours = exactcv.cross_val_predict(estimator, X_MOONS, Y_MOONS, cv=3, method="predict_proba")
    options: dict[str, Any] = {"cv": 3, "method": "predict_proba"}
    np.testing.assert_array_equal(
        ours, theirs.cross_val_predict(estimator, X_MOONS, Y_MOONS, **options)
    )
    losses = exactcv.cross_val_score(estimator, X_MOONS, Y_MOONS, cv=3, scoring="neg_log_loss")
    expected = theirs.cross_val_score(estimator, X_MOONS, Y_MOONS, cv=3, scoring="neg_log_loss")
    np.testing.assert_array_equal(losses, expected)


# ---- the seams --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cross_val_predict", "cross_val_score", "GridSearchCV"])
def test_signatures_are_scikit_learns(name: str) -> None:
    ours = inspect.signature(getattr(exactcv, name)).parameters
    expected = inspect.signature(getattr(theirs, name)).parameters
    assert list(ours) == list(expected)
    for parameter, mine in ours.items():
        default = expected[parameter].default
        assert mine.kind == expected[parameter].kind
        assert mine.default == default or (mine.default != mine.default and default != default)


def test_the_private_hooks_are_there() -> None:
    """The search leans on private methods of scikit-learn's; see grid_search.py."""
    base = theirs.GridSearchCV
    found = list(inspect.signature(base._format_results).parameters)
    assert found[:4] == ["self", "candidate_params", "n_splits", "out"]
    assert list(inspect.signature(base._get_scorers).parameters)[:1] == ["self"]
    assert list(inspect.signature(base._get_routed_params_for_fit).parameters) == ["self", "params"]
    several = theirs.GridSearchCV(SVC(), {}, scoring=["accuracy", "f1"], refit="f1")
    assert set(several._get_scorers()[0]._scorers) == {"accuracy", "f1"}


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("_fit_and_score", ["estimator", "X", "y", "scorer", "train", "test", "verbose"]),
        ("_fit_and_predict", ["estimator", "X", "y", "train", "test", "fit_params", "method"]),
        ("_score", ["estimator", "X_test", "y_test", "scorer", "score_params", "error_score"]),
        ("_enforce_prediction_order", ["classes", "predictions", "n_classes", "method"]),
        ("_check_is_permutation", ["indices", "n_samples"]),
        ("_insert_error_scores", ["results", "error_score"]),
        ("_warn_or_raise_about_fit_failures", ["results", "error_score"]),
    ],
)
def test_the_private_functions_are_there(name: str, first: list[str]) -> None:
    """What is not ours, scikit-learn's own functions do; see table.py and functions.py."""
    found = list(inspect.signature(getattr(theirs._validation, name)).parameters)
    assert found[: len(first)] == first


def test_the_private_hook_that_checks_parameters_is_there() -> None:
    """``_validate_params`` refuses what the constructor's parameters must not be."""
    assert list(inspect.signature(theirs.GridSearchCV._validate_params).parameters) == ["self"]
    theirs.GridSearchCV(SVC(), {"C": [1.0]})._validate_params()
    for wrong in ({"cv": "five"}, {"error_score": "ignore"}, {"n_jobs": 1.5}, {"refit": 7}):
        search = exactcv.GridSearchCV(SVC(), {"C": [1.0]}, **wrong)
        with pytest.raises(ValueError, match=next(iter(wrong))):
            search._validate_params()
        with pytest.raises(ValueError, match=next(iter(wrong))):
            search.fit(X_MOONS, Y_MOONS)


def test_the_private_hook_that_takes_rows_is_there() -> None:
    """``_safe_indexing`` takes rows of whatever holds them, and leaves its kind alone."""
    rows = np.array([2, 0])
    assert list(inspect.signature(_safe_indexing).parameters)[:2] == ["X", "indices"]
    assert _safe_indexing(["a", "b", "c"], rows) == ["c", "a"]
    array = np.arange(6).reshape(3, 2)
    np.testing.assert_array_equal(_safe_indexing(array, rows), array[rows])
    part = _safe_indexing(sparse.csr_matrix(array), rows)
    assert sparse.issparse(part)
    np.testing.assert_array_equal(part.toarray(), array[rows])
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(array, columns=["a", "b"], index=[5, 6, 7])
    assert _safe_indexing(frame, rows).equals(frame.iloc[rows])
