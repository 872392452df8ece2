"""``exactcv tune --nested`` where features take the place of the kernel, and of quantiles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from _command_line import QUICK, columns_of, read, run, write_csv
from _numbers import wave
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file
from sklearn.model_selection import KFold, StratifiedKFold

import exactcv
from exactcv.estimators import nested_afresh

Captured = pytest.CaptureFixture[str]


def outcome(out: Path) -> Any:
    return json.loads((out / "run.json").read_text())["result"]["nested"]


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("streamed", [False, True])
def test_classes(tmp_path: Path, capsys: Captured, k: int, streamed: bool) -> None:
    file, out = write_csv(tmp_path / "data.csv", columns_of(36, k)), tmp_path / "out"
    words = ["--approx", "nystroem", "--components", "6", "--nested", "3", "--cv", "4", *QUICK]
    words += ["--stream"] if streamed else []
    assert run("tune", file, "--target", "y", *words, "--out", out) == 0
    printed, found = capsys.readouterr().out, outcome(out)
    assert "Nested cross-validation: 3 outer folds, 6 grid points" in printed
    assert f"{found['error']:.4f} after tuning" in printed
    paper = printed.partition("for a paper:")[2]
    assert "In nested cross-validation" in paper
    page = (out / "report.html").read_bytes()
    assert b"after tuning (nested" in page
    assert run("report", out, "--out", tmp_path / "copy.html") == 0
    assert (tmp_path / "copy.html").read_bytes() == page
    X, y = (np.array(one) for one in zip(*map(_row, read(file)), strict=True))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    gammas = sorted({float(row["gamma"]) for row in read(out / "cv.csv")})
    model = exactcv.SVCCV(
        Cs=[0.1, 1.0, 10.0], gamma=gammas, cv=StratifiedKFold(4), approx="nystroem",
        n_components=6, random_state=0,
    )  # fmt: skip
    wrong = 0
    for train, test in StratifiedKFold(3).split(X, y):
        wrong += np.count_nonzero(clone(model).fit(X[train], y[train]).predict(X[test]) != y[test])
    assert found["error"] == pytest.approx(wrong / 36)


def _row(row: dict[str, str]) -> tuple[list[float], str]:
    return [float(row[name]) for name in "abc"], row["y"]


def test_it_goes_on_where_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    file = write_csv(tmp_path / "data.csv", columns_of())
    words = ("--approx", "rff", "--components", "6", "--nested", "3", "--cv", "4", *QUICK)
    command = ("tune", file, "--target", "y", *words)
    assert run(*command, "--out", tmp_path / "whole") == 0
    real, calls = nested_afresh.Afresh._fitted, []

    def stopping(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(nested_afresh.Afresh, "_fitted", stopping)
    out = tmp_path / "out"
    assert run(*command, "--out", out) != 0
    assert "1 finished part(s) of the nested" in capsys.readouterr().err
    assert run(*command, "--out", out) == 0
    assert "going on with 1 finished part(s)" in capsys.readouterr().out
    assert len(calls) == 4  # the first was not computed again
    assert outcome(out) == outcome(tmp_path / "whole")


@pytest.mark.parametrize("k", [2, 3])
def test_texts(tmp_path: Path, capsys: Captured, k: int) -> None:
    y, words = np.arange(72) % k, np.arange(4300)  # so many that they are never dense
    X = sparse.random(72, 4300, 0.01, "lil", random_state=np.random.default_rng(0))
    X[words % 72, words] = 1.0
    X[np.arange(72), 10 * y + np.arange(72) // k % 10] = 4.0
    file, out = tmp_path / "text.svm", tmp_path / "out"
    dump_svmlight_file(X.tocsr(), y, str(file), zero_based=True)
    options = ("--target", "target", "--kernel", "linear", "--Cs", "0.3,3", "--cv", "4")
    assert run("tune", file, *options, "--nested", "3", "--out", out) == 0
    assert "the 4300 columns take the place" in capsys.readouterr().out
    K = (X @ X.T).toarray()
    exact = exactcv.SVCCV(kernel="precomputed", Cs=[0.3, 3.0], cv=4)
    assert outcome(out)["error"] == exact.nested_score(K, y, outer=3).error


@pytest.fixture
def houses(tmp_path: Path) -> Path:
    X, y = wave(40)
    return write_csv(tmp_path / "houses.csv", {"a": X[:, 0], "b": X[:, 1], "price": y})


def test_numbers(houses: Path) -> None:
    out = houses.parent / "out"
    words = ("--approx", "nystroem", "--components", "9", "--nested", "4", "--cv", "3")
    grid = ("--Cs", "0.5,5", "--gamma", "0.3", "--epsilon", "0.1")
    assert run("tune", houses, "--target", "price", *words, *grid, "--out", out) == 0
    found = outcome(out)
    X, y = wave(40)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = exactcv.SVRCV(
        Cs=[0.5, 5.0], gamma=0.3, epsilon=0.1, cv=KFold(3), approx="nystroem", n_components=9,
        random_state=0,
    )  # fmt: skip
    off = [
        abs(clone(model).fit(X[train], y[train]).predict(X[test]) - y[test])
        for train, test in KFold(4).split(X)
    ]
    assert found["error"] == pytest.approx(np.concatenate(off).mean())
    assert found["numeric"] and found["quantile"] is None


@pytest.mark.parametrize(
    "features", [(), ("--approx", "rff", "--components", "12")], ids=["kernel", "features"]
)
def test_quantiles(houses: Path, capsys: Captured, features: tuple[str, ...]) -> None:
    out = houses.parent / "out"
    words = ("--quantiles", "0.1,0.5", "--nested", "4", "--cv", "3", *features)
    command = ("tune", houses, "--target", "price", *words, "--Cs", "0.5,5", "--gamma", "0.3")
    assert run(*command, "--out", out) == 0
    printed, found = capsys.readouterr().out, outcome(out)
    X, y = wave(40)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    more: dict[str, Any] = {"approx": "rff", "n_components": 12} if features else {}
    model = exactcv.QuantileSVRCV(
        quantiles=(0.1, 0.5), Cs=[0.5, 5.0], gamma=0.3, cv=KFold(3), random_state=0, **more
    )
    expected = model.nested_score(X, y, outer=KFold(4))
    assert [one["quantile"] for one in found] == [0.1, 0.5]
    assert [one["error"] for one in found] == pytest.approx([one.error for one in expected])
    for one in found:
        assert f"mean pinball loss of the quantile {one['quantile']} of 40 tests" in " ".join(
            printed.split()
        )
    page = (out / "report.html").read_bytes()
    assert b"mean pinball loss of the quantile 0.5 after tuning" in page  # the middle one
    assert run("report", out, "--out", houses.parent / "copy.html") == 0
    assert (houses.parent / "copy.html").read_bytes() == page


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--nested", "91"), "--nested 91 is more than the 90 rows: use fewer folds"),
        (
            ("--nested", "3", "--approx", "nystroem", "--components", "70"),
            "--components 70 is more than the 60 rows outside a fold of --nested",
        ),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_done(
    tmp_path: Path, capsys: Captured, options: tuple[str, ...], said: str
) -> None:
    file = write_csv(tmp_path / "data.csv", columns_of(90, 2))
    assert run("tune", file, "--target", "y", *options, "--cv", "3", *QUICK) == 1
    assert said in capsys.readouterr().err


def test_few_rows_outside_a_fold_have_few_components(tmp_path: Path, capsys: Captured) -> None:
    file = write_csv(tmp_path / "data.csv", columns_of(90, 2))
    words = ("--approx", "nystroem", "--nested", "3", "--cv", "3", *QUICK)
    assert run("tune", file, "--target", "y", *words) == 0
    assert "54 components" in capsys.readouterr().out


def test_quantiles_of_sparse_files_are_refused_in_plain_words(
    tmp_path: Path, capsys: Captured
) -> None:
    X, y = wave(30)
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"))
    words = ("--task", "regression", "--quantiles", "0.1,0.9")
    assert run("tune", tmp_path / "rows.svm", "--target", "target", *words) == 1
    assert "--quantiles takes tables (CSV, Parquet)" in capsys.readouterr().err
