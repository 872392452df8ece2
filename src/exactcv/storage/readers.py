"""CSV, Parquet and svmlight files, compressed or not, as a ``Table``.

CSV is read by Python's own reader, not by pandas, which is no requirement and has rules of its own
about what a cell means.  The format follows the name (.csv .tsv .parquet .svm .libsvm ..., with .gz
.bz2 or .xz after it); if that says nothing, the contents.  Compression is seen from the contents.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import hashlib
import io
import lzma
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from sys import getsizeof
from typing import IO, Any

import numpy as np

from ..exceptions import FileError, InputError, MissingExtraError
from ..lowrank.rows.parquet import index_columns
from ..runtime.memory import Budget
from .atomic import translated
from .notation import Notation, in_some_notation
from .table import UNNAMED, Cells, Table, listed

__all__ = ["FORMATS", "QID", "digest", "pieces", "read_table", "refuse_twins"]

FORMATS = ("csv", "parquet", "svmlight")
SUFFIXES = {
    ".csv": "csv", ".tsv": "csv", ".tab": "csv", ".parquet": "parquet", ".pq": "parquet",
    ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight", ".t": "svmlight",
}  # fmt: skip
COMPRESSED = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
# What is not read, by its first bytes, and what to do with it.
STRANGERS = {
    b"PK\x03\x04": "a zip archive or a spreadsheet; unpack it, or save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet; save the sheet as CSV",
    b"\x28\xb5\x2f\xfd": "packed with zstd; unpack it, or use gzip",
    b"7z\xbc\xaf": "a 7z archive; unpack it",
}
TEXT_BYTES = 60  # of a short text and its place in a column
BLOCK = 256  # rows between two looks at how much memory they take
QID = "qid"  # the column of query numbers that svmlight files may have
DELIMITERS = ",;\t|"
BOMS = {  # the longer ones first, which begin as the others
    (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE): "utf-32",
    (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE): "utf-16",
}
LARGEST_CELL = 2**24
_SVMLIGHT = re.compile(r"[-+\w.,]+(\s+qid:\d+)?(\s+\d+:[-+\w.]+)+\s*(#.*)?")
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


def digest(path: Path) -> str:
    """SHA-256 of a file, which says whether it has changed."""
    with translated("read", path), open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_table(
    path: Path,
    *,
    format: str | None = None,  # noqa: A002  (what users and the option call it)
    delimiter: str | None = None,
    header: bool | None = None,
    encoding: str = "utf-8",
    decimal: str = ".",
    thousands: str | None = None,
    memory_limit: int | float | str | None = None,
) -> Table:
    """Read a file.

    Parameters
    ----------
    path : Path
    format : {"csv", "parquet", "svmlight"}, optional
        By default from the name, else from the contents.
    delimiter : str, optional
        Of a CSV file; by default whichever of comma, semicolon, tab and bar is most frequent in
        its first line.
    header : bool, optional
        Does the first line of a CSV file hold names?  Without names columns are called 1, 2, ...
        By default yes, but a first line of nothing but numbers is refused.
    encoding : str
    decimal, thousands : str, optional
        How numbers are written where they are text.
    memory_limit : int or str, optional
        What the table may take, as "2GB"; by default what the system has available.
    """
    (table,) = pieces(
        path,
        rows=None,
        format=format,
        delimiter=delimiter,
        header=header,
        encoding=encoding,
        decimal=decimal,
        thousands=thousands,
        memory_limit=memory_limit,
    )
    return table


def pieces(
    path: Path,
    *,
    rows: int | None,
    format: str | None = None,  # noqa: A002
    delimiter: str | None = None,
    header: bool | None = None,
    encoding: str = "utf-8",
    decimal: str = ".",
    thousands: str | None = None,
    memory_limit: int | float | str | None = None,
) -> Iterator[Table]:
    """The file as tables of so many rows each, one after another; in one piece if None.

    The other parameters are those of `read_table`; the limit holds for each piece.  svmlight files
    come in one piece.
    """
    source = path.name
    notation = Notation(decimal, thousands)
    with translated("read", path):
        if path.is_dir():
            raise FileError(f"cannot read {str(path)!r}: it is a folder")
        data = _opened(path)
    with data:
        try:
            chosen = format or _format(path, data)
            tables: Iterator[Table]
            if chosen == "parquet":
                tables = _read_parquet(data, source, memory_limit, rows)
            elif chosen == "svmlight":
                tables = iter([_read_svmlight(data, source, Budget(memory_limit))])
            else:
                text = _as_text(data, source, encoding)
                lines = _rows(text, source, delimiter, encoding, decimal)
                tables = _tables(lines, source, header, memory_limit, rows)
            start = 0
            for table in tables:
                yield replace(table, notation=notation, start=start)
                start += table.n_rows
        except _DAMAGE as error:
            raise FileError(f"{source}: the compressed data are damaged: {error}") from error
        except OSError as error:
            if isinstance(error, (FileError, MissingExtraError)):
                raise
            raise FileError(f"cannot read {str(path)!r}: {error}") from error


def _opened(path: Path) -> IO[bytes]:
    with open(path, "rb") as file:
        start = file.read(6)
    if not start:
        raise FileError(f"{path.name} is empty")
    for magic, what in STRANGERS.items():
        if start.startswith(magic):
            raise FileError(f"{path.name} is {what}")
    for magic, opener in COMPRESSED.items():
        if start.startswith(magic):
            return opener(path, "rb")  # type: ignore[operator]
    return open(path, "rb")


def _format(path: Path, data: IO[bytes]) -> str:
    suffixes = [s.lower() for s in path.suffixes if s.lower() not in (".gz", ".bz2", ".xz")]
    if suffixes and suffixes[-1] in SUFFIXES:
        return SUFFIXES[suffixes[-1]]
    start = data.read(65536)
    data.seek(0)
    if start.startswith(b"PAR1"):
        return "parquet"
    lines = start.decode("latin-1").splitlines()
    first = next((line for line in lines if line.strip() and line[0] != "#"), "")
    return "svmlight" if _SVMLIGHT.fullmatch(first.strip()) else "csv"


# ---- CSV -----------------------------------------------------------------------------------------


def _as_text(data: IO[bytes], source: str, encoding: str) -> io.TextIOWrapper:
    utf8 = encoding.lower().replace("-", "").replace("_", "") == "utf8"
    if utf8:
        _refuse_wider(data.read(64), source)
        data.seek(0)
    try:
        return io.TextIOWrapper(data, encoding="utf-8-sig" if utf8 else encoding, newline="")
    except LookupError:
        raise InputError(f"the encoding {encoding!r} is not known") from None


def _refuse_wider(start: bytes, source: str) -> None:
    """Text of two or four bytes a letter begins with a mark, or has zeros in it."""
    for marks, name in BOMS.items():
        if start.startswith(marks):
            raise InputError(
                f"{source} is {name.upper()} text: use --encoding {name}, or save it as UTF-8"
            )
    if 4 * start.count(0) > len(start):
        raise InputError(f"{source} seems to be UTF-16 text: use --encoding utf-16-le or utf-16-be")
    if 0 in start:
        raise InputError(f"{source} is no text: byte {start.index(0) + 1} is zero")


def _tables(
    rows: Iterator[tuple[int, list[str]]],
    source: str,
    header: bool | None,
    memory_limit: int | float | str | None,
    most: int | None,
) -> Iterator[Table]:
    try:
        _, first = next(rows)
    except StopIteration:
        raise InputError(f"{source} has no lines") from None
    if header is None and all(map(in_some_notation, first)):
        raise InputError(f"the first line of {source} has only numbers: {_HEADER}")
    named = header is not False
    names = _names(first, source) if named else [str(k + 1) for k in range(len(first))]
    rest = rows if named else chain([(1, first)], rows)
    found = False
    while columns := _columns(islice(rest, most), first, source, Budget(memory_limit)):
        if header is None and not found and _is_data(first, columns):
            raise InputError(f"the first line of {source} looks like the others: {_HEADER}")
        found = True
        yield Table(source, len(columns[0]), dict(zip(names, columns, strict=True)))
    if not found:
        raise InputError(f"{source} has names of columns but no rows")


_HEADER = "say --no-header if it is a row of data, --header if these are the names of the columns"


def _is_data(first: list[str], columns: list[list[str]]) -> bool:
    """Is each cell of the first line a number or a text that its column has further down?"""
    texts = [k for k, cell in enumerate(first) if cell.strip() and not in_some_notation(cell)]
    return bool(texts) and all(first[k] in columns[k] for k in texts)


def _columns(
    rows: Iterator[tuple[int, list[str]]], first: list[str], source: str, budget: Budget
) -> list[list[str]]:
    """The cells of the rows, column by column; an empty list if there are no rows."""
    width = len(first)
    columns: list[list[str]] = [[] for _ in range(width)]
    block: list[list[str]] = []  # turned into columns at once, which is quicker than cell by cell
    for count, (line, row) in enumerate(rows, start=1):
        if len(row) != width:
            above = width == 1 or first[0].lstrip().startswith("#")
            raise InputError(
                f"{source}, line {line}: {len(row)} cells where the first line has {width}"
                + ("; remove what stands above the names of the columns" if above else "")
            )
        block.append(row)
        if len(block) == BLOCK:
            budget.take(BLOCK * _bytes_of(row), f"the first {count} rows of {source}")
            _extend(columns, block)
    _extend(columns, block)
    return columns if columns[0] else []


def _extend(columns: list[list[str]], block: list[list[str]]) -> None:
    """The rows of the block join the columns."""
    if block:
        for column, cells in zip(columns, zip(*block, strict=True), strict=True):
            column.extend(cells)
    block.clear()


def _bytes_of(row: list[str]) -> int:
    """What a row takes: a place for each cell, and the text of it (one letter is shared by all)."""
    return sum(8 + (getsizeof(cell) if len(cell) > 1 else 0) for cell in row)


def _rows(
    text: io.TextIOWrapper, source: str, delimiter: str | None, encoding: str, decimal: str
) -> Iterator[tuple[int, list[str]]]:
    """Lines (as the file counts them) and cells; blank lines are passed over."""
    csv.field_size_limit(LARGEST_CELL)
    try:
        delimiter = delimiter or _delimiter(_first_line(text), decimal)
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        for row in reader:
            if row and (len(row) > 1 or row[0].strip()):
                yield reader.line_num, row
    except UnicodeError as error:
        byte = ""
        if isinstance(error, UnicodeDecodeError):
            byte = f" (byte {error.object[error.start]:#04x})"
        raise InputError(
            f"{source} is not {encoding} text{byte}: name its encoding, such as --encoding latin-1"
        ) from error
    except csv.Error as error:
        raise InputError(f"{source} is not a well-formed CSV file: {error}") from error


def _first_line(text: io.TextIOWrapper) -> str:
    line = ""
    while not line.strip():
        line = text.readline()
        if not line:
            break
    text.seek(0)
    return line


def _delimiter(line: str, decimal: str) -> str:
    """The most frequent of the usual delimiters outside quotes; a comma if there is none."""
    bare = re.sub(r'"[^"]*"', "", line)
    likely = max(DELIMITERS.replace(decimal, ""), key=bare.count)
    return likely if likely in bare else ","


def _names(cells: list[str], source: str) -> list[str]:
    names = [cell.strip() or f"{UNNAMED}{k + 1}" for k, cell in enumerate(cells)]
    refuse_twins(names, source)
    return names


def refuse_twins(names: list[str], source: str) -> None:
    """Names must tell columns apart."""
    seen: set[str] = set()
    twins = sorted({name for name in names if name in seen or seen.add(name)})  # type: ignore[func-returns-value]
    if twins:
        raise InputError(f"{source}: several columns are called {listed(twins)}; rename them")


# ---- Parquet -------------------------------------------------------------------------------------


def _read_parquet(
    data: IO[bytes], source: str, memory_limit: int | float | str | None, most: int | None
) -> Iterator[Table]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as missing:
        raise MissingExtraError(
            'Parquet files need pyarrow: pip install "exactcv[parquet]"'
        ) from missing
    try:
        # What is read ahead would be the whole file.
        file = pyarrow.parquet.ParquetFile(data, pre_buffer=most is None)
        _check_parquet(file, source)
        if most is None:
            # As Arrow has it, and as we do.
            Budget(memory_limit).take(2 * _parquet_bytes(file), source)
            yield _arrow_table(file.read(), source)
            return
        for batch in file.iter_batches(batch_size=most):
            if batch.num_rows:
                yield _arrow_table(pyarrow.Table.from_batches([batch]), source)
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError, OSError) as error:
        if isinstance(error, (FileError, MissingExtraError)):
            raise
        raise FileError(f"{source} is not a Parquet file that can be read: {error}") from error


def _check_parquet(file: Any, source: str) -> None:
    names = [str(name) for name in file.schema_arrow.names]
    refuse_twins(names, source)
    index = index_columns(file.schema_arrow)
    if len(names) == len(index) or not file.metadata.num_rows:
        raise InputError(f"{source} has no {'columns' if len(names) == len(index) else 'rows'}")


def _arrow_table(found: Any, source: str) -> Table:
    columns: dict[str, Cells] = {}
    unusable = {}
    for name, column in zip(map(str, found.column_names), found.columns, strict=True):
        cells = _arrow_cells(column)
        columns[name] = [] if cells is None else cells
        if cells is None:  # dropped, or the index of a frame, it is in nobody's way
            unusable[name] = (
                f"column {name!r} has type {column.type}, which is neither numbers nor text; "
                f"--drop {name!r}, or put numbers in its place"
            )
    index = tuple(index_columns(found.schema))
    return Table(source, found.num_rows, columns, index=index, unusable=unusable)


def _parquet_bytes(file: Any) -> int:
    """At least this much: a number eight bytes, text what it has as Python's, packed or not."""
    from pyarrow import types

    metadata = file.metadata
    groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    kinds = [field.type for field in file.schema_arrow]
    numbers = sum(types.is_floating(kind) or types.is_integer(kind) for kind in kinds)
    plain = metadata.num_rows * (8 * numbers + TEXT_BYTES * (len(kinds) - numbers))
    return max(plain, sum(group.total_byte_size for group in groups))


