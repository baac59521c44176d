"""A job of the SDK as a plan."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.plan.graph import (
    PRIMITIVES,
    Input,
    Literal,
    Location,
    PipelineInput,
    PipelineOutput,
    Plan,
    Step,
    StepOutput,
)
from allranks.plan.reader import command_step, step_ports
from allranks.plan.reader.bindings import value_of
from allranks.plan.reader.context import Context, Place, plain
from allranks.plan.reader.settings import guessed_type
from allranks.sdk.paths import is_remote, located, shown

Locate = Callable[[str], Location | None]
"""Says where a step stands in the user's files."""

_READERS: dict[str, Callable[[str, Any, Location | None, Context], Step | None]] = {"Command": command_step.read}
"""How a node becomes a step, by its class. A class that is missing here is refused."""

_KINDS = {
    "Sweep": "a sweep",
    "Parallel": "a parallel node",
    "Pipeline": "a nested pipeline",
    "ConditionNode": "an if_else node",
    "DoWhile": "a do_while loop",
    "ParallelFor": "a parallel_for loop",
    "Spark": "a Spark node",
    "Import": "an import node",
}
"""What messages call the classes that are not run yet; any other is called by its type."""


def read(job: Any, snapshots: Path | None, source: str = "", locate: Locate = lambda step: None) -> Plan:  # noqa: ARG005
    """The plan of a pipeline job, or of a command job, which becomes a plan of one step.

    snapshots: the folder to which code is copied; None: it is not copied, and the plan cannot run
    locate:    says where a step stands, for messages

    Raises InputError, with every problem that was found, where the local engine cannot run it.
    """
    from azure.ai.ml.entities import Command, PipelineJob

    if not isinstance(job, (Command, PipelineJob)):
        where = f"job {job.name or job.display_name or ''}".rstrip() + (f" ({shown(source)})" if source else "")
        found = f"a job of type {job.type} is not yet run by the local engine"
        raise InputError(Problem(where, found, "a pipeline or a command job"))
    plan = _pipeline if isinstance(job, PipelineJob) else _command_job
    return plan(job, snapshots, source, locate)


def unread(job: Any) -> tuple[str, ...]:
    """The steps of which nothing can be said here: of kinds that are not run yet, or with a component that is
    registered or whose code is elsewhere."""
    from azure.ai.ml.entities import PipelineJob

    nodes = job.jobs if isinstance(job, PipelineJob) else {str(job.name or job.type): job}
    return tuple(name for name, node in nodes.items() if not _is_at_hand(node))


def _is_at_hand(node: Any) -> bool:
    if type(node).__name__ not in _READERS or isinstance(node.component, str):
        return False
    code = node.component._get_origin_code_in_str()
    return code is None or not (is_remote(code) or code.startswith("git+"))


def types_by_use(job: Any) -> dict[str, str]:
    """For inputs of a pipeline job the type of the port that each is bound to: what an input without annotation is.

    Ports whose type the SDK has guessed itself, those of a command that is written into the pipeline, do not count.
    """
    from azure.ai.ml.entities import Command, PipelineJob

    types: dict[str, str] = {}
    for node in job.jobs.values() if isinstance(job, PipelineJob) else ():
        if isinstance(node, Command) and not _is_inline(node.component):
            for _, port in step_ports.flat(node.inputs):
                name = _bound(port)
                if name and port._meta is not None and isinstance(port._meta.type, str):
                    types.setdefault(name, port._meta.type)
    return types


def _pipeline(job: Any, snapshots: Path | None, source: str, locate: Locate) -> Plan:
    declared = dict(_declared(job))
    given = {name: port._data for name, port in step_ports.flat(job.inputs)}
    values = {name: plain(meta.default) for name, meta in declared.items()} | {
        name: plain(data) for name, data in given.items() if isinstance(plain(data), (str, int, float, bool))
    }
    context = Context(Path(job.base_path or "."), snapshots, values)
    steps = list(_steps(job.jobs, locate, context))
    outputs = list(_outputs(job, steps, locate, context))
    _refuse_extra_jobs(job, source, context)
    if context.problems:
        raise InputError.of(context.problems)
    used = types_by_use(job)
    return Plan(
        name=_name(job, source),
        steps=in_order(steps),
        inputs=tuple(
            _pipeline_input(name, declared.get(name), given.get(name), used.get(name), context)
            for name in declared | given
        ),
        outputs=tuple(outputs),
        display_name=str(job.display_name or ""),
        description=str(job.description or ""),
        experiment=str(job.experiment_name or ""),
        source=source,
        continue_on_step_failure=job.settings.continue_on_step_failure is not False,
        force_rerun=job.settings.force_rerun is True,
    )


def _command_job(job: Any, snapshots: Path | None, source: str, locate: Locate) -> Plan:
    context = Context(Path(job.base_path or "."), snapshots, {})
    name = _name(job, source)
    steps = list(_steps({name: job}, locate, context))
    if context.problems:
        raise InputError.of(context.problems)
    (step,) = steps
    inputs = step.inputs
    step = replace(
        step,
        # The job's inputs are the plan's, as if a pipeline of one step passed them on.
        inputs=tuple(replace(port, value=PipelineInput(port.name)) for port in inputs),
        # A job by itself always runs on Azure ML; only steps of pipelines are reused.
        deterministic=False,
        # And its own environment is sent; only a step's is not.
        environment=step.unsent_environment or step.environment,
        unsent_environment="",
    )
    return Plan(
        name=name,
        steps=(step,),
        inputs=inputs,
        display_name=step.display_name,
        description=step.description,
        experiment=str(job.experiment_name or ""),
        source=source,
    )


