"""Decide which nodes of a run get a line and which are folded into the line of their group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from allranks.runs.nested import Node
from allranks.runs.records import Status

ITERATIONS = 7
"""Number of completed iterations of a loop that are listed; earlier ones are counted."""

_DONE = (Status.COMPLETED, Status.SKIPPED)


class Line(NamedTuple):
    """A node with its own line. opened: whether its children follow."""

    node: Node
    depth: int
    opened: bool


class More(NamedTuple):
    """Completed iterations that are counted, not listed."""

    amount: int
    depth: int


def more_text(line: More) -> str:
    """Return ``... 993 more``."""
    return f"... {line.amount:,} more"


def lines_of(nodes: Sequence[Node], room: int | None = None) -> list[Line | More]:
    """Return the lines of the nodes in order. Completed iterations are folded, other groups are open.

    room: number of lines above which completed groups of every kind are folded; None: no limit
    """
    lines = _lines_of(nodes, groups=False)
    if room is not None and len(lines) > room and any(line.depth for line in lines):
        return _lines_of(nodes, groups=True)
    return lines


def _lines_of(nodes: Sequence[Node], *, groups: bool) -> list[Line | More]:
    """Return the lines. groups: whether completed groups other than iterations are folded"""
    lines: list[Line | More] = []
    pending = _stacked(nodes, 0)
    while pending:
        line = pending.pop()
        if isinstance(line, Line) and line.node.children and not _is_folded(line.node, groups):
            lines.append(line._replace(opened=True))
            pending += _stacked(line.node.children, line.depth + 1)
        else:
            lines.append(line)
    return lines


def _stacked(nodes: Sequence[Node], depth: int) -> list[Line | More]:
    """Return the lines of siblings in reverse order."""
    done = [node.path for node in nodes if node.is_iteration and node.status is Status.COMPLETED]
    counted = set(done[:-ITERATIONS])
    lines: list[Line | More] = [Line(node, depth, False) for node in reversed(nodes) if node.path not in counted]
    return [*lines, More(len(counted), depth)] if counted else lines


def _is_folded(node: Node, groups: bool) -> bool:
    status = node.status
    return status is Status.SKIPPED or (status in _DONE and (groups or node.is_iteration))
