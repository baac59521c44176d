"""The HTML page: the main results, the charts, a table, and how the figures were measured."""

from collections.abc import Iterator, Sequence

import charts
from notes import listed, notes
from scaling import Study

from allranks_steps.charts import sheet
from allranks_steps.trainings import Training

KINDS = {
    "strong": "Strong scaling: every row trains with the same batch.",
    "weak": "Weak scaling: every instance has the same part of the batch, which grows with the instances.",
    "mixed": "Neither strong nor weak scaling: the batch changes, and not with the instances.",
}


def html(title: str, study: Study, trainings: Sequence[Training], warm_up_steps: int) -> str:
    """Return the page as HTML."""
    lead = f"{KINDS[study.kind].partition(':')[0]} on {listed([row.instance_count for row in study.rows])} instances"
    parts = [sheet.figures(_figures(study)), sheet.verdict(verdict(study)), sheet.notes(notes(trainings, study))]
    return sheet.html(title, lead, [*parts, _charts(study), _table(study, trainings, warm_up_steps)])


def _figures(study: Study) -> Iterator[tuple[str, str]]:
    best, last = max(study.rows, key=lambda row: row.throughput), study.rows[-1]
    yield f"{study.pays_up_to:,} {_instances(study.pays_up_to)}", "more do not pay" if study.stops_at else "all pay"
    yield f"{charts.figure(best.throughput)} {study.sample}s a second", f"the best, on {best.instance_count:,}"
    yield f"{last.efficiency:.0%} efficiency", f"on {last.instance_count:,}"
    if last.cost is not None:
        cheapest = min(study.rows, key=lambda row: row.cost or 0.0)
        label = f"a million {study.sample}s, the cheapest, on {cheapest.instance_count:,}"
        yield charts.figure(cheapest.cost), label


def verdict(study: Study) -> str:
    """Describe where more instances stop paying, and why."""
    least = f"{study.min_efficiency:.0%}"
    if len(study.rows) == 1:
        return "One number of instances does not show scaling: add histories of others."
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


def _charts(study: Study) -> str:
    # With a price there are three charts: the first then has its own row.
    wide = charts.WIDE if study.price_per_hour else charts.NARROW
    of = f"in {study.sample}s a second; dashed: perfect"
    parts = [
        sheet.chart("Throughput", of, charts.throughput(study, wide), is_wide=bool(study.price_per_hour)),
        sheet.chart("Efficiency", "as a part of what the instances could bring", charts.efficiency(study)),
    ]
    if study.price_per_hour:
        parts.append(sheet.chart("Cost", f"of a million {study.sample}s", charts.cost(study)))
    return sheet.charts(parts)


def _table(study: Study, trainings: Sequence[Training], warm_up_steps: int) -> str:
    priced = study.price_per_hour is not None
    names = ["instances", "ranks", f"{study.sample}s a step", "step", f"{study.sample}s a second", "middle half"]
    names += ["speed-up", "efficiency", "added brings", *(["cost of a million"] if priced else [])]
    most = max(row.throughput for row in study.rows)
    rows = [
        [
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
        for row, training in zip(study.rows, trainings, strict=True)
    ]
    first = study.rows[0].instance_count
    price = f" Cost: at {study.price_per_hour:g} an hour and instance, while it trains." if priced else ""
    caption = (
        f"{KINDS[study.kind]} Medians of steps, in seconds, without the first {warm_up_steps:,} of each training, "
        f"starting, evaluation and saving of the model. Middle half: between the quarters of the points. Speed-up and "
        f"efficiency: compared with {first:,} {_instances(first)}. Added brings: the gain from the row above, as a "
        f"part of what the added instances could bring.{price}"
    )
    return sheet.table([*names, "steps measured"], rows, caption)


def _instances(count: int) -> str:
    return "instance" if count == 1 else "instances"
