"""``exactcv report``: the page of a finished run once more, from what its folder holds."""

from __future__ import annotations

import csv
import webbrowser
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ..exceptions import FileError
from ..report.after_tuning import AfterTuning, middle_of
from ..report.html.page import Page, render
from ..storage.atomic import translated, write_text
from ..storage.model_file import load_model
from ..storage.run_folder import finished_run
from ..storage.table_model import TableModel
from .results import unescaped

__all__ = ["open_page", "report"]


def report(folder: Path, out: Path | None = None) -> Path:
    """Write the report of the run in a folder, there or elsewhere; the path of the page.

    The model file holds all figures, ``run.json`` title, facts and code, ``predictions.csv`` the
    names of the rows; so the page is that of ``tune``, byte for byte, if the version is the same.
    """
    run = finished_run(folder)
    model = load_model(folder)
    try:
        page, timings = dict(run["page"]), dict(run["timings"]["parts"])
        title, facts, code = str(page["title"]), dict(page["facts"]), str(page["code"])
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(
            f"the run in {str(folder)!r} did not keep what its page says (an earlier version of "
            "exactcv made it): tune again into another folder"
        ) from error
    it = (model.estimator if isinstance(model, TableModel) else model)._overview()
    nested = run["result"].get("nested")
    after = None
    if isinstance(nested, list):  # one for each quantile
        after = middle_of([AfterTuning.of_record(one) for one in nested])
    elif nested is not None:
        after = AfterTuning.of_record(nested)
    text = render(
        Page(
            overview=replace(it, timings=timings, nested=after),
            title=title,
            facts=facts,
            row_names=_row_names(folder / "predictions.csv", it.n_rows),
            code=code,
        )
    )
    path = folder / "report.html" if out is None else out
    write_text(path, text)
    return path


def _row_names(path: Path, n_rows: int) -> list[str | int]:
    """Names as in the table if rows have them, else numbers from 1."""
    names: list[str | int] = list(range(1, n_rows + 1))
    if not path.exists():
        return names
    with translated("read", path), open(path, newline="", encoding="utf-8") as file:
        for line in csv.DictReader(file):
            number = line.get("row") or ""
            if "id" in line and number.isdigit() and 1 <= int(number) <= n_rows:
                names[int(number) - 1] = unescaped(line["id"] or "")
    return names


def open_page(path: Path, say: Callable[[str], None]) -> None:
    """Show a page in the browser, or say where it is."""
    try:
        shown = webbrowser.open(path.resolve().as_uri())
    except webbrowser.Error:
        shown = False
    if not shown:
        say(f"no browser was found; the page is {path}")
