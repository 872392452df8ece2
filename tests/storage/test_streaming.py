"""Tables that are read in pieces: the same preparation as of the whole, within little memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exactcv.exceptions import FileError, InputError, MemoryLimitError
from exactcv.lowrank.passes import local
from exactcv.lowrank.rows.spilled import SpilledRows
from exactcv.storage.preparation import fit_preparation
from exactcv.storage.readers import pieces, read_table
from exactcv.storage.stream_median import medians
from exactcv.storage.streaming import Roles, Streamed, stream

pa = pytest.importorskip("pyarrow")


def written(tmp_path: Path, columns: dict[str, list[str]], name: str = "t.csv") -> Path:
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(row) for row in rows)]
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n")
    return path


def table_of(n: int, seed: int = 0) -> dict[str, list[str]]:
    """Numbers, few different numbers, text and flags, with gaps, a constant, and weights."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n) * 100 + 1e6
    gappy, age = rng.random(n) < 0.2, rng.integers(18, 90, n)
    return {
        "x": [repr(v) for v in x.tolist()],
        "age": ["" if gap else str(v) for gap, v in zip(gappy, age, strict=True)],
        "colour": rng.choice(["red", "green", "NA", "blue"], n).tolist(),
        "flag": rng.choice(["true", "False"], n).tolist(),
        "same": ["7"] * n,
        "w": [str(v) for v in rng.integers(0, 3, n)],
        "y": ["yes" if v > 1e6 else "no" for v in x],
    }


def streamed(path: Path, rows: int, roles: Roles, **options: Any) -> Streamed:
    options = {"impute": True, "standardize": True, "most_levels": 100} | options

    def read() -> Iterator[Any]:
        return pieces(path, rows=rows)

    return stream(read, roles, chunk_rows=64, **options)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("rows", [7, 100, 1000])
def test_the_same_matrix_as_of_the_whole(
    tmp_path: Path, rows: int, standardize: bool, weighted: bool
) -> None:
    path = written(tmp_path, table_of(311))
    weight = read_table(path).numbers("w") if weighted else None
    made, X = fit_preparation(
        read_table(path), target="y", others=("w",), impute=True, standardize=standardize,
        weight=weight,
    )  # fmt: skip
    roles = Roles("y", weight="w" if weighted else None, drop=() if weighted else ("w",))
    found = streamed(path, rows, roles, standardize=standardize)
    assert found.preparation.features == made.features
    assert found.preparation.constant == made.constant == ["same"]
    assert [c.fill for c in found.preparation.columns] == [c.fill for c in made.columns]
    # Sums in another order: some units in the last place of the largest numbers.
    np.testing.assert_allclose(found.rows.all(), X, rtol=1e-9, atol=1e-9)
    assert found.y.tolist() == read_table(path).texts("y")
    if weight is not None:
        np.testing.assert_array_equal(found.weight, weight)


