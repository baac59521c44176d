"""`allranks submit --dry-run` prints the very body that is sent, and asks nobody."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Command, command, only_run, project, quick
from fake.service import FakeAzure

from allranks_command import allranks, write

__all__ = ["command", "project", "quick"]

GUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""Of a component follows from the name of its code, which the service makes up at the first upload."""


@pytest.mark.parametrize(
    "arguments",
    [
        ["pipeline.yaml", "--size", "train=Standard_NC96ads_A100_v4", "--experiment", "ours", "--set", "instances=3"],
        ["job.yml", "--display-name", "Mine"],
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_the_body_is_the_one_that_is_sent(arguments: list[str], azure: FakeAzure, command: Command) -> None:
    azure.core_limits["standardNCADSA100v4Family"] = 1000
    printed = command("submit", *arguments, "--dry-run")
    assert (printed.code, azure.requests, azure.sign_ins) == (0, [], [])
    sent: list[dict[str, object]] = []
    store = azure.answer
    azure.answer = lambda request: (  # type: ignore[method-assign]
        sent.append(request.json) if request.method == "PUT" and "/jobs/" in request.path else None,
        store(request),
    )[1]
    assert command("submit", *arguments, "--no-stream").code == 0
    ours, theirs = (
        re.sub(rf"(azureml_anonymous/versions/){GUID}", r"\1GUID", json.dumps(it)) for it in (printed.json, sent[-1])
    )
    assert list(differences(json.loads(ours), json.loads(theirs))) == []


def test_the_same_content_is_the_same_body(command: Command, project: Path) -> None:
    first, second = (command("submit", "pipeline.yaml", "--dry-run").out for _ in range(2))
    assert first == second
    write(project, "train/note.txt", "other code")
    changed = list(differences(json.loads(first), command("submit", "pipeline.yaml", "--dry-run").json))
    assert [change.partition(":")[0] for change in changed] == [".properties.jobs.train.componentId"]


def differences(ours: Any, sent: Any, place: str = "") -> Iterator[str]:
    """Where the two bodies are not the same, with what stands there."""
    if isinstance(ours, dict) and isinstance(sent, dict):
        for key in ours.keys() | sent.keys():
            yield from differences(ours.get(key), sent.get(key), f"{place}.{key}")
    elif ours != sent:
        yield f"{place}: {ours} is sent as {sent}"


def test_what_is_changed_is_in_it(command: Command) -> None:
    options = ["--size", "train=Standard_NC96ads_A100_v4", "--tag", "team=a", "--tag", "why=b=c", "--experiment", "e"]
    body = command("submit", "pipeline.yaml", "--dry-run", "--display-name", "D", *options).json["properties"]
    train = body["jobs"]["train"]
    assert train["resources"] == {
        "instance_count": "${{parent.inputs.instances}}",
        "instance_type": "Standard_NC96ads_A100_v4",
    }
    assert "resources" not in body["jobs"]["prepare"]
    assert body["settings"]["default_compute"].endswith("/computes/serverless")
    assert body["tags"] == {"team": "a", "why": "b=c"}
    assert (body["experimentName"], body["displayName"]) == ("e", "D")


def test_it_shows_no_secret(command: Command, project: Path) -> None:
    secrets = {"HF_TOKEN": "hf_secret", "DATA": "https://a.blob.core.windows.net/c?sig=s1gn4ture"}
    job = {"command": "echo", "environment": {"image": "x"}, "compute": "azureml:c", "environment_variables": secrets}
    write(project, "secret.yml", json.dumps(job))
    done = command("submit", "secret.yml", "--dry-run")
    assert done.json["properties"]["environmentVariables"] == {
        "HF_TOKEN": "***",
        "DATA": "https://a.blob.core.windows.net/c?sig=***",
    }


def test_a_cluster_for_the_steps_that_name_none(command: Command) -> None:
    body = command("submit", "pipeline.yaml", "--dry-run", "--compute", "gpu-cluster").json["properties"]
    assert body["settings"]["default_compute"].endswith("/computes/gpu-cluster")


def test_steps_without_a_compute_have_a_placeholder(command: Command, project: Path) -> None:
    step = {"type": "command", "command": "echo", "environment": {"image": "x"}}
    write(project, "unplaced.yml", json.dumps({"type": "pipeline", "jobs": {"a": step}}))
    done = command("submit", "unplaced.yml", "--dry-run")
    assert (done.code, "no compute is given, so the body contains COMPUTE_NAME" in done.err) == (0, True)
    assert done.json["properties"]["settings"]["default_compute"].endswith("/computes/COMPUTE_NAME")


def test_it_needs_no_workspace_and_no_network(tmp_path: Path) -> None:
    """In a process of its own, where every request would fail."""
    write(tmp_path, "job.yml", json.dumps({"command": "echo", "environment": {"image": "x:1"}, "compute": "azureml:c"}))
    nowhere = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    done = allranks("submit", "job.yml", "--dry-run", folder=tmp_path, **nowhere)
    assert done.code == 0, done.err
    assert done.json["properties"]["computeId"].startswith("/subscriptions/SUBSCRIPTION_ID/")
    assert done.err == "note: no workspace is given, so ids contain placeholders\n"
    assert [path.name for path in tmp_path.iterdir()] == ["job.yml"]


def test_a_registered_component_keeps_its_label(azure: FakeAzure, command: Command, project: Path) -> None:
    job = {
        "type": "pipeline",
        "settings": {"default_compute": "azureml:cpu-cluster"},
        "jobs": {"a": {"type": "command", "component": "azureml:mine@latest"}},
    }
    write(project, "registered.yml", json.dumps(job))
    done = command("submit", "registered.yml", "--dry-run")
    assert done.code == 0, done.err
    assert done.json["properties"]["jobs"]["a"]["componentId"].endswith(("/components/mine/labels/latest", "latest"))
    assert "only sizes and computes are checked, because a cannot be read on this machine" in done.err


def test_nothing_is_kept_of_it(azure: FakeAzure, command: Command, project: Path) -> None:
    before = sorted(project.rglob("*"))
    assert command("submit", "pipeline.yaml", "--dry-run").code == 0
    assert sorted(project.rglob("*")) == before
    assert command("submit", "pipeline.yaml", "--no-stream").code == 0
    assert only_run(azure).kind == "Pipeline"
