"""From the columns of a table to the matrix that the SVM sees, by rules that are kept and repeated.

1. *Numbers* are taken as they are; true and false are 1 and 0.
2. *Text* becomes one column of 0 and 1 for each level, levels in sort order ("one-hot").
3. *Missing* cells are refused; with ``impute`` a number is replaced by the median of its column, a
   text by its most frequent level (the first in sort order among equals).
4. *Constant* columns are left out: they say nothing.
5. With ``standardize`` every column gets mean 0 and standard deviation 1.  Sparse data are divided
   by their standard deviation and not centred, which no distance notices.  Left to itself it is
   done, but for sparse data with so many columns that they are words or the like: most of them are
   zero but for a row or two, and would be made the largest of all.

Levels, medians, means and standard deviations come from all rows, by sample weight: a row of weight
w counts as w rows.  So a left-out row has taken part in them, its label never.  Cross-validation is
exact for the matrix that comes out; what a scaler learnt anew in each fold would give differs from
it by a term of order 1/n, and is another question.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..exceptions import InputError
from ..lowrank.task import is_wide
from ..types import FloatArray, Unseen
from .notation import no_category
from .table import UNNAMED, Table, listed

__all__ = ["Column", "Preparation", "fit_preparation"]

UNSEEN = get_args(Unseen)


@dataclass(frozen=True)
class Column:
    """One column of the table; ``levels`` is None for numbers, ``fill`` takes the place of gaps."""

    name: str
    levels: tuple[str, ...] | None = None
    fill: float | str | None = None

    @property
    def features(self) -> list[str]:
        if self.levels is None:
            return [self.name]
        return [f"{self.name}={level}" for level in self.levels]


@dataclass(frozen=True)
class Preparation:
    """How a table becomes a matrix.

    Attributes
    ----------
    columns : tuple of Column
        Those with features, in the order of the first table.
    target : str
    others : tuple of str
        Columns that are known and not used: row names, weights, groups, dropped ones.
    width : int or None
        Of svmlight data: how many features; there are no columns then.
    impute, standardize : bool
    keep : (q,) bool
        Features that are not constant; ``shift`` and ``scale`` belong to these.
    row_names : str or None
        The column that names the rows.
    """

    columns: tuple[Column, ...]
    target: str
    others: tuple[str, ...] = ()
    width: int | None = None
    impute: bool = False
    standardize: bool = True
    keep: NDArray[np.bool_] | None = None
    shift: FloatArray | None = None
    scale: FloatArray | None = None
    row_names: str | None = None

    def __repr__(self) -> str:
        what = "svmlight data" if self.width is not None else f"{len(self.columns)} columns"
        return f"<Preparation: target {self.target!r}, {self.n_features} features from {what}>"

    @property
    def features(self) -> list[str]:
        """Names of the features before constant ones are left out."""
        if self.width is not None:
            return [str(k) for k in range(self.width)]
        return [name for column in self.columns for name in column.features]

    @property
    def constant(self) -> list[str]:
        """Features that were left out."""
        keep = self.keep
        if keep is None or self.width is not None:
            return []
        return [name for name, kept in zip(self.features, keep, strict=True) if not kept]

    @property
    def n_features(self) -> int:
        return len(self.features) if self.keep is None else int(self.keep.sum())

    def apply(self, table: Table, unseen: Unseen = "error") -> Any:
        """The matrix of a table with the same columns, in whatever order.

        Parameters
        ----------
        unseen : {"error", "zeros"}
            Text that was not among the levels: refused, or no level at all.
        """
        if unseen not in UNSEEN:
            raise InputError(f"unseen={unseen!r} is not known; use 'error' or 'zeros'")
        self.check_columns(table)
        X = self._raw(table, unseen)
        return X if self.keep is None else self._scaled(X[:, self.keep])

    def check_columns(self, table: Table) -> None:
        """Refuse a table whose columns are not those of the model."""
        if (self.width is None) != (table.matrix is None):
            had = "named columns" if self.width is None else "svmlight features"
            raise InputError(f"the model was made from {had}, which {table.source} does not have")
        if self.width is not None:
            extra = table.matrix.shape[1] - self.width
            if extra > 0 and table.matrix[:, self.width :].nnz:
                raise InputError(
                    f"{table.source} has features up to {table.matrix.shape[1] - 1}, the model "
                    f"only up to {self.width - 1}"
                )
            return
        wanted = [column.name for column in self.columns]
        missing = [name for name in wanted if name not in table.columns]
        known = {*wanted, *self.others, self.target}
        unexpected = [name for name in table.names if name not in known]
        if missing or unexpected:
            parts = []
            if missing:
                parts.append(f"missing: {listed(missing, 20)}")
            if unexpected:
                parts.append(f"unexpected: {listed(unexpected, 20)}")
            raise InputError(
                f"the columns of {table.source} are not those of the model; {'; '.join(parts)}"
            )

    def _raw(self, table: Table, unseen: str) -> Any:
        """Features as numbers, gaps filled, not yet scaled."""
        if self.width is not None:
            return _to_width(table.matrix, self.width)
        self._refuse_gaps(table)
        blocks = [_block(table, column, unseen) for column in self.columns]
        return np.ascontiguousarray(np.hstack(blocks))

    def _refuse_gaps(self, table: Table) -> None:
        if self.impute:
            return
        gaps = {c.name: int(table.is_missing(c.name).sum()) for c in self.columns}
        named = [f"{name!r} ({count})" for name, count in gaps.items() if count]
        if named:
            shown = ", ".join(named[:20]) + (f" and {len(named) - 20} more" if named[20:] else "")
            raise InputError(
                f"{table.source} has missing values in {shown}; fill or remove them, or tune with "
                "--impute median"
            )

    def _scaled(self, X: Any) -> Any:
        if self.scale is None:
            return X
        if sparse.issparse(X):
            return sparse.csr_matrix(X.multiply(1.0 / self.scale))
        return (X - self.shift) / self.scale


def fit_preparation(
    table: Table,
    *,
    target: str,
    others: tuple[str, ...] = (),
    categorical: tuple[str, ...] = (),
    impute: bool = False,
    standardize: bool | None = True,
    weight: FloatArray | None = None,
    most_levels: int = 100,
    row_names: str | None = None,
) -> tuple[Preparation, Any]:
    """The preparation for a table, and its matrix; with ``standardize=None`` it follows rule 5.

    Examples
    --------
    >>> table = Table("t", 3, {"x": ["1", "2", "3"], "colour": list("bab"), "y": list("001")})
    >>> made, X = fit_preparation(table, target="y", standardize=False)
    >>> made.features, X.tolist()
    (['x', 'colour=a', 'colour=b'], [[1.0, 0.0, 1.0], [2.0, 1.0, 0.0], [3.0, 0.0, 1.0]])
    """
    weight = np.ones(table.n_rows) if weight is None else weight
    used = [name for name in table.names if name not in {target, *others}]
    used = used if table.matrix is None else []
    others += tuple(name for name in table.index if name not in {target, *others})
    if table.matrix is None:
        _check_kinds(table, used, categorical, most_levels)
    if not used and table.matrix is None:
        raise InputError(f"{table.source} has no columns besides the target and those not used")
    columns = tuple(_column(table, name, name in categorical, weight) for name in used)
    made = Preparation(
        columns=columns if table.matrix is None else (),
        target=target,
        others=others,
        width=None if table.matrix is None else table.matrix.shape[1],
        impute=impute,
        row_names=row_names,
    )
    raw = made._raw(table, "zeros")  # levels that only rows of weight zero have are none
    made = _with_scale(made, raw, weight, table.source, standardize)
    return made, made._scaled(raw[:, made.keep])


def _check_kinds(
    table: Table, used: list[str], categorical: tuple[str, ...], most_levels: int
) -> None:
    """Refuse columns that no rule covers, and those that look like row names."""
    kinds = {name: table.kind(name) for name in used}
    unnamed = [name for name in used if name.startswith(UNNAMED)]
    if unnamed:
        number = unnamed[0].removeprefix(UNNAMED)
        raise InputError(
            f"{table.source}: column {number} has no name; if it only numbers the rows use --id "
            f"{number} or --drop {number}, else give it a name"
        )
    empty = [name for name, kind in kinds.items() if kind == "missing"]
    if empty:
        raise InputError(f"{table.source}: no values at all in {listed(empty)}; use --drop")
    for name, kind in kinds.items():
        if kind == "misread" and name not in categorical:
            raise InputError(f"{table.misread(name)}. If it is text, --categorical {name!r}")
        if kind == "mixed" and name not in categorical:
            row, cell = table.first_text(name)
            raise InputError(
                f"{table.source}: column {name!r} has numbers and text ({cell[:40]!r} in row "
                f"{row + 1}); correct it, or use --categorical {name!r} or --drop {name!r}"
            )
        if kind == "text" or name in categorical:
            levels = {cell for cell in table.texts(name) if cell is not None}
            refused = None if name in categorical else no_category(name, levels)
            if refused is not None:
                raise InputError(f"{table.source}: column {name!r} {refused}")
            if len(levels) > most_levels:
                raise InputError(
                    f"{table.source}: column {name!r} has {len(levels)} different texts, such as "
                    f"{min(levels)[:40]!r}; use --drop {name!r} or --id {name!r}, or raise "
                    f"--max-levels (now {most_levels})"
                )


def _column(table: Table, name: str, as_text: bool, weight: FloatArray) -> Column:
    """What is to be remembered of a column; rows of weight zero take no part."""
    counted = weight > 0
    if not as_text and table.kind(name) != "text":
        values = table.numbers(name)
        present = counted & ~np.isnan(values)
        if not present.any():
            raise InputError(f"{table.source}: no values at all in {name!r}; use --drop")
        return Column(name, fill=_median(values[present], weight[present]))
    cells = table.texts(name)
    totals: dict[str, float] = {}
    for cell, w in zip(cells, weight.tolist(), strict=True):
        if cell is not None and w > 0:
            totals[cell] = totals.get(cell, 0.0) + w
    if not totals:
        raise InputError(f"{table.source}: no values at all in {name!r}; use --drop")
    levels = tuple(sorted(totals))
    return Column(name, levels, max(levels, key=lambda level: totals[level]))


def _median(values: FloatArray, weight: FloatArray) -> float:
    """The median where a value of weight w counts w times."""
    order = np.argsort(values, kind="stable")
    values, reached = values[order], np.cumsum(weight[order])
    half = 0.5 * reached[-1]
    low = values[np.searchsorted(reached, half, side="left")]
    high = values[min(np.searchsorted(reached, half, side="right"), len(values) - 1)]
    return float(0.5 * low + 0.5 * high)


def _block(table: Table, column: Column, unseen: str) -> FloatArray:
    """The features of one column."""
    if column.levels is None:
        values = table.numbers(column.name)
        assert isinstance(column.fill, float)
        return np.where(np.isnan(values), column.fill, values)[:, None]
    cells = [column.fill if cell is None else cell for cell in table.texts(column.name)]
    place = {level: k for k, level in enumerate(column.levels)}
    new = sorted({str(cell) for cell in cells if cell not in place})
    if new and unseen == "error":
        raise InputError(
            f"{table.source}: column {column.name!r} has {listed(new)}, not among the model's "
            f"levels {listed(column.levels)}; --unseen zeros treats them as none of these"
        )
    out = np.zeros((len(cells), len(column.levels)))
    for row, cell in enumerate(cells):
        if cell in place:
            out[row, place[str(cell)]] = 1.0
    return out


def _to_width(X: Any, width: int) -> Any:
    if X.shape[1] >= width:
        return X[:, :width]
    wider = sparse.csr_matrix((X.shape[0], width - X.shape[1]))
    return sparse.csr_matrix(sparse.hstack([X, wider]))


def _with_scale(
    made: Preparation, X: Any, weight: FloatArray, source: str, standardize: bool | None
) -> Preparation:
    """Which features vary, and by how much."""
    rows = X if (weight > 0).all() else X[weight > 0]
    if sparse.issparse(rows):
        low, high = rows.min(axis=0).toarray()[0], rows.max(axis=0).toarray()[0]
    else:
        low, high = rows.min(axis=0), rows.max(axis=0)
    keep = np.asarray(low != high)
    if not keep.any():
        raise InputError(f"all features of {source} are constant: there is nothing to learn from")
    if standardize is None:
        standardize = not (sparse.issparse(X) and is_wide(int(keep.sum())))
    made = replace(made, keep=keep, standardize=standardize)
    if not standardize:
        return made
    share = weight[weight > 0] / weight.sum()
    kept = rows[:, keep]
    with np.errstate(over="ignore", invalid="ignore"):
        if sparse.issparse(kept):
            mean = np.asarray(share @ kept)
            square = np.asarray(share @ kept.multiply(kept)).ravel()
            scale = np.sqrt(np.maximum(square - mean**2, 0.0))
        else:
            mean = share @ kept
            scale = np.sqrt(share @ (kept - mean) ** 2)
    bad = np.flatnonzero(~np.isfinite(scale) | (scale <= 0.0))
    if len(bad):
        name = np.array(made.features)[keep][bad[0]]
        raise InputError(
            f"{source}: column {str(name)!r} cannot be standardised (its values are too large or "
            "too close together); rescale or --drop it"
        )
    return replace(made, shift=mean, scale=scale)
