"""`SVCCV` where a class has one row, and what its tags say of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import LeaveOneOut, cross_val_predict, cross_val_score
from sklearn.svm import SVC
from sklearn.utils import get_tags

import exactcv
from exactcv import SVCCV
from exactcv.crossval.one_vs_one import most_votes, votes_of


@pytest.mark.parametrize("n_classes", [3, 4])
def test_the_only_row_of_a_class_is_predicted_by_the_others(n_classes: int) -> None:
    """Left out, it cannot be recognised: it counts as wrong, as in scikit-learn."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    y = (X[:, 0] > 0).astype(int)
    y[[4, 7][: n_classes - 2]] = [2, 3][: n_classes - 2]
    settings: dict[str, Any] = {"decision_function_shape": "ovo", "store_cv_results": True}
    for C in (0.1, 1.0, 100.0):
        with pytest.warns(
            UserWarning, match=r"has one row only, row . .from 0.: .*counts as wrong"
        ) as caught:
            model = SVCCV(Cs=[C], gamma=0.5, **settings).fit(X, y)
        assert [str(w.message).partition(":")[0] for w in caught] == [
            "class 2 has one row only, row 4 (from 0)",
            "class 3 has one row only, row 7 (from 0)",
        ][: n_classes - 2]
        svc = SVC(C=C, gamma=0.5, tol=1e-10, decision_function_shape="ovo")
        expected = cross_val_score(svc, X, y, cv=LeaveOneOut())
        assert model.best_score_ == expected.mean()
        predicted = cross_val_predict(svc, X, y, cv=LeaveOneOut())
        votes = votes_of(-model.cv_results_["decision"][0], n_classes)
        np.testing.assert_array_equal(most_votes(votes), predicted)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
def test_of_two_classes_the_only_row_is_not_tested() -> None:
    approx: dict[str, Any] = {"approx": "nystroem", "n_components": 20, "random_state": 0}
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    y = np.zeros(20, int)
    y[3] = 1
    expected = cross_val_score(SVC(C=1e-3, gamma=0.5), X, y, cv=LeaveOneOut(), error_score=np.nan)
    assert np.isnan(expected).sum() == 1
    for options in ({}, approx):
        with pytest.warns(UserWarning, match=r"class 1 has one row only, row 3.*not tested"):
            model = SVCCV(Cs=[1e-3], gamma=0.5, **options).fit(X, y)
        assert model.best_score_ == np.nanmean(expected)
        with pytest.warns(UserWarning, match="not tested"):
            found = exactcv.cross_validate(X, y, Cs=[1e-3], gamma=0.5, output="decision", **options)
        assert np.isnan(found.decision[0]).tolist() == (y == 1).tolist()
        assert found.n_errors[0] == np.nansum(1 - expected)
    with pytest.raises(exactcv.InputError, match="no row of class"):
        SVCCV().fit(X[2:4], y[2:4])


def test_with_features_there_may_be_several_classes_too() -> None:
    """Scikit-learn asks the tags."""
    assert get_tags(SVCCV()).classifier_tags.multi_class
    assert get_tags(SVCCV(approx="rff")).classifier_tags.multi_class
