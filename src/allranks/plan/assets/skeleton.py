"""Generate the lines of ``allranks.yaml`` that a pipeline still needs, as comments for the user to complete."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from allranks.plan.assets import asset_id
from allranks.plan.assets.lookup import Line, Use

HEAD = """\
# Paths on this machine for the names in pipelines. Paths are relative to this file.
# Remove the # in front of a line, and write the path.
"""

_NOTES = {
    "code": "a folder with the code, or a file",
    "components": "a component's YAML file, or a folder of such files",
    "data": "a file or folder",
    "datastores": "a folder with the datastore's files",
    "environments": "a virtual environment, or an environment's YAML file; without it, the Python of allranks is used",
    "models": "a model's file or folder",
}


@dataclass(frozen=True)
class MissingLine:
    """A missing line, and the places in the pipeline that need it."""

    line: Line
    places: tuple[str, ...]


def missing(uses: Iterable[Use]) -> tuple[MissingLine, ...]:
    """Return a line for each unresolved id, by section; one line for all components of a registry if several are
    missing."""
    places: dict[Line, dict[str, None]] = {}
    registries: dict[str, set[Line]] = {}
    for use in uses:
        if use.path is None and not use.uri:
            places.setdefault(use.line, {})[use.where] = None
            if use.asset.registry and use.asset.kind == asset_id.COMPONENT:
                registries.setdefault(use.asset.registry, set()).add(use.line)
    lines = [MissingLine(line, tuple(line_places)) for line, line_places in places.items()]
    for registry, components in registries.items():
        if len(components) > 1:
            line = Line("components", f"registries/{registry}/components/*", "path/to/specs")
            lines.append(MissingLine(line, (f"or all components of {registry} in one folder",)))
    return tuple(sorted(lines, key=lambda missing_line: list(_NOTES).index(missing_line.line.section)))


def render(lines: Iterable[MissingLine]) -> str:
    """Return a file with these lines, by section; "" if there are none."""
    lines = tuple(lines)
    written = HEAD if lines else ""
    for section in dict.fromkeys(line.line.section for line in lines):
        rows = (f"  # {row}\n" for line in lines if line.line.section == section for row in (*line.places, line.line))
        written += f"\n{section}:  # {_NOTES[section]}\n" + "".join(rows)
    return written
