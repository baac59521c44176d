"""Axes of a chart: map values to pixels and choose round numbers as marks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape


class Axis:
    """A linear axis: values from low to high on the pixels from start to stop."""

    def __init__(self, low: float, high: float, start: float, stop: float) -> None:
        if high <= low:
            low, high = low - 0.5, low + 0.5
        self._low, self._high, self._start, self._stop = low, high, start, stop

    def __call__(self, value: float) -> float:
        """Return the pixel of a value, rounded to a tenth."""
        share = (value - self._low) / (self._high - self._low)
        return round(self._start + share * (self._stop - self._start), 1)

    def marks(self, count: int = 6) -> list[float]:
        """Return about `count` round numbers on the axis."""
        span = self._high - self._low
        power = 10.0 ** math.floor(math.log10(span / count))
        step = min((factor * power for factor in (1, 2, 5, 10)), key=lambda step: abs(span / step - count))
        first, last = math.ceil(self._low / step), math.floor(self._high / step)
        return [number * step for number in range(first, last + 1)]


class LogAxis(Axis):
    """A logarithmic axis, for values above 0."""

    def __init__(self, low: float, high: float, start: float, stop: float) -> None:
        super().__init__(math.log10(low), math.log10(high), start, stop)

    def __call__(self, value: float) -> float:
        """Return the pixel of a value, rounded to a tenth."""
        return super().__call__(math.log10(value))

    def marks(self, count: int = 6) -> list[float]:
        """Return the powers of ten on the axis, with 2 and 5 or all digits times them if few: the finest set that has
        not many more than `count` values."""
        powers = range(math.floor(self._low), math.ceil(self._high) + 1)
        for factors in ((1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 5), (1,)):
            values = [factor * 10.0**power for power in powers for factor in factors]
            visible = [value for value in values if self._low - 1e-9 <= math.log10(value) <= self._high + 1e-9]
            if len(visible) <= count + 1:
                return visible
        return visible[:: math.ceil(len(visible) / count)]


@dataclass(frozen=True)
class Frame:
    """A chart's edges in pixels, and its accessible label."""

    label: str
    width: int = 520
    height: int = 300
    left: int = 58
    right: int = 14
    top: int = 14
    bottom: int = 42

    @property
    def x(self) -> tuple[float, float]:
        """Start and stop of the x axis, in pixels."""
        return self.left, self.width - self.right

    @property
    def y(self) -> tuple[float, float]:
        """Start and stop of the y axis, in pixels. It points up."""
        return self.height - self.bottom, self.top


def svg(
    frame: Frame,
    x_marks: Sequence[tuple[float, str]],
    y_marks: Sequence[tuple[float, str]],
    x_label: str,
    parts: Sequence[str],
) -> str:
    """Return the chart as SVG: a grid line at each y mark, the labels of the marks, and the parts on top.

    Marks are pairs of a pixel and a label.
    """
    low, high = frame.x
    lines = [f'<svg viewBox="0 0 {frame.width} {frame.height}" role="img" aria-label="{escape(frame.label)}">']
    for at, label in y_marks:
        lines.append(f'<line class="grid" x1="{low}" x2="{high}" y1="{at}" y2="{at}"/>')
        lines.append(
            f'<text class="tick" x="{low - 8}" y="{round(at + 4, 1)}" text-anchor="end">{escape(label)}</text>'
        )
    for at, label in x_marks:
        y = frame.height - frame.bottom + 20
        lines.append(f'<text class="tick" x="{at}" y="{y}" text-anchor="middle">{escape(label)}</text>')
    lines.append(f'<text class="tick" x="{high}" y="{frame.height - 4}" text-anchor="end">{escape(x_label)}</text>')
    return "\n".join([*lines, *parts, "</svg>"])


def path(style: str, points: Iterable[tuple[float, float]], title: str = "") -> str:
    """Return a line through the points, which are pairs of pixels. title: shown under the pointer, as plain text"""
    data = "L".join(f"{x} {y}" for x, y in points)
    return f'<path class="{style}" d="M{data}">{_title(title)}</path>'


def dot(style: str, point: tuple[float, float], title: str = "") -> str:
    """Return a dot at a point, in pixels."""
    return f'<circle class="{style}" cx="{point[0]}" cy="{point[1]}" r="4">{_title(title)}</circle>'


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>" if text else ""
