"""Read a node that runs a command."""

import dataclasses
import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path as FilePath
from typing import Any, get_type_hints

from allranks.contract import requirements
from allranks.contract.distributions import DISTRIBUTIONS
from allranks.contract.launch import Distribution
from allranks.contract.single import Single
from allranks.errors import InputError, Location, Problem, StepPlace, finding
from allranks.plan.assets import asset_id
from allranks.plan.environment import NO_ENVIRONMENT
from allranks.plan.graph import Code, Parallel, Step
from allranks.plan.ports import GraphInput, Input, Literal, NodeOutput, Output, Path, Text, references
from allranks.plan.reader import environments, snapshot, step_ports
from allranks.plan.reader.context import Context, integer, known_value, value_of
from allranks.sdk import yaml_lines
from allranks.sdk.paths import shown
from allranks.sdk.request import CodeRequest, ComponentRequest, NodeRequest
from allranks.sdk.runtime_copy import command_uses_runtime
from allranks.sdk.uploads import code_at, code_elsewhere, code_of
from allranks.sdk.validation_errors import unknown_distribution
from allranks.sdk.yaml_lines import line_of

_SIZE = re.compile(r"(\d+)\s*([bkmg]?)", re.IGNORECASE)
_YAML = (".yml", ".yaml")

_AZURE_ONLY = ("identity", "queue_settings", "services")

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_DEFAULTS = Parallel("", "")
_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:([\d.]+)S)?)?")


def read(name: str, node: NodeRequest, component: ComponentRequest, context: Context) -> Step:
    """Return the step of a node that runs a command."""
    place, body, spec = context.place(name), node.body, component.spec
    step_ports.refuse_unknown(node, component, place, context)
    component_name, version = identity(component)
    resources = body.get("resources") or spec.get("resources") or {}
    instances = integer(resources.get("instance_count"), "resources.instance_count", place, context)
    environment = environments.local(component.environment, place, context)
    if component.environment is None and not (component.file or context.alone):
        context.problems.append(finding("no-environment", place.key("environment"), "the step has no environment"))
    # azure-ai-ml sends the variables of the node, never those of its component.
    variables = _variables(body.get("environment_variables") or {})
    _check_compute(body.get("computeId"), place, context)
    own_environment = environments.local(node.environment, place, context)
    return Step(
        name=name,
        command=component.command,
        component=component_name,
        version=version,
        display_name=str(body.get("display_name") or spec.get("display_name") or ""),
        description=str(spec.get("description") or ""),
        code=snapshot_of(component, place, context),
        environment=environment,
        ignored_environment=NO_ENVIRONMENT if own_environment == environment else own_environment,
        environment_variables=variables,
        ignored_variables=tuple(name for name in spec.get("environment_variables") or () if name not in variables),
        inputs=step_ports.inputs(node, component, place, context),
        outputs=step_ports.outputs(node, component, context),
        distribution=_distribution(body.get("distribution") or spec.get("distribution"), place, context),
        instance_count=1 if instances is None else instances,
        instance_type=_instance_type(resources.get("instance_type"), place, context),
        shm_size=_shared_memory(resources.get("shm_size"), place, context),
        timeout=_timeout((body.get("limits") or {}).get("timeout"), place, context),
        deterministic=spec.get("is_deterministic") is not False,
        location=place.location,
        job_tier=str((body.get("queue_settings") or {}).get("job_tier") or "").lower(),
        azure_only=tuple(key for key in _AZURE_ONLY if body.get(key)),
        spec=component.file,
        tags=requirements.relevant(spec.get("tags") or {}),
    )


def _check_compute(compute: Any, place: StepPlace, context: Context) -> None:
    """Check the bindings of the compute, which has no effect on this machine. Its value need not be known yet."""
    binding = value_of(str(compute or ""))
    names = {each.name for each in references(binding) if isinstance(each, GraphInput)}
    if names - context.values.keys():
        known_value(compute, "compute", place, context)


