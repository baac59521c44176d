"""Check a step: its command, its numbers of instances and processes, and what its component requires."""

import ast
import math
import os
import re
from collections.abc import Iterator, Set
from dataclasses import replace
from pathlib import Path

from allranks.checks.plan.scope import Scope
from allranks.contract.distributions import processes_per_instance
from allranks.contract.requirements import LAUNCH, Requirement, launch_problem, requirements
from allranks.contract.single import Single
from allranks.contract.templating import is_closed, used_names, wire
from allranks.contract.variables import ELASTIC_INSTANCES, elastic_instances
from allranks.errors import InputError, Problem, finding
from allranks.plan import mltable
from allranks.plan.environment import packages
from allranks.plan.graph import Node, Parallel, StandIn, Step
from allranks.plan.literals import one_of, suggestion
from allranks.plan.ports import Input, Literal
from allranks.plan.ports import Path as DataPath
from allranks.sdk.paths import shown

_NEARLY = re.compile(
    r"\$\{\{\s*[^\s{}]*\s*}}|(?:\$?(?P<open>\{{1,3}|\()\s*|\$)"
    r"(?P<name>(?:parent\.(?:jobs\.[\w-]+\.)?)?(?P<kind>inputs|outputs)\.(?P<port>[\w-]+))(?(open)\s*(?:}{1,3}|\)))"
)
"""Matches a reference, or, with groups, a text that resembles one."""


_QUOTED = re.compile(r"'\$\{\{\s*inputs\.([^\s{}]+)\s*}}'")


def command(scope: Scope, step: Step) -> Iterator[Problem]:
    where = "command"
    if not step.command.strip():
        yield Problem(where, "it is empty", "a command")
        return
    if not is_closed(step.command):
        yield Problem(where, "a $[[ is never closed", "$[[ ... ]] around what belongs to an optional input", "add ]]")
    inputs = {port.name: port for port in step.inputs}
    known = {"inputs": list(inputs), "outputs": [port.name for port in step.outputs]}
    for name in dict.fromkeys(used_names(step.command)):
        if name.kind == "search_space":
            found = f"{name}: there is no such parameter"
            expected = one_of(sorted(scope.supplied), "only the trial of a sweep has a search space")
            yield Problem(where, found, expected, suggestion(name.name, scope.supplied))
        elif name.kind not in known:
            expected = "${{inputs.NAME}} or ${{outputs.NAME}}"
            yield Problem(where, f"{name} is unknown in a command", expected)
        elif name.name not in known[name.kind]:
            ports = known[name.kind]
            found = f"{name}: there is no such {name.kind.removesuffix('s')}"
            fix = suggestion(name.name, ports) or f"declare {name.name} in the component's {name.kind}"
            yield Problem(where, found, one_of(ports, f"the step has no {name.kind}"), fix)
        elif name.kind == "inputs" and not name.optional:
            port = inputs[name.name]
            if port.optional and port.name not in scope.supplied and scope.value(port.value) is None:
                fix = f"write $[[ ... {name} ... ]] around what needs it, or set the input"
                yield Problem(where, f"{name} is optional and has no value, but is always used", "", fix)


