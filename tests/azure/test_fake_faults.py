"""The fake goes wrong as Azure does, and the real client takes it as it takes Azure."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ResourceNotFoundError,
)
from fake.names import GROUP, SUBSCRIPTION, WORKSPACE


@pytest.fixture
def client(azure: Any) -> Any:
    return azure.client(show_progress=False)


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [
        (400, HttpResponseError, "not valid"),
        (401, ClientAuthenticationError, "InvalidAuthenticationToken"),
        (403, HttpResponseError, "AuthorizationFailed"),
        (404, ResourceNotFoundError, "ResourceNotFound"),
        (409, ResourceExistsError, "Conflict"),
    ],
)
def test_a_refusal_reaches_the_caller(azure, client, status, error, message) -> None:
    azure.fail("/computes/", status=status, times=9)
    with pytest.raises(error, match=message):
        client.compute.get("cpu-cluster")


@pytest.mark.parametrize("fault", [{"status": 503}, {"status": 429}, {"torn": True}, {"status": 0}], ids=str)
def test_the_client_tries_again(azure, client, fault) -> None:
    azure.fail("/computes/", headers={"Retry-After": "0"}, **fault)
    assert client.compute.get("cpu-cluster").name == "cpu-cluster"
    assert len([path for _, path, _ in azure.requests if "/computes/" in path]) == 2


def test_a_slow_answer_comes(azure, client) -> None:
    azure.fail("/computes/", status=200, delay=0.2)
    assert client.compute.get("cpu-cluster").size == "STANDARD_D4S_V5"
    assert [status for _, _, status in azure.requests] == [200]


def test_only_the_method_that_is_meant_fails(azure, client) -> None:
    azure.fail(".", status=409, method="PUT")
    assert client.compute.get("cpu-cluster")


def test_nobody_gets_in_without_a_token(azure, client) -> None:
    azure.signs_in = False
    with pytest.raises(ClientAuthenticationError):
        client.compute.get("cpu-cluster")
    assert azure.requests == []


def test_a_token_may_be_good_for_nothing(azure, client) -> None:
    azure.allows = False
    with pytest.raises(HttpResponseError, match="does not have authorization"):
        client.compute.get("cpu-cluster")


@pytest.mark.parametrize(
    ("group", "workspace", "message"),
    [(GROUP, "other", "workspaces/other' under resource group"), ("other", WORKSPACE, "Resource group 'other'")],
)
def test_another_workspace_is_not_there(azure, group, workspace, message) -> None:
    from azure.ai.ml import MLClient
    from azure.identity import DefaultAzureCredential

    with pytest.raises(ResourceNotFoundError, match=message):
        MLClient(DefaultAzureCredential(), SUBSCRIPTION, group, workspace).workspaces.get()


def test_another_host_is_refused(azure) -> None:
    import requests

    with pytest.raises(requests.exceptions.ProxyError):
        requests.get("https://example.org/", timeout=5)
    assert azure.strangers == ["example.org:443"]
    azure.strangers.clear()


def test_a_process_needs_the_environment_alone(azure) -> None:
    script = (
        "from azure.ai.ml import MLClient\n"
        "from azure.identity import DefaultAzureCredential\n"
        f"client = MLClient(DefaultAzureCredential(), {SUBSCRIPTION!r}, {GROUP!r}, {WORKSPACE!r})\n"
        "print(client.compute.get('gpu-cluster').size)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        env=azure.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1:] == ["STANDARD_NC96ADS_A100_V4"], done.stderr
    assert azure.sign_ins == ["https://management.azure.com"]
