"""``exactcv tune`` and ``predict`` for a target of numbers."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

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
