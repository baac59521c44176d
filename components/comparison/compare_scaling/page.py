"""The HTML page: the main results, the charts, a table, and how the figures were measured."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import charts
from histories import Training
from notes import listed, notes
from scaling import Row, Study

from allranks_steps.charts import sheet

KINDS = {
    "strong": "Strong scaling: every row trains with the same batch.",
    "weak": "Weak scaling: every instance has the same part of the batch, which grows with the instances.",
    "mixed": "Neither strong nor weak scaling: the batch changes, and not with the instances.",
}


def html(title: str, study: Study, trainings: Sequence[Training], warm_up_steps: int) -> str:
    """Return the page as HTML."""
    lead = f"{KINDS[study.kind].partition(':')[0]} on {listed([row.instance_count for row in study.rows])} instances"
    parts = [_figures(study), _verdict(study), _notes(notes(trainings, study)), _charts(study)]
    return sheet.html(title, lead, "\n".join([*parts, _table(study, trainings, warm_up_steps)]))


def _figures(study: Study) -> str:
    best, last = max(study.rows, key=lambda row: row.throughput), study.rows[-1]
    figures = [
        (f"{study.pays_up_to:,} {_instances(study.pays_up_to)}", "more do not pay" if study.stops_at else "all pay"),
        (f"{charts.figure(best.throughput)} {study.sample}s a second", f"the best, on {best.instance_count:,}"),
        (f"{last.efficiency:.0%} efficiency", f"on {last.instance_count:,}"),
    ]
    if last.cost is not None:
        cheapest = min(study.rows, key=lambda row: row.cost or 0.0)
        label = f"a million {study.sample}s, the cheapest, on {cheapest.instance_count:,}"
        figures.append((charts.figure(cheapest.cost), label))
    cells = "\n".join(f"<div><b>{escape(value)}</b><span>{escape(label)}</span></div>" for value, label in figures)
    return f'<div class="figures">\n{cells}\n</div>'


def _verdict(study: Study) -> str:
    return f'<p class="said">{escape(verdict(study))}</p>'


def verdict(study: Study) -> str:
    """Describe where more instances stop paying, and why."""
    least = f"{study.min_efficiency:.0%}"
    if len(study.rows) == 1:
        return "One number of instances alone says nothing about scaling: give histories of others."
    if study.stops_at is None:
        most = f"{study.rows[-1].instance_count:,}, the most that were tried"
        return f"More instances pay up to {most}: each addition brings at least {least} of what it could."
    row, before = study.row(study.stops_at), study.row(study.pays_up_to)
    times = row.instance_count / before.instance_count
    return (
        f"More instances stop paying at {before.instance_count:,}: with {times:g} times as many the training is "
        f"{row.throughput / before.throughput:.2f} times as fast, {row.gain or 0.0:.0%} of what they could bring; at "
        f"least {least} was asked for. Each {study.sample} then costs {1 / (row.gain or 1.0):.2f} times as much."
    )


def _notes(said: Sequence[str]) -> str:
    return "\n".join(f'<p class="note">{escape(text)}</p>' for text in said)


def _charts(study: Study) -> str:
    of = f"of a million {escape(study.sample)}s"
    # With a price there are three charts: the first then has its own row.
    wide = charts.WIDE if study.price_per_hour else charts.NARROW
    figures = [
        _chart("Throughput", f"in {escape(study.sample)}s a second; dashed: perfect", charts.throughput(study, wide)),
        _chart("Efficiency", "as a part of what the instances could bring", charts.efficiency(study, charts.NARROW)),
    ]
    if study.price_per_hour:
        figures.append(_chart("Cost", of, charts.cost(study, charts.NARROW)))
    return '<section class="charts">\n' + "\n".join(figures) + "\n</section>"


def _chart(name: str, of: str, picture: str) -> str:
    wide = ' class="wide"' if f"0 0 {charts.WIDE} " in picture else ""
    return f'<div{wide}><h2>{name} <span class="of">{of}</span></h2>\n{picture}\n</div>'


def _table(study: Study, trainings: Sequence[Training], warm_up_steps: int) -> str:
    priced = study.price_per_hour is not None
    most = max(row.throughput for row in study.rows)
    rows = "\n".join(_row(row, training, most, priced) for row, training in zip(study.rows, trainings, strict=True))
    names = ["instances", "ranks", f"{study.sample}s a step", "step", f"{study.sample}s a second", "middle half"]
    names += ["speed-up", "efficiency", "added brings"] + ["cost of a million"] * priced + ["steps measured"]
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    first = study.rows[0].instance_count
    price = f" Cost: at {study.price_per_hour:g} an hour and instance, while it trains." if priced else ""
    return f"""<section>
<h2>Figures</h2>
<div class="scroll"><table>
<thead><tr>{head}</tr></thead>
<tbody>
{rows}
</tbody>
</table></div>
<p class="caption">{KINDS[study.kind]} Medians of steps, in seconds, without the first {warm_up_steps:,} of each
training, starting, evaluation and saving of the model. Middle half: between the quarters of the points. Speed-up and
efficiency: compared with {first:,} {_instances(first)}. Added brings: the gain from the row above, as a part of
what the added instances could bring.{price}</p>
</section>"""


def _row(row: Row, training: Training, most: float, priced: bool) -> str:
    cells = [
        f"{row.instance_count:,}",
        f"{row.world_size:,}",
        f"{row.samples_per_step:,.0f}",
        f"{row.step_seconds:.4g}",
        f"{sheet.bar(row.throughput, most)}{charts.figure(row.throughput)}",
        " – ".join(map(charts.figure, row.spread)),
        f"{row.speed_up:.2f}",
        f"{row.efficiency:.0%}",
        "–" if row.gain is None else f"{row.gain:.0%}",
        *([charts.figure(row.cost)] if priced else []),
        f"{training.steps:,}",
    ]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _instances(count: int) -> str:
    return "instance" if count == 1 else "instances"
