"""Tables as they come: commas, dates, archives, query numbers, and columns that name the rows."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import exactcv
from exactcv.storage.notation import Notation, fitting, no_category
from exactcv.storage.preparation import fit_preparation
from exactcv.storage.readers import read_table
from exactcv.storage.suspects import refuse_suspects
from exactcv.storage.table import Table, parse_labels

Write = Callable[..., Path]


def table_of(**columns: list[str]) -> Table:
    return Table("t", len(next(iter(columns.values()))), dict(columns))


# ---- notation ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("notation", "cell", "value"),
    [
        (Notation(","), "-1,5e-3", -0.0015),
        (Notation(","), ",5", 0.5),
        (Notation(","), "1.5", None),
        (Notation(",", "."), "1.234.567,5", 1234567.5),
        (Notation(",", "."), "1.23", None),  # two digits are no thousands
        (Notation(",", "."), "12.34,5", None),
        (Notation(".", ","), "1,234", 1234.0),
        (Notation(".", "'"), "1'234.5", 1234.5),
        (Notation(",", " "), "1\u00a0234\u202f567,5", 1234567.5),
        (Notation(","), "true", 1.0),
        (Notation(","), "text", None),
        (Notation(","), "1_000", None),
    ],
)
def test_numbers_in_other_notations(notation: Notation, cell: str, value: float | None) -> None:
    found = notation.number(cell)
    assert np.isnan(found) if value is None else found == value


def test_decimal_commas_are_refused_by_name_and_read_on_request(write: Write) -> None:
    path = write("price;width;y\n1,5;2;a\n2,25;3;b\n;4;a\n")
    table = read_table(path)
    assert table.kind("price") == "misread"
    with pytest.raises(
        exactcv.InputError, match=r"'price' has '1,5' in row 1; .*--decimal , reads"
    ):
        fit_preparation(table, target="y", impute=True)
    made, X = fit_preparation(
        read_table(path, decimal=","), target="y", impute=True, standardize=False
    )
    assert made.features == ["price", "width"]
    assert X[:, 0].tolist() == [1.5, 2.25, 1.875]
    as_text, _ = fit_preparation(table, target="y", categorical=("price",), impute=True)
    assert as_text.features[:2] == ["price=1,5", "price=2,25"]


def test_where_a_comma_may_mean_two_things_both_are_said() -> None:
    message = table_of(n=["1,234", "22,500"]).misread("n")
    assert "--decimal , reads it as 1.234" in message
    assert "--thousands , reads it as 1234" in message
    assert [way.options for way in fitting(["1.234,5"])] == ["--decimal , --thousands ."]
    with pytest.raises(exactcv.InputError, match=r"both ','"):
        Notation(",", ",")


def test_a_decimal_comma_among_text_is_no_level() -> None:
    table = table_of(m=["1,5", "high", "2,5"], x=["1", "2", "3"], y=list("010"))
    with pytest.raises(exactcv.InputError, match=r"numbers and text .'high' in row 2"):
        fit_preparation(table, target="y")


def test_labels_and_points_under_decimal_commas(write: Write) -> None:
    table = read_table(write("a;y\n1.5;1,0\n2.5;2,0\n"), decimal=",")
    assert parse_labels(table, "y").tolist() == [1, 2]
    with pytest.raises(exactcv.InputError, match=r"--decimal . reads it as 1.5"):
        fit_preparation(table, target="y")


def test_a_first_line_of_decimal_commas_is_no_header(write: Write) -> None:
    with pytest.raises(exactcv.InputError, match="only numbers"):
        read_table(write("1,5;2,5\n3,5;4,5\n"), decimal=",")


# ---- other things that are found in files --------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["2024-01-31", "2024-02-01"], "dates"),
        (["31.1.2024"], "dates"),
        (["1/31/24 10:05 PM"], "dates"),
        (["3 May 2021"], "dates"),
        (["Jan 05 2020", "December 24, 2021"], "dates"),
        (["[1, 2]", "[]"], "lists"),
        (['{"a": 1}'], "lists"),
        (["12.5%", "3 %"], "numbers with a unit"),
        (["$1,200.50", "-$3"], "numbers with a unit"),
        (["12,50 \u20ac"], "numbers with a unit"),
    ],
)
def test_what_names_no_category_is_no_level(cells: list[str], kind: str) -> None:
    table = table_of(when=[*cells, *cells], x=list("12345678")[: 2 * len(cells)])
    table.columns["y"] = [str(k % 2) for k in range(table.n_rows)]
    with pytest.raises(exactcv.InputError, match=rf"'when' holds {kind}.*--drop 'when'"):
        fit_preparation(table, target="y")
    made, _ = fit_preparation(table, target="y", categorical=("when",))
    assert "when" in [column.name for column in made.columns]


@pytest.mark.parametrize(
    "cells",
    [["1.5"], ["1-2"], ["2024"], ["10:30"], ["a1.2.3"], ["(0, 1]"], ["%"], ["$"], ["Ward 3 2020"],
     ["<5%", "12%"], []],
)  # fmt: skip
def test_what_may_be_a_category(cells: list[str]) -> None:
    assert no_category("x", cells) is None


def test_utf16_is_told_and_read(write: Write) -> None:
    text = "a,y\n1,ä\n2,b\n"
    path = write(text.encode("utf-16"))
    with pytest.raises(exactcv.InputError, match="UTF-16 text: use --encoding utf-16"):
        read_table(path)
    assert read_table(path, encoding="utf-16").texts("y") == ["ä", "b"]
    with pytest.raises(exactcv.InputError, match="utf-16-le"):
        read_table(write(text.encode("utf-16-le")))
    with pytest.raises(exactcv.InputError, match="not utf-16 text"):
        read_table(write("a,y\n1,2\n"), encoding="utf-16")


def test_archives_and_spreadsheets_are_told(write: Write) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("data.csv", "a,y\n1,0\n")
    with pytest.raises(exactcv.FileError, match="zip archive or a spreadsheet; unpack it"):
        read_table(write(packed.getvalue(), "data.zip"))
    with pytest.raises(exactcv.FileError, match="zstd"):
        read_table(write(b"\x28\xb5\x2f\xfd0000", "data.csv.zst"))


def test_list_columns_can_be_dropped(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"x": [1.0, 2.0], "tags": [["a"], ["b", "c"]], "y": ["a", "b"]})
    frame.to_parquet(tmp_path / "data.parquet")
    table = read_table(tmp_path / "data.parquet")
    with pytest.raises(exactcv.InputError, match=r"'tags' has type list<.*--drop 'tags'"):
        fit_preparation(table, target="y")
    made, X = fit_preparation(table, target="y", others=("tags",))
    assert X.shape == (2, 1)
    np.testing.assert_array_equal(made.apply(table), X)


def test_query_numbers_of_svmlight_files(write: Write) -> None:
    table = read_table(write("1 qid:7 1:2\n0 qid:7 2:1\n1 qid:9 1:1\n", "data.svm"))
    assert table.texts("qid") == ["7", "7", "9"]
    made, X = fit_preparation(table, target="target", standardize=False)
    assert X.shape == (3, 2) and made.columns == ()
    with pytest.raises(exactcv.InputError, match="1 of 2 rows have a qid"):
        read_table(write("1 qid:7 1:2\n0 2:1\n", "half.svm"))


@pytest.mark.parametrize("kind", ["csv", "parquet", "svmlight"])
def test_reading_stays_within_the_memory_limit(tmp_path: Path, write: Write, kind: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 20))
    path = tmp_path / f"data.{kind}"
    if kind == "parquet":
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        pandas.DataFrame(X, columns=[f"x{k}" for k in range(20)]).to_parquet(path)
    elif kind == "svmlight":
        from sklearn.datasets import dump_svmlight_file

        dump_svmlight_file(X, np.zeros(1200), str(path))
    else:
        lines = [",".join(map(repr, row)) for row in X.tolist()]
        path = write("\n".join([",".join(f"x{k}" for k in range(20)), *lines]) + "\n")
    assert read_table(path, memory_limit="10MB").n_rows == 1200
    with pytest.raises(exactcv.MemoryLimitError, match=r"data\.\w+ take .* but --memory-limit is"):
        read_table(path, memory_limit="200kB")


# ---- columns that are no features ----------------------------------------------------------------


def columns(n: int = 60) -> dict[str, Any]:
    """An honest feature of each kind, and labels of which neighbours share one by fives."""
    rng = np.random.default_rng(1)
    return {
        "x": [repr(v) for v in rng.normal(size=n).tolist()],
        "colour": [["red", "blue", "green"][k] for k in rng.integers(3, size=n)],
        "age": [str(v) for v in rng.integers(20, 80, size=n)],
        "cell": [str(k * k) for k in range(n)],  # one to a row, but no row number
        "y": [str(k // 5 * 7 % 3 % 2) for k in range(n)],
    }


def refused(more: dict[str, list[str]]) -> str | None:
    table = table_of(**columns(), **more)
    names = [name for name in table.names if name != "y"]
    try:
        refuse_suspects(table, names, parse_labels(table, "y"))
    except exactcv.InputError as error:
        return str(error)
    return None


def test_ordinary_columns_are_left_alone() -> None:
    assert refused({}) is None
    # Few rows a level may well be pure by chance.
    assert refused({"rare": ["a"] * 56 + ["b", "b", "c", "c"]}) is None
    # Nor are twelve texts a group, of which several occur in rows of both classes.
    assert refused({"town": [f"t{(k + 1) // 5}" for k in range(60)]}) is None


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ([f"p{k}" for k in range(60)], "'who' names the rows .60 different texts in 60 rows"),
        ([str(k + 1) for k in range(60)], "'who' numbers the rows .1 to 60"),
        ([f"p{k // 5}" for k in range(60)], "'who' looks like a group .12 values that repeat"),
        ([f"p{0 if k == 5 else k // 5}" for k in range(60)], "12 values that repeat, 1 in rows of"),
        ([str(100 + k // 5) for k in range(60)], "'who' looks like a group .12 values"),
        ([f"c{y}" for y in columns()["y"]], "'who' repeats the target"),
    ],
)
def test_columns_that_name_rows_or_groups(cells: list[str], reason: str) -> None:
    import re

    message = refused({"who": cells})
    assert message is not None and re.search(reason, message)
    assert all(option in message for option in ("--id", "--groups", "--drop", "--keep"))


def test_a_quantity_that_decides_the_class_is_a_feature() -> None:
    table = table_of(dose=[str(k // 3) for k in range(60)], y=[str(k // 30) for k in range(60)])
    refuse_suspects(table, ["dose"], parse_labels(table, "y"))


@pytest.mark.parametrize("odd", ["abc", "#DIV/0!", "n.d."])
def test_a_typing_error_among_numbers_is_no_name_of_rows(odd: str) -> None:
    """The cell is told, not that nearly every text differs."""
    rng = np.random.default_rng(0)
    cells = [f"{v:.4f}" for v in rng.normal(size=40)]
    cells[7] = odd
    table = table_of(a=cells, y=list("01") * 20)
    refuse_suspects(table, ["a"], rng.integers(2, size=40))
    with pytest.raises(exactcv.InputError, match=r"'a' has numbers and text .*in row 8"):
        fit_preparation(table, target="y")


def test_whole_numbers_that_are_dates() -> None:
    y = np.random.default_rng(0).integers(2, size=40)
    days = [str(20240100 + k % 28 + 1) for k in range(40)]
    with pytest.raises(exactcv.InputError, match=r"'d' holds dates, such as 20240101; .*--keep"):
        refuse_suspects(table_of(d=days), ["d"], y)
    for other in ("20241301", "20240230", "7", "20240101.5"):  # no month, no day, no date
        refuse_suspects(table_of(d=[other, *days[1:]]), ["d"], y)
    refuse_suspects(table_of(d=["20240101"] * 40), ["d"], y)  # a constant is left out anyway


def test_utf32_and_stray_bytes_are_not_called_utf16(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,y\n1,0\n2,1\n", encoding="utf-32")
    with pytest.raises(exactcv.InputError, match="--encoding utf-32"):
        read_table(path)
    assert read_table(path, encoding="utf-32").n_rows == 2
    path.write_bytes(b"a,y\n1,x\0\n2,z\n")
    with pytest.raises(exactcv.InputError, match="is no text: byte 8 is zero"):
        read_table(path)


@pytest.mark.parametrize(
    "text", ["1.5,2,red\n3,4,blue\n5,6,red\n", "red,yes\nblue,no\nred,no\nblue,yes\n"]
)
def test_a_first_line_of_data_is_no_header(write: Write, text: str) -> None:
    with pytest.raises(exactcv.InputError, match="--no-header if it is a row of data"):
        read_table(write(text))
    assert read_table(write(text), header=False).n_rows == text.count("\n")
    assert read_table(write(text), header=True).n_rows == text.count("\n") - 1


def test_years_and_wavelengths_are_names(write: Write) -> None:
    assert read_table(write("2001,2002,y\n3,4,a\n5,6,b\n")).names == ["2001", "2002", "y"]


@pytest.mark.parametrize("first", ["# made by a machine", "Table 3. Results"])
def test_lines_above_the_names(write: Write, first: str) -> None:
    with pytest.raises(exactcv.InputError, match="remove what stands above the names"):
        read_table(write(f"{first}\na,b,y\n1,2,x\n3,4,z\n"))


def test_another_delimiter_is_asked_for(write: Write) -> None:
    table = read_table(write("a b y\n1 2 x\n3 4 z\n"))
    with pytest.raises(exactcv.InputError, match=r"one column only, 'a b y'; .*--delimiter"):
        table.find("y")
