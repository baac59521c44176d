"""The page of a run: one HTML file that shows all of it and needs nothing else, from a disk or by mail."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from allranks.runs import curves, formatting
from allranks.runs.page import chart, html_page, timeline
from allranks.runs.page.confusion import confusions
from allranks.runs.page.graph import graph
from allranks.runs.records import RunRecord

_HEADLINES = 4
_LAYOUTS = 4


def write_page(run: RunRecord, path: str | os.PathLike[str], now: float | None = None) -> None:
    """Writes the page of the run; a reader finds the page of before or the new one, never a part.

    now: until when what goes on is drawn, in seconds since the epoch; the current time where it is left out

    Raises OSError where the file cannot be written; then nothing is left of the attempt.
    """
    html_page.write(page(run, time.time() if now is None else now), path)


def page(run: RunRecord, now: float) -> str:
    """The page as text."""
    return html_page.render(
        _environment(),
        "page.html",
        "style.css",
        "tooltip.js",
        run=run,
        now=now,
        headlines=curves.headline(run.steps, _HEADLINES),
        layouts=list(dict.fromkeys(map(formatting.step_layout, run.steps)))[:_LAYOUTS],
        graph=graph(run.steps),
        timeline=timeline.timeline(run, now),
        charts=[drawn for step in run.steps for drawn in chart.charts(step)],
        confusions=[matrix for step in run.steps for matrix in confusions(step)],
    )


def _environment() -> Environment:
    environment = html_page.templates("allranks.runs.page", _finalize)
    environment.globals.update(
        NOTHING=formatting.NOTHING,
        SYMBOLS=formatting.SYMBOLS,
        best=curves.best,
        cause=formatting.cause,
        chart_size=chart,
        count=formatting.count,
        duration=formatting.duration,
        elapsed=formatting.elapsed,
        layout=formatting.step_layout,
        link=_link,
        number=formatting.number,
        reason=formatting.reason,
        shorten=_shorten,
        timeline_size=timeline,
        when=formatting.when,
    )
    return environment


def _finalize(value: Any) -> Any:
    """No name and no log line brings a character that HTML forbids."""
    return formatting.plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _link(path: str) -> str:
    """The file URL of an absolute path; empty for anything else, so that no text of a user becomes a link's target."""
    try:
        return Path(path).as_uri()
    except (ValueError, UnicodeError):
        return ""


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
