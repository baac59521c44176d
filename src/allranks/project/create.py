"""Create a project from the template in this package."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from allranks.errors import InputError, Problem

TEMPLATE = Path(__file__).with_name("template")


@dataclass(frozen=True)
class Created:
    """The files of a project, relative to its folder: those that were written, and those that existed already with the
    same content."""

    written: tuple[str, ...]
    kept: tuple[str, ...]


def create(folder: Path) -> Created:
    """Write the template's files into a folder, which is created if necessary.

    Existing files are never changed. Raise InputError, without writing anything, if one has the name of a template's
    file and another content. If writing fails, what was written is removed again.
    """
    return write(folder, template())


def write(folder: Path, contents: Mapping[str, bytes]) -> Created:
    """Write new files into a folder, as `create` does. contents: by their names, relative to the folder"""
    problems = [problem for name in contents if (problem := _conflict(folder, name, contents[name]))]
    if problems:
        raise InputError.of(problems)
    missing = {name: content for name, content in contents.items() if not (folder / name).exists()}
    undo = contextlib.ExitStack()
    try:
        for name, content in missing.items():
            _write(folder / name, content, undo)
    except OSError as error:
        undo.close()
        reason = error.strerror or str(error)
        place = str(error.filename or folder)
        raise InputError(Problem(place, reason, "a folder that can be written", "name another folder")) from None
    return Created(tuple(missing), tuple(name for name in contents if name not in missing))


def template() -> dict[str, bytes]:
    """Return the content of the template's files by name, sorted."""
    # An installer compiles the template's Python files too.
    files = (path for path in TEMPLATE.rglob("*") if path.is_file() and path.parent.name != "__pycache__")
    return {path.relative_to(TEMPLATE).as_posix(): path.read_bytes() for path in sorted(files)}


def _conflict(folder: Path, name: str, content: bytes) -> Problem | None:
    """Return the problem of what is in the way of a file; None if there is nothing, or the file itself."""
    path = folder / name
    for parent in (path.parent, *path.parent.parents):
        if os.path.lexists(parent):
            if not parent.is_dir():
                return Problem(
                    str(parent), "it is not a folder", "a folder", "move it elsewhere, or name another folder"
                )
            break
    if not os.path.lexists(path):
        return None
    fix = "move it elsewhere, or name another folder: allranks init DIR"
    if not path.is_file():
        return Problem(str(path), "it is not a file", "no such entry, or a file of the new project", fix)
    try:
        same = path.read_bytes() == content
    except OSError as error:
        return Problem(str(path), f"it cannot be read: {error.strerror}", "a file of the new project", fix)
    return (
        None if same else Problem(str(path), "a file with other content, which is not overwritten", "no such file", fix)
    )


def _write(path: Path, content: bytes, undo: contextlib.ExitStack) -> None:
    """Write a new file and its folders. undo: gets what removes them again"""
    for parent in reversed([path.parent, *path.parent.parents]):
        if not parent.exists():
            parent.mkdir()
            undo.callback(_try, parent.rmdir)
    with open(path, "xb") as file:
        undo.callback(_try, path.unlink)
        file.write(content)


def _try(remove: Callable[[], None]) -> None:
    with contextlib.suppress(OSError):
        remove()
