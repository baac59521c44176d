"""Lay out a graph in layers. Every edge leads from a layer to a later one, and few edges cross."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from operator import attrgetter

_BENDS = 2000
"""Maximum bends of a graph's edges around nodes. A graph that needs more has straight edges."""
_SWEEPS = 8
_GAP = 14


@dataclass(eq=False)
class Vertex:
    """A node, or a bend of an edge in a layer if it has no name.

    depth, breadth: its size along the edges and across them
    along, across:  its centre
    """

    layer: int
    name: str = ""
    before: list[Vertex] = field(default_factory=list)
    after: list[Vertex] = field(default_factory=list)
    depth: float = 0.0
    breadth: float = 8.0
    along: float = 0.0
    across: float = 0.0


class Layers:
    """The nodes of a graph in layers. needs: the nodes that each node depends on. They must be in this order; other
    needs are ignored.

    vertices: of the nodes, in the given order
    chains:   of each edge: the vertices of its start, its bends and its end
    depth:    the number of layers
    extent:   after `arrange`: the size along the edges, and the lowest and highest place across them
    """

    def __init__(self, needs: Mapping[str, Iterable[str]]) -> None:
        # Only earlier nodes count, so the graph is acyclic, whatever a record contains.
        places: dict[str, Vertex] = {}
        edges: dict[tuple[Vertex, Vertex], None] = {}
        for name, sources in needs.items():
            before = [places[source] for source in sources if source in places]
            vertex = places[name] = Vertex(max((each.layer + 1 for each in before), default=0), name)
            edges |= {(source, vertex): None for source in before}
        bend = sum(target.layer - source.layer - 1 for source, target in edges) <= _BENDS
        self.chains: list[list[Vertex]] = []
        for source, target in edges:
            between = range(source.layer + 1, target.layer) if bend else ()
            self.chains.append([source, *(Vertex(layer) for layer in between), target])
            for first, second in pairwise(self.chains[-1]):
                first.after.append(second)
                second.before.append(first)
        self.vertices = list(places.values())
        self._every = [*self.vertices, *(bend for chain in self.chains for bend in chain[1:-1])]
        self._every.sort(key=attrgetter("layer"))
        self._layers = [list(layer) for _, layer in groupby(self._every, attrgetter("layer"))]
        self.depth = len(self._layers)
        self.extent = (0.0, 0.0, 0.0)

    def arrange(self, depth: float, breadth: float, gap: float) -> None:
        """Place the vertices. depth, breadth: of each node; gap: between layers"""
        for vertex in self.vertices:
            vertex.depth, vertex.breadth = depth, breadth
        _order(self._layers)
        _align(self._layers)
        lowest = min((vertex.across - vertex.breadth / 2 for vertex in self._every), default=0.0)
        highest = max((vertex.across + vertex.breadth / 2 for vertex in self._every), default=0.0)
        self.extent = (_stack(self._layers, gap), lowest, highest)


def _order(layers: list[list[Vertex]]) -> None:
    """Sort each layer by the mean position of its neighbours, forwards and backwards, which removes most crossings."""
    for sweep in range(-1, _SWEEPS):  # the first one only numbers the vertices
        forwards = sweep % 2 == 0
        for layer in layers if forwards else reversed(layers):
            if sweep >= 0:
                means = {vertex: _mean(vertex.before if forwards else vertex.after, vertex) for vertex in layer}
                layer.sort(key=means.__getitem__)
            for index, vertex in enumerate(layer):
                vertex.across = float(index)


def _mean(neighbours: Sequence[Vertex], vertex: Vertex) -> float:
    return sum(other.across for other in neighbours) / len(neighbours) if neighbours else vertex.across


def _align(layers: list[list[Vertex]]) -> None:
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
            weights = [4.0 if vertex.name else 1.0 for vertex in layer]
            for vertex, target, offset in zip(layer, _rising(targets, weights), offsets, strict=True):
                vertex.across = target + offset


def _offsets(layer: Sequence[Vertex]) -> list[float]:
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


def _stack(layers: list[list[Vertex]], gap: float) -> float:
    """Place the layers one behind the other. Bends get the depth of their layer. Return the total depth."""
    start = 0.0
    for layer in layers:
        depth = max(vertex.depth for vertex in layer)
        for vertex in layer:
            vertex.along = start + depth / 2
            vertex.depth = vertex.depth if vertex.name else depth
        start += depth + gap
    return max(start - gap, 0.0)
