"""The numbers that matter most, at the top of the page."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .. import words as report
from ..overview import Overview
from ..plots import roc_curves
from .markup import Markup, tag

__all__ = ["tiles"]


class Tile(NamedTuple):
    """One figure, what it is, how sure it is."""

    value: str
    name: str
    note: str = ""
    cls: str = ""


def tiles(it: Overview) -> Markup:
    """Large ones: how good the model is; small ones: which model it is."""
    if it.numbers is not None:
        large, small = _of_numbers(it), []
    else:
        large, small = _of_classes(it), _found(it)
    small += _point(it)
    small.append(
        Tile("exact", "certificate", cls="exact")
        if it.exact
        else Tile("NOT exact", "certificate", cls="short")
    )
    return tag("div", _row(large, "figures main"), _row(small, "figures small"))


def _row(shown: list[Tile], cls: str) -> Markup:
    cells = [
        tag(
            "div",
            tag("b", one.value),
            tag("span", one.name),
            tag("small", one.note) if one.note else None,
            cls=f"figure {one.cls}".strip(),
        )
        for one in shown
    ]
    return tag("div", cells, cls=cls)


def _of_classes(it: Overview) -> list[Tile]:
    doubt = "short" if report.no_better_than_chance(it) else ""
    what = "error" if it.score is None else it.scoring_name
    shown = []
    if it.score is not None:
        shown.append(Tile(f"{it.score[it.chosen]:.4f}", what, cls=doubt))
    shown.append(
        Tile(
            f"{it.error[it.chosen]:.4f}",
            "left-out error",
            report.interval(it, it.chosen),
            "" if it.score is not None else doubt,
        )
    )
    shown += _nested(it)
    if it.corrected is not None:
        value, low, high = it.corrected
        shown.append(
            Tile(
                f"{value:.4f}",
                f"{what} after tuning (corrected)",
                f"95% interval {low:.4f} to {high:.4f}",
            )
        )
    if it.baseline is not None:
        common = it.classes[int(it.class_shares.argmax())]
        always = f"always {common}" if it.score is None else "predictions that tell nothing"
        shown.append(Tile(f"{it.baseline:.4f}", f"{what}, baseline", always))
    return shown


def _nested(it: Overview) -> list[Tile]:
    """The error after tuning by nested cross-validation, if there was one."""
    if it.nested is None:
        return []
    own = it.nested
    return [Tile(own.figure, f"{own.what} after tuning (nested, {own.folds})", own.interval)]


def _found(it: Overview) -> list[Tile]:
    """How many are wrong, of which kind, and the area under the ROC curve."""
    left_out = it.left_out
    shown = [Tile(f"{it.n_errors[it.chosen]} of {it.n_tested}", "left-out rows wrong")]
    if len(it.classes) == 2 and np.count_nonzero(it.class_shares) == 2:
        for name, k in (("sensitivity", 1), ("specificity", 0)):
            own = left_out.truth == k
            share = float((left_out.predicted[own] == k).mean())
            shown.append(Tile(f"{share:.1%}", name, f"{it.classes[k]} found"))
    if left_out.decision is not None and len(it.classes) == 2:
        curves = roc_curves(it) if np.count_nonzero(it.class_shares) == 2 else []
        shown += [Tile(f"{area:.4f}", "left-out AUC") for *_, area in curves]
    return shown


def _point(it: Overview) -> list[Tile]:
    g, l = it.chosen
    shown = [Tile(f"{it.Cs[l]:.4g}", "C"), Tile(f"{it.lambdas[l]:.4g}", "lambda")]
    if not np.isnan(it.gammas[g]):
        shown.append(Tile(f"{it.gammas[g]:.4g}", "gamma"))
    if it.parameter is not None:
        shown.append(Tile(f"{it.parameter[1][g]:.4g}", it.parameter[0]))
    return shown


def _of_numbers(it: Overview) -> list[Tile]:
    assert it.numbers is not None
    loss = it.loss.replace("_", "-")
    doubt = "short" if it.numbers.r2 <= 0.0 and it.loss != "pinball" else ""
    shown = [
        Tile(f"{it.numbers.r2:.4f}", "left-out R2", cls=doubt),
        Tile(f"{it.numbers.mae:.4g}", "left-out mean absolute error"),
        Tile(f"{it.numbers.rmse:.4g}", "left-out root mean squared error"),
        Tile(f"{it.error[it.chosen]:.4g}", f"left-out {loss} loss", report.interval(it, it.chosen)),
    ]
    shown += _nested(it)
    if it.corrected is not None:
        value, low, high = it.corrected
        what = "loss" if it.score is None else it.scoring_name
        sure = f"95% interval {low:.4g} to {high:.4g}"
        shown.append(Tile(f"{value:.4g}", f"{what} after tuning (corrected)", sure))
    return [*shown, _constant(it)]


def _constant(it: Overview) -> Tile:
    """What the same number for every row would have cost."""
    assert it.numbers is not None
    if it.loss == "pinball" and it.parameter is not None:
        quantile = float(it.parameter[1][it.chosen[0]])
        always = f"always the {quantile:g} quantile"
        return Tile(f"{it.numbers.constant(quantile):.4g}", "loss, baseline", always)
    return Tile(
        f"{2.0 * it.numbers.constant(0.5):.4g}",
        "mean absolute error, baseline",
        "always the median",
    )
