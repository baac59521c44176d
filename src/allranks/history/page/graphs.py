"""The graphs of a run on its page: one for each scope, with the branches of its conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from allranks.history.layers import Layers
from allranks.history.nested import walk
from allranks.history.page.items import Item, chosen
from allranks.history.records import Status

RUN = -1
"""The place of the run, the outermost scope."""
_LARGEST = 300
"""Maximum nodes of a scope that is drawn as a graph. A larger scope is shown as a list."""
_MOST_EDGES = 5000
_BUDGET = 1000
"""Maximum nodes of a page that are drawn in graphs."""
_LISTED = 4000
"""Maximum nodes of a page in graphs, or in lists instead of a graph."""
_SIDEWAYS = 5
"""Maximum layers of a graph that runs sideways. A deeper graph runs downwards."""
_LARGE = 24
"""Maximum nodes that are drawn large."""


class Branch(NamedTuple):
    """The branch of a condition that contains a node. outcome: ``true`` or ``false``"""

    condition: str
    outcome: str
    taken: bool

    @property
    def text(self) -> str:
        return f"branch {self.outcome} of {self.condition}, {'taken' if self.taken else 'not taken'}"


class Node(NamedTuple):
    """A node and the upper left corner of its box, in pixels."""

    item: Item
    x: float
    y: float


class Edge(NamedTuple):
    """An arrow between two nodes.

    path:   the data of an SVG path
    branch: the branch that it represents; None for other edges
    x, y:   position of a label before the arrow's head: on its left, or on its right in a downward graph
    """

    path: str
    branch: Branch | None
    x: float
    y: float


class Graph(NamedTuple):
    """A graph of a scope. small: whether its boxes only have room for names"""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    box_width: int
    box_height: int
    width: float
    height: float
    small: bool
    downwards: bool


class Graphs(NamedTuple):
    """The graphs of a page.

    by_place: by the place of the item that contains the scope, `RUN` for the run. Other scopes are shown as lists
    listed:   the places of the nodes that fit in a graph or in a list
    """

    by_place: Mapping[int, Graph]
    listed: frozenset[int]

    def nodes(self, items: Iterable[Item]) -> list[Item]:
        """Return the items that fit on the page."""
        return [item for item in items if item.place in self.listed]


def graphs(roots: Sequence[Item]) -> Graphs:
    """Return the graphs that fit on a page. A loop has none: its iterations are a list.

    Scopes that failed or are running come first.
    """
    listed = chosen(roots, _LISTED)
    groups = [item for item in walk(roots) if len(item.children) > 1 and not item.is_loop]
    groups = [item for item in groups if all(child.place in listed for child in item.children)]
    drawn = chosen(roots, _BUDGET, lambda item: 0 if item.is_iteration else 1)
    groups.sort(key=lambda item: (not item.needs_attention, item.children[-1].place not in drawn, item.place))
    by_place: dict[int, Graph] = {}
    budget = _BUDGET
    for place, items in [(RUN, list(roots)), *((group.place, group.children) for group in groups)]:
        edges = sum(len(item.record.needs) for item in items)
        if items and len(items) <= min(_LARGEST, budget) and edges <= _MOST_EDGES:
            budget -= len(items)
            by_place[place] = graph(items)
    return Graphs(by_place, listed)


def branches(items: Iterable[Item]) -> dict[tuple[str, str], Branch]:
    """Return the branches of the decided conditions of a scope, by the paths of condition and node.

    A skipped node is in the branch that was not taken, unless the skip may have another cause.
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
    """Return a condition's decision; None for a condition without one, and for any other node."""
    if item.record.kind != "condition" or item.status is not Status.COMPLETED:
        return None
    return {"true": True, "false": False}.get(item.record.inputs.get("condition", "").strip().lower())


def graph(items: Sequence[Item]) -> Graph:
    """Lay out the nodes, which must be in the order of their needs. Other needs are ignored."""
    layers = Layers({item.record.name: item.record.needs for item in items})
    downwards = layers.depth > _SIDEWAYS
    small = len(items) > _LARGE
    box = (132, 26) if small else (172, 50)
    layers.arrange(box[downwards], box[not downwards], 30 if downwards else 44)
    depth, lowest, highest = layers.extent

    def point(along: float, across: float) -> tuple[float, float]:
        pair = (round(along + 1, 1), round(across - lowest + 1, 1))
        return (pair[1], pair[0]) if downwards else pair

    nodes = [
        Node(item, *point(vertex.along - vertex.depth / 2, vertex.across - vertex.breadth / 2))
        for item, vertex in zip(items, layers.vertices, strict=True)
    ]
    by_names = branches(items)
    edges = []
    for chain in layers.chains:
        ends = [point(vertex.along + side * vertex.depth / 2, vertex.across) for vertex in chain for side in (-1, 1)]
        x, y = ends[-2]
        x, y = (x + 7, y - 9) if downwards else (x - 10, y - 5)
        branch = by_names.get((chain[0].name, chain[-1].name))
        edges.append(Edge(_path(ends[1:-1], downwards), branch, round(x, 1), round(y, 1)))
    size = (highest - lowest + 2, depth + 2) if downwards else (depth + 2, highest - lowest + 2)
    return Graph(tuple(nodes), tuple(edges), *box, round(size[0], 1), round(size[1], 1), small, downwards)


def _path(points: Sequence[tuple[float, float]], downwards: bool) -> str:
    """Return a path that starts and ends along the layers' direction, straight in a layer and curved between layers."""
    (x, y), rest = points[0], points[1:]
    data = [f"M{x} {y}"]
    for index, (to_x, to_y) in enumerate(rest):
        if index % 2:
            data.append(f"L{to_x} {to_y}")
        elif downwards:
            middle = round((y + to_y) / 2, 1)
            data.append(f"C{x} {middle} {to_x} {middle} {to_x} {to_y}")
        else:
            middle = round((x + to_x) / 2, 1)
            data.append(f"C{middle} {y} {middle} {to_y} {to_x} {to_y}")
        x, y = to_x, to_y
    return "".join(data)
