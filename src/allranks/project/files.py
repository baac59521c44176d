"""Create the files of a project: from the template, or from a pipeline or components of the library."""

import contextlib
import keyword
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from allranks import catalog
from allranks.catalog import shipped_folder, shipped_specs
from allranks.catalog.find import FOLDER, find_specs
from allranks.catalog.variants import TABLE
from allranks.errors import InputError, Problem, did_you_mean, raise_any
from allranks.images.find import FOLDER as ENVIRONMENTS
from allranks.images.find import REGISTERED
from allranks.sdk.paths import project_folder
from allranks.sdk.uploads import context_of

TEMPLATE = "template"
PIPELINES = "pipelines"
_COMPONENT = Path(catalog.__file__).parent / "templates/component"
_ENVIRONMENT = re.compile(rb"^environment: file:(\S+)/environment\.yaml$", re.MULTILINE)


def create(folder: Path, contents: Mapping[str, bytes]) -> tuple[str, ...]:
    """Write files into a folder, which is created if necessary. Return the names of those that did not exist.

    contents: of the files by name, such as those of `template`

    Existing files are never changed. Raise InputError, without writing anything, if a file exists with other content.
    If writing fails, it can be repeated.
    """
    raise_any(problem for name in contents if (problem := _conflict(folder, name, contents[name])))
    missing = {name: content for name, content in contents.items() if not (folder / name).exists()}
    for name, content in missing.items():
        try:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        except OSError as error:
            with contextlib.suppress(OSError):
                (folder / name).unlink()  # it may be incomplete
            place, reason = str(error.filename or folder), error.strerror or str(error)
            raise InputError(Problem(place, reason, "a folder that can be written", "name another folder")) from None
    return tuple(missing)


def template() -> dict[str, bytes]:
    """Return the content of the template's files by name, sorted."""
    return files_below(shipped_folder() / TEMPLATE)


def pipeline(name: str) -> dict[str, bytes]:
    """Return the content of the file of a library pipeline, and of the scripts that it runs, by name.

    Raise InputError if the library has no such pipeline.
    """
    folder = shipped_folder() / PIPELINES
    names = sorted(path.stem for path in folder.glob("*.py"))
    if name not in names:
        fix = did_you_mean(name, names)
        raise InputError(Problem(f"--from {name}", "the library has no such pipeline", ", ".join(names), fix))
    content = (folder / f"{name}.py").read_bytes()
    scripts = [each for each in sorted(folder.iterdir()) if each.is_dir() and f'"{each.name}"'.encode() in content]
    return {f"{PIPELINES}/{name}.py": content} | {
        f"{PIPELINES}/{each.name}/{path}": text for each in scripts for path, text in files_below(each).items()
    }


def files_below(folder: Path) -> dict[str, bytes]:
    """Return the content of the files in a folder by relative path, sorted."""
    # Installers also compile Python files.
    files = (path for path in folder.rglob("*") if path.is_file() and path.parent.name != "__pycache__")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(files)}


def _conflict(folder: Path, name: str, content: bytes) -> Problem | None:
    """Return the problem of an existing entry that prevents writing a file; None if there is none."""
    path = folder / name
    fix = "move it elsewhere, or name another folder"
    parent = next(each for each in (path.parent, *path.parent.parents) if os.path.lexists(each))
    if not parent.is_dir():
        return Problem(str(parent), "it is not a folder", "a folder", fix)
    if not os.path.lexists(path):
        return None
    if not path.is_file():
        return Problem(str(path), "it is not a file", "no such entry, or a file of the new project", fix)
    try:
        if path.read_bytes() == content:
            return None
    except OSError as error:
        return Problem(str(path), f"it cannot be read: {error.strerror}", "a file of the new project", fix)
    return Problem(str(path), "a file with other content, which is not overwritten", "no such file", fix)


def copy_components(names: Iterable[str], project: Path) -> tuple[Path, ...]:
    """Copy the folders of components, and of their environments, to the same places in a project.

    names: the names of the components' folders. A variant is copied with the component that has its code

    Return the new folders, relative to the project. An existing environment of the project is not changed.

    Raise InputError, without writing anything, if the library has no such component, or the project has its folder.
    """
    folders = dict.fromkeys(_source(name, project) for name in names)
    places = dict.fromkeys(place for folder in folders for place in (folder, *_environments(folder)))
    new = [place.relative_to(shipped_folder()) for place in places]
    new = [place for place in new if not (project / place).is_dir()]
    create(project, {path: content for place in new for path, content in _files(place).items()})
    return tuple(new)


def new_component(name: str) -> tuple[Path, ...]:
    """Write a spec, a program and a test, which run, into the project of the current folder. Return the new files.

    The spec names the project's first environment; without one, an image with Python.

    Raise InputError, without writing anything, if the name cannot be that of a component, if there is no project, or if
    the component or its test exists.
    """
    if not re.fullmatch("[a-z][a-z0-9_]{0,99}", name) or keyword.iskeyword(name):
        expected = "lower-case letters, digits and underscores, beginning with a letter, and no keyword of Python"
        raise InputError(Problem(name, "it cannot be the name of a component", expected, "such as prepare_texts"))
    project = project_folder(Path.cwd(), FOLDER, "change to a project, or create one: allranks init DIR").parent
    if os.path.lexists(folder := project / FOLDER / name):
        fix = "choose another name, or move it elsewhere"
        raise InputError(Problem(str(folder), "it exists, and is not overwritten", "no such folder", fix))
    files = {f"{FOLDER}/{name}/{file}": _COMPONENT / file for file in ("component.yaml", "main.py")}
    files[f"tests/test_{name}.py"] = _COMPONENT / "test_main.py"
    environment = min((path.parent.name for path in (project / ENVIRONMENTS).glob(f"*/{REGISTERED}")), default="")
    line = f" file:../../{ENVIRONMENTS}/ENVIRONMENT/{REGISTERED}"
    names = {
        "new_component": name,
        "New component": name.replace("_", " ").capitalize(),
        line: line.replace("ENVIRONMENT", environment) if environment else "\n  image: python:3.12",
    }
    contents = {}
    for file, source in files.items():
        text = source.read_text(encoding="utf-8")
        for old, new in names.items():
            text = text.replace(old, new)
        contents[file] = text.encode()
    return tuple(project / file for file in create(project, contents))


def _source(name: str, project: Path) -> Path:
    """Return the folder to copy for a component."""
    specs = shipped_specs()
    if name not in specs:
        fix = did_you_mean(name, specs, "list them: allranks components --library")
        raise InputError(Problem(name, "the library has no such component", "the name of one", fix))
    folder = specs[name].parent
    folder = folder.parent if (folder.parent / TABLE).is_file() else folder
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
    """Return the files of a shipped folder by their paths in the project. An environment has the files that are
    uploaded."""
    folder = shipped_folder() / place
    files = files_below(folder)
    if (folder / REGISTERED).is_file():
        files = {name: path.read_bytes() for name, path in context_of(folder).files.items()}
    return {f"{place.as_posix()}/{name}": content for name, content in files.items()}
