"""Print a run, and what differs between two, as tables."""

import time
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from allranks.cli.console import with_links
from allranks.cli.views import print_whole, state, table_of, width_of
from allranks.cli.views.summary import summary
from allranks.cli.views.tree import Line, More, lines_of
from allranks.differences import Comparison, Difference, Reuse
from allranks.history.formatting import elapsed, mean_cpu, node_layout
from allranks.history.nested import nested, node_at, records_at
from allranks.history.records import RunRecord, Status, StepRecord
from allranks.sdk.paths import shown
from allranks.text import NOTHING, duration, in_bytes, plain, when

_TROUBLED = (Status.FAILED, Status.CANCELED, Status.INTERRUPTED)


def print_run(console: Console, run: RunRecord, now: float | None = None, path: str | None = None) -> None:
    """Print a run: its steps, the ranks of failed steps, notes, and the summary.

    path: of the step whose ranks to print, or of the group to print; None: all

    Raise InputError if the run has no such step.
    """
    now = time.time() if now is None else now
    nodes = nested(run.steps)
    if path is not None:
        node = node_at(run, path)
        nodes = node.children or [node]
        run = replace(run, steps=records_at(run, path))
    _print_block(console, _header(console, run))
    _print_block(console, _steps(console, lines_of(nodes, console.height if console.is_terminal else None), now))
    for step in run.steps:
        if step.ranks and (step.status in _TROUBLED or step.name == path):
            _print_block(console, _ranks(step, now))
    notes = [(step.name, note) for step in run.steps for note in step.notes] + [("", note) for note in run.notes]
    if notes:
        _print_block(console, _notes(notes))
    console.print(with_links(console, summary(run)), soft_wrap=True)


def _print_block(console: Console, block: RenderableType) -> None:
    if isinstance(block, Table):
        print_whole(console, block)
    else:
        console.print(block)
    console.print()


def _header(console: Console, run: RunRecord) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bright_black")
    grid.add_column(overflow="fold")
    title = Text.assemble((plain(run.display_name or run.name), "bold"), "  ", state(run.status))
    where = "in" if run.submitted else "instances"
    source = run.source and shown(run.source)
    facts = {"run": run.id, "source": source, "created": when(run.created), where: run.instances}
    for name, value in facts.items():
        if value:
            grid.add_row(name, with_links(console, plain(value)))
    for name, value in run.inputs.items():
        grid.add_row(f"input {plain(name)}", with_links(console, plain(value)))
    return Group(title, Padding(grid, (0, 0, 0, 2)))


def _steps(console: Console, lines: Sequence[Line | More], now: float) -> Table:
    """Return the table of the steps, with the names of their components if the terminal is wide enough."""
    table = table_of("Step", "State", "Layout", ">Time", "Component")
    for line in lines:
        indent = "  " * line.depth
        if isinstance(line, More):
            table.add_row(f"{indent}{line}", state(Status.COMPLETED), "", "", "")
            continue
        node, step, status = line.node, line.node.record, line.node.status
        shown = state(status)
        component = plain(step.component) or (step.kind if step.kind != "command" else NOTHING)
        if step.attempt:
            shown.append(f", attempt {step.attempt + 1}", style="yellow")
        if step.reused_from:
            shown.append(f"\n  reused from {plain(step.reused_from)}", style="cyan")
        took = duration(elapsed(step, now), whole=not status.ended)
        table.add_row(indent + plain(node.name), shown, node_layout(node), took, component)
    for column in table.columns:
        column.no_wrap = True
    if width_of(console, table) > console.width:
        table.columns.pop()
    return table


def _ranks(step: StepRecord, now: float) -> RenderableType:
    with_usage = any(rank.cpu_seconds is not None for rank in step.ranks)
    usage_columns = (">CPU", ">Peak memory") if with_usage else ()
    table = table_of(">Rank", ">Instance", "Host", "State", "End", ">Time", *usage_columns)
    table.title = Text(f"ranks of {plain(step.name)}", style="bright_black")
    table.title_justify = "left"
    for rank in step.ranks:
        ended = rank.ended if rank.ended is not None else now
        memory = in_bytes(rank.peak_memory) if rank.peak_memory else NOTHING
        table.add_row(
            str(rank.rank),
            str(rank.instance_rank),
            plain(rank.hostname),
            state(rank.status),
            plain(rank.signal or "") or (NOTHING if rank.exit_code is None else f"exit code {rank.exit_code}"),
            duration(None if rank.started is None else ended - rank.started),
            *((mean_cpu(rank, now) or NOTHING, memory) if with_usage else ()),
        )
    return table


def _notes(notes: Sequence[tuple[str, str]]) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="cyan")
    grid.add_column(style="bright_black")
    grid.add_column(overflow="fold")
    for step, note in notes:
        grid.add_row("note", plain(step), plain(note))
    return Padding(grid, (0, 0, 0, 2))


MOST = 40
"""Maximum number of printed differences."""


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Print the differences between two runs."""
    runs = plain(comparison.before), plain(comparison.after)
    if comparison.causes:
        first = comparison.causes[0]
        console.print(Text(f"first difference: step {plain(first.step)}, {plain(first.what)}", style="bold"))
        _print_table(console, "What the results depend on", runs, comparison.causes)
    else:
        console.print("Nothing that is recorded of what the results depend on differs.")
    if comparison.results:
        _print_table(console, "Results", runs, comparison.results)


def print_reuse(console: Console, found: Reuse, run: str) -> None:
    """Print why a step of a run was reused or not."""
    console.print(Text.assemble((plain(found.step), "bold"), f": {plain(found.reason)}"), soft_wrap=True)
    if found.causes:
        _print_table(console, "", (plain(found.earlier), plain(run)), found.causes)
    elif found.earlier:
        console.print(f"  run {plain(found.earlier)}")


def _print_table(console: Console, title: str, runs: tuple[str, str], rows: Sequence[Difference]) -> None:
    table = table_of("Step", "What", *runs)
    step = ""
    for row in rows[:MOST]:
        name, step = ("" if row.step == step else plain(row.step)), row.step
        table.add_row(name, plain(row.what), plain(row.before) or NOTHING, plain(row.after) or NOTHING)
    console.print()
    if title:
        console.print(Text(title, style="bright_black"))
    print_whole(console, table)
    if len(rows) > MOST:
        console.print(f"and {len(rows) - MOST} more, see --json")
