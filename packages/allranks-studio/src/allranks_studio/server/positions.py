"""Where a layout in layers places the nodes of a graph.

Positions are the upper left corners of nodes. Each graph has an origin of its own and runs from left to right.
"""

import math
from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from allranks.contract.templating import PRIMITIVES
from allranks.history.layers import Layers

Positions = dict[str, tuple[float, float]]
Needs = Mapping[str, Sequence[str]]

CARD = (240, 130)
"""The size of a node in the designer, with the gap below it, unless it has more ports."""
_HEADER, _ROW, _FOOT = 46, 20, 24
"""Heights of the parts of a node, as in scene.ts."""
STEP = (200, 64)
"""The size of a step of a run."""
_GAP = (70, 30)


def laid_out(needs: Needs, box: tuple[int, int]) -> Positions:
    """Return the position of each node by name. needs: the nodes that each one depends on, in any order

    Nodes without edges are below the others, in rows.
    """
    joined = {each for name, sources in needs.items() if sources for each in (name, *sources)}
    layers = Layers(_in_order({name: sources for name, sources in needs.items() if name in joined}))
    layers.arrange(*box, _GAP[0])
    _, lowest, highest = layers.extent
    found = {
        vertex.name: (round(vertex.along - box[0] / 2), round(vertex.across - box[1] / 2 - lowest))
        for vertex in layers.vertices
    }
    single = [name for name in needs if name not in joined]
    below, columns = round(highest - lowest + _GAP[1]) if found else 0, max(layers.depth, math.isqrt(len(single)), 1)
    for at, name in enumerate(single):
        found[name] = (at % columns * (box[0] + _GAP[0]), below + at // columns * (box[1] + _GAP[1]))
    return {name: found[name] for name in needs}


def _in_order(needs: Needs) -> Needs:
    """Return the nodes, each after those that it needs. If there is a cycle, they are in their order, and the layout
    ignores needs of later nodes."""
    try:
        return {name: needs[name] for name in TopologicalSorter(needs).static_order() if name in needs}
    except CycleError:
        return needs


def of_document(graph: Mapping[str, Any] | None) -> Positions:
    """Return the positions of the nodes of a graph, as api.ts has it, and of those of its nested graphs, by path."""
    nodes = {node["name"]: node for node in graph["nodes"]} if graph else {}
    found: Positions = {}
    card = CARD[0], max([CARD[1], *(_height(node) + _GAP[1] for node in nodes.values())])
    for name, place in laid_out({name: _sources(node) for name, node in nodes.items()}, card).items():
        found |= {nodes[name]["path"]: place, **of_document(nodes[name]["graph"])}
    return found


def _sources(node: Mapping[str, Any]) -> list[str]:
    values = (port["value"] for port in node["inputs"])
    return list(dict.fromkeys([*(value["node"] for value in values if _is_output(value)), *node["after"]]))


def _height(node: Mapping[str, Any]) -> int:
    inputs = [port for port in node["inputs"] if port["type"] not in PRIMITIVES or _is_output(port["value"])]
    return _HEADER + _ROW * max(len(inputs), len(node["outputs"])) + _FOOT


def _is_output(value: Mapping[str, Any] | None) -> bool:
    return value is not None and value["kind"] == "output"
