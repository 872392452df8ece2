"""What the drop-in functions do not know for certain, scikit-learn's own code does."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn import model_selection as theirs
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import SelectKBest, mutual_info_classif
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KernelCenterer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
    scale,
)
from sklearn.svm import SVC, NuSVC

import exactcv
from exactcv.estimators.drop_in.models import Candidate, Foreign, read_candidates
from exactcv.estimators.drop_in.takeover import row_wise, why_not_estimator

X, Y = make_classification(80, 5, weights=[0.75], random_state=3)
TIGHT: dict[str, Any] = {"tol": 1e-8}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", exactcv.SlowFoldsWarning)
        yield


def scores(module: Any, estimator: Any, grid: Any, data: Any = X, **options: Any) -> Any:
    search = module.GridSearchCV(estimator, grid, cv=4, return_train_score=True, **options)
    results = search.fit(data, Y).cv_results_
    return {key: value for key, value in results.items() if "_test_" in key or "_train_" in key}


def check_same(estimator: Any, grid: Any, data: Any = X, **options: Any) -> None:
    """All scores are scikit-learn's, and the data are as they were."""
    given = data.copy()
    ours = scores(exactcv, estimator, grid, data, **options)
    assert np.array_equal(np.asarray(given), np.asarray(data))
    expected = scores(theirs, estimator, grid, given, **options)
    assert list(ours) == list(expected)
    for key, value in expected.items():
        np.testing.assert_allclose(ours[key], value, atol=1e-9, err_msg=key)


# ---- X stays as it is ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [
        Binarizer(copy=False),
        StandardScaler(copy=False),
        MinMaxScaler(copy=False),
        MaxAbsScaler(copy=False),
        RobustScaler(copy=False),
        Normalizer(copy=False),
        PCA(2, copy=False),
        FeatureUnion([("a", StandardScaler(copy=False)), ("b", "passthrough")]),
        FunctionTransformer(lambda X: np.add(X, 1.0, out=X)),
    ],
)
@pytest.mark.parametrize("scoring", [None, ["roc_auc", "f1"]])
def test_steps_that_write(step: Any, scoring: Any) -> None:
    pipeline = Pipeline([("t", step), ("svc", SVC(gamma=0.3, **TIGHT))])
    options: dict[str, Any] = {"scoring": scoring, "refit": scoring is None}
    if type(step) is FunctionTransformer:
        options["refit"] = False  # which scikit-learn hands X itself
    check_same(pipeline, {"svc__C": [0.1, 10.0]}, **options)


def test_the_parameters_of_a_step_that_writes() -> None:
    """The case that was wrong: each threshold saw what the one before had left."""
    pipeline = Pipeline([("t", Binarizer(copy=False)), ("svc", SVC(**TIGHT))])
    check_same(pipeline, {"t__threshold": [-1.0, 0.0, 1.0]})
    check_same(pipeline, {"t__threshold": [-1.0, 0.0, 1.0], "t__copy": [True, False]})


@pytest.mark.parametrize("step", [Normalizer(), StandardScaler(), Binarizer()])
def test_steps_that_copy_are_taken_over(step: Any) -> None:
    assert why_not_estimator(make_pipeline(step, SVC()), X) is None
    check_same(make_pipeline(step, SVC(gamma=0.3, **TIGHT)), {"svc__C": [0.1, 10.0]})


# ---- nothing but what is known ------------------------------------------------------------------


