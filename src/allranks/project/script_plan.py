"""Plan the job of a script without azure-ai-ml, whose import takes longer than the rest of a launch.

The plan is that of the job that `emit` writes: a test compares them for every distribution.
"""

from __future__ import annotations

from pathlib import Path

from allranks.errors import InputError, StepPlace
from allranks.plan.assets.lookup import AssetLookup, Registered
from allranks.plan.environment import Environment
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import GraphInput, GraphOutput, Input, NodeOutput, Output
from allranks.plan.ports import Path as DataPath
from allranks.plan.reader import environments, snapshot, step_ports
from allranks.plan.reader.context import Context
from allranks.project.script_job import ScriptJob
from allranks.sdk.compilation import name_of_file
from allranks.sdk.session import session
from allranks.sdk.uploads import CODE, CONTEXT, Upload, code_at, context_of


def name_of(job: ScriptJob) -> str:
    return name_of_file(job.script) or "script"


def type_of(path: str) -> str:
    return "uri_file" if Path(path).is_file() else "uri_folder"


def plan_of(job: ScriptJob, snapshots: Path, registered: Registered | None = None) -> Plan:
    """Return the plan of a job. Raise InputError for code, data and environments that cannot be read here.

    snapshots:  the folder to which the code is copied
    registered: finds what is registered on this machine; None: nothing is
    """
    name = name_of(job)
    place = StepPlace(name)
    context = Context(Path.cwd(), snapshots, {}, lookup=AssetLookup.of(job.script.parent, registered), alone=True)
    inputs = []
    for port, path in job.inputs.items():
        where, kind = place.key(f"inputs.{port}"), type_of(path)
        inputs.append(Input(port, kind, step_ports.resolved(DataPath(path), kind, port, where, context), "ro_mount"))
    code = code_at(job.code, place.key("code"), job.command, (snapshots, snapshots.parent))
    step = Step(
        name,
        job.command,
        display_name=job.script.stem,
        code=snapshot.copy_listed(code, snapshots, place.key("code"), job.code),
        environment=_environment(job.environment, place, context),
        environment_variables=job.variables,
        inputs=tuple(Input(each.name, each.type, GraphInput(each.name), each.mode) for each in inputs),
        outputs=tuple(Output(output, "uri_folder", "rw_mount") for output in job.outputs),
        distribution=job.distribution,
        instance_count=job.instance_count,
        instance_type=job.size,
        shm_size=job.shm_gib << 30,
        deterministic=False,
    )
    if context.problems:
        raise InputError.of(context.problems)
    outputs = tuple(GraphOutput(output, NodeOutput(name, output)) for output in job.outputs)
    return Plan(name, Graph((step,), tuple(inputs), outputs), display_name=job.script.stem, source=str(job.script))


def uploads_of(job: ScriptJob) -> list[Upload]:
    """Return what is uploaded with the job. Raise InputError if a file cannot be read."""
    uploads = [(CODE, code_at(job.code, str(job.code), job.command))]
    if isinstance(job.environment, Path) and job.environment.is_dir():
        uploads.append((CONTEXT, context_of(job.environment)))
    return [Upload(kind, (name_of(job),), files, files.size()) for kind, files in uploads]


def _environment(environment: str | Path, place: StepPlace, context: Context) -> Environment:
    if isinstance(environment, str):
        return environments.local(environment, place, context)
    if environment.is_dir():
        return environments.of_folder(environment, place, context)
    with session(client=False):
        return environments.of_file(environment, place, context)
