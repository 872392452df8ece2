"""A fitted classifier together with the preparation of the tables it was fitted to."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..exceptions import InputTypeError
from ..problem.inputs import is_missing
from ..types import FilePath, FloatArray, HasShape, Unseen
from .preparation import Preparation
from .readers import read_table, refuse_twins
from .table import Cells, Table

if TYPE_CHECKING:
    from ..estimators.svc_cv import SVCCV

__all__ = ["TableLike", "TableModel", "as_table"]

TableLike: TypeAlias = FilePath | HasShape | Table


@dataclass(frozen=True)
class TableModel:
    """What ``exactcv tune`` saves: it predicts for tables, not for matrices.

    Attributes
    ----------
    estimator : SVCCV
    preparation : Preparation

    Notes
    -----
    Tables are given as the path of a file, a data frame, or a ``Table``.  Their columns are found
    by name; missing and unexpected ones are refused.
    """

    estimator: SVCCV
    preparation: Preparation

    def __repr__(self) -> str:
        """In short: columns, levels and scales may be thousands."""
        model = self.estimator
        gamma = "" if model.gamma_ is None else f", gamma={model.gamma_:.4g}"
        return (
            f"<TableModel: {self.preparation.target!r} ({len(self.classes_)} classes) from "
            f"{self.preparation.n_features} features; SVCCV, kernel {model.kernel!r}, "
            f"C={model.C_:.4g}{gamma}>"
        )

    @property
    def classes_(self) -> NDArray[Any]:
        return self.estimator.classes_

    def prepare(self, table: TableLike, unseen: Unseen = "error") -> Any:
        """The matrix that the estimator sees."""
        return self.preparation.apply(as_table(table), unseen)

    def predict(self, table: TableLike, unseen: Unseen = "error") -> NDArray[Any]:
        """The class of each row."""
        return self.estimator.predict(self.prepare(table, unseen))

    def decision_function(self, table: TableLike, unseen: Unseen = "error") -> FloatArray:
        """As ``SVCCV.decision_function``."""
        return self.estimator.decision_function(self.prepare(table, unseen))

    def predict_proba(self, table: TableLike, unseen: Unseen = "error") -> FloatArray:
        """As ``SVCCV.predict_proba``; the model must have been tuned with probabilities."""
        return np.asarray(self.estimator.predict_proba(self.prepare(table, unseen)))


def as_table(source: Any) -> Table:
    """A table from a path, a data frame (pandas, polars) or a table.

    Examples
    --------
    >>> import pandas
    >>> frame = pandas.DataFrame({"x": [1.5, None], "kind": ["a", None]})
    >>> table = as_table(frame)
    >>> table.columns["x"], table.texts("kind")
    (array([1.5, nan]), ['a', None])
    """
    if isinstance(source, Table):
        return source
    if isinstance(source, (str, os.PathLike)):
        return read_table(Path(source))
    if not hasattr(source, "columns") or not hasattr(source, "__getitem__"):
        raise InputTypeError(
            f"expected the path of a file or a data frame, got {type(source).__name__}"
        )
    names = [str(name) for name in source.columns]
    refuse_twins(names, "the data frame")
    columns = {str(name): _cells(source[name]) for name in source.columns}
    return Table("the data frame", len(source), columns)


def _cells(column: Any) -> Cells:
    values = np.asarray(column)
    if values.dtype.kind in "iuf":
        return values.astype(np.float64)
    return ["" if is_missing(value) else str(value) for value in values.tolist()]
