"""Convert a DistributedComponent of the retired SDK to a command component of azure-ai-ml.

The retired SDK starts the command without a shell, so its arguments are quoted here.
"""

import contextlib
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from allranks.errors import InputError, Problem
from allranks.sdk import bounded_yaml
from allranks.sdk.paths import is_remote, shown
from allranks.sdk.yaml_lines import at
from allranks_migrate.context import relative

DEFAULT_IMAGE = "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04"
"""The image of an environment that names none."""

_LAUNCHERS = {"mpi": "mpi", "torch.distributed": "pytorch"}
_SAME = ("name", "version", "display_name", "description", "is_deterministic", "code", "environment_variables")
_IGNORED = ("$schema", "type", "tags", "successful_return_code", "resources", "properties")
_OPTIONAL = re.compile(r"\[([^\[\]]*\{inputs\.[^\[\]]*)\]")
_PORT = re.compile(r"(\{(?:inputs|outputs)\.[\w.-]+\})")
_TYPES = {"float": "number", "double": "number", "anyfile": "uri_file", "enum": "string"}
_PRIMITIVES = ("boolean", "integer", "number", "string")


def is_distributed_component(tree: Any) -> bool:
    """Return whether the content of a YAML file is a DistributedComponent, with or without a label (``@1-legacy``)."""
    return isinstance(tree, dict) and str(tree.get("type", "")).partition("@")[0] == "DistributedComponent"


def read(file: Path, folder: Path) -> dict[str, Any]:
    """Return the command component of a DistributedComponent's file, for a file in another folder.

    Raise InputError if the file does not describe one.
    """
    try:
        tree = bounded_yaml.load_file(file)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise InputError(bounded_yaml.problem(file, error)) from None
    if not is_distributed_component(tree):
        raise InputError(Problem(shown(file), "it has another type", "type: DistributedComponent"))
    return move(as_command_component(tree, file), file.parent, folder)


