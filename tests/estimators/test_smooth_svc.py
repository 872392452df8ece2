"""`SmoothSVC` as a scikit-learn estimator."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from _problems import labels
from sklearn.datasets import load_iris
from sklearn.feature_selection import RFECV, SelectFromModel
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import exactcv
from exactcv import SmoothSVC
from exactcv.algorithms.rank_update.newton_armijo import GRADIENT, ROUGH
from exactcv.exceptions import InputError, NotExactWarning
from exactcv.problem.folds import make_folds
from exactcv.problem.kernels import Kernel, kernel_matrix


@parametrize_with_checks(
    [SmoothSVC(), SmoothSVC(kernel="rbf", gamma=0.1), SmoothSVC(strategy="II")]
)
def test_scikit_learn_conventions(estimator: Any, check: Any) -> None:
    check(estimator)


def test_equals_liblinear() -> None:
    """LinearSVC has the same objective with C instead of c/2 and its intercept penalised too."""
    X, y = exactcv.datasets.make_mixture(80, 6, random_state=1)
    for c in (0.01, 1.0):
        ours = SmoothSVC(C=c).fit(X, y)
        theirs = LinearSVC(C=c / 2, loss="squared_hinge", dual=False, tol=1e-12, max_iter=10**6)
        theirs.fit(X, y)
        assert ours.coef_ == pytest.approx(theirs.coef_, abs=1e-6)
        assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-6)
        assert ours.gradient_norm_ < GRADIENT


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "sigmoid"])
@pytest.mark.filterwarnings("ignore::exactcv.NotPSDWarning")
def test_kernels_agree_between_fit_and_predict(kernel: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), labels(30)
    model = SmoothSVC(kernel=kernel, gamma=0.3, coef0=0.5, degree=2, C=5.0)
    model.fit(X, y)
    f = model.decision_function(X)
    assert set(model.support_) == set(np.flatnonzero(y * f < 1))
    K = kernel_matrix(X, Kernel(kernel, 0.3, 2, 0.5))[0]
    same = SmoothSVC(kernel="precomputed", C=5.0).fit(K, y)
    assert same.decision_function(K) == pytest.approx(f, abs=1e-9)


def test_callable_kernel_and_scoring() -> None:
    X, y = exactcv.datasets.make_mixture(60, 3, random_state=0)
    named = SmoothSVC(kernel="poly", degree=1, gamma=1.0, coef0=0.0).fit(X, y)
    called = SmoothSVC(kernel=lambda A, B: A @ B.T).fit(X, y)
    assert called.decision_function(X) == pytest.approx(named.decision_function(X), abs=1e-9)
    scores = cross_val_score(SmoothSVC(kernel="precomputed"), X @ X.T, y, cv=3)
    assert np.isfinite(scores).all()


def test_a_kernel_may_be_asymmetric_or_rectangular() -> None:
    """The paper's model asks nothing of the kernel: its matrix is data."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(40, 3)), labels(40)
    X += 0.5 * y[:, None]
    K = np.tanh(X @ rng.normal(size=(3, 40)))  # not symmetric
    for data in (K, K[:, :7]):
        model = SmoothSVC(kernel="precomputed", C=3.0).fit(data, y)
        plain = SmoothSVC(kernel="linear", C=3.0).fit(data, y)
        assert model.dual_coef_[0] == pytest.approx(plain.coef_[0], abs=1e-9)
        assert model.decision_function(data) == pytest.approx(
            plain.decision_function(data), abs=1e-9
        )
        assert model.gradient_norm_ < 1e-8