def quotes(scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a problem for each value with a single quote that the command puts in single quotes."""
    quoted = {match[1] for match in _QUOTED.finditer(step.command)}
    for port in step.inputs:
        value = scope.value(port.value) if port.name in quoted else None
        if isinstance(value, Literal) and "'" in str(value.value):
            expected = f"a text without ', because the command has {port.name} in single quotes"
            yield Problem(f"inputs.{port.name}", str(value.value), expected, 'use " in its place')


MOST_INSTANCES = 65_000
MOST_CONNECTED_INSTANCES = 4_000
"""The largest clusters of Azure ML, and the largest with communicating instances. Source: "Manage and increase quotas
and limits for resources with Azure Machine Learning"."""

MOST_PROCESSES = 1_792
"""The number of cores of Azure's largest size, Standard_M1792ixds_32_v3."""


def layout(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield impossible counts and limits."""
    yield from step.distribution.problems(step.instance_count)
    yield from _too_many(step)
    yield from _elastic(step)
    if step.timeout is not None and not (math.isfinite(step.timeout) and step.timeout > 0):
        yield Problem("limits.timeout", f"{step.timeout:g}", "more than 0 seconds")
    if step.shm_size <= 0:
        yield Problem("resources.shm_size", str(step.shm_size), "a size such as 2g")


def _elastic(step: Step) -> Iterator[Problem]:
    """Yield problems of the range of instances of an elastic job."""
    value = step.environment_variables.get(ELASTIC_INSTANCES)
    if not isinstance(value, str):
        return
    where = f"environment_variables.{ELASTIC_INSTANCES}"
    try:
        limits = elastic_instances({ELASTIC_INSTANCES: value})
    except InputError as error:
        yield from (replace(problem, where=where) for problem in error.problems)
        return
    if limits is None:
        return
    if not limits[0] <= step.instance_count <= limits[1]:
        fix = f"set it to {min(limits[0], step.instance_count)}:{step.instance_count}, or change instance_count"
        yield Problem(where, f"{value}, on {step.instance_count} instances", "a range with instance_count in it", fix)
    for problem in step.distribution.problems(limits[0]):
        found = f"{value}, and {problem.where} {problem.found}"
        yield Problem(where, found, f"a distribution that also fits {limits[0]} instances", "raise the minimum")


def _too_many(step: Step) -> Iterator[Problem]:
    """Yield counts that exceed any cluster. Without a limit, a number with too many digits would exhaust memory."""
    alone = step.distribution.type == Single.type
    most = MOST_INSTANCES if alone else MOST_CONNECTED_INSTANCES
    if step.instance_count > most:
        cluster = "cluster" if alone else "cluster whose instances communicate"
        expected = f"at most {most:,}, the instances of Azure ML's largest {cluster}"
        found, where = f"{step.instance_count:,}", "resources.instance_count"
        yield Problem(where, found, expected, "set it to the number of instances that the step uses")
    processes = processes_per_instance(step.distribution)
    if processes > MOST_PROCESSES:
        where = "distribution.process_count_per_instance"
        expected = f"at most {MOST_PROCESSES:,}, the cores of Azure's largest size"
        yield Problem(where, f"{processes:,}", expected, "set it to the number of GPUs of an instance")


def requirement(scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a launch that does not fit, and chosen values whose packages the environment lacks.

    An environment with unknown packages, such as a registered one, is not checked.
    """
    problem = launch_problem(step.tags.get(LAUNCH, ""), step.distribution)
    if problem is not None:
        yield problem
    required = requirements(step.tags, {port.name: port.enum for port in step.inputs})
    available = packages(step.environment.folder) if required else None
    if available is None:
        return
    lacking = [each for each in required if each.missing(available)]
    for each in lacking:
        if not each.input or (each.input not in scope.supplied and _is_chosen(scope, step, each)):
            yield _lacking_package(step, each, ", ".join(each.missing(available)), lacking)


def _is_chosen(scope: Scope, step: Step, requirement: Requirement) -> bool:
    port = next((port for port in step.inputs if port.name == requirement.input), None)
    value = scope.value(port.value) if port else None
    return isinstance(value, Literal) and wire(value.value) == requirement.value


def _lacking_package(step: Step, wrong: Requirement, missing: str, lacking: list[Requirement]) -> Problem:
    name = step.environment.name or "its environment"
    if not wrong.input:
        fix = "use an environment that has it, or add it there"
        return Problem("environment", f"{name}, which does not have {missing}", missing, fix)
    impossible = {each.value for each in lacking if each.input == wrong.input}
    port = next(port for port in step.inputs if port.name == wrong.input)
    others = [value for value in port.enum if value not in impossible]
    found = f"{wrong.value!r}, which needs {missing}; the environment {name} does not have it"
    fix = f"choose another {wrong.input}, or use a component whose environment has {missing}"
    return Problem(f"inputs.{wrong.input}", found, one_of(others, f"{missing} in {name}"), fix)


def inline_environment(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield the problems of an environment in the pipeline's file. Rules of components check those of components."""
    environment, where = step.environment, "environment"
    if step.spec:
        return
    described = environment.image or environment.conda or environment.context
    if environment.name and not (environment.version or environment.registry or described):
        expected = f"azureml:{environment.name}:VERSION or azureml:{environment.name}@latest"
        yield finding("asset-reference", where, f"{environment} has no version and no label", expected)
    if environment.folder and not os.path.isfile(Path(environment.folder, environment.dockerfile)):
        found = f"no {environment.dockerfile} in {shown(environment.folder)}"
        yield finding("dockerfile-missing", where, found, "a build context")


def not_run_here(scope: Scope, node: StandIn) -> Iterator[Problem]:
    """Yield a problem if a node does not run on this machine and no folder stands in for it."""
    if scope.here and not node.folder:
        found = f"{node.what} does not run on this machine"
        fix = f"to run the rest on its outputs: --stand-in {scope.path}{node.name}=FOLDER"
        yield Problem(scope.of(node), found, "a folder with its outputs", fix, code="not-run-here")


def ignored_variables(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a warning for each variable of a component: azure-ai-ml only sends those of the step."""
    for name in step.ignored_variables:
        where = f"environment_variables.{name}"
        found = f"{name} is set by the component; azure-ai-ml does not send the variables of a component"
        yield Problem(where, found, "a variable of the step", "set it on the step, or in the command")


def misspelt_references(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a warning for each text of the step that resembles a reference to an existing port."""
    ports = {("inputs", port.name) for port in step.inputs} | {("outputs", port.name) for port in step.outputs}
    yield from _nearly(step, "command", step.command, ports)
    for name, value in step.environment_variables.items():
        if isinstance(value, str):
            yield from _nearly(step, f"environment_variables.{name}", value, ports)


def misspelt_bindings(scope: Scope, node: Node, port: Input) -> Iterator[Problem]:
    """Yield a warning if the value of a node's input resembles a binding."""
    text = port.value.value if isinstance(port.value, Literal) else getattr(port.value, "path", None)
    if isinstance(text, str):
        yield from _nearly(node, scope.key(node, f"inputs.{port.name}"), text, frozenset())


def _nearly(node: Node, where: str, text: str, ports: Set[tuple[str, str]]) -> Iterator[Problem]:
    in_python = node.location is not None and node.location.file.endswith((".py", ".ipynb"))
    for match in _NEARLY.finditer(text):
        if (match["kind"], match["port"]) in ports or (match["name"] or "").startswith("parent."):
            right = f"${{{{{match['name']}}}}}"
            fix = f"write {right}" + (f", in an f-string ${{{{{right[1:]}}}}}" if in_python else "")
            yield Problem(where, f"{match[0]} is not a reference, and is not replaced", right, fix)


def dropped_environment(_scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield a warning if a step's environment is not its component's (azure-ai-ml 1.35, `Command._to_rest_object`)."""
    if step.ignored_environment:
        yield Problem(
            "environment",
            f"{step.ignored_environment} is set on the step, which azure-ai-ml does not send",
            f"the environment of its component, in which it runs: {step.environment or 'none'}",
            "load the component again, and set the environment of that",
            code="ignored-environment",
        )


LOGGING_LEVELS = ("DEBUG", "INFO", "WARN", "WARNING", "ERROR", "CRITICAL")

_LEAST = {
    "max_concurrency_per_instance": 1,
    "mini_batch_size": 1,
    "error_threshold": -1,
    "mini_batch_error_threshold": -1,
    "retry_settings.max_retries": 0,
    "retry_settings.timeout": 1,
}


def parallel(scope: Scope, step: Step) -> Iterator[Problem]:
    if (settings := step.parallel) is None:
        return
    yield from _ports(step, settings)
    values = (
        *(settings.max_concurrency, settings.mini_batch_size, settings.error_threshold),
        *(settings.mini_batch_error_threshold, settings.max_retries, settings.timeout),
    )
    for (key, least), value in zip(_LEAST.items(), values, strict=True):
        if value is not None and value < least:
            yield Problem(key, str(value), f"at least {least}")
    if settings.logging_level not in LOGGING_LEVELS:
        yield Problem("logging_level", settings.logging_level, one_of(LOGGING_LEVELS, ""))
    if step.code is not None:
        yield from _script(settings.entry_script, Path(step.code.folder))
    if scope.here:
        yield from _tables(scope, step, settings)


def _ports(step: Step, settings: Parallel) -> Iterator[Problem]:
    where, inputs = "input_data", [port.name for port in step.inputs]
    if not settings.data:
        found = settings.input_data or "it is empty"
        yield Problem(where, found, "the input to divide, such as ${{inputs.data}}")
    for name in settings.data:
        if name not in inputs:
            yield Problem(where, f"there is no input {name}", one_of(inputs, "an input that the step declares"))
    for used in used_names(settings.append_row_to):
        outputs = [port.name for port in step.outputs]
        if used.kind != "outputs" or used.name not in outputs:
            expected = one_of(outputs, "an output that the step declares")
            yield Problem("task.append_row_to", f"{used} is not an output of the step", expected)


def _script(entry: str, code: Path) -> Iterator[Problem]:
    where, file = "task.entry_script", code / entry
    if not entry or not os.path.isfile(file):
        found = f"{entry} is not in the code" if entry else "it is empty"
        yield Problem(where, found, "a Python file, relative to the code")
        return
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return  # it may be written for another Python than this one; a worker reports the line
    if not _binds(tree.body, "run"):
        yield Problem(where, f"{entry} defines no function run", "def run(mini_batch):", "define it in the script")


def _binds(body: list[ast.stmt], name: str) -> bool:
    """Return whether statements may bind a name."""
    for node in (inner for statement in body for inner in ast.walk(statement)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            return True
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if any((alias.asname or alias.name) in (name, "*") for alias in node.names):
                return True
        elif isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            return True
    return False


def _tables(scope: Scope, step: Step, settings: Parallel) -> Iterator[Problem]:
    for port in step.inputs:
        value = scope.value(port.value)
        if port.name in settings.data and isinstance(value, DataPath):
            try:
                table = mltable.read(Path(value.path))
            except OSError as error:
                yield Problem(f"inputs.{port.name}", str(error), "an MLTable that can be read")
                continue
            if table is None and port.type == "mltable" and os.path.isdir(Path(value.path)):
                found = f"{value.path} has no file {mltable.NAME}"
                yield Problem(f"inputs.{port.name}", found, "a folder with one")
