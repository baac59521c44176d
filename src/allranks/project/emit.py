"""Write the job of a script for Azure ML as a YAML file."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from allranks.errors import InputError, Problem
from allranks.project.files import create
from allranks.project.script_job import ScriptJob
from allranks.project.script_plan import type_of
from allranks.sdk.paths import is_remote
from allranks.sdk.uploads import context_of
from allranks.text import count


def emit(job: ScriptJob, file: Path) -> tuple[str, ...]:
    """Write a job to a new file, and return the names of the written files, relative to its folder.

    The folder of an environment that comes with allranks is copied to ``environments/NAME`` beside the file, unless it
    is there. Raise InputError, without writing anything, if the file exists or is not YAML.
    """
    where = f"--emit {file}"
    if file.suffix not in (".yml", ".yaml"):
        raise InputError(Problem(where, "it is not YAML", "FILE.yml"))
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
    contents[file.name] = _yaml(job, file.absolute()).encode()
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
