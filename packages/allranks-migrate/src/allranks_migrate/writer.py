"""Write jobs as components, environments and a pipeline of azure-ai-ml."""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from allranks.errors import Problem
from allranks.sdk.paths import is_remote
from allranks_migrate import constructs
from allranks_migrate.context import relative
from allranks_migrate.jobs import Environment, Input, Job, Pipeline

_SCHEMA = "https://azuremlschemas.azureedge.net/latest/{}.schema.json"
_WIDTH = 110
_IMPORTS = {
    "azure.ai.ml": ("Input", "Output", "dsl", "load_component"),
    "azure.ai.ml.sweep": (*constructs.VALUES.values(), *constructs.POLICIES),
    "azure.ai.ml.entities": ("CommandJobLimits",),
}
"""The imports that a pipeline may need."""

PIPELINE, FINDINGS = "pipeline.py", "migration.md"
_PYTHON = '''\
{comments}"""The pipeline of {source}: allranks run {file}"""

from pathlib import Path

{imports}

HERE = Path(__file__).parent

{components}


@dsl.pipeline({settings})
def pipeline({parameters}):
{steps}
{job}'''


def contents(pipeline: Pipeline, source: Path, folder: Path, findings: Iterable[Problem]) -> dict[str, str]:
    """Return the text of each file to write, by its path in the folder."""
    files: dict[str, str] = {}
    for job in pipeline.jobs:
        where = f"components/{job.name}"
        files[f"{where}/component.yaml"] = to_yaml(_component(job, folder, where))
        files |= _environment(job.environment)
    files[PIPELINE] = _pipeline(pipeline, source, folder)
    files[FINDINGS] = report(source, findings)
    return files


def report(source: Path, findings: Iterable[Problem]) -> str:
    """Return the findings for a person to check, as Markdown."""
    lines = [f"# From {source.name} to azure-ai-ml", ""]
    listed = [f"- `{each.where}`: {each.found}. **To do:** {each.fix}." for each in findings]
    return "\n".join([*lines, *(listed or ["Everything was carried over."]), ""])


def to_yaml(tree: Mapping[str, Any]) -> str:
    """Return the text of a file, without keys that have no value."""
    return yaml.safe_dump(_remove_empty(tree), sort_keys=False, width=sys.maxsize, allow_unicode=True)


# Components and environments


def _component(job: Job, folder: Path, where: str) -> dict[str, Any]:
    environment = job.environment.reference or f"file:../../environments/{job.environment.name}/environment.yaml"
    own = {"code": relative(job.code, folder / where), "environment": environment}
    return {
        "$schema": _SCHEMA.format(f"{job.spec['type']}Component"),
        "name": job.name,
        "version": "1",
        "inputs": {name: _declare(port) for name, port in job.inputs.items()},
        "outputs": {name: {"type": "uri_folder"} for name in job.outputs},
        **job.spec,
        **({"task": {**job.spec["task"], **own}} if "task" in job.spec else own),
    }


def _declare(port: Input) -> dict[str, Any]:
    return {"type": port.type, "default": port.default, "optional": port.optional or None}


def _remove_empty(value: Any) -> Any:
    """Remove items without a value. 0 and false are values."""
    if not isinstance(value, Mapping):
        return value
    return {key: filled for key, each in value.items() if (filled := _remove_empty(each)) not in (None, {}, "")}


def _environment(environment: Environment) -> dict[str, str]:
    """Return the files of an environment; none for a registered one."""
    if environment.reference:
        return {}
    tree = {"$schema": _SCHEMA.format("environment"), "name": environment.name, "version": "1", **environment.spec}
    files = {"environment.yaml": tree, **environment.files}
    return {
        f"environments/{environment.name}/{name}": content if isinstance(content, str) else to_yaml(content)
        for name, content in files.items()
    }


# The pipeline


