"""Preview a plan without running it: the ranks of each step with their environments, and the commands."""

import asyncio
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from tempfile import gettempdir

from allranks.contract.launch import Process
from allranks.contract.produce import Job, job_environment, processes
from allranks.contract.templating import render
from allranks.history.node_records import job_name, node_folder
from allranks.local.attempt.collect import save_path
from allranks.local.attempt.stage import TMP, Links, staged_path, write_path
from allranks.local.instances.instance import InstanceKind
from allranks.local.instances.supervisor import INSTANCE_KINDS, start_supervisor
from allranks.local.options import AUTO
from allranks.local.rank_environment import launch_of
from allranks.local.scope import Scope
from allranks.local.tracking.client import may_track
from allranks.plan import values
from allranks.plan.graph import DoWhile, Node, ParallelFor, Pipeline, Plan, Step, Sweep
from allranks.plan.ports import PRIMITIVES, NodeOutput, Reference
from allranks.plan.values import graph_output_paths
from allranks.plan.walk import as_pipeline, as_trial, first_iteration
from allranks.workspace import Workspace

RUN = "RUN"
"""Placeholder for the id of the run."""


@dataclass(frozen=True)
class StepPreview:
    """The processes that a step would start. An output that another step has yet to write is shown as <step.output>.

    command: the command of its first instance
    ranks:   each process with its environment variables
    """

    command: str
    ranks: tuple[tuple[Process, Mapping[str, str]], ...]


def previews(plan: Plan, workspace: Workspace, kind: InstanceKind) -> dict[str, StepPreview]:
    """Return a preview of each step on that kind of instances, by path. The body of a loop is shown as its first
    iteration, and the body of a sweep as its first trial."""
    scope = Scope(plan.graph, "", values.inputs_of(plan), graph_output_paths(plan.graph, {}))
    return {path: _preview(plan, step, within, path, workspace, kind) for path, step, within in _steps(scope)}


def _steps(scope: Scope) -> Iterator[tuple[str, Step, Scope]]:
    for node in scope.graph.nodes:
        path = scope.path_of(node)
        if isinstance(node, Step):
            yield path, node, scope
        elif isinstance(node, Pipeline):
            yield from _steps(_inner(scope, node, node, f"{path}."))
        elif isinstance(node, (DoWhile, ParallelFor)):
            inner = _inner(scope, node, as_pipeline(node.body), f"{path}[{first_iteration(node)}].")
            if isinstance(node, ParallelFor):
                inner.output_paths, inner.inputs = {}, {**inner.inputs, **_first_item(scope, node)}
            yield from _steps(inner)
        elif isinstance(node, Sweep):
            inner = _inner(scope, node, as_trial(node, 0), f"{path}.")
            values = {name: f"<search_space.{name}>" for name in node.sampled}
            inner.output_paths, inner.inputs = {}, {**inner.inputs, **values}
            yield from _steps(inner)


def _inner(scope: Scope, node: Node, pipeline: Pipeline, path: str) -> Scope:
    inputs = values.of_pipeline(pipeline, functools.partial(_lookup, scope))
    return Scope(pipeline.graph, path, inputs, graph_output_paths(pipeline.graph, scope.output_paths_of(node)))


def _first_item(scope: Scope, node: ParallelFor) -> dict[str, str | None]:
    items = node.items if isinstance(node.items, tuple) else ()
    lookup = functools.partial(_lookup, scope)
    return {name: values.resolve(value, lookup) for name, value in items[0].values} if items else {}


def _lookup(scope: Scope, reference: Reference) -> str | None:
    if isinstance(reference, NodeOutput):
        return f"<{scope.path}{reference.node}.{reference.name}>"
    return scope.inputs.get(reference.name)


def _preview(plan: Plan, step: Step, scope: Scope, path: str, workspace: Workspace, kind: InstanceKind) -> StepPreview:
    folder, name = node_folder(workspace.run_folder(RUN), path), job_name(RUN, path)
    lookup = functools.partial(_lookup, scope)
    resolved = values.resolved_inputs(step.inputs, lookup)
    instance_folder = folder / "instances" / "0"
    links = Links(TMP if kind.isolated else f"{gettempdir()}/allranks-{RUN}")
    inputs: dict[str, str | None] = {}
    for port in resolved:
        path_seen = staged_path(port, instance_folder, mounts=kind.isolated)
        value = str(path_seen) if path_seen else port.value
        inputs[port.name] = value if value is None or port.type in PRIMITIVES else links.plain(value)
        if path_seen and port.value and port.type == "uri_file" and port.value.startswith("<"):
            # A file keeps its name, which the writing step decides.
            inputs[port.name] = f"{inputs[port.name]}/{port.value}"
    outputs = {
        output.name: links.plain(
            str(
                write_path(output, save_path(output, scope.output_path_of(step, output), folder, name), instance_folder)
            )
        )
        for output in step.outputs
    }
    launch = launch_of(step, kind.instances(range(step.instance_count)), kind)
    tracked = may_track(step)
    job = Job(
        run_id=name,
        root_run_id=RUN,
        experiment=plan.experiment or plan.name,
        tracking_uri=workspace.tracking_uri if tracked else None,
        mlflow_run_id="MLFLOW_RUN" if tracked else None,
        inputs={name: value for name, value in inputs.items() if value is not None},
        outputs=outputs,
        parameters={port.name: port.value for port in resolved if port.type in PRIMITIVES and port.value is not None},
    )
    own = {name: values.resolve(value, lookup) or "" for name, value in step.environment_variables.items()}
    ranks = tuple(
        (process, {**job_environment(job, launch, process), **kind.environment(), **own})
        for process in processes(launch)
    )
    return StepPreview(render(step.command, inputs, outputs), ranks)


def kind_of(instances: str) -> InstanceKind:
    """Return the kind of instances that `auto`, `rack` or `loopback` selects on this machine."""
    if instances != AUTO:
        return INSTANCE_KINDS[instances]

    async def find() -> str:
        supervisor, _ = await start_supervisor(AUTO, offline=True)
        await supervisor.close()
        return supervisor.kind

    return INSTANCE_KINDS[asyncio.run(find())]
