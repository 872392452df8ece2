"""The table of ``exactcv tune``: what is the target, what are features, what is said of a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..exceptions import InputError
from ..lowrank.budget import GAMMA_ROWS
from ..lowrank.options import Options
from ..lowrank.rows.sampling import smallest_keys
from ..lowrank.rows.spilled import SpilledRows
from ..lowrank.task import is_wide
from ..problem.kernels import Kernel, gamma_value
from ..problem.labels import beyond_range, count_labels
from ..storage.preparation import Preparation, fit_preparation
from ..storage.readers import QID, pieces
from ..storage.streaming import PEEK_ROWS, Roles, piece_rows, stream
from ..storage.suspects import refuse_suspects
from ..storage.table import NUMBERS, Table, parse_labels
from ..types import FloatArray
from .settings import TuneSettings, gammas_around

__all__ = ["Loaded", "gammas_of", "is_regression", "load", "load_in_pieces", "scaling_text"]


@dataclass(frozen=True)
class Loaded:
    """A table, ready to be learnt from; X may be ``SpilledRows``."""

    X: Any
    y: NDArray[Any]
    weight: FloatArray | None
    groups: NDArray[Any] | None
    row_names: Sequence[str] | None
    preparation: Preparation
    has_qid: bool = False


def is_regression(table: Table, settings: TuneSettings) -> bool:
    """Is the target to be taken as numbers?

    Numbers with decimals are; so are whole numbers if there are too many different ones for
    classes.
    """
    if settings.task is not None:
        return settings.task == "regression"
    target = table.find(settings.target) if table.matrix is None else _only_target(table, settings)
    if table.kind(target) not in NUMBERS:
        return False
    values = table.numbers(target)
    values = values[np.isfinite(values)]
    different = len(np.unique(values))
    return bool((values != np.floor(values)).any()) or _too_many(different, len(values))


def _too_many(different: int, rows: int) -> bool:
    return different > 20 and different > rows / 3


def load(table: Table, settings: TuneSettings, numeric: bool = False) -> Loaded:
    """Target, weights, groups and the matrix."""
    target = table.find(settings.target) if table.matrix is None else _only_target(table, settings)
    roles = {name: _role(table, name, getattr(settings, name), target) for name in _ROLES}
    drop = [_role(table, "drop", column, target) for column in settings.drop]
    others = tuple(dict.fromkeys(name for name in [*roles.values(), *drop] if name is not None))
    _check_notation(table, target, settings)
    y = _numbers(table, target) if numeric else parse_labels(table, target)
    if not numeric:
        _check_classes(table, target, y)
    weight = _weights(table, roles["weight"])
    kept = {table.find(column) for column in settings.keep}
    features = [n for n in table.names if n not in {target, *others, *kept}]
    if table.matrix is None:
        refuse_suspects(table, features, y)
    preparation, X = fit_preparation(
        table,
        target=target,
        others=others,
        categorical=tuple(table.find(column) for column in settings.categorical),
        impute=settings.impute is not None,
        standardize=settings.standardize,
        weight=weight,
        most_levels=settings.max_levels,
        row_names=roles["id"],
    )
    return Loaded(
        X=X,
        y=y,
        weight=weight,
        groups=_groups(table, roles["groups"]),
        row_names=None if roles["id"] is None else _names_of(table, roles["id"]),
        preparation=preparation,
        has_qid=table.matrix is not None and QID in table.columns,
    )


def load_in_pieces(file: Path, settings: TuneSettings, memory_limit: str | None = None) -> Loaded:
    """The same of a table that need not fit into memory; its target must be classes."""
    first = next(pieces(file, rows=PEEK_ROWS, memory_limit=memory_limit, **settings.read_options))
    if first.matrix is not None:
        raise InputError(f"{first.source} is an svmlight file, which is not read in pieces")
    rows = piece_rows(len(first.columns), memory_limit)

    def read() -> Any:
        return pieces(file, rows=rows, **settings.read_options)

    target = first.find(settings.target)
    _check_notation(first, target, settings)
    roles = {name: _role(first, name, getattr(settings, name), target) for name in _ROLES}
    found = stream(
        read,
        Roles(
            target=target,
            drop=tuple(str(_role(first, "drop", column, target)) for column in settings.drop),
            keep=tuple(first.find(column) for column in settings.keep),
            categorical=tuple(first.find(column) for column in settings.categorical),
            **roles,
        ),
        impute=settings.impute is not None,
        standardize=settings.standardize is not False,
        most_levels=settings.max_levels,
        chunk_rows=Options().chunk_rows,
    )
    _check_classes(first, target, found.y)
    return Loaded(
        X=found.rows,
        y=found.y,
        weight=found.weight,
        groups=found.groups,
        row_names=found.names,
        preparation=found.preparation,
    )


_ROLES = ("weight", "groups", "id")


def _only_target(table: Table, settings: TuneSettings) -> str:
    """svmlight files have one column with a name."""
    if settings.target not in ("target", "1"):
        raise InputError(
            f"{table.source} is an svmlight file, whose labels come first: use --target target"
        )
    for name in (*_ROLES, "drop", "keep", "categorical"):
        given = getattr(settings, name)
        if given and not (name == "groups" and given == QID and QID in table.columns):
            raise InputError(f"--{name} needs columns with names, which svmlight files have not")
    return "target"


def _role(table: Table, option: str, column: str | None, target: str) -> str | None:
    if column is None:
        return None
    name = table.find(column)
    if name == target:
        raise InputError(f"--{option} {column} is the target")
    return name


def _check_notation(table: Table, target: str, settings: TuneSettings) -> None:
    """Numbers in another notation are not taken for classes unless that is said."""
    if settings.task is None and table.matrix is None and table.kind(target) == "misread":
        raise InputError(
            f"{table.misread(target, 'the target')}. If these are classes, --task classification"
        )


def _check_classes(table: Table, target: str, y: NDArray[Any]) -> None:
    counts = count_labels(y)[1]
    if len(counts) == 1:
        raise InputError(
            f"{table.source}: the target {target!r} has one class only, {y[:1].tolist()[0]!r}; a "
            "classifier needs rows of two classes or more"
        )
    if _too_many(len(counts), len(y)):
        kind, hint = table.kind(target), ""
        if kind in NUMBERS:
            hint = " For numbers: --task regression"
        elif kind == "mixed":
            row, cell = table.first_text(target)
            hint = f" For numbers: row {table.number_of(row)} has {cell[:40]!r}, which is none"
        raise InputError(
            f"{table.source}: the target {target!r} has {len(counts)} different values in "
            f"{len(y)} rows; is it the right column?{hint}"
        )


def _numbers(table: Table, target: str) -> FloatArray:
    values = table.numbers(target)
    missing = np.flatnonzero(~np.isfinite(values))
    if len(missing):
        raise InputError(
            f"{table.source}: the target {target!r} is missing in {len(missing)} of "
            f"{table.n_rows} rows (first: row {missing[0] + 1}); remove these rows"
        )
    if beyond_range(values):
        raise InputError(
            f"{table.source}: the numbers in the target {target!r} are too large or too small; "
            "rescale them"
        )
    return values


def _weights(table: Table, name: str | None) -> FloatArray | None:
    if name is None:
        return None
    weight = table.numbers(name)
    bad = np.flatnonzero(~(weight >= 0))
    if len(bad):
        raise InputError(
            f"{table.source}: the weight in row {bad[0] + 1} of column {name!r} is missing or "
            "negative"
        )
    if not weight.any():
        raise InputError(f"{table.source}: all weights in column {name!r} are zero")
    return weight


def _groups(table: Table, name: str | None) -> NDArray[Any] | None:
    if name is None:
        return None
    cells = table.texts(name)
    if None in cells:
        row = cells.index(None) + 1
        raise InputError(f"{table.source}: the group in row {row} of column {name!r} is missing")
    return np.unique(np.array(cells, dtype=object), return_inverse=True)[1]


def _names_of(table: Table, name: str) -> list[str]:
    return ["" if cell is None else cell for cell in table.texts(name)]


def gammas_of(loaded: Loaded, settings: TuneSettings) -> Any:
    """``gamma`` for the estimator."""
    if settings.default_grid:
        return None
    wanted = settings.gamma_grid()
    if isinstance(wanted, list):
        return wanted if len(wanted) > 1 else wanted[0]
    if settings.kernel == "linear":
        return "median"
    X, weight = loaded.X, loaded.weight
    if settings.approx is not None and len(loaded.y) > GAMMA_ROWS:
        # All pairs of distances would take as much memory as the kernel matrix.
        few = np.sort(smallest_keys(len(loaded.y), GAMMA_ROWS, settings.seed or 0))
        X = X.take(few) if isinstance(X, SpilledRows) else X[few]
        weight = None if weight is None else weight[few]
    if isinstance(X, SpilledRows):
        X = X.all()
    elif sparse.issparse(X):
        X = X.toarray()
    middle = gamma_value(np.ascontiguousarray(X), Kernel(), weight)
    assert middle is not None
    return gammas_around(middle, wanted)


def scaling_text(made: Preparation) -> str:
    """How features were scaled, in words."""
    if not made.standardize:
        many = made.width is not None and is_wide(made.n_features)
        return "none" + (
            ", as is usual for text (--standardize divides by the standard deviation)"
            if many
            else ""
        )
    how = "standard deviation 1" if made.width else "mean 0, standard deviation 1"
    return f"{how}, from all rows at once (--no-standardize turns it off)"