@pytest.mark.parametrize("kept", [4, 1 << 16])
def test_medians_are_exact(kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from exactcv.storage import stream_median

    monkeypatch.setattr(stream_median, "KEPT", kept)
    rng = np.random.default_rng(1)
    columns = {
        "wide": rng.normal(size=999) * 10.0 ** rng.integers(-8, 8, 999),
        "even": rng.normal(size=1000),
        "ties": rng.integers(0, 3, 1000).astype(float),
        "far": np.array([-1e308, 1e308] * 50),
    }

    def read(names: list[str]) -> Iterator[dict[str, Any]]:
        for start in range(0, 1000, 130):
            parts = {name: columns[name][start : start + 130] for name in names}
            yield {name: (part, np.ones(len(part))) for name, part in parts.items()}

    ends = {name: (v.min(), v.max(), float(len(v))) for name, v in columns.items()}
    assert medians(ends, read) == {name: float(np.median(v)) for name, v in columns.items()}


def test_parquet_gives_what_csv_gives(tmp_path: Path) -> None:
    import pyarrow.csv
    import pyarrow.parquet

    path = written(tmp_path, table_of(200))
    table = pyarrow.csv.read_csv(path)
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet", row_group_size=64)
    roles = Roles("y", drop=("w",))
    one = streamed(path, 50, roles)
    other = streamed(tmp_path / "t.parquet", 50, roles)
    np.testing.assert_allclose(one.rows.all(), other.rows.all(), rtol=1e-12, atol=1e-12)
    assert one.y.tolist() == other.y.tolist()


def test_names_and_groups(tmp_path: Path) -> None:
    columns = table_of(40)
    columns["who"] = [f"Å{k}" for k in range(40)]
    columns["plate"] = [f"p{k // 4}" for k in range(40)]
    path = written(tmp_path, columns)
    found = streamed(path, 9, Roles("y", groups="plate", id="who", drop=("w",)))
    assert [found.names[k] for k in range(40)] == columns["who"]
    assert found.groups is not None
    assert found.groups.tolist() == [k // 4 for k in range(40)]


# ---- what only a late piece shows ----------------------------------------------------------------


def late(tmp_path: Path, name: str, cell: str) -> Path:
    columns = table_of(100)
    columns[name][87] = cell
    return written(tmp_path, columns)


def test_a_class_of_a_late_piece_is_a_class(tmp_path: Path) -> None:
    found = streamed(late(tmp_path, "y", "maybe"), 10, Roles("y", drop=("w",)))
    assert sorted(set(found.y)) == ["maybe", "no", "yes"]
    assert found.y[87] == "maybe"


@pytest.mark.parametrize(
    ("name", "cell", "message"),
    [
        ("x", "unknown", r"'x' has numbers and text \(text in row 88: 'unknown'\)"),
        ("colour", "12", r"'colour' has numbers and text \(text in row"),
        ("x", "1,5e", "numbers and text"),
        ("y", "", "target 'y' is missing in row 88"),
        ("w", "-1", "the weight in row 88 of column 'w' is missing or negative"),
    ],
)
def test_what_is_wrong_in_a_late_piece_is_named(
    tmp_path: Path, name: str, cell: str, message: str
) -> None:
    columns = table_of(100)
    columns[name][87] = f'"{cell}"'
    with pytest.raises(InputError, match=message):
        streamed(written(tmp_path, columns), 10, Roles("y", weight="w"))


def test_gaps_are_counted_over_all_pieces(tmp_path: Path) -> None:
    gaps = table_of(100)["age"].count("")
    with pytest.raises(InputError, match=rf"missing values in 'age' \({gaps}\), 'colour' \("):
        streamed(written(tmp_path, table_of(100)), 10, Roles("y", drop=("w",)), impute=False)


def test_a_damaged_row_group_is_an_error(tmp_path: Path) -> None:
    import pyarrow.parquet

    values = pa.table({"a": np.random.default_rng(0).random(4000), "y": ["p", "q"] * 2000})
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(values, path, row_group_size=1000, compression="gzip")
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 200] = bytes(200)
    path.write_bytes(bytes(data))
    with pytest.raises((FileError, InputError)):
        streamed(path, 500, Roles("y"))


def test_text_of_parquet_counts_as_what_it_will_take(tmp_path: Path) -> None:
    import pyarrow.parquet

    table = pa.table({"a": np.zeros(1000), "y": ["long", "text"] * 500})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet", memory_limit="140kB").n_rows == 1000
    with pytest.raises(MemoryLimitError, match=r"t\.parquet take 136\.0 kB"):
        read_table(tmp_path / "t.parquet", memory_limit="100kB")


# ---- a disk that is full -------------------------------------------------------------------------


def full(*_: Any) -> None:
    raise OSError(28, "No space left on device")


def test_a_disk_that_fills_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Full:
        write, flush = full, full

        def close(self) -> None: ...

    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: Full())
    with pytest.raises(FileError, match=r"No space left on device; free .*method_options"):
        SpilledRows(iter([np.ones((2, 2))]), 10, tmp_path)


@pytest.mark.skipif(not hasattr(local.os, "posix_fallocate"), reason="no space can be reserved")
def test_space_is_taken_before_features_are_spilled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(local.os, "posix_fallocate", full)
    with pytest.raises(FileError, match=r"8\.0 MB of features.*No space left.*method_options"):
        local.scratch_array((1000, 1000), float, True, tmp_path)
    assert list(tmp_path.iterdir()) == []
