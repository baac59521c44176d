"""The HTML page: the curves, and a table of the figures."""

from collections.abc import Sequence
from html import escape

from figures import Row
from matplotlib.axes import Axes

from allranks_steps.charts import sheet
from allranks_steps.charts.figure import inline
from allranks_steps.trainings import Training

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

    def draw(axes: Axes) -> None:
        for index, training in enumerate(trainings):
            width = 1.5 + 1.5 * (len(trainings) - 1 - index)
            steps, losses = zip(*((point.step, point.loss) for point in training.points), strict=True)
            axes.plot(steps, losses, linewidth=width, marker="o" if len(steps) == 1 else "", markersize=width)
        axes.margins(0.01, 0.05)
        axes.set_xlabel("step", loc="right")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")

    return inline("Training loss by step", draw, 1040, 400)


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
