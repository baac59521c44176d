"""Copy a component of the library, with its environments, into a project."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from allranks.components.find import VARIANTS, find_specs
from allranks.components.shipped import shipped_folder, shipped_specs
from allranks.errors import InputError, Problem, did_you_mean
from allranks.project.create import create, files_below

_INCLUDE = re.compile(rb"^  - (\S+)\n", re.MULTILINE)
_ENVIRONMENT = re.compile(rb"^environment: file:(\S+)/environment\.yaml$", re.MULTILINE)


def copy_components(names: Iterable[str], project: Path) -> tuple[Path, ...]:
    """Copy the folders of components, and of their environments, to the same places in a project.

    names: of the components' folders. A variant is copied with the component that has its code

    Return the new folders, relative to the project. An environment that the project has stays as it is.

    Raise InputError, without writing anything, if the library has no such component, or the project has its folder.
    """
    folders = dict.fromkeys(_source(name, project) for name in names)
    places = dict.fromkeys(place for folder in folders for place in (folder, *_environments(folder)))
    new = [place.relative_to(shipped_folder()) for place in places]
    new = [place for place in new if not (project / place).is_dir()]
    create(project, {path: content for place in new for path, content in _files(place).items()})
    return tuple(new)


def _source(name: str, project: Path) -> Path:
    """Return the folder to copy for a component."""
    specs = shipped_specs()
    if name not in specs:
        fix = did_you_mean(name, specs, "list them: allranks components --library")
        raise InputError(Problem(name, "the library has no such component", "the name of one", fix))
    folder = specs[name].parent
    folder = folder.parent if (folder.parent / VARIANTS).is_file() else folder
    target = project / folder.relative_to(shipped_folder())
    if os.path.lexists(target):
        fix = "change that one, or move it elsewhere"
        raise InputError(Problem(str(target), "it exists, and is not overwritten", "no such folder", fix))
    return folder


def _environments(component: Path) -> Iterator[Path]:
    for spec in find_specs(component):
        for match in _ENVIRONMENT.finditer(spec.read_bytes()):
            yield Path(os.path.normpath(spec.parent / os.fsdecode(match[1])))


def _files(place: Path) -> dict[str, bytes]:
    """Return the files of a shipped folder by their paths in the project."""
    folder = shipped_folder() / place
    files = files_below(folder)
    for name, content in list(files.items()):
        if name.endswith("component.yaml"):
            files |= _with_own_code(name, content, folder)
    return {f"{place.as_posix()}/{name}": content for name, content in files.items()}


def _with_own_code(name: str, spec: bytes, folder: Path) -> dict[str, bytes]:
    """Return a spec, and beside it what it includes from outside of the component's folder, by name."""
    files: dict[str, bytes] = {}
    for match in _INCLUDE.finditer(spec):
        include = Path(os.path.normpath((folder / name).parent / os.fsdecode(match[1])))
        if not include.is_relative_to(folder):
            spec = spec.replace(match[0], b"").replace(b"additional_includes:\n\n", b"\n")
            target = Path(name).parent / include.name
            files |= {(target / path).as_posix(): content for path, content in files_below(include).items()}
    return {name: spec, **files}
