"""Layout of the graph of a run's steps: steps in layers, every edge from a layer to a later one, few crossings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from allranks.history.records import StepRecord

_SIDEWAYS = 5
"""Maximum layers side by side on a page; a deeper graph runs downwards."""
_LARGE = 24
"""Maximum steps that are drawn large."""
_BENDS = 2000
"""Maximum bends of edges around steps; a graph that needs more is drawn without bends."""
_SWEEPS = 8
_GAP = 14


@dataclass(frozen=True)
class Node:
    """A step and its box's upper left corner, in pixels."""

    step: StepRecord
    x: float
    y: float


@dataclass(frozen=True)
class Edge:
    """An arrow between two steps.

    path:           the data of an SVG path
    source, target: names of steps
    x, y:           position of a label before the arrow's head: on its left, or on its right in a graph that runs
                    downwards
    """

    path: str
    source: str
    target: str
    x: float
    y: float


@dataclass(frozen=True)
class Graph:
    """small: whether a box has room for its name only"""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    box_width: int
    box_height: int
    width: float
    height: float
    small: bool
    downwards: bool


@dataclass(eq=False)
class _Vertex:
    """A step, or (step None) a point where an edge passes through a layer.

    depth, breadth: its size along the edges and across them
    along, across:  its centre
    """

    layer: int
    step: StepRecord | None = None
    before: list[_Vertex] = field(default_factory=list)
    after: list[_Vertex] = field(default_factory=list)
    depth: float = 0.0
    breadth: float = 8.0
    along: float = 0.0
    across: float = 0.0


def graph(steps: Sequence[StepRecord]) -> Graph:
    """Lay out the steps, whose order must put each after those that it needs. Other needs are ignored."""
    vertices, chains = _vertices(steps)
    bends = [bend for chain in chains for bend in chain[1:-1]]
    layers = _layers([*vertices, *bends])
    downwards = len(layers) > _SIDEWAYS
    small = len(steps) > _LARGE
    box = (132, 26) if small else (172, 50)
    for vertex in vertices:
        vertex.depth, vertex.breadth = (box[1], box[0]) if downwards else box
    _order(layers)
    _align(layers)
    depth = _stack(layers, 30 if downwards else 44)
    lowest = min((vertex.across - vertex.breadth / 2 for vertex in (*vertices, *bends)), default=0.0)
    highest = max((vertex.across + vertex.breadth / 2 for vertex in (*vertices, *bends)), default=0.0)

    def point(along: float, across: float) -> tuple[float, float]:
        pair = (round(along + 1, 1), round(across - lowest + 1, 1))
        return (pair[1], pair[0]) if downwards else pair

    nodes = [
        Node(vertex.step, *point(vertex.along - vertex.depth / 2, vertex.across - vertex.breadth / 2))
        for vertex in vertices
        if vertex.step is not None
    ]
    edges = []
    for chain in chains:
        ends = [point(vertex.along + side * vertex.depth / 2, vertex.across) for vertex in chain for side in (-1, 1)]
        x, y = ends[-2]
        label = (x + 7, y - 9) if downwards else (x - 10, y - 5)
        source, target = (vertex.step.name for vertex in (chain[0], chain[-1]) if vertex.step is not None)
        edges.append(Edge(_path(ends[1:-1], downwards), source, target, round(label[0], 1), round(label[1], 1)))
    size = (highest - lowest + 2, depth + 2) if downwards else (depth + 2, highest - lowest + 2)
    return Graph(tuple(nodes), tuple(edges), *box, round(size[0], 1), round(size[1], 1), small, downwards)


def _vertices(steps: Sequence[StepRecord]) -> tuple[list[_Vertex], list[list[_Vertex]]]:
    """Return the vertices that hold steps, and for each edge a chain of vertices: its start, its bends, its end."""
    # Only earlier steps count, so the graph is acyclic, whatever the record contains.
    places: dict[str, _Vertex] = {}
    edges: dict[tuple[_Vertex, _Vertex], None] = {}
    for step in steps:
        sources = [places[name] for name in step.needs if name in places]
        vertex = places[step.name] = _Vertex(max((source.layer + 1 for source in sources), default=0), step)
        edges |= {(source, vertex): None for source in sources}
    return list(places.values()), _chains(list(edges))


def _chains(edges: list[tuple[_Vertex, _Vertex]]) -> list[list[_Vertex]]:
    bend = sum(target.layer - source.layer - 1 for source, target in edges) <= _BENDS
    chains = []
    for source, target in edges:
        between = range(source.layer + 1, target.layer) if bend else ()
        chain = [source, *(_Vertex(layer) for layer in between), target]
        for first, second in pairwise(chain):
            first.after.append(second)
            second.before.append(first)
        chains.append(chain)
    return chains


def _layers(vertices: Iterable[_Vertex]) -> list[list[_Vertex]]:
    layers: dict[int, list[_Vertex]] = {}
    for vertex in vertices:
        layers.setdefault(vertex.layer, []).append(vertex)
    return [layers[layer] for layer in sorted(layers)]


def _order(layers: list[list[_Vertex]]) -> None:
    """Sort each layer by the mean position of its neighbours, forwards and backwards. This removes most crossings."""
    for layer in layers:
        _number(layer)
    for sweep in range(_SWEEPS):
        forwards = sweep % 2 == 0
        for layer in layers if forwards else reversed(layers):
            means = {vertex: _mean(vertex.before if forwards else vertex.after, vertex) for vertex in layer}
            layer.sort(key=means.__getitem__)
            _number(layer)


def _number(layer: list[_Vertex]) -> None:
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
            weights = [4.0 if vertex.step else 1.0 for vertex in layer]
            for vertex, target, offset in zip(layer, _rising(targets, weights), offsets, strict=True):
                vertex.across = target + offset


def _offsets(layer: Sequence[_Vertex]) -> list[float]:
    """Return the distance of each vertex from the first when all are as close as permitted."""
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
            vertex.depth = vertex.depth if vertex.step else depth
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
