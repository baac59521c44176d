"""Print a run, a list of runs, and a list of components as tables."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from allranks.cli.views.folding import Line, More, lines_of, more_text
from allranks.cli.views.states import symbol, word
from allranks.cli.views.summary import summary
from allranks.cli.views.whole_tables import print_whole
from allranks.runs.formatting import (
    NOTHING,
    count,
    duration,
    elapsed,
    in_bytes,
    layout,
    mean_cpu,
    node_layout,
    number,
    plain,
    when,
)
from allranks.runs.nested import nested, node_at, records_at
from allranks.runs.records import RankRecord, RunRecord, Status, StepRecord

if TYPE_CHECKING:
    from allranks.components.find import ComponentInfo
    from allranks.components.ports import Port

_WIDE, _WIDEST = 100, 140
_TROUBLED = (Status.FAILED, Status.CANCELED, Status.INTERRUPTED)


def print_run(console: Console, run: RunRecord, now: float | None = None, path: str | None = None) -> None:
    """Print a run: its steps, the ranks of failed steps, notes, and the summary.

    path: of the step, whose ranks are printed, or of the group to print; None: all. Raise InputError if the
          run has no such step.
    """
    now = time.time() if now is None else now
    nodes = nested(run.steps)
    if path is not None:
        node = node_at(run, path)
        nodes = node.children or [node]
        run = replace(run, steps=records_at(run, path))
    _print_block(console, _header(run))
    _print_block(console, _steps(lines_of(nodes, console.height if console.is_terminal else None), now))
    for step in run.steps:
        if step.ranks and (step.status in _TROUBLED or step.name == path):
            _print_block(console, _ranks(step, now))
    notes = [(step.name, note) for step in run.steps for note in step.notes] + [("", note) for note in run.notes]
    if notes:
        _print_block(console, _notes(notes))
    console.print(summary(run), soft_wrap=True)


def print_runs(console: Console, runs: Sequence[RunRecord], now: float | None = None) -> None:
    """Print runs in the given order, with their results if the terminal is wide enough."""
    if not runs:
        console.print("No runs yet. Start one with: allranks run FILE")
        return
    now = time.time() if now is None else now
    with_results = console.width >= _WIDE
    with_places = any(run.submitted for run in runs)
    with_names = any(_job_name(run) for run in runs)
    table = _table(
        "Run",
        *(["Name"] if with_names else []),
        "Pipeline",
        "State",
        "Created",
        ">Time",
        *(["Where"] if with_places else []),
        *(["Results"] if with_results else []),
    )
    for run in runs:
        shown = list(run.results.items())[: 1 if console.width < _WIDEST else 2]
        results = "  ".join(f"{name} {number(value)}" for name, value in shown)
        table.add_row(
            plain(run.id),
            *([plain(_job_name(run))] if with_names else []),
            plain(run.name),
            _state(run.status),
            when(run.created)[:16],
            duration(elapsed(run, now), whole=not run.status.ended),
            *([plain(run.instances) if run.submitted else "here"] if with_places else []),
            *([plain(results)] if with_results else []),
        )
    for column in table.columns:
        column.no_wrap = column.header not in ("Name", "Pipeline", "Results")
    print_whole(console, table)


def _job_name(run: RunRecord) -> str:
    """Return the name of the run's job, such as that of a schedule's firing; "" if it is the run's id."""
    return "" if run.job_name == run.id else run.job_name


def print_components(console: Console, components: Sequence[ComponentInfo]) -> None:
    """Print a card per component: its description, how it is launched, its inputs and outputs."""
    for component in components:
        _print_block(console, _card(component))
    console.print(Text(count(len(components), "component"), style="bright_black"))


def _print_block(console: Console, block: RenderableType) -> None:
    if isinstance(block, Table):
        print_whole(console, block)
    else:
        console.print(block)
    console.print()


def _header(run: RunRecord) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bright_black")
    grid.add_column(overflow="fold")
    title = Text.assemble((plain(run.display_name or run.name), "bold"), "  ", _state(run.status))
    where = "in" if run.submitted else "instances"
    facts = {"run": run.id, "source": run.source, "created": when(run.created), where: run.instances}
    for name, value in facts.items():
        if value:
            grid.add_row(name, plain(value))
    for name, value in run.inputs.items():
        grid.add_row(f"input {plain(name)}", plain(value))
    return Group(title, Padding(grid, (0, 0, 0, 2)))


