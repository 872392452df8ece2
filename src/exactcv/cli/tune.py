"""``exactcv tune``: a table in, the tuned model and all that is known of it out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from ..crossval.nested_result import NestedResult
from ..estimators.svc_cv import SVCCV, Keep, fit_svc
from ..estimators.svr_cv import SVRCV
from ..exceptions import InputError, Interrupted, MemoryLimitError
from ..lowrank.options import Options
from ..lowrank.rows.sources import ArrayRows, RowSource
from ..lowrank.rows.spilled import SpilledRows
from ..lowrank.wide.method import TooManyOnMargin
from ..problem.labels import count_labels
from ..report.html import page as html_report
from ..storage.atomic import write_bytes, write_parts, write_text
from ..storage.model_file import save_model
from ..storage.readers import digest, read_table
from ..storage.run_folder import RunFolder, describe
from ..storage.table import Table
from ..storage.table_model import TableModel
from ..types import FloatArray
from . import results
from .approximation import kernel_of_table
from .loading import Loaded, gammas_of, is_regression, load, load_in_pieces, scaling_text
from .settings import TuneSettings, parse_class_weight, splitter
from .tune_nested import nested_in, nested_record, shown_with, tell
from .tune_numbers import tune_numbers

__all__ = ["tune"]

Say = Callable[[str], None]


def tune(
    file: Path,
    settings: TuneSettings,
    *,
    out: Path | None = None,
    n_jobs: int = -1,
    memory_limit: str | None = None,
    stream: bool | None = None,
    progress: bool = False,
    say: Say = print,
) -> SVCCV | SVRCV | None:
    """Cross-validate, choose, and write the results; None if they had been written before."""
    start = perf_counter()
    sha256 = digest(file)
    table = None if stream else _read(file, settings, memory_limit, stream is None)
    if table is None:
        loaded = load_in_pieces(file, settings, memory_limit)
    elif is_regression(table, settings):
        settings.check_regression()
        return tune_numbers(
            file, table, sha256, settings,
            out=out, n_jobs=n_jobs, memory_limit=memory_limit, progress=progress, say=say,
        )  # fmt: skip
    else:
        loaded = load(table, settings)
    if digest(file) != sha256:
        raise InputError(f"{file.name} changed while it was read; run the command again")
    asked = settings
    settings = replace(settings, standardize=loaded.preparation.standardize)
    choice = kernel_of_table(loaded, settings, out, memory_limit)
    settings = choice.settings
    if choice.columns and not isinstance(loaded.X, SpilledRows):
        loaded = replace(loaded, X=ArrayRows(loaded.X, Options().chunk_rows))
    elif settings.approx is None and isinstance(loaded.X, SpilledRows) and not choice.columns:
        loaded = replace(loaded, X=loaded.X.all())
    facts = _facts(file, loaded, settings)
    if choice.said is not None:
        facts["kernel"] = choice.said
    if settings.cv != asked.cv:
        facts["folds"] = f"{settings.cv}, for {choice.folds}"
    for name, text in facts.items():
        say(f"{name + ':':<12} {text}")
    model = _model(loaded, settings, n_jobs, progress).set_params(memory_limit=memory_limit)
    again = clone(model) if settings.nested is not None else None
    if out is None:
        try:
            _fit(model, loaded, Keep(values=True))
        except Interrupted as stop:
            raise Interrupted("interrupted; with --out what was finished would be kept") from stop
        tell(model, say, None if again is None else nested_in(again, loaded, settings, None, say))
        return model
    data = {"file": file.name, "sha256": sha256, "rows": len(loaded.y)}
    with RunFolder(out, describe(data, settings.record())) as folder:
        if folder.done:
            say(f"\nnothing to do: {out} holds the finished results of this run")
            return None
        store = folder.curves
        if store.count:
            say(f"going on with {store.count} finished gamma(s) found in {out}")
        try:
            values = _fit(model, loaded, Keep(store, values=True))
        except Interrupted as stop:
            raise Interrupted(
                f"interrupted; {store.count} finished gamma(s) are kept in {out}: the same command "
                "goes on from there",
                stop.partial,
            ) from stop
        nested = None if again is None else nested_in(again, loaded, settings, folder.parts, say)
        page = {
            "title": f"{file.name}: {loaded.preparation.target}",
            "facts": facts,
            "code": _code(
                file,
                asked
                if settings.approx is None
                else replace(settings, standardize=asked.standardize),
            ),
        }
        written = _write(out, model, loaded, values, nested, page, settings.escape, say)
        timings = {
            "seconds": perf_counter() - start,
            "gammas_taken_up": store.taken_up,
            "parts": model._overview().timings,
        }
        folder.finish(_result(model, written, nested), page, timings)
    tell(model, say, nested)
    say(f"\nwritten to {out}: {', '.join([*written, 'run.json'])}")
    return model


# ---- what goes in --------------------------------------------------------------------------------


def _read(
    file: Path, settings: TuneSettings, memory_limit: str | None, may_stream: bool
) -> Table | None:
    """The table; None if it does not fit into memory, but may be read in pieces."""
    try:
        return read_table(file, memory_limit=memory_limit, **settings.read_options)
    except MemoryLimitError:
        numbers = settings.task == "regression"
        if not may_stream or numbers or settings.approx_conflict("nystroem") is not None:
            raise
    return None


# ---- the work ------------------------------------------------------------------------------------


def _model(loaded: Loaded, settings: TuneSettings, n_jobs: int, progress: bool) -> SVCCV:
    folds, seed = settings.folds(), settings.seed if settings.groups is None else None
    more: dict[str, Any] = {}
    if settings.approx is not None or isinstance(loaded.X, RowSource):
        folds = splitter(folds, StratifiedKFold, seed)  # the seed of the model draws features
        seed = settings.seed or 0
        if settings.approx is not None:
            more = {"approx": settings.approx, "n_components": settings.components}
    return SVCCV(
        **settings.grid(),
        kernel=settings.kernel,
        gamma=gammas_of(loaded, settings),
        degree=settings.degree,
        coef0=settings.coef0,
        loss=settings.loss,
        cv=folds,
        scoring=settings.scoring,
        select=settings.select,
        class_weight=parse_class_weight(settings.class_weight, count_labels(loaded.y)[0].tolist()),
        probability=settings.probability,
        method=settings.method,
        n_jobs=n_jobs,
        tol=settings.tol,
        random_state=seed,
        verbose=int(progress),
        **more,
    )


def _fit(model: SVCCV, loaded: Loaded, keep: Keep) -> FloatArray | None:
    """Left-out values at the chosen point, if they are to be kept."""
    try:
        values = fit_svc(model, loaded.X, loaded.y, loaded.weight, loaded.groups, keep=keep)
    except TooManyOnMargin as refused:
        can = f"C up to {max(refused.possible):.4g}" if refused.possible else "no C of this grid"
        raise MemoryLimitError(
            f"--cv loo: {refused.free} rows are on the margin at C={refused.C:.4g}, and there is "
            f"room for {refused.most}; use folds (--cv 5) or smaller --Cs ({can} can be done)"
        ) from refused
    # These are no part of the model, and would differ between runs on different machines.
    model.set_params(n_jobs=None, memory_limit=None, verbose=0)
    return values


# ---- what comes out ------------------------------------------------------------------------------


def _facts(file: Path, loaded: Loaded, settings: TuneSettings) -> dict[str, str]:
    """About the data, for the screen and for the report."""
    made = loaded.preparation
    labels, counts = count_labels(loaded.y)
    shown = ", ".join(
        f"{a} ({b} row{'s' if b != 1 else ''})" for a, b in zip(labels[:8], counts[:8], strict=True)
    )
    text = [c for c in made.columns if c.levels is not None]
    features = f"{made.n_features}"
    if text:
        features += f", from {len(made.columns)} columns, {len(text)} of them text (one-hot)"
    facts = {"data": f"{file.name}, {len(loaded.y)} rows"}
    if settings.task is None and len(labels) > 2 and np.issubdtype(labels.dtype, np.number):
        facts["task"] = "classification (whole numbers; --task regression takes them for numbers)"
    facts |= {
        "target": f"{made.target}: {shown}" + (", ..." if len(labels) > 8 else ""),
        "features": features,
        "scaling": scaling_text(loaded.preparation),
    }
    if settings.impute:
        facts["gaps"] = "filled with the median (text: the most frequent level) of all rows"
    if loaded.has_qid and settings.groups is None:
        facts["qid"] = "not used; --groups qid leaves the rows of a query out together"
    if made.constant:
        facts["left out"] = "constant: " + ", ".join(made.constant[:8])
    return facts


def _write(
    out: Path,
    model: SVCCV,
    loaded: Loaded,
    values: FloatArray | None,
    nested: NestedResult | None,
    page: dict[str, Any],
    escape: bool,
    say: Say,
) -> list[str]:
    """All results; the names of the files."""
    saved = TableModel(model, loaded.preparation)
    save_model(saved, out / "model.exactcv")
    lines = results.left_out_parts(model, loaded.y, values, loaded.row_names, escape)
    write_parts(out / "predictions.csv", (part.encode() for part in lines))
    texts = {"cv.csv": results.cv_csv(model, escape)}
    if hasattr(model, "error_path_"):
        texts["steps.csv"] = model.error_path_.to_frame().to_csv(index=False)
    row_names = loaded.row_names or range(1, len(loaded.y) + 1)
    shown = html_report.Page(overview=shown_with(model, nested), row_names=row_names, **page)
    texts["report.html"] = html_report.render(shown)
    for name, text in texts.items():
        write_text(out / name, text)
    named = ["cv.csv", "predictions.csv", *(name for name in texts if name != "cv.csv")]
    picture = results.curve_png(model)
    if picture is None:
        say('curve.png was not drawn; it needs matplotlib: pip install "exactcv[plot]"')
        return ["model.exactcv", *named]
    write_bytes(out / "curve.png", picture)
    pictures = ["curve.png"]
    steps = results.steps_png(model.error_path_) if hasattr(model, "error_path_") else None
    if steps is not None:
        write_bytes(out / "steps.png", steps)
        pictures.append("steps.png")
    return ["model.exactcv", *named, *pictures]


def _code(file: Path, settings: TuneSettings) -> str:
    return (
        f"{settings.command(file.name)} --out results\n\n"
        "# and then, in Python:\n"
        "import exactcv\n\n"
        'model = exactcv.load_model("results")\n'
        "print(model.estimator.summary())\n"
        f"labels = model.predict({file.name!r})\n"
    )


def _result(model: SVCCV, written: list[str], nested: NestedResult | None) -> dict[str, Any]:
    """The figures that matter, for programs."""
    it = model._overview()
    g, l = it.chosen
    return {
        "C": model.C_,
        "lambda": model.lambda_,
        "gamma": model.gamma_,
        "score": model.best_score_,
        "error": float(it.error[g, l]),
        "se": None if np.isnan(it.se[g, l]) else float(it.se[g, l]),
        "interval": [float(end[g, l]) for end in it.interval],
        "corrected": None if it.corrected is None else list(it.corrected),
        "n_errors": int(it.n_errors[g, l]),
        "n_tested": it.n_tested,
        "approximate_kernel": it.approx,
        "n_support": int(model.n_support_.sum()) if hasattr(model, "n_support_") else None,
        "exact": bool(it.exact),
        "largest_kkt": float(np.nanmax(it.kkt)),
        "largest_gap": float(np.nanmax(it.gap)),
        "unresolved": it.unresolved,
        "classes": [str(label) for label in it.classes],
        "files": written,
        "nested": None if nested is None else nested_record(nested),
    }