def _variables(variables: Mapping[str, Any]) -> dict[str, str | GraphInput | NodeOutput | Text]:
    """Return the environment variables. Bindings to the graph's inputs are resolved when the step starts. Azure ML
    resolves no other expressions, such as ``${{outputs.x}}``."""
    resolved: dict[str, str | GraphInput | NodeOutput | Text] = {}
    for name, value in variables.items():
        binding = value_of(str(value))
        resolved[name] = str(value) if isinstance(binding, (Literal, Path)) else binding
    return resolved


def _instance_type(value: Any, place: StepPlace, context: Context) -> str:
    if isinstance(value, list):
        return " or ".join(map(str, value))
    return str(known_value(value, "resources.instance_type", place, context) or "")


def _shared_memory(value: Any, place: StepPlace, context: Context) -> int:
    value = known_value(value, "resources.shm_size", place, context)
    if value is None:
        return Step.shm_size
    size = _SIZE.fullmatch(str(value).strip())
    if not size:
        expected = "a number and a unit, b, k, m or g, such as 2g"
        context.problems.append(Problem(place.key("resources.shm_size"), repr(value), expected))
        return Step.shm_size
    return int(size[1]) * _UNITS[size[2].lower()]


def _timeout(value: Any, place: StepPlace, context: Context) -> float | None:
    timeout = known_value(value, "limits.timeout", place, context)
    try:
        return None if timeout is None else seconds(timeout)
    except ValueError:
        context.problems.append(Problem(place.key("limits.timeout"), repr(timeout), "a number of seconds"))
        return None


def seconds(duration: Any) -> float:
    """Return the seconds of a number, or of an ISO 8601 duration as in requests. Raise ValueError for other values."""
    if not isinstance(duration, str) or not (match := _DURATION.fullmatch(duration)):
        return float(duration)
    return sum(float(part or 0) * unit for part, unit in zip(match.groups(), (86400, 3600, 60, 1), strict=True))


def _distribution(settings: Mapping[str, Any] | None, place: StepPlace, context: Context) -> Distribution:
    """Return the settings of the distribution. Missing settings have the contract's defaults."""
    if not settings:
        return Single()
    name = str(settings.get("distribution_type") or settings.get("type"))
    kind = DISTRIBUTIONS.get(name.lower())
    if kind is None:
        context.problems += unknown_distribution(name, place.key("distribution.type"))
        return Single()
    arguments: dict[str, Any] = {}
    types = get_type_hints(kind)
    for field in dataclasses.fields(kind):
        resolve = integer if types[field.name] in (int, int | None) else known_value
        value = resolve(settings.get(field.name), f"distribution.{field.name}", place, context)
        if value is not None:
            arguments[field.name] = value
    return kind(**arguments)


def identity(component: ComponentRequest) -> tuple[str, str]:
    """Return the component's name and version. The SDK drops them for a file that a pipeline's YAML names."""
    if not component.is_anonymous:
        return str(component.spec.get("name") or ""), str(component.spec.get("version") or "")
    return _identity_in_file(component.file) if component.file else ("", "")


@cache
def _identity_in_file(path: str) -> tuple[str, str]:
    try:
        tree = yaml_lines.parse(FilePath(path)).tree
    except InputError:
        return "", ""
    return str(tree.get("name", "")), str(tree.get("version", ""))


def snapshot_of(component: ComponentRequest, place: StepPlace, context: Context) -> Code | None:
    """Return the component's snapshot; None if it has no code. Code that several steps use is copied once."""
    code = component.code
    if code is None:
        return None
    includes_key = json.dumps([*code.includes, command_uses_runtime(component.command)], default=str)
    key = (str(code.base), code.path, includes_key)
    if key not in context.codes:
        # Set it first, so that a problem is reported only once.
        context.codes[key] = None
        with context.problems:
            context.codes[key] = _copied(component, code, place, context)
    return context.codes[key]


