"""Numbers all the same, too large, too small, or inside the tube: no crash and no nonsense."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from _numbers import wave
from sklearn.model_selection import KFold, cross_val_score
from sklearn.svm import SVR

import exactcv
from exactcv import SVRCV, QuantileSVRCV
from exactcv.crossval.prediction_intervals import guarantee, promised
from exactcv.types import FloatArray

X, Y = wave(30)
KERNELS: list[Any] = ["rbf", "laplacian", "linear", "poly", lambda a, b: a @ b.T]


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_model_without_support_vectors_predicts(kernel: Any, tmp_path: Path) -> None:
    """The tube holds every row: the middle of the numbers, whatever the row."""
    model = SVRCV(Cs=[1.0], epsilon=100.0, kernel=kernel, gamma=0.5, coef0=1.0).fit(X, Y)
    assert len(model.support_) == 0
    np.testing.assert_allclose(model.predict(X), 0.5 * (Y.min() + Y.max()), atol=1e-12)
    low, high = model.predict_interval(X, 0.9).T
    assert (low <= high).all()
    if not callable(kernel):
        exactcv.save_model(model, tmp_path / "m.exactcv")
        again = exactcv.load_model(tmp_path / "m.exactcv")
        assert np.array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("value", [0.0, 7.0, -3e5, 1e90])
def test_constant_numbers(value: float) -> None:
    y = np.full(30, value)
    for model in (SVRCV(cv=3), QuantileSVRCV(cv=3, quantiles=[0.1, 0.9])):
        model.fit(X, y)
        assert model.certificate_.exact
        np.testing.assert_allclose(model.predict(X), value, rtol=4e-15)
        np.testing.assert_allclose(model.predict_interval(X), value, rtol=4e-15)
        assert "exact" in model.summary()


@pytest.mark.parametrize("y", [1e200 * Y, 1e-200 * Y, np.where(Y > 0, 5e-324, 0.0)])
def test_numbers_beyond_reach_are_refused(y: FloatArray) -> None:
    """Their squares overflow or vanish: no score, no norm."""
    for fit in (
        lambda: SVRCV(Cs=[1.0]).fit(X, y),
        lambda: QuantileSVRCV(Cs=[1.0]).fit(X, y),
        lambda: exactcv.cross_validate(X, y, loss="pinball", Cs=[1.0]),
    ):
        with pytest.raises(exactcv.ExactCVError, match="too large or too small"):
            fit()


def test_such_numbers_are_left_to_scikit_learn() -> None:
    y = 1e-200 * Y
    ours = exactcv.cross_val_score(SVR(gamma=0.5), X, y, cv=KFold(3), scoring="neg_max_error")
    theirs = cross_val_score(SVR(gamma=0.5), X, y, cv=KFold(3), scoring="neg_max_error")
    assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("tau", [1e-12, 1e-7, 1 - 1e-9])
def test_quantiles_too_close_to_their_ends(tau: float) -> None:
    for fit in (
        lambda: QuantileSVRCV(quantiles=[tau], Cs=[1.0]).fit(X, Y),
        lambda: exactcv.cross_validate(X, Y, loss="pinball", quantile=tau, Cs=[1.0]),
    ):
        with pytest.raises(exactcv.ExactCVError, match="too close to 0 or 1"):
            fit()


@pytest.mark.parametrize("tau", [1e-6, 1e-4, 1 - 1e-4, 1 - 1e-6])
@pytest.mark.parametrize("cv", ["loo", 3])
def test_quantiles_as_close_as_may_be(tau: float, cv: Any) -> None:
    settings: dict[str, Any] = {"loss": "pinball", "quantile": tau, "Cs": [0.1, 10.0], "cv": cv}
    quick = exactcv.cross_validate(X, Y, **settings)
    slow = exactcv.cross_validate(X, Y, method="refit", **settings)
    assert quick.certificate.exact and slow.certificate.exact
    np.testing.assert_allclose(quick.decision, slow.decision, atol=1e-6)


def test_words_of_a_model_fitted_to_a_frame_warn_of_nothing() -> None:
    frame = pd.DataFrame(X, columns=["a", "b"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in (SVRCV(Cs=[1.0]), QuantileSVRCV(Cs=[1.0])):
            model.fit(frame, Y)
            model.coverage_text(), model.summary(), model.methods_text()
    with pytest.raises(Exception, match="not fitted"):
        SVRCV().coverage_text()


def test_too_few_rows_for_the_coverage_are_told() -> None:
    model = SVRCV(Cs=[1.0]).fit(X[:15], Y[:15])
    assert np.isinf(model.predict_interval(X[:2], 0.95)).all()
    assert "That takes 19 rows; with 15 all intervals are infinite" in model.coverage_text(0.95)
    assert "infinite" not in model.coverage_text(0.9)
    for n in range(3, 40):
        few = "infinite" in guarantee("jackknife+", 0.9, n, n)
        assert few == (n < 9)


def test_what_each_method_promises() -> None:
    assert promised("jackknife+", 0.9, 40, 40) == pytest.approx(0.8)
    assert promised("jackknife-minmax", 0.9, 40, 40) == 0.9
    # Barber and others (2021), Theorem 4: 1 - 2 alpha - min(.36, .75 / 11) with K = 10 folds of 4.
    assert promised("cv+", 0.9, 40, 10) == pytest.approx(0.8 - 0.75 / 11)
