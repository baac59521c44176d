"""The HTML page: the curves, and a table of the figures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import chart
from trainings import Row, Training

from allranks_steps.charts import sheet


def html(title: str, trainings: Sequence[Training], rows: Sequence[Row]) -> str:
    """Return the page as HTML."""
    table = "\n".join(_row(index, row, rows) for index, row in enumerate(rows))
    content = f"""<section>
<h2>Training loss <span class="of">in nats a token, by step</span></h2>
{chart.svg(trainings)}
</section>
<section>
<h2>Figures</h2>
<div class="scroll"><table>
<thead><tr><th>training</th><th>launch</th><th>ranks</th><th>last loss</th>
<th>differs from {escape(rows[0].name)} by</th><th>step</th><th>tokens a second</th><th>peak memory</th></tr></thead>
<tbody>
{table}
</tbody>
</table></div>
<p class="caption">Step: the median, in seconds. Peak memory: of the rank that held the most, in MiB, the libraries
included where it trains on the CPU. Differs: the largest relative difference of the loss at the same step.</p>
</section>"""
    return sheet.html(title, _lead(trainings), content)


def _lead(trainings: Sequence[Training]) -> str:
    counts = sorted({training.parameters for training in trainings})
    parameters = " and ".join(f"{count:,}" for count in counts)
    steps = max(step for training in trainings for step, _ in training.curve)
    number = f"{len(trainings)} training{'s' if len(trainings) > 1 else ''}"
    return f"{number} of {parameters} parameters, {steps:,} steps of {trainings[0].tokens_per_step:,} tokens"


def _row(index: int, row: Row, rows: Sequence[Row]) -> str:
    slowest, largest = max(each.step_seconds for each in rows), max(each.peak_memory for each in rows)
    known = "no number" if row.difference is None else f"{row.difference:.1e}"
    difference = known if index else "–"
    return (
        f'<tr><td><i class="key s{index}"></i>{escape(row.name)}</td><td>{escape(row.launcher)}</td>'
        f"<td>{row.world_size}</td><td>{row.loss:.4f}</td><td>{difference}</td>"
        f"<td>{sheet.bar(row.step_seconds, slowest)}{row.step_seconds:.3f}</td><td>{row.tokens_per_second:,.0f}</td>"
        f"<td>{sheet.bar(row.peak_memory, largest)}{row.peak_memory:,.0f}</td></tr>"
    )
