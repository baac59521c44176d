"""A sweep and a parallel step in Azure ML: submitted, watched, and shown with their trials and logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import Command, command, only_run, project, quick
from fake.service import FakeAzure

from allranks_command import write

__all__ = ["command", "project", "quick"]

TRAIN = (
    "echo rate %s && printf "
    '\'{"event": "progress", "step": 1, "metrics": {"loss": %%s}, "total": 1, "epoch": 0, "time": 1}\\n\' %s '
    ">> $ALLRANKS_REPORT"
)
ENVIRONMENT = {"image": "python:3.12"}
SWEEP = {
    "type": "sweep",
    "search_space": {"rate": {"type": "choice", "values": [1, 2]}},
    "sampling_algorithm": "grid",
    "objective": {"goal": "minimize", "primary_metric": "loss"},
    "limits": {"max_total_trials": 2},
}


def text(name: str) -> str:
    return TRAIN % (f"${{{{{name}.rate}}}}", f"${{{{{name}.rate}}}}")


TRIAL = {
    "type": "command",
    "name": "trial",
    "version": "1",
    "inputs": {"rate": {"type": "integer"}},
    "environment": ENVIRONMENT,
    "command": text("inputs"),
}
JOB = {
    **SWEEP,
    "compute": "azureml:cpu-cluster",
    "trial": {"environment": ENVIRONMENT, "command": text("search_space")},
}
SCORE = {
    "type": "parallel",
    "inputs": {"letters": {"type": "uri_folder", "path": "./data"}},
    "outputs": {"rows": {"type": "uri_file"}},
    "input_data": "${{inputs.letters}}",
    "mini_batch_size": "1",
    "task": {
        "type": "run_function",
        "code": "./code",
        "entry_script": "score.py",
        "environment": ENVIRONMENT,
        "append_row_to": "${{outputs.rows}}",
    },
}
PIPELINE = {
    "type": "pipeline",
    "settings": {"default_compute": "azureml:cpu-cluster"},
    "jobs": {"tune": {**SWEEP, "trial": "./trial.yml"}, "score": SCORE},
}


@pytest.mark.parametrize(("job", "sweep"), [(JOB, "tuned"), (PIPELINE, "tune")], ids=["job", "pipeline"])
def test_trials_are_shown_with_their_logs(
    project: Path, azure: FakeAzure, command: Command, job: dict[str, Any], sweep: str
) -> None:
    write(project, "tuned.yml", yaml.safe_dump(job))
    write(project, "trial.yml", yaml.safe_dump(TRIAL))
    write(project, "code/score.py", "def run(batch): return list(batch)")
    for letter in "abc":
        write(project, f"data/{letter}", letter)
    done = command("submit", "tuned.yml")
    assert done.code == 0, done.out + done.err
    run = only_run(azure)
    shown = {step["name"]: step["status"] for step in command("show", run.name, "--json").json["steps"]}
    trials = [f"{sweep}.trial[{number}]" for number in (0, 1)]
    assert shown == dict.fromkeys([sweep, *trials, *(["score"] if job is PIPELINE else [])], "Completed")
    logged = command("logs", run.name).out.splitlines()
    assert [line for line in logged if line.startswith(sweep)] == [
        f"{trial}:0 | rate {rate}" for trial, rate in zip(trials, (1, 2), strict=True)
    ]
    assert ("score:0 | 3 mini-batches" in logged) is (job is PIPELINE)
    azure.clear()
    assert command("show", run.name).code == 0
    assert azure.requests == []
