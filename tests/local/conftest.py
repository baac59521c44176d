"""What the engine's tests share."""

from pathlib import Path

import pytest

from trials import Trial, Trials


@pytest.fixture(autouse=True)
def _without_mlflow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """MLflow takes seconds to start: it is as if it were not installed, but for the tests of what it keeps."""
    if "mlflow" not in request.keywords:
        monkeypatch.setattr("allranks.local.tracking.client.find_spec", lambda _: None)


@pytest.fixture
def trial_of(tmp_path: Path) -> Trials:
    """A trial of nodes, in a folder of its own."""
    return lambda *nodes, **options: Trial(tmp_path, *nodes, **options)
