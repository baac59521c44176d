"""Write the job of a script for Azure ML: as a YAML file, or as a Python file with a pipeline."""

from __future__ import annotations

import json
import keyword
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from allranks.errors import InputError, Problem
from allranks.history.formatting import count
from allranks.project.files import create
from allranks.project.script_job import ScriptJob
from allranks.project.script_plan import name_of, type_of
from allranks.sdk.paths import is_remote
from allranks.sdk.uploads import context_of

_CLASSES = {
    "mpi": "MpiDistribution",
    "pytorch": "PyTorchDistribution",
    "ray": "RayDistribution",
    "tensorflow": "TensorFlowDistribution",
}
_ENTITIES = "from azure.ai.ml.entities import BuildContext, Environment\n"
_PYTHON = '''\
"""{title}: allranks submit {file}, or allranks run {file}"""

from pathlib import Path

from azure.ai.ml import {names}
{imports}
HERE = Path(__file__).parent

SCRIPT = command(
{arguments}
)


@dsl.pipeline(name="{step}", display_name={display_name})
def pipeline({parameters}):
    {variable} = SCRIPT({bound})
    return {outputs}


job = pipeline({values})
'''


def emit(job: ScriptJob, file: Path) -> tuple[str, ...]:
    """Write a job to a new file, and return the names of the written files, relative to its folder.

    The folder of an environment that comes with allranks is copied to ``environments/NAME`` beside the file, unless it
    is there. Raise InputError, without writing anything, if the file exists or is neither YAML nor Python.
    """
    where = f"--emit {file}"
    if file.suffix not in (".py", ".yml", ".yaml"):
        raise InputError(Problem(where, "it is neither YAML nor Python", "FILE.yml or FILE.py"))
    if os.path.lexists(file):
        raise InputError(Problem(where, "the file exists", "a new file", "move it, or name another file"))
    if not file.parent.is_dir():
        raise InputError(Problem(where, "there is no such folder", "an existing folder"))
    folder, contents = file.absolute().parent, dict[str, bytes]()
    if isinstance(job.environment, Path) and job.environment.is_dir():
        copy = f"environments/{job.environment.name}"
        if not (folder / copy).exists():
            files = context_of(job.environment).files
            contents = {f"{copy}/{name}": path.read_bytes() for name, path in files.items()}
    contents[file.name] = (_python if file.suffix == ".py" else _yaml)(job, file.absolute()).encode()
    return create(folder, contents).written


def _yaml(job: ScriptJob, file: Path) -> str:
    environment: Any = _environment(job, file)
    if isinstance(job.environment, Path):
        environment = {"build": {"path": environment}} if job.environment.is_dir() else f"file:{environment}"
    inputs = {name: {"type": type_of(path), "path": _path(path, file)} for name, path in job.inputs.items()}
    tree: dict[str, Any] = {
        "code": _path(str(job.code), file),
        "environment": environment,
        "environment_variables": dict(job.variables),
        "inputs": inputs,
        "outputs": {name: {"type": "uri_folder"} for name in job.outputs},
        "distribution": {"type": job.distribution.type, **_settings(job)},
        "resources": {"instance_count": job.instance_count},
    }
    if job.size:
        tree["resources"] |= {"instance_type": job.size, "shm_size": f"{job.shm_gib}g"}
    filled = {name: value for name, value in tree.items() if value}
    return (
        f"# {_title(job)}: az ml job create --file {file.name}, or allranks submit {file.name}\n"
        "$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json\n"
        f"type: command\ndisplay_name: {json.dumps(job.script.stem)}\ncommand: >-\n  {job.command}\n"
        + yaml.safe_dump(filled, sort_keys=False, width=sys.maxsize, allow_unicode=True)
    )


def _python(job: ScriptJob, file: Path) -> str:
    step = name_of(job)
    variable = step if step.isidentifier() and not keyword.iskeyword(step) else f"_{step}"
    if isinstance(job.environment, str):
        environment = _quoted(job.environment)
    else:
        form = "Environment(build=BuildContext(path={}))" if job.environment.is_dir() else "load_environment({})"
        environment = form.format(_here(_environment(job, file)))
    names = [*["Input"] * bool(job.inputs), *["Output"] * bool(job.outputs), _CLASSES[job.distribution.type]]
    names += ["command", "dsl", *["load_environment"] * environment.startswith("load")]
    types = {name: f'Input(type="{type_of(path)}"' for name, path in job.inputs.items()}
    paths = {name: _quoted(path) if is_remote(path) else _here(_path(path, file)) for name, path in job.inputs.items()}
    settings = ", ".join(f"{name}={value!r}" for name, value in _settings(job).items())
    arguments = {
        "display_name": _quoted(job.script.stem),
        "command": _quoted(job.command),
        "code": _here(_path(str(job.code), file)),
        "environment": environment,
        "environment_variables": _mapping({name: _quoted(value) for name, value in job.variables.items()}),
        "inputs": _mapping({name: f"{declared})" for name, declared in types.items()}),
        "outputs": _mapping(dict.fromkeys(job.outputs, 'Output(type="uri_folder")')),
        "distribution": f"{_CLASSES[job.distribution.type]}({settings})",
        "instance_count": str(job.instance_count),
        "instance_type": _quoted(job.size) if job.size else "",
        "shm_size": f'"{job.shm_gib}g"' if job.size else "",
        "is_deterministic": "False",
    }
    return _PYTHON.format(
        title=_title(job),
        file=file.name,
        names=", ".join(names),
        imports=_ENTITIES if "BuildContext" in environment else "",
        arguments="\n".join(f"    {name}={value}," for name, value in arguments.items() if value not in ("", "{}")),
        step=step,
        display_name=arguments["display_name"],
        parameters=", ".join(f"{name}: {declared})" for name, declared in types.items()),
        variable=variable,
        bound=", ".join(f"{name}={name}" for name in types),
        outputs=_mapping({name: f"{variable}.outputs.{name}" for name in job.outputs}),
        values=", ".join(f"{name}={declared}, path={paths[name]})" for name, declared in types.items()),
    )


def _title(job: ScriptJob) -> str:
    return f"Runs {job.script.name} on {count(job.instance_count, 'instance')}"


def _settings(job: ScriptJob) -> dict[str, Any]:
    return {name: value for name, value in asdict(job.distribution).items() if value}


def _environment(job: ScriptJob, file: Path) -> str:
    if isinstance(job.environment, Path) and job.environment.is_dir():
        return f"environments/{job.environment.name}"
    return _path(str(job.environment), file)


def _path(path: str, file: Path) -> str:
    return path if is_remote(path) else Path(os.path.relpath(path, file.parent)).as_posix()


def _here(path: str) -> str:
    return f"HERE / {_quoted(path)}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _mapping(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{_quoted(name)}: {value}" for name, value in values.items()) + "}"
