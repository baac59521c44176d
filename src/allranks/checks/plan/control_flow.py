"""Check conditions and loops: their conditions, limits, items, and feedback; and nodes that wait for each other."""

from __future__ import annotations

from collections.abc import Iterator

from allranks.checks.plan import data
from allranks.checks.plan.bindings import article, dangling, fits
from allranks.checks.plan.scope import Scope
from allranks.errors import Problem, Rule
from allranks.plan import literals
from allranks.plan.graph import Condition, DoWhile, ParallelFor
from allranks.plan.literals import meant, one_of
from allranks.plan.ports import PRIMITIVES, GraphInput, Literal, Path, references

CONTROL_FLOW = Rule.error(
    "control-flow",
    "A condition is not a boolean, a block names an unknown step, or a loop has no valid limit, items or feedback.",
    "azure-ai-ml, `entities/_builders/` condition_node.py, do_while.py and parallel_for.py, and DO_WHILE_MAX_ITERATION",
    "correct the node",
)

LIMIT = 1000
"""Maximum iterations of a do_while loop (azure-ai-ml's DO_WHILE_MAX_ITERATION)."""
CYCLE = Rule.error(
    "cycle",
    "Steps need each other's outputs.",
    'Microsoft Learn, "Run pipelines in Azure Machine Learning", Create a pipeline: components run one after the '
    "other or side by side. A step that needs its own result can never start",
    "remove one of the edges",
)


def condition(scope: Scope, node: Condition) -> Iterator[Problem]:
    where = scope.key(node, "condition")
    for reference in references(node.condition):
        missing = list(dangling(scope, where, reference))
        yield from missing
        if missing:
            continue
        kind = scope.type_of(reference)
        if kind not in ("boolean", "string"):
            yield Problem(where, article(kind), "a boolean", "use a boolean output or input")
        elif isinstance(reference, GraphInput) and scope.value(reference) is None:
            yield Problem(where, f"input {reference.name} of {scope.name} has no value", "true or false")
    for key, names in (("true_block", node.then), ("false_block", node.otherwise)):
        for name in names:
            if name not in scope.graph.by_name:
                known = [other.name for other in scope.graph.nodes if other is not node]
                yield Problem(scope.key(node, key), f"there is no step {name}", one_of(known, ""), meant(name, known))
    for name in dict.fromkeys(name for name in node.then if name in node.otherwise):
        found = f"{name} is in both blocks, so it would always run"
        yield Problem(scope.of(node), found, "a step in one of the blocks", "remove it from one")


def do_while(scope: Scope, loop: DoWhile) -> Iterator[Problem]:
    """Yield the problems of a do_while loop itself. Its body is checked like any other node."""
    inputs = {port.name: port for port in loop.body.inputs}
    outputs = {port.name: port for port in loop.body.outputs}
    if not 1 <= loop.limit <= LIMIT:
        yield Problem(scope.key(loop, "limits.max_iteration_count"), str(loop.limit), f"1 to {LIMIT}")
    if loop.condition and loop.condition not in outputs:
        found = f"the body {loop.body.name} has no output {loop.condition}"
        fix = meant(loop.condition, outputs)
        yield Problem(scope.key(loop, "condition"), found, one_of(outputs, "the body has no outputs"), fix)
    elif loop.condition and outputs[loop.condition].type not in ("boolean", "string"):
        found = f"output {loop.condition} is {article(outputs[loop.condition].type)}"
        yield Problem(scope.key(loop, "condition"), found, "a boolean", "name a boolean output of the body")
    fed: set[str] = set()
    for output, name in loop.feedback:
        where = scope.key(loop, f"mapping.{output}")
        if output not in outputs:
            found = f"the body {loop.body.name} has no output {output}"
            yield Problem(where, found, one_of(outputs, "the body has no outputs"), meant(output, outputs))
        elif name not in inputs:
            found = f"the body {loop.body.name} has no input {name}"
            yield Problem(where, found, one_of(inputs, "the body has no inputs"), meant(name, inputs))
        elif not fits(outputs[output].type, inputs[name].type):
            found = f"output {output} is {article(outputs[output].type)}, input {name} is {article(inputs[name].type)}"
            yield Problem(where, found, "an output that the input accepts", f"declare {output} as {inputs[name].type}")
        if name in fed:
            yield Problem(where, f"input {name} is fed by two outputs", "one output an input", "remove one of the two")
        fed.add(name)


def supplied(loop: ParallelFor) -> frozenset[str]:
    """Return the inputs of the body that get their value from an item."""
    if not isinstance(loop.items, tuple):
        # The items are unknown before the loop starts, so they may contain any input.
        return frozenset(port.name for port in loop.body.inputs if port.value is None)
    return frozenset(name for item in loop.items for name, _ in item.values)


def parallel_for(scope: Scope, loop: ParallelFor) -> Iterator[Problem]:
    """Yield the problems of a parallel_for loop itself. Its body is checked like any other node."""
    where = scope.key(loop, "items")
    if loop.max_concurrency is not None and loop.max_concurrency < 1:
        found = str(loop.max_concurrency)
        yield Problem(scope.key(loop, "max_concurrency"), found, "at least 1, or none for all at once")
    if not isinstance(loop.items, tuple):
        for reference in references(loop.items):
            yield from dangling(scope, where, reference)
        return
    if not loop.items:
        yield Problem(where, "the list is empty", "at least one item")
        return
    ports = {port.name: port for port in loop.body.inputs}
    expected = {name for name, _ in loop.items[0].values}
    for item in loop.items:
        item_values = dict(item.values)
        if item_values.keys() != expected:
            found = f"item {item.name} has {one_of(item_values, 'no keys').removeprefix('one of ')}"
            keys = f"the keys of the first item: {', '.join(sorted(expected))}"
            yield Problem(where, found, keys, "use the same keys in every item")
        for name, value in item_values.items():
            place = scope.key(loop, f"items.{item.name}.{name}")
            if name not in ports:
                found = f"the body {loop.body.name} has no input {name}"
                yield Problem(place, found, one_of(ports, "the body has no inputs"), meant(name, ports))
                continue
            port = ports[name]
            for reference in references(value):
                yield from dangling(scope, place, reference)
            if isinstance(value, Literal):
                yield from literals.wrong(place, port, value.value, f"change {name}")
            elif isinstance(value, Path) and port.type not in PRIMITIVES:
                yield from data.wrong_path(place, port, value, scope.here, "name another path")


def cycles(scope: Scope) -> Iterator[Problem]:
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
                    f"remove what {ring[0]} needs from {ring[-1]}",
                )
            elif name not in done:
                path[name] = None
                stack.append(iter(needs[name]))
