"""Read pipelines and jobs as plans. azure-ai-ml is imported only when a file is read."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from allranks.contract.templating import Primitive
from allranks.errors import InputError, Location, Problem, finding
from allranks.plan.assets import asset_id
from allranks.plan.assets.lookup import AssetLookup, Registered
from allranks.plan.graph import Plan
from allranks.plan.reader import pipeline, settings
from allranks.plan.reader.nodes import types_by_use
from allranks.sdk import python_file, python_jobs, session, user_code, yaml_job
from allranks.sdk.compilation import job_request
from allranks.sdk.component_job import ComponentFile
from allranks.sdk.paths import require_file, shown
from allranks.sdk.python_file import PythonFile
from allranks.sdk.python_job import DslFile, PythonJob
from allranks.sdk.request import ComponentRequest, JobRequest
from allranks.sdk.suppressions import remaining
from allranks.sdk.yaml_job import YamlFile
from allranks.sdk.yaml_lines import with_key_lines


@dataclass(frozen=True)
class OpenJob:
    """The SDK's job in a file.

    location:  returns the location of the node at a path: ``prepare``, or ``tune.train`` if it is nested
    lookup:    resolves ids; None to leave them unresolved, as for Azure ML
    warnings:  about parts of the file that azure-ai-ml drops
    is_called: whether it was created by a function, whose caller may set the compute
    """

    job: Any
    source: str
    location: Callable[[str], Location | None]
    lookup: AssetLookup | None = None
    warnings: tuple[Problem, ...] = ()
    is_called: bool = False

    def request(self) -> JobRequest:
        """Return the request of the job in its current state."""
        return job_request(self.job, self.source, self.location)

    def unread(self) -> tuple[str, ...]:
        """Return the steps that cannot be read on this machine, so that `plan` would fail."""
        return pipeline.unread(self.request())

    def plan(self, snapshots: Path | None = None) -> Plan:
        """Return the plan of the job in its current state. Without a folder for snapshots, it can be checked, not run.

        Raise InputError as `read_plan` does.
        """
        request = self.request()
        try:
            plan = pipeline.read(request, snapshots, self.source, self.location, self.lookup)
        except InputError as error:
            raise InputError.of(with_key_lines((*error.problems, *self.warnings), self.source)) from None
        nowhere = () if self.is_called else _no_compute(request, self.source)
        return replace(plan, findings=(*self.warnings, *plan.findings, *nowhere))


def _no_compute(job: JobRequest, source: str) -> tuple[Problem, ...]:
    """Return the warning that steps of the job have no compute."""
    if not (steps := job.without_compute):
        return ()
    where = f"key settings.default_compute{f' ({shown(source)})' if source else ''}"
    found = f"no compute is given for step{'s' if steps[1:] else ''} {', '.join(steps)}"
    problem = finding("no-compute", where, found, "a cluster, or serverless")
    return remaining(with_key_lines([problem], source))


def lookup_of(target: str, values: Mapping[str, str], registered: Registered | None) -> AssetLookup:
    """Return the lookup for the job of ``FILE[:NAME]``. Raise InputError if there is no such file, or its
    ``allranks.yaml`` is invalid.

    values:     inputs of the pipeline, and stand-ins, that the user sets
    registered: finds assets that are registered on this machine; None if nothing is registered
    """
    path, _ = _split(target)
    return replace(AssetLookup.of(path.parent, registered), stand_ins=settings.split(values)[1])


@contextlib.contextmanager
def opened(
    target: str, values: Mapping[str, str], lookup: AssetLookup | None = None, *, client: bool = False
) -> Iterator[OpenJob]:
    """Open the job of ``FILE[:NAME]`` within the block. Remove imported modules and temporary files afterwards.

    lookup: resolves ids; None to leave them unresolved, as for Azure ML
    client: whether the block sends the job to Azure ML

    Raise InputError as `read_plan` does.
    """
    path, function = _split(target)
    with session.session(client=client), python_file.importable(path):
        file = _open(path, function, lookup)
        job = file.build(_converted(file, settings.split(values)[0]))
        if lookup is None:
            python_jobs.refer_by_id(job)
        warnings = tuple(getattr(file, "warnings", ()))
        yield OpenJob(job, str(path), file.location, lookup, warnings, isinstance(file, DslFile))


def read_plan(target: str, values: Mapping[str, str], snapshots: Path, registered: Registered | None = None) -> Plan:
    """Return the plan of ``FILE[:NAME]``: a Python file or notebook with a job or a pipeline function, where NAME is
    the job's variable or the function; or a pipeline or a command job in YAML.

    values:     the pipeline's inputs as text, by name
    snapshots:  the folder to which code is copied; created if necessary
    registered: finds assets that are registered on this machine; None if nothing is registered

    Azure is not contacted. Raise InputError, with all problems, if the file or a value cannot be used. Mistakes that
    the SDK accepts are found by `allranks.checks.plan.findings`.
    """
    with opened(target, values, lookup_of(target, values, registered)) as job:
        return job.plan(snapshots)


def read_plans(target: str, snapshots: Path, registered: Registered | None) -> list[Plan | InputError]:
    """Return the plan of each job of a Python file or notebook, or the error of the job.

    A job is read when it is submitted. If none is submitted, the jobs that `read_plan` would choose from are read at
    the end of the file; if that fails, in their state after the cell that created them.
    Raise InputError if the file cannot be read.
    """
    path, _ = _split(target)
    lookup, plans, after_cells = lookup_of(target, {}, registered), list[Plan | InputError](), dict[int, Plan]()

    def plan_of(file: DslFile | PythonJob, line: Location | None = None) -> Plan | InputError:
        lookup.created = file.file.workspace.registered

        def locate(step: str) -> Location | None:
            return file.location(step) or line

        try:
            job, warnings = file.build({}), tuple(file.warnings)
            return OpenJob(job, str(path), locate, lookup, warnings, isinstance(file, DslFile)).plan(snapshots)
        except InputError as error:
            return error

    def on_job(file: PythonFile, value: Any, is_submitted: bool) -> None:
        line = user_code.caller(sys._getframe(1), path) if is_submitted else file.nodes.created.get(id(value))
        plan = plan_of(PythonJob(file, "", value), line)
        if is_submitted:
            plans.append(plan)
        elif isinstance(plan, Plan):
            after_cells[id(value)] = plan

    find = partial(lookup.find, kind=asset_id.COMPONENT, where=shown(path), required=False)
    with session.session(client=False), python_file.importable(path):
        for each in python_jobs.read_each(path, find, on_job):
            identity = id(each.job) if isinstance(each, PythonJob) else 0
            plan = plan_of(each, each.file.nodes.created.get(identity))
            plans.append(after_cells.get(identity, plan) if isinstance(plan, InputError) else plan)
    return plans


def read_job(
    job: Any, snapshots: Path, lookup: AssetLookup | None = None, values: Mapping[str, str] | None = None
) -> Plan:
    """Return the plan of a job of azure-ai-ml, or of a pipeline function. Raise InputError as `read_plan` does.

    lookup: resolves ids; None to leave them unresolved
    values: the pipeline's inputs as text, by name. The job itself does not change
    """
    with session.session(client=False), python_jobs.unchanged(job):
        file = python_jobs.read_object(job)
        inputs, stand_ins = settings.split(values or {})
        built = file.build(_converted(file, inputs))
        lookup = replace(lookup, stand_ins=stand_ins) if lookup is not None else None
        return OpenJob(built, "", file.location, lookup, is_called=isinstance(file, DslFile)).plan(snapshots)


def _open(
    path: Path, function: str | None, lookup: AssetLookup | None
) -> ComponentFile | DslFile | PythonJob | YamlFile:
    if path.suffix in python_file.SUFFIXES:
        # A job that is sent to Azure ML keeps ids. `allranks.yaml` only gives it the ports of components.
        known = lookup or AssetLookup.of(path.parent, None)
        find = partial(known.find, kind=asset_id.COMPONENT, where=shown(path), required=False)
        job = python_jobs.read(path, function, find, keeps_ids=lookup is None)
        known.created = job.file.workspace.registered
        return job
    if function is not None:
        found = f"{function} names a function or a job, but {shown(path)} is not a Python file"
        raise InputError(Problem(f"{shown(path)}:{function}", found, "the file alone"))
    if path.suffix.lower() in (".yml", ".yaml"):
        return yaml_job.read(path)
    expected = "a Python file or notebook with a pipeline (.py, .ipynb), or a job in YAML (.yml, .yaml)"
    raise InputError(Problem(shown(path), f"a file that ends with {path.suffix!r} is not known", expected))


def _split(target: str) -> tuple[Path, str | None]:
    """Return the absolute path of the file, and the name. Raise InputError if there is no such file."""
    path, function = Path(target), None
    if not os.path.exists(path):
        name, colon, last = target.rpartition(":")
        if colon and (last.isidentifier() or not last):
            path, function = Path(name), last
    require_file(path, "a pipeline's file", (*python_file.SUFFIXES, ".yml", ".yaml"))
    if function == "":
        raise InputError(Problem(target, "there is no name after the colon", "FILE or FILE:NAME"))
    return path.absolute(), function


def _converted(
    file: ComponentFile | DslFile | PythonJob | YamlFile, values: Mapping[str, str]
) -> dict[str, tuple[str, Primitive]]:
    """Return the values with their types. Raise InputError for an unknown name or an invalid value."""
    declared = file.inputs()
    settings.refuse_unknown(values, declared)
    types = {name: kind for name, kind in declared.items() if name in values and kind is not None}
    if len(types) < len(values):
        root = job_request(file.build({})).root
        used = types_by_use(root.nodes) if isinstance(root, ComponentRequest) else {}
        types |= {name: used.get(name) or _guessed(file, name, values[name]) for name in values if name not in types}
    return settings.converted(values, types)


def _guessed(file: ComponentFile | DslFile | PythonJob | YamlFile, name: str, text: str) -> str:
    """Return the type of the value in the file. An integer may be set to any number: ``lr: 1`` to 0.5."""
    assert not isinstance(file, ComponentFile), "every input of a component has a type"
    kind = settings.guessed_type(file.given(name))
    return "number" if kind == "integer" and not text.strip().lstrip("+-").isdecimal() else kind
