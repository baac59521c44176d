"""A submitted job has the outcome of the rehearsal of its code."""

from dataclasses import replace
from pathlib import Path

import pytest
from commands import Command
from fake.service import FakeAzure

from allranks.api import jobs
from allranks.workspace import Workspace
from allranks_lab.rehearsal import report


@pytest.mark.slow
def test_a_rehearsal_is_attached(azure: FakeAzure, command: Command, project: Path) -> None:
    azure.computes["cpu-cluster"] = replace(azure.computes["cpu-cluster"], priority="LowPriority")
    place = Workspace(project / ".allranks")
    code = report.code_of(jobs.read(str(project / "pipeline.yaml"), {}, place), ["train"])
    report.save(report.Report("p", "a", "b", "Completed", 3, 3, 1, False, code, ()), place)
    done = command("submit", "pipeline.yaml", "--no-stream")
    assert done.code == 0, done.err
    assert "low-priority" not in done.err
    sent = [job.properties for job in azure.jobs.values() if job.properties.get("tags")]
    assert [each["tags"]["allranks.rehearsal"] for each in sent] == ["passed: 3 evictions, seed 1"]
