"""The graphs of a run on its page: one for each scope, with the branches that its conditions took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from allranks.history.page.graph_layout import Edge, Graph, graph
from allranks.history.page.items import Item, chosen, walk_items
from allranks.history.records import Status

RUN = -1
"""The place of the run itself, the outermost scope."""
_LARGEST = 300
"""Maximum nodes of a scope that is drawn as a graph; a larger one is shown as a list."""
_MOST_EDGES = 5000
_BUDGET = 1000
"""Maximum nodes of a page that are drawn in graphs."""
_LISTED = 4000
"""Maximum nodes of a page in graphs, or in lists instead of a graph."""


@dataclass(frozen=True)
class Branch:
    """The branch of a condition that contains a node. outcome: ``true`` or ``false``"""

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
    edges: each edge with the branch that it represents; None for other edges
    """

    graph: Graph
    items: Mapping[str, Item]
    edges: tuple[tuple[Edge, Branch | None], ...]


@dataclass(frozen=True)
class Drawings:
    """The graphs of a page.

    by_place: by the place of the item that contains the scope; `RUN` is the run's own. Other scopes are shown as lists.
    listed:   the places of the nodes that fit in a graph or in a list
    """

    by_place: Mapping[int, Drawing]
    listed: frozenset[int]

    def nodes(self, items: Iterable[Item]) -> list[Item]:
        """Return the items that fit on the page."""
        return [item for item in items if item.place in self.listed]


def drawings(roots: Sequence[Item]) -> Drawings:
    """Return the graphs that fit on a page. A loop has none: its iterations are a list.

    Scopes that failed or are running come first.
    """
    listed = chosen(roots, _LISTED)
    groups = [item for item in walk_items(roots) if len(item.children) > 1 and not item.is_loop]
    groups = [item for item in groups if all(child.place in listed for child in item.children)]
    drawn = chosen(roots, _BUDGET, lambda item: 0 if item.is_iteration else 1)
    groups.sort(key=lambda item: (not item.needs_attention, item.children[-1].place not in drawn, item.place))
    by_place: dict[int, Drawing] = {}
    budget = _BUDGET
    for place, items in [(RUN, list(roots)), *((group.place, group.children) for group in groups)]:
        edges = sum(len(item.record.needs) for item in items)
        if not items or len(items) > min(_LARGEST, budget) or edges > _MOST_EDGES:
            continue
        budget -= len(items)
        by_place[place] = _drawing(items)
    return Drawings(by_place, listed)


def branches(items: Iterable[Item]) -> dict[tuple[str, str], Branch]:
    """Return the branches of the decided conditions of a scope, by the paths of condition and node.

    A skipped node is in the branch that was not taken, unless something else may have caused the skip.
    """
    by_path = {item.record.name: item for item in items}
    result: dict[tuple[str, str], Branch] = {}
    for item in by_path.values():
        gates = [need for need in item.record.needs if need in by_path and outcome(by_path[need]) is not None]
        skipped = item.status is Status.SKIPPED
        left_out = [need for need in item.record.needs if need in by_path and by_path[need].status is Status.SKIPPED]
        if skipped and (len(gates) > 1 or left_out):
            continue
        for gate in gates:
            decided = outcome(by_path[gate])
            text = str(decided is not skipped).lower()
            result[gate, item.record.name] = Branch(by_path[gate].name, text, not skipped)
    return result


def outcome(item: Item) -> bool | None:
    """Return a condition's decision; None for a condition that has not decided, and for any other node."""
    if item.record.kind != "condition" or item.status is not Status.COMPLETED:
        return None
    return {"true": True, "false": False}.get(item.record.inputs.get("condition", "").strip().lower())


def _drawing(items: Sequence[Item]) -> Drawing:
    drawn = graph([item.record for item in items])
    by_edge = branches(items)
    edges = tuple((edge, by_edge.get((edge.source, edge.target))) for edge in drawn.edges)
    return Drawing(drawn, {item.record.name: item for item in items}, edges)