def in_order(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Every step after those that it needs, otherwise as they were defined; a cycle, and what needs it, comes last."""
    defined = list(steps)
    places = {step.name: place for place, step in enumerate(defined)}
    followers: dict[int, list[int]] = {}
    waits: list[int] = []
    for place, step in enumerate(defined):
        needed = [places[name] for name in step.needs() if name in places]
        waits.append(len(needed))
        for other in needed:
            followers.setdefault(other, []).append(place)
    ready = [place for place, count in enumerate(waits) if not count]
    order: list[int] = []
    while ready:
        order.append(place := heapq.heappop(ready))
        for other in followers.get(place, ()):
            waits[other] -= 1
            if not waits[other]:
                heapq.heappush(ready, other)
    met = set(order)
    return tuple(defined[place] for place in (*order, *(place for place in range(len(defined)) if place not in met)))


def _steps(nodes: Mapping[str, Any], locate: Locate, context: Context) -> Iterator[Step]:
    for name, node in nodes.items():
        kind = type(node).__name__
        location = locate(name)
        if kind in _READERS:
            step = _READERS[kind](name, node, location, context)
            if step:
                yield step
        else:
            called = _KINDS.get(kind, f"a node of type {node.type}")
            where = f"step {name}{f' ({location})' if location else ''}"
            found = f"{called} is not yet run by the local engine"
            context.problems.append(Problem(where, found, "a step that runs a command"))


def _declared(job: Any) -> Iterator[tuple[str, Any]]:
    """What the pipeline's inputs are declared as, where they are."""
    from azure.ai.ml.entities._inputs_outputs import GroupInput

    for name, meta in job.component.inputs.items():
        if isinstance(meta, GroupInput):
            yield from meta.flatten(name).items()
        else:
            yield name, meta


def _pipeline_input(name: str, meta: Any, data: Any, used: str | None, context: Context) -> Input:
    from azure.ai.ml import Input as SdkInput

    kind = meta.type if meta is not None else None
    if not kind and isinstance(data, SdkInput):
        kind = data.type
    if kind == "integer" and used == "number":
        # A default of 1 says nothing against 0.5.
        kind = used
    if not kind:
        value = plain(data)
        kind = used or ("string" if value is None else guessed_type(value))
    port = meta if meta is not None else SdkInput(type=kind)
    value = step_ports.data_value(data, kind, context)
    if value is None and port.default is not None:
        value = Literal(plain(port.default))
    mode = data.mode if isinstance(data, SdkInput) else None
    return replace(
        step_ports.definition(name, port, value, mode),
        type=str(kind),
        mode="" if kind in PRIMITIVES else str(mode or port.mode or "ro_mount"),
    )


def _outputs(job: Any, steps: list[Step], locate: Locate, context: Context) -> Iterator[PipelineOutput]:
    from azure.ai.ml import Output as SdkOutput

    ports = {(step.name, port.name): port.type for step in steps for port in step.outputs}
    for name, source in _sources(job, steps, locate, context):
        output = job.outputs[name]
        path = output._data.path if isinstance(output._data, SdkOutput) else None
        kind = output._type or ports.get((source.step, source.name)) or "uri_folder"
        yield PipelineOutput(name, source, str(kind), located(str(path), context.base) if path else None)


def _sources(job: Any, steps: list[Step], locate: Locate, context: Context) -> Iterator[tuple[str, StepOutput]]:
    """The pipeline's outputs with what writes them. A function returns them; in YAML, steps bind theirs to them."""
    for name, output in job.outputs.items():
        bound = output._binding_output
        if bound is not None:
            yield name, StepOutput(bound._owner.name, bound._port_name)
    for step in steps:
        for port, name in step_ports.pipeline_outputs(job.jobs[step.name]):
            if name in job.outputs:
                yield name, StepOutput(step.name, port)
            else:
                known = ", ".join(job.outputs)
                expected = f"one of {known}" if known else "an output that the pipeline declares"
                where = Place(step.name, locate(step.name)).key(f"outputs.{port}")
                context.problems.append(Problem(where, f"the pipeline has no output {name}", expected))


def _refuse_extra_jobs(job: Any, source: str, context: Context) -> None:
    for key in ("on_init", "on_finalize"):
        if getattr(job.settings, key) is not None:
            where = f"key settings.{key}{f' ({shown(source)})' if source else ''}"
            context.problems.append(Problem(where, f"{key} is not yet run by the local engine", "", "remove it"))


def _bound(port: Any) -> str | None:
    """The input of the pipeline that a port is wholly bound to."""
    data = plain(port._data)
    value = value_of(data) if isinstance(data, str) else None
    return value.name if isinstance(value, PipelineInput) else None


def _is_inline(component: Any) -> bool:
    return isinstance(component, str) or (component._is_anonymous and not component._source_path)


def _name(job: Any, source: str) -> str:
    component = job.component
    own = job.name or (None if component._is_anonymous else component.name)
    return str(own or re.sub(r"\W+", "_", Path(source).stem).strip("_").lower() or job.type)
