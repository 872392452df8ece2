"""``exactcv tune`` and ``predict``, from files to files."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _command_line import QUICK, RESULTS, columns_of, read, rows, run, write_csv
from sklearn.preprocessing import StandardScaler

import exactcv
from exactcv.cli import main as cli
from exactcv.crossval import nested
from exactcv.crossval.two_rows import TwoRows


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "data.csv", columns_of())


@pytest.mark.parametrize("name", [None, "patient"])
def test_the_index_of_a_pandas_frame_is_no_feature(table: Path, tmp_path: Path, name: Any) -> None:
    import pandas

    frame = pandas.read_csv(table)
    frame.index = pandas.Index(np.arange(len(frame))[::-1] * 7, name=name)
    frame.to_parquet(tmp_path / "data.parquet", index=True)
    out, column = tmp_path / "out", [] if name is None else ["--id", name]
    # -1 is the last column of the frame, though the index comes after it in the file.
    assert (
        run("tune", tmp_path / "data.parquet", "--target", "-1", *column, *QUICK, "--out", out) == 0
    )
    model = exactcv.load_model(out)
    assert (model.preparation.features, model.preparation.target) == (["a", "b", "c"], "y")
    predicted = tmp_path / "predicted.csv"
    for file in (tmp_path / "data.parquet", table):
        assert run("predict", out, file, "--out", predicted) == 0
        assert len(read(predicted)) == len(frame)
    if name is not None:
        frame.reset_index().to_csv(tmp_path / "named.csv", index=False)
        assert run("predict", out, tmp_path / "named.csv", "--out", predicted) == 0
        assert read(predicted)[0]["id"] == "245"


def test_nested_gives_the_error_after_tuning(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run("tune", table, "--target", "y", "--nested", "4", "--out", out, *QUICK) == 0
    printed = capsys.readouterr().out
    X, y = rows()
    X = StandardScaler().fit_transform(X)
    middle = exactcv.SVCCV(Cs=[1.0]).fit(X, y).gamma_
    model = exactcv.SVCCV(Cs=[0.1, 1.0, 10.0], gamma=[0.25 * middle, middle])
    expected = model.nested_score(X, y, outer=4)
    assert "Nested cross-validation: 4 outer folds, 6 grid points" in printed
    assert f"{expected.error:.4f} after tuning" in printed
    paper = printed.partition("for a paper:")[2]
    assert "optimistic" in paper and "nested cross-validation" in paper
    found = json.loads((out / "run.json").read_text())["result"]
    assert found["nested"]["error"] == expected.error
    assert sum(one["times"] for one in found["nested"]["chosen"]) == 4
    low, high = model.fit(X, y).corrected_score_.error_interval
    assert found["corrected"][1:] == pytest.approx([low, high])
    assert "--nested 4" in (out / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("outer", "place"), [("4", "_one"), ("loo", "TwoRows._through")])
def test_nested_goes_on_where_it_was_stopped(
    outer: str, place: str, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    command = ("tune", table, "--target", "y", "--nested", outer, *QUICK)
    assert run(*command, "--out", tmp_path / "whole") == 0
    owner: Any = nested if place == "_one" else TwoRows
    name, calls = place.rpartition(".")[2], []
    real = getattr(owner, name)

    def stopping(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(owner, name, stopping)
    out = tmp_path / "out"
    assert run(*command, "--out", out) != 0
    assert "1 finished part(s) of the nested" in capsys.readouterr().err
    assert run(*command, "--out", out) == 0
    assert "going on with 1 finished part(s)" in capsys.readouterr().out
    assert len(calls) == (5 if outer == "4" else 3)  # the first was not computed again
    found, whole = (
        json.loads((folder / "run.json").read_text())["result"]["nested"]
        for folder in (out, tmp_path / "whole")
    )
    assert found == whole


# ---- the main road -------------------------------------------------------------------------------


def test_tune_writes_what_svccv_finds(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run("tune", table, "--target", "y", "--out", out, *QUICK) == 0
    printed = capsys.readouterr()
    assert "mean 0, standard deviation 1, from all rows" in printed.out
    assert "certificate: exact" in printed.out and f"written to {out}" in printed.out
    assert {path.name for path in out.iterdir()} == RESULTS

    X, y = rows()
    X = StandardScaler().fit_transform(X)
    middle = exactcv.SVCCV(Cs=[1.0]).fit(X, y).gamma_
    model = exactcv.SVCCV(
        Cs=[0.1, 1.0, 10.0], gamma=[0.25 * middle, middle], store_cv_results=True
    ).fit(X, y)
    saved = exactcv.load_model(out)
    assert saved.estimator.C_ == model.C_
    assert saved.estimator.gamma_ == pytest.approx(model.gamma_, rel=1e-12)
    assert saved.predict(table).tolist() == [f"class {k}" for k in model.predict(X)]
    np.testing.assert_allclose(
        saved.decision_function(table), model.decision_function(X), atol=1e-9
    )
    found = read(out / "cv.csv")
    assert [int(row["n_errors"]) for row in found] == model.cv_results_["n_errors"].tolist()
    (chosen,) = (k for k, row in enumerate(found) if row["chosen"] == "1")
    assert chosen == model.best_index_
    left_out = read(out / "predictions.csv")
    values = [float(row["decision for class 1"]) for row in left_out]
    expected = model.cv_results_["decision"][model.best_index_]
    np.testing.assert_allclose(values, expected, atol=1e-7)
    assert [row["row"] for row in left_out] == [str(k + 1) for k in range(36)]
    assert sum(row["wrong"] == "1" for row in left_out) == round(36 * (1 - model.best_score_))
    run_file = json.loads((out / "run.json").read_text())
    assert run_file["result"]["C"] == model.C_ and run_file["status"] == "done"
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "exactcv tune data.csv --target y" in page and "data.csv, 36 rows" in page


def test_predict_by_name_in_any_order_and_with_the_target(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, new = tmp_path / "out", tmp_path / "new.csv"
    assert run("tune", table, "--target", "-1", "--out", out, "--probability", *QUICK) == 0
    columns = columns_of()
    write_csv(new, {name: columns[name] for name in ("c", "a", "b")})
    capsys.readouterr()
    assert run("predict", out, new) == 0
    without, said = capsys.readouterr()
    assert said == ""
    assert run("predict", out / "model.exactcv", table, "--out", tmp_path / "p.csv") == 0
    said = capsys.readouterr().err
    assert (tmp_path / "p.csv").read_text() == without
    found = read(tmp_path / "p.csv")
    wrong = sum(row["predicted"] != y for row, y in zip(found, columns["y"], strict=True))
    assert f"({wrong} of 36 rows wrong; 95% interval " in said
    shares = [[float(row[f"probability of class {k}"]) for k in (0, 1)] for row in found]
    np.testing.assert_allclose(np.sum(shares, axis=1), 1.0)

    write_csv(new, {"a": columns["a"], "bb": columns["b"], "c": columns["c"]})
    assert run("predict", out, new) == 1
    assert "missing: 'b'; unexpected: 'bb'" in capsys.readouterr().err


def test_every_kind_of_column_and_role(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = columns_of(n_classes=3)
    columns |= {
        "name": [f"row {k}" for k in range(36)],
        "patient": [f"p{k // 3}" for k in range(36)],
        "w": [1 + k % 2 for k in range(36)],
        "colour": [["red", "blue", ""][k // 2 % 3] for k in range(36)],
        "code": [k % 4 for k in range(36)],
        "junk": ["same"] * 36,
        "flag": [["true", "false"][k % 2] for k in range(36)],
    }
    path, out = write_csv(tmp_path / "data.csv", columns), tmp_path / "out"
    packed = tmp_path / "data.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    arguments = [
        "tune", packed, "--target", "y", "--out", out, "--id", "name", "--groups", "patient",
        "--weight", "w", "--categorical", "code", "--drop", "junk", "--cv", "3", "--seed", "1",
        "--scoring", "balanced_accuracy", "--select", "1se", "--class-weight", "balanced", *QUICK,
    ]  # fmt: skip
    assert run(*arguments) == 1
    assert "missing values in 'colour' (12)" in capsys.readouterr().err
    assert not out.exists()
    assert run(*arguments, "--impute", "median") == 0
    model = exactcv.load_model(out)
    assert model.preparation.features == [
        "a", "b", "c", "colour=blue", "colour=red",
        "code=0", "code=1", "code=2", "code=3", "flag",
    ]  # fmt: skip
    assert model.preparation.others == ("w", "patient", "name", "junk")
    assert read(out / "predictions.csv")[5]["id"] == "row 5"
    del columns["y"]
    new = write_csv(tmp_path / "new.csv", columns)
    capsys.readouterr()
    assert run("predict", out, new) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 37 and lines[1].startswith("1,row 0,class ")


def test_svmlight(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = rows()
    path = tmp_path / "data.svm"
    path.write_text(
        "".join(
            f"{label} " + " ".join(f"{k + 1}:{v}" for k, v in enumerate(row) if v > 0) + "\n"
            for label, row in zip(y, X, strict=True)
        )
    )
    out = tmp_path / "out"
    assert run("tune", path, "--target", "target", "--out", out, "--cv", "4", *QUICK) == 0
    dense = np.where(X > 0, X, 0.0)
    model = exactcv.load_model(out).estimator
    expected = exactcv.SVCCV(Cs=[model.C_], gamma=model.gamma_, cv=4).fit(dense / dense.std(0), y)
    values = [float(row["decision for 1"]) for row in read(out / "predictions.csv")]
    assert np.mean((np.array(values) > 0) != y) == pytest.approx(1 - expected.best_score_)
    assert run("predict", out, path) == 0
    assert "error on the target" in capsys.readouterr().err
    assert run("tune", path, "--target", "y") == 1
    assert "use --target target" in capsys.readouterr().err


def test_without_a_folder_nothing_is_written(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = set(table.parent.iterdir())
    assert run("tune", table, "--target", "y", "--kernel", "linear", "--Cs", "0.1:10:3") == 0
    assert "least error" in capsys.readouterr().out
    assert set(table.parent.iterdir()) == before


def test_without_matplotlib_the_curve_is_missing_and_that_is_said(
    table: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    out = tmp_path / "out"
    assert run("tune", table, "--target", "y", "--out", out, *QUICK) == 0
    assert 'pip install "exactcv[plot]"' in capsys.readouterr().out
    assert {path.name for path in out.iterdir()} == RESULTS - {"curve.png"}


def test_without_pyarrow_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "data.parquet"
    path.write_bytes(b"PAR1")
    assert run("tune", path, "--target", "y") == 1
    assert 'pip install "exactcv[parquet]"' in capsys.readouterr().err


# ---- what goes wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--target", "z"], 1, "no column 'z'"),
        ([], 2, "Missing option '--target'"),
        (["--target", "y", "--kernel", "cubic"], 2, "'cubic'"),
        (["--target", "y", "--unknown"], 2, "--unknown"),
        (["--target", "y", "--cv", "1"], 2, "use loo or a number of folds"),
        (["--target", "y", "--cv", "many"], 2, "use loo or a number of folds"),
        (["--target", "y", "--Cs", "0,1"], 2, "must be positive"),
        (["--target", "y", "--Cs", "1:2"], 2, "FROM:TO:COUNT"),
        (["--target", "y", "--Cs", "1", "--lambdas", "5"], 2, "not both"),
        (["--target", "y", "--gamma", "1", "--gammas", "5"], 2, "not both"),
        (["--target", "y", "--kernel", "linear", "--gammas", "3"], 2, "has no gamma"),
        (["--target", "y", "--class-weight", "x=1"], 1, "with labels among class 0, class 1"),
        (["--target", "y", "--scoring", "beauty"], 2, "scoring='beauty' is not known"),
        (["--target", "y", "--method", "magik"], 1, "method='magik' is not known"),
        (["--target", "y", "--weight", "y"], 1, "is the target"),
        (["--target", "y", "--weight", "a"], 1, "missing or negative"),
        (["--target", "a", "--task", "classification"], 1, "different real numbers"),
        (["--target", "y", "--approx", "fourier"], 2, "'fourier'"),
    ],
)
def test_errors_are_one_line(
    table: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    status: int,
    said: str,
) -> None:
    assert run("tune", table, *arguments) == status
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


def test_targets_with_one_class_or_one_a_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_csv(tmp_path / "t.csv", {"a": range(40), "y": ["x"] * 40, "n": range(40)})
    assert run("tune", path, "--target", "y") == 1
    assert "one class only, 'x'" in capsys.readouterr().err
    assert run("tune", path, "--target", "n", "--task", "classification") == 1
    assert "40 different values in 40 rows" in capsys.readouterr().err


def test_predict_refuses_what_is_no_model(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("predict", table, table) == 1
    assert "not an exactcv model file" in capsys.readouterr().err
    assert run("predict", tmp_path / "none", table) == 1
    assert "No such file" in capsys.readouterr().err
    X, y = rows()
    exactcv.save_model(exactcv.SVCCV(Cs=[1.0]).fit(X, y), tmp_path / "plain")
    assert run("predict", tmp_path / "plain", table) == 1
    assert "saved from Python" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["tune", "predict", "report", "demo", "methods"])
def test_every_command_has_help(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command, "--help") == 0
    text = capsys.readouterr().out
    assert text.startswith(f"Usage: exactcv {command}")
    assert "--help" in text


@pytest.mark.parametrize(
    "wrong",
    [
        ["--Cs", "abc"],
        ["--cv", "1"],
        ["--nested", "1"],
        ["--scoring", "foo"],
        ["--Cs", "1", "--lambdas", "2"],
    ],
)
def test_wrong_usage_is_told_before_the_file_is_read(wrong: list[str]) -> None:
    assert cli.main(["tune", "no such file.csv", "--target", "y", *wrong]) == 2


def test_every_c_takes_no_grid(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("tune", table, "--target", "y", "--every-c", "--gamma", "0.1", "--out", out) == 0
    found = json.loads((out / "run.json").read_text(encoding="utf-8"))["result"]
    steps = read(out / "steps.csv")
    least = min(int(step["n_errors"]) for step in steps)
    best = [step for step in steps if int(step["n_errors"]) == least]
    assert any(float(step["C_from"]) < found["C"] < float(step["C_to"]) for step in best)
    assert found["n_errors"] == least
    assert (out / "steps.png").stat().st_size > 0
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "--every-c" in page and "Error at every C" in page
    assert run("report", out) == 0  # the steps are in the model file
    assert (out / "report.html").read_text(encoding="utf-8") == page
    for more in (("--Cs", "1"), ("--nested", "3"), ("--approx", "rff")):
        assert run("tune", table, "--target", "y", "--every-c", *more) != 0
