"""What the fake refuses of a job, as the service does; by the real client."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from azure.core.exceptions import HttpResponseError
from fake.names import in_workspace

JOB = {
    "type": "command",
    "command": "echo hello",
    "environment": "azureml:cpu:1",
    "compute": "azureml:cpu-cluster",
}
COMPONENT = {"type": "command", "name": "say", "version": "1", "command": "echo", "environment": "azureml:cpu:1"}


@pytest.fixture
def submit(azure: Any, tmp_path: Path) -> Callable[..., Any]:
    """Submits a command job, or a pipeline that has it as its step, with some keys changed."""
    from azure.ai.ml import load_component, load_job
    from azure.ai.ml.entities import Environment

    azure.executes = False
    client = azure.client(show_progress=False)
    client.environments.create_or_update(Environment(name="cpu", version="1", image="ubuntu:22.04"))
    (tmp_path / "say.yml").write_text(yaml.safe_dump(COMPONENT))
    client.components.create_or_update(load_component(tmp_path / "say.yml"))

    def make(step: dict[str, Any] | None = None, **job: Any) -> Any:
        tree = {key: value for key, value in {**JOB, **job}.items() if value is not None}
        if step is not None:
            tree = {"type": "pipeline", "compute": JOB["compute"], "jobs": {"one": {**JOB, **step}}, **job}
        file = tmp_path / "job.yml"
        file.write_text(yaml.safe_dump(tree))
        return client.jobs.create_or_update(load_job(file), skip_validation=True)

    return make


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ({"compute": "azureml:big"}, "Unknown compute target 'big'"),
        ({"environment": "azureml:gpu:1"}, "Environment gpu:1 was not found"),
        ({"resources": {"instance_count": 5}}, "node count 5 exceeds the maximum node count 4"),
        ({"name": "-no-"}, "The name .* of jobs is invalid"),
        (
            {"compute": None, "resources": {"instance_type": "Standard_NC96ads_A100_v4", "instance_count": 2}},
            "192 cores exceed the quota of 100 cores",
        ),
        ({"compute": None, "resources": {"instance_type": "Standard_Nope"}}, "Standard_Nope is not supported"),
        (
            {"inputs": {"data": {"type": "uri_folder", "path": "azureml://datastores/mine/paths/a"}}},
            "Could not find datastore with name mine",
        ),
        ({"inputs": {"data": {"type": "uri_folder", "path": "azureml:numbers:1"}}}, "Data numbers:1 was not found"),
    ],
    ids=["compute", "environment", "nodes", "name", "quota", "size", "datastore", "data"],
)
def test_a_command_job_that_is_refused(azure, submit, job, message) -> None:
    with pytest.raises(HttpResponseError, match=message):
        submit(**job)
    assert azure.jobs == {}


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ({"compute": "azureml:big"}, "Unknown compute target 'big'"),
        ({"resources": {"instance_count": 5}}, "node count 5 exceeds the maximum node count 4"),
        ({"environment": "azureml:gpu:1"}, "Environment gpu:1 was not found"),
    ],
    ids=["compute", "nodes", "environment"],
)
def test_a_pipeline_that_is_refused(azure, submit, step, message) -> None:
    with pytest.raises(HttpResponseError, match=message):
        submit(step)
    assert azure.jobs == {}


def test_a_component_must_be_registered(azure, submit) -> None:
    with pytest.raises(HttpResponseError, match=r"Not found component say \(version: 2\)"):
        submit(jobs={"one": {"type": "command", "component": "azureml:say:2"}}, step={})


def test_what_is_right_is_taken(azure, submit) -> None:
    submit()
    submit({})
    submit(jobs={"one": {"type": "command", "component": "azureml:say:1"}}, step={})
    assert [job.status for job in azure.jobs.values()] == ["Queued"] * 3
    assert azure.jobs[next(iter(azure.jobs))].properties["computeId"] == in_workspace("computes", "cpu-cluster")
