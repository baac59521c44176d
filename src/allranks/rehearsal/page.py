"""The HTML page of a rehearsal: both loss curves, what evictions cost, and what was lost at each of them."""

from __future__ import annotations

from pathlib import Path

from allranks.history import formatting
from allranks.history.page import chart, html_page
from allranks.history.records import Point
from allranks.history.workspace import write_file
from allranks.rehearsal.comparison import Training
from allranks.rehearsal.report import Report, advice, facts


def write(report: Report, path: Path) -> None:
    """Write the page. Raise OSError if that fails."""
    environment = html_page.templates("allranks.history.page", lambda value: value)
    environment.globals.update(
        chart_size=chart, number=formatting.number, when=formatting.when, facts=facts, NOTHING=formatting.NOTHING
    )
    charts = [_chart(training) for training in report.trainings if any(training.curves.values())]
    trainings = [(training, list(advice(training)) if report.problems else []) for training in report.trainings]
    values = {"report": report, "trainings": trainings, "charts": charts}
    write_file(path, html_page.render(environment, "rehearsal.html", "style.css", ["tooltip.js"], **values))


def _chart(training: Training) -> chart.Chart:
    curves = [
        chart.Curve(name, "", [Point(step, value, 0.0) for step, value in points])
        for name, points in training.curves.items()
        if points
    ]
    return chart.make_chart("loss", training.name, curves)
