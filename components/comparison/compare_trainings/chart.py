"""All loss curves in one SVG chart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from trainings import Training

from allranks_steps.charts.axis import Axis, Frame
from allranks_steps.charts.axis import svg as picture

FRAME = Frame("Training loss by step", width=1040, height=400)


def svg(trainings: Sequence[Training]) -> str:
    """Return the chart. A loss that is not finite leaves a gap.

    Each curve is thinner than the one below it, so that identical curves stay visible.
    """
    steps = [step for training in trainings for step, _ in training.curve]
    losses = [loss for training in trainings for _, loss in training.curve if math.isfinite(loss)]
    x = Axis(min(steps), max(steps), *FRAME.x)
    y = Axis(min(losses, default=0.0), max(losses, default=1.0), *FRAME.y)
    parts = []
    for index, training in enumerate(trainings):
        width = 1.5 + 1.5 * (len(trainings) - 1 - index)
        title = f"<title>{escape(training.name)}</title>"
        parts.append(f'<path class="curve s{index}" stroke-width="{width}" d="{_path(training, x, y)}">{title}</path>')
    x_marks = [(x(value), f"{value:,.0f}") for value in x.marks()]
    y_marks = [(y(value), f"{value:.4g}") for value in y.marks()]
    return picture(FRAME, x_marks, y_marks, "step", parts)


def _path(training: Training, x: Axis, y: Axis) -> str:
    data, pen = [], "M"
    for step, loss in training.curve:
        if not math.isfinite(loss):
            pen = "M"
            continue
        # A single point is a line of zero length, which round caps draw as a dot.
        data.append(f"{pen}{x(step)} {y(loss)}" + ("h0" if pen == "M" else ""))
        pen = "L"
    return "".join(data)
