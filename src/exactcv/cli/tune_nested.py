"""``exactcv tune --nested``: the error after tuning, for classes, numbers and quantiles."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from ..crossval.nested_result import Nested, NestedRegressionResult, NestedResult
from ..estimators.nested_fit import nested_of, nested_of_numbers, nested_of_quantiles
from ..estimators.quantile_svr_cv import QuantileSVRCV
from ..estimators.svc_cv import SVCCV
from ..estimators.svr_cv import SVRCV
from ..exceptions import Interrupted
from ..report import words as report
from ..report.after_tuning import middle_of
from ..report.methods_text import methods_text
from ..report.overview import Overview
from ..storage.run_folder import PartFiles
from .loading import Loaded
from .settings import TuneSettings, splitter

__all__ = [
    "NestedOfNumbers",
    "nested_in",
    "nested_numbers_in",
    "nested_record",
    "shown_with",
    "tell",
]

Say = Callable[[str], None]
NestedOfNumbers = NestedRegressionResult | list[NestedRegressionResult]


def nested_in(
    model: SVCCV, loaded: Loaded, settings: TuneSettings, parts: PartFiles | None, say: Say
) -> NestedResult:
    """The error after tuning, of a model with the same settings."""
    outer = splitter(settings.outer_folds(), StratifiedKFold, settings.seed)
    rows = loaded.X, loaded.y, outer, loaded.weight, loaded.groups
    return _going_on(lambda: nested_of(model, *rows, parts), parts, say)


def nested_numbers_in(
    model: SVRCV | QuantileSVRCV,
    loaded: Loaded,
    settings: TuneSettings,
    parts: PartFiles | None,
    say: Say,
) -> NestedOfNumbers:
    """The same of numbers: one result, or one for each quantile."""
    outer = splitter(settings.outer_number_folds(), KFold, settings.seed)
    rows = loaded.X, loaded.y, outer, loaded.weight, loaded.groups

    def work() -> NestedOfNumbers:
        if isinstance(model, QuantileSVRCV):
            return nested_of_quantiles(model, *rows, parts)
        return nested_of_numbers(model, *rows, parts)

    return _going_on(work, parts, say)


def _going_on(work: Callable[[], Any], parts: PartFiles | None, say: Say) -> Any:
    """Finished parts are taken up, and kept if the work is interrupted."""
    if parts is not None and parts.count:
        say(f"going on with {parts.count} finished part(s) of the nested cross-validation")
    try:
        return work()
    except Interrupted as stop:
        if parts is None:
            raise
        raise Interrupted(
            f"interrupted; {parts.count} finished part(s) of the nested cross-validation are kept: "
            "the same command goes on from there",
            stop.partial,
        ) from stop


def shown_with(
    model: SVCCV | SVRCV | QuantileSVRCV, nested: Nested | Sequence[Nested] | None
) -> Overview:
    """What there is to show of a model, with the error after tuning: of the middle quantile."""
    it = model._overview()
    if isinstance(nested, Sequence):
        levels = [one.after_tuning() for one in nested]
        return replace(it, nested=middle_of(levels))
    return it if nested is None else replace(it, nested=nested.after_tuning())


def tell(
    model: SVCCV | SVRCV | QuantileSVRCV,
    say: Say,
    nested: Nested | Sequence[Nested] | None,
    more: str | None = None,
) -> None:
    """Curve, summary, nested cross-validation and the text for a paper, on the screen."""
    say("\n" + report.curve_table(model) + "\n\n" + report.summary(model))
    if more is not None:
        say("\n" + more)
    if isinstance(model, SVCCV) and hasattr(model, "error_path_"):
        say("\n" + model.error_path_.summary())
    for one in nested if isinstance(nested, Sequence) else [nested]:
        if one is not None:
            say("\n" + one.summary())
    text = methods_text(shown_with(model, nested)).partition("\n\n")[0]
    say("\nfor a paper:\n" + textwrap.fill(text, 96))


def nested_record(nested: Nested | Sequence[Nested]) -> dict[str, Any] | list[dict[str, Any]]:
    """For ``run.json``; of quantiles a list."""
    if isinstance(nested, Sequence):
        return [_record(one) for one in nested]
    return _record(nested)


def _record(nested: Nested) -> dict[str, Any]:
    return nested.after_tuning().record() | {
        "se": None if np.isnan(nested.se) else nested.se,
        "interval": list(nested.interval),
        "chosen": [
            {"C": C, "gamma": None if np.isnan(gamma) else gamma, "times": times}
            for C, gamma, times in nested.often()
        ],
    }