def as_command_component(tree: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return the content of the YAML file of the command component that a DistributedComponent describes.

    path: its file, in which additional includes and requirements are found

    Raise InputError for a launcher that azure-ai-ml does not have, and for a key that is unknown.
    """
    launcher = _mapping(tree, path, "launcher")
    kind = launcher.get("type")
    if not isinstance(kind, str) or kind not in _LAUNCHERS:
        found = "it has no launcher" if kind is None else f"launcher {kind!r}"
        raise _error(path, ("launcher", "type"), found, f"launcher.type: {' or '.join(sorted(_LAUNCHERS))}")
    known = (*_SAME, *_IGNORED, "inputs", "outputs", "launcher", "environment", "runsettings")
    if unknown := [key for key in tree if key not in known]:
        raise _error(path, unknown[:1], "unknown key", f"one of {', '.join(known)}", "remove it")
    resources = _mapping(tree, path, "resources")
    given = {**resources, **_mapping(tree, path, "runsettings", "resource_layout")}
    instances = given.get("instance_count", given.get("node_count", 1))
    processes = given.get("process_count_per_node", given.get("process_count_per_instance", 1))
    made = {
        "$schema": "https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json",
        "type": "command",
        **{key: tree[key] for key in _SAME if key in tree},
        "name": re.sub(r"\W", "_", str(tree.get("name", "")).lower()),
        "inputs": {name: _port(port) for name, port in _mapping(tree, path, "inputs").items()},
        "outputs": {name: _port(port) for name, port in _mapping(tree, path, "outputs").items()},
        "code": tree.get("code") or ".",
        "command": _command(launcher.get("additional_arguments") or "", path),
        "distribution": {"type": _LAUNCHERS[kind], "process_count_per_instance": processes},
        "resources": {**resources, "instance_count": instances},
        "environment": _environment(tree, path),
    }
    tags = tree["tags"] if isinstance(tree.get("tags"), dict) else None
    given = {"tags": tags, "additional_includes": _additional_includes(path)}
    return made | {key: value for key, value in given.items() if value}


def move(made: Mapping[str, Any], before: Path, folder: Path) -> dict[str, Any]:
    """Return the content of a component's file that is move to another folder, with the paths from there."""

    def path(text: Any) -> Any:
        if not isinstance(text, str) or is_remote(text):
            return text
        prefix = "file:" if text.startswith("file:") else ""
        return prefix + relative(before.absolute() / text.removeprefix("file:"), folder)

    environment = made["environment"]
    if isinstance(environment, dict):
        environment = {key: path(value) if key == "conda_file" else value for key, value in environment.items()}
        if "build" in environment:
            environment["build"] = {**environment["build"], "path": path(environment["build"]["path"])}
    includes = [path(each) for each in made.get("additional_includes", ())]
    given = {"code": path(made["code"]), "environment": path(environment)}
    return {**made, **given, **({"additional_includes": includes} if includes else {})}


def _error(path: Path, keys: Sequence[str], found: str, expected: str, fix: str = "") -> InputError:
    place = at(path, *keys) if path.is_file() else shown(path)
    return InputError(Problem(f"{place}, key {'.'.join(keys)}", found, expected, fix))


def _mapping(tree: Mapping[str, Any], path: Path, *keys: str) -> dict[str, Any]:
    """Return the mapping at a key, empty if there is none. Raise InputError if it is not a mapping."""
    for number, key in enumerate(keys, 1):
        found = tree.get(key)
        if found is not None and not isinstance(found, dict):
            raise _error(path, keys[:number], repr(found), "keys and values", "correct it")
        tree = found or {}
    return dict(tree)


def _port(port: Any) -> dict[str, Any]:
    port = dict(port) if isinstance(port, dict) else {"type": port}
    types = port["type"] if isinstance(port.get("type"), list) else [port.get("type", "path")]
    lower = [_TYPES.get(str(kind).lower(), str(kind).lower()) for kind in types]
    kind = lower[0] if len(lower) == 1 else "uri_folder"
    is_v2 = kind in _PRIMITIVES or kind.startswith(("uri_", "mltable", "mlflow_", "custom_", "triton_"))
    kept = ("description", "optional", "default", "min", "max", "enum")
    return {"type": kind if is_v2 else "uri_folder", **{key: port[key] for key in kept if port.get(key) is not None}}


def _command(arguments: Any, path: Path) -> str:
    """Return the command: ``[--x {inputs.x}]`` becomes ``$[[--x ${{inputs.x}}]]``. Quote text that a shell would
    expand."""
    text = " ".join(map(str, arguments)) if isinstance(arguments, list) else str(arguments)
    try:
        parts = [" ".join(map(_quoted_word, shlex.split(part))) for part in _OPTIONAL.split(text)]
    except ValueError as error:
        raise _error(path, ("launcher", "additional_arguments"), str(error), "balanced quotes") from None
    return " ".join(f"$[[{part}]]" if index % 2 else part for index, part in enumerate(parts) if part)


def _quoted_word(word: str) -> str:
    parts = enumerate(_PORT.split(word))  # literal, port, literal, ...
    return "".join(f"'${{{part}}}'" if index % 2 else shlex.quote(part) for index, part in parts if part) or "''"


def _environment(tree: Mapping[str, Any], path: Path) -> Any:
    """Return the environment: a curated one by its name, or an image with the packages of conda or of pip."""
    if isinstance(tree.get("environment"), str):
        return tree["environment"]
    environment = _mapping(tree, path, "environment")
    docker, conda = (_mapping(tree, path, "environment", key) for key in ("docker", "conda"))
    if environment.get("name") and not (docker or conda):
        version = environment.get("version")
        return f"azureml:{environment['name']}{f':{version}' if version else '@latest'}"
    made: dict[str, Any] = {}
    if dockerfile := _mapping(tree, path, "environment", "docker", "build").get("dockerfile"):
        made["build"] = {"path": ".", "dockerfile_path": str(dockerfile).removeprefix("file:")}
    else:
        made["image"] = docker.get("image") or DEFAULT_IMAGE
    if "conda_dependencies" in conda:
        made["conda_file"] = conda["conda_dependencies"]
    elif "conda_dependencies_file" in conda:
        made["conda_file"] = str(conda["conda_dependencies_file"]).removeprefix("file:")
    elif "pip_requirements_file" in conda:
        file = path.parent / str(conda["pip_requirements_file"]).removeprefix("file:")
        try:
            lines = [line.strip() for line in bounded_yaml.read(file).splitlines()]
        except (OSError, ValueError):
            keys = ("environment", "conda", "pip_requirements_file")
            raise _error(path, keys, f"{shown(file)} cannot be read", "a requirements file") from None
        packages = [line for line in lines if line and not line.startswith("#")]
        made["conda_file"] = {"dependencies": ["python=3.10", "pip", {"pip": packages}]}
    return made


def _additional_includes(path: Path) -> list[Any]:
    """Return the paths in ``NAME.additional_includes`` beside the file."""
    file = path.with_suffix(".additional_includes")
    if not file.is_file():
        return []
    with contextlib.suppress(yaml.YAMLError):
        tree = bounded_yaml.load_file(file)
        if isinstance(tree, dict):
            return list(tree.get("additional_includes") or ())
    return [line.strip() for line in bounded_yaml.read(file).splitlines() if line.strip()]
