"""Steps that wait for each other."""

from __future__ import annotations

from collections.abc import Iterator

from allranks.errors import Problem
from allranks.plan.check import place
from allranks.plan.graph import Plan


def cycles(plan: Plan) -> Iterator[Problem]:
    """One problem for each cycle, at the first of its steps."""
    steps = {step.name: step for step in plan.steps}
    needs = {name: [other for other in step.needs() if other in steps] for name, step in steps.items()}
    done: set[str] = set()
    for start in steps:
        path: list[str] = []
        # The way back from a step to what it needs, deeper and deeper, without recursion: chains can be long.
        stack = [iter([start])]
        while stack:
            name = next(stack[-1], None)
            if name is None:
                stack.pop()
                if path:
                    done.add(path.pop())
            elif name in path:
                ring = path[path.index(name) :][::-1]
                first = min(range(len(ring)), key=lambda place_: list(steps).index(ring[place_]))
                ring = ring[first:] + ring[:first]
                yield Problem(
                    place.of_step(steps[ring[0]]),
                    f"steps wait for each other: {' -> '.join((*ring, ring[0]))}",
                    "an order in which every step comes after those that it needs",
                    f"take away what {ring[0]} needs of {ring[-1]}",
                )
            elif name not in done:
                path.append(name)
                stack.append(iter(needs[name]))
