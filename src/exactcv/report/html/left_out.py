"""What became of the left-out rows: values, ROC, probabilities, classes, single rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...problem.intervals import wilson
from ..overview import Overview
from ..plots import roc_curves
from . import charts, number_charts
from .markup import Markup, tag
from .pieces import card, head_row, scrolled, table

__all__ = ["cards", "single_rows"]

MOST_SUSPICIOUS = 20
MOST_FAR_OFF = 15
MOST_CLASSES = 20  # in the confusion matrix

RowName = Callable[[int], Any]


def cards(it: Overview) -> list[Markup | None]:
    """All of them together."""
    if it.numbers is None:
        return [_values(it), _roc(it), _calibration(it), _confusion(it)]
    return [
        card("Left-out predictions", number_charts.predicted(it.numbers)),
        card("Left-out residuals", number_charts.residuals(it.numbers)),
    ]


def single_rows(it: Overview, name: RowName) -> Markup:
    """Those that a reader should look at."""
    return _suspicious(it, name) if it.numbers is None else _far_off(it, name)


def _values(it: Overview) -> Markup:
    title = "Left-out decision values"
    if it.left_out.decision is None:
        text = (
            "Only the labels were computed. Left-out decision values and their ROC curve need "
            "output='decision' (cross_validate) or store_cv_results=True (SVCCV)."
        )
        return card(title, tag("p", text, cls="soft"))
    key = charts.legend(*[(f"class-{k % 6}", f"class {c}") for k, c in enumerate(it.classes)])
    note = None
    if len(it.classes) > 2:
        note = tag(
            "p", "The value of a row's own class less the largest of the others.", cls="soft"
        )
    return card(title, charts.histogram(it), key, note)


def _roc(it: Overview) -> Markup | None:
    if it.left_out.decision is None:
        return None
    if np.count_nonzero(it.class_shares) < 2:
        return card("ROC", tag("p", "All tested rows are of one class: there is no ROC curve."))
    several = len(it.classes) > 2
    names = [str(c) for c in it.classes]
    words = [
        (f"class-{names.index(label) % 6}" if several else "line", f"{label}: AUC {area:.4f}")
        for label, _, _, area in roc_curves(it)
    ]
    title = "ROC of the left-out values" + (", each class against the rest" if several else "")
    return card(title, charts.roc(it), charts.legend(*words))


def _calibration(it: Overview) -> Markup | None:
    """Probabilities of the left-out rows beside what happened."""
    stated, truth = it.left_out.probability, it.left_out.truth
    if stated is None:
        return None
    if len(it.classes) == 2:
        p, happened, of = stated[:, 1], truth == 1, f"that a row is {it.classes[1]}"
    else:
        p, happened = stated.max(axis=1), stated.argmax(axis=1) == truth
        of = "of the most probable class"
    own = np.clip(stated[np.arange(len(truth)), truth], np.finfo(float).tiny, 1.0)
    note = (
        f"Probabilities {of}, in tenths, and how often it was so, with 95% intervals. Log-loss "
        f"{-np.log(own).mean():.4f}. The sigmoid was fitted to these same left-out values, with "
        "two numbers for each pair of classes."
    )
    return card("Calibration", charts.calibration(p, happened), tag("p", note, cls="soft"))


def _confusion(it: Overview) -> Markup:
    """True classes down, predictions across; shares are of the row."""
    title, k, left_out = "Confusion matrix of the left-out rows", len(it.classes), it.left_out
    if k > MOST_CLASSES:
        return card(title, tag("p", f"{k} classes: too many to show.", cls="soft"))
    counts = np.zeros((k, k + 1), dtype=int)
    np.add.at(counts, (left_out.truth, left_out.predicted), 1)  # -1, a tie, is the last column
    width = k + bool(counts[:, k].any())
    names = [*(str(c) for c in it.classes), "neither"][:width]
    rows = []
    for i in range(k):
        shares = counts[i] / max(counts[i].sum(), 1)
        cells = [
            tag("td", counts[i, j], tag("small", f"{shares[j]:.1%}"),
                cls="right" if i == j else "wrong", style=f"--share:{shares[j]:.3f}")
            for j in range(width)
        ]  # fmt: skip
        rows.append(tag("tr", tag("th", f"is {names[i]}", scope="row"), cells))
    head = tag("tr", tag("td"), [tag("th", f"predicted {name}", scope="col") for name in names])
    drawn = tag("table", tag("thead", head), tag("tbody", rows), cls="confusion")
    return card(title, scrolled(drawn), _found(it, counts))


def _found(it: Overview, counts: np.ndarray) -> Markup:
    """The share of each class that is recognised; of two classes they have names."""
    named = ["specificity", "sensitivity"] if len(it.classes) == 2 else ["found"] * len(it.classes)
    rows = []
    for k, (name, label) in enumerate(zip(named, it.classes, strict=True)):
        n = int(counts[k].sum())
        if n:
            low, high = (float(end) for end in wilson(counts[k, k] / n, n))
            text = f"{counts[k, k] / n:.1%} (95% interval {low:.1%} to {high:.1%})"
            rows.append((f"{name}, {label}", text))
    return table(rows)


def _suspicious(it: Overview, name: RowName) -> Markup:
    """Rows that the others contradict most."""
    left_out, margin = it.left_out, it.left_out.margin()
    title, often = "Most suspicious rows", left_out.wrong_at
    text = (
        "The rows that the model without them contradicts most: look here for wrong labels and "
        "measurements. The margin is "
        + ("the decision value towards the row's own class" if len(it.classes) == 2
           else "the value of the row's own class less the largest of the others")
        + ", negative where the row is wrong."
    )  # fmt: skip
    if margin is None:
        order = np.flatnonzero(left_out.predicted != left_out.truth)
        text = "Rows whose left-out label is wrong; their margins were not computed."
        if often is not None:
            order = order[np.argsort(-often[order], kind="stable")]
    else:
        order = np.argsort(margin, kind="stable")
        order = order[margin[order] < 1.0]
    order = order[:MOST_SUSPICIOUS]
    if not len(order):
        return card(title, tag("p", "None: every left-out row has no loss."), cls="card wide")
    names: list[tuple[str, str | None]] = [("row", None), ("class", None), ("predicted", None)]
    if margin is not None:
        names.append(("margin", "n"))
    if often is not None:
        names.append(("wrong at", "n"))
        text += f" Wrong at: how many of the {it.error.size} grid points misclassify the row."
    rows = []
    for t in order:
        k = left_out.predicted[t]
        cells = [name(int(left_out.row[t])), it.classes[left_out.truth[t]]]
        cells.append("neither" if k < 0 else it.classes[k])
        numbers = [] if margin is None else [f"{margin[t]:.4f}"]
        numbers += [] if often is None else [str(int(often[t]))]
        rows.append(
            tag("tr", [tag("td", c) for c in cells], [tag("td", v, cls="n") for v in numbers])
        )
    drawn = tag("table", head_row(names), tag("tbody", rows), cls="rows")
    return card(title, tag("p", text, cls="soft"), scrolled(drawn), cls="card wide")


def _far_off(it: Overview, name: RowName) -> Markup:
    """The rows with the largest left-out residuals."""
    assert it.numbers is not None
    order = np.argsort(-np.abs(it.numbers.residual), kind="stable")[:MOST_FAR_OFF]
    columns = (it.numbers.truth, it.numbers.predicted, it.numbers.residual)
    rows = [
        tag(
            "tr",
            tag("td", name(int(it.left_out.row[t]))),
            [tag("td", f"{values[t]:.5g}", cls="n") for values in columns],
        )
        for t in order
    ]
    names = [("row", None), ("observed", "n"), ("predicted", "n"), ("residual", "n")]
    drawn = tag("table", head_row(names), tag("tbody", rows), cls="rows")
    text = (
        "The rows that the model without them misses by most: look here for wrong measurements. "
        "The residual is what was observed less what was predicted."
    )
    return card(
        "Rows that are far off", tag("p", text, cls="soft"), scrolled(drawn), cls="card wide"
    )