def _copied(component: ComponentRequest, code: CodeRequest, place: StepPlace, context: Context) -> Code | None:
    file = component.file
    own = place
    if file.endswith(_YAML):
        own = StepPlace(place.step, Location(shown(file), line_of(FilePath(file), "code")))
    where = own.key("code")
    if elsewhere := code_elsewhere(code):
        if context.lookup is None:
            fix = "get a copy, and use its path as the component's code"
            raise InputError(Problem(where, f"{elsewhere} is not on this machine", "a local folder", fix))
        found = context.lookup.find(elsewhere, asset_id.CODE, where)
        if found is None or context.snapshots is None:
            return None
        return snapshot.copy_listed(code_at(found, where, component.command), context.snapshots, where, found)
    source = FilePath(code.base, code.path or "")
    if code.path is not None and not os.path.exists(source):
        raise InputError(Problem(where, f"{shown(source)} does not exist", "a folder or a file"))
    if context.snapshots is None:
        return None
    # Earlier snapshots are not code, even if they are inside of the code folder.
    excluded = (context.snapshots, context.snapshots.parent)
    files = code_of(code, component.command, where, place.key("additional_includes"), excluded)
    return snapshot.copy_listed(files, context.snapshots, where, source) if files else None


def read_parallel(name: str, node: NodeRequest, component: ComponentRequest, context: Context) -> Step:
    """Return the step of a parallel node."""
    step, place = read(name, node, component, context), context.place(name)

    def own(key: str) -> Any:
        value = node.body.get(key)
        return component.spec.get(key) if value in (None, {}) else value

    def number(value: Any, key: str, default: int | None) -> Any:
        count = integer(value, key, place, context)
        return default if count is None else count

    task, retries = own("task") or {}, own("retry_settings") or {}
    level = known_value(own("logging_level"), "logging_level", place, context)
    entry, arguments = (str(task.get(key) or "") for key in ("entry_script", "program_arguments"))
    columns = own("partition_keys") or ()
    parallel = Parallel(
        entry_script=entry,
        input_data=str(own("input_data") or ""),
        # The SDK has 0 for a component without a size.
        mini_batch_size=number(own("mini_batch_size") or None, "mini_batch_size", None),
        partition_keys=tuple(map(str, json.loads(columns) if isinstance(columns, str) else columns)),
        max_concurrency=number(own("max_concurrency_per_instance"), "max_concurrency_per_instance", None),
        error_threshold=number(own("error_threshold"), "error_threshold", -1),
        mini_batch_error_threshold=number(own("mini_batch_error_threshold"), "mini_batch_error_threshold", -1),
        max_retries=number(retries.get("max_retries"), "retry_settings.max_retries", _DEFAULTS.max_retries),
        timeout=number(retries.get("timeout"), "retry_settings.timeout", _DEFAULTS.timeout),
        logging_level=str(level or _DEFAULTS.logging_level).upper(),
        append_row_to=str(task.get("append_row_to") or ""),
    )
    return replace(step, command=f"python {entry} {arguments}".strip(), parallel=parallel)


def read_copy(name: str, node: NodeRequest, component: ComponentRequest, context: Context) -> Step:
    """Return the step of a data transfer that copies an input, or merges several inputs."""
    place = context.place(name)
    inputs = step_ports.inputs(node, component, place, context)
    outputs = step_ports.outputs(node, component, context)
    fails = component.spec.get("data_copy_mode") == "fail_if_conflict"
    command = " && ".join(_copy_command(port, output, fails) for output in outputs for port in inputs)
    return Step(name, command, inputs=inputs, outputs=outputs, location=place.location)


def _copy_command(port: Input, output: Output, fails: bool) -> str:
    """Return the command that copies an input. fails: whether to fail if it would replace a file of another input"""
    source, to = f"${{{{inputs.{port.name}}}}}", f"${{{{outputs.{output.name}}}}}"
    if port.type == "uri_file":
        return f"cp {source} {to}{'' if output.type == 'uri_file' else '/'}"
    conflicts = f"same=$(cd {source} && find . -type f -exec test -e {to}/{{}} \\; -print)"
    refuse = '[ -z "$same" ] || { echo "in two inputs: $same" >&2; exit 1; }'
    return f"{f'{conflicts} && {refuse} && ' if fails else ''}cp -r {source}/. {to}/"
