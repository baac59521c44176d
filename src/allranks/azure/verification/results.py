"""Collect the results of pipelines/verify_workspace.py: its processes' records, and its steps' reports."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allranks.azure import runs
from allranks.azure.verification import launch_records
from allranks.azure.verification.anonymous import anonymous, names_of
from allranks.azure.verification.comparison import FactComparison, compare
from allranks.plan.graph import Plan, Step, steps
from allranks.runs.records import RunRecord

_STEP = "record_"
"""A step of this name and a launch records what its processes are given, as the pipeline's output records_LAUNCH."""

_REPORTS = ("preflight", "bandwidth", "verification")
"""Outputs of the pipeline that are saved beside the report."""


@dataclass(frozen=True)
class Results:
    """The results of comparing two runs.

    compared: everything that was compared
    missing:  the launches without records on Azure ML, which could not be compared
    names:    what must not be published, each with its placeholder
    """

    compared: tuple[FactComparison, ...]
    missing: tuple[str, ...]
    names: Mapping[str, str]


def launches(run: RunRecord) -> tuple[str, ...]:
    """Return the launches that a run records."""
    return _launches(step.name for step in run.steps)


def launches_of(plan: Plan) -> tuple[str, ...]:
    """Return the launches that a plan records."""
    return _launches(path for path, _ in steps(plan.graph))


def step_of(launch: str) -> str:
    """Return the name of the step that records a launch."""
    return f"{_STEP}{launch}"


def compare_runs(client: Any, run: RunRecord, local: RunRecord) -> Results:
    """Compare what the processes of both runs were given. A step that has written no records is left out.

    Raise InputError if a record cannot be read, and AzureError.
    """
    compared: list[FactComparison] = []
    missing: list[str] = []
    hosts: set[str] = set()
    for launch in launches(local):
        with tempfile.TemporaryDirectory(prefix="allranks-") as folder:
            if not runs.download_output(client, run.id, f"records_{launch}", Path(folder)):
                missing.append(launch)
                continue
            mine = launch_records.read(Path(_outputs(local, step_of(launch))["records"]))
            theirs = launch_records.read(Path(folder))
            hosts |= launch_records.hostnames(mine) | launch_records.hostnames(theirs)
            compared += compare(launch, mine, theirs)
    return Results(tuple(compared), tuple(missing), names_of(run, hosts))


def save_reports(client: Any, run: RunRecord, folder: Path, names: Mapping[str, str]) -> None:
    """Save what preflight, collectives and the environment's check found into a folder, without names of the workspace.

    A step that did not complete has none. Raise InputError or AzureError.
    """
    for output in _REPORTS:
        with tempfile.TemporaryDirectory(prefix="allranks-") as temporary:
            if runs.download_output(client, run.id, output, Path(temporary)):
                folder.mkdir(parents=True, exist_ok=True)
                for path in sorted(path for path in Path(temporary).rglob("*") if path.suffix in (".json", ".svg")):
                    text = anonymous(path.read_text(encoding="utf-8"), names)
                    (folder / path.name).write_text(text, encoding="utf-8")


def _launches(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.removeprefix(_STEP) for name in names if name.startswith(_STEP))


def _outputs(run: RunRecord, step: str) -> Mapping[str, str]:
    return {output.name: output.path for record in run.steps if record.name == step for output in record.outputs}


MINUTES = 5
"""Minutes for which each instance is estimated to be billed, most of them for its start and the pull of the image."""


@dataclass(frozen=True)
class Submission:
    """The steps that are submitted, by name."""

    steps: dict[str, Step]

    @property
    def at_once(self) -> int:
        """The number of instances if all steps that can run together do."""
        return sum(step.instance_count for step in self.steps.values())

    @property
    def at_least(self) -> int:
        """The number of instances that a workspace has to have."""
        return max(step.instance_count for step in self.steps.values())

    @property
    def instance_minutes(self) -> int:
        """The estimated cost: billed instances x minutes."""
        return self.at_once * MINUTES


def submission(plan: Plan) -> Submission:
    """Return what is submitted for a plan."""
    return Submission(dict(steps(plan.graph)))
