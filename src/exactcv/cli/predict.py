"""``exactcv predict``: a saved model and a table in, predictions out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..exceptions import InputError
from ..problem.intervals import wilson
from ..storage.atomic import write_text
from ..storage.model_file import load_model
from ..storage.readers import read_table
from ..storage.table import Table, parse_labels
from ..storage.table_model import TableModel
from ..types import Unseen
from . import results

__all__ = ["predict"]


def predict(
    model_file: Path,
    file: Path,
    *,
    out: Path | None = None,
    unseen: Unseen = "error",
    drop: tuple[str, ...] = (),
    read_options: dict[str, Any] | None = None,
    show: Callable[[str], None],
    say: Callable[[str], None],
) -> None:
    """Predict every row; if the file has the target too, say how many are wrong."""
    model = load_model(model_file)
    if not isinstance(model, TableModel):
        raise InputError(
            f"{str(model_file)!r} was saved from Python and knows nothing of tables: use it there, "
            "with exactcv.load_model"
        )
    table = _without(read_table(file, **(read_options or {})), drop)
    made = model.preparation
    row_names = None
    if made.row_names is not None and made.row_names in table.columns:
        row_names = ["" if name is None else name for name in table.texts(made.row_names)]
    X = made.apply(table, unseen)
    names, columns, predicted = results.prediction_rows(model.estimator, X, row_names)
    text = results.to_csv(names, columns)
    if out is None:
        show(text)
    else:
        write_text(out, text)
        say(f"{len(predicted)} predictions written to {out}")
    wrong = _wrong(table, made.target, predicted)
    if wrong is not None:
        low, high = wilson(wrong / len(predicted), len(predicted))
        say(
            f"error on the target {made.target!r} of {table.source}: {wrong / len(predicted):.4f} "
            f"({wrong} of {len(predicted)} rows wrong; 95% interval {low:.4f} to {high:.4f})"
        )


def _wrong(table: Table, target: str, predicted: Any) -> int | None:
    """How many labels differ from the target; None if the table does not know it."""
    if target not in table.columns or table.is_missing(target).any():
        return None
    try:
        truth = parse_labels(table, target)
    except InputError:
        return None
    return sum(str(a) != str(b) for a, b in zip(truth, predicted, strict=True))


def _without(table: Table, drop: tuple[str, ...]) -> Table:
    gone = {table.find(column) for column in drop}
    kept = {name: cells for name, cells in table.columns.items() if name not in gone}
    return Table(table.source, table.n_rows, kept, table.matrix, table.index)
