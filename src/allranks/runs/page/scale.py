"""Axes: round numbers for the ticks, and the pixels of values."""

from __future__ import annotations

import math
from dataclasses import dataclass

from allranks.runs.formatting import duration

_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200)
_SMALLEST = 1e-290
LARGEST = 1e100
"""Values of a larger magnitude are not drawn, because their differences and squares might overflow."""


@dataclass(frozen=True)
class Tick:
    """A mark on an axis. at: pixels from the picture's left or top edge."""

    at: float
    label: str


@dataclass(frozen=True)
class Scale:
    """Map values from low to high to the pixels from start to stop. On an axis that points up, stop is smaller than
    start."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        """Return the pixel of a value, rounded to a tenth; the middle if the scale has no extent."""
        span = self.high - self.low
        fraction = (value - self.low) / span if span else 0.5
        return round(self.start + fraction * (self.stop - self.start), 1)


def drawable(value: float) -> bool:
    """Return whether a value can be drawn: it is finite, and its magnitude is at most LARGEST."""
    return math.isfinite(value) and abs(value) <= LARGEST


def round_step(span: float, count: int) -> float:
    """Return 1, 2 or 5 times a power of ten, by which the span has about `count` parts."""
    power = 10.0 ** math.floor(math.log10(span / count))
    return min((factor * power for factor in (1, 2, 5, 10)), key=lambda step: abs(span / step - count))


def value_scale(low: float, high: float, start: float, stop: float, count: int = 5) -> tuple[Scale, list[Tick]]:
    """Return a scale with round numbers as its ends around the values, and its ticks."""
    if high - low <= max(1e-9 * max(abs(low), abs(high)), _SMALLEST):
        margin = abs(low) / 2 if abs(low) > _SMALLEST else 0.5
        low, high = low - margin, high + margin
    step = round_step(high - low, count)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    scale = Scale(first * step, last * step, start, stop)
    return scale, [Tick(scale(index * step), tick_label(index * step, step)) for index in range(first, last + 1)]


def count_scale(low: float, high: float, start: float, stop: float, count: int = 6) -> tuple[Scale, list[Tick]]:
    """Return a scale for training steps, from the first to the last, and its ticks at integers."""
    scale = Scale(low, high, start, stop)
    if high <= low:
        return scale, [Tick(scale(low), f"{low:,.0f}")]
    step = max(round_step(high - low, count), 1.0)
    indexes = range(math.ceil(low / step), math.floor(high / step) + 1)
    return scale, [Tick(scale(index * step), f"{index * step:,.0f}") for index in indexes]


def time_scale(seconds: float, start: float, stop: float, count: int = 8) -> tuple[Scale, list[Tick]]:
    """Return a scale from 0 to `seconds`, and its ticks at usual units of time."""
    scale = Scale(0.0, seconds or 1.0, start, stop)
    if scale.high < 6:
        step = round_step(scale.high, count)
    else:
        days = (86400.0 * factor for factor in (1, 2, 5, 10, 20, 50, 100, 1000, 10000, 100000))
        step = min((*map(float, _SECONDS), *days), key=lambda step: abs(scale.high / step - count))
    indexes = range(min(math.floor(scale.high / step + 1e-9), 10 * count) + 1)
    return scale, [Tick(scale(index * step), _moment(index * step)) for index in indexes]


def tick_label(value: float, step: float) -> str:
    """Return the value with as many decimals as distinguish it from its neighbours."""
    if abs(value) >= 1e6 or step < 1e-5:
        return f"{value:.3g}" if abs(value) > step / 2 else "0"
    decimals = max(-math.floor(math.log10(step) + 1e-9), 0)
    return f"{value + 0.0:,.{decimals}f}"


def _moment(seconds: float) -> str:
    if seconds == 0:
        return "0"
    if seconds < 60:
        return f"{seconds:.4g} s"
    return duration(seconds).removesuffix(" 00 s").removesuffix(" 00 min").removesuffix(" 0 h")
