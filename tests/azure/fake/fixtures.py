"""Fixtures. A folder of tests that wants them imports them into its conftest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fake.server import Server, serving
from fake.service import FakeAzure


@pytest.fixture(scope="session")
def azure_server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def azure(azure_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAzure]:
    """A fresh service, which this process finds too. Nobody may want any other host, or a route that it lacks."""
    service = FakeAzure(azure_server, tmp_path / "azure")
    azure_server.azure = service
    for name, value in service.environment.items():
        monkeypatch.setenv(name, value)
    for name in ("AZUREML_CURRENT_CLOUD", "ARM_CLOUD_METADATA_URL", "AZUREML_DEV_URL_MFE", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    _poll_often(monkeypatch)
    try:
        yield service
    finally:
        azure_server.azure = None
        service.close()
    assert service.strangers == []
    assert service.unknown == []


def _poll_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK reads at its import how often it looks at a job, and another test may have imported it before."""
    from azure.ai.ml.operations._run_history_constants import RunHistoryConstants

    for end in ("MIN", "MAX"):
        monkeypatch.setattr(RunHistoryConstants, f"_WAIT_COMPLETION_POLLING_INTERVAL_{end}", 1)
