"""The HTML page: the curves, and a table of the figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from figures import Row

from allranks_steps.charts import sheet
from allranks_steps.charts.axis import Axis, Frame, svg
from allranks_steps.trainings import Training

FRAME = Frame("Training loss by step", width=1040, height=400)
CAPTION = (
    "Step: the median, in seconds. Peak memory: of the rank that held the most, in MiB, the libraries included where "
    "it trains on the CPU. Differs: the largest relative difference of the loss at the same step."
)


def html(title: str, trainings: Sequence[Training], rows: Sequence[Row]) -> str:
    """Return the page as HTML. Trainings that count different things have their own unit in the table."""
    samples = {row.sample for row in rows}
    units = [f" {row.sample}s" if len(samples) > 1 else "" for row in rows]
    sample = "sample" if len(samples) > 1 else rows[0].sample
    of = "in nats a token, by step" if samples == {"token"} else "by step"
    names = ["training", "launch", "ranks", "last loss", f"differs from {rows[0].name} by", "step"]
    return sheet.html(
        title,
        _lead(trainings),
        [
            f'<section>\n<h2>Training loss <span class="of">{of}</span></h2>\n{curves(trainings)}\n</section>',
            sheet.table(
                [*names, f"{sample}s a second", "peak memory"],
                [_cells(index, row, rows, units[index]) for index, row in enumerate(rows)],
                CAPTION,
            ),
        ],
    )


def curves(trainings: Sequence[Training]) -> str:
    """Return the chart of the losses. A loss that is not finite leaves a gap.

    Each curve is thinner than the one below it, so that identical curves stay visible.
    """
    points = [point for training in trainings for point in training.points]
    steps = [point.step for point in points]
    losses = [point.loss for point in points if math.isfinite(point.loss)]
    x = Axis(min(steps), max(steps), *FRAME.x)
    y = Axis(min(losses, default=0.0), max(losses, default=1.0), *FRAME.y)
    parts = []
    for index, training in enumerate(trainings):
        width = 1.5 + 1.5 * (len(trainings) - 1 - index)
        title = f"<title>{escape(training.name)}</title>"
        parts.append(f'<path class="curve s{index}" stroke-width="{width}" d="{_path(training, x, y)}">{title}</path>')
    x_marks = [(x(value), f"{value:,.0f}") for value in x.marks()]
    y_marks = [(y(value), f"{value:.4g}") for value in y.marks()]
    return svg(FRAME, x_marks, y_marks, "step", parts)


def _path(training: Training, x: Axis, y: Axis) -> str:
    data, pen = [], "M"
    for point in training.points:
        if not math.isfinite(point.loss):
            pen = "M"
            continue
        # A single point is a line of zero length, which round caps draw as a dot.
        data.append(f"{pen}{x(point.step)} {y(point.loss)}" + ("h0" if pen == "M" else ""))
        pen = "L"
    return "".join(data)


def _lead(trainings: Sequence[Training]) -> str:
    counts = sorted({training.parameters for training in trainings})
    parameters = " and ".join(f"{count:,}" for count in counts)
    steps = max(training.points[-1].step for training in trainings)
    number = f"{len(trainings)} training{'s' if len(trainings) > 1 else ''}"
    first = trainings[0]
    return f"{number} of {parameters} parameters, {steps:,} steps of {first.samples_per_step:,.0f} {first.sample}s"


def _cells(index: int, row: Row, rows: Sequence[Row], unit: str) -> list[str]:
    slowest, largest = max(each.step_seconds for each in rows), max(each.peak_memory for each in rows)
    known = "no number" if row.difference is None else f"{row.difference:.1e}"
    return [
        f"{sheet.key(index)}{escape(row.name)}",
        escape(row.launcher),
        str(row.world_size),
        f"{row.loss:.4f}",
        known if index else "–",
        f"{sheet.bar(row.step_seconds, slowest)}{row.step_seconds:.3f}",
        f"{row.samples_per_second:,.0f}{escape(unit)}",
        f"{sheet.bar(row.peak_memory, largest)}{row.peak_memory:,.0f}",
    ]
