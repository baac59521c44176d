"""Read a YAML file as a mapping, and find the lines of its keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from allranks.errors import InputError, Problem
from allranks.sdk import bounded_yaml


def line_of(path: Path, *keys: str) -> int:
    """Return the line, from 1, of a nested key; of its innermost existing parent if it is missing."""
    node = bounded_yaml.compose(bounded_yaml.read(path))
    line = 1
    for key in keys:
        if not isinstance(node, yaml.MappingNode):
            break
        item = next(((key_node, value) for key_node, value in node.value if key_node.value == key), None)
        if item is None:
            break
        line, node = item[0].start_mark.line + 1, item[1]
    return line


def at(path: Path, *keys: str) -> str:
    """Return file:line of a nested key."""
    return f"{path}:{line_of(path, *keys)}"


def read_mapping(path: Path, fix: str = "look at its spelling") -> dict[str, Any]:
    """Return the file's content. Raise InputError if it cannot be read or is not a mapping in YAML.

    fix: what to do if it cannot be read
    """
    try:
        content = bounded_yaml.load_file(path)
    except OSError as error:
        raise InputError(Problem(str(path), error.strerror or str(error), "a YAML file", fix)) from error
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(bounded_yaml.problem(path, error)) from error
    if not isinstance(content, dict):
        raise InputError(Problem(str(path), f"{type(content).__name__}", "keys and values", "correct the file"))
    return content
