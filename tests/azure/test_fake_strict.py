"""The fake refuses what Azure refuses: tokens for another service, wrong signatures, a SAS beyond its scope or time."""

from __future__ import annotations

import base64
import secrets
from pathlib import Path
from typing import Any

import pytest
import requests
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.identity import DefaultAzureCredential
from azure.storage.blob import BlobServiceClient, ContainerClient
from fake.blobs import Blob
from fake.names import ACCOUNT, BLOBS, MANAGEMENT, WORKSPACE_PATH
from fake.service import FakeAzure

from allranks_client.messages import user_error

pytestmark = pytest.mark.azurite

STORAGE = f"https://{BLOBS}"


def get(url: str, audience: str) -> requests.Response:
    token = DefaultAzureCredential().get_token(f"{audience}/.default").token
    return requests.get(url, headers={"Authorization": f"Bearer {token}"}, timeout=10)


@pytest.mark.parametrize(
    ("audience", "status"), [("https://management.azure.com", 200), ("https://storage.azure.com", 401)]
)
def test_a_token_is_good_for_its_audience_alone(audience: str, status: int, azure: FakeAzure) -> None:
    found = get(f"https://{MANAGEMENT}{WORKSPACE_PATH}/computes?api-version=2023-08-01-preview", audience)
    assert found.status_code == status
    assert ("InvalidAuthenticationTokenAudience" in found.text) is (status == 401)


def test_a_token_expires(azure: FakeAzure) -> None:
    azure.token_lifetime = -1
    with pytest.raises(ClientAuthenticationError, match="InvalidAuthenticationToken"):
        azure.client().compute.get("cpu-cluster")


def test_storage_takes_tokens_for_storage(azure: FakeAzure) -> None:
    azure.blobs.container("files")["b"] = Blob(b"content")
    assert get(f"{STORAGE}/files/b", "https://storage.azure.com").content == b"content"
    assert get(f"{STORAGE}/files/b", "https://management.azure.com").status_code == 403


def test_a_request_is_signed_with_the_key_of_the_account(azure: FakeAzure) -> None:
    def service(key: str) -> Any:
        credential = {"account_name": ACCOUNT, "account_key": key}
        return BlobServiceClient(STORAGE, credential=credential).get_container_client("files")  # type: ignore[arg-type]

    right = service(azure.blobs.key)
    for name in ("a", "folder/name with spaces & ü"):
        right.upload_blob(name, b"content", metadata={"k": "v"})
        assert right.download_blob(name, offset=1, length=3).readall() == b"ont"
    wrong = service(base64.b64encode(secrets.token_bytes(64)).decode())
    with pytest.raises(ClientAuthenticationError, match="failed to authenticate"):
        wrong.download_blob("a")


def test_a_list_of_blobs_has_pages(azure: FakeAzure) -> None:
    azure.page_size = 2
    azure.blobs.containers["files"] = {f"b{number}": Blob(b"") for number in range(5)}
    client = ContainerClient.from_container_url(
        f"{STORAGE}/files?{azure.blobs.signatures.sas('files', permissions='l')}"
    )
    assert list(client.list_blob_names()) == [f"b{number}" for number in range(5)]


@pytest.mark.parametrize(
    ("scope", "change", "reason"),
    [
        (("files", "b"), lambda sas: sas, ""),
        (("files", ""), lambda sas: sas, ""),
        (("", ""), lambda sas: sas, ""),
        (("files", "other"), lambda sas: sas, "not for this resource"),
        (("elsewhere", ""), lambda sas: sas, "not for this resource"),
        (("files", "b", "w"), lambda sas: sas, "not authorized"),
        (("files", "b"), lambda sas: sas.replace("sp=r", "sp=rw"), "did not match"),
        (("files", "b"), lambda sas: sas.replace("se=20", "se=21"), "did not match"),
        (("files", "b"), lambda sas: sas.replace("sig=", "sig=A"), "did not match"),
    ],
)
def test_a_sas_is_good_for_its_scope_alone(scope: Any, change: Any, reason: str, azure: FakeAzure) -> None:
    azure.blobs.container("files")["b"] = Blob(b"content")
    found = requests.get(f"{STORAGE}/files/b?{change(azure.blobs.signatures.sas(*scope))}", timeout=10)
    assert found.status_code == (403 if reason else 200)
    assert reason in found.text


def test_a_sas_expires(azure: FakeAzure) -> None:
    azure.blobs.container("files")["b"] = Blob(b"content")
    azure.blobs.signatures.lifetime = -60
    found = requests.get(f"{STORAGE}/files/b?{azure.blobs.signatures.sas('files', 'b')}", timeout=10)
    assert (found.status_code, "specified time frame" in found.text) == (403, True)


def test_an_operation_takes_a_while_and_may_fail_at_the_end(azure: FakeAzure, tmp_path: Path) -> None:
    from azure.ai.ml import load_job
    from azure.ai.ml.entities import CronTrigger, JobSchedule

    client = azure.client(show_progress=False)
    (tmp_path / "job.yml").write_text(
        "{type: pipeline, compute: cpu-cluster, jobs: {a: {command: echo, environment: {image: 'ubuntu:22.04'}}}}"
    )
    job = load_job(tmp_path / "job.yml")
    schedule = JobSchedule(name="daily", trigger=CronTrigger(expression="0 3 * * *"), create_job=job)
    azure.operation_looks, azure.operation_error = 3, user_error("The workspace has too many schedules.")
    with pytest.raises(HttpResponseError, match="too many schedules"):
        client.schedules.begin_create_or_update(schedule).result()
    assert azure.schedules == {}
    looks = [path for _, path, _ in azure.requests if "mfeOperationsStatus" in path]
    assert len(looks) == 4


@pytest.mark.parametrize("query", ["", "?api-version=2020-01-01"], ids=["none", "another"])
def test_an_operation_is_asked_for_in_its_version(query: str, azure: FakeAzure) -> None:
    found = get(f"https://{MANAGEMENT}{WORKSPACE_PATH}/computes{query}", "https://management.azure.com")
    assert found.status_code == 400
    assert "ApiVersionParameter" in found.text
