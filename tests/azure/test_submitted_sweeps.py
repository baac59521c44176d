"""A sweep in Azure ML, by itself and in a pipeline: shown with its trials and their logs."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import Command, add_step, command, only_run, project, quick
from fake.service import FakeAzure

from allranks_command import write

__all__ = ["command", "project", "quick"]

ENVIRONMENT = {"image": "python:3.12"}
SWEEP = {
    "type": "sweep",
    "search_space": {"rate": {"type": "choice", "values": [1, 2]}},
    "sampling_algorithm": "grid",
    "objective": {"goal": "minimize", "primary_metric": "loss"},
    "limits": {"max_total_trials": 2},
}
TRIAL = {
    "type": "command",
    "name": "trial",
    "version": "1",
    "inputs": {"rate": {"type": "integer"}},
    "environment": ENVIRONMENT,
    "command": "echo ${{inputs.rate}}",
}
JOB = {
    **SWEEP,
    "compute": "azureml:cpu-cluster",
    "trial": {"environment": ENVIRONMENT, "command": "echo ${{search_space.rate}}"},
}
PIPELINE = {
    "type": "pipeline",
    "settings": {"default_compute": "azureml:cpu-cluster"},
    "jobs": {"tune": {**SWEEP, "trial": "./trial.yml"}},
}


@pytest.mark.parametrize(("job", "sweep"), [(JOB, "tuned"), (PIPELINE, "tune")], ids=["job", "pipeline"])
def test_trials_are_shown_with_their_logs(
    project: Path, azure: FakeAzure, command: Command, job: dict[str, Any], sweep: str
) -> None:
    write(project, "tuned.yml", yaml.safe_dump(job))
    write(project, "trial.yml", yaml.safe_dump(TRIAL))
    assert command("submit", "tuned.yml", "--no-stream").code == 0
    run = only_run(azure)
    run.move("Running")
    parent = add_step(azure, run.name, "tune") if job is PIPELINE else run
    assert command("show", run.name).code == 0
    for number in (0, 1):
        add_step(azure, parent.name, f"trial_{number}", "Completed", std_log=f"rate {number}\n".encode())
    parent.move("Completed")
    run.move("Completed")
    shown = {step["name"]: step["status"] for step in command("show", run.name, "--json").json["steps"]}
    trials = [f"{sweep}.trial[{number}]" for number in (0, 1)]
    assert shown == dict.fromkeys([sweep, *trials], "Completed")
    logged = command("logs", run.name).out.splitlines()
    assert logged == [f"{trial}:0 | rate {number}" for number, trial in enumerate(trials)]
    azure.clear()
    assert command("show", run.name).code == 0
    assert azure.requests == []
