"""Read a node that runs a command, a function on mini-batches (parallel), or a copy of data (data transfer)."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path as FilePath
from typing import Any

from allranks.contract import requirements
from allranks.contract.distributions import DISTRIBUTIONS
from allranks.contract.launch import Distribution
from allranks.contract.single import Single
from allranks.errors import InputError, Problem
from allranks.plan.assets import asset_id
from allranks.plan.environment import NO_ENVIRONMENT
from allranks.plan.graph import Code, Location, Parallel, Step
from allranks.plan.ports import GraphInput, Input, Literal, NodeOutput, Output, Path, Text, references
from allranks.plan.reader import environments, registered_component, snapshot, step_ports
from allranks.plan.reader.context import Context, Place, plain, settled, value_of, whole
from allranks.plan.rules import NO_ENVIRONMENT as NO_ENVIRONMENT_NAMED
from allranks.plan.rules import bound_counts, count_problem
from allranks.sdk import internals, yaml_lines
from allranks.sdk.paths import shown
from allranks.sdk.runtime_copy import command_uses_runtime
from allranks.sdk.uploads import code_at, code_elsewhere, code_of, command_of
from allranks.sdk.validation_errors import unknown_distribution
from allranks.sdk.yaml_lines import line_of

_SHARED_MEMORY = 2 << 30
_SIZE = re.compile(r"(\d+)\s*([bkmg]?)", re.IGNORECASE)
_YAML = (".yml", ".yaml")

_AZURE_ONLY = ("identity", "queue_settings", "services")

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_DEFAULTS = Parallel("", "")


def read(name: str, node: Any, context: Context) -> Step | None:
    """Return the step of a Command node. If its component is not on this machine, add problems to the context and
    return None."""
    place = context.place(name)
    if not registered_component.attach(node, place, context):
        return None
    component = node.component
    step_ports.refuse_unknown(node, place, context)
    component_name, version = identity(component)
    resources = node.resources or component.resources
    instances = whole(setting(resources, "instance_count"), "resources.instance_count", place, context)
    environment = environments.local(component.environment, place, context)
    if component.environment is None and not (internals.source_path(component) or context.alone):
        context.problems.append(NO_ENVIRONMENT_NAMED.problem(place.key("environment"), "the step has no environment"))
    # azure-ai-ml sends those of the node, never those of its component.
    variables = _variables(node.environment_variables, place, context)
    job_tier = str(plain(setting(node.queue_settings, "job_tier")) or "")
    if "${{" in job_tier:
        found, expected = f"{job_tier}, a binding, which azure-ai-ml refuses", "spot, basic, standard or premium"
        context.problems.append(Problem(place.key("queue_settings.job_tier"), found, expected))
    sections = {"resources": component.resources, "distribution": setting(component, "distribution")}
    context.problems += (count_problem(place.key(".".join(keys)), value) for keys, value in bound_counts(sections))
    _check_compute(node, place, context)
    # A parallel node has no environment of its own; the SDK returns {} for any name that a node lacks.
    own = str(plain(node.environment)) if internals.is_binding(node.environment) else node.environment or None
    own_environment = environments.local(own, place, context)
    return Step(
        name=name,
        command=command_of(component),
        component=component_name,
        version=version,
        display_name=str(node.display_name or component.display_name or ""),
        description=str(node.description or component.description or ""),
        code=snapshot_of(component, place, context),
        environment=environment,
        ignored_environment=NO_ENVIRONMENT if own_environment == environment else own_environment,
        environment_variables=variables,
        ignored_variables=tuple(name for name in component.environment_variables or () if name not in variables),
        inputs=step_ports.inputs(node, place, context),
        outputs=step_ports.outputs(node, context),
        distribution=_distribution(node.distribution or setting(component, "distribution"), place, context),
        instance_count=1 if instances is None else instances,
        instance_type=_instance_type(resources, place, context),
        shm_size=_shared_memory(resources, place, context),
        timeout=_timeout(node, place, context),
        deterministic=component.is_deterministic is not False,
        location=place.location,
        job_tier=job_tier,
        azure_only=tuple(key for key in _AZURE_ONLY if getattr(node, key, None)),
        spec=internals.source_path(component),
        tags=requirements.relevant(component.tags or {}),
    )


def _check_compute(node: Any, place: Place, context: Context) -> None:
    """Check the bindings of the compute, which has no effect on this machine. Its value may be known later."""
    binding = value_of(str(plain(getattr(node, "compute", None) or "")))
    names = {each.name for each in references(binding) if isinstance(each, GraphInput)}
    if names - context.values.keys():
        settled(node.compute, "compute", place, context)


def _variables(
    variables: Mapping[str, Any] | None, place: Place, context: Context
) -> dict[str, str | GraphInput | NodeOutput | Text]:
    """Return the environment variables. Bindings to the graph's inputs are resolved when the step starts. Azure ML does
    not resolve others, such as ``${{outputs.x}}``."""
    resolved: dict[str, str | GraphInput | NodeOutput | Text] = {}
    for name, value in (variables or {}).items():
        try:
            text = str(plain(value))
        except Exception:
            settled(value, f"environment_variables.{name}", place, context)  # adds the problem
            continue
        binding = value_of(text)
        resolved[str(name)] = text if isinstance(binding, (Literal, Path)) else binding
    return resolved


def _instance_type(resources: Any, place: Place, context: Context) -> str:
    instance_type = setting(resources, "instance_type")
    if isinstance(instance_type, list):
        return " or ".join(map(str, instance_type))
    return str(settled(instance_type, "resources.instance_type", place, context) or "")


def _shared_memory(resources: Any, place: Place, context: Context) -> int:
    value = settled(setting(resources, "shm_size"), "resources.shm_size", place, context)
    if value is None:
        return _SHARED_MEMORY
    size = _SIZE.fullmatch(str(value).strip())
    if not size:
        expected = "a number and a unit, b, k, m or g, such as 2g"
        context.problems.append(Problem(place.key("resources.shm_size"), repr(value), expected))
        return _SHARED_MEMORY
    return int(size[1]) * _UNITS[size[2].lower()]


def _timeout(node: Any, place: Place, context: Context) -> float | None:
    timeout = settled(setting(node.limits, "timeout"), "limits.timeout", place, context)
    try:
        return None if timeout is None else float(timeout)
    except ValueError:
        context.problems.append(Problem(place.key("limits.timeout"), repr(timeout), "a number of seconds"))
        return None


def _distribution(settings: Any, place: Place, context: Context) -> Distribution:
    """Return the settings of the distribution. The SDK and the contract use the same names; missing settings have the
    contract's defaults."""
    if settings is None:
        return Single()
    kind = DISTRIBUTIONS.get(str(setting(settings, "type")).lower())
    if kind is None:
        context.problems += unknown_distribution(str(setting(settings, "type")), place.key("distribution.type"))
        return Single()
    arguments: dict[str, Any] = {}
    for field in dataclasses.fields(kind.settings):
        value = setting(settings, field.name)
        read = whole if str(field.type).startswith("int") else settled
        value = read(value, f"distribution.{field.name}", place, context)
        if value is not None:
            arguments[field.name] = value
    return kind.settings(**arguments)


