"""Read a component or a step by itself, without the pipeline that uses it. Such a plan or step can be checked, not run:
inputs without a default have no value, and settings that are bound to a pipeline's input have their defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from allranks.plan.graph import Graph, Location, Plan, Step
from allranks.plan.reader import command_step
from allranks.plan.reader.context import Context
from allranks.plan.reader.graph import declared_inputs, read_graph
from allranks.sdk import internals
from allranks.sdk.paths import shown
from allranks.sdk.yaml_lines import line_of


def read_component(component: Any, spec: Path) -> Plan | None:
    """Return the plan of a component of the SDK: that of one step for a command component, of its nodes for a pipeline
    component, without those that cannot be read here, such as a sweep; None for other kinds."""
    from azure.ai.ml.entities import Command, CommandComponent, PipelineComponent

    context = Context(spec.parent, None, {}, locate=lambda path: _location(spec, path))
    if isinstance(component, CommandComponent):
        step = command_step.read(component.name, Command(component=component), context)
        return None if step is None else Plan(component.name, Graph((step,)))
    if isinstance(component, PipelineComponent):
        inputs = declared_inputs(component, {}, context)
        return Plan(component.name, read_graph(component, inputs, context), source=str(spec))
    return None


def read_step(path: str, node: Any) -> Step | None:
    """Return a node of the SDK that runs a command, or a sweep as one of its trials; None for other kinds, and if its
    component is not on this machine."""
    from azure.ai.ml.entities import Command

    kind = type(node).__name__
    if kind == "Sweep" and not isinstance(node.trial, str):
        node = Command(component=node.trial, resources=internals.resources(node))
    elif kind != "Command":
        return None
    return command_step.read(path, node, Context(Path(), None, {}))


def _location(spec: Path, path: str) -> Location | None:
    """Return where a node of a pipeline component begins in its file."""
    if spec.suffix == ".py":
        return None
    keys = [key for name in path.split(".") for key in ("jobs", name)]
    return Location(shown(spec), line_of(spec, *keys))
