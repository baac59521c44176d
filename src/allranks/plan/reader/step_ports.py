"""Read the inputs and outputs of a step, with their values."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from allranks.errors import InputError, did_you_mean
from allranks.plan.assets import asset_id
from allranks.plan.ports import PRIMITIVES, Input, Literal, NodeOutput, Output, Path, Text, Value
from allranks.plan.reader.context import Context, Place, pipeline_output, plain, value_of
from allranks.plan.rules import UNKNOWN_PORT
from allranks.sdk import internals
from allranks.sdk.paths import is_remote, located

LEFT_OUT = "azure-ai-ml leaves it out of the request, as if no value were given"
REFUSED = "azure-ai-ml sends an empty text, which Azure ML refuses as the value of an input"


def inputs(node: Any, place: Place, context: Context) -> tuple[Input, ...]:
    """Return every input of the node's component; those of groups have dotted names."""
    return tuple(_input(name, port, place, context) for name, port in flat(node.inputs) if is_port(port))


def outputs(node: Any, context: Context) -> tuple[Output, ...]:
    """Return every output of the node's component."""
    return tuple(_output(name, port, context) for name, port in node.outputs.items() if is_port(port))


def is_port(value: Any) -> bool:
    """Return whether a value is a port, which the DSL can replace by anything."""
    try:
        internals.declaration(value)
    except AttributeError:
        return False
    return True


def refuse_unknown(node: Any, place: Place, context: Context) -> None:
    """Add a problem for each given port that the component's YAML does not declare. The SDK drops these."""
    inputs, outputs = internals.given_ports(node)
    sides = (("inputs", inputs, node.inputs), ("outputs", outputs, node.outputs))
    for kind, names, ports in sides:
        known = list(ports)
        for name in (name for name in names if name.partition(".")[0] not in known):
            fix = did_you_mean(name, known, f"remove it, or declare it in the component's {kind}")
            expected = f"one of {', '.join(known)}" if known else ""
            found = f"the component has no {kind.removesuffix('s')} {name}"
            context.problems.append(UNKNOWN_PORT.problem(place.key(f"{kind}.{name}"), found, expected, fix))


def flat_definitions(inputs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the declarations of inputs by name; those of a group have names such as ``group.name``."""
    for name, meta in inputs.items():
        if isinstance(meta, internals.GroupInput):
            yield from meta.flatten(name).items()
        else:
            yield name, meta


def pipeline_outputs(node: Any) -> Iterator[tuple[str, str]]:
    """Yield (output of the node, output of the pipeline) for each binding between them."""
    from azure.ai.ml import Output as SdkOutput

    for name, port in node.outputs.items():
        data = internals.data(port)
        # From a bound output with a mode in a REST body, the SDK creates an Output whose path is the binding.
        bound = data.path if isinstance(data, SdkOutput) else data
        # The DSL binds with an object, which the SDK sends as this text.
        target = None if bound is None else pipeline_output(str(plain(bound)))
        if target:
            yield name, target


def flat(ports: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield ports with their names; those in groups have names such as ``group.name``."""
    for name, port in ports.items():
        if isinstance(port, internals.GroupAttrDict):
            yield from flat(port, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", port


def definition(name: str, meta: Any, value: Value | None, mode: str | None = None) -> Input:
    """Return a port for the SDK's Input that declares it."""
    kind = _type(meta)
    primitive = kind in PRIMITIVES
    return Input(
        name=name,
        type=kind,
        value=value,
        mode="" if primitive else str(mode or meta.mode or "ro_mount"),
        optional=meta.optional is True,
        minimum=meta.min,
        maximum=meta.max,
        enum=tuple(str(plain(choice)) for choice in meta.enum or ()),
    )


def data_value(data: Any, kind: str, context: Context) -> Value | None:
    """Return the value of a port: a literal, a path, or references; None if it has none."""
    from azure.ai.ml import Input as SdkInput

    if isinstance(data, SdkInput):
        if data.path is None:
            return None if data.default is None else Literal(plain(data.default))
        return _path(str(data.path), context, str(data.type or ""))
    data = plain(data)
    if data is None or not isinstance(data, str):
        return None if data is None else Literal(data)
    value = value_of(data)
    if isinstance(value, Literal) and kind not in PRIMITIVES:
        return _path(data, context)
    return value


def _input(name: str, port: Any, place: Place, context: Context) -> Input:
    meta = internals.declaration(port)
    kind = _type(meta)
    value = data_value(internals.data(port), kind, context)
    address = name if context.alone else f"{place.step}.{name}"
    value = resolved(value, kind, address, place.key(f"inputs.{name}"), context)
    if value is None and meta.default is not None:
        value = Literal(plain(meta.default))
    on_azure = REFUSED if is_empty(internals.data(port)) else ""
    return replace(definition(name, meta, value, internals.mode(port)), on_azure=on_azure)


def is_empty(data: Any) -> bool:
    """Return whether a port has an empty text. A comparison would make an expression of the SDK out of a binding."""
    return isinstance(data, str) and not data


def _output(name: str, port: Any, context: Context) -> Output:
    from azure.ai.ml import Output as SdkOutput

    kind = str(internals.port_type(port) or "uri_folder")
    declared = [each for each in (internals.data(port), internals.declaration(port)) if isinstance(each, SdkOutput)]
    paths = (str(output.path) for output in declared if output.path)
    path = next((path for path in paths if pipeline_output(path) is None), None)
    mode = internals.mode(port) or next((output.mode for output in declared if output.mode), None) or "rw_mount"
    return Output(
        name=name,
        type=kind,
        mode="" if kind in PRIMITIVES else str(mode),
        path=output_location(path, context) if path else None,
        asset=asset_of(port),
    )


def asset_of(port: Any) -> str:
    """Return the asset that an output is registered as, NAME or NAME:VERSION; "" if it is not."""
    data = internals.data(port) or port
    name, version = (getattr(data, key, None) or getattr(port, key, None) for key in ("name", "version"))
    return f"{name}:{version}" if name and version else str(name or "")


def output_location(path: str, context: Context) -> str:
    """Return the path that a user sets for an output: on this machine, if ``allranks.yaml`` maps its URI to one."""
    text = located(context.with_datastore(path), context.base)
    mapped = context.lookup.output(text) if context.lookup is not None and is_remote(text) else None
    return text if mapped is None else mapped


def _type(meta: Any) -> str:
    return " or ".join(map(str, meta.type)) if isinstance(meta.type, list) else str(meta.type or "string")


def _path(text: str, context: Context, kind: str = "") -> Value:
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
    """Return the value of a port, with a path on this machine, or the URI of a storage service, in place of an id.

    kind:    the port's type
    address: the name of the pipeline's input, or STEP.INPUT
    where:   the port as named in messages

    If this machine does not have the data, add a problem to the context and return the value unchanged.
    """
    if context.lookup is None or kind in PRIMITIVES or not isinstance(value, Path) or not is_remote(value.path):
        return value
    advice = f"or set a path: --set {address}=PATH" if "." not in address else ""
    asset_kind = asset_id.MODEL if kind.endswith("_model") else asset_id.DATA
    try:
        path = context.lookup.find(value.path, asset_kind, where, advice=advice)
    except InputError as error:
        context.problems += error.problems
        return value
    return Path(context.lookup.uses[-1].uri if path is None else str(path), value.type)
