"""Whatever the service, the network or the sign-in do: one message, exit code 2 or 1, no traceback, no secret."""

import json
import socket
from typing import Any

import pytest
from commands import Command, command, project, quick
from fake.service import FakeAzure

__all__ = ["command", "project", "quick"]

KEY = "k" * 86 + "=="
LEAKING = f"cannot read https://a.blob.core.windows.net/c?sig=s1gn4ture with AccountKey={KEY} by Bearer t0k3n.t0k3n"


def fault(status: int, **more: Any) -> dict[str, Any]:
    return {"pattern": "/jobs/", "method": "PUT", "status": status, "times": 100, **more}


FAULTS: dict[str, tuple[dict[str, Any], int, list[str]]] = {
    "401": (fault(401), 2, ["submitting the job", "authentication failed (401)", "az login"]),
    "403": (fault(403), 2, ["access denied (403)", "AzureML Data Scientist"]),
    "404": (fault(404), 2, ["not found (404)", "resource group"]),
    "409": (fault(409), 2, ["(409)", "The resource exists already."]),
    "400": (
        fault(400, body=json.dumps({"error": {"code": "UserError", "message": "Node x is wrong."}})),
        2,
        ["rejected (400): UserError: Node x is wrong."],
    ),
    "429": (fault(429, headers={"Retry-After": "0"}), 1, ["too many requests (429), after several tries"]),
    "500": (fault(500), 1, ["the service failed (500), after several tries", "try again"]),
    "an answer that is no JSON": (fault(502, body="<html>proxy</html>"), 1, ["the service failed (502)"]),
    "an answer that is torn": (fault(200, torn=True), 1, ["submitting the job", "incomplete or invalid"]),
    "no answer": (fault(0), 1, ["submitting the job"]),
    "an answer with secrets": (fault(500, body=json.dumps({"error": {"message": LEAKING}})), 1, ["AccountKey=***"]),
    "a text with secrets": (fault(400, body=LEAKING), 2, ["Bearer ***", "sig=***"]),
    "a workspace that is not there": (
        {"pattern": "/computes", "status": 404, "times": 100},
        2,
        ["listing the computes of the workspace", "not found (404)", "subscription, resource group and workspace"],
    ),
    "an upload that is refused": ({"pattern": r"\.blob\..*", "method": "PUT", "status": 403, "times": 100}, 2, ["403"]),
}


@pytest.mark.parametrize(("given", "code", "said"), FAULTS.values(), ids=FAULTS)
def test_a_service_that_fails(
    given: dict[str, Any], code: int, said: list[str], azure: FakeAzure, command: Command
) -> None:
    azure.fail(**given)
    done = command("submit", "pipeline.yaml" if "blob" in given["pattern"] else "job.yml")
    assert (done.code, done.out) == (code, ""), done.err
    assert not [text for text in said if text not in done.err], done.err
    assert not [secret for secret in (KEY, "s1gn4ture", "t0k3n.t0k3n") if secret in done.err]
    assert done.err.count("✗") == 1
    assert command("runs").out.startswith("No runs yet")


@pytest.mark.parametrize("status", [429, 503])
def test_what_fails_once_is_tried_again(status: int, azure: FakeAzure, command: Command) -> None:
    azure.fail("/jobs/", status, method="PUT")
    assert command("submit", "job.yml", "--no-stream").code == 0
    assert [found for method, path, found in azure.requests if method == "PUT" and "/jobs/" in path] == [status, 201]


def test_nobody_is_signed_in(azure: FakeAzure, command: Command) -> None:
    azure.signs_in = False
    done = command("submit", "job.yml")
    assert (done.code, done.out) == (2, "")
    for said in ("✗ ", "az login", "AZURE_CLIENT_SECRET"):
        assert said in done.err


def test_no_way_to_sign_in(azure: FakeAzure, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine without anything: the variables of a service principal alone may be tried, and are not set."""
    monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
    done = command("submit", "job.yml")
    assert (done.code, done.out) == (2, "")
    assert "nobody is signed in to Azure" in done.err
    assert "az login" in done.err


def test_no_network(azure: FakeAzure, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
    done = command("submit", "job.yml")
    assert (done.code, done.out) == (1, "")
    assert "Azure cannot be reached" in done.err
    assert "Connection refused" in done.err


def test_no_workspace_is_told_before_anything(
    azure: FakeAzure, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZUREML_ARM_WORKSPACE_NAME")
    done = command("submit", "job.yml")
    assert (done.code, done.out) == (2, "")
    assert "no workspace is given" in done.err
    assert (azure.requests, azure.sign_ins) == ([], [])


def test_what_the_sdk_refuses(command: Command, project: Any) -> None:
    from allranks_command import write

    write(project, "empty.yml", json.dumps({"command": "echo", "environment": {"image": "x"}, "code": "./none"}))
    done = command("submit", "empty.yml", "--compute", "cpu-cluster")
    assert (done.code, done.out) == (2, "")
    assert "none" in done.err
