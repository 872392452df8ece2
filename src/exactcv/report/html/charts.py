"""The charts of the report, each a function from an overview to SVG."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...problem.intervals import wilson
from ...types import FloatArray
from ..overview import Overview
from ..plots import cell_edges, roc_curves
from .frame import HEIGHT, WIDTH, Frame, Scale, linear, logarithmic, number
from .markup import Markup, tag

__all__ = [
    "calibration",
    "ends",
    "error_curve",
    "heat_map",
    "histogram",
    "legend",
    "roc",
    "step_curve",
]

MOST_POINTS = 400  # of a curve
N_BINS = 30

# From bad (dark) to good (bright): perceptually even, readable on either background.
RAMP = ((48, 18, 92), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))


def error_curve(it: Overview) -> Markup:
    """What the grid was judged by, along C at the best gamma, and the chosen points."""
    g = it.best[0]
    order = np.argsort(it.Cs, kind="stable")
    x, value, se = it.Cs[order], it.judged[g, order], it.se[g, order]
    if it.score is not None:
        se = np.full_like(se, np.nan)  # that of the error
    frame = Frame(logarithmic(float(x[0]), float(x[-1])), _height(it, value, se))
    marks = [
        _band(frame, x, value, se),
        tag("polyline", points=frame.points(x, value), cls="curve"),
        [
            _spot(frame, c, v, _told(it, c, v, s), "dot", 2.0)
            for c, v, s in zip(x, value, se, strict=True)
        ],
        _named(frame, it, None if it.one_se == it.best else it.one_se, "one-se"),
        _named(frame, it, it.best, "best"),
    ]
    return frame.chart(f"{it.judged_by} over C".capitalize(), "C", it.judged_by, *marks)


def step_curve(it: Overview) -> Markup:
    """The error at every C, and where it is least."""
    assert it.steps is not None
    edges, error = it.steps
    least = np.flatnonzero(np.round(error - error.min(), 12) == 0.0)
    shown = _wide_steps(edges, least)
    frame = Frame(
        logarithmic(float(edges[0]), float(edges[-1])),
        linear(0.0, min(1.0, max(float(error.max()), 0.02) * 1.05)),
    )
    starts = np.append(edges[shown], edges[-1])
    x = np.repeat(starts, 2)[1:-1]
    areas = [
        tag("rect", cls="least", **_box(frame, edges[k], edges[k + 1], 0.0, frame.y.high))
        for k in least
    ]
    point = float(it.Cs[it.best[1]])
    told = f"C {point:.4g}: {it.judged_by} {it.judged[it.best]:.4f}"
    marks = [
        areas,
        tag("polyline", points=frame.points(x, np.repeat(error[shown], 2)), cls="curve step"),
        _spot(frame, point, float(it.judged[it.best]), told, "best", 5.0),
    ]
    return frame.chart(f"{it.judged_by} at every C".capitalize(), "C", it.judged_by, *marks)


def _wide_steps(edges: FloatArray, least: NDArray[np.intp]) -> NDArray[np.intp]:
    """Steps that can be seen: those too narrow for the eye are left out, but for the least."""
    width = np.diff(np.log(edges)) / np.log(edges[-1] / edges[0])
    seen = width * WIDTH >= 0.25
    seen[least] = seen[0] = True
    return np.flatnonzero(seen) if len(width) > MOST_POINTS else np.arange(len(width))


def _height(it: Overview, value: FloatArray, se: FloatArray) -> Scale:
    """Errors begin at 0; scores have no such end."""
    if it.score is None:
        # Errors are shares, losses have the unit of the target.
        most, least = (1.0, 0.02) if it.numbers is None else (np.inf, 0.0)
        top = max(float(np.nanmax(value + np.nan_to_num(se))), least) or 1.0
        return linear(0.0, min(most, top * 1.05))
    low, high = float(np.nanmin(value)), float(np.nanmax(value))
    pad = 0.05 * (high - low)
    return linear(low - pad, high + pad)


def _band(frame: Frame, x: FloatArray, value: FloatArray, se: FloatArray) -> Markup | None:
    if not np.isfinite(se).any():
        return None
    half = np.nan_to_num(se)
    low, high = np.clip([value - half, value + half], frame.y.low, frame.y.high)
    around = frame.points(np.append(x, x[::-1]), np.append(high, low[::-1]))
    return tag("polygon", points=around, cls="band")


def _told(it: Overview, C: float, value: float, se: float) -> str:
    digits = ".4f" if it.numbers is None else ".4g"
    doubt = "" if np.isnan(se) else f", standard error {se:{digits}}"
    return f"C {C:.4g}: {it.judged_by} {value:{digits}}{doubt}"


def _spot(frame: Frame, x: float, y: float, told: str, cls: str, r: float) -> Markup:
    """A point that says what it is when pointed at."""
    cx, cy = frame.at(x, y)
    return tag("circle", tag("title", told), cls=cls, cx=cx, cy=cy, r=r)


def _named(frame: Frame, it: Overview, point: tuple[int, int] | None, cls: str) -> Markup | None:
    if point is None or point[0] != it.best[0]:
        return None
    x, y = float(it.Cs[point[1]]), float(it.judged[point])
    return _spot(frame, x, y, _told(it, x, y, np.nan), cls, 5.0)


def heat_map(it: Overview) -> Markup:
    """What the grid was judged by, over C and gamma; good is bright."""
    values, name = it.judged, it.judged_by
    worst, best = ends(it)
    same, columns = it.same_parameter, np.argsort(it.Cs)
    rows = same[np.argsort(it.gammas[same])]
    x, y = cell_edges(it.Cs[columns]), cell_edges(it.gammas[rows])
    frame = Frame(logarithmic(float(x[0]), float(x[-1])), logarithmic(float(y[0]), float(y[-1])))
    cells = []
    for i, g in enumerate(rows):
        for j, l in enumerate(columns):
            told = f"C {it.Cs[l]:.4g}, gamma {it.gammas[g]:.4g}: {name} {values[g, l]:.4f}"
            share = (float(values[g, l]) - worst) / ((best - worst) or 1.0)
            box = _box(frame, x[j], x[j + 1], y[i], y[i + 1])
            cells.append(tag("rect", tag("title", told), fill=ramp(share), **box))
    marks = []
    for point, cls in ((it.one_se, "one-se"), (it.best, "best")):
        if point is None or point[0] not in rows or (cls == "one-se" and point == it.best):
            continue
        i, j = list(rows).index(point[0]), list(columns).index(point[1])
        box = _box(frame, x[j], x[j + 1], y[i], y[i + 1])
        marks += [tag("rect", cls="ring-under", **box), tag("rect", cls=f"ring {cls}", **box)]
    return frame.chart(
        f"{name} over C and gamma", "C", "gamma", tag("g", cells, cls="cells"), *marks
    )


def ends(it: Overview) -> tuple[float, float]:
    """The worst and the best value of the map."""
    values = it.judged[it.same_parameter]
    least, most = float(np.nanmin(values)), float(np.nanmax(values))
    return (most, least) if it.score is None else (least, most)


def _box(frame: Frame, x0: float, x1: float, y0: float, y1: float) -> dict[str, float]:
    (left, bottom), (right, top) = frame.at(x0, y0), frame.at(x1, y1)
    return {"x": left, "y": top, "width": right - left, "height": bottom - top}


def ramp(share: float) -> str:
    """The colour of a value between the worst (0) and the best (1).

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
    bars, outlines = [], []
    for k, label in enumerate(it.classes):
        heights = np.concatenate([[0], np.repeat(counts[k], 2), [0]])
        along = frame.points(np.repeat(edges, 2), heights)
        outlines.append(tag("polyline", points=along, cls=f"outline class-line-{k % 6}"))
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
    return frame.chart(
        f"{name}, by class", name, "rows", tag("g", bars, cls="bars"), outlines, zero
    )


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


def calibration(stated: FloatArray, happened: NDArray[np.bool_]) -> Markup:
    """How often what was given a probability happened, in tenths of the probability."""
    frame = Frame(linear(0.0, 1.0), linear(0.0, 1.0))
    marks: list[Any] = [tag("polyline", points=frame.points([0, 1], [0, 1]), cls="chance")]
    tenth = np.minimum((stated * 10).astype(int), 9)
    for k in np.unique(tenth):
        here = tenth == k
        n, mean, share = int(here.sum()), float(stated[here].mean()), float(happened[here].mean())
        low, high = (float(end) for end in wilson(share, n))
        (x, bottom), (_, top) = frame.at(mean, low), frame.at(mean, high)
        told = f"{n} rows with about {mean:.0%}: {share:.0%} (95% interval {low:.0%} to {high:.0%})"
        marks.append(tag("line", cls="whisker", x1=x, x2=x, y1=bottom, y2=top))
        marks.append(_spot(frame, mean, share, told, "dot", 4.0))
    return frame.chart(
        "stated probability and observed share", "stated probability", "observed share", *marks
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
