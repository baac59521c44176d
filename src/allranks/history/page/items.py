"""The nodes of a run on its page: each with its record, status, layout, and whether it is unfolded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import NamedTuple

from allranks.history.curves import best_metric
from allranks.history.formatting import node_layout
from allranks.history.nested import nested, steps_of, walk
from allranks.history.records import RankRecord, Status, StepRecord
from allranks.text import count, number

ATTENTION = frozenset({Status.FAILED, Status.RUNNING, Status.PREPARING, Status.INTERRUPTED, Status.CANCELED})
"""Statuses of the nodes that are shown first if the page is too small for all nodes."""
_UNFOLDED = frozenset({Status.FAILED, Status.RUNNING, Status.PREPARING, Status.INTERRUPTED})
_DEEPEST = 25
"""Maximum nesting levels on a page. Deeper nodes are shown side by side, named by their paths."""
_MOST_UNFOLDED = 12
"""Maximum groups that are unfolded initially."""
_MOST_FAILED = 3
"""Maximum failed steps that are unfolded initially."""
STEPS = 200
"""Maximum steps in a list without folds."""
ITERATIONS = 20
"""Maximum iterations of a loop, or other groups, in a list without folds."""
_SMALLEST_FOLD = 4
"""Minimum items of a fold."""
_BUDGET = 6_000
"""Maximum lines of a page for inputs, outputs and ranks."""


@dataclass(eq=False)
class Item:
    """A node of the run.

    place:   its number in the run, each group before its contents
    record:  as of `nested.Node`
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
        metric = best_metric(steps_of(node)) if node.is_iteration else None
        metric_text = f"{metric[0]} {number(metric[1].value)}" if metric else ""
        is_deep = depths[id(node)] >= _DEEPEST
        name = node.path if is_deep else node.name
        inner = [] if is_deep else children
        item = Item(place, name, node.record, inner, node.is_iteration, node_layout(node), metric_text)
        built[id(node)] = [item, *children] if is_deep else [item]
    top = [built[id(root)][0] for root in roots]
    groups = (item for item in walk(top) if item.children and item.status in _UNFOLDED)
    failed = (item for item in walk(top) if not item.children and item.status is Status.FAILED)
    for item in [*islice(groups, _MOST_UNFOLDED), *islice(failed, _MOST_FAILED)]:
        item.is_open = True
    return top


class Stretch(NamedTuple):
    """Consecutive siblings. summary: the text of the fold that contains them; "" if they are not folded"""

    items: tuple[Item, ...]
    summary: str = ""


def stretches(items: Sequence[Item]) -> list[Stretch]:
    """Split siblings into stretches that are shown and stretches that are folded.

    The first and last items are shown, and items that failed or are running. If there are few items, all are shown.
    """
    groups = sum(bool(item.children) for item in items)
    limit = ITERATIONS if 2 * groups > len(items) else STEPS
    if len(items) <= limit + _SMALLEST_FOLD:
        return [Stretch(tuple(items))] if items else []
    shown = set(range(limit // 4)) | set(range(len(items) - limit // 4, len(items)))
    urgent = (place for place, item in enumerate(items) if item.needs_attention)
    shown |= {place for place, _ in zip(urgent, range(limit // 2), strict=False)}
    result: list[Stretch] = []
    for is_shown, run in groupby(enumerate(items), lambda pair: pair[0] in shown):
        members = tuple(item for _, item in run)
        folds = not is_shown and len(members) >= _SMALLEST_FOLD
        result.append(Stretch(members, f"… {len(members):,} more: {states(members)}" if folds else ""))
    return result


def states(items: Iterable[Item | RankRecord]) -> str:
    """Return how many items or ranks have each status: ``990 Completed, 3 Failed``."""
    counts = Counter(item.status for item in items)
    return ", ".join(f"{times:,} {status.label}" for status, times in counts.most_common())


def runs(items: Iterable[Item]) -> list[tuple[bool, list[Item]]]:
    """Split siblings into single groups (True) and sequences of consecutive steps (False)."""
    result: list[tuple[bool, list[Item]]] = []
    for item in items:
        if item.children or not result or result[-1][0]:
            result.append((bool(item.children), [item]))
        else:
            result[-1][1].append(item)
    return result


def chosen(roots: Sequence[Item], budget: float, cost: Callable[[Item], float] = lambda _: 1) -> frozenset[int]:
    """Return the places of the items that fit on a page.

    Items that failed or are running come first, then items that `stretches` does not fold.
    """
    order: list[tuple[bool, int, int, float]] = []
    stack = [(roots, 0)]
    while stack:
        siblings, folds = stack.pop()
        for stretch in stretches(siblings):
            depth = folds + bool(stretch.summary)
            for item in stretch.items:
                order.append((not item.needs_attention, depth, item.place, cost(item)))
                if item.children:
                    stack.append((item.children, depth))
    places = []
    for _, _, place, amount in sorted(order):
        budget -= amount
        if budget < 0:
            break
        places.append(place)
    return frozenset(places)


class Details(NamedTuple):
    """The details of a page.

    full:     the places of the items that are described in full
    nested:   whether the run has groups
    left_out: a line about the other items
    """

    full: frozenset[int]
    nested: bool
    left_out: str


def details(items: Sequence[Item], run_id: str) -> Details:
    """Return the items whose details fit on the page. Items that failed or are running come first."""

    def lines(item: Item) -> int:
        return 1 + len(item.record.inputs) + len(item.record.outputs) + len(item.record.ranks)

    all_items = list(walk(items))
    full = chosen(items, _BUDGET, lines)
    rest = len(all_items) - len(full)
    left_out = f"Inputs, outputs and ranks of {count(rest, 'step')}: allranks show {run_id} STEP" if rest else ""
    return Details(full, any(item.children for item in all_items), left_out)
