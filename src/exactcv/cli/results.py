"""The files that a finished run leaves: tables, the curve, the report."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..crossval.error_path_result import ErrorPath
from ..crossval.scoring import probabilities
from ..estimators.quantile_svr_cv import QuantileSVRCV
from ..estimators.svc_cv import SVCCV
from ..estimators.svr_cv import SVRCV
from ..report.number_plots import FanChartDisplay
from ..report.presentation import Presented
from ..storage.table_model import TableModel
from ..types import FloatArray

__all__ = [
    "csv_parts",
    "curve_png",
    "cv_csv",
    "fan_png",
    "left_out_numbers_csv",
    "left_out_parts",
    "number_rows",
    "numbers_cv_csv",
    "prediction_rows",
    "quantiles_cv_csv",
    "steps_png",
    "to_csv",
    "unescaped",
]

CV_COLUMNS = {
    "gamma": "param_gamma", "C": "param_C", "lambda": "lambda", "score": "mean_test_score",
    "error": "error", "se": "se", "n_errors": "n_errors", "at_bound": "at_bound",
    "kkt": "kkt", "gap": "gap",
}  # fmt: skip
NUMBERS_CV_COLUMNS = {
    "gamma": "param_gamma", "epsilon": "param_epsilon", "C": "param_C", "lambda": "lambda",
    "score": "mean_test_score", "loss": "error", "loss_se": "loss_se", "at_bound": "at_bound",
    "kkt": "kkt", "gap": "gap",
}  # fmt: skip
PART_ROWS = 1 << 14  # of a table that are text at a time
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # how cells begin that spreadsheets run


def to_csv(names: Sequence[str], columns: Sequence[Any], escape: bool = True) -> str:
    """Columns as CSV; numbers with all their digits, NaN as an empty cell.

    With ``escape`` text that a spreadsheet would take for a formula gets a ' in front.

    Examples
    --------
    >>> print(to_csv(["a", "b"], [[1, 2], np.array([0.1, np.nan])]), end="")
    a,b
    1,0.1
    2,
    >>> print(to_csv(["id"], [["=1+1", "-1"]]), end="")
    id
    '=1+1
    -1
    """
    return "".join(csv_parts(names, columns, escape))


def csv_parts(
    names: Sequence[str], columns: Sequence[Any], escape: bool = True, header: bool = True
) -> Iterator[str]:
    """The same in parts, for tables of millions of rows."""
    shown = _harmless if escape else str
    if header:
        yield _lines([[shown(name) for name in names]])
    for start in range(0, len(columns[0]), PART_ROWS):
        parts = [column[start : start + PART_ROWS] for column in columns]
        yield _lines(zip(*(_cells(part, shown) for part in parts), strict=True))


def _cells(part: Any, shown: Callable[[str], str]) -> list[Any]:
    """What is written of a column; nothing for NaN."""
    if not isinstance(part, np.ndarray):
        plain = list(part)
    else:
        plain = part.tolist()
        if part.dtype.kind in "biu" or (part.dtype.kind == "f" and not np.isnan(part).any()):
            return plain
    return [shown(v) if isinstance(v, str) else "" if v != v else v for v in plain]


def _lines(rows: Iterable[Iterable[Any]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def _harmless(text: str) -> str:
    """Text that no spreadsheet runs; numbers, such as the label "-1", are none."""
    if not text.startswith(FORMULA):
        return text
    try:
        float(text)
    except ValueError:
        return "'" + text
    return text


def unescaped(text: str) -> str:
    """What the text was before it was made harmless."""
    return text[1:] if text.startswith("'") and _harmless(text[1:]) == text else text


def cv_csv(model: SVCCV, escape: bool = True) -> str:
    """One line a grid point, with the 95 percent interval of its error.

    ``chosen`` is 1 for the point of the model.
    """
    found = model.cv_results_
    chosen = np.zeros(len(found["param_C"]), dtype=int)
    chosen[model.best_index_] = 1
    columns = {name: found[key] for name, key in CV_COLUMNS.items()}
    low, high = model._overview().interval
    columns |= {"error_low": low.ravel(), "error_high": high.ravel(), "chosen": chosen}
    return to_csv(list(columns), list(columns.values()), escape)


def left_out_parts(
    model: SVCCV,
    y: NDArray[Any],
    pair_values: FloatArray | None,
    row_names: Sequence[Any] | None,
    escape: bool = True,
) -> Iterator[str]:
    """One line for each row that a fold has tested, in the order of the file; in parts.

    ``pair_values`` are the left-out values of each pair of classes; None if there are none.
    """
    rows = model._overview().left_out
    order = np.argsort(rows.row, kind="stable")
    for start in range(0, len(order), PART_ROWS):
        mine = order[start : start + PART_ROWS]
        at = rows.row[mine]
        names = ["row"]
        columns: list[Any] = [at + 1]
        if row_names is not None:
            names.append("id")
            columns.append([row_names[row] for row in at.tolist()])
        predicted = model.classes_[rows.predicted[mine]]
        names += ["target", "predicted", "wrong"]
        columns += [y[at], predicted, (y[at] != predicted).astype(int)]
        if rows.decision is not None:
            more, values = _values(model, rows.decision[mine])
            names, columns = names + more, columns + values
        if model.probability and pair_values is not None:
            shares = probabilities(pair_values[mine], model._sigmoids, len(model.classes_))
            names += [f"probability of {label}" for label in model.classes_]
            columns += list(shares.T)
        yield from csv_parts(names, columns, escape, header=start == 0)


def numbers_cv_csv(model: SVRCV, escape: bool = True) -> str:
    """One line a grid point; ``chosen`` is 1 for the point of the model."""
    found = model.cv_results_
    chosen = np.zeros(len(found["param_C"]), dtype=int)
    chosen[model.best_index_] = 1
    columns = {name: found[key] for name, key in NUMBERS_CV_COLUMNS.items()} | {"chosen": chosen}
    return to_csv(list(columns), list(columns.values()), escape)


def quantiles_cv_csv(model: QuantileSVRCV, escape: bool = True) -> str:
    """The same of every quantile."""
    columns: dict[str, list[Any]] = {"quantile": []}
    for q, found in enumerate(model.cv_results_):
        count = len(found["param_C"])
        chosen = np.zeros(count, dtype=int)
        chosen[model.best_index_[q]] = 1
        columns["quantile"] += [model.quantiles_[q]] * count
        for name, key in NUMBERS_CV_COLUMNS.items():
            if key in found:
                columns.setdefault(name, []).extend(found[key].tolist())
        columns.setdefault("chosen", []).extend(chosen.tolist())
    return to_csv(list(columns), list(columns.values()), escape)


def left_out_numbers_csv(
    model: SVRCV | QuantileSVRCV,
    y: FloatArray,
    row_names: Sequence[Any] | None,
    escape: bool = True,
) -> str:
    """One line a row that was tested: what was observed, the left-out prediction, the residual.

    Of quantiles every one that was predicted, and no residuals.
    """
    left_out = model.left_out_.reshape(len(y), -1)
    at = np.flatnonzero(np.isfinite(left_out).all(axis=1))
    names, columns = _row_columns(at, row_names)
    values, known = _without_crossings(model, left_out[at]), y[at]
    names, columns = [*names, "target"], [*columns, known]
    if isinstance(model, QuantileSVRCV):
        return to_csv([*names, *_quantile_names(model)], [*columns, *values.T], escape)
    columns += [values[:, 0], known - values[:, 0]]
    return to_csv([*names, "predicted", "residual"], columns, escape)


def _without_crossings(model: SVRCV | QuantileSVRCV, values: FloatArray) -> FloatArray:
    """Left-out quantiles as ``predict`` would give them."""
    sorting = isinstance(model, QuantileSVRCV) and model.crossing == "forbid-by-sorting"
    return np.sort(values, axis=1) if sorting else values


def _quantile_names(model: QuantileSVRCV) -> list[str]:
    return [f"quantile {tau:.6g}" for tau in model.quantiles_]


def _row_columns(
    at: NDArray[Any], row_names: Sequence[Any] | None, start: int = 0
) -> tuple[list[str], list[Any]]:
    """The numbers of rows, from 1 (``start`` rows come before these), and their names."""
    if row_names is None:
        return ["row"], [start + at + 1]
    return ["row", "id"], [start + at + 1, [row_names[row] for row in at.tolist()]]


def number_rows(
    model: TableModel,
    X: Any,
    row_names: Sequence[Any] | None,
    coverage: float | None,
    start: int = 0,
) -> tuple[list[str], list[Any], FloatArray, str]:
    """Names and columns of a prediction file, the predictions, and what intervals promise."""
    estimator: Any = model.estimator
    predicted, promise = np.asarray(estimator.predict(X)), ""
    names, columns = _row_columns(np.arange(len(predicted)), row_names, start)
    shown = ["predicted"] if not model.quantiles_.size else _quantile_names(estimator)
    names, columns = [*names, *shown], [*columns, *predicted.reshape(len(predicted), -1).T]
    if coverage is not None:
        ends, promise = model.intervals(X, coverage)
        names, columns = [*names, "low", "high"], [*columns, ends[:, 0], ends[:, 1]]
    return names, columns, predicted, promise


def fan_png(model: QuantileSVRCV, y: FloatArray) -> bytes | None:
    """Left-out quantiles of all rows, from the lowest middle one to the highest, and the rows."""
    at = np.flatnonzero(np.isfinite(model.left_out_).all(axis=1))
    values = _without_crossings(model, model.left_out_[at])
    order = np.argsort(values[:, values.shape[1] // 2], kind="stable")
    place = np.arange(1.0, len(at) + 1.0)

    def draw(ax: Any) -> None:
        fan = FanChartDisplay(x=place, quantiles=model.quantiles_, values=values[order])
        fan.plot(ax=ax)
        ax.plot(place, y[at][order], ".", color="0.25", markersize=3, label="observed")
        ax.legend(title="left-out quantiles", frameon=False)
        ax.set(xlabel="rows, by their middle quantile", ylabel="target")

    return _picture(draw)


def _values(model: SVCCV, decision: FloatArray) -> tuple[list[str], list[FloatArray]]:
    """Two classes: one value, positive for the second; more: one each."""
    if decision.ndim == 1:
        return [f"decision for {model.classes_[1]}"], [decision]
    return [f"decision for {label}" for label in model.classes_], list(decision.T)


def prediction_rows(
    model: SVCCV, X: Any, row_names: Sequence[Any] | None, start: int = 0
) -> tuple[list[str], list[Any], NDArray[Any]]:
    """Names and columns of a prediction file, and the predictions themselves."""
    predicted = model.predict(X)
    names, columns = _row_columns(np.arange(len(predicted)), row_names, start)
    more, values = _values(model, model.decision_function(X))
    names, columns = [*names, "predicted", *more], [*columns, predicted, *values]
    if model.probability:
        names += [f"probability of {label}" for label in model.classes_]
        columns += list(model.predict_proba(X).T)
    return names, columns, predicted


def curve_png(shown: Presented, kind: Any = "error") -> bytes | None:
    """The error curve (or another plot) as a picture; None without matplotlib."""
    return _picture(lambda axes: shown.plot(kind, ax=axes))


def steps_png(path: ErrorPath) -> bytes | None:
    """The errors at every C; None without matplotlib."""
    return _picture(path.plot)


def _picture(draw: Callable[[Any], Any]) -> bytes | None:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return None
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    draw(figure.add_subplot())
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=150, metadata={"Software": None})
    return out.getvalue()
