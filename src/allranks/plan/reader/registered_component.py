"""Find the components of nodes, by their ids if they are registered."""

from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem, StepPlace
from allranks.plan.assets import asset_id
from allranks.plan.assets.lookup import AssetLookup
from allranks.plan.reader import step_ports
from allranks.plan.reader.context import Context
from allranks.sdk import spec_files, specs
from allranks.sdk.compilation import component_request
from allranks.sdk.paths import shown
from allranks.sdk.request import ComponentRequest, NodeRequest


def component_of(node: NodeRequest, place: StepPlace, context: Context) -> ComponentRequest | None:
    """Return the component of a node: the one that is defined with the job, or the one that the lookup finds for its
    id. If there is none, add a problem and return None."""
    if isinstance(node.component, ComponentRequest) and (not node.registered or context.lookup is None):
        return node.component
    if context.lookup is None:
        found = f"{node.registered} is registered in a workspace or registry, which is not contacted"
        fix = "get its YAML file and code, and name the file as the component"
        context.problems.append(Problem(place.key(node.key), found, "a component that is a file or a function", fix))
        return None
    try:
        component = load(node.registered, place.key(node.key), context.lookup)
    except InputError as error:
        context.problems += error.problems
        _find_data(node, place, context)
        return None
    expected = "command" if node.type == "sweep" else node.type
    if component.type != expected:
        found = f"{node.registered} is a {component.type} component ({shown(component.file)})"
        fix = f"set type: {component.type}"
        context.problems.append(Problem(place.key(node.key), found, f"a {expected} component", fix))
        return None
    return component


def _find_data(node: NodeRequest, place: StepPlace, context: Context) -> None:
    """Look up the data of a node without a component, so that all missing assets are reported at once."""
    for name, given in (node.body.get("inputs") or {}).items():
        kind = str(given.get("job_input_type") or "")
        if "uri" in given:
            value = step_ports.data_value(given, kind, context)
            step_ports.resolved(value, kind, f"{place.step}.{name}", place.key(f"inputs.{name}"), context)


def load(text: str, where: str, lookup: AssetLookup) -> ComponentRequest:
    """Return the component for an id. Raise InputError if this machine does not have it, or if its spec is invalid.

    where: the place that names it, for messages
    """
    created = lookup.entity(text, asset_id.COMPONENT)
    spec = None if created is not None else lookup.find(text, asset_id.COMPONENT, where)
    name = asset_id.parse(text, asset_id.COMPONENT).name
    if (spec, name) not in lookup.components:
        entity = created if spec is None else _of_spec(spec, name, where)
        lookup.components[spec, name] = component_request(entity)
    return lookup.components[spec, name]


def _of_spec(spec: Path, name: str, where: str) -> Any:
    """Return azure-ai-ml's component of that name in a spec."""
    try:
        components = specs.load(spec)
    except InputError:
        if spec_files.kind(spec) is spec_files.Kind.COMPONENT:
            raise
        raise InputError(Problem(where, f"{shown(spec)} does not describe a component", "a component's file")) from None
    matches = [component for component in components if component.name == name] or components
    if len(matches) > 1:
        names = ", ".join(str(component.name) for component in matches)
        raise InputError(Problem(where, f"{shown(spec)} describes {names}", f"one component, or one named {name}"))
    return matches[0]
