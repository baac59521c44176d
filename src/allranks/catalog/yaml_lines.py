"""On which line of a YAML file something stands."""

from __future__ import annotations

from pathlib import Path

import yaml


def line_of(path: Path, *keys: str) -> int:
    """The line, from 1, of the value at the end of those keys; of as much of the way as there is."""
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
    """The same as a place: file:line."""
    return f"{path}:{line_of(path, *keys)}"
