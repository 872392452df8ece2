"""A fitted estimator together with the preparation of the tables it was fitted to."""

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
    from ..estimators.quantile_svr_cv import QuantileSVRCV
    from ..estimators.svc_cv import SVCCV
    from ..estimators.svr_cv import SVRCV

__all__ = ["TableLike", "TableModel", "as_table"]

TableLike: TypeAlias = FilePath | HasShape | Table


@dataclass(frozen=True)
class TableModel:
    """What ``exactcv tune`` saves: it predicts for tables, not for matrices.

    Attributes
    ----------
    estimator : SVCCV, SVRCV or QuantileSVRCV
    preparation : Preparation

    Notes
    -----
    Tables are given as the path of a file, a data frame, or a ``Table``.  Their columns are found
    by name; missing and unexpected ones are refused.
    """

    estimator: SVCCV | SVRCV | QuantileSVRCV
    preparation: Preparation

    def __repr__(self) -> str:
        """In short: columns, levels and scales may be thousands."""
        model: Any = self.estimator
        at = f"quantiles {list(map(float, self.quantiles_))}"
        if not self.quantiles_.size:
            gamma = "" if model.gamma_ is None else f", gamma={model.gamma_:.4g}"
            at = f"C={model.C_:.4g}{gamma}"
        kind = "numbers" if self.numeric else f"{len(self.classes_)} classes"
        return (
            f"<TableModel: {self.preparation.target!r} ({kind}) from "
            f"{self.preparation.n_features} features; {type(model).__name__}, kernel "
            f"{model.kernel!r}, {at}>"
        )

    @property
    def numeric(self) -> bool:
        """Does it predict numbers?"""
        return not hasattr(self.estimator, "classes_")

    @property
    def quantiles_(self) -> FloatArray:
        """The quantiles that it predicts; empty if it predicts classes or one number."""
        return np.asarray(getattr(self.estimator, "quantiles_", ()), dtype=float)

    @property
    def classes_(self) -> NDArray[Any]:
        return self._own("classes_")

    def _own(self, name: str) -> Any:
        """What only one of the two kinds of estimators has."""
        if not hasattr(self.estimator, name):
            kind = type(self.estimator).__name__
            raise AttributeError(f"a {kind} has no {name}", name=name, obj=self.estimator)
        return getattr(self.estimator, name)

    def predict_interval(
        self, table: TableLike, coverage: float = 0.9, unseen: Unseen = "error"
    ) -> FloatArray:
        """As ``SVRCV.predict_interval``, by the left-out models that the file holds."""
        return np.asarray(self.intervals(self.prepare(table, unseen), coverage)[0])

    def intervals(self, X: Any, coverage: float) -> tuple[FloatArray, str]:
        """The intervals of rows as the estimator sees them, and what they promise."""
        method = "cv+" if "folds" in self._own("_fold_models") else "jackknife+"
        ends = self._own("predict_interval")(X, coverage, method)
        return np.asarray(ends), str(self._own("coverage_text")(coverage, method))

    def prepare(self, table: TableLike, unseen: Unseen = "error") -> Any:
        """The matrix that the estimator sees."""
        return self.preparation.apply(as_table(table), unseen)

    def predict(self, table: TableLike, unseen: Unseen = "error") -> NDArray[Any]:
        """The class, the number or the quantiles of each row."""
        return np.asarray(self.estimator.predict(self.prepare(table, unseen)))

    def decision_function(self, table: TableLike, unseen: Unseen = "error") -> FloatArray:
        """As ``SVCCV.decision_function``."""
        return np.asarray(self._own("decision_function")(self.prepare(table, unseen)))

    def predict_proba(self, table: TableLike, unseen: Unseen = "error") -> FloatArray:
        """As ``SVCCV.predict_proba``; the model must have been tuned with probabilities."""
        return np.asarray(self._own("predict_proba")(self.prepare(table, unseen)))


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
