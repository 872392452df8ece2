"""``exactcv tune`` for a target of numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from ..crossval.nested_result import NestedRegressionResult
from ..estimators.svr_cv import SVRCV
from ..exceptions import InputError
from ..report.html import page as html_report
from ..storage.atomic import write_bytes, write_text
from ..storage.model_file import save_model
from ..storage.readers import digest
from ..storage.run_folder import PartFiles, RunFolder, describe
from ..storage.table import Table
from ..storage.table_model import TableModel
from . import results
from .loading import Loaded, gammas_of, load, scaling_text
from .settings import TuneSettings
from .tune_nested import nested_numbers_in, nested_record, shown_with, tell

__all__ = ["tune_numbers"]

COVERAGE = 0.9  # of the intervals in predictions.csv


def tune_numbers(
    file: Path,
    table: Table,
    sha256: str,
    settings: TuneSettings,
    *,
    out: Path | None,
    n_jobs: int,
    memory_limit: str | None,
    progress: bool,
    say: Callable[[str], None],
) -> SVRCV | None:
    """Cross-validate, choose, and write the results; None if they had been written before."""
    start = perf_counter()
    loaded = load(table, settings, numeric=True)
    if digest(file) != sha256:
        raise InputError(f"{file.name} changed while it was read; run the command again")
    facts = _facts(file, loaded, settings)
    for name, text in facts.items():
        say(f"{name + ':':<12} {text}")
    model = _model(loaded, settings).set_params(
        n_jobs=n_jobs, memory_limit=memory_limit, verbose=int(progress)
    )
    again = None if settings.nested is None else clone(model)

    def nested(parts: PartFiles | None) -> NestedRegressionResult | None:
        return None if again is None else nested_numbers_in(again, loaded, settings, parts, say)

    if out is None:
        _fit(model, loaded)
        _tell(model, say, nested(None))
        return model
    data = {"file": file.name, "sha256": sha256, "rows": len(loaded.y)}
    with RunFolder(out, describe(data, settings.record())) as folder:
        if folder.done:
            say(f"\nnothing to do: {out} holds the finished results of this run")
            return None
        _fit(model, loaded)
        after = nested(folder.parts)
        page = {
            "title": f"{file.name}: {loaded.preparation.target}",
            "facts": facts,
            "code": _code(file, settings),
        }
        written = _write(out, model, loaded, after, page, settings.escape, say)
        timings = {"seconds": perf_counter() - start, "parts": model._overview().timings}
        folder.finish(_result(model, written, after), page, timings)
    _tell(model, say, after)
    say(f"\nwritten to {out}: {', '.join([*written, 'run.json'])}")
    return model


def _model(loaded: Loaded, settings: TuneSettings) -> SVRCV:
    return SVRCV(
        **settings.grid(),
        epsilon=settings.epsilons(float(np.std(loaded.y)) or 1.0),
        kernel=settings.kernel,
        gamma=gammas_of(loaded, settings),
        degree=settings.degree,
        coef0=settings.coef0,
        cv=settings.number_folds(),
        scoring=settings.scoring,
        select=settings.select,
        method=settings.method,
        tol=settings.tol,
        random_state=settings.seed if settings.groups is None else None,
    )


def _fit(model: SVRCV, loaded: Loaded) -> None:
    model.fit(loaded.X, loaded.y, loaded.weight, loaded.groups)
    # These are no part of the model, and would differ between runs on different machines.
    model.set_params(n_jobs=None, memory_limit=None, verbose=0)


def _facts(file: Path, loaded: Loaded, settings: TuneSettings) -> dict[str, str]:
    """About the data, for the screen and for the report."""
    y, made = loaded.y, loaded.preparation
    return {
        "data": f"{file.name}, {len(y)} rows",
        "task": "regression (numbers; --task classification takes them for classes)",
        "target": f"{made.target}: from {y.min():.6g} to {y.max():.6g}, mean {y.mean():.6g}",
        "features": f"{made.n_features}",
        "scaling": scaling_text(loaded, settings),
    }


def _tell(model: SVRCV, say: Callable[[str], None], nested: NestedRegressionResult | None) -> None:
    tell(model, say, nested, "intervals:   " + model.coverage_text(COVERAGE))


def _write(
    out: Path,
    model: SVRCV,
    loaded: Loaded,
    nested: NestedRegressionResult | None,
    page: dict[str, Any],
    escape: bool,
    say: Callable[[str], None],
) -> list[str]:
    """All results; the names of the files."""
    save_model(TableModel(model, loaded.preparation), out / "model.exactcv")
    texts = {
        "cv.csv": results.numbers_cv_csv(model, escape),
        "predictions.csv": results.left_out_numbers_csv(model, loaded.y, loaded.row_names, escape),
    }
    row_names = loaded.row_names or range(1, len(loaded.y) + 1)
    shown = html_report.Page(overview=shown_with(model, nested), row_names=row_names, **page)
    texts["report.html"] = html_report.render(shown)
    for name, text in texts.items():
        write_text(out / name, text)
    written = ["model.exactcv", *texts]
    kinds = {"curve.png": "error", "left_out.png": "decision", "residuals.png": "residuals"}
    for name, kind in kinds.items():
        picture = results.curve_png(model, kind)
        if picture is None:
            say(f'{name} was not drawn; it needs matplotlib: pip install "exactcv[plot]"')
            break
        write_bytes(out / name, picture)
        written.append(name)
    return written


def _code(file: Path, settings: TuneSettings) -> str:
    return (
        f"{settings.command(file.name)} --out results\n\n"
        "# and then, in Python:\n"
        "import exactcv\n\n"
        'model = exactcv.load_model("results")\n'
        "print(model.estimator.summary())\n"
        f"values = model.predict({file.name!r})\n"
        f"low, high = model.predict_interval({file.name!r}, coverage=0.9).T\n"
    )


def _result(
    model: SVRCV, written: list[str], nested: NestedRegressionResult | None
) -> dict[str, Any]:
    """The figures that matter, for programs."""
    it = model._overview()
    assert it.numbers is not None
    g, l = it.chosen
    return {
        "C": model.C_,
        "lambda": model.lambda_,
        "gamma": model.gamma_,
        "epsilon": model.epsilon_,
        "score": model.best_score_,
        "loss": float(it.error[g, l]),
        "mae": it.numbers.mae,
        "rmse": it.numbers.rmse,
        "r2": it.numbers.r2,
        "n_tested": it.n_tested,
        "n_support": int(model.n_support_.sum()),
        "exact": bool(it.exact),
        "largest_kkt": float(np.nanmax(it.kkt)),
        "largest_gap": float(np.nanmax(it.gap)),
        "unresolved": it.unresolved,
        "files": written,
        "nested": None if nested is None else nested_record(nested),
    }
