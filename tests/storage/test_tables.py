"""Tables: what is read from files, and what becomes of it."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import exactcv
from exactcv.storage.preparation import fit_preparation
from exactcv.storage.readers import read_table
from exactcv.storage.table import Table, parse_labels
from exactcv.storage.table_model import as_table

Write = Callable[..., Path]


def error_of(path: Path, **options: Any) -> str:
    with pytest.raises(exactcv.ExactCVError) as info:
        read_table(path, **options)
    return str(info.value)


# ---- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_csv_with_byte_order_mark_quotes_and_any_delimiter(write: Write, delimiter: str) -> None:
    text = '\ufeffa,"b, or c",y\r\n1,"x ""y""\nz",no\r\n\r\n-2.5e3,w,yes\r\n'
    if delimiter != ",":
        text = text.replace("b, or c", "b").replace(",", delimiter)
    table = read_table(write(text))
    assert table.names[0] == "a"
    assert table.n_rows == 2
    assert table.numbers("a").tolist() == [1.0, -2500.0]
    assert table.texts(table.names[1]) == ['x "y"\nz', "w"]


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_compression_is_seen_from_the_contents(write: Write, pack: Callable[..., bytes]) -> None:
    packed = pack(b"a,y\n1,0\n2,1\n")
    assert read_table(write(packed, "data.csv")).numbers("a").tolist() == [1.0, 2.0]
    assert "damaged" in error_of(write(packed[: len(packed) // 2], "half.csv.gz"))


def test_formats_without_a_telling_name(write: Write) -> None:
    assert read_table(write("a,y\n1,0\n", "data")).names == ["a", "y"]
    assert read_table(write("# note\n+1 1:0.5 3:2\n-1 2:1\n", "data.txt")).matrix.shape == (2, 4)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "empty"),
        ("\n\n", "no lines"),
        ("a,y\n", "no rows"),
        ("a,a,y\n1,2,0\n", "several columns are called 'a'"),
        ("a,y\n1,0\n1\n", "line 3: 1 cells where the first line has 2"),
        ("1,2\n3,4\n", "only numbers"),
        (b"a,y\n\xe9,0\n", "encoding latin-1"),
        ('a,y\n"1,0\n', "not a well-formed CSV"),
    ],
)
def test_what_is_wrong_with_a_csv_file_is_said(
    write: Write, content: str | bytes, said: str
) -> None:
    assert said in error_of(write(content))


def test_header_and_encoding_can_be_told(write: Write) -> None:
    path = write("1,2\n3,4\n")
    assert read_table(path, header=False).columns == {"1": ["1", "3"], "2": ["2", "4"]}
    assert read_table(path, header=True).columns == {"1": ["3"], "2": ["4"]}
    latin = read_table(write(b"a,y\n\xe9,0\n"), encoding="latin-1")
    assert latin.texts("a") == ["é"]
    assert "not known" in error_of(path, encoding="klingon")


def test_files_that_cannot_be_read(tmp_path: Path, write: Write) -> None:
    with pytest.raises(exactcv.FileError, match="No such file"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(exactcv.FileError, match="folder"):
        read_table(tmp_path)
    with pytest.raises(exactcv.FileError, match="Parquet"):
        read_table(write("PAR1 but not more", "data.parquet"))
    with pytest.raises(exactcv.InputError, match="svmlight"):
        read_table(write("1 a:b\n", "data.svm"))


def test_parquet(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(
        {
            "x": [1.5, None, 2.0],
            "k": [1, 2, 3],
            "big": [2**60 + 1, 2**60 + 3, 2**60 + 5],
            "flag": [True, False, True],
            "colour": pandas.Categorical(["red", "blue", None]),
            "y": ["a", "b", "a"],
        }
    )
    frame.to_parquet(tmp_path / "data.parquet")
    table = read_table(tmp_path / "data.parquet")
    np.testing.assert_array_equal(table.numbers("x"), [1.5, np.nan, 2.0])
    assert table.numbers("flag").tolist() == [1.0, 0.0, 1.0]
    assert parse_labels(table, "big").tolist() == [2**60 + 1, 2**60 + 3, 2**60 + 5]
    assert table.texts("colour") == ["red", "blue", None]
    frame.assign(when=pandas.Timestamp("2020-01-01")).to_parquet(tmp_path / "odd.parquet")
    odd = read_table(tmp_path / "odd.parquet")
    with pytest.raises(exactcv.InputError, match=r"'when' has type timestamp.*--drop 'when'"):
        fit_preparation(odd, target="y", categorical=("big",))
    made, _ = fit_preparation(odd, target="y", others=("when",), impute=True)
    assert "when" in made.others
    frame.set_index(pandas.date_range("2020-01-01", periods=len(frame))).to_parquet(
        tmp_path / "dates.parquet"
    )
    assert read_table(tmp_path / "dates.parquet").names == table.names
    frame[:0].to_parquet(tmp_path / "empty.parquet")
    with pytest.raises(exactcv.InputError, match="no rows"):
        read_table(tmp_path / "empty.parquet")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames(library: str) -> None:
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"x": [1, 2], "b": [True, False], "s": ["u", None]})
    table = as_table(frame)
    assert table.numbers("x").tolist() == [1.0, 2.0]
    assert table.numbers("b").tolist() == [1.0, 0.0]
    assert table.texts("s") == ["u", None]
    with pytest.raises(exactcv.InputTypeError, match="data frame"):
        as_table(np.eye(2))


def test_nullable_columns_and_twins_in_data_frames() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": pandas.array([1, None, 3], dtype="Int64")})
    np.testing.assert_array_equal(as_table(frame).numbers("x"), [1.0, np.nan, 3.0])
    twins = pandas.concat([frame, frame], axis=1)
    with pytest.raises(exactcv.InputError, match="several columns are called 'x'"):
        as_table(twins)


# ---- columns and cells ---------------------------------------------------------------------------


def test_columns_are_found_by_name_or_number() -> None:
    table = Table("t", 1, {"b": ["1"], "2": ["1"], "y": ["1"]})
    found = [table.find(word) for word in ("b", "2", "1", "3", "-1", "-3")]
    assert found == ["b", "2", "b", "y", "y", "b"]
    with pytest.raises(exactcv.InputError, match="did you mean 'y'"):
        table.find("Y")
    for word in ("0", "4", "-4", "z"):
        with pytest.raises(exactcv.InputError, match=f"no column '{word}'; it has 'b', '2', 'y'"):
            table.find(word)


def test_kinds_of_columns() -> None:
    cells = {
        "number": ["1", " 2.5 ", "NA", "1e-3"],
        "flag": ["True", "false", "", "TRUE"],
        "text": ["a", "b", "null", "1_000"],
        "mixed": ["1", "2", "3", "four"],
        "missing": ["", "NaN", "?", "n/a"],
    }
    table = Table("t", 4, cells)
    assert {name: table.kind(name) for name in cells} == {name: name for name in cells}
    assert table.first_text("mixed") == (3, "four")
    with pytest.raises(exactcv.InputError, match="'four' in row 4, which is no number"):
        table.numbers("mixed")
    with pytest.raises(exactcv.InputError, match=r"--decimal , reads it as 1.5"):
        Table("t", 1, {"x": ["1,5"]}).numbers("x")
    with pytest.raises(exactcv.InputError, match="infinite in row 1"):
        Table("t", 1, {"x": ["inf"]}).numbers("x")


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["1", "-1"], [1, -1]),
        (["1.0", "2e0"], [1, 2]),
        (["007", "1"], ["007", "1"]),
        (["9223372036854775807", "1"], [2**63 - 1, 1]),
        (["99999999999999999999", "1"], ["99999999999999999999", "1"]),
        (["True", "False"], ["True", "False"]),
        (["a", "1"], ["a", "1"]),
    ],
)
def test_labels(cells: list[str], labels: list[Any]) -> None:
    assert parse_labels(Table("t", 2, {"y": cells}), "y").tolist() == labels


def test_targets_that_are_no_classes() -> None:
    with pytest.raises(exactcv.InputError, match="3 different real numbers"):
        parse_labels(Table("t", 3, {"y": ["0.5", "1", "2"]}), "y")
    with pytest.raises(exactcv.InputError, match=r"missing in 2 of 3 rows .first: row 2"):
        parse_labels(Table("t", 3, {"y": ["a", "", "NA"]}), "y")


# ---- preparation ---------------------------------------------------------------------------------


def table_of(**columns: list[str]) -> Table:
    return Table("t", len(next(iter(columns.values()))), dict(columns))


def test_standardised_and_one_hot_in_sort_order() -> None:
    table = table_of(x=["1", "2", "6"], c=["b", "a", "b"], y=["0", "0", "1"])
    made, X = fit_preparation(table, target="y")
    assert made.features == ["x", "c=a", "c=b"]
    np.testing.assert_allclose(X.mean(axis=0), 0.0, atol=1e-15)
    np.testing.assert_allclose(X.std(axis=0), 1.0)
    np.testing.assert_array_equal(made.apply(table), X)
    shuffled = table_of(y=["1"], c=["a"], x=["3"])
    np.testing.assert_allclose(made.apply(shuffled)[0, 0], 0.0)


def test_columns_must_match_by_name() -> None:
    made, _ = fit_preparation(
        table_of(a=["1", "2"], b=["3", "4"], w=["1", "1"], y=["0", "1"]), target="y", others=("w",)
    )
    with pytest.raises(exactcv.InputError, match="missing: 'b'; unexpected: 'd', 'e'"):
        made.apply(table_of(a=["1"], d=["1"], e=["2"]))
    assert made.apply(table_of(b=["3"], a=["1"])).shape == (1, 2)
    with pytest.raises(exactcv.InputError, match="named columns"):
        made.apply(Table("t", 1, {"target": ["1"]}, sparse.eye(1, format="csr")))


def test_unseen_levels() -> None:
    table = table_of(x=["1", "2"], c=["a", "b"], y=["0", "1"])
    made, _ = fit_preparation(table, target="y", standardize=False)
    new = table_of(x=["1", "1"], c=["z", "b"])
    with pytest.raises(exactcv.InputError, match=r"column 'c' has 'z', not among .* 'a', 'b'"):
        made.apply(new)
    assert made.apply(new, "zeros").tolist() == [[1.0, 0.0, 0.0], [1.0, 0.0, 1.0]]


def test_gaps_are_named_or_filled() -> None:
    table = table_of(
        x=["1", "", "3", "9"], c=["b", "b", "?", "a"], z=["1", "2", "3", "4"], y=list("0101")
    )
    with pytest.raises(exactcv.InputError, match=r"'x' \(1\), 'c' \(1\); .*--impute median"):
        fit_preparation(table, target="y")
    made, X = fit_preparation(table, target="y", impute=True, standardize=False)
    assert X.tolist() == [[1, 0, 1, 1], [3, 0, 1, 2], [3, 0, 1, 3], [9, 1, 0, 4]]
    later = table_of(x=["NA"], c=[""], z=[""])
    assert made.apply(later).tolist() == [[3.0, 0.0, 1.0, 2.5]]


def test_weights_count_as_copies() -> None:
    weight = np.array([1.0, 3.0, 0.0, 2.0])
    columns = {"x": ["1", "", "50", "4"], "z": ["5", "1", "9", "2"], "c": list("abzb")}
    copies = [0, 1, 1, 1, 3, 3]
    light = table_of(**columns, y=list("0101"))
    heavy = table_of(
        **{name: [cells[k] for k in copies] for name, cells in columns.items()}, y=list("000111")
    )
    made, X = fit_preparation(light, target="y", impute=True, weight=weight)
    same, Z = fit_preparation(heavy, target="y", impute=True)
    assert made.columns == same.columns
    np.testing.assert_allclose(X[[0, 1, 3]], Z[[0, 1, 4]], rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"m": ["1", "x", "2"]}, "numbers and text .'x' in row 2.; .*--categorical 'm'"),
        ({"m": ["", "", ""]}, "no values at all in 'm'"),
        ({"m": ["2", "2", "2"]}, "all features of t are constant"),
        ({"unnamed column 1": ["0", "1", "2"]}, "column 1 has no name; .*--drop 1"),
        ({"m": ["1e308", "-1e308", "0"]}, "'m' cannot be standardised"),
        ({}, "no columns besides the target"),
    ],
)
def test_columns_that_cannot_be_used(columns: dict[str, list[str]], said: str) -> None:
    with pytest.raises(exactcv.InputError, match=said):
        fit_preparation(table_of(**columns, y=list("010")), target="y")


def test_constant_columns_are_left_out_but_still_expected() -> None:
    made, X = fit_preparation(
        table_of(a=["1", "2"], k=["5", "5"], y=["0", "1"]), target="y", standardize=False
    )
    assert X.tolist() == [[1.0], [2.0]]
    assert made.constant == ["k"]
    assert made.apply(table_of(a=["3"], k=["77"])).tolist() == [[3.0]]
    with pytest.raises(exactcv.InputError, match="missing: 'k'"):
        made.apply(table_of(a=["3"]))


def test_categorical_on_request_and_too_many_levels() -> None:
    table = table_of(a=["1", "2", "x"], n=["u", "v", "w"], y=list("010"))
    made, _ = fit_preparation(table, target="y", categorical=("a",))
    assert made.features[:3] == ["a=1", "a=2", "a=x"]
    with pytest.raises(exactcv.InputError, match=r"'n' has 3 different texts.*--id 'n'"):
        fit_preparation(table, target="y", others=("a",), most_levels=2)


def test_sparse_data_are_scaled_but_not_centred(write: Write) -> None:
    table = read_table(write("1 1:2 3:1\n0 1:4\n1 3:5\n", "data.svm"))
    made, X = fit_preparation(table, target="target")
    assert sparse.issparse(X)
    dense = table.matrix.toarray()[:, [1, 3]]
    np.testing.assert_allclose(X.toarray(), dense / dense.std(axis=0))
    narrow = read_table(write("1 1:2\n", "narrow.svm"))
    np.testing.assert_allclose(made.apply(narrow).toarray(), [[2 / dense[:, 0].std(), 0.0]])
    with pytest.raises(exactcv.InputError, match="features up to 9, the model only up to 3"):
        made.apply(read_table(write("1 9:2\n", "wide.svm")))


def test_the_kinds_of_a_column_are_its_texts() -> None:
    """Of numbers each once, as they come; with gaps, and zeros of both signs."""
    numbers = np.array([3.0, np.nan, 0.5, 3.0, -0.0, 0.0, np.nan, 1e300])
    table = Table("t", 8, {"x": numbers, "s": list("abacbaaa")})
    for name in ("x", "s"):
        kinds, which = table.kinds_of(name)
        cells = kinds if which is None else [kinds[k] for k in which]
        assert cells == table.texts(name)
    kinds, _ = table.kinds_of("x")
    assert kinds[:4] == ["3", None, "0.5", "0"]
    assert len(kinds) == 5
