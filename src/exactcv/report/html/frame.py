"""The frame of a chart: scales, ticks, axes.

Charts are drawn in a box of fixed size that the page scales; colours come from the page's style
sheet by class name, so that they follow light and dark mode.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

from .markup import Markup, tag

__all__ = ["HEIGHT", "WIDTH", "Frame", "Scale", "linear", "logarithmic", "number"]

WIDTH, HEIGHT = 440.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 54.0, 22.0, 12.0, 46.0  # right: half of the last label


@dataclass(frozen=True)
class Scale:
    """From data to the unit interval, with ticks in data units."""

    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = self.low, self.high, float(value)
        if self.log:
            low, high, at = log10(low), log10(high), log10(at)
        return (at - low) / (high - low)


def linear(low: float, high: float, n_ticks: int = 5) -> Scale:
    """A scale with round ticks.

    Examples
    --------
    >>> linear(0.0, 0.37).ticks
    (0.0, 0.1, 0.2, 0.3)
    """
    if not high > low:
        pad = abs(low) * 0.5 or 1.0
        low, high = low - pad, high + pad
    raw = (high - low) / n_ticks
    unit = 10.0 ** floor(log10(raw))
    step = next(k * unit for k in (1, 2, 2.5, 5, 10) if k * unit >= raw * 0.999)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return Scale(low, high, tuple(float(f"{k * step:.12g}") for k in range(first, last + 1)))


def logarithmic(low: float, high: float) -> Scale:
    """A scale with ticks at powers of ten, or at the ends if there are fewer than two.

    Examples
    --------
    >>> logarithmic(0.5, 2000.0).ticks
    (1.0, 10.0, 100.0, 1000.0)
    """
    if not high > low:
        low, high = low / 2.0, high * 2.0
    first, last = ceil(log10(low) - 1e-9), floor(log10(high) + 1e-9)
    every = max(1, ceil((last - first) / 6))
    powers = tuple(10.0**k for k in range(first, last + 1, every))
    ticks = powers if len(powers) > 1 else (low, (low * high) ** 0.5, high)
    return Scale(low, high, ticks, log=True)


def number(value: float) -> str:
    """A short name for a tick.

    Examples
    --------
    >>> number(1e-05), number(0.25), number(1000.0)
    ('1e-5', '0.25', '1000')
    """
    text = f"{value:.3g}"
    if "e" not in text:
        return text
    mantissa, power = text.split("e")
    return f"{float(mantissa):g}e{int(power)}" if abs(int(power)) > 3 else f"{value:g}"


@dataclass(frozen=True)
class Frame:
    """A chart area with its two scales."""

    x: Scale
    y: Scale

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The place of a point, to a hundredth."""
        across = LEFT + self.x(x) * (WIDTH - LEFT - RIGHT)
        up = HEIGHT - BOTTOM - self.y(y) * (HEIGHT - TOP - BOTTOM)
        return round(across, 2), round(up, 2)

    def points(self, xs: Any, ys: Any) -> str:
        places = (self.at(x, y) for x, y in zip(xs, ys, strict=True))
        return " ".join(f"{a:g},{b:g}" for a, b in places)

    def chart(self, title: str, x_label: str, y_label: str, *marks: Any) -> Markup:
        """The whole drawing; ``title`` is for those who cannot see it."""
        return tag(
            "svg",
            tag("title", title),
            self._grid(),
            *marks,
            self._labels(x_label, y_label),
            viewBox=f"0 0 {WIDTH:g} {HEIGHT:g}",
            role="img",
        )

    def _grid(self) -> Markup:
        lines = []
        for tick in self.x.ticks:
            x, bottom = self.at(tick, self.y.low)
            lines.append(tag("line", cls="grid", x1=x, x2=x, y1=TOP, y2=bottom))
            lines.append(tag("text", number(tick), cls="tick", x=x, y=bottom + 19, **MIDDLE))
        for tick in self.y.ticks:
            left, y = self.at(self.x.low, tick)
            lines.append(tag("line", cls="grid", x1=left, x2=WIDTH - RIGHT, y1=y, y2=y))
            lines.append(tag("text", number(tick), cls="tick", x=left - 6, y=y + 4, **END))
        return tag("g", lines)

    def _labels(self, x_label: str, y_label: str) -> Markup:
        middle = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
        turned = f"translate(13 {middle[1]:g}) rotate(-90)"
        return tag(
            "g",
            tag("text", x_label, cls="label", x=middle[0], y=HEIGHT - 8, **MIDDLE),
            tag("text", y_label, cls="label", transform=turned, **MIDDLE),
        )


MIDDLE = {"text_anchor": "middle"}
END = {"text_anchor": "end"}
