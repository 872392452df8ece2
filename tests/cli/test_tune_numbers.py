"""``exactcv tune`` and ``predict`` for a target of numbers."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from _numbers import wave
from click.exceptions import Abort
from click.testing import CliRunner

import exactcv
from exactcv.cli.main import cli
from exactcv.crossval import nested_numbers

QUICK = ["--Cs", "0.5,5", "--gamma", "0.3", "--epsilon", "0.1,0.2"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    X, y = wave(40)
    lines = ["a,b,price", *(f"{a:.6f},{b:.6f},{v:.6f}" for (a, b), v in zip(X, y, strict=True))]
    file = tmp_path / "houses.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def run(*words: Any) -> Any:
    result = CliRunner().invoke(cli, [str(word) for word in words], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


def read(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_tune_writes_all_of_it(table: Path) -> None:
    out = table.parent / "results"
    result = run("tune", table, "--target", "price", "--out", out, *QUICK)
    assert "regression" in result.output and "R2" in result.output and "intervals" in result.output
    assert "wrong" not in result.output
    for name in ("cv.csv", "predictions.csv", "report.html", "curve.png", "left_out.png",
                 "residuals.png", "model.exactcv", "run.json"):  # fmt: skip
        assert (out / name).stat().st_size > 0
    facts = json.loads((out / "run.json").read_text())["result"]
    assert facts["exact"] and facts["r2"] > 0.3 and facts["epsilon"] in (0.1, 0.2)
    assert len(read(out / "cv.csv")) == 4
    rows = read(out / "predictions.csv")
    truth, left_out = (np.array([float(r[k]) for r in rows]) for k in ("target", "predicted"))
    assert np.abs(truth - left_out).mean() == pytest.approx(facts["mae"])
    page = (out / "report.html").read_text()
    assert "Left-out residuals" in page and "Confusion" not in page and "class </" not in page
    assert "nothing to do" in run("tune", table, "--target", "price", "--out", out, *QUICK).output


@pytest.mark.parametrize("approx", ["nystroem", "rff"])
def test_an_approximate_kernel(table: Path, approx: str) -> None:
    out = table.parent / "results"
    asked = ["--approx", approx, "--components", "12", "--cv", "4", "--scoring", "r2", *QUICK]
    words = ["tune", table, "--target", "price", "--task", "regression", "--out", out, *asked]
    result = run(*words)
    assert f"approximate kernel ({approx}, 12 components)" in result.output
    assert "cv+: a new row" in result.output
    facts = json.loads((out / "run.json").read_text())["result"]
    assert facts["exact"] and facts["approximate_kernel"] == f"{approx}, 12 components"
    assert facts["n_support"] is None
    assert f"approximate kernel ({approx}" in (out / "report.html").read_text()
    file = table.parent / "predicted.csv"
    run("predict", out, table, "--interval", "0.8", "--out", file)
    rows = read(file)
    assert len(rows) == 40 and all(float(row["low"]) < float(row["high"]) for row in rows)
    model = exactcv.load_model(out)
    predicted = np.array([float(row["predicted"]) for row in rows])
    np.testing.assert_allclose(predicted, model.predict(table), rtol=1e-9)
    assert "nothing to do" in run(*words).output


def test_quantiles_of_an_approximate_kernel(table: Path) -> None:
    out, file = table.parent / "results", table.parent / "predicted.csv"
    words = ["--quantiles", "0.1,0.9", "--approx", "nystroem", "--components", "12", "--cv", "4"]
    result = run(
        "tune", table, "--target", "price", "--out", out, *words, "--Cs", "0.5,5", "--gamma", "0.3"
    )
    assert "approximate kernel (nystroem, 12 components)" in result.output
    facts = json.loads((out / "run.json").read_text())["result"]
    assert facts["exact"] and facts["approximate_kernel"] == "nystroem, 12 components"
    assert {path.name for path in out.iterdir()} >= {"model.exactcv", "cv.csv", "predictions.csv"}
    run("predict", out, table, "--interval", "0.8", "--out", file)
    predicted = [[float(row[f"quantile {tau}"]) for tau in ("0.1", "0.9")] for row in read(file)]
    np.testing.assert_allclose(predicted, exactcv.load_model(out).predict(table), rtol=1e-9)


def test_the_kernel_matrix_that_does_not_fit_is_approximated(table: Path) -> None:
    asked = ["--target", "price", "--memory-limit", "20KB", "--cv", "4", *QUICK]
    with pytest.raises(exactcv.MemoryLimitError, match="--method refit"):
        run("tune", table, "--target", "price", "--memory-limit", "20KB", "--method", "refit")
    with pytest.raises(exactcv.MemoryLimitError):
        run("tune", table, *asked, "--approx", "none")


def test_predict_with_intervals(table: Path) -> None:
    out = table.parent / "results"
    run("tune", table, "--target", "price", "--out", out, *QUICK)
    file = table.parent / "predicted.csv"
    result = run("predict", out, table, "--interval", "0.8", "--out", file)
    assert "R2" in result.output + result.stderr
    rows = read(file)
    model = exactcv.load_model(out)
    assert isinstance(model, exactcv.storage.table_model.TableModel)
    low, high = model.predict_interval(table, 0.8).T
    np.testing.assert_allclose([float(r["low"]) for r in rows], low)
    np.testing.assert_allclose([float(r["high"]) for r in rows], high)
    np.testing.assert_allclose([float(r["predicted"]) for r in rows], model.predict(table))
    with pytest.raises(AttributeError, match="no decision_function"):
        model.decision_function(table)
    with pytest.raises(exactcv.InputError, match="jackknife"):
        model.estimator.predict_interval(model.prepare(table), 0.8, "cv+")


def test_saved_models_predict_the_same(tmp_path: Path) -> None:
    X, y = wave(40)
    model = exactcv.SVRCV(Cs=[1.0, 5.0], gamma=[0.3, 1.0], epsilon=[0.1, 0.3]).fit(X, y)
    again = exactcv.load_model(exactcv.save_model(model, tmp_path / "model.exactcv"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.predict_interval(X), model.predict_interval(X))
    assert again.cv_results_["params"] == model.cv_results_["params"]
    assert again.summary().partition("folds: ")[0] == model.summary().partition("folds: ")[0]
    second = exactcv.save_model(again, tmp_path / "second.exactcv")
    assert second.read_bytes() == (tmp_path / "model.exactcv").read_bytes()


def test_quantiles_from_table_to_predictions(table: Path) -> None:
    out, file = table.parent / "fan", table.parent / "predicted.csv"
    words = ["--quantiles", "0.1,0.5,0.9", "--Cs", "0.5,5", "--gamma", "0.3"]
    result = run("tune", table, "--target", "price", "--out", out, *words)
    assert "rows below" in result.output and "conformalised" in result.output
    for name in ("curve.png", "fan.png", "report.html", "model.exactcv"):
        assert (out / name).stat().st_size > 0
    facts = json.loads((out / "run.json").read_text())["result"]
    assert facts["exact"] and facts["quantiles"] == [0.1, 0.5, 0.9] and len(facts["C"]) == 3
    for loss, (after, low, high) in zip(facts["loss"], facts["corrected"], strict=True):
        assert 0 < low < after < high and low < loss < high  # losses, as beside them
    found = read(out / "cv.csv")
    assert len(found) == 6 and sum(int(row["chosen"]) for row in found) == 3
    left_out = read(out / "predictions.csv")
    low, high = ([float(r[f"quantile {q}"]) for r in left_out] for q in (0.1, 0.9))
    assert (np.array(low) <= np.array(high)).all()
    told = run("predict", out, table, "--interval", "0.8", "--out", file)
    assert "below the quantile 0.9" in told.output + told.stderr
    rows, model = read(file), exactcv.load_model(out)
    assert isinstance(model, exactcv.storage.table_model.TableModel)
    names = ["quantile 0.1", "quantile 0.5", "quantile 0.9"]
    shown = np.array([[float(row[name]) for name in names] for row in rows])
    np.testing.assert_allclose(shown, model.predict(table))
    ends = np.array([[float(row["low"]), float(row["high"])] for row in rows])
    np.testing.assert_allclose(ends, model.predict_interval(table, 0.8))
    assert "quantiles [0.1, 0.5, 0.9]" in repr(model)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--quantiles", "0.5,1"], "between 0 and 1"),
        (["--quantiles", "half"], "positive numbers"),
        (["--quantiles", "0.5", "--epsilon", "0.1"], "has no epsilon"),
        (["--quantiles", "0.5", "--task", "classification"], "--task regression"),
    ],
)
def test_quantiles_that_are_refused(table: Path, words: list[str], message: str) -> None:
    with pytest.raises(click.UsageError, match=message):
        run("tune", table, "--target", "price", *words)


@pytest.mark.parametrize("quantiles", [0.3, [0.1, 0.5, 0.9]])
@pytest.mark.parametrize("crossing", ["allow", "forbid-by-sorting"])
def test_saved_quantiles_predict_the_same(tmp_path: Path, quantiles: Any, crossing: Any) -> None:
    X, y = wave(40)
    weight = np.tile([1.0, 1.0, 0.0, 2.0], 10)
    model = exactcv.QuantileSVRCV(
        quantiles=quantiles, crossing=crossing, Cs=[1.0, 5.0], gamma=[0.3, 1.0]
    ).fit(X, y, weight)
    again: Any = exactcv.load_model(exactcv.save_model(model, tmp_path / "model.exactcv"))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.left_out_, model.left_out_)
    assert again.score(X, y) == model.score(X, y)
    for ours, theirs in zip(again.cv_results_, model.cv_results_, strict=True):
        assert ours["params"] == theirs["params"]
    if isinstance(quantiles, list):
        np.testing.assert_array_equal(again.predict_interval(X), model.predict_interval(X))
        with pytest.raises(exactcv.InputError, match="jackknife"):
            again.predict_interval(X, 0.9, "cv+")
    second = exactcv.save_model(again, tmp_path / "second.exactcv")
    assert second.read_bytes() == (tmp_path / "model.exactcv").read_bytes()


def test_saved_quantiles_of_a_precomputed_kernel(tmp_path: Path) -> None:
    X, y = wave(30)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    model = exactcv.QuantileSVRCV(quantiles=[0.2, 0.8], Cs=[1.0], kernel="precomputed").fit(K, y)
    again: Any = exactcv.load_model(exactcv.save_model(model, tmp_path / "model.exactcv"))
    np.testing.assert_array_equal(again.predict(K), model.predict(K))
    np.testing.assert_array_equal(again.predict_interval(K), model.predict_interval(K))


def test_what_kind_of_target_it_is(table: Path) -> None:
    X, y = wave(40)
    whole = table.parent / "whole.csv"
    lines = [f"{a:.5f},{b:.5f},{k}" for k, (a, b) in enumerate(X)]
    whole.write_text("\n".join(["a,b,count", *lines]) + "\n")
    assert "regression" in run("tune", whole, "--target", "count", *QUICK).output
    codes = [f"{a:.5f},{b:.5f},{int(v > 0)}" for (a, b), v in zip(X, y, strict=True)]
    whole.write_text("\n".join(["a,b,count", *codes]) + "\n")
    few = ["--Cs", "1", "--gamma", "0.3"]
    assert "regression" not in run("tune", whole, "--target", "count", *few).output
    told = run("tune", whole, "--target", "count", "--task", "regression", *QUICK).output
    assert "R2" in told
    with pytest.raises(exactcv.InputError, match="--task regression"):
        run("tune", table, "--target", "price", "--task", "classification", *few)
    with pytest.raises(exactcv.InputError, match="--probability goes with classes"):
        run("tune", table, "--target", "price", "--probability", *few)


def test_nested_gives_the_error_after_tuning_and_goes_on_where_it_was(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, whole = table.parent / "out", table.parent / "whole"
    command = ("tune", table, "--target", "price", "--cv", "4", "--nested", "3", *QUICK)
    printed = run(*command, "--out", whole).output
    found = json.loads((whole / "run.json").read_text())["result"]["nested"]
    assert f"{found['error']:.4g} after tuning" in printed and found["numeric"]
    assert "Nested cross-validation: 3 outer folds, 4 grid points" in printed
    assert "Nadeau" in printed
    page = (whole / "report.html").read_bytes()
    assert b"mean absolute error after tuning" in page
    run("report", whole, "--out", table.parent / "copy.html")
    assert (table.parent / "copy.html").read_bytes() == page
    real, calls = nested_numbers._one, []

    def stopping(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(nested_numbers, "_one", stopping)
    with pytest.raises(Abort):
        run(*command, "--out", out)
    assert "going on with 1 finished part(s)" in run(*command, "--out", out).output
    assert len(calls) == 4  # the first was not computed again
    again = json.loads((out / "run.json").read_text())["result"]["nested"]
    assert again == found


def with_target(table: Path, values: list[Any]) -> Path:
    """The same features with another target."""
    head, *rows = table.read_text().splitlines()
    kept = [row.rsplit(",", 1)[0] for row in rows]
    table.write_text("\n".join([head, *(f"{a},{v}" for a, v in zip(kept, values, strict=True))]))
    return table


def test_whole_numbers_are_classes_or_numbers_and_it_says_which(table: Path) -> None:
    """Marks from 0 to 8 could be either; which was taken, and what turns it round, is told."""
    file = with_target(table, [i % 9 for i in range(40)])
    settings = ["--target", "price", "--Cs", "1", "--gamma", "0.3", "--cv", "2"]
    assert "--task regression takes them for numbers" in run("tune", file, *settings).output
    asked = run("tune", file, *settings, "--task", "regression").output
    assert "--task classification takes them for classes" in asked and "R2" in asked
    two = run("tune", with_target(table, [i % 2 for i in range(40)]), *settings).output
    assert "--task" not in two


def test_a_target_that_does_not_vary(table: Path) -> None:
    out = table.parent / "results"
    file = with_target(table, [7.5] * 40)
    result = run("tune", file, "--target", "price", "--out", out, *QUICK)
    assert "R2 1" in result.output and "nan" not in result.output
    predicted = read_output(run("predict", out, file, "--interval", "0.9").output)
    assert {row["predicted"] for row in predicted} == {"7.5"}
    assert {(row["low"], row["high"]) for row in predicted} == {("7.5", "7.5")}
    with pytest.raises(exactcv.ExactCVError, match="one class only, 7;"):
        run("tune", with_target(table, [7] * 40), "--target", "price")


def read_output(text: str) -> list[dict[str, str]]:
    """The table among other lines."""
    lines = text.splitlines()
    first = lines.index("row,predicted,low,high")
    return list(csv.DictReader(line for line in lines[first:] if line.count(",") == 3))


@pytest.mark.parametrize("scale", ["e200", "e-200"])
def test_numbers_beyond_reach(table: Path, scale: str) -> None:
    file = with_target(table, [f"{i}.5{scale}" for i in range(40)])
    with pytest.raises(exactcv.ExactCVError, match="'price' are too large or too small"):
        run("tune", file, "--target", "price", "--task", "regression", *QUICK)


def test_rows_without_a_number_are_counted(table: Path) -> None:
    file = with_target(table, ["" if i % 10 == 3 else f"{i}.5" for i in range(40)])
    with pytest.raises(exactcv.ExactCVError, match=r"missing in 4 of 40 rows \(first: row 4\)"):
        run("tune", file, "--target", "price", *QUICK)
