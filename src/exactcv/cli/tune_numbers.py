"""``exactcv tune`` for a target of numbers."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold

from ..crossval.corrected import Corrected, Correction
from ..crossval.overviews import shown_correction
from ..estimators.quantile_svr_cv import QuantileSVRCV
from ..estimators.svr_cv import SVRCV
from ..exceptions import InputError
from ..report.html import page as html_report
from ..report.words import WIDTH
from ..storage.atomic import write_bytes, write_text
from ..storage.model_file import save_model
from ..storage.readers import digest
from ..storage.run_folder import PartFiles, RunFolder, describe
from ..storage.table import Table
from ..storage.table_model import TableModel
from ..types import IntervalMethod
from . import results
from .approximation import kernel_of_table
from .loading import Loaded, gammas_of, load, scaling_text
from .settings import TuneSettings, splitter
from .tune_nested import NestedOfNumbers, nested_numbers_in, nested_record, shown_with, tell

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
) -> SVRCV | QuantileSVRCV | None:
    """Cross-validate, choose, and write the results; None if they had been written before."""
    start = perf_counter()
    loaded = load(table, settings, numeric=True)
    if digest(file) != sha256:
        raise InputError(f"{file.name} changed while it was read; run the command again")
    if settings.quantiles is not None and sparse.issparse(loaded.X):
        raise InputError("--quantiles takes tables (CSV, Parquet), not svmlight files")
    asked = settings
    settings = replace(settings, standardize=loaded.preparation.standardize)
    choice = kernel_of_table(loaded, settings, out, memory_limit, numbers=True)
    if choice.settings.approx is not None:
        settings = choice.settings
    facts = _facts(file, loaded, settings)
    if choice.said is not None:
        facts["kernel"] = choice.said
    for name, text in facts.items():
        say(f"{name + ':':<12} {text}")
    model = _model(loaded, settings).set_params(
        n_jobs=n_jobs, memory_limit=memory_limit, verbose=int(progress)
    )
    again = None if settings.nested is None else clone(model)

    def nested(parts: PartFiles | None) -> NestedOfNumbers | None:
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
            "facts": facts | _quantile_facts(model),
            "code": _code(file, replace(settings, standardize=asked.standardize)),
        }
        written = _write(out, model, loaded, after, page, settings.escape, say)
        timings = {"seconds": perf_counter() - start, "parts": model._overview().timings}
        folder.finish(_result(model, written, after), page, timings)
    _tell(model, say, after)
    say(f"\nwritten to {out}: {', '.join([*written, 'run.json'])}")
    return model


def _model(loaded: Loaded, settings: TuneSettings) -> SVRCV | QuantileSVRCV:
    common: dict[str, Any] = settings.number_grid() | {
        "kernel": settings.kernel,
        "gamma": gammas_of(loaded, settings),
        "degree": settings.degree,
        "coef0": settings.coef0,
        "cv": settings.number_folds(),
        "scoring": settings.scoring,
        "select": settings.select,
        "method": settings.method,
        "tol": settings.tol,
        "random_state": settings.seed if settings.groups is None else None,
    }
    if settings.approx in ("rff", "nystroem"):
        common |= _features(settings, common["cv"])
    levels = settings.levels()
    if levels is not None:
        return QuantileSVRCV(quantiles=levels, **common)
    return SVRCV(epsilon=settings.epsilons(float(np.std(loaded.y)) or 1.0), **common)


def _features(settings: TuneSettings, folds: Any) -> dict[str, Any]:
    """The seed of the model draws the features."""
    more = {"approx": settings.approx, "n_components": settings.components}
    return more | {"cv": splitter(folds, KFold, settings.seed), "random_state": settings.seed or 0}


def _fit(model: SVRCV | QuantileSVRCV, loaded: Loaded) -> None:
    model.fit(loaded.X, loaded.y, loaded.weight, loaded.groups)
    # These are no part of the model, and would differ between runs on different machines.
    model.set_params(n_jobs=None, memory_limit=None, verbose=0)


def _facts(file: Path, loaded: Loaded, settings: TuneSettings) -> dict[str, str]:
    """About the data, for the screen and for the report."""
    y, made = loaded.y, loaded.preparation
    levels = settings.levels()
    quantiles = {} if levels is None else {"quantiles": ", ".join(f"{tau:.6g}" for tau in levels)}
    return {
        "data": f"{file.name}, {len(y)} rows",
        "task": "regression (numbers; --task classification takes them for classes)",
        "target": f"{made.target}: from {y.min():.6g} to {y.max():.6g}, mean {y.mean():.6g}",
        "features": f"{made.n_features}",
        "scaling": scaling_text(loaded.preparation),
        **quantiles,
    }


def _tell(
    model: SVRCV | QuantileSVRCV,
    say: Callable[[str], None],
    nested: NestedOfNumbers | None,
) -> None:
    more = None
    if isinstance(model, QuantileSVRCV):
        say("\n" + _each_quantile(model))
        say(f"\nof the quantile {model.middle_:.6g}:")
    if not isinstance(model, QuantileSVRCV) or len(model.quantiles_) > 1:
        own: IntervalMethod = "jackknife+" if model.approx is None else "cv+"
        text = "intervals:   " + model.coverage_text(COVERAGE, own)
        more = textwrap.fill(text, WIDTH, subsequent_indent=13 * " ")
    tell(model, say, nested, more)


def _quantile_found(model: QuantileSVRCV, q: int) -> tuple[float, float]:
    """The left-out loss of one quantile, and the share of rows below their left-out value."""
    y, left_out = model._targets, model.left_out_[model._kept_rows, q]
    known = np.isfinite(left_out)
    loss = float(model.cv_results_[q]["error"][model.best_index_[q]])
    return loss, float(np.mean(y[known] < left_out[known]))


def _quantile_facts(model: SVRCV | QuantileSVRCV) -> dict[str, str]:
    """For the report, whose charts are those of the middle quantile alone."""
    if not isinstance(model, QuantileSVRCV):
        return {}
    facts = {}
    for q, tau in enumerate(model.quantiles_):
        loss, below = _quantile_found(model, q)
        gamma = f", gamma {model.gamma_[q]:.4g}" if np.isfinite(model.gamma_[q]) else ""
        facts[f"quantile {tau:.6g}"] = (
            f"C {model.C_[q]:.4g}{gamma}: left-out loss {loss:.4g}, {below:.1%} of the rows below"
        )
    return facts


def _each_quantile(model: QuantileSVRCV) -> str:
    """One line a quantile, and whether they cross."""
    lines = ["quantile          C      gamma   left-out loss   rows below"]
    for q, tau in enumerate(model.quantiles_):
        loss, below = _quantile_found(model, q)
        gamma = f"{model.gamma_[q]:.4g}" if np.isfinite(model.gamma_[q]) else "-"
        lines.append(f"{tau:<8.6g} {model.C_[q]:10.4g} {gamma:>10} {loss:15.4g} {below:11.1%}")
    sorting = model.crossing == "forbid-by-sorting"
    lines.append(
        f"in {model.crossings_:.1%} of the rows left-out quantiles cross"
        + (", and are sorted when they are predicted" if sorting and model.crossings_ else "")
    )
    return "\n".join(lines)


def _write(
    out: Path,
    model: SVRCV | QuantileSVRCV,
    loaded: Loaded,
    nested: NestedOfNumbers | None,
    page: dict[str, Any],
    escape: bool,
    say: Callable[[str], None],
) -> list[str]:
    """All results; the names of the files."""
    save_model(TableModel(model, loaded.preparation), out / "model.exactcv")
    quantiles = isinstance(model, QuantileSVRCV)
    texts = {
        "cv.csv": results.quantiles_cv_csv(model, escape)
        if isinstance(model, QuantileSVRCV)
        else results.numbers_cv_csv(model, escape),
        "predictions.csv": results.left_out_numbers_csv(model, loaded.y, loaded.row_names, escape),
    }
    row_names = loaded.row_names or range(1, len(loaded.y) + 1)
    shown = html_report.Page(overview=shown_with(model, nested), row_names=row_names, **page)
    texts["report.html"] = html_report.render(shown)
    for name, text in texts.items():
        write_text(out / name, text)
    written = ["model.exactcv", *texts]
    kinds = {"curve.png": "error", "left_out.png": "decision", "residuals.png": "residuals"}
    for name, kind in ({"curve.png": "error", "fan.png": "fan"} if quantiles else kinds).items():
        if isinstance(model, QuantileSVRCV) and kind == "fan":
            picture = results.fan_png(model, loaded.y)
        else:
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


def _shown(known: Correction, model: QuantileSVRCV) -> list[float] | None:
    """The loss (the score, if one was asked for) after tuning, if that is worked out."""
    found = known if isinstance(known, Corrected) else None
    shown = shown_correction(found, model.scoring is None, len(model.cv_results_[0]["param_C"]))
    return None if shown is None else list(shown)


def _result(
    model: SVRCV | QuantileSVRCV, written: list[str], nested: NestedOfNumbers | None
) -> dict[str, Any]:
    """The figures that matter, for programs."""
    it = model._overview()
    assert it.numbers is not None
    g, l = it.chosen
    common = {
        "nested": None if nested is None else nested_record(nested),
        "n_tested": it.n_tested,
        "exact": bool(model.certificate_.exact),
        "largest_kkt": float(np.nanmax(model.certificate_.kkt)),
        "largest_gap": float(np.nanmax(model.certificate_.gap)),
        "unresolved": len(model.certificate_.unresolved),
        "files": written,
    }
    if isinstance(model, QuantileSVRCV):
        loss = [table["error"][i] for table, i in
                zip(model.cv_results_, model.best_index_, strict=True)]  # fmt: skip
        return {
            "quantiles": model.quantiles_.tolist(),
            "C": model.C_.tolist(),
            "lambda": model.lambda_.tolist(),
            "gamma": [None if np.isnan(gamma) else gamma for gamma in model.gamma_.tolist()],
            "loss": [float(one) for one in loss],
            "corrected": [_shown(one, model) for one in model._corrections],
            "crossings": model.crossings_,
            "approximate_kernel": it.approx,
        } | common
    return {
        "C": model.C_,
        "lambda": model.lambda_,
        "gamma": model.gamma_,
        "epsilon": model.epsilon_,
        "score": model.best_score_,
        "loss": float(it.error[g, l]),
        "corrected": None if it.corrected is None else list(it.corrected),
        "mae": it.numbers.mae,
        "rmse": it.numbers.rmse,
        "r2": it.numbers.r2,
        "approximate_kernel": it.approx,
        "n_support": None if it.approx else int(model.n_support_.sum()),
    } | common
