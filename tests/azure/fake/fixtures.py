"""Fixtures. A folder of tests that wants them imports them into its conftest."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fake.server import Server, serving
from fake.service import FakeAzure


@pytest.fixture(scope="session")
def azure_server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def azure(azure_server: Server) -> Iterator[FakeAzure]:
    """A fresh service, which this process finds too."""
    with fresh(azure_server) as service:
        yield service


@contextmanager
def fresh(server: Server) -> Iterator[FakeAzure]:
    """A service that answers from now on, and the one before it again afterwards.

    Nobody may want any other host, or a route that it lacks.
    """
    service, before = FakeAzure(server), server.azure
    with pytest.MonkeyPatch.context() as patch:
        for name, value in service.environment.items():
            patch.setenv(name, value)
        for name in _ASTRAY:
            patch.delenv(name, raising=False)
            patch.delenv(name.lower(), raising=False)
        _hurry(patch)
        server.azure = service
        try:
            yield service
        finally:
            server.azure = before
    assert service.strangers == []
    assert service.unknown == []


_ASTRAY = ("AZUREML_CURRENT_CLOUD", "ARM_CLOUD_METADATA_URL", "AZUREML_DEV_URL_MFE", "HTTP_PROXY", "ALL_PROXY")
"""Variables that would lead a client somewhere else."""


def _hurry(patch: pytest.MonkeyPatch) -> None:
    """Shortens waits of this process: how often the SDK looks at a job, which it reads at its import, and the 15 s that
    storage's client lets pass before it tries again, and the second between looks at an operation."""
    from azure.ai.ml.operations._run_history_constants import RunHistoryConstants
    from azure.core.polling.base_polling import LROBasePolling
    from azure.storage.blob import ExponentialRetry

    for end in ("MIN", "MAX"):
        patch.setattr(RunHistoryConstants, f"_WAIT_COMPLETION_POLLING_INTERVAL_{end}", 1)
    patch.setattr(LROBasePolling, "_extract_delay", lambda _: 0.01)
    patch.setattr(ExponentialRetry, "get_backoff_time", lambda *_: 0.01)
