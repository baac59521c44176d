"""The size that a step runs on reaches its ranks, by ALLRANKS_SIZE in what is sent."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands import TRAIN, Command, command, project, quick
from fake.computes import Compute
from fake.service import FakeAzure

from allranks_command import write

__all__ = ["command", "project", "quick"]

NESTED = """
type: pipeline
name: inner
version: "1"
inputs:
  data: {type: uri_folder}
jobs:
  train:
    type: command
    component: ../train/component.yaml
    inputs: {data: "${{parent.inputs.data}}"}
  own:
    type: command
    component: ../train/component.yaml
    inputs: {data: "${{parent.inputs.data}}"}
    resources: {instance_type: Standard_ND40rs_v2}
    environment_variables: {ALLRANKS_SIZE: none, OTHER: "1"}
"""
PIPELINE = """
type: pipeline
settings: {default_compute: "azureml:a100"}
inputs:
  data: {type: uri_folder, path: ./words}
jobs:
  inner:
    type: pipeline
    component: ./inner/component.yaml
    inputs: {data: "${{parent.inputs.data}}"}
  small:
    type: command
    component: ./train/component.yaml
    compute: azureml:cpu-cluster
    inputs: {data: "${{parent.inputs.data}}"}
"""
TUNED = """
type: command
name: tuned
version: "1"
inputs: {rate: {type: number}}
environment: {image: "python:3.12"}
command: echo rate ${{inputs.rate}}
"""
SWEEP = {
    "type": "sweep",
    "trial": "./tuned.yaml",
    "search_space": {"rate": {"type": "choice", "values": [0.1, 0.2]}},
    "sampling_algorithm": "random",
    "objective": {"goal": "minimize", "primary_metric": "loss"},
    "limits": {"max_total_trials": 2},
}
SWEEPS: dict[str, Any] = {
    "type": "pipeline",
    "settings": {"default_compute": "azureml:a100"},
    "jobs": {
        "tune": SWEEP,
        "small": SWEEP | {"compute": "azureml:cpu-cluster"},
        "train": {"type": "command", "component": "./tuned.yaml", "inputs": {"rate": 0.1}},
    },
}
SCHEDULE = """
name: nightly
trigger: {type: cron, expression: "0 2 * * *"}
create_job: ./sweeps.yml
"""


@pytest.fixture
def sent(azure: FakeAzure) -> list[dict[str, Any]]:
    """The bodies that were sent, jobs and components, in their order."""
    azure.computes["a100"] = Compute("a100", "STANDARD_ND96ASR_V4", 4)
    bodies: list[dict[str, Any]] = []
    store = azure.answer

    def answer(request: Any) -> Any:
        if request.method == "PUT" and ("/jobs/" in request.path or "/components/" in request.path):
            bodies.append(request.json["properties"])
        return store(request)

    azure.answer = answer  # type: ignore[method-assign]
    return bodies


def test_the_size_of_an_option(command: Command, azure: FakeAzure) -> None:
    azure.core_limits["standardNCADSA100v4Family"] = 1000
    options = ["--size", "train=NC96ads_A100_v4", "--dry-run"]
    jobs = command("submit", "pipeline.yaml", *options).json["properties"]["jobs"]
    assert jobs["train"]["environment_variables"] == {"ALLRANKS_SIZE": "Standard_NC96ads_A100_v4"}
    assert "environment_variables" not in jobs["prepare"]


def test_the_size_of_a_command_job(command: Command) -> None:
    body = command("submit", "job.yml", "--size", "ND96asr_v4", "--dry-run").json["properties"]
    assert body["environmentVariables"] == {"ALLRANKS_SIZE": "Standard_ND96asr_v4"}


def test_the_size_of_a_cluster(command: Command, project: Path, sent: list[dict[str, Any]]) -> None:
    """Of steps of nested pipelines too, and not where a step says otherwise or has no GPU."""
    write(project, "pipeline.yml", PIPELINE)
    write(project, "inner/component.yaml", NESTED)
    write(project, "train/component.yaml", TRAIN)
    write(project, "words/words", "a")
    done = command("submit", "pipeline.yml", "--no-stream")
    assert done.code == 0, done.err
    jobs = sent[-1]["jobs"]
    assert "environment_variables" not in jobs["small"]
    (inner,) = (body["componentSpec"] for body in sent if "jobs" in body.get("componentSpec", {}))
    assert inner["jobs"]["train"]["environment_variables"] == {"ALLRANKS_SIZE": "Standard_ND96asr_v4"}
    assert inner["jobs"]["own"]["environment_variables"] == {"ALLRANKS_SIZE": "none", "OTHER": "1"}


def test_the_trials_of_a_sweep_in_a_pipeline(command: Command, project: Path, sent: list[dict[str, Any]]) -> None:
    """By their command, since a sweep in a pipeline has no environment variables."""
    write(project, "sweeps.yml", json.dumps(SWEEPS))
    write(project, "tuned.yaml", TUNED)
    done = command("submit", "sweeps.yml", "--no-stream")
    assert done.code == 0, done.err
    commands = [body["componentSpec"]["command"] for body in sent if "componentSpec" in body]
    assert sorted(commands) == [
        "echo rate ${{inputs.rate}}",  # of small and of train
        "export ALLRANKS_SIZE=Standard_ND96asr_v4 && echo rate ${{inputs.rate}}",
    ]
    jobs = sent[-1]["jobs"]
    assert jobs["train"]["environment_variables"] == {"ALLRANKS_SIZE": "Standard_ND96asr_v4"}
    assert jobs["small"]["trial"]["componentId"] == jobs["train"]["componentId"]
    assert jobs["tune"]["trial"]["componentId"] != jobs["train"]["componentId"]


@pytest.mark.parametrize("step", ["train", "tune"])
def test_a_schedule_on_a_cluster_that_cannot_run_it(
    command: Command, project: Path, azure: FakeAzure, step: str
) -> None:
    azure.computes["v100"] = Compute("v100", "STANDARD_ND40RS_V2", 4)
    write(project, "tuned.yaml", TUNED.replace("python:3.12", "nvidia/cuda:13.0.2-base-ubuntu24.04"))
    jobs = {step: SWEEPS["jobs"][step]}
    write(project, "sweeps.yml", json.dumps(SWEEPS | {"settings": {"default_compute": "azureml:v100"}, "jobs": jobs}))
    write(project, "pipelines/nightly.yml", SCHEDULE.replace("./", "../"))
    refused = command("schedules", "apply")
    assert (refused.code, azure.schedules) == (2, {})
    assert f"schedule nightly, step {step}, key resources.instance_type (pipelines/nightly.yml)" in refused.err
    assert "CUDA 13.0, which does not run on the V100 of Standard_ND40rs_v2" in refused.err


def test_a_schedule_has_what_a_submission_sends(
    command: Command, project: Path, azure: FakeAzure, sent: list[dict[str, Any]]
) -> None:
    write(project, "sweeps.yml", json.dumps(SWEEPS))
    write(project, "tuned.yaml", TUNED)
    write(project, "pipelines/nightly.yml", SCHEDULE.replace("./", "../"))
    assert command("submit", "sweeps.yml", "--no-stream").code == 0
    submitted = sent[-1]["jobs"]
    applied = command("schedules", "apply")
    assert applied.code == 0, applied.err
    job = azure.schedules["nightly"]["properties"]["action"]["jobDefinition"]
    assert job["jobs"] == submitted
    assert command("schedules", "apply").out == "nightly: unchanged\n"
