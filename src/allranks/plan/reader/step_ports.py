"""Read the inputs and outputs of a step, with their values."""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from allranks.contract.templating import Primitive
from allranks.errors import StepPlace, did_you_mean, finding
from allranks.plan.assets import asset_id
from allranks.plan.ports import PRIMITIVES, Input, Literal, NodeOutput, Output, Path, Text, Value
from allranks.plan.reader.context import Context, pipeline_output, value_of
from allranks.sdk.paths import is_remote, located
from allranks.sdk.request import ComponentRequest, NodeRequest

LEFT_OUT = "azure-ai-ml leaves it out of the request, as if no value were given"
REFUSED = "azure-ai-ml sends an empty text, which Azure ML refuses as the value of an input"


def inputs(node: NodeRequest, component: ComponentRequest, place: StepPlace, context: Context) -> tuple[Input, ...]:
    """Return every input of the node's component; those of groups have dotted names."""
    given = node.body.get("inputs") or {}
    return tuple(_input(name, each, given.get(name), place, context) for name, each in component.inputs.items())


def undeclared(node: NodeRequest, context: Context) -> tuple[Input, ...]:
    """Return the inputs that a job sets, for a node whose component is not on this machine."""
    given = {
        name: (each, str(each.get("job_input_type") or "")) for name, each in (node.body.get("inputs") or {}).items()
    }
    return tuple(Input(name, kind, data_value(each, kind, context)) for name, (each, kind) in given.items())


def outputs(node: NodeRequest, component: ComponentRequest | None, context: Context) -> tuple[Output, ...]:
    """Return every output of the node's component; those that the job sets if the component is unknown."""
    given = node.body.get("outputs") or {}
    declared = component.outputs if component is not None else {name: {} for name in given}
    return tuple(_output(name, each, given.get(name) or {}, context) for name, each in declared.items())


def refuse_unknown(node: NodeRequest, component: ComponentRequest, place: StepPlace, context: Context) -> None:
    """Add a problem for each port that the component does not declare. The SDK drops these."""
    for kind, given, declared in zip(
        ("inputs", "outputs"), node.ports, (component.inputs, component.outputs), strict=True
    ):
        known = list(dict.fromkeys(name.partition(".")[0] for name in declared))
        for name in (name for name in given if name.partition(".")[0] not in known):
            fix = did_you_mean(name, known, f"remove it, or declare it in the component's {kind}")
            expected = f"one of {', '.join(known)}" if known else ""
            found = f"the component has no {kind.removesuffix('s')} {name}"
            context.problems.append(finding("unknown-port", place.key(f"{kind}.{name}"), found, expected, fix))


def definition(name: str, declared: Mapping[str, Any], value: Value | None, mode: str = "") -> Input:
    """Return a port. declared: as of `ComponentRequest`"""
    kind = declared["type"] or "string"
    return Input(
        name=name,
        type=kind,
        value=value,
        mode="" if kind in PRIMITIVES else mode or declared["mode"] or "ro_mount",
        optional=declared["optional"],
        minimum=declared["min"],
        maximum=declared["max"],
        enum=tuple(declared["enum"]),
    )


def typed(text: str, kind: str) -> Primitive:
    """Return the typed value of a text in a request; the text itself if it does not match the type."""
    if kind == "boolean" and text in ("True", "False"):
        return text == "True"
    for convert in (int, float) if kind in ("integer", "number") else ():
        try:
            value: Primitive = convert(text)
        except ValueError:
            continue
        if str(value) == text:
            return value
    return text


def data_value(given: Any, kind: str, context: Context) -> Value | None:
    """Return the value of a port: a literal, a path, or references; None if it has none.

    given: a plain value, or a mapping as in a request
    """
    if not isinstance(given, Mapping):
        if given is None or not isinstance(given, str):
            return None if given is None else Literal(given)
        value = value_of(given)
        return path_value(given, context) if isinstance(value, Literal) and kind not in PRIMITIVES else value
    if "uri" in given:
        return path_value(str(given["uri"]), context, str(given.get("job_input_type") or ""))
    sent = data_value(given.get("value"), kind, context)
    return Literal(typed(sent.value, kind)) if isinstance(sent, Literal) and isinstance(sent.value, str) else sent


def _input(name: str, declared: Mapping[str, Any], given: Any, place: StepPlace, context: Context) -> Input:
    kind = declared["type"] or "string"
    value = data_value(given, kind, context)
    address = name if context.alone else f"{place.step}.{name}"
    value = resolved(value, kind, address, place.key(f"inputs.{name}"), context)
    if value is None and declared["default"] is not None:
        value = Literal(declared["default"])
    mode = given.get("mode", "") if isinstance(given, Mapping) else ""
    is_empty = isinstance(given, Mapping) and given.get("value") == ""
    port = definition(name, declared, value, mode)
    return replace(port, on_azure=REFUSED if is_empty else "", default=declared["default"])


def _output(name: str, declared: Mapping[str, Any], given: Mapping[str, Any], context: Context) -> Output:
    kind = str(declared.get("type") or given.get("job_output_type") or "uri_folder")
    paths = (str(each["uri"]) for each in (given, declared) if each.get("uri"))
    path = next((path for path in paths if pipeline_output(path) is None), None)
    mode = given.get("mode") or declared.get("mode", "") or ("rw_mount" if declared else "")
    return Output(
        name=name,
        type=kind,
        mode="" if kind in PRIMITIVES else str(mode),
        path=output_location(path, context) if path else None,
        asset=asset_of(given) or asset_of(declared),
    )


def asset_of(port: Mapping[str, Any]) -> str:
    """Return the asset that an output is registered as, NAME or NAME:VERSION; "" if it is not."""
    name, version = port.get("name"), port.get("version")
    return f"{name}:{version}" if name and version else str(name or "")


def output_location(path: str, context: Context) -> str:
    """Return the path that a user sets for an output, with its URI mapped by ``allranks.yaml``."""
    text = located(context.with_datastore(path), context.base)
    mapped = context.lookup.output(text) if context.lookup is not None and is_remote(text) else None
    return text if mapped is None else mapped


def path_value(text: str, context: Context, kind: str = "") -> Value:
    """Return the value for a path of data. kind: the type that is set with it"""
    value = value_of(text := context.with_datastore(text))
    if isinstance(value, Text) and isinstance(value.parts[0], str) and not context.path:
        # A text that begins with a datastore or a folder is a path, if the job's inputs in it have values.
        known = [part if isinstance(part, str) else context.values.get(part.name) for part in value.parts]
        if None not in known and not any(isinstance(part, NodeOutput) for part in value.parts):
            value = Literal(text := "".join(map(str, known)))
    if not isinstance(value, Literal):
        return value
    return Path(located(text, context.base), kind, is_relative=not (os.path.isabs(text) or is_remote(text)))


def resolved(value: Value | None, kind: str, address: str, where: str, context: Context) -> Value | None:
    """Return the value of a port, with an id replaced by a path on this machine or the URI of a storage service.

    kind:    the port's type
    address: the name of the pipeline's input, or STEP.INPUT
    where:   the port as named in messages

    If this machine does not have the data, add a problem to the context and return the value unchanged.
    """
    if context.lookup is None or kind in PRIMITIVES or not isinstance(value, Path) or not is_remote(value.path):
        return value
    advice = f"or set a path: --set {address}=PATH" if "." not in address else ""
    asset_kind = asset_id.MODEL if kind.endswith("_model") else asset_id.DATA
    with context.problems:
        path = context.lookup.find(value.path, asset_kind, where, advice=advice)
        return Path(context.lookup.uses[-1].uri if path is None else str(path), value.type)
    return value
