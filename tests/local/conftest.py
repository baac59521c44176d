"""What the engine's tests share: plans made by hand, a workspace of their own, both kinds of instances."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from allranks.local.engine import Options, run
from allranks.local.observer import Observer
from allranks.local.plan import Plan, Step
from allranks.local.record import RunRecord
from allranks.local.supervisor import Supervisor, UnfitError
from allranks.local.workspace import Workspace

Runner = Callable[..., RunRecord]


def _works(kind: str) -> bool:
    async def try_it() -> bool:
        try:
            await (await Supervisor.start(kind)).close()
        except UnfitError:
            return False
        return True

    return asyncio.run(try_it())


@pytest.fixture(scope="session")
def rack_works() -> bool:
    return _works("rack")


@pytest.fixture(params=["loopback", "rack"])
def kind(request: pytest.FixtureRequest, rack_works: bool) -> str:
    """Both kinds of instances; the rack only where this machine has user namespaces."""
    if request.param == "rack" and not rack_works:
        pytest.skip("this machine has no user namespaces")
    return str(request.param)


@pytest.fixture(autouse=True)
def _without_mlflow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """MLflow takes seconds to start: it is as if it were not installed, but for the tests of what it keeps."""
    if "mlflow" not in request.keywords:
        monkeypatch.setattr("allranks.local.tracking.needed.find_spec", lambda _: None)


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
