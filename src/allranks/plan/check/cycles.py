"""Detect nodes that wait for each other."""

from __future__ import annotations

from collections.abc import Iterator

from allranks.errors import Problem
from allranks.plan.check.rule import Level, Rule
from allranks.plan.check.scope import Scope

CYCLE = Rule(
    "cycle",
    Level.ERROR,
    "Steps need each other's outputs.",
    'Microsoft Learn, "Run pipelines in Azure Machine Learning", Create a pipeline: components run one after the '
    "other or side by side. A step that needs its own result can never start",
    "remove one of the edges",
)


def of_graph(scope: Scope) -> Iterator[Problem]:
    """Yield one problem for each cycle, at the first of its nodes."""
    nodes = scope.graph.by_name
    places = {name: place for place, name in enumerate(nodes)}
    needs = {name: [other for other in scope.graph.needs(node) if other in nodes] for name, node in nodes.items()}
    done: set[str] = set()
    for start in nodes:
        path: dict[str, None] = {}
        # A depth-first search without recursion, because chains can be long.
        stack = [iter([start])]
        while stack:
            name = next(stack[-1], None)
            if name is None:
                stack.pop()
                if path:
                    done.add(path.popitem()[0])
            elif name in path:
                on_path = list(path)
                ring = on_path[on_path.index(name) :][::-1]
                first = min(range(len(ring)), key=lambda number: places[ring[number]])
                ring = ring[first:] + ring[:first]
                yield Problem(
                    scope.of(nodes[ring[0]]),
                    f"steps wait for each other: {' -> '.join((*ring, ring[0]))}",
                    "an order in which every step comes after those that it needs",
                    f"take away what {ring[0]} needs of {ring[-1]}",
                )
            elif name not in done:
                path[name] = None
                stack.append(iter(needs[name]))
