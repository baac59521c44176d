"""The YAML of a released component or environment, which refers to files next to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from allranks.components.find import describe
from allranks.environments.find import REGISTERED
from allranks.errors import InputError, Problem
from allranks.sdk import internals
from allranks.sdk.yaml_lines import read_mapping

_ORDER = (
    "$schema", "type", "name", "version", "display_name", "description", "tags", "is_deterministic", "inputs",
    "outputs", "code", "environment", "distribution", "resources", "command",
)  # fmt: skip
_SCHEMA = "https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json"


def component_spec(component: Any, spec: Path, has_code: bool, environment: str | None) -> dict[str, Any]:
    """Return the content of a component's YAML, with the version of its spec.

    has_code:    whether its code is next to it
    environment: the registered one, as azureml:NAME:VERSION, that replaces a file in the spec; None: there is no file

    Raise InputError for a kind of component that cannot be registered by itself.
    """
    if component.type != "command":
        found = f"a component of type {component.type}"
        fix = "register it with: az ml component create"
        raise InputError(Problem(str(spec), found, "a command component", fix))
    content = _of_function(component, spec) if spec.suffix == ".py" else read_mapping(spec)
    content.pop("additional_includes", None)
    content["version"] = str(component.version or "")
    if has_code:
        content["code"] = "./code"
    if environment:
        content["environment"] = environment
    elif not isinstance(component.environment, str) and component.environment is not None:
        content["environment"] = _inline(component.environment, spec)
    return content


def environment_spec(file: Path) -> tuple[dict[str, Any], Path | None, Path | None]:
    """Return the content of an environment's YAML, its build context, and its conda file.

    Raise InputError if azure-ai-ml does not load it, or it has no name.
    """
    from azure.ai.ml import load_environment

    content = read_mapping(file)
    try:
        load_environment(file)
    # Any error of the SDK means that it would not register this; the errors have no common class.
    except Exception as error:
        found = f"azure-ai-ml does not load it: {' '.join(str(error).split())[:300]}"
        raise InputError(Problem(str(file), found, "an environment", "correct the file")) from error
    content["version"] = str(content.get("version") or "")
    build, conda = content.get("build"), content.get("conda_file")
    context = None
    if isinstance(build, dict) and "://" not in str(build.get("path")):
        context = (file.parent / str(build.get("path"))).resolve()
        content["build"] = {**build, "path": "./context"}
    if isinstance(conda, str):
        content["conda_file"] = "./conda.yaml"
    return content, context, file.parent / conda if isinstance(conda, str) else None


def _of_function(component: Any, spec: Path) -> dict[str, Any]:
    """Return what the SDK would send, with numbers as numbers; it stores some of them as strings."""
    sent = internals.as_dict(component)
    ports = {port.name: port for port in describe(component, spec).inputs}
    inputs = {}
    for name, port in (sent.get("inputs") or {}).items():
        typed = {"default": ports[name].default, "min": ports[name].minimum, "max": ports[name].maximum}
        if port.get("type") == "integer":
            typed |= {key: int(value) for key, value in typed.items() if value is not None}
        inputs[name] = {key: typed.get(key, value) for key, value in port.items()}
    content = {"$schema": _SCHEMA, **sent, "inputs": inputs}
    return {key: content[key] for key in (*_ORDER, *content) if key in content and (content[key] or key != "inputs")}


def _inline(environment: Any, spec: Path) -> dict[str, Any]:
    if environment.build is not None:
        found = "an environment within it, with a build context"
        fix = f"write an {REGISTERED} with a name next to the Dockerfile, and refer to it: environment: file:PATH"
        raise InputError(Problem(str(spec), found, "an environment with a name", fix))
    content: dict[str, Any] = {"image": environment.image}
    if environment.conda_file:
        content["conda_file"] = environment.conda_file
    return content
