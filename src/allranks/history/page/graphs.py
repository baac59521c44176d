"""The graphs of a run on its page: one for each scope, with the branches of its conditions.

The nodes of a graph are in layers. Every edge leads from a layer to a later one, and few edges cross.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from operator import attrgetter
from typing import NamedTuple

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
_BENDS = 2000
"""Maximum bends of a graph's edges around nodes. A graph that needs more has straight edges."""
_SWEEPS = 8
_GAP = 14


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


@dataclass(eq=False)
class _Vertex:
    """A node, or a bend of an edge in a layer if the item is None.

    depth, breadth: its size along the edges and across them
    along, across:  its centre
    """

    layer: int
    item: Item | None = None
    before: list[_Vertex] = field(default_factory=list)
    after: list[_Vertex] = field(default_factory=list)
    depth: float = 0.0
    breadth: float = 8.0
    along: float = 0.0
    across: float = 0.0


def graph(items: Sequence[Item]) -> Graph:
    """Lay out the nodes, which must be in the order of their needs. Other needs are ignored."""
    vertices, chains = _vertices(items)
    every = [*vertices, *(bend for chain in chains for bend in chain[1:-1])]
    layers = [list(layer) for _, layer in groupby(sorted(every, key=attrgetter("layer")), attrgetter("layer"))]
    downwards = len(layers) > _SIDEWAYS
    small = len(items) > _LARGE
    box = (132, 26) if small else (172, 50)
    for vertex in vertices:
        vertex.depth, vertex.breadth = (box[1], box[0]) if downwards else box
    _order(layers)
    _align(layers)
    depth = _stack(layers, 30 if downwards else 44)
    lowest = min((vertex.across - vertex.breadth / 2 for vertex in every), default=0.0)
    highest = max((vertex.across + vertex.breadth / 2 for vertex in every), default=0.0)

    def point(along: float, across: float) -> tuple[float, float]:
        pair = (round(along + 1, 1), round(across - lowest + 1, 1))
        return (pair[1], pair[0]) if downwards else pair

    nodes = [
        Node(vertex.item, *point(vertex.along - vertex.depth / 2, vertex.across - vertex.breadth / 2))
        for vertex in vertices
        if vertex.item is not None
    ]
    by_names = branches(items)
    edges = []
    for chain in chains:
        ends = [point(vertex.along + side * vertex.depth / 2, vertex.across) for vertex in chain for side in (-1, 1)]
        x, y = ends[-2]
        x, y = (x + 7, y - 9) if downwards else (x - 10, y - 5)
        source, target = (vertex.item.record.name for vertex in (chain[0], chain[-1]) if vertex.item is not None)
        branch = by_names.get((source, target))
        edges.append(Edge(_path(ends[1:-1], downwards), branch, round(x, 1), round(y, 1)))
    size = (highest - lowest + 2, depth + 2) if downwards else (depth + 2, highest - lowest + 2)
    return Graph(tuple(nodes), tuple(edges), *box, round(size[0], 1), round(size[1], 1), small, downwards)


def _vertices(items: Sequence[Item]) -> tuple[list[_Vertex], list[list[_Vertex]]]:
    """Return the vertices of the nodes, and for each edge a chain of vertices: its start, its bends, its end."""
    # Only earlier nodes count, so the graph is acyclic, whatever the record contains.
    places: dict[str, _Vertex] = {}
    edges: dict[tuple[_Vertex, _Vertex], None] = {}
    for item in items:
        sources = [places[name] for name in item.record.needs if name in places]
        vertex = places[item.record.name] = _Vertex(max((each.layer + 1 for each in sources), default=0), item)
        edges |= {(source, vertex): None for source in sources}
    bend = sum(target.layer - source.layer - 1 for source, target in edges) <= _BENDS
    chains = []
    for source, target in edges:
        between = range(source.layer + 1, target.layer) if bend else ()
        chains.append([source, *(_Vertex(layer) for layer in between), target])
        for first, second in pairwise(chains[-1]):
            first.after.append(second)
            second.before.append(first)
    return list(places.values()), chains


def _order(layers: list[list[_Vertex]]) -> None:
    """Sort each layer by the mean position of its neighbours, forwards and backwards, which removes most crossings."""
    for sweep in range(-1, _SWEEPS):  # the first one only numbers the vertices
        forwards = sweep % 2 == 0
        for layer in layers if forwards else reversed(layers):
            if sweep >= 0:
                means = {vertex: _mean(vertex.before if forwards else vertex.after, vertex) for vertex in layer}
                layer.sort(key=means.__getitem__)
            for index, vertex in enumerate(layer):
                vertex.across = float(index)


def _mean(neighbours: Sequence[_Vertex], vertex: _Vertex) -> float:
    return sum(other.across for other in neighbours) / len(neighbours) if neighbours else vertex.across


def _align(layers: list[list[_Vertex]]) -> None:
    """Move every vertex towards its neighbours, without overlaps in its layer."""
    for layer in layers:
        offsets = _offsets(layer)
        for vertex, offset in zip(layer, offsets, strict=True):
            vertex.across = offset - offsets[-1] / 2
    for sweep in range(_SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            offsets = _offsets(layer)
            targets = [
                _mean([*vertex.before, *vertex.after], vertex) - offset
                for vertex, offset in zip(layer, offsets, strict=True)
            ]
            weights = [4.0 if vertex.item else 1.0 for vertex in layer]
            for vertex, target, offset in zip(layer, _rising(targets, weights), offsets, strict=True):
                vertex.across = target + offset


def _offsets(layer: Sequence[_Vertex]) -> list[float]:
    """Return the distance of each vertex from the first one in the closest permitted arrangement."""
    offsets = [0.0]
    for first, second in pairwise(layer):
        offsets.append(offsets[-1] + (first.breadth + second.breadth) / 2 + _GAP)
    return offsets


def _rising(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return the weighted least-squares fit by a non-decreasing sequence (pool adjacent violators)."""
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights, strict=True):
        pools.append((value, weight, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (first, first_weight, first_count), (second, second_weight, second_count) = pools[-2:]
            total = first_weight + second_weight
            mean = (first * first_weight + second * second_weight) / total
            pools[-2:] = [(mean, total, first_count + second_count)]
    return [value for value, _, count in pools for _ in range(count)]


def _stack(layers: list[list[_Vertex]], gap: float) -> float:
    """Place the layers one behind the other. Bends get the depth of their layer. Return the total depth."""
    start = 0.0
    for layer in layers:
        depth = max(vertex.depth for vertex in layer)
        for vertex in layer:
            vertex.along = start + depth / 2
            vertex.depth = vertex.depth if vertex.item else depth
        start += depth + gap
    return max(start - gap, 0.0)


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
