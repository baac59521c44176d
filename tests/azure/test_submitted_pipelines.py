"""One of our pipelines in Azure ML: submitted as a user does it, run from the REST body, the results brought back.

The REST body of each of our pipelines has the plan of its file (test_round_trip.py), and tests/pipelines runs the plans
of the others.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Command, command, only_run, project, quick
from fake.service import FakeAzure

from allranks.azure import watch

__all__ = ["command", "project", "quick"]

PIPELINES = Path(__file__).resolve().parents[2] / "pipelines"
SETTINGS = {"row_count": 200, "num_iterations": 5, "instance_count": 1, "processes_per_instance": 1}
"""The least that it can be given."""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_pipeline_completes_and_its_results_come_back(
    azure: FakeAzure, command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One with a step that needs MLflow's registry."""
    monkeypatch.setattr(watch, "POLL", 1.0)  # seconds; the machine has other things to do
    azure.tracks = True
    settings = [f"--set={key}={value}" for key, value in SETTINGS.items()]
    done = command("submit", str(PIPELINES / "gradient_boosting.py"), "--compute", "cpu-cluster", *settings)
    assert done.code == 0, done.out + done.err
    run = only_run(azure)
    assert {azure.jobs[step].status for step in run.children} == {"Completed"}
    assert f"studio  {run.url()}" in done.out

    logged = command("logs", run.name)
    assert logged.code == 0
    steps = {azure.jobs[step].display_name for step in run.children}
    assert {line.partition(":")[0] for line in logged.out.split("\n") if line} <= steps
    client = azure.client()
    for output, (kind, _, _) in run.outputs.items():
        if not kind.endswith("_model"):  # azure-ai-ml takes the address of a model's files for that of a model
            client.jobs.download(run.name, output_name=output, download_path=tmp_path / "results")
            assert [file for file in (tmp_path / "results").rglob(f"*{output}/**/*") if file.is_file()], output
