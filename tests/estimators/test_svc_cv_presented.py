"""SVCCV shows itself: summary, plots, report, progress, and what Ctrl-C leaves."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score

import exactcv
from exactcv import SVCCV
from exactcv.crossval.tuning import Tuning
from exactcv.report import words as report
from exactcv.report.overview import overview

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

X, y = exactcv.datasets.make_mixture(40, 4, random_state=0)
LABELS = np.where(y > 0, "ill", "well")
GRID: dict[str, Any] = {"Cs": [0.1, 1.0, 10.0], "gamma": [0.01, 0.1, 1.0]}


@pytest.fixture(scope="module")
def binary() -> SVCCV:
    return SVCCV(**GRID, store_cv_results=True).fit(X, LABELS)


@pytest.fixture(scope="module")
def iris() -> SVCCV:
    rows = np.arange(0, 150, 3)
    data, labels = load_iris(return_X_y=True)
    return SVCCV(**GRID, cv=5, probability=True).fit(data[rows], labels[rows])


def test_the_overview_agrees_with_the_attributes(binary: SVCCV, iris: SVCCV) -> None:
    for model in (binary, iris):
        it = overview(model)
        g, l = it.chosen
        assert (it.Cs[l], it.gammas[g], it.lambdas[l]) == (model.C_, model.gamma_, model.lambda_)
        np.testing.assert_array_equal(it.error.ravel(), model.cv_results_["error"])
        np.testing.assert_array_equal(it.kkt.ravel(), model.certificate_.kkt)
        wrong = it.left_out.predicted != it.left_out.truth
        assert wrong.sum() == it.n_errors[g, l] == model.cv_results_["n_errors"][model.best_index_]


def test_the_summary_and_its_warnings(binary: SVCCV, iris: SVCCV) -> None:
    text = " ".join(binary.summary().split())
    assert text.startswith("Leave-one-out over 3 values of C and 3 of gamma, 40 folds")
    assert f"C={binary.C_:.4g} (lambda={binary.lambda_:.4g}, gamma={binary.gamma_:.4g})" in text
    assert "3 classes (one against one)" in iris.summary()
    edge = SVCCV(Cs=[1.0, 10.0], gamma=[1e-4, 1e-3], cv=4).fit(X, y)
    kinds = [remark.kind for remark in report.remarks(edge)]
    it = overview(edge)
    assert ("edge_gamma" in kinds) == (it.error[it.best] > 0)
    flat = SVCCV(lambdas=[100.0, 10.0, 0.02, 0.001]).fit(X, y)
    assert "upside_down" in [remark.kind for remark in report.remarks(flat)]


def test_balanced_classes_turn_upside_down_among_three_too() -> None:
    data, labels = load_iris(return_X_y=True)
    model = SVCCV(lambdas=[1e4, 1e-3], gamma=0.1).fit(data[::5], labels[::5])
    assert model.cv_results_["error"][0] == 1.0
    assert "upside_down" in [remark.kind for remark in report.remarks(model)]


def test_a_score_is_named(binary: SVCCV) -> None:
    model = SVCCV(**GRID, scoring="roc_auc", cv=4).fit(X, y)
    it = overview(model)
    assert it.one_se is None
    assert "roc_auc" in model.summary() and "1-SE rule" not in model.summary()
    assert model.plot("heatmap").colorbar_.ax.get_ylabel() == "roc_auc"
    assert model.plot("heatmap").one_se_ is None
    both = SVCCV(**GRID, scoring="roc_auc", cv=4, select="1se").fit(X, y)
    assert overview(both).chosen == overview(both).one_se
    assert "1-SE rule" in both.summary()


def test_plots(binary: SVCCV, iris: SVCCV) -> None:
    heat = binary.plot("heatmap")
    np.testing.assert_allclose(
        heat.image_.get_array().ravel(), binary.cv_results_["error"], atol=1e-15
    )
    curve = exactcv.ErrorCurveDisplay.from_estimator(binary)
    assert curve.best_.get_xdata()[0] == binary.C_
    decision = binary.cv_results_["decision"][binary.best_index_]
    assert binary.plot("roc").roc_auc == [pytest.approx(roc_auc_score(LABELS == "well", decision))]
    assert len(iris.plot("roc").lines_) == 3
    assert (iris.plot("decision").values < 0).sum() == overview(iris).n_errors[
        overview(iris).chosen
    ]
    with pytest.raises(exactcv.InputError, match="store_cv_results=True"):
        SVCCV(Cs=[1.0], cv=4).fit(X, y).plot("roc")
    with pytest.raises(NotFittedError):
        SVCCV().plot()


def test_what_is_shown_survives_pickling_and_not_cloning(binary: SVCCV) -> None:
    assert pickle.loads(pickle.dumps(binary)).summary() == binary.summary()
    with pytest.raises(NotFittedError):
        clone(binary).summary()


def test_verbose_follows_the_gammas(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("exactcv.runtime.progress.LINE_EVERY", 0.0)
    SVCCV(**GRID, cv=4, verbose=1).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert lines[1] == "exactcv: gamma=0.01, 3 grid points, 4 folds (1 of 3)"
    assert lines[5].endswith("(3 of 3)")
    assert lines[-1].startswith("exactcv: done in")
    SVCCV(**GRID, cv=4).fit(X, y)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("settings", [{}, {"probability": True}, {"select": "1se"}])
def test_an_interrupt_keeps_the_gammas_that_are_done(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    real, seen = Tuning._curve, []

    def curve(self: Tuning, kernel: Any, workers: Any) -> Any:
        seen.append(kernel)
        if len(seen) == 3:
            workers.cancel[0] = 1  # as the pool does
            raise KeyboardInterrupt
        return real(self, kernel, workers)

    monkeypatch.setattr(Tuning, "_curve", curve)
    model = SVCCV(**GRID, cv=4, scoring="roc_auc", **settings)
    with pytest.raises(exactcv.Interrupted, match="2 of 3 gammas done") as info:
        model.fit(X, y)
    assert info.value.partial is model
    monkeypatch.undo()
    rest = SVCCV(**(GRID | {"gamma": [0.01, 0.1]}), cv=4, scoring="roc_auc", **settings).fit(X, y)
    assert model.cv_results_["params"] == rest.cv_results_["params"]
    np.testing.assert_array_equal(model.predict(X), rest.predict(X))
    assert (model.C_, model.gamma_) == (rest.C_, rest.gamma_)


def test_an_interrupt_before_anything_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def curve(self: Tuning, kernel: Any, workers: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(Tuning, "_curve", curve)
    with pytest.raises(exactcv.Interrupted, match="before the first gamma") as info:
        SVCCV(**GRID).fit(X, y)
    assert info.value.partial is None
