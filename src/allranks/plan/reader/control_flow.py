"""Read control flow nodes: if_else, do_while and parallel_for."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from allranks.errors import Problem, StepPlace
from allranks.plan.graph import Condition, DoWhile, Item, Node, ParallelFor, Pipeline, Step
from allranks.plan.ports import PRIMITIVES, Literal, NodeOutput, Output, Path, Text, Value
from allranks.plan.reader import step_ports
from allranks.plan.reader.context import Context, integer, value_of
from allranks.plan.walk import changed
from allranks.sdk.request import NodeRequest

_NODE = re.compile(r"\$\{\{\s*parent\.jobs\.([\w\-]+)\s*}}")
_PORT = re.compile(r"\$\{\{.*\.(?:inputs|outputs)\.([\w.\-]+)\s*}}")


def bodies(nodes: Mapping[str, NodeRequest]) -> dict[str, str]:
    """Return the loop of each node that is the body of one. azure-ai-ml lists both as nodes."""
    loops = {name: body_of(node) for name, node in nodes.items() if node.type in ("do_while", "parallel_for")}
    return {body: name for name, body in loops.items() if body in nodes}


def body_of(loop: NodeRequest) -> str:
    """Return the name of the node that is the body of a loop; "" if it names none."""
    match = _NODE.fullmatch(str(loop.body.get("body") or "").strip())
    return match[1] if match else ""


def with_loops_for_bodies(node: Node, loops: Mapping[str, str]) -> Node:
    """Return the node with its references to a loop's body replaced by references to the loop."""

    def rename(part: Any) -> Any:
        is_known = isinstance(part, NodeOutput) and part.node in loops
        return replace(part, node=loops[part.node]) if is_known else part

    # The graph of a nested pipeline has its own names.
    renamed: Node = changed(node, rename, kept="graph")
    if isinstance(renamed, Condition):
        return replace(
            renamed,
            then=tuple(loops.get(name, name) for name in renamed.then),
            otherwise=tuple(loops.get(name, name) for name in renamed.otherwise),
        )
    return renamed


def condition(name: str, node: NodeRequest, context: Context) -> Condition | None:
    place = context.place(name)
    written = node.body.get("condition")
    value: Value = Literal(written) if isinstance(written, bool) else value_of(str(written))
    if isinstance(value, (Literal, Text)) and str(getattr(value, "value", "")).lower() not in ("true", "false"):
        expected = "true, false, an input of the pipeline or a boolean output of a step"
        context.problems.append(Problem(place.key("condition"), repr(written), expected))
        return None
    blocks = {key: _block(node.body.get(key)) for key in ("true_block", "false_block")}
    for key, names in blocks.items():
        for block_node in names:
            if block_node is None:
                expected = "a step of the same pipeline: ${{parent.jobs.NAME}}"
                context.problems.append(Problem(place.key(key), repr(node.body.get(key)), expected))
    if not any(blocks.values()):
        found = "it has neither a true_block nor a false_block"
        context.problems.append(Problem(str(place), found, "a step to run", "name one"))
    then, otherwise = (tuple(filter(None, names)) for names in blocks.values())
    return Condition(name, value, then, otherwise, location=place.location)


def _block(block: Any) -> list[str | None]:
    """Return the names of a block's nodes; None for anything else."""
    matches = (_NODE.fullmatch(str(node).strip()) for node in (block if isinstance(block, list) else [block]) if node)
    return [match[1] if match else None for match in matches]


def do_while(name: str, node: NodeRequest, body: Step | Pipeline, context: Context) -> DoWhile:
    feedback = tuple(
        (_port(output), _port(port))
        for output, ports in (node.body.get("mapping") or {}).items()
        for port in (ports if isinstance(ports, list) else [ports])
    )
    limit = (node.body.get("limits") or {}).get("max_iteration_count")
    place = context.place(name)
    if not isinstance(limit, int) or isinstance(limit, bool):
        where = place.key("limits.max_iteration_count")
        context.problems.append(Problem(where, repr(limit), "a whole number from 1 to 1000"))
        limit = 1
    control = _port(node.body.get("condition") or "")
    # An input that is bound to an output of the body has no value in the first iteration.
    bound = [(port.value, port.name) for port in body.inputs if isinstance(port.value, NodeOutput)]
    own = {name: value.name for value, name in bound if value.node == body.name}
    inputs = tuple(replace(port, value=None) if port.name in own else port for port in body.inputs)
    feedback = tuple(dict.fromkeys((*feedback, *((output, name) for name, output in own.items()))))
    return DoWhile(name, replace(body, inputs=inputs, after=()), control, feedback, limit, location=place.location)


def parallel_for(name: str, node: NodeRequest, body: Step | Pipeline, context: Context) -> ParallelFor | None:
    place = context.place(name)
    # The values of all iterations are a JSON list of primitives, or a table of data.
    paths = {port.name: port.path for port in step_ports.outputs(node, None, context)}
    outputs = tuple(
        Output(name, "string") if kind in PRIMITIVES else Output(name, "mltable", "rw_mount", paths.get(name))
        for name, kind in ((port.name, port.type) for port in body.outputs)
    )
    items = _items(node.body.get("items"), context)
    if items is None:
        expected = "a list of mappings, a mapping of mappings, or either as JSON"
        context.problems.append(Problem(place.key("items"), repr(node.body.get("items")), expected))
        return None
    if isinstance(items, tuple):
        items = tuple(_resolved(item, body, place, context) for item in items)
    concurrency = integer(node.body.get("max_concurrency"), "max_concurrency", place, context)
    return ParallelFor(name, body, items, outputs, concurrency, location=place.location)


def _port(port: str) -> str:
    """Return the name of a port: of a binding to it, or the name itself."""
    match = _PORT.fullmatch(port.strip())
    return match[1] if match else port


def _items(items: Any, context: Context) -> tuple[Item, ...] | Value | None:
    """Return the items of a list or a mapping of mappings, named by their number or key, or the value that contains
    the items; None for anything else."""
    try:
        items = json.loads(str(items))
    except ValueError:
        binding = value_of(str(items))
        return None if isinstance(binding, Literal) else binding
    named = dict(enumerate(items)) if isinstance(items, list) else items
    if not isinstance(named, dict) or not all(isinstance(item, dict) for item in named.values()):
        return None
    return tuple(
        Item(str(name), tuple((str(key), _item_value(value, context)) for key, value in item.items()))
        for name, item in named.items()
    )


def _resolved(item: Item, body: Step | Pipeline, place: StepPlace, context: Context) -> Item:
    """Return an item with ids replaced by paths on this machine."""
    kinds = {port.name: port.type for port in body.inputs}
    values = []
    for name, value in item.values:
        key, kind = f"items.{item.name}.{name}", kinds.get(name, "uri_folder")
        if isinstance(value, Path):
            found = step_ports.resolved(value, kind, f"{place.step}.{key}", place.key(key), context)
            assert found is not None
            value = found
        values.append((name, value))
    return replace(item, values=tuple(values))


def _item_value(value: Any, context: Context) -> Value:
    if isinstance(value, dict) and "uri" in value:
        return step_ports.path_value(str(value["uri"]), context, str(value.get("job_input_type") or ""))
    return value_of(value) if isinstance(value, str) else Literal(value)
