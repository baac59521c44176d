"""Where a module that Python does not find is in a step's code, and how the step can reach it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from allranks.contract.commands import Start
from allranks.plan.graph import Code
from allranks.sdk.paths import shown

_OUTER = 4
"""How many folders, from the code upwards, may be packages that the code is a part of."""


@dataclass(frozen=True)
class Found:
    """A module that is not on Python's path. place: for the end of a sentence; fix: how the step can import it"""

    place: str
    fix: str


def find(name: str, code: Code | None, start: Start | None, *, is_package: bool = False) -> Found | None:
    """Return where a module is; None if the code has nothing of its name, and is in no folder of its name.

    name:       with the modules in it, as far as they are known, such as src.helpers
    start:      the program that imports it, if it is known
    is_package: whether a known package has this name too, as a folder of data may have
    """
    if code is None:
        return None
    top, _, rest = name.partition(".")
    found = sorted(
        (not _has_python(path), path.count(os.sep), path)
        for parent, folders, files in os.walk(code.folder)
        for path in (os.path.join(parent, each) for each in (*folders, *files) if each in (top, f"{top}.py"))
    )
    if found and not (is_package and found[0][0]):
        return _in_code(name, os.path.relpath(found[0][2], code.folder), start, has_python=not found[0][0])
    outer = [Path(code.source), *Path(code.source).parents][:_OUTER] if code.source and not is_package else []
    for folder in outer:
        if folder.name == top and (not rest or list(folder.glob(f"{rest.partition('.')[0]}*"))):
            fix = f"set code to {shown(folder.parent)}, and start the script from there, with python -m"
            return Found(f"{shown(folder)} itself, a folder that the uploaded code does not have", fix)
    return None


def _has_python(path: str) -> bool:
    return path.endswith(".py") or any(name.endswith(".py") for _, _, names in os.walk(path) for name in names)


def _in_code(name: str, path: str, start: Start | None, *, has_python: bool) -> Found:
    if not has_python:
        return Found(f"in the code, at {path}, without a Python file", "correct the import, or add the modules there")
    start = start or Start("python")
    outer, module = os.path.dirname(path), start.module
    parts = os.path.splitext(os.path.normpath(os.path.join(start.folder, start.script)))[0].split("/")
    fix = f"write PYTHONPATH={os.path.relpath(outer or '.', start.folder or '.')} in front of the program"
    if module and module.partition(".")[0] == name.partition(".")[0]:
        fix = f"start it with python -m {'.'.join((*Path(outer).parts, module))}, or {fix}"
    elif start.script and not module and not outer and all(part.isidentifier() for part in parts):
        fix = f"start it{' without cd,' if start.folder else ''} with python -m {'.'.join(parts)}, or {fix}"
    return Found(f"in the code, at {path}, where Python does not look", fix)