@pytest.mark.parametrize("cv", ["loo", 5])
def test_cross_validation_with_an_asymmetric_kernel(cv: Any) -> None:
    """Each fold by a fit of its own: a row takes its column along; those of a reduced one stay."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(30, 3)), labels(30)
    X += 0.5 * y[:, None]
    K = np.tanh(X @ rng.normal(size=(3, 30)))
    folds = make_folds(cv, X, y)
    for data, own in ((K, True), (np.ascontiguousarray(K[:, :6]), False)):
        found = exactcv.cross_validate(
            data, y, kernel="precomputed", Cs=[0.5, 5.0], cv=cv, loss="squared_hinge",
            method="rank_update", output="decision", tol=1e-6,
        )  # fmt: skip
        assert found.certificate.exact
        for out in folds.left_out:
            train = np.setdiff1d(np.arange(30), out)
            columns = train if own else np.arange(6)
            for l, C in enumerate((0.5, 5.0)):
                part = SmoothSVC(kernel="linear", C=2 * C).fit(
                    data[np.ix_(train, columns)], y[train]
                )
                expected = part.decision_function(data[np.ix_(out, columns)])
                assert found.decision[l, out] == pytest.approx(expected, abs=1e-6)


def test_bad_arguments() -> None:
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    for wrong in ({"C": -1.0}, {"strategy": "III"}, {"kernel": "cubic"}, {"gamma": "big"}):
        with pytest.raises(InputError):
            SmoothSVC(**wrong).fit(X, y)


def test_several_classes_are_told_what_to_do() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(InputError, match="OneVsRestClassifier or OneVsOneClassifier"):
        SmoothSVC().fit(X, y)
    assert OneVsRestClassifier(SmoothSVC(kernel="rbf")).fit(X, y).score(X, y) > 0.9


def test_refitting_with_another_kernel_forgets_the_first() -> None:
    X, y = load_iris(return_X_y=True)
    y = y == 0
    model = SmoothSVC(kernel="linear").fit(X, y).set_params(kernel="rbf").fit(X, y)
    assert not hasattr(model, "coef_")
    expected = SmoothSVC(kernel="rbf").fit(X, y).decision_function(X)
    assert (model.decision_function(X) == expected).all()


@pytest.mark.parametrize("strategy", ["I", "II", "auto"])
def test_huge_c_has_one_answer(strategy: str) -> None:
    """At c = 1e5 updates lose digits; the gradient, which rounding makes 1e-10, does not tell."""
    X, y = (a[::2] for a in load_iris(return_X_y=True))
    model = SmoothSVC(C=1e5, kernel="rbf", strategy=strategy).fit(X, y == 0)
    afresh = SmoothSVC(C=1e5, kernel="rbf", strategy="none").fit(X, y == 0)
    assert model.gradient_norm_ < ROUGH
    assert model.decision_function(X) == pytest.approx(afresh.decision_function(X), abs=1e-8)


@pytest.mark.parametrize("strategy", ["I", "II", "none"])
@pytest.mark.parametrize("C", [1e13, 1e18])
def test_what_float64_cannot_solve_is_said(C: float, strategy: str) -> None:
    X, y = exactcv.datasets.make_mixture(60, 4, random_state=0)
    with pytest.warns(NotExactWarning, match="beyond the accuracy of float64"):
        SmoothSVC(C=C, kernel="rbf", strategy=strategy).fit(X, y)


def test_weights_of_the_wrong_length() -> None:
    with pytest.raises(InputError, match="each of the 4 rows"):
        SmoothSVC().fit(np.eye(4), [0, 1, 0, 1], sample_weight=[1.0, 2.0])


def test_import_stays_light() -> None:
    code = "import sys, exactcv; print('sklearn.base' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_features_can_be_selected_by_weight() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 6))
    y = X[:, 2] + X[:, 4] + 0.1 * rng.normal(size=60) > 0
    found = RFECV(SmoothSVC(), min_features_to_select=1, cv=3).fit(X, y)
    assert {2, 4} <= set(found.get_support(indices=True))
    chosen = SelectFromModel(SmoothSVC(), max_features=2, threshold=-np.inf).fit(X, y)
    assert chosen.get_support(indices=True).tolist() == [2, 4]
