"""Plots: they draw the numbers of the result, and follow scikit-learn's conventions."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import exactcv
from exactcv.report import plots as displays
from exactcv.report.overview import LeftOutRows, overview

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


X, y = exactcv.datasets.make_mixture(60, 4, random_state=0)
LABELS = np.where(y > 0, "ill", "well")


@pytest.fixture(scope="module")
def result() -> exactcv.CVResult:
    return exactcv.cross_validate(X, LABELS, lambdas=np.geomspace(0.1, 1e-4, 8), output="decision")


@pytest.fixture(scope="module")
def by_gamma() -> list[exactcv.CVResult]:
    return [exactcv.cross_validate(X, LABELS, gamma=g, Cs=[0.1, 1, 10]) for g in (1.0, 0.01, 0.1)]


def test_error_curve(result: exactcv.CVResult) -> None:
    display = result.plot()
    assert isinstance(display, exactcv.ErrorCurveDisplay)
    assert display.figure_ is display.ax_.figure
    np.testing.assert_allclose(display.line_.get_xdata(), result.Cs)
    np.testing.assert_allclose(display.line_.get_ydata(), result.error)
    points = ((display.best_, result.best), (display.one_se_, result.one_se))
    for artist, index in points:
        where = float(artist.get_xdata()[0]), float(artist.get_ydata()[0])
        assert where == (result.Cs[index], result.error[index])
    band = display.band_.get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx((result.error + result.se).max())
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["left-out error", "one standard error", "least error", "1-SE rule"]


def test_error_curve_against_lambda_on_given_axes(result: exactcv.CVResult) -> None:
    _, ax = plt.subplots()
    display = result.plot("error", ax=ax, against="lambda", color="red")
    assert display.ax_ is ax
    assert ax.get_xlabel() == "lambda" and ax.xaxis_inverted()  # C grows to the right
    np.testing.assert_allclose(np.sort(display.line_.get_xdata()), np.sort(result.lambdas))
    assert display.line_.get_color() == "red"
    again = display.plot()
    assert again is display and display.ax_ is not ax
    with pytest.raises(exactcv.InputError, match="against='alpha'"):
        result.plot(against="alpha")


def test_a_single_fold_has_no_band() -> None:
    cv = [(np.arange(50), np.arange(50, 60))]
    display = exactcv.cross_validate(X, y, Cs=[0.1, 1.0], cv=cv).plot()
    assert display.band_ is None


def test_heat_map(by_gamma: list[exactcv.CVResult]) -> None:
    display = exactcv.HeatMapDisplay.from_result(by_gamma)
    errors = {run.gamma: run.error for run in by_gamma}
    np.testing.assert_allclose(
        display.image_.get_array().reshape(3, 3), [errors[g] for g in (0.01, 0.1, 1.0)]
    )
    best = min(by_gamma, key=lambda run: run.error.min())
    assert display.best_.get_ydata()[0] == best.gamma
    assert display.best_.get_xdata()[0] == best.Cs[best.best]
    assert display.colorbar_.ax.get_ylabel() == "left-out error"
    assert display.plot(colorbar=False).colorbar_ is None


def test_heat_map_needs_two_gammas(result: exactcv.CVResult) -> None:
    with pytest.raises(exactcv.InputError, match="two values of gamma"):
        result.plot("heatmap")


def test_left_out_values(result: exactcv.CVResult) -> None:
    display = result.plot("decision", bins=7)
    assert result.decision is not None
    for k, label in enumerate(result.classes):
        heights = [bar.get_height() for bar in display.bars_[k]]
        assert len(heights) == 7 and sum(heights) == (label == LABELS).sum()
    assert [t.get_text() for t in display.ax_.get_legend().get_texts()] == ["ill", "well"]
    np.testing.assert_array_equal(display.values, result.decision[result.best])


def test_roc(result: exactcv.CVResult) -> None:
    display = result.plot("roc")
    assert result.decision is not None
    expected = roc_auc_score(LABELS == "well", result.decision[result.best])
    assert display.roc_auc == [pytest.approx(expected)]
    assert f"well (AUC = {expected:.3f})" in display.line_.get_label()


def test_several_classes(result: exactcv.CVResult) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=30)
    decision = rng.normal(size=(30, 3)) + np.eye(3)[truth]
    left_out = LeftOutRows(
        row=np.arange(30), truth=truth, predicted=decision.argmax(axis=1), decision=decision
    )
    it = replace(overview(result), classes=np.array(["a", "b", "c"]), left_out=left_out)
    roc = displays.draw(it, "roc")
    expected = [roc_auc_score(truth == k, decision[:, k]) for k in range(3)]
    np.testing.assert_allclose(roc.roc_auc, expected)
    margins = displays.draw(it, "decision").values
    np.testing.assert_array_equal(margins > 0, decision.argmax(axis=1) == truth)


def test_decisions_are_asked_for(by_gamma: list[exactcv.CVResult]) -> None:
    for kind in ("decision", "roc"):
        with pytest.raises(exactcv.InputError, match="output='decision'"):
            by_gamma[0].plot(kind)


def test_bad_kinds(result: exactcv.CVResult) -> None:
    with pytest.raises(exactcv.InputError, match="'error', 'heatmap', 'decision', 'roc'"):
        result.plot("pie")
    with pytest.raises(exactcv.InputTypeError, match=r"plot\(ax=...\)"):
        result.plot(plt.subplots()[1])  # type: ignore[arg-type]


def test_one_class_tested_has_no_roc() -> None:
    few = np.flatnonzero(y > 0)[:4]
    cv = [(np.setdiff1d(np.arange(60), few), few)]
    result = exactcv.cross_validate(X, y, Cs=[1.0], cv=cv, output="decision")
    with pytest.raises(exactcv.InputError, match="one class"):
        result.plot("roc")


@pytest.mark.parametrize("kind", sorted(displays.DISPLAYS))
def test_without_matplotlib_the_extra_is_named(
    kind: str,
    result: exactcv.CVResult,
    by_gamma: list[exactcv.CVResult],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = builtins.__import__

    def without(module: str, *args: Any, **kwargs: Any) -> Any:
        if module.split(".")[0] == "matplotlib":
            raise ImportError(module)
        return real(module, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    source = by_gamma if kind == "heatmap" else result
    with pytest.raises(exactcv.MissingExtraError, match=r'pip install "exactcv\[plot\]"'):
        displays.draw(source, kind)


def test_the_curve_shows_the_score_that_was_asked_for() -> None:
    model = exactcv.SVCCV(
        Cs=[0.1, 1.0, 10.0], gamma=[0.1, 1.0], scoring="roc_auc", store_cv_results=True
    ).fit(X, LABELS)
    display = model.plot()
    scores = model.cv_results_["mean_test_score"].reshape(2, 3)
    np.testing.assert_allclose(display.line_.get_ydata(), scores[scores.max(axis=1).argmax()])
    assert display.band_ is None and display.ax_.get_ylabel() == "roc_auc"
    assert display.best_.get_label() == "best"


@pytest.mark.parametrize(("scoring", "colours"), [(None, "viridis_r"), ("roc_auc", "viridis")])
def test_bright_is_good(scoring: str | None, colours: str) -> None:
    model = exactcv.SVCCV(Cs=[0.1, 1.0], gamma=[0.1, 1.0], scoring=scoring).fit(X, LABELS)
    assert model.plot("heatmap").image_.get_cmap().name == colours


def test_the_band_of_losses_is_as_high_as_they_are() -> None:
    result = exactcv.cross_validate(
        X, 1e3 * X[:, 0], loss="epsilon_insensitive", epsilon=10.0, Cs=[1.0, 100.0]
    )
    band = result.plot().band_.get_paths()[0].vertices
    assert (
        band[:, 1].max() == pytest.approx((result.error + result.se).max()) and result.error[0] > 1
    )
