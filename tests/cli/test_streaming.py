"""``exactcv tune --stream`` and ``predict``, piece by piece: nothing changes but the memory."""

from __future__ import annotations

import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from _command_line import RESULTS, columns_of, read, run, write_csv

from exactcv.cli import loading
from exactcv.cli import predict as predicting
from exactcv.estimators import lowrank_fit
from exactcv.storage import streaming
from exactcv.storage.readers import pieces
from exactcv.storage.streaming import Roles, piece_rows, stream

LOWRANK = (
    "--target", "y", "--approx", "nystroem", "--components", "9", "--lambdas", "0.1,0.01",
    "--gamma", "0.3", "--n-jobs", "1",
)  # fmt: skip


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight rows at a time."""
    monkeypatch.setattr(streaming, "PEEK_ROWS", 8)
    monkeypatch.setattr(loading, "PEEK_ROWS", 8)
    monkeypatch.setattr(predicting, "PEEK_ROWS", 8)
    monkeypatch.setattr(streaming, "PIECE_CELLS", 1)


def columns(n: int = 60) -> dict[str, object]:
    more = {
        "colour": np.array(["red", "green", "blue"])[np.arange(n) // 3 % 3],
        "id": [f"=r{k}" for k in range(n)],
        "w": np.tile([0, 1, 2], n // 3),
    }
    return columns_of(n) | more


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "data.csv", columns())


def test_the_same_results_as_of_the_whole(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roles = ("--id", "id", "--weight", "w")
    outs = [tmp_path / "whole", tmp_path / "pieces"]
    for out, how in zip(outs, ("--no-stream", "--stream"), strict=True):
        assert run("tune", table, *LOWRANK, *roles, how, "--out", out) == 0
        assert {path.name for path in out.iterdir()} == RESULTS
    one, other = (read(out / "predictions.csv") for out in outs)
    assert [row["id"] for row in one] == [row["id"] for row in other]
    assert [row["predicted"] for row in one] == [row["predicted"] for row in other]
    name = next(key for key in one[0] if key.startswith("decision"))
    np.testing.assert_allclose(
        [float(row[name]) for row in one], [float(row[name]) for row in other], atol=1e-7
    )
    capsys.readouterr()


def test_a_table_that_does_not_fit_is_read_in_pieces(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The text of 600 rows takes more than that; the features of so few components do not.
    path = write_csv(tmp_path / "data.csv", columns_of(600))
    quick = ("--components", "2", "--lambdas", "0.1", "--gamma", "0.3", "--n-jobs", "1")
    options = ("--target", "y", *quick, "--memory-limit", "100kB", "--cv", "3")
    assert run("tune", path, *options, "--no-stream") == 1
    assert "data.csv take" in capsys.readouterr().err
    assert run("tune", path, *options, "--out", tmp_path / "out") == 0
    assert "approximate kernel (nystroem, 2 components)" in capsys.readouterr().out
    assert len(read(tmp_path / "out" / "predictions.csv")) == 600


def test_few_rows_in_pieces_have_the_exact_kernel(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--target", "y", "--drop", "id", "--Cs", "1", "--gamma", "0.3")
    assert run("tune", table, *options, "--stream") == 0
    one = capsys.readouterr().out
    assert run("tune", table, *options) == 0
    other = capsys.readouterr().out
    assert "approximate" not in one
    assert _without_figures(one) == _without_figures(other)


def _without_figures(text: str) -> list[str]:
    """Neither times nor the certificate's figures, which are rounding: means added up in pieces."""
    lines = [line for line in text.splitlines() if not line.startswith("time")]
    return [re.sub(r"\d\.\de-1\d", "rounding", line) for line in lines]


def test_a_class_that_comes_in_the_last_piece(tmp_path: Path) -> None:
    late = columns_of(60)
    late["y"][56:] = ["class 2"] * 4
    path = write_csv(tmp_path / "data.csv", late)
    outs = [tmp_path / "whole", tmp_path / "pieces"]
    for out, how in zip(outs, ("--no-stream", "--stream"), strict=True):
        assert run("tune", path, *LOWRANK, "--cv", "4", how, "--out", out) == 0
    one, other = (read(out / "predictions.csv") for out in outs)
    assert "decision for class 2" in one[0]
    assert [row["predicted"] for row in one] == [row["predicted"] for row in other]


# ---- predict -------------------------------------------------------------------------------------


