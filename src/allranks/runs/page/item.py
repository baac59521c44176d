"""The nodes of a run on its page: each with its record, status, layout, and whether it is unfolded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from allranks.runs.curves import best_metric
from allranks.runs.formatting import node_layout, number
from allranks.runs.nested import Node, nested, steps_of, walk
from allranks.runs.records import Status, StepRecord

ATTENTION = frozenset({Status.FAILED, Status.RUNNING, Status.PREPARING, Status.INTERRUPTED, Status.CANCELED})
"""Statuses of nodes that are shown before others if there is no room for all."""
_UNFOLDED = frozenset({Status.FAILED, Status.RUNNING, Status.PREPARING, Status.INTERRUPTED})
_DEEPEST = 25
"""Maximum nesting levels on a page. Deeper nodes are shown side by side, with their path as the name."""
_MOST_UNFOLDED = 12
"""Maximum groups of a page that are unfolded initially."""
_MOST_FAILED = 3
"""Maximum failed steps of a page that are unfolded initially."""


@dataclass(eq=False)
class Item:
    """A node of the run.

    place:   its number in the run, each group before its contents
    record:  its own; for a loop or an iteration without one, a record derived from those of its steps
    layout:  of a step; for a group, the number of its nodes
    metric:  the most relevant metric of an iteration, such as ``accuracy 0.97``; "" for other nodes
    is_open: whether it is unfolded initially
    """

    place: int
    name: str
    record: StepRecord
    children: list[Item]
    is_iteration: bool = False
    layout: str = ""
    metric: str = ""
    is_open: bool = False

    @property
    def status(self) -> Status:
        return self.record.status

    @property
    def is_loop(self) -> bool:
        """Whether its children are iterations."""
        return bool(self.children) and all(child.is_iteration for child in self.children)

    @property
    def needs_attention(self) -> bool:
        return self.record.status in ATTENTION


def items_of(steps: Iterable[StepRecord]) -> list[Item]:
    """Return the roots of the tree of the steps, in time linear in their number."""
    roots = nested(steps)
    nodes = list(walk(roots))
    depths = {id(root): 0 for root in roots}
    for node in nodes:
        depths.update((id(child), depths[id(node)] + 1) for child in node.children)
    # Each item, followed by the deeper items that were moved up to its level.
    built: dict[int, list[Item]] = {}
    for place in range(len(nodes) - 1, -1, -1):
        node = nodes[place]
        children = [item for child in node.children for item in built.pop(id(child))]
        record = node.record or _derived(node)
        metric = best_metric(steps_of(node)) if node.is_iteration else None
        metric_text = f"{metric[0]} {number(metric[1].value)}" if metric else ""
        is_deep = depths[id(node)] >= _DEEPEST
        name = node.path if is_deep else node.name
        item = Item(place, name, record, [] if is_deep else children, node.is_iteration, node_layout(node), metric_text)
        built[id(node)] = [item, *children] if is_deep else [item]
    top = [built[id(root)][0] for root in roots]
    groups = (item for item in walk_items(top) if item.children and item.status in _UNFOLDED)
    failed = (item for item in walk_items(top) if not item.children and item.status is Status.FAILED)
    for item in [*islice(groups, _MOST_UNFOLDED), *islice(failed, _MOST_FAILED)]:
        item.is_open = True
    return top


def walk_items(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items and everything below them, each group before its contents."""
    stack = list(items)[::-1]
    while stack:
        item = stack.pop()
        yield item
        stack.extend(reversed(item.children))


def _derived(node: Node) -> StepRecord:
    kind = "iteration" if node.is_iteration else "loop"
    return StepRecord(
        node.path, node.name, "", "none", 1, 1, status=node.status, started=node.started, ended=node.ended, kind=kind
    )