def _arrow_cells(column: Any) -> Cells | None:
    """Real numbers as they are; all else as text, which says the same and loses no digits.

    None for dates, lists and whatever else is neither.
    """
    import pyarrow
    from pyarrow import types

    kind = column.type
    if types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = kind.value_type
    if types.is_floating(kind) or (types.is_integer(kind) and kind.bit_width <= 32):
        values = column.cast(pyarrow.float64()).to_numpy(zero_copy_only=False)
        return np.array(values, dtype=np.float64)
    plain = types.is_string(kind) or types.is_large_string(kind) or types.is_boolean(kind)
    if not (plain or types.is_integer(kind) or types.is_decimal(kind) or types.is_null(kind)):
        return None
    return ["" if value is None else str(value) for value in column.to_pylist()]


# ---- svmlight ------------------------------------------------------------------------------------


def _read_svmlight(data: IO[bytes], source: str, budget: Budget) -> Table:
    """Column k of the matrix is feature k of the file, whether it counts from 0 or from 1."""
    from sklearn.datasets import load_svmlight_file

    start = data.read(2**20)
    size = data.seek(0, io.SEEK_END)
    data.seek(0)
    # Number and place of an entry are 16 bytes, and half as much again while they are collected.
    budget.take(24 * start.count(b":") * size // max(len(start), 1), source)
    try:
        X, y, query = load_svmlight_file(data, zero_based=True, dtype=np.float64, query_id=True)
    except (ValueError, OverflowError, TypeError) as error:
        raise InputError(f"{source} is not a well-formed svmlight file: {error}") from error
    if X.shape[0] == 0:
        raise InputError(f"{source} has no rows")
    if not np.isfinite(X.data).all():
        raise InputError(f"{source} has missing or infinite values")
    columns: dict[str, Cells] = {"target": np.asarray(y, dtype=np.float64)}
    if len(query):
        if len(query) != len(y):
            raise InputError(f"{source}: {len(query)} of {len(y)} rows have a qid; all or none")
        columns[QID] = query.astype(np.float64)
    return Table(source, X.shape[0], columns, X)