@pytest.fixture
def model(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert run("tune", table, *LOWRANK, "--id", "id", "--drop", "w", "--out", tmp_path / "m") == 0
    capsys.readouterr()
    return tmp_path / "m"


def test_predictions_of_pieces_are_those_of_the_whole(
    model: Path, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert run("predict", model, table, "--out", tmp_path / "pieces.csv") == 0
    told = "".join(capsys.readouterr())
    monkeypatch.setattr(predicting, "piece_rows", lambda _: 1000)
    assert run("predict", model, table, "--out", tmp_path / "whole.csv") == 0
    assert told.replace("pieces.csv", "whole.csv") == "".join(capsys.readouterr())
    assert "60 predictions" in told and "of 60 rows wrong" in told
    one, other = (read(tmp_path / f"{name}.csv") for name in ("pieces", "whole"))
    assert [row["row"] for row in one] == [str(k + 1) for k in range(60)]
    # A product of matrices may be rounded otherwise if it has fewer rows.
    for a, b in zip(one, other, strict=True):
        assert (a["id"], a["predicted"]) == (b["id"], b["predicted"])


@pytest.mark.parametrize(("name", "cell"), [("colour", "violet"), ("a", "much"), ("b", "")])
def test_nothing_is_written_if_a_late_piece_is_wrong(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, cell: str
) -> None:
    late = {key: list(cells) for key, cells in columns().items()}  # type: ignore[call-overload]
    late[name][58] = cell
    path = write_csv(tmp_path / "new.csv", late)
    before = {file.name for file in tmp_path.iterdir()}
    assert run("predict", model, path, "--out", tmp_path / "p.csv") == 1
    assert repr(name) in capsys.readouterr().err
    assert {file.name for file in tmp_path.iterdir()} == before
    assert run("predict", model, path) == 1
    assert capsys.readouterr().out == ""


# ---- memory --------------------------------------------------------------------------------------


def test_preparing_takes_a_part_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    monkeypatch.undo()
    monkeypatch.setattr(streaming, "PIECE_CELLS", streaming.PIECE_CELLS // 8)
    n, p = 125_000, 20
    rng = np.random.default_rng(0)
    made = {f"x{k}": rng.random(n) for k in range(p)}
    made["y"] = (made["x0"] > 0.5).astype(np.int32)
    parquet.write_table(pyarrow.table(made), tmp_path / "t.parquet", row_group_size=6_250)
    del made
    assert piece_rows(p) < n / 6
    tracemalloc.start()
    try:
        found = stream(
            lambda: pieces(tmp_path / "t.parquet", rows=piece_rows(p)), Roles("y"),
            impute=False, standardize=True, most_levels=100, chunk_rows=1024,
        )  # fmt: skip
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.rows.shape == (n, p)
    # Of a piece there are some copies at a time, of the labels there are all.
    assert peak < 9 * 8 * piece_rows(p) * p + 16 * n < 0.6 * 8 * n * p


def test_what_remains_of_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty million rows are to be tuned and predicted within 4 GB, half of it for rows."""
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    monkeypatch.undo()
    monkeypatch.setattr(streaming, "PIECE_CELLS", 1 << 15)
    monkeypatch.setattr(lowrank_fit, "QUICK", 0)  # no bootstrap, which few rows have alone
    rng = np.random.default_rng(0)

    def peaks(n: int) -> list[int]:
        X = rng.normal(size=(n, 3))
        made: dict[str, object] = {f"x{k}": X[:, k] for k in range(3)}
        made["y"] = np.where(X[:, 0] + rng.normal(size=n) > 0, "yes", "no")
        file, out = tmp_path / f"{n}.parquet", tmp_path / f"{n}"
        parquet.write_table(pyarrow.table(made), file, row_group_size=5_000)
        del X, made
        found = []
        for command in (
            ("tune", file, *LOWRANK, "--cv", "2", "--stream", "--memory-limit", "4MB"),
            ("predict", out / "model.exactcv", file),
        ):
            tracemalloc.start()
            try:
                run(*command, "--out", out if command[0] == "tune" else out / "predictions")
                found.append(tracemalloc.get_traced_memory()[1])
            finally:
                tracemalloc.stop()
        return found

    peaks(5_000)  # what is imported is not counted
    few, many = 40_000, 120_000
    for before, after in zip(peaks(few), peaks(many), strict=True):
        assert (after - before) / (many - few) < 100
