"""A step of a job on Azure ML, run on this machine with its code, its data, and the outputs of the steps before it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from commands import Command, command, only_run, project, quick
from fake.service import FakeAzure

from allranks.sdk import session
from allranks_command import write

__all__ = ["command", "project", "quick"]


def test_a_step_gets_the_outputs_of_the_steps_before(azure: FakeAzure, command: Command, project: Path) -> None:
    azure.executes = True
    assert command("submit", "pipeline.yaml").code == 0
    name = only_run(azure).name
    shutil.rmtree(project / "prepare")  # only what was stored is needed
    lines = sorted(line for rank in range(4) for line in (f"train:{rank} | prepared", f"train:{rank} | rank {rank}"))
    done = command("replay", name, "train")
    assert (done.code, sorted(done.out.splitlines())) == (0, lines), done.err
    assert command("runs", "--json").out.count('"id"') == 1
    assert command("show", f"azure:{name}", "--json").out == command("show", name, "--json").out
    assert "there is no such step" in command("replay", name, "nope").err

    shutil.rmtree(project / ".allranks")  # as if it had been submitted from elsewhere
    shutil.rmtree(project / "train")
    done = command("replay", f"azure:{name}/train")
    assert (done.code, sorted(done.out.splitlines())) == (0, lines), done.err
    assert not (project / ".allranks").exists()


@pytest.fixture
def job(azure: FakeAzure, command: Command, project: Path) -> str:
    """A command job with code, a variable, a registered file and an uploaded folder, of which this machine has nothing
    any more; it has not run."""
    from azure.ai.ml.entities import Data

    azure.executes = False
    words = write(project, "data/words", "hello\n")
    with session.session():
        data = Data(name="words", version="1", type="uri_file", path=str(words))
        azure.client(show_progress=False).data.create_or_update(data)
    write(project, "code/shout.sh", "tr a-z A-Z")
    inputs = {
        "file": {"type": "uri_file", "path": "azureml:words:1"},
        "folder": {"type": "uri_folder", "path": "./data"},
        "rate": 0.5,
    }
    spec = {
        "command": "cat ${{inputs.file}} ${{inputs.folder}}/words | sh shout.sh && echo ${{inputs.rate}} $GREETING",
        "code": "./code",
        "inputs": inputs,
        "environment": {"image": "python:3.12"},
        "environment_variables": {"GREETING": "hi"},
        "compute": "azureml:cpu-cluster",
    }
    write(project, "job.yml", json.dumps(spec))
    done = command("submit", "job.yml", "--no-stream")
    assert done.code == 0, done.err
    for folder in ("data", "code", ".allranks"):
        shutil.rmtree(project / folder)
    return only_run(azure).name


def test_a_job_gets_its_code_variables_and_data(job: str, command: Command) -> None:
    done = command("replay", f"azure:{job}")
    assert (done.code, done.out.splitlines()) == (0, ["HELLO", "HELLO", "0.5 hi"]), done.err
    for name, message in (
        ("azure:nope", "not found (404)"),
        ("azure:latest", "not found (404)"),
        (f"azure:{job}/nope", f"expected  one of: {job}"),
    ):
        done = command("replay", name)
        assert done.code == 2
        assert message in done.err
