"""Plain records as trees of numbers and text for ``arrays.py``, and back, with checks."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..exceptions import FileError, InputError
from ..judge.certificate import Certificate
from ..report.overview import LeftOutNumbers, LeftOutRows, Overview

__all__ = [
    "array_in",
    "certificate_in",
    "fields_tree",
    "labels_in",
    "labels_tree",
    "need",
    "need_numbers",
    "need_rows",
    "overview_in",
    "overview_tree",
    "rows_in",
    "rows_tree",
]


def array_in(tree: dict[str, Any], name: str) -> NDArray[Any]:
    """What the tree has under this name, if it is an array."""
    found = tree[name]
    need(isinstance(found, np.ndarray), f"{name} is not an array")
    return np.asarray(found)


def rows_tree(rows: Any) -> Any:
    """Rows of features, dense or sparse."""
    if not sparse.issparse(rows):
        return rows
    rows = sparse.csr_matrix(rows)
    parts = {name: getattr(rows, name) for name in ("data", "indices", "indptr")}
    return parts | {"shape": list(rows.shape)}


def rows_in(parts: Any, what: str) -> Any:
    """Dense or sparse rows; their shape and values are for the caller to check."""
    if not isinstance(parts, dict):
        return parts
    rows, columns = parts["shape"]
    need(0 <= rows < 2**31 and 0 <= columns < 2**31, f"the {what} have a strange shape")
    data = array_in(parts, "data"), array_in(parts, "indices"), array_in(parts, "indptr")
    matrix = sparse.csr_matrix(data, shape=(rows, columns))
    matrix.check_format(full_check=True)
    return matrix


def need_rows(rows: Any, shape: tuple[int, int], what: str) -> None:
    """Finite float64 rows of this shape, or the file is refused."""
    plain = sparse.issparse(rows) or isinstance(rows, np.ndarray)
    need(plain and rows.dtype == np.float64 and rows.shape == shape, f"the {what} are odd")
    values = rows.data if sparse.issparse(rows) else rows
    need(bool(np.isfinite(values).all()), f"the {what} are not finite")


def need_numbers(array: Any, shape: tuple[int, ...], name: str) -> None:
    """A finite float64 array of this shape, or the file is refused."""
    fits = isinstance(array, np.ndarray) and array.dtype == np.float64 and array.shape == shape
    need(fits, f"{name} has a wrong shape")
    need(bool(np.isfinite(array).all()), f"{name} is not finite")


def need(condition: bool, otherwise: str) -> None:
    """Refuse a file that says something impossible."""
    if not condition:
        raise FileError(f"the model makes no sense: {otherwise}")


def labels_tree(labels: NDArray[Any]) -> dict[str, Any]:
    """Class labels: numbers, flags or text."""
    values = labels.tolist()
    plain = labels.dtype.kind in "iufbU" or all(isinstance(value, str) for value in values)
    if not plain:
        raise InputError(
            f"class labels of type {labels.dtype} cannot be saved; use numbers or text"
        )
    return {"dtype": labels.dtype.str, "values": values}


def labels_in(tree: dict[str, Any]) -> NDArray[Any]:
    """The labels that ``labels_tree`` wrote."""
    kind, values = tree["dtype"], tree["values"]
    need(isinstance(kind, str) and isinstance(values, list), "the class labels are odd")
    dtype = np.dtype(kind)
    need(dtype.kind in "iufbUO" and dtype.itemsize <= 4 * 2**20, "the class labels are odd")
    wanted = {"i": int, "u": int, "f": float, "b": bool}.get(dtype.kind, str)
    need(all(type(value) is wanted for value in values), "the class labels are odd")
    if wanted is str:
        longest = max((len(value) for value in values), default=1)
        need(dtype.kind == "O" or dtype.itemsize <= 4 * 64 * (longest + 1), "labels too wide")
    found = np.array(values, dtype=dtype)
    need(found.tolist() == sorted(set(values)), "the class labels are not sorted")
    return found


def fields_tree(record: Any) -> dict[str, Any]:
    """The fields of a dataclass by name."""
    return {field.name: getattr(record, field.name) for field in fields(record)}


def certificate_in(tree: dict[str, Any]) -> Certificate:
    """The certificate that ``fields_tree`` wrote."""
    unresolved = [(int(l), int(fold)) for l, fold in tree.pop("unresolved")]
    return Certificate(unresolved=unresolved, **tree)


def overview_tree(it: Overview) -> dict[str, Any]:
    """Without the timings, so that the same model gives the same file."""
    tree = fields_tree(it) | {"classes": labels_tree(it.classes), "timings": {}}
    numbers, parameter, steps = (tree.pop(name) for name in ("numbers", "parameter", "steps"))
    if not it.level_edge:
        del tree["level_edge"]
    if it.every_c is None:
        del tree["every_c"]
    if numbers is not None:
        tree["numbers"] = fields_tree(numbers)
    if parameter is not None:
        tree["parameter"] = list(parameter)
    if steps is not None:
        tree["steps"] = list(steps)
    return tree | {"left_out": fields_tree(it.left_out)}


def overview_in(tree: dict[str, Any]) -> Overview:
    """The overview that ``overview_tree`` wrote."""
    tree = dict(tree)
    tree["left_out"] = LeftOutRows(**tree["left_out"])  # those of earlier versions know less
    tree["classes"] = labels_in(tree["classes"])
    if "numbers" in tree:
        tree["numbers"] = LeftOutNumbers(**tree["numbers"])
    if "parameter" in tree:
        name, values = tree["parameter"]
        tree["parameter"] = str(name), np.asarray(values, dtype=float)
    for name in ("best", "one_se", "chosen"):
        point = tree[name]
        tree[name] = None if point is None else (int(point[0]), int(point[1]))
    corrected = tree.get("corrected")  # files of earlier versions have none
    tree["corrected"] = None if corrected is None else tuple(float(x) for x in corrected)
    if "steps" in tree:
        edges, error = (np.asarray(values, dtype=float) for values in tree["steps"])
        tree["steps"] = edges, error
    if "every_c" in tree:
        low, high, n_kernels = tree["every_c"]
        tree["every_c"] = float(low), float(high), int(n_kernels)
    return Overview(**tree)
