"""Attach the local spec of a registered component to a node."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.plan.assets import asset_id
from allranks.plan.assets.lookup import AssetLookup
from allranks.plan.reader import step_ports
from allranks.plan.reader.context import Context, Place
from allranks.sdk import internals, spec_files, specs
from allranks.sdk.paths import shown

_TYPES = {"sweep": "command"}
"""The type of component that a node runs, if it differs from the node's type."""


def attach(node: Any, place: Place, context: Context) -> bool:
    """Give a node the component for its id, found by the context's lookup. A node with a local component is unchanged.

    A node with a registered component has the ports that the pipeline gives it, without types. Afterwards it has those
    of the component. If there is no such component, add a problem and return False.
    """
    given = internals.component(node)
    text = given if isinstance(given, str) else getattr(given, "id", None)
    if not text or (context.lookup is None and text is not given):
        return True
    key = internals.component_key(node)
    if context.lookup is None:
        found = f"{text} is registered in a workspace or registry, which is not contacted"
        fix = "get its YAML file and code, and name the file as the component"
        context.problems.append(Problem(place.key(key), found, "a component that is a file or a function", fix))
        return False
    try:
        component = load(text, place.key(key), context.lookup)
    except InputError as error:
        context.problems += error.problems
        _find_data(node, place, context)
        return False
    expected = _TYPES.get(node.type, node.type)
    if component.type != expected:
        found = f"{text} is a {component.type} component ({shown(internals.source_path(component))})"
        context.problems.append(
            Problem(place.key(key), found, f"a {expected} component", f"set type: {component.type}")
        )
        return False
    undo: Callable[[], None] = partial(internals.replace_component, node, given)
    ports = (*(port for _, port in step_ports.flat(node.inputs)), *node.outputs.values())
    if any(internals.declaration(port) is not None for port in ports):
        # The client has returned the component, or replaced it by its id when the job was submitted.
        internals.replace_component(node, component)
    else:
        undo = internals.set_component(node, component)
    context.lookup.attached.append(undo)
    return True


def _find_data(node: Any, place: Place, context: Context) -> None:
    """Look up the data of a node without a component, so that everything that is missing is reported at once."""
    from azure.ai.ml import Input

    for name, port in step_ports.flat(node.inputs):
        data = internals.data(port)
        if isinstance(data, Input):
            kind = str(data.type)
            value = step_ports.data_value(data, kind, context)
            step_ports.resolved(value, kind, f"{place.step}.{name}", place.key(f"inputs.{name}"), context)


def load(text: str, where: str, lookup: AssetLookup) -> Any:
    """Return azure-ai-ml's component for an id.

    where: the place that names it, for messages

    Raise InputError if this machine does not have it, or if its spec is invalid.
    """
    if (created := lookup.entity(text, asset_id.COMPONENT)) is not None:
        return created
    spec = lookup.find(text, asset_id.COMPONENT, where)
    assert spec is not None
    name = asset_id.parse(text, asset_id.COMPONENT).name
    if (spec, name) not in lookup.components:
        lookup.components[spec, name] = _of_spec(spec, name, where)
    return lookup.components[spec, name]


def _of_spec(spec: Path, name: str, where: str) -> Any:
    try:
        components = specs.load(spec)
    except InputError:
        if spec_files.is_component(spec):
            raise
        raise InputError(Problem(where, f"{shown(spec)} does not describe a component", "a component's file")) from None
    matches = [component for component in components if component.name == name] or components
    if len(matches) > 1:
        names = ", ".join(str(component.name) for component in matches)
        raise InputError(Problem(where, f"{shown(spec)} describes {names}", f"one component, or one named {name}"))
    return matches[0]
