"""Generate the lines of ``allranks.yaml`` that a pipeline still needs, as comments for the user to complete."""

from __future__ import annotations

import re
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
    """Return a whole file with these lines; "" if there are none."""
    lines = tuple(lines)
    return merge("", lines) if lines else ""


def merge(text: str, lines: Iterable[MissingLine]) -> str:
    """Return the text of a file with the missing lines added. Lines that exist as comments are not added again.

    Existing text is not changed.
    """
    new = [line for line in lines if not _is_in(text, line.line)]
    if not new:
        return text
    written = text.splitlines() or HEAD.splitlines()
    for section in dict.fromkeys(line.line.section for line in new):
        added = [line for line in new if line.line.section == section]
        rows = [f"  # {row}" for line in added for row in (*line.places, line.line)]
        _insert(written, section, rows)
    return "\n".join(written) + "\n"


def _is_in(text: str, line: Line) -> bool:
    key = str(line).removesuffix(line.value).strip()
    return any(row.lstrip("# ").startswith(key) for row in text.splitlines())


def _insert(written: list[str], section: str, block: list[str]) -> None:
    """Add the rows at the end of a section, which is created if necessary."""
    start = next((number for number, row in enumerate(written) if re.match(rf"{section}\s*:", row)), None)
    if start is None:
        written += ["", f"{section}:  # {_NOTES[section]}", *block]
        return
    if not re.fullmatch(rf"{section}\s*:\s*(#.*)?", written[start]):
        # No lines can be added to a section in braces.
        written += ["", f"# {section}:", *(f"# {row.replace('# ', '', 1)}" for row in block)]
        return
    end = start + 1
    while end < len(written) and not re.match(r"[^\s#]", written[end]):
        end += 1
    while not written[end - 1].strip() or written[end - 1].startswith("#"):
        end -= 1
    written[end:end] = block
