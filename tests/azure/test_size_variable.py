"""The size that a step runs on reaches its ranks, by ALLRANKS_SIZE in what is sent."""

from __future__ import annotations

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


@pytest.fixture
def sent(azure: FakeAzure) -> list[dict[str, Any]]:
    """The bodies that were sent, jobs and components, in their order."""
    azure.executes = False
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
