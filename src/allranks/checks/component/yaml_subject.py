"""Read a component's YAML as a subject of the rules."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from allranks.checks.component.subject import PortSpec, Subject, Use
from allranks.contract.templating import used_names
from allranks.sdk.yaml_lines import at, read_mapping

_NOT_USES = ("inputs", "outputs", "description", "tags", "display_name")


def read(path: Path) -> Subject:
    """Return the component as a subject. Raise InputError if the file is not a mapping in YAML."""
    document = read_mapping(path)
    # A parallel component declares its code, environment and program below this key.
    task = document.get("task")
    inner: dict[str, Any] = task if isinstance(task, dict) else {}
    settings = {**inner, **document}
    command = str(settings.get("command") or "")
    code = settings.get("code")
    folder = path.parent / code if isinstance(code, str) and "://" not in code and ":" not in code else path.parent
    listed = settings.get("additional_includes") or ()
    includes = [path.parent / include for include in listed if isinstance(include, str)]
    tags, distribution = document.get("tags"), document.get("distribution")
    resources = document.get("resources")
    deterministic = document.get("is_deterministic")
    return Subject(
        path=path,
        name=str(document.get("name") or ""),
        version=document.get("version"),
        display_name=str(document.get("display_name") or ""),
        description=" ".join(str(document.get("description") or "").split()),
        tags=tags if isinstance(tags, dict) else {},
        deterministic=deterministic if isinstance(deterministic, bool) else None,
        inputs=tuple(ports(document.get("inputs"))),
        outputs=tuple(ports(document.get("outputs"))),
        environment=_environment(settings.get("environment"), path.parent),
        place=lambda *keys: at(path, *(("task", *keys) if keys and keys[0] in inner else keys)),
        command=command,
        needs_command=document.get("type", "command") == "command",
        needs_environment=document.get("type", "command") in ("command", "parallel"),
        distribution=distribution if isinstance(distribution, dict) else {},
        resources=resources if isinstance(resources, dict) else {},
        variables=tuple(map(str, settings.get("environment_variables") or ())),
        uses=tuple(_uses(document, path)),
        entries=tuple(_entries(command, folder, includes)),
        folders=(folder if folder.is_dir() else folder.parent, *includes),
        is_pipeline=document.get("type") == "pipeline" or "jobs" in document,
    )


def ports(section: Any) -> Iterator[PortSpec]:
    if not isinstance(section, dict):
        return
    for name, port in section.items():
        port = port if isinstance(port, dict) else {"type": port}
        yield PortSpec(
            name=str(name),
            type=str(port.get("type") or ""),
            description=str(port.get("description") or "").strip(),
            optional=port.get("optional", False),
            default=port.get("default"),
            minimum=port.get("min"),
            maximum=port.get("max"),
            enum=port.get("enum"),
        )


def _environment(value: Any, base: Path) -> Any:
    if isinstance(value, str) and not value.startswith("azureml:") and "://" not in value:
        return base / value.removeprefix("file:")
    if isinstance(value, dict):
        build = value.get("build")
        if isinstance(build, dict) and isinstance(build.get("path"), str) and "://" not in build["path"]:
            return {**value, "build": {**build, "path": str(base / build["path"])}}
    return value


def _uses(document: dict[str, Any], path: Path) -> Iterator[Use]:
    """Yield the uses of ports. Any value may contain bindings: the command, variables, the layout, limits."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for key, value in document.items():
        if key in _NOT_USES:
            continue
        for text in _texts(value):
            for used in used_names(text):
                kind, name = used.kind, used.name
                if kind == "parent":
                    kind, _, name = name.partition(".")
                if kind in ("inputs", "outputs") and not name.startswith("jobs."):
                    yield Use(kind, name, f"{path}:{_line(lines, used.kind, used.name)}", used.optional)


def _line(lines: list[str], kind: str, name: str) -> int:
    pattern = re.compile(r"\$\{\{\s*" + re.escape(f"{kind}.{name}") + r"\s*}}")
    return next((number for number, line in enumerate(lines, 1) if pattern.search(line)), 1)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _entries(command: str, folder: Path, includes: list[Path]) -> Iterator[Path]:
    """Yield the project's Python files that the command names: by path, as a module, or as mldesigner's source."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    for before, word in zip(["", *words], words, strict=False):
        candidates = [Path(word)] if word.endswith(".py") else []
        if before == "-m":
            name = Path(*word.split("."))
            candidates = [name.with_suffix(".py"), name / "__main__.py"]
        for candidate in candidates:
            bases = (folder, *(include.parent for include in includes))
            yield from (base / candidate for base in bases if (base / candidate).is_file())