def setting(settings: Any, name: str) -> Any:
    """Return a setting of an object, of a mapping, or of None."""
    return settings.get(name) if isinstance(settings, dict) else getattr(settings, name, None)


def identity(component: Any) -> tuple[str, str]:
    """Return the component's name and version, which the SDK drops for a file that a pipeline's YAML names."""
    if not internals.is_anonymous(component):
        return str(component.name or ""), str(component.version or "")
    source = internals.source_path(component)
    return _identity_in_file(source) if source else ("", "")


@cache
def _identity_in_file(path: str) -> tuple[str, str]:
    try:
        tree = yaml_lines.parse(FilePath(path)).tree
    except InputError:
        return "", ""
    return str(tree.get("name", "")), str(tree.get("version", ""))


def snapshot_of(component: Any, place: Place, context: Context) -> Code | None:
    """Return the component's snapshot, or None if it has no code. Code that several steps use is copied once."""
    code = internals.code_text(component)
    includes = internals.includes_configs(component)
    includes_key = json.dumps([includes, command_uses_runtime(command_of(component))], default=str)
    key = (str(component.base_path), code, includes_key)
    if key not in context.codes:
        # Set first, so that a problem is also reported only once.
        context.codes[key] = None
        try:
            context.codes[key] = _copied(component, code, bool(includes), place, context)
        except InputError as error:
            context.problems += error.problems
    return context.codes[key]


