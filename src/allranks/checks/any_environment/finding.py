"""Find the files that describe environments, by their content."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from allranks.sdk import bounded_yaml

_SKIPPED = ("__pycache__", "node_modules", "site-packages")
_SCHEMA = "environment.schema"


def environment_files(path: Path) -> tuple[Path, ...]:
    """Return a file itself, or the files below a folder that describe environments, by path."""
    if not path.is_dir():
        return (path,)
    return tuple(file for file in _yaml_files(path) if _is_environment(file))


def is_template(value: object) -> bool:
    """Return whether a text has a placeholder such as ``{{asset.name}}``, which a tool replaces before Azure ML."""
    return "{{" in str(value)


def _yaml_files(folder: Path) -> Iterator[Path]:
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and name not in _SKIPPED and not Path(where, name, "pyvenv.cfg").exists()
        )
        for name in sorted(names):
            if name.lower().endswith((".yaml", ".yml")):
                yield Path(where, name)


def _is_environment(file: Path) -> bool:
    try:
        document: Any = bounded_yaml.load_file(file)
    except (OSError, ValueError, yaml.YAMLError):
        return False
    if not isinstance(document, dict):
        return False
    if _SCHEMA in str(document.get("$schema", "")).lower():
        return True
    has_source = isinstance(document.get("image"), str) or isinstance(document.get("build"), dict)
    return "name" in document and has_source and not {"type", "command", "jobs", "services", "spec"} & document.keys()
