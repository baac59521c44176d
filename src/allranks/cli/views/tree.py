"""A run as a tree of its steps: state, layout, ranks, time, progress and curves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from allranks.cli.views.ranks import ranks_line
from allranks.cli.views.sparkline import sparkline
from allranks.cli.views.states import STYLES, symbol, word
from allranks.runs.curves import remaining
from allranks.runs.formatting import count, duration, elapsed, number, plain, step_layout
from allranks.runs.records import RunRecord, Status, StepRecord

_GUIDES = 4
_NAME = 24
_CURVES = 4
_NOTES = 3
_ACTIVE = (Status.PREPARING, Status.RUNNING)
_DETAILED = (*_ACTIVE, Status.FAILED, Status.CANCELED, Status.INTERRUPTED)


def tree(run: RunRecord, now: float, width: int, height: int | None = None) -> Tree:
    """The run as it stands at `now`, for a terminal `width` columns wide.

    height: lines to stay within, by counting the steps that are over or wait instead of listing them; None: all steps
    """
    # The engine goes on while this is drawn, so lists are copied before they are walked.
    steps = list(run.steps)
    root = Tree(_header(run, now), guide_style="bright_black")
    columns = _columns(steps)
    labels = [(step, _label(step, now, columns, width - _GUIDES)) for step in steps]
    notes = [_note(text) for text in list(run.notes)[-_NOTES:]]
    room = None if height is None else height - 2 - len(notes)
    for label in _within(labels, room):
        root.add(label)
    for note in notes:
        root.add(note)
    return root


class _Columns(NamedTuple):
    """Widths that make the rows of all steps line up."""

    name: int
    status: int
    layout: int


def _columns(steps: Sequence[StepRecord]) -> _Columns:
    return _Columns(
        name=min(max((len(plain(step.name)) for step in steps), default=0), _NAME),
        status=max((len(str(step.status)) for step in steps), default=0),
        layout=max((len(step_layout(step)) for step in steps), default=0),
    )


def _header(run: RunRecord, now: float) -> Text:
    facts = [run.id, run.instances, count(len(run.steps), "step")]
    return Text.assemble(
        symbol(run.status),
        " ",
        (plain(run.display_name or run.name), "bold"),
        "  ",
        word(run.status),
        "  ",
        duration(elapsed(run, now), whole=not run.status.ended),
        "\n",
        ("  " + " · ".join(plain(fact) for fact in facts if fact), "bright_black"),
    )


def _label(step: StepRecord, now: float, columns: _Columns, width: int) -> list[RenderableType]:
    lines: list[RenderableType] = [_row(step, now, columns)]
    if step.status in _DETAILED:
        lines += _ranks_and_progress(step, width - 2)
    if step.status in _ACTIVE:
        lines += _curves(step, width - 2)
    return lines + [_note(text) for text in list(step.notes)[-_NOTES:]]


def _row(step: StepRecord, now: float, columns: _Columns) -> Text:
    name = Text(plain(step.name), style="bold" if step.status in _ACTIVE else "", end="")
    name.truncate(columns.name, overflow="ellipsis", pad=True)
    row = Text.assemble(symbol(step.status), " ", name, "  ", no_wrap=True, overflow="ellipsis")
    row.append_text(word(step.status)).append(" " * (columns.status - len(str(step.status)) + 2))
    row.append(step_layout(step).ljust(columns.layout), style="bright_black").append("  ")
    if step.reused_from:
        row.append(f"reused from {plain(step.reused_from)}", style="cyan")
    elif step.status == Status.NOT_STARTED:
        row.append("after " + ", ".join(plain(name) for name in step.needs) if step.needs else "", style="bright_black")
    else:
        row.append(f"{duration(elapsed(step, now), whole=not step.status.ended):>11}")
    if step.attempt:
        row.append(f"  attempt {step.attempt + 1}", style="yellow")
    return row


def _ranks_and_progress(step: StepRecord, width: int) -> list[RenderableType]:
    ranks = ranks_line(step, width) if len(step.ranks) > 1 else Text()
    progress = _progress(step) if step.status in _ACTIVE else []
    if not progress:
        return [_indented(ranks)] if ranks else []
    beside = ranks and len(ranks) + 40 <= width
    line = Table.grid(padding=(0, 1), expand=False)
    line.add_row("", *([ranks] if beside else []), *progress)
    return [line] if beside or not ranks else [_indented(ranks), line]


def _progress(step: StepRecord) -> list[RenderableType]:
    progress = step.progress
    # A step that only reports metrics is at no step of none.
    if progress is None or not (progress.done or progress.total):
        return []
    done = f"{progress.done:,}" + (f"/{progress.total:,}" if progress.total else " steps")
    left = remaining(step)
    said = [done, f"epoch {progress.epoch}" if progress.epoch is not None else "", _left(left)]
    text = Text("  ".join(part for part in said if part), style="bright_black", no_wrap=True, overflow="ellipsis")
    if not progress.total:
        return [text]
    bar = ProgressBar(progress.total, progress.done, width=24, complete_style="blue", finished_style="green")
    return [bar, text]


def _left(seconds: float | None) -> str:
    return f"{duration(seconds, whole=True)} left" if seconds else ""


def _curves(step: StepRecord, width: int) -> list[RenderableType]:
    curves = [(plain(name), points) for name, points in list(step.metrics.items()) if points][:_CURVES]
    if not curves:
        return []
    names = min(max(len(name) for name, _ in curves), _NAME)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(width=0)
    grid.add_column(width=names, style="bright_black", no_wrap=True, overflow="ellipsis")
    grid.add_column(width=9, justify="right", style="bold", no_wrap=True)
    grid.add_column(style="blue", no_wrap=True)
    for name, points in curves:
        grid.add_row("", name, number(points[-1].value), sparkline(points, min(32, width - names - 17)))
    return [grid]


def _indented(text: Text) -> Text:
    return Text.assemble("  ", text, no_wrap=True, overflow="ellipsis")


def _note(text: str) -> Text:
    return Text.assemble(("  note  ", "cyan"), (plain(text), "bright_black"))


def _within(labels: list[tuple[StepRecord, list[RenderableType]]], room: int | None) -> list[RenderableType]:
    """The labels that fit into so many lines, the rest counted by state. Steps that are active come before others."""
    if room is None or sum(_lines(label) for _, label in labels) <= room:
        return [Group(*label) for _, label in labels]
    room -= len({step.status for step, _ in labels})
    shown: list[RenderableType] = []
    hidden: Counter[Status] = Counter()
    for step, label in labels:
        if step.status in (*_ACTIVE, Status.FAILED) and _lines(label) <= room:
            room -= _lines(label)
            shown.append(Group(*label))
        else:
            hidden[step.status] += 1
    counts = {
        status: Text.assemble(symbol(status), " ", (f"{count(hidden[status], 'step')} {status}", STYLES[status]))
        for status in Status
        if hidden[status]
    }
    before = [text for status, text in counts.items() if status.ended]
    return before + shown + [text for status, text in counts.items() if not status.ended]


def _lines(label: list[RenderableType]) -> int:
    return sum(part.row_count if isinstance(part, Table) else 1 for part in label)
