"""A YAML file as keys and values, and on which line something stands in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from allranks.errors import InputError, Problem


def line_of(path: Path, *keys: str) -> int:
    """Return the line, from 1, of the value at the end of those keys; of as much of the way as there is."""
    node = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    line = 1
    for key in keys:
        if not isinstance(node, yaml.MappingNode):
            break
        found = next(((one, value) for one, value in node.value if one.value == key), None)
        if found is None:
            break
        line, node = found[0].start_mark.line + 1, found[1]
    return line


def at(path: Path, *keys: str) -> str:
    """Return the same as a place: file:line."""
    return f"{path}:{line_of(path, *keys)}"


def read_mapping(path: Path, fix: str = "look at its spelling") -> dict[str, Any]:
    """Return what the file says. Raise InputError if it cannot be read, is no YAML, or no keys and values.

    fix: what to do where it is not there
    """
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(Problem(str(path), error.strerror or str(error), "a YAML file", fix)) from error
    except yaml.MarkedYAMLError as error:
        where = f"{path}:{error.problem_mark.line + 1}" if error.problem_mark else str(path)
        raise InputError(Problem(where, f"not YAML: {error.problem}", fix="correct the line")) from error
    except (yaml.YAMLError, ValueError) as error:
        found = " ".join(str(error).split())
        raise InputError(Problem(str(path), f"not YAML: {found}", fix="correct the file")) from error
    if not isinstance(found, dict):
        raise InputError(Problem(str(path), f"{type(found).__name__}", "keys and values", "correct the file"))
    return found
