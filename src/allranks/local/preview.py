"""What a plan would start, without starting it: the ranks of each step with their environments, and the commands."""

from __future__ import annotations

import asyncio

from allranks.contract.job import Job
from allranks.contract.launch import Process
from allranks.contract.produce import processes
from allranks.contract.templating import render
from allranks.local.engine import AUTO
from allranks.local.instances.kinds import INSTANCE_KINDS, InstanceKind
from allranks.local.instances.supervisor import Supervisor, UnfitError
from allranks.local.step import rank_environment
from allranks.local.step.launch import launch_of
from allranks.local.step.staging import seen_at
from allranks.local.tracking.needed import may_track
from allranks.plan import values
from allranks.plan.graph import Plan, Step
from allranks.plan.ports import PRIMITIVES, NodeOutput
from allranks.runs.workspace import Workspace

RUN = "RUN"
"""Stands for the id that the run would get."""


def environments(
    plan: Plan, workspace: Workspace, kind: InstanceKind
) -> dict[str, list[tuple[Process, dict[str, str]]]]:
    """By step, each process with the variables that it would be given on that kind of instances."""
    return {step.name: _ranks(plan, step, workspace, kind) for step in plan.steps}


def commands(plan: Plan, workspace: Workspace, kind: InstanceKind) -> dict[str, str]:
    """By step, the command of its first instance. What another step has yet to write stands as <step.output>."""
    found = {}
    for step in plan.steps:
        inputs, outputs = _ports(plan, step, workspace, kind)
        found[step.name] = render(step.command, inputs, outputs)
    return found


def _ranks(plan: Plan, step: Step, workspace: Workspace, kind: InstanceKind) -> list[tuple[Process, dict[str, str]]]:
    instances = kind.instances(range(step.instance_count))
    launch = launch_of(step, instances, kind)
    inputs, outputs = _ports(plan, step, workspace, kind)
    tracked = may_track(step)
    job = Job(
        run_id=f"{RUN}_{step.name}",
        root_run_id=RUN,
        experiment=plan.experiment or plan.name,
        tracking_uri=workspace.tracking_uri if tracked else None,
        mlflow_run_id="MLFLOW_RUN" if tracked else None,
        inputs={name: value for name, value in inputs.items() if value is not None},
        outputs=outputs,
        parameters={
            port.name: value for port in step.inputs if port.type in PRIMITIVES and (value := inputs[port.name])
        },
    )
    return [(process, rank_environment.given(step, job, launch, process, kind)) for process in processes(launch)]


def _ports(
    plan: Plan, step: Step, workspace: Workspace, kind: InstanceKind
) -> tuple[dict[str, str | None], dict[str, str]]:
    folder = workspace.runs / RUN / step.name
    inputs: dict[str, str | None] = {}
    for port in values.given(plan, step, _yet_to_come):
        place = seen_at(port, folder / "instances" / "0", mounts=kind.isolated)
        inputs[port.name] = str(place) if place else port.value
    return inputs, {output.name: str(folder / "named-outputs" / output.name) for output in step.outputs}


def _yet_to_come(reference: NodeOutput) -> str:
    return f"<{reference.step}.{reference.name}>"


def kind_of(instances: str) -> InstanceKind:
    """The kind of instances that `auto`, `rack` or `loopback` means on this machine."""
    if instances != AUTO:
        return INSTANCE_KINDS[instances]
    return INSTANCE_KINDS[asyncio.run(_first_that_works())]


async def _first_that_works() -> str:
    for name in INSTANCE_KINDS:
        try:
            await (await Supervisor.start(name)).close()
        except UnfitError:
            continue
        return name
    return next(reversed(INSTANCE_KINDS))
