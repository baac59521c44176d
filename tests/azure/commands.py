"""The command in this process, where azure-ai-ml has to be imported but once, and a small pipeline to submit."""

import json
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from azure.core.pipeline.policies import RetryPolicy
from fake.blobs import Blob
from fake.jobs import ARTIFACTS, Job, artifacts
from fake.service import FakeAzure

from allranks.azure import watch
from allranks.cli.main import main
from allranks.sdk import runtime_copy
from allranks_command import Ended, write

Command = Callable[..., Ended]

PIPELINE = """
$schema: https://azuremlschemas.azureedge.net/latest/pipelineJob.schema.json
type: pipeline
display_name: Two steps
settings:
  default_compute: azureml:cpu-cluster
inputs:
  instances: 2
jobs:
  prepare:
    type: command
    component: ./prepare/component.yaml
  train:
    type: command
    component: ./train/component.yaml
    inputs:
      data: ${{parent.jobs.prepare.outputs.data}}
    resources:
      instance_count: ${{parent.inputs.instances}}
    distribution:
      type: pytorch
      process_count_per_instance: 2
"""
PREPARE = """
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
type: command
name: prepare
version: "1"
display_name: Prepare data
outputs:
  data: {type: uri_folder}
code: .
environment: {image: "python:3.12"}
command: python prepare.py ${{outputs.data}}
"""
TRAIN = """
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
type: command
name: train
version: "1"
inputs:
  data: {type: uri_folder}
code: .
environment: {image: "python:3.12"}
command: cat ${{inputs.data}}/words && echo rank $RANK
"""


def write_project(folder: Path) -> None:
    """pipeline.yaml with its two components, and job.yml, a job by itself."""
    write(folder, "pipeline.yaml", PIPELINE)
    write(folder, "prepare/component.yaml", PREPARE)
    write(folder, "prepare/prepare.py", "import sys; open(sys.argv[1] + '/words', 'w').write('prepared\\n')")
    write(folder, "train/component.yaml", TRAIN)
    write(folder, "train/note.txt", "code")
    job = {"command": "echo hello", "environment": {"image": "python:3.12"}, "compute": "azureml:cpu-cluster"}
    write(folder, "job.yml", json.dumps(job))
    write(folder, "v100.yml", json.dumps(job_on("Standard_ND40rs_v2", "nvidia/cuda:13.0.2-base-ubuntu24.04")))
    old = {
        "type": "command",
        "component": "../old/component.yaml",
        "resources": {"instance_type": "Standard_ND40rs_v2"},
    }
    inner = {"type": "pipeline", "name": "inner", "version": "1", "jobs": {"train": old}}
    spec = {"type": "command", "name": "old", "version": "1", "command": "nvidia-smi"}
    write(folder, "inner/component.yaml", json.dumps(inner))
    write(folder, "old/component.yaml", json.dumps(spec | {"environment": {"image": "nvidia/cuda:13.0.2-base"}}))
    jobs = {"tune": {"type": "pipeline", "component": "./inner/component.yaml"}}
    outer = {"type": "pipeline", "settings": {"default_compute": "serverless"}, "jobs": jobs}
    write(folder, "nested.yml", json.dumps(outer))
    wants = {"NCCL_IB_HCA": "mlx5"}
    write(folder, "without_infiniband.yml", json.dumps(job_on("Standard_NC96ads_A100_v4", "python:3.12", wants)))


def job_on(size: str, image: str, variables: dict[str, str] | None = None) -> dict[str, Any]:
    """A serverless command job on a size."""
    return {
        "command": "nvidia-smi",
        "environment": {"image": image},
        "compute": "serverless",
        "resources": {"instance_type": size},
        "environment_variables": variables or {},
    }


@pytest.fixture
def quick(azure: FakeAzure, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is waited for, and the SDK does not remember on the disk what another test has registered."""
    monkeypatch.setattr(RetryPolicy, "BACKOFF_MAX", 0)
    monkeypatch.setattr(watch, "POLL", 0.01)
    monkeypatch.setenv("AZURE_ML_DISABLE_ON_DISK_CACHE", "true")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    write_project(folder)
    return folder


@pytest.fixture
def command(
    azure: FakeAzure,
    quick: None,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Command:
    """Runs the command in the project; whatever it prints has no secret in it and no traceback."""

    def call(*arguments: str) -> Ended:
        monkeypatch.chdir(project)
        monkeypatch.setenv("COLUMNS", "200")
        return call_command(arguments, azure, monkeypatch, capfd)

    return call


def call_command(
    arguments: Sequence[str], azure: FakeAzure, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Ended:
    """Runs the command in this process; whatever it prints has no secret in it and no traceback."""
    monkeypatch.setattr(sys, "argv", ["allranks", *arguments])
    code = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    done = Ended(code, *capfd.readouterr())
    assert not [secret for secret in azure.secrets if secret in done.out + done.err]
    assert "Traceback" not in done.err, done.err
    return done


def small_runtime(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Upload next to code that uses the runtime one file in its place, for what does not execute the code."""
    runtime = write(folder, "small/allranks/runtime/__init__.py", "").parent
    monkeypatch.setattr(runtime_copy, "_runtime", lambda: {"allranks/runtime/__init__.py": runtime / "__init__.py"})


def add_step(azure: FakeAzure, run: str, step: str, status: str = "Running", error: str = "", **logs: bytes) -> Job:
    """A step of a pipeline's run, as the service makes it, with its logs: name without ".txt" -> content."""
    root = azure.jobs[run].root or run
    job = Job(f"{run}-{step}", None, display_name=step, parent=run, root=root, error=error)
    job.move("Running")
    azure.jobs[job.name] = job
    azure.jobs[run].children.append(job.name)
    for name, content in logs.items():
        write_log(azure, job, name, content)
    job.move(status)
    return job


def write_log(azure: FakeAzure, job: Job, name: str, content: bytes) -> None:
    """A log of a job as it is now."""
    log = f"user_logs/{name}.txt"
    if log not in job.logs:
        job.logs.append(log)
    azure.blobs.container(ARTIFACTS)[f"{artifacts(job.name)}/{log}"] = Blob(content)


def pollers() -> list[str]:
    """The threads in which the SDK looks at a long-running operation: none once a command has ended."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("LROPoller")]


def only_run(azure: FakeAzure) -> Job:
    """The one job that was submitted."""
    (job,) = [job for job in azure.jobs.values() if not job.parent]
    return job
