"""The loss curves on top of each other, as one SVG picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from trainings import Training

WIDTH, HEIGHT = 1040, 400
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 12, 40


def svg(trainings: Sequence[Training]) -> str:
    """The picture. A loss that is no finite number leaves a gap.

    Where curves are the same the last would hide the others: each is thinner than the one below it.
    """
    steps = [step for training in trainings for step, _ in training.curve]
    losses = [loss for training in trainings for _, loss in training.curve if math.isfinite(loss)]
    x = _Axis(min(steps), max(steps), LEFT, WIDTH - RIGHT)
    y = _Axis(min(losses, default=0.0), max(losses, default=1.0), HEIGHT - BOTTOM, TOP)
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Training loss by step">']
    for value in y.marks():
        at = y(value)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at}" y2="{at}"/>')
        parts.append(f'<text class="tick" x="{LEFT - 8}" y="{at + 4}" text-anchor="end">{value:.4g}</text>')
    for value in x.marks():
        parts.append(f'<text class="tick" x="{x(value)}" y="{HEIGHT - 18}" text-anchor="middle">{value:,.0f}</text>')
    parts.append(f'<text class="tick" x="{WIDTH - RIGHT}" y="{HEIGHT - 2}" text-anchor="end">step</text>')
    for index, training in enumerate(trainings):
        width = 1.5 + 1.5 * (len(trainings) - 1 - index)
        title = f"<title>{escape(training.name)}</title>"
        parts.append(f'<path class="curve s{index}" stroke-width="{width}" d="{_path(training, x, y)}">{title}</path>')
    parts.append("</svg>")
    return "\n".join(parts)


class _Axis:
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


def _path(training: Training, x: _Axis, y: _Axis) -> str:
    data, pen = [], "M"
    for step, loss in training.curve:
        if not math.isfinite(loss):
            pen = "M"
            continue
        # A point alone is a line of no length, which round caps make a dot.
        data.append(f"{pen}{x(step)} {y(loss)}" + ("h0" if pen == "M" else ""))
        pen = "L"
    return "".join(data)