def _copied(component: Any, code: str | None, includes: bool, place: Place, context: Context) -> Code | None:
    if code is None and not includes:
        return None
    spec = internals.source_path(component)
    own = Place(place.step, Location(shown(spec), line_of(FilePath(spec), "code"))) if spec.endswith(_YAML) else place
    where = own.key("code")
    if elsewhere := code_elsewhere(component):
        if context.lookup is None:
            fix = "get a copy, and use its path as the component's code"
            raise InputError(Problem(where, f"{elsewhere} is not on this machine", "a local folder", fix))
        found = context.lookup.find(elsewhere, asset_id.CODE, where)
        if found is None or context.snapshots is None:
            return None
        return snapshot.copy_listed(code_at(found, where, command_of(component)), context.snapshots, where, found)
    if code is not None:
        path = FilePath(component.base_path, code)
        if not os.path.exists(path):
            raise InputError(Problem(where, f"{shown(path)} does not exist", "a folder or a file"))
    if context.snapshots is None:
        return None
    # Earlier snapshots are not code, even if the folder of snapshots is inside of the code.
    excluded = (context.snapshots, context.snapshots.parent)
    with code_of(component, where, place.key("additional_includes"), excluded) as files:
        source = FilePath(component.base_path, code or "")
        return snapshot.copy_listed(files, context.snapshots, where, source) if files else None


def read_parallel(name: str, node: Any, context: Context) -> Step | None:
    """Return the step of a Parallel node. If its component is not on this machine, add problems to the context and
    return None."""
    step = read(name, node, context)
    if step is None:
        return None
    place, component = context.place(name), node.component

    def own(key: str) -> Any:
        value = getattr(node, key, None)  # the node is a mapping too, without its settings
        # The SDK has an empty mapping for a name that a node lacks. A comparison would make an expression of a binding.
        return setting(component, key) if value is None or (isinstance(value, dict) and not value) else value

    def number(value: Any, key: str, default: int | None) -> Any:
        count = whole(value, key, place, context)
        return default if count is None else count

    for key in ("mini_batch_size", "logging_level"):
        if "${{" in str(own(key)) and not isinstance(own(key), str):
            found = "a binding as an object, which azure-ai-ml cannot send"
            context.problems.append(Problem(place.key(key), found, "a value", f'write it as a text: "{own(key)}"'))
    task, retries = own("task"), own("retry_settings")
    level = settled(own("logging_level"), "logging_level", place, context)
    entry, arguments = (str(setting(task, key) or "") for key in ("entry_script", "program_arguments"))
    parallel = Parallel(
        entry_script=entry,
        input_data=str(plain(own("input_data")) or ""),
        # The SDK has 0 for a component without a size.
        mini_batch_size=number(own("mini_batch_size") or None, "mini_batch_size", None),
        partition_keys=tuple(map(str, own("partition_keys") or ())),
        max_concurrency=number(own("max_concurrency_per_instance"), "max_concurrency_per_instance", None),
        error_threshold=number(own("error_threshold"), "error_threshold", -1),
        mini_batch_error_threshold=number(own("mini_batch_error_threshold"), "mini_batch_error_threshold", -1),
        max_retries=number(setting(retries, "max_retries"), "retry_settings.max_retries", _DEFAULTS.max_retries),
        timeout=number(setting(retries, "timeout"), "retry_settings.timeout", _DEFAULTS.timeout),
        logging_level=str(level or _DEFAULTS.logging_level).upper(),
        append_row_to=str(plain(setting(task, "append_row_to")) or ""),
    )
    return replace(step, command=f"python {entry} {arguments}".strip(), parallel=parallel)


def read_copy(name: str, entity: Any, context: Context) -> Step | None:
    """Return the step of a copy, or of a merge of several inputs."""
    place = context.place(name)
    if not registered_component.attach(entity, place, context):
        return None
    inputs, outputs = step_ports.inputs(entity, place, context), step_ports.outputs(entity, context)
    fails = entity.component.data_copy_mode == "fail_if_conflict"
    command = " && ".join(_copy_command(port, output, fails) for output in outputs for port in inputs)
    return Step(name, command, inputs=inputs, outputs=outputs, location=place.location)


def _copy_command(port: Input, output: Output, fails: bool) -> str:
    """Return the command that copies an input. fails: whether a file of another input must not be replaced"""
    source, to = f"${{{{inputs.{port.name}}}}}", f"${{{{outputs.{output.name}}}}}"
    if port.type == "uri_file":
        return f"cp {source} {to}{'' if output.type == 'uri_file' else '/'}"
    conflicts = f"same=$(cd {source} && find . -type f -exec test -e {to}/{{}} \\; -print)"
    refuse = '[ -z "$same" ] || { echo "in two inputs: $same" >&2; exit 1; }'
    return f"{f'{conflicts} && {refuse} && ' if fails else ''}cp -r {source}/. {to}/"
