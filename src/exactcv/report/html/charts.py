"""The charts of the report, each a function from an overview to SVG."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...types import FloatArray
from ..overview import Overview
from ..plots import cell_edges, roc_curves
from .frame import HEIGHT, Frame, linear, logarithmic, number
from .markup import Markup, tag

__all__ = ["error_curve", "heat_map", "histogram", "legend", "roc"]

MOST_POINTS = 400  # of a curve
N_BINS = 30

# From good (dark) to bad (light): perceptually even, readable on either background.
RAMP = ((48, 18, 92), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))


def error_curve(it: Overview) -> Markup:
    """The error over lambda at the best gamma, with its standard error and the chosen points."""
    g = it.best[0]
    order = np.argsort(it.lambdas, kind="stable")
    x, error, se = it.lambdas[order], it.error[g, order], it.se[g, order]
    # Errors are shares, losses have the unit of the target.
    most, least = (1.0, 0.02) if it.numbers is None else (np.inf, 0.0)
    low, high = np.clip([error - np.nan_to_num(se), error + np.nan_to_num(se)], 0.0, most)
    top = max(float(high.max()), least) or 1.0
    frame = Frame(logarithmic(float(x[0]), float(x[-1])), linear(0.0, min(most, top * 1.05)))
    band = frame.points(np.append(x, x[::-1]), np.append(high, low[::-1]))
    marks = [
        tag("polygon", points=band, cls="band") if np.isfinite(se).any() else None,
        tag("polyline", points=frame.points(x, error), cls="curve"),
        [
            _spot(frame, a, b, _told(it, a, b, s), "dot", 2.0)
            for a, b, s in zip(x, error, se, strict=True)
        ],
        _named(frame, it, it.one_se, "one-se"),
        _named(frame, it, it.best, "best"),
    ]
    what = "left-out error" if it.numbers is None else "left-out loss"
    return frame.chart(f"{what} over lambda".capitalize(), "lambda", what, *marks)


def _told(it: Overview, x: float, error: float, se: float) -> str:
    what, digits = ("error", ".4f") if it.numbers is None else ("loss", ".4g")
    return f"lambda {x:.4g}: {what} {error:{digits}}" + (
        "" if np.isnan(se) else f", standard error {se:{digits}}"
    )


def _spot(frame: Frame, x: float, y: float, told: str, cls: str, r: float) -> Markup:
    """A point that says what it is when pointed at."""
    cx, cy = frame.at(x, y)
    return tag("circle", tag("title", told), cls=cls, cx=cx, cy=cy, r=r)


def _named(frame: Frame, it: Overview, point: tuple[int, int] | None, cls: str) -> Markup | None:
    if point is None or point[0] != it.best[0]:
        return None
    x, y = float(it.lambdas[point[1]]), float(it.error[point])
    return _spot(frame, x, y, _told(it, x, y, float(it.se[point])), cls, 5.0)


def heat_map(it: Overview) -> Markup:
    """The error (or the score) over C and gamma; good is dark."""
    values = it.error if it.score is None else -it.score
    name = "left-out error" if it.score is None else str(it.scoring)
    rows, columns = np.argsort(it.gammas), np.argsort(it.Cs)
    x, y = cell_edges(it.Cs[columns]), cell_edges(it.gammas[rows])
    frame = Frame(logarithmic(float(x[0]), float(x[-1])), logarithmic(float(y[0]), float(y[-1])))
    least, most = float(np.nanmin(values)), float(np.nanmax(values))
    cells = []
    for i, g in enumerate(rows):
        for j, l in enumerate(columns):
            shown = it.error[g, l] if it.score is None else it.score[g, l]
            told = f"C {it.Cs[l]:.4g}, gamma {it.gammas[g]:.4g}: {name} {shown:.4f}"
            share = (float(values[g, l]) - least) / ((most - least) or 1.0)
            box = _box(frame, x[j], x[j + 1], y[i], y[i + 1])
            cells.append(tag("rect", tag("title", told), fill=ramp(share), **box))
    marks = []
    for point, cls in ((it.one_se, "ring one-se"), (it.best, "ring best")):
        if point is None:
            continue
        i, j = list(rows).index(point[0]), list(columns).index(point[1])
        marks.append(tag("rect", cls=cls, **_box(frame, x[j], x[j + 1], y[i], y[i + 1])))
    return frame.chart(
        f"{name} over C and gamma", "C", "gamma", tag("g", cells, cls="cells"), *marks
    )


def _box(frame: Frame, x0: float, x1: float, y0: float, y1: float) -> dict[str, float]:
    (left, bottom), (right, top) = frame.at(x0, y0), frame.at(x1, y1)
    return {"x": left, "y": top, "width": right - left, "height": bottom - top}


def ramp(share: float) -> str:
    """The colour of a value between the best (0) and the worst (1).

    Examples
    --------
    >>> ramp(0.0), ramp(1.0)
    ('#30125c', '#fde725')
    """
    if np.isnan(share):
        return "none"
    place = min(max(share, 0.0), 1.0) * (len(RAMP) - 1)
    k = min(int(place), len(RAMP) - 2)
    mixed = (a + (place - k) * (b - a) for a, b in zip(RAMP[k], RAMP[k + 1], strict=True))
    return "#" + "".join(f"{round(part):02x}" for part in mixed)


def histogram(it: Overview) -> Markup:
    """Left-out decision values (of several classes: margins) by class."""
    left_out = it.left_out
    values = left_out.decision if len(it.classes) == 2 else left_out.margin()
    assert values is not None
    edges = np.histogram_bin_edges(values, bins=N_BINS)
    counts = np.array(
        [np.histogram(values[left_out.truth == k], bins=edges)[0] for k in range(len(it.classes))]
    )
    frame = Frame(
        linear(float(edges[0]), float(edges[-1])), linear(0.0, max(float(counts.max()), 1.0) * 1.05)
    )
    bars = []
    for k, label in enumerate(it.classes):
        for count, a, b in zip(counts[k], edges[:-1], edges[1:], strict=True):
            if count:
                told = f"{count} of class {label} between {number(a)} and {number(b)}"
                box = _box(frame, a, b, 0.0, float(count))
                bars.append(tag("rect", tag("title", told), cls=f"bar class-{k % 6}", **box))
    zero = None
    if edges[0] < 0.0 < edges[-1]:
        x, _ = frame.at(0.0, 0.0)
        zero = tag("line", cls="zero", x1=x, x2=x, y1=12.0, y2=HEIGHT - 46.0)
    name = "left-out decision value" if len(it.classes) == 2 else "left-out margin"
    return frame.chart(f"{name}, by class", name, "rows", tag("g", bars), zero)


def roc(it: Overview) -> Markup:
    """ROC curves of the left-out values."""
    frame = Frame(linear(0.0, 1.0), linear(0.0, 1.0))
    several = len(it.classes) > 2
    marks: list[Any] = [tag("polyline", points=frame.points([0, 1], [0, 1]), cls="chance")]
    for label, fpr, tpr, area in roc_curves(it):
        k = [str(c) for c in it.classes].index(label) if several else 0
        points = frame.points(*_thinned(fpr, tpr))
        cls = f"curve class-line-{k % 6}" if several else "curve"
        told = tag("title", f"{label}: AUC {area:.4f}")
        marks.append(tag("polyline", told, points=points, cls=cls))
    return frame.chart(
        "ROC curve of the left-out values", "false positive rate", "true positive rate", *marks
    )


def _thinned(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    if len(x) <= MOST_POINTS:
        return x, y
    keep = np.linspace(0, len(x) - 1, MOST_POINTS).round().astype(int)
    return x[keep], y[keep]


def legend(*entries: tuple[str, Any]) -> Markup:
    """(class of the swatch, words), one after the other."""
    items = [tag("li", tag("span", cls=f"swatch {cls}"), words) for cls, words in entries]
    return tag("ul", items, cls="legend")