def _steps(lines: Sequence[Line | More], now: float) -> RenderableType:
    table = _table("Step", "State", "Layout", ">Time", "Component")
    for line in lines:
        indent = "  " * line.depth
        if isinstance(line, More):
            table.add_row(f"{indent}{more_text(line)}", _state(Status.COMPLETED), "", "", "")
            continue
        node, step, status = line.node, line.node.record, line.node.status
        state = _state(status)
        component = NOTHING
        if step is not None:
            component = plain(step.component) or (step.kind if step.kind != "command" else NOTHING)
            if step.attempt:
                state.append(f", attempt {step.attempt + 1}", style="yellow")
            if step.reused_from:
                state.append(f"\n  reused from {plain(step.reused_from)}", style="cyan")
        took = duration(elapsed(step or node, now), whole=not status.ended)
        table.add_row(indent + plain(node.name), state, node_layout(node), took, component)
    for column in table.columns:
        column.no_wrap = column.header != "Component"
    return table


def _ranks(step: StepRecord, now: float) -> RenderableType:
    with_usage = any(rank.cpu_seconds is not None for rank in step.ranks)
    usage_columns = (">CPU", ">Peak memory") if with_usage else ()
    table = _table(">Rank", ">Instance", "Host", "State", "End", ">Time", *usage_columns)
    table.title = Text(f"ranks of {plain(step.name)}", style="bright_black")
    table.title_justify = "left"
    for rank in step.ranks:
        ended = rank.ended if rank.ended is not None else now
        table.add_row(
            str(rank.rank),
            str(rank.instance_rank),
            plain(rank.hostname),
            _state(rank.status),
            _end(rank),
            duration(None if rank.started is None else ended - rank.started),
            *(_usage(rank, now) if with_usage else ()),
        )
    return table


def _usage(rank: RankRecord, now: float) -> tuple[str, str]:
    return mean_cpu(rank, now) or NOTHING, in_bytes(rank.peak_memory) if rank.peak_memory else NOTHING


def _end(rank: RankRecord) -> str:
    if rank.signal:
        return plain(rank.signal)
    return NOTHING if rank.exit_code is None else f"exit code {rank.exit_code}"


def _notes(notes: Sequence[tuple[str, str]]) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="cyan")
    grid.add_column(style="bright_black")
    grid.add_column(overflow="fold")
    for step, note in notes:
        grid.add_row("note", plain(step), plain(note))
    return Padding(grid, (0, 0, 0, 2))


def _card(component: ComponentInfo) -> RenderableType:
    launch = layout(component.distribution, component.instance_count, component.process_count_per_instance or 1)
    if (component.instance_count, component.process_count_per_instance) == (
        1,
        None,
    ) and component.distribution != "none":
        launch = component.distribution  # a pipeline sets the layout
    title = Text.assemble(
        (plain(component.name), "bold"), (f" {plain(component.version)}", "bright_black"), "  ", (launch, "blue")
    )
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bright_black", no_wrap=True)
    grid.add_column(style="cyan", overflow="fold")
    grid.add_column(overflow="fold")
    for port in component.inputs:
        grid.add_row("in", plain(port.name), _port(port))
    for port in component.outputs:
        grid.add_row("out", plain(port.name), _port(port))
    return Group(title, Text(plain(component.description)), Padding(grid, (0, 0, 0, 2)))


def _port(port: Port) -> Text:
    text = Text.assemble(port.type, (_bounds(port), "bright_black"))
    return text.append(f"\n{plain(port.description)}", style="bright_black") if port.description else text


def _bounds(port: Port) -> str:
    """Return the allowed values of a port and its default."""
    parts = [
        _range(port.minimum, port.maximum),
        " | ".join(map(plain, port.enum)),
        "optional" if port.optional else "",
        f"default {plain(str(port.default))}" if port.default not in (None, "") else "",
    ]
    return "".join(f", {part}" for part in parts if part)


def _range(low: float | None, high: float | None) -> str:
    if low is None:
        return "" if high is None else f"at most {number(high)}"
    return f"at least {number(low)}" if high is None else f"{number(low)} to {number(high)}"


def _state(status: Status) -> Text:
    return Text(" ").join((symbol(status), word(status)))


def _table(*columns: str) -> Table:
    """Return a table with these columns. ``>`` before a name aligns the column to the right."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bright_black", pad_edge=False, show_edge=False)
    for column in columns:
        justify: JustifyMethod = "right" if column.startswith(">") else "left"
        table.add_column(column.removeprefix(">"), justify=justify, overflow="fold")
    return table
