"""Charts of left-out numbers."""

from __future__ import annotations

import numpy as np

from ...types import FloatArray
from ..overview import LeftOutNumbers
from .frame import Frame, linear, number
from .markup import Markup, tag

__all__ = ["predicted", "residuals"]

MOST_POINTS = 2000


def predicted(numbers: LeftOutNumbers) -> Markup:
    """Left-out predictions against what was observed."""
    low = float(min(numbers.truth.min(), numbers.predicted.min()))
    high = float(max(numbers.truth.max(), numbers.predicted.max()))
    frame = Frame(linear(low, high), linear(low, high))
    line = tag("polyline", points=frame.points([low, high], [low, high]), cls="chance")
    points = _points(frame, numbers.truth, numbers.predicted)
    return frame.chart(
        "left-out predictions against observations", "observed", "left-out prediction", line, points
    )


def residuals(numbers: LeftOutNumbers) -> Markup:
    """Observed less predicted, along the predictions."""
    far = float(np.abs(numbers.residual).max()) or 1.0
    low, high = float(numbers.predicted.min()), float(numbers.predicted.max())
    frame = Frame(linear(low, high), linear(-far, far))
    ends = frame.x.low, frame.x.high
    line = tag("polyline", points=frame.points(ends, [0.0, 0.0]), cls="chance")
    points = _points(frame, numbers.predicted, numbers.residual)
    return frame.chart("left-out residuals", "left-out prediction", "residual", line, points)


def _points(frame: Frame, xs: FloatArray, ys: FloatArray) -> Markup:
    some = np.linspace(0, len(xs) - 1, min(len(xs), MOST_POINTS)).round().astype(int)
    marks = []
    for x, y in zip(xs[some], ys[some], strict=True):
        across, up = frame.at(x, y)
        told = tag("title", f"{number(x)}, {number(y)}")
        marks.append(tag("circle", told, cls="bar class-0", cx=across, cy=up, r=2.5))
    return tag("g", marks)
