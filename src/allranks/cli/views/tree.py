"""Render a run as a tree of steps and groups of steps: state, layout, ranks, time, progress and curves."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from allranks.cli.views import STYLES, symbol, word
from allranks.history.curves import best_metric, buckets, remaining
from allranks.history.formatting import current_usage, elapsed, node_layout
from allranks.history.nested import Node, count_steps, nested, steps_of, walk
from allranks.history.records import Point, RunRecord, Status, StepRecord
from allranks.text import count, duration, number, plain

_GUIDES = 4
_NARROW = 60
"""Columns below which the layout of steps is omitted, so that their times stay visible."""
_NAME = 24
_CURVES = 4
_NOTES = 3
_ACTIVE = (Status.PREPARING, Status.RUNNING)
_DETAILED = (*_ACTIVE, Status.FAILED, Status.CANCELED, Status.INTERRUPTED)
_LEVELS = "▁▂▃▄▅▆▇"
"""Without the full block: two curves below each other would touch."""
_MOST = 64
"""Maximum number of ranks with one glyph each; more ranks are counted by state."""

ITERATIONS = 7
"""Number of completed iterations of a loop that are listed. Earlier ones are counted."""


def tree(run: RunRecord, now: float, width: int, height: int | None = None, fold_over: int | None = None) -> Tree:
    """Return the run at time `now`, for a terminal that is `width` columns wide.

    height:    maximum number of lines; ended and waiting steps are counted instead of listed; None: no limit
    fold_over: number of lines above which completed groups are folded if there is no `height`
    """
    # The engine changes these lists while this is drawn, so they are copied first.
    nodes = nested(list(run.steps))
    root = Tree(_header(run, now, width), guide_style="bright_black")
    notes = [_note(text) for text in list(run.notes)[-_NOTES:]]
    room = None if height is None else height - (3 if width < _NARROW else 2) - len(notes)
    for row in _rows(nodes, now, width - _GUIDES, room, fold_over):
        row.add_to(root)
    for note in notes:
        root.add(note)
    return root


def name_width(run: RunRecord) -> int:
    """Return the terminal width that the names and states of all steps need."""
    states = max(len(str(status)) for status in Status)
    depths = ((len(node.path.split(".")) + node.path.count("["), node.name) for node in walk(nested(list(run.steps))))
    return max((_GUIDES * depth + len(plain(name)) for depth, name in depths), default=0) + states + 4


class _Row(NamedTuple):
    """The lines of a node, and the rows of its children."""

    label: list[RenderableType]
    rows: list[_Row]

    @property
    def height(self) -> int:
        own = sum(part.row_count if isinstance(part, Table) else 1 for part in self.label)
        return own + sum(row.height for row in self.rows)

    def add_to(self, branch: Tree) -> None:
        added = branch.add(Group(*self.label))
        for row in self.rows:
            row.add_to(added)


class _Columns(NamedTuple):
    """Column widths that align the rows of all steps."""

    name: int
    status: int
    layout: int


def _columns(lines: Sequence[Line | More], width: int) -> _Columns:
    shown = [line for line in lines if isinstance(line, Line)]
    deepest = max((line.depth for line in shown), default=0)
    name = max((_GUIDES * line.depth + len(plain(line.node.name)) for line in shown), default=0)
    return _Columns(
        name=min(name, _NAME + _GUIDES * deepest),
        status=max((len(str(line.node.status)) for line in shown), default=0),
        layout=0 if width < _NARROW else max((len(node_layout(line.node)) for line in shown), default=0),
    )


def _rows(nodes: list[Node], now: float, width: int, room: int | None, fold_over: int | None) -> list[_Row]:
    lines = lines_of(nodes, fold_over if room is None else room)
    columns = _columns(lines, width)
    if room is None or len(lines) <= room:
        rows = _listed(lines, now, columns, width)
        if room is None or sum(row.height for row in rows) <= room:
            return rows
    return _fitted(nodes, 0, now, columns, width, room)


def _listed(lines: Sequence[Line | More], now: float, columns: _Columns, width: int) -> list[_Row]:
    top: list[_Row] = []
    siblings = [top]
    for line in lines:
        del siblings[line.depth + 1 :]
        if isinstance(line, More):
            row = _Row([Text.assemble(symbol(Status.COMPLETED), (f" {line}", STYLES[Status.COMPLETED]))], [])
        else:
            row = _Row(_label(line.node, line.depth, now, columns, width), [])
        siblings[line.depth].append(row)
        siblings.append(row.rows)
    return top


def _fitted(nodes: list[Node], depth: int, now: float, columns: _Columns, width: int, room: int) -> list[_Row]:
    """Return the rows that fit into the number of lines, of active and failed nodes. The other nodes are counted by
    state."""
    states = [node.status for node in nodes]
    room -= len(set(states))
    shown: list[_Row] = []
    hidden: Counter[Status] = Counter()
    for node, state in zip(nodes, states, strict=True):
        row = _Row([], [])
        if state in (*_ACTIVE, Status.FAILED) and room > 0:
            row = _Row(_label(node, depth, now, columns, width), [])
        if not 0 < row.height <= room:
            hidden[state] += len(steps_of(node))
            continue
        room -= row.height
        if len({child.status for child in node.children}) < room:
            row.rows.extend(_fitted(node.children, depth + 1, now, columns, width, room))
            room -= sum(each.height for each in row.rows)
        shown.append(row)
    counts = [(status, _counted(status, count(hidden[status], "step"))) for status in Status if hidden[status]]
    before, after = ([_Row([text], []) for status, text in counts if status.ended is ended] for ended in (True, False))
    return before + shown + after


def _header(run: RunRecord, now: float, width: int) -> Text:
    facts = [run.id, run.instances, count(count_steps(run.steps), "step")]
    return Text.assemble(
        symbol(run.status),
        " ",
        (plain(run.display_name or run.name), "bold"),
        "\n  " if width < _NARROW else "  ",
        word(run.status),
        "  ",
        duration(elapsed(run, now), whole=not run.status.ended),
        "\n",
        ("  " + " · ".join(plain(fact) for fact in facts if fact), "bright_black"),
    )


def _label(node: Node, depth: int, now: float, columns: _Columns, width: int) -> list[RenderableType]:
    lines: list[RenderableType] = [_row(node, depth, now, columns)]
    width -= _GUIDES * depth + 2
    lines += _ranks_and_progress(node.record, width) if node.status in _DETAILED else []
    lines += _curves(node.record, width) if node.status in _ACTIVE else []
    return [*lines, *(_note(text) for text in list(node.record.notes)[-_NOTES:])]


def _row(node: Node, depth: int, now: float, columns: _Columns) -> Text:
    status, step = node.status, node.record
    name = Text(plain(node.name), style="bold" if status in _ACTIVE else "", end="")
    # Do not shorten a name: a user types it after `allranks logs` and `allranks cancel`.
    name.pad_right(max(columns.name - _GUIDES * depth - len(name), 0))
    row = Text.assemble(symbol(status), " ", name, "  ", no_wrap=True, overflow="ellipsis")
    row.append_text(word(status)).append(" " * (columns.status - len(str(status)) + 2))
    if columns.layout:
        row.append(node_layout(node).ljust(columns.layout), style="bright_black").append("  ")
    if step.reused_from:
        row.append(f"reused from {plain(step.reused_from)}", style="cyan")
    elif status == Status.NOT_STARTED:
        row.append("after " + ", ".join(plain(name) for name in step.needs) if step.needs else "", style="bright_black")
    elif status != Status.SKIPPED:
        time = duration(elapsed(step, now), whole=not status.ended)
        row.append(time.rjust(11) if columns.layout else time)
        if status == Status.RUNNING and (usage := current_usage(step)):
            row.append(f"  {usage}", style="bright_black")
    if step.attempt:
        row.append(f"  attempt {step.attempt + 1}", style="yellow")
    if node.children and status is Status.COMPLETED and (metric := best_metric(steps_of(node))):
        row.append(f"  {plain(metric[0])} ", style="bright_black").append(number(metric[1].value), style="bold")
    return row


def _ranks_and_progress(step: StepRecord, width: int) -> list[RenderableType]:
    ranks = _ranks_line(step, width) if len(step.ranks) > 1 else Text()
    progress = _progress(step) if step.status in _ACTIVE else []
    beside = bool(progress and ranks and len(ranks) + 40 <= width)
    lines: list[RenderableType] = []
    if ranks and not beside:
        lines.append(Text.assemble("  ", ranks, no_wrap=True, overflow="ellipsis"))
    if progress:
        line = Table.grid(padding=(0, 1), expand=False)
        line.add_row("", *([ranks] if beside else []), *progress)
        lines.append(line)
    return lines


def _progress(step: StepRecord) -> list[RenderableType]:
    progress = step.progress
    # A step may report metrics without progress.
    if progress is None or not (progress.done or progress.total):
        return []
    done = f"{progress.done:,}" + (f"/{progress.total:,}" if progress.total else " steps")
    epoch = f"epoch {progress.epoch}" if progress.epoch is not None else ""
    left = f"{duration(seconds, whole=True)} left" if (seconds := remaining(step)) else ""
    line = "  ".join(filter(None, (done, epoch, left)))
    text = Text(line, style="bright_black", no_wrap=True, overflow="ellipsis")
    bar = ProgressBar(progress.total, progress.done, width=24, complete_style="blue", finished_style="green")
    return [bar, text] if progress.total else [text]


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


def _note(text: str) -> Text:
    return Text.assemble(("  note  ", "cyan"), (plain(text), "bright_black"))


def sparkline(points: Sequence[Point], width: int) -> str:
    """Return the curve in at most `width` characters, with ``×`` for values that are not finite; "" for one point."""
    if len(points) < 2 or width < 1:
        return ""
    values = buckets(points, width)
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    # Halved, because the difference of two finite numbers may be infinite.
    span = high / 2 - low / 2
    shares = ((value / 2 - low / 2) / span if span else value - low for value in values)
    last = len(_LEVELS) - 1
    return "".join(_LEVELS[min(int(share * (last + 1)), last)] if math.isfinite(share) else "×" for share in shares)


def _ranks_line(step: StepRecord, width: int) -> Text:
    """Return one glyph per rank, with spaces between instances if the width allows; counts if there are many ranks."""
    ranks = sorted(step.ranks, key=lambda rank: rank.rank)
    if len(ranks) > min(_MOST, width):
        tally = Counter(rank.status for rank in ranks)
        return Text("  ").join(_counted(status, f"{tally[status]:,}") for status in Status if tally[status])
    instances = [list(group) for _, group in groupby(ranks, key=lambda rank: rank.instance_rank)]
    apart = " " if len(ranks) + len(instances) - 1 <= width else ""
    return Text(apart).join(Text().join(symbol(rank.status) for rank in group) for group in instances)


def _counted(status: Status, amount: str) -> Text:
    return Text.assemble(symbol(status), (f" {amount} {status}", STYLES[status]))


class Line(NamedTuple):
    """A node with a line."""

    node: Node
    depth: int


class More(NamedTuple):
    """Completed iterations that are counted, not listed."""

    amount: int
    depth: int

    def __str__(self) -> str:
        return f"... {self.amount:,} more"


def lines_of(nodes: Sequence[Node], room: int | None = None) -> list[Line | More]:
    """Return the lines of the nodes in order. Completed iterations are folded, other groups are open.

    room: number of lines above which completed groups of every kind are folded; None: no limit
    """
    lines = _lines_of(nodes, groups=False)
    if room is not None and len(lines) > room and any(line.depth for line in lines):
        return _lines_of(nodes, groups=True)
    return lines


def _lines_of(nodes: Sequence[Node], *, groups: bool) -> list[Line | More]:
    """Return the lines. groups: whether to fold completed groups other than iterations"""
    lines: list[Line | More] = []
    pending = _stacked(nodes, 0)
    while pending:
        line = pending.pop()
        lines.append(line)
        if isinstance(line, Line) and line.node.status is not Status.SKIPPED:
            folds = line.node.status is Status.COMPLETED and (groups or line.node.is_iteration)
            pending += [] if folds else _stacked(line.node.children, line.depth + 1)
    return lines


def _stacked(nodes: Sequence[Node], depth: int) -> list[Line | More]:
    """Return the lines of siblings in reverse order."""
    done = [node.path for node in nodes if node.is_iteration and node.status is Status.COMPLETED]
    counted = set(done[:-ITERATIONS])
    lines: list[Line | More] = [Line(node, depth) for node in reversed(nodes) if node.path not in counted]
    return [*lines, More(len(counted), depth)] if counted else lines
