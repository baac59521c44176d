"""How the page draws the graphs of a run: one for each scope, and the branches that its conditions took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from allranks.runs.page.fold import chosen
from allranks.runs.page.graph import Edge, Graph, graph
from allranks.runs.page.item import Item, walk_items
from allranks.runs.records import Status

RUN = -1
"""The place of the run itself, whose scope is the outermost."""
_LARGEST = 300
"""Nodes of a scope that are drawn as a graph; more are a list."""
_MOST_EDGES = 5000
_BUDGET = 1000
"""Nodes of a page that are drawn in graphs."""
_LISTED = 4000
"""Nodes of a page that are drawn or stand in a list in place of a graph."""


@dataclass(frozen=True)
class Branch:
    """The branch of a condition that a node is in. outcome: ``true`` or ``false``"""

    condition: str
    outcome: str
    taken: bool

    @property
    def text(self) -> str:
        return f"branch {self.outcome} of {self.condition}, {'taken' if self.taken else 'not taken'}"


@dataclass(frozen=True)
class Drawing:
    """The graph of a scope.

    items: its nodes by their paths
    edges: each edge with the branch that it is; None for other edges
    """

    graph: Graph
    items: Mapping[str, Item]
    edges: tuple[tuple[Edge, Branch | None], ...]


@dataclass(frozen=True)
class Drawings:
    """The graphs of a page.

    by_place: by the place of the item that holds it; `RUN` is the run's own. Of other scopes there is a list
    listed:   the places of the nodes that have room in a graph or in a list
    """

    by_place: Mapping[int, Drawing]
    listed: frozenset[int]

    def nodes(self, items: Iterable[Item]) -> list[Item]:
        """Return the items that have room."""
        return [item for item in items if item.place in self.listed]


def drawings(roots: Sequence[Item]) -> Drawings:
    """Return the graphs that a page has room for. A loop has none: its iterations are a list.

    Scopes that failed or are running come first.
    """
    listed = chosen(roots, _LISTED)
    groups = [item for item in walk_items(roots) if len(item.children) > 1 and not item.is_loop]
    groups = [item for item in groups if all(child.place in listed for child in item.children)]
    drawn = chosen(roots, _BUDGET, lambda item: 0 if item.is_iteration else 1)
    groups.sort(key=lambda item: (not item.needs_attention, item.children[-1].place not in drawn, item.place))
    found: dict[int, Drawing] = {}
    budget = _BUDGET
    for place, items in [(RUN, list(roots)), *((group.place, group.children) for group in groups)]:
        edges = sum(len(item.record.needs) for item in items)
        if not items or len(items) > min(_LARGEST, budget) or edges > _MOST_EDGES:
            continue
        budget -= len(items)
        found[place] = _drawing(items)
    return Drawings(found, listed)


def branches(items: Iterable[Item]) -> dict[tuple[str, str], Branch]:
    """Return the branches of the conditions of a scope that were decided, by the paths of condition and node.

    A node that was skipped is in the branch that was not taken, as far as nothing else can have been the reason.
    """
    by_path = {item.record.name: item for item in items}
    found: dict[tuple[str, str], Branch] = {}
    for item in by_path.values():
        gates = [need for need in item.record.needs if need in by_path and outcome(by_path[need]) is not None]
        skipped = item.status is Status.SKIPPED
        left_out = [need for need in item.record.needs if need in by_path and by_path[need].status is Status.SKIPPED]
        if skipped and (len(gates) > 1 or left_out):
            continue
        for gate in gates:
            decided = outcome(by_path[gate])
            text = str(decided is not skipped).lower()
            found[gate, item.record.name] = Branch(by_path[gate].name, text, not skipped)
    return found


def outcome(item: Item) -> bool | None:
    """Return what a condition decided. None for a condition that has not, and for any other node."""
    if item.record.kind != "condition" or item.status is not Status.COMPLETED:
        return None
    return {"true": True, "false": False}.get(item.record.inputs.get("condition", "").strip().lower())


def _drawing(items: Sequence[Item]) -> Drawing:
    drawn = graph([item.record for item in items])
    known = branches(items)
    edges = []
    for edge in drawn.edges:
        found = {known.get((source, target)) for source in edge.sources for target in edge.targets}
        edges.append((edge, found.pop() if len(found) == 1 else None))
    return Drawing(drawn, {item.record.name: item for item in items}, tuple(edges))
