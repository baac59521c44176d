"""The page of all runs of a workspace: for each pipeline, a table of its runs, and their curves in the same charts."""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from allranks.errors import InputError
from allranks.history import curves, stored
from allranks.history.nested import in_every_iteration
from allranks.history.page import html_page
from allranks.history.page.chart import SERIES, Chart, Curve, make_chart
from allranks.history.page.page import templates
from allranks.history.records import Point, RunRecord
from allranks.history.run_columns import by_pipeline, differing_inputs
from allranks.workspace import Workspace, write_file

NAME = "runs.html"
_ALL: Mapping[str, Any] = MappingProxyType({"schedule": "", "champions": {}})
_CHARTS = 24
"""Maximum charts of a pipeline."""
_DRAWN = 20
"""Maximum pipelines with charts, those with the newest runs."""


class Pipeline(NamedTuple):
    """The runs of a pipeline, the newest first.

    inputs:  the inputs that differ
    metrics: the metrics among the results
    colours: the places in the charts of the runs whose curves are drawn
    """

    name: str
    runs: Sequence[RunRecord]
    inputs: Sequence[str]
    metrics: Sequence[str]
    colours: Mapping[str, int]
    charts: Sequence[Chart]


def write_runs_page(
    workspace: Workspace, runs: Sequence[RunRecord], unreadable: Mapping[str, str], about: Mapping[str, Any] = _ALL
) -> Path:
    """Write the page into the workspace, and return its path. Raise OSError if it cannot be written.

    runs:       the newest first, without steps
    unreadable: why the record of a run cannot be read, by its id
    about:      for the page of a schedule: its name, and by run the version of a model that was registered last
    """
    failed, drawn = dict(unreadable), list[RunRecord]()
    for group in list(by_pipeline(runs).values())[:_DRAWN]:
        for run in _chosen(group):
            try:
                drawn.append(stored.run(workspace, run.id))
            except InputError as error:
                failed[run.id] = error.problems[0].found
    file = workspace.root / (f"schedule-{about['schedule']}.html" if about["schedule"] else NAME)
    readable = [run for run in runs if run.id not in failed]
    write_file(file, runs_page(workspace.root, readable, drawn, failed, time.time(), about))
    return file


def runs_page(
    root: Path,
    runs: Sequence[RunRecord],
    drawn: Sequence[RunRecord],
    unreadable: Mapping[str, str],
    now: float,
    about: Mapping[str, Any] = _ALL,
) -> str:
    """Return the page as text.

    root:  the workspace, which contains the page
    drawn: the runs with their curves that are drawn
    """
    curves_of = by_pipeline(drawn)
    pipelines = [_pipeline(name, group, curves_of.get(name, ())) for name, group in by_pipeline(runs).items()]
    values = {"root": root, "runs": runs, "pipelines": pipelines, "unreadable": unreadable, "now": now, **about}
    environment = templates()
    main = environment.get_template("runs.html").render(page_of=lambda run: _page_of(root, run), **values)
    title = f"Runs of {about['schedule'] or root.absolute().parent.name}"
    page = {"title": title, "is_live": False, "main": Markup(main)}
    return html_page.render(environment, "page.html", "style.css", ["tooltip.js"], **page)


def _page_of(root: Path, run: RunRecord) -> str:
    """Return the link to the page of a run, relative if it is in the workspace; "" if there is none."""
    if run.submitted:
        return run.submitted.studio if run.submitted.studio.startswith("https://") else ""
    return quote(os.path.relpath(run.page, root), errors="replace") if run.page and os.path.isfile(run.page) else ""


def _chosen(runs: Sequence[RunRecord]) -> list[RunRecord]:
    """Return the runs whose curves are drawn: the newest, and the best by the main metric."""
    name = next((name for run in runs for name in run.results), "")
    sign = curves.direction(name)
    rated = [run for run in runs if name in run.results] if sign else []
    best = max(rated, key=lambda run: sign * run.results[name], default=runs[0])
    newest = [run for run in runs if run is not best][: SERIES - 1]
    return [run for run in runs if run is best or run in newest]


def _pipeline(name: str, runs: Sequence[RunRecord], drawn: Sequence[RunRecord]) -> Pipeline:
    """Return a pipeline with a chart for each metric of a step. Of several iterations, the last one has the curves.

    Metrics that should rise or fall come first.
    """
    found: dict[tuple[str, str], dict[str, list[Point]]] = {}
    for run in drawn:
        for step in run.steps:
            for metric, points in step.metrics.items() if not step.is_trial else ():
                if len(points) > 1:
                    found.setdefault((in_every_iteration(step.name), metric), {})[run.id] = points
    charts = [
        make_chart(metric, path, [Curve(run.id, metric, points.get(run.id, ())) for run in drawn])
        for (path, metric), points in sorted(found.items(), key=lambda each: not curves.direction(each[0][1]))[:_CHARTS]
    ]
    colours = {run.id: place for place, run in enumerate(drawn)} if charts else {}
    metrics = list(dict.fromkeys(metric for run in runs for metric in run.results))
    return Pipeline(name, runs, differing_inputs(runs), metrics, colours, charts)
