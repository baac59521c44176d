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
from allranks.project.create import write
from allranks.script_jobs.job import ScriptJob
from allranks.script_jobs.plan import name_of, type_of
from allranks.sdk.paths import is_remote, shown
from allranks.sdk.uploads import context_of

_SCHEMA = "https://azuremlschemas.azureedge.net/latest/commandJob.schema.json"
_CLASSES = {
    "mpi": "MpiDistribution",
    "pytorch": "PyTorchDistribution",
    "ray": "RayDistribution",
    "tensorflow": "TensorFlowDistribution",
}


def emit(job: ScriptJob, file: Path) -> tuple[str, ...]:
    """Write a job to a new file, and return the names of the written files, relative to its folder.

    The folder of an environment that comes with allranks is copied beside the file, to ``environments/NAME``, unless it
    is there.

    Raise InputError, without writing anything, if the file exists or is neither YAML nor Python.
    """
    writers = {".py": _python, ".yml": _yaml, ".yaml": _yaml}
    if file.suffix.lower() not in writers:
        raise InputError(Problem(f"--emit {file}", "it is neither YAML nor Python", "FILE.yml or FILE.py"))
    if os.path.lexists(file):
        raise InputError(Problem(f"--emit {file}", "the file exists", "a new file", "move it, or name another file"))
    if not file.parent.is_dir():
        raise InputError(Problem(f"--emit {file}", f"there is no folder {shown(file.parent)}", "an existing folder"))
    folder = file.absolute().parent
    contents: dict[str, bytes] = {}
    if isinstance(job.environment, Path) and job.environment.is_dir():
        copy = f"environments/{job.environment.name}"
        if not (folder / copy).exists():
            files = context_of(job.environment).files
            contents = {f"{copy}/{name}": path.read_bytes() for name, path in files.items()}
    contents[file.name] = writers[file.suffix.lower()](job, file.absolute()).encode()
    return write(folder, contents).written


class _Block(str):
    """A text that YAML writes below its key, without quotes."""


class _Dumper(yaml.SafeDumper):
    pass


_Dumper.add_representer(_Block, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style=">"))


def _yaml(job: ScriptJob, file: Path) -> str:
    folder = file.parent
    environment: Any = _environment(job, folder)
    if isinstance(job.environment, Path):
        environment = {"build": {"path": environment}} if job.environment.is_dir() else f"file:{environment}"
    resources = {"instance_count": job.instance_count, "instance_type": job.size}
    tree = {
        "$schema": _SCHEMA,
        "type": "command",
        "display_name": job.script.stem,
        "command": _Block(job.command),
        "code": _relative(job.code, folder),
        "environment": environment,
        "environment_variables": dict(job.variables),
        "inputs": {name: {"type": type_of(path), "path": _path(path, folder)} for name, path in job.inputs.items()},
        "outputs": {name: {"type": "uri_folder"} for name in job.outputs},
        "distribution": {"type": job.distribution.type, **_settings(job)},
        "resources": {name: value for name, value in resources.items() if value},
    }
    filled = {name: value for name, value in tree.items() if value}
    text = yaml.dump(filled, Dumper=_Dumper, sort_keys=False, width=sys.maxsize, allow_unicode=True)
    return f"# {_title(job)}: az ml job create --file {file.name}, or allranks submit {file.name}\n{text}"


def _python(job: ScriptJob, file: Path) -> str:
    folder = file.parent
    step = name_of(job)
    step = f"{step}_" if keyword.iskeyword(step) or step[0].isdigit() else step
    distribution = _CLASSES[job.distribution.type]
    environment = f"HERE / {_quoted(_environment(job, folder))}"
    if isinstance(job.environment, str):
        environment, imports = _quoted(job.environment), []
    elif job.environment.is_dir():
        environment = f"Environment(build=BuildContext(path={environment}))"
        imports = ["from azure.ai.ml.entities import BuildContext, Environment"]
    else:
        environment, imports = f"load_environment({environment})", []
    names = ["Input"] * bool(job.inputs) + ["Output"] * bool(job.outputs) + [distribution, "command", "dsl"]
    names += ["load_environment"] * environment.startswith("load")
    inputs = {name: f'Input(type="{type_of(path)}")' for name, path in job.inputs.items()}
    settings = ", ".join(f"{name}={value!r}" for name, value in _settings(job).items())
    arguments = {
        "display_name": _quoted(job.script.stem),
        "command": _quoted(job.command),
        "code": f"HERE / {_quoted(_relative(job.code, folder))}",
        "environment": environment,
        "environment_variables": _mapping({name: _quoted(value) for name, value in job.variables.items()}),
        "inputs": _mapping(inputs),
        "outputs": _mapping(dict.fromkeys(job.outputs, 'Output(type="uri_folder")')),
        "distribution": f"{distribution}({settings})",
        "instance_count": str(job.instance_count),
        "instance_type": _quoted(job.size) if job.size else "",
        "is_deterministic": "False",
    }
    values = {
        name: _quoted(path) if is_remote(path) else f"HERE / {_quoted(_path(path, folder))}"
        for name, path in job.inputs.items()
    }
    return "\n".join(
        [
            f'"""{_title(job)}: allranks submit {file.name}, or allranks run {file.name}"""',
            "",
            "from pathlib import Path",
            "",
            f"from azure.ai.ml import {', '.join(names)}",
            *imports,
            "",
            "HERE = Path(__file__).parent",
            "",
            "run_script = command(",
            *(f"    {name}={value}," for name, value in arguments.items() if value),
            ")",
            "",
            "",
            f"@dsl.pipeline(name={_quoted(name_of(job))}, display_name={_quoted(job.script.stem)})",
            f"def pipeline({', '.join(f'{name}: {declared}' for name, declared in inputs.items())}):",
            f"    {step} = run_script({', '.join(f'{name}={name}' for name in inputs)})",
            f"    return {_mapping({name: f'{step}.outputs.{name}' for name in job.outputs}) or '{}'}",
            "",
            "",
            f"job = pipeline({', '.join(f'{name}={inputs[name][:-1]}, path={values[name]})' for name in inputs)})",
            "",
        ]
    )


def _title(job: ScriptJob) -> str:
    instances = "1 instance" if job.instance_count == 1 else f"{job.instance_count} instances"
    return f"Runs {job.script.name} on {instances}"


def _settings(job: ScriptJob) -> dict[str, Any]:
    return {name: value for name, value in asdict(job.distribution).items() if value}


def _environment(job: ScriptJob, folder: Path) -> str:
    if isinstance(job.environment, str):
        return job.environment
    is_copied = job.environment.is_dir()
    return f"environments/{job.environment.name}" if is_copied else _relative(job.environment, folder)


def _path(path: str, folder: Path) -> str:
    return path if is_remote(path) else _relative(Path(path), folder)


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix()


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _mapping(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{_quoted(name)}: {value}" for name, value in values.items()) + "}" if values else ""
