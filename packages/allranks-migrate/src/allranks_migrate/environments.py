"""Read the environments of v1."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from allranks.sdk import bounded_yaml
from allranks_migrate.context import Context, as_list, pairs, relative
from allranks_migrate.distributed_component import DEFAULT_IMAGE
from allranks_migrate.jobs import Environment
from allranks_migrate.operations import Made, Unknown

_PYTHON = "3.10"
_ADD = {"add_pip_package": "pip_packages", "add_conda_package": "conda_packages", "add_channel": "channels"}


def environment(value: Any, context: Context, line: int) -> Environment:
    """Return an environment of v1, given by its object, its name, or a RunConfiguration; a default with a finding."""
    if isinstance(value, Unknown):
        name = value.text.rpartition(".")[2].strip("()'\"") or "environment"
        context.report(line, f"environment {value.text}", "it is not in this file", "name it in the component")
        return _registered_environment(name)
    if isinstance(value, str):
        return _registered_environment(value)
    if not isinstance(value, Made):
        context.report(line, "no environment", "azure-ai-ml has no default", "name one in the component")
        return _registered_environment("allranks-cpu")
    if value.kind in ("[]", "register", "build"):  # ws.environments["name"]
        return environment(value.values[0] if value.kind == "[]" else value.receiver, context, line)
    prefix = "environment."
    if value.kind == "RunConfiguration":
        if "environment" in value.attributes:
            return environment(value.attributes["environment"], context, line)
        given = {name.removeprefix(prefix): each for name, each in value.attributes.items() if name.startswith(prefix)}
        if "conda_dependencies" in value.named:
            given["python.conda_dependencies"] = value.named["conda_dependencies"]
        own = Made("Environment", (f"environment_{value.line}",), {}, value.line, None, given, value.calls)
        return _define(own, context) if given else environment(None, context, line)
    if value.kind == "clone" and value.receiver is not None:
        original = value.receiver
        copied = replace(original, attributes={**original.attributes, **value.attributes})
        made = environment(copied, context, line)
        is_changed = any(name.startswith(("docker.", "python.")) for name in value.attributes)
        if made.reference and not is_changed:
            return made
        spec = made.spec or {"image": DEFAULT_IMAGE}
        return replace(made, name=_name(value.get("new_name", 0)), reference="", spec=spec)
    if not value.kind.endswith(".get"):
        return _define(value, context)
    name, version = str(value.get("name", 1)), value.get("version", 2)
    if name.startswith("AzureML-"):
        fix = "list those that exist: az ml environment list --registry-name azureml"
        context.report(value.line, f"curated environment {name}", "those of v1 are removed over time", fix)
    return _registered_environment(name, version)


def _registered_environment(name: str, version: Any = None) -> Environment:
    return Environment(
        name, reference=f"azureml:{name}{f':{version}' if isinstance(version, (str, int)) else '@latest'}"
    )


def _define(value: Made, context: Context) -> Environment:
    """Return an environment that the script defines."""
    docker = {name.rpartition(".")[2]: each for name, each in value.attributes.items() if name.startswith("docker.")}
    image = docker.get("base_image") or value.get("image", 1 if value.kind.endswith("image") else None)
    dockerfile = docker.get("base_dockerfile") or value.get("dockerfile", 1 if value.kind.endswith("file") else None)
    name = _name(value.get("name", 0))
    if not isinstance(dockerfile, (str, Path)):
        made = on_image(name, image, None if value.get("python.user_managed_dependencies") else _conda(value, context))
    elif "\n" in str(dockerfile):
        made = Environment(name, spec={"build": {"path": "."}}, files={"Dockerfile": str(dockerfile)})
    else:
        path = context.base / dockerfile
        build = {"path": relative(path.parent, context.folder / "environments" / name), "dockerfile_path": path.name}
        made = Environment(name, spec={"build": build})
    variables = {str(name): str(each) for name, each in pairs(value.attributes.get("environment_variables"))}
    return replace(made, variables=variables)


def on_image(name: str, image: Any, conda: Any) -> Environment:
    """Return an environment of an image, by default Azure ML's, with the content of a conda file, if there is one."""
    spec = {"image": image if isinstance(image, str) else DEFAULT_IMAGE}
    if conda is None:
        return Environment(name, spec=spec)
    return Environment(name, spec={**spec, "conda_file": "conda.yaml"}, files={"conda.yaml": conda})


def _name(value: Any) -> str:
    """Return a name that is also valid for a folder."""
    return re.sub(r"[^\w.-]+", "-", value).lstrip(".") if isinstance(value, str) and value.strip(".") else "environment"


def _conda(value: Made, context: Context) -> Any:
    """Return the content of the conda file; None if there is none."""
    method = value.kind.rpartition(".")[2]
    file = value.get("conda_specification", default=value.get("file_path", 1) if "conda" in method else None)
    if file is not None:
        return _read(file, context, value)
    file = value.get("pip_requirements", default=value.get("file_path", 1) if "pip" in method else None)
    if file is not None:
        return conda_file(requirements(file, context, value))
    dependencies = value.attributes.get("python.conda_dependencies")
    calls = [call for call in value.calls if "conda_dependencies." in call.kind]
    if not isinstance(dependencies, Made):
        return _collect(Made("", (), {}, value.line), calls) if calls else None
    file = dependencies.get("conda_dependencies_file_path", 0) if dependencies.kind == "CondaDependencies" else None
    return _read(file, context, value) if file is not None else _collect(dependencies, [*calls, *dependencies.calls])


def _collect(dependencies: Made, calls: list[Made]) -> Any:
    """Return CondaDependencies, including later additions, as a conda file."""
    given = {name: [str(each) for each in as_list(dependencies.get(name))] for name in _ADD.values()}
    python = dependencies.get("python_version", default=_PYTHON)
    for call in calls:
        method, argument = call.kind.rpartition(".")[2], [*call.values, *call.named.values(), ""][0]
        if method in _ADD:
            given[_ADD[method]].append(str(argument))
        elif method == "set_python_version":
            python = argument
    return conda_file(given["pip_packages"], given["conda_packages"], given["channels"], str(python))


def conda_file(
    packages: list[str], conda: list[str] | None = None, channels: list[str] | None = None, python: str = _PYTHON
) -> dict[str, Any]:
    """Return the content of a conda file. packages: the packages of pip"""
    dependencies: list[Any] = [f"python={python}", *(conda or ())]
    return {
        "channels": [*(channels or ()), "conda-forge"],
        "dependencies": [*dependencies, "pip", {"pip": packages}] if packages else dependencies,
    }


def _read(file: Any, context: Context, value: Made) -> Any:
    return conda_file([]) if (tree := _load(bounded_yaml.load_file, file, context, value)) is None else tree


def requirements(file: Any, context: Context, value: Made) -> list[str]:
    """Return the packages of a requirements file; none, with a finding, if it cannot be read."""
    lines = map(str.strip, (_load(bounded_yaml.read, file, context, value) or "").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _load(load: Callable[[Path], Any], file: Any, context: Context, value: Made) -> Any:
    try:
        return load(context.base / str(file))
    except (OSError, ValueError, yaml.YAMLError):
        what, fix = f"{value.kind} {getattr(file, 'text', file)}", "write its packages into the conda file"
        context.report(value.line, what, "the file cannot be read", fix)
        return None
