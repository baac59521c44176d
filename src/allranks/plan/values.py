"""Resolve the inputs of a node after the nodes that it needs have ended, and expand Azure ML's macros.

A plan contains macros (``${{creation_context.trigger_time}}``) unexpanded, so that plans can be compared. They are
expanded when a run starts; a resumed run has the same values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from allranks.contract.templating import wire
from allranks.plan.graph import Pipeline, Plan
from allranks.plan.ports import GraphInput, Input, Literal, NodeOutput, Path, Reference, Value

Lookup = Callable[[Reference], str | None]
"""Returns the path or the text of a primitive that a reference resolves to; None if it has no value."""


@dataclass(frozen=True)
class ResolvedInput:
    """An input port with its value: text for a primitive, an absolute path for data, None for an optional input without
    a value."""

    name: str
    type: str
    mode: str
    value: str | None


def resolved_inputs(inputs: Iterable[Input], lookup: Lookup) -> list[ResolvedInput]:
    """Return every input port with its value."""
    return [ResolvedInput(port.name, port.type, port.mode, resolve(port.value, lookup)) for port in inputs]


def resolve(value: Value | str | None, lookup: Lookup) -> str | None:
    """Return the text of a value in a command; None if it has none."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Literal):
        return wire(value.value)
    if isinstance(value, Path):
        return value.path
    if isinstance(value, (GraphInput, NodeOutput)):
        return lookup(value)
    return "".join(part if isinstance(part, str) else lookup(part) or "" for part in value.parts)


def of_pipeline(node: Pipeline, lookup: Lookup) -> dict[str, str | None]:
    """Return the inputs of a node's graph as text. An input that the node does not set has the graph's own default."""
    bound = {port.name: resolve(port.value, lookup) for port in node.inputs}
    own = {port.name: port.value for port in node.graph.inputs}
    return {name: resolve(own[name], lookup) if bound.get(name) is None else bound[name] for name in own}


NAME = "name"
"""The job's name. Default: the run's id."""

TRIGGER_TIME = "creation_context.trigger_time"
"""The time at which the schedule fired. For a run without a schedule, the time at which it was created."""

TIME_FORMAT = "%Y-%m-%d %H:%M:%S"
"""The format of a trigger time, in UTC. Azure ML does not document its own, so parsers should accept others too."""

EXPRESSION = re.compile(r"\$\{\{\s*(" + "|".join(map(re.escape, (NAME, TRIGGER_TIME))) + r")\s*}}")


def filled(plan: Plan, name: str, triggered: float) -> Plan:
    """Return the plan with the macros in its inputs replaced by their values in a run.

    name:      of the job
    triggered: when the schedule fired, or the run was created, in seconds since the epoch
    """
    values = {
        NAME: name,
        TRIGGER_TIME: datetime.fromtimestamp(triggered, timezone.utc).strftime(TIME_FORMAT),
    }
    inputs = tuple(_filled(port, values) for port in plan.graph.inputs)
    return replace(plan, graph=replace(plan.graph, inputs=inputs))


def seconds(time: datetime) -> float:
    """Return a time as seconds since the epoch. One without a time zone is in UTC."""
    return (time if time.tzinfo else time.replace(tzinfo=timezone.utc)).timestamp()


def _filled(port: Input, values: Mapping[str, str]) -> Input:
    if port.type != "string" or not isinstance(port.value, Literal) or not isinstance(port.value.value, str):
        return port
    return replace(port, value=Literal(EXPRESSION.sub(lambda match: values[match[1]], port.value.value)))
