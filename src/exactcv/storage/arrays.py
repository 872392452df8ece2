"""Numbers and text in one file that is only ever read as data.

A file holds a tree of dicts, lists, text, numbers and arrays::

    8 bytes    what kind of file it is
    8 bytes    length of the header, little endian
    header     JSON: the tree, with {"array": k} where an array belongs, and for each array its
               type, shape and place
    arrays     raw, little endian, in C order, one after the other
    32 bytes   SHA-256 of all that comes before

Reading runs no code that comes from the file.  Sizes that the header announces are compared with
the size of the file before anything is allocated.  The checksum guards against damage, not against
people: whoever can change the numbers can compute it anew, and gets other numbers, nothing more.
The same tree gives the same bytes.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..exceptions import FileError
from .atomic import translated, write_parts

__all__ = ["dumps", "loads", "read", "write"]

MAGIC = b"\x93EXACTCV"
DIGEST = 32
MOST_HEADER = 64 * 2**20
MOST_FILE = 64 * 2**30
MOST_DEPTH = 32
BLOCK = 1 << 20  # bytes that are in memory at a time, arrays excepted
DTYPES = ("|b1", "|u1", "|i1", "<i2", "<i4", "<i8", "<f8")
_KIND = "kind"  # what the tree is, for people and for readers


def write(path: Path, kind: str, tree: Any) -> None:
    """Write the tree in one step."""
    write_parts(path, _parts(kind, tree))


def read(path: Path, kind: str, without: Collection[str] = ()) -> Any:
    """The tree of a file of this kind; ``FileError`` for anything else.

    ``without`` names items of the tree, a dict, whose arrays are not read: None takes their place.
    """
    with translated("read", path), open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > MOST_FILE:
            raise FileError(f"{str(path)!r} is too large to be an exactcv file")
        try:
            return _load(kind, file, size, without)
        except FileError as error:
            raise FileError(f"{str(path)!r}: {error}") from error


def dumps(kind: str, tree: Any) -> bytes:
    """The bytes of a tree.

    Examples
    --------
    >>> loads("example", dumps("example", {"x": np.arange(3), "name": "three"}))
    {'x': array([0, 1, 2]), 'name': 'three'}
    """
    return b"".join(_parts(kind, tree))


def _parts(kind: str, tree: Any) -> Iterator[bytes | memoryview]:
    """The same piece by piece, for trees that are large; the last one is the checksum."""
    arrays: list[NDArray[Any]] = []
    body = _plain(tree, arrays)
    places, at = [], 0
    for array in arrays:
        places.append({"dtype": array.dtype.str, "shape": list(array.shape), "at": at})
        at += array.nbytes
    # NaN has no place in JSON: numbers that may be NaN are kept in arrays.
    header = json.dumps({_KIND: kind, "arrays": places, "tree": body}, allow_nan=False).encode()
    checksum = hashlib.sha256()
    parts: list[bytes | memoryview] = [MAGIC + len(header).to_bytes(8, "little") + header]
    parts += (array.reshape(-1).view(np.uint8).data for array in arrays)
    for part in parts:
        checksum.update(part)
        yield part
    yield checksum.digest()


def _plain(value: Any, arrays: list[NDArray[Any]]) -> Any:
    """The value as JSON knows it; arrays are put aside."""
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value).astype(value.dtype.newbyteorder("<"), copy=False)
        array = array.reshape(value.shape)
        if array.dtype.str not in DTYPES:
            raise FileError(f"arrays of type {value.dtype} cannot be written")
        arrays.append(array)
        return {"array": len(arrays) - 1}
    if isinstance(value, dict):
        return {"dict": [[str(key), _plain(item, arrays)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        return [_plain(item, arrays) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise FileError(f"a {type(value).__name__} cannot be written")


def loads(kind: str, data: bytes) -> Any:
    """The tree again; ``FileError`` if the bytes are not as ``dumps`` makes them."""
    return _load(kind, io.BytesIO(data), len(data), ())


def _load(kind: str, file: BinaryIO, size: int, without: Collection[str]) -> Any:
    start = len(MAGIC) + 8
    if size < start + DIGEST or file.read(len(MAGIC)) != MAGIC:
        raise FileError(f"this is not an exactcv {kind} file, or only the beginning of one")
    length = int.from_bytes(file.read(8), "little")
    if _checksum(file, size - DIGEST) != file.read(DIGEST):
        raise FileError("the file is damaged or incomplete: its checksum does not match")
    if length > min(MOST_HEADER, size - start - DIGEST):
        raise FileError("the header is longer than the file")
    file.seek(start)
    try:
        header = json.loads(file.read(length), parse_constant=_refuse)
        if not isinstance(header, dict) or set(header) != {_KIND, "arrays", "tree"}:
            raise FileError("the header has the wrong parts")
        if header[_KIND] != kind:
            raise FileError(f"this is an exactcv {header[_KIND]!s} file, not a {kind} file")
        arrays = _Arrays(header["arrays"], file, start + length, size - DIGEST)
        return _tree(_pruned(header["tree"], without), arrays.read)
    except FileError:
        raise
    except (ValueError, TypeError, KeyError, IndexError, RecursionError, OverflowError) as error:
        raise FileError(f"the header makes no sense: {type(error).__name__}") from error


def _checksum(file: BinaryIO, size: int) -> bytes:
    """Of the first so many bytes, of which few are in memory at a time."""
    checksum, left = hashlib.sha256(), size
    file.seek(0)
    while left:
        block = file.read(min(BLOCK, left))
        if not block:
            break  # cut short while it is read
        checksum.update(block)
        left -= len(block)
    return checksum.digest()


def _refuse(name: str) -> Any:
    raise FileError(f"the header holds {name}")


def _pruned(tree: Any, without: Collection[str]) -> Any:
    """The tree of a dict with None in the place of these items."""
    if not without:
        return tree
    items = [[key, None if key in without else item] for key, item in tree["dict"]]
    return {"dict": items}


class _Arrays:
    """The arrays, which must fill the space from ``start`` to ``stop`` to the last byte.

    Only those that are asked for are read.
    """

    def __init__(self, places: Any, file: BinaryIO, start: int, stop: int):
        self._file, self._start = file, start
        self._places: list[tuple[str, list[int], int]] = []
        self._known: dict[int, NDArray[Any]] = {}
        size, at = stop - start, 0
        for place in places:
            dtype, shape = place["dtype"], place["shape"]
            if dtype not in DTYPES:
                raise FileError(f"arrays of type {dtype!r} are not read")
            if not all(type(k) is int and 0 <= k <= size for k in shape) or len(shape) > 4:
                raise FileError(f"an array of shape {shape} does not fit into the file")
            nbytes = math.prod(shape) * np.dtype(dtype).itemsize
            if place["at"] != at or at + nbytes > size:
                raise FileError("an array lies outside the file")
            self._places.append((dtype, shape, at))
            at += nbytes
        if at != size:
            raise FileError("the file is longer than its arrays")

    def read(self, k: int) -> NDArray[Any]:
        if k not in self._known:
            dtype, shape, at = self._places[k]
            found = np.empty(math.prod(shape), dtype)
            self._file.seek(self._start + at)
            if self._file.readinto(found.view(np.uint8).data) != found.nbytes:  # type: ignore[attr-defined]
                raise FileError("the file was cut short while it was read")
            native = found.dtype.newbyteorder("=")
            self._known[k] = found.reshape(shape).astype(native, copy=False)
        return self._known[k]


def _tree(value: Any, array: Callable[[int], NDArray[Any]], depth: int = 0) -> Any:
    if depth > MOST_DEPTH:
        raise FileError("the header is nested too deeply")
    if isinstance(value, list):
        return [_tree(item, array, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    ((tag, content),) = value.items()
    if tag == "array" and type(content) is int and content >= 0:
        return array(content)
    if tag == "float" and content in ("nan", "inf", "-inf"):
        return float(content)
    if tag == "dict":
        return {str(key): _tree(item, array, depth + 1) for key, item in content}
    raise FileError(f"the header has an unknown part {tag!r}")