def _pipeline(pipeline: Pipeline, source: Path, folder: Path) -> str:
    computes = [job.compute for job in pipeline.jobs if job.compute]
    compute = max(computes, key=computes.count) if computes else ""
    settings = _keywords(name=source.stem, experiment_name=pipeline.experiment, default_compute=compute or "cluster")
    steps = "\n".join(_step(job, compute, folder) for job in pipeline.jobs)
    types = {port.parameter: port for job in pipeline.jobs for port in job.inputs.values() if port.parameter}
    required = {name: port for name, port in types.items() if pipeline.parameters.get(name) is None}
    listed = [f"{name}: Input(type={_quote(port.type)})" for name, port in required.items()]
    listed += [f"{name}={pipeline.parameters[name]!r}" for name in types if name not in required]
    used = f"dsl( load_component( {listed} {steps}"  # the first two by every pipeline
    imports = {
        module: [name for name in names if re.search(rf"\b{name}\(", used)] for module, names in _IMPORTS.items()
    }
    return _PYTHON.format(
        comments="".join(f"{comment}\n" for comment in pipeline.comments),
        source=source.name,
        file=PIPELINE,
        imports="\n".join(f"from {module} import {', '.join(names)}" for module, names in imports.items() if names),
        components="\n".join(
            f'{job.name.upper()} = load_component(HERE / "components/{job.name}/component.yaml")'
            for job in pipeline.jobs
        ),
        settings=", ".join(settings),
        parameters=", ".join(listed),
        steps=steps,
        job="" if required else "\n\njob = pipeline()\n",
    )


def _step(job: Job, compute: str, folder: Path) -> str:
    bound = [f"{name}={value}" for name, port in job.inputs.items() if (value := _value(name, port, job, folder))]
    call = f"{job.name} = {job.name.upper()}({', '.join(bound)})"
    if len(call) > _WIDTH:
        call = "\n        ".join([f"{job.name} = {job.name.upper()}(", *(f"{each}," for each in bound)]) + "\n    )"
    return "\n".join(f"    {line}" for line in (*job.comments, call, *_settings(job, compute)))


def _settings(job: Job, compute: str) -> Iterator[str]:
    """Yield the lines with settings that a component cannot have."""
    if sweep := job.sweep:
        search = _keywords(primary_metric=sweep.metric, goal=sweep.goal, sampling_algorithm=sweep.sampling)
        yield f"{job.name} = {job.name}.sweep({', '.join(search)})"
        yield f"{job.name}.set_limits({', '.join(_keywords(**sweep.limits))})"
        if sweep.policy:
            yield f"{job.name}.early_termination = {sweep.policy}"
    if job.compute and job.compute != compute:
        yield f"{job.name}.compute = {_quote(job.compute)}"
    if job.variables:
        yield f"{job.name}.environment_variables = {json.dumps(dict(job.variables), ensure_ascii=False)}"
    if job.timeout:
        yield f"{job.name}.limits = CommandJobLimits(timeout={job.timeout})"
    for name, output in job.outputs.items():
        if given := _keywords(mode=output.mode, path=output.path, name=output.asset):
            yield f'{job.name}.outputs.{name} = Output(type="uri_folder", {", ".join(given)})'


def _value(name: str, port: Input, job: Job, folder: Path) -> str:
    """Return the value that an input of a step is bound to; "" for its default."""
    if job.sweep is not None and name in job.sweep.space:
        return job.sweep.space[name]
    if port.source is not None:
        return f"{port.source[0]}.outputs.{port.source[1]}"
    if port.parameter:
        return port.parameter
    if not port.path:
        return ""
    is_local = not is_remote(port.path)
    path = f"str(HERE / {_quote(relative(Path(port.path), folder))})" if is_local else _quote(port.path)
    return ", ".join([f"Input(type={_quote(port.type)}, path={path}", *_keywords(mode=port.mode)]) + ")"


def _keywords(**values: Any) -> list[str]:
    """Return the arguments of a call, without those that are empty."""
    return [f"{name}={_quote(value)}" for name, value in values.items() if value not in ("", None)]


def _quote(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
