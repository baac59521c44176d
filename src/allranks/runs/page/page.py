"""The page of a run: one self-contained HTML file, which can be opened from a disk or sent by mail."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from allranks.runs import curves, formatting
from allranks.runs.nested import count_steps, in_every_iteration
from allranks.runs.page import chart, drawings, fold, html_page, timeline
from allranks.runs.page.confusion import Confusion, confusions
from allranks.runs.page.details import details
from allranks.runs.page.item import Item, items_of
from allranks.runs.page.shared_charts import shared_charts
from allranks.runs.records import Point, RunRecord, Status, StepRecord

_HEADLINES = 4
_LAYOUTS = 4
_VALUES = 3
_MATRICES = 12
_MOST_NOTES = 50
_MOST_VERDICTS = 10


def write_page(run: RunRecord, path: str | os.PathLike[str], now: float | None = None) -> None:
    """Write the page of the run atomically: a reader finds the earlier or the new page, never a part.

    now: end of what is still running, in seconds since the epoch; default: the current time

    Raise OSError if the file cannot be written. No temporary file remains then.
    """
    html_page.write(page(run, time.time() if now is None else now), path)


def page(run: RunRecord, now: float) -> str:
    """Return the page as text."""
    items = items_of(run.steps)
    steps = [step for step in run.steps if step.kind == "command"]
    return html_page.render(
        _environment(),
        "page.html",
        "style.css",
        "tooltip.js",
        run=run,
        now=now,
        items=items,
        headlines=_headlines(steps),
        layouts=list(dict.fromkeys(map(formatting.step_layout, steps)))[:_LAYOUTS],
        drawings=drawings.drawings(items),
        timeline=timeline.timeline(run, now, items),
        charts=shared_charts(steps),
        confusions=_matrices(steps),
        details=details(items, run.id),
    )


def _headlines(steps: list[StepRecord]) -> list[tuple[StepRecord, str, Point]]:
    """Return the most relevant values. Of the same step in several iterations, use the last one."""
    by_step: dict[tuple[str, str], tuple[StepRecord, str, Point]] = {}
    for headline in curves.headline(steps, len(steps)):
        step, name, _ = headline
        by_step.setdefault((in_every_iteration(step.name), name), headline)
    return list(by_step.values())[:_HEADLINES]


def _matrices(steps: list[StepRecord]) -> list[Confusion]:
    """Return the confusion matrices of the run that fit on a page. Of several iterations, use the last one."""
    last_steps = {in_every_iteration(step.name): step for step in steps if step.artifacts}
    matrices: list[Confusion] = []
    for step in last_steps.values():
        if len(matrices) >= _MATRICES:
            break
        matrices += confusions(step)
    return matrices[:_MATRICES]


def _environment() -> Environment:
    environment = html_page.templates("allranks.runs.page", _finalize)
    environment.globals.update(
        MOST_NOTES=_MOST_NOTES,
        MOST_VERDICTS=_MOST_VERDICTS,
        NOTHING=formatting.NOTHING,
        RUN=drawings.RUN,
        SYMBOLS=formatting.SYMBOLS,
        about=_about,
        best=curves.best,
        branches=drawings.branches,
        cause=formatting.cause,
        chart_size=chart,
        count=formatting.count,
        count_steps=count_steps,
        duration=formatting.duration,
        elapsed=formatting.elapsed,
        last_values=_last_values,
        link=_link,
        notes_of=_notes_of,
        number=formatting.number,
        reason=formatting.reason,
        runs=fold.runs,
        shorten=_shorten,
        stretches=fold.stretches,
        timeline_size=timeline,
        what=_what,
        when=formatting.when,
    )
    return environment


def _finalize(value: Any) -> Any:
    """Remove characters that HTML forbids from names and log lines."""
    return formatting.plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _link(path: str) -> str:
    """Return the file URL of an absolute path; "" for anything else, so that no text of a user becomes a link's
    target."""
    try:
        return Path(path).as_uri()
    except (ValueError, UnicodeError):
        return ""


def _shorten(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _about(item: Item, now: float) -> str:
    """Return the text beside a node's name: layout, decision, and duration or the run whose result it reuses."""
    step = item.record
    parts = [item.layout]
    if (decided := drawings.outcome(item)) is not None:
        parts.append(str(decided).lower())
    if step.reused_from:
        parts.append(f"reused from {step.reused_from}")
    elif step.status is not Status.SKIPPED:
        parts.append(formatting.duration(formatting.elapsed(step, now)))
    return " · ".join(filter(None, parts))


def _what(item: Item, now: float) -> str:
    """Return a shorter `_about` that fits in the box of a node."""
    if item.record.reused_from:
        return f"{item.layout} · reused"
    if item.status is Status.SKIPPED:
        return str(item.status)
    return _about(item, now) if item.record.started else item.layout


def _last_values(step: StepRecord) -> str:
    """Return the last values of a step's metrics that fit on one line."""
    texts = [f"{name} {formatting.number(points[-1].value)}" for name, points in step.metrics.items() if points]
    return ", ".join(texts[:_VALUES]) + (", …" if len(texts) > _VALUES else "")


def _notes_of(steps: list[StepRecord]) -> list[tuple[StepRecord, str]]:
    return [(step, note) for step in steps for note in step.notes]
