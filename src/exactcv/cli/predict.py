"""``exactcv predict``: a saved model and a table in, predictions out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from sys import intern
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import InputError
from ..problem.intervals import wilson
from ..report.overview import LeftOutNumbers
from ..storage.atomic import write_parts
from ..storage.model_file import load_for_predictions
from ..storage.notation import Notation
from ..storage.readers import pieces
from ..storage.streaming import PEEK_ROWS, piece_rows
from ..storage.table import Cells, Table, parse_labels
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
    escape: bool = True,
    read_options: dict[str, Any] | None = None,
    interval: float | None = None,
    show: Callable[[str], None],
    say: Callable[[str], None],
) -> None:
    """Predict every row; if the file has the target too, say how many are wrong."""
    model = load_for_predictions(model_file)
    if not isinstance(model, TableModel):
        raise InputError(
            f"{str(model_file)!r} was saved from Python and knows nothing of tables: use it there, "
            "with exactcv.load_model"
        )
    if interval is not None and not model.numeric:
        raise InputError("--interval is for models of numbers, and this one is of classes")
    read = _Pieces(model, file, drop, read_options or {})
    lines = read.lines(unseen, interval, escape)
    if out is None:
        show("".join(lines))
    else:
        write_parts(out, (part.encode() for part in lines))
        say(f"{read.n_rows} predictions written to {out}")
    if read.promise:
        say(read.promise)
    target = model.preparation.target
    if not model.numeric:
        _tell_error(read.counts(), target, say)
        return
    predicted, table = np.concatenate(read.predicted), read.targets()
    if model.quantiles_.size:
        _tell_shares(table, target, model.quantiles_, predicted, say)
    else:
        _tell_distance(table, target, predicted, say)


class _Pieces:
    """Predicts a table piece by piece, and keeps what is to be told of it at the end."""

    def __init__(
        self, model: TableModel, file: Path, drop: tuple[str, ...], options: dict[str, Any]
    ):
        self.model, self.file, self.drop, self.options = model, file, drop, options
        self.n_rows, self.promise = 0, ""
        self.predicted: list[NDArray[Any]] = []
        self._targets: list[Cells] = []
        self._counts: Counter[tuple[str | None, str]] = Counter()
        self._last: Table | None = None

    def lines(self, unseen: Unseen, interval: float | None, escape: bool) -> Iterator[str]:
        made = self.model.preparation
        first = next(pieces(self.file, rows=PEEK_ROWS, **self.options))
        for piece in pieces(self.file, rows=piece_rows(len(first.columns)), **self.options):
            table = _without(piece, self.drop)
            row_names = None
            if made.row_names is not None and made.row_names in table.columns:
                row_names = ["" if name is None else name for name in table.texts(made.row_names)]
            X = made.apply(table, unseen)
            names, columns, predicted = self._columns(X, row_names, interval, piece.start)
            self._keep(table, predicted)
            yield from results.csv_parts(names, columns, escape, header=piece.start == 0)

    def _columns(
        self, X: Any, row_names: list[str] | None, interval: float | None, start: int
    ) -> tuple[list[str], list[Any], NDArray[Any]]:
        if self.model.numeric:
            found = results.number_rows(self.model, X, row_names, interval, start)
            names, columns, predicted, self.promise = found
            return names, columns, predicted
        estimator: Any = self.model.estimator
        return results.prediction_rows(estimator, X, row_names, start)

    def _keep(self, table: Table, predicted: NDArray[Any]) -> None:
        self.n_rows += len(predicted)
        self._last = table
        target = self.model.preparation.target
        if not self.model.numeric:
            if target in table.columns:  # of classes it is enough to count who meets whom
                told = map(str, predicted.tolist())
                self._counts.update(zip(table.texts(target), told, strict=True))
            return
        self.predicted.append(predicted)
        if target in table.columns:
            cells = table.columns[target]
            few = cells if isinstance(cells, np.ndarray) else [intern(cell) for cell in cells]
            self._targets.append(few)

    def counts(self) -> _Met:
        """How often which target met which prediction."""
        assert self._last is not None
        return _Met(self._last.source, self._last.notation, self._counts)

    def targets(self) -> Table:
        """The column of the target alone, if it is there."""
        assert self._last is not None
        columns: dict[str, Cells] = {}
        if self._targets:
            numbers = all(isinstance(cells, np.ndarray) for cells in self._targets)
            columns[self.model.preparation.target] = (
                np.concatenate(self._targets)
                if numbers
                else [str(cell) for cells in self._targets for cell in cells]
            )
        return Table(self._last.source, self.n_rows, columns, notation=self._last.notation)


@dataclass(frozen=True)
class _Met:
    """How often a target (None where it is missing) met a prediction."""

    source: str
    notation: Notation
    counts: Counter[tuple[str | None, str]]

    def labels(self, target: str) -> dict[str, str] | None:
        """The label of each text that occurs; None if they are no classes."""
        texts = list(dict.fromkeys(text for text, _ in self.counts if text is not None))
        few = Table(self.source, len(texts), {target: texts}, notation=self.notation)
        try:
            return dict(zip(texts, map(str, parse_labels(few, target).tolist()), strict=True))
        except InputError:
            return None


def _tell_error(met: _Met, target: str, say: Callable[[str], None]) -> None:
    """How many labels differ from the target, in the rows that have one; nothing if none has."""
    known = [(text, told, n) for (text, told), n in met.counts.items() if text is not None]
    n_known = sum(n for _, _, n in known)
    n_gaps = met.counts.total() - n_known
    labels = met.labels(target) if known else None
    if labels is None:
        return
    wrong = sum(n for text, told, n in known if labels[text] != told)
    gaps = f"; the other {n_gaps} have no target" if n_gaps else ""
    low, high = wilson(wrong / n_known, n_known)
    say(
        f"error on the target {target!r} of {met.source}: {wrong / n_known:.4f} "
        f"({wrong} of {n_known} rows wrong; 95% interval {low:.4f} to {high:.4f}{gaps})"
    )


def _known(table: Table, target: str) -> tuple[NDArray[Any], NDArray[np.bool_]] | None:
    """The target, and which rows have one; None if there are no numbers."""
    if target not in table.columns:
        return None
    try:
        truth = table.numbers(target)
    except InputError:
        return None
    there = np.isfinite(truth)
    return (truth, there) if there.any() else None


def _tell_shares(
    table: Table, target: str, quantiles: Any, predicted: Any, say: Callable[[str], None]
) -> None:
    """How many rows that have a target are below each quantile."""
    known = _known(table, target)
    if known is None:
        return
    truth, there = known
    values = predicted.reshape(len(predicted), -1)
    shares = [
        f"{float(np.mean(truth[there] < values[there, q])):.1%} below the quantile {tau:.6g}"
        for q, tau in enumerate(quantiles)
    ]
    say(f"of {int(there.sum())} rows with the target {target!r}: " + ", ".join(shares))


def _tell_distance(table: Table, target: str, predicted: Any, say: Callable[[str], None]) -> None:
    """How far predictions are from the target, in the rows that have one."""
    known = _known(table, target)
    if known is None:
        return
    truth, there = known
    numbers = LeftOutNumbers(truth=truth[there], predicted=predicted[there])
    gaps = "" if there.all() else f"; the other {int((~there).sum())} have no target"
    say(
        f"error on the target {target!r} of {table.source}: mean absolute error {numbers.mae:.4g}, "
        f"root mean squared error {numbers.rmse:.4g}, R2 {numbers.r2:.4f}{gaps}"
    )


def _without(table: Table, drop: tuple[str, ...]) -> Table:
    gone = {table.find(column) for column in drop}
    kept = {name: cells for name, cells in table.columns.items() if name not in gone}
    return replace(table, columns=kept)
