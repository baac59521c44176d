"""Read jobs: files, jobs of azure-ai-ml, and pipeline functions. Check them without running them."""

import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from allranks.catalog.find import run_target
from allranks.checks import Findings
from allranks.checks.plan import findings
from allranks.errors import InputError, Level, Problem
from allranks.history import registered
from allranks.local import capacity, environments, gpus, requirements
from allranks.local.options import DEFAULTS, Options
from allranks.plan.assets.lookup import AssetLookup
from allranks.plan.graph import Plan
from allranks.plan.reader import read_job, read_plan, read_plans, snapshot
from allranks.plan.reader.settings import with_stand_ins
from allranks.project.script_job import ScriptJob
from allranks.project.script_plan import plan_of
from allranks.sdk.python_file import SUFFIXES
from allranks.sdk.python_jobs import as_texts
from allranks.workspace import Workspace

_READING = threading.Lock()
"""Held while the SDK reads a job, because patches of the SDK apply to the whole process."""

Warn = Callable[[Sequence[Problem]], object]
"""Is called with warnings."""

Report = Callable[[str, str], None]
"""Is called while an environment is being made, with its name and the progress."""


def silent(*_: object) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class Checked(Findings):
    """The result of a check.

    plan:  the compiled pipeline; None if the job cannot be read, or a file has several jobs
    plans: the plans of all readable jobs of the file
    """

    plan: Plan | None = None
    plans: tuple[Plan, ...] = ()

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The errors, which prevent the job from running."""
        return self.errors

    def __bool__(self) -> bool:
        return not self.problems

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in (*self.problems, *self.warnings, *self.machine)) or "no problems"


def check(
    job: Any,
    inputs: Mapping[str, Any] | None = None,
    *,
    stand_ins: Mapping[str, str | os.PathLike[str]] | None = None,
    folder: Path | str | None = None,
) -> Checked:
    """Check a job without running it. Return its problems and warnings instead of raising them.

    job:       the path of a file (``FILE[:NAME]``), the name of a component, a job of azure-ai-ml, or a function with
               ``@dsl.pipeline``. Without a name, every job of a Python file is checked
    inputs:    values of the job's inputs
    stand_ins: by step, the folder with its outputs, so that the step need not run
    folder:    the workspace, which contains registered assets; default: the `.allranks` folder of the current folder or
               a parent
    """
    try:
        job, texts, workspace = resolved(job), texts_of(inputs, stand_ins), Workspace.at(folder)
        with tempfile.TemporaryDirectory(prefix="allranks-") as snapshots:
            read = _read_each(job, texts, Path(snapshots), workspace)
            found = [problem for plan in read for problem in found_in(plan)]
    except InputError as error:
        return Checked(error.problems)
    plans = tuple(plan for plan in read if isinstance(plan, Plan))
    return Checked(tuple(dict.fromkeys(found)), plans[0] if plans and len(read) == 1 else None, plans)


def _read_each(job: Any, texts: Mapping[str, str], snapshots: Path, workspace: Workspace) -> list[Plan | InputError]:
    """Return the plan of each job, or the error. A Python file without a name may have several jobs."""
    try:
        if is_path(job) and os.fspath(job).endswith(SUFFIXES) and not texts:
            with _READING:
                return read_plans(os.fspath(job), snapshots, registered.of(workspace))
        return [_read(job, texts, snapshots, workspace)]
    except InputError as error:
        return [error]


def found_in(plan: Plan | InputError) -> Iterator[Problem]:
    """Yield the findings of a plan, with those of this machine, or the problems of a job without one."""
    if isinstance(plan, InputError):
        yield from plan.problems
        return
    of_plan = findings(plan)
    yield from of_plan.found
    # Do not report an impossible count a second time.
    lacking = requirements.machine_problems(plan, is_possible=not (of_plan.errors or of_plan.machine))
    lacking += gpus.problems(plan, gpus.AUTO, gpus.find(os.environ))
    yield from (replace(problem, level=Level.MACHINE) for problem in lacking)
    yield from (replace(problem, level=Level.WARNING) for problem in capacity.warnings(plan))


def read(
    job: Any,
    inputs: Mapping[str, Any] | None,
    workspace: Workspace,
    options: Options = DEFAULTS,
    *,
    report: Report = silent,
    warn: Warn = bool,
) -> Plan:
    """Return the plan of a job, with its code copied into the workspace.

    options: those of the run, which define how its environments are made and what it needs of this machine
    report:  is called while an environment is being made
    warn:    is called with the warnings

    The workspace is not changed before the plan has been checked. Raise InputError if the job cannot run here.
    """
    with tempfile.TemporaryDirectory(prefix="allranks-") as snapshots:
        plan = _read(job, texts_of(inputs), Path(snapshots), workspace)
        plan, differences = environments.with_interpreters(plan, options.environment, report)
        warn((*requirements.require(plan), *differences))
        workspace.make()
        return snapshot.save(plan, workspace.snapshots)


def resolved(job: Any) -> Any:
    """Return the path of the spec for the name of a component, and any other job unchanged.

    Raise InputError if neither a file nor a component has this name.
    """
    return run_target(os.fspath(job)) if is_path(job) else job


def is_path(job: Any) -> bool:
    return isinstance(job, (str, os.PathLike))


def texts_of(
    inputs: Mapping[str, Any] | None, stand_ins: Mapping[str, str | os.PathLike[str]] | None = None
) -> dict[str, str]:
    """Return the values of inputs, and stand-ins, as text. Raise InputError for a value that cannot be an input."""
    return with_stand_ins(as_texts(inputs or {}), stand_ins)


def _read(job: Any, texts: Mapping[str, str], snapshots: Path, workspace: Workspace) -> Plan:
    with _READING:
        if is_path(job):
            return read_plan(os.fspath(job), texts, snapshots, registered.of(workspace))
        if isinstance(job, ScriptJob):
            return plan_of(job, snapshots, registered.of(workspace))
        return read_job(job, snapshots, AssetLookup.of(Path.cwd(), registered.of(workspace)), texts)
