"""From what a user names to a plan. This package alone knows azure-ai-ml, and imports it only when it reads."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.plan.assets import asset_id
from allranks.plan.assets.lookup import AssetLookup
from allranks.plan.graph import Location, Plan
from allranks.plan.reader import pipeline, python_jobs, settings, yaml_file
from allranks.plan.reader.dsl_file import DslFile
from allranks.plan.reader.made_job import MadeJob
from allranks.plan.reader.yaml_file import YamlFile
from allranks.runs.workspace import Workspace
from allranks.sdk import python_file, session
from allranks.sdk.paths import shown

__all__ = ["OpenJob", "lookup_of", "opened", "read_job", "read_plan"]


@dataclass(frozen=True)
class OpenJob:
    """The SDK's own job of a file, and where its nodes stand in it.

    location: of the node at a path, such as ``prepare``, or ``tune.train`` in a pipeline within the pipeline
    lookup:   finds what the job names by an id; None: ids stay as they are, as for Azure ML
    """

    job: Any
    source: str
    location: Callable[[str], Location | None]
    lookup: AssetLookup | None = None

    def unread(self) -> tuple[str, ...]:
        """The steps of which a plan could say nothing: `plan` would refuse them."""
        return pipeline.unread(self.job)

    def plan(self, snapshots: Path | None = None) -> Plan:
        """Return the job as it stands now as a plan; without a folder for snapshots one that can be checked, not run.

        Raise InputError as `read_plan`.
        """
        return pipeline.read(self.job, snapshots, self.source, self.location, self.lookup)


def lookup_of(target: str, values: Mapping[str, str], workspace: Workspace) -> AssetLookup:
    """Return what finds the names of the job of ``FILE[:NAME]``. Raise InputError where there is no such file, or its
    ``allranks.yaml`` is wrong.

    values: inputs of the pipeline that the user sets, which no file changes
    """
    path, _ = _split(target)
    return replace(AssetLookup.of(path.parent, workspace), settled=frozenset(values))


@contextlib.contextmanager
def opened(target: str, values: Mapping[str, str], lookup: AssetLookup | None = None) -> Iterator[OpenJob]:
    """Open the job of ``FILE[:NAME]`` for the duration of the block: what the SDK has to import and unpack for it is
    there no longer than that.

    lookup: finds what the job names by an id; None: ids stay as they are, as for Azure ML

    Raises InputError as `read_plan`.
    """
    path, function = _split(target)
    with session.session(), python_file.importable(path):
        file = _open(path, function, lookup)
        job = file.build(_converted(file, values))
        yield OpenJob(job, str(path), file.location, lookup)


def read_plan(target: str, values: Mapping[str, str], snapshots: Path, workspace: Workspace | None = None) -> Plan:
    """The plan of ``FILE[:NAME]``: a Python file or notebook with a job or a pipeline function, where NAME is the job's
    variable or the function; or a pipeline YAML or a command job YAML.

    values:    the pipeline's inputs as text, by name
    snapshots: the folder to which code is copied, made if it is missing
    workspace: what is registered in it is found by its id; by default the workspace of the current folder

    Nothing is asked of a workspace. Raises InputError, with all problems, where the file or a value cannot be used.
    What the SDK lets through is for `allranks.plan.check.check` to find.
    """
    with opened(target, values, lookup_of(target, values, workspace or Workspace.at())) as job:
        return job.plan(snapshots)


def read_job(job: Any, snapshots: Path, lookup: AssetLookup | None = None) -> Plan:
    """The plan of a job that the SDK has built already, a PipelineJob or a Command. Raises InputError as above.

    lookup: finds what the job names by an id; None: ids stay as they are
    """
    with session.session():
        return pipeline.read(job, snapshots, lookup=lookup)


def _open(path: Path, function: str | None, lookup: AssetLookup | None) -> DslFile | MadeJob | YamlFile:
    if path.suffix in python_file.SUFFIXES:
        return python_jobs.read(path, function, None if lookup is None else _component_finder(lookup, path))
    if function is not None:
        found = f"{function} names a function or a job, but {shown(path)} is no Python file"
        raise InputError(Problem(f"{shown(path)}:{function}", found, "the file alone"))
    if path.suffix.lower() in (".yml", ".yaml"):
        return yaml_file.read(path)
    expected = "a Python file or notebook with a pipeline (.py, .ipynb), or a job in YAML (.yml, .yaml)"
    raise InputError(Problem(shown(path), f"a file that ends with {path.suffix!r} is not known", expected))


def _component_finder(lookup: AssetLookup, path: Path) -> Callable[[str], Path | None]:
    """Return what finds the spec of a component that the file gets from a workspace or a registry by its id."""

    def find(identity: str) -> Path | None:
        return lookup.find(identity, asset_id.COMPONENT, shown(path), required=False)

    return find


def _split(target: str) -> tuple[Path, str | None]:
    """The file, absolute, and the function's name. Raises InputError where there is no such file."""
    path, function = Path(target), None
    if not path.exists():
        name, colon, last = target.rpartition(":")
        if colon and (last.isidentifier() or not last):
            path, function = Path(name), last
    if path.is_dir():
        raise InputError(Problem(shown(path), "it is a folder", "a pipeline's file", _candidates(path)))
    if not path.is_file():
        raise InputError(Problem(shown(path), "there is no such file", "a pipeline's file", _similar(path)))
    if function == "":
        raise InputError(Problem(target, "there is no name after the colon", "FILE or FILE:NAME"))
    return path.absolute(), function


def _candidates(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir() if path.suffix in (*python_file.SUFFIXES, ".yml", ".yaml"))
    return f"name one of its files: {', '.join(names[:10])}" if names else ""


def _similar(path: Path) -> str:
    if not path.parent.is_dir():
        return ""
    similar = difflib.get_close_matches(path.name, [other.name for other in path.parent.iterdir()], n=1)
    return f"did you mean {shown(path.parent / similar[0])}?" if similar else ""


def _converted(
    file: DslFile | MadeJob | YamlFile, values: Mapping[str, str]
) -> dict[str, tuple[str, settings.Setting]]:
    """The values with their types. Raises InputError where one is unknown or does not fit."""
    declared = file.inputs()
    problems = settings.unknown(values, declared)
    if problems:
        raise InputError.of(problems)
    types = {name: declared[name] for name in values}
    if None in types.values():
        used = pipeline.types_by_use(file.build({}))
        types = {name: kind or used.get(name) or _guessed(file, name, values[name]) for name, kind in types.items()}
    converted: dict[str, tuple[str, settings.Setting]] = {}
    for name, kind in types.items():
        assert kind is not None
        try:
            converted[name] = (kind, settings.convert(values[name], kind))
        except ValueError as error:
            problems.append(settings.wrong(name, values[name], str(error)))
    if problems:
        raise InputError.of(problems)
    return converted


def _guessed(file: DslFile | MadeJob | YamlFile, name: str, text: str) -> str:
    """By the value that stands in the file; a whole number there may be set to any number."""
    value = file.given(name)
    return "string" if value is None else settings.widened(settings.guessed_type(value), text)
