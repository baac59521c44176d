"""What the engine's tests share: plans made by hand, and a workspace of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pipeline_files import project

from allranks.local.engine import Options, run
from allranks.local.observer import Observer
from allranks.local.plan import Plan, Step
from allranks.local.record import RunRecord
from allranks.local.workspace import Workspace

Runner = Callable[..., RunRecord]


@pytest.fixture(autouse=True)
def _without_mlflow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """MLflow takes seconds to start: it is as if it were not installed, but for the tests of what it keeps."""
    if "mlflow" not in request.keywords:
        monkeypatch.setattr("allranks.local.tracking.needed.find_spec", lambda _: None)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a small project, with a component, its code, and data."""
    monkeypatch.chdir(project(tmp_path))
    return tmp_path


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "workspace")


@pytest.fixture
def run_steps(workspace: Workspace) -> Runner:
    """Runs steps as a plan, by default on loopback."""

    def run_them(
        *steps: Step, observer: Observer | None = None, plan: Plan | None = None, **options: object
    ) -> RunRecord:
        options.setdefault("instances", "loopback")
        options.setdefault("slots", 8)
        return run(plan or Plan("plan", steps), workspace, Options(**options), observer)  # type: ignore[arg-type]

    return run_them
