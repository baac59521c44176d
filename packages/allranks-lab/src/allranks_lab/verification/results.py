"""Collect the results of pipelines/verify_workspace.py: its processes' records, and its steps' reports."""

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allranks.azure import runs
from allranks.history.records import RunRecord, Status
from allranks.text import count
from allranks_lab.verification import launch_records
from allranks_lab.verification.anonymous import anonymous, names_of
from allranks_lab.verification.comparison import FactComparison, compare, group_equal

_STEP = "record_"
"""A step of this name and a launch records its processes in the pipeline's output records_LAUNCH."""

_REPORTS = ("preflight", "bandwidth", "verification")
"""Outputs of the pipeline that are saved beside the report."""


@dataclass(frozen=True)
class Results:
    """The results of comparing two runs.

    run:      the run on Azure ML
    compared: everything that was compared
    missing:  the launches without records on Azure ML, which could not be compared
    names:    texts that must not be published, each with its placeholder
    """

    run: RunRecord
    compared: tuple[FactComparison, ...]
    missing: tuple[str, ...]
    names: Mapping[str, str]

    @property
    def differences(self) -> tuple[FactComparison, ...]:
        """The differences of facts that the platform decides."""
        return tuple(each for each in self.compared if each.is_failure)

    @property
    def incomplete(self) -> tuple[str, ...]:
        """The steps that did not complete."""
        return tuple(step.name for step in self.run.steps if step.status is not Status.COMPLETED)

    @property
    def summary(self) -> str:
        """One line with the essential results."""
        differences = count(len(group_equal(self.differences)), "difference")
        parts = [f"{differences} in {count(len(self.compared), 'comparison')}"]
        if self.incomplete:
            parts.append(f"{count(len(self.incomplete), 'step')} did not complete: {', '.join(self.incomplete)}")
        if self.missing:
            parts.append(f"not compared, because no records exist: {', '.join(self.missing)}")
        return "; ".join(parts)


def launches(names: Iterable[str]) -> tuple[str, ...]:
    """Return the launches that are recorded by steps with these names."""
    return tuple(name.removeprefix(_STEP) for name in names if name.startswith(_STEP))


def step_of(launch: str) -> str:
    """Return the name of the step that records a launch."""
    return f"{_STEP}{launch}"


def compare_runs(client: Any, run: RunRecord, local: RunRecord) -> Results:
    """Compare the processes of both runs. A step that has written no records is left out.

    Raise InputError if a record cannot be read, and AzureError on errors of the service.
    """
    compared: list[FactComparison] = []
    missing: list[str] = []
    hosts: set[str] = set()
    for launch in launches(step.name for step in local.steps):
        with tempfile.TemporaryDirectory(prefix="allranks-") as folder:
            if not runs.download_output(client, run.id, f"records_{launch}", Path(folder)):
                missing.append(launch)
                continue
            outputs = {output.name: output.path for output in local.step(step_of(launch)).outputs}
            mine = launch_records.read(Path(outputs["records"]))
            theirs = launch_records.read(Path(folder))
            hosts |= launch_records.hostnames(mine) | launch_records.hostnames(theirs)
            compared += compare(launch, mine, theirs)
    return Results(run, tuple(compared), tuple(missing), names_of(run, hosts))


def save_reports(client: Any, results: Results, folder: Path) -> None:
    """Save the reports of preflight, collectives and the environment's check, without names of the workspace.

    A step that did not complete has no report. Raise InputError or AzureError.
    """
    for output in _REPORTS:
        with tempfile.TemporaryDirectory(prefix="allranks-") as temporary:
            if runs.download_output(client, results.run.id, output, Path(temporary)):
                folder.mkdir(parents=True, exist_ok=True)
                for path in sorted(path for path in Path(temporary).rglob("*") if path.suffix in (".json", ".svg")):
                    text = anonymous(path.read_text(encoding="utf-8"), results.names)
                    (folder / path.name).write_text(text, encoding="utf-8")
