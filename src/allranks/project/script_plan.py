"""The plan of a script's job, without azure-ai-ml, whose import takes longer than the rest of a launch; and its YAML.

The plan is that of the YAML: a test compares them for every distribution.
"""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from allranks.errors import InputError, Problem, StepPlace, raise_any
from allranks.plan.assets.lookup import AssetLookup, Registered
from allranks.plan.environment import Environment
from allranks.plan.graph import Graph, Plan, Step
from allranks.plan.ports import GraphInput, GraphOutput, Input, NodeOutput, Output
from allranks.plan.ports import Path as DataPath
from allranks.plan.reader import environments, snapshot, step_ports
from allranks.plan.reader.context import Context
from allranks.project.files import create
from allranks.project.script_job import ScriptJob
from allranks.sdk.compilation import name_of_file
from allranks.sdk.paths import is_remote
from allranks.sdk.session import session
from allranks.sdk.uploads import CODE, CONTEXT, Upload, code_at, context_of
from allranks.text import count


def plan_of(job: ScriptJob, snapshots: Path, registered: Registered | None = None) -> Plan:
    """Return the plan of a job. Raise InputError for code, data and environments that cannot be read here.

    snapshots:  the folder to which the code is copied
    registered: finds assets that are registered on this machine; None: there are none
    """
    name = _name(job)
    place = StepPlace(name)
    context = Context(Path.cwd(), snapshots, {}, lookup=AssetLookup.of(job.script.parent, registered), alone=True)
    inputs = []
    for port, path in job.inputs.items():
        where, kind = place.key(f"inputs.{port}"), _type(path)
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
    raise_any(context.problems)
    outputs = tuple(GraphOutput(output, NodeOutput(name, output)) for output in job.outputs)
    return Plan(name, Graph((step,), tuple(inputs), outputs), display_name=job.script.stem, source=str(job.script))


def uploads_of(job: ScriptJob) -> list[Upload]:
    """Return what is uploaded with the job. Raise InputError if a file cannot be read."""
    uploads = [(CODE, code_at(job.code, str(job.code), job.command))]
    if folder := _environment_folder(job):
        uploads.append((CONTEXT, context_of(folder)))
    return [Upload(kind, (_name(job),), files) for kind, files in uploads]


def emit(job: ScriptJob, file: Path) -> tuple[str, ...]:
    """Write the YAML of a job to a new file. Return the names of the written files, relative to its folder.

    The folder of an environment that comes with allranks is copied to ``environments/NAME`` beside the file, unless
    that exists. Raise InputError, without writing anything, if the file exists or is not YAML.
    """
    where = f"--emit {file}"
    if file.suffix not in (".yml", ".yaml"):
        raise InputError(Problem(where, "it is not YAML", "FILE.yml"))
    if os.path.lexists(file):
        raise InputError(Problem(where, "the file exists", "a new file", "move it, or name another file"))
    if not file.parent.is_dir():
        raise InputError(Problem(where, "there is no such folder", "an existing folder"))
    folder, contents = file.absolute().parent, dict[str, bytes]()
    if environment := _environment_folder(job):
        copy = f"environments/{environment.name}"
        if not (folder / copy).exists():
            files = context_of(environment).files
            contents = {f"{copy}/{name}": path.read_bytes() for name, path in files.items()}
    contents[file.name] = _yaml(job, file.absolute()).encode()
    return create(folder, contents)


def _yaml(job: ScriptJob, file: Path) -> str:
    environment: Any = _relative(str(job.environment), file)
    if folder := _environment_folder(job):
        environment = {"build": {"path": f"environments/{folder.name}"}}
    elif isinstance(job.environment, Path):
        environment = f"file:{environment}"
    tree: dict[str, Any] = {
        "code": _relative(str(job.code), file),
        "environment": environment,
        "environment_variables": dict(job.variables),
        "inputs": {name: {"type": _type(path), "path": _relative(path, file)} for name, path in job.inputs.items()},
        "outputs": {name: {"type": "uri_folder"} for name in job.outputs},
        "distribution": {"type": job.distribution.type}
        | {name: value for name, value in asdict(job.distribution).items() if value},
        "resources": {"instance_count": job.instance_count},
    }
    if job.size:
        tree["resources"] |= {"instance_type": job.size, "shm_size": f"{job.shm_gib}g"}
    filled = {name: value for name, value in tree.items() if value}
    title = f"Runs {job.script.name} on {count(job.instance_count, 'instance')}"
    return (
        f"# {title}: az ml job create --file {file.name}, or allranks submit {file.name}\n"
        "$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json\n"
        f"type: command\ndisplay_name: {json.dumps(job.script.stem)}\ncommand: >-\n  {job.command}\n"
        + yaml.safe_dump(filled, sort_keys=False, width=sys.maxsize, allow_unicode=True)
    )


def _name(job: ScriptJob) -> str:
    return name_of_file(job.script) or "script"


def _type(path: str) -> str:
    return "uri_file" if Path(path).is_file() else "uri_folder"


def _relative(path: str, file: Path) -> str:
    return path if is_remote(path) else Path(os.path.relpath(path, file.parent)).as_posix()


def _environment_folder(job: ScriptJob) -> Path | None:
    """Return the folder of an environment that comes with allranks; None for any other environment."""
    return job.environment if isinstance(job.environment, Path) and job.environment.is_dir() else None


def _environment(environment: str | Path, place: StepPlace, context: Context) -> Environment:
    if isinstance(environment, str):
        return environments.local(environment, place, context)
    if environment.is_dir():
        return environments.of_folder(environment, place, context)
    with session(client=False):
        return environments.of_file(environment, place, context)
