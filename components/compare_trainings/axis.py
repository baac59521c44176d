"""Axes of a chart: where a value lies among the pixels, and which round numbers are marked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


class Axis:
    """Values from low to high on the pixels from start to stop."""

    def __init__(self, low: float, high: float, start: float, stop: float) -> None:
        if high <= low:
            low, high = low - 0.5, low + 0.5
        self._low, self._high, self._start, self._stop = low, high, start, stop

    def __call__(self, value: float) -> float:
        """The pixel of a value, to a tenth."""
        share = (value - self._low) / (self._high - self._low)
        return round(self._start + share * (self._stop - self._start), 1)

    def marks(self, count: int = 6) -> list[float]:
        """About so many round numbers within."""
        span = self._high - self._low
        power = 10.0 ** math.floor(math.log10(span / count))
        step = min((factor * power for factor in (1, 2, 5, 10)), key=lambda step: abs(span / step - count))
        first, last = math.ceil(self._low / step), math.floor(self._high / step)
        return [number * step for number in range(first, last + 1)]


class LogAxis(Axis):
    """The same for values above 0, on which equal distances are equal ratios."""

    def __init__(self, low: float, high: float, start: float, stop: float) -> None:
        super().__init__(math.log10(low), math.log10(high), start, stop)

    def __call__(self, value: float) -> float:
        """The pixel of a value, to a tenth."""
        return super().__call__(math.log10(value))

    def marks(self, count: int = 6) -> list[float]:
        """The powers of ten within, with 2 and 5 times them where there are few; the finest of these that are not
        many more than `count`."""
        powers = range(math.floor(self._low), math.ceil(self._high) + 1)
        for factors in ((1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 5), (1,)):
            within = [factor * 10.0**power for power in powers for factor in factors]
            found = [value for value in within if self._low - 1e-9 <= math.log10(value) <= self._high + 1e-9]
            if len(found) <= count + 1:
                return found
        return found[:: math.ceil(len(found) / count)]


@dataclass(frozen=True)
class Frame:
    """A chart's edges in pixels, and the label of its picture for who cannot see it."""

    label: str
    width: int = 520
    height: int = 300
    left: int = 58
    right: int = 14
    top: int = 14
    bottom: int = 42

    @property
    def x(self) -> tuple[float, float]:
        """The pixels from an x axis's start to its stop."""
        return self.left, self.width - self.right

    @property
    def y(self) -> tuple[float, float]:
        """The same of a y axis, which points up."""
        return self.height - self.bottom, self.top


def svg(
    frame: Frame,
    x_marks: Sequence[tuple[float, str]],
    y_marks: Sequence[tuple[float, str]],
    x_label: str,
    parts: Sequence[str],
) -> str:
    """The picture: a line across at each of the y marks, the marks' labels, and on top of them the parts.

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
