"""Read jobs: files, jobs of azure-ai-ml, and pipeline functions. Check them without running them."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.plan.graph import Plan
from allranks.runs.workspace import Workspace

_READING = threading.Lock()
"""Held while the SDK, which is patched for the whole process, reads a job."""


@dataclass(frozen=True)
class Checked:
    """The result of a check.

    plan:     the compiled pipeline; None if the job cannot be read
    problems: the job cannot run until they are solved
    warnings: the job can run
    machine:  what this machine lacks to run it, such as a package; not a mistake in the job
    advice:   what could be better; the job runs as intended
    """

    plan: Plan | None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    machine: tuple[Problem, ...] = ()
    advice: tuple[Problem, ...] = ()

    def __bool__(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in (*self.problems, *self.warnings, *self.machine)) or "no problems"


def check(job: Any, inputs: Mapping[str, Any] | None = None, *, folder: Path | str | None = None) -> Checked:
    """Check a job without running it, and return its problems and warnings. Do not raise an error for them.

    job:    the path of a file (``FILE[:NAME]``), the name of a component, a job of azure-ai-ml, or a function with
            ``@dsl.pipeline``
    inputs: values of the job's inputs
    folder: the workspace, which contains registered assets; default: the `.allranks` folder of the current folder or a
            parent
    """
    from datetime import date

    from allranks.checks.plan import advice, warnings
    from allranks.local import capacity, gpus, requirements

    try:
        job = resolved(job)
        with tempfile.TemporaryDirectory(prefix="allranks-") as snapshots:
            plan = _read(job, texts_of(inputs), Path(snapshots), Workspace.at(folder))
            problems, machine = requirements.of_plan_and_machine(plan)
    except InputError as error:
        return Checked(None, error.problems)
    today = date.today()
    found = (*warnings(plan, today), *capacity.warnings(plan))
    gpu_problems = gpus.problems(plan, gpus.AUTO, gpus.found(os.environ))
    return Checked(plan, tuple(problems), found, (*machine, *gpu_problems), tuple(advice(plan, today)))


def read(job: Any, inputs: Mapping[str, Any] | None, workspace: Workspace, *, track: bool = True) -> Plan:
    """Return the plan of a job, with its code copied into the workspace.

    track: whether it will run with MLflow

    The workspace is not changed before the plan has been checked. Raise InputError if the job cannot run here.
    """
    from allranks.local import requirements
    from allranks.plan.reader import snapshot

    with tempfile.TemporaryDirectory(prefix="allranks-") as snapshots:
        plan = _read(job, texts_of(inputs), Path(snapshots), workspace)
        if problems := requirements.problems(plan, track=track):
            raise InputError(*problems)
        workspace.make()
        return snapshot.save(plan, workspace.snapshots)


def resolved(job: Any) -> Any:
    """Return the path of the spec for the name of a component, and any other job unchanged.

    Raise InputError if neither a file nor a component has this name.
    """
    from allranks.components.find import run_target

    return run_target(os.fspath(job)) if is_path(job) else job


def target_of(job: Any) -> str:
    """Return the absolute ``FILE[:NAME]`` of a job; "" for an object, which cannot be read again."""
    return os.path.abspath(job) if is_path(job) else ""


def is_path(job: Any) -> bool:
    """Return whether a job is given as a path."""
    return isinstance(job, (str, os.PathLike))


def texts_of(inputs: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the values of inputs as text. Raise InputError for a value that cannot be an input."""
    from allranks.plan.reader.python_object import as_texts

    return as_texts(inputs or {})


def _read(job: Any, texts: Mapping[str, str], snapshots: Path, workspace: Workspace) -> Plan:
    from allranks.plan.assets.lookup import AssetLookup
    from allranks.plan.reader import read_job, read_plan
    from allranks.script_jobs.job import ScriptJob
    from allranks.script_jobs.plan import plan_of

    with _READING:
        if is_path(job):
            return read_plan(os.fspath(job), texts, snapshots, workspace)
        if isinstance(job, ScriptJob):
            return plan_of(job, snapshots, workspace)
        return read_job(job, snapshots, AssetLookup.of(Path.cwd(), workspace), texts)