class OtherSVC(SVC):
    """Trains on every second row."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OtherSVC:
        return super().fit(X[::2], y[::2])


class Sampling(Pipeline):
    """In the manner of imbalanced-learn: the first step chooses the training rows."""

    def fit(self, X: Any, y: Any = None, **params: Any) -> Sampling:
        few = np.flatnonzero(y == 1)
        rows = np.r_[few, np.flatnonzero(y == 0)[: len(few)]]
        super().fit(X[rows], y[rows], **params)
        return self


class Stateless(TransformerMixin, BaseEstimator):
    """No fitted attribute; counts its fits."""

    fits = 0

    def fit(self, X: Any, y: Any = None) -> Stateless:
        type(self).fits += 1
        return self

    def transform(self, X: Any) -> Any:
        return np.abs(X)


class OtherScaler(StandardScaler):
    def transform(self, X: Any, copy: Any = None) -> Any:
        return super().transform(X) ** 2


@pytest.mark.parametrize(
    ("estimator", "word"),
    [
        (OtherSVC(gamma=0.3), "OtherSVC is not sklearn.svm.SVC"),
        (Sampling([("s", StandardScaler()), ("svc", SVC(gamma=0.3))]), "Sampling is not"),
        (make_pipeline(StandardScaler(), OtherSVC(gamma=0.3)), "last step, OtherSVC"),
        (make_pipeline(OtherScaler(), SVC(gamma=0.3)), "OtherScaler, in the step 'otherscaler'"),
        (make_pipeline(Stateless(), SVC(gamma=0.3)), "Stateless"),
        (make_pipeline(make_column_transformer((OtherScaler(), [0])), SVC()), "OtherScaler"),
        (make_pipeline(FeatureUnion([("a", OtherScaler())]), SVC()), "OtherScaler"),
        (make_pipeline(FunctionTransformer(lambda X: X - X.mean()), SVC()), "func=<lambda>"),
        (make_pipeline(TruncatedSVD(2), SVC(gamma=0.3)), "random_state=0"),
        (make_pipeline(SelectKBest(mutual_info_classif, k=2), SVC()), "random_state=0"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "LogisticRegression"),
        (NuSVC(nu=0.2), "NuSVC"),
        (LogisticRegression(), "LogisticRegression"),
    ],
)
def test_what_is_not_known_is_scikit_learns(estimator: Any, word: str) -> None:
    found = []
    for module in (exactcv, theirs):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            np.random.seed(0)  # noqa: NPY002 - what unseeded steps draw from
            search = module.GridSearchCV(estimator, {}, cv=4, scoring="f1").fit(X, Y)
            found.append([search.cv_results_[f"split{f}_test_score"] for f in range(4)])
            for method in ("predict", "decision_function"):
                found.append(module.cross_val_predict(estimator, X, Y, cv=4, method=method))
            found.append(module.cross_val_score(estimator, X, Y, cv=4, scoring="f1"))
        told = [w for w in caught if w.category is exactcv.SlowFoldsWarning]
        assert len(told) == (4 if module is exactcv else 0)
        assert all(word in str(w.message) and w.filename == __file__ for w in told)
    for mine, yours in zip(found[:4], found[4:], strict=True):
        np.testing.assert_array_equal(mine, yours)


def test_pipelines_of_imbalanced_learn() -> None:
    pipelines = pytest.importorskip("imblearn.pipeline")
    under = pytest.importorskip("imblearn.under_sampling")
    for sampler in (under.RandomUnderSampler(random_state=0), under.TomekLinks()):
        steps = [("sample", sampler), ("scale", StandardScaler()), ("svc", SVC(**TIGHT))]
        pipeline = pipelines.Pipeline(steps)
        check_same(pipeline, {"svc__C": [0.1, 1.0, 10.0]}, scoring="f1")
        steps = [("sample", sampler), ("norm", Normalizer()), ("svc", SVC(gamma=1.0, **TIGHT))]
        check_same(pipelines.Pipeline(steps), {"svc__C": [0.1, 1.0, 10.0]}, scoring="f1")


def test_a_subclass_of_the_search_is_scikit_learns() -> None:
    class Last(exactcv.GridSearchCV):
        @staticmethod
        def _select_best_index(refit: Any, refit_metric: Any, results: Any) -> int:
            return len(results["params"]) - 1

    assert Last(SVC(), {"C": [1.0, 1e-3]}).fit(X, Y).best_params_ == {"C": 1e-3}


def test_a_grid_of_what_is_ours_and_what_is_not() -> None:
    pipeline = Pipeline([("scale", StandardScaler()), ("model", SVC())])
    models = [SVC(C=3.0, **TIGHT), LogisticRegression(), OtherSVC(), NuSVC(nu=0.2)]
    check_same(pipeline, {"model": models, "scale": [StandardScaler(), OtherScaler()]})


@pytest.mark.parametrize("nothing", [None, "passthrough"])
def test_a_grid_that_fills_placeholders(nothing: Any) -> None:
    """The folds are then those of the placeholder, which is no classifier."""
    pipeline = Pipeline([("scale", nothing), ("clf", nothing)])
    grid = [
        {"clf": [SVC(C=3.0, **TIGHT)], "scale": [nothing, StandardScaler()]},
        {"clf": [LogisticRegression()]},
    ]
    check_same(pipeline, grid, scoring="accuracy")


def test_steps_that_scikit_learn_knows_are_ours() -> None:
    columns = make_column_transformer((StandardScaler(), [0, 1]), (Binarizer(), [2]))
    for step in (
        PCA(2),
        TruncatedSVD(2, random_state=0),
        SelectKBest(k=2),
        columns,
        FeatureUnion([("a", StandardScaler()), ("b", PCA(2))][:1]),
        FunctionTransformer(np.abs),
    ):
        assert why_not_estimator(make_pipeline(step, SVC()), X) is None
        check_same(make_pipeline(step, SVC(gamma=0.3, **TIGHT)), {"svc__C": [0.1, 10.0]})
    # PCA chooses its algorithm by the size.
    assert why_not_estimator(make_pipeline(PCA(2), SVC()), np.zeros((501, 9))) is not None
    assert why_not_estimator(make_pipeline(PCA(0.9), SVC()), np.zeros((501, 9))) is None
    assert not row_wise(FunctionTransformer(scale))


def test_stateless_steps_are_fitted_once_a_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stateless, "fits", 0)
    with pytest.warns(exactcv.SlowFoldsWarning, match="Stateless"):
        exactcv.cross_val_score(make_pipeline(Stateless(), SVC(gamma=0.3)), X, Y, cv=4)
    assert Stateless.fits == 4


def test_what_fails_here_but_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("a mistake of ours")

    for name in ("kernel_matrix", "Distances"):
        monkeypatch.setattr(f"exactcv.estimators.drop_in.matrices.{name}", broken)
    for gamma in (0.3, "scale"):
        with pytest.warns(exactcv.SlowFoldsWarning, match="a mistake of ours"):
            found = exactcv.cross_val_score(SVC(gamma=gamma), X, Y, cv=4)
        np.testing.assert_array_equal(found, theirs.cross_val_score(SVC(gamma=gamma), X, Y, cv=4))


# ---- kinds of input -----------------------------------------------------------------------------


def test_a_pipeline_over_a_kernel_matrix() -> None:
    K = X @ X.T
    pipeline = Pipeline([("center", KernelCenterer()), ("svc", SVC(kernel="precomputed"))])
    check_same(pipeline, {"svc__C": [0.01, 1.0]}, K)


def test_sparse_kernel_matrices_are_refused_as_by_scikit_learn() -> None:
    for module in (exactcv, theirs):
        with pytest.raises(TypeError, match="Sparse precomputed"):
            module.cross_val_score(
                SVC(kernel="precomputed"), sparse.csr_matrix(X @ X.T), Y, error_score="raise"
            )


def centred(X: Any, Z: Any) -> Any:
    return (X - X.mean(0)) @ (Z - Z.mean(0)).T


def plain(X: Any, Z: Any) -> Any:
    found = X @ Z.T
    return found.toarray() if sparse.issparse(found) else found


def test_kernels_that_depend_on_their_company() -> None:
    grid = {"C": [0.01, 1.0], "kernel": [centred, plain]}
    check_same(SVC(**TIGHT), grid)
    check_same(make_pipeline(StandardScaler(), SVC(kernel=centred, **TIGHT)), {"svc__C": [0.1]})
    with pytest.warns(exactcv.SlowFoldsWarning, match="depends on the other rows"):
        exactcv.cross_val_score(SVC(kernel=centred), X, Y)
    rows = sparse.csr_matrix(X)
    found = [m.cross_val_score(SVC(kernel=plain), rows, Y) for m in (exactcv, theirs)]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("y", [np.linspace(0, 1, 80), np.eye(2)[Y], None])
def test_targets_that_are_no_classes(y: Any) -> None:
    errors = []
    for module in (exactcv, theirs):
        with pytest.raises((TypeError, ValueError)) as caught:
            module.cross_val_score(SVC(), X, y, cv=4, error_score="raise")
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


@pytest.mark.parametrize("kind", [sparse.coo_matrix, sparse.coo_array])
def test_fit_parameters_that_cannot_be_indexed(kind: Any) -> None:
    """An entry a row, sparse, for a step that takes it."""

    class Shift(StandardScaler):
        def fit(self, X: Any, y: Any = None, shift: Any = None) -> Shift:
            assert shift.shape == (len(X), 1)
            return super().fit(X + shift.toarray())

    shift = kind(np.arange(80.0)[:, None])
    pipeline = make_pipeline(Shift(), SVC(gamma=0.3, **TIGHT))
    found = [
        module.cross_val_score(pipeline, X, Y, cv=4, params={"shift__shift": shift})
        for module in (exactcv, theirs)
    ]
    np.testing.assert_array_equal(*found)
    for module in (exactcv, theirs):
        with pytest.raises((TypeError, ValueError)):
            module.cross_val_score(
                SVC(gamma=0.3), X, Y, params={"sample_weight": shift}, error_score="raise"
            )


def test_splitters_that_do_not_count() -> None:
    class Halves:
        def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
            yield np.arange(40), np.arange(40, 80)

    for module in (exactcv, theirs):
        with pytest.raises(ValueError, match=r"'cv' parameter of cross_val_score.*get_n_splits"):
            module.cross_val_score(SVC(), X, Y, cv=Halves())
        with pytest.raises(ValueError, match=r"'cv' parameter of cross_val_predict.*get_n_splits"):
            module.cross_val_predict(SVC(), X, Y, cv=Halves())
        search = module.GridSearchCV(SVC(), {}, cv=Halves())
        with pytest.raises(ValueError, match=r"'cv' parameter of GridSearchCV.*get_n_splits"):
            search.fit(X, Y)


# ---- what is printed and called -----------------------------------------------------------------


@pytest.mark.parametrize("verbose", [1, 2, 3, 10])
@pytest.mark.parametrize("scoring", [None, ["accuracy", "f1"]])
def test_a_line_for_each_fit(capsys: Any, verbose: int, scoring: Any) -> None:
    shown = []
    grid = {"C": [0.1, 10.0], "gamma": [0.3], "kernel": ["rbf", "linear"]}
    for module in (exactcv, theirs):
        options: dict[str, Any] = {"return_train_score": verbose == 10, "scoring": scoring}
        search = module.GridSearchCV(SVC(**TIGHT), grid, cv=3, refit=False, **options)
        search.set_params(verbose=verbose).fit(X, Y)
        module.cross_val_score(SVC(gamma=0.3, **TIGHT), X, Y, verbose=verbose)
        lines = [line for line in capsys.readouterr().out.splitlines() if line[0] in "[F"]
        # The times differ, and so does the number of dots before them.
        shown.append(sorted(line.split(" total")[0].replace("..", "") for line in lines))
    assert [line.replace(".", "") for line in shown[0]] == [
        line.replace(".", "") for line in shown[1] if not line.startswith("[Parallel")
    ]


def test_callbacks_are_called() -> None:
    if not hasattr(exactcv.GridSearchCV, "set_callbacks"):
        pytest.skip("scikit-learn before 1.9")

    class Counting:
        def __init__(self) -> None:
            self.calls = 0

        def setup(self, *args: Any, **kwargs: Any) -> None:
            self.calls += 1

        teardown = on_fit_task_begin = on_fit_task_end = setup

    counts = []
    for module in (exactcv, theirs):
        counting = Counting()
        search = module.GridSearchCV(SVC(gamma=0.3), {"C": [1.0, 2.0]}, cv=3)
        search.set_callbacks(counting).fit(X, Y)
        counts.append(counting.calls)
    assert counts[0] == counts[1] > 0


@pytest.mark.parametrize(
    ("spoil", "said"), [("X", "text in column 1 .row 2: 'abc'"), ("y", "missing .*first in row 3")]
)
@pytest.mark.parametrize("call", ["search", "score", "predict"])
def test_errors_are_theirs_and_a_note_names_the_cell(call: str, spoil: str, said: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)).astype(object), np.arange(30) % 2.0
    if spoil == "X":
        X[2, 1] = "abc"
    else:
        y[3] = np.nan
    svc = SVC(C=1.0, gamma=1.0)
    raised = []
    for kit in (exactcv, theirs):
        calls = {
            "search": lambda kit=kit: kit.GridSearchCV(svc, {"C": [1.0]}).fit(X, y),
            "score": lambda kit=kit: kit.cross_val_score(svc, X, y, error_score="raise"),
            "predict": lambda kit=kit: kit.cross_val_predict(svc, X, y),
        }
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match=r"NaN|convert") as found:
            calls[call]()
        raised.append(found.value)
    ours, original = raised
    assert type(ours) is type(original)
    assert str(ours) == str(original)
    assert re.search(said, "\n".join(ours.__notes__))


def test_copies_of_a_plain_svc_are_those_of_scikit_learn() -> None:
    """Without its own copying and checking, where that would tell nothing new."""
    base, X = SVC(gamma=0.5, class_weight=None), np.eye(3)
    grid = [{"C": 1.0}, {"C": 1.0, "gamma": 0.1}, {"C": -1.0}, {"C": 1.0, "shrinking": False}]
    grid += [{"C": np.float64(2.0), "gamma": "auto"}, {"C": np.nan}, {"C": True}, {"C": -1.0}]
    found = read_candidates(base, grid, X)
    for one, params in zip(found, grid, strict=True):
        expected = clone(base).set_params(**params)
        reason = why_not_estimator(expected, X)
        assert isinstance(one, Foreign) == (reason is not None)
        if isinstance(one, Candidate):
            assert one.estimator.get_params() == expected.get_params()
            assert one.estimator is not base
        else:
            assert one.reason == reason


def test_copies_carry_what_else_an_svc_carries() -> None:
    with config_context(enable_metadata_routing=True):
        base = SVC(gamma=0.5).set_fit_request(sample_weight=True)
        (found,) = read_candidates(base, [{"C": 2.0}], np.eye(3))
        assert isinstance(found, Candidate)
        assert found.estimator.get_metadata_routing().fit.requests == {"sample_weight": True}
